/* SPDX-License-Identifier: MIT */
/*
 * Parity against an oracle that is as slow and literal as the definition: sums of products in the
 * field, byte by byte, products by shift and add. It shares nothing with the code under test.
 */
#include "parity/parity.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "parity/field.h"

#define BLOCK_MAX 9000u /* more than two columns of parity.c */
#define GUARD 0xa5
#define GUARD_BYTES 64u

/* --- The oracle ------------------------------------------------------------------------------ */

static uint8_t slow_product(uint8_t a, uint8_t b)
{
	unsigned sum = 0;

	for (unsigned bit = 0; bit < 8; bit++)
		if (b & 1u << bit)
			sum ^= (unsigned)a << bit;
	for (unsigned bit = 15; bit >= 8; bit--)
		if (sum & 1u << bit)
			sum ^= 0x11du << (bit - 8);
	return (uint8_t)sum;
}

/* The oracle's own tables: all products, and the weights g^i. */
static uint8_t products[256][256], weights[PARITY_DATA_MAX];

static int oracle_setup(void **state)
{
	(void)state;
	for (unsigned a = 0; a < 256; a++)
		for (unsigned b = 0; b < 256; b++)
			products[a][b] = slow_product((uint8_t)a, (uint8_t)b);
	weights[0] = 1;
	for (unsigned i = 1; i < PARITY_DATA_MAX; i++)
		weights[i] = slow_product(weights[i - 1], 2);
	return 0;
}

static void slow_pq(unsigned n, const void *const *data, uint8_t *p, uint8_t *q, size_t bytes)
{
	memset(p, 0, bytes);
	memset(q, 0, bytes);
	for (unsigned i = 0; i < n; i++)
		for (size_t at = 0; data[i] != NULL && at < bytes; at++) {
			uint8_t byte = ((const uint8_t *)data[i])[at];

			p[at] ^= byte;
			q[at] ^= products[weights[i]][byte];
		}
}

/* --- Stripes --------------------------------------------------------------------------------- */

/* xorshift64*; the seed is in each test, so that a failure repeats. */
static uint64_t next_random(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * 2685821657736338717u;
}

/* A consistent stripe whose blocks stand between guards, and a copy to compare with. */
struct stripe {
	unsigned n;
	size_t bytes;
	uint8_t *memory;
	void *block[PARITY_DATA_MAX + 2];
	uint8_t *good[PARITY_DATA_MAX + 2];
};

#define ROOM 9216u /* guard, up to 63 bytes of skew, block, guard; keeps blocks aligned to 64 */

_Static_assert(ROOM % 64 == 0 && ROOM >= GUARD_BYTES + 63 + BLOCK_MAX + GUARD_BYTES, "");

/* @skew: 0 aligns all to 64; else each block lies otherwise. */
static void stripe_init(struct stripe *s, unsigned n, size_t bytes, unsigned skew, uint64_t seed)
{
	s->n = n;
	s->bytes = bytes;
	s->memory = aligned_alloc(64, (size_t)(n + 2) * 2 * ROOM);
	assert_non_null(s->memory);
	for (unsigned i = 0; i < n + 2; i++) {
		uint8_t *room = s->memory + (size_t)i * 2 * ROOM;

		memset(room, GUARD, ROOM);
		s->block[i] = room + GUARD_BYTES + (skew == 0 ? 0 : (skew + i * 7) % 64);
		s->good[i] = room + ROOM;
		for (size_t at = 0; i < n && at < bytes; at++)
			s->good[i][at] = (uint8_t)(next_random(&seed) >> 56);
	}
	slow_pq(n, (const void *const *)s->good, s->good[n], s->good[n + 1], bytes);
	for (unsigned i = 0; i < n + 2; i++)
		memcpy(s->block[i], s->good[i], bytes);
}

static bool is_guard(const uint8_t *bytes)
{
	for (unsigned i = 0; i < GUARD_BYTES; i++)
		if (bytes[i] != GUARD)
			return false;
	return true;
}

