/* SPDX-License-Identifier: MIT */
/*
 * Stripes against the specification's tables cell by cell, and against a second implementation
 * that is its formulae word for word, for random parameters.
 */
#include "geometry/stripes.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SLOTS_MAX 300u

/*
 * Rows of the tables in specification 7.4 and 7.5: what each slot holds; behind the slash the
 * slots in the order of their exponents in the Q sum, "-" for a block of zeros.
 */
struct table {
	int level;
	uint32_t layout;
	unsigned slots;
	const char *rows[7];
};

static const struct table tables[] = {
	/* left-asymmetric */
	{5, 0, 4, {"D0 D1 D2 P", "D3 D4 P D5", "D6 P D7 D8", "P D9 D10 D11", "D12 D13 D14 P"}},
	/* right-asymmetric */
	{5, 1, 4, {"P D0 D1 D2", "D3 P D4 D5", "D6 D7 P D8", "D9 D10 D11 P", "P D12 D13 D14"}},
	/* left-symmetric */
	{5, 2, 4, {"D0 D1 D2 P", "D4 D5 P D3", "D8 P D6 D7", "P D9 D10 D11", "D12 D13 D14 P"}},
	/* right-symmetric */
	{5, 3, 4, {"P D0 D1 D2", "D5 P D3 D4", "D7 D8 P D6", "D9 D10 D11 P", "P D12 D13 D14"}},
	/* parity-first */
	{5, 4, 4, {"P D0 D1 D2", "P D3 D4 D5", "P D6 D7 D8", "P D9 D10 D11", "P D12 D13 D14"}},
	/* parity-last */
	{5, 5, 4, {"D0 D1 D2 P", "D3 D4 D5 P", "D6 D7 D8 P", "D9 D10 D11 P", "D12 D13 D14 P"}},
	/* left-asymmetric */
	{6, 0, 5,
		{"Q D0 D1 D2 P / 1 2 3", "D3 D4 D5 P Q / 0 1 2", "D6 D7 P Q D8 / 4 0 1",
			"D9 P Q D10 D11 / 3 4 0", "P Q D12 D13 D14 / 2 3 4",
			"Q D15 D16 D17 P / 1 2 3"}},
	/* right-asymmetric */
	{6, 1, 5,
		{"P Q D0 D1 D2 / 2 3 4", "D3 P Q D4 D5 / 3 4 0", "D6 D7 P Q D8 / 4 0 1",
			"D9 D10 D11 P Q / 0 1 2", "Q D12 D13 D14 P / 1 2 3",
			"P Q D15 D16 D17 / 2 3 4"}},
	/* left-symmetric */
	{6, 2, 5,
		{"Q D0 D1 D2 P / 1 2 3", "D3 D4 D5 P Q / 0 1 2", "D7 D8 P Q D6 / 4 0 1",
			"D11 P Q D9 D10 / 3 4 0", "P Q D12 D13 D14 / 2 3 4",
			"Q D15 D16 D17 P / 1 2 3"}},
	/* right-symmetric */
	{6, 3, 5,
		{"P Q D0 D1 D2 / 2 3 4", "D5 P Q D3 D4 / 3 4 0", "D7 D8 P Q D6 / 4 0 1",
			"D9 D10 D11 P Q / 0 1 2", "Q D12 D13 D14 P / 1 2 3",
			"P Q D15 D16 D17 / 2 3 4"}},
	/* parity-first */
	{6, 4, 5, {"P Q D0 D1 D2 / 2 3 4", "P Q D3 D4 D5 / 2 3 4", "P Q D6 D7 D8 / 2 3 4"}},
	/* parity-last */
	{6, 5, 5, {"D0 D1 D2 P Q / 0 1 2", "D3 D4 D5 P Q / 0 1 2", "D6 D7 D8 P Q / 0 1 2"}},
	/* ddf-zero-restart */
	{6, 8, 5,
		{"P Q D0 D1 D2 / - - 2 3 4", "D3 P Q D4 D5 / 0 - - 3 4", "D6 D7 P Q D8 / 0 1 - - 4",
			"D9 D10 D11 P Q / 0 1 2 - -", "Q D12 D13 D14 P / - 1 2 3 -",
			"P Q D15 D16 D17 / - - 2 3 4"}},
	/* ddf-N-restart */
	{6, 9, 5,
		{"D0 D1 D2 P Q / 0 1 2 - -", "D3 D4 P Q D5 / 0 1 - - 4", "D6 P Q D7 D8 / 0 - - 3 4",
			"P Q D9 D10 D11 / - - 2 3 4", "Q D12 D13 D14 P / - 1 2 3 -",
			"D15 D16 D17 P Q / 0 1 2 - -"}},
	/* ddf-N-continue */
	{6, 10, 5,
		{"D0 D1 D2 Q P / 0 1 2 - -", "D4 D5 Q P D3 / 0 1 - - 4", "D8 Q P D6 D7 / 0 - - 3 4",
			"Q P D9 D10 D11 / - - 2 3 4", "P D12 D13 D14 Q / - 1 2 3 -",
			"D15 D16 D17 Q P / 0 1 2 - -"}},
	/* left-asymmetric-6 */
	{6, 16, 5,
		{"D0 D1 D2 P Q / 0 1 2", "D3 D4 P D5 Q / 0 1 3", "D6 P D7 D8 Q / 0 2 3",
			"P D9 D10 D11 Q / 1 2 3", "D12 D13 D14 P Q / 0 1 2",
			"D15 D16 P D17 Q / 0 1 3"}},
	/* right-asymmetric-6 */
	{6, 17, 5,
		{"P D0 D1 D2 Q / 1 2 3", "D3 P D4 D5 Q / 0 2 3", "D6 D7 P D8 Q / 0 1 3",
			"D9 D10 D11 P Q / 0 1 2", "P D12 D13 D14 Q / 1 2 3",
			"D15 P D16 D17 Q / 0 2 3"}},
	/* left-symmetric-6 */
	{6, 18, 5,
		{"D0 D1 D2 P Q / 0 1 2", "D4 D5 P D3 Q / 0 1 3", "D8 P D6 D7 Q / 0 2 3",
			"P D9 D10 D11 Q / 1 2 3", "D12 D13 D14 P Q / 0 1 2",
			"D16 D17 P D15 Q / 0 1 3"}},
	/* right-symmetric-6 */
	{6, 19, 5,
		{"P D0 D1 D2 Q / 1 2 3", "D5 P D3 D4 Q / 0 2 3", "D7 D8 P D6 Q / 0 1 3",
			"D9 D10 D11 P Q / 0 1 2", "P D12 D13 D14 Q / 1 2 3",
			"D17 P D15 D16 Q / 0 2 3"}},
	/* parity-first-6 */
	{6, 20, 5, {"P D0 D1 D2 Q / 1 2 3", "P D3 D4 D5 Q / 1 2 3", "P D6 D7 D8 Q / 1 2 3"}},
};

