/* SPDX-License-Identifier: MIT */
/*
 * Assembly of linear and RAID 0 arrays (specification 7.3 and 8). Neither can do without a member,
 * and neither ever has its superblocks rewritten by a running array, so the rules are plain: all
 * superblocks must tell the same story, every slot must be filled once.
 *
 * For whoever computes the array's size: the kernel exports, for RAID 0 with a chunk of C sectors,
 * the sum over the members of rdown(data_sectors, C) & ~(C - 1). For powers of two the mask changes
 * nothing. Seen with Linux 6.1: C = 12, data of 129024 and 129042 sectors: 258052 sectors, where
 * the plain sum is 258060; C = 10, twice 129024: 258024 instead of 258040.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "md/assembly_internal.h"
#include "util/rounding.h"

#define SECONDS_MASK ((UINT64_C(1) << 40) - 1)

static int64_t seconds(uint64_t time)
{
	return (int64_t)(time & SECONDS_MASK);
}

/* Differing fields of state, for the user to judge which copy is newer. */
static int refuse_events(const struct assembling *a, const struct md_candidate *other)
{
	const struct md_super *x = a->best->super, *y = other->super;

	(void)fault_set(a->fault, -EUCLEAN,
		"event counts conflict: %s has events %" PRIu64 ", %s has events %" PRIu64,
		a->best->path, x->events, other->path, y->events);
	if (x->utime != y->utime)
		(void)fault_append(a->fault,
			", update time %" PRId64 " and %" PRId64 " (seconds since 1970)",
			seconds(x->utime), seconds(y->utime));
	if ((x->resync_offset == MD_CLEAN) != (y->resync_offset == MD_CLEAN))
		(void)fault_append(a->fault, ", state %s and %s",
			x->resync_offset == MD_CLEAN ? "clean" : "active",
			y->resync_offset == MD_CLEAN ? "clean" : "active");
	if (x->ctime != y->ctime)
		(void)fault_append(a->fault,
			", creation time %" PRId64 " and %" PRId64 " (seconds since 1970)",
			seconds(x->ctime), seconds(y->ctime));
	(void)fault_append(a->fault, "; one of them may be stale: look at both with --examine, "
				     "then assemble with --force "
				     "(and --readonly first) if they do belong together");
	return -EUCLEAN;
}

/* Specification 8.1, 2: a skew of one is a write that was cut short, more is a stale copy. */
static int check_events(const struct assembling *a, const struct md_candidate *other)
{
	const uint64_t best = a->best->super->events, events = other->super->events;
	const uint64_t skew = best > events ? best - events : events - best;

	if (skew <= 1 || a->options->force)
		return 0;
	return refuse_events(a, other);
}

static int check_member(const struct assembling *a, const struct md_candidate *other)
{
	if (!assembly_same_geometry(a, other))
		return assembly_refuse_geometry(a, other);
	return assembly_has_slot(other) ? check_events(a, other) : 0;
}

static int fill_slot(struct assembling *a, unsigned index)
{
	const struct md_candidate *candidate = &a->candidates[index];
	const unsigned role = assembly_role(candidate);

	if (role > MD_ROLE_SLOT_MAX)
		return 0; /* a spare or faulty device holds no data of such an array */
	if (role >= a->ret->slot_count)
		return assembly_refuse_slot(a, candidate);
	if (a->ret->slots[role].candidate >= 0)
		return assembly_refuse_double(
			a, &a->candidates[a->ret->slots[role].candidate], candidate);
	a->ret->slots[role].candidate = (int)index;
	return 0;
}

static int check_extent(const struct assembling *a, const struct md_candidate *candidate)
{
	const struct md_super *s = candidate->super;

	if (assembly_extent_fits(candidate))
		return 0;
	return fault_set(a->fault, -EUCLEAN,
		"%s: superblock claims more space than the device has: data of %" PRIu64
		" sectors from sector %" PRIu64 ", but only %" PRIu64 " of the device's %" PRIu64
		" sectors can hold data; was the device or image cut short? Restore its full size, "
		"then assemble again",
		candidate->path, s->data_sectors, s->data_offset, assembly_data_limit(candidate),
		candidate->device_sectors);
}

