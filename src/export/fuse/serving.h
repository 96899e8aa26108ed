/* SPDX-License-Identifier: MIT */
#ifndef STRAKE_EXPORT_FUSE_SERVING_H
#define STRAKE_EXPORT_FUSE_SERVING_H

/*
 * The process that serves one array as FUSE file and loop device, and its three threads:
 *
 *   reactor   (the first thread) FUSE requests, engine, member I/O. Never waits for anything else.
 *   control   (server.h) answers strake's questions; asks the reactor by on_reactor().
 *   worker    what must wait for the reactor to answer I/O: attaching and detaching the loop
 *             device, reading partition tables again, stopping after a signal.
 *
 * The admin mutex lets control and worker change the block device one at a time.
 */

#include <jansson.h>
#include <pthread.h>

#include "control/assembled.h"
#include "control/export.h"
#include "control/manage.h"
#include "control/server.h"
#include "engine/engine.h"
#include "export/fuse/block.h"
#include "export/fuse/file.h"
#include "io/reactor.h"

enum job {
	JOB_ATTACH = 1 << 0, /* begin: loop device, readiness */
	JOB_REREAD = 1 << 1, /* the partition table may have changed */
	JOB_STOP = 1 << 2,   /* a signal asked for it */
	JOB_LEAVE = 1 << 3,  /* the file is unmounted: end control thread and worker */
};

struct reactor_call {
	void (*function)(void *argument);
	void *argument;
	bool done;
	struct reactor_call *next;
};

struct serving {
	const struct export_start *start;
	const char *name;
	char path[PATH_MAX]; /* of the FUSE file */
	struct reactor *reactor;
	struct assembled assembled;
	struct manage manage;
	struct engine *engine;
	struct array_file *file;
	struct control_server *server;
	uint64_t readahead_bytes; /* as chosen at start; LOOP_UNCHANGED if nothing is to be set */

	pthread_mutex_t lock; /* calls, jobs */
	pthread_cond_t changed;
	struct reactor_call *calls;
	unsigned jobs;
	struct reactor_watch wake; /* eventfd: calls or leave */
	struct reactor_watch signals;
	pthread_t worker;

	pthread_mutex_t admin; /* block, stopped */
	struct block *block;   /* NULL: FUSE file only */
	bool attached;         /* start is over; commands are welcome */
	bool stopped;          /* nothing of it is left but the process */
	int start_result;
	struct fault *start_fault;

	/* The reactor's. */
	bool watch_table;
	bool leave;
	struct world_timer table_timer;
};

/* Run @function on the reactor's thread and wait for it. */
void on_reactor(struct serving *serving, void (*function)(void *argument), void *argument);
void add_job(struct serving *serving, enum job job);

/* Take everything away and flush. -EBUSY if something is in use; then all is as before. */
int serving_stop(struct serving *serving, struct fault *fault);
/*
 * Run @command on the engine's thread and wait for its end; done and owner are set here. Only for
 * arrays with redundancy.
 */
int serving_command(struct serving *serving, struct engine_command *command);
/* One request from the control socket. */
json_t *serving_handle(void *owner, json_t *request);
/* The worker thread. */
void *serving_work(void *argument);

#endif
