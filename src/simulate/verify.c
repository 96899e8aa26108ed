/* SPDX-License-Identifier: MIT */
/*
 * What the disks themselves hold at the end, looked at without the engine: every copy of every
 * sector, and P and Q of every row, computed bit by bit from the definition (md's polynomial
 * 0x11d, g = 2). And silent corruption: what check must find and repair must mend.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "geometry/mirrors.h"
#include "geometry/stripes.h"
#include "simulate/internal.h"
#include "util/rounding.h"

#define CORRUPTIONS_MAX 4u
#define PATIENCE 10000u

static bool peek_slot(struct run *run, unsigned slot, uint64_t offset, uint8_t *buffer)
{
	unsigned disk = atlas_disk_of_slot(run, slot);

	if (disk == ENGINE_NONE)
		return false;
	sim_disk_peek(run->sim, disk, run->data_offset[disk] + offset, buffer, SHADOW_SECTOR);
	return true;
}

static void check_content(struct run *run, uint64_t sector, unsigned slot, const uint8_t *bytes)
{
	char text[350];

	if (shadow_allows(run->shadow, sector, shadow_value(sector, bytes)))
		return;
	shadow_explain(run->shadow, sector, bytes, text, sizeof(text));
	run_fail(run, "disk-bytes", "slot %u: %s", slot, text);
}

static void verify_mirrors(struct run *run)
{
	const struct choice *c = &run->choice;
	struct geometry_piece places[DISKS_MAX];
	uint8_t first[SHADOW_SECTOR], other[SHADOW_SECTOR];
	struct mirrors m;

	(void)mirrors_init(
		c->level, c->layout, c->chunk_bytes, c->slots, c->component_bytes, &m, NULL);
	for (uint64_t at = 0; at < m.array_bytes && !run_is_over(run); at += SHADOW_SECTOR) {
		bool have = false;

		(void)mirrors_map(&m, at, places);
		for (unsigned copy = 0; copy < m.copies && !run_is_over(run); copy++) {
			if (!peek_slot(run, places[copy].slot, places[copy].member_offset,
				    have ? other : first))
				continue;
			if (have && memcmp(first, other, SHADOW_SECTOR) != 0)
				run_fail(run, "copies",
					"sector %" PRIu64 ": copy %u (slot %u) differs",
					at / SHADOW_SECTOR, copy, places[copy].slot);
			if (!have)
				check_content(run, at / SHADOW_SECTOR, places[copy].slot, first);
			have = true;
		}
	}
}

/* The product with g^@exponent in GF(2^8), one doubling at a time. */
static uint8_t times_g(uint8_t byte, unsigned exponent)
{
	while (exponent-- > 0)
		byte = (uint8_t)(byte << 1 ^ ((byte & 0x80) != 0 ? 0x1d : 0));
	return byte;
}

static void add_terms(const uint8_t *data, unsigned exponent, uint8_t *p, uint8_t *q)
{
	uint8_t products[256];

	for (unsigned i = 0; i < 256; i++)
		products[i] = times_g((uint8_t)i, exponent);
	for (unsigned i = 0; i < SHADOW_SECTOR; i++) {
		p[i] ^= data[i];
		q[i] ^= products[data[i]];
	}
}

static void verify_row(struct run *run, const struct stripes *s, uint64_t stripe, uint64_t in_chunk)
{
	uint16_t slots[DISKS_MAX], exponents[DISKS_MAX];
	uint8_t p[SHADOW_SECTOR] = {0}, q[SHADOW_SECTOR] = {0}, bytes[SHADOW_SECTOR];
	uint64_t offset = stripes_member_offset(s, stripe) + in_chunk;
	unsigned p_slot, q_slot;

	stripes_roles(s, stripe, slots, exponents, &p_slot, &q_slot);
	for (unsigned data = 0; data < s->data && !run_is_over(run); data++) {
		if (!peek_slot(run, slots[data], offset, bytes))
			return;
		check_content(run,
			(stripes_array_offset(s, stripe, data) + in_chunk) / SHADOW_SECTOR,
			slots[data], bytes);
		add_terms(bytes, exponents[data], p, q);
	}
	if (peek_slot(run, p_slot, offset, bytes) && memcmp(bytes, p, SHADOW_SECTOR) != 0)
		run_fail(run, "parity", "stripe %" PRIu64 ", byte %" PRIu64 ": P is wrong", stripe,
			in_chunk);
	if (q_slot != GEOMETRY_NO_SLOT && peek_slot(run, q_slot, offset, bytes) &&
		memcmp(bytes, q, SHADOW_SECTOR) != 0)
		run_fail(run, "parity", "stripe %" PRIu64 ", byte %" PRIu64 ": Q is wrong", stripe,
			in_chunk);
}