static int place_slot(struct assembling *a, struct md_assembly_slot *slot)
{
	const struct md_candidate *candidate = &a->candidates[slot->candidate];
	const uint64_t usable = assembly_usable_sectors(candidate->super);
	const uint32_t chunk = a->best->super->chunk_sectors;
	int result = check_extent(a, candidate);

	if (result < 0)
		return result;
	if (usable < chunk || usable == 0)
		return fault_set(a->fault, -EUCLEAN,
			"%s: superblock claims %" PRIu64 " sectors of data, less than one chunk of "
			"%" PRIu32
			" sectors; the superblock is damaged, compare it with the others by "
			"--examine",
			candidate->path, usable, chunk);
	if (mul_overflows(usable, MD_SECTOR, &slot->data_bytes) ||
		mul_overflows(candidate->super->data_offset, MD_SECTOR, &slot->data_offset_bytes))
		return fault_set(a->fault, -EUCLEAN,
			"%s: superblock claims %" PRIu64
			" sectors of data, more than can be counted "
			"in bytes; the superblock is damaged",
			candidate->path, usable);
	return 0;
}

static void list_missing(const struct assembling *a)
{
	unsigned listed = 0;

	for (unsigned i = 0; i < a->ret->slot_count && listed < ASSEMBLY_LISTED_MAX; i++)
		if (a->ret->slots[i].candidate < 0)
			(void)fault_append(a->fault, "%s %u", listed++ > 0 ? "," : "", i);
	if (a->ret->missing_count > listed)
		(void)fault_append(a->fault, " and %u more", a->ret->missing_count - listed);
}

/* Devices that were given but hold no slot: the reader will wonder why they do not count. */
static void list_without_slot(const struct assembling *a)
{
	unsigned listed = 0;

	for (unsigned i = 0; i < a->count && listed < ASSEMBLY_LISTED_MAX; i++)
		if (!assembly_has_slot(&a->candidates[i]) && ++listed > 0)
			(void)fault_append(a->fault, "; %s is a %s device and fills no slot",
				a->candidates[i].path,
				assembly_role(&a->candidates[i]) == MD_ROLE_FAULTY    ? "faulty"
				: assembly_role(&a->candidates[i]) == MD_ROLE_JOURNAL ? "journal"
										      : "spare");
}

static int check_complete(const struct assembling *a)
{
	const struct md_assembly *array = a->ret;
	char uuid[MD_UUID_TEXT + 1];

	if (array->missing_count == 0)
		return 0;
	(void)fault_set(a->fault, -ENODEV,
		"array %s: assembled from %u of %u members of level %s - need all %u to start it; "
		"missing slot%s",
		assembly_name(array->super, uuid), array->slot_count - array->missing_count,
		array->slot_count, md_level_name(array->level), array->slot_count,
		array->missing_count > 1 ? "s" : "");
	list_missing(a);
	list_without_slot(a);
	(void)fault_append(a->fault,
		"; find the missing device%s (--examine --scan lists what is there; the array's "
		"UUID is "
		"%s) and name it too",
		array->missing_count > 1 ? "s" : "", md_uuid_format(array->super->set_uuid, uuid));
	return -ENODEV;
}

static bool is_multi_zone(const struct md_assembly *array)
{
	const uint64_t first = array->slots[0].data_bytes / array->chunk_bytes;

	for (unsigned i = 1; i < array->slot_count; i++)
		if (array->slots[i].data_bytes / array->chunk_bytes != first)
			return true;
	return false;
}

