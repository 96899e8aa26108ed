/* SPDX-License-Identifier: MIT */
#ifndef STRAKE_CLI_CREATE_H
#define STRAKE_CLI_CREATE_H

/* What the files of create share: create.c asks and starts, create_plan.c plans, create_write.c
 * writes. */

#include <limits.h>

#include "cli/start.h"
#include "md/plan.h"
#include "probe/probe.h"

#define CREATION_MISSING UINT_MAX

/* What stood on a member where something is about to be written. */
struct creation_old {
	struct md_super_blocks supers;
	uint64_t bitmap_sector;
	void *bitmap; /* creation.bitmap_bytes; NULL: nothing is written there */
};

struct creation {
	const struct cli_options *options;
	char name[NAME_MAX];
	unsigned count;        /* devices that were listed, those that are missing too */
	unsigned *member_of;   /* by listed device: its member in the set, or CREATION_MISSING */
	struct member_set set; /* supers: the planned ones */
	struct md_plan_options plan;
	struct md_plan_device *devices; /* by listed device */
	void *bitmap_area;              /* what goes to each member's bitmap */
	size_t bitmap_bytes;            /* 0: no bitmap */
	struct md_assembly *assembly;
	struct creation_old *old; /* by member */
	void *now;                /* room to see what has changed of it */
	unsigned findings;
	struct runtime_claim claim;
	bool destroy; /* consent to lose what was found */
	struct fault *fault;
};

/* Is the device at @index of the command line "missing"? */
bool creation_is_missing(const struct creation *creation, unsigned index);

/* Superblocks and bitmap for the opened members, and whether they can be assembled again. */
int creation_plan(struct creation *creation);

/* Write them; if that fails, put back what stood there. */
int creation_write(struct creation *creation);

/*
 * Does each member that has a slot read as zeros over the data area that the array will use?
 * Holes of files count as zeros, other data is read if it is not much. False when in doubt.
 */
bool creation_is_blank(const struct creation *creation);

#endif
