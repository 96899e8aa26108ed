/* SPDX-License-Identifier: MIT */
/* Which copy is read, and what happens to a read whose copy failed. */
#include <string.h>

#include "engine/badblocks.h"
#include "engine/mirror.h"
#include "util/rounding.h"

/* The device that can be read for a copy, if any. */
static unsigned reader(
	const struct engine *engine, const struct geometry_piece *place, uint64_t length)
{
	unsigned device = slot_reader(engine, place->slot, place->member_offset + length);

	if (device != ENGINE_NONE &&
		badblocks_overlap(engine, device, place->member_offset, length))
		return ENGINE_NONE;
	return device;
}

/*
 * Where a resync is pending the copies may differ. Everybody reads the same one then, the one that
 * the resync will copy to the others, so that what was read once stays true.
 */
static unsigned first_reader(const struct engine *engine, const struct geometry_piece *places,
	uint64_t length, unsigned *ret_copy)
{
	for (unsigned copy = 0; copy < mirror_of(engine)->geometry.copies; copy++) {
		unsigned device = reader(engine, &places[copy], length);

		if (device != ENGINE_NONE) {
			*ret_copy = copy;
			return device;
		}
	}
	return ENGINE_NONE;
}

static uint64_t distance(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

/*
 * Is @device the better one to read @offset from than the one that costs *@cost? Lower is better:
 * a stream that goes on costs nothing and is not interrupted; otherwise the least busy device, and
 * among those the one whose head is nearest. Copies of "far" layouts lie in the slower half of the
 * disks, and reading only first copies streams like RAID 0: there the lowest offset wins.
 */
static bool is_better(
	const struct engine *engine, unsigned device, uint64_t offset, struct mirror_cost *cost)
{
	const struct mirror *mirror = mirror_of(engine);
	const struct device *d = &engine->devices[device];
	struct mirror_cost mine = {.write_mostly = d->write_mostly};

	if (mirror->geometry.chunked && mirror->geometry.far > 1) {
		mine.distance = offset;
	} else if (mirror->read_end[device] != offset) {
		mine.inflight = d->inflight + 1;
		mine.distance = distance(mirror->read_end[device], offset);
	}
	if (mine.write_mostly != cost->write_mostly) {
		if (mine.write_mostly)
			return false;
	} else if (mine.inflight != cost->inflight) {
		if (mine.inflight > cost->inflight)
			return false;
	} else if (mine.distance >= cost->distance) {
		return false;
	}
	*cost = mine;
	return true;
}

unsigned mirror_choose(const struct engine *engine, const struct geometry_piece *places,
	uint64_t length, bool consistent, unsigned *ret_copy)
{
	struct mirror *mirror = mirror_of(engine);
	struct mirror_cost cost = {true, UINT32_MAX, UINT64_MAX};
	unsigned best = ENGINE_NONE;

	if (!consistent)
		return first_reader(engine, places, length, ret_copy);
	for (unsigned copy = 0; copy < mirror->geometry.copies; copy++) {
		unsigned device = reader(engine, &places[copy], length);

		if (device == ENGINE_NONE ||
			!is_better(engine, device, places[copy].member_offset, &cost))
			continue;
		best = device;
		*ret_copy = copy;
	}
	if (best != ENGINE_NONE)
		mirror->read_end[best] = places[*ret_copy].member_offset + length;
	return best;
}

static void start_answer(struct mirror *mirror);

static void answered(struct mirror_step *step)
{
	struct work *work = step->work;
	struct mirror *mirror = mirror_of(work->engine);

	mirror->repairs = mirror->repairs->next_repair;
	if (mirror->repairs != NULL)
		start_answer(mirror);
	mirror_window_ended(work);
}

static void start_answer(struct mirror *mirror)
{
	struct mirror_work *repair = mirror->repairs;
	struct mirror_step *step = &mirror->answer_step;

	step->purpose = MIRROR_ANSWER;
	step->work = repair->work;
	step->window = NULL;
	step->target = ENGINE_NONE;
	step->at_bytes = repair->failed_first;
	step->end_bytes = repair->failed_end;
	step->done = answered;
	mirror_walk(step);
	world_kick(repair->work->engine->world);
}

/* Errors are rare: one read is answered after the other. */
void mirror_repair(struct mirror_work *repair)
{
	struct mirror *mirror = mirror_of(repair->work->engine);
	struct mirror_work **last = &mirror->repairs;

	while (*last != NULL)
		last = &(*last)->next_repair;
	*last = repair;
	repair->next_repair = NULL;
	if (mirror->repairs == repair)
		start_answer(mirror);
}
