/* SPDX-License-Identifier: MIT */
/*
 * Windows of the background action, band by band.
 *
 * Resync and check read all blocks and look whether parity fits the data. Resync then computes
 * parity anew, as md does: after a crash it is parity that is behind, and data that looks wrong is
 * only newer. Repair does the same, but where RAID 6 can tell that one data block is wrong and the
 * others are not (every byte of a sector accuses it) it is that block which is computed anew: md
 * would make parity fit the damage and so lose the last trace of what was there. Where it cannot
 * be told, data stays as it is.
 *
 * Recovery computes what the devices that are being rebuilt should hold. A replacement gets what
 * the device has that it replaces, if that can be read.
 */
#include <assert.h>
#include <errno.h>

#include "engine/badblocks.h"
#include "engine/stripe.h"
#include "parity/parity.h"
#include "util/rounding.h"

static void sync_read(struct band *band);

static struct sync_window *window_of(const struct band *band)
{
	return band->group->job->window;
}

void stripe_sync_window(struct sync_window *window)
{
	struct stripe_level *level = stripe_level(window->engine);
	struct stripe_job *job = &level->jobs[window->number];
	const struct stripes *s = &level->stripes;
	unsigned count = 0;

	job->window = window;
	job->result = 0;
	for (uint64_t at = window->first_bytes; at < window->end_bytes;) {
		uint64_t band_first = at & ~(uint64_t)(level->band_bytes - 1);
		uint64_t end = min_u64(band_first + level->band_bytes, window->end_bytes);

		job->pieces[count++] = (struct piece){.job = job,
			.stripe = band_first >> s->chunk_shift,
			.column = (uint32_t)band_first & (s->chunk_bytes - 1),
			.last = s->data - 1,
			.first_lo = (uint32_t)(at - band_first),
			.last_hi = (uint32_t)(end - band_first)};
		at = end;
	}
	job->pending = count;
	for (unsigned i = 0; i < count; i++)
		stripe_enqueue(level, &job->pieces[i]);
}

void stripe_piece_synced(struct piece *piece)
{
	if (--piece->job->pending == 0)
		sync_window_done(piece->job->window, piece->job->result);
}

/* The slice cannot be judged. */
static void give_up_check(struct band *band)
{
	if (band_narrow(band)) /* sector by sector some of it can */
		return;
	band->group->job->result = -EIO;
	band_slice_done(band);
}

/* --- Recovery -------------------------------------------------------------------------------- */

/* Is @device in need of these columns? */
static bool is_rebuilt(const struct band *band, unsigned device)
{
	const struct device *d = &band->level->engine->devices[device];

	return d->state == ENGINE_DEVICE_REBUILDING &&
	       d->recovered_bytes < band->member_bytes + band->slice_hi;
}

/* The devices of @block that are; returns how many. */
static unsigned rebuilt_devices(const struct band *band, const struct block *block, unsigned ret[2])
{
	unsigned writers[2], count = 0;
	unsigned all = slot_writers(band->level->engine, block->slot, writers);

	for (unsigned i = 0; i < all; i++)
		if (is_rebuilt(band, writers[i]))
			ret[count++] = writers[i];
	return count;
}

/* Which blocks are to be rebuilt; returns how many of them cannot just be copied. */
static unsigned find_rebuilt(struct band *band, unsigned *ret_copies)
{
	unsigned devices[2], computed = 0;

	*ret_copies = 0;
	for (unsigned i = 0; i < band->level->block_count; i++) {
		struct block *block = &band->blocks[i];

		block->wanted = rebuilt_devices(band, block, devices) > 0;
		if (block->wanted && block->device == ENGINE_NONE)
			computed++;
		else if (block->wanted)
			(*ret_copies)++;
	}
	return computed;
}

static void read_copies(struct band *band)
{
	for (unsigned i = 0; i < band->level->block_count; i++) {
		struct block *block = &band->blocks[i];

		if (!block->wanted || block->device == ENGINE_NONE ||
			block->source == SOURCE_BUFFER) /* is being read */
			continue;
		block->source = SOURCE_BUFFER;
		band_read(band, block, band->slice_lo, band->slice_hi);
	}
}

