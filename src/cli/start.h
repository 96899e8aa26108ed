/* SPDX-License-Identifier: MIT */
#ifndef STRAKE_CLI_START_H
#define STRAKE_CLI_START_H

/* What create, assemble and build have in common at their end: an array begins to run. */

#include "cli/members.h"
#include "control/runtime.h"

/*
 * May an array @name be started here: is the directory usable, and does no such array run? Takes
 * the name: what comes next, superblocks written among it, is done by nobody else under that name
 * until runtime_release(). An earlier claim in @claim (fd -1 for none) is given up first.
 */
int start_possible(const char *name, struct runtime_claim *claim, struct fault *fault);

struct start {
	const struct cli_options *options;
	const struct md_assembly *assembly;
	const struct member_set *set;
	const char *name;
	bool persistent;
};

/* Start it and say so. @fault must not be NULL: an export's note travels in it. */
int start_array(const struct start *start, struct fault *fault);

/* The name in the superblock that goes with the running name: "md0" → "0", "data" → "data". */
const char *start_bare_name(const char *name);

#endif
