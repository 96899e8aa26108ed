/* SPDX-License-Identifier: MIT */
#include "cli/members.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/say.h"
#include "geometry/geometry.h"
#include "probe/probe.h"
#include "util/cleanup.h"

static int refuse_same(const struct member_set *set, unsigned index, struct fault *fault)
{
	unsigned i;

	for (i = 0; i < index; i++) {
		if (member_is_same(set->members[i], set->members[index]))
			return fault_set(fault, -EINVAL,
				"%s and %s are the same device: a device can be a member only "
				"once; nothing was done",
				set->members[i]->path, set->members[index]->path);
	}
	return 0;
}

static int open_all(struct member_set *set, char *const *paths, unsigned count, unsigned flags,
	struct fault *fault)
{
	int r = 0;

	*set = (struct member_set){.members = calloc(count + 1, sizeof(*set->members))};
	if (set->members == NULL)
		return fault_set(fault, -ENOMEM, "no memory for %u members", count);
	while (r == 0 && set->count < count) {
		r = member_open(paths[set->count], flags, &set->members[set->count], fault);
		if (r < 0)
			break;
		set->count++;
		r = refuse_same(set, set->count - 1, fault);
	}
	if (r < 0)
		member_set_close(set);
	return r;
}

/*
 * First without taking anything: a device named twice would otherwise be refused as "in use", by
 * ourselves.
 */
int member_set_open(struct member_set *set, char *const *paths, unsigned count, unsigned flags,
	struct fault *fault)
{
	int r;

	r = open_all(set, paths, count, MEMBER_READONLY | MEMBER_BUFFERED, fault);
	if (r < 0)
		return r;
	member_set_close(set);
	return open_all(set, paths, count, flags, fault);
}

void member_set_close(struct member_set *set)
{
	unsigned i;

	for (i = 0; i < set->count; i++)
		member_close(set->members[i]);
	free(set->members);
	free(set->supers);
	*set = (struct member_set){NULL, NULL, 0};
}

static bool stands_at_end(const struct md_super *super)
{
	return super->version == MD_VERSION_0_90 || super->version == MD_VERSION_1_0;
}

/* Another member whose superblock stands at its end, read into its place in the set. */
static const struct md_super *find_at_end(
	const struct member_set *set, unsigned index, const struct member **ret)
{
	unsigned i;

	for (i = 0; i < set->count; i++) {
		struct md_super *super = &set->supers[i];

		if (i == index || (i > index && probe_read_super(set->members[i], super, NULL) < 0))
			continue;
		if (stands_at_end(super)) {
			*ret = set->members[i];
			return super;
		}
	}
	return NULL;
}

/* Does @member hold a superblock of the same array where it stands on a device like @other? */
static bool has_leftover(
	const struct member *member, const struct member *other, const struct md_super *super)
{
	_cleanup_free_ struct md_super *found = calloc(1, sizeof(*found));
	_cleanup_free_ uint8_t *block = malloc(MD_SUPER_BYTES);
	uint64_t sector = super->super_offset;

	return found != NULL && block != NULL &&
	       sector * MD_SECTOR + MD_SUPER_BYTES <= member->size_bytes &&
	       member_read(member, sector * MD_SECTOR, block, MD_SUPER_BYTES) == 0 &&
	       md_format(super->version)
			       ->decode(block, sector, other->size_bytes / MD_SECTOR, found,
				       NULL) == 0 &&
	       memcmp(found->set_uuid, super->set_uuid, sizeof(found->set_uuid)) == 0;
}

/* A device whose size has changed has its superblock at what is its end no more. */
static int refuse_bare(const struct member_set *set, unsigned index, struct fault *fault)
{
	const struct member *member = set->members[index], *other = NULL;
	const struct md_super *super;

	(void)fault_set(fault, -ENODATA,
		"no md superblock on %s: it is no member of an array; name only members ('strake "
		"examine FILE…' tells them)",
		member->path);
	super = find_at_end(set, index, &other);
	if (super == NULL)
		return -ENODATA;
	if (has_leftover(member, other, super))
		return fault_append(fault,
			"\nit was one, and has been enlarged: a superblock of this array stands at "
			"byte %" PRIu64 ", where a device of %" PRIu64 " bytes ends (like %s), and "
			"this one has %" PRIu64 ": cut it to that size again",
			super->super_offset * MD_SECTOR, other->size_bytes, other->path,
			member->size_bytes);
	return fault_append(fault,
		"\nsuperblocks of this array (%s) stand at the end of its members, where they are "
		"not found any more once a device was enlarged or cut: %s has %" PRIu64
		" bytes, %s has %" PRIu64,
		md_format(super->version)->name, member->path, member->size_bytes, other->path,
		other->size_bytes);
}

int member_set_read(struct member_set *set, struct fault *fault)
{
	unsigned i;
	int r;

	set->supers = calloc(set->count + 1, sizeof(*set->supers));
	if (set->supers == NULL)
		return fault_set(fault, -ENOMEM, "no memory for %u superblocks", set->count);
	for (i = 0; i < set->count; i++) {
		r = probe_read_super(set->members[i], &set->supers[i], fault);
		if (r == -ENODATA)
			return refuse_bare(set, i, fault);
		if (r < 0)
			return fault_append(fault, "; check it with 'strake examine %s'",
				set->members[i]->path);
	}
	return 0;
}

