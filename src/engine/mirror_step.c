/* SPDX-License-Identifier: MIT */
/*
 * One range after the other, on all its copies: read, judged, made equal.
 *
 * The same walk answers a client's read whose copy failed, and does what resync, recovery, check
 * and repair want. In every case a copy that cannot be read is rewritten from a good one and read
 * again: a disk that remaps the sector goes on, one that does not is failed.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "engine/badblocks.h"
#include "engine/mirror.h"
#include "util/rounding.h"

#define SECTOR_BYTES 512u

static void walk_on(struct mirror_step *step);
static void write_copies(struct mirror_step *step);

static uint64_t step_bytes(const struct mirror_step *step)
{
	return step->lock.end_bytes - step->lock.first_bytes;
}

static uint8_t *buffer_of(const struct mirror_step *step, unsigned copy)
{
	return step->buffers + (size_t)copy * mirror_of(step->engine)->step_bytes;
}

static void submit(struct mirror_step_io *io, enum world_op op, void *buffer,
	void (*done)(struct world_io *io, int result))
{
	struct mirror_step *step = io->step;

	io->iov = (struct iovec){buffer, step_bytes(step)};
	io->io.op = op;
	io->io.flags = 0;
	io->io.iov = &io->iov;
	io->io.iov_count = 1;
	io->io.length_bytes = step_bytes(step);
	io->io.done = done;
	step->pending++;
	device_submit(step->engine, io->device, &io->io, step->places[io->copy].member_offset);
}

/* The step is over: its bytes are as good as they can be. */
static void step_over(struct mirror_step *step)
{
	struct engine *engine = step->engine;

	step->at_bytes += step_bytes(step);
	mirror_unlock(mirror_of(engine), &step->lock);
	walk_on(step);
	world_kick(engine->world);
}

static void copy_to_client(struct mirror_step *step, const uint8_t *from)
{
	const struct engine_request *request = step->work->request;
	uint64_t skip = step->lock.first_bytes - request->offset_bytes;
	uint64_t left = step_bytes(step);

	for (unsigned i = 0; left > 0; i++) {
		const struct iovec *iov = &request->iov[i];
		uint64_t length;

		if (skip >= iov->iov_len) {
			skip -= iov->iov_len;
			continue;
		}
		length = min_u64(left, iov->iov_len - skip);
		memcpy((char *)iov->iov_base + skip, from, length);
		from += length;
		left -= length;
		skip = 0;
	}
}

/* What @io's device holds of the step is not the array's, and cannot be made so. */
static int mark_bad(struct mirror_step *step, unsigned copy, unsigned device)
{
	return badblocks_add(
		step->engine, device, step->places[copy].member_offset, step_bytes(step));
}

/* No copy of this sector can be read. */
static void sector_lost(struct mirror_step *step)
{
	if (step->purpose == MIRROR_ANSWER)
		work_fail(step->work, step->lock.first_bytes, step->lock.end_bytes, -EIO);
	else if (step->purpose != MIRROR_REBUILD ||
		 mark_bad(step, step->target_copy, step->target) < 0)
		step->result = -EIO;
	step_over(step);
}

static void again_by_sectors(struct mirror_step *step)
{
	step->sectors_until = step->at_bytes + step_bytes(step);
	mirror_unlock(mirror_of(step->engine), &step->lock);
	walk_on(step);
	world_kick(step->engine->world);
}

/* The rewritten copy was read again. */
static void verify_done(struct world_io *world_io, int result)
{
	struct mirror_step_io *io = world_io->owner;
	struct mirror_step *step = io->step;
	const void *again = buffer_of(step, step->copies);

	device_account(step->engine, io->device, world_io, result);
	step->pending--;
	if (result == 0 && memcmp(again, step->right, step_bytes(step)) == 0)
		step->engine->devices[io->device].corrected_reads += (uint32_t)(step_bytes(step) /
										SECTOR_BYTES);
	else if (mark_bad(step, io->copy, io->device) < 0)
		(void)device_fail(step->engine, io->device);
	write_copies(step);
	world_kick(step->engine->world);
}

