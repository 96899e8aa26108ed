/* SPDX-License-Identifier: MIT */
#ifndef STRAKE_MD_PLAN_INTERNAL_H
#define STRAKE_MD_PLAN_INTERNAL_H

/* What the files of the plan share: plan.c checks, plan_fill.c fills, plan_add.c adds. */

#include "md/plan.h"

#define MD_PLAN_KIB_SECTORS 2u
#define MD_PLAN_SUPER_SECTORS (MD_SUPER_BYTES / MD_SECTOR)
#define MD_PLAN_BBLOG_SECTORS 8u
#define MD_PLAN_DEVICES_090_MAX 27u
#define MD_PLAN_NOBODY UINT32_MAX

/* A checked request: the defaults are filled in. */
struct md_plan {
	const struct md_plan_options *options;
	const struct md_plan_device *devices;
	unsigned count;
	unsigned missing; /* slots without a device */
	unsigned moved;   /* the device that becomes a spare to be rebuilt, or MD_PLAN_NOBODY */
	uint32_t chunk;
	uint32_t layout;
	uint64_t size;
	uint64_t data_offset;
	uint64_t bitmap_sectors; /* area; 0: no bitmap */
	uint32_t bitmap_chunk_bytes;
};

/* Room that mdadm leaves for a bitmap that may come later (specification 1.9, "bmspace"). */
uint64_t md_plan_bitmap_space(uint64_t sectors);

/* Sectors of the bitmap's area as mdadm counts them: with one bit more than there are chunks. */
uint64_t md_plan_bitmap_sectors(uint64_t sync_sectors, uint32_t chunk_bytes);

/* 1.0: the data size that leaves @reserved sectors before the superblock, where there is room. */
void md_plan_place_before(struct md_super *super, uint64_t reserved);

/* The superblock of @devices[index], which is not missing. */
void md_plan_fill(const struct md_plan *plan, unsigned index, struct md_super *super);

#endif
