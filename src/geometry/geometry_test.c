/* SPDX-License-Identifier: MIT */
/*
 * Geometry against a second implementation that is as slow and literal as the specification's
 * formulae, over a grid of member counts, chunk sizes, member sizes and layouts.
 */
#include "geometry/geometry.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "util/rounding.h"

#define K 1024u

struct place {
	unsigned slot;
	uint64_t offset;
};

/* Specification 7.3, word for word: walk the zones, then apply the map. */
static struct place slow_raid0(const struct geometry_config *c, uint64_t a)
{
	uint64_t zone_start = 0, low = 0;

	for (;;) {
		uint64_t high = UINT64_MAX, off, row, idx, length;
		unsigned list[64], k = 0;

		for (unsigned i = 0; i < c->slots; i++) {
			uint64_t usable = round_down(c->slot_bytes[i], c->chunk_bytes);

			if (usable > low) {
				list[k++] = i;
				high = min_u64(high, usable);
			}
		}
		assert_true(k > 0);
		length = (high - low) * k;
		if (a >= zone_start + length) {
			zone_start += length;
			low = high;
			continue;
		}
		off = a - zone_start;
		row = off / ((uint64_t)c->chunk_bytes * k);
		idx = (c->layout == 2 ? off : a) / c->chunk_bytes % k;
		return (struct place){list[idx], low + row * c->chunk_bytes + a % c->chunk_bytes};
	}
}

static struct place slow_linear(const struct geometry_config *c, uint64_t a)
{
	for (unsigned i = 0; i < c->slots; i++) {
		uint64_t unit = c->chunk_bytes ? c->chunk_bytes : 512;
		uint64_t usable = round_down(c->slot_bytes[i], unit);

		if (a < usable)
			return (struct place){i, a};
		a -= usable;
	}
	fail();
	return (struct place){0, 0};
}

static struct place slow_map(const struct geometry_config *c, uint64_t a)
{
	return c->level == 0 ? slow_raid0(c, a) : slow_linear(c, a);
}

/* Every sector of the array: the fast map, and the run it promises, agree with the slow one. */
static void check_map(const struct geometry_config *c, const struct geometry *g)
{
	uint64_t size = geometry_array_bytes(g);

	for (uint64_t a = 0; a < size; a += 512) {
		struct geometry_piece piece = geometry_map(g, a);
		struct place place = slow_map(c, a);
		struct place last = slow_map(c, a + piece.length - 512);

		assert_int_equal(piece.slot, place.slot);
		assert_int_equal(piece.member_offset, place.offset);
		assert_true(piece.length >= 512 && piece.length <= size - a);
		assert_int_equal(last.slot, place.slot);
		assert_int_equal(last.offset, place.offset + piece.length - 512);
		assert_true(geometry_zone_end(g, a) >= a + piece.length);
	}
}

/* geometry_member_range() of [from, to) is exactly the set of sectors that the map sends there. */
static void check_range(
	const struct geometry_config *c, const struct geometry *g, uint64_t from, uint64_t to)
{
	for (unsigned slot = 0; slot < c->slots; slot++) {
		struct geometry_piece range = geometry_member_range(g, from, to - from, slot);
		uint64_t first = UINT64_MAX, end = 0, count = 0;

		for (uint64_t a = from; a < to; a += 512) {
			struct place place = slow_map(c, a);

			if (place.slot != slot)
				continue;
			first = min_u64(first, place.offset);
			end = max_u64(end, place.offset + 512);
			count += 512;
		}
		assert_int_equal(range.length, count);
		if (count > 0) {
			assert_int_equal(range.member_offset, first);
			assert_int_equal(end - first, count);
		}
	}
}

static void check_ranges(const struct geometry_config *c, const struct geometry *g)
{
	uint64_t size = geometry_array_bytes(g);

	for (int i = 0; i < 40; i++) {
		uint64_t from = (uint64_t)rand() % (size / 512) * 512;
		uint64_t end = geometry_zone_end(g, from);
		uint64_t to = from + 512 + (uint64_t)rand() % ((end - from) / 512) * 512;

		check_range(c, g, from, to);
		check_range(c, g, from, end);
	}
}

static void check_config(const struct geometry_config *c)
{
	struct geometry *g;
	struct fault fault;

	assert_int_equal(geometry_new(c, &g, &fault), 0);
	check_map(c, g);
	check_ranges(c, g);
	geometry_free(g);
}

static void test_grid(void **state)
{
	static const uint32_t chunks[] = {512, 1536, 4 * K, 6 * K, 16 * K};

	srand(1);
	for (unsigned n = 1; n <= 5; n++)
		for (unsigned ci = 0; ci < 5; ci++)
			for (int variant = 0; variant < 8; variant++) {
				uint64_t sizes[5];
				struct geometry_config c = {.level = variant & 1 ? 0 : -1,
					.layout = variant & 2 ? 1 : 2,
					.chunk_bytes = chunks[ci],
					.slots = n,
					.slot_bytes = sizes};

				for (unsigned i = 0; i < n; i++)
					sizes[i] = 48 * K +
						   (variant & 4 ? (uint64_t)rand() % 5 *
										   chunks[ci] +
									   512
								: 0);
				check_config(&c);
			}
}

