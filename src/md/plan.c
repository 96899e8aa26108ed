/* SPDX-License-Identifier: MIT */
/*
 * What mdadm 4.2 writes when it creates an array, as numbers. Each rule here was checked against
 * arrays that mdadm 4.2 made under Linux 6.1; the rows of plan_test.c are what it wrote.
 *
 * Where mdadm makes an array that cannot be used again, this differs on purpose:
 *  - version 1.0 with a data offset: mdadm does not take the offset off the member's data size, so
 *    data would run over the superblock and past the end of the device. Here it is taken off.
 *  - RAID 0 layout feature: mdadm compares the members in a mixture of units and misses some that
 *    differ by one chunk (chunks of 4 MiB and more), after which the kernel refuses to assemble.
 *    Here the feature is set when mdadm sets it, and also whenever there are several zones.
 *  - a data offset inside the 4096 bytes that any superblock may grow to is refused.
 */
#include "md/plan.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "geometry/geometry.h"
#include "md/sha1.h"
#include "util/rounding.h"

#define KIB_SECTORS 2u
#define CHUNK_DEFAULT (512u * KIB_SECTORS)
#define CHUNK_MIN (4u * KIB_SECTORS)
#define CHUNK_LIMIT (UINT64_C(1) << 23) /* 4 GiB: 0.90 and geometry count bytes in 32 bits */
#define SUPER_SECTORS (MD_SUPER_BYTES / MD_SECTOR)
#define BBLOG_SECTORS 8u
#define DATA_SECTORS_MIN 10u /* the kernel imports no member with less (specification 1.5) */
#define DEVICES_090_MAX 27u
#define RESERVED_090 128u             /* 64 KiB at the end, also the alignment */
#define LIMIT_090 (UINT64_C(1) << 33) /* 4 TiB: what version 0.90 can count on a member */
#define HEADROOM_MAX 262144u          /* 128 MiB */
#define DATA_ALIGN 2048u              /* 1 MiB */

/* A checked request: the defaults are filled in. */
struct request {
	const struct md_plan_options *options;
	const struct md_plan_device *devices;
	unsigned count;
	uint32_t chunk;
	uint32_t layout;
	uint64_t size;
	uint64_t data_offset;
};