/* What @stripes has at @slot of @stripe, in the words of the tables. */
static void name_cell(const struct stripes *stripes, uint64_t stripe, unsigned slot, char *ret)
{
	unsigned data = 0;

	switch (stripes_role_of(stripes, stripe, slot, &data)) {
	case STRIPES_P:
		(void)strcpy(ret, "P");
		break;
	case STRIPES_Q:
		(void)strcpy(ret, "Q");
		break;
	case STRIPES_DATA:
		(void)sprintf(
			ret, "D%u", (unsigned)(stripes_array_offset(stripes, stripe, data) / 4096));
		break;
	}
}

/* The text of a table's row, made from the fast functions. */
static void name_row(const struct stripes *s, uint64_t stripe, char *ret)
{
	uint16_t slots[8], exponents[8];
	unsigned p, q;

	*ret = '\0';
	for (unsigned slot = 0; slot < s->slots; slot++) {
		name_cell(s, stripe, slot, ret + strlen(ret));
		(void)strcat(ret, slot + 1 < s->slots ? " " : "");
	}
	if (s->parities == 1)
		return;
	(void)strcat(ret, " /");
	stripes_roles(s, stripe, slots, exponents, &p, &q);
	for (unsigned exponent = 0; exponent < stripes_exponents(s); exponent++) {
		char word[16] = " -";

		for (unsigned data = 0; data < s->data; data++)
			if (exponents[data] == exponent)
				(void)sprintf(word, " %u", slots[data]);
		(void)strcat(ret, word);
	}
}

