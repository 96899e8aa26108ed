/* SPDX-License-Identifier: MIT */
#include "md/badblocks.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "util/bytes.h"

#define ELEMENTS(array) (sizeof(array) / sizeof((array)[0]))

static struct md_super *member(uint16_t log_sectors, uint8_t shift)
{
	struct md_super *super = calloc(1, sizeof(*super));

	assert_non_null(super);
	super->version = MD_VERSION_1_2;
	super->super_offset = 8;
	super->bblog_offset = 16;
	super->bblog_sectors = log_sectors;
	super->bblog_shift = shift;
	return super;
}

static void log_of(uint8_t log[MD_BADBLOCKS_LOG_BYTES], const uint64_t *entries, size_t count)
{
	memset(log, 0xff, MD_BADBLOCKS_LOG_BYTES);
	for (size_t i = 0; i < count; i++)
		put_le64(log + 8 * i, entries[i]);
}

/* What Linux 6.1 wrote for 100+8, 5000+1 and 6000+1200 (specification 4): out of order, split. */
static void test_observed(void **state)
{
	static const uint64_t entries[] = {0x19008, 0x4e2001, 0x6dc0b0, 0x65c200, 0x5dc200};
	static const struct md_bad_range ranges[] = {{100, 8}, {5000, 1}, {6000, 1200}};
	static const uint64_t sorted[] = {0x19008, 0x4e2001, 0x5dc200, 0x65c200, 0x6dc0b0};
	uint8_t log[MD_BADBLOCKS_LOG_BYTES], again[MD_BADBLOCKS_LOG_BYTES];
	struct md_super *super = member(8, 0);
	struct md_badblocks table;
	struct fault fault = {0};

	log_of(log, entries, ELEMENTS(entries));
	/* Behind the first all-ones entry nothing counts. */
	put_le64(log + 8 * 6, 77);
	assert_int_equal(md_badblocks_decode(super, log, &table, &fault), 0);
	assert_int_equal(table.count, 3);
	assert_memory_equal(table.ranges, ranges, sizeof(ranges));
	assert_int_equal(md_badblocks_entries(&table), 5);
	md_badblocks_encode(&table, again);
	log_of(log, sorted, ELEMENTS(sorted));
	assert_memory_equal(again, log, sizeof(log));
	free(super);
}

static void test_malformed(void **state)
{
	static const struct {
		uint64_t entry;
		const char *word;
	} rows[] = {
		{0x19000, "is empty"},
		{UINT64_MAX - 1, "beyond the last sector"},
		{0, "is empty"},
	};
	uint8_t log[MD_BADBLOCKS_LOG_BYTES];
	struct md_super *super = member(8, 0);
	struct md_badblocks table;

	for (size_t i = 0; i < ELEMENTS(rows); i++) {
		const uint64_t entries[] = {0x19008, rows[i].entry};
		struct fault fault = {0};

		log_of(log, entries, 2);
		assert_int_equal(md_badblocks_decode(super, log, &table, &fault), -EUCLEAN);
		assert_non_null(strstr(fault.text, rows[i].word));
		assert_non_null(strstr(fault.text, "entry 1"));
	}
	/* 512 entries of 1023 units cannot be written back: the kernel refuses them as well. */
	for (uint64_t i = 0; i < 512; i++)
		put_le64(log + 8 * i, i * 2000 << 10 | 1023);
	assert_int_equal(md_badblocks_decode(super, log, &table, NULL), -EUCLEAN);
	super->bblog_shift = 60;
	assert_int_equal(md_badblocks_decode(super, log, &table, NULL), -EUCLEAN);
	free(super);
}

static void test_full_log(void **state)
{
	uint8_t log[MD_BADBLOCKS_LOG_BYTES];
	struct md_super *super = member(8, 0);
	struct md_badblocks table, again;

	md_badblocks_init(super, &table);
	assert_int_equal(table.entries_max, 512);
	for (uint64_t i = 0; i < 511; i++)
		assert_int_equal(md_badblocks_add(&table, 10 * i, 3), 0);
	/* One entry is left: too little for a range of two, enough for one, or for growing one. */
	assert_int_equal(md_badblocks_add(&table, 100000, 513), -ENOSPC);
	assert_int_equal(md_badblocks_add(&table, 100000, UINT64_C(1) << 50), -ENOSPC);
	assert_int_equal(table.count, 511);
	assert_int_equal(md_badblocks_add(&table, 100000, 512), 0);
	assert_int_equal(md_badblocks_add(&table, 200000, 1), -ENOSPC);
	assert_int_equal(md_badblocks_remove(&table, 1, 1), -ENOSPC);
	assert_true(md_badblocks_overlaps(&table, 1, 1, NULL));
	assert_int_equal(md_badblocks_add(&table, 3, 7), 0);
	assert_int_equal(table.ranges[0].length_sectors, 13);
	assert_int_equal(md_badblocks_entries(&table), 511);
	md_badblocks_encode(&table, log);
	assert_int_equal(md_badblocks_decode(super, log, &again, NULL), 0);
	assert_int_equal(again.count, table.count);
	assert_memory_equal(again.ranges, table.ranges, table.count * sizeof(table.ranges[0]));
	free(super);
}

