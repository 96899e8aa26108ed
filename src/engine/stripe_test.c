/* SPDX-License-Identifier: MIT */
/*
 * RAID 4, 5 and 6 in the simulated world: each rule by itself. stripe_random_test.c mixes them.
 */
#include "engine/stripe_rig_test.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sim/sim.h"
#include "util/rounding.h"

static const struct shape raid5 = {5, 2, 64 * K, 5, 512 * K};
static const struct shape raid6 = {6, 2, 64 * K, 6, 512 * K};
#define READS (1u << WORLD_READ)
#define WRITES (1u << WORLD_WRITE)

/* In stripe 0 of these layouts data k is on slot k (RAID 6: k + 1), P on the last, Q on slot 0. */

/* @reads and @writes: member I/Os that the write of that range takes. */
static void check_ios(
	struct rig *rig, uint64_t offset, uint64_t length, unsigned reads, unsigned writes)
{
	uint64_t reads_before = rig_reads(rig), writes_before = rig_writes(rig);

	assert_int_equal(rig_write(rig, offset, length, (uint32_t)writes_before + 2, 0), 0);
	assert_int_equal(rig_reads(rig) - reads_before, reads);
	assert_int_equal(rig_writes(rig) - writes_before, writes);
	rig_check_members(rig);
}

static void test_ways_of_raid5(void **state)
{
	struct rig rig;

	rig_init(&rig, &raid5, 0, 0, 0, 1);
	check_ios(&rig, 0, 256 * K, 0, 5);        /* full stripe */
	check_ios(&rig, 256 * K, 512 * K, 0, 10); /* two of them */
	check_ios(&rig, 4 * K, 4 * K, 2, 2);      /* read-modify-write */
	check_ios(&rig, 0, 128 * K, 2, 3);        /* reconstruct: 2 reads, not 3 */
	check_ios(&rig, 0, 192 * K, 1, 4);        /* reconstruct */
	check_ios(&rig, 512, 512, 2, 2);
	check_ios(&rig, 62 * K, 4 * K, 4, 4); /* two halves, each for itself */
	rig_fini(&rig);
}

static void test_ways_of_raid6(void **state)
{
	struct rig rig;

	rig_init(&rig, &raid6, 0, 0, 0, 2);
	check_ios(&rig, 0, 256 * K, 0, 6);
	check_ios(&rig, 4 * K, 4 * K, 3, 3);
	/* As many reads either way: of what is overwritten then. Data 0 is on slot 1, P on 5. */
	for (unsigned slot = 0; slot < 6; slot++)
		assert_int_equal(sim_disk_counters(rig.sim, slot)->reads,
			slot == 0 || slot == 1 || slot == 5);
	check_ios(&rig, 0, 128 * K, 2, 4);
	rig_fini(&rig);
}

/* Of three members one is data beside the one that is written: reading it is cheaper than P. */
static void test_way_of_three(void **state)
{
	const struct shape three = {5, 2, 16 * K, 3, 64 * K};
	struct rig rig;

	rig_init(&rig, &three, 0, 0, 0, 3);
	check_ios(&rig, 4 * K, 4 * K, 1, 2);
	rig_fini(&rig);
}

/* Where parity is not yet right it must not be updated: all data is read instead. */
static void test_inconsistent_reconstructs(void **state)
{
	struct rig rig;

	rig_init(&rig, &raid5, 0, 0, 0, 4);
	for (uint64_t at = 0; at < 64 * K; at += SECTOR)
		rig_damage(&rig, 4, at, 0x11); /* P of stripe 0 */
	rig.inconsistent = true;
	assert_int_equal(rig_write(&rig, 8 * K, 4 * K, 7, 0), 0);
	assert_int_equal(rig_reads(&rig), 3);
	assert_int_equal(rig_window(&rig, ENGINE_ACTION_CHECK, 8 * K, 12 * K), 0);
	assert_int_equal(rig.mismatch_count, 0);
	assert_int_equal(rig_window(&rig, ENGINE_ACTION_RESYNC, 0, 64 * K), 0);
	assert_int_equal(rig.mismatch_count, 2);
	rig_check_members(&rig);
	rig_fini(&rig);
}

