/* SPDX-License-Identifier: MIT */
#ifndef STRAKE_EXPORT_NBD_NBD_SOCKET_H
#define STRAKE_EXPORT_NBD_NBD_SOCKET_H

/* The socket at which NBD clients find an array: bound once, by a process that no client reaches.
 */

#include <limits.h>

#include "control/array.h"

/*
 * Where it shall be: where the user said, or else in the runtime directory. Refused, with words, if
 * it cannot be there: -ENAMETOOLONG, -EBUSY somebody listens there, -EEXIST a file that is no
 * socket, errors of the folder. A socket whose server was killed is removed.
 */
int nbd_socket_choose(const struct array_options *options, char ret[PATH_MAX], struct fault *fault);

/* Bind and listen at @path, as chosen. Returns the descriptor, close-on-exec. */
int nbd_socket_listen(const char *name, const char *path, struct fault *fault);

#endif
