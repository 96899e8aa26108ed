/* SPDX-License-Identifier: MIT */
/*
 * Writes. A group of pieces is written at once, in the way that takes the fewest member I/Os:
 *
 * - reconstruct-write: read the data that is not written, compute parity from all of it. If there
 *   is none to read, this is the full-stripe write: nothing is read, nothing is copied.
 * - read-modify-write: read what is overwritten, and parity; parity follows the difference. Needs
 *   parity that is right, so not where a resync is still to come.
 * - where data is missing that either would need: read all that there is, compute the missing data,
 *   then as reconstruct-write.
 *
 * Data and parity go out together. What the devices of a slot did not take, parity stands for, as
 * long as the array has not failed.
 */
#include <assert.h>
#include <errno.h>

#include "engine/stripe.h"
#include "parity/parity.h"

static void slice_read(struct band *band);
static void slice_written(struct band *band);

static bool is_touched(const struct band *band, unsigned data)
{
	return data >= band->first && data <= band->last &&
	       band->blocks[data].slice_lo < band->blocks[data].slice_hi;
}

/* Is all of the slice of @data written? */
static bool is_covered(const struct band *band, unsigned data)
{
	const struct block *block = &band->blocks[data];

	return is_touched(band, data) && block->slice_lo == band->slice_lo &&
	       block->slice_hi == band->slice_hi;
}

/* What each way would read. */
struct costs {
	bool can_modify, can_reconstruct;
	unsigned modify_ios, reconstruct_ios;
	uint64_t modify_bytes, reconstruct_bytes;
};

static void add_data(struct costs *costs, const struct band *band, unsigned data)
{
	const struct block *block = &band->blocks[data];
	uint32_t columns = band->slice_hi - band->slice_lo;

	if (is_touched(band, data)) {
		costs->modify_ios++;
		costs->modify_bytes += block->slice_hi - block->slice_lo;
		costs->can_modify &= block->device != ENGINE_NONE;
	}
	if (!is_covered(band, data)) {
		costs->reconstruct_ios++;
		costs->reconstruct_bytes += columns;
		costs->can_reconstruct &= block->device != ENGINE_NONE;
	}
}

static struct costs count_costs(struct band *band)
{
	const struct stripe_level *level = band->level;
	struct costs costs = {.can_modify = true, .can_reconstruct = true};

	for (unsigned i = 0; i < level->stripes.data; i++)
		add_data(&costs, band, i);
	for (unsigned i = level->stripes.data; i < level->block_count; i++) {
		struct block *block = &band->blocks[i];

		block->wanted = block->writable;
		if (!block->wanted)
			continue;
		costs.modify_ios++;
		costs.modify_bytes += band->slice_hi - band->slice_lo;
		costs.can_modify &= block->device != ENGINE_NONE;
	}
	return costs;
}

static bool parity_is_wanted(const struct band *band)
{
	const struct block *q = band_q(band);

	return band_p(band)->wanted || (q != NULL && q->wanted);
}

static bool is_consistent(const struct band *band)
{
	return sync_is_consistent(band->level->engine, band->member_bytes + band->slice_lo,
		band->member_bytes + band->slice_hi);
}

static bool modify_is_cheaper(const struct costs *costs)
{
	if (costs->modify_ios != costs->reconstruct_ios)
		return costs->modify_ios < costs->reconstruct_ios;
	/* As md. What is read is where the writes go: it is at hand there, in whatever cache. */
	return costs->modify_bytes <= costs->reconstruct_bytes;
}

static enum plan choose(struct band *band, unsigned lost)
{
	struct costs costs = count_costs(band);
	bool can_recover = lost <= band_readable_parities(band);

	if (band->level->engine->redundant->failed)
		return PLAN_NONE;
	if (!parity_is_wanted(band) && band->bad_count == 0)
		return PLAN_WRITE;
	/* This writes all bad blocks anew, too: it could not be done if one had to be read. */
	if (costs.can_reconstruct && (band->bad_count > 0 || !costs.can_modify ||
					     !modify_is_cheaper(&costs) || !is_consistent(band)))
		return PLAN_RECONSTRUCT;
	if (band->bad_count > 0 && can_recover)
		return PLAN_RECOVER;
	if (costs.can_modify)
		return PLAN_READ_MODIFY;
	return can_recover ? PLAN_RECOVER : PLAN_NONE;
}

static void read_for_modify(struct band *band)
{
	for (unsigned i = band->first; i <= band->last; i++) {
		struct block *block = &band->blocks[i];

		block->source = SOURCE_BUFFER;
		if (is_touched(band, i))
			band_read(band, block, block->slice_lo, block->slice_hi);
	}
	for (unsigned i = band->level->stripes.data; i < band->level->block_count; i++) {
		struct block *block = &band->blocks[i];

		block->source = SOURCE_BUFFER;
		if (block->wanted)
			band_read(band, block, band->slice_lo, band->slice_hi);
	}
}

