/* SPDX-License-Identifier: MIT */
/* Assembly: what holds for every level (specification 8). The levels' own rules stand beside. */
#include "md/assembly.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "md/assembly_internal.h"
#include "util/rounding.h"

#define MEMBERS_090_MAX 27u
#define LIMIT_090 (UINT64_C(1) << 33)

/* What every superblock of one array must agree on, one line of a message each. */
struct difference {
	const char *field;
	int64_t here, there;
};

const char *assembly_name(const struct md_super *super, char uuid[MD_UUID_TEXT])
{
	return super->name[0] != '\0' ? super->name : md_uuid_format(super->set_uuid, uuid);
}

unsigned assembly_role(const struct md_candidate *candidate)
{
	return md_super_role(candidate->super);
}

bool assembly_has_slot(const struct md_candidate *candidate)
{
	return assembly_role(candidate) <= MD_ROLE_SLOT_MAX;
}

/* The most events among those with a slot; without such a one, among all. */
static const struct md_candidate *find_freshest(const struct md_candidate *all, unsigned count)
{
	const struct md_candidate *best = &all[0];

	for (unsigned i = 1; i < count; i++) {
		const struct md_candidate *other = &all[i];

		if (assembly_has_slot(other) != assembly_has_slot(best)
				? assembly_has_slot(other)
				: other->super->events > best->super->events)
			best = other;
	}
	return best;
}

