/* SPDX-License-Identifier: MIT */
#include "md/plan.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "util/cleanup.h"

#define V090 MD_VERSION_0_90
#define V10 MD_VERSION_1_0
#define V11 MD_VERSION_1_1
#define V12 MD_VERSION_1_2
#define DEVICES_MAX 3
#define ZERO (UINT64_MAX - 1) /* in rows, where 0 stands for "not said" */
#define ELEMENTS(array) (sizeof(array) / sizeof((array)[0]))

struct wish { /* 0: not said */
	uint64_t chunk, layout, size, data_offset;
	bool layout_explicit;
};

struct placed {
	uint64_t data_offset, size;
	uint32_t chunk, layout, feature_map;
	uint16_t bblog_sectors;
	int32_t bblog_offset;
	uint64_t data_sectors[DEVICES_MAX], super_offset[DEVICES_MAX];
};

struct row {
	enum md_version version;
	int level;
	uint64_t sectors[DEVICES_MAX]; /* 0 ends */
	struct wish wish;
	struct placed placed;
};

/*
 * Read from the raw superblocks that mdadm 4.2 wrote under Linux 6.1 (user-mode-linux, sparse
 * files), one row for each array. For 0.90 data_sectors is the superblock's position.
 */
static const struct row observed[] = {
	{V12, 0, {131072, 131072}, {.chunk = 1024},
		{4096, 0, 1024, 1, 0x0, 8, 8, {126976, 126976}, {8, 8}}},
	{V12, 0, {131072, 196608}, {.chunk = 1024},
		{4096, 0, 1024, 1, 0x1000, 8, 8, {126976, 192512}, {8, 8}}},
	{V12, 0, {40960, 41088}, {.chunk = 128},
		{2048, 0, 128, 1, 0x1000, 8, 8, {38912, 39040}, {8, 8}}},
	{V12, 0, {40960, 41087}, {.chunk = 128},
		{2048, 0, 128, 1, 0x1000, 8, 8, {38912, 39039}, {8, 8}}},
	{V12, 0, {2097152, 2097152, 2097152}, {},
		{4096, 0, 1024, 1, 0x0, 8, 8, {2093056, 2093056, 2093056}, {8, 8, 8}}},
	{V12, 0, {16777216, 16777215}, {},
		{18432, 0, 1024, 1, 0x1000, 8, 8, {16758784, 16758783}, {8, 8}}},
	{V12, 0, {209715200, 209715200}, {},
		{133120, 0, 1024, 1, 0x0, 8, 8, {209582080, 209582080}, {8, 8}}},
	{V12, 0, {629145600, 629145600}, {},
		{264192, 0, 1024, 1, 0x0, 8, 8, {628881408, 628881408}, {8, 8}}},
	{V12, 0, {10737418240, 10737418241}, {},
		{264192, 0, 1024, 1, 0x0, 8, 8, {10737154048, 10737154049}, {8, 8}}},
	{V12, 0, {629145600, 2097152}, {.chunk = 1024},
		{264192, 0, 1024, 1, 0x1000, 8, 8, {628881408, 1832960}, {8, 8}}},
	{V12, 0, {131072, 629145600}, {.chunk = 1024},
		{4096, 0, 1024, 1, 0x1000, 8, 8, {126976, 629141504}, {8, 8}}},
	{V11, 0, {131072, 131072, 163840}, {.chunk = 128},
		{2048, 0, 128, 1, 0x1000, 8, 8, {129024, 129024, 161792}, {0, 0, 0}}},
	{V11, 0, {629145600, 629145600}, {.chunk = 1024},
		{264192, 0, 1024, 1, 0x0, 8, 8, {628881408, 628881408}, {0, 0}}},
	{V10, 0, {131073, 131079}, {.chunk = 128},
		{0, 0, 128, 1, 0x1000, 8, -8, {131048, 131048}, {131056, 131056}}},
	{V10, 0, {33000, 33001, 33009}, {.chunk = 8},
		{0, 0, 8, 1, 0x1000, 8, -8, {32976, 32976, 32984}, {32984, 32984, 32992}}},
	{V10, 0, {629145600, 629145601}, {.chunk = 1024},
		{0, 0, 1024, 1, 0x0, 8, -8, {629145576, 629145576}, {629145584, 629145584}}},
	{V10, 0, {131072, 163840}, {.chunk = 1024},
		{0, 0, 1024, 1, 0x1000, 8, -8, {131048, 163816}, {131056, 163824}}},
	{V12, -1, {131072, 196608}, {}, {2048, 0, 0, 0, 0x0, 8, 8, {129024, 194560}, {8, 8}}},
	{V12, -1, {131077, 196609}, {.chunk = 128},
		{2048, 0, 128, 0, 0x0, 8, 8, {129029, 194561}, {8, 8}}},
	{V11, -1, {131077, 196609}, {}, {2048, 0, 0, 0, 0x0, 8, 8, {129029, 194561}, {0, 0}}},
	{V10, -1, {131077, 196609}, {},
		{0, 0, 0, 0, 0x0, 8, -8, {131048, 196584}, {131056, 196592}}},
	{V10, -1, {629145601, 196609}, {},
		{0, 0, 0, 0, 0x0, 8, -8, {629145576, 196584}, {629145584, 196592}}},
	{V090, -1, {131077, 196609}, {},
		{0, 0, 0, 0, 0x0, 0, 0, {130944, 196480}, {130944, 196480}}},
	{V090, -1, {131077, 196609}, {.chunk = 128},
		{0, 0, 128, 0, 0x0, 0, 0, {130944, 196480}, {130944, 196480}}},
	{V090, -1, {131072, 131072}, {},
		{0, 0, 0, 0, 0x0, 0, 0, {130944, 130944}, {130944, 130944}}},
	{V090, -1, {131072, 131072}, {},
		{0, 0, 0, 0, 0x0, 0, 0, {130944, 130944}, {130944, 130944}}},
	{V12, -1, {2097152, 209715200}, {},
		{4096, 0, 0, 0, 0x0, 8, 8, {2093056, 209711104}, {8, 8}}},
	{V12, -1, {629145600, 2097152}, {},
		{264192, 0, 0, 0, 0x0, 8, 8, {628881408, 1832960}, {8, 8}}},
	{V12, -1, {2097152, 2097152}, {.chunk = 1024},
		{4096, 0, 1024, 0, 0x0, 8, 8, {2093056, 2093056}, {8, 8}}},
	{V12, 0, {131072, 131072}, {.chunk = 12},
		{2048, 0, 12, 1, 0x0, 8, 8, {129024, 129024}, {8, 8}}},
	{V12, 0, {131072, 131090}, {.chunk = 12},
		{2048, 0, 12, 1, 0x1000, 8, 8, {129024, 129042}, {8, 8}}},
	{V10, 0, {131072, 131072}, {.chunk = 24},
		{0, 0, 24, 1, 0x0, 8, -8, {131048, 131048}, {131056, 131056}}},
	{V12, 0, {32768, 32768}, {.chunk = 48},
		{2048, 0, 48, 1, 0x0, 8, 8, {30720, 30720}, {8, 8}}},
	{V12, 0, {131072, 131072}, {.chunk = 8192},
		{18432, 0, 8192, 1, 0x0, 8, 8, {112640, 112640}, {8, 8}}},
	{V12, 0, {131072, 131072}, {.chunk = 1024, .data_offset = 4096},
		{4096, 0, 1024, 1, 0x0, 8, 8, {126976, 126976}, {8, 8}}},
	{V12, 0, {131072, 131072}, {.chunk = 128, .data_offset = 16},
		{16, 0, 128, 1, 0x0, 0, 0, {131056, 131056}, {8, 8}}},
	{V12, 0, {131072, 131072}, {.chunk = 128, .data_offset = 24},
		{24, 0, 128, 1, 0x0, 8, 8, {131048, 131048}, {8, 8}}},
	{V12, 0, {131072, 131072}, {.chunk = 128, .data_offset = 32},
		{32, 0, 128, 1, 0x0, 8, 8, {131040, 131040}, {8, 8}}},
	{V11, 0, {131072, 131072}, {.chunk = 128, .data_offset = 16},
		{16, 0, 128, 1, 0x0, 8, 8, {131056, 131056}, {0, 0}}},
	{V12, 0, {131072, 131072}, {.chunk = 128, .data_offset = 2050},
		{2050, 0, 128, 1, 0x0, 8, 8, {129022, 129022}, {8, 8}}},
	{V12, 0, {16384, 16384}, {.chunk = 1024},
		{4096, 0, 1024, 1, 0x0, 8, 8, {12288, 12288}, {8, 8}}},
	{V12, 0, {8192, 8192}, {.chunk = 1024},
		{4096, 0, 1024, 1, 0x0, 8, 8, {4096, 4096}, {8, 8}}},
	{V12, 0, {6144, 6144}, {.chunk = 1024},
		{4096, 0, 1024, 1, 0x0, 8, 8, {2048, 2048}, {8, 8}}},
	{V12, 0, {5120, 5120}, {.chunk = 1024},
		{4096, 0, 1024, 1, 0x0, 8, 8, {1024, 1024}, {8, 8}}},
	{V12, 0, {4096, 4096}, {.chunk = 128}, {2048, 0, 128, 1, 0x0, 8, 8, {2048, 2048}, {8, 8}}},
	{V10, 0, {200, 200}, {.chunk = 128}, {0, 0, 128, 1, 0x0, 8, -8, {176, 176}, {184, 184}}},
	{V10, 0, {64, 64}, {.chunk = 8}, {0, 0, 8, 1, 0x0, 8, -8, {40, 40}, {48, 48}}},
	{V10, -1, {40, 40}, {}, {0, 0, 0, 0, 0x0, 8, -8, {16, 16}, {24, 24}}},
	{V12, -1, {2080, 2080}, {}, {2048, 0, 0, 0, 0x0, 8, 8, {32, 32}, {8, 8}}},
	{V090, -1, {256, 256}, {}, {0, 0, 0, 0, 0x0, 0, 0, {128, 128}, {128, 128}}},
	{V090, -1, {384, 384}, {}, {0, 0, 0, 0, 0x0, 0, 0, {256, 256}, {256, 256}}},
	{V12, 0, {131072, 131072}, {.chunk = 1024, .size = 65536},
		{4096, 65536, 1024, 1, 0x0, 8, 16, {126976, 126976}, {8, 8}}},
	{V12, 0, {131072, 196608}, {.chunk = 1024, .size = 65536},
		{4096, 65536, 1024, 1, 0x1000, 8, 16, {126976, 192512}, {8, 8}}},
	{V10, 0, {131072, 131072}, {.chunk = 1024, .size = 65536},
		{0, 65536, 1024, 1, 0x0, 8, -8, {131040, 131040}, {131056, 131056}}},
	{V12, -1, {131072, 131072}, {.size = 65536},
		{2048, 65536, 0, 0, 0x0, 8, 16, {129024, 129024}, {8, 8}}},
	{V12, 0, {131072, 131072}, {.chunk = 1024, .layout = 2},
		{4096, 0, 1024, 2, 0x0, 8, 8, {126976, 126976}, {8, 8}}},
	{V12, 0, {131072, 196608}, {.chunk = 1024, .layout = 2},
		{4096, 0, 1024, 2, 0x1000, 8, 8, {126976, 192512}, {8, 8}}},
	{V12, 0, {131072}, {.chunk = 128}, {2048, 0, 128, 1, 0x0, 8, 8, {129024}, {8}}},
	{V12, 0, {131072, 131072}, {.chunk = 1024, .data_offset = 200},
		{200, 0, 1024, 1, 0x0, 8, 8, {130872, 130872}, {8, 8}}},
	{V12, -1, {131072, 131072}, {.chunk = 1024},
		{4096, 0, 1024, 0, 0x0, 8, 8, {126976, 126976}, {8, 8}}},
	{V12, -1, {131072, 131072}, {.chunk = 12},
		{2048, 0, 12, 0, 0x0, 8, 8, {129024, 129024}, {8, 8}}},
	{V12, 0, {131072, 131073}, {.chunk = 1024, .data_offset = 1026},
		{1026, 0, 1024, 1, 0x1000, 8, 8, {130046, 130047}, {8, 8}}},
	{V12, 0, {131072, 131073}, {.chunk = 1024},
		{4096, 0, 1024, 1, 0x0, 8, 8, {126976, 126977}, {8, 8}}},
	{V12, 0, {17407, 17408}, {.chunk = 1536},
		{6144, 0, 1536, 1, 0x0, 8, 8, {11263, 11264}, {8, 8}}},
	{V12, 0, {131072, 131072}, {.chunk = 10},
		{2048, 0, 10, 1, 0x0, 8, 8, {129024, 129024}, {8, 8}}},
	{V11, 0, {131072, 131072}, {.chunk = 128, .data_offset = 8},
		{8, 0, 128, 1, 0x0, 0, 0, {131064, 131064}, {0, 0}}},
	{V12, 0, {131072, 131072}, {.chunk = 1024, .size = 66000},
		{4096, 65536, 1024, 1, 0x0, 8, 16, {126976, 126976}, {8, 8}}},
	{V12, 0, {629145600, 629145600}, {.chunk = 1024, .size = 461373440},
		{264192, 461373440, 1024, 1, 0x0, 8, 264, {628881408, 628881408}, {8, 8}}},
	{V12, 0, {629145600, 629145600}, {.chunk = 1024, .size = 41943040},
		{264192, 41943040, 1024, 1, 0x0, 8, 136, {628881408, 628881408}, {8, 8}}},
	{V10, 0, {629145600, 629145600}, {.chunk = 1024, .size = 41943040},
		{0, 41943040, 1024, 1, 0x0, 8, -8, {629145448, 629145448}, {629145584, 629145584}}},
	{V090, -1, {131072, 131072}, {.size = 65536},
		{0, 65536, 0, 0, 0x0, 0, 0, {130944, 130944}, {130944, 130944}}},
	{V10, 0, {160, 160}, {.chunk = 128}, {0, 0, 128, 1, 0x0, 8, -8, {136, 136}, {144, 144}}},
	{V12, -1, {2058, 2059}, {}, {2048, 0, 0, 0, 0x0, 8, 8, {10, 11}, {8, 8}}},
	{V12, 0, {8388608, 8388608}, {.chunk = 1024},
		{10240, 0, 1024, 1, 0x0, 8, 8, {8378368, 8378368}, {8, 8}}},
	{V12, 0, {67108864, 67108864}, {.chunk = 2048},
		{67584, 0, 2048, 1, 0x0, 8, 8, {67041280, 67041280}, {8, 8}}},
};

