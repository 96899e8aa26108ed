/* SPDX-License-Identifier: MIT */
/*
 * The background action by itself: over a level whose windows do what a test says, and a record
 * that only notes what it is asked. What real levels make of it is in sync_level_test.c.
 */
#include "engine/sync.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/devices.h"
#include "engine/record.h"
#include "sim/sim.h"
#include "util/rounding.h"

#define K 1024u
#define WINDOW SYNC_WINDOW_BYTES
#define DISKS 6u
#define WINDOWS 40u /* of the fake array */
#define COMPONENT (uint64_t)(WINDOWS * WINDOW - 12 * K)
#define SECOND_NS UINT64_C(1000000000)

struct rig {
	struct sim *sim;
	struct engine *engine;
	struct engine_device devices[DISKS];
	struct engine_redundancy redundancy;
	struct engine_config config;
	struct engine_level level;

	/* The level. */
	bool hold; /* windows end only when the test says so */
	struct sync_window *held[SYNC_WINDOWS_MAX];
	unsigned held_count;
	struct world_io ios[SYNC_WINDOWS_MAX];
	struct iovec iovs[SYNC_WINDOWS_MAX];
	uint8_t buffer[WINDOW];
	unsigned issued[WINDOWS + 1]; /* how often, by window */
	uint64_t latest_first;
	enum engine_action latest_action;
	unsigned in_flight, most_in_flight;
	uint64_t lost_at; /* windows around this byte fail */
	unsigned lost_device;
	unsigned mismatch_every; /* windows with a number that this divides have one */

	/* The record. */
	unsigned changes;
	bool has_bitmap;
	bool needs[WINDOWS]; /* one bit per window */
	uint64_t synced_bytes;

	char events[64][200];
	unsigned event_count;
	bool stopped;
};

static struct rig *the_rig;

/* Names of wrapped functions are the linker's. */
const struct engine_level *__wrap_engine_level_find(int level);
void __wrap_record_change(struct engine *engine, struct record_waiter *waiter);
bool __wrap_record_has_bitmap(const struct engine *engine);
bool __wrap_bitmap_needs_sync(const struct engine *engine, uint64_t first, uint64_t *ret_end);
void __wrap_bitmap_synced(struct engine *engine, uint64_t first, uint64_t end);

const struct engine_level *__wrap_engine_level_find(int level)
{
	return level == the_rig->level.level ? &the_rig->level : NULL;
}

void __wrap_record_change(struct engine *engine, struct record_waiter *waiter)
{
	the_rig->changes++;
	if (waiter != NULL)
		waiter->done(waiter, 0);
}

bool __wrap_record_has_bitmap(const struct engine *engine)
{
	return the_rig->has_bitmap;
}

bool __wrap_bitmap_needs_sync(const struct engine *engine, uint64_t first, uint64_t *ret_end)
{
	*ret_end = round_down(first, WINDOW) + WINDOW;
	return !the_rig->has_bitmap || the_rig->needs[first / WINDOW];
}

void __wrap_bitmap_synced(struct engine *engine, uint64_t first, uint64_t end)
{
	the_rig->synced_bytes += end - first;
	for (uint64_t at = round_up(first, WINDOW); at < end; at += WINDOW)
		if (min_u64(at + WINDOW, COMPONENT) <= end)
			the_rig->needs[at / WINDOW] = false;
}

static void window_ends(struct sync_window *window)
{
	struct rig *rig = the_rig;
	bool lost = window->first_bytes <= rig->lost_at && rig->lost_at < window->end_bytes;

	rig->in_flight--;
	if (lost)
		window->device = rig->lost_device;
	if (rig->mismatch_every != 0 && window->first_bytes / WINDOW % rig->mismatch_every == 0) {
		sync_mismatch(window->engine, window->first_bytes + 512, 512, 1);
		sync_mismatch(window->engine, window->first_bytes + 2048, 512, 1);
	}
	sync_window_done(window, lost ? -EIO : 0);
}

static void io_done(struct world_io *io, int result)
{
	device_account(the_rig->engine, io->tag, io, result);
	window_ends(io->owner);
}

/* Time passes by I/O on the first device that can take it; it writes, so that there is something
 * to flush. */
