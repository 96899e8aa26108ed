/* SPDX-License-Identifier: MIT */
/* Resync and recovery by themselves. What real levels make of them is in sync_level_test.c. */
#include "engine/sync_rig_test.h"

#include "sim/sim.h"

static void test_nothing_to_do(void **state)
{
	struct rig rig;

	rig_init(&rig, 5, 3, 2);
	rig_start(&rig);
	run_out(&rig);
	assert_issued(&rig, 0, 0);
	assert_int_equal(rig.changes, 0);
	assert_int_equal(state_of(&rig, 3), ENGINE_DEVICE_SPARE);
	rig_fini(&rig);
}

static void test_resync_from_checkpoint(void **state)
{
	struct rig rig;

	rig_init(&rig, 5, 3, 0);
	rig.redundancy.resync_bytes = 7 * WINDOW + 4 * K;
	rig_start(&rig);
	assert_true(sync_is_consistent(rig.engine, 0, 7 * WINDOW + 4 * K));
	assert_false(sync_is_consistent(rig.engine, 0, 7 * WINDOW + 8 * K));
	assert_false(sync_is_consistent(rig.engine, COMPONENT - 512, COMPONENT));
	run_out(&rig);
	assert_issued(&rig, 7, WINDOWS);
	assert_true(sync_resync_bytes(rig.engine) == UINT64_MAX);
	assert_true(sync_is_consistent(rig.engine, 0, COMPONENT));
	assert_in_range(rig.changes, 8, 20);
	assert_true(has_event(&rig, "resync is done"));
	rig_fini(&rig);
}

/* Windows end in any order: what is behind the lowest that has not is never called consistent. */
static void test_low_water(void **state)
{
	bool done[WINDOWS] = {false};
	unsigned remaining = WINDOWS;
	struct rig rig;

	rig_init(&rig, 6, 4, 0);
	rig.redundancy.resync_bytes = 0;
	rig.hold = true;
	rig_start(&rig);
	while (remaining > 0) {
		unsigned low = 0, pick;

		/* Not on time alone: a step may be a flush. */
		while (rig.held_count == 0)
			assert_true(sim_step(rig.sim));
		pick = (unsigned)sim_draw(rig.sim, rig.held_count);
		done[rig.held[pick]->first_bytes / WINDOW] = true;
		remaining--;
		release(&rig, pick);
		for (int i = 0; i < 8; i++)
			(void)sim_step(rig.sim);
		while (low < WINDOWS && done[low])
			low++;
		assert_true(sync_is_consistent(rig.engine, 0, (uint64_t)low * WINDOW) ||
			    low == WINDOWS);
		if (low < WINDOWS) {
			assert_false(sync_is_consistent(
				rig.engine, (uint64_t)low * WINDOW, (uint64_t)low * WINDOW + 512));
			assert_false(sync_is_consistent(rig.engine, COMPONENT - 512, COMPONENT));
			assert_true(sync_resync_bytes(rig.engine) <= (uint64_t)low * WINDOW);
			assert_true(status_of(&rig).position_bytes == (uint64_t)low * WINDOW);
		}
	}
	run_out(&rig);
	assert_issued(&rig, 0, WINDOWS);
	assert_true(sync_resync_bytes(rig.engine) == UINT64_MAX);
	rig_fini(&rig);
}

/* A checkpoint in the record never says more than what a finished flush covers. */
static void test_checkpoint_follows_flush(void **state)
{
	struct sim_fault stuck = {
		.disk = 0, .ops = 1u << WORLD_FLUSH, .error = -EIO, .times = UINT32_MAX};
	struct rig rig;

	rig_init(&rig, 5, 3, 0);
	rig.redundancy.resync_bytes = 0;
	rig_start(&rig);
	assert_int_equal(sim_fault_add(rig.sim, &stuck), 0);
	run_out(&rig);
	/* The member that was written could not be flushed: it is gone, and with it RAID 5's
	 * redundancy; the resync is over as md has it. */
	assert_int_equal(state_of(&rig, 0), ENGINE_DEVICE_FAULTY);
	assert_true(has_event(&rig, "no redundancy is left"));
	assert_true(sync_resync_bytes(rig.engine) == UINT64_MAX);
	rig_fini(&rig);
}

