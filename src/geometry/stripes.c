/* SPDX-License-Identifier: MIT */
/*
 * The layouts of RAID 4, 5 and 6 as parameters of one rule (specification 7.4, 7.5).
 *
 * With m slots to rotate over, the specification's "m-1 - st%m" is: start at m-1, go down by one
 * per stripe, modulo m; "st%m" is: start at 0, go up. "n-1 - (st+1)%n" starts at n-2 and goes down.
 * The symmetric layouts put data k on (P + step + k) mod m, where step leaves room for Q if that
 * stands above P. The two layouts with a fixed P are symmetric ones: P = 0 gives k+1 (k+2 with Q),
 * P = n-1 gives (n-1 + 1 + k) mod n = k, and for RAID 6 P = n-2 gives (n-2 + 2 + k) mod n = k.
 */
#include "geometry/stripes.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>

#include "util/rounding.h"

#define CHUNK_BYTES_MIN 4096u /* Linux: a page, and a power of two */

enum walk {
	STAYS,
	UP,
	DOWN,
};

/* One layout. Slots are counted from the front, negative ones from the end: -1 is slot n-1. */
struct rule {
	uint8_t layout;
	int8_t p_first;
	uint8_t walk;
	uint8_t shorter; /* 1: rotates over the first n-1 slots only, as a RAID 5 of them */
	int8_t q_step;   /* Q from P; 0: Q is on slot n-1, or there is none */
	uint8_t data_step;
	uint8_t ddf;
};

static const struct rule rules_raid4[] = {
	{0, -1, STAYS, 0, 0, 1, 0},
};

static const struct rule rules_raid5[] = {
	{0, -1, DOWN, 0, 0, 0, 0},  /* left-asymmetric */
	{1, 0, UP, 0, 0, 0, 0},     /* right-asymmetric */
	{2, -1, DOWN, 0, 0, 1, 0},  /* left-symmetric */
	{3, 0, UP, 0, 0, 1, 0},     /* right-symmetric */
	{4, 0, STAYS, 0, 0, 1, 0},  /* parity-first */
	{5, -1, STAYS, 0, 0, 1, 0}, /* parity-last */
};

static const struct rule rules_raid6[] = {
	{0, -1, DOWN, 0, 1, 0, 0},   /* left-asymmetric */
	{1, 0, UP, 0, 1, 0, 0},      /* right-asymmetric */
	{2, -1, DOWN, 0, 1, 2, 0},   /* left-symmetric */
	{3, 0, UP, 0, 1, 2, 0},      /* right-symmetric */
	{4, 0, STAYS, 0, 1, 2, 0},   /* parity-first */
	{5, -2, STAYS, 0, 1, 2, 0},  /* parity-last */
	{8, 0, UP, 0, 1, 0, 1},      /* ddf-zero-restart */
	{9, -2, DOWN, 0, 1, 0, 1},   /* ddf-N-restart */
	{10, -1, DOWN, 0, -1, 1, 1}, /* ddf-N-continue */
	{16, -2, DOWN, 1, 0, 0, 0},  /* left-asymmetric-6 */
	{17, 0, UP, 1, 0, 0, 0},     /* right-asymmetric-6 */
	{18, -2, DOWN, 1, 0, 1, 0},  /* left-symmetric-6 */
	{19, 0, UP, 1, 0, 1, 0},     /* right-symmetric-6 */
	{20, 0, STAYS, 1, 0, 1, 0},  /* parity-first-6 */
};

static const struct kind {
	int level;
	unsigned parities;
	unsigned slots_min;
	const struct rule *rules;
	unsigned rule_count;
} kinds[] = {
	{4, 1, 2, rules_raid4, sizeof(rules_raid4) / sizeof(rules_raid4[0])},
	{5, 1, 2, rules_raid5, sizeof(rules_raid5) / sizeof(rules_raid5[0])},
	{6, 2, 4, rules_raid6, sizeof(rules_raid6) / sizeof(rules_raid6[0])},
};