static int explain_layouts(const struct assembling *a)
{
	char uuid[MD_UUID_TEXT + 1];

	return fault_set(a->fault, -EUCLEAN,
		"array %s: its RAID 0 members (%s and others) are of unequal size, and the "
		"superblocks "
		"do not record which of two layouts the part beyond the smallest member has: "
		"\"original\" was used by kernels up to 3.13 and is mdadm's default, \"alternate\" "
		"by "
		"kernels 3.14 to 5.3. The wrong one shows wrong data there. Choose by the kernel "
		"that "
		"wrote the data, with --layout=original or --layout=alternate (try with --readonly "
		"and check the file system); --update=layout-original or --update=layout-alternate "
		"records the choice%s",
		assembly_name(a->best->super, uuid), a->best->path,
		a->best->super->version == MD_VERSION_0_90 ? " (not in 0.90 metadata)" : "");
}

/* With one zone the layouts are the same, whatever is recorded or asked (7.3). */
static int choose_layout(struct assembling *a)
{
	const struct md_super *super = a->best->super;
	const uint32_t wanted = a->options->raid0_layout;
	const int64_t recorded = assembly_layout(super);

	a->ret->layout = (uint32_t)recorded;
	if (super->level != 0 || !is_multi_zone(a->ret))
		return 0;
	if (recorded > GEOMETRY_RAID0_ALTERNATE)
		return fault_set(a->fault, -EUCLEAN,
			"%s: superblock records RAID 0 layout %" PRId64
			", which is unknown (1 original, "
			"2 alternate); the superblock is damaged or newer than this program",
			a->best->path, recorded);
	if (recorded == GEOMETRY_RAID0_UNKNOWN && wanted == GEOMETRY_RAID0_UNKNOWN)
		return explain_layouts(a);
	if (recorded != GEOMETRY_RAID0_UNKNOWN && wanted != GEOMETRY_RAID0_UNKNOWN &&
		recorded != wanted && !a->options->force)
		return fault_set(a->fault, -EUCLEAN,
			"%s: superblock records RAID 0 layout %s, but layout %s was asked for; "
			"leave "
			"out --layout, or insist with --force",
			a->best->path,
			recorded == GEOMETRY_RAID0_ORIGINAL ? "original" : "alternate",
			wanted == GEOMETRY_RAID0_ORIGINAL ? "original" : "alternate");
	if (wanted != GEOMETRY_RAID0_UNKNOWN)
		a->ret->layout = wanted;
	return 0;
}

/* Into slots[]; what stays empty is counted. */
static int fill_slots(struct assembling *a)
{
	int result = 0;

	for (unsigned i = 0; result == 0 && i < a->count; i++)
		result = fill_slot(a, i);
	for (unsigned i = 0; result == 0 && i < a->ret->slot_count; i++) {
		if (a->ret->slots[i].candidate < 0)
			a->ret->missing_count++;
		else
			result = place_slot(a, &a->ret->slots[i]);
	}
	return result;
}

/* None of these levels is ever dirty or degraded; a spare holds nothing and takes no part. */
static void describe(struct assembling *a)
{
	struct md_assembly *ret = a->ret;

	ret->clean = true;
	ret->resync_offset_bytes = MD_CLEAN;
	ret->in_sync_count = ret->slot_count;
	for (unsigned i = 0; i < a->count; i++) {
		struct md_assembly_device *device;

		if (!assembly_has_slot(&a->candidates[i]))
			continue;
		device = assembly_add_device(a, i);
		device->slot = assembly_role(&a->candidates[i]);
		device->in_sync = true;
	}
}

int assembly_striped(struct assembling *a)
{
	int result = 0;

	for (unsigned i = 0; result == 0 && i < a->count; i++)
		result = check_member(a, &a->candidates[i]);
	if (result == 0)
		result = fill_slots(a);
	if (result == 0)
		result = check_complete(a);
	if (result == 0)
		result = choose_layout(a);
	if (result == 0)
		describe(a);
	return result;
}
