/* SPDX-License-Identifier: MIT */
#ifndef STRAKE_PROBE_SUPERBLOCKS_H
#define STRAKE_PROBE_SUPERBLOCKS_H

/* Inside src/probe only. */

#include "io/member.h"
#include "md/super.h"
#include "util/cleanup.h"

/*
 * Is there a superblock of this version that says it belongs to this place, damaged or not?
 * @scratch is filled as far as decoding went.
 */
bool probe_super_is_here(const struct md_super_blocks *blocks, enum md_version version,
	uint64_t device_sectors, struct md_super *scratch);

/* A descriptor for libblkid, of a copy of both ends of a network member; negative errno. */
int probe_copy_ends(const struct member *member);

#endif