static uint64_t said(uint64_t wish)
{
	return wish == 0 ? MD_PLAN_DEFAULT : wish == ZERO ? 0 : wish;
}

static struct md_plan_options options_of(
	enum md_version version, int level, unsigned count, const struct wish *wish)
{
	struct md_plan_options options = {
		.version = version,
		.level = level,
		.chunk_sectors = said(wish->chunk),
		.layout = said(wish->layout),
		.size_sectors = said(wish->size),
		.data_offset = said(wish->data_offset),
		.raid_disks = count,
		.name = "7",
		.homehost = "host",
		.md_minor = 7,
		.layout_explicit = wish->layout_explicit,
		.now_seconds = 1796081516,
	};

	for (unsigned i = 0; i < 16; i++)
		options.set_uuid[i] = (uint8_t)(0xa0 + i);
	return options;
}

/* Devices /dev/d0, /dev/d1, …: the first sizes from @sectors, the rest as the last of them. */
static struct md_plan_device *devices_of(const uint64_t *sectors, unsigned given, unsigned count)
{
	struct md_plan_device *devices = calloc(count, sizeof(*devices));

	assert_non_null(devices);
	for (unsigned i = 0; i < count; i++) {
		char *path = malloc(24);

		assert_non_null(path);
		(void)snprintf(path, 24, "/dev/d%u", i);
		devices[i].path = path;
		devices[i].sectors = sectors[i < given ? i : given - 1];
		devices[i].major = 7;
		devices[i].minor = i;
		memset(devices[i].device_uuid, 0x10 + (int)(i % 100), 16);
	}
	return devices;
}

