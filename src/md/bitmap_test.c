/* SPDX-License-Identifier: MIT */
#include "md/bitmap.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "util/bytes.h"

#define ELEMENTS(array) (sizeof(array) / sizeof((array)[0]))

/* What the tests change in a 1.2 RAID 1 of 60 MiB with a bitmap, as mdadm makes it. */
static struct md_super *array(void)
{
	struct md_super *super = calloc(1, sizeof(*super));

	assert_non_null(super);
	super->version = MD_VERSION_1_2;
	super->feature_map = MD_FEATURE_BITMAP;
	for (unsigned i = 0; i < 16; i++)
		super->set_uuid[i] = (uint8_t)(0xa0 + i);
	super->level = 1;
	super->raid_disks = 2;
	super->size_sectors = 122880;
	super->super_offset = 8;
	super->data_offset = 2048;
	super->data_sectors = 122880;
	super->bitmap_offset = 8;
	super->bblog_offset = 16;
	super->bblog_sectors = 8;
	super->role_count = 128;
	super->events = 40;
	return super;
}

static struct md_bitmap bitmap_of(const struct md_super *super)
{
	struct md_bitmap bitmap;

	md_bitmap_init(super, 65536, &bitmap);
	bitmap.events = super->events;
	return bitmap;
}

static void test_round_trip(void **state)
{
	uint8_t block[512], again[512];
	struct md_bitmap in, out;

	memset(block, 0x5a, sizeof(block));
	put_le32(block, 0x6d746962);
	put_le32(block + 4, 5);
	put_le32(block + 52, 1u << 31);
	put_le32(block + 56, 5);
	put_le32(block + 60, 16383);
	memset(block + 136, 0, 120);
	assert_int_equal(md_bitmap_decode(block, &in, NULL), 0);
	md_bitmap_encode(&in, again);
	assert_memory_equal(again, block, MD_BITMAP_HEADER_BYTES);
	assert_int_equal(md_bitmap_decode(again, &out, NULL), 0);
	assert_memory_equal(&out, &in, sizeof(in));
}

static void test_refusals(void **state)
{
	static const struct {
		unsigned byte;
		uint32_t value;
		int error;
		const char *word;
	} rows[] = {
		{0, 0, -ENODATA, "magic"},
		{4, 2, -EOPNOTSUPP, "version"},
		{4, 6, -EOPNOTSUPP, "version"},
		{52, 0, -EUCLEAN, "chunksize"},
		{52, 256, -EUCLEAN, "chunksize"},
		{52, 65537, -EUCLEAN, "chunksize"},
		{56, 0, -EUCLEAN, "daemon_sleep"},
		{56, UINT32_MAX, -EUCLEAN, "daemon_sleep"},
		{60, 16384, -EUCLEAN, "write_behind"},
		{4, 3, 0, ""},
		{52, 512, 0, ""},
	};
	struct md_super *super = array();
	struct md_bitmap bitmap = bitmap_of(super);

	for (size_t i = 0; i < ELEMENTS(rows); i++) {
		struct fault fault = {0};
		struct md_bitmap out;
		uint8_t block[512] = {0};

		md_bitmap_encode(&bitmap, block);
		put_le32(block + rows[i].byte, rows[i].value);
		assert_int_equal(md_bitmap_decode(block, &out, &fault), rows[i].error);
		assert_non_null(strstr(fault.text, rows[i].word));
	}
	free(super);
}

static void test_bits(void **state)
{
	uint8_t bits[40] = {0};
	struct md_super *super = array();
	struct md_bitmap bitmap = bitmap_of(super);
	const uint8_t expected[40] = {[0] = 0x01, [1] = 0x80, [12] = 0x10, [24] = 0x02};

	bitmap.sync_size_sectors = 200 * 128 + 1;
	assert_int_equal(md_bitmap_bits(&bitmap), 201);
	bitmap.sync_size_sectors = 200 * 128;
	assert_int_equal(md_bitmap_bits(&bitmap), 200);
	md_bitmap_set(&bitmap, bits, 0, true);
	md_bitmap_set(&bitmap, bits, 15, true);
	md_bitmap_set(&bitmap, bits, 100, true);
	md_bitmap_set(&bitmap, bits, 193, true);
	md_bitmap_set(&bitmap, bits, 101, true);
	md_bitmap_set(&bitmap, bits, 101, false);
	assert_memory_equal(bits, expected, sizeof(bits));
	assert_true(md_bitmap_get(&bitmap, bits, 193));
	assert_false(md_bitmap_get(&bitmap, bits, 192));
	assert_int_equal(md_bitmap_dirty(&bitmap, bits), 4);
	/* Bits behind the last one do not count: a new bitmap's area is all ones. */
	memset(bits, 0xff, sizeof(bits));
	assert_int_equal(md_bitmap_dirty(&bitmap, bits), 200);
	assert_int_equal(md_bitmap_bytes(0), 4096);
	assert_int_equal(md_bitmap_bytes(UINT64_C(3840) * 8), 4096);
	assert_int_equal(md_bitmap_bytes(UINT64_C(3840) * 8 + 1), 8192);
	free(super);
}