/* Writes that wait for the same band are written together. */
static void test_grouping(void **state)
{
	enum { CALLS = 6 };
	struct call calls[CALLS];
	uint8_t *buffer = calloc(CALLS, 4 * K);
	struct rig rig;

	rig_init(&rig, &raid5, 0, 0, 0, 5);
	for (unsigned i = 0; i < CALLS; i++)
		rig_start(&rig, &calls[i], ENGINE_WRITE, i * 4 * K, 4 * K, buffer + i * 4 * K, 0);
	for (unsigned i = 0; i < CALLS; i++)
		assert_int_equal(rig_finish(&rig, &calls[i]), 0);
	/* The first alone, the five others together. */
	assert_int_equal(rig_reads(&rig), 4);
	assert_int_equal(rig_writes(&rig), 4);
	for (unsigned i = 0; i < CALLS * 8; i++)
		rig.ids[i] = 0;
	rig_check_members(&rig);
	free(buffer);
	rig_fini(&rig);
}

/* Those far from each other are not: parity between them would be read and written for nothing. */
static void test_no_gaps(void **state)
{
	static const uint64_t offsets[] = {0, 96 * K, 176 * K};
	struct call calls[3];
	uint8_t *buffer = calloc(3, 4 * K);
	struct rig rig;

	rig_init(&rig, &raid5, 0, 0, 0, 22);
	for (unsigned i = 0; i < 3; i++)
		rig_start(&rig, &calls[i], ENGINE_WRITE, offsets[i], 4 * K, buffer + i * 4 * K, 0);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(rig_finish(&rig, &calls[i]), 0);
		for (unsigned j = 0; j < 8; j++)
			rig.ids[offsets[i] / SECTOR + j] = 0;
	}
	assert_int_equal(rig_reads(&rig), 6);
	assert_int_equal(rig_writes(&rig), 6);
	rig_check_members(&rig);
	free(buffer);
	rig_fini(&rig);
}

/* Many members: any number of blocks adds up to P, and bands are small. */
static void test_many_slots(void **state)
{
	const struct shape wide = {5, 0, 64 * K, 16, 128 * K};
	struct rig rig;

	rig_init(&rig, &wide, 1u << 3, 0, 0, 6);
	assert_int_equal(rig_write(&rig, 60 * K, 300 * K, 9, 0), 0);
	rig_check_members(&rig);
	rig_check_array(&rig);
	rig_fini(&rig);
}

/* A degraded read of a stripe reads each member once, and no more than the stripe. */
static void test_degraded_read_once(void **state)
{
	struct rig rig;
	uint8_t *buffer = malloc(256 * K), *expected = malloc(256 * K);

	rig_init(&rig, &raid5, 1u << 1, 0, 0, 7);
	assert_int_equal(rig_run(&rig, ENGINE_READ, 0, 256 * K, buffer, 0), 0);
	assert_int_equal(rig_reads(&rig), 4);
	rig_expect(&rig, 0, 256 * K, expected);
	assert_memory_equal(buffer, expected, 256 * K);
	/* What is not missing is read from where it is. */
	assert_int_equal(rig_run(&rig, ENGINE_READ, 0, 4 * K, buffer, 0), 0);
	assert_int_equal(rig_reads(&rig), 5);
	assert_int_equal(rig_run(&rig, ENGINE_READ, 64 * K, 4 * K, buffer, 0), 0);
	assert_int_equal(rig_reads(&rig), 9);
	free(buffer);
	free(expected);
	rig_fini(&rig);
}

static const struct device *device_of(const struct rig *rig, unsigned slot)
{
	return &rig->engine->devices[slot]; /* where no slot is missing */
}

