/* SPDX-License-Identifier: MIT */
/*
 * The fields of a new member's superblock, and the bitmap beside it, as mdadm 4.2 writes them:
 * compared byte by byte with what it wrote (plan_golden_test.c). Where this differs on purpose:
 *  - a member with --write-mostly or --failfast that becomes a spare: mdadm 4.2 gives it the role
 *    "faulty" in the superblocks of 1.x, here it is a spare;
 *  - version 0.90: mdadm 4.2 does not write these flags at all, though the kernel reads them and
 *    writes them with its first update; here they are written.
 */
#include "md/plan_internal.h"

#include <assert.h>
#include <string.h>

#include "geometry/geometry.h"
#include "md/sha1.h"
#include "util/rounding.h"

#define DISK_ACTIVE_IN_SYNC 6u
#define DISK_FLAGS_SHIFT 9u /* of 0.90's state word: write-mostly, then failfast */

uint64_t md_plan_bitmap_space(uint64_t sectors)
{
	if (sectors < 128)
		return 0;
	if (sectors - 128 >= UINT64_C(419430400))
		return 256;
	return sectors - 8 > 16777216 ? 128 : 8;
}

uint64_t md_plan_bitmap_sectors(uint64_t sync_sectors, uint32_t chunk_bytes)
{
	return md_bitmap_bytes(sync_sectors / (chunk_bytes / MD_SECTOR) + 1) / MD_SECTOR;
}

/* The areas of version 1.0 lie before the superblock at the end of the device (1.9). */
void md_plan_place_before(struct md_super *super, uint64_t reserved)
{
	const uint64_t position = super->super_offset;
	const uint64_t used = super->data_offset + super->size_sectors;

	if (position < used + reserved)
		reserved = position > used ? position - used : 0;
	super->data_sectors = position - reserved - super->data_offset;
	if (reserved >= MD_PLAN_BBLOG_SECTORS) {
		super->bblog_sectors = MD_PLAN_BBLOG_SECTORS;
		super->bblog_offset = -(int32_t)MD_PLAN_BBLOG_SECTORS;
	}
}

/* Versions 1.1 and 1.2: superblock, bitmap or room for one, bad-block log, data (1.9). */
static void place_after(
	const struct md_plan_device *device, uint64_t bitmap, struct md_super *super)
{
	const uint64_t room = super->data_offset - super->super_offset;

	super->data_sectors = device->sectors - super->data_offset;
	if (room >= MD_PLAN_SUPER_SECTORS + bitmap + MD_PLAN_BBLOG_SECTORS)
		super->bblog_offset = (int32_t)(MD_PLAN_SUPER_SECTORS + bitmap);
	else if (room >= MD_PLAN_SUPER_SECTORS + MD_PLAN_BBLOG_SECTORS)
		super->bblog_offset = (int32_t)(room - MD_PLAN_BBLOG_SECTORS);
	else
		return;
	super->bblog_sectors = MD_PLAN_BBLOG_SECTORS;
}

static void place(
	const struct md_plan *plan, const struct md_plan_device *device, struct md_super *super)
{
	const uint64_t bitmap = plan->bitmap_sectors > 0 ? plan->bitmap_sectors
							 : md_plan_bitmap_space(plan->size);

	/* The checks have seen that there is a location. */
	(void)md_format(super->version)->location(device->sectors, &super->super_offset);
	super->data_offset = plan->data_offset;
	if (super->version == MD_VERSION_0_90)
		super->data_sectors = super->super_offset;
	else if (super->version == MD_VERSION_1_0)
		md_plan_place_before(super, bitmap + MD_PLAN_BBLOG_SECTORS);
	else
		place_after(device, bitmap, super);
	if (plan->bitmap_sectors == 0)
		return;
	super->feature_map |= MD_FEATURE_BITMAP;
	super->bitmap_offset = super->version == MD_VERSION_1_0
				       ? -(int32_t)(plan->bitmap_sectors + MD_PLAN_BBLOG_SECTORS)
				       : (int32_t)MD_PLAN_SUPER_SECTORS;
}

/* Words 2 and 3 of a 0.90 UUID name the host: first 8 bytes of SHA-1, each word swapped (2.4). */
static void stamp_homehost(const char *homehost, uint8_t uuid[16])
{
	uint8_t digest[MD_SHA1_BYTES];

	md_sha1(homehost, strlen(homehost), digest);
	for (unsigned i = 0; i < 8; i++)
		uuid[8 + i] = digest[i ^ 3];
}

static void fill_times(const struct md_plan *plan, struct md_super *super)
{
	super->ctime = plan->options->now_seconds & ((UINT64_C(1) << 40) - 1);
	if (super->version != MD_VERSION_0_90)
		super->ctime |= (uint64_t)plan->options->now_microseconds << 40;
	super->utime = super->ctime;
}

static bool in_slot(const struct md_plan *plan, unsigned index)
{
	return index < plan->options->raid_disks && index != plan->moved &&
	       plan->devices[index].path != NULL;
}

/* Devices are numbered as they were listed; the one to be rebuilt comes behind all others. */
static unsigned number_of(const struct md_plan *plan, unsigned index)
{
	return index == plan->moved ? plan->count : index;
}

static unsigned moved_count(const struct md_plan *plan)
{
	return plan->moved != MD_PLAN_NOBODY;
}

static void fill_roles(const struct md_plan *plan, unsigned index, struct md_super *super)
{
	const uint64_t devices = plan->count + moved_count(plan);
	const uint64_t bytes = round_up(256 + UINT64_C(2) * devices, MD_SECTOR);

	super->dev_number = number_of(plan, index);
	super->role_count = super->version == MD_VERSION_0_90 ? MD_PLAN_DEVICES_090_MAX
							      : (uint32_t)(bytes - 256) / 2;
	for (unsigned i = 0; i < MD_ROLES_MAX; i++)
		super->roles[i] = i < plan->count && in_slot(plan, i) ? (uint16_t)i : MD_ROLE_SPARE;
}