int64_t assembly_layout(const struct md_super *super)
{
	const bool records = super->version != MD_VERSION_0_90 &&
			     (super->feature_map & MD_FEATURE_RAID0_LAYOUT) != 0;

	return super->level != 0 || records ? super->layout : GEOMETRY_RAID0_UNKNOWN;
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

#define DIFFERENCES 5

/* What one array must agree on; returns whether it does. */
static bool compare(const struct assembling *a, const struct md_candidate *other,
	struct difference fields[DIFFERENCES])
{
	const struct md_super *x = a->best->super, *y = other->super;
	const struct difference all[DIFFERENCES] = {
		{"version", x->version, y->version},
		{"level", x->level, y->level},
		{"layout", assembly_layout(x), assembly_layout(y)},
		{"chunk sectors", x->chunk_sectors, y->chunk_sectors},
		{"raid devices", x->raid_disks, y->raid_disks},
	};
	bool same = true;

	for (size_t i = 0; i < DIFFERENCES; i++) {
		fields[i] = all[i];
		same &= all[i].here == all[i].there;
	}
	return same;
}

bool assembly_same_geometry(const struct assembling *a, const struct md_candidate *other)
{
	struct difference fields[DIFFERENCES];

	return compare(a, other, fields);
}

int assembly_refuse_geometry(const struct assembling *a, const struct md_candidate *other)
{
	const struct md_super *x = a->best->super, *y = other->super;
	struct difference fields[DIFFERENCES];
	const char *separator = "";

	(void)compare(a, other, fields);
	(void)fault_set(a->fault, -EUCLEAN,
		"superblocks of %s and %s contradict each other: ", a->best->path, other->path);
	for (size_t i = 0; i < DIFFERENCES; i++) {
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

int assembly_refuse_double(
	const struct assembling *a, const struct md_candidate *one, const struct md_candidate *two)
{
	const bool twins = one->super->version != MD_VERSION_0_90 &&
			   memcmp(one->super->device_uuid, two->super->device_uuid, 16) == 0;

	return fault_set(a->fault, -EUCLEAN,
		"%s and %s both claim slot %u of the array%s; name only one of them", one->path,
		two->path, assembly_role(one),
		twins ? " with the same device UUID: one is a copy of the other, or both are the "
			"same "
			"device"
		      : "");
}

int assembly_refuse_slot(const struct assembling *a, const struct md_candidate *candidate)
{
	return fault_set(a->fault, -EUCLEAN,
		"%s: superblock claims slot %u of an array of %u members; the superblock is "
		"damaged, compare it with the others by --examine",
		candidate->path, assembly_role(candidate), a->best->super->raid_disks);
}

uint64_t assembly_data_limit(const struct md_candidate *candidate)
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
uint64_t assembly_usable_sectors(const struct md_super *super)
{
	if (super->version == MD_VERSION_0_90 && super->level != 0 &&
		super->data_sectors >= LIMIT_090)
		return LIMIT_090 - 2;
	return super->data_sectors;
}

bool assembly_extent_fits(const struct md_candidate *candidate)
{
	const struct md_super *s = candidate->super;
	uint64_t end;

	return !add_overflows(s->data_offset, s->data_sectors, &end) &&
	       end <= assembly_data_limit(candidate);
}

struct md_assembly_device *assembly_add_device(struct assembling *a, unsigned candidate)
{
	const struct md_super *super = a->candidates[candidate].super;
	struct md_assembly_device *device = &a->ret->devices[a->ret->device_count++];

	*device = (struct md_assembly_device){
		.candidate = candidate,
		.super = super,
		.slot = MD_ROLE_SPARE,
		.has_bad_blocks = (super->feature_map & MD_FEATURE_BAD_BLOCKS) != 0,
		.write_mostly = (super->devflags & MD_DEVFLAG_WRITE_MOSTLY) != 0,
		.failfast = (super->devflags & MD_DEVFLAG_FAILFAST) != 0,
		.data_offset_bytes = super->data_offset * MD_SECTOR,
		.data_bytes = assembly_usable_sectors(super) * MD_SECTOR,
		.dev_number = super->dev_number,
	};
	return device;
}

/* Numbers of the freshest, before anything is indexed by them. */
static int check_numbers(const struct assembling *a)
{
	const struct md_super *s = a->best->super;
	const unsigned most = s->version == MD_VERSION_0_90 ? MEMBERS_090_MAX : GEOMETRY_SLOTS_MAX;
	const bool chunked = s->level != GEOMETRY_LEVEL_LINEAR && s->level != 1;

	if (s->raid_disks == 0 || s->raid_disks > most)
		return fault_set(a->fault, -EUCLEAN,
			"%s: superblock claims %" PRIu32 " raid devices; %s metadata has 1 to %u; "
			"the superblock is damaged, compare it with the others by --examine",
			a->best->path, s->raid_disks, md_format(s->version)->name, most);
	if (s->chunk_sectors > UINT32_MAX / MD_SECTOR || (chunked && s->chunk_sectors == 0))
		return fault_set(a->fault, -EUCLEAN,
			"%s: superblock claims a chunk of %" PRIu32
			" sectors, which makes no array; "
			"the superblock is damaged, compare it with the others by --examine",
			a->best->path, s->chunk_sectors);
	return 0;
}

/* What the freshest says of the array. */
static void start(struct assembling *a)
{
	const struct md_super *super = a->best->super;

	a->ret->super = super;
	a->ret->freshest = (unsigned)(a->best - a->candidates);
	a->ret->events = super->events;
	a->ret->slot_count = super->raid_disks;
	a->ret->level = super->level;
	a->ret->layout = super->layout;
	a->ret->chunk_bytes = super->chunk_sectors * MD_SECTOR;
	for (unsigned i = 0; i < a->count; i++)
		if (a->candidates[i].super->logical_block_bytes > a->ret->logical_block_bytes)
			a->ret->logical_block_bytes = a->candidates[i].super->logical_block_bytes;
}

/* A level: who assembles it. */
static const struct {
	int level;
	int (*assemble)(struct assembling *a);
} levels[] = {
	{GEOMETRY_LEVEL_LINEAR, assembly_striped},
	{0, assembly_striped},
	{1, assembly_redundant},
	{4, assembly_redundant},
	{5, assembly_redundant},
	{6, assembly_redundant},
	{10, assembly_redundant},
};

static int assemble_level(struct assembling *a)
{
	const struct md_super *s = a->best->super;
	int (*assemble)(struct assembling * a) = NULL;
	int result;

	for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++)
		if (levels[i].level == s->level)
			assemble = levels[i].assemble;
	if (assemble == NULL)
		return fault_set(a->fault, -EOPNOTSUPP,
			"not yet supported: level %s (recorded on %s); linear and raid0, 1, 4, 5, "
			"6 and 10 can be assembled, --examine shows the rest",
			md_level_name(s->level), a->best->path);
	if ((s->feature_map & (MD_FEATURE_RESHAPE | MD_FEATURE_NEW_OFFSET)) != 0)
		return fault_set(a->fault, -EOPNOTSUPP,
			"not yet supported: a reshape in progress (recorded on %s); let mdadm and "
			"the kernel finish it",
			a->best->path);
	result = check_numbers(a);
	if (result < 0)
		return result;
	start(a);
	return assemble(a);
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
	if (count > MD_CANDIDATES_MAX)
		return fault_set(fault, -E2BIG,
			"%u devices were given, more than the %u that are looked at in one go; "
			"name only the array's members",
			count, MD_CANDIDATES_MAX);
	a.best = find_freshest(candidates, count);
	for (unsigned i = 0; result == 0 && i < count; i++)
		result = check_same_array(&a, &candidates[i]);
	if (result == 0)
		result = assemble_level(&a);
	return result;
}
