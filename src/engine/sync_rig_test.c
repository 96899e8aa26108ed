/* SPDX-License-Identifier: MIT */
#include "engine/sync_rig_test.h"

#include <stdio.h>

#include "sim/sim.h"

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

/* What the record says of the resync now has to be durable already. */
static void check_durable(const struct rig *rig)
{
	uint64_t resync_bytes = sync_resync_bytes(rig->engine);

	for (unsigned i = 0; i < WINDOWS && (uint64_t)i * WINDOW < resync_bytes; i++) {
		const struct device *device = &rig->engine->devices[rig->stamp_devices[i]];

		assert_true(
			device->flushed >= rig->stamps[i] || device->state == ENGINE_DEVICE_FAULTY);
	}
}

void __wrap_record_change(struct engine *engine, struct record_waiter *waiter)
{
	the_rig->changes++;
	if (the_rig->latest_action == ENGINE_ACTION_RESYNC)
		check_durable(the_rig);
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
	const struct sync_window *window = io->owner;
	unsigned number = window->first_bytes / WINDOW;

	device_account(the_rig->engine, io->tag, io, result);
	the_rig->stamps[number] = the_rig->engine->devices[io->tag].written;
	the_rig->stamp_devices[number] = io->tag;
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

void release(struct rig *rig, unsigned index)
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

bool has_event(const struct rig *rig, const char *words)
{
	for (unsigned i = 0; i < rig->event_count; i++)
		if (strstr(rig->events[i], words) != NULL)
			return true;
	return false;
}

void rig_init(struct rig *rig, int level, unsigned slots, unsigned spares)
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

void rig_start(struct rig *rig)
{
	struct fault fault = {0};

	if (engine_new(&rig->config, sim_world(rig->sim), &rig->engine, &fault) < 0)
		fail_msg("%s", fault.text);
}

void rig_fini(struct rig *rig)
{
	engine_free(rig->engine);
	sim_free(rig->sim);
}

struct engine_status status_of(const struct rig *rig)
{
	struct engine_status status;

	assert_true(engine_status(rig->engine, &status));
	return status;
}

enum engine_device_state state_of(const struct rig *rig, unsigned device)
{
	return rig->engine->devices[device].state;
}

void run_out(struct rig *rig)
{
	assert_true(sim_run(rig->sim, 100000) < 100000);
	assert_int_equal(status_of(rig).action, ENGINE_ACTION_IDLE);
}

void run_windows(struct rig *rig, unsigned count)
{
	unsigned total = 0;

	while (total < count) {
		assert_true(sim_step(rig->sim));
		total = 0;
		for (unsigned i = 0; i < WINDOWS; i++)
			total += rig->issued[i];
	}
}

void forget_windows(struct rig *rig)
{
	memset(rig->issued, 0, sizeof(rig->issued));
}

void assert_issued(const struct rig *rig, unsigned first, unsigned end)
{
	for (unsigned i = 0; i < WINDOWS; i++)
		if (rig->issued[i] != (first <= i && i < end))
			fail_msg("window %u was issued %u times", i, rig->issued[i]);
}

static void on_command(struct engine_command *command, int result)
{
	*(int *)command->owner = result;
}

int command(struct rig *rig, struct engine_command *command)
{
	int result = 1;

	command->done = on_command;
	command->owner = &result;
	engine_command(rig->engine, command);
	while (result == 1)
		assert_true(sim_step(rig->sim));
	return result;
}

int fail_device(struct rig *rig, unsigned device)
{
	struct engine_command fail = {.verb = ENGINE_FAIL, .device = device};

	return command(rig, &fail);
}