/* One sector cannot be read, once: answered, rewritten, read again, and the device kept. */
static void test_bad_sector_is_healed(void **state)
{
	static const uint64_t ranges[][2] = {{64 * K, 4 * K}, {0, 256 * K}, {64 * K + 512, 512}};
	uint8_t *buffer = malloc(256 * K), *expected = malloc(256 * K);

	for (unsigned i = 0; i < 3; i++) {
		struct rig rig;
		uint64_t offset = ranges[i][0], length = ranges[i][1];

		rig_init(&rig, i == 2 ? &raid6 : &raid5, 0, 0, 0, 8);
		rig_fault(&rig, i == 2 ? 2 : 1, READS, 512, 512, -EIO, 1);
		rig_expect(&rig, offset, length, expected);
		assert_int_equal(rig_run(&rig, ENGINE_READ, offset, length, buffer, 0), 0);
		assert_memory_equal(buffer, expected, length);
		assert_int_equal(device_of(&rig, i == 2 ? 2 : 1)->corrected_reads, 1);
		assert_int_equal(devices_in_sync(rig.engine), rig.shape.slots);
		assert_int_equal(rig_writes(&rig), 1);
		rig_check_members(&rig);
		rig_fini(&rig);
	}
	free(buffer);
	free(expected);
}

/* It cannot be read again after the rewrite: the device is given up, the answer is right. */
static void test_bad_sector_stays(void **state)
{
	struct rig rig;
	uint8_t buffer[4 * K], expected[4 * K];

	rig_init(&rig, &raid5, 0, 0, 0, 9);
	rig_fault(&rig, 1, READS, 512, 512, -EIO, UINT32_MAX);
	rig_expect(&rig, 64 * K, 4 * K, expected);
	assert_int_equal(rig_run(&rig, ENGINE_READ, 64 * K, 4 * K, buffer, 0), 0);
	assert_memory_equal(buffer, expected, 4 * K);
	assert_int_equal(device_of(&rig, 1)->state, ENGINE_DEVICE_FAULTY);
	assert_false(rig.engine->redundant->failed);
	rig_fini(&rig);
}

/* A sector that a write needs cannot be read: computed, written anew. */
static void test_bad_sector_in_write(void **state)
{
	/* Slots 1 (another data block), 0 (the one written), 4 (P). */
	static const unsigned slots[] = {1, 0, 4};

	for (unsigned i = 0; i < 3; i++)
		for (uint64_t length = 4 * K; length <= 128 * K; length *= 32) {
			struct rig rig;

			rig_init(&rig, &raid5, 0, 0, 0, 10);
			rig_fault(&rig, slots[i], READS, 8 * K + 512, 512, -EIO, 1);
			assert_int_equal(rig_write(&rig, 8 * K, length, 5, 0), 0);
			assert_int_equal(devices_in_sync(rig.engine), 5);
			rig_check_members(&rig);
			rig_check_array(&rig);
			rig_fini(&rig);
		}
}

/* Two bad sectors of one column: exactly these are lost, and nothing is failed or written. */
static void test_beyond_redundancy(void **state)
{
	struct rig rig;
	uint8_t *buffer = malloc(256 * K), *expected = malloc(256 * K);
	struct call call;

	rig_init(&rig, &raid5, 0, 0, 0, 11);
	rig_fault(&rig, 1, READS, 6 * K, 1 * K, -EIO, UINT32_MAX);
	rig_fault(&rig, 3, READS, 6 * K, 1 * K, -EIO, UINT32_MAX);
	rig_start(&rig, &call, ENGINE_READ, 0, 128 * K, buffer, 0);
	assert_int_equal(rig_finish(&rig, &call), -EIO);
	assert_int_equal(call.request.fail_offset_bytes, 64 * K + 6 * K);
	assert_int_equal(call.request.fail_length_bytes, 1 * K);
	rig_expect(&rig, 0, 128 * K, expected);
	assert_memory_equal(buffer, expected, 70 * K);
	assert_memory_equal(buffer + 71 * K, expected + 71 * K, 57 * K);
	/* A write beside them needs neither; one onto them cannot tell what parity becomes. */
	assert_int_equal(rig_write(&rig, 0, 16 * K, 2, 0), 0);
	rig_start(&rig, &call, ENGINE_WRITE, 64 * K, 16 * K, buffer, 0);
	assert_int_equal(rig_finish(&rig, &call), -EIO);
	assert_int_equal(call.request.fail_offset_bytes, 64 * K + 6 * K);
	assert_int_equal(call.request.fail_length_bytes, 1 * K);
	assert_int_equal(devices_in_sync(rig.engine), 5);
	free(buffer);
	free(expected);
	rig_fini(&rig);
}

