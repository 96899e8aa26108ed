/* SPDX-License-Identifier: MIT */
#ifndef STRAKE_GEOMETRY_AVAILABLE_H
#define STRAKE_GEOMETRY_AVAILABLE_H

/* Facts that hold for every level: what can be missing, how large the array is. */

#include <stdbool.h>
#include <stdint.h>

#include "util/fault.h"

/*
 * Can the array be read in full with those of its @slots that are in sync (@in_sync: one per slot)?
 * False for a level or layout that does not exist.
 */
bool geometry_available(int level, uint32_t layout, unsigned slots, const bool *in_sync);

/*
 * Size of an array of RAID 1, 4, 5, 6 or 10 whose members use @component_bytes each (specification
 * 7.1). Errors are those of stripes_init() and mirrors_init(); -EINVAL for RAID 0 and linear, whose
 * size depends on each member's.
 */
int geometry_component_array_bytes(int level, uint32_t layout, uint32_t chunk_bytes, unsigned slots,
	uint64_t component_bytes, uint64_t *ret, struct fault *fault);

#endif
