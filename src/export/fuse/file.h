/* SPDX-License-Identifier: MIT */
#ifndef STRAKE_EXPORT_FUSE_FILE_H
#define STRAKE_EXPORT_FUSE_FILE_H

/*
 * The array as one file: a FUSE file system whose root is a regular file, mounted over a file.
 *
 * libfuse mounts, negotiates and answers whatever is rare. READ, WRITE, FSYNC, FALLOCATE and OPEN
 * are spoken here directly in the kernel's protocol (linux/fuse.h), because libfuse would allocate
 * for each request, copy, and hide flags (parallel direct writes).
 *
 * Everything here runs on the reactor's thread, but array_file_unmount().
 */

#include <limits.h>
#include <stdbool.h>

#include "engine/engine.h"
#include "io/reactor.h"

struct array_file;

struct array_file_options {
	const char *path; /* where to mount; made as an empty file if absent */
	const char *name; /* of the array, for messages */
	struct reactor *reactor;
	struct engine *engine;
	bool readonly;
	bool can_zero;            /* FALLOCATE to zero without writing zeros is worth offering */
	uint64_t readahead_bytes; /* 0: the kernel's default */
	/* Bytes [offset, offset + length) have been written or zeroed. */
	void (*written)(void *owner, uint64_t offset_bytes, uint64_t length_bytes);
	/* The file system is gone: unmounted, here or by anybody else. */
	void (*ended)(void *owner);
	void *owner;
};

/*
 * Mount. Nothing answers before the reactor runs. -ENODEV no /dev/fuse, -EBUSY something is mounted
 * there or the file is not empty, other errnos of mounting; each with words.
 */
int array_file_mount(
	const struct array_file_options *options, struct array_file **ret, struct fault *fault);

/* Free, after ended() or without ever having run. Removes the (empty) file under the mount. */
void array_file_free(struct array_file *file);

/* Bytes for buffers and requests, fixed. */
size_t array_file_memory(const struct array_file *file);

/*
 * Unmount @path; not lazily. -EBUSY while anybody has the file open. Runs in any thread but the
 * reactor's. ended() follows.
 */
int array_file_unmount(const char *path);
/* Unmount even if in use: for what a killed process left. */
int array_file_unmount_dead(const char *path);

#endif
