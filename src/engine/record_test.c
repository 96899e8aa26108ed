/* SPDX-License-Identifier: MIT */
/*
 * What superblocks and bitmap on the members say, in the order of specification 8.3, for all four
 * formats: first write, idle, a member that fails, is removed, a spare that is added and rebuilt, a
 * clean stop; and when nothing may be written at all.
 */
#include "engine/badblocks.h"
#include "engine/record.h"
#include "engine/record_rig.h"

static const struct rig_options formats[] = {
	{MD_VERSION_0_90, 1, 2, 0, 3, 0, 512, 1, false},
	{MD_VERSION_1_0, 1, 2, 0, 3, 0, 512, 2, false},
	{MD_VERSION_1_1, 1, 2, 0, 3, 0, 4096, 3, false},
	{MD_VERSION_1_2, 1, 2, 0, 3, 0, 512, 4, false},
	{MD_VERSION_0_90, 1, 2, 0, 3, 64 * K, 512, 5, false},
	{MD_VERSION_1_0, 1, 2, 0, 3, 4 * K, 512, 6, false},
	{MD_VERSION_1_1, 1, 2, 0, 3, 512, 512, 7, false},
	{MD_VERSION_1_2, 1, 2, 0, 3, 4 * K, 4096, 8, false},
};
#define FORMATS (sizeof(formats) / sizeof(formats[0]))

static uint64_t writes_of(struct rig *rig, unsigned disk)
{
	return sim_disk_counters(rig->sim, disk)->writes;
}

static struct md_super super_of(struct rig *rig, unsigned disk)
{
	static struct md_super super;

	assert_true(rig_read_super(rig, disk, &super));
	return super;
}

static void check_super(struct rig *rig, unsigned disk, uint64_t events, uint64_t resync_offset)
{
	static struct md_super super;

	super = super_of(rig, disk);
	assert_int_equal(super.events, events);
	assert_true(super.resync_offset == resync_offset);
	assert_true(super.utime >= 1700000000);
	assert_int_equal(super.raid_disks, rig->options.slots);
}

static unsigned bitmap_bit(struct rig *rig, unsigned disk, uint64_t bit)
{
	static struct md_super super;
	uint8_t area[BITMAP_SECTORS * MD_SECTOR];
	struct md_bitmap bitmap;
	uint64_t sector, room;

	super = super_of(rig, disk);
	assert_int_equal(md_bitmap_location(&super, &sector, &room, NULL), 0);
	sim_disk_peek(rig->sim, disk, sector * MD_SECTOR, area, sizeof(area));
	assert_int_equal(md_bitmap_decode(area, &bitmap, NULL), 0);
	assert_true(bitmap.events >= super.events);
	return md_bitmap_get(&bitmap, area + MD_BITMAP_HEADER_BYTES, bit);
}

static struct md_bitmap header_of(struct rig *rig, unsigned disk)
{
	static struct md_super super;
	uint8_t block[MD_BITMAP_HEADER_BYTES];
	struct md_bitmap bitmap;
	uint64_t sector, room;

	super = super_of(rig, disk);
	assert_int_equal(md_bitmap_location(&super, &sector, &room, NULL), 0);
	sim_disk_peek(rig->sim, disk, sector * MD_SECTOR, block, sizeof(block));
	assert_int_equal(md_bitmap_decode(block, &bitmap, NULL), 0);
	return bitmap;
}

/*
 * Write to @offset. Before any of @disks (a mask) has a byte of that, all of them say that the
 * array is active, and have the bit.
 */
static void write_watched(struct rig *rig, uint64_t offset, unsigned disks)
{
	const uint64_t at = rig_data_sector(rig) * MD_SECTOR + offset;
	const uint64_t chunk = rig->options.bitmap_chunk;
	static uint8_t data[4 * K];
	struct rig_call call;
	unsigned seen = 0;

	memset(data, 0x5a, sizeof(data));
	rig_submit(rig, &call, ENGINE_WRITE, offset, sizeof(data), data, 0);
	while (!call.done) {
		uint8_t there[2];

		assert_true(sim_step(rig->sim));
		for (unsigned disk = 0; disk < 3; disk++) {
			sim_disk_peek(rig->sim, disk, at, there, 2);
			if ((disks >> disk & 1) == 0 || there[0] != 0x5a)
				continue;
			seen++;
			for (unsigned other = 0; other < 3; other++) {
				if ((disks >> other & 1) == 0)
					continue;
				assert_true(super_of(rig, other).resync_offset == 0);
				if (chunk != 0)
					assert_true(bitmap_bit(rig, other, offset / chunk));
			}
		}
	}
	assert_int_equal(call.result, 0);
	assert_true(seen > 0);
}

