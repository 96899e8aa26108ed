/* SPDX-License-Identifier: MIT */
/*
 * The engine's frame: requests come in, borrow a work object, are cut into parts by their level
 * and complete when the last part has. What happens in between is in spread.c, flush.c and level/.
 */
#include "engine/engine.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "engine/devices.h"
#include "engine/record.h"
#include "util/rounding.h"

#define SECTOR_BYTES 512u

static bool is_write(enum engine_op op)
{
	return op == ENGINE_WRITE || op == ENGINE_DISCARD || op == ENGINE_ZERO;
}

static void start_work(struct engine *engine, struct engine_request *request)
{
	struct work *work = engine->free_works;

	engine->free_works = work->next_free;
	work->request = request;
	if (request->op == ENGINE_FLUSH)
		flush_start(work);
	else if (engine->redundant == NULL || !is_write(request->op) || record_admit(work))
		engine->level->start(work);
}

/* Completion from the next engine_kick(): done() must not run inside engine_submit(). */
static void finish_later(struct engine *engine, struct engine_request *request, int result)
{
	request->result = result;
	request->next = NULL;
	*engine->finished_last = request;
	engine->finished_last = &request->next;
}

static void deliver(struct engine *engine, struct engine_request *request)
{
	engine->inflight--;
	engine->inflight_writes -= is_write(request->op);
	engine->counters.requests[request->op]++;
	if (request->result < 0)
		engine->counters.errors++;
	else if (request->op != ENGINE_FLUSH)
		engine->counters.bytes[request->op] += request->length_bytes;
	request->done(request, request->result);
}

static void deliver_finished(struct engine *engine)
{
	if (engine->delivering) /* a done() called engine_kick(): the loop below goes on with it */
		return;
	engine->delivering = true;
	while (engine->finished_first != NULL) {
		struct engine_request *request = engine->finished_first;

		engine->finished_first = request->next;
		if (engine->finished_first == NULL)
			engine->finished_last = &engine->finished_first;
		deliver(engine, request);
	}
	engine->delivering = false;
}

/* 0 if the request may run; else the errno that it completes with, and nothing is done. */
static int check_request(const struct engine *engine, const struct engine_request *request)
{
	uint64_t end;

	if (is_write(request->op) && engine->readonly)
		return -EROFS;
	if (request->op == ENGINE_FLUSH)
		return 0;
	if ((request->offset_bytes | request->length_bytes) % SECTOR_BYTES != 0)
		return -EINVAL;
	if (add_overflows(request->offset_bytes, request->length_bytes, &end) ||
		end > engine->array_bytes)
		return -ERANGE;
	return 0;
}

/*
 * Nothing to touch: an empty range, or a flush where nothing can have been written. An array that
 * is on its way to be read-only may have acknowledged writes in its members' caches.
 */
static bool is_empty(const struct engine *engine, const struct engine_request *request)
{
	if (request->op == ENGINE_FLUSH)
		return engine->readonly &&
		       (engine->redundant == NULL || !(engine->redundant->command_closing ||
							     engine->redundant->closed_badly));
	return request->length_bytes == 0;
}

void engine_submit(struct engine *engine, struct engine_request *request)
{
	int r = check_request(engine, request);

	engine->inflight++;
	engine->inflight_writes += is_write(request->op);
	request->result = 0;
	if (r < 0) {
		request->fail_offset_bytes = request->offset_bytes;
		request->fail_length_bytes = request->length_bytes;
		finish_later(engine, request, r);
	} else if (is_empty(engine, request)) {
		finish_later(engine, request, 0);
	} else if (engine->free_works == NULL || engine->waiting_first != NULL) {
		request->next = NULL;
		*engine->waiting_last = request;
		engine->waiting_last = &request->next;
	} else {
		start_work(engine, request);
	}
}

void engine_kick(struct engine *engine)
{
	world_kick(engine->world);
	if (engine->finished_first != NULL)
		deliver_finished(engine);
}

/* Waiting requests go before new ones, so none starves. */
static void start_waiting(struct engine *engine)
{
	if (engine->waiting_first == NULL)
		return;
	while (engine->waiting_first != NULL && engine->free_works != NULL) {
		struct engine_request *request = engine->waiting_first;

		engine->waiting_first = request->next;
		if (engine->waiting_first == NULL)
			engine->waiting_last = &engine->waiting_first;
		start_work(engine, request);
	}
	world_kick(engine->world);
}

static struct engine_request *work_release(struct work *work)
{
	struct engine_request *request = work->request;
	struct engine *engine = work->engine;

	work->request = NULL;
	work->next_free = engine->free_works;
	engine->free_works = work;
	return request;
}