static void write_done(struct world_io *world_io, int result)
{
	struct mirror_step_io *io = world_io->owner;
	struct mirror_step *step = io->step;
	uint64_t at = step->places[io->copy].member_offset;

	device_account(step->engine, io->device, world_io, result);
	step->pending--;
	if (result < 0 && !device_fail(step->engine, io->device))
		step->result = result;
	if (result == 0 && badblocks_overlap(step->engine, io->device, at, step_bytes(step)))
		badblocks_remove(step->engine, io->device, at, step_bytes(step));
	if (result == 0 && io->verify)
		submit(io, WORLD_READ, buffer_of(step, step->copies), verify_done);
	else
		write_copies(step);
	world_kick(step->engine->world);
}

/* Write what is to be written, one copy after the other; then the step is over. */
static void write_copies(struct mirror_step *step)
{
	if (step->pending > 0)
		return;
	while (step->write_next < step->write_count) {
		struct mirror_step_io *io = &step->ios[step->write_next++];

		if (!device_is_written(step->engine, io->device))
			continue; /* failed meanwhile */
		submit(io, WORLD_WRITE, step->right, write_done);
		return;
	}
	if (step->purpose == MIRROR_ANSWER)
		copy_to_client(step, step->right);
	step_over(step);
}

static void want_write(struct mirror_step *step, unsigned copy, unsigned device, bool verify)
{
	struct mirror_step_io *io = &step->ios[step->write_count++];

	io->copy = copy;
	io->device = device;
	io->verify = verify;
}

static const uint8_t *sector_of(const struct mirror_step *step, unsigned copy, uint64_t at)
{
	return buffer_of(step, copy) + at;
}

static bool is_equal(const struct mirror_step *step, unsigned a, unsigned b, uint64_t at)
{
	return memcmp(sector_of(step, a, at), sector_of(step, b, at), SECTOR_BYTES) == 0;
}

static unsigned first_read(const struct mirror_step *step)
{
	for (unsigned copy = 0; copy < step->copies; copy++)
		if (step->read[copy] == MIRROR_READ_WELL)
			return copy;
	return ENGINE_NONE;
}

/* The first copy that more than half of those read agree with in a sector; or ENGINE_NONE. */
static unsigned majority(const struct mirror_step *step, uint64_t at)
{
	unsigned read = 0;

	for (unsigned copy = 0; copy < step->copies; copy++)
		read += step->read[copy] == MIRROR_READ_WELL;
	for (unsigned copy = 0; copy < step->copies; copy++) {
		unsigned agreeing = 0;

		if (step->read[copy] != MIRROR_READ_WELL)
			continue;
		for (unsigned other = 0; other < step->copies; other++)
			agreeing += step->read[other] == MIRROR_READ_WELL &&
				    is_equal(step, copy, other, at);
		if (2 * agreeing > read)
			return copy;
	}
	return ENGINE_NONE;
}

/*
 * Two copies that differ say nothing about which is right. A resync takes the first, as everybody
 * who read meanwhile did; check and repair take what most copies say, and the first if there is no
 * most. *@ret_wrong: the slot of the one copy that most others contradict, ENGINE_NONE if that
 * cannot be told.
 */
static unsigned judge_sector(const struct mirror_step *step, uint64_t at, unsigned *ret_wrong)
{
	bool vote = step->window->action == ENGINE_ACTION_REPAIR ||
		    step->window->action == ENGINE_ACTION_CHECK;
	unsigned most = majority(step, at);
	unsigned good = vote && most != ENGINE_NONE ? most : first_read(step);
	unsigned differing = 0;

	*ret_wrong = ENGINE_NONE;
	for (unsigned copy = 0; copy < step->copies; copy++) {
		if (step->read[copy] != MIRROR_READ_WELL || is_equal(step, copy, good, at))
			continue;
		differing++;
		*ret_wrong = step->places[copy].slot;
	}
	if (differing != 1 || most == ENGINE_NONE || !vote)
		*ret_wrong = ENGINE_NONE;
	return good;
}

