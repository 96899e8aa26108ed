/* SPDX-License-Identifier: MIT */
#ifndef STRAKE_MD_PLAN_H
#define STRAKE_MD_PLAN_H

/*
 * Create: from what the user asked for to one filled superblock per member, as mdadm 4.2 would
 * fill it (specification 1.2, 1.7, 1.9, 2, 3.3). Pure: nothing is written here.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "md/bitmap.h"
#include "md/super.h"

#define MD_PLAN_DEFAULT UINT64_MAX
#define MD_PLAN_BITMAP_BYTES_MAX 131072u /* the largest area that mdadm reserves */

struct md_plan_device {
	const char *path;      /* for messages; NULL: the slot is "missing" */
	uint64_t sectors;      /* whole device */
	uint32_t major, minor; /* 0.90 descriptors; 0 for files */
	uint8_t device_uuid[16];
	bool write_mostly, failfast;
};

enum md_plan_bitmap {
	MD_PLAN_BITMAP_AUTO, /* as mdadm decides: members of more than 100 GiB get one */
	MD_PLAN_BITMAP_NONE,
	MD_PLAN_BITMAP_INTERNAL,
};

/* How the redundancy is made whole after a crash; mdadm's --consistency-policy. */
enum md_consistency {
	MD_CONSISTENCY_DEFAULT, /* BITMAP if there is one, else RESYNC; NONE without redundancy */
	MD_CONSISTENCY_NONE,    /* nothing that could be inconsistent */
	MD_CONSISTENCY_RESYNC,
	MD_CONSISTENCY_BITMAP,
	MD_CONSISTENCY_JOURNAL,
	MD_CONSISTENCY_PPL,
};

struct md_plan_options {
	enum md_version version;
	int level;
	uint64_t chunk_sectors; /* MD_PLAN_DEFAULT: 512 KiB where the level has chunks */
	uint64_t layout;        /* MD_PLAN_DEFAULT: the level's default */
	uint64_t size_sectors;  /* MD_PLAN_DEFAULT: the largest; else used sectors per member */
	uint64_t data_offset;   /* sectors; MD_PLAN_DEFAULT: as mdadm chooses */
	unsigned raid_disks;
	unsigned spare_disks;
	const char *name;     /* bare */
	const char *homehost; /* NULL: none */
	uint32_t md_minor;    /* 0.90's preferred minor */
	bool assume_clean;
	bool force; /* RAID 4, 5, 6: no member is left to be rebuilt instead of a resync */
	/*
	 * Every member reads as zeros, as far as the array will use it: then the redundancy of the
	 * zeros is right already (parity of zeros is zeros), and the array is clean at once.
	 */
	bool blank;
	bool layout_explicit;
	enum md_plan_bitmap bitmap;
	enum md_consistency consistency;
	uint64_t bitmap_chunk_bytes;   /* 0: 64 MiB, or more where the room wants it */
	uint32_t daemon_sleep_seconds; /* 0: 5 */
	uint32_t write_behind;         /* RAID 1: 0 none */
	uint8_t set_uuid[16];          /* random or the user's */
	bool uuid_given;               /* else 0.90 puts the homehost's hash into words 2 and 3 */
	uint64_t now_seconds;
	uint32_t now_microseconds;
};

/*
 * Fill @ret[0 … count-1], one for each entry of @devices: first the slots in order, then spares.
 * @count is raid_disks + spare_disks. The superblock of a missing slot is zeroed.
 *
 * As mdadm does it, RAID 4 and 5 with all members (and RAID 6 with all but one) get one of them as
 * a spare, not in its slot: the array is clean and degraded at once, and rebuilding that one is
 * faster than a resync. Not with assume_clean, force or blank.
 *
 * -EINVAL, -ERANGE, -ENOSPC or -EOPNOTSUPP with the words in @fault (which names the device) if
 * the request makes no array: chunk 0, no power of two where the level needs it, larger than a
 * member; a device too small; too few or too many members; a layout that the level or this number
 * of members has not; a bitmap that does not fit; missing or spare members at a level without
 * redundancy; 0.90 with members too large, or RAID 0 with unequal ones.
 */
int md_plan_create(const struct md_plan_options *options, const struct md_plan_device *devices,
	unsigned count, struct md_super *ret, struct fault *fault);

/*
 * The bitmap of an array that md_plan_create() has planned: fill @area (MD_PLAN_BITMAP_BYTES_MAX
 * bytes) with what has to be written at md_bitmap_location() of each member, spares included, and
 * *@ret with its header. Returns the bytes to write, 0 if the array has none. @super is the plan of
 * any member. Every bit is set, unless the members are blank.
 */
size_t md_plan_bitmap(const struct md_plan_options *options, const struct md_super *super,
	struct md_bitmap *ret, void *area);

/*
 * Hot-add: the superblock of @device as a spare of the running array whose up-to-date superblock
 * (of any member) is @array. It gets the array's data offset, size, events and places of bitmap and
 * bad-block log. @dev_number is a number that no device of the array has; md takes the first free
 * one from raid_disks up.
 * -ENOSPC the device is too small (named, with the numbers); -ERANGE no superblock can hold
 * @dev_number; -EOPNOTSUPP the level has no spares; -EBUSY a reshape is in progress.
 */
int md_plan_add(const struct md_super *array, const struct md_plan_device *device,
	unsigned dev_number, struct md_super *ret, struct fault *fault);

/* mdadm's words: "none", "resync", "bitmap", "journal", "ppl". */
const char *md_consistency_name(enum md_consistency consistency);
int md_consistency_parse(const char *text, enum md_consistency *ret); /* -EINVAL */
/* What the superblock says of an array. */
enum md_consistency md_consistency_of(const struct md_super *super);

#endif
