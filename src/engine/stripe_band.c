/* SPDX-License-Identifier: MIT */
/*
 * What every kind of work in a band needs: who can be read and written, member I/O with what
 * follows from its failures, one slice after the other, healing what could not be read.
 */
#include <assert.h>
#include <string.h>

#include "engine/badblocks.h"
#include "engine/stripe.h"
#include "util/rounding.h"

static void forget_bad(struct band *band)
{
	for (unsigned i = 0; i < band->level->block_count; i++)
		band->blocks[i].bad = false;
	band->bad_count = 0;
}

static void clip_to_slice(struct band *band)
{
	for (unsigned i = band->first; i <= band->last; i++) {
		struct block *block = &band->blocks[i];

		block->slice_lo = (uint32_t)max_u64(block->lo, band->slice_lo);
		block->slice_hi = (uint32_t)min_u64(block->hi, band->slice_hi);
		if (block->slice_lo >= block->slice_hi)
			block->slice_lo = block->slice_hi = 0;
	}
}

static void start_slice(struct band *band)
{
	const struct piece *piece = band->group;

	clip_to_slice(band);
	if (piece->work == NULL)
		stripe_sync_slice(band);
	else if (piece->work->request->op == ENGINE_READ)
		stripe_read_slice(band);
	else
		stripe_write_slice(band);
}

void band_begin(struct band *band)
{
	if (band->bad_count > 0)
		forget_bad(band);
	band->narrow = band->did_io = band->new_bad = false;
	band->error = 0;
	band->slice_lo = band->lo;
	band->slice_hi = band->hi;
	start_slice(band);
}

bool band_narrow(struct band *band)
{
	if (band->narrow || band->bad_count == 0)
		return false;
	forget_bad(band);
	band->narrow = true;
	band->slice_hi = band->slice_lo + STRIPE_SECTOR;
	start_slice(band);
	return true;
}

void band_slice_done(struct band *band)
{
	if (band->slice_hi >= band->hi) {
		band_group_done(band);
		return;
	}
	if (band->bad_count > 0)
		forget_bad(band);
	band->slice_lo = band->slice_hi;
	band->slice_hi = band->slice_lo + STRIPE_SECTOR;
	start_slice(band);
}

unsigned band_survey(struct band *band)
{
	const struct engine *engine = band->level->engine;
	uint64_t end = band->member_bytes + band->slice_hi;
	unsigned lost = 0, writers[2];

	for (unsigned i = 0; i < band->level->block_count; i++) {
		struct block *block = &band->blocks[i];

		block->device = block->bad ? ENGINE_NONE : slot_reader(engine, block->slot, end);
		block->writable = slot_writers(engine, block->slot, writers) > 0;
		block->source = SOURCE_NONE;
		block->landed = block->wanted = false;
		lost += block->device == ENGINE_NONE && i < band->level->stripes.data;
	}
	band->new_bad = false;
	return lost;
}

unsigned band_readable_parities(const struct band *band)
{
	unsigned count = 0;

	if (band->level->engine->redundant->failed)
		return 0;
	for (unsigned i = band->level->stripes.data; i < band->level->block_count; i++)
		count += band->blocks[i].device != ENGINE_NONE;
	return count;
}

static void io_ended(struct band *band)
{
	if (--band->pending == 0)
		band->step(band);
}

static void mark_bad(struct band *band, struct block *block, unsigned device)
{
	block->bad = true;
	block->bad_device = device;
	band->bad_count++;
	band->new_bad = true;
}

static void read_done(struct world_io *io, int result)
{
	struct band_io *bio = io->owner;

	device_account(bio->band->level->engine, bio->device, io, result);
	if (result < 0)
		mark_bad(bio->band, bio->block, bio->device);
	io_ended(bio->band);
}

/* Also inside the member, offsets count from the start of its data. */
static void forget_badblocks(struct engine *engine, unsigned device, const struct world_io *io)
{
	uint64_t first = io->offset_bytes - engine->devices[device].where.data_offset_bytes;

	if (badblocks_overlap(engine, device, first, io->length_bytes))
		badblocks_remove(engine, device, first, io->length_bytes);
}

