/* SPDX-License-Identifier: MIT */
/*
 * What mdadm 4.2 makes of a request for a new array, as numbers. Each rule here was checked against
 * arrays that mdadm 4.2 made under Linux 6.1; the rows of plan_test.c are what it wrote.
 *
 * Where mdadm makes an array that cannot be used again, this differs on purpose:
 *  - version 1.0 with a data offset: mdadm does not take the offset off the member's data size, so
 *    data would run over the superblock and past the end of the device. Here it is taken off.
 *  - RAID 0 layout feature: mdadm compares the members in a mixture of units and misses some that
 *    differ by one chunk (chunks of 4 MiB and more), after which the kernel refuses to assemble.
 *    Here the feature is set when mdadm sets it, and also whenever there are several zones.
 *  - a data offset inside the 4096 bytes that any superblock may grow to is refused.
 *  - a bitmap that would reach into the data (small data offset) is refused.
 *  - RAID 10 with far copies and a number of chunks that is no multiple of them: the bitmap covers
 *    what the kernel resyncs, without the odd chunks at the members' ends.
 */
#include "md/plan.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "geometry/geometry.h"
#include "md/plan_internal.h"
#include "util/rounding.h"

#define KIB_SECTORS MD_PLAN_KIB_SECTORS
#define SUPER_SECTORS MD_PLAN_SUPER_SECTORS
#define DEVICES_090_MAX MD_PLAN_DEVICES_090_MAX
#define CHUNK_DEFAULT (512u * KIB_SECTORS)
#define CHUNK_MIN (4u * KIB_SECTORS)
#define CHUNK_LIMIT (UINT64_C(1) << 23) /* 4 GiB: 0.90 and geometry count bytes in 32 bits */
#define DATA_SECTORS_MIN 10u /* the kernel imports no member with less (specification 1.5) */
#define RESERVED_090 128u    /* 64 KiB at the end, also the alignment */
#define LIMIT_090 (UINT64_C(1) << 33) /* 4 TiB: what version 0.90 can count on a member */
#define HEADROOM_MAX 262144u          /* 128 MiB */
#define DATA_ALIGN 2048u              /* 1 MiB */
#define MIRROR_ALIGN 128u             /* 64 KiB: a mirror can become RAID 5 with such chunks */
#define BITMAP_AUTO_SECTORS (UINT64_C(100) << 21) /* 100 GiB */
#define WRITE_BEHIND_MAX 16383u
#define RAID10_LAYOUT_DEFAULT 0x102u /* near=2 */
#define PARITY_LAYOUT_DEFAULT 2u     /* left-symmetric */

/* What a level wants, as data. */
struct level_facts {
	int level;
	unsigned disks_min;
	bool chunks;
	bool redundant;
};

static const struct level_facts levels[] = {
	{GEOMETRY_LEVEL_LINEAR, 1, false, false},
	{0, 1, true, false},
	{1, 1, false, true},
	{4, 2, true, true},
	{5, 2, true, true},
	{6, 4, true, true},
	{10, 2, true, true},
};

static const struct level_facts *facts_of(int level)
{
	for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++)
		if (levels[i].level == level)
			return &levels[i];
	return NULL;
}