static void test_uuid(void **state)
{
	struct md_super *super = array();
	uint8_t uuid[16];

	md_bitmap_uuid(super, uuid);
	assert_memory_equal(uuid, super->set_uuid, 16);
	super->version = MD_VERSION_0_90;
	md_bitmap_uuid(super, uuid);
	assert_memory_equal(
		uuid, "\xa3\xa2\xa1\xa0\xa7\xa6\xa5\xa4\xab\xaa\xa9\xa8\xaf\xae\xad\xac", 16);
	super->v090.foreign_order = true;
	md_bitmap_uuid(super, uuid);
	assert_memory_equal(uuid, super->set_uuid, 16);
	free(super);
}

static void test_sync_sectors(void **state)
{
	static const struct {
		int level;
		uint32_t chunk, layout, disks;
		uint64_t size, sectors;
	} rows[] = {
		{1, 0, 0, 2, 122880, 122880},
		{5, 128, 2, 3, 122880, 122880},
		{5, 128, 2, 3, 122900, 122880},
		{10, 8, 0x102, 3, 64, 96},
		{10, 8, 0x201, 3, 72, 96}, /* 9 chunks: the odd one is in no far section */
		{10, 8, 0x103, 4, 48, 64},
		{10, 8, 0x10201, 4, 64, 128},
		{10, 8, 0, 4, 64, 0},
		{10, 0, 0x102, 4, 64, 0},
		{10, 1, 0x102, 1920, UINT64_MAX, 0},
	};
	struct md_super *super = array();

	for (size_t i = 0; i < ELEMENTS(rows); i++) {
		super->level = rows[i].level;
		super->chunk_sectors = rows[i].chunk;
		super->layout = rows[i].layout;
		super->raid_disks = rows[i].disks;
		super->size_sectors = rows[i].size;
		assert_int_equal(md_bitmap_sync_sectors(super), rows[i].sectors);
	}
	free(super);
}

struct place {
	enum md_version version;
	uint64_t super, data, size;
	int32_t bitmap, bblog;
	int error;
	uint64_t sector, room;
};

static void test_location(void **state)
{
	static const struct place rows[] = {
		{MD_VERSION_0_90, 130944, 0, 130944, 0, 0, 0, 130952, 120},
		{MD_VERSION_1_2, 8, 2048, 122880, 8, 16, 0, 16, 8},
		{MD_VERSION_1_2, 8, 2048, 122880, 8, 264, 0, 16, 256},
		{MD_VERSION_1_2, 8, 2048, 122880, 2, 0, 0, 10, 2038},
		{MD_VERSION_1_1, 0, 2048, 122880, 24, 8, 0, 24, 2024},
		{MD_VERSION_1_0, 131056, 0, 131000, -16, -8, 0, 131040, 8},
		{MD_VERSION_1_0, 131056, 0, 131000, 8, -8, 0, 131064, 8},
		{MD_VERSION_1_0, 131056, 2048, 120000, -144, -8, 0, 130912, 136},
		/* Contradictions. */
		{MD_VERSION_1_2, 8, 2048, 122880, 0, 0, -EUCLEAN, 0, 0},
		{MD_VERSION_1_2, 8, 2048, 122880, 2040, 0, -EUCLEAN, 0, 0},
		{MD_VERSION_1_2, 8, 2048, 122880, -4, 0, -EUCLEAN, 0, 0},
		{MD_VERSION_1_2, 8, 2048, 122880, -16, 0, -EUCLEAN, 0, 0},
		{MD_VERSION_1_2, 8, 2048, 122880, 18, 16, -EUCLEAN, 0, 0},
		{MD_VERSION_1_0, 131056, 0, 131000, -57, -8, -EUCLEAN, 0, 0},
		{MD_VERSION_1_0, 131056, 0, 131000, -4, -8, -EUCLEAN, 0, 0},
		{MD_VERSION_1_0, 131056, 0, 131000, 16, -8, -EUCLEAN, 0, 0},
		{MD_VERSION_1_0, 131056, 0, UINT64_MAX, -16, -8, -EUCLEAN, 0, 0},
		{MD_VERSION_1_0, 131056, 0, 131000, INT32_MIN, -8, -EUCLEAN, 0, 0},
	};
	struct md_super *super = array();
	uint64_t sector, room;

	for (size_t i = 0; i < ELEMENTS(rows); i++) {
		const struct place *row = &rows[i];
		struct fault fault = {0};

		super->version = row->version;
		super->super_offset = row->super;
		super->data_offset = row->data;
		super->size_sectors = row->size;
		super->bitmap_offset = row->bitmap;
		super->bblog_offset = row->bblog;
		super->bblog_sectors = row->bblog != 0 ? 8 : 0;
		sector = room = 0;
		assert_int_equal(md_bitmap_location(super, &sector, &room, &fault), row->error);
		assert_int_equal(sector, row->sector);
		assert_int_equal(room, row->room);
		assert_true((row->error < 0) == (strstr(fault.text, "bitmap_offset") != NULL));
	}
	super->feature_map = 0;
	assert_int_equal(md_bitmap_location(super, &sector, &room, NULL), -ENODATA);
	free(super);
}