static void test_tables(void **state)
{
	unsigned rows = 0;

	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
		const struct table *t = &tables[i];
		struct stripes s;

		assert_int_equal(
			stripes_init(t->level, t->layout, 4096, t->slots, 65536, &s, NULL), 0);
		for (unsigned stripe = 0; t->rows[stripe] != NULL; stripe++) {
			char row[128];

			name_row(&s, stripe, row);
			assert_string_equal(row, t->rows[stripe]);
			rows++;
		}
	}
	assert_int_equal(rows, 105);
}

/* A stripe as the specification's formulae give it. */
struct slow {
	unsigned p, q, data[SLOTS_MAX], exponent[SLOTS_MAX];
};

static void slow_ascending(struct slow *slow, unsigned n)
{
	for (unsigned slot = 0, k = 0; slot < n; slot++)
		if (slot != slow->p && slot != slow->q)
			slow->data[k++] = slot;
}

/* Specification 7.4; @n slots without Q. */
static void slow_raid5(struct slow *slow, uint32_t layout, unsigned n, uint64_t st)
{
	unsigned phase = (unsigned)(st % n);
	unsigned p = layout == 0 || layout == 2   ? n - 1 - phase
		     : layout == 1 || layout == 3 ? phase
		     : layout == 4                ? 0
						  : n - 1;

	slow->p = p;
	for (unsigned k = 0; k < n - 1; k++)
		slow->data[k] = layout <= 1   ? (k < p ? k : k + 1)
				: layout <= 3 ? (p + 1 + k) % n
				: layout == 4 ? k + 1
					      : k;
}

/* Specification 7.5, the rows of 0 to 5. */
static void slow_raid6_plain(struct slow *slow, uint32_t layout, unsigned n, uint64_t st)
{
	unsigned phase = (unsigned)(st % n);

	slow->p = layout == 0 || layout == 2   ? n - 1 - phase
		  : layout == 1 || layout == 3 ? phase
		  : layout == 4                ? 0
					       : n - 2;
	slow->q = layout == 4 ? 1 : layout == 5 ? n - 1 : (slow->p + 1) % n;
	if (layout <= 1)
		slow_ascending(slow, n);
	else
		for (unsigned k = 0; k < n - 2; k++)
			slow->data[k] = layout <= 3   ? (slow->p + 2 + k) % n
					: layout == 4 ? k + 2
						      : k;
}

static void slow_raid6_ddf(struct slow *slow, uint32_t layout, unsigned n, uint64_t st)
{
	slow->p = layout == 8   ? (unsigned)(st % n)
		  : layout == 9 ? n - 1 - (unsigned)((st + 1) % n)
				: n - 1 - (unsigned)(st % n);
	slow->q = layout == 10 ? (slow->p + n - 1) % n : (slow->p + 1) % n;
	if (layout != 10)
		slow_ascending(slow, n);
	else
		for (unsigned k = 0; k < n - 2; k++)
			slow->data[k] = (slow->p + 1 + k) % n;
}

/* "Start at slot (Q+1) mod n and walk upward cyclically, skipping P (and Q)." */
static void slow_exponents(struct slow *slow, unsigned n, bool ddf)
{
	unsigned next = 0;

	for (unsigned i = 0; i < n; i++) {
		unsigned slot = (slow->q + 1 + i) % n;

		if (slot == slow->p || slot == slow->q)
			continue;
		for (unsigned k = 0; k < n - 2; k++)
			if (slow->data[k] == slot)
				slow->exponent[k] = ddf ? slot : next;
		next++;
	}
}

static void slow_stripe(struct slow *slow, int level, uint32_t layout, unsigned n, uint64_t st)
{
	slow->q = GEOMETRY_NO_SLOT;
	if (level < 6) {
		slow_raid5(slow, level == 4 ? 5 : layout, n, st);
		for (unsigned k = 0; k < n - 1; k++)
			slow->exponent[k] = k;
		return;
	}
	if (layout <= 5) {
		slow_raid6_plain(slow, layout, n, st);
	} else if (layout <= 10) {
		slow_raid6_ddf(slow, layout, n, st);
	} else {
		slow_raid5(slow, layout - 16, n - 1, st);
		slow->q = n - 1;
	}
	slow_exponents(slow, n, layout >= 8 && layout <= 10);
}