static void write_done(struct world_io *io, int result)
{
	struct band_io *bio = io->owner;
	struct band *band = bio->band;
	struct engine *engine = band->level->engine;

	device_account(engine, bio->device, io, result);
	if (result == 0) {
		bio->block->landed = true;
		forget_badblocks(engine, bio->device, io);
	} else {
		if (band->error == 0)
			band->error = result;
		(void)device_fail(engine, bio->device);
	}
	io_ended(band);
}

static struct band_io *take_io(struct band *band, struct block *block, unsigned device)
{
	struct band_io *bio;

	if (band->pending == 0)
		band->io_count = 0;
	assert(band->io_count < 2 * band->level->block_count);
	bio = &band->ios[band->io_count++];
	bio->block = block;
	bio->device = device;
	return bio;
}

static void submit(struct band *band, struct band_io *bio, uint32_t lo)
{
	band->pending++;
	band->did_io = true;
	device_submit(band->level->engine, bio->device, &bio->io, band->member_bytes + lo);
}

static void set_buffer(struct band_io *bio, uint8_t *buffer, uint64_t bytes)
{
	bio->one = (struct iovec){buffer, bytes};
	bio->io.iov = &bio->one;
	bio->io.iov_count = 1;
	bio->io.length_bytes = bytes;
}

/*
 * Is it known that @device does not give these bytes? It said so when it was asked for them past
 * the bands, or its log of bad blocks does.
 */
static bool is_known_bad(const struct band *band, unsigned device, uint32_t lo, uint32_t hi)
{
	const struct work *work = band->group->work;
	const struct stripe_work *sw;

	if (badblocks_overlap(band->level->engine, device, band->member_bytes + lo, hi - lo))
		return true;
	if (work == NULL || work->request->op != ENGINE_READ || band->narrow)
		return false;
	sw = stripe_work(work);
	/* Most of a long I/O that failed can be read; parity that may be wrong is no substitute. */
	return sw->suspect == device && band->member_bytes + lo < sw->suspect_end &&
	       sw->suspect_first < band->member_bytes + hi &&
	       sync_is_consistent(
		       band->level->engine, band->member_bytes + lo, band->member_bytes + hi);
}

void band_read(struct band *band, struct block *block, uint32_t lo, uint32_t hi)
{
	struct band_io *bio;

	if (is_known_bad(band, block->device, lo, hi)) {
		mark_bad(band, block, block->device);
		return;
	}
	bio = take_io(band, block, block->device);
	bio->io.op = WORLD_READ;
	bio->io.flags = 0;
	bio->io.done = read_done;
	if (block->source == SOURCE_CALLER) {
		bio->io.iov = block->iov;
		bio->io.iov_count = block->iov_count;
		bio->io.length_bytes = hi - lo;
	} else {
		set_buffer(bio, block->buffer + lo, hi - lo);
	}
	submit(band, bio, lo);
}

static unsigned group_flags(const struct band *band)
{
	unsigned flags = 0;

	for (const struct piece *piece = band->group; piece != NULL; piece = piece->next)
		if (piece->work != NULL)
			flags |= piece->work->request->flags & WORLD_FUA;
	return flags;
}

static struct band_io *prepare_write(struct band *band, struct block *block, unsigned device)
{
	struct band_io *bio = take_io(band, block, device);

	bio->io.op = WORLD_WRITE;
	bio->io.flags = group_flags(band);
	bio->io.done = write_done;
	return bio;
}

void band_write(struct band *band, struct block *block, const struct iovec *iov, unsigned iov_count,
	uint64_t bytes, uint32_t lo)
{
	unsigned writers[2];
	unsigned count = slot_writers(band->level->engine, block->slot, writers);

	for (unsigned i = 0; i < count; i++) {
		struct band_io *bio = prepare_write(band, block, writers[i]);

		bio->io.iov = iov;
		bio->io.iov_count = iov_count;
		bio->io.length_bytes = bytes;
		submit(band, bio, lo);
	}
}

