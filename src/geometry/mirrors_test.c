/* SPDX-License-Identifier: MIT */
/*
 * Mirrors against the specification's tables cell by cell and against its formula word for word;
 * which layouts are refused, against what their copies really do.
 */
#include "geometry/mirrors.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define CHUNK 4096u
#define COPIES_MAX 2000u
#define NOTHING UINT64_MAX

/* The tables of specification 7.6: the array chunk in each cell, row by row. */
static const struct table {
	uint32_t layout;
	unsigned slots, rows, chunks;
	uint64_t cells[36];
} tables[] = {
	{0x102, 4, 8, 16,
		{0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8, 9, 9, 10, 10, 11, 11, 12, 12,
			13, 13, 14, 14, 15, 15}},
	{0x102, 3, 8, 12,
		{0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8, 9, 9, 10, 10, 11, 11}},
	{0x103, 4, 6, 8, {0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4, 5, 5, 5, 6, 6, 6, 7, 7, 7}},
	{0x201, 4, 8, 16,
		{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 3, 0, 1, 2, 7, 4, 5, 6, 11,
			8, 9, 10, 15, 12, 13, 14}},
	{0x201, 3, 8, 12,
		{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 2, 0, 1, 5, 3, 4, 8, 6, 7, 11, 9, 10}},
	{0x10201, 4, 8, 16,
		{0, 1, 2, 3, 3, 0, 1, 2, 4, 5, 6, 7, 7, 4, 5, 6, 8, 9, 10, 11, 11, 8, 9, 10, 12, 13,
			14, 15, 15, 12, 13, 14}},
	{0x10201, 3, 8, 12,
		{0, 1, 2, 2, 0, 1, 3, 4, 5, 5, 3, 4, 6, 7, 8, 8, 6, 7, 9, 10, 11, 11, 9, 10}},
	{0x202, 4, 8, 8,
		{0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 1, 1, 0, 0, 3, 3, 2, 2, 5, 5, 4, 4,
			7, 7, 6, 6}},
	{0x40201, 4, 8, 16,
		{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 1, 0, 3, 2, 5, 4, 7, 6, 9, 8,
			11, 10, 13, 12, 15, 14}},
	{0x20201, 6, 4, 12,
		{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 2, 0, 1, 5, 3, 4, 8, 6, 7, 11, 9, 10}},
};

static uint64_t cell(const struct mirrors *m, unsigned slot, uint64_t row)
{
	uint64_t array_offset, length;

	if (!mirrors_inverse(m, slot, row * CHUNK, &array_offset, &length))
		return NOTHING;
	assert_int_equal(length, CHUNK);
	assert_int_equal(array_offset % CHUNK, 0);
	return array_offset / CHUNK;
}

static void check_table(const struct table *t)
{
	struct geometry_piece copies[8];
	unsigned found = 0;
	struct mirrors m;

	assert_int_equal(
		mirrors_init(10, t->layout, CHUNK, t->slots, (uint64_t)t->rows * CHUNK, &m, NULL),
		0);
	assert_int_equal(m.array_bytes, t->chunks * CHUNK);
	for (unsigned i = 0; i < t->slots * t->rows; i++)
		assert_int_equal(cell(&m, i % t->slots, i / t->slots), t->cells[i]);
	for (uint64_t chunk = 0; chunk < t->chunks; chunk++) {
		assert_int_equal(mirrors_map(&m, chunk * CHUNK, copies), CHUNK);
		for (unsigned i = 0; i < m.copies; i++, found++)
			assert_int_equal(t->cells[copies[i].member_offset / CHUNK * t->slots +
						  copies[i].slot],
				chunk);
	}
	assert_int_equal(found, t->slots * t->rows);
}

static void test_tables(void **state)
{
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
		check_table(&tables[i]);
	assert_int_equal(sizeof(tables) / sizeof(tables[0]), 10);
}

struct place {
	unsigned slot;
	uint64_t row;
};

