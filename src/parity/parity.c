/* SPDX-License-Identifier: MIT */
/*
 * How two extra blocks bring back any two lost ones.
 *
 * ONE LOST BLOCK. Let P be the xor of all data, byte by byte: P = D_0 ^ D_1 ^ ... ^ D_(n-1). Since
 * a ^ a = 0, xor both sides with all blocks but D_x and it stands alone: D_x = P ^ (the others).
 * In the words of algebra, xor is an addition in which every number is its own negative, and P is
 * one equation. With two lost blocks there are two unknowns, and a second equation is needed that
 * says something else: the same sum with weights, Q = w_0 D_0 ^ w_1 D_1 ^ ... For the weights we
 * need a multiplication of bytes that can be undone.
 *
 * THE FIELD. Read a byte as a polynomial with coefficients 0 or 1: 0x13 is x^4 + x + 1. Adding is
 * xor. The product of two of them may be too long for a byte; take the rest after dividing by
 *
 *     x^8 + x^4 + x^3 + x^2 + 1     (0x11d)
 *
 * which has no divisors, as primes have none; so, as with whole numbers modulo a prime, every byte
 * but 0 has an inverse. These 256 numbers are the field GF(2^8). Let g be the polynomial x, the
 * byte 2. To multiply by g is to shift left by one bit, and if a bit falls out, to xor with 0x1d
 * (0x11d without the bit that fell out). Start from 1 and go on multiplying: 1, 2, 4, ..., 0x80,
 * 0x1d, 0x3a, ... It takes 255 steps until 1 comes again, so the powers g^0 to g^254 are all the
 * bytes but 0, each once. md chose the weights w_i = g^i:
 *
 *     P = D_0 ^     D_1 ^       D_2 ^ ...
 *     Q = D_0 ^ g * D_1 ^ g^2 * D_2 ^ ...
 *
 * and 255 is the largest number of data blocks with different weights. Q needs no general product:
 * Horner's rule, Q = D_0 ^ g (D_1 ^ g (D_2 ^ ... )), walks from the last block to the first and
 * multiplies by g only. Example with one byte per block: data 1, 1, 1 gives P = 1, Q = 1^2^4 = 7.
 *
 * EVERY LOSS. Let P' and Q' be P and Q of what is left, with zeros in place of lost data.
 *
 *   P, Q, or both   The data is all there: compute them again.
 *
 *   D_x             P = P' ^ D_x, so            D_x = P ^ P'.       (This also where Q is lost;
 *                                                                  then Q is computed again.)
 *
 *   D_x and P       P says nothing now, Q does: Q = Q' ^ g^x D_x, so
 *                                               D_x = g^-x (Q ^ Q'),  and P is computed again.
 *
 *   D_x and D_y     Let p = P ^ P' and q = Q ^ Q', what the lost blocks gave to P and Q:
 *                       p =     D_x ^     D_y
 *                       q = g^x D_x ^ g^y D_y
 *                   Put D_y = p ^ D_x into the second line:
 *                       q = g^x D_x ^ g^y p ^ g^y D_x = (g^x ^ g^y) D_x ^ g^y p
 *                   and solve for D_x:
 *                       D_x = (g^y p ^ q) / (g^x ^ g^y),  D_y = p ^ D_x.
 *                   The divisor is not 0, because the weights differ; this is why they must.
 *
 * The example again: D_1 and D_2 are lost. P' = Q' = 1, so p = 1 ^ 1 = 0 and q = 7 ^ 1 = 6. Then
 * D_1 = (4 * 0 ^ 6) / (2 ^ 4) = 6 / 6 = 1, and D_2 = 0 ^ 1 = 1.
 *
 * A SMALL CHANGE. D_i becomes D_i ^ d: then P becomes P ^ d and Q becomes Q ^ g^i d, whatever the
 * other blocks are. They need not be read; this is the read-modify-write of small writes.
 *
 * A WRONG BLOCK. A block is there but has wrong content, and nobody says which. Compare P and Q
 * with those computed from the data, byte by byte; dP and dQ are the differences.
 *
 *   dP = 0, dQ = 0     all is well;
 *   dP = 0, dQ not     Q is wrong (a wrong data block would show in P);
 *   dP not, dQ = 0     P is wrong (likewise);
 *   both not 0         D_z is wrong by dP, and dQ = g^z dP: z = log(dQ) - log(dP) modulo 255.
 *
 * If only one block is wrong, every byte gives the same answer. If bytes disagree, or name a block
 * that does not exist, more than one is wrong and there is no telling which. The reverse does not
 * hold: see parity_locate() in the header.
 *
 * HOW IT IS DONE. The long loops are ISA-L's (isal.c). What it refuses, which are unaligned blocks,
 * a single source and odd tails, goes through plain C with vectors of 16 bytes. Blocks are taken in
 * columns of COLUMN_BYTES, so that whatever is needed twice is still in the cache.
 *
 * Background: H. Peter Anvin, "The mathematics of RAID-6" (the same P and Q).
 */