/* Every block is what it should be, and nothing was written just before or behind it. */
static void stripe_check(const struct stripe *s, const char *what)
{
	for (unsigned i = 0; i < s->n + 2; i++) {
		const uint8_t *block = s->block[i];

		if (block == NULL)
			continue;
		if (memcmp(block, s->good[i], s->bytes) != 0)
			fail_msg("%s: n %u, bytes %zu: block %u is wrong", what, s->n, s->bytes, i);
		if (!is_guard(block - GUARD_BYTES) || !is_guard(block + s->bytes))
			fail_msg("%s: n %u, bytes %zu: written beside block %u", what, s->n,
				s->bytes, i);
	}
}

static void stripe_fini(struct stripe *s)
{
	free(s->memory);
}

static const size_t lengths[] = {1, 15, 16, 31, 32, 33, 63, 64, 65, 127, 512, 1000, 4095, 4096,
	4097, 4096 + 63, 8192 + 512, BLOCK_MAX - 1};
#define LENGTHS (sizeof(lengths) / sizeof(lengths[0]))

/* --- The field ------------------------------------------------------------------------------- */

static void test_field(void **state)
{
	uint8_t value = 1;

	(void)state;
	for (unsigned i = 0; i < 255; i++) {
		assert_int_equal(parity_power[i], value);
		assert_int_equal(parity_log[value], i);
		assert_int_equal(slow_product(field_power(i), field_power_inverse(i)), 1);
		value = slow_product(value, 2);
	}
	assert_int_equal(value, 1);
	assert_int_equal(field_power(8), 0x1d); /* specification 7.5 */
	assert_int_equal(field_power(254), 0x8e);
	for (unsigned a = 0; a < 256; a++)
		for (unsigned b = 1; b < 256; b++)
			assert_int_equal(
				slow_product(field_divide((uint8_t)a, (uint8_t)b), (uint8_t)b), a);
}

/* --- P and Q --------------------------------------------------------------------------------- */

static void test_xor(void **state)
{
	static const unsigned counts[] = {0, 1, 2, 3, 5, 127, 128, 129, 130, 255, 300, 700};

	(void)state;
	for (unsigned c = 0; c < sizeof(counts) / sizeof(counts[0]); c++)
		for (unsigned skew = 0; skew < 2; skew++)
			for (unsigned l = 0; l<LENGTHS; l += counts[c]> 5 ? 5 : 1) {
				static uint8_t sum[BLOCK_MAX], out[BLOCK_MAX + 64];
				unsigned n = counts[c] < 8 ? counts[c] : 8;
				const void *sources[700];
				struct stripe s;

				stripe_init(&s, n + 1, lengths[l], skew * 5, 77 + c);
				memset(sum, 0, sizeof(sum));
				memset(out, 1, sizeof(out));
				for (unsigned i = 0; i < counts[c]; i++) {
					unsigned from = i * i % 11 %
							n; /* some an odd number of times */

					sources[i] = i % 13 == 12 ? NULL : s.block[from];
					for (size_t at = 0; sources[i] && at < s.bytes; at++)
						sum[at] ^= s.good[from][at];
				}
				parity_xor(counts[c], sources, out + skew, s.bytes);
				assert_memory_equal(out + skew, sum, s.bytes);
				assert_int_equal(out[skew + s.bytes], 1);
				stripe_check(&s, "xor");
				stripe_fini(&s);
			}
}

static void test_xor_in_place(void **state)
{
	(void)state;
	for (unsigned count = 1; count <= 300; count += count < 4 ? 1 : 37)
		for (unsigned times = 1; times <= 3; times++)
			for (unsigned skew = 0; skew < 2; skew++)
				for (unsigned l = 0; l < LENGTHS; l++) {
					static uint8_t sum[BLOCK_MAX];
					const void *sources[310];
					struct stripe s;

					stripe_init(&s, 2, lengths[l], skew, count);
					memset(sum, 0, sizeof(sum));
					for (unsigned i = 0; i < count + times; i++) {
						unsigned from = i >= count ? 0 : i % 3 + 1;

						sources[i] = s.block[from];
						for (size_t at = 0; at < s.bytes; at++)
							sum[at] ^= s.good[from][at];
					}
					parity_xor(count + times, sources, s.block[0], s.bytes);
					memcpy(s.good[0], sum, s.bytes);
					stripe_check(&s, "xor in place");
					stripe_fini(&s);
				}
}

