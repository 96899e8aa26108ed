/* SPDX-License-Identifier: MIT */

/* What follows from a superblock's fields, worked out as mdadm 4.2 does (observed, see golden/). */

#include "cli/show/examine.h"
#include "cli/show/format.h"
#include "util/rounding.h"

#define SUPER_AREA_SECTORS 72u /* what the kernel keeps free behind the start of the superblock */
#define BITMAP_HEADER_BYTES 256u
#define DISK_IN_SYNC 0x4u /* of a 0.90 descriptor */

uint64_t examine_seconds(uint64_t stored)
{
	return stored & UINT64_C(0xffffffffff);
}

static bool has_bitmap(const struct md_super *super)
{
	return (super->feature_map & MD_FEATURE_BITMAP) != 0;
}

static bool has_ppl(const struct md_super *super)
{
	return (super->feature_map & (MD_FEATURE_PPL | MD_FEATURE_MULTIPLE_PPL)) != 0;
}

/* Sectors of the member that the array uses, from the data offset on. */
static uint64_t used_sectors(const struct md_super *super)
{
	return super->level > 0 ? super->size_sectors : super->data_sectors;
}

static struct examine_unused unused_before_super(const struct md_super *super)
{
	struct examine_unused ret = {.before = super->data_offset, .known = true};
	uint64_t data_end = super->data_offset + used_sectors(super);
	uint64_t end = super->super_offset;
	uint64_t area = super->super_offset;

	if (super->bblog_sectors != 0 && super->bblog_offset != 0 &&
		super->super_offset + super->bblog_offset < end)
		end = super->super_offset + super->bblog_offset;
	if (has_bitmap(super))
		area += super->bitmap_offset;
	else if (has_ppl(super))
		area += super->ppl_offset;
	end = min_u64(end, area);

	ret.after = data_end < end ? end - data_end : 0;
	return ret;
}

/*
 * Where the bitmap or the partial parity log ends. mdadm counts it from the superblock and then
 * takes it for a sector of the device (8 too few for version 1.2); the text is to be the same.
 */
static uint64_t area_end(const struct examine_device *device)
{
	const struct md_super *super = &device->super;
	uint64_t bytes;

	if (has_bitmap(super) && super->bitmap_offset > 0 && device->bitmap.found &&
		device->bitmap.chunk_sectors > 0) {
		bytes = device->bitmap.sync_sectors / device->bitmap.chunk_sectors;
		bytes = (bytes + 7) / 8 + BITMAP_HEADER_BYTES;
		return super->bitmap_offset + round_up(bytes, 4096) / MD_SECTOR;
	}
	if (has_ppl(super) && super->ppl_offset > 0)
		return super->ppl_offset + super->ppl_sectors;
	return 0;
}

static struct examine_unused unused_behind_super(const struct examine_device *device)
{
	const struct md_super *super = &device->super;
	struct examine_unused ret = {.known = true};
	uint64_t earliest = super->super_offset + SUPER_AREA_SECTORS;
	uint64_t bblog_end = super->super_offset + super->bblog_offset + super->bblog_sectors;

	earliest = max_u64(earliest, area_end(device));
	if (super->bblog_sectors != 0 && super->bblog_offset != 0)
		earliest = max_u64(earliest, bblog_end);

	ret.before = earliest < super->data_offset ? super->data_offset - earliest : 0;
	ret.after = device->device_sectors - super->data_offset - used_sectors(super);
	return ret;
}

struct examine_unused examine_unused(const struct examine_device *device)
{
	const struct md_super *super = &device->super;
	struct examine_unused ret = {0};

	if ((super->feature_map & MD_FEATURE_NEW_OFFSET) != 0 || super->version == MD_VERSION_0_90)
		return ret;
	ret = super->data_offset < super->super_offset ? unused_before_super(super)
						       : unused_behind_super(device);
	/* A journal is used whole, whatever the array's size. */
	if (md_super_role(super) == MD_ROLE_JOURNAL)
		ret.after = (device->device_sectors - super->data_offset) % 8;
	return ret;
}

bool examine_array_bytes(const struct md_super *super, uint64_t *ret)
{
	uint64_t member_bytes = super->size_sectors * MD_SECTOR;
	int64_t data_members = 0, copies = 1;

	switch (super->level) {
	case 1:
		data_members = 1;
		break;
	case 4:
	case 5:
		data_members = (int64_t)super->raid_disks - 1;
		break;
	case 6:
		data_members = (int64_t)super->raid_disks - 2;
		break;
	case 10:
		data_members = super->raid_disks;
		copies = (int64_t)(super->layout & 255) * ((super->layout >> 8) & 255);
		break;
	}
	if (data_members == 0 || copies == 0)
		return false;
	*ret = member_bytes * (uint64_t)data_members / (uint64_t)copies;
	return true;
}

bool examine_array_state(const struct md_super *super, char *ret)
{
	uint64_t slots = super->raid_disks;
	uint16_t counts[MD_ROLES_MAX] = {0};
	unsigned roles = super->role_count < MD_ROLES_MAX ? super->role_count : MD_ROLES_MAX;
	unsigned max = super->level == 0 ? 1 : 2;
	bool consistent = true;

	if ((super->feature_map & MD_FEATURE_RESHAPE) != 0 && super->delta_disks < 0)
		slots += (uint64_t)(-(int64_t)super->delta_disks);
	slots = min_u64(slots, MD_ROLES_MAX);

	for (unsigned i = 0; i < roles; i++)
		if (super->roles[i] < slots)
			counts[super->roles[i]]++;
		else if (super->roles[i] > slots && super->roles[i] < EXAMINE_NO_SLOT)
			consistent = false;
	for (unsigned i = 0; i < slots; i++) {
		bool is_odd = counts[i] > max; /* RAID 0 knows no replacement */

		ret[i] = is_odd ? '?' : ".AR"[counts[i]];
		consistent = consistent && !is_odd;
	}
	ret[slots] = '\0';
	return consistent;
}

bool examine_is_local(const struct md_super *super, const char *homehost)
{
	if (super->version == MD_VERSION_0_90)
		return uuid_is_local(super->set_uuid, homehost);
	return name_is_local(super->name, homehost);
}

bool examine_is_active(const struct md_super *super)
{
	if (super->version == MD_VERSION_0_90)
		return (super->v090.this_disk.state & DISK_IN_SYNC) != 0;
	return md_super_role(super) < MD_ROLE_JOURNAL &&
	       (super->feature_map & MD_FEATURE_REPLACEMENT) == 0;
}
