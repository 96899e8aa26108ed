/* SPDX-License-Identifier: MIT */
#include "simulate/shadow.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/bytes.h"

#define NONE UINT32_MAX
#define READS_MAX 64u
#define FOREIGN (UINT64_C(1) << 63) /* no stamp: a hash of the bytes */

struct entry {
	uint64_t id, value;
	uint64_t begun, ended; /* ended 0: in flight */
	uint64_t dead;         /* superseded since; 0: not */
	bool done;             /* acknowledged; false and ended: nobody knows */
	uint64_t hidden;       /* since then: another one was read, but copies may differ */
	uint32_t next;
};

struct shadow {
	uint64_t sectors, now;
	uint32_t *heads;
	struct entry *entries;
	uint32_t entry_count, entry_room, free_entries;
	uint32_t *busy; /* sectors with more than one entry */
	uint32_t busy_count;
	bool *is_busy;
	uint64_t reads[READS_MAX];
	unsigned read_count;
	bool unsure;
	uint64_t undone; /* when choices were undone last */
};

static void *must(void *memory)
{
	if (memory == NULL)
		abort();
	return memory;
}

static uint32_t take_entry(struct shadow *shadow)
{
	uint32_t index = shadow->free_entries;

	if (index != NONE) {
		shadow->free_entries = shadow->entries[index].next;
		return index;
	}
	if (shadow->entry_count == shadow->entry_room) {
		shadow->entry_room = shadow->entry_room * 2 + 1024;
		shadow->entries = must(
			realloc(shadow->entries, shadow->entry_room * sizeof(*shadow->entries)));
	}
	return shadow->entry_count++;
}

static void note_busy(struct shadow *shadow, uint64_t sector)
{
	if (shadow->is_busy[sector])
		return;
	shadow->is_busy[sector] = true;
	shadow->busy[shadow->busy_count++] = (uint32_t)sector;
}

static void push(struct shadow *shadow, uint64_t sector, const struct entry *entry)
{
	uint32_t index = take_entry(shadow);

	shadow->entries[index] = *entry;
	shadow->entries[index].next = shadow->heads[sector];
	if (shadow->heads[sector] != NONE)
		note_busy(shadow, sector);
	shadow->heads[sector] = index;
}

struct shadow *shadow_new(uint64_t sectors, uint64_t value)
{
	struct shadow *shadow = must(calloc(1, sizeof(*shadow)));

	shadow->sectors = sectors;
	shadow->now = 1;
	shadow->free_entries = NONE;
	shadow->heads = must(malloc(sectors * sizeof(*shadow->heads)));
	shadow->busy = must(malloc(sectors * sizeof(*shadow->busy)));
	shadow->is_busy = must(calloc(sectors, sizeof(*shadow->is_busy)));
	for (uint64_t sector = 0; sector < sectors; sector++) {
		shadow->heads[sector] = NONE;
		push(shadow, sector,
			&(struct entry){.value = value, .begun = 1, .ended = 1, .done = true});
	}
	return shadow;
}

void shadow_free(struct shadow *shadow)
{
	if (shadow == NULL)
		return;
	free(shadow->heads);
	free(shadow->entries);
	free(shadow->busy);
	free(shadow->is_busy);
	free(shadow);
}

uint64_t shadow_tick(struct shadow *shadow)
{
	return ++shadow->now;
}

static uint64_t word_of(uint64_t id, uint64_t sector, unsigned index)
{
	return (id * UINT64_C(0x9e3779b97f4a7c15) ^ sector * UINT64_C(0xc2b2ae3d27d4eb4f)) *
		       (2 * index + 1) +
	       (id << 32 ^ sector) * UINT64_C(0x165667b19e3779f9);
}

void shadow_stamp(uint64_t id, uint64_t first, uint64_t count, uint8_t *buffer)
{
	for (uint64_t sector = first; sector < first + count; sector++) {
		put_le64(buffer, id);
		put_le64(buffer + 8, sector);
		for (unsigned i = 2; i < SHADOW_SECTOR / 8; i++)
			put_le64(buffer + 8 * i, word_of(id, sector, i));
		buffer += SHADOW_SECTOR;
	}
}

static uint64_t hash(const uint8_t *bytes)
{
	uint64_t sum = UINT64_C(0xcbf29ce484222325);

	for (unsigned i = 0; i < SHADOW_SECTOR / 8; i++) {
		sum = (sum ^ get_le64(bytes + 8 * i)) * UINT64_C(0x100000001b3);
		sum ^= sum >> 29;
	}
	return (sum | FOREIGN) & ~UINT64_C(1); /* never SHADOW_ANY */
}

static bool is_zero(const uint8_t *bytes)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < SHADOW_SECTOR / 8; i++)
		sum |= get_le64(bytes + 8 * i);
	return sum == 0;
}

static bool is_stamp(const uint8_t *bytes)
{
	uint64_t id = get_le64(bytes), sector = get_le64(bytes + 8), differs = 0;

	for (unsigned i = 2; i < SHADOW_SECTOR / 8; i++)
		differs |= get_le64(bytes + 8 * i) ^ word_of(id, sector, i);
	return differs == 0 && id != 0;
}