static const struct kind *find_kind(int level)
{
	for (unsigned i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (kinds[i].level == level)
			return &kinds[i];
	return NULL;
}

/* RAID 4 superblocks carry 0 (created) or 5 (converted from RAID 0), and mean the same. */
static const struct rule *find_rule(const struct kind *kind, uint32_t layout)
{
	if (kind->level == 4)
		return kind->rules;
	for (unsigned i = 0; i < kind->rule_count; i++)
		if (kind->rules[i].layout == layout)
			return &kind->rules[i];
	return NULL;
}

static int check_slots(
	const struct kind *kind, const struct rule *rule, unsigned slots, struct fault *fault)
{
	unsigned most = GEOMETRY_SLOTS_MAX;

	if (kind->parities == 2)
		most = STRIPES_EXPONENTS_MAX + (rule->ddf ? 0 : 2);
	if (slots >= kind->slots_min && slots <= most)
		return 0;
	return fault_set(fault, -EINVAL, "RAID %d%s has %u to %u slots, not %u", kind->level,
		rule->ddf ? " in a DDF layout" : "", kind->slots_min, most, slots);
}

static int check_chunk(int level, uint32_t chunk_bytes, struct fault *fault)
{
	if (is_power_of_two(chunk_bytes) && chunk_bytes >= CHUNK_BYTES_MIN)
		return 0;
	return fault_set(fault, -EINVAL,
		"RAID %d needs a chunk size that is a power of two and at least %u bytes; %u is "
		"not",
		level, CHUNK_BYTES_MIN, chunk_bytes);
}

static void apply_rule(struct stripes *s, const struct rule *rule)
{
	unsigned n = s->slots;

	s->modulus = n - rule->shorter;
	s->p_first = rule->p_first < 0 ? n - (unsigned)-rule->p_first : (unsigned)rule->p_first;
	s->p_step = rule->walk == STAYS ? 0 : rule->walk == UP ? 1 : s->modulus - 1;
	s->q_step = rule->q_step < 0 ? n - 1 : (unsigned)rule->q_step;
	s->data_step = rule->data_step;
	s->ddf = rule->ddf;
}

static int set_size(struct stripes *s, uint64_t member_bytes, struct fault *fault)
{
	s->stripe_count = member_bytes >> s->chunk_shift;
	if (s->stripe_count == 0)
		return fault_set(fault, -EINVAL,
			"the members have room for %llu bytes of data, less than one chunk of %u "
			"bytes; use larger members or a smaller chunk",
			(unsigned long long)member_bytes, s->chunk_bytes);
	if (mul_overflows(s->stripe_count << s->chunk_shift, s->data, &s->array_bytes) ||
		s->array_bytes > INT64_MAX)
		return fault_set(fault, -ERANGE,
			"the members together are larger than 8 EiB; no array can be");
	return 0;
}

int stripes_init(int level, uint32_t layout, uint32_t chunk_bytes, unsigned slots,
	uint64_t member_bytes, struct stripes *ret, struct fault *fault)
{
	const struct kind *kind = find_kind(level);
	const struct rule *rule = kind == NULL ? NULL : find_rule(kind, layout);
	struct stripes s = {.slots = slots, .chunk_bytes = chunk_bytes};
	int r;

	if (kind == NULL)
		return fault_set(fault, -EINVAL, "level %d has no parity", level);
	if (rule == NULL)
		return fault_set(
			fault, -EINVAL, "layout %u of RAID %d is not known", layout, level);
	r = check_slots(kind, rule, slots, fault);
	if (r < 0)
		return r;
	r = check_chunk(level, chunk_bytes, fault);
	if (r < 0)
		return r;
	s.parities = kind->parities;
	s.data = slots - kind->parities;
	s.chunk_shift = (unsigned)__builtin_ctz(chunk_bytes);
	apply_rule(&s, rule);
	r = set_size(&s, member_bytes, fault);
	if (r < 0)
		return r;
	*ret = s;
	return 0;
}

/*
 * The Q sum counts from the slot above Q upwards, cyclically, without P: the exponent of a slot is
 * its distance from there, less one if P was passed on the way.
 */
static unsigned exponent_of(const struct stripes *s, unsigned p, unsigned q, unsigned slot)
{
	unsigned n = s->slots, start = q + 1, distance, p_distance;

	if (s->ddf)
		return slot;
	distance = (slot + n - start) % n;
	p_distance = (p + n - start) % n;
	return distance - (p_distance < distance);
}

void stripes_roles(const struct stripes *s, uint64_t stripe, uint16_t *data_slots,
	uint16_t *exponents, unsigned *ret_p, unsigned *ret_q)
{
	unsigned p = stripes_p_slot(s, stripe);
	unsigned q = stripes_q_beside(s, p);

	for (unsigned data = 0; data < s->data; data++) {
		unsigned slot = stripes_data_beside(s, p, data);

		data_slots[data] = (uint16_t)slot;
		if (exponents != NULL)
			exponents[data] = (uint16_t)(s->parities == 1 ? data
								      : exponent_of(s, p, q, slot));
	}
	*ret_p = p;
	*ret_q = q;
}

enum stripes_role stripes_role_of(
	const struct stripes *s, uint64_t stripe, unsigned slot, unsigned *ret_data)
{
	unsigned p = stripes_p_slot(s, stripe);
	unsigned q = stripes_q_beside(s, p);

	assert(slot < s->slots);
	if (slot == p)
		return STRIPES_P;
	if (slot == q)
		return STRIPES_Q;
	if (s->data_step == 0)
		*ret_data = slot - (slot > p) - (slot > q);
	else
		*ret_data = (slot + 2 * s->modulus - p - s->data_step) % s->modulus;
	return STRIPES_DATA;
}