static void fake_window(struct sync_window *window)
{
	struct rig *rig = the_rig;
	struct world_io *io = &rig->ios[window->number];
	unsigned device = 0;

	assert_true(window->first_bytes % WINDOW == 0 && window->end_bytes <= COMPONENT);
	assert_true(window->end_bytes % WINDOW == 0 || window->end_bytes == COMPONENT);
	rig->issued[window->first_bytes / WINDOW]++;
	rig->latest_first = window->first_bytes;
	rig->latest_action = window->action;
	rig->in_flight++;
	rig->most_in_flight = rig->in_flight > rig->most_in_flight ? rig->in_flight
								   : rig->most_in_flight;
	if (rig->hold) {
		rig->held[rig->held_count++] = window;
		return;
	}
	while (!device_is_written(rig->engine, device))
		device++;
	rig->iovs[window->number] = (struct iovec){
		rig->buffer, window->end_bytes - window->first_bytes};
	*io = (struct world_io){.op = WORLD_WRITE,
		.length_bytes = rig->iovs[window->number].iov_len,
		.iov = &rig->iovs[window->number],
		.iov_count = 1,
		.done = io_done,
		.owner = window,
		.tag = device};
	device_submit(rig->engine, device, io, window->first_bytes);
}

static void release(struct rig *rig, unsigned index)
{
	struct sync_window *window = rig->held[index];

	rig->held[index] = rig->held[--rig->held_count];
	window_ends(window);
}

static int fake_init(struct engine *engine, const struct engine_config *config, struct fault *fault)
{
	engine->array_bytes = COMPONENT;
	engine->redundant->sync_bytes = COMPONENT;
	return 0;
}

static void request_done(struct world_io *io, int result)
{
	struct part *part = io->owner;

	device_account(part->work->engine, part->device, io, result);
	part->work->pending--;
	work_end(part->work);
}

/* Requests read or write the same place on the first device. */
static void fake_start(struct work *work)
{
	struct part *part = &work->parts[0];

	part->io.op = work->request->op == ENGINE_READ ? WORLD_READ : WORLD_WRITE;
	part->io.iov = work->request->iov;
	part->io.iov_count = work->request->iov_count;
	part->io.length_bytes = work->request->length_bytes;
	part->io.done = request_done;
	part_submit(part, work->request->offset_bytes);
}

static void on_event(void *owner, const char *text)
{
	struct rig *rig = owner;

	if (rig->event_count < 64)
		(void)snprintf(rig->events[rig->event_count++], 200, "%s", text);
}

static bool has_event(const struct rig *rig, const char *words)
{
	for (unsigned i = 0; i < rig->event_count; i++)
		if (strstr(rig->events[i], words) != NULL)
			return true;
	return false;
}

/* @slots slots with a device each, and @spares spares. */
static void rig_init(struct rig *rig, int level, unsigned slots, unsigned spares)
{
	uint64_t disk_bytes[DISKS];
	struct sim_options options = {.seed = 1,
		.disk_count = DISKS,
		.disk_bytes = disk_bytes,
		.latency_min_ns = 1000,
		.latency_max_ns = 200000};

	memset(rig, 0, sizeof(*rig));
	the_rig = rig;
	rig->lost_at = UINT64_MAX;
	rig->lost_device = ENGINE_NONE;
	rig->level = (struct engine_level){.level = level,
		.name = "fake",
		.slots_min = 1,
		.start = fake_start,
		.redundant = true,
		.init = fake_init,
		.sync_window = fake_window};
	for (unsigned i = 0; i < DISKS; i++) {
		disk_bytes[i] = COMPONENT + 64 * K;
		rig->devices[i] = (struct engine_device){.member = i,
			.slot = i < slots ? i : ENGINE_NONE,
			.in_sync = i < slots,
			.data_offset_bytes = 64 * K,
			.data_bytes = COMPONENT,
			.logical_block_bytes = 512};
	}
	rig->redundancy = (struct engine_redundancy){.component_bytes = COMPONENT,
		.resync_bytes = UINT64_MAX,
		.devices = rig->devices,
		.device_count = slots + spares,
		.device_max = DISKS,
		.event = on_event};
	rig->config = (struct engine_config){.level = level,
		.layout = level == 10 ? 0x102 : 2,
		.chunk_bytes = 64 * K,
		.slot_count = slots,
		.requests_max = 8,
		.owner = rig,
		.redundancy = &rig->redundancy};
	assert_int_equal(sim_new(&options, &rig->sim, NULL), 0);
}

