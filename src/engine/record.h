/* SPDX-License-Identifier: MIT */
#ifndef STRAKE_ENGINE_RECORD_H
#define STRAKE_ENGINE_RECORD_H

/*
 * The record: what superblocks and write-intent bitmap on the members say about the array
 * (specification 1.6, 3.4, 8.3). Written through the world like everything else. An array without
 * superblocks (--build) has a record that is durable at once.
 *
 * Order on every update: bitmap header and pages, then superblocks, then a flush (or FUA); a member
 * that fails to take its superblock is failed, which makes another update.
 */

#include "engine/internal.h"

/* Embedded in whoever waits; one wait at a time. */
struct record_waiter {
	void (*done)(struct record_waiter *waiter, int result);
	void *owner;
	struct record_waiter *next; /* the record's own */
	uint64_t generation;
};

int record_new(struct engine *engine, const struct engine_config *config, struct fault *fault);
/* Cancels its timers; memory is the engine's (engine_take()). */
void record_free(struct engine *engine);

/*
 * Devices, slots, checkpoints or the events that they bring have changed: write the superblocks
 * anew. @waiter (may be NULL) is told when everything that holds now is durable: 0; -EIO if the
 * array has failed meanwhile.
 */
void record_change(struct engine *engine, struct record_waiter *waiter);

/*
 * May the write of @work go to the members? True if the array is marked active and the bits of its
 * range are set, both durably. Else @work is kept and engine->level->start(@work) is called when it
 * may go (or work_finish() with an error when the array has failed).
 */
bool record_admit(struct work *work);
/* The write of @work, admitted before, ended on all members; @clean: it reached all of them. */
void record_release(struct work *work, bool clean);

/* No failure of a member waits to be made durable. */
bool record_is_settled(const struct engine *engine);
/* Keep @work; work_finish(@work) is called when the record is settled. */
void record_hold(struct work *work);

/*
 * Drained (no request in flight): clear the bits that may be cleared, mark clean unless a resync is
 * pending (then its checkpoint), flush all. Then @waiter.
 */
void record_close(struct engine *engine, struct record_waiter *waiter);

/* Has the record nothing to write on the members, for instance for arrays made with --build? */
bool record_is_kept(const struct engine *engine);

/*
 * The device @number joins (as a spare, or to take a slot) or leaves: its entry in the roles table.
 * -EINVAL no superblock like the others', or bad blocks that are not told; -ENOSPC no number is
 * free in the superblocks, or there is no room for the bitmap; all with words.
 */
int record_device_add(struct engine *engine, unsigned number, const struct engine_device *device,
	struct fault *fault);
void record_device_remove(struct engine *engine, unsigned device);
unsigned record_dev_number(const struct engine *engine, unsigned device);
uint64_t record_events(const struct engine *engine);
uint64_t record_events_cleared(const struct engine *engine); /* 0 without a bitmap */
bool record_is_active(const struct engine *engine);
uint64_t record_update_seconds(const struct engine *engine);

/*
 * The bitmap as sync.c asks it. Without a bitmap every range needs to be synced.
 *
 * A bit can be set because of writes in flight or lately done, or because it was set at the start
 * (or at a re-add) and its range has not been made whole since: then it "needs sync".
 */
bool record_has_bitmap(const struct engine *engine);
/* Does the range at sync offset @first need sync? *@ret_end: up to where the answer holds. */
bool bitmap_needs_sync(const struct engine *engine, uint64_t first, uint64_t *ret_end);
/* [@first, @end) was made whole. Bits may be cleared when all of their range was. */
void bitmap_synced(struct engine *engine, uint64_t first, uint64_t end);
/* Every set bit needs sync: a device comes back that missed the writes behind them. */
void bitmap_need_all_set(struct engine *engine);
/* Everything needs sync: for a resync that is asked for, or a bitmap that cannot be trusted. */
void bitmap_need_everything(struct engine *engine);
void bitmap_counts(const struct engine *engine, uint32_t *ret_chunk_bytes, uint64_t *ret_bits,
	uint64_t *ret_dirty);

#endif