/* The table of specification 7.3, typed in by hand. */
static void test_published_example(void **state)
{
	static const unsigned original[12][2] = {{0, 0}, {1, 0}, {2, 0}, {0, 1}, {1, 1}, {2, 1},
		{0, 2}, {1, 2}, {2, 2}, {2, 3}, {1, 3}, {1, 4}};
	uint64_t sizes[] = {3 * 4096, 5 * 4096, 4 * 4096};
	struct geometry_config c = {0, 1, 4096, 3, sizes};
	struct geometry *g;

	assert_int_equal(geometry_new(&c, &g, NULL), 0);
	assert_int_equal(geometry_zone_count(g), 3);
	assert_int_equal(geometry_array_bytes(g), 12 * 4096);
	for (unsigned i = 0; i < 12; i++) {
		struct geometry_piece p = geometry_map(g, i * 4096);

		assert_int_equal(p.slot, original[i][0]);
		assert_int_equal(p.member_offset, original[i][1] * 4096);
	}
	geometry_free(g);
	c.layout = 2;
	assert_int_equal(geometry_new(&c, &g, NULL), 0);
	assert_int_equal(geometry_map(g, 9 * 4096).slot, 1);
	assert_int_equal(geometry_map(g, 10 * 4096).slot, 2);
	geometry_free(g);
}

/*
 * Chunk of 24 sectors: Linux was seen to export 15,699,968 bytes where the members' whole chunks
 * are 15,716,352 (specification 7.1); 426, 426 and 427 chunks lose 16, 16 and 0 sectors by its
 * mask.
 */
static void test_odd_chunk_size(void **state)
{
	uint64_t sizes[] = {426 * 12288, 426 * 12288, 427 * 12288};
	struct geometry_config c = {0, 1, 24 * 512, 3, sizes};
	struct geometry *g;

	assert_int_equal(geometry_new(&c, &g, NULL), 0);
	assert_int_equal(sizes[0] + sizes[1] + sizes[2], 15716352);
	assert_int_equal(geometry_array_bytes(g), 15699968);
	assert_int_equal(geometry_map(g, 15699968 - 512).length, 512);
	geometry_free(g);
}

static void test_large(void **state)
{
	uint64_t sizes[] = {1ull << 60, 1ull << 60, 1ull << 60};
	struct geometry_config c = {0, 1, 65536, 3, sizes};
	struct geometry_piece p;
	struct geometry *g;
	uint64_t last = (3ull << 60) - 512;

	assert_int_equal(geometry_new(&c, &g, NULL), 0);
	p = geometry_map(g, last);
	assert_int_equal(p.slot, 2);
	assert_int_equal(p.member_offset, (1ull << 60) - 512);
	assert_int_equal(p.length, 512);
	geometry_free(g);
}

static void refuse(const struct geometry_config *c, int error, const char *words)
{
	struct geometry *g = NULL;
	struct fault fault = {0};

	assert_int_equal(geometry_new(c, &g, &fault), error);
	assert_null(g);
	assert_non_null(strstr(fault.text, words));
}

static void test_refusals(void **state)
{
	uint64_t sizes[] = {1 << 20, 2 << 20}, huge[] = {INT64_MAX, INT64_MAX},
		 small[] = {1 << 20, 4096};

	refuse(&(struct geometry_config){0, 1, 4096, 0, sizes}, -EINVAL, "1 to 1920 slots");
	refuse(&(struct geometry_config){0, 1, 0, 2, sizes}, -EINVAL, "chunk size");
	refuse(&(struct geometry_config){0, 1, 1000, 2, sizes}, -EINVAL, "multiple of 512");
	refuse(&(struct geometry_config){0, 1, 8192, 2, small}, -EINVAL, "slot 1");
	refuse(&(struct geometry_config){0, 0, 4096, 2, sizes}, -EUCLEAN, "--layout=alternate");
	refuse(&(struct geometry_config){0, 7, 4096, 2, sizes}, -EUCLEAN, "not recorded (7)");
	refuse(&(struct geometry_config){0, 1, 4096, 2, huge}, -ERANGE, "8 EiB");
	refuse(&(struct geometry_config){5, 2, 4096, 2, sizes}, -EOPNOTSUPP, "level 5");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_grid),
		cmocka_unit_test(test_published_example),
		cmocka_unit_test(test_odd_chunk_size),
		cmocka_unit_test(test_large),
		cmocka_unit_test(test_refusals),
	};

	return cmocka_run_group_tests_name("geometry", tests, NULL, NULL);
}
