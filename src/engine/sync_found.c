/* SPDX-License-Identifier: MIT */
/* What check and repair found: ranges, and a number that means the same as md's mismatch_cnt. */
#include "engine/sync_internal.h"

#include <string.h>

#include "util/rounding.h"

#define SECTOR_BYTES 512u
#define PARITY_UNIT_BYTES 4096u /* md's parity levels count stripes of a page per member */

void sync_found_reset(struct sync *sync)
{
	sync->mismatch_sectors = 0;
	sync->mismatch_count = 0;
	sync->lost_count = 0;
}

static uint64_t end_of(const struct engine_mismatch *mismatch)
{
	return mismatch->sync_offset_bytes + mismatch->length_bytes;
}

/* Make the entry at @at one with the next if they touch. */
static bool join_next(struct sync *sync, unsigned at)
{
	struct engine_mismatch *m = &sync->mismatches[at];

	if (at + 1 >= sync->mismatch_count || m[0].slot != m[1].slot ||
		end_of(&m[0]) < m[1].sync_offset_bytes)
		return false;
	m[0].length_bytes = max_u64(end_of(&m[0]), end_of(&m[1])) - m[0].sync_offset_bytes;
	sync->mismatch_count--;
	memmove(&m[1], &m[2], (sync->mismatch_count - at - 1) * sizeof(*m));
	return true;
}

/* The list is sorted, though windows end in any order. */
static void note_range(struct sync *sync, const struct engine_mismatch *mismatch)
{
	struct engine_mismatch *m = sync->mismatches;
	unsigned at = sync->mismatch_count;

	while (at > 0 && m[at - 1].sync_offset_bytes > mismatch->sync_offset_bytes)
		at--;
	if (at > 0 && m[at - 1].slot == mismatch->slot &&
		end_of(&m[at - 1]) >= mismatch->sync_offset_bytes) {
		m[at - 1].length_bytes = max_u64(end_of(&m[at - 1]), end_of(mismatch)) -
					 m[at - 1].sync_offset_bytes;
		(void)join_next(sync, at - 1);
	} else if (at < sync->mismatch_count && m[at].slot == mismatch->slot &&
		   end_of(mismatch) >= m[at].sync_offset_bytes) {
		m[at].length_bytes = max_u64(end_of(&m[at]), end_of(mismatch)) -
				     mismatch->sync_offset_bytes;
		m[at].sync_offset_bytes = mismatch->sync_offset_bytes;
	} else if (sync->mismatch_count < ENGINE_MISMATCHES_MAX) {
		memmove(&m[at + 1], &m[at], (sync->mismatch_count - at) * sizeof(*m));
		m[at] = *mismatch;
		sync->mismatch_count++;
	}
}

/*
 * md counts a whole unit for one wrong byte in it: a page of a stripe, or what a mirror compares at
 * once, 64 KiB. The levels tell of a window's mismatches in rising order.
 */
static uint64_t count_units(
	const struct engine *engine, struct sync_place *place, uint64_t first, uint64_t end)
{
	bool mirror = engine->level->level == 1 || engine->level->level == 10;
	uint64_t unit = mirror ? SYNC_WINDOW_BYTES : PARITY_UNIT_BYTES;
	uint64_t from = max_u64(round_down(first, unit), place->counted_end);
	uint64_t until = min_u64(round_up(end, unit), place->window.end_bytes);

	if (from >= until)
		return 0;
	place->counted_end = until;
	return (until - from) / SECTOR_BYTES;
}

static struct sync_place *place_of(struct sync *sync, uint64_t first)
{
	for (unsigned i = 0; i < SYNC_WINDOWS_MAX; i++) {
		struct sync_place *place = &sync->places[i];

		if (place->busy && place->window.first_bytes <= first &&
			first < place->window.end_bytes)
			return place;
	}
	return NULL;
}

void sync_mismatch(struct engine *engine, uint64_t first, uint64_t length, unsigned slot)
{
	struct sync *sync = engine->redundant->sync;
	struct sync_place *place = place_of(sync, first);

	/* A resync is there because of them. */
	if (sync->action != ENGINE_ACTION_CHECK && sync->action != ENGINE_ACTION_REPAIR)
		return;
	if (place != NULL)
		sync->mismatch_sectors += count_units(engine, place, first, first + length);
	note_range(sync, &(struct engine_mismatch){first, length, slot});
}

void sync_found_tell(struct sync *sync)
{
	const char *name = sync_action_name(sync->action);
	unsigned long long sectors = sync->mismatch_sectors;

	if (sync->mismatch_count == 0)
		engine_event(sync->engine, "%s done: no mismatches", name);
	else if (sync->action == ENGINE_ACTION_CHECK)
		engine_event(sync->engine,
			"check found %llu sectors that do not match, in %u%s ranges; repair makes "
			"them match",
			sectors, sync->mismatch_count,
			sync->mismatch_count == ENGINE_MISMATCHES_MAX ? " or more" : "");
	else
		engine_event(sync->engine,
			"repair found %llu sectors that did not match, in %u%s ranges", sectors,
			sync->mismatch_count,
			sync->mismatch_count == ENGINE_MISMATCHES_MAX ? " or more" : "");
	if (sync->lost_count > 0)
		engine_event(sync->engine, "%s: %u windows could not be read in full", name,
			sync->lost_count);
}
