/* SPDX-License-Identifier: MIT */
/*
 * The plan of arrays with redundancy, where there is no image of mdadm's to compare with
 * (plan_golden_test.c does that): refusals, blank members, and devices that are added.
 */
#include "md/plan.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "util/cleanup.h"

#define V090 MD_VERSION_0_90
#define V10 MD_VERSION_1_0
#define V11 MD_VERSION_1_1
#define V12 MD_VERSION_1_2
#define DEVICES_MAX 130
#define SECTORS 131072
#define ZERO (UINT64_MAX - 1) /* in rows, where 0 stands for "not said" */
#define ELEMENTS(array) (sizeof(array) / sizeof((array)[0]))

static uint64_t said(uint64_t wish)
{
	return wish == 0 ? MD_PLAN_DEFAULT : wish == ZERO ? 0 : wish;
}

/* Sizes of 0 in @options are defaults. */
static struct md_plan_options complete(struct md_plan_options options)
{
	options.chunk_sectors = said(options.chunk_sectors);
	options.layout = said(options.layout);
	options.size_sectors = said(options.size_sectors);
	options.data_offset = said(options.data_offset);
	options.name = "7";
	options.now_seconds = 1796081516;
	memset(options.set_uuid, 0xa5, 16);
	return options;
}

/* Plan with devices of @sectors each; the bits of @missing are slots without one. */
static int plan_sized(const struct md_plan_options *wish, uint64_t sectors, unsigned missing,
	struct md_super *supers, struct fault *fault)
{
	static const char *const path = "/dev/d";
	struct md_plan_options options = complete(*wish);
	struct md_plan_device devices[DEVICES_MAX] = {0};
	const unsigned count = options.raid_disks + options.spare_disks;

	assert_true(count <= DEVICES_MAX);
	for (unsigned i = 0; i < count; i++) {
		devices[i].path = i < 32 && (missing >> i & 1) != 0 ? NULL : path;
		devices[i].sectors = sectors;
		devices[i].write_mostly = i == count - 1;
		memset(devices[i].device_uuid, 0x10 + (int)i, 16);
	}
	return md_plan_create(&options, devices, count, supers, fault);
}

static int plan(const struct md_plan_options *wish, unsigned missing, struct md_super *supers)
{
	struct fault fault = {0};
	int r = plan_sized(wish, SECTORS, missing, supers, &fault);

	if (r < 0)
		print_message("%s\n", fault.text);
	return r;
}

struct refusal {
	struct md_plan_options wish;
	unsigned missing;
	int error;
	const char *words[2];
};

