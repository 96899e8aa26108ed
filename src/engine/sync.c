/* SPDX-License-Identifier: MIT */
/*
 * The background action: what is to be done, in md's order: members are rebuilt before redundancy
 * is made whole, and both before anybody looks at it.
 */
#include "engine/sync.h"

#include <errno.h>

#include "engine/sync_internal.h"
#include "util/rounding.h"

void sync_wake(struct sync *sync, uint64_t due_ns)
{
	struct world *world = sync->engine->world;

	if (!sync->timer.armed || due_ns < sync->timer.due_ns)
		world->ops->timer_arm(world, &sync->timer, due_ns);
}

void sync_wake_now(struct sync *sync)
{
	sync_wake(sync, world_now_ns(sync->engine->world));
}

const char *sync_action_name(enum engine_action action)
{
	static const char *const names[] = {
		"idle", "resync", "recovery", "check", "repair", "frozen"};

	return names[action];
}

/* RAID 10 is walked as it is: each chunk's copies may have a survivor to compare with or not. */
bool sync_has_redundancy(const struct engine *engine)
{
	unsigned missing = engine->slot_count - devices_in_sync(engine);

	switch (engine->level->level) {
	case 1:
		return devices_in_sync(engine) > 1;
	case 4:
	case 5:
		return missing < 1;
	case 6:
		return missing < 2;
	default:
		return true;
	}
}

static bool may_run(const struct sync *sync)
{
	const struct redundant *r = sync->engine->redundant;

	return !sync->engine->readonly && !r->stopping && !r->failed && !sync->frozen &&
	       !sync->paused;
}

/* What should be running? */
static enum engine_action choose(const struct sync *sync)
{
	const struct engine *engine = sync->engine;

	if (!may_run(sync))
		return ENGINE_ACTION_IDLE;
	if (sync_has_rebuilding(engine, false) || sync_has_takeover(engine))
		return ENGINE_ACTION_RECOVERY;
	if (sync->resync_bytes != UINT64_MAX)
		return ENGINE_ACTION_RESYNC;
	return sync_has_redundancy(engine) ? sync->request : ENGINE_ACTION_IDLE;
}

/* Is the walk under way of no use any more, or is another one more urgent? */
static bool must_stop(const struct sync *sync, enum engine_action wanted)
{
	if (wanted != sync->action)
		return true;
	if (sync->action == ENGINE_ACTION_RECOVERY)
		return !sync_has_rebuilding(sync->engine, true);
	return sync->action == ENGINE_ACTION_RESYNC && !sync_has_redundancy(sync->engine);
}

static void start_or_stop(struct sync *sync)
{
	enum engine_action wanted = choose(sync);

	/* A request outlives a pause, but nothing else (md drops it too). */
	if (wanted != sync->request && !sync->paused)
		sync->request = ENGINE_ACTION_IDLE;
	if (sync->phase == SYNC_RESTS && wanted != ENGINE_ACTION_IDLE) {
		if (!sync_begin(sync, wanted))
			sync->look = true;
	} else if (sync->phase == SYNC_WALKS && must_stop(sync, wanted)) {
		sync_walk_interrupt(sync);
	}
}

static void tell_stopped(struct sync *sync)
{
	void (*stopped)(struct engine * engine) = sync->stopped;

	if (stopped == NULL || sync->phase != SYNC_RESTS)
		return;
	sync->stopped = NULL;
	stopped(sync->engine);
}

static void run(struct world_timer *timer)
{
	struct sync *sync = timer->owner;

	sync_deal_with_lost(sync);
	while (sync->look) {
		sync->look = false;
		if (may_run(sync))
			sync_finish_replacements(sync->engine);
		start_or_stop(sync);
	}
	sync_walk_advance(sync);
	tell_stopped(sync);
}

void sync_consider(struct engine *engine)
{
	struct sync *sync = engine->redundant->sync;

	sync->look = true;
	sync_wake_now(sync);
}

void sync_pause(struct engine *engine, void (*stopped)(struct engine *engine))
{
	struct sync *sync = engine->redundant->sync;

	sync->paused = true;
	sync->stopped = stopped;
	if (sync->phase == SYNC_RESTS)
		tell_stopped(sync);
	else
		sync_consider(engine);
}

void sync_resume(struct engine *engine)
{
	engine->redundant->sync->paused = false;
	sync_consider(engine);
}

/* Is the check that runs being interrupted? Then the next one may be asked for. */
static bool is_leaving(const struct sync *sync)
{
	return sync->interrupted && sync->request == ENGINE_ACTION_IDLE &&
	       (sync->action == ENGINE_ACTION_CHECK || sync->action == ENGINE_ACTION_REPAIR);
}

