/* SPDX-License-Identifier: MIT */
/*
 * The fault atlas: what each slot is good for at this moment. A slot counts as lost from the moment
 * at which its device may fail because of a fault, not from when the engine finds out. Faults and
 * commands ask here first; so within the redundancy whatever is lost is the engine's fault.
 *
 * Rows: a sector of member data at the same offset on all members. With parity the row is what
 * lives and dies together. After a crash parity may be wrong in the rows that were being written
 * or were in some cache ("dirty"); if a member is lost before they were made right, what it held
 * there is unknown (the write hole). Nothing else ever may be.
 */
#include <string.h>

#include "geometry/available.h"
#include "geometry/mirrors.h"
#include "geometry/stripes.h"
#include "simulate/internal.h"
#include "util/rounding.h"

bool is_parity_level(int level)
{
	return level == 4 || level == 5 || level == 6;
}

static void stripes_of(const struct run *run, struct stripes *ret)
{
	const struct choice *c = &run->choice;

	(void)stripes_init(
		c->level, c->layout, c->chunk_bytes, c->slots, c->component_bytes, ret, NULL);
}

static void mirrors_of(const struct run *run, struct mirrors *ret)
{
	const struct choice *c = &run->choice;

	(void)mirrors_init(
		c->level, c->layout, c->chunk_bytes, c->slots, c->component_bytes, ret, NULL);
}

void atlas_lost_slots(const struct run *run, bool lost[DISKS_MAX])
{
	for (unsigned slot = 0; slot < run->choice.slots; slot++)
		lost[slot] = true;
	for (unsigned i = 0; i < run->disk_count; i++) {
		const struct disk *disk = &run->disks[i];

		if (disk->state == ENGINE_DEVICE_IN_SYNC && disk->counted && !disk->doomed &&
			!disk->dead && !disk->away)
			lost[disk->slot] = false;
	}
}

unsigned atlas_lost_count(const struct run *run)
{
	bool lost[DISKS_MAX];
	unsigned count = 0;

	atlas_lost_slots(run, lost);
	for (unsigned slot = 0; slot < run->choice.slots; slot++)
		count += lost[slot];
	return count;
}

static bool is_spoiled(const struct run *run, unsigned slot, uint64_t row)
{
	unsigned count;
	const struct sim_fault *faults = sim_faults(run->sim, &count);

	for (unsigned i = 0; i < count; i++)
		if (faults[i].tag == TAG_SECTOR + faults[i].disk &&
			run->disks[faults[i].disk].slot == slot &&
			faults[i].offset_bytes ==
				run->data_offset[faults[i].disk] + row * SHADOW_SECTOR)
			return true;
	return false;
}

/* A place that is bad besides the faults that there are. */
struct extra {
	unsigned slot;
	uint64_t row;
};

static bool is_bad(const struct run *run, const bool *lost, const struct extra *extra,
	unsigned slot, uint64_t row)
{
	return lost[slot] || (extra != NULL && extra->slot == slot && extra->row == row) ||
	       is_spoiled(run, slot, row);
}

static bool row_survives(const struct run *run, const bool *lost, const struct extra *extra,
	unsigned slot, uint64_t row)
{
	unsigned bad = 0;

	if (is_parity_level(run->choice.level)) {
		for (unsigned i = 0; i < run->choice.slots; i++)
			bad += is_bad(run, lost, extra, i, row);
		return bad <= (run->choice.level == 6 ? 2u : 1u);
	}
	struct mirrors mirrors;
	struct geometry_piece places[DISKS_MAX];
	uint64_t offset, length;

	mirrors_of(run, &mirrors);
	if (!mirrors_inverse(&mirrors, slot, row * SHADOW_SECTOR, &offset, &length))
		return true;
	(void)mirrors_map(&mirrors, offset, places);
	for (unsigned i = 0; i < mirrors.copies; i++)
		if (!is_bad(run, lost, extra, places[i].slot,
			    places[i].member_offset / SHADOW_SECTOR))
			return true;
	return false;
}

static bool level_survives(const struct run *run, const bool *lost)
{
	bool in_sync[DISKS_MAX];

	for (unsigned slot = 0; slot < run->choice.slots; slot++)
		in_sync[slot] = !lost[slot];
	return geometry_available(
		run->choice.level, run->choice.layout, run->choice.slots, in_sync);
}

/* Every row that has a bad sector now. */
static bool all_rows_survive(const struct run *run, const bool *lost, const struct extra *extra)
{
	unsigned count;
	const struct sim_fault *faults = sim_faults(run->sim, &count);

	for (unsigned i = 0; i < count; i++) {
		unsigned disk = faults[i].disk;

		if (faults[i].tag != TAG_SECTOR + disk || run->disks[disk].slot == ENGINE_NONE)
			continue;
		if (!row_survives(run, lost, extra, run->disks[disk].slot,
			    (faults[i].offset_bytes - run->data_offset[disk]) / SHADOW_SECTOR))
			return false;
	}
	return true;
}