/* Are all copies that were read alike in this sector? The common case, and quick. */
static bool is_uniform(const struct mirror_step *step, uint64_t at, uint64_t bytes)
{
	unsigned first = first_read(step);

	for (unsigned copy = first + 1; copy < step->copies; copy++)
		if (step->read[copy] == MIRROR_READ_WELL &&
			memcmp(sector_of(step, copy, at), sector_of(step, first, at), bytes) != 0)
			return false;
	return true;
}

/* Put together what is right, sector by sector, and tell where copies differ. */
static void compose(struct mirror_step *step)
{
	uint8_t *right = buffer_of(step, step->copies + 1);

	memcpy(right, buffer_of(step, first_read(step)), step_bytes(step));
	for (uint64_t at = 0; at < step_bytes(step); at += SECTOR_BYTES) {
		unsigned wrong;

		if (is_uniform(step, at, SECTOR_BYTES))
			continue;
		memcpy(right + at, sector_of(step, judge_sector(step, at, &wrong), at),
			SECTOR_BYTES);
		sync_mismatch(step->engine, step->lock.first_bytes + at, SECTOR_BYTES, wrong);
	}
	step->right = right;
}

/* Whoever differs from what is right is written; also a device beside it in its slot. */
static void want_corrections(struct mirror_step *step)
{
	for (unsigned copy = 0; copy < step->copies; copy++) {
		unsigned both[2], writers;

		if (step->read[copy] != MIRROR_READ_WELL ||
			memcmp(buffer_of(step, copy), step->right, step_bytes(step)) == 0)
			continue;
		writers = slot_writers(step->engine, step->places[copy].slot, both);
		for (unsigned i = 0; i < writers; i++)
			want_write(step, copy, both[i], false);
	}
}

static void compare_copies(struct mirror_step *step)
{
	if (is_uniform(step, 0, step_bytes(step)))
		return;
	compose(step);
	if (step->purpose == MIRROR_EQUALISE)
		want_corrections(step);
}

/* The ios of copies that were read are free again; they may be used in any order. */
static void note_writes(struct mirror_step *step)
{
	step->write_count = step->write_next = 0;
	step->right = buffer_of(step, first_read(step));
	if (step->purpose == MIRROR_CHECK || step->purpose == MIRROR_EQUALISE)
		compare_copies(step);
	if (step->purpose == MIRROR_REBUILD)
		want_write(step, step->target_copy, step->target, false);
	/* A walk that meets the change to read-only still makes its window whole. */
	if (step->engine->readonly && step->purpose == MIRROR_ANSWER)
		return;
	for (unsigned copy = 0; copy < step->copies; copy++)
		if (step->read[copy] == MIRROR_READ_BADLY)
			want_write(step, copy, step->read_device[copy], true);
}

static void read_all(struct mirror_step *step);

static void judge(struct mirror_step *step)
{
	if (first_read(step) != ENGINE_NONE) {
		note_writes(step);
		write_copies(step);
	} else if (step->read_one) {
		step->read_one = false;
		read_all(step);
	} else if (step_bytes(step) == SECTOR_BYTES) {
		sector_lost(step);
	} else {
		again_by_sectors(step);
	}
}

static void read_done(struct world_io *world_io, int result)
{
	struct mirror_step_io *io = world_io->owner;
	struct mirror_step *step = io->step;

	device_account(step->engine, io->device, world_io, result);
	step->read[io->copy] = result == 0 ? MIRROR_READ_WELL : MIRROR_READ_BADLY;
	if (--step->pending > 0)
		return;
	judge(step);
	world_kick(step->engine->world);
}

static void arm(struct mirror_step *step, void (*expired)(struct world_timer *timer))
{
	struct world *world = step->engine->world;

	step->timer.expired = expired;
	step->timer.owner = step;
	world->ops->timer_arm(world, &step->timer, world_now_ns(world));
}

