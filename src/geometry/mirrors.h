/* SPDX-License-Identifier: MIT */
#ifndef STRAKE_GEOMETRY_MIRRORS_H
#define STRAKE_GEOMETRY_MIRRORS_H

/*
 * Mirrors: where the copies of a byte live in RAID 1 and RAID 10 (specification 7.2, 7.6). All in
 * bytes; member offsets count from the start of the member's data. Copies of one chunk always lie
 * on different slots: layouts that break this are refused.
 */

#include <stdbool.h>
#include <stdint.h>

#include "geometry/geometry.h"
#include "util/fault.h"

/* RAID 10 layout number: bits 0-7 near, 8-15 far, 16 offset, 17-18 kind of far sets. */
#define MIRRORS_LAYOUT(near, far) ((uint32_t)(near) | (uint32_t)(far) << 8)
#define MIRRORS_LAYOUT_OFFSET (1u << 16)

struct mirrors {
	unsigned slots;
	unsigned copies;      /* RAID 1: slots; RAID 10: near · far */
	bool chunked;         /* RAID 10 */
	uint32_t chunk_bytes; /* 0 if not chunked */
	uint64_t array_bytes;
	/* Length of the space that resync and bitmap count in: RAID 1 member, RAID 10 array. */
	uint64_t sync_bytes;

	/* RAID 10 only. */
	unsigned chunk_shift;
	unsigned near, far;
	bool offset;         /* far copies lie in adjacent rows, not in far sections */
	unsigned set_slots;  /* far copies stay within sets of that many slots */
	unsigned last_start; /* first slot of the last set, which takes the slots left over */
	uint64_t rows;       /* chunks of one far section of a member */
	uint64_t chunks;     /* of the array */
};

/*
 * @member_bytes: used size of each member ("component size"). RAID 1 ignores layout and chunk.
 * Returns 0; -EINVAL with the reason in @fault: level, slots, chunk (no power of two, below 4096),
 * fewer than 2 copies or more than slots, unknown bits, layouts in which copies share a slot or a
 * place, no room for a chunk; -ERANGE if the array were larger than 8 EiB.
 */
int mirrors_init(int level, uint32_t layout, uint32_t chunk_bytes, unsigned slots,
	uint64_t member_bytes, struct mirrors *ret, struct fault *fault);

/*
 * All copies of array byte @offset, below the array's size: @copies[m->copies], the primary first.
 * Returns the length of the run, which every copy has: to the end of the chunk, of the array for
 * RAID 1.
 */
uint64_t mirrors_map(const struct mirrors *m, uint64_t offset, struct geometry_piece *copies);

/*
 * The array byte that @slot holds at @member_offset, and how far that run goes. False for what
 * holds nothing (the odd ends); then *@ret_length is the length of the unused run, to the end of
 * the chunk, or UINT64_MAX if nothing behind it on this member is used either.
 */
bool mirrors_inverse(const struct mirrors *m, unsigned slot, uint64_t member_offset,
	uint64_t *ret_array_offset, uint64_t *ret_length);

/* Is each byte of the array on at least one slot that is in sync? @in_sync: one per slot. */
bool mirrors_available(const struct mirrors *m, const bool *in_sync);

#endif
