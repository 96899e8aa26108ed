/* SPDX-License-Identifier: MIT */
/*
 * One update of what the members say, step by step. All writes are FUA, and a step begins when all
 * of the one before it has ended; so whatever a power cut leaves is a state that the comments at
 * enum record_step and enum record_rank allow.
 *
 * A member that fails in a step is failed, and the update goes on without it: the change that this
 * is makes another update. If it cannot be done without, the update ends with an error.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "engine/record_state.h"
#include "engine/sync.h"
#include "util/rounding.h"

static void go_on(struct record *record);

static void member_failed(struct record_device *d, int error)
{
	struct record *record = d->record;
	struct engine *engine = record->engine;

	if (engine->devices[d->device].state == ENGINE_DEVICE_FAULTY)
		return;
	if (record->update.step == RECORD_FLUSH)
		engine->devices[d->device].flush_lost = true;
	engine_event(
		engine, "device %u: writing the array's state failed: error %d", d->device, -error);
	if (!device_fail(engine, d->device))
		record->update.error = error;
}

static void submit_next(struct record_device *d);

static void io_done(struct world_io *io, int result)
{
	struct record_device *d = io->owner;
	struct record *record = d->record;
	struct device *device = &record->engine->devices[d->device];

	device_account(record->engine, d->device, io, result);
	if (result < 0)
		member_failed(d, result);
	else if (record->update.step == RECORD_FLUSH)
		device->flushed = max_u64(device->flushed, d->flush_covers);
	if (result == 0 && record->update.step == RECORD_PAGES && record_device_lives(d))
		submit_next(d);
	record->update.pending--;
	go_on(record);
}

static void submit(struct record_device *d, void *bytes, size_t length, uint64_t member_offset)
{
	d->iov = (struct iovec){bytes, length};
	d->io.op = WORLD_WRITE;
	d->io.flags = WORLD_FUA;
	d->io.iov = &d->iov;
	d->io.iov_count = 1;
	d->io.length_bytes = length;
	d->io.done = io_done;
	d->io.owner = d;
	d->record->update.pending++;
	device_submit_at(d->record->engine, d->device, &d->io, member_offset);
}

static void submit_flush(struct record_device *d)
{
	struct device *device = &d->record->engine->devices[d->device];

	if (!device_is_written(d->record->engine, d->device) || device->flushed >= device->written)
		return;
	d->flush_covers = device->written;
	d->io.op = WORLD_FLUSH;
	d->io.flags = 0;
	d->io.iov = NULL;
	d->io.iov_count = 0;
	d->io.length_bytes = 0;
	d->io.done = io_done;
	d->io.owner = d;
	d->record->update.pending++;
	device_submit_at(d->record->engine, d->device, &d->io, 0);
}

static void submit_log(struct record_device *d)
{
	uint64_t sector, sectors;

	if (d->log_in_update && record_device_lives(d) &&
		md_badblocks_location(&d->super, &sector, &sectors) == 0)
		submit(d, d->log, sectors * MD_SECTOR, sector * MD_SECTOR);
}

/* The first block of the area only: the bits in it are those that the member has already. */
static void submit_header(struct record_device *d)
{
	if (d->has_bitmap && record_device_wants_bitmap(d))
		submit(d, d->record->bitmap->out, d->block_bytes, d->bitmap_offset_bytes);
}

/* The bitmap's next pages for this member. */
static void submit_next(struct record_device *d)
{
	size_t offset, length;

	if ((d->has_bitmap || d->gets_bitmap) && record_device_wants_bitmap(d) &&
		bitmap_next_run(d, &offset, &length))
		submit(d, d->record->bitmap->out + offset, length, d->bitmap_offset_bytes + offset);
}

static void submit_super(struct record_device *d, enum record_rank rank)
{
	bool due = rank == RECORD_BEHIND ? d->is_behind : d->rank == rank;

	if (!d->present || !due || !d->is_filled || !record_device_lives(d))
		return;
	submit(d, rank == RECORD_BEHIND ? d->written : d->block, record_super_bytes(d),
		d->super.super_offset * MD_SECTOR);
	d->is_behind = false;
}

static void for_each(struct record *record, void (*action)(struct record_device *d))
{
	for (unsigned i = 0; i < record->engine->device_max; i++)
		action(&record->devices[i]);
}

/* The next rank, or the next superblock if they must go one by one. False: there is none. */
static bool submit_supers(struct record *record)
{
	struct record_update *u = &record->update;

	for (; u->rank < RECORD_RANKS; u->rank++, u->device = 0) {
		while (u->device < record->engine->device_max) {
			struct record_device *d = &record->devices[u->device++];

			submit_super(d, u->rank);
			if ((u->serial || u->rank == RECORD_BEHIND) && u->pending > 0)
				return true;
		}
		if (u->pending > 0)
			return true;
	}
	return false;
}

static void begin_pages(struct record *record)
{
	uint64_t events = record->master.events;

	/* Going back: the bitmap's events stay ahead until the superblocks have gone back. */
	bitmap_copy_header(
		record, record->update.back ? events + 1 : events, record->update.cleared);
	bitmap_copy_pages(record);
	for_each(record, submit_next);
}

static void begin_header(struct record *record)
{
	const struct bitmap *b = record->bitmap;

	if (!record->update.clears || b->cleared_written == record->update.cleared)
		return;
	bitmap_copy_header(
		record, record->master.events + record->update.back, record->update.cleared);
	for_each(record, submit_header);
}