static void verify_stripes(struct run *run)
{
	const struct choice *c = &run->choice;
	struct stripes s;

	(void)stripes_init(
		c->level, c->layout, c->chunk_bytes, c->slots, c->component_bytes, &s, NULL);
	for (uint64_t stripe = 0; stripe < s.stripe_count; stripe++)
		for (uint64_t at = 0; at < s.chunk_bytes && !run_is_over(run); at += SHADOW_SECTOR)
			verify_row(run, &s, stripe, at);
}

void verify_disks(struct run *run)
{
	if (is_parity_level(run->choice.level))
		verify_stripes(run);
	else
		verify_mirrors(run);
}

struct corruption {
	unsigned slot;
	uint64_t row;          /* of the member */
	uint64_t sync_offset;  /* what check calls it */
	uint64_t array_sector; /* UINT64_MAX: parity */
};

/* Where the bytes at a member's row belong. False: nowhere. */
static bool locate(const struct run *run, struct corruption *where)
{
	const struct choice *c = &run->choice;
	uint64_t offset = where->row * SHADOW_SECTOR, length, array;
	struct stripes s;
	struct mirrors m;
	unsigned data;

	where->array_sector = UINT64_MAX;
	where->sync_offset = offset;
	if (!is_parity_level(c->level)) {
		(void)mirrors_init(c->level, c->layout, c->chunk_bytes, c->slots,
			c->component_bytes, &m, NULL);
		if (!mirrors_inverse(&m, where->slot, offset, &array, &length))
			return false;
		where->array_sector = array / SHADOW_SECTOR;
		if (c->level == 10)
			where->sync_offset = array;
		return true;
	}
	(void)stripes_init(
		c->level, c->layout, c->chunk_bytes, c->slots, c->component_bytes, &s, NULL);
	if (offset >> s.chunk_shift >= s.stripe_count)
		return false;
	if (stripes_role_of(&s, offset >> s.chunk_shift, where->slot, &data) == STRIPES_DATA)
		where->array_sector = (stripes_array_offset(&s, offset >> s.chunk_shift, data) +
					      offset % s.chunk_bytes) /
				      SHADOW_SECTOR;
	return true;
}

static unsigned copies_of(const struct choice *c)
{
	return c->level == 1 ? c->slots : (c->layout & 0xff) * (c->layout >> 8 & 0xff);
}

static bool can_tell(const struct choice *c)
{
	return c->level == 6 || (!is_parity_level(c->level) && copies_of(c) > 2);
}

static bool is_taken(const struct corruption *list, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		if (list[i].sync_offset == list[count].sync_offset)
			return true;
	return false;
}

static unsigned corrupt(struct run *run, struct corruption *list)
{
	unsigned wanted = 1 + (unsigned)draw(&run->chaos, CORRUPTIONS_MAX), count = 0;

	for (unsigned i = 0; i < wanted; i++) {
		struct corruption *where = &list[count];
		uint8_t bytes[SHADOW_SECTOR];
		unsigned disk;

		where->slot = (unsigned)draw(&run->chaos, run->choice.slots);
		where->row = draw(&run->chaos, run->rows);
		disk = atlas_disk_of_slot(run, where->slot);
		if (disk == ENGINE_NONE || !locate(run, where) || is_taken(list, count))
			continue;
		for (unsigned k = 0; k < SHADOW_SECTOR; k++)
			bytes[k] = (uint8_t)draw(&run->chaos, 256);
		sim_disk_poke(run->sim, disk, run->data_offset[disk] + where->row * SHADOW_SECTOR,
			bytes, sizeof(bytes));
		run_trace(run, "CORRUPTED slot %u (disk %u) row %" PRIu64, where->slot, disk,
			where->row);
		count++;
	}
	return count;
}

