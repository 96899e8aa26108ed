/* SPDX-License-Identifier: MIT */
/*
 * Requests to a level without redundancy, where each byte lives in exactly one place.
 *
 * A request is worked off in windows. A window ends where a zone does, or where the iovecs of the
 * work object are used up; inside it each member gets at most one I/O, because a contiguous range
 * of a zone is a contiguous range of each member. The common small request fits in one chunk and
 * goes straight through with the caller's own iovec.
 */
#include <assert.h>
#include <string.h>

#include "engine/internal.h"
#include "util/rounding.h"

static void start_window(struct work *work);

static uint64_t request_end(const struct work *work)
{
	return work->request->offset_bytes + work->request->length_bytes;
}

static const enum world_op world_ops_of[] = {
	[ENGINE_READ] = WORLD_READ,
	[ENGINE_WRITE] = WORLD_WRITE,
	[ENGINE_FLUSH] = WORLD_FLUSH,
	[ENGINE_DISCARD] = WORLD_DISCARD,
	[ENGINE_ZERO] = WORLD_ZERO,
};

static void part_done(struct world_io *io, int result)
{
	struct part *part = io->owner;
	struct work *work = part->work;
	struct engine *engine = work->engine;

	device_account(engine, part->device, io, result);
	if (result < 0)
		work_fail(work, part->array_first, part->array_end, result);
	if (--work->pending > 0)
		return;
	if (work->next_offset == request_end(work)) {
		work_finish(work);
		return;
	}
	start_window(work);
	world_kick(engine->world);
}

static void prepare(struct part *part, const struct engine_request *request)
{
	part->io.op = world_ops_of[request->op];
	part->io.flags = request->flags;
	part->io.done = part_done;
}

static void single_done(struct world_io *io, int result)
{
	struct work *work = io->owner;
	const struct engine_request *request = work->request;

	device_account(work->engine, io->tag, io, result);
	if (result < 0)
		work_fail(work, request->offset_bytes, request_end(work), result);
	work_finish(work);
}

/* The whole request lies on one member: no cutting, the caller's iovecs as they are. */
static void start_single(struct work *work, const struct geometry_piece *piece)
{
	const struct engine_request *request = work->request;
	struct world_io *io = &work->io;

	io->op = world_ops_of[request->op];
	io->flags = request->flags;
	io->iov = request->iov;
	io->iov_count = request->iov_count;
	io->length_bytes = request->length_bytes;
	io->done = single_done;
	io->tag = piece->slot;
	device_submit(work->engine, piece->slot, io, piece->member_offset);
}

/* Room for @bytes at most from the request's iovecs at the work's position; moves the position. */
static struct iovec take_buffer(struct work *work, uint64_t bytes)
{
	const struct iovec *iov;
	struct iovec taken;

	for (;;) {
		assert(work->iov_index < work->request->iov_count);
		iov = &work->request->iov[work->iov_index];
		if (work->iov_skip < iov->iov_len)
			break;
		work->iov_index++;
		work->iov_skip = 0;
	}
	taken.iov_base = (char *)iov->iov_base + work->iov_skip;
	taken.iov_len = min_u64(bytes, iov->iov_len - work->iov_skip);
	work->iov_skip += taken.iov_len;
	return taken;
}

/* First cut on a slot in this window: start its part at this place. */
static void open_part(
	struct work *work, const struct geometry_piece *piece, uint64_t offset, unsigned order)
{
	struct part *part = &work->parts[piece->slot];

	work->engine->touched[order] = piece->slot;
	prepare(part, work->request);
	part->io.offset_bytes =
		piece->member_offset; /* within the data; part_submit() adds the rest */
	part->io.length_bytes = 0;
	part->array_first = offset;
}

/*
 * Cut [next_offset, @limit) into pieces of chunk and iovec, as far as ENGINE_IOV_MAX goes, and
 * move next_offset behind them. Returns the number of cuts; *@ret_touched slots are touched.
 */
