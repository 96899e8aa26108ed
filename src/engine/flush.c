/* SPDX-License-Identifier: MIT */
/*
 * Flush: every member that completed writes since its last flush is flushed; the others are not
 * bothered. Two flushes may overlap: the second submits its own to each member whose latest writes
 * no finished flush covers, and so never returns before those writes are durable.
 *
 * With redundancy a member whose flush fails is failed itself: what it holds is not known any more,
 * and the others have it all. Without, acknowledged writes may be gone for good, so all later
 * flushes fail too.
 */
#include <errno.h>

#include "engine/devices.h"
#include "engine/record.h"
#include "util/rounding.h"

static void flush_failed(struct work *work, unsigned device, int result)
{
	struct engine *engine = work->engine;

	if (engine->redundant != NULL && device_fail(engine, device) && !engine->redundant->failed)
		return;
	engine->devices[device].flush_lost = true;
	work_fail(work, 0, engine->array_bytes, result);
}

static void end(struct work *work)
{
	if (work->engine->redundant != NULL)
		work_end(work);
	else
		work_finish(work);
}

static void flush_done(struct world_io *io, int result)
{
	struct part *part = io->owner;
	struct work *work = part->work;
	struct engine *engine = work->engine;
	struct device *device = &engine->devices[part->device];

	device_account(engine, part->device, io, result);
	if (result < 0)
		flush_failed(work, part->device, result);
	else
		device->flushed = max_u64(device->flushed, part->flush_covers);
	if (--work->pending == 0)
		end(work);
}

static void flush_device(struct part *part, struct device *device)
{
	part->io.op = WORLD_FLUSH;
	part->io.flags = 0;
	part->io.iov = NULL;
	part->io.iov_count = 0;
	part->io.length_bytes = 0;
	part->io.done = flush_done;
	part->flush_covers = device->written;
	part_submit(part, 0);
}

void flush_start(struct work *work)
{
	struct engine *engine = work->engine;

	for (unsigned i = 0; i < engine->device_max; i++) {
		struct device *device = &engine->devices[i];

		if (!device_is_written(engine, i))
			continue;
		if (device->flush_lost)
			work_fail(work, 0, engine->array_bytes, -EIO);
		else if (device->flushed < device->written)
			flush_device(&work->parts[i], device);
	}
	if (work->pending > 0)
		return;
	if (engine->redundant != NULL && !record_is_settled(engine))
		record_hold(work);
	else
		work_finish_later(work);
}
