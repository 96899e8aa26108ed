/* SPDX-License-Identifier: MIT */
#ifndef STRAKE_CONTROL_REDUNDANCY_H
#define STRAKE_CONTROL_REDUNDANCY_H

/* What an engine with redundancy is told at start, gathered from an assembly and its members. */

#include "engine/engine.h"
#include "io/member.h"
#include "md/assembly.h"

struct redundancy {
	struct engine_redundancy engine; /* points into the rest */
	struct engine_device *devices;
	struct engine_bitmap bitmap;
	void *bitmap_area;        /* as read: header, bits */
	struct md_badblocks *bad; /* by device; NULL if none has bad blocks */
};

/*
 * Gather it. @members: by candidate index. Reads the write-intent bitmap from the first member in
 * sync that has it; a bitmap that cannot be trusted counts as all set, and @note (may be NULL) says
 * so. Of members that have bad blocks it reads the log. Errors: those of reading, -ENOMEM, -EUCLEAN
 * a bitmap outside its place, a log that makes no sense.
 */
int redundancy_gather(const struct md_assembly *assembly, struct member *const *members,
	struct redundancy *ret, struct fault *note, struct fault *fault);
/* Room that the reactor needs for members which come while the array runs. */
unsigned redundancy_member_max(const struct md_assembly *assembly, unsigned member_count);
void redundancy_free(struct redundancy *redundancy); /* what is all zeros is left alone */

#endif
