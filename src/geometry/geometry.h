/* SPDX-License-Identifier: MIT */
#ifndef STRAKE_GEOMETRY_GEOMETRY_H
#define STRAKE_GEOMETRY_GEOMETRY_H

/*
 * Geometry: where a byte of the array lives. Pure arithmetic, all in bytes.
 *
 * "Member offset" here counts from the start of the array's data on the member (the engine adds
 * the member's data offset, in one place). A zone is a range of the array in which the same set of
 * slots is striped; inside a zone a contiguous array range is one contiguous range on each member.
 */

#include <stdint.h>

#include "util/fault.h"

#define GEOMETRY_LEVEL_LINEAR (-1)
#define GEOMETRY_SLOTS_MAX 1920
#define GEOMETRY_NO_SLOT UINT16_MAX /* a role that no slot has */

/* RAID 0 with members of unequal size: how the later zones rotate (specification 7.3). */
#define GEOMETRY_RAID0_UNKNOWN 0
#define GEOMETRY_RAID0_ORIGINAL 1
#define GEOMETRY_RAID0_ALTERNATE 2

struct geometry_config {
	int level;                  /* md's number: -1 linear, 0 RAID 0 */
	uint32_t layout;            /* md's number for the level */
	uint32_t chunk_bytes;       /* RAID 0: > 0; linear: rounding, may be 0 */
	unsigned slots;             /* 1 … GEOMETRY_SLOTS_MAX */
	const uint64_t *slot_bytes; /* @slots usable data sizes, before rounding to chunks */
};

/* A contiguous run of the array on one member. */
struct geometry_piece {
	unsigned slot;
	uint64_t member_offset; /* bytes from the start of the member's data */
	uint64_t length;        /* bytes from the asked offset to the end of the run */
};

struct geometry;

/*
 * Compute the zones of @config (copied, nothing of it is kept).
 * Returns 0; -EINVAL with the reason in @fault if the numbers are no array (no slot, chunk 0 or no
 * multiple of 512, a slot smaller than a chunk); -EUCLEAN if several zones exist and the layout is
 * unknown; -EOPNOTSUPP for a level that does not run yet; -ERANGE if the size overflows; -ENOMEM.
 */
int geometry_new(const struct geometry_config *config, struct geometry **ret, struct fault *fault);
void geometry_free(struct geometry *geometry);

/* Size of the array. */
uint64_t geometry_array_bytes(const struct geometry *geometry);

unsigned geometry_zone_count(const struct geometry *geometry);

/* Slots that the first zone is striped over: all of a RAID 0 array's, 1 for linear. */
unsigned geometry_width(const struct geometry *geometry);

/* Where array byte @offset (below the array's size) lives, and how far the run goes. */
struct geometry_piece geometry_map(const struct geometry *geometry, uint64_t offset);

/* First array byte behind the zone that holds @offset. */
uint64_t geometry_zone_end(const struct geometry *geometry, uint64_t offset);

/*
 * The part of array range [@offset, @offset + @length), which lies within one zone, that member
 * @slot holds: one contiguous member range. Length 0 if it holds none.
 */
struct geometry_piece geometry_member_range(
	const struct geometry *geometry, uint64_t offset, uint64_t length, unsigned slot);

#endif