/* Specification 7.5: three blocks of 1 give P = 1 and Q = 7; the example of parity.c. */
static void test_known(void **state)
{
	const uint8_t one = 1;
	uint8_t p = 0, q = 0;

	(void)state;
	parity_pq(3, (const void *[]){&one, &one, &one}, &p, &q, 1);
	assert_int_equal(p, 1);
	assert_int_equal(q, 7);
}

/*
 * From an array that the kernel's md wrote (Linux 6.1, six members, left-symmetric, chunk 4 KiB,
 * random data, no difference in its own check): the first bytes of its first stripe.
 */
static void test_md(void **state)
{
	static const uint8_t md[6][16] = {
		{0xfe, 0x55, 0x18, 0xcb, 0xe8, 0xdf, 0xe5, 0x92, 0x96, 0x94, 0x6b, 0xd2, 0x69, 0x35,
			0xa0, 0x14},
		{0xdd, 0xf0, 0x13, 0x44, 0xf2, 0xe1, 0x04, 0xb7, 0x02, 0x8a, 0x29, 0x4f, 0x2e, 0x52,
			0x86, 0x58},
		{0x69, 0x51, 0x07, 0xe8, 0x86, 0x32, 0xcc, 0xef, 0xe0, 0x98, 0xa2, 0xe3, 0xaf, 0x8b,
			0x55, 0xe5},
		{0x35, 0xdc, 0xb5, 0x78, 0xac, 0xc6, 0x8e, 0x8c, 0xa3, 0xd7, 0xa7, 0x4e, 0x84, 0xbe,
			0x83, 0x95},
		{0x7f, 0x28, 0xb9, 0x1f, 0x30, 0xca, 0xa3, 0x46, 0xd7, 0x51, 0x47, 0x30, 0x6c, 0x52,
			0xf0, 0x3c},
		{0x55, 0x5f, 0xe3, 0x23, 0x3a, 0xb6, 0xfe, 0x6e, 0x44, 0x31, 0xda, 0xad, 0xe7, 0x1e,
			0x94, 0xcb},
	};
	const void *data[4] = {md[0], md[1], md[2], md[3]};
	uint8_t p[16], q[16];

	(void)state;
	parity_pq(4, data, p, q, 16);
	assert_memory_equal(p, md[4], 16);
	assert_memory_equal(q, md[5], 16);
}

static void check_pq(unsigned n, size_t bytes, unsigned skew)
{
	struct stripe s;

	stripe_init(&s, n, bytes, skew, n * 1000 + bytes);
	for (unsigned wanted = 0; wanted < 4; wanted++) {
		void *p = wanted & 1 ? s.block[n] : NULL, *q = wanted & 2 ? s.block[n + 1] : NULL;

		if (p != NULL)
			memset(p, 0xee, bytes);
		if (q != NULL)
			memset(q, 0xee, bytes);
		parity_pq(n, (const void *const *)s.block, p, q, bytes);
		stripe_check(&s, "pq");
	}
	stripe_fini(&s);
}

static void test_pq(void **state)
{
	(void)state;
	for (unsigned n = 1; n <= 20; n++)
		for (unsigned l = 0; l < LENGTHS; l++)
			for (unsigned skew = 0; skew < 3; skew++)
				check_pq(n, lengths[l], skew * 8); /* 16 of 64 bytes apart too */
	for (unsigned n = 21; n <= PARITY_DATA_MAX; n += 13)
		for (unsigned skew = 0; skew < 2; skew++)
			check_pq(n, 4096 + 100, skew);
}

/* Blocks that are NULL, at the ends and between, count as zeros and keep their exponents. */
static void test_zero_blocks(void **state)
{
	(void)state;
	for (unsigned n = 1; n <= 7; n++)
		for (unsigned zero = 0; zero < 1u << n; zero++) {
			struct stripe s;

			stripe_init(&s, n, 5000, zero % 3, zero);
			for (unsigned i = 0; i < n; i++)
				if (zero & 1u << i)
					s.block[i] = NULL;
			slow_pq(n, (const void *const *)s.block, s.good[n], s.good[n + 1], s.bytes);
			parity_pq(n, (const void *const *)s.block, s.block[n], s.block[n + 1],
				s.bytes);
			stripe_check(&s, "zero blocks");
			assert_int_equal(
				parity_locate(n, (const void *const *)s.block, s.bytes, NULL, NULL),
				PARITY_CONSISTENT);
			stripe_fini(&s);
		}
}

