/* SPDX-License-Identifier: MIT */
#ifndef STRAKE_CONTROL_SOCKET_H
#define STRAKE_CONTROL_SOCKET_H

/* What both ends of the control socket share: addresses, lines. */

#include <jansson.h>
#include <stdbool.h>

#include "util/fault.h"

#define CONTROL_LINE_MAX (8u << 20) /* a detail of 1,920 members takes half a megabyte */

#define CONTROL_WAIT_SECONDS 10 /* for a question's answer, or to be heard at all */

/*
 * A stream socket bound to (@listening) or connected with NAME.sock. Returns the descriptor.
 * Connecting: -ENOENT or -ECONNREFUSED if nobody is there, -EAGAIN if somebody is but has not let
 * anybody in for CONTROL_WAIT_SECONDS. Binding: -EADDRINUSE.
 */
int control_socket(const char *name, bool listening, struct fault *fault);

/*
 * What is behind NAME.sock? 1: a process that died and left it (it refuses connections); 0: there
 * is none; -EBUSY "already running"; another errno with words if it cannot be told.
 */
int control_look(const char *name, struct fault *fault);
/*
 * Remove NAME.sock if its owner is dead (it refuses connections). -EBUSY "already running". To be
 * called between control_lock() and the closing of its descriptor.
 */
int control_clean_socket(const char *name, struct fault *fault);
/* Take the lock under which sockets appear and disappear: a descriptor to close. */
int control_lock(struct fault *fault);

/* One JSON object and a newline. 0, or a negative errno. */
int control_send(int fd, const json_t *object);
/* The same way in. -ENODATA if the other end closed before a whole line; -EBADMSG no JSON object.
 */
int control_receive(int fd, size_t line_max, json_t **ret);

#endif
