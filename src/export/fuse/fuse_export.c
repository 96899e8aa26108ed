/* SPDX-License-Identifier: MIT */
/* The reactor's side of the serving process: from start to end, on its first thread. */
#include "export/fuse/fuse_export.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "control/redundancy.h"
#include "control/runtime.h"
#include "export/fuse/links.h"
#include "export/fuse/serving.h"
#include "util/cleanup.h"

#define REQUESTS_MAX 256u
#define MEMBER_IOS_MAX 1024u
/* Where partition tables live: GPT's first 34 sectors and DOS's first lie well inside the first
 * MiB, GPT's backup in the last 33 sectors. */
#define TABLE_HEAD_BYTES (1u << 20)
#define TABLE_TAIL_BYTES (34u * 512)
#define TABLE_QUIET_NS 300000000ull
#define FULL_STRIPES_AHEAD 2u

static void table_quiet(struct world_timer *timer)
{
	add_job(timer->owner, JOB_REREAD);
}

/* array_file's written(): fdisk writes a table in several pieces, so wait until it is done. */
static void note_written(void *owner, uint64_t offset_bytes, uint64_t length_bytes)
{
	struct serving *serving = owner;
	struct world *world;

	if (!serving->watch_table)
		return;
	if (offset_bytes >= TABLE_HEAD_BYTES && offset_bytes + length_bytes + TABLE_TAIL_BYTES <=
							engine_array_bytes(serving->engine))
		return;
	world = reactor_world(serving->reactor);
	world->ops->timer_arm(world, &serving->table_timer, world_now_ns(world) + TABLE_QUIET_NS);
}

static void file_ended(void *owner)
{
	add_job(owner, JOB_LEAVE);
}

static void run_calls(struct reactor_watch *watch, short revents)
{
	struct serving *serving = watch->owner;
	struct reactor_call *calls, *next;
	uint64_t count;

	if (read(watch->fd, &count, sizeof(count)) < 0)
		return; /* EAGAIN: another wake-up has taken them */
	(void)pthread_mutex_lock(&serving->lock);
	calls = serving->calls;
	serving->calls = NULL;
	(void)pthread_mutex_unlock(&serving->lock);
	for (; calls != NULL; calls = next) {
		next = calls->next; /* the call is its waiter's, who leaves when it is done */
		calls->function(calls->argument);
		(void)pthread_mutex_lock(&serving->lock);
		calls->done = true;
		(void)pthread_cond_broadcast(&serving->changed);
		(void)pthread_mutex_unlock(&serving->lock);
	}
}

static void signal_arrived(struct reactor_watch *watch, short revents)
{
	struct signalfd_siginfo info;

	if (read(watch->fd, &info, sizeof(info)) == sizeof(info))
		add_job(watch->owner, JOB_STOP);
}

/* A block device that cannot zero by itself would be written full of zeros at each discard. */
static bool device_can_zero(const struct member *member)
{
	_cleanup_fclose_ FILE *file = NULL;
	char path[96];
	unsigned long long bytes = 0;

	(void)snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/queue/write_zeroes_max_bytes",
		member->major, member->minor);
	file = fopen(path, "re");
	if (file == NULL) { /* a partition: its disk knows */
		(void)snprintf(path, sizeof(path),
			"/sys/dev/block/%u:%u/../queue/write_zeroes_max_bytes", member->major,
			member->minor);
		file = fopen(path, "re");
	}
	return file != NULL && fscanf(file, "%llu", &bytes) == 1 && bytes > 0;
}

static bool members_can_zero(const struct export_start *start)
{
	for (unsigned i = 0; i < start->member_count; i++)
		if (start->members[i]->is_block && !device_can_zero(start->members[i]))
			return false;
	return true;
}

static int make_engine(struct serving *serving, struct fault *fault)
{
	const struct export_start *start = serving->start;

	serving->assembled = (struct assembled){
		.name = serving->name,
		.assembly = start->assembly,
		.members = reactor_members(serving->reactor),
		.readonly = start->options->readonly,
		.requests_max = REQUESTS_MAX,
	};
	return assembled_engine_new(
		&serving->assembled, reactor_world(serving->reactor), &serving->engine, fault);
}