static void test_choose_chunk(void **state)
{
	static const struct {
		uint64_t sectors, room, wanted;
		int error;
		uint32_t chunk;
	} rows[] = {
		{129024, 8, 0, 0, 64u << 20},
		{129024, 8, 4096, 0, 4096},
		{129024, 8, 2048, -ERANGE, 0},
		{129024, 8, 12288, -EINVAL, 0},
		{129024, 8, UINT64_C(1) << 31, 0, 1u << 31},
		{129024, 8, UINT64_C(1) << 32, -ERANGE, 0},
		{129024, 0, 0, -ENOSPC, 0},
		/* 30720 bits fit into 8 sectors: 15 GiB at 512 KiB. */
		{UINT64_C(30719) * 8, 8, 4096, 0, 4096},
		{UINT64_C(30720) * 8, 8, 4096, -ERANGE, 0},
		{UINT64_C(1) << 33, 8, 0, 0, 256u << 20},
		{UINT64_C(1) << 62, 8, 0, -ERANGE, 0},
	};

	for (size_t i = 0; i < ELEMENTS(rows); i++) {
		struct fault fault = {0};
		uint32_t chunk = 0;

		assert_int_equal(md_bitmap_choose_chunk(rows[i].sectors, rows[i].room,
					 rows[i].wanted, &chunk, &fault),
			rows[i].error);
		assert_int_equal(chunk, rows[i].chunk);
		assert_true((rows[i].error < 0) == (fault.text[0] != '\0'));
	}
}

static int check(const struct md_bitmap *bitmap, const struct md_super *super, const char *word)
{
	struct fault fault = {0};
	int r = md_bitmap_check(bitmap, super, &fault);

	assert_non_null(strstr(fault.text, word));
	return r;
}

static void test_check(void **state)
{
	struct md_super *super = array();
	struct md_bitmap bitmap = bitmap_of(super), good = bitmap;

	assert_int_equal(check(&bitmap, super, ""), 0);
	bitmap.events = 41; /* written before the superblocks of the same update */
	assert_int_equal(check(&bitmap, super, ""), 0);
	bitmap.events = 39;
	assert_int_equal(check(&bitmap, super, "events"), -ESTALE);
	bitmap = good;
	bitmap.state = MD_BITMAP_STALE;
	assert_int_equal(check(&bitmap, super, "state"), -ESTALE);
	bitmap = good;
	bitmap.sync_size_sectors -= 8;
	assert_int_equal(check(&bitmap, super, "sync_size"), -ESTALE);
	bitmap = good;
	bitmap.uuid[15] ^= 1;
	assert_int_equal(check(&bitmap, super, "uuid"), -EUCLEAN);
	bitmap = good;
	bitmap.version = 5;
	assert_int_equal(check(&bitmap, super, "clustered"), -EUCLEAN);
	bitmap = good;
	bitmap.chunk_bytes = 2048; /* 30720 bits: just fits */
	assert_int_equal(check(&bitmap, super, ""), 0);
	bitmap.chunk_bytes = 1024;
	assert_int_equal(check(&bitmap, super, "chunksize"), -EUCLEAN);
	super->feature_map = 0; /* a bitmap in a file */
	assert_int_equal(check(&bitmap, super, ""), 0);
	super->feature_map = MD_FEATURE_BITMAP;
	super->bitmap_offset = 0;
	assert_int_equal(check(&good, super, "bitmap_offset"), -EUCLEAN);
	free(super);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_bits),
		cmocka_unit_test(test_uuid),
		cmocka_unit_test(test_sync_sectors),
		cmocka_unit_test(test_location),
		cmocka_unit_test(test_choose_chunk),
		cmocka_unit_test(test_check),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
