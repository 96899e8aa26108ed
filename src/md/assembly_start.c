/* SPDX-License-Identifier: MIT */
/* Levels with redundancy: the result, and whether the array may be started (specification 8.2). */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "md/assembly_verdict.h"
#include "util/rounding.h"

static bool is_parity(int level)
{
	return level == 4 || level == 5 || level == 6;
}

static int add_accepted(struct assembling *a, const struct verdict *verdict, unsigned index)
{
	struct md_assembly_device *device;
	struct md_assembly_slot *slot;

	if (a->ret->device_count == MD_ASSEMBLY_DEVICES_MAX)
		return fault_set(a->fault, -E2BIG,
			"%s and %u devices before it would take part, but an array has %u at most, "
			"spares too; leave some spares out",
			a->candidates[index].path, a->ret->device_count, MD_ASSEMBLY_DEVICES_MAX);
	device = assembly_add_device(a, index);
	device->slot = verdict->role;
	if (verdict->role >= a->ret->slot_count)
		return 0;
	device->in_sync = verdict->in_sync;
	device->replacement = verdict->replacement;
	device->recovery_offset_bytes = verdict->recovered_sectors * MD_SECTOR;
	slot = &a->ret->slots[verdict->role];
	*(verdict->replacement ? &slot->replacement : &slot->candidate) = (int)index;
	return 0;
}

/* What was to replace a member that is not here any more is the member. */
static void promote(struct md_assembly *ret, struct md_assembly_device *device)
{
	struct md_assembly_slot *slot = &ret->slots[device->slot];

	if (slot->candidate >= 0)
		return;
	slot->candidate = slot->replacement;
	slot->replacement = -1;
	device->replacement = false;
}

static void place(struct md_assembly *ret)
{
	bool in_sync[GEOMETRY_SLOTS_MAX] = {false};

	for (unsigned i = 0; i < ret->device_count; i++) {
		struct md_assembly_device *device = &ret->devices[i];

		if (device->slot >= ret->slot_count)
			continue;
		in_sync[device->slot] |= device->in_sync;
		if (device->replacement)
			promote(ret, device);
		if (device->replacement)
			continue;
		ret->slots[device->slot].data_offset_bytes = device->data_offset_bytes;
		ret->slots[device->slot].data_bytes = device->data_bytes;
	}
	for (unsigned slot = 0; slot < ret->slot_count; slot++) {
		ret->in_sync_count += in_sync[slot];
		ret->missing_count += ret->slots[slot].candidate < 0;
	}
	ret->degraded = ret->in_sync_count < ret->slot_count;
}

static void add_rejected(struct assembling *a, const struct verdict *verdict, unsigned index)
{
	a->ret->rejected[a->ret->rejected_count++] = (struct md_assembly_rejected){
		.candidate = index,
		.reason = verdict->reason,
		.by = verdict->by,
	};
}

/*
 * The lowest checkpoint of all that are up to date: the kernel asks the freshest alone, mdadm calls
 * the array dirty if any is (8.2). Both cannot be wrong then. A checkpoint beyond what can be
 * counted is none.
 */
static void find_resync(struct assembling *a, const struct verdict *verdicts)
{
	uint64_t lowest = a->best->super->resync_offset;

	for (unsigned i = 0; i < a->count; i++)
		if (verdicts[i].accepted && verdicts[i].role < a->ret->slot_count &&
			!verdicts[i].from_spare)
			lowest = min_u64(lowest, a->candidates[i].super->resync_offset);
	a->ret->clean = lowest == MD_CLEAN;
	if (a->ret->clean)
		a->ret->resync_offset_bytes = MD_CLEAN;
	else if (mul_overflows(lowest, MD_SECTOR, &a->ret->resync_offset_bytes))
		a->ret->resync_offset_bytes = 0;
}

static void list_rejected(const struct assembling *a)
{
	char text[MD_ASSEMBLY_LINE_MAX];

	for (unsigned i = 0; i < a->ret->rejected_count && i < ASSEMBLY_LISTED_MAX; i++)
		(void)fault_append(a->fault, "; %s",
			md_rejection_text(a->candidates, &a->ret->rejected[i], text));
	if (a->ret->rejected_count > ASSEMBLY_LISTED_MAX)
		(void)fault_append(a->fault, "; and %u more were ignored",
			a->ret->rejected_count - ASSEMBLY_LISTED_MAX);
}

static bool is_in_sync(const struct md_assembly *ret, unsigned slot)
{
	for (unsigned i = 0; i < ret->device_count; i++)
		if (ret->devices[i].slot == slot && ret->devices[i].in_sync)
			return true;
	return false;
}

/* "slots 1, 2 (being rebuilt)": those without a member in sync. */
static void list_slots(const struct assembling *a)
{
	const unsigned count = a->ret->slot_count - a->ret->in_sync_count;
	unsigned listed = 0;

	(void)fault_append(a->fault, "slot%s", count > 1 ? "s" : "");
	for (unsigned slot = 0; slot < a->ret->slot_count && listed < ASSEMBLY_LISTED_MAX; slot++)
		if (!is_in_sync(a->ret, slot))
			(void)fault_append(a->fault, "%s %u%s", listed++ > 0 ? "," : "", slot,
				a->ret->slots[slot].candidate >= 0 ? " (being rebuilt)" : "");
	if (count > listed)
		(void)fault_append(a->fault, " and %u more", count - listed);
}