static unsigned cut_window(struct work *work, uint64_t limit, unsigned *ret_touched)
{
	struct engine *engine = work->engine;
	uint64_t offset = work->next_offset;
	unsigned cuts = 0, touched = 0;

	while (offset < limit && cuts < ENGINE_IOV_MAX) {
		struct geometry_piece piece = geometry_map(engine->geometry, offset);
		struct part *part = &work->parts[piece.slot];
		struct cut *cut = &engine->cuts[cuts++];

		if (engine->per_slot[piece.slot]++ == 0)
			open_part(work, &piece, offset, touched++);
		assert(part->io.offset_bytes + part->io.length_bytes == piece.member_offset);
		cut->slot = piece.slot;
		cut->iov = take_buffer(work, min_u64(piece.length, limit - offset));
		part->io.length_bytes += cut->iov.iov_len;
		offset += cut->iov.iov_len;
		part->array_end = offset;
	}
	work->next_offset = offset;
	*ret_touched = touched;
	return cuts;
}

/* Deal the cuts out to the parts: each part's iovecs are adjacent in the work object's array. */
static void deal_cuts(struct work *work, unsigned cuts, unsigned touched)
{
	struct engine *engine = work->engine;
	unsigned first = 0;

	for (unsigned i = 0; i < touched; i++) {
		unsigned slot = engine->touched[i];
		struct part *part = &work->parts[slot];

		part->io.iov = &work->iov[first];
		part->io.iov_count = engine->per_slot[slot];
		first += engine->per_slot[slot];
		engine->per_slot[slot] = 0; /* from here on: how many are filled in */
	}
	for (unsigned i = 0; i < cuts; i++) {
		unsigned slot = engine->cuts[i].slot;
		struct iovec *iov = (struct iovec *)work->parts[slot].io.iov;

		iov[engine->per_slot[slot]++] = engine->cuts[i].iov;
	}
}

static void start_cut(struct work *work, uint64_t limit)
{
	struct engine *engine = work->engine;
	unsigned touched;
	unsigned cuts = cut_window(work, limit, &touched);

	deal_cuts(work, cuts, touched);
	for (unsigned i = 0; i < touched; i++) {
		struct part *part = &work->parts[engine->touched[i]];

		engine->per_slot[engine->touched[i]] = 0;
		part_submit(part, part->io.offset_bytes);
	}
}

/* DISCARD and ZERO have no buffers: one range per member, however long. */
static void start_ranges(struct work *work, uint64_t limit)
{
	struct engine *engine = work->engine;
	uint64_t length = limit - work->next_offset;

	for (unsigned slot = 0; slot < engine->slot_count; slot++) {
		struct part *part = &work->parts[slot];
		struct geometry_piece range = geometry_member_range(
			engine->geometry, work->next_offset, length, slot);

		if (range.length == 0)
			continue;
		prepare(part, work->request);
		part->io.iov = NULL;
		part->io.iov_count = 0;
		part->io.length_bytes = range.length;
		part->array_first = work->next_offset;
		part->array_end = limit;
		part_submit(part, range.member_offset);
	}
	work->next_offset = limit;
}

static void start_window(struct work *work)
{
	struct engine *engine = work->engine;
	uint64_t limit = min_u64(
		geometry_zone_end(engine->geometry, work->next_offset), request_end(work));

	if (work->request->op == ENGINE_DISCARD || work->request->op == ENGINE_ZERO)
		start_ranges(work, limit);
	else
		start_cut(work, limit);
}

void spread_start(struct work *work)
{
	const struct engine_request *request = work->request;
	bool has_buffers = request->op == ENGINE_READ || request->op == ENGINE_WRITE;

	if (has_buffers && request->iov_count <= ENGINE_IOV_MAX) {
		struct geometry_piece piece = geometry_map(
			work->engine->geometry, request->offset_bytes);

		if (piece.length >= request->length_bytes) {
			start_single(work, &piece);
			return;
		}
	}
	work->next_offset = request->offset_bytes;
	work->iov_index = 0;
	work->iov_skip = 0;
	start_window(work);
}