static void check_stripe(const struct stripes *s, int level, uint32_t layout, uint64_t st)
{
	uint16_t slots[SLOTS_MAX], exponents[SLOTS_MAX];
	bool seen[SLOTS_MAX] = {false};
	unsigned p, q, none = 12345;
	struct slow slow;

	slow_stripe(&slow, level, layout, s->slots, st);
	stripes_roles(s, st, slots, exponents, &p, &q);
	assert_int_equal(p, slow.p);
	assert_int_equal(q, slow.q);
	assert_int_equal(stripes_p_slot(s, st), p);
	assert_int_equal(stripes_q_slot(s, st), q);
	assert_int_equal(stripes_role_of(s, st, p, &none), STRIPES_P);
	if (s->parities == 2)
		assert_int_equal(stripes_role_of(s, st, q, &none), STRIPES_Q);
	assert_int_equal(none, 12345);
	for (unsigned k = 0; k < s->data; k++) {
		unsigned back = 12345;

		assert_int_equal(slots[k], slow.data[k]);
		assert_int_equal(stripes_data_slot(s, st, k), slots[k]);
		assert_int_equal(exponents[k], slow.exponent[k]);
		assert_true(exponents[k] < stripes_exponents(s));
		assert_int_equal(stripes_role_of(s, st, slots[k], &back), STRIPES_DATA);
		assert_int_equal(back, k);
		assert_true(slots[k] < s->slots && !seen[slots[k]]);
		assert_true(slots[k] != p && slots[k] != q);
		seen[slots[k]] = true;
	}
}

static const struct {
	int level;
	uint32_t layout;
} every[] = {{4, 0}, {4, 5}, {4, 77}, {5, 0}, {5, 1}, {5, 2}, {5, 3}, {5, 4}, {5, 5}, {6, 0},
	{6, 1}, {6, 2}, {6, 3}, {6, 4}, {6, 5}, {6, 8}, {6, 9}, {6, 10}, {6, 16}, {6, 17}, {6, 18},
	{6, 19}, {6, 20}};
#define EVERY (sizeof(every) / sizeof(every[0]))

static uint64_t random_64(void)
{
	return (uint64_t)rand() << 42 ^ (uint64_t)rand() << 21 ^ (uint64_t)rand();
}

/* All layouts, all widths up to 12: a full turn and more of stripes, then stripes far out. */
static void test_roles(void **state)
{
	srand(1);
	for (size_t i = 0; i < EVERY; i++)
		for (unsigned n = every[i].level == 6 ? 4 : 2; n <= 12; n++) {
			struct stripes s;

			assert_int_equal(stripes_init(every[i].level, every[i].layout, 4096, n,
						 1 << 20, &s, NULL),
				0);
			for (uint64_t st = 0; st < 3 * (uint64_t)n; st++)
				check_stripe(&s, every[i].level, every[i].layout, st);
			for (int j = 0; j < 100; j++)
				check_stripe(&s, every[i].level, every[i].layout,
					random_64() >> (12 + rand() % 40));
		}
}

static void test_roles_wide(void **state)
{
	static const unsigned widths[] = {13, 32, 127, 128, 200, 252, 253};

	srand(2);
	for (size_t i = 0; i < EVERY; i++)
		for (size_t w = 0; w < sizeof(widths) / sizeof(widths[0]); w++) {
			struct stripes s;

			assert_int_equal(stripes_init(every[i].level, every[i].layout, 4096,
						 widths[w], 1 << 20, &s, NULL),
				0);
			for (int j = 0; j < 300; j++)
				check_stripe(&s, every[i].level, every[i].layout,
					random_64() >> (12 + rand() % 50));
		}
}

/* "c = a / C; st = c / d; k = c % d", for arrays of up to 2^51 chunks. */
static void test_locate(void **state)
{
	srand(3);
	for (int i = 0; i < 200000; i++) {
		uint32_t chunk = 4096u << rand() % 18;
		unsigned n = 3 + (unsigned)rand() % 20, k;
		uint64_t member = INT64_MAX / n >> rand() % 30, offset, stripe;
		uint32_t in_chunk;
		struct stripes s;

		if (member < chunk)
			continue;
		assert_int_equal(stripes_init(5, 2, chunk, n, member, &s, NULL), 0);
		assert_int_equal(s.array_bytes, member / chunk * chunk * (n - 1));
		assert_int_equal(s.stripe_count, member / chunk);
		offset = random_64() % s.array_bytes;
		stripes_locate(&s, offset, &stripe, &k, &in_chunk);
		assert_int_equal(stripe, offset / chunk / (n - 1));
		assert_int_equal(k, offset / chunk % (n - 1));
		assert_int_equal(in_chunk, offset % chunk);
		assert_true(stripe < s.stripe_count);
		assert_int_equal(stripes_array_offset(&s, stripe, k) + in_chunk, offset);
		assert_int_equal(stripes_member_offset(&s, stripe), stripe * chunk);
	}
}