static unsigned slow_set_slots(uint32_t layout, unsigned n)
{
	unsigned near = layout & 255, far = layout >> 8 & 255;

	return layout >> 17 == 0 ? n : layout >> 17 == 1 ? n / far : far * near;
}

/* Specification 7.6, word for word; @size_chunks is S/C. */
static unsigned slow_map(
	uint32_t layout, unsigned n, uint64_t size_chunks, uint64_t c, struct place *copies)
{
	unsigned near = layout & 255, far = layout >> 8 & 255, count = 0;
	bool offset = layout >> 16 & 1;
	unsigned F = slow_set_slots(layout, n);
	uint64_t stride = offset ? 1 : size_chunks / far;
	uint64_t t = c * near, row = t / n, dev = t % n;
	unsigned last_start = (n / F - 1) * F, last_size = F + n % F;

	if (offset)
		row *= far;
	for (unsigned j = 0; j < near; j++) {
		uint64_t d = dev, r = row;

		copies[count++] = (struct place){(unsigned)d, r};
		for (unsigned f = 1; f < far; f++) {
			uint64_t g = d / F;

			d += near;
			if (n % F != 0 && d > last_start)
				d = (d - last_start) % last_size + last_start;
			else
				d = d % F + g * F;
			r += stride;
			copies[count++] = (struct place){(unsigned)d, r};
		}
		dev++;
		if (dev >= n) {
			dev = 0;
			row++;
		}
	}
	return count;
}

static uint64_t slow_chunks(uint32_t layout, unsigned n, uint64_t size_chunks)
{
	return size_chunks / (layout >> 8 & 255) * n / (layout & 255);
}

/*
 * Lay all chunks out on @n members of @size_chunks. False if two copies meet in one cell, or two
 * copies of a chunk on one slot. @cells: n · size_chunks entries.
 */
static bool lay_out(uint32_t layout, unsigned n, uint64_t size_chunks, uint64_t *cells)
{
	struct place copies[COPIES_MAX];
	bool good = true;

	for (uint64_t i = 0; i < n * size_chunks; i++)
		cells[i] = NOTHING;
	for (uint64_t c = 0; c < slow_chunks(layout, n, size_chunks); c++) {
		unsigned count = slow_map(layout, n, size_chunks, c, copies);

		for (unsigned i = 0; i < count; i++) {
			uint64_t *here;

			if (copies[i].row >= size_chunks)
				return false;
			here = &cells[copies[i].row * n + copies[i].slot];
			good = good && *here == NOTHING;
			*here = c;
			for (unsigned k = 0; k < i; k++)
				good = good && copies[k].slot != copies[i].slot;
		}
	}
	return good;
}

/* Every cell has what the slow map put there, and every copy is where the slow map has it. */
static void check_against(
	const struct mirrors *m, uint32_t layout, uint64_t size_chunks, const uint64_t *cells)
{
	struct geometry_piece copies[COPIES_MAX];
	struct place slow[COPIES_MAX];

	assert_int_equal(
		m->array_bytes, slow_chunks(layout, m->slots, size_chunks) * (uint64_t)CHUNK);
	assert_int_equal(m->sync_bytes, m->array_bytes);
	for (uint64_t i = 0; i < m->slots * size_chunks; i++)
		assert_int_equal(cell(m, (unsigned)(i % m->slots), i / m->slots), cells[i]);
	for (uint64_t c = 0; c < m->array_bytes / CHUNK; c++) {
		uint64_t offset = c * CHUNK + (c % 8) * 512;

		assert_int_equal(mirrors_map(m, offset, copies), CHUNK - c % 8 * 512);
		assert_int_equal(slow_map(layout, m->slots, size_chunks, c, slow), m->copies);
		for (unsigned i = 0; i < m->copies; i++) {
			assert_int_equal(copies[i].slot, slow[i].slot);
			assert_int_equal(
				copies[i].member_offset, slow[i].row * CHUNK + c % 8 * 512);
			assert_int_equal(copies[i].length, CHUNK - c % 8 * 512);
		}
	}
}

