/* SPDX-License-Identifier: MIT */
/*
 * Reads. Where every byte can be had from its own slot they go past the bands: the request is cut
 * into runs, adjacent chunks of one device, each one I/O into the caller's buffers. The rest, and
 * what failed, goes through the bands: there what a slot cannot give is computed from the others.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "engine/badblocks.h"
#include "engine/stripe.h"
#include "util/rounding.h"

/* --- Past the bands -------------------------------------------------------------------------- */

static uint64_t request_end(const struct work *work)
{
	return work->request->offset_bytes + work->request->length_bytes;
}

/* The device that gives [@first, @end) of the data of @slot by itself. */
static unsigned direct_reader(
	const struct engine *engine, unsigned slot, uint64_t first, uint64_t end)
{
	unsigned device = slot_reader(engine, slot, end);

	if (device != ENGINE_NONE && badblocks_overlap(engine, device, first, end - first))
		return ENGINE_NONE;
	return device;
}

static void remember_suspect(struct stripe_work *sw, unsigned device, uint64_t first, uint64_t end)
{
	if (sw->suspect != ENGINE_NONE)
		return;
	sw->suspect = device;
	sw->suspect_first = first;
	sw->suspect_end = end;
}

static void single_done(struct world_io *io, int result)
{
	struct work *work = io->owner;
	struct engine *engine = work->engine;
	struct stripe_work *sw;
	uint64_t first;

	device_account(engine, io->tag, io, result);
	if (result == 0) {
		work_finish(work);
		return;
	}
	sw = stripe_work(work);
	first = io->offset_bytes - engine->devices[io->tag].where.data_offset_bytes;
	sw->suspect = io->tag;
	sw->suspect_first = first;
	sw->suspect_end = first + io->length_bytes;
	sw->window_end = request_end(work);
	stripe_through_bands(sw, work->request->offset_bytes, sw->window_end);
}

/* The whole request lies in one chunk: no cutting, the caller's iovecs as they are. */
static bool start_single(struct work *work)
{
	const struct engine_request *request = work->request;
	const struct stripes *s = &stripe_level(work->engine)->stripes;
	struct world_io *io = &work->io;
	uint64_t stripe, member;
	uint32_t in_chunk;
	unsigned data, device;

	stripes_locate(s, request->offset_bytes, &stripe, &data, &in_chunk);
	if (s->chunk_bytes - in_chunk < request->length_bytes ||
		request->iov_count > ENGINE_IOV_MAX)
		return false;
	member = stripes_member_offset(s, stripe) + in_chunk;
	device = direct_reader(work->engine, stripes_data_slot(s, stripe, data), member,
		member + request->length_bytes);
	if (device == ENGINE_NONE)
		return false;
	io->op = WORLD_READ;
	io->flags = 0;
	io->iov = request->iov;
	io->iov_count = request->iov_count;
	io->length_bytes = request->length_bytes;
	io->done = single_done;
	io->tag = device;
	device_submit(work->engine, device, io, member);
	return true;
}

static void run_done(struct world_io *io, int result)
{
	struct run *run = io->owner;
	struct stripe_work *sw = run->owner;

	device_account(sw->work->engine, run->device, io, result);
	if (result < 0)
		remember_suspect(sw, run->device, run->member_first, run->member_end);
	if (--sw->runs_pending > 0)
		return;
	if (sw->suspect == ENGINE_NONE)
		stripe_read_next(sw);
	else
		stripe_through_bands(sw, sw->window_first, sw->window_end);
}

/* The runs of a window while it is being cut: scratch of one call. */
struct cutting {
	unsigned runs, cuts;
	uint64_t at; /* array bytes */
};

/* The run that goes on at @member of @slot, or a new one; NULL: no more, or nothing to read from.
 */
static struct run *run_at(
	struct stripe_work *sw, struct cutting *c, unsigned slot, uint64_t member, uint64_t bytes)
{
	struct stripe_level *level = stripe_level(sw->work->engine);
	unsigned device = direct_reader(level->engine, slot, member, member + bytes);
	struct run *run = &sw->runs[level->run_of[slot]];