void work_finish(struct work *work)
{
	struct engine *engine = work->engine;
	struct engine_request *request = work_release(work);

	start_waiting(engine);
	deliver(engine, request);
	if (engine->finished_first != NULL)
		deliver_finished(engine);
}

void work_end(struct work *work)
{
	const struct engine_request *request = work->request;
	struct engine *engine = work->engine;
	bool writes = is_write(request->op);

	if (writes)
		record_release(work, request->result == 0);
	/* A read depends on nothing that the record could get wrong. */
	if ((writes || request->op == ENGINE_FLUSH) && !record_is_settled(engine))
		record_hold(work);
	else
		work_finish(work);
}

void work_finish_later(struct work *work)
{
	struct engine *engine = work->engine;
	struct engine_request *request = work_release(work);

	finish_later(engine, request, request->result);
}

void work_fail(struct work *work, uint64_t first, uint64_t end, int error)
{
	struct engine_request *request = work->request;

	if (request->result < 0) {
		uint64_t old_end = request->fail_offset_bytes + request->fail_length_bytes;

		first = min_u64(first, request->fail_offset_bytes);
		end = max_u64(end, old_end);
	} else {
		request->result = error;
	}
	request->fail_offset_bytes = first;
	request->fail_length_bytes = end - first;
}

void device_submit_at(
	struct engine *engine, unsigned device, struct world_io *io, uint64_t member_offset)
{
	io->member = engine->devices[device].where.member;
	io->offset_bytes = member_offset;
	engine->devices[device].inflight++;
	engine->counters.member_ios++;
	world_submit(engine->world, io);
}

void device_submit(
	struct engine *engine, unsigned device, struct world_io *io, uint64_t offset_in_data)
{
	const struct engine_slot *where = &engine->devices[device].where;

	assert(io->op == WORLD_FLUSH || offset_in_data + io->length_bytes <= where->data_bytes);
	/* The one place where the data offset is added. */
	device_submit_at(engine, device, io, where->data_offset_bytes + offset_in_data);
}

void part_submit(struct part *part, uint64_t offset_in_data)
{
	part->work->pending++;
	device_submit(part->work->engine, part->device, &part->io, offset_in_data);
}

static void count_transfer(struct device *device, const struct world_io *io, int result)
{
	uint64_t bytes = result == 0 ? io->length_bytes : 0;

	if (io->op == WORLD_READ) {
		device->counters.reads++;
		device->counters.read_bytes += bytes;
	} else {
		device->counters.writes++;
		device->counters.written_bytes += bytes;
		/* A write that failed may have reached the member in part: it wants a flush too. */
		device->written++;
	}
}

void device_account(struct engine *engine, unsigned device, const struct world_io *io, int result)
{
	if (io->op != WORLD_FLUSH)
		count_transfer(&engine->devices[device], io, result);
	engine->devices[device].inflight--;
	if (result == 0)
		return;
	engine->devices[device].counters.errors++;
	if (engine->member_error != NULL)
		engine->member_error(engine->owner, device, io, result);
}

uint64_t engine_array_bytes(const struct engine *engine)
{
	return engine->array_bytes;
}

uint64_t engine_stripe_bytes(const struct engine *engine)
{
	if (engine->redundant != NULL)
		return engine->level->stripe_bytes(engine);
	return (uint64_t)engine->chunk_bytes * geometry_width(engine->geometry);
}

unsigned engine_zone_count(const struct engine *engine)
{
	return engine->redundant != NULL ? 1 : geometry_zone_count(engine->geometry);
}

unsigned engine_inflight(const struct engine *engine)
{
	return engine->inflight;
}

size_t engine_memory(const struct engine *engine)
{
	return engine->memory_bytes;
}

const struct engine_counters *engine_counters(const struct engine *engine)
{
	return &engine->counters;
}

const struct engine_slot_counters *engine_slot_counters(const struct engine *engine, unsigned slot)
{
	static const struct engine_slot_counters none;

	assert(slot < engine->slot_count);
	if (engine->redundant != NULL)
		slot = engine->redundant->active[slot];
	return slot == ENGINE_NONE ? &none : &engine->devices[slot].counters;
}

bool engine_is_broken(const struct engine *engine)
{
	if (engine->redundant != NULL)
		return engine->redundant->failed;
	for (unsigned slot = 0; slot < engine->slot_count; slot++)
		if (engine->devices[slot].flush_lost)
			return true;
	return false;
}

const char *engine_level_name(int level)
{
	const struct engine_level *found = engine_level_find(level);

	return found != NULL ? found->name : NULL;
}

bool engine_level_is_redundant(int level)
{
	const struct engine_level *found = engine_level_find(level);

	return found != NULL && found->redundant;
}