static void devices_free(struct md_plan_device *devices, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		free((char *)(uintptr_t)devices[i].path);
	free(devices);
}

static unsigned count_of(const uint64_t sectors[DEVICES_MAX])
{
	unsigned count = 0;

	while (count < DEVICES_MAX && sectors[count] != 0)
		count++;
	return count;
}

static int plan(const struct md_plan_options *options, const uint64_t *sectors, unsigned given,
	unsigned count, struct md_super *supers, struct fault *fault)
{
	struct md_plan_device *devices = devices_of(sectors, given, count);
	int result = md_plan_create(options, devices, count, supers, fault);

	devices_free(devices, count);
	return result;
}

/* What every array of versions 1.x has, whatever its size. */
static void check_common_1(const struct md_super *super, unsigned slot, unsigned count)
{
	assert_int_equal(super->events, 0);
	assert_int_equal(super->role_count, 128);
	assert_string_equal(super->name, "host:7");
	assert_int_equal(super->set_uuid[15], 0xaf);
	assert_int_equal(super->device_uuid[0], 0x10 + slot);
	assert_int_equal(super->roles[slot], slot);
	assert_int_equal(super->roles[count], MD_ROLE_SPARE);
	assert_int_equal(super->recovery_offset, 0);
	assert_int_equal(super->bblog_shift, 0);
	assert_int_equal(super->bitmap_offset, 0);
}

