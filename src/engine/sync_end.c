/* SPDX-License-Identifier: MIT */
/* How each kind of action begins, what its checkpoints are, and how it ends. */
#include "engine/sync_internal.h"

#include "util/rounding.h"

#define RECORD_PARTS 16u                       /* superblocks tell the position this often (md) */
#define RECORD_NS (UINT64_C(300) * 1000000000) /* and at least so often */
#define LOST_TOLD_MAX 8u

static bool is_rebuilding(const struct engine *engine, unsigned device)
{
	return engine->devices[device].state == ENGINE_DEVICE_REBUILDING;
}

bool sync_has_rebuilding(const struct engine *engine, bool walked_only)
{
	for (unsigned i = 0; i < engine->device_max; i++)
		if (is_rebuilding(engine, i) && (!walked_only || engine->devices[i].rebuilds))
			return true;
	return false;
}

static unsigned next_spare(const struct engine *engine)
{
	for (unsigned i = 0; i < engine->device_max; i++)
		if (engine->devices[i].state == ENGINE_DEVICE_SPARE && !engine->devices[i].given_up)
			return i;
	return ENGINE_NONE;
}

static unsigned next_vacant(const struct engine *engine)
{
	for (unsigned slot = 0; slot < engine->slot_count; slot++)
		if (engine->redundant->active[slot] == ENGINE_NONE)
			return slot;
	return ENGINE_NONE;
}

bool sync_has_takeover(const struct engine *engine)
{
	return next_spare(engine) != ENGINE_NONE && next_vacant(engine) != ENGINE_NONE;
}

void sync_finish_replacements(struct engine *engine)
{
	const struct redundant *r = engine->redundant;

	for (unsigned slot = 0; slot < engine->slot_count; slot++) {
		unsigned old = r->active[slot], new = r->replacement[slot];

		if (old == ENGINE_NONE || new == ENGINE_NONE ||
			engine->devices[new].state != ENGINE_DEVICE_IN_SYNC)
			continue;
		engine_event(
			engine, "device %u (slot %u) is replaced by device %u", old, slot, new);
		device_retire(engine, old);
		record_change(engine, NULL);
	}
}

static void take_over(struct engine *engine)
{
	while (sync_has_takeover(engine)) {
		unsigned spare = next_spare(engine), slot = next_vacant(engine);

		device_take_slot(engine, spare, slot);
		engine_event(engine, "spare device %u takes over slot %u", spare, slot);
	}
}

/* Only if all of them miss no more than what the bitmap knows, and it counts what is walked. */
static bool may_skip(const struct engine *engine)
{
	if (engine->level->level == 10 || !record_has_bitmap(engine))
		return false;
	for (unsigned i = 0; i < engine->device_max; i++)
		if (is_rebuilding(engine, i) && !engine->devices[i].by_bitmap)
			return false;
	return true;
}

static void begin_recovery(struct sync *sync)
{
	struct engine *engine = sync->engine;
	uint64_t end = engine->level->level == 10 ? engine->redundant->component_bytes
						  : engine->redundant->sync_bytes;
	uint64_t first = end;

	take_over(engine);
	for (unsigned i = 0; i < engine->device_max; i++) {
		struct device *device = &engine->devices[i];

		device->rebuilds = is_rebuilding(engine, i);
		if (!device->rebuilds)
			continue;
		device->given_up = false;
		first = min_u64(first, device->recovered_bytes);
		engine_event(engine, "recovery of device %u (slot %u) starts at byte %llu of %llu",
			i, device->slot, (unsigned long long)device->recovered_bytes,
			(unsigned long long)end);
	}
	sync->by_bitmap = may_skip(engine);
	sync->lost_count = 0;
	sync_walk_start(sync, ENGINE_ACTION_RECOVERY, first, end);
	record_change(engine, NULL);
}

static void end_of_resync(struct sync *sync)
{
	struct engine *engine = sync->engine;

	sync->resync_bytes = sync->consistent_below = UINT64_MAX;
	if (!devices_degraded(engine))
		bitmap_synced(engine, 0, engine->redundant->sync_bytes);
	record_change(engine, NULL);
}

static bool begin_resync(struct sync *sync)
{
	struct engine *engine = sync->engine;

	if (!sync_has_redundancy(engine)) {
		/*
		 * As md does: what a missing member holds is what parity says, so nothing is
		 * inconsistent any more. When the member is back, all of it is written anew.
		 */
		engine_event(engine, "resync ends: the array is degraded, so no redundancy is left "
				     "that could be made whole");
		end_of_resync(sync);
		return false;
	}
	engine_event(engine, "resync starts at byte %llu of %llu",
		(unsigned long long)sync->resync_bytes,
		(unsigned long long)engine->redundant->sync_bytes);
	sync->by_bitmap = record_has_bitmap(engine);
	sync->lost_count = 0;
	sync_walk_start(
		sync, ENGINE_ACTION_RESYNC, sync->resync_bytes, engine->redundant->sync_bytes);
	return true;
}

static void begin_scrub(struct sync *sync, enum engine_action action)
{
	if (sync->request_from == 0)
		sync_found_reset(sync);
	engine_event(sync->engine, "%s starts at byte %llu of %llu", sync_action_name(action),
		(unsigned long long)sync->request_from,
		(unsigned long long)sync->engine->redundant->sync_bytes);
	sync->by_bitmap = false;
	sync_walk_start(sync, action, sync->request_from, sync->engine->redundant->sync_bytes);
}

