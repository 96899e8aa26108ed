/* SPDX-License-Identifier: MIT */
#ifndef STRAKE_EXPORT_NBD_HANDOVER_H
#define STRAKE_EXPORT_NBD_HANDOVER_H

/*
 * How the array that strake has assembled reaches the plugin in nbdkit's process: the members stay
 * open across exec, so the exclusive hold never ends, and what is known about them and about the
 * array travels through a memory file. Both ends are built together; a plugin of another version is
 * refused.
 */

#include "control/export.h"

struct nbd_array;

/*
 * Write what @start says to a new memory file, which survives exec, and let the members'
 * descriptors do the same. Returns the descriptor, or a negative errno.
 */
int handover_write(const struct export_start *start, struct fault *fault);

/*
 * The plugin's end: fill @array's members and assembly from @fd, and close it. -EBADMSG if it was
 * written by another version of strake; -ENOMEM; errors of reading.
 */
int handover_read(int fd, struct nbd_array *array, struct fault *fault);

#endif