static void check_common_090(const struct md_super *super, unsigned slot, unsigned count)
{
	const struct md_super_090 *old = &super->v090;

	assert_int_equal(super->events, 1);
	assert_int_equal(old->minor_version, 90);
	assert_int_equal(old->md_minor, 7);
	assert_int_equal(old->state, 1);
	assert_int_equal(old->nr_disks, count);
	assert_int_equal(old->active_disks, count);
	assert_int_equal(old->working_disks, count);
	assert_int_equal(old->failed_disks + old->spare_disks, 0);
	assert_int_equal(old->cp_events, 0);
	for (unsigned i = 0; i < count; i++) {
		const struct md_super_090_disk disk = {i, 7, i, i, 6};

		assert_memory_equal(&old->disks[i], &disk, sizeof(disk));
	}
	assert_memory_equal(&old->this_disk, &old->disks[slot], sizeof(old->this_disk));
	assert_int_equal(old->disks[count].state, 0);
	/* SHA-1 of "host": bytes 86 dd 1c f4 51 42 e9 04, words f41cdd86 04e94251 as observed. */
	assert_memory_equal(super->set_uuid + 8, "\xf4\x1c\xdd\x86\x04\xe9\x42\x51", 8);
	assert_memory_equal(super->set_uuid, "\xa0\xa1\xa2\xa3\xa4\xa5\xa6\xa7", 8);
}