	if (device == ENGINE_NONE)
		return NULL;
	if (level->run_of[slot] < c->runs && run->slot == slot && run->device == device &&
		run->member_end == member)
		return run;
	if (c->runs == level->runs_max)
		return NULL;
	level->run_of[slot] = c->runs;
	run = &sw->runs[c->runs++];
	run->slot = slot;
	run->device = device;
	run->member_first = run->member_end = member;
	run->io.iov_count = 0;
	return run;
}

/* Cut @bytes of array byte @at, all in one chunk, to @run, iovec by iovec. */
static bool cut_chunk(
	struct stripe_work *sw, struct cutting *c, struct run *run, uint64_t at, uint64_t bytes)
{
	struct work *work = sw->work;
	const struct engine_request *request = work->request;
	uint64_t offset = at - request->offset_bytes;

	while (bytes > 0 && c->cuts < ENGINE_IOV_MAX) {
		const struct iovec *iov;
		uint64_t skip, taken;

		while (offset - sw->iov_offset >= request->iov[sw->iov_index].iov_len)
			sw->iov_offset += request->iov[sw->iov_index++].iov_len;
		iov = &request->iov[sw->iov_index];
		skip = offset - sw->iov_offset;
		taken = min_u64(bytes, iov->iov_len - skip);
		work->engine->cuts[c->cuts++] = (struct cut){
			(unsigned)(run - sw->runs), {(uint8_t *)iov->iov_base + skip, taken}};
		run->io.iov_count++;
		run->member_end += taken;
		offset += taken;
		bytes -= taken;
	}
	c->at = request->offset_bytes + offset;
	return bytes == 0;
}

static void cut_window(struct stripe_work *sw, uint64_t end, struct cutting *c)
{
	const struct stripes *s = &stripe_level(sw->work->engine)->stripes;

	while (c->at < end && c->cuts < ENGINE_IOV_MAX) {
		uint64_t stripe, bytes;
		uint32_t in_chunk;
		unsigned data;
		struct run *run;

		stripes_locate(s, c->at, &stripe, &data, &in_chunk);
		bytes = min_u64(end - c->at, s->chunk_bytes - in_chunk);
		run = run_at(sw, c, stripes_data_slot(s, stripe, data),
			stripes_member_offset(s, stripe) + in_chunk, bytes);
		if (run == NULL || !cut_chunk(sw, c, run, c->at, bytes))
			return;
	}
}

/* Deal the cuts out: each run's iovecs are adjacent in the work object's array. */
static void deal_cuts(struct stripe_work *sw, const struct cutting *c)
{
	struct work *work = sw->work;
	unsigned first = 0;

	for (unsigned i = 0; i < c->runs; i++) {
		sw->runs[i].io.iov = &work->iov[first];
		first += sw->runs[i].io.iov_count;
		sw->runs[i].io.iov_count = 0;
	}
	for (unsigned i = 0; i < c->cuts; i++) {
		struct world_io *io = &sw->runs[work->engine->cuts[i].slot].io;

		((struct iovec *)io->iov)[io->iov_count++] = work->engine->cuts[i].iov;
	}
}

static void submit_runs(struct stripe_work *sw, unsigned count)
{
	sw->runs_pending = count;
	for (unsigned i = 0; i < count; i++) {
		struct run *run = &sw->runs[i];

		run->io.op = WORLD_READ;
		run->io.flags = 0;
		run->io.length_bytes = run->member_end - run->member_first;
		run->io.done = run_done;
		device_submit(sw->work->engine, run->device, &run->io, run->member_first);
	}
}

static bool all_in_sync(const struct engine *engine)
{
	const unsigned *active = engine->redundant->active;

	for (unsigned slot = 0; slot < engine->slot_count; slot++)
		if (active[slot] == ENGINE_NONE ||
			engine->devices[active[slot]].state != ENGINE_DEVICE_IN_SYNC)
			return false;
	return true;
}

