/* SPDX-License-Identifier: MIT */
#ifndef STRAKE_PARITY_ISAL_H
#define STRAKE_PARITY_ISAL_H

/*
 * The only door to ISA-L: its long loops with its conditions checked. Each function says how many
 * bytes from the start it has done, which may be none; the caller does the rest. At most INT_MAX
 * bytes at once. For the parity folder.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ISA-L's form of a factor c: c times 0..15, then c times 0x00, 0x10 .. 0xf0. */
struct factor {
	uint8_t low[16], high[16];
};

struct factor isal_factor(uint8_t c);

/*
 * @blocks: @count sources, then the target, which may also be a source: every variant of xor_gen
 * reads the sources at a place before it writes there (the test relies on it too).
 */
size_t isal_xor(unsigned count, const uint8_t *const *blocks, size_t bytes);

/* @blocks: @n data, P, Q. */
size_t isal_pq(unsigned n, const uint8_t *const *blocks, size_t bytes);

/* target ^= factor * source */
size_t isal_multiply_add(
	const struct factor *factor, const uint8_t *source, uint8_t *target, size_t bytes);

/* target = the sum of factors[i] * sources[i] */
size_t isal_multiply_sum(unsigned count, const struct factor *factors,
	const uint8_t *const *sources, uint8_t *target, size_t bytes);

bool isal_is_zero(const uint8_t *block, size_t bytes);

#endif