static void on_reactor_of(void *owner, void (*function)(void *argument), void *argument)
{
	on_reactor(owner, function, argument);
}

/*
 * Candidates that take no part (stale, failed) must not be kept from being added again. Their locks
 * are our parent's as well, and go with the last of us.
 */
static void close_idle_members(struct serving *serving)
{
	const struct export_start *start = serving->start;
	const struct md_assembly *assembly = start->assembly;

	for (unsigned i = 0; i < start->member_count; i++) {
		bool is_used = false;

		for (unsigned d = 0; d < assembly->device_count; d++)
			is_used |= assembly->devices[d].candidate == i;
		if (is_used)
			continue;
		reactor_member_remove(serving->reactor, i);
		member_close(start->members[i]);
	}
}

static void set_up_management(struct serving *serving)
{
	serving->manage = (struct manage){
		.name = serving->name,
		.engine = serving->engine,
		.reactor = serving->reactor,
		.assembly = serving->start->assembly,
		.persistent = serving->start->options->persistent,
		.on_engine = on_reactor_of,
		.owner = serving,
	};
	if (engine_device_max(serving->engine) > 0)
		close_idle_members(serving);
}

static int make_world(struct serving *serving, struct fault *fault)
{
	const struct reactor_options options = {
		.members = serving->start->members,
		.member_count = serving->start->member_count,
		.member_max = redundancy_member_max(
			serving->start->assembly, serving->start->member_count),
		.io_max = MEMBER_IOS_MAX,
		.sync = serving->start->options->sync_io,
		.ring = serving->start->options->ring_io,
	};
	uint64_t stripe;
	int r = reactor_new(&options, &serving->reactor, fault);

	if (r == 0)
		r = make_engine(serving, fault);
	if (r < 0)
		return r;
	set_up_management(serving);
	serving->readahead_bytes = serving->start->options->readahead_bytes;
	stripe = engine_stripe_bytes(serving->engine);
	if (serving->readahead_bytes == UINT64_MAX && stripe > 0)
		serving->readahead_bytes = FULL_STRIPES_AHEAD * stripe;
	return 0;
}

static int watch(struct serving *serving, struct reactor_watch *watch, int fd,
	void (*ready)(struct reactor_watch *watch, short revents))
{
	*watch = (struct reactor_watch){
		.fd = fd, .events = POLLIN, .ready = ready, .owner = serving};
	if (fd < 0)
		return -errno;
	return reactor_watch_add(serving->reactor, watch);
}

static int make_watches(struct serving *serving, struct fault *fault)
{
	sigset_t signals;
	int r;

	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGHUP);
	/* Before any thread exists, so that all have it and the signal comes to the descriptor. */
	r = -pthread_sigmask(SIG_BLOCK, &signals, NULL);
	(void)signal(SIGPIPE, SIG_IGN); /* a valid signal number */
	if (r == 0)
		r = watch(
			serving, &serving->wake, eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), run_calls);
	if (r == 0)
		r = watch(serving, &serving->signals,
			signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK), signal_arrived);
	return r == 0 ? 0
		      : fault_set(fault, r, "array %s: event descriptors: %s", serving->name,
				strerror(-r));
}

static int mount_file(struct serving *serving, struct fault *fault)
{
	const struct array_file_options options = {
		.path = serving->path,
		.name = serving->name,
		.reactor = serving->reactor,
		.engine = serving->engine,
		.readonly = serving->start->options->readonly,
		.can_zero = members_can_zero(serving->start),
		.readahead_bytes = serving->readahead_bytes == LOOP_UNCHANGED
					   ? 0
					   : serving->readahead_bytes,
		.written = note_written,
		.ended = file_ended,
		.owner = serving,
	};

	return array_file_mount(&options, &serving->file, fault);
}

/* The socket comes first: with it the name is ours, and nobody cleans up behind our back. */
static int set_up(struct serving *serving, struct fault *fault)
{
	int r = runtime_file(serving->name, serving->path, fault);

	export_harden();
	if (r == 0)
		r = make_world(serving, fault);
	if (r == 0)
		r = make_watches(serving, fault);
	if (r == 0)
		r = control_server_start(
			serving->name, serving_handle, serving, &serving->server, fault);
	if (r == 0)
		r = mount_file(serving, fault);
	if (r < 0)
		return r;
	r = -pthread_create(&serving->worker, NULL, serving_work, serving);
	return r == 0 ? 0
		      : fault_set(fault, r, "array %s: cannot start a thread: %s", serving->name,
				strerror(-r));
}