/* Where the next byte that no slot can give itself is, its stripe ends, or @end. */
static uint64_t end_of_loss(const struct stripe_work *sw, uint64_t at, uint64_t end)
{
	const struct stripe_level *level = stripe_level(sw->work->engine);
	const struct stripes *s = &level->stripes;
	uint64_t stripe;
	uint32_t in_chunk;
	unsigned data;

	while (at < end) {
		bool lost = false;

		stripes_locate(s, at, &stripe, &data, &in_chunk);
		for (; data < s->data && stripes_array_offset(s, stripe, data) < end; data++)
			lost |= direct_reader(level->engine, stripes_data_slot(s, stripe, data),
					stripes_member_offset(s, stripe),
					stripes_member_offset(s, stripe + 1)) == ENGINE_NONE;
		if (!lost)
			return at;
		at = stripes_array_offset(s, stripe + 1, 0);
	}
	return end;
}

static uint64_t end_of_stripe(const struct stripe_work *sw, uint64_t at, uint64_t end)
{
	const struct stripes *s = &stripe_level(sw->work->engine)->stripes;
	uint64_t stripe;
	uint32_t in_chunk;
	unsigned data;

	stripes_locate(s, at, &stripe, &data, &in_chunk);
	return min_u64(end, stripes_array_offset(s, stripe + 1, 0));
}

/*
 * The next part of the request: whole stripes that want for something through the bands, so that
 * what is read to compute the missing chunk is also the answer for its own; the others past them.
 */
void stripe_read_next(struct stripe_work *sw)
{
	struct work *work = sw->work;
	struct cutting c = {.at = sw->window_end};
	uint64_t end = request_end(work), loss_end;

	if (c.at == end) {
		work_end(work);
		return;
	}
	sw->suspect = ENGINE_NONE;
	sw->window_first = c.at;
	loss_end = all_in_sync(work->engine) ? c.at : end_of_loss(sw, c.at, end);
	if (loss_end == c.at)
		cut_window(sw, end, &c);
	if (c.at > sw->window_first) {
		sw->window_end = c.at;
		deal_cuts(sw, &c);
		submit_runs(sw, c.runs);
		return;
	}
	/* What cannot be had past the bands; or a bad block at the very first byte. */
	if (loss_end == sw->window_first)
		loss_end = end_of_stripe(sw, loss_end, end);
	sw->window_end = loss_end;
	stripe_through_bands(sw, sw->window_first, loss_end);
}

void stripe_read_start(struct stripe_work *sw)
{
	struct work *work = sw->work;

	if (start_single(work))
		return;
	sw->window_end = work->request->offset_bytes;
	sw->iov_index = 0;
	sw->iov_offset = 0;
	stripe_read_next(sw);
}

/* --- Through the bands ----------------------------------------------------------------------- */

static void piece_lost(struct band *band, struct block *block)
{
	const struct piece *piece = band->group;
	unsigned data = (unsigned)(block - band->blocks);
	const struct stripes *s = &band->level->stripes;

	work_fail(piece->work, piece_array_bytes(s, piece, data, block->slice_lo),
		piece_array_bytes(s, piece, data, block->slice_hi), -EIO);
	block->slice_lo = block->slice_hi = 0;
}

/* Columns that are to be computed: the hull of what is wanted of blocks that cannot be read. */
static void columns_lost(const struct band *band, uint32_t *lo, uint32_t *hi)
{
	*lo = UINT32_MAX;
	*hi = 0;
	for (unsigned i = band->first; i <= band->last; i++) {
		const struct block *block = &band->blocks[i];

		if (block->device != ENGINE_NONE || block->slice_lo == block->slice_hi)
			continue;
		*lo = (uint32_t)min_u64(*lo, block->slice_lo);
		*hi = (uint32_t)max_u64(*hi, block->slice_hi);
	}
}

static bool is_wanted(const struct band *band, const struct block *block)
{
	unsigned data = (unsigned)(block - band->blocks);

	return data >= band->first && data <= band->last && block->slice_lo < block->slice_hi;
}

static void slice_read(struct band *band);

/* A sector could not be read: everything into the buffers, so that nothing that goes back to the
 * members has been in the client's reach. */
static void read_to_heal(struct band *band, unsigned lost)
{
	band->plan = PLAN_RECOVER;
	band_read_for_recovery(band, lost, band->slice_lo, band->slice_hi);
	band_then(band, slice_read);
}

