/* SPDX-License-Identifier: MIT */
#ifndef STRAKE_CONTROL_ARRAY_H
#define STRAKE_CONTROL_ARRAY_H

/*
 * A running array: members, reactor, engine, export and control socket in one process.
 */

#include <limits.h>
#include <stdbool.h>

#include "io/member.h"
#include "md/assembly.h"

enum array_export { ARRAY_EXPORT_AUTO, ARRAY_EXPORT_FUSE, ARRAY_EXPORT_LOOP, ARRAY_EXPORT_NBD };

struct array_options {
	const char *name; /* as runtime_name() gives it */
	bool readonly;
	enum array_export export;
	const char *nbd_path;     /* ARRAY_EXPORT_NBD: Unix socket to listen on */
	uint64_t readahead_bytes; /* UINT64_MAX: two full stripes */
	bool sync_io;             /* plain pread/pwrite */
	bool ring_io;             /* io_uring even where all members live in memory */
	bool persistent;          /* false for --build: there is no superblock */
};

/*
 * Start @assembly over @members (index = candidate index of the assembly; taken exclusively by the
 * caller, whose descriptors the new process inherits) as a background process. Returns when the
 * array can be used, with its node's path in @node, or with the reason why not in @fault and
 * nothing left behind. On success @fault->text holds one line that the user should see (why the
 * array is a FUSE file and no block device), or is empty. Traces of a killed process of the same
 * name are removed first. -EBUSY "already running".
 */
int array_start(const struct md_assembly *assembly, struct member *const *members,
	unsigned member_count, const struct array_options *options, char node[PATH_MAX],
	struct fault *fault);

#endif