/*
 * Is each chunk on a slot of @in_sync, the cells being the witness? @seen: one per chunk. Chunks
 * are enough for every place at which one can begin.
 */
static bool slow_available(
	const uint64_t *cells, unsigned n, uint64_t size_chunks, uint64_t chunks, unsigned in_sync)
{
	bool seen[1024] = {false};

	assert_true(chunks <= 1024);
	for (uint64_t i = 0; i < n * size_chunks; i++)
		if (cells[i] != NOTHING && (in_sync >> (i % n) & 1) != 0)
			seen[cells[i]] = true;
	for (uint64_t c = 0; c < chunks; c++)
		if (!seen[c])
			return false;
	return true;
}

/* The rule that specification 7.6 gives; it does not know of far sets. */
static bool rule_available(unsigned n, unsigned near, unsigned copies, unsigned in_sync)
{
	unsigned first = 0;

	do {
		unsigned count = 0;

		for (unsigned i = 0; i < copies; i++)
			count += in_sync >> (first + i) % n & 1;
		if (count == 0)
			return false;
		first = (first + near) % n;
	} while (first != 0);
	return true;
}

static void check_availability(const struct mirrors *m, uint64_t size_chunks, const uint64_t *cells)
{
	for (unsigned set = 0; set < 1u << m->slots; set++) {
		bool in_sync[16], available;

		for (unsigned slot = 0; slot < m->slots; slot++)
			in_sync[slot] = set >> slot & 1;
		available = mirrors_available(m, in_sync);
		assert_int_equal(available,
			slow_available(cells, m->slots, size_chunks, m->array_bytes / CHUNK, set));
		if (m->set_slots == m->slots)
			assert_int_equal(
				available, rule_available(m->slots, m->near, m->copies, set));
	}
}

/*
 * Every layout of up to 9 slots, on members with 0 … far - 1 chunks left over: refused exactly if
 * it has fewer than 2 copies, more than slots, or its copies meet; right in every cell if not.
 */
static void check_layout(uint32_t layout, unsigned n, unsigned *accepted, unsigned *refused)
{
	unsigned near = layout & 255, far = layout >> 8 & 255;
	/* Rows enough that chunks begin at every slot where one can begin. */
	uint64_t size_chunks = far * (near + 1) + n % far;
	uint64_t cells[9 * 128];
	struct mirrors m;
	bool good;
	int r;

	assert_true(n * size_chunks <= sizeof(cells) / sizeof(cells[0]));
	r = mirrors_init(10, layout, CHUNK, n, size_chunks * CHUNK + 512, &m, NULL);
	good = near * far >= 2 && near * far <= n && lay_out(layout, n, size_chunks, cells);
	assert_int_equal(r, good ? 0 : -EINVAL);
	++*(good ? accepted : refused);
	if (!good)
		return;
	assert_int_equal(m.copies, near * far);
	check_against(&m, layout, size_chunks, cells);
	check_availability(&m, size_chunks, cells);
}

static void test_every_layout(void **state)
{
	unsigned accepted = 0, refused = 0;

	for (unsigned n = 1; n <= 9; n++)
		for (unsigned near = 1; near <= 10; near++)
			for (unsigned far = 1; far <= 10; far++)
				for (uint32_t flags = 0; flags < 6; flags++)
					if (near * far <= 12)
						check_layout(
							MIRRORS_LAYOUT(near, far) | flags << 16, n,
							&accepted, &refused);
	assert_true(accepted > 300 && refused > 300);
}

static uint64_t random_64(void)
{
	return (uint64_t)rand() << 42 ^ (uint64_t)rand() << 21 ^ (uint64_t)rand();
}