static void test_spares_take_over(void **state)
{
	struct rig rig;

	rig_init(&rig, 6, 4, 2);
	rig.hold = true;
	rig_start(&rig);
	assert_int_equal(fail_device(&rig, 1), 0);
	run_windows(&rig, 1);
	assert_int_equal(state_of(&rig, 4), ENGINE_DEVICE_REBUILDING);
	assert_int_equal(rig.engine->devices[4].slot, 1);
	assert_int_equal(state_of(&rig, 5), ENGINE_DEVICE_SPARE);
	/* The second has to wait for the end of the first recovery. */
	assert_int_equal(fail_device(&rig, 3), 0);
	assert_int_equal(state_of(&rig, 5), ENGINE_DEVICE_SPARE);
	rig.hold = false;
	while (rig.held_count > 0)
		release(&rig, 0);
	run_windows(&rig, WINDOWS + 1);
	assert_int_equal(state_of(&rig, 4), ENGINE_DEVICE_IN_SYNC);
	assert_int_equal(state_of(&rig, 5), ENGINE_DEVICE_REBUILDING);
	run_out(&rig);
	assert_int_equal(state_of(&rig, 5), ENGINE_DEVICE_IN_SYNC);
	assert_int_equal(rig.engine->devices[5].slot, 3);
	assert_int_equal(devices_in_sync(rig.engine), 4);
	for (unsigned i = 0; i < WINDOWS; i++)
		assert_int_equal(rig.issued[i], 2);
	rig_fini(&rig);
}

static void test_several_at_once(void **state)
{
	struct rig rig;

	rig_init(&rig, 6, 4, 1);
	rig.devices[1].slot = ENGINE_NONE; /* device 1 and 4 are spares, slots 1 and 2 vacant */
	rig.devices[1].in_sync = false;
	rig.devices[2].in_sync = false;
	rig.devices[2].recovered_bytes = 11 * WINDOW + 512;
	rig_start(&rig);
	run_out(&rig);
	assert_issued(&rig, 0, WINDOWS);
	assert_int_equal(state_of(&rig, 1), ENGINE_DEVICE_IN_SYNC);
	assert_int_equal(state_of(&rig, 2), ENGINE_DEVICE_IN_SYNC);
	assert_int_equal(state_of(&rig, 4), ENGINE_DEVICE_SPARE);
	rig_fini(&rig);
}

/* A recovery continues at its checkpoint. */
static void test_recovery_from_checkpoint(void **state)
{
	struct rig rig;

	rig_init(&rig, 5, 3, 0);
	rig.devices[2].in_sync = false;
	rig.devices[2].recovered_bytes = 30 * WINDOW + 512;
	rig_start(&rig);
	run_out(&rig);
	assert_issued(&rig, 30, WINDOWS);
	assert_int_equal(state_of(&rig, 2), ENGINE_DEVICE_IN_SYNC);
	rig_fini(&rig);
}

/* Who joins while others are rebuilt has his own turn, from the start. */
static void test_joins_half_way(void **state)
{
	struct engine_command replace = {.verb = ENGINE_REPLACE, .device = 0, .with = ENGINE_NONE};
	struct rig rig;

	rig_init(&rig, 6, 4, 2);
	rig.hold = true;
	rig_start(&rig);
	assert_int_equal(fail_device(&rig, 1), 0);
	while (rig.held_count < SYNC_WINDOWS_MAX)
		assert_true(sim_step(rig.sim));
	assert_int_equal(command(&rig, &replace), 0);
	assert_int_equal(state_of(&rig, 5), ENGINE_DEVICE_REBUILDING);
	rig.hold = false;
	while (rig.held_count > 0)
		release(&rig, 0);
	while (state_of(&rig, 4) != ENGINE_DEVICE_IN_SYNC)
		assert_true(sim_step(rig.sim));
	assert_int_equal(state_of(&rig, 5), ENGINE_DEVICE_REBUILDING);
	assert_int_equal(rig.engine->devices[5].recovered_bytes, 0);
	run_out(&rig);
	for (unsigned i = 0; i < WINDOWS; i++)
		assert_int_equal(rig.issued[i], 2);
	assert_int_equal(state_of(&rig, 0), ENGINE_DEVICE_FAULTY);
	assert_int_equal(rig.engine->redundant->active[0], 5);
	assert_int_equal(rig.engine->redundant->replacement[0], ENGINE_NONE);
	assert_false(rig.engine->devices[5].replacement);
	assert_false(devices_degraded(rig.engine));
	rig_fini(&rig);
}

