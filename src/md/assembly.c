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
#include "md/assembly.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "util/rounding.h"

#define MEMBERS_090_MAX 27u
#define LIMIT_090 (UINT64_C(1) << 33)
#define LISTED_MAX 16u /* slots or devices named in one message */
#define SECONDS_MASK ((UINT64_C(1) << 40) - 1)

struct assembling {
	const struct md_candidate *candidates;
	unsigned count;
	const struct md_assembly_options *options;
	const struct md_candidate *best; /* the freshest */
	struct md_assembly *ret;
	struct fault *fault;
};

/* What every superblock of one array must agree on, one line of a message each. */
struct difference {
	const char *field;
	int64_t here, there;
};

/* The array's name for messages, or its UUID where it has none. */
static const char *array_name(const struct md_super *super, char uuid[MD_UUID_TEXT])
{
	return super->name[0] != '\0' ? super->name : md_uuid_format(super->set_uuid, uuid);
}

/* A slot, or one of md_role for a member without. */
static unsigned role_of(const struct md_candidate *candidate)
{
	return md_super_role(candidate->super);
}

static bool has_slot(const struct md_candidate *candidate)
{
	return role_of(candidate) <= MD_ROLE_SLOT_MAX;
}

/* The most events among those with a slot; without such a one, among all. */
static const struct md_candidate *find_freshest(const struct md_candidate *all, unsigned count)
{
	const struct md_candidate *best = &all[0];

	for (unsigned i = 1; i < count; i++) {
		const struct md_candidate *other = &all[i];

		if (has_slot(other) != has_slot(best) ? has_slot(other)
						      : other->super->events > best->super->events)
			best = other;
	}
	return best;
}

static bool records_layout(const struct md_super *super)
{
	return super->version != MD_VERSION_0_90 &&
	       (super->feature_map & MD_FEATURE_RAID0_LAYOUT) != 0;
}

/* The layout that counts: one without the feature bit is to be ignored (7.3). */
static int64_t recorded_layout(const struct md_super *super)
{
	return records_layout(super) ? super->layout : GEOMETRY_RAID0_UNKNOWN;
}

static int check_same_array(const struct assembling *a, const struct md_candidate *other)
{
	const struct md_super *best = a->best->super;
	char here[MD_UUID_TEXT + 1], there[MD_UUID_TEXT + 1];

	if (memcmp(best->set_uuid, other->super->set_uuid, sizeof(best->set_uuid)) == 0)
		return 0;
	return fault_set(a->fault, -EUCLEAN,
		"members of two different arrays: %s belongs to array \"%s\" (UUID %s), %s to "
		"array "
		"\"%s\" (UUID %s); name the devices of one array, or choose it with --uuid",
		a->best->path, best->name, md_uuid_format(best->set_uuid, here), other->path,
		other->super->name, md_uuid_format(other->super->set_uuid, there));
}

/* Fields that contradict each other make different arrays; no option overrides that. */
static int check_same_geometry(const struct assembling *a, const struct md_candidate *other)
{
	const struct md_super *x = a->best->super, *y = other->super;
	const struct difference fields[] = {
		{"version", x->version, y->version},
		{"level", x->level, y->level},
		{"layout", recorded_layout(x), recorded_layout(y)},
		{"chunk sectors", x->chunk_sectors, y->chunk_sectors},
		{"raid devices", x->raid_disks, y->raid_disks},
	};
	const char *separator = "";
	bool differs = false;

	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		differs |= fields[i].here != fields[i].there;
	if (!differs)
		return 0;
	(void)fault_set(a->fault, -EUCLEAN,
		"superblocks of %s and %s contradict each other: ", a->best->path, other->path);
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		if (fields[i].here == fields[i].there)
			continue;
		if (i == 0)
			(void)fault_append(a->fault, "version %s and %s",
				md_format(x->version)->name, md_format(y->version)->name);
		else if (i == 1)
			(void)fault_append(a->fault, "%slevel %s and %s", separator,
				md_level_name(x->level), md_level_name(y->level));
		else
			(void)fault_append(a->fault, "%s%s %" PRId64 " and %" PRId64, separator,
				fields[i].field, fields[i].here, fields[i].there);
		separator = ", ";
	}
	(void)fault_append(
		a->fault, "; look at both with --examine and leave out the wrong device");
	return -EUCLEAN;
}

