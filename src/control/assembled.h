/* SPDX-License-Identifier: MIT */
#ifndef STRAKE_CONTROL_ASSEMBLED_H
#define STRAKE_CONTROL_ASSEMBLED_H

/* From an assembly to an engine over it: what each process that runs or reads an array does. */

#include "engine/engine.h"
#include "io/member.h"
#include "md/assembly.h"

/* Filled by the caller, who keeps it as long as the engine. */
struct assembled {
	const char *name; /* of the array, for the log; NULL: member errors are not logged */
	const struct md_assembly *assembly;
	struct member *const *members; /* by candidate index */
	bool readonly;
	unsigned requests_max;
	struct engine *engine; /* for the log; set by assembled_engine_new() */
};

/*
 * Start an engine over the assembly in @world, whose member numbers are the assembly's candidate
 * indexes. Member errors go to the system's log in the words "array home: device 2 (/dev/sdc): read
 * of 4096 bytes at byte 1048576: Input/output error"; after the first few of a slot only the 16th,
 * 32nd, 64th and so on. Errors: those of engine_new().
 */
int assembled_engine_new(
	struct assembled *assembled, struct world *world, struct engine **ret, struct fault *fault);

#endif
