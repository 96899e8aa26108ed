/* SPDX-License-Identifier: MIT */
#ifndef STRAKE_MD_PLAN_H
#define STRAKE_MD_PLAN_H

/*
 * Create: from what the user asked for to one filled superblock per member, as mdadm 4.2 would
 * fill it (specification 1.2, 1.7, 1.9, 2). Pure: nothing is written here.
 */

#include <stdbool.h>
#include <stdint.h>

#include "md/super.h"

#define MD_PLAN_DEFAULT UINT64_MAX

struct md_plan_device {
	const char *path;      /* for messages */
	uint64_t sectors;      /* whole device */
	uint32_t major, minor; /* 0.90 descriptors; 0 for files */
	uint8_t device_uuid[16];
};

struct md_plan_options {
	enum md_version version;
	int level;
	uint64_t chunk_sectors; /* MD_PLAN_DEFAULT: 512 KiB where the level has chunks */
	uint64_t layout;        /* MD_PLAN_DEFAULT: the level's default */
	uint64_t size_sectors;  /* MD_PLAN_DEFAULT: the largest; else used sectors per member */
	uint64_t data_offset;   /* sectors; MD_PLAN_DEFAULT: as mdadm chooses */
	unsigned raid_disks;
	const char *name;     /* bare */
	const char *homehost; /* NULL: none */
	uint32_t md_minor;    /* 0.90's preferred minor */
	bool assume_clean;
	bool layout_explicit;
	uint8_t set_uuid[16]; /* random or the user's */
	bool uuid_given;      /* else 0.90 puts the homehost's hash into words 2 and 3 */
	uint64_t now_seconds;
	uint32_t now_microseconds;
};

/*
 * Fill @ret[0 … count-1], one for each device in slot order. @count is @options->raid_disks.
 * -EINVAL, -ERANGE or -EOPNOTSUPP with the words in @fault (which names the device) if the request
 * makes no array: chunk 0, no power of two where the level needs it, larger than a member; a device
 * too small; 0.90 with more than 27 members or members too large; 0.90 RAID 0 with unequal members.
 */
int md_plan_create(const struct md_plan_options *options, const struct md_plan_device *devices,
	unsigned count, struct md_super *ret, struct fault *fault);

#endif