static uint64_t subtract_or_zero(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

static const char *version_name(const struct request *r)
{
	return md_format(r->options->version)->name;
}

/* Room that mdadm leaves for a bitmap that may come later (specification 1.9, "bmspace"). */
static uint64_t bitmap_space(uint64_t sectors)
{
	if (sectors < 128)
		return 0;
	if (sectors - 128 >= UINT64_C(419430400))
		return 256;
	return sectors - 8 > 16777216 ? 128 : 8;
}

/* About 0.1 % of the device, so that a reshape can move the data (specification 1.9). */
static uint64_t default_data_offset(uint64_t device_sectors, uint32_t chunk)
{
	uint64_t headroom = HEADROOM_MAX;

	while (headroom * 1024 > device_sectors &&
		(chunk == 0 || headroom / 2 >= UINT64_C(2) * chunk))
		headroom /= 2;
	return round_up(24 + bitmap_space(device_sectors) + headroom, DATA_ALIGN);
}

/* Sectors that mdadm counts as free for data on @device (specification 1.9, "free"). */
static uint64_t free_sectors(const struct request *r, const struct md_plan_device *device)
{
	uint64_t taken;

	switch (r->options->version) {
	case MD_VERSION_0_90:
		return subtract_or_zero(round_down(device->sectors, RESERVED_090), RESERVED_090);
	case MD_VERSION_1_0:
		taken = 16 + 8 + bitmap_space(device->sectors) + r->data_offset;
		return subtract_or_zero(round_down(device->sectors, 8), taken);
	default:
		return subtract_or_zero(device->sectors, r->data_offset);
	}
}

static int check_level(const struct md_plan_options *options, struct fault *fault)
{
	if (options->level == 0 || options->level == GEOMETRY_LEVEL_LINEAR)
		return 0;
	return fault_set(fault, -EOPNOTSUPP,
		"not yet supported: level %s; linear and raid0 can be created, so choose one of "
		"them with --level",
		md_level_name(options->level));
}

static int check_count(const struct md_plan_options *options, unsigned count, struct fault *fault)
{
	const bool old = options->version == MD_VERSION_0_90;
	const unsigned most = old ? DEVICES_090_MAX : MD_ROLES_MAX;

	if (count == 0 || options->raid_disks == 0)
		return fault_set(
			fault, -EINVAL, "an array needs at least one member; name the devices");
	if (count != options->raid_disks)
		return fault_set(fault, -EINVAL,
			"%u members were asked for but %u devices given; change --raid-devices or "
			"the "
			"list of devices",
			options->raid_disks, count);
	if (count > most)
		return fault_set(fault, -EINVAL,
			"%u members are too many: %s metadata supports at most %u devices per "
			"array; "
			"%s",
			count, md_format(options->version)->name, most,
			old ? "use --metadata=1.2" : "use fewer members");
	return 0;
}

/* Any multiple of 1 KiB from 4 KiB up, as mdadm; linear's rounding is the same number. */
static int resolve_chunk(struct request *r, struct fault *fault)
{
	const uint64_t chunk = r->options->chunk_sectors;

	if (chunk == MD_PLAN_DEFAULT) {
		r->chunk = r->options->level == 0 ? CHUNK_DEFAULT : 0;
		return 0;
	}
	if (chunk < CHUNK_MIN || chunk % KIB_SECTORS != 0)
		return fault_set(fault, -EINVAL,
			"invalid chunk/rounding value: %" PRIu64
			" bytes; it must be a multiple of 1 KiB and at least 4 KiB (powers of two "
			"are "
			"best, for example --chunk=512)",
			chunk > UINT64_MAX / MD_SECTOR ? UINT64_MAX : chunk * MD_SECTOR);
	if (chunk >= CHUNK_LIMIT)
		return fault_set(fault, -EINVAL,
			"chunk of %" PRIu64 " KiB is too large: it must be below 4 GiB",
			chunk / KIB_SECTORS);
	r->chunk = (uint32_t)chunk;
	return 0;
}

static int resolve_layout(struct request *r, struct fault *fault)
{
	const uint64_t layout = r->options->layout;

	if (r->options->level == 0 && layout == MD_PLAN_DEFAULT)
		r->layout = GEOMETRY_RAID0_ORIGINAL;
	else if (r->options->level == 0 && layout <= GEOMETRY_RAID0_ALTERNATE)
		r->layout = (uint32_t)layout;
	else if (r->options->level == 0)
		return fault_set(fault, -EINVAL,
			"layout %" PRIu64 " not understood for raid0; use --layout=original or "
			"--layout=alternate",
			layout);
	else if (layout != MD_PLAN_DEFAULT && layout != 0)
		return fault_set(fault, -EINVAL, "level linear has no layouts; leave out --layout");
	return 0;
}

static int check_explicit_offset(const struct request *r, struct fault *fault)
{
	const uint64_t end = r->options->version == MD_VERSION_1_2   ? 2 * SUPER_SECTORS
			     : r->options->version == MD_VERSION_1_1 ? SUPER_SECTORS
								     : 0;

	if (r->options->version == MD_VERSION_0_90 && r->data_offset != 0)
		return fault_set(fault, -EINVAL,
			"0.90 metadata has no data offset; leave out --data-offset or use "
			"--metadata=1.2");
	if (r->data_offset < end)
		return fault_set(fault, -EINVAL,
			"data offset of %" PRIu64
			" sectors lies within the superblock, which ends at "
			"sector %" PRIu64 " in %s metadata; choose a larger --data-offset",
			r->data_offset, end, version_name(r));
	for (unsigned i = 0; i < r->count; i++)
		if (r->data_offset >= r->devices[i].sectors)
			return fault_set(fault, -ERANGE,
				"%s: data offset of %" PRIu64
				" sectors lies beyond the device, which "
				"has %" PRIu64 " sectors; choose a smaller --data-offset",
				r->devices[i].path, r->data_offset, r->devices[i].sectors);
	return 0;
}

/* The first device decides for the whole array, as in mdadm. */
static int resolve_data_offset(struct request *r, struct fault *fault)
{
	if (r->options->data_offset != MD_PLAN_DEFAULT) {
		r->data_offset = r->options->data_offset;
		return check_explicit_offset(r, fault);
	}
	if (r->options->version == MD_VERSION_1_1 || r->options->version == MD_VERSION_1_2)
		r->data_offset = default_data_offset(r->devices[0].sectors, r->chunk);
	return 0;
}

/* RAID 0 and linear use every member whole whatever --size says; mdadm records it all the same. */
static int resolve_size(struct request *r, struct fault *fault)
{
	const uint64_t size = r->options->size_sectors;
	const uint64_t unit = r->options->level == 0 ? r->chunk : KIB_SECTORS;

	if (size == MD_PLAN_DEFAULT)
		return 0;
	r->size = round_down(size, unit);
	if (r->size == 0)
		return fault_set(fault, -EINVAL,
			"size of %" PRIu64 " KiB is less than one chunk of %" PRIu64
			" KiB; choose a larger --size or leave it out",
			size / KIB_SECTORS, unit / KIB_SECTORS);
	for (unsigned i = 0; i < r->count; i++)
		if (round_down(free_sectors(r, &r->devices[i]), unit) < r->size)
			return fault_set(fault, -ERANGE,
				"%s is smaller than given size: %" PRIu64
				" KiB free for data, %" PRIu64
				" KiB asked; choose a smaller --size or leave it out",
				r->devices[i].path, free_sectors(r, &r->devices[i]) / KIB_SECTORS,
				r->size / KIB_SECTORS);
	return 0;
}

static int check_device(
	const struct request *r, const struct md_plan_device *device, struct fault *fault)
{
	const uint64_t room = round_down(free_sectors(r, device), KIB_SECTORS);
	const uint64_t position = round_down(device->sectors, RESERVED_090);
	uint64_t ignored;

	if (room > 0 && r->chunk > room)
		return fault_set(fault, -ERANGE,
			"%s is too small: one chunk of %" PRIu32 " KiB is larger than the %" PRIu64
			" KiB that the device has for data; use a smaller --chunk or a larger "
			"device",
			device->path, r->chunk / KIB_SECTORS, room / KIB_SECTORS);
	if (md_format(r->options->version)->location(device->sectors, &ignored) < 0 || room == 0 ||
		free_sectors(r, device) < DATA_SECTORS_MIN)
		return fault_set(fault, -ERANGE,
			"%s is too small: %" PRIu64
			" KiB, of which %s metadata and the data offset of "
			"%" PRIu64 " KiB leave nothing for data; use %sa larger device",
			device->path, device->sectors / KIB_SECTORS, version_name(r),
			r->data_offset / KIB_SECTORS, r->chunk > 0 ? "a smaller --chunk or " : "");
	if (r->options->version == MD_VERSION_0_90 && position - RESERVED_090 >= LIMIT_090)
		return fault_set(fault, -ERANGE,
			"%s is too large: 0.90 metadata counts at most 4 TiB per member; use "
			"--metadata=1.2",
			device->path);
	return 0;
}

/* The areas of version 1.0 lie before the superblock at the end of the device (1.9). */
static void place_before_super(const struct request *r, struct md_super *super)
{
	const uint64_t position = super->super_offset;
	const uint64_t used = r->data_offset + r->size;
	uint64_t reserved = bitmap_space(r->size) + BBLOG_SECTORS;

	if (position < used + reserved)
		reserved = subtract_or_zero(position, used);
	super->data_sectors = position - reserved - r->data_offset;
	if (reserved >= BBLOG_SECTORS) {
		super->bblog_sectors = BBLOG_SECTORS;
		super->bblog_offset = -(int32_t)BBLOG_SECTORS;
	}
}

/* Versions 1.1 and 1.2: superblock, room for a bitmap, bad-block log, data (1.9). */
static void place_after_super(
	const struct request *r, const struct md_plan_device *device, struct md_super *super)
{
	const uint64_t room = r->data_offset - super->super_offset;
	const uint64_t bitmap = bitmap_space(r->size);

	super->data_sectors = device->sectors - r->data_offset;
	if (room >= SUPER_SECTORS + bitmap + BBLOG_SECTORS)
		super->bblog_offset = (int32_t)(SUPER_SECTORS + bitmap);
	else if (room >= SUPER_SECTORS + BBLOG_SECTORS)
		super->bblog_offset = (int32_t)(room - BBLOG_SECTORS);
	else
		return;
	super->bblog_sectors = BBLOG_SECTORS;
}

static void place(
	const struct request *r, const struct md_plan_device *device, struct md_super *super)
{
	/* check_device() has seen that there is a location. */
	(void)md_format(super->version)->location(device->sectors, &super->super_offset);
	super->data_offset = r->data_offset;
	if (super->version == MD_VERSION_0_90)
		super->data_sectors = super->super_offset;
	else if (super->version == MD_VERSION_1_0)
		place_before_super(r, super);
	else
		place_after_super(r, device, super);
}

/* Words 2 and 3 of a 0.90 UUID name the host: first 8 bytes of SHA-1, each word swapped (2.4). */
static void stamp_homehost(const char *homehost, uint8_t uuid[16])
{
	uint8_t digest[MD_SHA1_BYTES];

	md_sha1(homehost, strlen(homehost), digest);
	for (unsigned i = 0; i < 8; i++)
		uuid[8 + i] = digest[i ^ 3];
}

static void fill_times(const struct request *r, struct md_super *super)
{
	super->ctime = r->options->now_seconds & ((UINT64_C(1) << 40) - 1);
	if (super->version != MD_VERSION_0_90)
		super->ctime |= (uint64_t)r->options->now_microseconds << 40;
	super->utime = super->ctime;
}

static void fill_roles(const struct request *r, unsigned slot, struct md_super *super)
{
	const uint64_t bytes = round_up(256 + UINT64_C(2) * r->count, MD_SECTOR);

	super->dev_number = slot;
	super->role_count = super->version == MD_VERSION_0_90 ? DEVICES_090_MAX
							      : (uint32_t)(bytes - 256) / 2;
	for (unsigned i = 0; i < MD_ROLES_MAX; i++)
		super->roles[i] = i < r->count ? (uint16_t)i : MD_ROLE_SPARE;
}

/* mdadm leaves the checkpoint's event count 0 at creation. */
static void fill_090(const struct request *r, unsigned slot, struct md_super *super)
{
	struct md_super_090 *old = &super->v090;

	old->minor_version = 90;
	old->md_minor = r->options->md_minor;
	old->state = 1;
	old->nr_disks = old->active_disks = old->working_disks = r->count;
	for (unsigned i = 0; i < r->count; i++) {
		old->disks[i].number = old->disks[i].raid_disk = i;
		old->disks[i].major = r->devices[i].major;
		old->disks[i].minor = r->devices[i].minor;
		old->disks[i].state = 6; /* active, in sync */
	}
	old->this_disk = old->disks[slot];
	super->events = 1;
}

static void fill(const struct request *r, unsigned slot, struct md_super *super)
{
	const struct md_plan_options *options = r->options;

	memset(super, 0, sizeof(*super));
	super->version = options->version;
	memcpy(super->set_uuid, options->set_uuid, sizeof(super->set_uuid));
	super->level = options->level;
	super->layout = r->layout;
	super->size_sectors = r->size;
	super->chunk_sectors = r->chunk;
	super->raid_disks = r->count;
	super->resync_offset = MD_CLEAN; /* there is no redundancy that could disagree */
	fill_times(r, super);
	fill_roles(r, slot, super);
	place(r, &r->devices[slot], super);
	if (options->version == MD_VERSION_0_90) {
		fill_090(r, slot, super);
		if (options->homehost != NULL && *options->homehost != '\0' && !options->uuid_given)
			stamp_homehost(options->homehost, super->set_uuid);
		return;
	}
	memcpy(super->device_uuid, r->devices[slot].device_uuid, sizeof(super->device_uuid));
	md_name_compose(options->homehost, options->name, super->name);
}

/* The first member with another number of chunks than the first one; 0 if they are all equal. */
static unsigned find_unequal(const struct request *r, const struct md_super *supers)
{
	for (unsigned i = 1; i < r->count; i++)
		if (supers[i].data_sectors / r->chunk != supers[0].data_sectors / r->chunk)
			return i;
	return 0;
}

/* mdadm's comparison: bytes of the device, less sectors of data offset, in sectors of a chunk. */
static bool mdadm_finds_unequal(const struct request *r)
{
	uint64_t first = (r->devices[0].sectors * MD_SECTOR - r->data_offset) / r->chunk;

	for (unsigned i = 1; i < r->count; i++)
		if ((r->devices[i].sectors * MD_SECTOR - r->data_offset) / r->chunk != first)
			return true;
	return false;
}

static int refuse_unequal(
	const struct request *r, const struct md_super *supers, unsigned other, struct fault *fault)
{
	const bool old = r->options->version == MD_VERSION_0_90;

	return fault_set(fault, -EINVAL,
		"RAID 0 members of unequal size (%s: %" PRIu64 " chunks, %s: %" PRIu64
		" chunks) need a recorded layout, and %s records none; %s --layout=original or "
		"--layout=alternate%s",
		r->devices[0].path, supers[0].data_sectors / r->chunk, r->devices[other].path,
		supers[other].data_sectors / r->chunk,
		old ? "0.90 metadata" : "layout \"dangerous\"",
		old ? "use --metadata=1.2, make the members equal, or insist with" : "use",
		old ? ", which must then be given again at every assembly" : "");
}

/* Which layout the superblocks record, if any (specification 7.3). */
static int record_layout(const struct request *r, struct md_super *supers, struct fault *fault)
{
	const unsigned other = find_unequal(r, supers);
	const bool old = r->options->version == MD_VERSION_0_90;

	if (other != 0 && (r->layout == 0 || (old && !r->options->layout_explicit)))
		return refuse_unequal(r, supers, other, fault);
	for (unsigned i = 0; i < r->count; i++) {
		if (old && other == 0)
			supers[i].layout = 0; /* as mdadm did when it still made these */
		else if (!old && r->layout != 0 && (other != 0 || mdadm_finds_unequal(r)))
			supers[i].feature_map |= MD_FEATURE_RAID0_LAYOUT;
	}
	return 0;
}

static int resolve(struct request *r, struct fault *fault)
{
	int result = resolve_chunk(r, fault);

	if (result == 0)
		result = resolve_layout(r, fault);
	if (result == 0)
		result = resolve_data_offset(r, fault);
	for (unsigned i = 0; result == 0 && i < r->count; i++)
		result = check_device(r, &r->devices[i], fault);
	if (result == 0)
		result = resolve_size(r, fault);
	return result;
}

int md_plan_create(const struct md_plan_options *options, const struct md_plan_device *devices,
	unsigned count, struct md_super *ret, struct fault *fault)
{
	struct request r = {.options = options, .devices = devices, .count = count};
	int result = check_level(options, fault);

	if (result == 0)
		result = check_count(options, count, fault);
	if (result == 0)
		result = resolve(&r, fault);
	if (result < 0)
		return result;
	for (unsigned i = 0; i < count; i++)
		fill(&r, i, &ret[i]);
	return options->level == 0 ? record_layout(&r, ret, fault) : 0;
}
