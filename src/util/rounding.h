/* SPDX-License-Identifier: MIT */
#ifndef STRAKE_UTIL_ROUNDING_H
#define STRAKE_UTIL_ROUNDING_H

#include <stdbool.h>
#include <stdint.h>

/* Largest multiple of @unit that is not above @value; @unit > 0, need not be a power of two. */
static inline uint64_t round_down(uint64_t value, uint64_t unit)
{
	return value - value % unit;
}

/* Smallest multiple of @unit not below @value. The caller knows that it fits in 64 bits. */
static inline uint64_t round_up(uint64_t value, uint64_t unit)
{
	uint64_t rest = value % unit;

	return rest == 0 ? value : value + (unit - rest);
}

static inline bool is_power_of_two(uint64_t value)
{
	return value != 0 && (value & (value - 1)) == 0;
}

static inline uint64_t min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static inline uint64_t max_u64(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* Checked arithmetic for anything that came from a disk: true if the result does not fit. */
#define add_overflows(a, b, ret) __builtin_add_overflow(a, b, ret)
#define mul_overflows(a, b, ret) __builtin_mul_overflow(a, b, ret)

#endif