static const struct refusal refusals[] = {
	{{.level = 4, .raid_disks = 1}, 0, -EINVAL, {"at least 2", "raid4"}},
	{{.level = 5, .raid_disks = 1}, 0, -EINVAL, {"at least 2", "raid5"}},
	{{.level = 6, .raid_disks = 3}, 0, -EINVAL, {"at least 4", "raid6"}},
	{{.level = 10, .raid_disks = 1}, 0, -EINVAL, {"at least 2", "raid10"}},
	{{.level = 0, .raid_disks = 2, .spare_disks = 1}, 0, -EINVAL, {"spare", "raid0"}},
	{{.level = 0, .raid_disks = 2}, 1, -EINVAL, {"missing", "raid0"}},
	{{.level = -1, .raid_disks = 2}, 2, -EINVAL, {"missing", "linear"}},
	{{.level = 1, .raid_disks = 2}, 3, -EINVAL, {"all members are missing"}},
	{{.level = 1, .raid_disks = 2, .spare_disks = 1}, 4, -EINVAL, {"spare cannot be missing"}},
	{{.level = 1, .raid_disks = 2, .chunk_sectors = 128}, 0, -EINVAL, {"chunk", "raid1"}},
	{{.level = 5, .raid_disks = 3, .chunk_sectors = 24}, 0, -EINVAL, {"not a power of two"}},
	{{.level = 10, .raid_disks = 3, .chunk_sectors = 24}, 0, -EINVAL, {"not a power of two"}},
	{{.level = 6, .raid_disks = 4, .chunk_sectors = 4}, 0, -EINVAL, {"invalid chunk"}},
	{{.level = 5, .raid_disks = 3, .chunk_sectors = 65536}, 0, -ERANGE, {"too small"}},
	{{.level = 5, .raid_disks = 3, .size_sectors = 600}, 0, -EINVAL, {"one chunk"}},
	{{.level = 1, .raid_disks = 2, .size_sectors = SECTORS}, 0, -ERANGE,
		{"smaller than given"}},
	{{.level = 1, .raid_disks = 2, .layout = 1}, 0, -EINVAL, {"no layouts", "raid1"}},
	{{.level = 4, .raid_disks = 3, .layout = 5}, 0, -EINVAL, {"no layouts", "raid4"}},
	{{.level = 5, .raid_disks = 3, .layout = 6}, 0, -EINVAL, {"layout 6", "raid5"}},
	{{.level = 6, .raid_disks = 4, .layout = 7}, 0, -EINVAL, {"layout 7", "raid6"}},
	{{.level = 6, .raid_disks = 4, .layout = 11}, 0, -EINVAL, {"layout 11"}},
	{{.level = 6, .raid_disks = 4, .layout = 21}, 0, -EINVAL, {"layout 21"}},
	{{.level = 10, .raid_disks = 3, .layout = 0x104}, 0, -EINVAL, {"at least 4 devices"}},
	{{.level = 10, .raid_disks = 3, .layout = 0x401}, 0, -EINVAL, {"at least 4 devices"}},
	{{.level = 10, .raid_disks = 3, .layout = 0x101}, 0, -EINVAL, {"not understood"}},
	{{.level = 10, .raid_disks = 4, .layout = 0x202}, 0, -EINVAL, {"not understood"}},
	{{.level = 10, .raid_disks = 4, .layout = 0x10102}, 0, -EINVAL, {"not understood"}},
	{{.level = 10, .raid_disks = 4, .layout = ZERO}, 0, -EINVAL, {"not understood"}},
	{{.level = 10, .raid_disks = 4, .layout = 0x40201}, 0, -EINVAL, {"not understood"}},
	{{.level = 10, .raid_disks = 4, .layout = UINT64_MAX - 9}, 0, -EINVAL, {"not understood"}},
	{{.version = V090, .level = 1, .raid_disks = 25, .spare_disks = 3}, 0, -EINVAL,
		{"0.90", "at most 27"}},
	/* Bitmaps. */
	{{.level = 0, .raid_disks = 2, .bitmap = MD_PLAN_BITMAP_INTERNAL}, 0, -EINVAL,
		{"bitmaps not meaningful", "raid0"}},
	{{.level = 1,
		 .raid_disks = 2,
		 .bitmap = MD_PLAN_BITMAP_INTERNAL,
		 .bitmap_chunk_bytes = 2048},
		0, -ERANGE, {"too small", "--bitmap-chunk"}},
	{{.level = 1,
		 .raid_disks = 2,
		 .bitmap = MD_PLAN_BITMAP_INTERNAL,
		 .bitmap_chunk_bytes = 12288},
		0, -EINVAL, {"power of two"}},
	{{.level = 1,
		 .raid_disks = 2,
		 .bitmap = MD_PLAN_BITMAP_INTERNAL,
		 .consistency = MD_CONSISTENCY_RESYNC},
		0, -EINVAL, {"contradict"}},
	{{.level = 1,
		 .raid_disks = 2,
		 .bitmap = MD_PLAN_BITMAP_NONE,
		 .consistency = MD_CONSISTENCY_BITMAP},
		0, -EINVAL, {"contradict"}},
	{{.level = 1, .raid_disks = 2, .consistency = MD_CONSISTENCY_NONE}, 0, -EINVAL, {"none"}},
	{{.level = 5, .raid_disks = 3, .consistency = MD_CONSISTENCY_PPL}, 0, -EOPNOTSUPP,
		{"not yet supported", "ppl"}},
	{{.level = 5, .raid_disks = 3, .consistency = MD_CONSISTENCY_JOURNAL}, 0, -EOPNOTSUPP,
		{"not yet supported", "journal"}},
	{{.level = 1, .raid_disks = 2, .write_behind = 8, .bitmap = MD_PLAN_BITMAP_NONE}, 0,
		-EINVAL, {"requires a bitmap"}},
	{{.level = 5, .raid_disks = 3, .write_behind = 8}, 0, -EINVAL, {"raid1 only"}},
	{{.level = 1, .raid_disks = 2, .write_behind = 16384}, 0, -ERANGE, {"too large"}},
	/* mdadm would write this bitmap over its own superblock's end and the data. */
	{{.version = V12,
		 .level = 1,
		 .raid_disks = 2,
		 .bitmap = MD_PLAN_BITMAP_INTERNAL,
		 .data_offset = 16},
		0, -ENOSPC, {"no room for a bitmap", "--data-offset"}},
};

