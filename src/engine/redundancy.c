/* SPDX-License-Identifier: MIT */
/*
 * Devices and slots of an array with redundancy.
 *
 * A slot is a place in the layout; a device is a member with its superblock. Most of the time each
 * slot has one device in sync. It may have none (the array is degraded), one that is being rebuilt,
 * or a second one that will replace the first. Everything else is a spare, or faulty.
 */
#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "engine/badblocks.h"
#include "engine/devices.h"
#include "engine/sync.h"
#include "geometry/available.h"

#define EVENT_MAX 200u

void engine_event(struct engine *engine, const char *format, ...)
{
	char text[EVENT_MAX];
	va_list args;

	if (engine->redundant->event == NULL)
		return;
	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	engine->redundant->event(engine->owner, text);
}

unsigned slot_reader(const struct engine *engine, unsigned slot, uint64_t end)
{
	const struct redundant *r = engine->redundant;

	if (r->active[slot] != ENGINE_NONE && device_is_readable(engine, r->active[slot], end))
		return r->active[slot];
	if (r->replacement[slot] != ENGINE_NONE &&
		device_is_readable(engine, r->replacement[slot], end))
		return r->replacement[slot];
	return ENGINE_NONE;
}

unsigned slot_writers(const struct engine *engine, unsigned slot, unsigned ret[2])
{
	const struct redundant *r = engine->redundant;
	unsigned count = 0;

	if (r->active[slot] != ENGINE_NONE && device_is_written(engine, r->active[slot]))
		ret[count++] = r->active[slot];
	if (r->replacement[slot] != ENGINE_NONE && device_is_written(engine, r->replacement[slot]))
		ret[count++] = r->replacement[slot];
	return count;
}

static bool slot_is_in_sync(const struct engine *engine, unsigned slot, unsigned without)
{
	const unsigned both[] = {
		engine->redundant->active[slot], engine->redundant->replacement[slot]};

	for (unsigned i = 0; i < 2; i++)
		if (both[i] != ENGINE_NONE && both[i] != without &&
			engine->devices[both[i]].state == ENGINE_DEVICE_IN_SYNC)
			return true;
	return false;
}

bool device_is_expendable(const struct engine *engine, unsigned device)
{
	bool *in_sync = engine->redundant->scratch;

	for (unsigned slot = 0; slot < engine->slot_count; slot++)
		in_sync[slot] = slot_is_in_sync(engine, slot, device);
	return geometry_available(
		engine->level->level, engine->layout, engine->slot_count, in_sync);
}

unsigned devices_in_sync(const struct engine *engine)
{
	unsigned count = 0;

	for (unsigned slot = 0; slot < engine->slot_count; slot++)
		count += slot_is_in_sync(engine, slot, ENGINE_NONE);
	return count;
}

bool devices_degraded(const struct engine *engine)
{
	return devices_in_sync(engine) < engine->slot_count;
}

/* @device leaves its slot; a replacement moves up. */
static void vacate(struct engine *engine, unsigned device)
{
	struct redundant *r = engine->redundant;
	unsigned slot = engine->devices[device].slot;

	if (slot == ENGINE_NONE)
		return;
	if (r->replacement[slot] == device) {
		r->replacement[slot] = ENGINE_NONE;
	} else if (r->active[slot] == device) {
		r->active[slot] = r->replacement[slot];
		r->replacement[slot] = ENGINE_NONE;
		if (r->active[slot] != ENGINE_NONE)
			engine->devices[r->active[slot]].replacement = false;
	}
}

void device_take_slot(struct engine *engine, unsigned device, unsigned slot)
{
	struct device *d = &engine->devices[device];

	assert(d->state == ENGINE_DEVICE_SPARE && engine->redundant->active[slot] == ENGINE_NONE);
	engine->redundant->active[slot] = device;
	d->state = ENGINE_DEVICE_REBUILDING;
	d->slot = slot;
	d->replacement = false;
	d->recovered_bytes = 0;
	d->by_bitmap = false;
}

