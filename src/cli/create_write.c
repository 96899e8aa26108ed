/* SPDX-License-Identifier: MIT */

/*
 * create: writing. On each member first the bitmap, then the superblock that makes it count. If any
 * write fails, what stood on all members is put back.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/create.h"
#include "util/cleanup.h"

static int remember_bitmap(struct creation *creation, unsigned index)
{
	const struct member *member = creation->set.members[index];
	struct creation_old *old = &creation->old[index];
	uint64_t room;
	int r;

	if (creation->bitmap_bytes == 0)
		return 0;
	r = md_bitmap_location(
		&creation->set.supers[index], &old->bitmap_sector, &room, creation->fault);
	if (r < 0)
		return r;
	old->bitmap = malloc(creation->bitmap_bytes);
	if (old->bitmap == NULL)
		return fault_set(creation->fault, -ENOMEM, "no memory for a bitmap");
	r = member_read(
		member, old->bitmap_sector * MD_SECTOR, old->bitmap, creation->bitmap_bytes);
	if (r < 0)
		return fault_set(creation->fault, r,
			"%s: cannot read the place of the bitmap (%zu bytes at byte %" PRIu64
			"): %s; nothing was written; check the device",
			member->path, creation->bitmap_bytes, old->bitmap_sector * MD_SECTOR,
			strerror(-r));
	return 0;
}

static int remember(struct creation *creation)
{
	int r = 0;

	creation->old = calloc(creation->set.count, sizeof(*creation->old));
	creation->now = malloc(creation->bitmap_bytes + MD_SUPER_BYTES);
	if (creation->old == NULL || creation->now == NULL)
		return fault_set(
			creation->fault, -ENOMEM, "no memory for %u members", creation->set.count);
	for (unsigned i = 0; r == 0 && i < creation->set.count; i++) {
		r = probe_read_blocks(
			creation->set.members[i], &creation->old[i].supers, creation->fault);
		if (r == 0)
			r = remember_bitmap(creation, i);
	}
	return r;
}

/*
 * Only what changed is written: a member that refuses writes was not changed either. @now is room
 * for @bytes, for that must not fail now.
 */
static int restore_area(const struct member *member, uint64_t offset_bytes, const void *old,
	size_t bytes, void *now)
{
	int r = member_read(member, offset_bytes, now, bytes);

	if (r == 0 && memcmp(now, old, bytes) == 0)
		return 0;
	r = member_write(member, offset_bytes, old, bytes);
	return r < 0 ? r : member_sync(member);
}

/* The superblocks first: what they say of the bitmap must hold as long as they stand there. */
static int restore_one(const struct creation *creation, unsigned index)
{
	const struct member *member = creation->set.members[index];
	const struct creation_old *old = &creation->old[index];
	int r = 0;

	for (unsigned version = 0; r == 0 && version < MD_VERSIONS; version++)
		if (old->supers.present[version])
			r = restore_area(member, old->supers.sector[version] * MD_SECTOR,
				old->supers.block[version], MD_SUPER_BYTES, creation->now);
	if (r == 0 && old->bitmap != NULL)
		r = restore_area(member, old->bitmap_sector * MD_SECTOR, old->bitmap,
			creation->bitmap_bytes, creation->now);
	return r;
}

/* After a failed write: put back what stood there, on all members that were reached. */
static void restore(struct creation *creation, unsigned count)
{
	unsigned failed = 0;
	int r;

	for (unsigned i = 0; i < count; i++) {
		r = restore_one(creation, i);
		if (r < 0)
			(void)fault_append(creation->fault,
				"\n%s: what stood there could not be put back: %s",
				creation->set.members[i]->path, strerror(-r));
		failed += r < 0;
	}
	if (failed == 0)
		(void)fault_append(creation->fault, "\nthe superblock areas of all members are as "
						    "they were before; create it again "
						    "when the cause is gone");
}

static int write_bitmap(const struct creation *creation, unsigned index)
{
	const struct member *member = creation->set.members[index];
	uint64_t at = creation->old[index].bitmap_sector * MD_SECTOR;
	int r;

	if (creation->bitmap_bytes == 0)
		return 0;
	r = member_write(member, at, creation->bitmap_area, creation->bitmap_bytes);
	if (r == 0)
		r = member_sync(member);
	if (r < 0)
		return fault_set(creation->fault, r,
			"%s: cannot write the bitmap (%zu bytes at byte %" PRIu64 "): %s",
			member->path, creation->bitmap_bytes, at, strerror(-r));
	return 0;
}

/* With consent, superblocks at other places go: assembly must not find two truths. */
static int write_one(struct creation *creation, unsigned index)
{
	const struct member *member = creation->set.members[index];
	int r = 0;

	if (creation->findings > 0)
		r = probe_zero_supers(member, creation->fault);
	if (r >= 0)
		r = write_bitmap(creation, index);
	return r < 0 ? r : probe_write_super(member, &creation->set.supers[index], creation->fault);
}

int creation_write(struct creation *creation)
{
	int r = remember(creation);

	for (unsigned i = 0; r == 0 && i < creation->set.count; i++) {
		r = write_one(creation, i);
		if (r < 0) {
			(void)fault_prefix(creation->fault, "create %s: ", creation->name);
			restore(creation, i + 1);
		}
	}
	return r;
}