/* A member that takes no writes is given up, and the request succeeds; the next one fails the
 * array. What devices in sync can answer by themselves they still do. */
static void test_write_failures(void **state)
{
	struct rig rig;
	uint8_t buffer[4 * K];
	struct call call;

	rig_init(&rig, &raid5, 0, 0, 0, 12);
	rig_fault(&rig, 0, WRITES, 0, 64 * K, -EIO, UINT32_MAX);
	assert_int_equal(rig_write(&rig, 0, 4 * K, 3, 0), 0);
	assert_int_equal(device_of(&rig, 0)->state, ENGINE_DEVICE_FAULTY);
	rig_check_members(&rig);
	rig_check_array(&rig);
	assert_int_equal(rig_write(&rig, 2 * K, 4 * K, 4, 0), 0);
	rig_check_array(&rig);
	rig_fault(&rig, 4, WRITES, 0, 64 * K, -ENOSPC, UINT32_MAX);
	rig_start(&rig, &call, ENGINE_WRITE, 0, 4 * K, buffer, 0);
	assert_int_equal(rig_finish(&rig, &call), -ENOSPC);
	assert_int_equal(call.request.fail_length_bytes, 4 * K);
	assert_true(rig.engine->redundant->failed);
	assert_int_equal(rig_run(&rig, ENGINE_WRITE, 64 * K, 4 * K, buffer, 0), -EIO);
	assert_int_equal(rig_run(&rig, ENGINE_READ, 0, 4 * K, buffer, 0), -EIO);
	assert_int_equal(rig_run(&rig, ENGINE_READ, 64 * K, 4 * K, buffer, 0), 0);
	rig_fini(&rig);
}

static void test_check_writes_nothing(void **state)
{
	struct rig rig;

	rig_init(&rig, &raid6, 0, 0, 0, 13);
	assert_int_equal(rig_walk(&rig, ENGINE_ACTION_CHECK), 0);
	assert_int_equal(rig.mismatch_count, 0);
	rig_damage(&rig, 2, 8 * K, 0x40);
	rig_damage(&rig, 2, 8 * K + 512, 0x41);
	rig_damage(&rig, 5, 70 * K, 0x42);
	rig_damage(&rig, 1, 200 * K, 0x43); /* two in one column */
	rig_damage(&rig, 3, 200 * K, 0x53);
	assert_int_equal(rig_walk(&rig, ENGINE_ACTION_CHECK), 0);
	assert_int_equal(rig_writes(&rig), 0);
	assert_int_equal(rig.mismatch_count, 3);
	assert_int_equal(rig.mismatches[0].sync_offset_bytes, 8 * K);
	assert_int_equal(rig.mismatches[0].length_bytes, 1024);
	assert_int_equal(rig.mismatches[0].slot, 2);
	assert_int_equal(rig.mismatches[1].slot, 5);
	assert_int_equal(rig.mismatches[2].sync_offset_bytes, 200 * K);
	assert_int_equal(rig.mismatches[2].slot, ENGINE_NONE);
	rig_fini(&rig);
}

/* RAID 6: what is wrong is known and is put right, on whichever slot; resync trusts the data. */
static void test_repair_of_raid6(void **state)
{
	for (unsigned slot = 0; slot < 6; slot++) {
		struct rig rig;

		rig_init(&rig, &raid6, 0, 0, 0, 14);
		rig_damage(&rig, slot, 8 * K, 0x40);
		rig_damage(&rig, slot, 64 * K, 0x41);
		assert_int_equal(rig_walk(&rig, ENGINE_ACTION_REPAIR), 0);
		assert_int_equal(rig.mismatch_count, 2);
		rig_check_members(&rig);
		rig_fini(&rig);
	}
}