static void test_refusals(void **state)
{
	struct md_super *supers = calloc(DEVICES_MAX, sizeof(*supers));

	assert_non_null(supers);
	for (size_t i = 0; i < ELEMENTS(refusals); i++) {
		const struct refusal *row = &refusals[i];
		struct md_plan_options wish = row->wish;
		struct fault fault = {0};
		int r;

		if (wish.version == V090 && wish.raid_disks < 20)
			wish.version = V12; /* not said */
		r = plan_sized(&wish, SECTORS, row->missing, supers, &fault);
		print_message("refusal %zu: %d %s\n", i, r, fault.text);
		assert_int_equal(r, row->error);
		assert_int_equal(fault.error, row->error);
		for (size_t w = 0; w < ELEMENTS(row->words) && row->words[w] != NULL; w++)
			assert_non_null(strstr(fault.text, row->words[w]));
	}
	free(supers);
}

/* Zeros are consistent at every level: nothing is moved, nothing to resync, no bit set. */
static void test_blank(void **state)
{
	static const struct {
		int level;
		unsigned disks, missing;
	} rows[] = {{1, 2, 0}, {1, 2, 1}, {4, 3, 0}, {5, 3, 0}, {5, 3, 4}, {6, 4, 0}, {6, 4, 1},
		{10, 4, 0}};
	struct md_super *supers = calloc(DEVICES_MAX, sizeof(*supers));
	uint8_t *area = malloc(MD_PLAN_BITMAP_BYTES_MAX);

	assert_non_null(supers);
	assert_non_null(area);
	for (unsigned i = 0; i < ELEMENTS(rows) * MD_VERSIONS; i++) {
		const unsigned missing = rows[i / 4].missing, disks = rows[i / 4].disks;
		const struct md_plan_options wish = {
			.version = (enum md_version)(i % 4),
			.level = rows[i / 4].level,
			.raid_disks = disks,
			.blank = true,
			.bitmap = MD_PLAN_BITMAP_INTERNAL,
		};
		const struct md_super *super = &supers[disks - (missing >> (disks - 1)) - 1];
		struct md_bitmap bitmap;

		assert_int_equal(plan(&wish, missing, supers), 0);
		assert_true(super->resync_offset == MD_CLEAN);
		for (unsigned slot = 0; slot < disks; slot++)
			assert_int_equal(super->roles[slot],
				(missing >> slot & 1) != 0 ? MD_ROLE_SPARE : slot);
		assert_true(md_plan_bitmap(&wish, super, &bitmap, area) >= 4096);
		assert_int_equal(md_bitmap_check(&bitmap, super, NULL), 0);
		assert_int_equal(md_bitmap_dirty(&bitmap, area + MD_BITMAP_HEADER_BYTES), 0);
	}
	free(area);
	free(supers);
}