/* A chunk of a large array: as the slow map says, and back again from each copy. */
static void check_chunk(const struct mirrors *m, uint32_t layout, uint64_t size_chunks)
{
	struct geometry_piece copies[COPIES_MAX];
	struct place slow[COPIES_MAX];
	uint64_t offset = random_64() % m->array_bytes;
	unsigned shift = m->chunk_shift;
	uint64_t rest = offset & (m->chunk_bytes - 1);

	assert_int_equal(mirrors_map(m, offset, copies), m->chunk_bytes - rest);
	assert_int_equal(slow_map(layout, m->slots, size_chunks, offset >> shift, slow), m->copies);
	for (unsigned i = 0; i < m->copies; i++) {
		uint64_t back, length;

		assert_int_equal(copies[i].slot, slow[i].slot);
		assert_int_equal(copies[i].member_offset, (slow[i].row << shift) + rest);
		assert_true(mirrors_inverse(
			m, copies[i].slot, copies[i].member_offset, &back, &length));
		assert_int_equal(back, offset);
		assert_int_equal(length, m->chunk_bytes - rest);
	}
}

static void test_large(void **state)
{
	unsigned done = 0;

	srand(4);
	while (done < 3000) {
		unsigned n = 2 + (unsigned)rand() % (done % 100 == 0 ? 1919 : 40);
		uint32_t chunk = CHUNK << rand() % 12;
		uint64_t member = (uint64_t)INT64_MAX / n >> rand() % 20;
		uint32_t layout = MIRRORS_LAYOUT(
					  1 + (unsigned)rand() % 4, 1 + (unsigned)rand() % 4) |
				  (uint32_t)(rand() % 6) << 16;
		struct mirrors m;

		if (mirrors_init(10, layout, chunk, n, member, &m, NULL) < 0)
			continue;
		for (int i = 0; i < 50; i++)
			check_chunk(&m, layout, member / chunk);
		done++;
	}
}

/* Behind the array: an unused rest of the last row, then nothing to the end of the member. */
static void test_ends(void **state)
{
	uint64_t offset = 4711, length;
	struct mirrors m;

	/* 3 slots of 5 rows, near 2: 7 chunks in 14 cells, the 15th cell holds nothing. */
	assert_int_equal(mirrors_init(10, 0x102, CHUNK, 3, 5 * CHUNK + 1024, &m, NULL), 0);
	assert_int_equal(m.array_bytes, 7 * CHUNK);
	assert_false(mirrors_inverse(&m, 2, 4 * CHUNK + 512, &offset, &length));
	assert_int_equal(length, CHUNK - 512);
	assert_true(mirrors_inverse(&m, 1, 4 * CHUNK + 512, &offset, &length));
	assert_int_equal(offset, 6 * CHUNK + 512);
	assert_false(mirrors_inverse(&m, 1, 5 * CHUNK, &offset, &length));
	assert_int_equal(length, UINT64_MAX);
	assert_false(mirrors_inverse(&m, 1, UINT64_MAX, &offset, &length));
	assert_int_equal(offset, 6 * CHUNK + 512);
}

static void test_raid1(void **state)
{
	static struct geometry_piece copies[GEOMETRY_SLOTS_MAX];
	bool in_sync[GEOMETRY_SLOTS_MAX] = {false};
	uint64_t offset, length;
	struct mirrors m;

	assert_int_equal(mirrors_init(1, 99, 65536, GEOMETRY_SLOTS_MAX, 1000001, &m, NULL), 0);
	assert_int_equal(m.array_bytes, 1000001 / 512 * 512);
	assert_int_equal(m.sync_bytes, m.array_bytes);
	assert_int_equal(m.copies, GEOMETRY_SLOTS_MAX);
	assert_int_equal(m.chunk_bytes, 0);
	assert_false(m.chunked);
	assert_int_equal(mirrors_map(&m, 512, copies), m.array_bytes - 512);
	for (unsigned slot = 0; slot < GEOMETRY_SLOTS_MAX; slot++) {
		assert_int_equal(copies[slot].slot, slot);
		assert_int_equal(copies[slot].member_offset, 512);
		assert_int_equal(copies[slot].length, m.array_bytes - 512);
	}
	assert_true(mirrors_inverse(&m, 7, 1024, &offset, &length));
	assert_int_equal(offset, 1024);
	assert_int_equal(length, m.array_bytes - 1024);
	assert_false(mirrors_inverse(&m, 7, m.array_bytes, &offset, &length));
	assert_false(mirrors_available(&m, in_sync));
	in_sync[GEOMETRY_SLOTS_MAX - 1] = true;
	assert_true(mirrors_available(&m, in_sync));
	in_sync[GEOMETRY_SLOTS_MAX - 1] = false;
	in_sync[0] = true;
	assert_true(mirrors_available(&m, in_sync));
}

