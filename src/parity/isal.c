/* SPDX-License-Identifier: MIT */
/*
 * What ISA-L asks for (its headers; and its sources where these say less):
 *
 *   xor_gen, pq_gen     Pointers are multiples of 32: the AVX and AVX2 variants use loads and
 * stores that fault on others. Two sources at least. pq_gen: the length is a multiple of 32. Both
 * return not 0 if they refuse. gf_vect_*           Any pointers, 64 bytes at least: the AVX-512
 * variants give up silently below that, the others below 32 or 16.
 *
 * The form of ec_init_tables() belongs to the version of the library; that of gf_vect_mul_init() is
 * documented, so only functions that take the latter are used.
 *
 * None of the AVX and AVX-512 variants clears the upper halves of the vector registers before it
 * returns, and the next SSE instruction then waits for them: about 200 ns on Sapphire Rapids, as
 * long as the parity of a 4 KiB block takes. So each call is followed by vzeroupper. This file is
 * apart so that the compiler puts no SSE instruction in between.
 */
#include "parity/isal.h"

#include <isa-l.h>

#define ALIGNMENT 32u
#define PRODUCT_BYTES_MIN 64u

#ifdef __x86_64__
__attribute__((target("avx"))) static void zero_upper(void)
{
	__builtin_ia32_vzeroupper();
}

static inline void leave(void)
{
	if (__builtin_cpu_supports("avx"))
		zero_upper();
}
#else
static inline void leave(void)
{
}
#endif

static bool is_aligned(unsigned count, const uint8_t *const *blocks)
{
	uintptr_t all = 0;

	for (unsigned i = 0; i < count; i++)
		all |= (uintptr_t)blocks[i];
	return all % ALIGNMENT == 0;
}

struct factor isal_factor(uint8_t c)
{
	struct factor factor;

	gf_vect_mul_init(c, (uint8_t *)&factor);
	return factor;
}

size_t isal_xor(unsigned count, const uint8_t *const *blocks, size_t bytes)
{
	size_t whole = bytes - bytes % ALIGNMENT;
	int refused;

	if (count < 2 || whole == 0 || !is_aligned(count + 1, blocks))
		return 0;
	refused = xor_gen((int)count + 1, (int)whole, (void **)blocks);
	leave();
	return refused ? 0 : whole;
}

size_t isal_pq(unsigned n, const uint8_t *const *blocks, size_t bytes)
{
	size_t whole = bytes - bytes % ALIGNMENT;
	int refused;

	if (n < 2 || whole == 0 || !is_aligned(n + 2, blocks))
		return 0;
	refused = pq_gen((int)n + 2, (int)whole, (void **)blocks);
	leave();
	return refused ? 0 : whole;
}

size_t isal_multiply_add(
	const struct factor *factor, const uint8_t *source, uint8_t *target, size_t bytes)
{
	if (bytes < PRODUCT_BYTES_MIN)
		return 0;
	gf_vect_mad((int)bytes, 1, 0, (uint8_t *)factor, (uint8_t *)source, target);
	leave();
	return bytes;
}

size_t isal_multiply_sum(unsigned count, const struct factor *factors,
	const uint8_t *const *sources, uint8_t *target, size_t bytes)
{
	if (bytes < PRODUCT_BYTES_MIN)
		return 0;
	gf_vect_dot_prod((int)bytes, (int)count, (uint8_t *)factors, (uint8_t **)sources, target);
	leave();
	return bytes;
}

bool isal_is_zero(const uint8_t *block, size_t bytes)
{
	int is_other = isal_zero_detect((void *)block, bytes);

	leave();
	return is_other == 0;
}