static void rig_start(struct rig *rig)
{
	struct fault fault = {0};

	if (engine_new(&rig->config, sim_world(rig->sim), &rig->engine, &fault) < 0)
		fail_msg("%s", fault.text);
}

static void rig_fini(struct rig *rig)
{
	engine_free(rig->engine);
	sim_free(rig->sim);
}

static struct engine_status status_of(const struct rig *rig)
{
	struct engine_status status;

	assert_true(engine_status(rig->engine, &status));
	return status;
}

static enum engine_device_state state_of(const struct rig *rig, unsigned device)
{
	return rig->engine->devices[device].state;
}

/* Until nothing is to be done any more: every action ends. */
static void run_out(struct rig *rig)
{
	assert_true(sim_run(rig->sim, 100000) < 100000);
	assert_int_equal(status_of(rig).action, ENGINE_ACTION_IDLE);
}

/* Run until @count windows have been issued since. */
static void run_windows(struct rig *rig, unsigned count)
{
	unsigned total = 0;

	while (total < count) {
		assert_true(sim_step(rig->sim));
		total = 0;
		for (unsigned i = 0; i < WINDOWS; i++)
			total += rig->issued[i];
	}
}

static void forget_windows(struct rig *rig)
{
	memset(rig->issued, 0, sizeof(rig->issued));
}

static void assert_issued(const struct rig *rig, unsigned first, unsigned end)
{
	for (unsigned i = 0; i < WINDOWS; i++)
		if (rig->issued[i] != (first <= i && i < end))
			fail_msg("window %u was issued %u times", i, rig->issued[i]);
}

static void on_command(struct engine_command *command, int result)
{
	*(int *)command->owner = result;
}

static int command(struct rig *rig, struct engine_command *command)
{
	int result = 1;

	command->done = on_command;
	command->owner = &result;
	engine_command(rig->engine, command);
	while (result == 1)
		assert_true(sim_step(rig->sim));
	return result;
}

static int fail_device(struct rig *rig, unsigned device)
{
	struct engine_command fail = {.verb = ENGINE_FAIL, .device = device};

	return command(rig, &fail);
}

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

static void test_check(void **state)
{
	struct engine_status status;
	struct rig rig;

	rig_init(&rig, 5, 3, 0);
	rig.mismatch_every = 10;
	rig_start(&rig);
	assert_int_equal(sync_request(rig.engine, ENGINE_ACTION_CHECK), 0);
	run_windows(&rig, 1);
	assert_int_equal(status_of(&rig).action, ENGINE_ACTION_CHECK);
	assert_int_equal(status_of(&rig).total_bytes, COMPONENT);
	assert_int_equal(sync_request(rig.engine, ENGINE_ACTION_REPAIR), -EBUSY);
	run_out(&rig);
	status = status_of(&rig);
	assert_issued(&rig, 0, WINDOWS);
	/* Two ranges in a page: eight sectors in md's counting, once. */
	assert_int_equal(status.mismatch_sectors, 4 * 8);
	assert_int_equal(status.mismatch_count, 8);
	for (unsigned i = 0; i < 8; i++) {
		assert_int_equal(status.mismatches[i].sync_offset_bytes,
			(uint64_t)(i / 2 * 10) * WINDOW + (i % 2 ? 2048 : 512));
		assert_int_equal(status.mismatches[i].length_bytes, 512);
		assert_int_equal(status.mismatches[i].slot, 1);
	}
	assert_true(has_event(&rig, "check found 32 sectors"));
	assert_int_equal(rig.changes, 0);
	/* The next one starts to count anew. */
	rig.mismatch_every = 0;
	assert_int_equal(sync_request(rig.engine, ENGINE_ACTION_CHECK), 0);
	run_out(&rig);
	assert_int_equal(status_of(&rig).mismatch_sectors, 0);
	assert_int_equal(status_of(&rig).mismatch_count, 0);
	assert_true(has_event(&rig, "check done: no mismatches"));
	rig_fini(&rig);
}

