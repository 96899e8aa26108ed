/* SPDX-License-Identifier: MIT */
/* Words for what an assembly left out and what it would change, and the change itself. */
#include <inttypes.h>
#include <stdio.h>

#include "md/assembly.h"

#define DISK_ACTIVE_SYNC 0x6u /* state of a 0.90 descriptor: active, in sync */

static void duplicate_text(const struct md_candidate *x, const struct md_candidate *by,
	char text[MD_ASSEMBLY_LINE_MAX])
{
	const unsigned role = md_super_role(x->super);
	char place[32];

	if (role <= MD_ROLE_SLOT_MAX)
		(void)snprintf(place, sizeof(place), "slot %u", role);
	else
		(void)snprintf(place, sizeof(place), "number %" PRIu32, x->super->dev_number);
	(void)snprintf(text, MD_ASSEMBLY_LINE_MAX,
		"ignoring %s as %s has its %s too and is newer or a member already (events %" PRIu64
		" and %" PRIu64 ")",
		x->path, by->path, place, x->super->events, by->super->events);
}

static void contradiction_text(const struct md_candidate *x, const struct md_candidate *by,
	char text[MD_ASSEMBLY_LINE_MAX])
{
	(void)snprintf(text, MD_ASSEMBLY_LINE_MAX,
		"ignoring %s: it is stale or a spare (events %" PRIu64 ", the array is at %" PRIu64
		") and was part of another geometry: version %s, level %s, layout %" PRIu32
		", chunk of %" PRIu32 " sectors, %" PRIu32 " raid devices",
		x->path, x->super->events, by->super->events, md_format(x->super->version)->name,
		md_level_name(x->super->level), x->super->layout, x->super->chunk_sectors,
		x->super->raid_disks);
}

static void small_text(const struct md_candidate *x, const struct md_candidate *by,
	char text[MD_ASSEMBLY_LINE_MAX])
{
	(void)snprintf(text, MD_ASSEMBLY_LINE_MAX,
		"ignoring %s: it has data of %" PRIu64 " sectors from sector %" PRIu64
		" on a device of %" PRIu64 " sectors, and the array needs %" PRIu64
		" on each member; was the device or image cut short? Restore its full size",
		x->path, x->super->data_sectors, x->super->data_offset, x->device_sectors,
		by->super->size_sectors);
}

char *md_rejection_text(const struct md_candidate *candidates,
	const struct md_assembly_rejected *rejected, char text[MD_ASSEMBLY_LINE_MAX])
{
	const struct md_candidate *x = &candidates[rejected->candidate];
	const struct md_candidate *by = &candidates[rejected->by];
	const uint64_t events = x->super->events, current = by->super->events;
	const size_t size = MD_ASSEMBLY_LINE_MAX;

	switch (rejected->reason) {
	case MD_REJECTED_STALE:
		(void)snprintf(text, size,
			"kicking non-fresh %s (events %" PRIu64 ", the array is at %" PRIu64
			"): it missed what was written since; add it again to rebuild it",
			x->path, events, current);
		break;
	case MD_REJECTED_FAILED:
		(void)snprintf(text, size,
			"ignoring %s as %s, which is newer, reports it as failed or removed "
			"(events %" PRIu64 " and %" PRIu64 "); add it again to rebuild it",
			x->path, by->path, events, current);
		break;
	case MD_REJECTED_SPLIT_BRAIN:
		(void)snprintf(text, size,
			"ignoring %s as it reports %s as failed (events %" PRIu64 " and %" PRIu64
			"): each may have been written without the other; to keep the data of %s "
			"instead, name it without %s",
			x->path, by->path, events, current, x->path, by->path);
		break;
	case MD_REJECTED_DUPLICATE:
		duplicate_text(x, by, text);
		break;
	case MD_REJECTED_STRAY_SPARE:
		(void)snprintf(text, size,
			"ignoring spare %s: it knows a later state of the array (events %" PRIu64
			") than every member here (%" PRIu64 "); members with newer data are "
			"missing",
			x->path, events, current);
		break;
	case MD_REJECTED_ROLE:
		(void)snprintf(text, size, "ignoring %s: its superblock calls it a %s device",
			x->path, md_super_role(x->super) == MD_ROLE_JOURNAL ? "journal" : "faulty");
		break;
	case MD_REJECTED_CONTRADICTS:
		contradiction_text(x, by, text);
		break;
	case MD_REJECTED_TOO_SMALL:
		small_text(x, by, text);
		break;
	}
	return text;
}

char *md_change_text(const struct md_candidate *candidates, const struct md_assembly_change *change,
	char text[MD_ASSEMBLY_LINE_MAX])
{
	const struct md_candidate *x = &candidates[change->candidate];
	const size_t size = MD_ASSEMBLY_LINE_MAX;

	switch (change->what) {
	case MD_CHANGE_EVENTS:
		(void)snprintf(text, size,
			"forcing event count in %s (slot %u) from %" PRIu64 " up to %" PRIu64,
			x->path, md_super_role(x->super), change->old, change->value);
		break;
	case MD_CHANGE_ROLE:
		(void)snprintf(text, size,
			"clearing FAULTY flag for device %u in %s: it has slot %" PRIu64 " there",
			change->dev_number, x->path, change->value);
		break;
	case MD_CHANGE_RECOVERY:
		(void)snprintf(text, size,
			"rebuilding %s (slot %u) from its beginning, not from sector %" PRIu64,
			x->path, md_super_role(x->super), change->old);
		break;
	case MD_CHANGE_CLEAN:
		(void)snprintf(text, size,
			"marking array as 'clean' in %s: parity may be wrong where writes were in "
			"flight; repair the array",
			x->path);
		break;
	}
	return text;
}

/* Version 0.90 keeps the roles in descriptors, which are what is encoded. */
static void change_role(const struct md_assembly_change *change, struct md_super *super)
{
	const unsigned disks = sizeof(super->v090.disks) / sizeof(super->v090.disks[0]);
	const unsigned number = change->dev_number;

	super->roles[number] = (uint16_t)change->value;
	if (number >= super->role_count)
		super->role_count = number + 1;
	if (super->version != MD_VERSION_0_90 || number >= disks)
		return;
	super->v090.disks[number].number = number;
	super->v090.disks[number].raid_disk = (uint32_t)change->value;
	super->v090.disks[number].state = DISK_ACTIVE_SYNC;
}

void md_change_apply(const struct md_assembly_change *change, struct md_super *super)
{
	switch (change->what) {
	case MD_CHANGE_EVENTS:
		super->events = change->value;
		break;
	case MD_CHANGE_ROLE:
		change_role(change, super);
		break;
	case MD_CHANGE_RECOVERY:
		super->recovery_offset = 0;
		break;
	case MD_CHANGE_CLEAN:
		super->resync_offset = MD_CLEAN;
		break;
	}
}