static void advise_search(const struct assembling *a)
{
	char uuid[MD_UUID_TEXT + 1];

	(void)fault_append(a->fault,
		"; find the missing devices (--examine --scan lists what is there; the array's "
		"UUID is %s) and name them too",
		md_uuid_format(a->ret->super->set_uuid, uuid));
}

static bool some_are_forcible(const struct assembling *a, const struct verdict *verdicts)
{
	for (unsigned i = 0; i < a->count; i++)
		if (!verdicts[i].accepted && verdicts[i].forcible)
			return true;
	return false;
}

static int refuse_too_few(const struct assembling *a, const struct verdict *verdicts)
{
	const struct md_assembly *ret = a->ret;
	char uuid[MD_UUID_TEXT + 1];

	(void)fault_set(a->fault, -ENODEV,
		"array %s: assembled from %u of %u members of level %s - not enough to start the "
		"array",
		assembly_name(ret->super, uuid), ret->in_sync_count, ret->slot_count,
		md_level_name(ret->level));
	if (is_parity(ret->level))
		(void)fault_append(
			a->fault, ", which needs %u", ret->slot_count - (ret->level == 6 ? 2 : 1));
	else if (ret->level == 10)
		(void)fault_append(a->fault, ", which needs a copy of each chunk");
	(void)fault_append(a->fault, "; missing ");
	list_slots(a);
	list_rejected(a);
	advise_search(a);
	if (!a->options->force && some_are_forcible(a, verdicts))
		(void)fault_append(a->fault,
			"; if they are lost, --force takes the newest of the ignored members back, "
			"and what was written after they left is lost or wrong: image the members "
			"first");
	return -ENODEV;
}

static int refuse_dirty(const struct assembling *a)
{
	const struct md_assembly *ret = a->ret;
	char uuid[MD_UUID_TEXT + 1];

	(void)fault_set(a->fault, -EUCLEAN,
		"array %s: cannot start dirty degraded array: it was not stopped cleanly, so "
		"parity may be wrong where writes were in flight (%s: resync is due from sector "
		"%" PRIu64 "), and with members missing their data are computed from it; missing ",
		assembly_name(ret->super, uuid), a->best->path,
		ret->resync_offset_bytes / MD_SECTOR);
	list_slots(a);
	list_rejected(a);
	advise_search(a);
	(void)fault_append(a->fault, "; if they are lost, --force starts it all the same, and a "
				     "few blocks that were being written may be wrong: check the "
				     "file system then");
	return -EUCLEAN;
}

/* Slots that are occupied in the freshest superblock and have no device here. */
static unsigned count_unfilled(const struct assembling *a, bool unfilled[GEOMETRY_SLOTS_MAX])
{
	const struct md_super *best = a->best->super;
	unsigned count = 0;

	memset(unfilled, 0, GEOMETRY_SLOTS_MAX * sizeof(*unfilled));
	for (unsigned i = 0; i < best->role_count && i < MD_ROLES_MAX; i++) {
		const unsigned slot = best->roles[i];

		if (slot >= a->ret->slot_count || unfilled[slot] ||
			a->ret->slots[slot].candidate >= 0)
			continue;
		unfilled[slot] = true;
		count++;
	}
	return count;
}

static int check_known(const struct assembling *a)
{
	const struct md_assembly *ret = a->ret;
	const unsigned filled = ret->slot_count - ret->missing_count;
	bool unfilled[GEOMETRY_SLOTS_MAX];
	const unsigned count = count_unfilled(a, unfilled);
	char uuid[MD_UUID_TEXT + 1];
	unsigned listed = 0;

	if (count == 0 || a->options->run || a->options->force)
		return 0;
	(void)fault_set(a->fault, -ENODEV,
		"array %s: assembled from %u of %u members - need all %u to start it (use --run to "
		"insist): %s knows of %u more active member%s, whose copy may be newer, in slot%s",
		assembly_name(ret->super, uuid), filled, filled + count, filled + count,
		a->best->path, count, count > 1 ? "s" : "", count > 1 ? "s" : "");
	for (unsigned slot = 0; slot < ret->slot_count && listed < ASSEMBLY_LISTED_MAX; slot++)
		if (unfilled[slot])
			(void)fault_append(a->fault, "%s %u", listed++ > 0 ? "," : "", slot);
	if (count > listed)
		(void)fault_append(a->fault, " and %u more", count - listed);
	list_rejected(a);
	advise_search(a);
	return -ENODEV;
}

static int check_dirt(struct assembling *a, const struct verdict *verdicts)
{
	if (a->ret->clean || !a->ret->degraded || !is_parity(a->ret->level))
		return 0;
	if (!a->options->force)
		return refuse_dirty(a);
	a->ret->clean = true;
	a->ret->resync_offset_bytes = MD_CLEAN;
	return assembly_force_clean(a, verdicts);
}

int assembly_start(struct assembling *a, struct verdict *verdicts)
{
	int result = 0;

	if (a->options->force)
		result = assembly_force(a, verdicts);
	for (unsigned i = 0; result == 0 && i < a->count; i++) {
		if (verdicts[i].accepted)
			result = add_accepted(a, &verdicts[i], i);
		else
			add_rejected(a, &verdicts[i], i);
	}
	if (result < 0)
		return result;
	place(a->ret);
	find_resync(a, verdicts);
	if (!assembly_available(a, verdicts))
		return refuse_too_few(a, verdicts);
	result = check_dirt(a, verdicts);
	return result == 0 ? check_known(a) : result;
}
