/* SPDX-License-Identifier: MIT */
#include "export/fuse/serving.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <syslog.h>
#include <unistd.h>

#include "export/fuse/holders.h"
#include "util/cleanup.h"

#define USE_TEXT 512u
#define RELEASE_WAIT_MS 3000u
#define POLL_MS 50u

static void wake_reactor(struct serving *serving)
{
	const uint64_t one = 1;

	if (write(serving->wake.fd, &one, sizeof(one)) != sizeof(one))
		abort(); /* only an overflow of 2⁶⁴ wake-ups could refuse it */
}

void on_reactor(struct serving *serving, void (*function)(void *argument), void *argument)
{
	struct reactor_call call = {.function = function, .argument = argument};

	(void)pthread_mutex_lock(&serving->lock);
	call.next = serving->calls;
	serving->calls = &call;
	wake_reactor(serving);
	while (!call.done)
		(void)pthread_cond_wait(&serving->changed, &serving->lock);
	(void)pthread_mutex_unlock(&serving->lock);
}

void add_job(struct serving *serving, enum job job)
{
	(void)pthread_mutex_lock(&serving->lock);
	serving->jobs |= job;
	(void)pthread_cond_broadcast(&serving->changed);
	(void)pthread_mutex_unlock(&serving->lock);
}

/* A request or a command that the engine's thread is given and this thread waits for. */
struct errand {
	struct serving *serving;
	struct engine_request flush;
	struct engine_command *command;
	bool done;
	int result;
};

static void errand_done(struct errand *errand, int result)
{
	(void)pthread_mutex_lock(&errand->serving->lock);
	errand->result = result;
	errand->done = true;
	(void)pthread_cond_broadcast(&errand->serving->changed);
	(void)pthread_mutex_unlock(&errand->serving->lock);
}

static void flush_done(struct engine_request *request, int result)
{
	errand_done(request->owner, result);
}

static void command_done(struct engine_command *command, int result)
{
	errand_done(command->owner, result);
}

static void submit_errand(void *argument)
{
	struct errand *errand = argument;
	struct engine *engine = errand->serving->engine;

	if (errand->command != NULL)
		engine_command(engine, errand->command);
	else
		engine_submit(engine, &errand->flush);
	engine_kick(engine);
}

static int run_errand(struct errand *errand)
{
	struct serving *serving = errand->serving;

	on_reactor(serving, submit_errand, errand);
	(void)pthread_mutex_lock(&serving->lock);
	while (!errand->done)
		(void)pthread_cond_wait(&serving->changed, &serving->lock);
	(void)pthread_mutex_unlock(&serving->lock);
	return errand->result;
}

int serving_command(struct serving *serving, struct engine_command *command)
{
	struct errand errand = {.serving = serving, .command = command};

	command->done = command_done;
	command->owner = &errand;
	return run_errand(&errand);
}

static int flush_engine(struct serving *serving)
{
	struct errand errand = {
		.serving = serving, .flush = {.op = ENGINE_FLUSH, .done = flush_done}};

	errand.flush.owner = &errand;
	return serving->start->options->readonly ? 0 : run_errand(&errand);
}

/* Nobody can reach the array any more: what it holds is made durable, and called clean. */
static int close_engine(struct serving *serving, struct fault *fault)
{
	struct engine_command stop = {.verb = ENGINE_STOP, .fault = fault};
	int r = flush_engine(serving);

	if (engine_device_max(serving->engine) > 0) {
		int stopped = serving_command(serving, &stop);

		r = r < 0 ? r : stopped;
	}
	return r;
}

static void set_watch_table(void *argument)
{
	struct serving *serving = argument;

	serving->watch_table = serving->block != NULL;
}

/* The file must be nobody's but our loop device's before that is taken away. */
static int check_file(struct serving *serving, struct fault *fault)
{
	int loop = serving->block != NULL ? block_loop(serving->block)->number : -1;
	char use[USE_TEXT];

	if (!holders_of_file(serving->path, loop, use, sizeof(use)))
		return 0;
	return fault_set(fault, -EBUSY, "array %s: cannot stop: its file %s is %s; end that first",
		serving->name, serving->path, use);
}

/* A descriptor that was just closed is let go a moment later; so is one of a scan of all files. */
static int unmount(struct serving *serving)
{
	int r = array_file_unmount(serving->path);

	for (unsigned waited = 0; r == -EBUSY && waited < RELEASE_WAIT_MS; waited += POLL_MS) {
		(void)usleep(POLL_MS * 1000);
		r = array_file_unmount(serving->path);
	}
	return r == -EINVAL || r == -ENOENT ? 0 : r; /* somebody else has unmounted it */
}

static int attach(struct serving *serving, struct fault *fault)
{
	int r = block_new(serving->name, serving->path, serving->start->options->readonly,
		serving->readahead_bytes, &serving->block, fault);

	on_reactor(serving, set_watch_table, serving);
	return r;
}

