/* SPDX-License-Identifier: MIT */
#include "control/redundancy.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/rounding.h"

/* Room for devices that come while the array runs: spares, and a replacement for each of a few. */
#define DEVICES_MORE 8u

static struct engine_device device_of(
	const struct md_assembly_device *device, struct member *const *members)
{
	const struct member *member = members[device->candidate];

	return (struct engine_device){
		.member = device->candidate,
		.slot = device->slot <= MD_ROLE_SLOT_MAX ? device->slot : ENGINE_NONE,
		.in_sync = device->in_sync,
		.replacement = device->replacement,
		.write_mostly = device->write_mostly,
		.failfast = device->failfast,
		.recovered_bytes = device->recovery_offset_bytes,
		.data_offset_bytes = device->data_offset_bytes,
		.data_bytes = device->data_bytes,
		.logical_block_bytes = member->logical_block_bytes,
		.super = device->super,
	};
}

static const struct md_assembly_device *first_in_sync(const struct md_assembly *assembly)
{
	for (unsigned i = 0; i < assembly->device_count; i++)
		if (assembly->devices[i].in_sync)
			return &assembly->devices[i];
	return NULL;
}

/* A header that says where the bits are and how many, for a bitmap that must be made anew. */
static void make_anew(const struct md_super *super, uint64_t room_sectors,
	struct engine_bitmap *bitmap, struct fault *fault)
{
	uint32_t chunk_bytes = 0;

	bitmap->stale = true;
	if (md_bitmap_choose_chunk(
		    md_bitmap_sync_sectors(super), room_sectors, 0, &chunk_bytes, fault) == 0)
		md_bitmap_init(super, chunk_bytes, &bitmap->header);
}

static int judge(const struct md_super *super, uint64_t room_sectors, struct redundancy *ret,
	struct fault *note)
{
	int r = md_bitmap_decode(ret->bitmap_area, &ret->bitmap.header, note);

	ret->bitmap.bits = (const uint8_t *)ret->bitmap_area + MD_BITMAP_HEADER_BYTES;
	if (r == 0)
		r = md_bitmap_check(&ret->bitmap.header, super, note);
	if (r == -ESTALE)
		ret->bitmap.stale = true;
	else if (r < 0)
		make_anew(super, room_sectors, &ret->bitmap, note);
	if (r < 0)
		(void)fault_append(note, "; all of the array counts as changed");
	ret->engine.bitmap = &ret->bitmap;
	return 0;
}

static int read_bitmap(const struct md_assembly *assembly, struct member *const *members,
	struct redundancy *ret, struct fault *note, struct fault *fault)
{
	const struct md_assembly_device *device = first_in_sync(assembly);
	uint64_t sector, room_sectors;
	size_t bytes;
	int r;

	if (device == NULL || device->super == NULL ||
		(assembly->super->feature_map & MD_FEATURE_BITMAP) == 0)
		return 0;
	r = md_bitmap_location(device->super, &sector, &room_sectors, fault);
	if (r == -ENODATA)
		return 0;
	if (r < 0) {
		(void)fault_prefix(fault, "%s: ", members[device->candidate]->path);
		return fault_append(fault,
			"; the superblock is damaged: compare it with the others ('strake examine "
			"FILE…')");
	}
	bytes = (size_t)room_sectors * MD_SECTOR;
	ret->bitmap_area = calloc(1, round_up(bytes, MD_BITMAP_BLOCK_BYTES));
	if (ret->bitmap_area == NULL)
		return fault_set(fault, -ENOMEM, "no memory for a bitmap of %zu bytes", bytes);
	r = member_read(members[device->candidate], sector * MD_SECTOR, ret->bitmap_area, bytes);
	if (r < 0)
		return fault_set(fault, r, "%s: cannot read the write-intent bitmap: %s",
			members[device->candidate]->path, strerror(-r));
	return judge(assembly->super, room_sectors, ret, note);
}

static int read_log(const struct md_super *super, const struct member *member,
	struct md_badblocks *ret, struct fault *fault)
{
	uint8_t log[MD_BADBLOCKS_LOG_BYTES];
	uint64_t sector, sectors;
	int r;

	r = md_badblocks_location(super, &sector, &sectors);
	if (r < 0 || sectors * MD_SECTOR > sizeof(log))
		return fault_set(fault, -EUCLEAN,
			"%s: its superblock says that there are bad blocks, but not where their "
			"log is; look at it with --examine",
			member->path);
	r = member_read(member, sector * MD_SECTOR, log, sectors * MD_SECTOR);
	if (r < 0)
		return fault_set(fault, r, "%s: cannot read the bad-block log: %s", member->path,
			strerror(-r));
	r = md_badblocks_decode(super, log, ret, fault);
	if (r < 0)
		(void)fault_prefix(fault, "%s: ", member->path);
	return r;
}

/*
 * What a log names must not be read; that the array is not started without it is the engine's rule.
 * Where the superblock says that there is nothing in it, the log is empty, and there to be filled.
 */
static int read_logs(const struct md_assembly *assembly, struct member *const *members,
	struct redundancy *ret, struct fault *fault)
{
	unsigned count = assembly->device_count;
	int r = 0;

	ret->bad = calloc(count + 1, sizeof(*ret->bad));
	if (ret->bad == NULL)
		return fault_set(fault, -ENOMEM, "no memory for bad-block logs");
	for (unsigned i = 0; i < count && r == 0; i++) {
		const struct md_assembly_device *device = &assembly->devices[i];

		if (device->super == NULL)
			continue;
		md_badblocks_init(device->super, &ret->bad[i]);
		ret->devices[i].bad = &ret->bad[i];
		if (device->has_bad_blocks)
			r = read_log(
				device->super, members[device->candidate], &ret->bad[i], fault);
	}
	return r;
}

int redundancy_gather(const struct md_assembly *assembly, struct member *const *members,
	struct redundancy *ret, struct fault *note, struct fault *fault)
{
	unsigned count = assembly->device_count;
	int r;

	*ret = (struct redundancy){.devices = calloc(count + 1, sizeof(*ret->devices))};
	if (ret->devices == NULL)
		return fault_set(fault, -ENOMEM, "no memory for %u devices", count);
	for (unsigned i = 0; i < count; i++)
		ret->devices[i] = device_of(&assembly->devices[i], members);
	ret->engine = (struct engine_redundancy){
		.component_bytes = assembly->component_bytes,
		.resync_bytes = assembly->clean ? UINT64_MAX : assembly->resync_offset_bytes,
		.devices = ret->devices,
		.device_count = count,
		.device_max = max_u64(count, assembly->slot_count) + DEVICES_MORE,
	};
	r = read_bitmap(assembly, members, ret, note, fault);
	if (r == 0)
		r = read_logs(assembly, members, ret, fault);
	if (r < 0)
		redundancy_free(ret);
	return r;
}

unsigned redundancy_member_max(const struct md_assembly *assembly, unsigned member_count)
{
	if (!engine_level_is_redundant(assembly->level))
		return member_count;
	return member_count + assembly->slot_count + DEVICES_MORE;
}

void redundancy_free(struct redundancy *redundancy)
{
	free(redundancy->devices);
	free(redundancy->bitmap_area);
	free(redundancy->bad);
	*redundancy = (struct redundancy){0};
}
