/* SPDX-License-Identifier: MIT */
#ifndef STRAKE_MD_SUPER_H
#define STRAKE_MD_SUPER_H

/*
 * md superblocks, decoded: one struct for versions 0.90, 1.0, 1.1 and 1.2.
 *
 * This folder counts in 512-byte sectors, as the formats do. It never opens or reads anything: it
 * is handed bytes and hands bytes back. The tables in ../../docs and the Linux kernel's
 * md_p.h describe the fields.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/fault.h"

#define MD_SECTOR 512u
#define MD_SUPER_BYTES 4096u /* every version fits in, and is read as, one block of this size */
#define MD_ROLES_MAX 1920u
#define MD_NAME_MAX 32u
#define MD_CLEAN UINT64_MAX /* resync_offset: redundancy consistent everywhere */

enum md_version { MD_VERSION_0_90, MD_VERSION_1_0, MD_VERSION_1_1, MD_VERSION_1_2 };
#define MD_VERSIONS 4

enum md_role { /* values of md_super.roles[] that are no slot (specification 1.2) */
	MD_ROLE_SLOT_MAX = 0xfeff,
	MD_ROLE_JOURNAL = 0xfffd,
	MD_ROLE_FAULTY = 0xfffe,
	MD_ROLE_SPARE = 0xffff, /* or an unused entry */
};

enum md_feature { /* feature_map of 1.x (specification 1.4) */
	MD_FEATURE_BITMAP = 0x1,
	MD_FEATURE_RECOVERY_OFFSET = 0x2,
	MD_FEATURE_RESHAPE = 0x4,
	MD_FEATURE_BAD_BLOCKS = 0x8,
	MD_FEATURE_REPLACEMENT = 0x10,
	MD_FEATURE_RESHAPE_BACKWARDS = 0x20,
	MD_FEATURE_NEW_OFFSET = 0x40,
	MD_FEATURE_RECOVERY_BITMAP = 0x80,
	MD_FEATURE_CLUSTERED = 0x100,
	MD_FEATURE_JOURNAL = 0x200,
	MD_FEATURE_PPL = 0x400,
	MD_FEATURE_MULTIPLE_PPL = 0x800,
	MD_FEATURE_RAID0_LAYOUT = 0x1000,
	MD_FEATURE_ALL = 0x1fff,
};

#define MD_DEVFLAG_WRITE_MOSTLY 0x1
#define MD_DEVFLAG_FAILFAST 0x2

struct md_super_090_disk {
	uint32_t number, major, minor, raid_disk, state;
};

/* Only what version 0.90 has and 1.x has not; meaningful if version is MD_VERSION_0_90. */
struct md_super_090 {
	uint32_t minor_version; /* 90, or 91 while a reshape is in progress */
	bool foreign_order;     /* written by a host of the other byte order */
	uint32_t md_minor;      /* preferred minor number */
	uint32_t state;         /* bit 0 clean, 1 errors, 8 bitmap present */
	uint32_t nr_disks, active_disks, working_disks, failed_disks, spare_disks;
	uint64_t cp_events;
	struct md_super_090_disk disks[27];
	struct md_super_090_disk this_disk;
};

struct md_super {
	enum md_version version;
	uint32_t feature_map; /* 1.x bits; 0.90: MD_FEATURE_BITMAP, MD_FEATURE_RESHAPE as derived */
	uint8_t set_uuid[16]; /* raw, in 1.x order (0.90: the words so ordered that the text is
				 right) */
	char name[MD_NAME_MAX + 1]; /* 1.x; "" for 0.90 */
	uint64_t ctime;             /* as stored: low 40 bits seconds, high 24 microseconds */
	int32_t level;
	uint32_t layout;
	uint64_t size_sectors; /* used sectors per member; 0 for linear and RAID 0 of 1.x */
	uint32_t chunk_sectors;
	uint32_t raid_disks;
	int32_t bitmap_offset; /* sectors from the superblock; with MD_FEATURE_BITMAP */
	int16_t ppl_offset;    /* sectors from the superblock; with a PPL feature */
	uint16_t ppl_sectors;

	/* Reshape; meaningful with MD_FEATURE_RESHAPE. */
	int32_t new_level;
	uint64_t reshape_position;
	int32_t delta_disks;
	uint32_t new_layout;
	uint32_t new_chunk_sectors;
	int32_t new_offset;

