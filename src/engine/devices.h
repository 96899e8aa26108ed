/* SPDX-License-Identifier: MIT */
#ifndef STRAKE_ENGINE_DEVICES_H
#define STRAKE_ENGINE_DEVICES_H

/* Devices of an array with redundancy: who stands in which slot, who may be read, who fails. */

#include "engine/internal.h"
#include "engine/record.h"

struct record;
struct sync;

struct redundant {
	struct engine *engine;
	/* By slot: device numbers, or ENGINE_NONE. A replacement is a second device in a slot. */
	unsigned *active;
	unsigned *replacement;
	bool *scratch; /* [slot_count] for devices_available() */
	uint64_t component_bytes;
	uint64_t sync_bytes; /* length of the sync address space; set by engine_level.init */
	/*
	 * More devices failed than the level can lose. Writes fail with -EIO; reads that a device
	 * in sync can answer by itself go on. The record is not written any more.
	 */
	bool failed;
	bool stopping;
	struct record *record; /* superblocks and bitmap; record.h */
	struct sync *sync;     /* the background action; sync.h */
	void *level;           /* the level's own state */
	/* commands.c: the first is in progress, the others wait. */
	struct engine_command *commands;
	bool command_started, command_closing, command_paused, was_readonly;
	bool closed_badly; /* read-only, but not all of it was flushed */
	struct world_timer command_timer;
	struct record_waiter command_waiter;
	void (*event)(void *owner, const char *text);
};

/* redundancy.c: take memory and set all of that up from the configuration. */
int redundant_new(struct engine *engine, const struct engine_config *config, struct fault *fault);
void redundant_free(struct engine *engine);

/* Does every write go to this device? (Also to a rebuilding one, wherever the rebuild is.) */
static inline bool device_is_written(const struct engine *engine, unsigned device)
{
	enum engine_device_state state = engine->devices[device].state;

	return state == ENGINE_DEVICE_IN_SYNC || state == ENGINE_DEVICE_REBUILDING;
}

/* Does @device hold the right bytes below member data byte @end? */
static inline bool device_is_readable(const struct engine *engine, unsigned device, uint64_t end)
{
	const struct device *d = &engine->devices[device];

	return d->state == ENGINE_DEVICE_IN_SYNC ||
	       (d->state == ENGINE_DEVICE_REBUILDING && end <= d->recovered_bytes);
}

/* Put @device under @number (free until now) and into its slot. -EINVAL, -ERANGE with words. */
int device_set(struct engine *engine, unsigned number, const struct engine_device *device,
	struct fault *fault);

/*
 * A device in @slot that can be read below member data byte @end (the one in the slot, else its
 * replacement); ENGINE_NONE if there is none.
 */
unsigned slot_reader(const struct engine *engine, unsigned slot, uint64_t end);
/* The devices of @slot that writes go to; returns how many (0, 1 or 2). */
unsigned slot_writers(const struct engine *engine, unsigned slot, unsigned ret[2]);

/* Could the array run if @device were gone? */
bool device_is_expendable(const struct engine *engine, unsigned device);

/*
 * @device is not to be trusted any more (a write or a flush failed, a read could not be repaired).
 * If the array can do without it: it becomes faulty at once, the record of it is under way
 * (requests that end meanwhile wait for it in work_end()), spares are looked for.
 * If not: RAID 1 and 10 keep it (returns false: the error is the request's); RAID 4, 5, 6 fail as
 * an array (returns true; redundant->failed).
 * A device that is faulty already: nothing, true.
 */
bool device_fail(struct engine *engine, unsigned device);

/* The spare @device takes the vacant @slot and is to be rebuilt. Record it! */
void device_take_slot(struct engine *engine, unsigned device, unsigned slot);
/* The rebuilding @device leaves its slot. Record it! */
void device_to_spare(struct engine *engine, unsigned device);
/* Its replacement is in sync: @device leaves its slot, faulty, as md has it. Record it! */
void device_retire(struct engine *engine, unsigned device);

/* Copies of the array still in sync: slots with an in-sync device (original or replacement). */
unsigned devices_in_sync(const struct engine *engine);
bool devices_degraded(const struct engine *engine); /* some slot has none */

/* One line for the log; printf-like. */
__attribute__((format(printf, 2, 3))) void engine_event(
	struct engine *engine, const char *format, ...);

#endif