bool atlas_may_lose(const struct run *run, unsigned disk)
{
	bool lost[DISKS_MAX];

	if (run->disks[disk].state != ENGINE_DEVICE_IN_SYNC || run->disks[disk].doomed)
		return true;
	atlas_lost_slots(run, lost);
	lost[run->disks[disk].slot] = true;
	return level_survives(run, lost) && all_rows_survive(run, lost, NULL);
}

bool atlas_may_spoil(const struct run *run, unsigned disk, uint64_t row)
{
	struct extra extra = {run->disks[disk].slot, row};
	bool lost[DISKS_MAX];

	if (extra.slot == ENGINE_NONE)
		return false;
	if (is_parity_level(run->choice.level) && run->dirty_rows[row])
		return false; /* the rest of the row cannot tell what it holds */
	atlas_lost_slots(run, lost);
	return row_survives(run, lost, &extra, extra.slot, row);
}

bool atlas_is_readable(const struct run *run, uint64_t sector)
{
	bool lost[DISKS_MAX];
	struct stripes stripes;
	struct mirrors mirrors;
	struct geometry_piece places[DISKS_MAX];
	uint64_t stripe;
	unsigned data, slot;
	uint32_t in_chunk;

	atlas_lost_slots(run, lost);
	if (!is_parity_level(run->choice.level)) {
		mirrors_of(run, &mirrors);
		(void)mirrors_map(&mirrors, sector * SHADOW_SECTOR, places);
		return row_survives(
			run, lost, NULL, places[0].slot, places[0].member_offset / SHADOW_SECTOR);
	}
	stripes_of(run, &stripes);
	stripes_locate(&stripes, sector * SHADOW_SECTOR, &stripe, &data, &in_chunk);
	slot = stripes_data_slot(&stripes, stripe, data);
	if (!is_bad(run, lost, NULL, slot,
		    (stripes_member_offset(&stripes, stripe) + in_chunk) / SHADOW_SECTOR))
		return true;
	return level_survives(run, lost) &&
	       row_survives(run, lost, NULL, slot,
		       (stripes_member_offset(&stripes, stripe) + in_chunk) / SHADOW_SECTOR);
}

/* The data that the lost slots held in a dirty row. */
static void forget_row(
	struct run *run, const struct stripes *stripes, const bool *lost, uint64_t row)
{
	uint64_t offset = row * SHADOW_SECTOR, stripe = offset >> stripes->chunk_shift;
	unsigned data;

	if (stripe >= stripes->stripe_count)
		return;
	for (unsigned slot = 0; slot < run->choice.slots; slot++)
		if ((lost[slot] || is_spoiled(run, slot, row)) &&
			stripes_role_of(stripes, stripe, slot, &data) == STRIPES_DATA)
			shadow_forget(run->shadow, (stripes_array_offset(stripes, stripe, data) +
							   offset % stripes->chunk_bytes) /
							   SHADOW_SECTOR);
}

void atlas_lost_copy(struct run *run)
{
	bool lost[DISKS_MAX];
	struct stripes stripes;

	if (run->shadow == NULL)
		return;
	shadow_undo_choices(run->shadow);
	if (!is_parity_level(run->choice.level))
		return;
	atlas_lost_slots(run, lost);
	stripes_of(run, &stripes);
	for (uint64_t row = 0; row < run->rows; row++)
		if (run->dirty_rows[row])
			forget_row(run, &stripes, lost, row);
}

void atlas_mark_write(struct run *run, uint64_t first, uint64_t count)
{
	struct stripes stripes;

	if (!is_parity_level(run->choice.level))
		return;
	stripes_of(run, &stripes);
	for (uint64_t sector = first; sector < first + count; sector++) {
		uint64_t stripe;
		uint32_t in_chunk;
		unsigned data;

		stripes_locate(&stripes, sector * SHADOW_SECTOR, &stripe, &data, &in_chunk);
		run->dirty_rows[(stripes_member_offset(&stripes, stripe) + in_chunk) /
				SHADOW_SECTOR] = 1;
	}
}

struct marking {
	struct run *run;
	unsigned disk;
};

static void mark_cached(void *owner, uint64_t offset)
{
	struct marking *marking = owner;
	struct run *run = marking->run;
	uint64_t first = run->data_offset[marking->disk];

	if (offset >= first && (offset - first) / SHADOW_SECTOR < run->rows)
		run->dirty_rows[(offset - first) / SHADOW_SECTOR] = 1;
}

void atlas_mark_caches(struct run *run)
{
	for (unsigned i = 0; i < run->disk_count; i++) {
		struct marking marking = {run, i};

		if (run->disks[i].slot != ENGINE_NONE)
			sim_undurable(run->sim, i, mark_cached, &marking);
	}
}

void atlas_clear_rows(struct run *run)
{
	memset(run->dirty_rows, 0, run->rows);
}