/* --- Changes --------------------------------------------------------------------------------- */

static void check_update(unsigned n, unsigned index, size_t bytes, unsigned skew)
{
	static uint8_t fresh[BLOCK_MAX + 1], change[BLOCK_MAX];
	struct stripe s;
	void *p, *q;

	stripe_init(&s, n, bytes, skew, index + bytes);
	p = s.block[n];
	q = s.block[n + 1];
	for (size_t at = 0; at < bytes; at++) {
		fresh[at] = (uint8_t)(at * 31 + index);
		change[at] = fresh[at] ^ s.good[index][at];
	}
	/* In two calls, then back by the difference, then by taking off and adding. */
	parity_update(index, s.block[index], fresh, p, NULL, bytes);
	parity_update(index, s.block[index], fresh, NULL, q, bytes);
	memcpy(s.block[index], fresh, bytes);
	memcpy(s.good[index], fresh, bytes);
	slow_pq(n, (const void *const *)s.good, s.good[n], s.good[n + 1], bytes);
	stripe_check(&s, "update");

	for (size_t at = 0; at < bytes; at++)
		s.good[index][at] ^= change[at];
	slow_pq(n, (const void *const *)s.good, s.good[n], s.good[n + 1], bytes);
	parity_update(index, NULL, change, p, q, bytes);
	memcpy(s.block[index], s.good[index], bytes);
	stripe_check(&s, "update by a difference");

	parity_update(index, s.block[index], NULL, p, q, bytes);
	parity_update(index, NULL, s.block[index], p, q, bytes);
	stripe_check(&s, "taken off and added");
	stripe_fini(&s);
}

static void test_update(void **state)
{
	(void)state;
	for (unsigned n = 1; n <= 9; n++)
		for (unsigned index = 0; index < n; index++)
			for (unsigned l = 0; l < LENGTHS; l++)
				check_update(n, index, lengths[l], l % 2);
	for (unsigned index = 0; index < PARITY_DATA_MAX; index += 11)
		check_update(PARITY_DATA_MAX, index, 300, index % 2);
}

/* --- Lost blocks ----------------------------------------------------------------------------- */

/* Lose the blocks a and b (a == b: one), in all forms: each wanted or not. */
static void check_loss(struct stripe *s, unsigned a, unsigned b)
{
	unsigned lost[2] = {a, b}, n_lost = a == b ? 1 : 2;
	void *was[2] = {s->block[a], s->block[b]};

	for (unsigned unwanted = 0; unwanted < 1u << n_lost; unwanted++) {
		for (unsigned i = 0; i < n_lost; i++) {
			memset(was[i], 0xdd, s->bytes);
			s->block[lost[i]] = unwanted & 1u << i ? NULL : was[i];
		}
		assert_true(parity_recover(s->n, s->block, n_lost, lost, s->bytes));
		stripe_check(s, "recover");
		for (unsigned i = 0; i < n_lost; i++) {
			s->block[lost[i]] = was[i];
			memcpy(was[i], s->good[lost[i]], s->bytes);
		}
	}
}

static void check_losses(unsigned n, size_t bytes, unsigned skew, unsigned step)
{
	struct stripe s;

	stripe_init(&s, n, bytes, skew, n + bytes);
	for (unsigned a = 0; a < n + 2; a += a + step < n ? step : 1)
		for (unsigned b = 0; b < n + 2; b += b + step < n ? step : 1)
			check_loss(&s, a, b);
	stripe_fini(&s);
}

static void test_recover(void **state)
{
	(void)state;
	for (unsigned n = 1; n <= 20; n++) {
		check_losses(n, 200 + n, n % 2, 1);
		check_losses(n, 4096, 0, n < 8 ? 1 : 5);
	}
	for (unsigned n = 1; n <= 5; n++)
		for (unsigned l = 0; l < LENGTHS; l++)
			check_losses(n, lengths[l], l % 3, 1);
	for (unsigned n = 31; n <= PARITY_DATA_MAX; n += 32)
		check_losses(n, 130, 0, 29);
	check_losses(PARITY_DATA_MAX, 65, 0, 41);
}

