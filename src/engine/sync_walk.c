/* SPDX-License-Identifier: MIT */
/*
 * The walk: windows in rising order, several at once, done in any order. All below the low-water
 * mark is done.
 *
 * Done is not durable: a member may still have it in its cache. So the checkpoints that go into the
 * superblocks follow the low-water mark by a flush: when one ends, what was below the mark at its
 * start is "settled".
 */
#include "engine/sync_internal.h"

#include <assert.h>
#include <errno.h>

#include "util/rounding.h"

#define SETTLE_PARTS 16u      /* md writes a checkpoint this often on the way */
#define SETTLE_NS 5000000000u /* flushing costs little: and what is settled can be read */
#define SKIPS_MAX 1024u       /* bits looked at before others have their turn */

void sync_walk_start(struct sync *sync, enum engine_action action, uint64_t first, uint64_t end)
{
	uint64_t now = world_now_ns(sync->engine->world);

	assert(sync->phase == SYNC_RESTS && sync->inflight == 0);
	sync->phase = SYNC_WALKS;
	sync->action = action;
	sync->interrupted = false;
	/* Windows are aligned; doing a little twice does no harm. */
	sync->first_bytes = sync->next_bytes = min_u64(round_down(first, SYNC_WINDOW_BYTES), end);
	sync->low_bytes = sync->settled_bytes = sync->recorded_bytes = sync->first_bytes;
	sync->end_bytes = end;
	sync->settled_ns = sync->recorded_ns = now;
	sync->lost = false;
	pace_start(&sync->pace, now);
}

void sync_walk_interrupt(struct sync *sync)
{
	if (sync->phase != SYNC_WALKS)
		return;
	sync->phase = SYNC_DRAINS;
	sync->interrupted = true;
}

static bool needs_sync(const struct sync *sync, uint64_t first, uint64_t end)
{
	while (first < end) {
		uint64_t until;

		if (bitmap_needs_sync(sync->engine, first, &until))
			return true;
		if (until <= first)
			return true;
		first = until;
	}
	return false;
}

bool sync_is_consistent(const struct engine *engine, uint64_t first, uint64_t end)
{
	const struct sync *sync = engine->redundant->sync;

	if (end <= sync->consistent_below)
		return true;
	if (!record_has_bitmap(engine))
		return false;
	return !needs_sync(sync, max_u64(first, sync->consistent_below), end);
}

static uint64_t window_end(const struct sync *sync, uint64_t first)
{
	return min_u64(round_down(first, SYNC_WINDOW_BYTES) + SYNC_WINDOW_BYTES, sync->end_bytes);
}

/* Pass over windows that need no sync. False: there may be more of them, look again later. */
static bool skip(struct sync *sync)
{
	for (unsigned i = 0; i < SKIPS_MAX; i++) {
		uint64_t end = window_end(sync, sync->next_bytes), until;

		if (!sync->by_bitmap || sync->next_bytes >= sync->end_bytes ||
			needs_sync(sync, sync->next_bytes, end))
			return true;
		/* The answer for the last bit of the window may hold for many more. */
		(void)bitmap_needs_sync(sync->engine, end - 512, &until);
		if (until < sync->end_bytes)
			until = round_down(until, SYNC_WINDOW_BYTES);
		sync->next_bytes = min_u64(max_u64(until, end), sync->end_bytes);
	}
	return false;
}

static struct sync_place *free_place(struct sync *sync)
{
	for (unsigned i = 0; i < SYNC_WINDOWS_MAX; i++)
		if (!sync->places[i].busy)
			return &sync->places[i];
	return NULL;
}

static void issue(struct sync *sync, uint64_t now)
{
	struct sync_place *place = free_place(sync);
	struct sync_window *window = &place->window;

	window->engine = sync->engine;
	window->action = sync->action;
	window->first_bytes = sync->next_bytes;
	window->end_bytes = window_end(sync, sync->next_bytes);
	window->device = ENGINE_NONE;
	window->next = NULL;
	window->owner = NULL;
	window->number = (unsigned)(place - sync->places);
	place->busy = true;
	place->issued_ns = now;
	place->counted_end = window->first_bytes;
	sync->next_bytes = window->end_bytes;
	sync->inflight++;
	pace_issued(&sync->pace, now, window->end_bytes - window->first_bytes);
	sync->engine->level->sync_window(window);
}

static void raise_low_water(struct sync *sync)
{
	uint64_t low = sync->next_bytes;

	for (unsigned i = 0; i < SYNC_WINDOWS_MAX; i++)
		if (sync->places[i].busy)
			low = min_u64(low, sync->places[i].window.first_bytes);
	sync->low_bytes = low;
	if (sync->action == ENGINE_ACTION_RESYNC)
		sync->consistent_below = max_u64(sync->consistent_below, low);
}