static void begin_trailer(struct record *record)
{
	struct record_update *u = &record->update;

	u->cleared = min_u64(u->cleared, record->master.events);
	record->bitmap->header.events_cleared = min_u64(
		record->bitmap->header.events_cleared, record->master.events);
	bitmap_copy_header(record, record->master.events, u->cleared);
	for_each(record, submit_header);
}

static void begin(struct record *record)
{
	struct record_update *u = &record->update;

	if (u->step == RECORD_FLUSH && u->flush)
		for_each(record, submit_flush);
	else if (u->step == RECORD_LOGS)
		for_each(record, submit_log);
	else if (u->step == RECORD_HEADER && record->bitmap != NULL)
		begin_header(record);
	else if (u->step == RECORD_PAGES && record->bitmap != NULL)
		begin_pages(record);
	else if (u->step == RECORD_SUPERS && u->supers)
		(void)submit_supers(record);
	else if (u->step == RECORD_TRAILER && record->bitmap != NULL && u->back)
		begin_trailer(record);
}

static void note_recorded(struct record_device *d)
{
	if (!d->is_filled || !record_device_lives(d))
		return;
	d->recorded = d->filled;
	d->is_new = false;
	memcpy(d->written, d->block, MD_SUPER_BYTES);
}

static void end(struct record *record, bool abandoned)
{
	struct record_update *u = &record->update;

	u->step = RECORD_IDLE;
	if (record->engine->redundant->failed && u->error == 0)
		u->error = -EIO;
	if (u->error == 0 && u->supers)
		for_each(record, note_recorded);
	badblocks_update_ended(record, u->error == 0 && !abandoned);
	if (record->bitmap != NULL)
		bitmap_update_ended(record, u->error == 0 && !abandoned);
	record_update_ended(record);
}

/*
 * A member failed before any superblock was written: they are made anew and say so. As they are
 * they could call data right, or drop bits, that only the others have.
 */
static bool is_outdated(const struct record *record)
{
	const struct record_update *u = &record->update;

	return u->step < RECORD_SUPERS && record->failure_generation > u->generation;
}

static void begin_again(struct record *record)
{
	struct record_update *u = &record->update;

	u->again = true;
	if (u->supers) {
		record->master.events = u->events_before;
		record->peak_events = u->peak_before;
		record->can_decrease = false;
		u->supers = false;
	}
	end(record, true);
}

/* Next step, once nothing of this one is pending. */
static void go_on(struct record *record)
{
	struct record_update *u = &record->update;

	while (u->pending == 0) {
		if (u->error < 0 || record->engine->redundant->failed) {
			end(record, false);
			return;
		}
		if (is_outdated(record)) {
			begin_again(record);
			return;
		}
		if (u->step == RECORD_SUPERS && u->supers && submit_supers(record))
			continue;
		if (++u->step == RECORD_STEP_END) {
			end(record, false);
			return;
		}
		begin(record);
	}
	world_kick(record->engine->world);
}

/* Is there anything to be written that calls data right which a member may still have in a cache?
 */
static bool vouches(const struct record *record, uint64_t resync_offset)
{
	const struct engine *engine = record->engine;

	if (resync_offset != 0)
		return true;
	for (unsigned i = 0; i < engine->device_max; i++) {
		const struct record_device *d = &record->devices[i];

		if (d->present && (engine->devices[i].state == ENGINE_DEVICE_REBUILDING ||
					  (engine->devices[i].state == ENGINE_DEVICE_IN_SYNC &&
						  d->recorded.state != ENGINE_DEVICE_IN_SYNC)))
			return true;
	}
	return false;
}

static uint64_t resync_sectors(const struct record *record)
{
	uint64_t bytes;

	if (record->active)
		return 0;
	bytes = sync_resync_bytes(record->engine);
	return bytes == UINT64_MAX ? MD_CLEAN : bytes / MD_SECTOR;
}

/*
 * Specification 1.6: after a mere marking as active, the marking as clean takes the count back. As
 * in md never from 1, and never while the array is degraded.
 *
 * A member that is lost while the count is back has a higher one than the others, and the update
 * that says it is gone would give them just that: nothing would tell who is right. A jump by two is
 * no way out, since members whose counts differ by two are not taken for fresh. Hence one update
 * that says nothing but that the array is active, and then another one, before which nothing is
 * acknowledged.
 */
static void count_event(struct record *record, bool only_state, uint64_t resync_offset)
{
	struct record_update *u = &record->update;
	struct md_super *master = &record->master;

	u->events_before = master->events;
	u->peak_before = record->peak_events;
	only_state = only_state && !record->degraded;
	u->back = only_state && resync_offset == MD_CLEAN && record->can_decrease &&
		  master->events != 1;
	if (u->back)
		master->events--;
	else
		master->events++;
	u->again = !only_state && master->events <= record->peak_events;
	record->peak_events = max_u64(record->peak_events, master->events);
	record->can_decrease = only_state && !u->back && record->active;
}

/* @record->update says what it is about. */
void record_update_start(struct record *record)
{
	struct record_update *u = &record->update;

	assert(u->step == RECORD_IDLE);
	record->touched = true;
	if (u->supers) {
		uint64_t resync_offset = resync_sectors(record);

		count_event(record, u->generation == record->durable_generation, resync_offset);
		record_super_fill(record, u->again ? 0 : resync_offset);
		u->flush = badblocks_fill(record) || u->flush || vouches(record, resync_offset);
	}
	if (record->bitmap != NULL) {
		bitmap_choose_pages(record);
		u->flush = u->flush || u->clears;
	}
	u->step = RECORD_IDLE;
	go_on(record);
}