/* A spare stays a spare with --write-mostly, and 0.90 keeps the flag: not so in mdadm 4.2. */
static void test_flags(void **state)
{
	struct md_plan_options wish = {
		.version = V12, .level = 1, .raid_disks = 2, .spare_disks = 1};
	struct md_super *supers = calloc(DEVICES_MAX, sizeof(*supers));

	assert_non_null(supers);
	assert_int_equal(plan(&wish, 0, supers), 0);
	assert_int_equal(md_super_role(&supers[2]), MD_ROLE_SPARE);
	assert_int_equal(supers[2].devflags, MD_DEVFLAG_WRITE_MOSTLY);
	assert_int_equal(supers[1].devflags, 0);
	wish.version = V090;
	assert_int_equal(plan(&wish, 0, supers), 0);
	assert_int_equal(supers[0].v090.disks[2].state, 0x200);
	assert_int_equal(supers[0].v090.disks[1].state, 0x6);
	assert_int_equal(supers[2].v090.this_disk.state, 0x200);
	free(supers);
}

/* The device to be rebuilt needs a number of its own. Where there is none, it stays in its slot. */
static void test_numbers(void **state)
{
	struct md_plan_options wish = {.version = V12, .level = 5, .raid_disks = 128};
	struct md_super *supers = calloc(DEVICES_MAX, sizeof(*supers));

	assert_non_null(supers);
	assert_int_equal(plan(&wish, 0, supers), 0);
	assert_int_equal(supers[127].dev_number, 128);
	assert_int_equal(supers[0].role_count, 384);
	assert_int_equal(supers[0].roles[127], MD_ROLE_SPARE);
	wish = (struct md_plan_options){.version = V090, .level = 5, .raid_disks = 26};
	assert_int_equal(plan(&wish, 0, supers), 0);
	assert_int_equal(supers[25].dev_number, 26);
	wish.raid_disks = 27;
	assert_int_equal(plan(&wish, 0, supers), 0);
	assert_int_equal(supers[26].dev_number, 26);
	assert_int_equal(md_super_role(&supers[26]), 26);
	assert_int_equal(supers[26].resync_offset, 0);
	free(supers);
}

/* A mirror of less than 64 KiB keeps what it has, instead of nothing. */
static void test_small_mirror(void **state)
{
	const struct md_plan_options wish = {.version = V10, .level = 1, .raid_disks = 2};
	struct md_super *supers = calloc(DEVICES_MAX, sizeof(*supers));
	struct fault fault = {0};

	assert_non_null(supers);
	assert_int_equal(plan_sized(&wish, 64, 0, supers, &fault), 0);
	assert_int_equal(supers[0].size_sectors, 40);
	free(supers);
}

static void add_round_trip(const struct md_super *array, struct md_super *added, uint64_t sectors)
{
	const struct md_format *format = md_format(added->version);
	uint8_t block[MD_SUPER_BYTES];
	struct md_super *again = calloc(1, sizeof(*again));
	uint64_t at, room;
	struct fault fault = {0};

	assert_non_null(again);
	format->encode(added, block);
	if (format->decode(block, added->super_offset, sectors, again, &fault) < 0)
		fail_msg("%s", fault.text);
	assert_int_equal(md_super_role(again), MD_ROLE_SPARE);
	assert_int_equal(again->dev_number, 5);
	assert_int_equal(again->events, array->events);
	assert_int_equal(again->size_sectors, array->size_sectors);
	assert_int_equal(again->data_offset, array->data_offset);
	assert_true(again->data_sectors >= again->size_sectors);
	assert_int_equal(again->recovery_offset, 0);
	if ((array->feature_map & MD_FEATURE_BITMAP) != 0)
		assert_int_equal(md_bitmap_location(again, &at, &room, &fault), 0);
	assert_int_equal(again->feature_map, array->feature_map & MD_FEATURE_BITMAP);
	free(again);
}