/* Level, features and numbers of the freshest, before anything is indexed by them. */
static int check_runnable(const struct assembling *a)
{
	const struct md_super *s = a->best->super;
	const unsigned most = s->version == MD_VERSION_0_90 ? MEMBERS_090_MAX : GEOMETRY_SLOTS_MAX;

	if (s->level != 0 && s->level != GEOMETRY_LEVEL_LINEAR)
		return fault_set(a->fault, -EOPNOTSUPP,
			"not yet supported: level %s (recorded on %s); linear and raid0 can be "
			"assembled, --examine shows the rest",
			md_level_name(s->level), a->best->path);
	if ((s->feature_map & MD_FEATURE_RESHAPE) != 0)
		return fault_set(a->fault, -EOPNOTSUPP,
			"not yet supported: a reshape in progress (recorded on %s); let mdadm and "
			"the "
			"kernel finish it",
			a->best->path);
	if (s->raid_disks == 0 || s->raid_disks > most)
		return fault_set(a->fault, -EUCLEAN,
			"%s: superblock claims %" PRIu32 " raid devices; %s metadata has 1 to %u; "
			"the superblock is damaged, compare it with the others by --examine",
			a->best->path, s->raid_disks, md_format(s->version)->name, most);
	if (s->chunk_sectors > UINT32_MAX / MD_SECTOR || (s->level == 0 && s->chunk_sectors == 0))
		return fault_set(a->fault, -EUCLEAN,
			"%s: superblock claims a chunk of %" PRIu32
			" sectors, which makes no array; "
			"the superblock is damaged, compare it with the others by --examine",
			a->best->path, s->chunk_sectors);
	return 0;
}

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
	int result = check_same_geometry(a, other);

	if (result == 0 && has_slot(other))
		result = check_events(a, other);
	return result;
}

static int refuse_double(
	const struct assembling *a, const struct md_candidate *one, const struct md_candidate *two)
{
	const bool twins = one->super->version != MD_VERSION_0_90 &&
			   memcmp(one->super->device_uuid, two->super->device_uuid, 16) == 0;

	return fault_set(a->fault, -EUCLEAN,
		"%s and %s both claim slot %u of the array%s; name only one of them", one->path,
		two->path, role_of(one),
		twins ? " with the same device UUID: one is a copy of the other, or both are the "
			"same "
			"device"
		      : "");
}

static int fill_slot(struct assembling *a, unsigned index)
{
	const struct md_candidate *candidate = &a->candidates[index];
	const unsigned role = role_of(candidate);

	if (role > MD_ROLE_SLOT_MAX)
		return 0; /* a spare or faulty device holds no data of such an array */
	if (role >= a->ret->slot_count)
		return fault_set(a->fault, -EUCLEAN,
			"%s: superblock claims slot %u of an array of %u members; the superblock "
			"is "
			"damaged, compare it with the others by --examine",
			candidate->path, role, a->ret->slot_count);
	if (a->ret->slots[role].candidate >= 0)
		return refuse_double(a, &a->candidates[a->ret->slots[role].candidate], candidate);
	a->ret->slots[role].candidate = (int)index;
	return 0;
}

/* First sector of the device that cannot hold data any more. */
static uint64_t data_limit(const struct md_candidate *candidate)
{
	const struct md_super *s = candidate->super;

	if (s->version == MD_VERSION_0_90 || s->version == MD_VERSION_1_0)
		return s->super_offset < candidate->device_sectors ? s->super_offset
								   : candidate->device_sectors;
	return candidate->device_sectors;
}

/*
 * Sectors of data that the kernel uses on a member. Version 0.90: up to the superblock, but at most
 * 4 TiB for every level except 0. The kernel means to spare linear too, but its level field is
 * unsigned there, so -1 counts as a high level (seen: two members of 5 TiB give 2^34 - 4 sectors).
 */
static uint64_t usable_sectors(const struct md_super *super)
{
	if (super->version == MD_VERSION_0_90 && super->level != 0 &&
		super->data_sectors >= LIMIT_090)
		return LIMIT_090 - 2;
	return super->data_sectors;
}

