/* SPDX-License-Identifier: MIT */
#ifndef STRAKE_EXPORT_NBD_CHANGES_H
#define STRAKE_EXPORT_NBD_CHANGES_H

/*
 * Members that have come and gone since the array was started, for the process that takes over when
 * nbdkit dies: a memory file of entries, each '+' or '-', a path and a NUL.
 */

#include <stdbool.h>

int changes_new(void); /* its descriptor, close-on-exec, or a negative errno */
/* Append an entry. 0 or a negative errno. */
int changes_note(int fd, bool joined, const char *path);
/* Call @entry for each, oldest first. 0 or a negative errno. */
int changes_read(int fd, void (*entry)(void *owner, bool joined, const char *path), void *owner);

#endif