/* All devices that have a copy are gone, or say that they have it no more. */
static void nothing_read(struct world_timer *timer)
{
	judge(timer->owner);
	world_kick(((struct mirror_step *)timer->owner)->engine->world);
}

static void read_all(struct mirror_step *step)
{
	step->pending = 0;
	for (unsigned copy = 0; copy < step->copies; copy++) {
		const struct geometry_piece *place = &step->places[copy];
		struct mirror_step_io *io = &step->ios[copy];
		unsigned device = slot_reader(
			step->engine, place->slot, place->member_offset + step_bytes(step));

		step->read[copy] = MIRROR_NOT_READ;
		step->read_device[copy] = device;
		if (device == ENGINE_NONE || device == step->target)
			continue;
		if (step->read_one && step->pending > 0)
			continue;
		if (badblocks_overlap(
			    step->engine, device, place->member_offset, step_bytes(step))) {
			step->read[copy] = MIRROR_READ_BADLY;
			continue;
		}
		io->copy = copy;
		io->device = device;
		submit(io, WORLD_READ, buffer_of(step, copy), read_done);
	}
	if (step->pending == 0)
		arm(step, nothing_read); /* not from here: many such steps would fill the stack */
}

static void locked(struct range_lock *lock)
{
	struct mirror_step *step = lock->owner;

	step->read_one = step->purpose == MIRROR_REBUILD;
	if (step->purpose == MIRROR_REBUILD && !device_is_written(step->engine, step->target)) {
		step->at_bytes = step->end_bytes; /* it failed: nothing is left to do for it */
		step->lock.end_bytes = step->lock.first_bytes;
		step_over(step);
	} else {
		read_all(step);
	}
}

static void walk_ended(struct world_timer *timer)
{
	struct mirror_step *step = timer->owner;

	step->done(step);
}

/*
 * The next range of the walk that is one run on all copies, from at_bytes on. REBUILD walks on the
 * target, which may hold nothing here (the odd ends of RAID 10). False: none is left.
 */
static bool next_range(struct mirror_step *step, uint64_t *ret_first, uint64_t *ret_length)
{
	const struct mirrors *geometry = &mirror_of(step->engine)->geometry;
	unsigned slot = step->purpose == MIRROR_REBUILD ? step->engine->devices[step->target].slot
							: ENGINE_NONE;

	while (step->at_bytes < step->end_bytes) {
		uint64_t left = step->end_bytes - step->at_bytes, run;

		if (slot == ENGINE_NONE) {
			*ret_first = step->at_bytes;
			*ret_length = left;
			return step->purpose != MIRROR_REBUILD;
		}
		if (mirrors_inverse(geometry, slot, step->at_bytes, ret_first, &run)) {
			*ret_length = min_u64(left, run);
			return true;
		}
		step->at_bytes += min_u64(left, run);
	}
	return false;
}

static void walk_on(struct mirror_step *step)
{
	struct mirror *mirror = mirror_of(step->engine);
	uint64_t limit = step->at_bytes < step->sectors_until ? SECTOR_BYTES : mirror->step_bytes;
	uint64_t first, length;

	if (!next_range(step, &first, &length)) {
		arm(step, walk_ended);
		return;
	}
	length = min_u64(length, limit);
	length = min_u64(length, mirrors_map(&mirror->geometry, first, step->places));
	step->lock.first_bytes = first;
	step->lock.end_bytes = first + length;
	step->lock.locked = locked;
	step->lock.owner = step;
	for (unsigned copy = 0; copy < step->copies; copy++)
		if (step->target != ENGINE_NONE &&
			step->places[copy].slot == step->engine->devices[step->target].slot)
			step->target_copy = copy;
	if (mirror_lock(mirror, &step->lock))
		locked(&step->lock);
}

void mirror_walk(struct mirror_step *step)
{
	step->copies = mirror_of(step->engine)->geometry.copies;
	step->sectors_until = 0;
	step->result = 0;
	walk_on(step);
}