/* The smallest device that may join, found by trying: one sector less is refused. */
static void test_add_smallest(void **state)
{
	struct md_super *supers = calloc(DEVICES_MAX, sizeof(*supers));

	assert_non_null(supers);
	for (unsigned i = 0; i < 2 * MD_VERSIONS; i++) {
		const struct md_plan_options wish = {
			.version = (enum md_version)(i % 4),
			.level = 5,
			.raid_disks = 3,
			.bitmap = i < 4 ? MD_PLAN_BITMAP_NONE : MD_PLAN_BITMAP_INTERNAL,
		};
		struct md_plan_device device = {.path = "/dev/new"};
		struct md_super *array = &supers[0], *added = &supers[8];
		struct fault fault = {0};
		uint64_t sectors = SECTORS;

		assert_int_equal(plan(&wish, 0, supers), 0);
		array->events = 77;
		array->recovery_offset = 9;
		array->feature_map |= wish.version == V090 ? 0 : MD_FEATURE_RECOVERY_OFFSET;
		for (;; sectors--) {
			device.sectors = sectors;
			if (md_plan_add(array, &device, 5, added, &fault) < 0)
				break;
			add_round_trip(array, added, sectors);
		}
		assert_int_equal(fault.error, -ENOSPC);
		assert_non_null(strstr(fault.text, "/dev/new is not large enough"));
		assert_true(sectors > array->data_offset + array->size_sectors - 1024);
		assert_true(sectors < SECTORS);
	}
	free(supers);
}

static void test_add(void **state)
{
	const struct md_plan_options wish = {.version = V12, .level = 1, .raid_disks = 2};
	struct md_super *supers = calloc(4, sizeof(*supers));
	const struct md_plan_device device = {
		.path = "/dev/new", .sectors = 2 * SECTORS, .device_uuid = {7}, .failfast = true};
	struct fault fault = {0};

	assert_non_null(supers);
	assert_int_equal(plan(&wish, 0, supers), 0);
	assert_int_equal(md_plan_add(&supers[0], &device, 2, &supers[2], &fault), 0);
	assert_int_equal(supers[2].data_sectors, 2 * SECTORS - supers[0].data_offset);
	assert_int_equal(supers[2].device_uuid[0], 7);
	assert_int_equal(supers[2].devflags, MD_DEVFLAG_FAILFAST);
	assert_int_equal(supers[2].bblog_offset, supers[0].bblog_offset);
	assert_int_equal(supers[2].roles[1], 1);
	assert_int_equal(md_plan_add(&supers[0], &device, 1000, &supers[2], &fault), 0);
	assert_int_equal(supers[2].role_count, 1001);
	assert_int_equal(supers[2].roles[999], MD_ROLE_SPARE);
	assert_int_equal(md_plan_add(&supers[0], &device, 1920, &supers[2], &fault), -ERANGE);
	supers[0].feature_map |= MD_FEATURE_RESHAPE;
	assert_int_equal(md_plan_add(&supers[0], &device, 2, &supers[2], &fault), -EBUSY);
	supers[0].level = 0;
	assert_int_equal(md_plan_add(&supers[0], &device, 2, &supers[2], &fault), -EOPNOTSUPP);
	free(supers);
}

static void test_consistency(void **state)
{
	struct md_super *super = calloc(1, sizeof(*super));
	enum md_consistency policy;

	assert_non_null(super);
	assert_string_equal(md_consistency_name(md_consistency_of(super)), "none");
	super->level = 5;
	assert_string_equal(md_consistency_name(md_consistency_of(super)), "resync");
	super->feature_map = MD_FEATURE_BITMAP;
	assert_string_equal(md_consistency_name(md_consistency_of(super)), "bitmap");
	super->feature_map = MD_FEATURE_MULTIPLE_PPL;
	assert_string_equal(md_consistency_name(md_consistency_of(super)), "ppl");
	super->feature_map = MD_FEATURE_JOURNAL;
	assert_string_equal(md_consistency_name(md_consistency_of(super)), "journal");
	assert_int_equal(md_consistency_parse("bitmap", &policy), 0);
	assert_int_equal(policy, MD_CONSISTENCY_BITMAP);
	assert_int_equal(md_consistency_parse("unknown", &policy), -EINVAL);
	free(super);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_blank),
		cmocka_unit_test(test_flags),
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_small_mirror),
		cmocka_unit_test(test_add_smallest),
		cmocka_unit_test(test_add),
		cmocka_unit_test(test_consistency),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
