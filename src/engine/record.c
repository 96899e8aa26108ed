/* SPDX-License-Identifier: MIT */
/*
 * The record: who asks for what, and when they are told. Updates begin only from a timer that is
 * due at once: so a batch of writes that need bits shares one update, and nobody is called back
 * from inside his own call.
 */
#include "engine/record.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "engine/record_state.h"
#include "engine/sync.h"
#include "util/rounding.h"

#define SAFE_MODE_NS_DEFAULT 200000000u
/* The array is idle if so many ticks in a row saw no write: no clock is read for each of them. */
#define SAFE_MODE_TICKS 4u

/* Nobody writes a superblock of an array that has failed or was set read-only (8.3). */
static bool may_write(const struct record *record)
{
	return !record->engine->redundant->failed && !(record->engine->readonly && record->sealed);
}

void record_schedule(struct record *record)
{
	struct world *world = record->engine->world;

	if (!record->wake.armed)
		world->ops->timer_arm(world, &record->wake, world_now_ns(world));
}

static void append(struct work_list *list, struct work *work)
{
	work->next_held = NULL;
	if (list->first == NULL)
		list->first = work;
	else
		list->last->next_held = work;
	list->last = work;
}

static struct work *pop(struct work_list *list)
{
	struct work *work = list->first;

	if (work != NULL)
		list->first = work->next_held;
	return work;
}

/* The result of a request that has not failed by itself. */
static void fail_work(struct work *work)
{
	const struct engine_request *request = work->request;
	bool flush = request->op == ENGINE_FLUSH;

	if (request->result == 0 && request->op != ENGINE_READ)
		work_fail(work, flush ? 0 : request->offset_bytes,
			flush ? work->engine->array_bytes
			      : request->offset_bytes + request->length_bytes,
			-EIO);
}

static void fail_unstarted(struct work_list *list)
{
	struct work_list all = *list;
	struct work *work;

	*list = (struct work_list){0};
	while ((work = pop(&all)) != NULL) {
		record_release(work, true);
		fail_work(work);
		work_finish(work);
	}
}

static void start_writes(struct record *record, struct work_list *list)
{
	struct engine *engine = record->engine;
	struct work_list all = *list;
	struct work *work;

	*list = (struct work_list){0};
	for (work = all.first; work != NULL && record->bitmap != NULL; work = work->next_held)
		bitmap_is_durable(record, work);
	while ((work = pop(&all)) != NULL) {
		if (engine->redundant->failed) {
			record_release(work, true);
			fail_work(work);
			work_finish(work);
		} else {
			engine->level->start(work);
		}
	}
	world_kick(engine->world);
}

static void end_held(struct record *record, bool failed)
{
	struct work_list all = record->held;
	struct work *work;

	record->held = (struct work_list){0};
	while ((work = pop(&all)) != NULL) {
		if (failed)
			fail_work(work);
		work_finish(work);
	}
}

/* Tell those who wait for @generation and before. They may come again at once. */
static void tell_waiters(struct record *record, uint64_t generation, int result)
{
	struct record_waiter *due = NULL, **due_last = &due, **at = &record->waiters;

	while (*at != NULL) {
		struct record_waiter *waiter = *at;

		if (waiter->generation > generation) {
			at = &waiter->next;
			continue;
		}
		*at = waiter->next;
		waiter->next = NULL;
		*due_last = waiter;
		due_last = &waiter->next;
	}
	record->waiters_last = at;
	while (due != NULL) {
		struct record_waiter *waiter = due;

		due = waiter->next;
		waiter->done(waiter, result);
	}
}

static void tell_closer(struct record *record, int result)
{
	struct record_waiter *closer = record->closer;
	struct world *world = record->engine->world;

	if (!record->closing)
		return;
	record->closing = false;
	record->closer = NULL;
	record->sealed = true;
	world->ops->timer_cancel(world, &record->safe_mode);
	if (closer != NULL)
		closer->done(closer, result);
}

static bool has_changed(const struct record *record)
{
	return record->kept && record->generation != record->durable_generation;
}

static bool is_idle(const struct record *record)
{
	return record->active && record->writes == 0;
}

