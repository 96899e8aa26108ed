/* SPDX-License-Identifier: MIT */
#ifndef STRAKE_MD_ASSEMBLY_RIG_H
#define STRAKE_MD_ASSEMBLY_RIG_H

/* For tests of assembly: members of RAID 1, 4, 5, 6 and 10 as the real md leaves them. */

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "md/assembly.h"

#define MEMBERS_MAX 8u
#define SECTORS 131072u /* of a device */
#define SIZE 122880u    /* of a component */
#define EVENTS 20u
#define ELEMENTS(array) (sizeof(array) / sizeof((array)[0]))

/* An array of @count members (and @spares) as its superblocks tell it, all at the same events. */
struct set {
	struct md_super supers[MEMBERS_MAX];
	struct md_candidate candidates[MEMBERS_MAX];
	unsigned count;
	struct md_assembly_options options;
	struct md_assembly array;
	struct fault fault;
};

static const char *const paths[MEMBERS_MAX] = {
	"/dev/a", "/dev/b", "/dev/c", "/dev/d", "/dev/e", "/dev/f", "/dev/g", "/dev/h"};

static inline void set_role(struct md_super *super, unsigned number, unsigned role)
{
	struct md_super_090_disk *disk = &super->v090.disks[number];

	super->roles[number] = (uint16_t)role;
	if (super->version == MD_VERSION_0_90)
		*disk = (struct md_super_090_disk){number, 7, number,
			role <= MD_ROLE_SLOT_MAX ? role : number,
			role <= MD_ROLE_SLOT_MAX ? 6
			: role == MD_ROLE_FAULTY ? 1
						 : 0};
}

static inline void set_up_super(
	struct md_super *super, enum md_version version, int level, uint32_t layout, unsigned slots)
{
	super->version = version;
	memset(super->set_uuid, 0x11, 16);
	(void)snprintf(super->name, sizeof(super->name), "%s",
		version == MD_VERSION_0_90 ? "" : "host:data");
	super->ctime = super->utime = 1796081516;
	super->level = level;
	super->layout = layout;
	super->chunk_sectors = level == 1 ? 0 : 128;
	super->raid_disks = slots;
	super->size_sectors = SIZE;
	super->resync_offset = MD_CLEAN;
	super->events = EVENTS;
	super->role_count = version == MD_VERSION_0_90 ? 27 : 128;
	for (unsigned i = 0; i < MD_ROLES_MAX; i++)
		super->roles[i] = MD_ROLE_SPARE;
	for (unsigned i = 0; i < slots; i++)
		set_role(super, i, i);
	super->super_offset = version == MD_VERSION_1_0    ? SECTORS - 16
			      : version == MD_VERSION_1_2  ? 8
			      : version == MD_VERSION_0_90 ? SECTORS - 128
							   : 0;
	super->data_offset = version == MD_VERSION_1_1 || version == MD_VERSION_1_2 ? 2048 : 0;
	super->data_sectors = super->data_offset != 0 ? SECTORS - 2048 : super->super_offset;
}

static inline void set_up(struct set *set, enum md_version version, int level, uint32_t layout,
	unsigned slots, unsigned spares)
{
	memset(set, 0, sizeof(*set));
	set->count = slots + spares;
	for (unsigned i = 0; i < set->count; i++) {
		set_up_super(&set->supers[i], version, level, layout, slots);
		set->supers[i].dev_number = i;
		memset(set->supers[i].device_uuid, 0x20 + (int)i, 16);
		set->candidates[i] = (struct md_candidate){paths[i], SECTORS, &set->supers[i]};
	}
}

static inline int assemble(struct set *set)
{
	set->fault = (struct fault){0};
	return md_assemble(set->candidates, set->count, &set->options, &set->array, &set->fault);
}

/* Only the candidates in @mask, in their order or the reverse. */
static inline void keep(struct set *set, unsigned mask, bool reverse)
{
	const unsigned all = set->count;
	struct md_candidate kept[MEMBERS_MAX];

	set->count = 0;
	for (unsigned i = 0; i < all; i++) {
		unsigned from = reverse ? all - 1 - i : i;

		if ((mask >> from & 1) != 0)
			kept[set->count++] = set->candidates[from];
	}
	memcpy(set->candidates, kept, sizeof(kept));
}

/* @failed left; the others, at @events, say so (@how: faulty, or removed). */
static inline void leave(struct set *set, unsigned failed, uint64_t events, unsigned how)
{
	for (unsigned i = 0; i < set->count; i++) {
		if (i == failed || set->supers[i].roles[set->supers[i].dev_number] == how ||
			set->supers[i].events < set->supers[failed].events)
			continue;
		set->supers[i].events = events;
		set_role(&set->supers[i], set->supers[failed].dev_number, how);
	}
}

static inline void all_dirty(struct set *set)
{
	for (unsigned i = 0; i < set->count; i++)
		set->supers[i].resync_offset = 0;
}

static inline bool was_rejected(const struct set *set, unsigned super, enum md_rejection reason)
{
	for (unsigned i = 0; i < set->array.rejected_count; i++)
		if (set->candidates[set->array.rejected[i].candidate].super ==
				&set->supers[super] &&
			set->array.rejected[i].reason == reason)
			return true;
	return false;
}

static const struct md_assembly_device *find_device(const struct set *set, unsigned super)
{
	for (unsigned i = 0; i < set->array.device_count; i++)
		if (set->array.devices[i].super == &set->supers[super])
			return &set->array.devices[i];
	return NULL;
}

static inline void check(struct set *set, const char *name, int expected, const char *words)
{
	int result = assemble(set);

	print_message("%s: %d %s\n", name, result, set->fault.text);
	for (unsigned i = 0; i < set->array.rejected_count; i++) {
		char text[MD_ASSEMBLY_LINE_MAX];

		print_message("    %s\n",
			md_rejection_text(set->candidates, &set->array.rejected[i], text));
		assert_non_null(strstr(text, "/dev/"));
	}
	assert_int_equal(result, expected);
	assert_int_equal(set->fault.error, expected);
	if (words != NULL)
		assert_non_null(strstr(set->fault.text, words));
}

#endif