static void fill_candidates(const struct member_set *set, struct md_candidate *candidates)
{
	for (unsigned i = 0; i < set->count; i++)
		candidates[i] = (struct md_candidate){
			.path = set->members[i]->path,
			.device_sectors = set->members[i]->size_bytes / MD_SECTOR,
			.super = &set->supers[i],
		};
}

int member_set_assemble(const struct member_set *set, const struct md_assembly_options *options,
	struct md_assembly **ret, struct fault *fault)
{
	_cleanup_free_ struct md_candidate *candidates = NULL;
	_cleanup_free_ struct md_assembly *assembly = NULL;
	int r;

	candidates = calloc(set->count + 1, sizeof(*candidates));
	assembly = calloc(1, sizeof(*assembly));
	if (candidates == NULL || assembly == NULL)
		return fault_set(fault, -ENOMEM, "no memory to assemble %u members", set->count);
	fill_candidates(set, candidates);
	r = md_assemble(candidates, set->count, options, assembly, fault);
	if (r == 0)
		r = assembly_check(assembly, fault);
	if (r < 0)
		return r;
	*ret = steal_ptr(assembly);
	return 0;
}

void member_set_say_rejected(const struct member_set *set, const struct md_assembly *assembly)
{
	_cleanup_free_ struct md_candidate *candidates = calloc(set->count, sizeof(*candidates));
	char text[MD_ASSEMBLY_LINE_MAX];

	if (candidates == NULL)
		return;
	fill_candidates(set, candidates);
	for (unsigned i = 0; i < assembly->rejected_count; i++)
		say("%s", md_rejection_text(candidates, &assembly->rejected[i], text));
}

int member_set_force(
	struct member_set *set, const struct md_assembly *assembly, struct fault *fault)
{
	_cleanup_free_ struct md_candidate *candidates = calloc(set->count, sizeof(*candidates));
	char text[MD_ASSEMBLY_LINE_MAX];
	int r = 0;

	if (candidates == NULL)
		return fault_set(fault, -ENOMEM, "no memory for %u members", set->count);
	fill_candidates(set, candidates);
	for (unsigned i = 0; r == 0 && i < assembly->change_count; i++) {
		const struct md_assembly_change *change = &assembly->changes[i];
		const unsigned index = change->candidate;

		say("%s", md_change_text(candidates, change, text));
		md_change_apply(change, &set->supers[index]);
		r = probe_write_super(set->members[index], &set->supers[index], fault);
	}
	if (r < 0)
		(void)fault_append(fault,
			"; what was said before is written, and the array was not started: repeat "
			"it with --force when the cause is gone");
	return r;
}

static bool is_rejected(const struct md_assembly *assembly, unsigned candidate)
{
	for (unsigned i = 0; i < assembly->rejected_count; i++)
		if (assembly->rejected[i].candidate == candidate)
			return candidate != assembly->freshest;
	return false;
}

/* Where each went: @now by former candidate. */
static void renumber(
	const struct member_set *set, const unsigned *now, struct md_assembly *assembly)
{
	for (unsigned i = 0; i < assembly->slot_count; i++) {
		struct md_assembly_slot *slot = &assembly->slots[i];

		if (slot->candidate >= 0)
			slot->candidate = (int)now[slot->candidate];
		if (slot->replacement >= 0)
			slot->replacement = (int)now[slot->replacement];
	}
	for (unsigned i = 0; i < assembly->device_count; i++) {
		struct md_assembly_device *device = &assembly->devices[i];

		device->candidate = now[device->candidate];
		device->super = &set->supers[device->candidate];
	}
	assembly->freshest = now[assembly->freshest];
	assembly->super = &set->supers[assembly->freshest];
	assembly->rejected_count = 0;
	assembly->change_count = 0;
}

void member_set_drop_rejected(struct member_set *set, struct md_assembly *assembly)
{
	_cleanup_free_ unsigned *now = calloc(set->count + 1, sizeof(*now));
	unsigned count = 0;

	if (now == NULL || assembly->rejected_count == 0)
		return; /* held as long as the array runs: no harm but to who wants them */
	for (unsigned i = 0; i < set->count; i++) {
		if (is_rejected(assembly, i)) {
			member_close(set->members[i]);
			continue;
		}
		now[i] = count;
		set->members[count] = set->members[i];
		if (count != i)
			set->supers[count] = set->supers[i];
		count++;
	}
	set->count = count;
	renumber(set, now, assembly);
}

int assembly_check(const struct md_assembly *assembly, struct fault *fault)
{
	_cleanup_free_ uint64_t *bytes = calloc(assembly->slot_count + 1, sizeof(*bytes));
	struct geometry_config config = {assembly->level, assembly->layout, assembly->chunk_bytes,
		assembly->slot_count, bytes};
	struct geometry *geometry;
	unsigned i;
	int r;

	if (assembly->level > 0) /* its geometry is checked by the engine */
		return 0;
	if (bytes == NULL)
		return fault_set(fault, -ENOMEM, "no memory for %u slots", assembly->slot_count);
	for (i = 0; i < assembly->slot_count; i++)
		bytes[i] = assembly->slots[i].data_bytes;
	r = geometry_new(&config, &geometry, fault);
	if (r == 0)
		geometry_free(geometry);
	return r;
}