/* Did a rebuild or resync get further than the superblocks say? */
static bool has_progress(const struct record *record)
{
	const struct engine *engine = record->engine;
	uint64_t resync = sync_resync_bytes(engine);

	if (!record->kept || !record->touched)
		return false;
	if ((resync == UINT64_MAX ? MD_CLEAN : resync / MD_SECTOR) != record->master.resync_offset)
		return true;
	for (unsigned i = 0; i < engine->device_max; i++) {
		const struct record_device *d = &record->devices[i];

		if (record_device_lives(d) &&
			(d->log_is_new || (engine->devices[i].state == ENGINE_DEVICE_REBUILDING &&
						  engine->devices[i].recovered_bytes / MD_SECTOR !=
							  d->super.recovery_offset)))
			return true;
	}
	return false;
}

static bool has_pages(const struct record *record)
{
	const struct bitmap *b = record->bitmap;

	return b != NULL && (b->have_sets || (b->clears_due && b->have_clears));
}

static bool has_work(const struct record *record)
{
	return record->closing || record->wanting.first != NULL ||
	       (has_changed(record) && !record->stalled) ||
	       (record->want_clean && is_idle(record)) ||
	       (has_pages(record) && record->touched && !record->stalled);
}

static void start_update(struct record *record)
{
	bool go_active = record->wanting.first != NULL && !record->active;
	bool go_clean = is_idle(record) && (record->want_clean || record->closing);
	bool closing = record->closing;

	record->flying = record->wanting;
	record->wanting = (struct work_list){0};
	record->want_clean = false;
	if (go_active)
		record->active = true;
	if (go_clean)
		record->active = record->active_durable = false;
	if (closing && record->bitmap != NULL)
		bitmap_clear_idle(record);
	record->update = (struct record_update){
		.generation = record->generation,
		.supers = has_changed(record) || go_active || go_clean ||
			  (closing && has_progress(record)),
		.flush = closing,
		.closing = closing,
	};
	record_update_start(record);
}

/* The array has failed: no write is acknowledged that the superblocks may contradict. */
static void give_up(struct record *record)
{
	world_kick(record->engine->world);
	fail_unstarted(&record->wanting);
	end_held(record, true);
	tell_waiters(record, UINT64_MAX, -EIO);
	tell_closer(record, -EIO);
}

static void wake(struct world_timer *timer)
{
	struct record *record = timer->owner;

	if (record->update.step != RECORD_IDLE)
		return;
	if (record->engine->redundant->failed) {
		give_up(record);
	} else if (may_write(record) && has_work(record)) {
		start_update(record);
	} else {
		end_held(record, false);
		tell_waiters(record, record->generation, 0);
	}
}

static void arm_safe_mode(struct record *record)
{
	struct world *world = record->engine->world;

	world->ops->timer_arm(world, &record->safe_mode,
		world_now_ns(world) + record->safe_mode_ns / SAFE_MODE_TICKS);
}

static void safe_mode_tick(struct world_timer *timer)
{
	struct record *record = timer->owner;

	if (!record->active || record->engine->redundant->failed)
		return;
	if (record->busy || record->writes > 0)
		record->idle_ticks = 0;
	else
		record->idle_ticks++;
	record->busy = false;
	if (record->idle_ticks < SAFE_MODE_TICKS) {
		arm_safe_mode(record);
	} else {
		record->idle_ticks = 0;
		record->want_clean = true;
		record_schedule(record);
	}
}

/*
 * What the members say now is not known. Who waited for it is told; the next who asks makes another
 * attempt, with the same event count: the member that cannot be done without and did not take this
 * one must not fall further behind.
 */
static void update_failed(struct record *record)
{
	uint64_t generation = record->update.generation;

	if (record->update.supers)
		record->master.events = record->update.events_before;
	record->active = record->active_durable = false;
	record->can_decrease = false;
	record->generation++;
	record->stalled = true;
	fail_unstarted(&record->flying);
	end_held(record, true);
	tell_waiters(record, generation, -EIO);
	if (record->update.closing)
		tell_closer(record, -EIO);
}

/* Writes that want to start wait for one more update, in front of the later ones. */
static void wait_for_next(struct record *record)
{
	if (record->flying.first == NULL)
		return;
	record->flying.last->next_held = record->wanting.first;
	if (record->wanting.first == NULL)
		record->wanting.last = record->flying.last;
	record->wanting.first = record->flying.first;
	record->flying = (struct work_list){0};
}