/* Alternates between N and N + 1 (1.6), with a bitmap that is one event ahead at most. */
static void check_alternation(struct rig *rig)
{
	for (unsigned round = 0; round < 3; round++) {
		write_watched(rig, round * 128 * K, 3);
		check_super(rig, 0, FIRST_EVENTS + 1, 0);
		check_super(rig, 1, FIRST_EVENTS + 1, 0);
		if (rig_has_bitmap(rig))
			assert_int_equal(header_of(rig, 0).events, FIRST_EVENTS + 1);
		rig_sleep(rig, 150 * MS);
		check_super(rig, 0, FIRST_EVENTS + 1, 0);
		rig_sleep(rig, 150 * MS);
		check_super(rig, 0, FIRST_EVENTS, MD_CLEAN);
		check_super(rig, 1, FIRST_EVENTS, MD_CLEAN);
		if (rig_has_bitmap(rig))
			assert_int_equal(header_of(rig, 1).events, FIRST_EVENTS);
	}
}

static void check_roles(struct rig *rig, unsigned disk, unsigned number, unsigned role)
{
	static struct md_super super;

	super = super_of(rig, disk);
	assert_int_equal(super.roles[number], role);
}

static void check_failure(struct rig *rig)
{
	static struct md_super failed;
	uint64_t writes = writes_of(rig, 1);

	failed = super_of(rig, 1);
	assert_int_equal(rig_command(rig, ENGINE_FAIL, 1), 0);
	assert_true(super_of(rig, 0).events >= failed.events + 1);
	rig_sleep(rig, 50 * MS);
	/* Two updates: the one that failed cannot be taken for a member of an update cut short. */
	assert_int_equal(super_of(rig, 0).events, failed.events + 2);
	assert_int_equal(writes_of(rig, 1), writes);
	check_super(rig, 1, failed.events, MD_CLEAN);
	if (rig->options.version == MD_VERSION_0_90) {
		struct md_super_090 v = super_of(rig, 0).v090;

		assert_int_equal(v.disks[1].state, 9);
		assert_int_equal(v.disks[2].state, 1);
		assert_int_equal(v.disks[2].raid_disk, 2);
		assert_int_equal(v.nr_disks, 2);
		assert_int_equal(v.failed_disks, 1);
		assert_int_equal(v.active_disks, 1);
		assert_int_equal(v.this_disk.number, 0);
	} else {
		check_roles(rig, 0, 1, MD_ROLE_FAULTY);
		check_roles(rig, 0, 0, 0);
	}
}

static void check_degraded_writes(struct rig *rig)
{
	uint64_t events = super_of(rig, 0).events;

	rig_sleep(rig, 400 * MS);
	write_watched(rig, 512 * K, 1);
	check_super(rig, 0, events + 1, 0);
	rig_sleep(rig, 400 * MS);
	check_super(rig, 0, events + 2, MD_CLEAN); /* forward: the array is degraded */
	rig_sleep(rig, 30000 * MS);
	if (rig_has_bitmap(rig)) {
		assert_true(bitmap_bit(rig, 0, 512 * K / rig->options.bitmap_chunk));
		assert_true(header_of(rig, 0).events_cleared <= FIRST_EVENTS + 1);
	}
	assert_int_equal(rig_command(rig, ENGINE_REMOVE, 1), 0);
	assert_int_equal(super_of(rig, 0).events, events + 3);
	check_roles(rig, 0, rig->options.version == MD_VERSION_0_90 ? 2 : 1, MD_ROLE_SPARE);
}

static void check_rebuild(struct rig *rig)
{
	static struct md_super super;
	struct engine_device add = {.member = 2,
		.slot = ENGINE_NONE,
		.data_offset_bytes = rig_data_sector(rig) * MD_SECTOR,
		.data_bytes = (uint64_t)SIZE_SECTORS * MD_SECTOR,
		.logical_block_bytes = 512,
		.super = &super};
	struct rig_call call = {.command = {.verb = ENGINE_ADD,
					.add = &add,
					.fault = &rig->fault,
					.done = rig_command_done}};
	bool saw_rebuild = false;
	unsigned steps = 0;

	rig_make_spare(rig, 2, &super);
	call.command.owner = &call;
	engine_command(rig->engine, &call.command);
	assert_int_equal(rig_wait(rig, &call), 0);
	for (;;) {
		struct engine_device_status status;

		super = super_of(rig, 2);
		engine_device_status(rig->engine, call.command.result_device, &status);
		if ((super.feature_map & MD_FEATURE_RECOVERY_OFFSET) != 0) {
			saw_rebuild = true;
			assert_int_equal(md_super_role(&super), 1);
			if (rig_has_bitmap(rig))
				(void)header_of(rig, 2);
		}
		if (status.state == ENGINE_DEVICE_IN_SYNC)
			break;
		assert_true(sim_step(rig->sim) && ++steps < STEPS_MAX);
	}
	rig_sleep(rig, 400 * MS);
	super = super_of(rig, 2);
	assert_true(saw_rebuild || super.version == MD_VERSION_0_90);
	assert_int_equal(super.feature_map & ~(uint32_t)MD_FEATURE_BITMAP, 0);
	assert_int_equal(md_super_role(&super), 1);
	/* The lowest number that was free; 0.90: the slot. */
	assert_int_equal(super.dev_number, 1);
	assert_int_equal(super.events, super_of(rig, 0).events);
}