static void check_placed(const struct row *row, const struct md_super *super, unsigned slot)
{
	const struct placed *placed = &row->placed;

	assert_int_equal(super->version, row->version);
	assert_int_equal(super->level, row->level);
	assert_int_equal(super->data_offset, placed->data_offset);
	assert_int_equal(super->size_sectors, placed->size);
	assert_int_equal(super->chunk_sectors, placed->chunk);
	assert_int_equal(super->layout, placed->layout);
	assert_int_equal(super->feature_map, placed->feature_map);
	assert_int_equal(super->bblog_sectors, placed->bblog_sectors);
	assert_int_equal(super->bblog_offset, placed->bblog_offset);
	assert_int_equal(super->data_sectors, placed->data_sectors[slot]);
	assert_int_equal(super->super_offset, placed->super_offset[slot]);
	assert_int_equal(super->dev_number, slot);
	assert_int_equal(super->ctime, 1796081516);
	assert_int_equal(super->utime, 1796081516);
	assert_true(super->resync_offset == MD_CLEAN);
}

static void test_as_mdadm(void **state)
{
	for (size_t i = 0; i < ELEMENTS(observed); i++) {
		const struct row *row = &observed[i];
		const unsigned count = count_of(row->sectors);
		struct md_plan_options options = options_of(
			row->version, row->level, count, &row->wish);
		struct md_super supers[DEVICES_MAX];
		struct fault fault = {0};
		int result = plan(&options, row->sectors, count, count, supers, &fault);

		print_message("row %zu: %d %s\n", i, result, fault.text);
		assert_int_equal(result, 0);
		for (unsigned slot = 0; slot < count; slot++) {
			check_placed(row, &supers[slot], slot);
			assert_int_equal(supers[slot].raid_disks, count);
			if (row->version == V090)
				check_common_090(&supers[slot], slot, count);
			else
				check_common_1(&supers[slot], slot, count);
		}
	}
}

/* What the plan encodes decodes again as it was: the placement agrees with the formats. */
static void test_round_trip(void **state)
{
	for (size_t i = 0; i < ELEMENTS(observed); i++) {
		const struct row *row = &observed[i];
		const unsigned count = count_of(row->sectors);
		const struct md_format *format = md_format(row->version);
		struct md_plan_options options = options_of(
			row->version, row->level, count, &row->wish);
		struct md_super supers[DEVICES_MAX], again;
		struct fault fault = {0};
		uint8_t block[MD_SUPER_BYTES];

		assert_int_equal(plan(&options, row->sectors, count, count, supers, &fault), 0);
		for (unsigned slot = 0; slot < count; slot++) {
			int result;

			format->encode(&supers[slot], block);
			result = format->decode(block, supers[slot].super_offset,
				row->sectors[slot], &again, &fault);
			if (result < 0)
				print_message("row %zu: %s\n", i, fault.text);
			assert_int_equal(result, 0);
			assert_int_equal(md_super_role(&again), slot);
			check_placed(row, &again, slot);
			assert_memory_equal(again.set_uuid, supers[slot].set_uuid, 16);
			assert_int_equal(again.events, supers[slot].events);
			assert_int_equal(again.role_count, supers[slot].role_count);
		}
	}
}