#include "parity/parity.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "parity/field.h"
#include "parity/isal.h"

#define COLUMN_BYTES 4096u
#define XOR_SOURCES 128u /* in one pass */

typedef uint8_t vector __attribute__((vector_size(16)));
typedef int8_t signed_vector __attribute__((vector_size(16)));

static const uint8_t zeros[COLUMN_BYTES] __attribute__((aligned(64)));

static inline vector load(const void *from)
{
	vector v;

	memcpy(&v, from, sizeof(v));
	return v;
}

static inline void store(void *to, vector v)
{
	memcpy(to, &v, sizeof(v));
}

/* g * v in each byte: a byte with its highest bit set is negative when read as signed. */
static inline vector times_g(vector v)
{
	vector fell_out = (vector)((signed_vector)v < 0);

	return (v + v) ^ (fell_out & 0x1d);
}

static size_t column_bytes(size_t offset, size_t bytes)
{
	return bytes - offset < COLUMN_BYTES ? bytes - offset : COLUMN_BYTES;
}

/* --- P alone --------------------------------------------------------------------------------- */

static void xor_plain(
	unsigned count, const uint8_t *const *sources, uint8_t *target, size_t from, size_t bytes)
{
	size_t at = from;

	for (; bytes - at >= 2 * sizeof(vector); at += 2 * sizeof(vector)) {
		vector a = load(sources[0] + at), b = load(sources[0] + at + sizeof(vector));

		for (unsigned i = 1; i < count; i++) {
			a ^= load(sources[i] + at);
			b ^= load(sources[i] + at + sizeof(vector));
		}
		store(target + at, a);
		store(target + at + sizeof(vector), b);
	}
	for (; at < bytes; at++) {
		uint8_t sum = sources[0][at];

		for (unsigned i = 1; i < count; i++)
			sum ^= sources[i][at];
		target[at] = sum;
	}
}

/* @blocks: @count sources, none NULL, then the target, which may also be a source. */
static void xor_blocks(unsigned count, const uint8_t *const *blocks, size_t bytes)
{
	uint8_t *target = (uint8_t *)blocks[count];

	if (count == 0)
		memset(target, 0, bytes);
	else if (count == 1)
		memmove(target, blocks[0], bytes);
	else
		xor_plain(count, blocks, target, isal_xor(count, blocks, bytes), bytes);
}

/*
 * The target comes first where it is a source, so that no pass reads what another one wrote but to
 * add to it. As a source it counts once for each odd number of times that it is there.
 */
static void xor_column(
	unsigned count, const void *const *sources, uint8_t *target, size_t offset, size_t bytes)
{
	const uint8_t *blocks[XOR_SOURCES + 1];
	bool target_counts = false;
	unsigned used = 0;

	for (unsigned i = 0; i < count; i++)
		target_counts ^= sources[i] == target;
	if (target_counts)
		blocks[used++] = target + offset;
	for (unsigned i = 0; i < count; i++) {
		if (sources[i] == NULL || sources[i] == target)
			continue;
		if (used == XOR_SOURCES) {
			blocks[used] = target + offset;
			xor_blocks(used, blocks, bytes);
			blocks[0] = target + offset;
			used = 1;
		}
		blocks[used++] = (const uint8_t *)sources[i] + offset;
	}
	blocks[used] = target + offset;
	xor_blocks(used, blocks, bytes);
}

void parity_xor(unsigned count, const void *const *sources, void *target, size_t bytes)
{
	for (size_t offset = 0; offset < bytes; offset += COLUMN_BYTES)
		xor_column(count, sources, target, offset, column_bytes(offset, bytes));
}