/* Idle chunks are clean on the members within some ten seconds; the stop leaves all of it clean. */
static void check_stop(struct rig *rig)
{
	const uint32_t chunk = rig->options.bitmap_chunk;
	uint64_t writes, dirty = 0;

	rig_sleep(rig, 20000 * MS);
	if (chunk != 0) {
		for (uint64_t bit = 0; bit < 1024 * K / chunk; bit++)
			dirty += bitmap_bit(rig, 0, bit);
		assert_int_equal(dirty, 0);
	}
	write_watched(rig, 1024 * K, 5);
	assert_int_equal(rig_command(rig, ENGINE_STOP, ENGINE_NONE), 0);
	assert_true(super_of(rig, 0).resync_offset == MD_CLEAN);
	assert_true(super_of(rig, 2).resync_offset == MD_CLEAN);
	if (chunk != 0)
		assert_false(bitmap_bit(rig, 2, 1024 * K / chunk));
	for (unsigned disk = 0; disk < 3; disk++)
		assert_int_equal(sim_disk_counters(rig->sim, disk)->undurable_sectors, 0);
	writes = writes_of(rig, 0);
	rig_sleep(rig, 30000 * MS);
	assert_int_equal(writes_of(rig, 0), writes);
}

static void test_life(void **state)
{
	static struct rig rig;

	(void)state;
	for (unsigned i = 0; i < FORMATS; i++) {
		print_message("format %s, bitmap chunk %u\n", md_format(formats[i].version)->name,
			formats[i].bitmap_chunk);
		rig_init(&rig, &formats[i]);
		rig_start(&rig, false);
		rig_sleep(&rig, 1000 * MS);
		for (unsigned disk = 0; disk < 3; disk++)
			assert_int_equal(writes_of(&rig, disk), 0);
		check_alternation(&rig);
		check_failure(&rig);
		check_degraded_writes(&rig);
		check_rebuild(&rig);
		check_stop(&rig);
		rig_fini(&rig);
	}
}

static bool disk_has_bad(struct rig *rig, unsigned disk, uint64_t offset)
{
	static struct md_super super;
	struct md_badblocks bad;

	super = super_of(rig, disk);
	rig_read_log(rig, disk, &super, &bad);
	return md_badblocks_overlaps(&bad, rig_data_sector(rig) + offset / MD_SECTOR, 1, NULL);
}

static void start_with_logs(struct rig *rig, const struct rig_options *options)
{
	rig_init(rig, options);
	rig->use_logs = true;
	rig_start(rig, false);
}

/* What is bad is durable before a write that ends later is acknowledged, at every moment. */
static void check_bad_cut(const struct rig_options *options, unsigned steps)
{
	static uint8_t data[4 * K];
	static struct rig rig;
	struct rig_call call;
	unsigned i = 0;

	start_with_logs(&rig, options);
	assert_int_equal(rig_write(&rig, 0, data, sizeof(data)), 0);
	rig_submit(&rig, &call, ENGINE_WRITE, 64 * K, sizeof(data), data, ENGINE_FUA);
	(void)sim_step(rig.sim);
	assert_int_equal(badblocks_add(rig.engine, 1, 32 * K, 4 * K), 0);
	assert_true(badblocks_overlap(rig.engine, 1, 35 * K, 512));
	assert_false(record_is_settled(rig.engine));
	while (i < steps && !call.done && sim_step(rig.sim))
		i++;
	sim_power_cut(rig.sim);
	engine_free(rig.engine);
	rig.engine = NULL;
	assert_int_equal(rig_assemble(&rig, false), 0);
	if (call.done)
		assert_true(disk_has_bad(&rig, 1, 32 * K));
	if ((super_of(&rig, 1).feature_map & MD_FEATURE_BAD_BLOCKS) != 0)
		assert_true(disk_has_bad(&rig, 1, 35 * K) && !disk_has_bad(&rig, 1, 36 * K));
	assert_true(steps < 60 || call.done);
	rig_fini(&rig);
}

