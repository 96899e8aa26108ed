/* SPDX-License-Identifier: MIT */
/* Availability of each level for every subset of small arrays, and the sizes of 7.1. */
#include "geometry/available.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "geometry/geometry.h"
#include "geometry/mirrors.h"

#define SLOTS_MAX 8u

/* How many of the slots 0 … @n - 1 are not in @set. */
static unsigned missing_of(unsigned n, unsigned set)
{
	return n - (unsigned)__builtin_popcount(set);
}

static bool available(int level, uint32_t layout, unsigned n, unsigned set)
{
	bool in_sync[SLOTS_MAX];

	for (unsigned slot = 0; slot < n; slot++)
		in_sync[slot] = set >> slot & 1;
	return geometry_available(level, layout, n, in_sync);
}

static void test_counted_levels(void **state)
{
	static const struct {
		int level;
		uint32_t layout;
		unsigned slots_min, may_miss;
	} levels[] = {{GEOMETRY_LEVEL_LINEAR, 0, 1, 0}, {0, 1, 1, 0}, {4, 0, 2, 1}, {5, 2, 2, 1},
		{5, 0, 2, 1}, {6, 2, 4, 2}, {6, 10, 4, 2}, {6, 18, 4, 2}};

	for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++)
		for (unsigned n = levels[i].slots_min; n <= SLOTS_MAX; n++)
			for (unsigned set = 0; set < 1u << n; set++)
				assert_int_equal(
					available(levels[i].level, levels[i].layout, n, set),
					missing_of(n, set) <= levels[i].may_miss);
}

static void test_raid1(void **state)
{
	for (unsigned n = 1; n <= SLOTS_MAX; n++)
		for (unsigned set = 0; set < 1u << n; set++)
			assert_int_equal(available(1, 0, n, set), set != 0);
}

/* By hand: which neighbours may go. */
static void test_raid10(void **state)
{
	assert_true(available(10, 0x102, 4, 0x5));  /* near: one of each pair */
	assert_true(available(10, 0x102, 4, 0x6));  /* pairs are 0 1 and 2 3 */
	assert_false(available(10, 0x102, 4, 0x3)); /* the pair 2 3 is gone */
	assert_false(available(10, 0x102, 3, 0x1)); /* odd: chunk 1 lies on 2 and 0, 2 on 1 and 2 */
	assert_true(available(10, 0x102, 3, 0x3));
	assert_true(available(10, 0x201, 4, 0x5));  /* far: neighbours in a circle */
	assert_false(available(10, 0x201, 4, 0x6)); /* 3 and 0 are neighbours */
	assert_false(available(10, 0x10201, 4, 0x9));
	assert_true(available(10, 0x103, 4, 0x3));
	assert_false(available(10, 0x103, 4, 0x1));
	/* Far sets 0 1 and 2 3: slots 1 and 2 may go, which without sets they may not. */
	assert_true(available(10, 0x40201, 4, 0x9));
	assert_false(available(10, 0x40201, 4, 0xc));
	/* Sets of three: 2 and 0 share a chunk, which a circle of six would not show. */
	assert_false(available(10, 0x20201, 6, 0x3a));
	assert_true(available(10, 0x20201, 6, 0x33));
}

/* Layouts with the most copies there can be are judged, too. */
static void test_many_copies(void **state)
{
	static bool in_sync[GEOMETRY_SLOTS_MAX];

	in_sync[1000] = true;
	assert_true(geometry_available(10, MIRRORS_LAYOUT(7, 255), 1785, in_sync));
	assert_false(geometry_available(10, MIRRORS_LAYOUT(7, 255), 1786, in_sync));
}

static void test_nonsense(void **state)
{
	assert_false(available(7, 0, 4, 0xf));
	assert_false(available(0, 0, 0, 0));
	assert_false(available(1, 0, 0, 0));
	assert_false(available(5, 6, 4, 0xf));
	assert_false(available(6, 2, 3, 0x7));
	assert_false(available(10, 0x101, 4, 0xf));
	assert_false(available(10, 0x80102, 4, 0xf));
}

static uint64_t size_of(int level, uint32_t layout, unsigned slots, uint64_t component)
{
	uint64_t bytes = 0;

	assert_int_equal(geometry_component_array_bytes(
				 level, layout, 65536, slots, component, &bytes, NULL),
		0);
	return bytes;
}

static void test_sizes(void **state)
{
	uint64_t component = 11 * 65536 + 1024, bytes = 4711;
	struct fault fault = {0};

	assert_int_equal(size_of(1, 0, 3, component), component);
	assert_int_equal(size_of(4, 0, 4, component), 33 * 65536);
	assert_int_equal(size_of(5, 2, 4, component), 33 * 65536);
	assert_int_equal(size_of(6, 2, 5, component), 33 * 65536);
	assert_int_equal(size_of(10, 0x102, 3, component), 16 * 65536);
	assert_int_equal(size_of(10, 0x201, 3, component), 15 * 65536);
	assert_int_equal(size_of(10, 0x10201, 4, component), 20 * 65536);
	assert_int_equal(
		geometry_component_array_bytes(0, 1, 65536, 3, component, &bytes, &fault), -EINVAL);
	assert_non_null(strstr(fault.text, "sum of what its members have"));
	assert_int_equal(
		geometry_component_array_bytes(6, 2, 65536, 3, component, &bytes, &fault), -EINVAL);
	assert_int_equal(geometry_component_array_bytes(10, 2, 65536, 3, component, &bytes, &fault),
		-EINVAL);
	assert_int_equal(bytes, 4711);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_counted_levels),
		cmocka_unit_test(test_raid1),
		cmocka_unit_test(test_raid10),
		cmocka_unit_test(test_many_copies),
		cmocka_unit_test(test_nonsense),
		cmocka_unit_test(test_sizes),
	};

	return cmocka_run_group_tests_name("available", tests, NULL, NULL);
}
