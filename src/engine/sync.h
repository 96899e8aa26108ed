/* SPDX-License-Identifier: MIT */
#ifndef STRAKE_ENGINE_SYNC_H
#define STRAKE_ENGINE_SYNC_H

/*
 * The background action: resync, recovery, check, repair. sync.c walks over the array in windows
 * and knows positions, speed and checkpoints; what happens inside a window is the level's business.
 *
 * Windows of RESYNC, CHECK and REPAIR are ranges of the sync address space; those of RECOVERY are
 * ranges of member data (the same thing but for RAID 10), and concern all devices that rebuild.
 */

#include "engine/internal.h"

#define SYNC_WINDOW_BYTES (64u << 10) /* longest window; it ends at multiples of this */
#define SYNC_WINDOWS_MAX 16u          /* in flight at once */

struct sync_window {
	struct engine *engine;
	enum engine_action action; /* RESYNC, RECOVERY, CHECK or REPAIR */
	uint64_t first_bytes, end_bytes;
	struct sync_window *next; /* the level's own while it works on the window */
	void *owner;              /* the level's own */
	unsigned number;          /* 0 … SYNC_WINDOWS_MAX - 1, for buffers per window */
	/* RECOVERY that failed: the one device that could not be rebuilt; ENGINE_NONE (as it is
	 * handed over): all of them. */
	unsigned device;
};

int sync_new(struct engine *engine, const struct engine_config *config, struct fault *fault);
/* Cancels its timers; memory is the engine's (engine_take()). */
void sync_free(struct engine *engine);

/*
 * The level has dealt with @window. 0, or -EIO: part of it could not be made whole (what was lost
 * is recorded by the level as far as it can be). Never called from inside sync_window().
 */
void sync_window_done(struct sync_window *window, int result);
/*
 * CHECK, REPAIR, RESYNC found [@first, @first + @length) of the sync address space inconsistent;
 * @slot holds the wrong bytes, ENGINE_NONE if that cannot be told.
 */
void sync_mismatch(struct engine *engine, uint64_t first, uint64_t length, unsigned slot);

/*
 * Is redundancy consistent (but for writes in flight) in this range of the sync address space?
 * False where a resync is still to come: parity there must not be updated from its old value, and
 * all reads must go to the first copy.
 */
bool sync_is_consistent(const struct engine *engine, uint64_t first, uint64_t end);

/* Something has changed (a device failed, came, was rebuilt; the array became writable): look what
 * is to be done now. Never blocks, never completes anything from inside. */
void sync_consider(struct engine *engine);
/* Stop the walk at the next window's end; @waiter-like @stopped is called when nothing is in
 * flight. */
void sync_pause(struct engine *engine, void (*stopped)(struct engine *engine));
void sync_resume(struct engine *engine);
/*
 * What a user asks for, as in md's sync_action. -EBUSY while another action runs or has to run
 * first; -EINVAL: not in this state of the array.
 * CHECK, REPAIR: once over the whole array; they end FROZEN.
 * RESYNC: whatever is pending may start (FROZEN ends, rebuilds that were given up are tried again);
 * nothing if all is in order: to look at an array in order is what REPAIR is for.
 * IDLE: interrupts CHECK and REPAIR, ends FROZEN; resync and recovery go on.
 * FROZEN: interrupts all.
 */
int sync_request(struct engine *engine, enum engine_action action);
void sync_set_speed(struct engine *engine, uint64_t min, uint64_t max);

/*
 * For the superblocks: bytes below which the array is consistent, UINT64_MAX for all. It is durable
 * on the members, and so is what device.recovered_bytes says: both may lag behind the position.
 */
uint64_t sync_resync_bytes(const struct engine *engine);
void sync_status(const struct engine *engine, struct engine_status *ret);

#endif