struct refusal {
	enum md_version version;
	int level;
	unsigned raid_disks, count;
	uint64_t sectors[DEVICES_MAX]; /* the last one holds for all further devices */
	struct wish wish;
	int error;
	const char *words[3];
};

static const struct refusal refusals[] = {
	/* Chunk sizes: below 4 KiB or not whole KiB as mdadm ("invalid chunk/rounding value"). */
	{V12, 0, 2, 2, {131072}, {.chunk = ZERO}, -EINVAL, {"invalid chunk", "0 bytes", "--chunk"}},
	{V12, 0, 2, 2, {131072}, {.chunk = 2}, -EINVAL, {"invalid chunk", "1024 bytes"}},
	{V12, 0, 2, 2, {131072}, {.chunk = 6}, -EINVAL, {"invalid chunk", "4 KiB"}},
	{V12, 0, 2, 2, {131072}, {.chunk = 9}, -EINVAL, {"invalid chunk", "4608 bytes"}},
	{V12, -1, 2, 2, {131072}, {.chunk = ZERO}, -EINVAL, {"invalid chunk/rounding"}},
	{V12, 0, 2, 2, {131072}, {.chunk = 1 << 23}, -EINVAL, {"too large", "4 GiB"}},
	{V12, 0, 2, 2, {131072}, {.chunk = UINT64_MAX - 3}, -EINVAL, {"too large"}},
	/* Chunk larger than a member; mdadm: "no free space left" or "too small". */
	{V12, 0, 2, 2, {131072}, {.chunk = 65536}, -ERANGE,
		{"/dev/d0", "too small", "a smaller --chunk"}},
	{V10, 0, 2, 2, {131072}, {.chunk = 262144}, -ERANGE,
		{"/dev/d0", "one chunk of 131072 KiB is larger", "--chunk"}},
	{V10, 0, 2, 2, {524288, 131072}, {.chunk = 262144}, -ERANGE,
		{"/dev/d1", "one chunk of 131072 KiB is larger"}},
	{V090, 0, 2, 2, {131072}, {.chunk = 262144}, -ERANGE, {"/dev/d0", "one chunk"}},
	{V12, 0, 2, 2, {4096}, {.chunk = 1024}, -ERANGE, {"/dev/d0", "too small"}},
	{V10, 0, 2, 2, {159}, {.chunk = 128}, -ERANGE, {"/dev/d0", "one chunk of 64 KiB"}},
	/* Devices too small. */
	{V12, 0, 2, 2, {2048}, {.chunk = 128}, -ERANGE, {"/dev/d0", "too small", "larger device"}},
	{V12, 0, 2, 2, {629145600, 65536}, {.chunk = 1024}, -ERANGE, {"/dev/d1", "too small"}},
	{V12, -1, 2, 2, {2048}, {0}, -ERANGE, {"/dev/d0", "too small"}},
	{V12, -1, 2, 2, {2057}, {0}, -ERANGE, {"/dev/d0", "too small"}},
	{V12, -1, 2, 2, {2058, 0}, {.data_offset = 2049}, -ERANGE, {"/dev/d0", "too small"}},
	{V10, -1, 2, 2, {33}, {0}, -ERANGE, {"/dev/d0", "too small"}},
	{V10, -1, 2, 2, {8}, {0}, -ERANGE, {"/dev/d0", "too small"}},
	{V11, -1, 2, 2, {8}, {0}, -ERANGE, {"/dev/d0", "too small"}},
	{V090, -1, 2, 2, {255}, {0}, -ERANGE, {"/dev/d0", "too small", "0.90"}},
	{V090, -1, 2, 2, {100}, {0}, -ERANGE, {"/dev/d0", "too small"}},
	/* Data offsets. */
	{V12, 0, 2, 2, {131072}, {.data_offset = 131072}, -ERANGE,
		{"/dev/d0", "beyond the device", "--data-offset"}},
	{V12, 0, 2, 2, {262144, 131072}, {.data_offset = 133120}, -ERANGE,
		{"/dev/d1", "beyond the device"}},
	{V10, 0, 2, 2, {131072}, {.data_offset = 131072}, -ERANGE, {"beyond the device"}},
	{V12, 0, 2, 2, {131072}, {.data_offset = UINT64_MAX - 2}, -ERANGE, {"beyond the device"}},
	{V12, 0, 2, 2, {131072}, {.data_offset = 8}, -EINVAL, {"superblock", "sector 16"}},
	{V12, 0, 2, 2, {131072}, {.data_offset = ZERO}, -EINVAL, {"superblock"}},
	{V11, 0, 2, 2, {131072}, {.data_offset = 7}, -EINVAL, {"superblock", "sector 8"}},
	{V090, -1, 2, 2, {131072}, {.data_offset = 2048}, -EINVAL, {"0.90", "no data offset"}},
	/* Members. */
	{V090, -1, 28, 28, {512}, {0}, -EINVAL, {"0.90", "at most 27 devices", "--metadata=1.2"}},
	{V12, 0, 1921, 1921, {131072}, {0}, -EINVAL, {"1.2", "at most 1920 devices"}},
	{V12, 0, 3, 2, {131072}, {0}, -EINVAL, {"3 members", "2 devices", "--raid-devices"}},
	{V12, 0, 2, 3, {131072}, {0}, -EINVAL, {"2 members", "3 devices", "--raid-devices"}},
	{V12, 0, 0, 0, {131072}, {0}, -EINVAL, {"at least one member"}},
	/* Sizes. */
	{V12, 0, 2, 2, {131072}, {.size = 143360}, -ERANGE,
		{"/dev/d0", "smaller than given size", "63488 KiB"}},
	{V12, 0, 2, 2, {131072}, {.size = 1022}, -EINVAL, {"less than one chunk", "--size"}},
	{V090, 0, 2, 2, {10737418240}, {0}, -ERANGE, {"/dev/d0", "4 TiB", "--metadata=1.2"}},
	{V090, -1, 2, 2, {131072, 8589934720}, {0}, -ERANGE, {"/dev/d1", "too large"}},
	/* Layouts: 0.90 cannot record one; "dangerous" records none. */
	{V090, 0, 2, 2, {131072, 196608}, {.chunk = 1024}, -EINVAL,
		{"/dev/d0: 127 chunks, /dev/d1: 191 chunks", "0.90", "--layout=original"}},
	{V12, 0, 2, 2, {131072, 196608}, {.layout = ZERO}, -EINVAL,
		{"unequal", "dangerous", "--layout=original"}},
	{V12, 0, 2, 2, {131072}, {.layout = 3}, -EINVAL, {"layout 3 not understood"}},
	{V12, -1, 2, 2, {131072}, {.layout = 1}, -EINVAL, {"linear", "--layout"}},
	/* Levels without redundancy. */
	{V12, 2, 2, 2, {131072}, {0}, -EOPNOTSUPP, {"cannot be created", "--level"}},
};