static void check_parity_follows(const struct shape *shape, enum engine_action action, int both)
{
	struct rig rig;
	uint8_t before[SECTOR], after[SECTOR];

	rig_init(&rig, shape, 0, 0, 0, 15);
	rig_damage(&rig, 1, 8 * K, 0x40); /* data in stripe 0 of both shapes */
	if (both)
		rig_damage(&rig, 2, 8 * K, 0x50);
	sim_disk_peek(rig.sim, 1, rig.devices[1].data_offset_bytes + 8 * K, before, SECTOR);
	assert_int_equal(rig_walk(&rig, action), 0);
	assert_int_equal(rig.mismatch_count, 1);
	sim_disk_peek(rig.sim, 1, rig.devices[1].data_offset_bytes + 8 * K, after, SECTOR);
	assert_memory_equal(before, after, SECTOR);
	rig.mismatch_count = 0;
	assert_int_equal(rig_walk(&rig, ENGINE_ACTION_CHECK), 0);
	assert_int_equal(rig.mismatch_count, 0);
	rig_fini(&rig);
}

static void test_parity_follows_data(void **state)
{
	check_parity_follows(&raid5, ENGINE_ACTION_REPAIR, 0);
	check_parity_follows(&raid5, ENGINE_ACTION_RESYNC, 0);
	check_parity_follows(&raid6, ENGINE_ACTION_RESYNC, 0);
	check_parity_follows(&raid6, ENGINE_ACTION_REPAIR, 1); /* cannot tell: no false repair */
}

/* RAID 6 with one slot missing still has something to compare. */
static void test_check_of_degraded_raid6(void **state)
{
	for (unsigned slot = 0; slot < 6; slot++) {
		struct rig rig;

		rig_init(&rig, &raid6, 1u << slot, 0, 0, 16);
		assert_int_equal(rig_walk(&rig, ENGINE_ACTION_CHECK), 0);
		assert_int_equal(rig.mismatch_count, 0);
		rig_damage(&rig, (slot + 2) % 6, 8 * K, 0x40);
		assert_int_equal(rig_walk(&rig, ENGINE_ACTION_CHECK), 0);
		assert_int_equal(rig.mismatch_count, 1);
		assert_int_equal(rig.mismatches[0].slot, ENGINE_NONE);
		rig_fini(&rig);
	}
}

static void test_recovery(void **state)
{
	for (unsigned pair = 0; pair < 36; pair++) {
		unsigned mask = 1u << pair % 6 | 1u << pair / 6;
		struct rig rig;

		rig_init(&rig, &raid6, 0, mask, pair * 4 * K, 17);
		rig_check_array(&rig);
		assert_int_equal(rig_write(&rig, 100 * K, 60 * K, 4, 0), 0);
		assert_int_equal(rig_walk(&rig, ENGINE_ACTION_RECOVERY), 0);
		assert_int_equal(devices_in_sync(rig.engine), 6);
		rig_check_members(&rig);
		rig_fini(&rig);
	}
}

/* A source that cannot be read: the rest of the window is done, and it says so. */
static void test_recovery_of_the_rest(void **state)
{
	struct rig rig;

	rig_init(&rig, &raid5, 0, 1u << 2, 0, 18);
	rig_fault(&rig, 0, READS, 10 * K, 512, -EIO, UINT32_MAX);
	assert_int_equal(rig_window(&rig, ENGINE_ACTION_RECOVERY, 0, 64 * K), -EIO);
	assert_int_equal(device_of(&rig, 0)->state, ENGINE_DEVICE_IN_SYNC);
	sim_faults_clear(rig.sim);
	for (uint64_t at = 0; at < 64 * K; at += SECTOR) {
		uint8_t expected[SECTOR], found[SECTOR];

		rig_expect_member(&rig, 2, at, expected);
		sim_disk_peek(rig.sim, 2, rig.devices[2].data_offset_bytes + at, found, SECTOR);
		if (at != 10 * K)
			assert_memory_equal(found, expected, SECTOR);
		else
			assert_memory_not_equal(found, expected, SECTOR);
	}
	rig_fini(&rig);
}