/* All pairs of weights: the division of the two-block case for every x and y. */
static void test_recover_all_pairs(void **state)
{
	struct stripe s;

	(void)state;
	stripe_init(&s, PARITY_DATA_MAX, 1, 0, 3);
	for (unsigned a = 0; a < s.n + 2; a++)
		for (unsigned b = a; b < s.n + 2; b++) {
			unsigned lost[2] = {a, b};

			*(uint8_t *)s.block[a] ^= 0x5a;
			*(uint8_t *)s.block[b] ^= 0xa7;
			assert_true(parity_recover(s.n, s.block, a == b ? 1 : 2, lost, 1));
			assert_int_equal(*(uint8_t *)s.block[a], *s.good[a]);
			assert_int_equal(*(uint8_t *)s.block[b], *s.good[b]);
		}
	stripe_check(&s, "all pairs");
	stripe_fini(&s);
}

/* What is there must be enough, and what is not needed need not be there. */
static void test_recover_without(void **state)
{
	struct stripe s;
	void *p, *q, *d0;

	(void)state;
	stripe_init(&s, 4, 700, 0, 9);
	p = s.block[4];
	q = s.block[5];
	d0 = s.block[0];
	memset(d0, 0, 700);
	s.block[5] = NULL; /* RAID 5, or Q not read */
	assert_true(parity_recover(4, s.block, 1, (unsigned[]){0}, 700));
	stripe_check(&s, "by P");
	assert_false(parity_recover(4, s.block, 2, (unsigned[]){0, 1}, 700));
	assert_false(parity_recover(4, s.block, 2, (unsigned[]){0, 4}, 700));
	assert_true(parity_recover(4, s.block, 2, (unsigned[]){4, 5}, 700));
	stripe_check(&s, "nothing is written, or what was there");

	memset(d0, 0, 700);
	s.block[4] = NULL; /* P not read */
	s.block[5] = q;
	assert_true(parity_recover(4, s.block, 1, (unsigned[]){0}, 700));
	stripe_check(&s, "by Q");
	assert_false(parity_recover(4, s.block, 2, (unsigned[]){0, 3}, 700));
	assert_false(parity_recover(4, s.block, 2, (unsigned[]){0, 5}, 700));
	s.block[4] = p;
	assert_false(parity_recover(4, s.block, 3, (unsigned[]){0, 1, 4}, 700));
	assert_false(parity_recover(4, s.block, 3, (unsigned[]){0, 1, 2}, 700));
	assert_true(parity_recover(4, s.block, 0, NULL, 700));
	stripe_check(&s, "nothing is written");
	s.block[0] = s.block[1] = NULL; /* lost, but nobody wants them */
	assert_true(parity_recover(4, s.block, 2, (unsigned[]){0, 1}, 700));
	stripe_fini(&s);
}

/* The gaps in the exponents of DDF layouts: zeros stay zeros while others are recovered. */
static void test_recover_with_gaps(void **state)
{
	const void *sources[6];
	struct stripe s;

	(void)state;
	stripe_init(&s, 6, 4500, 3, 4);
	s.block[0] = s.block[3] = NULL;
	memcpy(sources, s.block, sizeof(sources));
	slow_pq(6, sources, s.good[6], s.good[7], s.bytes);
	for (unsigned i = 6; i < 8; i++)
		memcpy(s.block[i], s.good[i], s.bytes);
	for (unsigned a = 1; a < 8; a++)
		for (unsigned b = a; b < 8; b++)
			if (a != 3 && b != 3)
				check_loss(&s, a, b);
	stripe_fini(&s);
}

/* --- Wrong blocks ---------------------------------------------------------------------------- */

static int locate(const struct stripe *s, size_t *first, size_t *end)
{
	return parity_locate(s->n, (const void *const *)s->block, s->bytes, first, end);
}

