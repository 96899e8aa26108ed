/* SPDX-License-Identifier: MIT */
#ifndef STRAKE_EXPORT_NBD_SUPERVISOR_H
#define STRAKE_EXPORT_NBD_SUPERVISOR_H

/*
 * The process that outlives nbdkit.
 *
 * A client can make nbdkit 1.32 abort: it hangs up while several of its requests are being worked
 * on, one worker finds the connection broken and forgets its descriptor, and the next fails the
 * assertion that there is one. That shall cost clients their connection, not users their array. So
 * what makes up the array stays here, out of every client's reach: the hold of its members, its
 * name (the control socket) and the place where clients find it (the NBD socket). nbdkit is a child
 * that borrows all three, and whenever it dies there is another.
 */

#include "control/export.h"

struct supervised {
	const struct export_start *start;
	const char *plugin_path;
	const char *socket_path;
	int listen_fd;  /* bound to socket_path */
	int control_fd; /* of control_server_listen() */
};

/*
 * Start nbdkit, tell export_ready(), and keep it running until it ends by itself (stop) or this
 * process gets SIGTERM, SIGINT or SIGHUP. 0 when the array was stopped; -EINTR if a signal came
 * while no nbdkit served. Otherwise negative, with words, if nbdkit could not start; if that
 * happens after export_ready(), the words go to the system's log. Removes no files: after 0
 * nbdkit's plugin has done so, otherwise the caller must.
 */
int supervise(const struct supervised *supervised, struct fault *fault);

#endif