bool sync_begin(struct sync *sync, enum engine_action action)
{
	switch (action) {
	case ENGINE_ACTION_RECOVERY:
		begin_recovery(sync);
		return true;
	case ENGINE_ACTION_RESYNC:
		return begin_resync(sync);
	case ENGINE_ACTION_CHECK:
	case ENGINE_ACTION_REPAIR:
		begin_scrub(sync, action);
		return true;
	default:
		return false;
	}
}

static void record_sometimes(struct sync *sync)
{
	uint64_t now = world_now_ns(sync->engine->world);

	if (sync->settled_bytes - sync->recorded_bytes <
			(sync->end_bytes - sync->first_bytes) / RECORD_PARTS &&
		now - sync->recorded_ns < RECORD_NS)
		return;
	sync->recorded_bytes = sync->settled_bytes;
	sync->recorded_ns = now;
	record_change(sync->engine, NULL);
}

void sync_settled(struct sync *sync, uint64_t before)
{
	struct engine *engine = sync->engine;

	if (engine->redundant->failed || sync->action == ENGINE_ACTION_REPAIR)
		return;
	if (sync->action == ENGINE_ACTION_RESYNC) {
		sync->resync_bytes = max_u64(sync->resync_bytes, sync->settled_bytes);
		if (!devices_degraded(engine))
			bitmap_synced(engine, before, sync->settled_bytes);
	}
	for (unsigned i = 0; i < engine->device_max; i++) {
		struct device *device = &engine->devices[i];

		if (sync->action == ENGINE_ACTION_RECOVERY && device->rebuilds &&
			is_rebuilding(engine, i))
			device->recovered_bytes = max_u64(
				device->recovered_bytes, sync->settled_bytes);
	}
	if (sync->phase == SYNC_WALKS)
		record_sometimes(sync);
}

void sync_deal_with_lost(struct sync *sync)
{
	struct engine *engine = sync->engine;
	unsigned long long first = sync->lost_first, end = sync->lost_end;

	if (!sync->lost)
		return;
	sync->lost = false;
	sync->look = true;
	for (unsigned i = 0; i < engine->device_max; i++) {
		struct device *device = &engine->devices[i];

		if (!is_rebuilding(engine, i) || !device->given_up)
			continue;
		engine_event(engine,
			"recovery of device %u (slot %u) is given up: bytes %llu to %llu of the "
			"members cannot be made whole from the other devices; it is a spare again",
			i, device->slot, first, end);
		device_to_spare(engine, i);
		record_change(engine, NULL);
	}
	if (sync->action != ENGINE_ACTION_RECOVERY && sync->lost_count <= LOST_TOLD_MAX)
		engine_event(engine,
			"%s: not all of bytes %llu to %llu could be read or made whole",
			sync_action_name(sync->action), first, end);
}

/* Everything that rebuilt is in sync now, durably so: the walk ended with a flush. */
static void complete_recovery(struct sync *sync)
{
	struct engine *engine = sync->engine;
	bool fills = false;

	for (unsigned i = 0; i < engine->device_max; i++) {
		struct device *device = &engine->devices[i];

		if (!device->rebuilds || !is_rebuilding(engine, i))
			continue;
		device->state = ENGINE_DEVICE_IN_SYNC;
		fills |= !device->replacement;
		engine_event(engine,
			"recovery of device %u (slot %u) is done; %u of %u slots are "
			"in sync",
			i, device->slot, devices_in_sync(engine), engine->slot_count);
	}
	sync_finish_replacements(engine);
	/* The bits that stayed set while somebody was missing; a resync clears its own. */
	if (fills && !devices_degraded(engine) && sync->resync_bytes == UINT64_MAX)
		bitmap_synced(engine, 0, engine->redundant->sync_bytes);
}

static void end_recovery(struct sync *sync)
{
	struct engine *engine = sync->engine;

	if (!sync->interrupted && !engine->redundant->failed)
		complete_recovery(sync);
	for (unsigned i = 0; i < engine->device_max; i++)
		engine->devices[i].rebuilds = false;
	record_change(engine, NULL);
}

static void end_resync(struct sync *sync)
{
	if (sync->interrupted || sync->engine->redundant->failed) {
		record_change(sync->engine, NULL);
		return;
	}
	engine_event(sync->engine, "resync is done");
	end_of_resync(sync);
}

static void end_scrub(struct sync *sync)
{
	if (!sync->interrupted) {
		sync_found_tell(sync);
		sync->request = ENGINE_ACTION_IDLE;
	} else if (sync->request == sync->action && sync->paused) {
		sync->request_from = sync->low_bytes;
	}
	if (sync->interrupted)
		engine_event(sync->engine, "%s is interrupted at byte %llu",
			sync_action_name(sync->action), (unsigned long long)sync->low_bytes);
}

void sync_end(struct sync *sync)
{
	switch (sync->action) {
	case ENGINE_ACTION_RECOVERY:
		end_recovery(sync);
		break;
	case ENGINE_ACTION_RESYNC:
		end_resync(sync);
		break;
	default:
		end_scrub(sync);
	}
	sync->phase = SYNC_RESTS;
	sync->action = ENGINE_ACTION_IDLE;
	sync_consider(sync->engine); /* what is next? And who waits for this end? */
}