/* --- P and Q --------------------------------------------------------------------------------- */

/* @blocks: n data, P, Q. Horner's rule, from the last block down. */
static void pq_plain(unsigned n, const uint8_t *const *blocks, size_t from, size_t bytes)
{
	uint8_t *to_p = (uint8_t *)blocks[n], *to_q = (uint8_t *)blocks[n + 1];
	size_t at = from;

	for (; bytes - at >= 2 * sizeof(vector); at += 2 * sizeof(vector)) {
		vector p0 = load(blocks[n - 1] + at), q0 = p0;
		vector p1 = load(blocks[n - 1] + at + sizeof(vector)), q1 = p1;

		for (unsigned i = n - 1; i-- > 0;) {
			vector d0 = load(blocks[i] + at),
			       d1 = load(blocks[i] + at + sizeof(vector));

			p0 ^= d0;
			p1 ^= d1;
			q0 = times_g(q0) ^ d0;
			q1 = times_g(q1) ^ d1;
		}
		store(to_p + at, p0);
		store(to_p + at + sizeof(vector), p1);
		store(to_q + at, q0);
		store(to_q + at + sizeof(vector), q1);
	}
	for (; at < bytes; at++) {
		uint8_t p = blocks[n - 1][at], q = p;

		for (unsigned i = n - 1; i-- > 0;) {
			p ^= blocks[i][at];
			q = (uint8_t)(q << 1 ^ (q & 0x80 ? 0x1d : 0)) ^ blocks[i][at];
		}
		to_p[at] = p;
		to_q[at] = q;
	}
}

void parity_pq(unsigned n_data, const void *const *data, void *p, void *q, size_t bytes)
{
	const uint8_t *blocks[PARITY_DATA_MAX + 2];
	uint8_t unwanted[COLUMN_BYTES] __attribute__((aligned(64)));
	size_t length;

	assert(n_data >= 1 && n_data <= PARITY_DATA_MAX);
	if (q == NULL) {
		if (p != NULL)
			parity_xor(n_data, data, p, bytes);
		return;
	}
	/* Zeros behind the last block change nothing; those between others keep their place. */
	while (n_data > 1 && data[n_data - 1] == NULL)
		n_data--;
	for (size_t offset = 0; offset < bytes; offset += COLUMN_BYTES) {
		for (unsigned i = 0; i < n_data; i++)
			blocks[i] = data[i] == NULL ? zeros : (const uint8_t *)data[i] + offset;
		blocks[n_data] = p == NULL ? unwanted : (uint8_t *)p + offset;
		blocks[n_data + 1] = (uint8_t *)q + offset;
		length = column_bytes(offset, bytes);
		pq_plain(n_data, blocks, isal_pq(n_data, blocks, length), length);
	}
}

/* --- Products -------------------------------------------------------------------------------- */

static inline uint8_t product(const struct factor *factor, uint8_t value)
{
	return factor->low[value & 15] ^ factor->high[value >> 4];
}

/* target ^= factor * source; any alignment. */
static void multiply_add(
	const struct factor *factor, const uint8_t *source, uint8_t *target, size_t bytes)
{
	for (size_t i = isal_multiply_add(factor, source, target, bytes); i < bytes; i++)
		target[i] ^= product(factor, source[i]);
}

/* target = the sum of factors[i] * sources[i]; any alignment. */
static void multiply_sum(unsigned count, const struct factor *factors,
	const uint8_t *const *sources, uint8_t *target, size_t bytes)
{
	for (size_t at = isal_multiply_sum(count, factors, sources, target, bytes); at < bytes;
		at++) {
		target[at] = 0;
		for (unsigned i = 0; i < count; i++)
			target[at] ^= product(&factors[i], sources[i][at]);
	}
}