static uint64_t subtract_or_zero(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

static const char *version_name(const struct md_plan *plan)
{
	return md_format(plan->options->version)->name;
}

/* About 0.1 % of the device, so that a reshape can move the data (specification 1.9). */
static uint64_t default_data_offset(uint64_t device_sectors, uint32_t chunk)
{
	uint64_t headroom = HEADROOM_MAX;

	while (headroom * 1024 > device_sectors &&
		(chunk == 0 || headroom / 2 >= UINT64_C(2) * chunk))
		headroom /= 2;
	return round_up(24 + md_plan_bitmap_space(device_sectors) + headroom, DATA_ALIGN);
}

/* Sectors that mdadm counts as free for data on @device (specification 1.9, "free"). */
static uint64_t free_sectors(const struct md_plan *plan, const struct md_plan_device *device)
{
	uint64_t taken;

	switch (plan->options->version) {
	case MD_VERSION_0_90:
		return subtract_or_zero(round_down(device->sectors, RESERVED_090), RESERVED_090);
	case MD_VERSION_1_0:
		taken = 16 + 8 + md_plan_bitmap_space(device->sectors) + plan->data_offset;
		return subtract_or_zero(round_down(device->sectors, 8), taken);
	default:
		return subtract_or_zero(device->sectors, plan->data_offset);
	}
}

static int check_level(const struct md_plan_options *options, struct fault *fault)
{
	if (facts_of(options->level) != NULL)
		return 0;
	return fault_set(fault, -EOPNOTSUPP,
		"level %s cannot be created; choose one of linear, raid0, raid1, raid4, raid5, "
		"raid6, raid10 with --level",
		md_level_name(options->level));
}

static int check_members_max(const struct md_plan_options *options, struct fault *fault)
{
	const bool old = options->version == MD_VERSION_0_90;
	const unsigned most = old ? DEVICES_090_MAX : MD_ROLES_MAX;
	const uint64_t count = (uint64_t)options->raid_disks + options->spare_disks;

	if (count <= most)
		return 0;
	return fault_set(fault, -EINVAL,
		"%" PRIu64 " members are too many: %s metadata supports at most %u devices per "
		"array; %s",
		count, md_format(options->version)->name, most,
		old ? "use --metadata=1.2" : "use fewer members");
}

static int check_count(const struct md_plan_options *options, unsigned count, struct fault *fault)
{
	const struct level_facts *facts = facts_of(options->level);
	int r;

	if (count == 0 || options->raid_disks == 0)
		return fault_set(
			fault, -EINVAL, "an array needs at least one member; name the devices");
	if (options->raid_disks < facts->disks_min)
		return fault_set(fault, -EINVAL,
			"at least %u raid-devices needed for level %s, not %u; change "
			"--raid-devices",
			facts->disks_min, md_level_name(options->level), options->raid_disks);
	if (options->spare_disks > 0 && !facts->redundant)
		return fault_set(fault, -EINVAL,
			"level %s does not support spare devices: it has no redundancy to rebuild "
			"one from; leave out --spare-devices",
			md_level_name(options->level));
	r = check_members_max(options, fault);
	if (r < 0)
		return r;
	if (count != options->raid_disks + options->spare_disks)
		return fault_set(fault, -EINVAL,
			"%u members were asked for but %u devices given; change --raid-devices, "
			"--spare-devices or the list of devices",
			options->raid_disks + options->spare_disks, count);
	return 0;
}

static int count_missing(struct md_plan *plan, struct fault *fault)
{
	const struct md_plan_options *options = plan->options;
	unsigned spares = 0;

	for (unsigned i = 0; i < plan->count; i++) {
		plan->missing += plan->devices[i].path == NULL;
		spares += i >= options->raid_disks && plan->devices[i].path == NULL;
	}
	if (plan->missing > 0 && !facts_of(options->level)->redundant)
		return fault_set(fault, -EINVAL,
			"level %s does not support missing devices: it has no redundancy; name all "
			"of them",
			md_level_name(options->level));
	if (spares > 0)
		return fault_set(
			fault, -EINVAL, "a spare cannot be missing; use a smaller --spare-devices");
	if (plan->missing == options->raid_disks)
		return fault_set(fault, -EINVAL,
			"all members are missing: at least one device must be named");
	return 0;
}

/*
 * Which device becomes a spare that is rebuilt (see md_plan_create()): the last slot's, or for
 * RAID 6 the last one that is not the missing slot itself. Its number needs an entry of its own.
 */
static unsigned choose_moved(const struct md_plan *plan)
{
	const struct md_plan_options *options = plan->options;
	const unsigned last = options->raid_disks - 1;
	const unsigned most = options->version == MD_VERSION_0_90 ? DEVICES_090_MAX : MD_ROLES_MAX;

	if (options->assume_clean || options->force || options->blank || plan->count >= most)
		return MD_PLAN_NOBODY;
	if ((options->level == 4 || options->level == 5) && plan->missing == 0)
		return last;
	if (options->level == 6 && plan->missing == 1)
		return plan->devices[last].path != NULL ? last : last - 1;
	return MD_PLAN_NOBODY;
}

static int refuse_chunk(uint64_t chunk, struct fault *fault)
{
	return fault_set(fault, -EINVAL,
		"invalid chunk/rounding value: %" PRIu64
		" bytes; it must be a multiple of 1 KiB and at least 4 KiB (powers of two are "
		"best, for example --chunk=512)",
		chunk > UINT64_MAX / MD_SECTOR ? UINT64_MAX : chunk * MD_SECTOR);
}

/* RAID 0: any multiple of 1 KiB from 4 KiB up, as mdadm; linear's rounding is the same number. */
static int resolve_chunk(struct md_plan *plan, struct fault *fault)
{
	const struct level_facts *facts = facts_of(plan->options->level);
	const uint64_t chunk = plan->options->chunk_sectors;

	if (chunk == MD_PLAN_DEFAULT) {
		plan->chunk = facts->chunks ? CHUNK_DEFAULT : 0;
		return 0;
	}
	if (plan->options->level == 1)
		return fault_set(fault, -EINVAL,
			"specifying chunk size is forbidden for level raid1; leave out --chunk");
	if (chunk < CHUNK_MIN || chunk % KIB_SECTORS != 0)
		return refuse_chunk(chunk, fault);
	if (chunk >= CHUNK_LIMIT)
		return fault_set(fault, -EINVAL,
			"chunk of %" PRIu64 " KiB is too large: it must be below 4 GiB",
			chunk / KIB_SECTORS);
	if (facts->redundant && !is_power_of_two(chunk))
		return fault_set(fault, -EINVAL,
			"chunk of %" PRIu64 " KiB is not a power of two, which level %s needs; use "
			"for example --chunk=512",
			chunk / KIB_SECTORS, md_level_name(plan->options->level));
	plan->chunk = (uint32_t)chunk;
	return 0;
}

/* Only what mdadm makes: one kind of copies, at least two of them, on different members. */
static int check_raid10_layout(const struct md_plan *plan, struct fault *fault)
{
	const uint64_t layout = plan->options->layout;
	const unsigned near = layout & 0xff, far = layout >> 8 & 0xff;
	const bool offset = (layout >> 16 & 1) != 0;
	const unsigned copies = near * far;

	if (layout >> 17 != 0 || copies < 2 || (near > 1 && (far > 1 || offset)) ||
		(offset && far < 2))
		return fault_set(fault, -EINVAL,
			"layout 0x%" PRIx64 " not understood for raid10; use nK, fK or oK with K "
			"copies, for example --layout=n2",
			layout);
	if (copies > plan->options->raid_disks)
		return fault_set(fault, -EINVAL,
			"that layout requires at least %u devices, not %u; change --layout or "
			"--raid-devices",
			copies, plan->options->raid_disks);
	return 0;
}

/* Is @layout one of the level's that this program can serve (specification 7)? */
static bool layout_known(int level, uint64_t layout)
{
	if (level == 0)
		return layout <= GEOMETRY_RAID0_ALTERNATE;
	if (level == 5)
		return layout <= 5;
	return level == 6 &&
	       (layout <= 5 || (layout >= 8 && layout <= 10) || (layout >= 16 && layout <= 20));
}

static uint32_t default_layout(int level)
{
	if (level == 0)
		return GEOMETRY_RAID0_ORIGINAL;
	if (level == 10)
		return RAID10_LAYOUT_DEFAULT;
	return level == 5 || level == 6 ? PARITY_LAYOUT_DEFAULT : 0;
}

static int resolve_layout(struct md_plan *plan, struct fault *fault)
{
	const uint64_t layout = plan->options->layout;
	const int level = plan->options->level;
	int r = 0;

	plan->layout = layout == MD_PLAN_DEFAULT ? default_layout(level) : (uint32_t)layout;
	if (layout == MD_PLAN_DEFAULT && level != 10)
		return 0;
	if (level == GEOMETRY_LEVEL_LINEAR || level == 1 || level == 4)
		return layout == 0 ? 0
				   : fault_set(fault, -EINVAL,
					     "level %s has no layouts; leave out --layout",
					     md_level_name(level));
	if (level == 10 && layout != MD_PLAN_DEFAULT)
		r = check_raid10_layout(plan, fault);
	else if (level != 10 && !layout_known(level, layout))
		r = fault_set(fault, -EINVAL, "layout %" PRIu64 " not understood for %s; use %s",
			layout, md_level_name(level),
			level == 0 ? "--layout=original or --layout=alternate"
				   : "one of the names that the manual lists, for example "
				     "--layout=left-symmetric");
	return r;
}

static int check_explicit_offset(const struct md_plan *plan, struct fault *fault)
{
	const uint64_t end = plan->options->version == MD_VERSION_1_2   ? 2 * SUPER_SECTORS
			     : plan->options->version == MD_VERSION_1_1 ? SUPER_SECTORS
									: 0;

	if (plan->options->version == MD_VERSION_0_90 && plan->data_offset != 0)
		return fault_set(fault, -EINVAL,
			"0.90 metadata has no data offset; leave out --data-offset or use "
			"--metadata=1.2");
	if (plan->data_offset < end)
		return fault_set(fault, -EINVAL,
			"data offset of %" PRIu64
			" sectors lies within the superblock, which ends at "
			"sector %" PRIu64 " in %s metadata; choose a larger --data-offset",
			plan->data_offset, end, version_name(plan));
	for (unsigned i = 0; i < plan->count; i++)
		if (plan->devices[i].path != NULL && plan->data_offset >= plan->devices[i].sectors)
			return fault_set(fault, -ERANGE,
				"%s: data offset of %" PRIu64
				" sectors lies beyond the device, which "
				"has %" PRIu64 " sectors; choose a smaller --data-offset",
				plan->devices[i].path, plan->data_offset, plan->devices[i].sectors);
	return 0;
}

/* The first device that is not missing decides for the whole array, as in mdadm. */
static int resolve_data_offset(struct md_plan *plan, struct fault *fault)
{
	unsigned first = 0;

	if (plan->options->data_offset != MD_PLAN_DEFAULT) {
		plan->data_offset = plan->options->data_offset;
		return check_explicit_offset(plan, fault);
	}
	while (plan->devices[first].path == NULL)
		first++;
	if (plan->options->version == MD_VERSION_1_1 || plan->options->version == MD_VERSION_1_2)
		plan->data_offset = default_data_offset(plan->devices[first].sectors, plan->chunk);
	return 0;
}

/* The smallest member decides; a mirror too small for whole 64 KiB keeps what it has. */
static void default_size(struct md_plan *plan)
{
	uint64_t least = UINT64_MAX;

	for (unsigned i = 0; i < plan->count; i++)
		if (plan->devices[i].path != NULL)
			least = min_u64(least, free_sectors(plan, &plan->devices[i]));
	if (plan->options->level != 1)
		plan->size = round_down(least, plan->chunk);
	else
		plan->size = round_down(least, least < MIRROR_ALIGN ? KIB_SECTORS : MIRROR_ALIGN);
}

/* RAID 0 and linear use every member whole whatever --size says; mdadm records it all the same. */
static int resolve_size(struct md_plan *plan, struct fault *fault)
{
	const struct level_facts *facts = facts_of(plan->options->level);
	const uint64_t size = plan->options->size_sectors;
	const uint64_t unit = facts->chunks ? plan->chunk : KIB_SECTORS;

	if (size == MD_PLAN_DEFAULT) {
		if (facts->redundant)
			default_size(plan);
		return 0;
	}
	plan->size = round_down(size, unit);
	if (plan->size == 0)
		return fault_set(fault, -EINVAL,
			"size of %" PRIu64 " KiB is less than one chunk of %" PRIu64
			" KiB; choose a larger --size or leave it out",
			size / KIB_SECTORS, unit / KIB_SECTORS);
	for (unsigned i = 0; i < plan->count; i++)
		if (plan->devices[i].path != NULL &&
			round_down(free_sectors(plan, &plan->devices[i]), unit) < plan->size)
			return fault_set(fault, -ERANGE,
				"%s is smaller than given size: %" PRIu64
				" KiB free for data, %" PRIu64
				" KiB asked; choose a smaller --size or leave it out",
				plan->devices[i].path,
				free_sectors(plan, &plan->devices[i]) / KIB_SECTORS,
				plan->size / KIB_SECTORS);
	return 0;
}

static int check_device(
	const struct md_plan *plan, const struct md_plan_device *device, struct fault *fault)
{
	const uint64_t room = round_down(free_sectors(plan, device), KIB_SECTORS);
	const uint64_t position = round_down(device->sectors, RESERVED_090);
	uint64_t ignored;

	if (room > 0 && plan->chunk > room)
		return fault_set(fault, -ERANGE,
			"%s is too small: one chunk of %" PRIu32 " KiB is larger than the %" PRIu64
			" KiB that the device has for data; use a smaller --chunk or a larger "
			"device",
			device->path, plan->chunk / KIB_SECTORS, room / KIB_SECTORS);
	if (md_format(plan->options->version)->location(device->sectors, &ignored) < 0 ||
		room == 0 || free_sectors(plan, device) < DATA_SECTORS_MIN)
		return fault_set(fault, -ERANGE,
			"%s is too small: %" PRIu64
			" KiB, of which %s metadata and the data offset of "
			"%" PRIu64 " KiB leave nothing for data; use %sa larger device",
			device->path, device->sectors / KIB_SECTORS, version_name(plan),
			plan->data_offset / KIB_SECTORS,
			plan->chunk > 0 ? "a smaller --chunk or " : "");
	if (plan->options->version == MD_VERSION_0_90 && position - RESERVED_090 >= LIMIT_090)
		return fault_set(fault, -ERANGE,
			"%s is too large: 0.90 metadata counts at most 4 TiB per member; use "
			"--metadata=1.2",
			device->path);
	return 0;
}

/* Does the array get a bitmap? 1 or 0; negative if what was asked for contradicts itself. */
static int wants_bitmap(const struct md_plan *plan, struct fault *fault)
{
	const struct md_plan_options *options = plan->options;
	const bool redundant = facts_of(options->level)->redundant;
	const bool asked = options->bitmap == MD_PLAN_BITMAP_INTERNAL ||
			   options->consistency == MD_CONSISTENCY_BITMAP;

	if (options->consistency == MD_CONSISTENCY_JOURNAL ||
		options->consistency == MD_CONSISTENCY_PPL)
		return fault_set(fault, -EOPNOTSUPP,
			"not yet supported: consistency policy %s; use --consistency-policy=bitmap "
			"or resync",
			md_consistency_name(options->consistency));
	if (asked && !redundant)
		return fault_set(fault, -EINVAL,
			"bitmaps not meaningful with level %s; leave out --bitmap",
			md_level_name(options->level));
	if (asked && (options->bitmap == MD_PLAN_BITMAP_NONE ||
			     options->consistency == MD_CONSISTENCY_RESYNC))
		return fault_set(fault, -EINVAL,
			"--bitmap and --consistency-policy contradict each other; leave one out");
	if (options->consistency == MD_CONSISTENCY_NONE && redundant)
		return fault_set(fault, -EINVAL,
			"consistency policy none is not possible at level %s; use "
			"--consistency-policy=resync",
			md_level_name(options->level));
	if (asked)
		return 1;
	return redundant && options->bitmap == MD_PLAN_BITMAP_AUTO &&
	       options->consistency != MD_CONSISTENCY_RESYNC &&
	       (options->write_behind > 0 || plan->size > BITMAP_AUTO_SECTORS);
}

static int check_write_behind(
	const struct md_plan_options *options, bool bitmap, struct fault *fault)
{
	if (options->write_behind == 0)
		return 0;
	if (options->level != 1)
		return fault_set(fault, -EINVAL,
			"write-behind exists at level raid1 only; leave out --write-behind");
	if (!bitmap)
		return fault_set(fault, -EINVAL,
			"write-behind mode requires a bitmap; use --bitmap=internal");
	if (options->write_behind > WRITE_BEHIND_MAX)
		return fault_set(fault, -ERANGE,
			"write-behind of %" PRIu32 " is too large: at most %u writes can be told",
			options->write_behind, WRITE_BEHIND_MAX);
	return 0;
}

/* The room is counted from the used size, and on version 0.90 always what is reserved at the end.
 */
static int resolve_bitmap(struct md_plan *plan, struct fault *fault)
{
	const bool old = plan->options->version == MD_VERSION_0_90;
	const uint64_t room = old ? RESERVED_090 - SUPER_SECTORS : md_plan_bitmap_space(plan->size);
	const int wanted = wants_bitmap(plan, fault);
	uint64_t sync;
	int r;

	if (wanted < 0)
		return wanted;
	r = check_write_behind(plan->options, wanted, fault);
	if (r < 0 || wanted == 0)
		return r;
	sync = md_bitmap_sync_sectors(&(struct md_super){
		.level = plan->options->level,
		.layout = plan->layout,
		.size_sectors = plan->size,
		.chunk_sectors = plan->chunk,
		.raid_disks = plan->options->raid_disks,
	});
	r = md_bitmap_choose_chunk(
		sync, room, plan->options->bitmap_chunk_bytes, &plan->bitmap_chunk_bytes, fault);
	if (r == 0)
		plan->bitmap_sectors = md_plan_bitmap_sectors(sync, plan->bitmap_chunk_bytes);
	return r;
}

/* The bitmap must fit between what was planned around it. */
static int check_bitmap(const struct md_plan *plan, unsigned index, const struct md_super *super,
	struct fault *fault)
{
	uint64_t at, room = 0;
	int r;

	if (plan->bitmap_sectors == 0)
		return 0;
	r = md_bitmap_location(super, &at, &room, NULL);
	if (r == 0 && room >= plan->bitmap_sectors)
		return 0;
	return fault_set(fault, -ENOSPC,
		"%s: no room for a bitmap of %" PRIu64 " sectors between superblock and data; use "
		"a larger --data-offset or --bitmap-chunk, or --bitmap=none",
		plan->devices[index].path, plan->bitmap_sectors);
}

/* The first member with another number of chunks than the first one; 0 if they are all equal. */
static unsigned find_unequal(const struct md_plan *plan, const struct md_super *supers)
{
	for (unsigned i = 1; i < plan->count; i++)
		if (supers[i].data_sectors / plan->chunk != supers[0].data_sectors / plan->chunk)
			return i;
	return 0;
}

/* mdadm's comparison: bytes of the device, less sectors of data offset, in sectors of a chunk. */
static bool mdadm_finds_unequal(const struct md_plan *plan)
{
	const uint64_t first = (plan->devices[0].sectors * MD_SECTOR - plan->data_offset) /
			       plan->chunk;

	for (unsigned i = 1; i < plan->count; i++)
		if ((plan->devices[i].sectors * MD_SECTOR - plan->data_offset) / plan->chunk !=
			first)
			return true;
	return false;
}

static int refuse_unequal(const struct md_plan *plan, const struct md_super *supers, unsigned other,
	struct fault *fault)
{
	const bool old = plan->options->version == MD_VERSION_0_90;

	return fault_set(fault, -EINVAL,
		"RAID 0 members of unequal size (%s: %" PRIu64 " chunks, %s: %" PRIu64
		" chunks) need a recorded layout, and %s records none; %s --layout=original or "
		"--layout=alternate%s",
		plan->devices[0].path, supers[0].data_sectors / plan->chunk,
		plan->devices[other].path, supers[other].data_sectors / plan->chunk,
		old ? "0.90 metadata" : "layout \"dangerous\"",
		old ? "use --metadata=1.2, make the members equal, or insist with" : "use",
		old ? ", which must then be given again at every assembly" : "");
}

/* Which layout the superblocks record, if any (specification 7.3). */
static int record_layout(const struct md_plan *plan, struct md_super *supers, struct fault *fault)
{
	const unsigned other = find_unequal(plan, supers);
	const bool old = plan->options->version == MD_VERSION_0_90;

	if (other != 0 && (plan->layout == 0 || (old && !plan->options->layout_explicit)))
		return refuse_unequal(plan, supers, other, fault);
	for (unsigned i = 0; i < plan->count; i++) {
		if (old && other == 0)
			supers[i].layout = 0; /* as mdadm did when it still made these */
		else if (!old && plan->layout != 0 && (other != 0 || mdadm_finds_unequal(plan)))
			supers[i].feature_map |= MD_FEATURE_RAID0_LAYOUT;
	}
	return 0;
}

static int resolve(struct md_plan *plan, struct fault *fault)
{
	int r = count_missing(plan, fault);

	if (r == 0)
		r = resolve_chunk(plan, fault);
	if (r == 0)
		r = resolve_layout(plan, fault);
	if (r == 0)
		r = resolve_data_offset(plan, fault);
	for (unsigned i = 0; r == 0 && i < plan->count; i++)
		if (plan->devices[i].path != NULL)
			r = check_device(plan, &plan->devices[i], fault);
	if (r == 0)
		r = resolve_size(plan, fault);
	if (r == 0)
		r = resolve_bitmap(plan, fault);
	return r;
}

int md_plan_create(const struct md_plan_options *options, const struct md_plan_device *devices,
	unsigned count, struct md_super *ret, struct fault *fault)
{
	struct md_plan plan = {.options = options, .devices = devices, .count = count};
	int r = check_level(options, fault);

	if (r == 0)
		r = check_count(options, count, fault);
	if (r == 0)
		r = resolve(&plan, fault);
	if (r < 0)
		return r;
	plan.moved = choose_moved(&plan);
	for (unsigned i = 0; r == 0 && i < count; i++) {
		memset(&ret[i], 0, sizeof(ret[i]));
		if (devices[i].path == NULL)
			continue;
		md_plan_fill(&plan, i, &ret[i]);
		r = check_bitmap(&plan, i, &ret[i], fault);
	}
	if (r == 0 && options->level == 0)
		r = record_layout(&plan, ret, fault);
	return r;
}