static void check_told(struct run *run, const struct corruption *where)
{
	struct engine_status status;

	(void)engine_status(run->engine, &status);
	for (unsigned i = 0; i < status.mismatch_count; i++) {
		const struct engine_mismatch *m = &status.mismatches[i];

		if (where->sync_offset < m->sync_offset_bytes ||
			where->sync_offset >= m->sync_offset_bytes + m->length_bytes)
			continue;
		if (can_tell(&run->choice) && m->slot != where->slot)
			run_fail(run, "accused",
				"slot %u is wrong at row %" PRIu64 ", but slot %d is accused",
				where->slot, where->row, (int)m->slot);
		return;
	}
	run_fail(run, "not-found", "check did not find the corruption of slot %u at row %" PRIu64,
		where->slot, where->row);
}

static uint64_t scrub(struct run *run, enum engine_action action)
{
	struct engine_status status;

	int r = operator_do(run, ENGINE_SYNC, ENGINE_NONE, action);

	/* A bad sector that a client met may have begun something of its own. */
	for (unsigned i = 0; i < PATIENCE && r == -EBUSY && !run_is_over(run); i++) {
		run_step(run);
		r = operator_do(run, ENGINE_SYNC, ENGINE_NONE, action);
	}
	if (r < 0 && !run_is_over(run))
		run_fail(run, "scrub", "action %u was refused: %s", action,
			run->operator.fault.text);
	do {
		if (run_is_over(run))
			return 0;
		run_step(run);
		(void)engine_status(run->engine, &status);
	} while (status.action != ENGINE_ACTION_IDLE);
	return status.mismatch_sectors;
}

void verify_corruption(struct run *run)
{
	struct corruption list[CORRUPTIONS_MAX];
	unsigned count = corrupt(run, list);

	if (count == 0)
		return;
	(void)scrub(run, ENGINE_ACTION_CHECK);
	for (unsigned i = 0; i < count && !run_is_over(run); i++) {
		check_told(run, &list[i]);
		/* One of two copies, or data without Q: repair makes it consistent, not right. */
		if (!can_tell(&run->choice) && list[i].array_sector != UINT64_MAX)
			shadow_forget(run->shadow, list[i].array_sector);
	}
	(void)scrub(run, ENGINE_ACTION_REPAIR);
	if (!run_is_over(run) && scrub(run, ENGINE_ACTION_CHECK) != 0)
		run_fail(run, "mismatch", "check finds mismatches after a repair");
	client_read_all(run);
}

/* A scrub has read every place that the array uses: bad sectors there were rewritten. */
static void check_mended(struct run *run)
{
	unsigned count;
	const struct sim_fault *faults = sim_faults(run->sim, &count);

	for (unsigned i = 0; i < count && !run_is_over(run); i++) {
		unsigned disk = faults[i].disk;
		struct corruption where = {.slot = run->disks[disk].slot};

		if (faults[i].tag != TAG_SECTOR + disk ||
			run->disks[disk].state != ENGINE_DEVICE_IN_SYNC)
			continue;
		where.row = (faults[i].offset_bytes - run->data_offset[disk]) / SHADOW_SECTOR;
		if (locate(run, &where))
			run_fail(run, "not-mended",
				"disk %u: row %" PRIu64 " cannot be read, also after a check", disk,
				where.row);
	}
}

/* Redundancy must be right, and the bad sectors that are left are found and mended. */
void verify_scrub(struct run *run)
{
	uint64_t mismatches;

	/* As md does after a forced start of RAID 6: P and Q may contradict each other. */
	if (run->needs_repair) {
		(void)scrub(run, ENGINE_ACTION_REPAIR);
		run->needs_repair = false;
		if (!run_is_over(run))
			atlas_look(run);
	}
	mismatches = run_is_over(run) ? 0 : scrub(run, ENGINE_ACTION_CHECK);

	if (!run_is_over(run) && mismatches != 0)
		run_fail(run, "mismatch", "check finds %" PRIu64 " sectors that do not match",
			mismatches);
	if (!run_is_over(run))
		check_mended(run);
}