void parity_update(
	unsigned index, const void *before, const void *after, void *p, void *q, size_t bytes)
{
	uint8_t change[COLUMN_BYTES] __attribute__((aligned(64)));
	const void *both[2] = {before, after};
	const void *three[3] = {p, before, after};
	struct factor factor;

	assert(index < PARITY_DATA_MAX);
	if (p != NULL)
		parity_xor(3, three, p, bytes);
	if (q == NULL)
		return;
	factor = isal_factor(field_power(index));
	for (size_t offset = 0; offset < bytes; offset += COLUMN_BYTES) {
		size_t length = column_bytes(offset, bytes);

		both[0] = before == NULL ? NULL : (const uint8_t *)before + offset;
		both[1] = after == NULL ? NULL : (const uint8_t *)after + offset;
		parity_xor(2, both, change, length);
		multiply_add(&factor, change, (uint8_t *)q + offset, length);
	}
}

/* --- Lost blocks ----------------------------------------------------------------------------- */

#define NONE UINT32_MAX

/* What is lost and how it comes back. */
struct recovery {
	unsigned n;    /* data blocks */
	unsigned x, y; /* lost data, x < y; NONE */
	bool p_lost, q_lost;
	bool by_p, by_q; /* the equations that are used */
	/* Where Q is used, D_x = factors[0] (Q ^ Q') ^ factors[1] (P ^ P'). */
	struct factor factors[2];
};

/* Where one column is computed if the caller does not want it. */
struct scratch {
	uint8_t p[COLUMN_BYTES] __attribute__((aligned(64)));
	uint8_t q[COLUMN_BYTES] __attribute__((aligned(64)));
	uint8_t x[COLUMN_BYTES] __attribute__((aligned(64)));
};

static void sort_losses(struct recovery *r, unsigned n_lost, const unsigned *lost)
{
	assert(n_lost < 2 || lost[0] != lost[1]);
	for (unsigned i = 0; i < n_lost; i++) {
		unsigned index = lost[i];

		assert(index < r->n + 2);
		r->p_lost |= index == r->n;
		r->q_lost |= index == r->n + 1;
		if (index >= r->n)
			continue;
		r->y = r->x == NONE ? NONE : index > r->x ? index : r->x;
		r->x = index < r->x ? index : r->x;
	}
}

/* Choose the equations; false if those that are there are too few. */
static bool choose_equations(struct recovery *r, void *const *stripe)
{
	bool p = !r->p_lost && stripe[r->n] != NULL;
	bool q = !r->q_lost && stripe[r->n + 1] != NULL;
	uint8_t divisor;

	if (r->x == NONE)
		return true;
	if (r->y == NONE) {
		r->by_p = p;
		r->by_q = !p && q;
		r->factors[0] = isal_factor(field_power_inverse(r->x));
		return p || q;
	}
	r->by_p = r->by_q = true;
	divisor = field_power(r->x) ^ field_power(r->y);
	r->factors[1] = isal_factor(field_divide(field_power(r->y), divisor));
	r->factors[0] = isal_factor(field_divide(1, divisor));
	return p && q;
}

static void xor_two(const void *a, const void *b, void *target, size_t bytes)
{
	parity_xor(2, (const void *[]){a, b}, target, bytes);
}

/* @column: the stripe at one place; lost data NULL. Sets column[x] and column[y]. */
static void recover_data(const struct recovery *r, const void **column, uint8_t *x, uint8_t *y,
	struct scratch *s, size_t bytes)
{
	const void *p = column[r->n], *q = column[r->n + 1];

	if (!r->by_q) {
		parity_xor(r->n + 1, column, x, bytes);
	} else {
		parity_pq(r->n, column, r->by_p ? s->p : NULL, s->q, bytes);
		if (r->by_p)
			xor_two(p, s->p, s->p, bytes);
		xor_two(q, s->q, s->q, bytes);
		multiply_sum(
			r->by_p ? 2 : 1, r->factors, (const uint8_t *[]){s->q, s->p}, x, bytes);
	}
	column[r->x] = x;
	if (r->y != NONE && y != NULL) {
		xor_two(s->p, x, y, bytes);
		column[r->y] = y;
	}
}

static void recover_column(
	const struct recovery *r, void *const *stripe, size_t offset, size_t bytes)
{
	const void *column[PARITY_DATA_MAX + 2];
	struct scratch s;
	void *p, *q;

	for (unsigned i = 0; i < r->n + 2; i++)
		column[i] = stripe[i] == NULL ? NULL : (const uint8_t *)stripe[i] + offset;
	p = r->p_lost ? (void *)column[r->n] : NULL;
	q = r->q_lost ? (void *)column[r->n + 1] : NULL;
	if (r->x != NONE) {
		uint8_t *x = (uint8_t *)column[r->x];
		uint8_t *y = r->y == NONE ? NULL : (uint8_t *)column[r->y];

		column[r->x] = NULL;
		if (r->y != NONE)
			column[r->y] = NULL;
		recover_data(r, column, x == NULL ? s.x : x, y, &s, bytes);
	}
	parity_pq(r->n, column, p, q, bytes);
}