/* Found again at the next start; once written it is good, and the log says so at the stop. */
static void check_bad_life(const struct rig_options *options)
{
	static struct rig rig;

	start_with_logs(&rig, options);
	assert_int_equal(badblocks_add(rig.engine, 1, 32 * K, 4 * K), 0);
	assert_int_equal(badblocks_add(rig.engine, 1, 512 * K, 512), 0);
	assert_int_equal(rig_command(&rig, ENGINE_STOP, ENGINE_NONE), 0);
	engine_free(rig.engine);
	assert_int_equal(rig_assemble(&rig, false), 0);
	assert_true(disk_has_bad(&rig, 1, 512 * K));
	rig_start(&rig, false);
	assert_true(badblocks_overlap(rig.engine, 1, 32 * K, 512));
	assert_false(badblocks_overlap(rig.engine, 0, 32 * K, 512));
	badblocks_remove(rig.engine, 1, 32 * K, 4 * K);
	badblocks_remove(rig.engine, 1, 512 * K, 512);
	assert_false(badblocks_overlap(rig.engine, 1, 0, 1024 * K));
	write_watched(&rig, 512 * K, 3);
	assert_int_equal(rig_command(&rig, ENGINE_STOP, ENGINE_NONE), 0);
	assert_int_equal(super_of(&rig, 1).feature_map & MD_FEATURE_BAD_BLOCKS, 0);
	assert_false(disk_has_bad(&rig, 1, 32 * K));
	rig_fini(&rig);
}

static void check_full_log(const struct rig_options *options)
{
	static struct rig rig;
	unsigned count = 0;

	start_with_logs(&rig, options);
	while (badblocks_add(rig.engine, 0, count * 2 * K, 512) == 0)
		count++;
	assert_int_equal(count, MD_BADBLOCKS_MAX);
	assert_int_equal(badblocks_add(rig.engine, 0, count * 2 * K, 512), -ENOSPC);
	assert_int_equal(rig_command(&rig, ENGINE_STOP, ENGINE_NONE), 0);
	assert_true(disk_has_bad(&rig, 0, (count - 1) * 2 * K));
	rig_fini(&rig);
}

static void test_bad_blocks(void **state)
{
	static struct rig rig;

	(void)state;
	for (unsigned i = 0; i < FORMATS; i++) {
		if (formats[i].version == MD_VERSION_0_90) {
			start_with_logs(&rig, &formats[i]);
			assert_int_equal(badblocks_add(rig.engine, 1, 0, 512), -EOPNOTSUPP);
			rig_fini(&rig);
			continue;
		}
		for (unsigned steps = 0; steps <= 60; steps++)
			check_bad_cut(&formats[i], steps);
		check_bad_life(&formats[i]);
		check_full_log(&formats[i]);
	}
}

/* While read-only, and once the array has failed, not a byte is written. */
static void test_nothing_is_written(void **state)
{
	static const struct rig_options raid5 = {MD_VERSION_1_2, 5, 3, 0, 3, 64 * K, 512, 9, false};
	static uint8_t data[4 * K];
	static struct rig rig;
	uint64_t writes[3];

	(void)state;
	rig_init(&rig, &raid5);
	rig_start(&rig, true);
	assert_int_equal(rig_write(&rig, 0, data, sizeof(data)), -EROFS);
	rig_sleep(&rig, 30000 * MS);
	assert_int_equal(rig_command(&rig, ENGINE_STOP, ENGINE_NONE), 0);
	for (unsigned disk = 0; disk < 3; disk++)
		assert_int_equal(writes_of(&rig, disk), 0);
	engine_free(rig.engine);
	rig_start(&rig, false);
	assert_int_equal(rig_write(&rig, 0, data, sizeof(data)), 0);
	for (unsigned disk = 0; disk < 2; disk++) {
		struct sim_fault fault = {.disk = disk,
			.ops = 1u << WORLD_WRITE,
			.length_bytes = (uint64_t)DISK_SECTORS * MD_SECTOR,
			.error = -EIO,
			.times = UINT32_MAX};

		assert_int_equal(sim_fault_add(rig.sim, &fault), 0);
	}
	for (unsigned i = 0; i < 4; i++)
		(void)rig_write(&rig, i * 64 * K, data, sizeof(data));
	assert_true(engine_is_broken(rig.engine));
	for (unsigned disk = 0; disk < 3; disk++)
		writes[disk] = writes_of(&rig, disk);
	assert_int_equal(rig_write(&rig, 0, data, sizeof(data)), -EIO);
	rig_sleep(&rig, 30000 * MS);
	assert_int_equal(rig_command(&rig, ENGINE_STOP, ENGINE_NONE), -EIO);
	for (unsigned disk = 0; disk < 3; disk++)
		assert_int_equal(writes_of(&rig, disk), writes[disk]);
	rig_fini(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_life),
		cmocka_unit_test(test_bad_blocks),
		cmocka_unit_test(test_nothing_is_written),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