void device_to_spare(struct engine *engine, unsigned device)
{
	struct device *d = &engine->devices[device];

	assert(d->state == ENGINE_DEVICE_REBUILDING);
	vacate(engine, device);
	d->state = ENGINE_DEVICE_SPARE;
	d->slot = ENGINE_NONE;
	d->replacement = d->rebuilds = d->by_bitmap = false;
	d->recovered_bytes = 0;
}

void device_retire(struct engine *engine, unsigned device)
{
	engine->devices[device].state = ENGINE_DEVICE_FAULTY;
	vacate(engine, device);
}

static void fail_array(struct engine *engine, unsigned device)
{
	engine->redundant->failed = true;
	engine_event(engine,
		"device %u failed and the array cannot do without it: the array has "
		"failed; stop it, then assemble it with --force if the device answers again",
		device);
}

static bool keeps_last_copy(const struct engine *engine)
{
	return engine->level->level == 1 || engine->level->level == 10;
}

bool device_fail(struct engine *engine, unsigned device)
{
	struct device *d = &engine->devices[device];
	bool expendable;

	if (d->state == ENGINE_DEVICE_FAULTY || d->state == ENGINE_DEVICE_FREE)
		return true;
	expendable = d->state != ENGINE_DEVICE_IN_SYNC || device_is_expendable(engine, device);
	if (!expendable && keeps_last_copy(engine))
		return false;
	d->state = ENGINE_DEVICE_FAULTY;
	vacate(engine, device);
	if (!expendable) {
		fail_array(engine, device);
	} else {
		engine_event(engine, "device %u (slot %d) is faulty; %u of %u slots are in sync",
			device, (int)d->slot, devices_in_sync(engine), engine->slot_count);
	}
	record_change(engine, NULL);
	sync_consider(engine);
	return true;
}

static int check_device(const struct engine *engine, const struct engine_device *device,
	unsigned number, struct fault *fault)
{
	if (device->slot != ENGINE_NONE && device->slot >= engine->slot_count)
		return fault_set(fault, -EINVAL, "device %u stands in slot %u of %u", number,
			device->slot, engine->slot_count);
	if (device->data_bytes < engine->redundant->component_bytes)
		return fault_set(fault, -EINVAL,
			"device %u holds %llu bytes of data, fewer than the %llu that each of the "
			"array's devices must have",
			number, (unsigned long long)device->data_bytes,
			(unsigned long long)engine->redundant->component_bytes);
	if (device->data_offset_bytes > INT64_MAX || device->data_bytes > INT64_MAX ||
		device->data_offset_bytes + device->data_bytes > INT64_MAX)
		return fault_set(fault, -ERANGE, "device %u ends beyond 8 EiB", number);
	return 0;
}

static unsigned *place_of(struct redundant *r, const struct engine_device *device)
{
	return device->replacement ? &r->replacement[device->slot] : &r->active[device->slot];
}

int device_set(struct engine *engine, unsigned number, const struct engine_device *device,
	struct fault *fault)
{
	struct device *d = &engine->devices[number];
	int r = check_device(engine, device, number, fault);

	if (r < 0)
		return r;
	if (device->slot != ENGINE_NONE) {
		unsigned *place = place_of(engine->redundant, device);

		if (*place != ENGINE_NONE)
			return fault_set(fault, -EINVAL, "devices %u and %u both stand in slot %u",
				*place, number, device->slot);
		*place = number;
	}
	*d = (struct device){
		.where = {device->member, device->data_offset_bytes, device->data_bytes},
		.written = 1,
		.slot = device->slot,
		.replacement = device->replacement,
		.write_mostly = device->write_mostly,
		.failfast = device->failfast,
		.recovered_bytes = device->recovered_bytes,
		.by_bitmap = device->slot != ENGINE_NONE && device->super != NULL &&
			     device->super->feature_map & MD_FEATURE_RECOVERY_BITMAP,
		.state = device->slot == ENGINE_NONE ? ENGINE_DEVICE_SPARE
			 : device->in_sync           ? ENGINE_DEVICE_IN_SYNC
						     : ENGINE_DEVICE_REBUILDING,
	};
	return 0;
}

static int place_devices(
	struct engine *engine, const struct engine_redundancy *redundancy, struct fault *fault)
{
	int r = 0;

