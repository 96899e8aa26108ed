/* SPDX-License-Identifier: MIT */
#ifndef STRAKE_MD_ASSEMBLY_H
#define STRAKE_MD_ASSEMBLY_H

/*
 * Assembly: from the superblocks of some devices to one array whose slots are filled, or to the
 * words that say why not (specification 8). Pure. Here sectors become bytes, for geometry and
 * engine.
 */

#include <stdbool.h>
#include <stdint.h>

#include "geometry/geometry.h"
#include "md/super.h"

/* A device that holds a valid superblock. */
struct md_candidate {
	const char *path; /* for messages; owned by the caller */
	uint64_t device_sectors;
	const struct md_super *super;
};

struct md_assembly_slot {
	int candidate; /* index into the candidates, -1 while the slot is empty */
	uint64_t data_offset_bytes;
	uint64_t data_bytes; /* usable on this member, before rounding to chunks */
};

struct md_assembly_options {
	bool force;
	uint32_t raid0_layout; /* --layout / --update=layout-…: used where the superblock has none;
				  GEOMETRY_RAID0_UNKNOWN for "not said" */
};

struct md_assembly {
	const struct md_super *super; /* the freshest; array-wide facts come from here */
	unsigned slot_count;
	unsigned missing_count;
	struct md_assembly_slot slots[GEOMETRY_SLOTS_MAX];
	/* Ready for geometry_new(), but for slot_bytes, which the caller gathers from slots[]. */
	int level;
	uint32_t layout;
	uint32_t chunk_bytes;
	uint32_t logical_block_bytes; /* what the superblock records; 0 if nothing */
};

/*
 * Assemble @count candidates. Fills *@ret (caller's, large: not on the stack of a deep call).
 * 0 if every slot that the level needs is filled; else, with words that name devices and fields:
 * -EUCLEAN devices of different arrays, contradictory superblocks, two devices for one slot,
 * conflicting event counts, several zones without a layout; -ENODEV members missing (named by slot,
 * "need all N to start it"); -EOPNOTSUPP a level or feature that cannot run yet (named);
 * -EINVAL no candidate.
 */
int md_assemble(const struct md_candidate *candidates, unsigned count,
	const struct md_assembly_options *options, struct md_assembly *ret, struct fault *fault);

#endif