static void test_refusals(void **state)
{
	for (size_t i = 0; i < ELEMENTS(refusals); i++) {
		const struct refusal *row = &refusals[i];
		struct md_plan_options options = options_of(
			row->version, row->level, row->raid_disks, &row->wish);
		_cleanup_free_ struct md_super *supers = calloc(row->count + 1, sizeof(*supers));
		struct fault fault = {0};
		unsigned given = count_of(row->sectors);
		int result;

		assert_non_null(supers);
		result = plan(&options, row->sectors, given, row->count, supers, &fault);
		print_message("refusal %zu: %d %s\n", i, result, fault.text);
		assert_int_equal(result, row->error);
		assert_int_equal(fault.error, row->error);
		for (size_t w = 0; w < ELEMENTS(row->words) && row->words[w] != NULL; w++)
			assert_non_null(strstr(fault.text, row->words[w]));
	}
}

/* RAID 0 in 0.90, which mdadm 4.2 refuses always: fine where nothing depends on the layout. */
static void test_raid0_090(void **state)
{
	const uint64_t equal[] = {131072, 131199}, unequal[] = {131072, 196608};
	const struct wish chunk = {.chunk = 128},
			  insist = {.chunk = 128, .layout = 2, .layout_explicit = true};
	struct md_plan_options options = options_of(V090, 0, 2, &chunk);
	struct md_super supers[2];
	struct fault fault = {0};

	assert_int_equal(plan(&options, equal, 2, 2, supers, &fault), 0);
	assert_int_equal(supers[1].layout, 0);
	assert_int_equal(supers[1].data_sectors, 130944);
	options = options_of(V090, 0, 2, &insist);
	assert_int_equal(plan(&options, unequal, 2, 2, supers, &fault), 0);
	assert_int_equal(supers[0].layout, 2);
	assert_int_equal(supers[0].feature_map, 0);
}