/* @block is wanted and can be read: into the caller's buffers if that will do. */
static void read_wanted(struct band *band, struct block *block, uint32_t lo, uint32_t hi)
{
	if (lo >= hi || (block->slice_lo <= lo && block->slice_hi >= hi)) {
		band_gather(band, (unsigned)(block - band->blocks));
		block->source = SOURCE_CALLER;
		band_read(band, block, block->slice_lo, block->slice_hi);
	} else {
		block->source = SOURCE_BUFFER;
		band_read(band, block, (uint32_t)min_u64(lo, block->slice_lo),
			(uint32_t)max_u64(hi, block->slice_hi));
	}
}

/* @block is wanted and has to be computed: into the caller's buffers if it is all of [lo, hi). */
static void aim_lost(struct band *band, struct block *block, uint32_t lo, uint32_t hi)
{
	block->source = SOURCE_BUFFER;
	if (block->slice_lo != lo || block->slice_hi != hi)
		return;
	band_gather(band, (unsigned)(block - band->blocks));
	block->source = SOURCE_CALLER;
}

/* Nothing is bad. [@lo, @hi): columns to be computed; @lost blocks of data cannot be read. */
static void read_directly(struct band *band, unsigned lost, uint32_t lo, uint32_t hi)
{
	unsigned data = band->level->stripes.data;

	band->plan = PLAN_NONE;
	for (unsigned i = 0; i < data; i++) {
		struct block *block = &band->blocks[i];
		bool wanted = is_wanted(band, block);

		if (block->device == ENGINE_NONE) {
			if (wanted)
				aim_lost(band, block, lo, hi);
		} else if (wanted) {
			read_wanted(band, block, lo, hi);
		} else if (lo < hi) {
			block->source = SOURCE_BUFFER;
			band_read(band, block, lo, hi);
		}
	}
	for (unsigned i = data; i < band->level->block_count && lo < hi && lost > 0; i++) {
		struct block *block = &band->blocks[i];

		if (block->device == ENGINE_NONE)
			continue;
		block->source = SOURCE_BUFFER;
		band_read(band, block, lo, hi);
		lost--;
	}
	band_then(band, slice_read);
}

static bool something_is_wanted(const struct band *band)
{
	for (unsigned i = band->first; i <= band->last; i++)
		if (band->blocks[i].slice_lo < band->blocks[i].slice_hi)
			return true;
	return false;
}

void stripe_read_slice(struct band *band)
{
	unsigned lost = band_survey(band);
	uint32_t lo, hi;

	columns_lost(band, &lo, &hi);
	if (lo < hi && lost > band_readable_parities(band)) {
		if (band_narrow(band))
			return;
		for (unsigned i = band->first; i <= band->last; i++)
			if (band->blocks[i].device == ENGINE_NONE &&
				is_wanted(band, &band->blocks[i]))
				piece_lost(band, &band->blocks[i]);
		lo = UINT32_MAX;
		hi = 0;
	}
	if (!something_is_wanted(band))
		band_slice_done(band);
	else if (band->bad_count > 0 && lost <= band_readable_parities(band))
		read_to_heal(band, lost);
	else
		read_directly(band, lost, lo, hi);
}

static void compute_lost(struct band *band)
{
	uint32_t lo, hi;

	columns_lost(band, &lo, &hi);
	if (lo < hi)
		band_recover(band, lo, hi);
}

static void compute_to_heal(struct band *band)
{
	struct block *p = band_p(band), *q = band_q(band);

	band_recover(band, band->slice_lo, band->slice_hi);
	band_compute_parity(band, band->slice_lo, band->slice_hi, p->bad, q != NULL && q->bad);
}

/* All that was asked of the members is there, or some of it is bad and another way is needed. */
static void slice_read(struct band *band)
{
	if (band->new_bad) {
		stripe_read_slice(band);
		return;
	}
	if (band->plan == PLAN_RECOVER)
		compute_to_heal(band);
	else
		compute_lost(band);
	for (unsigned i = band->first; i <= band->last; i++)
		if (is_wanted(band, &band->blocks[i]) && band->blocks[i].source == SOURCE_BUFFER)
			band_copy_out(band, i);
	if (band->plan == PLAN_RECOVER)
		band_heal(band, band_slice_done);
	else
		band_slice_done(band);
}
