/* SPDX-License-Identifier: MIT */
#ifndef STRAKE_SIMULATE_SHADOW_H
#define STRAKE_SIMULATE_SHADOW_H

/*
 * What the array may hold: for each sector the values that a read may return.
 *
 * A value is the number of the write that made it; that number, the sector's own and a pattern
 * that follows from both fill the sector, so that wrong bytes tell whose they are. Time is a count
 * of events. The rules:
 *  - A write that is in flight may be seen or not. Once it is acknowledged, whatever had been
 *    acknowledged before it began is superseded; of two that were in flight together either stays.
 *  - A write that failed, or that a power cut met, may be seen or not for ever.
 *  - What is superseded comes back at a power cut, unless a flush that began after the write that
 *    superseded it was acknowledged, or FUA, has made that one durable.
 *  - Of several values that nothing is in flight for, the one that is read stays. Where a resync is
 *    pending that is a choice of copies, and losing a copy, or a bad sector in it, undoes it.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SHADOW_SECTOR 512u
#define SHADOW_ZERO UINT64_C(0)
#define SHADOW_ANY UINT64_MAX /* nobody knows: what is read first counts */

struct shadow;

struct shadow *shadow_new(uint64_t sectors, uint64_t value);
void shadow_free(struct shadow *shadow);

/* The present moment; each call is a later one. */
uint64_t shadow_tick(struct shadow *shadow);

/* Fill @buffer with the sectors of write @id. */
void shadow_stamp(uint64_t id, uint64_t first, uint64_t count, uint8_t *buffer);
/* The value of a sector's bytes, as read at @sector. */
uint64_t shadow_value(uint64_t sector, const uint8_t *bytes);

/* A write begins. @value: @id, SHADOW_ZERO or SHADOW_ANY. */
void shadow_begin(
	struct shadow *shadow, uint64_t id, uint64_t value, uint64_t first, uint64_t count);
/* It ended; @done: acknowledged, else nobody knows. */
void shadow_end(struct shadow *shadow, uint64_t id, uint64_t first, uint64_t count, bool done,
	bool durable);
/* A flush that had begun at @began was acknowledged. */
void shadow_flushed(struct shadow *shadow, uint64_t began);
/*
 * Reads that begin from now on: give back with shadow_read_end(). What is superseded meanwhile may
 * still be returned.
 */
uint64_t shadow_read_begin(struct shadow *shadow);
void shadow_read_end(struct shadow *shadow, uint64_t began);
/*
 * May a read that began at @began return @value for @sector? If so it is the value from now on;
 * not @chooses: unless copies may differ.
 */
bool shadow_accept(
	struct shadow *shadow, uint64_t sector, uint64_t began, uint64_t value, bool chooses);
/* May @sector hold @value at rest? Nothing changes. */
bool shadow_allows(const struct shadow *shadow, uint64_t sector, uint64_t value);

/* The program ends; writes in flight may have been done. @power: caches are lost too. */
void shadow_crash(struct shadow *shadow, bool power);
/* Copies may differ from now on, until shadow_whole(). */
void shadow_unsure(struct shadow *shadow);
void shadow_whole(struct shadow *shadow);
/* A copy was lost while copies may differ: choices are undone. */
void shadow_undo_choices(struct shadow *shadow);
/* Redundancy was wrong here: nobody knows what is read. */
void shadow_forget(struct shadow *shadow, uint64_t sector);

/* Words for a wrong value. */
void shadow_explain(const struct shadow *shadow, uint64_t sector, const uint8_t *bytes, char *text,
	size_t length);

#endif