/* The devices that are rebuilt do not get the slice. Their log says so, or the window has failed.
 */
static void give_up_rebuild(struct band *band)
{
	unsigned devices[2];

	if (band_narrow(band))
		return;
	for (unsigned i = 0; i < band->level->block_count; i++) {
		unsigned count = rebuilt_devices(band, &band->blocks[i], devices);

		for (unsigned j = 0; j < count; j++)
			if (badblocks_add(band->level->engine, devices[j],
				    band->member_bytes + band->slice_lo,
				    band->slice_hi - band->slice_lo) < 0)
				band->group->job->result = -EIO;
	}
	band_slice_done(band);
}

static void plan_recovery(struct band *band, unsigned lost)
{
	unsigned copies, computed = find_rebuilt(band, &copies);

	if (computed + copies == 0) {
		band_slice_done(band);
		return;
	}
	band->plan = PLAN_NONE;
	if (computed > 0 || band->bad_count > 0) {
		if (lost > band_readable_parities(band)) {
			give_up_rebuild(band);
			return;
		}
		band->plan = PLAN_RECOVER;
		band_read_for_recovery(band, lost, band->slice_lo, band->slice_hi);
	}
	read_copies(band);
	band_then(band, sync_read);
}

static void recovery_written(struct band *band)
{
	if (band->plan == PLAN_RECOVER)
		band_heal(band, band_slice_done);
	else
		band_slice_done(band);
}

/* Parity that is wanted and was read is a copy; computed, it is the same or better. */
static bool is_computed(const struct block *block)
{
	return block != NULL && (block->wanted || block->bad) && block->device == ENGINE_NONE;
}

static void write_rebuilt(struct band *band)
{
	unsigned devices[2];

	if (band->plan == PLAN_RECOVER) {
		band_recover(band, band->slice_lo, band->slice_hi);
		band_compute_parity(band, band->slice_lo, band->slice_hi, is_computed(band_p(band)),
			is_computed(band_q(band)));
	}
	for (unsigned i = 0; i < band->level->block_count; i++) {
		struct block *block = &band->blocks[i];
		unsigned count = block->wanted ? rebuilt_devices(band, block, devices) : 0;

		for (unsigned j = 0; j < count; j++)
			band_write_device(band, block, devices[j], band->slice_lo, band->slice_hi);
	}
	band_then(band, recovery_written);
}

/* --- Check, repair, resync ------------------------------------------------------------------- */

/* All blocks, and all parity even if less would do: it is what is looked at. */
static void plan_check(struct band *band, unsigned lost)
{
	unsigned parities = band_readable_parities(band);

	if (lost > parities) {
		give_up_check(band);
		return;
	}
	if (lost == parities && band->bad_count == 0) { /* nothing is left over to look at */
		band_slice_done(band);
		return;
	}
	band->plan = PLAN_RECOVER;
	band_read_for_recovery(band, parities, band->slice_lo, band->slice_hi);
	band_then(band, sync_read);
}

static void check_written(struct band *band)
{
	band_heal(band, band_slice_done);
}

static void add_dirty(struct block *block, uint32_t lo, uint32_t hi)
{
	if (block->dirty_lo == block->dirty_hi)
		block->dirty_lo = lo;
	block->dirty_hi = hi;
}

static void repair_parity(struct band *band, uint32_t lo, uint32_t hi)
{
	struct block *p = band_p(band), *q = band_q(band);
	bool fix_p = p->device != ENGINE_NONE, fix_q = q != NULL && q->device != ENGINE_NONE;

	/* Parity counts as no source here, and is written where it lies. */
	band_compute_parity(band, lo, hi, fix_p, fix_q);
	if (fix_p)
		add_dirty(p, lo, hi);
	if (fix_q)
		add_dirty(q, lo, hi);
}