	if (redundancy->device_count > redundancy->device_max)
		return fault_set(fault, -EINVAL, "%u devices, but room for %u",
			redundancy->device_count, redundancy->device_max);
	for (unsigned i = 0; i < redundancy->device_count && r == 0; i++)
		r = device_set(engine, i, &redundancy->devices[i], fault);
	if (r == 0 && !device_is_expendable(engine, ENGINE_NONE))
		r = fault_set(fault, -ENODEV, "too few devices in sync to run the array: %u of %u",
			devices_in_sync(engine), engine->slot_count);
	return r;
}

static int take_tables(struct engine *engine)
{
	struct redundant *r = engine_take(engine, 1, sizeof(*r));

	engine->redundant = r;
	if (r == NULL)
		return -ENOMEM;
	r->engine = engine;
	r->active = engine_take(engine, engine->slot_count, sizeof(*r->active));
	r->replacement = engine_take(engine, engine->slot_count, sizeof(*r->replacement));
	r->scratch = engine_take(engine, engine->slot_count, sizeof(*r->scratch));
	if (r->active == NULL || r->replacement == NULL || r->scratch == NULL)
		return -ENOMEM;
	for (unsigned slot = 0; slot < engine->slot_count; slot++)
		r->active[slot] = r->replacement[slot] = ENGINE_NONE;
	return 0;
}

int redundant_new(struct engine *engine, const struct engine_config *config, struct fault *fault)
{
	const struct engine_redundancy *redundancy = config->redundancy;
	int r;

	if (redundancy == NULL)
		return fault_set(fault, -EINVAL, "%s: no devices were given", engine->level->name);
	r = take_tables(engine);
	if (r < 0)
		return r;
	engine->redundant->component_bytes = redundancy->component_bytes;
	engine->redundant->event = redundancy->event;
	r = place_devices(engine, redundancy, fault);
	if (r == 0)
		r = engine->level->init(engine, config, fault);
	if (r == 0)
		r = record_new(engine, config, fault);
	if (r == 0)
		r = sync_new(engine, config, fault);
	return r;
}

/* Whatever the record and the action have armed must not ring any more. */
void redundant_free(struct engine *engine)
{
	struct redundant *r = engine->redundant;

	if (r == NULL)
		return;
	engine->world->ops->timer_cancel(engine->world, &r->command_timer);
	sync_free(engine);
	record_free(engine);
}

unsigned engine_device_max(const struct engine *engine)
{
	return engine->redundant != NULL ? engine->device_max : 0;
}

void engine_device_status(
	const struct engine *engine, unsigned device, struct engine_device_status *ret)
{
	const struct device *d = &engine->devices[device];

	assert(engine->redundant != NULL && device < engine->device_max);
	*ret = (struct engine_device_status){
		.state = d->state,
		.member = d->where.member,
		.slot = d->slot,
		.dev_number = record_dev_number(engine, device),
		.replacement = d->replacement,
		.write_mostly = d->write_mostly,
		.failfast = d->failfast,
		.recovered_bytes = d->recovered_bytes,
		.data_offset_bytes = d->where.data_offset_bytes,
		.data_bytes = d->where.data_bytes,
		.corrected_reads = d->corrected_reads,
		.bad_ranges = badblocks_count(engine, device),
		.reads = d->counters.reads,
		.writes = d->counters.writes,
		.read_bytes = d->counters.read_bytes,
		.written_bytes = d->counters.written_bytes,
		.errors = d->counters.errors,
	};
}

bool engine_status(const struct engine *engine, struct engine_status *ret)
{
	if (engine->redundant == NULL)
		return false;
	*ret = (struct engine_status){
		.active = record_is_active(engine),
		.readonly = engine->readonly,
		.failed = engine->redundant->failed,
		.slots = engine->slot_count,
		.in_sync = devices_in_sync(engine),
		.events = record_events(engine),
		.update_seconds = record_update_seconds(engine),
		.resync_bytes = sync_resync_bytes(engine),
	};
	for (unsigned i = 0; i < engine->device_max; i++)
		ret->devices += engine->devices[i].state != ENGINE_DEVICE_FREE;
	bitmap_counts(engine, &ret->bitmap_chunk_bytes, &ret->bitmap_bits, &ret->bitmap_dirty);
	sync_status(engine, ret);
	return true;
}