static void read_for_reconstruct(struct band *band)
{
	for (unsigned i = 0; i < band->level->stripes.data; i++) {
		struct block *block = &band->blocks[i];

		if (is_covered(band, i)) {
			block->source = SOURCE_CALLER;
		} else {
			block->source = SOURCE_BUFFER;
			band_read(band, block, band->slice_lo, band->slice_hi);
		}
	}
}

/* Array ranges of the group within [@lo, @hi) of @data fail. */
static void fail_columns(struct band *band, unsigned data, uint32_t lo, uint32_t hi)
{
	const struct stripes *s = &band->level->stripes;

	for (const struct piece *piece = band->group; piece != NULL; piece = piece->next) {
		uint32_t piece_lo, piece_hi;

		if (data < piece->first || data > piece->last)
			continue;
		piece_columns(piece, data, band->level->band_bytes, &piece_lo, &piece_hi);
		if (piece_lo < lo)
			piece_lo = lo;
		if (piece_hi > hi)
			piece_hi = hi;
		if (piece_lo < piece_hi)
			work_fail(piece->work, piece_array_bytes(s, piece, data, piece_lo),
				piece_array_bytes(s, piece, data, piece_hi),
				band->error < 0 ? band->error : -EIO);
	}
}

static void fail_slice(struct band *band)
{
	for (unsigned i = band->first; i <= band->last; i++)
		if (is_touched(band, i))
			fail_columns(band, i, band->blocks[i].slice_lo, band->blocks[i].slice_hi);
	band_slice_done(band);
}

void stripe_write_slice(struct band *band)
{
	unsigned lost = band_survey(band);

	band->plan = choose(band, lost);
	switch ((enum plan)band->plan) {
	case PLAN_NONE:
		if (band->level->engine->redundant->failed || !band_narrow(band))
			fail_slice(band);
		return;
	case PLAN_WRITE:
		break;
	case PLAN_READ_MODIFY:
		read_for_modify(band);
		break;
	case PLAN_RECONSTRUCT:
		read_for_reconstruct(band);
		break;
	case PLAN_RECOVER:
		band_read_for_recovery(band, lost, band->slice_lo, band->slice_hi);
		break;
	}
	band_then(band, slice_read);
}

/* The old data is in the buffer: parity follows the difference to the new. */
static void modify_parity(struct band *band, unsigned data)
{
	struct block *block = &band->blocks[data];
	struct block *p = band_p(band), *q = band_q(band);
	uint32_t at = block->slice_lo;

	for (unsigned i = 0; i < block->iov_count; i++) {
		const struct iovec *iov = &block->iov[i];

		parity_update(block->index, block->buffer + at, iov->iov_base,
			p->wanted ? p->buffer + at : NULL,
			q != NULL && q->wanted ? q->buffer + at : NULL, iov->iov_len);
		at += (uint32_t)iov->iov_len;
	}
}

/* Every data block of the slice as it will be: all that is not covered is in its buffer. */
static void merge_new_data(struct band *band)
{
	for (unsigned i = band->first; i <= band->last; i++)
		if (is_touched(band, i) && band->blocks[i].source == SOURCE_BUFFER)
			band_copy_in(band, i);
}

static void reconstruct_parity(struct band *band)
{
	const struct block *q = band_q(band);

	merge_new_data(band);
	band_compute_parity(
		band, band->slice_lo, band->slice_hi, band_p(band)->wanted, q != NULL && q->wanted);
}

static void compute(struct band *band)
{
	for (unsigned i = band->first; i <= band->last; i++)
		if (is_touched(band, i))
			band_gather(band, i);
	if (band->plan == PLAN_READ_MODIFY) {
		for (unsigned i = band->first; i <= band->last; i++)
			if (is_touched(band, i))
				modify_parity(band, i);
		return;
	}
	if (band->plan == PLAN_RECOVER)
		band_recover(band, band->slice_lo, band->slice_hi);
	if (band->plan != PLAN_WRITE)
		reconstruct_parity(band);
}

static void write_data(struct band *band)
{
	for (unsigned i = band->first; i <= band->last; i++) {
		struct block *block = &band->blocks[i];

		if (is_touched(band, i))
			band_write(band, block, block->iov, block->iov_count,
				block->slice_hi - block->slice_lo, block->slice_lo);
	}
}

/* An array that failed meanwhile (another group's write did it) must not be written any more:
 * reads still see data and parity as they were left. */
static void slice_read(struct band *band)
{
	if (band->new_bad || band->level->engine->redundant->failed) {
		stripe_write_slice(band);
		return;
	}
	compute(band);
	write_data(band);
	for (unsigned i = band->level->stripes.data; i < band->level->block_count; i++)
		if (band->blocks[i].wanted)
			band_write_buffer(band, &band->blocks[i], band->slice_lo, band->slice_hi);
	band_then(band, slice_written);
}

static void slice_written(struct band *band)
{
	if (band->level->engine->redundant->failed)
		for (unsigned i = band->first; i <= band->last; i++)
			if (is_touched(band, i) && !band->blocks[i].landed)
				fail_columns(band, i, band->blocks[i].slice_lo,
					band->blocks[i].slice_hi);
	if (band->plan == PLAN_RECOVER)
		band_heal(band, band_slice_done);
	else
		band_slice_done(band);
}