/* Whatever the order in which they are found: sorted, merged if they touch, of one slot each. */
static void test_mismatches_merge(void **state)
{
	enum { PIECES = 100 };
	struct engine_status status;
	struct rig rig;

	for (unsigned seed = 0; seed < 50; seed++) {
		bool found[PIECES] = {false};
		unsigned ranges = 0, first = 0;

		rig_init(&rig, 5, 3, 0);
		rig.hold = true;
		rig_start(&rig);
		assert_int_equal(sync_request(rig.engine, ENGINE_ACTION_CHECK), 0);
		run_windows(&rig, 1);
		for (unsigned i = 0; i < seed; i++)
			(void)sim_draw(rig.sim, 2);
		for (unsigned i = 0; i < PIECES; i++) {
			unsigned piece = (unsigned)sim_draw(rig.sim, PIECES);

			if (found[piece])
				continue;
			found[piece] = true;
			sync_mismatch(rig.engine, piece * 512, 512, piece / 50);
		}
		status = status_of(&rig);
		for (unsigned piece = 0; piece <= PIECES; piece++) {
			bool in = piece < PIECES && found[piece];

			if (first < piece && (!in || piece == 50)) {
				assert_true(ranges < status.mismatch_count);
				assert_int_equal(
					status.mismatches[ranges].sync_offset_bytes, first * 512);
				assert_int_equal(status.mismatches[ranges].length_bytes,
					(piece - first) * 512);
				assert_int_equal(status.mismatches[ranges].slot, first / 50);
				ranges++;
			}
			if (!in)
				first = piece + 1;
			else if (piece == 50)
				first = piece;
		}
		assert_int_equal(ranges, status.mismatch_count);
		while (rig.held_count > 0)
			release(&rig, 0);
		rig.hold = false;
		run_out(&rig);
		rig_fini(&rig);
	}
}

static void test_more_mismatches_than_room(void **state)
{
	struct rig rig;

	rig_init(&rig, 10, 4, 0);
	rig.hold = true;
	rig_start(&rig);
	assert_int_equal(sync_request(rig.engine, ENGINE_ACTION_REPAIR), 0);
	run_windows(&rig, SYNC_WINDOWS_MAX);
	for (unsigned i = 0; i < 2 * ENGINE_MISMATCHES_MAX; i++)
		sync_mismatch(rig.engine, i * 1024, 512, ENGINE_NONE);
	assert_int_equal(status_of(&rig).mismatch_count, ENGINE_MISMATCHES_MAX);
	/* A mirror compares 64 KiB at once: 8 windows of 128 sectors. */
	assert_int_equal(status_of(&rig).mismatch_sectors, 8 * 128);
	rig.hold = false;
	while (rig.held_count > 0)
		release(&rig, 0);
	run_out(&rig);
	assert_true(has_event(&rig, "256 or more ranges"));
	rig_fini(&rig);
}

static void test_requests(void **state)
{
	struct rig rig;

	rig_init(&rig, 5, 3, 0);
	rig_start(&rig);
	assert_int_equal(sync_request(rig.engine, ENGINE_ACTION_RECOVERY), -EINVAL);
	assert_int_equal(sync_request(rig.engine, ENGINE_ACTION_RESYNC), 0);
	run_out(&rig);
	assert_issued(&rig, 0, 0);
	/* IDLE interrupts; the next one can be asked for at once. */
	assert_int_equal(sync_request(rig.engine, ENGINE_ACTION_CHECK), 0);
	run_windows(&rig, 20);
	assert_int_equal(sync_request(rig.engine, ENGINE_ACTION_IDLE), 0);
	(void)sim_step(rig.sim);
	assert_int_equal(sync_request(rig.engine, ENGINE_ACTION_REPAIR), 0);
	run_out(&rig);
	assert_int_equal(rig.latest_action, ENGINE_ACTION_REPAIR);
	assert_int_equal(rig.issued[0], 2);
	assert_int_equal(rig.issued[WINDOWS - 1], 1);
	assert_true(has_event(&rig, "check is interrupted at byte"));
	/* Frozen: nothing starts; a check thaws. */
	forget_windows(&rig);
	assert_int_equal(sync_request(rig.engine, ENGINE_ACTION_FROZEN), 0);
	(void)sim_run(rig.sim, 1000);
	assert_int_equal(status_of(&rig).action, ENGINE_ACTION_FROZEN);
	assert_int_equal(sync_request(rig.engine, ENGINE_ACTION_CHECK), 0);
	run_out(&rig);
	assert_issued(&rig, 0, WINDOWS);
	/* Degraded RAID 5 has nothing to compare. */
	assert_int_equal(fail_device(&rig, 0), 0);
	assert_int_equal(sync_request(rig.engine, ENGINE_ACTION_CHECK), -EINVAL);
	rig_fini(&rig);
}