static void update_succeeded(struct record *record)
{
	bool closing = record->update.closing;

	record->durable_generation = record->update.generation;
	if (record->update.supers)
		record->active_durable = record->active;
	if (record->twice && record->failure_generation <= record->durable_generation) {
		record->twice = false;
		record->generation++;
	}
	if (record->active_durable && !record->safe_mode.armed)
		arm_safe_mode(record);
	/*
	 * A member that failed in this update may lack the bits, and still counts as in sync until
	 * the next one says otherwise.
	 */
	if (record_is_settled(record->engine)) {
		start_writes(record, &record->flying);
		end_held(record, false);
	} else {
		wait_for_next(record);
	}
	tell_waiters(record, record->durable_generation, 0);
	if (closing && !has_changed(record) && !record->active)
		tell_closer(record, 0);
}

void record_update_ended(struct record *record)
{
	if (record->update.error < 0) {
		update_failed(record);
	} else if (record->update.again) {
		wait_for_next(record);
		record->generation++;
		record->twice = record->twice && !record->update.supers;
	} else {
		update_succeeded(record);
	}
	record_schedule(record);
}

static void notice_failures(struct record *record)
{
	for (unsigned i = 0; i < record->engine->device_max; i++) {
		struct record_device *d = &record->devices[i];

		if (!d->present || d->failure_known ||
			record->engine->devices[i].state != ENGINE_DEVICE_FAULTY)
			continue;
		d->failure_known = true;
		record->failure_generation = record->generation;
		record->twice = true;
	}
}

static void asked(struct record *record)
{
	record->stalled = false;
	/* Or a write, accepted before the array is to be read-only again, has its turn now. */
	if (!record->engine->readonly || record->writes > 0)
		record->sealed = false;
	record_schedule(record);
}

void record_must_be_durable(struct record *record)
{
	record->failure_generation = ++record->generation;
	asked(record);
}

void record_change(struct engine *engine, struct record_waiter *waiter)
{
	struct record *record = record_of(engine);

	record->degraded = devices_degraded(engine);
	record->generation++;
	notice_failures(record);
	if (record->bitmap != NULL)
		bitmap_consider(record);
	if (waiter != NULL) {
		waiter->generation = record->generation;
		waiter->next = NULL;
		*record->waiters_last = waiter;
		record->waiters_last = &waiter->next;
	}
	asked(record);
}

static bool refuse(struct work *work)
{
	fail_work(work);
	work_finish_later(work);
	return false;
}

bool record_admit(struct work *work)
{
	struct record *record = record_of(work->engine);

	if (work->engine->redundant->failed)
		return refuse(work);
	if (!record->kept)
		return true;
	record->writes++;
	record->busy = true;
	if (record->active_durable && (record->bitmap == NULL || bitmap_admit(record, work)))
		return true;
	if (record->bitmap != NULL)
		bitmap_want(record, work);
	append(&record->wanting, work);
	asked(record);
	return false;
}

void record_release(struct work *work, bool clean)
{
	struct record *record = record_of(work->engine);

	if (!record->kept)
		return;
	assert(record->writes > 0);
	record->writes--;
	record->busy = true;
	if (record->bitmap != NULL)
		bitmap_release(record, work, clean);
}

bool record_is_settled(const struct engine *engine)
{
	const struct record *record = record_of(engine);

	return !record->kept || record->failure_generation <= record->durable_generation ||
	       (engine->readonly && record->sealed);
}

void record_hold(struct work *work)
{
	struct record *record = record_of(work->engine);

	append(&record->held, work);
	asked(record);
}

void record_close(struct engine *engine, struct record_waiter *waiter)
{
	struct record *record = record_of(engine);

	assert(!record->closing);
	record->closing = true;
	record->closer = waiter;
	record->sealed = false;
	record->stalled = false;
	record_schedule(record);
}

bool record_is_kept(const struct engine *engine)
{
	return record_of(engine)->kept;
}

static void set_joined(struct record_device *d)
{
	d->is_new = true;
	d->recorded = (struct record_fact){ENGINE_DEVICE_SPARE, ENGINE_NONE, false};
	d->failure_known = d->has_bitmap = d->gets_bitmap = d->is_filled = d->is_behind = false;
	memset(d->written, 0, MD_SUPER_BYTES);
}

int record_device_add(struct engine *engine, unsigned number, const struct engine_device *device,
	struct fault *fault)
{
	struct record *record = record_of(engine);
	struct record_device *d = &record->devices[number];
	const struct md_super *super = device->super;
	unsigned dev_number;
	int r;