unsigned atlas_disk_of_slot(const struct run *run, unsigned slot)
{
	for (unsigned i = 0; i < run->disk_count; i++)
		if (run->disks[i].slot == slot && run->disks[i].state == ENGINE_DEVICE_IN_SYNC)
			return i;
	return ENGINE_NONE;
}

/* Its slot has another device in sync: that one has replaced it. */
static bool is_replaced(const struct run *run, const struct engine_device_status *status)
{
	for (unsigned i = 0; i < engine_device_max(run->engine); i++) {
		struct engine_device_status other;

		engine_device_status(run->engine, i, &other);
		if (other.state == ENGINE_DEVICE_IN_SYNC && other.slot == status->slot)
			return true;
	}
	return false;
}

/* A device that fails without a reason is as wrong as one that does not fail with one. */
static void judge_change(struct run *run, unsigned i, const struct engine_device_status *status)
{
	struct disk *disk = &run->disks[i];

	if (status->state == ENGINE_DEVICE_FAULTY && disk->state == ENGINE_DEVICE_IN_SYNC &&
		!disk->doomed && !disk->was_failed && !run->options->beyond && !run->blackout &&
		!is_replaced(run, status))
		run_fail(run, "unjust", "disk %u (slot %u) was failed without a fault", i,
			disk->slot);
	run_trace(run, "disk %u: state %u -> %u, slot %d", i, disk->state, status->state,
		(int)status->slot);
	if (status->state == ENGINE_DEVICE_FAULTY)
		sim_faults_remove(run->sim, TAG_SECTOR + i);
	if (disk->state == ENGINE_DEVICE_FREE || disk->state == ENGINE_DEVICE_FAULTY)
		disk->was_failed = false;
}

/* Once what it was doomed by is over, and the engine has kept it, it counts again. */
static void pardon(struct run *run, unsigned i)
{
	struct disk *disk = &run->disks[i];
	unsigned count;
	const struct sim_fault *faults = sim_faults(run->sim, &count);

	if (!disk->doomed || disk->away || disk->dead || disk->was_failed ||
		disk->state == ENGINE_DEVICE_FAULTY)
		return;
	for (unsigned k = 0; k < count; k++)
		if (faults[k].tag == TAG_DOOM + i)
			return;
	disk->doomed = false;
}

/* A member is worth something after a power cut only if its superblock says so by then. */
static void count(struct run *run, unsigned i)
{
	struct disk *disk = &run->disks[i];
	struct md_super *super = &run->supers[0];

	if (disk->state != ENGINE_DEVICE_IN_SYNC || !run->recorded)
		disk->counted = disk->state == ENGINE_DEVICE_IN_SYNC;
	else if (!disk->counted)
		disk->counted = raid_read_super(run, i, super) &&
				(super->feature_map & MD_FEATURE_RECOVERY_OFFSET) == 0 &&
				md_super_role(super) == disk->slot;
}

/* Returns whether the array has lost it. */
static bool look_at(struct run *run, const struct engine_device_status *status, unsigned device)
{
	struct disk *disk = &run->disks[status->member];
	/* What was rebuilt so far may have been read. */
	bool lost = (disk->state == ENGINE_DEVICE_IN_SYNC ||
			    disk->state == ENGINE_DEVICE_REBUILDING) &&
		    status->state != ENGINE_DEVICE_IN_SYNC && status->state != disk->state;

	if (disk->state != status->state)
		judge_change(run, status->member, status);
	disk->state = status->state;
	disk->device = device;
	if (status->slot != ENGINE_NONE)
		disk->slot = status->slot;
	else if (status->state == ENGINE_DEVICE_SPARE)
		disk->slot = ENGINE_NONE;
	count(run, status->member);
	pardon(run, status->member);
	return lost;
}

static void look_at_resync(struct run *run)
{
	struct engine_status status;
	unsigned parities = run->choice.level == 6 ? 2 : 1;

	(void)engine_status(run->engine, &status);
	if (!run->resync || status.resync_bytes != UINT64_MAX || run->needs_repair ||
		status.failed || run->blackout)
		return;
	if (is_parity_level(run->choice.level)) {
		if (atlas_lost_count(run) > parities)
			return;
		atlas_lost_copy(run);
	}
	run_trace(run, "redundancy is right again");
	run->resync = run->no_choices = false;
	atlas_clear_rows(run);
	shadow_whole(run->shadow);
}

void atlas_look(struct run *run)
{
	bool seen[DISKS_MAX] = {false}, lost = false;

	for (unsigned device = 0; device < engine_device_max(run->engine); device++) {
		struct engine_device_status status;

		engine_device_status(run->engine, device, &status);
		if (status.state == ENGINE_DEVICE_FREE)
			continue;
		seen[status.member] = true;
		lost |= look_at(run, &status, device);
	}
	for (unsigned i = 0; i < run->disk_count; i++)
		if (!seen[i])
			run->disks[i].state = ENGINE_DEVICE_FREE;
	if (lost && !run->blackout)
		atlas_lost_copy(run);
	if (run->shadow != NULL)
		look_at_resync(run);
}