/* Start what may start. */
static void walk(struct sync *sync)
{
	struct world *world = sync->engine->world;
	uint64_t now = world_now_ns(world), wait = 0;

	pace_look(&sync->pace, sync->engine, now);
	while (sync->inflight < SYNC_WINDOWS_MAX && sync->next_bytes < sync->end_bytes) {
		if (!skip(sync)) {
			sync_wake_now(sync);
			break;
		}
		if (sync->next_bytes >= sync->end_bytes)
			break;
		wait = pace_wait(&sync->pace, now, sync->inflight);
		if (wait > 0)
			break;
		issue(sync, now);
	}
	raise_low_water(sync);
	if (wait > 0)
		sync_wake(sync, wait);
	if (sync->inflight == 0 && sync->next_bytes >= sync->end_bytes)
		sync->phase = SYNC_ENDS;
}

static void note_lost(struct sync *sync, const struct sync_window *window)
{
	struct engine *engine = sync->engine;

	sync->lost_first = sync->lost ? min_u64(sync->lost_first, window->first_bytes)
				      : window->first_bytes;
	sync->lost_end = sync->lost ? max_u64(sync->lost_end, window->end_bytes)
				    : window->end_bytes;
	sync->lost = true;
	sync->lost_count++;
	/* In a failed array nothing can be said of this device. */
	if (sync->action != ENGINE_ACTION_RECOVERY || engine->redundant->failed)
		return;
	for (unsigned i = 0; i < engine->device_max; i++)
		if (engine->devices[i].rebuilds &&
			(window->device == ENGINE_NONE || window->device == i))
			engine->devices[i].given_up = true;
}

void sync_window_done(struct sync_window *window, int result)
{
	struct sync *sync = window->engine->redundant->sync;
	struct sync_place *place = &sync->places[window->number];

	assert(place->busy && &place->window == window);
	if (result < 0)
		note_lost(sync, window);
	place->busy = false;
	sync->inflight--;
	pace_done(&sync->pace, world_now_ns(sync->engine->world), place->issued_ns,
		window->end_bytes - window->first_bytes);
	sync_wake_now(sync);
}

static void flush_failed(struct engine *engine, unsigned device)
{
	/* As in flush.c: the last copy is kept, but nothing vouches for what it holds. */
	if (!device_fail(engine, device) || engine->redundant->failed)
		engine->devices[device].flush_lost = true;
}

static void flush_done(struct world_io *io, int result)
{
	struct sync_flush *flush = io->owner;
	struct sync *sync = flush->sync;
	struct device *device = &sync->engine->devices[flush->device];

	device_account(sync->engine, flush->device, io, result);
	if (result < 0)
		flush_failed(sync->engine, flush->device);
	else
		device->flushed = max_u64(device->flushed, flush->covers);
	if (--sync->flush_pending == 0)
		sync_wake_now(sync);
}

/* Each member that was written since its latest flush. */
static void start_flush(struct sync *sync)
{
	struct engine *engine = sync->engine;

	sync->flushing = true;
	sync->flush_low_bytes = sync->low_bytes;
	for (unsigned i = 0; i < engine->device_max; i++) {
		struct sync_flush *flush = &sync->flushes[i];
		const struct device *device = &engine->devices[i];

		if (!device_is_written(engine, i) || device->flush_lost ||
			device->flushed >= device->written)
			continue;
		flush->io = (struct world_io){
			.op = WORLD_FLUSH, .done = flush_done, .owner = flush};
		flush->covers = device->written;
		sync->flush_pending++;
		device_submit(engine, i, &flush->io, 0);
	}
	if (sync->flush_pending == 0)
		sync_wake_now(sync);
}

static void finish_flush(struct sync *sync)
{
	uint64_t before = sync->settled_bytes;

	sync->flushing = false;
	sync->settled_bytes = sync->flush_low_bytes;
	sync->settled_ns = world_now_ns(sync->engine->world);
	sync_settled(sync, before);
}

static bool is_flush_due(const struct sync *sync)
{
	uint64_t new_bytes = sync->low_bytes - sync->settled_bytes;
	uint64_t passed_ns = world_now_ns(sync->engine->world) - sync->settled_ns;

	if (new_bytes == 0 || sync->action == ENGINE_ACTION_CHECK ||
		sync->engine->redundant->failed)
		return false;
	return sync->phase == SYNC_ENDS || passed_ns >= SETTLE_NS ||
	       new_bytes >= (sync->end_bytes - sync->first_bytes) / SETTLE_PARTS;
}

void sync_walk_advance(struct sync *sync)
{
	if (sync->phase == SYNC_RESTS)
		return;
	if (sync->flushing && sync->flush_pending == 0)
		finish_flush(sync);
	raise_low_water(sync);
	if (sync->phase == SYNC_WALKS)
		walk(sync);
	else if (sync->phase == SYNC_DRAINS && sync->inflight == 0)
		sync->phase = SYNC_ENDS;
	if (!sync->flushing && is_flush_due(sync))
		start_flush(sync);
	else if (!sync->flushing && sync->phase == SYNC_ENDS)
		sync_end(sync);
	world_kick(sync->engine->world);
}