static struct block *block_of_index(struct band *band, unsigned index)
{
	for (unsigned i = 0; i < band->level->block_count; i++)
		if (band->blocks[i].index == index)
			return &band->blocks[i];
	assert(!"no block has this index");
	return NULL;
}

static void repair(struct band *band, struct block *wrong, uint32_t lo, uint32_t hi)
{
	bool is_data = wrong != NULL && wrong < band_p(band);

	if (window_of(band)->action == ENGINE_ACTION_CHECK)
		return;
	if (window_of(band)->action != ENGINE_ACTION_REPAIR || !is_data) {
		repair_parity(band, lo, hi);
		return;
	}
	band_recover_one(band, wrong->index, lo, hi);
	add_dirty(wrong, lo, hi);
}

/* Sectors in a row with the same verdict, told once. */
struct finding {
	uint32_t lo, hi;
	unsigned slot;
};

static void tell(struct band *band, struct finding *finding)
{
	if (finding->lo < finding->hi)
		sync_mismatch(band->level->engine, band->member_bytes + finding->lo,
			finding->hi - finding->lo, finding->slot);
	finding->lo = finding->hi = 0;
}

static void judge_sector(struct band *band, struct finding *finding, uint32_t at)
{
	int verdict = band_check(band, at, at + STRIPE_SECTOR);
	struct block *wrong = verdict >= 0 ? block_of_index(band, (unsigned)verdict) : NULL;
	unsigned slot = wrong != NULL ? wrong->slot : ENGINE_NONE;

	if (verdict == PARITY_CONSISTENT)
		return;
	if (finding->lo < finding->hi && (finding->hi != at || finding->slot != slot))
		tell(band, finding);
	if (finding->lo == finding->hi)
		finding->lo = at;
	finding->hi = at + STRIPE_SECTOR;
	finding->slot = slot;
	repair(band, wrong, at, at + STRIPE_SECTOR);
}

static void judge(struct band *band)
{
	struct finding finding = {0};

	for (unsigned i = 0; i < band->level->block_count; i++)
		band->blocks[i].dirty_lo = band->blocks[i].dirty_hi = 0;
	if (band_check(band, band->slice_lo, band->slice_hi) == PARITY_CONSISTENT)
		return;
	for (uint32_t at = band->slice_lo; at < band->slice_hi; at += STRIPE_SECTOR)
		judge_sector(band, &finding, at);
	tell(band, &finding);
}

/* What can be judged is; then bad blocks are healed, in a check too: that is what scrubs are for.
 */
static void check_blocks(struct band *band, unsigned lost)
{
	struct block *p = band_p(band), *q = band_q(band);

	band_recover(band, band->slice_lo, band->slice_hi);
	if (lost < band_readable_parities(band))
		judge(band);
	band_compute_parity(band, band->slice_lo, band->slice_hi, p->bad, q != NULL && q->bad);
	for (unsigned i = 0; i < band->level->block_count; i++) {
		struct block *block = &band->blocks[i];

		if (block->dirty_lo < block->dirty_hi)
			band_write_buffer(band, block, block->dirty_lo, block->dirty_hi);
	}
	band_then(band, check_written);
}

/* --- Both ------------------------------------------------------------------------------------ */

static unsigned count_lost(const struct band *band)
{
	unsigned lost = 0;

	for (unsigned i = 0; i < band->level->stripes.data; i++)
		lost += band->blocks[i].device == ENGINE_NONE;
	return lost;
}

void stripe_sync_slice(struct band *band)
{
	unsigned lost = band_survey(band);

	if (window_of(band)->action == ENGINE_ACTION_RECOVERY)
		plan_recovery(band, lost);
	else
		plan_check(band, lost);
}

static void sync_read(struct band *band)
{
	if (band->new_bad)
		stripe_sync_slice(band);
	else if (window_of(band)->action == ENGINE_ACTION_RECOVERY)
		write_rebuilt(band);
	else
		check_blocks(band, count_lost(band));
}
