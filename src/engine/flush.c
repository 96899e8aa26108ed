/* SPDX-License-Identifier: MIT */
/*
 * Flush: every member that completed writes since its last flush is flushed; the others are not
 * bothered. Two flushes may overlap: the second submits its own to each member whose latest writes
 * no finished flush covers, and so never returns before those writes are durable.
 */
#include <errno.h>

#include "engine/internal.h"
#include "util/rounding.h"

static void flush_done(struct world_io *io, int result)
{
	struct part *part = io->owner;
	struct work *work = part->work;
	struct engine *engine = work->engine;
	struct slot_state *slot = &engine->slots[part->slot];

	slot_account(engine, part->slot, io, result);
	if (result < 0) {
		slot->flush_lost = true;
		work_fail(work, 0, engine->array_bytes, result);
	} else {
		slot->flushed = max_u64(slot->flushed, part->flush_covers);
	}
	if (--work->pending == 0)
		work_finish(work);
}

static void flush_slot(struct part *part, struct slot_state *slot)
{
	part->io.op = WORLD_FLUSH;
	part->io.flags = 0;
	part->io.iov = NULL;
	part->io.iov_count = 0;
	part->io.length_bytes = 0;
	part->io.done = flush_done;
	part->flush_covers = slot->written;
	part_submit(part, 0);
}

void flush_start(struct work *work)
{
	struct engine *engine = work->engine;

	for (unsigned i = 0; i < engine->slot_count; i++) {
		struct slot_state *slot = &engine->slots[i];

		if (slot->flush_lost)
			work_fail(work, 0, engine->array_bytes, -EIO);
		else if (slot->flushed < slot->written)
			flush_slot(&work->parts[i], slot);
	}
	if (work->pending == 0)
		work_finish_later(work);
}