static int request_scrub(struct sync *sync, enum engine_action action)
{
	const struct engine *engine = sync->engine;
	bool frozen = sync->frozen;

	if (engine->readonly || engine->redundant->failed || !sync_has_redundancy(engine))
		return -EINVAL;
	if (sync->phase != SYNC_RESTS && !is_leaving(sync))
		return -EBUSY;
	sync->frozen = false;
	if (choose(sync) != ENGINE_ACTION_IDLE) {
		sync->frozen = frozen;
		return -EBUSY;
	}
	sync->request = action;
	sync->request_from = 0;
	return 0;
}

static void forget_given_up(struct engine *engine)
{
	for (unsigned i = 0; i < engine->device_max; i++)
		engine->devices[i].given_up = false;
}

int sync_request(struct engine *engine, enum engine_action action)
{
	struct sync *sync = engine->redundant->sync;
	int r = 0;

	switch (action) {
	case ENGINE_ACTION_CHECK:
	case ENGINE_ACTION_REPAIR:
		r = request_scrub(sync, action);
		break;
	case ENGINE_ACTION_FROZEN:
	case ENGINE_ACTION_IDLE:
		sync->frozen = action == ENGINE_ACTION_FROZEN;
		sync->request = ENGINE_ACTION_IDLE;
		break;
	case ENGINE_ACTION_RESYNC:
		if (sync->phase != SYNC_RESTS)
			return -EBUSY;
		sync->frozen = false;
		forget_given_up(engine);
		break;
	default:
		return -EINVAL;
	}
	if (r == 0)
		sync_consider(engine);
	return r;
}

void sync_set_speed(struct engine *engine, uint64_t min, uint64_t max)
{
	pace_set(&engine->redundant->sync->pace, min, max);
	sync_wake_now(engine->redundant->sync);
}

uint64_t sync_resync_bytes(const struct engine *engine)
{
	return engine->redundant->sync->resync_bytes;
}

void sync_status(const struct engine *engine, struct engine_status *ret)
{
	const struct sync *sync = engine->redundant->sync;

	ret->action = sync->action;
	if (sync->phase == SYNC_RESTS && sync->frozen)
		ret->action = ENGINE_ACTION_FROZEN;
	else if (sync->phase == SYNC_RESTS && !sync->paused) /* asked for: md shows it at once */
		ret->action = sync->request;
	ret->position_bytes = ret->total_bytes = ret->speed_bytes_s = 0;
	if (sync->phase != SYNC_RESTS) {
		ret->position_bytes = sync->low_bytes;
		ret->total_bytes = sync->end_bytes;
		ret->speed_bytes_s = pace_speed(&sync->pace, world_now_ns(engine->world));
	}
	ret->mismatch_sectors = sync->mismatch_sectors;
	ret->mismatch_count = sync->mismatch_count;
	ret->mismatches = sync->mismatches;
	ret->sync_speed_min = sync->pace.min;
	ret->sync_speed_max = sync->pace.max;
}

/* Bits that need sync in an array that is complete and said to be clean: the bits are believed. */
static void believe_bitmap(struct sync *sync)
{
	const struct engine *engine = sync->engine;
	uint64_t first = 0, until;

	if (sync->resync_bytes != UINT64_MAX || devices_degraded(engine) ||
		!record_has_bitmap(engine))
		return;
	while (first < engine->redundant->sync_bytes && !bitmap_needs_sync(engine, first, &until))
		first = max_u64(until, first + 1);
	if (first < engine->redundant->sync_bytes)
		sync->resync_bytes = sync->consistent_below = first;
}

int sync_new(struct engine *engine, const struct engine_config *config, struct fault *fault)
{
	const struct engine_redundancy *redundancy = config->redundancy;
	struct sync *sync = engine_take(engine, 1, sizeof(*sync));

	(void)fault;
	engine->redundant->sync = sync;
	if (sync == NULL)
		return -ENOMEM;
	sync->engine = engine;
	sync->timer.expired = run;
	sync->timer.owner = sync;
	sync->flushes = engine_take(engine, engine->device_max, sizeof(*sync->flushes));
	if (sync->flushes == NULL)
		return -ENOMEM;
	for (unsigned i = 0; i < engine->device_max; i++)
		sync->flushes[i] = (struct sync_flush){.sync = sync, .device = i};
	pace_set(&sync->pace, redundancy->sync_speed_min, redundancy->sync_speed_max);
	sync->resync_bytes = sync->consistent_below = redundancy->resync_bytes;
	believe_bitmap(sync);
	sync_consider(engine);
	return 0;
}

void sync_free(struct engine *engine)
{
	struct sync *sync = engine->redundant->sync;

	if (sync == NULL)
		return;
	engine->world->ops->timer_cancel(engine->world, &sync->timer);
}