/* RAID 6 with 5 slots of 10 chunks and a rest: 3 data chunks a stripe (specification 7.1). */
static void test_sizes(void **state)
{
	struct stripes s;

	assert_int_equal(stripes_init(6, 2, 65536, 5, 10 * 65536 + 512, &s, NULL), 0);
	assert_int_equal(s.array_bytes, 10 * 65536 * 3);
	assert_int_equal(s.data, 3);
	assert_int_equal(s.parities, 2);
	assert_int_equal(stripes_exponents(&s), 3);
	assert_int_equal(stripes_init(6, 9, 65536, 5, 10 * 65536, &s, NULL), 0);
	assert_int_equal(stripes_exponents(&s), 5);
	assert_int_equal(stripes_init(4, 0, 4096, 4, 40960, &s, NULL), 0);
	assert_int_equal(s.array_bytes, 3 * 40960);
	assert_int_equal(stripes_init(5, 2, 4096, 1920, 40960, &s, NULL), 0);
	assert_int_equal(s.array_bytes, 1919 * 40960);
}

static void refuse(int level, uint32_t layout, uint32_t chunk, unsigned slots, uint64_t member,
	int error, const char *words)
{
	struct stripes s = {.slots = 4711};
	struct fault fault = {0};

	assert_int_equal(stripes_init(level, layout, chunk, slots, member, &s, &fault), error);
	assert_non_null(strstr(fault.text, words));
	assert_int_equal(s.slots, 4711);
	assert_int_equal(stripes_init(level, layout, chunk, slots, member, &s, NULL), error);
}

static void test_refusals(void **state)
{
	refuse(0, 2, 4096, 4, 65536, -EINVAL, "level 0 has no parity");
	refuse(5, 6, 4096, 4, 65536, -EINVAL, "layout 6 of RAID 5");
	refuse(5, 16, 4096, 4, 65536, -EINVAL, "layout 16 of RAID 5");
	refuse(6, 6, 4096, 4, 65536, -EINVAL, "layout 6 of RAID 6");
	refuse(6, 21, 4096, 4, 65536, -EINVAL, "layout 21 of RAID 6");
	refuse(6, UINT32_MAX, 4096, 4, 65536, -EINVAL, "not known");
	refuse(6, 2 + 256, 4096, 4, 65536, -EINVAL, "layout 258");
	refuse(5, 2, 4096, 1, 65536, -EINVAL, "RAID 5 has 2 to 1920 slots, not 1");
	refuse(4, 2, 4096, 0, 65536, -EINVAL, "RAID 4 has 2");
	refuse(6, 2, 4096, 3, 65536, -EINVAL, "RAID 6 has 4 to 255 slots, not 3");
	refuse(6, 2, 4096, 256, 65536, -EINVAL, "not 256");
	refuse(6, 8, 4096, 254, 65536, -EINVAL, "4 to 253 slots, not 254");
	refuse(5, 2, 4096, 1921, 65536, -EINVAL, "not 1921");
	refuse(5, 2, 0, 4, 65536, -EINVAL, "chunk size");
	refuse(5, 2, 2048, 4, 65536, -EINVAL, "at least 4096");
	refuse(5, 2, 12288, 4, 65536, -EINVAL, "power of two");
	refuse(5, 2, 65536, 4, 65535, -EINVAL, "less than one chunk");
	refuse(5, 2, 65536, 4, 0, -EINVAL, "less than one chunk");
	refuse(5, 2, 4096, 4, 1ull << 62, -ERANGE, "8 EiB");
	refuse(5, 2, 4096, 2, UINT64_MAX, -ERANGE, "8 EiB");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tables),
		cmocka_unit_test(test_roles),
		cmocka_unit_test(test_roles_wide),
		cmocka_unit_test(test_locate),
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_refusals),
	};

	return cmocka_run_group_tests_name("stripes", tests, NULL, NULL);
}
