/* SPDX-License-Identifier: MIT */
#ifndef STRAKE_EXPORT_NBD_NBD_ARRAY_H
#define STRAKE_EXPORT_NBD_NBD_ARRAY_H

/*
 * The array behind the NBD plugin, from parameters to a running engine. It is opened in two steps
 * because nbdkit forks in between: what a user can have got wrong is found before the fork, while
 * the terminal still listens; what does not survive a fork (io_uring) is made after it.
 */

#include "control/assembled.h"
#include "control/manage.h"
#include "export/nbd/shared_engine.h"
#include "md/assembly.h"

struct nbd_member {
	char *path;             /* as the user named it, made absolute */
	struct member *member;  /* NULL until nbd_array_open(), unless it was handed over */
	struct md_super *super; /* NULL if the assembly was handed over */
};

struct nbd_array {
	/* Parameters. */
	struct nbd_member *members;
	unsigned member_count;
	char *name; /* of the control socket, or NULL for none */
	bool readonly;
	bool sync_io;
	bool ring_io;
	bool persistent; /* there are superblocks */
	bool supervised; /* strake's process waits behind this one; see supervisor.h */
	int control_fd;  /* if supervised: of control_server_listen() */
	int io_fd;       /* if supervised: reactor_options.held_fd, and a byte for "broken" */
	/*
	 * If supervised and with redundancy: where members that come and go are noted, for a later
	 * process; see changes.h. Else -1.
	 */
	int changes_fd;
	bool redundant;  /* handed over: the superblocks decide who is a member */
	bool was_broken; /* when an earlier process died: no flush may succeed any more */
	struct md_assembly_options assemble;

	/* From nbd_array_open() on. */
	struct member **handles; /* as the reactor wants them: members[i].member */
	struct md_candidate *candidates;
	struct md_assembly *assembly;
	struct md_super *super; /* the assembly's, if that was handed over */

	/* From nbd_array_start() on. */
	struct reactor *reactor;
	struct assembled assembled;
	struct engine *engine;
	struct shared_engine *shared;
	struct manage manage;
};

/* Add a member to open; @path is copied. -ENOMEM. */
int nbd_array_add_path(struct nbd_array *array, const char *path);

/*
 * Open the members exclusively, read their superblocks and assemble, as far as it was not handed
 * over. Members that may not be written to make the array read-only. Writes nothing. The errors of
 * member_open(), probe_read_super() and md_assemble().
 */
int nbd_array_open(struct nbd_array *array, struct fault *fault);

/* Make reactor and engine. The errors of reactor_new() and engine_new(). */
int nbd_array_start(struct nbd_array *array, struct fault *fault);

/*
 * No client is there any more: make durable what they wrote, and with redundancy mark the array
 * clean. Requests fail afterwards.
 */
int nbd_array_stop(struct nbd_array *array, struct fault *fault);

/* Undo everything. No request may be in flight. */
void nbd_array_close(struct nbd_array *array);

#endif
