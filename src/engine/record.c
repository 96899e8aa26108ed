/* SPDX-License-Identifier: MIT */
/* The record of an array that keeps none: everything is durable at once. */
#include "engine/record.h"

#include "engine/devices.h"

int record_new(struct engine *engine, const struct engine_config *config, struct fault *fault)
{
	(void)engine;
	(void)config;
	(void)fault;
	return 0;
}

void record_free(struct engine *engine)
{
	(void)engine;
}

void record_change(struct engine *engine, struct record_waiter *waiter)
{
	(void)engine;
	if (waiter != NULL)
		waiter->done(waiter, 0);
}

bool record_admit(struct work *work)
{
	(void)work;
	return true;
}

void record_release(struct work *work, bool clean)
{
	(void)work;
	(void)clean;
}

bool record_is_settled(const struct engine *engine)
{
	(void)engine;
	return true;
}

void record_hold(struct work *work)
{
	work_finish_later(work);
}

void record_close(struct engine *engine, struct record_waiter *waiter)
{
	record_change(engine, waiter);
}

bool record_is_kept(const struct engine *engine)
{
	(void)engine;
	return false;
}

int record_device_add(struct engine *engine, unsigned device, const struct md_super *super)
{
	(void)engine;
	(void)device;
	(void)super;
	return 0;
}

void record_device_remove(struct engine *engine, unsigned device)
{
	(void)engine;
	(void)device;
}

unsigned record_dev_number(const struct engine *engine, unsigned device)
{
	(void)engine;
	return device;
}

uint64_t record_events(const struct engine *engine)
{
	(void)engine;
	return 0;
}

uint64_t record_events_cleared(const struct engine *engine)
{
	(void)engine;
	return 0;
}

bool record_is_active(const struct engine *engine)
{
	(void)engine;
	return false;
}

uint64_t record_update_seconds(const struct engine *engine)
{
	(void)engine;
	return 0;
}

bool record_has_bitmap(const struct engine *engine)
{
	(void)engine;
	return false;
}

bool bitmap_needs_sync(const struct engine *engine, uint64_t first, uint64_t *ret_end)
{
	(void)first;
	*ret_end = engine->redundant->sync_bytes;
	return true;
}

void bitmap_synced(struct engine *engine, uint64_t first, uint64_t end)
{
	(void)engine;
	(void)first;
	(void)end;
}

void bitmap_need_all_set(struct engine *engine)
{
	(void)engine;
}

void bitmap_need_everything(struct engine *engine)
{
	(void)engine;
}

void bitmap_counts(const struct engine *engine, uint32_t *ret_chunk_bytes, uint64_t *ret_bits,
	uint64_t *ret_dirty)
{
	(void)engine;
	*ret_chunk_bytes = 0;
	*ret_bits = *ret_dirty = 0;
}