uint64_t shadow_value(uint64_t sector, const uint8_t *bytes)
{
	if (get_le64(bytes) == 0 && is_zero(bytes))
		return SHADOW_ZERO;
	if (get_le64(bytes + 8) == sector && is_stamp(bytes))
		return get_le64(bytes);
	return hash(bytes);
}

void shadow_begin(
	struct shadow *shadow, uint64_t id, uint64_t value, uint64_t first, uint64_t count)
{
	struct entry entry = {.id = id, .value = value, .begun = ++shadow->now};

	for (uint64_t sector = first; sector < first + count; sector++)
		push(shadow, sector, &entry);
}

static uint64_t oldest_read(const struct shadow *shadow)
{
	uint64_t oldest = UINT64_MAX;

	for (unsigned i = 0; i < shadow->read_count; i++)
		if (shadow->reads[i] < oldest)
			oldest = shadow->reads[i];
	return oldest;
}

/*
 * Drop what is dead and cannot come back: superseded before @flushed, the moment at which a flush
 * began, or ended before @begun, when a write that is durable now did.
 */
static void purge(struct shadow *shadow, uint64_t sector, uint64_t flushed, uint64_t begun)
{
	uint64_t oldest = oldest_read(shadow);
	uint32_t *at = &shadow->heads[sector];

	while (*at != NONE) {
		struct entry *entry = &shadow->entries[*at];
		uint32_t index = *at;

		if (entry->dead == 0 || entry->dead >= oldest ||
			(entry->dead >= flushed && entry->ended >= begun)) {
			at = &entry->next;
			continue;
		}
		*at = entry->next;
		entry->next = shadow->free_entries;
		shadow->free_entries = index;
	}
}

static struct entry *find(struct shadow *shadow, uint64_t sector, uint64_t id)
{
	for (uint32_t i = shadow->heads[sector]; i != NONE; i = shadow->entries[i].next)
		if (shadow->entries[i].id == id)
			return &shadow->entries[i];
	abort();
}

/* @by was acknowledged: everything that had ended before it began is no longer read. */
static void supersede(struct shadow *shadow, uint64_t sector, const struct entry *by)
{
	for (uint32_t i = shadow->heads[sector]; i != NONE; i = shadow->entries[i].next) {
		struct entry *entry = &shadow->entries[i];

		if (entry != by && entry->ended != 0 && entry->ended < by->begun &&
			entry->dead == 0)
			entry->dead = by->ended;
	}
}

void shadow_end(
	struct shadow *shadow, uint64_t id, uint64_t first, uint64_t count, bool done, bool durable)
{
	uint64_t now = ++shadow->now;

	for (uint64_t sector = first; sector < first + count; sector++) {
		struct entry *entry = find(shadow, sector, id);

		entry->ended = now;
		entry->done = done;
		if (!done)
			continue;
		supersede(shadow, sector, entry);
		if (durable)
			purge(shadow, sector, 0, entry->begun);
	}
}

void shadow_flushed(struct shadow *shadow, uint64_t began)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < shadow->busy_count; i++) {
		uint32_t sector = shadow->busy[i];

		purge(shadow, sector, began, 0);
		if (shadow->entries[shadow->heads[sector]].next == NONE)
			shadow->is_busy[sector] = false;
		else
			shadow->busy[kept++] = sector;
	}
	shadow->busy_count = kept;
}

uint64_t shadow_read_begin(struct shadow *shadow)
{
	assert(shadow->read_count < READS_MAX);
	return shadow->reads[shadow->read_count++] = ++shadow->now;
}

void shadow_read_end(struct shadow *shadow, uint64_t began)
{
	for (unsigned i = 0; i < shadow->read_count; i++)
		if (shadow->reads[i] == began) {
			shadow->reads[i] = shadow->reads[--shadow->read_count];
			return;
		}
}

static bool may_be_read(const struct entry *entry, uint64_t began)
{
	return (entry->hidden == 0 || entry->hidden > began) &&
	       (entry->dead == 0 || entry->dead > began);
}

/*
 * The entry with exactly that value, else one that may have any. Zeros can come from several: one
 * that was in flight during the read proves least, as copies may not have it all yet.
 */
static struct entry *match(
	const struct shadow *shadow, uint64_t sector, uint64_t began, uint64_t value)
{
	struct entry *any = NULL, *exact = NULL;

	for (uint32_t i = shadow->heads[sector]; i != NONE; i = shadow->entries[i].next) {
		struct entry *entry = &shadow->entries[i];

		if (!may_be_read(entry, began))
			continue;
		if (entry->value == value &&
			(exact == NULL || entry->ended == 0 || entry->ended >= began))
			exact = entry;
		if (entry->value == SHADOW_ANY)
			any = entry;
	}
	return exact != NULL ? exact : any;
}