static void test_locate_one(void **state)
{
	uint64_t random = 11;

	(void)state;
	for (unsigned n = 1; n <= PARITY_DATA_MAX; n += n < 20 ? 1 : 47) {
		struct stripe s;
		size_t first = 1, end = 1;

		stripe_init(&s, n, 4096 + 700, n % 2, n);
		assert_int_equal(locate(&s, &first, &end), PARITY_CONSISTENT);
		assert_true(first == 0 && end == 0);
		for (unsigned bad = 0; bad < n + 2; bad++) {
			size_t from = next_random(&random) % s.bytes;
			size_t to = from + 1 + next_random(&random) % (s.bytes - from);

			for (size_t at = from; at < to; at++)
				((uint8_t *)s.block[bad])[at] ^= 1 + next_random(&random) % 255;
			/* With one data block all three are copies; still two agree. */
			assert_int_equal(locate(&s, &first, &end), bad);
			assert_true(first == from && end == to);
			memcpy(s.block[bad], s.good[bad], s.bytes);
		}
		stripe_check(&s, "locate");
		stripe_fini(&s);
	}
}

/* Two wrong blocks, a sector each: never a single one, wherever the sectors are. */
static void test_locate_two(void **state)
{
	uint64_t random = 12;

	(void)state;
	for (unsigned n = 1; n <= 12; n++) {
		struct stripe s;

		stripe_init(&s, n, 8192, 0, n);
		for (unsigned a = 0; a < n + 2; a++)
			for (unsigned b = a + 1; b < n + 2; b++) {
				unsigned bad[2] = {a, b};

				for (unsigned i = 0; i < 2; i++) {
					size_t from = next_random(&random) % 16 * 512;

					for (size_t at = from; at < from + 512; at++)
						((uint8_t *)s.block[bad[i]])[at] ^=
							1 + next_random(&random) % 255;
				}
				assert_int_equal(locate(&s, NULL, NULL), PARITY_CANNOT_TELL);
				memcpy(s.block[a], s.good[a], s.bytes);
				memcpy(s.block[b], s.good[b], s.bytes);
			}
		stripe_fini(&s);
	}
}

static void test_locate_limits(void **state)
{
	struct stripe s;
	size_t first, end;
	void *q;

	(void)state;
	stripe_init(&s, 3, 4096, 0, 5);
	/* A block that does not exist is accused: dP = 1, dQ = g^3. */
	((uint8_t *)s.block[3])[100] ^= 1;
	((uint8_t *)s.block[4])[100] ^= 8;
	assert_int_equal(locate(&s, &first, &end), PARITY_CANNOT_TELL);
	assert_true(first == 100 && end == 101);
	memcpy(s.block[3], s.good[3], s.bytes);
	/* Without Q a mismatch accuses nobody. */
	q = s.block[4];
	s.block[4] = NULL;
	assert_int_equal(locate(&s, NULL, NULL), PARITY_CONSISTENT);
	((uint8_t *)s.block[0])[4095] ^= 1;
	assert_int_equal(locate(&s, &first, &end), PARITY_CANNOT_TELL);
	assert_true(first == 4095 && end == 4096);
	s.block[4] = q;
	stripe_fini(&s);
}

static void test_zero(void **state)
{
	static uint8_t memory[BLOCK_MAX + 64];

	(void)state;
	for (unsigned l = 0; l < LENGTHS; l++)
		for (unsigned skew = 0; skew < 64; skew += 7) {
			size_t places[] = {0, lengths[l] / 2, lengths[l] - 1};

			memset(memory, 1, sizeof(memory));
			memset(memory + skew, 0, lengths[l]);
			assert_true(parity_is_zero(memory + skew, lengths[l]));
			for (unsigned i = 0; i < 3; i++) {
				memory[skew + places[i]] = 0x80;
				assert_false(parity_is_zero(memory + skew, lengths[l]));
				memory[skew + places[i]] = 0;
			}
		}
	assert_true(parity_is_zero(memory, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_field),
		cmocka_unit_test(test_xor),
		cmocka_unit_test(test_xor_in_place),
		cmocka_unit_test(test_known),
		cmocka_unit_test(test_md),
		cmocka_unit_test(test_pq),
		cmocka_unit_test(test_zero_blocks),
		cmocka_unit_test(test_update),
		cmocka_unit_test(test_recover),
		cmocka_unit_test(test_recover_all_pairs),
		cmocka_unit_test(test_recover_without),
		cmocka_unit_test(test_recover_with_gaps),
		cmocka_unit_test(test_locate_one),
		cmocka_unit_test(test_locate_two),
		cmocka_unit_test(test_locate_limits),
		cmocka_unit_test(test_zero),
	};

	return cmocka_run_group_tests(tests, oracle_setup, NULL);
}
