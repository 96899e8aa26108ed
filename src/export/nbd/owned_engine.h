/* SPDX-License-Identifier: MIT */
#ifndef STRAKE_EXPORT_NBD_OWNED_ENGINE_H
#define STRAKE_EXPORT_NBD_OWNED_ENGINE_H

/*
 * The other way to share an engine (shared_engine.h): one thread of its own has engine and reactor,
 * and all others hand their requests to it. For arrays with redundancy, which have work to do while
 * no client is there (superblocks, timers, resync), and whose member I/O must not be cancelled with
 * the thread that happened to submit it.
 */

#include "engine/engine.h"
#include "io/reactor.h"

struct owned_engine;

/* Both stay the caller's, who must not touch them until owned_engine_free(). */
int owned_engine_new(struct engine *engine, struct reactor *reactor, struct owned_engine **ret);
/* Ends the thread. No request may be in flight. NULL is allowed. */
void owned_engine_free(struct owned_engine *owned);

/* Do @request and return its result; done and owner are used here. Blocks. */
int owned_engine_do(struct owned_engine *owned, struct engine_request *request);
/* Run @function on the thread and wait for it. */
void owned_engine_call(
	struct owned_engine *owned, void (*function)(void *argument), void *argument);

#endif