static void test_frozen_recovery(void **state)
{
	uint64_t recovered;
	struct rig rig;

	rig_init(&rig, 5, 3, 1);
	rig_start(&rig);
	assert_int_equal(fail_device(&rig, 0), 0);
	run_windows(&rig, 25);
	assert_int_equal(sync_request(rig.engine, ENGINE_ACTION_FROZEN), 0);
	assert_true(sim_run(rig.sim, 10000) < 10000);
	assert_int_equal(status_of(&rig).action, ENGINE_ACTION_FROZEN);
	recovered = rig.engine->devices[3].recovered_bytes;
	assert_true(recovered >= 25 * WINDOW && recovered < COMPONENT);
	/* The check would have to wait for the recovery. */
	assert_int_equal(sync_request(rig.engine, ENGINE_ACTION_CHECK), -EINVAL);
	assert_int_equal(sync_request(rig.engine, ENGINE_ACTION_IDLE), 0);
	run_out(&rig);
	assert_issued(&rig, 0, WINDOWS);
	assert_int_equal(state_of(&rig, 3), ENGINE_DEVICE_IN_SYNC);
	rig_fini(&rig);
}

static void test_pause_and_resume(void **state)
{
	static const enum engine_action actions[] = {
		ENGINE_ACTION_RESYNC, ENGINE_ACTION_CHECK, ENGINE_ACTION_RECOVERY};

	for (unsigned i = 0; i < 3; i++) {
		struct engine_command readonly = {.verb = ENGINE_READONLY};
		struct engine_command readwrite = {.verb = ENGINE_READWRITE};
		struct rig rig;

		rig_init(&rig, 6, 4, 0);
		rig.redundancy.resync_bytes = actions[i] == ENGINE_ACTION_RESYNC ? 0 : UINT64_MAX;
		rig.devices[0].in_sync = actions[i] != ENGINE_ACTION_RECOVERY;
		rig_start(&rig);
		if (actions[i] == ENGINE_ACTION_CHECK)
			assert_int_equal(sync_request(rig.engine, ENGINE_ACTION_CHECK), 0);
		run_windows(&rig, 20);
		assert_int_equal(status_of(&rig).action, actions[i]);
		assert_int_equal(command(&rig, &readonly), 0);
		assert_int_equal(rig.in_flight, 0);
		assert_true(sim_run(rig.sim, 10000) < 10000);
		assert_int_equal(status_of(&rig).action, ENGINE_ACTION_IDLE);
		if (actions[i] == ENGINE_ACTION_RESYNC)
			assert_in_range(sync_resync_bytes(rig.engine), 20 * WINDOW, COMPONENT - 1);
		assert_int_equal(command(&rig, &readwrite), 0);
		run_out(&rig);
		assert_issued(&rig, 0, WINDOWS);
		assert_true(sync_resync_bytes(rig.engine) == UINT64_MAX);
		assert_int_equal(devices_in_sync(rig.engine), 4);
		rig_fini(&rig);
	}
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

struct client {
	struct rig *rig;
	struct engine_request request;
	struct iovec iov;
	uint8_t buffer[4096];
	uint64_t started_ns, think_ns, longest_ns;
	unsigned count;
	bool stop;
	struct world_timer timer;
};

static void client_done(struct engine_request *request, int result);

static void client_next(struct world_timer *timer)
{
	struct client *client = timer->owner;

	client->iov = (struct iovec){client->buffer, sizeof(client->buffer)};
	client->request = (struct engine_request){.op = ENGINE_READ,
		.offset_bytes = sim_draw(client->rig->sim, COMPONENT / 4096) * 4096,
		.length_bytes = 4096,
		.iov = &client->iov,
		.iov_count = 1,
		.done = client_done,
		.owner = client};
	client->started_ns = sim_now_ns(client->rig->sim);
	engine_submit(client->rig->engine, &client->request);
	engine_kick(client->rig->engine);
}

static void client_done(struct engine_request *request, int result)
{
	struct client *client = request->owner;
	struct world *world = sim_world(client->rig->sim);

	assert_int_equal(result, 0);
	client->count++;
	if (!client->stop)
		world->ops->timer_arm(
			world, &client->timer, world_now_ns(world) + client->think_ns);
}

static void client_start(struct client *client, struct rig *rig, uint64_t think_ns)
{
	memset(client, 0, sizeof(*client));
	client->rig = rig;
	client->think_ns = think_ns;
	client->timer.expired = client_next;
	client->timer.owner = client;
	client_next(&client->timer);
}

static uint64_t run_resync_ns(struct rig *rig)
{
	uint64_t from = sim_now_ns(rig->sim);

	while (sync_resync_bytes(rig->engine) != UINT64_MAX)
		assert_true(sim_step(rig->sim));
	return sim_now_ns(rig->sim) - from;
}

static void test_speed(void **state)
{
	uint64_t passed;
	struct client client;
	struct rig rig;

	/* Not above the maximum, nor much below it while nobody else is there. */
	rig_init(&rig, 5, 3, 0);
	rig.redundancy.resync_bytes = 0;
	rig.redundancy.sync_speed_max = 2 * WINDOW;
	rig.redundancy.sync_speed_min = WINDOW;
	rig_start(&rig);
	while (sim_now_ns(rig.sim) < 10 * SECOND_NS)
		assert_true(sim_step(rig.sim));
	assert_in_range(status_of(&rig).speed_bytes_s, WINDOW * 18 / 10, WINDOW * 22 / 10);
	passed = 10 * SECOND_NS + run_resync_ns(&rig);
	assert_in_range(passed, 19 * SECOND_NS, 20 * SECOND_NS);
	rig_fini(&rig);

	/* Changed on the way. */
	rig_init(&rig, 5, 3, 0);
	rig.redundancy.resync_bytes = 0;
	rig.redundancy.sync_speed_min = rig.redundancy.sync_speed_max = 512;
	rig_start(&rig);
	while (sim_now_ns(rig.sim) < 60 * SECOND_NS)
		assert_true(sim_step(rig.sim));
	sync_set_speed(rig.engine, 0, 0);
	assert_int_equal(status_of(&rig).sync_speed_min, 1000 * K);
	assert_int_equal(status_of(&rig).sync_speed_max, 200000 * K);
	passed = run_resync_ns(&rig);
	assert_true(passed < SECOND_NS);
	/* What was not used is not saved up: a burst of 20 ms at most. */
	assert_true(rig.most_in_flight == SYNC_WINDOWS_MAX);
	rig_fini(&rig);

	/* Clients without a break: not below the minimum, and one window at a time above it. */
	rig_init(&rig, 5, 3, 0);
	rig.redundancy.resync_bytes = 0;
	rig.redundancy.sync_speed_min = 4 * WINDOW;
	rig_start(&rig);
	client_start(&client, &rig, 0);
	passed = run_resync_ns(&rig);
	assert_true(passed <= 10 * SECOND_NS);
	/* A window takes 0.1 ms and leaves 0.3: much more than the minimum. */
	assert_in_range(passed, WINDOWS * 300000, WINDOWS * 500000);
	assert_true(rig.most_in_flight <= 2);
	client.stop = true;
	run_out(&rig);
	rig_fini(&rig);
}

/* The members are so slow that the share left by clients is below the minimum. */
static void test_minimum_wins(void **state)
{
	uint64_t passed;
	struct client client;
	struct rig rig;

	rig_init(&rig, 5, 3, 0);
	rig.redundancy.resync_bytes = 0;
	rig.redundancy.sync_speed_min = 50000 * WINDOW;
	rig.redundancy.sync_speed_max = 100000 * WINDOW;
	rig_start(&rig);
	client_start(&client, &rig, 0);
	passed = run_resync_ns(&rig);
	assert_true(passed <= 4 * (WINDOWS * 20000 + 16 * 200000));
	client.stop = true;
	run_out(&rig);
	rig_fini(&rig);
}

/* When the clients rest, the action has all of the members within a tenth of a second. */
static void test_idle_again(void **state)
{
	struct client client;
	struct rig rig;

	rig_init(&rig, 5, 3, 0);
	rig_start(&rig);
	client_start(&client, &rig, 0);
	for (int i = 0; i < 100; i++)
		assert_true(sim_step(rig.sim));
	rig.hold = true;
	assert_int_equal(sync_request(rig.engine, ENGINE_ACTION_CHECK), 0);
	run_windows(&rig, 1);
	client.stop = true;
	while (rig.held_count < SYNC_WINDOWS_MAX)
		assert_true(sim_step(rig.sim));
	assert_true(sim_now_ns(rig.sim) < SECOND_NS / 10);
	rig.hold = false;
	while (rig.held_count > 0)
		release(&rig, 0);
	run_out(&rig);
	rig_fini(&rig);
}

static void ask_something(struct rig *rig)
{
	static const enum engine_action asked[] = {ENGINE_ACTION_IDLE, ENGINE_ACTION_CHECK,
		ENGINE_ACTION_REPAIR, ENGINE_ACTION_RESYNC, ENGINE_ACTION_FROZEN};

	(void)sync_request(rig->engine, asked[sim_draw(rig->sim, 5)]);
}

static void close_and_open(struct rig *rig)
{
	struct engine_command readonly = {.verb = ENGINE_READONLY};
	struct engine_command readwrite = {.verb = ENGINE_READWRITE};

	assert_int_equal(command(rig, &readonly), 0);
	(void)sim_run(rig->sim, sim_draw(rig->sim, 50));
	assert_int_equal(rig->in_flight, 0);
	assert_int_equal(command(rig, &readwrite), 0);
}

static void remove_and_add(struct rig *rig, unsigned device)
{
	struct engine_command remove = {.verb = ENGINE_REMOVE, .device = device};
	struct engine_command add = {.verb = ENGINE_ADD, .add = &rig->devices[device]};

	if (command(rig, &remove) == 0)
		assert_int_equal(command(rig, &add), 0);
}

static void do_something(struct rig *rig)
{
	unsigned device = (unsigned)sim_draw(rig->sim, DISKS);
	struct engine_command fail = {.verb = ENGINE_FAIL, .device = device};
	struct engine_command replace = {
		.verb = ENGINE_REPLACE, .device = device, .with = ENGINE_NONE};

	rig->lost_at = sim_draw(rig->sim, 20) == 0 ? sim_draw(rig->sim, COMPONENT) : UINT64_MAX;
	switch (sim_draw(rig->sim, 6)) {
	case 0:
		(void)command(rig, &fail);
		break;
	case 1:
		remove_and_add(rig, device);
		break;
	case 2:
		(void)command(rig, &replace);
		break;
	case 3:
		ask_something(rig);
		break;
	case 4:
		close_and_open(rig);
		break;
	default:
		(void)sim_run(rig->sim, sim_draw(rig->sim, 200));
	}
}

/* All members are well again, whoever was faulty is added anew: then everything is made whole. */
static void converge(struct rig *rig)
{
	rig->lost_at = UINT64_MAX;
	(void)sync_request(rig->engine, ENGINE_ACTION_IDLE);
	run_out(rig);
	assert_int_equal(sync_request(rig->engine, ENGINE_ACTION_RESYNC), 0);
	run_out(rig);
	assert_false(rig->engine->redundant->failed);
	for (unsigned i = 0; i < DISKS; i++)
		if (state_of(rig, i) == ENGINE_DEVICE_FAULTY)
			remove_and_add(rig, i);
	run_out(rig);
	assert_false(devices_degraded(rig->engine));
	forget_windows(rig);
	assert_int_equal(sync_request(rig->engine, ENGINE_ACTION_CHECK), 0);
	run_out(rig);
	assert_issued(rig, 0, WINDOWS);
}

/* Commands, failures and pauses in any order: it always comes to rest, with all in order. */
static void test_any_order(void **state)
{
	for (unsigned seed = 1; seed <= 300; seed++) {
		struct rig rig;

		rig_init(&rig, 6, 4, 2);
		rig_start(&rig);
		for (unsigned i = 0; i < seed; i++)
			(void)sim_draw(rig.sim, 2);
		for (unsigned i = 0; i < 30; i++)
			do_something(&rig);
		converge(&rig);
		rig_fini(&rig);
	}
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
		cmocka_unit_test(test_check),
		cmocka_unit_test(test_mismatches_merge),
		cmocka_unit_test(test_more_mismatches_than_room),
		cmocka_unit_test(test_requests),
		cmocka_unit_test(test_frozen_recovery),
		cmocka_unit_test(test_pause_and_resume),
		cmocka_unit_test(test_recovery_before_resync),
		cmocka_unit_test(test_degraded_resync),
		cmocka_unit_test(test_bitmap),
		cmocka_unit_test(test_speed),
		cmocka_unit_test(test_minimum_wins),
		cmocka_unit_test(test_idle_again),
		cmocka_unit_test(test_any_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
