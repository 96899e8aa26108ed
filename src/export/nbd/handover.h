/* SPDX-License-Identifier: MIT */
#ifndef STRAKE_EXPORT_NBD_HANDOVER_H
#define STRAKE_EXPORT_NBD_HANDOVER_H

/*
 * How the array that strake has assembled reaches the plugin in nbdkit's process: the members stay
 * open across exec, and what is known about them and about the array travels through a memory file.
 * Both ends are built together; a plugin of another version is refused.
 */

#include "control/export.h"

struct nbd_array;

struct handover {
	const struct export_start *start;
	/*
	 * The array has run since @start was written and died: what its superblocks say is read
	 * again, from the members that are handed over.
	 */
	bool again;
	bool broken;    /* as engine_is_broken() says, of an earlier process */
	int control_fd; /* of control_server_listen(); survives exec */
	int io_fd;      /* reactor_options.held_fd; survives exec */
	int changes_fd; /* see changes.h; survives exec; -1: none */
};

/*
 * To be called in the process that will execute the other program: write what @handover says to a
 * new memory file, which survives exec, and let the members' descriptors do the same, none of them
 * below @fd_min. Returns the file's descriptor, or a negative errno.
 */
int handover_write(const struct handover *handover, int fd_min, struct fault *fault);

/*
 * The plugin's end: fill @array's members from @fd, and its assembly or the options for another
 * nbd_array_open(), and close @fd. -EBADMSG if it was written by another version of strake;
 * -ENOMEM; errors of reading.
 */
int handover_read(int fd, struct nbd_array *array, struct fault *fault);

#endif
