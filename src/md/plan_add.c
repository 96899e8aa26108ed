/* SPDX-License-Identifier: MIT */
/*
 * Hot-add, and the words for consistency policies. A device that joins has what the array has:
 * mdadm copies a member's superblock and changes what is the device's own.
 */
#include "md/plan.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "md/plan_internal.h"
#include "util/rounding.h"

#define OWN_FEATURES                                                                              \
	((uint32_t)(MD_FEATURE_RECOVERY_OFFSET | MD_FEATURE_BAD_BLOCKS | MD_FEATURE_REPLACEMENT | \
		    MD_FEATURE_NEW_OFFSET | MD_FEATURE_RECOVERY_BITMAP))

static int check_array(const struct md_super *array, const struct md_plan_device *device,
	unsigned dev_number, struct fault *fault)
{
	const unsigned most = array->version == MD_VERSION_0_90 ? MD_PLAN_DEVICES_090_MAX
								: MD_ROLES_MAX;

	if (array->level < 1)
		return fault_set(fault, -EOPNOTSUPP,
			"%s cannot be added: level %s has no redundancy to rebuild it from",
			device->path, md_level_name(array->level));
	if ((array->feature_map & MD_FEATURE_RESHAPE) != 0)
		return fault_set(fault, -EBUSY,
			"%s cannot be added while the array is being reshaped; wait for its end",
			device->path);
	if (dev_number >= most)
		return fault_set(fault, -ERANGE,
			"%s cannot be added: %s metadata has room for %u devices only; remove "
			"faulty ones first",
			device->path, md_format(array->version)->name, most);
	return 0;
}

static int refuse_small(const struct md_super *array, const struct md_plan_device *device,
	uint64_t needed, struct fault *fault)
{
	return fault_set(fault, -ENOSPC,
		"%s is not large enough to join the array: it has %" PRIu64 " KiB, %" PRIu64
		" KiB are needed for %" PRIu64 " KiB of data and the metadata",
		device->path, device->sectors / MD_PLAN_KIB_SECTORS,
		(needed + 1) / MD_PLAN_KIB_SECTORS, array->size_sectors / MD_PLAN_KIB_SECTORS);
}

/* Sectors from the start of a bitmap before the superblock to its end: where data must end. */
static uint64_t kept_before(const struct md_super *super)
{
	const bool before = (super->feature_map & MD_FEATURE_BITMAP) != 0 &&
			    super->bitmap_offset < 0;

	return before ? (uint64_t) - (int64_t)super->bitmap_offset : 0;
}

/*
 * 1.0: as much before the superblock as at creation; no bad-block log if the data leaves no room
 * for it, or if the array's members have none (their mdadm was told so, or was too old).
 */
static int place_10(const struct md_super *array, const struct md_plan_device *device,
	struct md_super *super, struct fault *fault)
{
	const uint64_t kept = kept_before(array);
	const uint64_t needed = array->data_offset + array->size_sectors + kept;
	const uint64_t reserved = kept > 0 ? kept
					   : md_plan_bitmap_space(array->size_sectors) +
						     MD_PLAN_BBLOG_SECTORS;

	if (super->super_offset < needed)
		return refuse_small(array, device, needed + MD_PLAN_SUPER_SECTORS * 2, fault);
	super->bblog_sectors = 0;
	super->bblog_offset = 0;
	md_plan_place_before(super, reserved);
	if (array->bblog_sectors == 0) {
		super->bblog_sectors = 0;
		super->bblog_offset = 0;
	}
	return 0;
}

static int place(const struct md_super *array, const struct md_plan_device *device,
	struct md_super *super, struct fault *fault)
{
	const uint64_t needed = array->data_offset + array->size_sectors;

	if (md_format(array->version)->location(device->sectors, &super->super_offset) < 0)
		return refuse_small(array, device, needed + 2 * MD_PLAN_SUPER_SECTORS, fault);
	if (array->version == MD_VERSION_1_0)
		return place_10(array, device, super, fault);
	if (array->version == MD_VERSION_0_90) {
		super->data_sectors = super->super_offset;
		if (super->super_offset < needed)
			return refuse_small(array, device, round_up(needed + 128, 128), fault);
		return 0;
	}
	if (device->sectors < needed)
		return refuse_small(array, device, needed, fault);
	super->data_sectors = device->sectors - array->data_offset;
	return 0;
}

static void fill_role(
	const struct md_plan_device *device, unsigned dev_number, struct md_super *super)
{
	struct md_super_090 *old = &super->v090;

	super->dev_number = dev_number;
	for (; super->role_count <= dev_number; super->role_count++)
		super->roles[super->role_count] = MD_ROLE_SPARE;
	super->roles[dev_number] = MD_ROLE_SPARE;
	if (super->version != MD_VERSION_0_90)
		return;
	old->this_disk = (struct md_super_090_disk){
		.number = dev_number,
		.major = device->major,
		.minor = device->minor,
		.raid_disk = dev_number,
		.state = (uint32_t)super->devflags << 9,
	};
	old->disks[dev_number] = old->this_disk;
	old->nr_disks++;
	old->spare_disks++;
	old->working_disks++;
}

int md_plan_add(const struct md_super *array, const struct md_plan_device *device,
	unsigned dev_number, struct md_super *ret, struct fault *fault)
{
	int r = check_array(array, device, dev_number, fault);

	if (r < 0)
		return r;
	*ret = *array;
	r = place(array, device, ret, fault);
	if (r < 0)
		return r;
	ret->feature_map &= ~OWN_FEATURES;
	ret->new_offset = 0;
	ret->recovery_offset = 0;
	ret->journal_tail = 0;
	ret->corrected_reads = 0;
	ret->devflags = (device->write_mostly ? MD_DEVFLAG_WRITE_MOSTLY : 0) |
			(device->failfast ? MD_DEVFLAG_FAILFAST : 0);
	memcpy(ret->device_uuid, device->device_uuid, sizeof(ret->device_uuid));
	fill_role(device, dev_number, ret);
	return 0;
}

static const char *const policies[] = {
	[MD_CONSISTENCY_DEFAULT] = "unknown",
	[MD_CONSISTENCY_NONE] = "none",
	[MD_CONSISTENCY_RESYNC] = "resync",
	[MD_CONSISTENCY_BITMAP] = "bitmap",
	[MD_CONSISTENCY_JOURNAL] = "journal",
	[MD_CONSISTENCY_PPL] = "ppl",
};

const char *md_consistency_name(enum md_consistency consistency)
{
	return policies[consistency];
}

int md_consistency_parse(const char *text, enum md_consistency *ret)
{
	for (unsigned i = MD_CONSISTENCY_NONE; i <= MD_CONSISTENCY_PPL; i++) {
		if (strcmp(text, policies[i]) == 0) {
			*ret = (enum md_consistency)i;
			return 0;
		}
	}
	return -EINVAL;
}

enum md_consistency md_consistency_of(const struct md_super *super)
{
	if (super->level < 1)
		return MD_CONSISTENCY_NONE;
	if ((super->feature_map & MD_FEATURE_JOURNAL) != 0)
		return MD_CONSISTENCY_JOURNAL;
	if ((super->feature_map & (MD_FEATURE_PPL | MD_FEATURE_MULTIPLE_PPL)) != 0)
		return MD_CONSISTENCY_PPL;
	return (super->feature_map & MD_FEATURE_BITMAP) != 0 ? MD_CONSISTENCY_BITMAP
							     : MD_CONSISTENCY_RESYNC;
}