/* @read was stable before the read began: so it is what the sector holds. */
static void collapse(
	struct shadow *shadow, uint64_t sector, uint64_t began, const struct entry *read)
{
	for (uint32_t i = shadow->heads[sector]; i != NONE; i = shadow->entries[i].next) {
		struct entry *entry = &shadow->entries[i];

		if (entry == read || entry->dead != 0 || entry->ended == 0 || entry->ended >= began)
			continue;
		if (shadow->unsure)
			entry->hidden = entry->hidden != 0 ? entry->hidden : shadow->now;
		else
			entry->dead = shadow->now;
	}
}

bool shadow_accept(
	struct shadow *shadow, uint64_t sector, uint64_t began, uint64_t value, bool chooses)
{
	struct entry *entry = match(shadow, sector, began, value);

	if (entry == NULL)
		return false;
	if (entry->ended == 0 || entry->ended >= began || entry->dead != 0)
		return true;
	if (entry->value == SHADOW_ANY && !shadow->unsure)
		entry->value = value;
	if (shadow->is_busy[sector] && (!shadow->unsure || (chooses && began > shadow->undone)))
		collapse(shadow, sector, began, entry);
	return true;
}

bool shadow_allows(const struct shadow *shadow, uint64_t sector, uint64_t value)
{
	return match(shadow, sector, UINT64_MAX - 1, value) != NULL;
}

void shadow_crash(struct shadow *shadow, bool power)
{
	uint64_t now = ++shadow->now;

	shadow->read_count = 0;
	for (uint32_t i = 0; i < shadow->busy_count; i++)
		for (uint32_t e = shadow->heads[shadow->busy[i]]; e != NONE;
			e = shadow->entries[e].next) {
			struct entry *entry = &shadow->entries[e];

			if (entry->ended == 0)
				entry->ended = now;
			if (power)
				entry->dead = 0;
		}
}

void shadow_unsure(struct shadow *shadow)
{
	shadow->unsure = true;
}

void shadow_whole(struct shadow *shadow)
{
	if (!shadow->unsure)
		return;
	shadow->unsure = false;
	for (uint32_t i = 0; i < shadow->busy_count; i++)
		for (uint32_t e = shadow->heads[shadow->busy[i]]; e != NONE;
			e = shadow->entries[e].next) {
			struct entry *entry = &shadow->entries[e];

			if (entry->dead == 0)
				entry->dead = entry->hidden;
			entry->hidden = 0;
		}
}

void shadow_undo_choices(struct shadow *shadow)
{
	shadow->undone = ++shadow->now;
	for (uint32_t i = 0; i < shadow->busy_count; i++)
		for (uint32_t e = shadow->heads[shadow->busy[i]]; e != NONE;
			e = shadow->entries[e].next)
			shadow->entries[e].hidden = 0;
}

void shadow_forget(struct shadow *shadow, uint64_t sector)
{
	uint64_t now = ++shadow->now;

	/* Later than what is being read: that may have been there before. */
	for (uint32_t e = shadow->heads[sector]; e != NONE; e = shadow->entries[e].next) {
		struct entry *entry = &shadow->entries[e];

		if (entry->value != SHADOW_ANY || entry->dead != 0 || entry->ended == 0)
			continue;
		entry->begun = entry->ended = now;
		return;
	}
	push(shadow, sector, &(struct entry){.value = SHADOW_ANY, .begun = now, .ended = now});
}

static void list_allowed(const struct shadow *shadow, uint64_t sector, char *text, size_t length)
{
	size_t at = 0;

	for (uint32_t e = shadow->heads[sector]; e != NONE && at < length;
		e = shadow->entries[e].next) {
		const struct entry *entry = &shadow->entries[e];

		at += (size_t)snprintf(text + at, length - at, " %s%" PRIu64 "%s",
			entry->value == SHADOW_ANY    ? "any "
			: entry->value == SHADOW_ZERO ? "zeros "
						      : "",
			entry->value == SHADOW_ANY ? 0 : entry->value,
			entry->hidden != 0  ? " (not chosen)"
			: entry->dead != 0  ? " (superseded)"
			: entry->ended == 0 ? " (in flight)"
					    : "");
	}
}

void shadow_explain(const struct shadow *shadow, uint64_t sector, const uint8_t *bytes, char *text,
	size_t length)
{
	char allowed[300] = "";

	list_allowed(shadow, sector, allowed, sizeof(allowed));
	if (is_zero(bytes))
		(void)snprintf(text, length, "sector %" PRIu64 " holds zeros; allowed:%s", sector,
			allowed);
	else if (is_stamp(bytes))
		(void)snprintf(text, length,
			"sector %" PRIu64 " holds write %" PRIu64 " of sector %" PRIu64
			"; allowed:%s",
			sector, get_le64(bytes), get_le64(bytes + 8), allowed);
	else
		(void)snprintf(text, length,
			"sector %" PRIu64 " holds bytes that nobody wrote (%016" PRIx64
			" …); allowed:%s",
			sector, get_le64(bytes), allowed);
}