	/* This member. */
	uint64_t data_offset;  /* sector of the device where data starts */
	uint64_t data_sectors; /* available from there on (0.90: the superblock's position) */
	uint64_t super_offset; /* sector of the device where this superblock stands */
	uint64_t recovery_offset;
	uint64_t journal_tail;
	uint32_t dev_number; /* index of this member in roles[] */
	uint32_t corrected_reads;
	uint8_t device_uuid[16];
	uint8_t devflags;
	uint8_t bblog_shift;
	uint16_t bblog_sectors;
	int32_t bblog_offset;

	uint64_t utime; /* as ctime */
	uint64_t events;
	uint64_t resync_offset; /* MD_CLEAN, or sectors */
	uint32_t checksum;      /* as stored */
	uint32_t checksum_expected;
	uint32_t logical_block_bytes; /* byte 224 of newer kernels' 1.x; 0 = not recorded */
	uint32_t role_count;          /* max_dev: entries of roles[] that count */
	uint16_t roles[MD_ROLES_MAX]; /* by dev_number: a slot or an md_role value */

	struct md_super_090 v090;
};

/* What a version is: one row of the table that all code goes through. */
struct md_format {
	enum md_version version;
	const char *name; /* "1.2" */
	/* First sector of the superblock on a device of @device_sectors; -ERANGE if too small. */
	int (*location)(uint64_t device_sectors, uint64_t *ret_sector);
	/*
	 * Decode MD_SUPER_BYTES read from sector @at. Fills what can be made out even if it then
	 * returns an error after the magic was right, for examine to show.
	 * -ENODATA no superblock here (magic); -EBADMSG checksum; -EUCLEAN a field contradicts the
	 * format or the device (named in @fault); -EOPNOTSUPP unknown feature bits (named).
	 */
	int (*decode)(const void *block, uint64_t at, uint64_t device_sectors, struct md_super *ret,
		struct fault *fault);
	/* The inverse, padding zeroed and checksum computed; unused bytes as mdadm leaves them. */
	void (*encode)(const struct md_super *super, void *block);
};

const struct md_format *md_format(enum md_version version);
/* "1.2", "1" and "default" (1.2), "0.90", "0", … ; NULL if the name is none. */
const struct md_format *md_format_by_name(const char *name);

/* A device's superblocks as read: blocks[v] valid if present[v] (the device is large enough). */
struct md_super_blocks {
	bool present[MD_VERSIONS];
	uint64_t sector[MD_VERSIONS];
	uint8_t block[MD_VERSIONS][MD_SUPER_BYTES];
};

/*
 * Choose among the superblocks of one device as mdadm does (specification 1.1: largest ctime, order
 * 1.0, 1.1, 1.2, and 0.90 by the same rule). Returns as md_format.decode, for the one chosen: a
 * valid one is preferred to a damaged one; -ENODATA if there is none at all.
 */
int md_super_choose(const struct md_super_blocks *blocks, uint64_t device_sectors,
	struct md_super *ret, struct fault *fault);

/* The slot of this member, or an md_role value. */
unsigned md_super_role(const struct md_super *super);

/* Text forms. Each writes a NUL-terminated string and returns its buffer. */
#define MD_UUID_TEXT 36
char *md_uuid_format(const uint8_t uuid[16], char text[MD_UUID_TEXT]);
/* Any of mdadm's spellings: 32 hex digits with ':', '-', '.' or ' ' anywhere. -EINVAL if not. */
int md_uuid_parse(const char *text, uint8_t uuid[16]);

const char *md_level_name(int level);           /* "raid0", "linear"; "-unknown-" */
int md_level_parse(const char *text, int *ret); /* by number or any mdadm name; -EINVAL */
/* mdadm's name of a layout, NULL if the level has none or it is unknown ("left-symmetric"). */
const char *md_layout_name(int level, uint32_t layout, char buffer[32]);
int md_layout_parse(int level, const char *text, uint32_t *ret); /* -EINVAL */

/* HOMEHOST:NAME as specification 1.7 says. @homehost NULL or "" for none. */
void md_name_compose(const char *homehost, const char *name, char ret[MD_NAME_MAX + 1]);
/* The part behind "host:", or the whole. */
const char *md_name_bare(const char *set_name);

#endif
