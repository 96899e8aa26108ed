/* SPDX-License-Identifier: MIT */
#ifndef STRAKE_CONTROL_MANAGE_H
#define STRAKE_CONTROL_MANAGE_H

/*
 * The array's end of management: members that are failed, removed, added, replaced; check, repair
 * and their speed; read-only and back. docs/json.md describes requests and replies.
 */

#include <jansson.h>

#include "engine/engine.h"
#include "io/reactor.h"
#include "md/assembly.h"

/* What the process that serves the array has. */
struct manage {
	const char *name;
	struct engine *engine;
	struct reactor *reactor;
	const struct md_assembly *assembly; /* as it was started */
	bool persistent;                    /* false for --build */
	/* Run @function where engine and reactor may be touched, and wait for it. */
	void (*on_engine)(void *owner, void (*function)(void *argument), void *argument);
	/* @member has become one of the array's; may be NULL. */
	void (*joined)(void *owner, const struct member *member);
	/* @member has left the array and the reactor: close it. NULL: member_close(). */
	void (*dispose)(void *owner, struct member *member);
	void *owner;
};

/*
 * Answer {"command":"manage", …}. Blocks until the engine has recorded the change, so not for the
 * engine's thread; one call at a time. NULL if memory is out.
 */
json_t *manage_handle(const struct manage *manage, json_t *request);

/* Run one command of the engine to its end and return its result. Sets done and owner. */
int manage_command(const struct manage *manage, struct engine_command *command);

#endif