/*
 * The kernel frees a ring some time after its process has ended, and the ring holds the members'
 * files. The lock of a file can be given back now, so that whoever saw us end finds it free.
 */
static void release_members(const struct reactor *reactor)
{
	struct member *const *members = reactor_members(reactor);

	for (unsigned i = 0; i < reactor_member_max(reactor); i++)
		if (members[i] != NULL)
			member_release(members[i]); /* goes with us at the latest */
}

static void tear_down(struct serving *serving)
{
	control_server_stop(serving->server);
	array_file_free(serving->file);
	if (serving->wake.fd >= 0)
		close(serving->wake.fd);
	if (serving->signals.fd >= 0)
		close(serving->signals.fd);
	if (serving->engine != NULL)
		engine_free(serving->engine);
	/* If the start failed our parent still has the members, and may go on. */
	if (serving->leave && serving->start_result == 0)
		release_members(serving->reactor);
	if (serving->reactor != NULL)
		reactor_free(serving->reactor);
}

/* Until the worker says so; a cut connection may leave requests at work: they end first. */
static int serve(struct serving *serving)
{
	int r = 0;

	while (!serving->leave || engine_inflight(serving->engine) > 0) {
		r = reactor_run(serving->reactor, true, UINT64_MAX);
		if (r < 0 && r != -EINTR)
			return r;
	}
	return 0;
}

static int fuse_run(const struct export_start *start, struct fault *fault)
{
	struct serving serving = {
		.start = start,
		.name = start->options->name,
		.lock = PTHREAD_MUTEX_INITIALIZER,
		.changed = PTHREAD_COND_INITIALIZER,
		.admin = PTHREAD_MUTEX_INITIALIZER,
		.start_fault = fault,
		.wake.fd = -1,
		.signals.fd = -1,
	};
	int r;

	serving.table_timer.expired = table_quiet;
	serving.table_timer.owner = &serving;
	r = set_up(&serving, fault);
	if (r < 0) {
		tear_down(&serving);
		return r;
	}
	export_lock_memory();
	add_job(&serving, JOB_ATTACH);
	r = serve(&serving);
	if (r < 0) /* the ring itself is broken: nothing can be served or undone */
		abort();
	(void)pthread_join(serving.worker, NULL); /* our own thread */
	tear_down(&serving);
	return serving.start_result;
}

/*
 * ENOTCONN is what the kernel answers for a FUSE mount whose process is dead (ECONNABORTED if it
 * dies meanwhile); asked by open(), for stat() may still be answered from what it remembers.
 */
static bool is_dead_mount(const char *path)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

	return fd < 0 && (errno == ENOTCONN || errno == ECONNABORTED);
}

static void remove_empty_file(const char *path)
{
	struct stat st;

	if (lstat(path, &st) == 0 && S_ISREG(st.st_mode) && st.st_size == 0)
		(void)unlink(path); /* if it stays, the next mount covers it */
}

static int fuse_clean(const char *name, struct fault *fault)
{
	char path[PATH_MAX];
	int r = runtime_file(name, path, fault);

	if (r == 0 && is_dead_mount(path)) {
		block_clean(path);
		r = array_file_unmount_dead(path);
		if (r < 0)
			return fault_set(fault, r,
				"array %s: dead FUSE mount %s: cannot unmount it: %s", name, path,
				strerror(-r));
	}
	if (r == 0)
		r = links_clean(name, fault);
	if (r == 0)
		remove_empty_file(path);
	return r;
}

const struct export_ops fuse_export_ops = {
	.name = "fuse",
	.kinds = EXPORT_KIND(ARRAY_EXPORT_AUTO) | EXPORT_KIND(ARRAY_EXPORT_FUSE) |
		 EXPORT_KIND(ARRAY_EXPORT_LOOP),
	.run = fuse_run,
	.clean = fuse_clean,
};
