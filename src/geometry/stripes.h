/* SPDX-License-Identifier: MIT */
#ifndef STRAKE_GEOMETRY_STRIPES_H
#define STRAKE_GEOMETRY_STRIPES_H

/*
 * Stripes of RAID 4, 5 and 6: which slot holds data k, P and Q of a stripe (specification 7.4,
 * 7.5). All in bytes; a chunk of stripe s lies at s · chunk on every slot, counted from the start
 * of the member's data.
 *
 * Every layout is one rule with few parameters. P stands still or moves one slot per stripe within
 * the first @modulus slots; Q stands beside it or still; the data follow P cyclically ("symmetric")
 * or stand in rising order in the slots that are left ("asymmetric").
 */

#include <stdbool.h>
#include <stdint.h>

#include "geometry/geometry.h"
#include "util/fault.h"

/* The Q sum has that many terms at most: Linux takes 255 blocks, P and Q among them. */
#define STRIPES_EXPONENTS_MAX 253u

struct stripes {
	unsigned slots;    /* n */
	unsigned data;     /* data chunks of a stripe: slots - parities */
	unsigned parities; /* 1: P, 2: P and Q */
	uint32_t chunk_bytes;
	unsigned chunk_shift;  /* log2 of chunk_bytes */
	uint64_t stripe_count; /* whole chunks of a member */
	uint64_t array_bytes;  /* stripe_count · data · chunk_bytes */

	/* How the roles move; see stripes_p_slot() and its neighbours. */
	unsigned modulus; /* slots that P and, where symmetric, the data rotate over: n or n - 1 */
	unsigned p_first; /* slot of P in stripe 0 */
	unsigned p_step;  /* slots that P moves per stripe: 0, 1, or modulus - 1 (one down) */
	unsigned q_step;  /* Q is that many slots above P, modulo n; 0: Q stands on slot n - 1 */
	unsigned data_step; /* data 0 is that many slots above P, modulo modulus; 0: asymmetric */
	bool ddf;           /* the exponent of a slot in the Q sum is its own number */
};

/*
 * @member_bytes: used size of each member ("component size").
 * Returns 0; -EINVAL with the reason in @fault: level, chunk (no power of two, below 4096), slots
 * (2 … 1920, RAID 6: 4 … 255, DDF layouts: 4 … 253), layout, member smaller than a chunk; -ERANGE
 * if the array were larger than 8 EiB. RAID 4 has one layout, whatever number is given.
 */
int stripes_init(int level, uint32_t layout, uint32_t chunk_bytes, unsigned slots,
	uint64_t member_bytes, struct stripes *ret, struct fault *fault);

/* 32-bit division is several times faster, and nearly always enough. */
static inline uint64_t stripes_divide(uint64_t value, unsigned divisor)
{
	return (value >> 32) == 0 ? (uint32_t)value / divisor : value / divisor;
}

/* Array byte @array_offset, below the array's size, is byte @in_chunk of @data of @stripe. */
static inline void stripes_locate(const struct stripes *s, uint64_t array_offset,
	uint64_t *ret_stripe, unsigned *ret_data, uint32_t *ret_in_chunk)
{
	uint64_t chunk = array_offset >> s->chunk_shift;
	uint64_t stripe = stripes_divide(chunk, s->data);

	*ret_stripe = stripe;
	*ret_data = (unsigned)(chunk - stripe * s->data);
	*ret_in_chunk = (uint32_t)array_offset & (s->chunk_bytes - 1);
}

/* The inverse: the array byte at which @data of @stripe begins. */
static inline uint64_t stripes_array_offset(const struct stripes *s, uint64_t stripe, unsigned data)
{
	return (stripe * s->data + data) << s->chunk_shift;
}

/* First byte of @stripe's chunk on every member. */
static inline uint64_t stripes_member_offset(const struct stripes *s, uint64_t stripe)
{
	return stripe << s->chunk_shift;
}

/* (a + b) mod modulus, if a + b < 2 · modulus. */
static inline unsigned stripes_add(unsigned a, unsigned b, unsigned modulus)
{
	return a + b < modulus ? a + b : a + b - modulus;
}

static inline unsigned stripes_p_slot(const struct stripes *s, uint64_t stripe)
{
	unsigned moved;

	if (s->p_step == 0)
		return s->p_first;
	moved = (unsigned)(stripe - stripes_divide(stripe, s->modulus) * s->modulus);
	if (s->p_step != 1)
		moved = s->modulus - moved;
	return stripes_add(s->p_first, moved, s->modulus);
}

/* For those who have the slot of P already. GEOMETRY_NO_SLOT for RAID 4 and 5. */
static inline unsigned stripes_q_beside(const struct stripes *s, unsigned p)
{
	if (s->parities == 1)
		return GEOMETRY_NO_SLOT;
	return s->q_step == 0 ? s->slots - 1 : stripes_add(p, s->q_step, s->slots);
}

static inline unsigned stripes_q_slot(const struct stripes *s, uint64_t stripe)
{
	return stripes_q_beside(s, stripes_p_slot(s, stripe));
}

/* For those who have the slot of P already: the slot of @data, below s->data. */
static inline unsigned stripes_data_beside(const struct stripes *s, unsigned p, unsigned data)
{
	unsigned slot = data;

	/* p + step + data < 2 · modulus + 2, so it may wrap twice where all three are largest. */
	if (s->data_step != 0)
		return stripes_add(stripes_add(p, s->data_step, s->modulus), data, s->modulus);
	/* Asymmetric: Q is right above P, or on the last slot, or, P being last, on slot 0. */
	if (s->q_step != 0 && p == s->slots - 1)
		return slot + 1;
	if (slot >= p)
		slot += s->q_step != 0 ? 2 : 1;
	return slot;
}

/* Slot of @data, below s->data. */
static inline unsigned stripes_data_slot(const struct stripes *s, uint64_t stripe, unsigned data)
{
	return stripes_data_beside(s, stripes_p_slot(s, stripe), data);
}

/*
 * Exponents of the Q sum run from 0 to below this: as many as data chunks, but for the DDF layouts
 * as many as slots; there P's and Q's own exponents stand for blocks of zeros.
 */
static inline unsigned stripes_exponents(const struct stripes *s)
{
	return s->ddf ? s->slots : s->data;
}

/*
 * A whole stripe at once. @data_slots (s->data entries): slot of data k. @exponents (s->data
 * entries, or NULL): exponent of data k in the Q sum; k for RAID 4 and 5. @ret_q is
 * GEOMETRY_NO_SLOT for RAID 4 and 5.
 */
void stripes_roles(const struct stripes *stripes, uint64_t stripe, uint16_t *data_slots,
	uint16_t *exponents, unsigned *ret_p, unsigned *ret_q);

enum stripes_role {
	STRIPES_DATA,
	STRIPES_P,
	STRIPES_Q,
};

/* What @slot holds in @stripe; *@ret_data is written if that is data. */
enum stripes_role stripes_role_of(
	const struct stripes *stripes, uint64_t stripe, unsigned slot, unsigned *ret_data);

#endif
