/* SPDX-License-Identifier: MIT */
#ifndef STRAKE_CONTROL_SERVER_H
#define STRAKE_CONTROL_SERVER_H

/*
 * The array's end of the control socket: a thread of its own that accepts connections on
 * NAME.sock, reads one request, has it handled and writes the reply. handle() runs on that thread,
 * may block (attaching and detaching loop devices wait for the array to answer I/O), and must reach
 * the engine by whatever way its process has (a message to the reactor's thread, or a lock).
 */

#include <jansson.h>

#include "util/fault.h"

struct control_server;

/*
 * Bind DIR/NAME.sock (a stale socket is replaced, a living one is -EBUSY "already running") and
 * start the thread. @handle returns a new reference: the reply object.
 */
int control_server_start(const char *name, json_t *(*handle)(void *owner, json_t *request),
	void *owner, struct control_server **ret, struct fault *fault);

/*
 * The same in two steps, for an array whose serving process may die and be replaced: whoever
 * outlives it binds, and keeps the descriptor, so that the array stays listed and callers wait
 * instead of being refused. As a connected caller sees it, that process is the array's (it waits
 * for its end after "stop").
 * The first returns the descriptor, close-on-exec; when all its copies are closed
 * control_clean_socket() removes the file. The second takes @listen_fd over if it succeeds.
 */
int control_server_listen(const char *name, struct fault *fault);
int control_server_adopt(const char *name, int listen_fd,
	json_t *(*handle)(void *owner, json_t *request), void *owner, struct control_server **ret,
	struct fault *fault);

/* Stop the thread, remove the socket. Not to be called from handle(). */
void control_server_stop(struct control_server *server);

#endif
