/* SPDX-License-Identifier: MIT */
#ifndef STRAKE_EXPORT_NBD_SHARED_ENGINE_H
#define STRAKE_EXPORT_NBD_SHARED_ENGINE_H

/*
 * One engine and its reactor, both single-threaded, used by many threads that each want one request
 * done and wait for it.
 *
 * No request is handed to another thread. A mutex protects engine and reactor. The thread that has
 * a request submits it itself; if nobody waits for the members yet it becomes the leader, waits for
 * completions (without the mutex) and delivers all that arrive, its own and other threads'. The
 * others sleep until the leader has delivered theirs. A leader whose own request is done wakes one
 * of the sleepers to lead and leaves. So one thread alone, or requests that the members answer at
 * once, pay for no hand-over at all, and no thread exists only to serve others.
 *
 * Arrays with redundancy are shared in another way, by a thread of their own: owned_engine.h.
 */

#include "engine/engine.h"
#include "io/reactor.h"

struct shared_engine;

/*
 * Share @engine, which was made in the world of @reactor. Both stay the caller's, who must not
 * touch them until shared_engine_free() but in shared_engine_call().
 * -ENOMEM, -EAGAIN if the system has no more thread keys or threads.
 */
int shared_engine_new(struct engine *engine, struct reactor *reactor, struct shared_engine **ret);

/* No request may be in flight; threads that have used it may still exist. NULL is allowed. */
void shared_engine_free(struct shared_engine *shared);

/*
 * Do @request and return its result, as engine_request.done() would have been told it. Blocks. The
 * request's done and owner fields are used here; all others are the caller's as engine.h says.
 */
int shared_engine_do(struct shared_engine *shared, struct engine_request *request);

/*
 * Run @function where engine and reactor may be touched, and return after it. Keep it short,
 * nothing moves meanwhile.
 */
void shared_engine_call(
	struct shared_engine *shared, void (*function)(void *argument), void *argument);

#endif