bool parity_recover(
	unsigned n_data, void *const *stripe, unsigned n_lost, const unsigned *lost, size_t bytes)
{
	struct recovery r = {.n = n_data, .x = NONE, .y = NONE};
	bool wanted = false;

	assert(n_data >= 1 && n_data <= PARITY_DATA_MAX);
	for (unsigned i = 0; i < n_lost; i++)
		wanted |= stripe[lost[i]] != NULL;
	if (!wanted)
		return true;
	if (n_lost > 2)
		return false;
	sort_losses(&r, n_lost, lost);
	if (!choose_equations(&r, stripe))
		return false;
	for (size_t offset = 0; offset < bytes; offset += COLUMN_BYTES)
		recover_column(&r, stripe, offset, column_bytes(offset, bytes));
	return true;
}

/* --- Wrong blocks ---------------------------------------------------------------------------- */

bool parity_is_zero(const void *block, size_t bytes)
{
	return bytes == 0 || isal_is_zero(block, bytes);
}

/* Which block a byte accuses, by the differences of P and Q there; not both 0. */
static int accuse(unsigned n, const void *const *stripe, uint8_t dp, uint8_t dq)
{
	unsigned z;

	if (stripe[n + 1] == NULL)
		return PARITY_CANNOT_TELL;
	if (dp == 0)
		return (int)n + 1;
	if (dq == 0)
		return (int)n;
	z = parity_log[field_divide(dq, dp)];
	return z < n && stripe[z] != NULL ? (int)z : PARITY_CANNOT_TELL;
}

struct findings {
	int verdict;
	size_t first, end;
};

/* @p, @q: of the data, at @offset. Look at each byte that differs from the stripe's P and Q. */
static void judge(unsigned n, const void *const *stripe, const uint8_t *p, const uint8_t *q,
	size_t offset, size_t bytes, struct findings *found)
{
	const uint8_t *stripe_p = (const uint8_t *)stripe[n] + offset;
	const uint8_t *stripe_q = stripe[n + 1];

	for (size_t i = 0; i < bytes; i++) {
		uint8_t dp = p[i] ^ stripe_p[i];
		uint8_t dq = stripe_q == NULL ? 0 : q[i] ^ stripe_q[offset + i];
		int accused;

		if (dp == 0 && dq == 0)
			continue;
		accused = accuse(n, stripe, dp, dq);
		if (found->verdict == PARITY_CONSISTENT) {
			found->verdict = accused;
			found->first = offset + i;
		} else if (found->verdict != accused) {
			found->verdict = PARITY_CANNOT_TELL;
		}
		found->end = offset + i + 1;
	}
}

int parity_locate(unsigned n_data, const void *const *stripe, size_t bytes, size_t *ret_first,
	size_t *ret_end)
{
	const void *column[PARITY_DATA_MAX];
	struct scratch s;
	struct findings found = {.verdict = PARITY_CONSISTENT};
	const uint8_t *p = stripe[n_data], *q = stripe[n_data + 1];

	assert(n_data >= 1 && n_data <= PARITY_DATA_MAX && p != NULL);
	for (size_t offset = 0; offset < bytes; offset += COLUMN_BYTES) {
		size_t length = column_bytes(offset, bytes);

		for (unsigned i = 0; i < n_data; i++)
			column[i] = stripe[i] == NULL ? NULL : (const uint8_t *)stripe[i] + offset;
		parity_pq(n_data, column, s.p, q == NULL ? NULL : s.q, length);
		if (memcmp(s.p, p + offset, length) != 0 ||
			(q != NULL && memcmp(s.q, q + offset, length) != 0))
			judge(n_data, stripe, s.p, s.q, offset, length, &found);
	}
	if (ret_first != NULL)
		*ret_first = found.first;
	if (ret_end != NULL)
		*ret_end = found.end;
	return found.verdict;
}