static int check_extent(const struct assembling *a, const struct md_candidate *candidate)
{
	const struct md_super *s = candidate->super;
	const uint64_t limit = data_limit(candidate);
	uint64_t end;

	if (!add_overflows(s->data_offset, s->data_sectors, &end) && end <= limit)
		return 0;
	return fault_set(a->fault, -EUCLEAN,
		"%s: superblock claims more space than the device has: data of %" PRIu64
		" sectors from sector %" PRIu64 ", but only %" PRIu64 " of the device's %" PRIu64
		" sectors can hold data; was the device or image cut short? Restore its full size, "
		"then assemble again",
		candidate->path, s->data_sectors, s->data_offset, limit, candidate->device_sectors);
}

static int place_slot(struct assembling *a, struct md_assembly_slot *slot)
{
	const struct md_candidate *candidate = &a->candidates[slot->candidate];
	const uint64_t usable = usable_sectors(candidate->super);
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

	for (unsigned i = 0; i < a->ret->slot_count && listed < LISTED_MAX; i++)
		if (a->ret->slots[i].candidate < 0)
			(void)fault_append(a->fault, "%s %u", listed++ > 0 ? "," : "", i);
	if (a->ret->missing_count > listed)
		(void)fault_append(a->fault, " and %u more", a->ret->missing_count - listed);
}

/* Devices that were given but hold no slot: the reader will wonder why they do not count. */
static void list_without_slot(const struct assembling *a)
{
	unsigned listed = 0;

	for (unsigned i = 0; i < a->count && listed < LISTED_MAX; i++)
		if (!has_slot(&a->candidates[i]) && ++listed > 0)
			(void)fault_append(a->fault, "; %s is a %s device and fills no slot",
				a->candidates[i].path,
				role_of(&a->candidates[i]) == MD_ROLE_FAULTY    ? "faulty"
				: role_of(&a->candidates[i]) == MD_ROLE_JOURNAL ? "journal"
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
		array_name(array->super, uuid), array->slot_count - array->missing_count,
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
		array_name(a->best->super, uuid), a->best->path,
		a->best->super->version == MD_VERSION_0_90 ? " (not in 0.90 metadata)" : "");
}

/* With one zone the layouts are the same, whatever is recorded or asked (7.3). */
static int choose_layout(struct assembling *a)
{
	const struct md_super *super = a->best->super;
	const uint32_t wanted = a->options->raid0_layout;
	const int64_t recorded = recorded_layout(super);

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

static void start(struct assembling *a)
{
	const struct md_super *super = a->best->super;

	a->ret->super = super;
	a->ret->slot_count = super->raid_disks;
	a->ret->level = super->level;
	a->ret->chunk_bytes = super->chunk_sectors * MD_SECTOR;
	for (unsigned i = 0; i < a->count; i++)
		if (a->candidates[i].super->logical_block_bytes > a->ret->logical_block_bytes)
			a->ret->logical_block_bytes = a->candidates[i].super->logical_block_bytes;
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

void md_assembly_clear(struct md_assembly *assembly)
{
	memset(assembly, 0, sizeof(*assembly));
	for (unsigned i = 0; i < GEOMETRY_SLOTS_MAX; i++)
		assembly->slots[i].candidate = assembly->slots[i].replacement = -1;
}

int md_assemble(const struct md_candidate *candidates, unsigned count,
	const struct md_assembly_options *options, struct md_assembly *ret, struct fault *fault)
{
	struct assembling a = {candidates, count, options, NULL, ret, fault};
	int result = 0;

	md_assembly_clear(ret);
	if (count == 0)
		return fault_set(fault, -EINVAL,
			"no device with a superblock was given; name the array's members, or look "
			"for "
			"them with --examine --scan");
	a.best = find_freshest(candidates, count);
	for (unsigned i = 0; result == 0 && i < count; i++)
		result = check_same_array(&a, &candidates[i]);
	if (result == 0) /* before the rest, whose rules are those of levels without redundancy */
		result = check_runnable(&a);
	for (unsigned i = 0; result == 0 && i < count; i++)
		result = check_member(&a, &candidates[i]);
	if (result < 0)
		return result;
	start(&a);
	result = fill_slots(&a);
	if (result == 0)
		result = check_complete(&a);
	return result == 0 ? choose_layout(&a) : result;
}