/* Where mdadm writes what cannot be used again (see plan.c). */
static void test_better_than_mdadm(void **state)
{
	const uint64_t even[] = {131072, 131072}, chunks_15_16[] = {131095, 131096};
	const struct wish offset = {.chunk = 128, .data_offset = 2048}, big = {.chunk = 8192};
	struct md_plan_options options = options_of(V10, 0, 2, &offset);
	struct md_super supers[2];
	struct fault fault = {0};

	assert_int_equal(plan(&options, even, 2, 2, supers, &fault), 0);
	assert_int_equal(supers[0].data_offset, 2048);
	assert_int_equal(supers[0].data_sectors, 131048 - 2048);
	options = options_of(V10, 0, 2, &big);
	assert_int_equal(plan(&options, chunks_15_16, 2, 2, supers, &fault), 0);
	assert_int_equal(supers[0].data_sectors, 131064);
	assert_int_equal(supers[1].data_sectors, 131072);
	assert_int_equal(supers[0].feature_map, MD_FEATURE_RAID0_LAYOUT);
}

static void test_limits(void **state)
{
	static const struct {
		enum md_version version;
		unsigned count, role_count;
	} rows[] = {{V12, 1, 128}, {V12, 128, 128}, {V12, 129, 384}, {V12, 130, 384},
		{V12, 1920, 1920}, {V10, 1920, 1920}, {V090, 27, 27}};
	const uint64_t sectors = 16384;
	const struct wish wish = {.chunk = 128};

	for (size_t i = 0; i < ELEMENTS(rows); i++) {
		struct md_plan_options options = options_of(
			rows[i].version, 0, rows[i].count, &wish);
		_cleanup_free_ struct md_super *supers = calloc(rows[i].count, sizeof(*supers));
		const struct md_super *last = supers + rows[i].count - 1;
		struct fault fault = {0};

		assert_non_null(supers);
		assert_int_equal(plan(&options, &sectors, 1, rows[i].count, supers, &fault), 0);
		assert_int_equal(last->role_count, rows[i].role_count);
		assert_int_equal(md_super_role(last), rows[i].count - 1);
	}
}

/* Names and UUIDs (specification 1.7, 2.4); the first three as mdadm wrote them. */
static void test_identity(void **state)
{
	static const struct {
		const char *homehost, *name, *stored;
	} rows[] = {
		{"averyveryverylonghostname", "longarrayname", "longarrayname"},
		{"host", "other:data", "other:data"},
		{"host", "data", "host:data"},
		{NULL, "data", "data"},
	};
	const uint64_t sectors = 131072;
	struct md_plan_options options;
	struct md_super super;
	struct fault fault = {0};

	for (size_t i = 0; i < ELEMENTS(rows); i++) {
		options = options_of(V12, 0, 1, &(struct wish){0});
		options.homehost = rows[i].homehost;
		options.name = rows[i].name;
		options.now_microseconds = 5;
		assert_int_equal(plan(&options, &sectors, 1, 1, &super, &fault), 0);
		assert_string_equal(super.name, rows[i].stored);
		assert_int_equal(super.ctime >> 40, 5);
	}
	options = options_of(V090, -1, 1, &(struct wish){0});
	options.uuid_given = true;
	options.now_microseconds = 5;
	assert_int_equal(plan(&options, &sectors, 1, 1, &super, &fault), 0);
	assert_memory_equal(super.set_uuid, options.set_uuid, 16);
	assert_int_equal(super.ctime, 1796081516);
	options.uuid_given = false;
	options.homehost = NULL;
	assert_int_equal(plan(&options, &sectors, 1, 1, &super, &fault), 0);
	assert_memory_equal(super.set_uuid, options.set_uuid, 16);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_as_mdadm),
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_raid0_090),
		cmocka_unit_test(test_better_than_mdadm),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_identity),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