void band_write_buffer(struct band *band, struct block *block, uint32_t lo, uint32_t hi)
{
	unsigned writers[2];
	unsigned count = slot_writers(band->level->engine, block->slot, writers);

	for (unsigned i = 0; i < count; i++)
		band_write_device(band, block, writers[i], lo, hi);
}

void band_write_device(
	struct band *band, struct block *block, unsigned device, uint32_t lo, uint32_t hi)
{
	struct band_io *bio = prepare_write(band, block, device);

	set_buffer(bio, block->buffer + lo, hi - lo);
	submit(band, bio, lo);
}

void band_then(struct band *band, void (*step)(struct band *band))
{
	band->step = step;
	if (band->pending == 0)
		step(band);
}

void band_read_for_recovery(struct band *band, unsigned lost, uint32_t lo, uint32_t hi)
{
	unsigned data = band->level->stripes.data;

	for (unsigned i = 0; i < data; i++) {
		struct block *block = &band->blocks[i];

		block->source = SOURCE_BUFFER;
		if (block->device != ENGINE_NONE)
			band_read(band, block, lo, hi);
	}
	for (unsigned i = data; i < band->level->block_count && lost > 0; i++) {
		struct block *block = &band->blocks[i];

		if (block->device == ENGINE_NONE)
			continue;
		block->source = SOURCE_BUFFER;
		band_read(band, block, lo, hi);
		lost--;
	}
}

/* --- Healing --------------------------------------------------------------------------------- */

static void heal_next(struct band *band);

static struct block *being_healed(struct band *band)
{
	return &band->blocks[band->heal_next];
}

/* Whose buffer nobody needs any more. There is one: no more blocks are bad than there is parity. */
static struct block *spare_block(struct band *band)
{
	for (unsigned i = 0; i < band->level->block_count; i++)
		if (!band->blocks[i].bad)
			return &band->blocks[i];
	assert(!"all blocks are bad");
	return NULL;
}

/* @device did not keep what was written to it in the slice. */
static void not_healed(struct band *band, unsigned device)
{
	struct engine *engine = band->level->engine;

	if (badblocks_add(engine, device, band->member_bytes + band->slice_lo,
		    band->slice_hi - band->slice_lo) < 0)
		(void)device_fail(engine, device);
}

static void heal_compare(struct world_io *io, int result)
{
	struct band_io *bio = io->owner;
	struct band *band = bio->band;
	struct engine *engine = band->level->engine;

	device_account(engine, bio->device, io, result);
	if (result < 0 || memcmp(bio->one.iov_base, bio->block->buffer + band->slice_lo,
				  bio->one.iov_len) != 0)
		not_healed(band, bio->device);
	else
		engine->devices[bio->device].corrected_reads++;
	band->heal_next++;
	io_ended(band);
}

static void heal_read_again(struct band *band)
{
	struct block *block = being_healed(band);
	struct band_io *bio;

	if (!device_is_written(band->level->engine, block->bad_device)) {
		band->heal_next++; /* it did not take the write */
		heal_next(band);
		return;
	}
	bio = take_io(band, block, block->bad_device);
	bio->io.op = WORLD_READ;
	bio->io.flags = 0;
	bio->io.done = heal_compare;
	set_buffer(
		bio, spare_block(band)->buffer + band->slice_lo, band->slice_hi - band->slice_lo);
	submit(band, bio, band->slice_lo);
	band_then(band, heal_next);
}

static bool needs_healing(const struct band *band, const struct block *block)
{
	return block->bad && device_is_readable(band->level->engine, block->bad_device,
				     band->member_bytes + band->slice_hi);
}

static void heal_next(struct band *band)
{
	while (band->heal_next < band->level->block_count) {
		struct block *block = being_healed(band);

		if (needs_healing(band, block)) {
			band_write_device(
				band, block, block->bad_device, band->slice_lo, band->slice_hi);
			band_then(band, heal_read_again);
			return;
		}
		band->heal_next++;
	}
	band->healed(band);
}

void band_heal(struct band *band, void (*healed)(struct band *band))
{
	if (band->bad_count == 0) {
		healed(band);
		return;
	}
	band->healed = healed;
	band->heal_next = 0;
	heal_next(band);
}