static uint8_t flags_of(const struct md_plan_device *device)
{
	return (device->write_mostly ? MD_DEVFLAG_WRITE_MOSTLY : 0) |
	       (device->failfast ? MD_DEVFLAG_FAILFAST : 0);
}

static struct md_super_090_disk descriptor(const struct md_plan *plan, unsigned index)
{
	const struct md_plan_device *device = &plan->devices[index];

	return (struct md_super_090_disk){
		.number = number_of(plan, index),
		.major = device->major,
		.minor = device->minor,
		.raid_disk = number_of(plan, index),
		.state = (in_slot(plan, index) ? DISK_ACTIVE_IN_SYNC : 0) |
			 (uint32_t)flags_of(device) << DISK_FLAGS_SHIFT,
	};
}

/* mdadm leaves the checkpoint's event count 0 at creation. */
static void fill_090(const struct md_plan *plan, unsigned index, struct md_super *super)
{
	const unsigned moved = moved_count(plan);
	struct md_super_090 *old = &super->v090;

	old->minor_version = 90;
	old->md_minor = plan->options->md_minor;
	old->nr_disks = plan->count + moved;
	old->failed_disks = plan->missing + moved;
	old->active_disks = super->raid_disks - old->failed_disks;
	old->spare_disks = plan->options->spare_disks + moved;
	old->working_disks = old->active_disks + old->spare_disks;
	for (unsigned i = 0; i < plan->count; i++)
		if (plan->devices[i].path != NULL)
			old->disks[number_of(plan, i)] = descriptor(plan, i);
	old->this_disk = descriptor(plan, index);
	old->state = super->resync_offset == MD_CLEAN;
	super->events = 1;
}

/*
 * mdadm's rule: a parity array that lacks what its redundancy can do without cannot be made
 * consistent by a resync, and has to be clean, or it could not be started.
 */
static bool is_clean(const struct md_plan *plan)
{
	const struct md_plan_options *options = plan->options;
	const unsigned lacking = plan->missing + moved_count(plan);

	if (options->level <= 0 || options->assume_clean || options->blank)
		return true;
	if (options->level == 4 || options->level == 5)
		return lacking >= 1;
	return options->level == 6 && lacking >= 2;
}

void md_plan_fill(const struct md_plan *plan, unsigned index, struct md_super *super)
{
	const struct md_plan_options *options = plan->options;
	const struct md_plan_device *device = &plan->devices[index];

	memset(super, 0, sizeof(*super));
	super->version = options->version;
	memcpy(super->set_uuid, options->set_uuid, sizeof(super->set_uuid));
	super->level = options->level;
	super->layout = plan->layout;
	super->size_sectors = plan->size;
	super->chunk_sectors = plan->chunk;
	super->raid_disks = options->raid_disks;
	super->resync_offset = is_clean(plan) ? MD_CLEAN : 0;
	super->devflags = flags_of(device);
	fill_times(plan, super);
	fill_roles(plan, index, super);
	place(plan, device, super);
	if (options->version == MD_VERSION_0_90) {
		fill_090(plan, index, super);
		if (options->homehost != NULL && *options->homehost != '\0' && !options->uuid_given)
			stamp_homehost(options->homehost, super->set_uuid);
		return;
	}
	memcpy(super->device_uuid, device->device_uuid, sizeof(super->device_uuid));
	md_name_compose(options->homehost, options->name, super->name);
}

/* The chunk that was chosen shows in nothing but the bitmap, so it is chosen again. */
static uint32_t planned_chunk(const struct md_plan_options *options, const struct md_super *super)
{
	const uint64_t space = md_plan_bitmap_space(super->size_sectors);
	uint32_t chunk = 0;
	uint64_t at, room;

	if (super->version == MD_VERSION_0_90)
		(void)md_bitmap_location(super, &at, &room, NULL);
	else
		room = space;
	(void)md_bitmap_choose_chunk(
		md_bitmap_sync_sectors(super), room, options->bitmap_chunk_bytes, &chunk, NULL);
	assert(chunk > 0); /* md_plan_create() has chosen the same */
	return chunk;
}

/*
 * 0.90 gets its whole area filled. A blank array's bitmap has to be as new as the superblocks,
 * or its clear bits would not be believed; mdadm's events are 0, where all bits are set anyway.
 */
size_t md_plan_bitmap(const struct md_plan_options *options, const struct md_super *super,
	struct md_bitmap *ret, void *area)
{
	uint64_t at, room, bytes;

	if ((super->feature_map & MD_FEATURE_BITMAP) == 0 ||
		md_bitmap_location(super, &at, &room, NULL) < 0)
		return 0;
	md_bitmap_init(super, planned_chunk(options, super), ret);
	ret->write_behind = options->write_behind;
	if (options->daemon_sleep_seconds != 0)
		ret->daemon_sleep_seconds = options->daemon_sleep_seconds;
	if (options->blank)
		ret->events = super->events;
	bytes = super->version == MD_VERSION_0_90
			? room * MD_SECTOR
			: md_plan_bitmap_sectors(ret->sync_size_sectors, ret->chunk_bytes) *
				  MD_SECTOR;
	assert(bytes <= MD_PLAN_BITMAP_BYTES_MAX);
	memset(area, options->blank ? 0 : 0xff, bytes);
	md_bitmap_encode(ret, area);
	return bytes;
}