int serving_stop(struct serving *serving, struct fault *fault)
{
	bool had_block = serving->block != NULL;
	int r = check_file(serving, fault);

	if (r == 0 && had_block)
		r = block_free(serving->block, fault);
	if (r < 0)
		return r;
	serving->block = NULL;
	on_reactor(serving, set_watch_table, serving);
	r = unmount(serving);
	if (r < 0) {
		if (had_block)
			(void)attach(serving, NULL); /* as it was; if not, the file still serves */
		return fault_set(fault, r,
			"array %s: cannot stop: unmounting %s: %s; is the file "
			"open or mounted?",
			serving->name, serving->path, strerror(-r));
	}
	serving->stopped = true;
	r = close_engine(serving, fault);
	if (r < 0)
		return fault_set(fault, r,
			"array %s: stopped, but the last writes may not be on the "
			"members: %s",
			serving->name, strerror(-r));
	return 0;
}

/*
 * The kernel's first word to a new file system (FUSE_INIT) may be answered, or not for want of
 * memory, after the mount: an open waits for that. Only what can be opened has started.
 */
static int try_file(const struct serving *serving, struct fault *fault)
{
	_cleanup_close_ int fd = open(serving->path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	return fd >= 0 ? 0
		       : fault_set(fault, -errno, "file %s: mounted, but cannot be opened: %s",
				 serving->path, strerror(errno));
}

/*
 * Without a loop device the array is still a file; only somebody who asked for the loop device is
 * refused. Returns the note for the user in @note.
 */
static int begin(struct serving *serving, struct fault *note)
{
	enum array_export export = serving->start->options->export;
	int r = try_file(serving, note);

	if (r < 0)
		return fault_prefix(note, "array %s: ", serving->name);
	if (export == ARRAY_EXPORT_FUSE)
		return 0;
	if (geteuid() != 0)
		r = fault_set(note, -EPERM, "loop devices need root");
	else
		r = attach(serving, note);
	if (r == 0)
		return 0;
	if (export == ARRAY_EXPORT_LOOP || (r != -EPERM && r != -ENODEV && r != -EACCES)) {
		(void)fault_append(note, "; use --export=fuse to have the array as a file");
		return fault_prefix(note, "array %s: ", serving->name);
	}
	fault_append(note, "; the array is the file %s", serving->path);
	return 0;
}

static void work_attach(struct serving *serving)
{
	struct fault note = {0};
	int r;

	(void)pthread_mutex_lock(&serving->admin);
	r = begin(serving, &note);
	serving->start_result = r;
	if (r < 0) {
		*serving->start_fault = note;
		(void)serving_stop(serving, NULL); /* nothing was written; nobody has it open */
	}
	serving->attached = true;
	if (r == 0)
		(void)export_ready(serving->start->ready_fd, /* nobody waits any more: serve on */
			serving->block != NULL ? block_node(serving->block) : serving->path,
			note.text);
	(void)pthread_mutex_unlock(&serving->admin);
}

static void work_reread(struct serving *serving)
{
	struct fault fault = {0};

	(void)pthread_mutex_lock(&serving->admin);
	if (serving->block != NULL && block_reread(serving->block, &fault) < 0)
		syslog(LOG_DAEMON | LOG_WARNING, "strake: %s; strake partprobe %s tries again",
			fault.text, serving->name);
	(void)pthread_mutex_unlock(&serving->admin);
}

/* A signal has nobody to tell why the array still runs, but the system's log. */
static void work_stop(struct serving *serving)
{
	struct fault fault = {0};

	(void)pthread_mutex_lock(&serving->admin);
	if (!serving->stopped && serving_stop(serving, &fault) < 0)
		syslog(LOG_DAEMON | LOG_ERR, "strake: %s", fault.text);
	(void)pthread_mutex_unlock(&serving->admin);
}

static void leave(void *argument)
{
	struct serving *serving = argument;

	serving->leave = true;
}

/* The file is gone: by our own hand, or by somebody's umount: then the array is closed here. */
static void work_leave(struct serving *serving)
{
	struct fault fault = {0};

	(void)pthread_mutex_lock(&serving->admin);
	if (serving->block != NULL && block_free(serving->block, NULL) == 0)
		serving->block =
			NULL; /* cannot be there while the file is unmounted, but by force */
	if (!serving->stopped && close_engine(serving, &fault) < 0)
		syslog(LOG_DAEMON | LOG_ERR,
			"strake: array %s: its file was unmounted; the last writes may not be on "
			"the members: %s",
			serving->name, fault.text);
	serving->stopped = true;
	(void)pthread_mutex_unlock(&serving->admin);
	control_server_stop(serving->server);
	serving->server = NULL;
	on_reactor(serving, leave, serving);
}

static unsigned take_jobs(struct serving *serving)
{
	unsigned jobs;

	(void)pthread_mutex_lock(&serving->lock);
	while (serving->jobs == 0)
		(void)pthread_cond_wait(&serving->changed, &serving->lock);
	jobs = serving->jobs;
	serving->jobs = 0;
	(void)pthread_mutex_unlock(&serving->lock);
	return jobs;
}

void *serving_work(void *argument)
{
	struct serving *serving = argument;
	unsigned jobs;

	do {
		jobs = take_jobs(serving);
		if ((jobs & JOB_ATTACH) != 0)
			work_attach(serving);
		if ((jobs & JOB_REREAD) != 0)
			work_reread(serving);
		if ((jobs & JOB_STOP) != 0)
			work_stop(serving);
		if ((jobs & JOB_LEAVE) != 0)
			work_leave(serving);
	} while ((jobs & JOB_LEAVE) == 0);
	return NULL;
}