	if (!record->kept)
		return 0;
	if (super == NULL || super->version != record->master.version)
		return fault_set(fault, -EINVAL,
			"the device has no superblock of version %s, as the array's members have",
			md_format(record->master.version)->name);
	dev_number = record_super_free_number(record);
	if (dev_number == ENGINE_NONE)
		return fault_set(fault, -ENOSPC,
			"the superblocks have no room for one more device; remove a faulty one "
			"first");
	/* One that comes back keeps its number. */
	if (device->slot != ENGINE_NONE && record_super_number_is_free(record, super->dev_number))
		dev_number = super->dev_number;
	record_super_adopt(record, d, device);
	d->super.dev_number = dev_number;
	set_joined(d);
	r = badblocks_take(d, super, device->bad, fault);
	if (r == 0 && record->bitmap != NULL)
		r = bitmap_place(record, d, fault);
	d->present = r == 0;
	return r;
}

void record_device_remove(struct engine *engine, unsigned device)
{
	struct record_device *d = &record_of(engine)->devices[device];

	d->present = d->failure_known = d->has_bitmap = d->gets_bitmap = d->is_filled = false;
	d->bad.count = 0;
}

unsigned record_dev_number(const struct engine *engine, unsigned device)
{
	const struct record *record = record_of(engine);

	return record->devices[device].present ? record->devices[device].super.dev_number : device;
}

uint64_t record_events(const struct engine *engine)
{
	return record_of(engine)->master.events;
}

bool record_is_active(const struct engine *engine)
{
	return record_of(engine)->active;
}

uint64_t record_update_seconds(const struct engine *engine)
{
	return record_of(engine)->master.utime & ((UINT64_C(1) << 40) - 1);
}

/* Block and written of each device, aligned for direct I/O. */
static int take_devices(struct record *record)
{
	struct engine *engine = record->engine;
	size_t count = engine->device_max;
	uint8_t *blocks, *at;

	record->devices = engine_take(engine, count, sizeof(*record->devices));
	blocks = engine_take(engine, 3 * count + 1, RECORD_BLOCK_BYTES); /* one to align with */
	if (record->devices == NULL || blocks == NULL)
		return -ENOMEM;
	at = (uint8_t *)round_up((uintptr_t)blocks, RECORD_BLOCK_BYTES);
	for (unsigned i = 0; i < count; i++, at += 3 * (size_t)RECORD_BLOCK_BYTES) {
		struct record_device *d = &record->devices[i];

		d->record = record;
		d->device = i;
		d->block_bytes = MD_SECTOR;
		d->block = at;
		d->written = at + RECORD_BLOCK_BYTES;
		d->log = at + 2 * (size_t)RECORD_BLOCK_BYTES;
	}
	return 0;
}

static int place_bitmaps(struct record *record, struct fault *fault)
{
	int r = 0;

	for (unsigned i = 0; i < record->engine->device_max && r == 0; i++)
		if (record->bitmap != NULL && record->devices[i].present)
			r = bitmap_place(record, &record->devices[i], fault);
	return r;
}

static void set_up(struct record *record, const struct engine_config *config)
{
	record->waiters_last = &record->waiters;
	record->sealed = config->readonly;
	record->degraded = devices_degraded(record->engine);
	record->safe_mode_ns = config->redundancy->safe_mode_ns != 0
				       ? config->redundancy->safe_mode_ns
				       : SAFE_MODE_NS_DEFAULT;
	record->wake.expired = wake;
	record->wake.owner = record;
	record->safe_mode.expired = safe_mode_tick;
	record->safe_mode.owner = record;
}

int record_new(struct engine *engine, const struct engine_config *config, struct fault *fault)
{
	struct record *record = engine_take(engine, 1, sizeof(*record));
	int r;

	engine->redundant->record = record;
	if (record == NULL)
		return -ENOMEM;
	record->engine = engine;
	set_up(record, config);
	if (config->requests_max > UINT16_MAX)
		return fault_set(fault, -EINVAL, "%u requests at once are more than %u",
			config->requests_max, UINT16_MAX);
	r = take_devices(record);
	if (r == 0)
		r = record_super_init(record, config->redundancy, fault);
	if (r == 0)
		r = bitmap_new(record, config->redundancy, fault);
	if (r == 0)
		r = place_bitmaps(record, fault);
	/* A member that is missing may have been lost while the count was back. */
	record->peak_events = record->master.events + record->degraded;
	return r;
}

void record_free(struct engine *engine)
{
	struct record *record = record_of(engine);
	struct world *world = engine->world;

	if (record == NULL)
		return;
	bitmap_free(record);
	world->ops->timer_cancel(world, &record->wake);
	world->ops->timer_cancel(world, &record->safe_mode);
}