static void test_discard_touches_nothing(void **state)
{
	struct rig rig;

	rig_init(&rig, &raid5, 0, 0, 0, 19);
	assert_int_equal(rig_run(&rig, ENGINE_DISCARD, 0, rig.bytes, NULL, 0), 0);
	assert_int_equal(rig_run(&rig, ENGINE_ZERO, 60 * K, 300 * K, NULL, 0), 0);
	for (uint64_t at = 60 * K; at < 360 * K; at += SECTOR)
		rig.ids[at / SECTOR] = 0;
	rig_check_members(&rig);
	rig_check_array(&rig);
	for (unsigned slot = 0; slot < 5; slot++)
		assert_int_equal(sim_disk_counters(rig.sim, slot)->discards, 0);
	rig_fini(&rig);
}

/* FUA is for parity too. */
static void test_fua(void **state)
{
	struct rig rig;

	rig_init(&rig, &raid6, 0, 0, 0, 20);
	for (unsigned i = 0; i < 20; i++) {
		assert_int_equal(rig_write(&rig, i * 12 * K, 12 * K, 3 + i, ENGINE_FUA), 0);
		sim_power_cut(rig.sim);
		rig_check_members(&rig);
	}
	rig_fini(&rig);
}

/* The range told is what parity and data of the write lie in, and no larger by a chunk. */
static void test_sync_range(void **state)
{
	static const uint64_t cases[][4] = {
		{0, 4 * K, 0, 4 * K},
		{64 * K, 4 * K, 0, 4 * K},
		{60 * K, 8 * K, 0, 64 * K},
		{256 * K + 4 * K, 512, 68 * K, 68 * K + 512},
		{192 * K + 8 * K, 64 * K, 8 * K, 72 * K},
		{192 * K + 8 * K, 400 * K, 8 * K, 192 * K},
		{0, 256 * K, 0, 64 * K},
		{0, 512 * K, 0, 128 * K},
	};
	struct rig rig;

	rig_init(&rig, &raid5, 0, 0, 0, 21);
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t first, end;

		rig.engine->level->sync_range(rig.engine, cases[i][0], cases[i][1], &first, &end);
		assert_int_equal(first, cases[i][2]);
		assert_int_equal(end, cases[i][3]);
	}
	assert_int_equal(engine_stripe_bytes(rig.engine), 256 * K);
	rig_fini(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ways_of_raid5),
		cmocka_unit_test(test_ways_of_raid6),
		cmocka_unit_test(test_way_of_three),
		cmocka_unit_test(test_inconsistent_reconstructs),
		cmocka_unit_test(test_grouping),
		cmocka_unit_test(test_no_gaps),
		cmocka_unit_test(test_many_slots),
		cmocka_unit_test(test_degraded_read_once),
		cmocka_unit_test(test_bad_sector_is_healed),
		cmocka_unit_test(test_bad_sector_stays),
		cmocka_unit_test(test_bad_sector_in_write),
		cmocka_unit_test(test_beyond_redundancy),
		cmocka_unit_test(test_write_failures),
		cmocka_unit_test(test_check_writes_nothing),
		cmocka_unit_test(test_repair_of_raid6),
		cmocka_unit_test(test_parity_follows_data),
		cmocka_unit_test(test_check_of_degraded_raid6),
		cmocka_unit_test(test_recovery),
		cmocka_unit_test(test_recovery_of_the_rest),
		cmocka_unit_test(test_discard_touches_nothing),
		cmocka_unit_test(test_fua),
		cmocka_unit_test(test_sync_range),
	};

	return cmocka_run_group_tests_name("stripe", tests, NULL, NULL);
}