static void test_no_log(void **state)
{
	struct md_super *super = member(0, 0);
	struct md_badblocks table;
	uint64_t sector, sectors;

	md_badblocks_init(super, &table);
	assert_int_equal(md_badblocks_add(&table, 1, 1), -ENOSPC);
	assert_int_equal(md_badblocks_remove(&table, 1, 1), 0);
	assert_false(md_badblocks_overlaps(&table, 0, UINT64_MAX, NULL));
	assert_int_equal(md_badblocks_location(super, &sector, &sectors), -ENODATA);
	super->bblog_sectors = 8;
	assert_int_equal(md_badblocks_location(super, &sector, &sectors), 0);
	assert_int_equal(sector, 24);
	assert_int_equal(sectors, 8);
	super->bblog_offset = -8;
	assert_int_equal(md_badblocks_location(super, &sector, &sectors), 0);
	assert_int_equal(sector, 0);
	super->bblog_offset = -9;
	assert_int_equal(md_badblocks_location(super, &sector, &sectors), -ENODATA);
	free(super);
}

static void test_units(void **state)
{
	static const struct md_bad_range grown = {8, 16};
	struct md_super *super = member(1, 3);
	struct md_badblocks table;

	md_badblocks_init(super, &table);
	assert_int_equal(table.entries_max, 64);
	assert_int_equal(md_badblocks_add(&table, 15, 2), 0);
	assert_memory_equal(table.ranges, &grown, sizeof(grown));
	assert_int_equal(md_badblocks_remove(&table, 9, 14), 0);
	assert_memory_equal(table.ranges, &grown, sizeof(grown));
	assert_int_equal(md_badblocks_remove(&table, 9, 15), 0);
	assert_int_equal(table.ranges[0].length_sectors, 8);
	free(super);
}

#define MODEL_SECTORS 3000u

static void compare(const struct md_badblocks *table, const bool model[MODEL_SECTORS])
{
	struct md_bad_range range;

	for (unsigned i = 0; i < MODEL_SECTORS; i++)
		assert_int_equal(md_badblocks_overlaps(table, i, 1, NULL), model[i]);
	for (unsigned i = 1; i < table->count; i++)
		assert_true(
			table->ranges[i - 1].start_sector + table->ranges[i - 1].length_sectors <
			table->ranges[i].start_sector);
	for (unsigned from = 0, i; from < MODEL_SECTORS; from += 37) {
		for (i = from; i < from + 100 && i < MODEL_SECTORS && !model[i]; i++)
			;
		if (i == from + 100 || i == MODEL_SECTORS) {
			assert_false(md_badblocks_overlaps(table, from, 100, &range));
			continue;
		}
		assert_true(md_badblocks_overlaps(table, from, 100, &range));
		assert_int_equal(range.start_sector, i);
		for (; i < from + 100 && i < MODEL_SECTORS && model[i]; i++)
			;
		assert_int_equal(range.start_sector + range.length_sectors, i);
	}
}

/* Random additions and removals against one flag for each sector. */
static void test_model(void **state)
{
	static bool model[MODEL_SECTORS];
	struct md_super *super = member(8, 0);
	struct md_badblocks table;
	unsigned seed = 7, changed = 0;

	md_badblocks_init(super, &table);
	for (unsigned step = 0; step < 2000; step++) {
		const unsigned start = (unsigned)rand_r(&seed) % MODEL_SECTORS;
		const unsigned most = rand_r(&seed) % 8 == 0 ? 1200 : 20;
		unsigned length = 1 + (unsigned)rand_r(&seed) % most;
		const bool bad = rand_r(&seed) % 2 == 0;
		int r;

		if (length > MODEL_SECTORS - start)
			length = MODEL_SECTORS - start;
		r = bad ? md_badblocks_add(&table, start, length)
			: md_badblocks_remove(&table, start, length);
		assert_true(r == 0 || r == -ENOSPC);
		for (unsigned i = start; r == 0 && i < start + length; i++) {
			changed += model[i] != bad;
			model[i] = bad;
		}
		compare(&table, model);
	}
	assert_true(changed > 1000);
	free(super);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_observed),
		cmocka_unit_test(test_malformed),
		cmocka_unit_test(test_full_log),
		cmocka_unit_test(test_no_log),
		cmocka_unit_test(test_units),
		cmocka_unit_test(test_model),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