/* Power failed when the replacement was in sync and the old member had not left yet. */
static void test_replacement_was_ready(void **state)
{
	struct rig rig;

	rig_init(&rig, 5, 3, 1);
	rig.devices[3].slot = 1;
	rig.devices[3].replacement = true;
	rig.devices[3].in_sync = true;
	rig_start(&rig);
	run_out(&rig);
	assert_issued(&rig, 0, 0);
	assert_int_equal(state_of(&rig, 1), ENGINE_DEVICE_FAULTY);
	assert_int_equal(rig.engine->redundant->active[1], 3);
	rig_fini(&rig);
}

/* The member that is being replaced fails: its replacement goes on as a rebuild. */
static void test_replaced_fails(void **state)
{
	struct rig rig;

	rig_init(&rig, 5, 3, 1);
	rig.devices[3].slot = 1;
	rig.devices[3].replacement = true;
	rig_start(&rig);
	run_windows(&rig, 20);
	assert_int_equal(fail_device(&rig, 1), 0);
	run_out(&rig);
	assert_issued(&rig, 0, WINDOWS);
	assert_int_equal(state_of(&rig, 3), ENGINE_DEVICE_IN_SYNC);
	assert_int_equal(rig.engine->redundant->active[1], 3);
	rig_fini(&rig);
}

static void test_lost_window(void **state)
{
	struct rig rig;

	rig_init(&rig, 5, 3, 1);
	rig.lost_at = 21 * WINDOW + 512;
	rig_start(&rig);
	assert_int_equal(fail_device(&rig, 0), 0);
	run_out(&rig);
	assert_int_equal(state_of(&rig, 3), ENGINE_DEVICE_SPARE);
	assert_int_equal(rig.engine->redundant->active[0], ENGINE_NONE);
	assert_true(has_event(&rig, "is given up: bytes 1376256 to 1441792"));
	assert_int_equal(rig.issued[21], 1);
	assert_int_equal(rig.issued[0], 1); /* not tried again by itself */
	/* The sectors are readable again, and the user says so. */
	rig.lost_at = UINT64_MAX;
	assert_int_equal(sync_request(rig.engine, ENGINE_ACTION_RESYNC), 0);
	run_out(&rig);
	assert_int_equal(state_of(&rig, 3), ENGINE_DEVICE_IN_SYNC);
	rig_fini(&rig);
}

static void test_lost_for_one(void **state)
{
	struct rig rig;

	rig_init(&rig, 6, 4, 2);
	rig.devices[0].in_sync = rig.devices[1].in_sync = false;
	rig.redundancy.device_count = 4;
	rig.lost_at = 21 * WINDOW + 512;
	rig.lost_device = 1;
	rig_start(&rig);
	run_out(&rig);
	assert_issued(&rig, 0, WINDOWS);
	assert_int_equal(state_of(&rig, 0), ENGINE_DEVICE_IN_SYNC);
	assert_int_equal(state_of(&rig, 1), ENGINE_DEVICE_SPARE);
	rig_fini(&rig);
}

/* What a failed array cannot rebuild is nobody's fault: the device stays where it is. */
static void test_array_fails(void **state)
{
	struct rig rig;

	rig_init(&rig, 5, 3, 0);
	rig.devices[2].in_sync = false;
	rig_start(&rig);
	run_windows(&rig, 20);
	(void)device_fail(rig.engine, 0);
	assert_true(rig.engine->redundant->failed);
	rig.lost_at = rig.latest_first;
	run_out(&rig);
	assert_int_equal(state_of(&rig, 2), ENGINE_DEVICE_REBUILDING);
	rig_fini(&rig);
}

/* A member fails while the resync runs: recovery comes first, then the rest of the resync. */
static void test_recovery_before_resync(void **state)
{
	unsigned position;
	struct rig rig;

	rig_init(&rig, 5, 3, 1);
	rig.redundancy.resync_bytes = 0;
	rig_start(&rig);
	run_windows(&rig, 25);
	assert_int_equal(fail_device(&rig, 2), 0);
	while (status_of(&rig).action == ENGINE_ACTION_RESYNC)
		assert_true(sim_step(rig.sim));
	position = (unsigned)(sync_resync_bytes(rig.engine) / WINDOW);
	assert_in_range(position, 25, WINDOWS - 1);
	assert_false(sync_is_consistent(rig.engine, COMPONENT - 512, COMPONENT));
	forget_windows(&rig);
	run_windows(&rig, 1);
	assert_int_equal(rig.latest_action, ENGINE_ACTION_RECOVERY);
	while (rig.latest_action != ENGINE_ACTION_RESYNC)
		assert_true(sim_step(rig.sim));
	assert_int_equal(state_of(&rig, 3), ENGINE_DEVICE_IN_SYNC);
	run_out(&rig);
	for (unsigned i = 0; i < WINDOWS; i++)
		assert_int_equal(rig.issued[i], i < position ? 1 : 2);
	assert_true(sync_resync_bytes(rig.engine) == UINT64_MAX);
	rig_fini(&rig);
}

