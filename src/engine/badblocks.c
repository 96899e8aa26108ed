/* SPDX-License-Identifier: MIT */
/*
 * Bad-block logs of members: tables in memory, and when they are written. A range that becomes bad
 * is like a member that fails: it is durable before anything is acknowledged that relies on it. One
 * that is good again goes out with the next update, which flushes the member first.
 */
#include "engine/badblocks.h"

#include "engine/record_state.h"
#include "util/rounding.h"

static uint64_t sector_of(const struct engine *engine, unsigned device, uint64_t data_offset)
{
	return (engine->devices[device].where.data_offset_bytes + data_offset) / MD_SECTOR;
}

bool badblocks_overlap(
	const struct engine *engine, unsigned device, uint64_t data_offset, uint64_t length)
{
	const struct record_device *d = &record_of(engine)->devices[device];

	return d->bad.count > 0 &&
	       md_badblocks_overlaps(
		       &d->bad, sector_of(engine, device, data_offset), length / MD_SECTOR, NULL);
}

unsigned badblocks_count(const struct engine *engine, unsigned device)
{
	return record_of(engine)->devices[device].bad.count;
}

int badblocks_add(struct engine *engine, unsigned device, uint64_t data_offset, uint64_t length)
{
	struct record *record = record_of(engine);
	struct record_device *d = &record->devices[device];
	int r;

	if (!d->present || d->bad.entries_max == 0)
		return -EOPNOTSUPP;
	r = md_badblocks_add(&d->bad, sector_of(engine, device, data_offset), length / MD_SECTOR);
	if (r < 0)
		return r;
	d->log_is_new = true;
	engine_event(engine, "device %u: bytes %llu to %llu of its data are bad", device,
		(unsigned long long)data_offset, (unsigned long long)(data_offset + length));
	record_must_be_durable(record);
	return 0;
}

void badblocks_remove(struct engine *engine, unsigned device, uint64_t data_offset, uint64_t length)
{
	struct record_device *d = &record_of(engine)->devices[device];

	if (!badblocks_overlap(engine, device, data_offset, length))
		return;
	/* -ENOSPC: the log cannot say it; the range stays bad. */
	if (md_badblocks_remove(
		    &d->bad, sector_of(engine, device, data_offset), length / MD_SECTOR) == 0)
		d->log_is_new = true;
}

/* Without the feature what is in the log's place means nothing. */
int badblocks_take(struct record_device *d, const struct md_super *super,
	const struct md_badblocks *bad, struct fault *fault)
{
	d->log_is_new = d->log_in_update = false;
	d->bad.count = d->bad.entries_max = 0;
	if (bad == NULL && (super->feature_map & MD_FEATURE_BAD_BLOCKS) != 0)
		return fault_set(fault, -EINVAL,
			"device %u has bad blocks, and its log of them was not read", d->device);
	if (bad != NULL && super->bblog_sectors * MD_SECTOR <= RECORD_BLOCK_BYTES)
		d->bad = *bad;
	return 0;
}

bool badblocks_fill(struct record *record)
{
	bool any = false;

	for (unsigned i = 0; i < record->engine->device_max; i++) {
		struct record_device *d = &record->devices[i];

		d->log_in_update = d->log_is_new && record_device_lives(d);
		if (!d->log_in_update)
			continue;
		md_badblocks_encode(&d->bad, d->log);
		d->log_is_new = false;
		any = true;
	}
	return any;
}

void badblocks_update_ended(struct record *record, bool done)
{
	for (unsigned i = 0; i < record->engine->device_max; i++) {
		struct record_device *d = &record->devices[i];

		d->log_is_new = d->log_is_new || (d->log_in_update && !done);
		d->log_in_update = false;
	}
}