static void refuse(int level, uint32_t layout, uint32_t chunk, unsigned slots, uint64_t member,
	int error, const char *words)
{
	struct mirrors m = {.slots = 4711};
	struct fault fault = {0};

	assert_int_equal(mirrors_init(level, layout, chunk, slots, member, &m, &fault), error);
	assert_non_null(strstr(fault.text, words));
	assert_int_equal(m.slots, 4711);
	assert_int_equal(mirrors_init(level, layout, chunk, slots, member, &m, NULL), error);
}

static void test_refusals(void **state)
{
	refuse(5, 2, 4096, 4, 65536, -EINVAL, "level 5 has no mirrors");
	refuse(10, 0x102, 4096, 0, 65536, -EINVAL, "1 to 1920 slots, not 0");
	refuse(1, 0, 0, 1921, 65536, -EINVAL, "not 1921");
	refuse(10, 0x60102, 4096, 4, 65536, -EINVAL, "no version of md knows");
	refuse(10, 0x80102, 4096, 4, 65536, -EINVAL, "no version of md knows");
	refuse(10, 0x80000102, 4096, 4, 65536, -EINVAL, "no version of md knows");
	refuse(10, 0x101, 4096, 4, 65536, -EINVAL, "keeps 1 copies");
	refuse(10, 0x002, 4096, 4, 65536, -EINVAL, "keeps 0 copies");
	refuse(10, 0x40200, 4096, 4, 65536, -EINVAL, "keeps 0 copies");
	refuse(10, 0x105, 4096, 4, 65536, -EINVAL, "can be 2 to 4");
	refuse(10, 0xffff, 4096, 1920, 1 << 30, -EINVAL, "keeps 65025 copies");
	refuse(10, 0x10202, 4096, 5, 65536, -EINVAL, "multiple of 2");
	refuse(10, 0x40202, 4096, 9, 65536, -EINVAL, "multiple of the far set of 4");
	refuse(10, 0x20301, 4096, 4, 65536, -EINVAL, "two copies of a chunk on the same member");
	refuse(10, 0x102, 0, 4, 65536, -EINVAL, "chunk size");
	refuse(10, 0x102, 2048, 4, 65536, -EINVAL, "at least 4096");
	refuse(10, 0x102, 12288, 4, 65536, -EINVAL, "power of two");
	refuse(10, 0x201, 4096, 4, 8191, -EINVAL, "the 2 chunks of 4096");
	refuse(1, 0, 0, 2, 511, -EINVAL, "no room");
	refuse(1, 0, 0, 2, 1ull << 63, -ERANGE, "8 EiB");
	refuse(10, 0x102, 4096, 4, 1ull << 62, -ERANGE, "8 EiB");
	refuse(10, 0x102, 4096, 1920, UINT64_MAX, -ERANGE, "8 EiB");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tables),
		cmocka_unit_test(test_every_layout),
		cmocka_unit_test(test_large),
		cmocka_unit_test(test_ends),
		cmocka_unit_test(test_raid1),
		cmocka_unit_test(test_refusals),
	};

	return cmocka_run_group_tests_name("mirrors", tests, NULL, NULL);
}