static void test_degraded_resync(void **state)
{
	struct rig rig;

	/* RAID 6 goes on with one member less, and ends when a second goes. */
	rig_init(&rig, 6, 4, 0);
	rig.redundancy.resync_bytes = 0;
	rig_start(&rig);
	run_windows(&rig, 16);
	assert_int_equal(fail_device(&rig, 0), 0);
	run_windows(&rig, 24);
	assert_false(has_event(&rig, "interrupted"));
	assert_true(sync_resync_bytes(rig.engine) != UINT64_MAX);
	assert_int_equal(fail_device(&rig, 1), 0);
	run_out(&rig);
	assert_true(has_event(&rig, "no redundancy is left"));
	assert_true(sync_resync_bytes(rig.engine) == UINT64_MAX);
	assert_in_range(rig.synced_bytes, 0, 16 * WINDOW); /* nothing while degraded */
	rig_fini(&rig);
}

static void test_bitmap(void **state)
{
	struct rig rig;

	/* Resync: only what needs it. */
	rig_init(&rig, 5, 3, 0);
	rig.has_bitmap = true;
	rig.needs[3] = rig.needs[17] = rig.needs[18] = rig.needs[WINDOWS - 1] = true;
	rig.redundancy.resync_bytes = 0;
	rig_start(&rig);
	assert_true(sync_is_consistent(rig.engine, 0, 3 * WINDOW));
	assert_false(sync_is_consistent(rig.engine, 0, 3 * WINDOW + 512));
	assert_true(sync_is_consistent(rig.engine, 4 * WINDOW, 17 * WINDOW));
	assert_false(sync_is_consistent(rig.engine, 4 * WINDOW, COMPONENT));
	run_out(&rig);
	for (unsigned i = 0; i < WINDOWS; i++) {
		assert_int_equal(rig.issued[i], i == 3 || i == 17 || i == 18 || i == WINDOWS - 1);
		assert_false(rig.needs[i]);
	}
	rig_fini(&rig);

	/* Recovery of a new member: all of it, whatever the bitmap says. */
	rig_init(&rig, 5, 3, 1);
	rig.has_bitmap = true;
	rig.needs[3] = true;
	rig_start(&rig);
	assert_int_equal(fail_device(&rig, 0), 0);
	run_out(&rig);
	for (unsigned i = 0; i < WINDOWS; i++)
		assert_int_equal(rig.issued[i], i == 3 ? 2 : 1); /* 3 at the start: it was set */
	assert_false(rig.needs[3]);
	rig_fini(&rig);

	/* A member that comes back: what it missed. */
	rig_init(&rig, 5, 3, 0);
	rig.has_bitmap = true;
	rig.redundancy.device_count = 2;
	rig_start(&rig);
	rig.needs[9] = true;
	assert_int_equal(device_set(rig.engine, 2, &rig.devices[2], NULL), 0);
	rig.engine->devices[2].state = ENGINE_DEVICE_REBUILDING;
	rig.engine->devices[2].by_bitmap = true;
	sync_consider(rig.engine);
	run_out(&rig);
	assert_issued(&rig, 9, 10);
	assert_int_equal(state_of(&rig, 2), ENGINE_DEVICE_IN_SYNC);
	assert_false(rig.needs[9]);
	rig_fini(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_to_do),
		cmocka_unit_test(test_resync_from_checkpoint),
		cmocka_unit_test(test_low_water),
		cmocka_unit_test(test_checkpoint_follows_flush),
		cmocka_unit_test(test_spares_take_over),
		cmocka_unit_test(test_several_at_once),
		cmocka_unit_test(test_recovery_from_checkpoint),
		cmocka_unit_test(test_joins_half_way),
		cmocka_unit_test(test_replacement_was_ready),
		cmocka_unit_test(test_replaced_fails),
		cmocka_unit_test(test_lost_window),
		cmocka_unit_test(test_lost_for_one),
		cmocka_unit_test(test_array_fails),
		cmocka_unit_test(test_recovery_before_resync),
		cmocka_unit_test(test_degraded_resync),
		cmocka_unit_test(test_bitmap),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
