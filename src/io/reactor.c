/* SPDX-License-Identifier: MIT */
/* What both reactors do alike: set-up, clocks, timers, the list of watches, the loop. */
#include "io/reactor.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <time.h>

#include "io/internal.h"
#include "io/network.h"
#include "util/rounding.h"

#define EXPIRIES_MAX 64u

uint64_t reactor_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void submit(struct world *world, struct world_io *io)
{
	struct reactor *reactor = (struct reactor *)world;

	assert(io->member < reactor->member_max && reactor->members[io->member] != NULL);
	if (reactor->members[io->member]->network != NULL)
		wires_submit(reactor, io);
	else
		reactor->backend->submit(reactor, io);
}

static void kick(struct world *world)
{
	struct reactor *reactor = (struct reactor *)world;

	reactor->backend->kick(reactor);
}

static uint64_t now_ns(struct world *world)
{
	(void)world;
	return reactor_now_ns();
}

static uint64_t wall_seconds(struct world *world)
{
	(void)world;
	return (uint64_t)time(NULL);
}

static void publish_next_due(struct reactor *reactor)
{
	uint64_t due = reactor->timers != NULL ? reactor->timers->due_ns : UINT64_MAX;

	__atomic_store_n(&reactor->next_due_ns, due, __ATOMIC_SEQ_CST);
}

bool reactor_is_unsupported(int error)
{
	return error == -EOPNOTSUPP || error == -EINVAL || error == -ENODEV;
}

bool reactor_is_lasting(int error)
{
	return error == -EOPNOTSUPP || error == -ENODEV;
}

static void timer_cancel(struct world *world, struct world_timer *timer)
{
	struct reactor *reactor = (struct reactor *)world;
	struct world_timer **at = &reactor->timers;

	if (!timer->armed)
		return;
	while (*at != timer)
		at = &(*at)->next;
	*at = timer->next;
	timer->armed = 0;
	publish_next_due(reactor);
}

static void timer_arm(struct world *world, struct world_timer *timer, uint64_t due_ns)
{
	struct reactor *reactor = (struct reactor *)world;
	struct world_timer **at = &reactor->timers;

	timer_cancel(world, timer);
	while (*at != NULL && (*at)->due_ns <= due_ns)
		at = &(*at)->next;
	timer->due_ns = due_ns;
	timer->next = *at;
	timer->armed = 1;
	*at = timer;
	publish_next_due(reactor);
	/* The waiting thread set its flag before it looked for the next due time, as we look now in
	 * the opposite order: one of us sees the other. */
	if (reactor->timers == timer && __atomic_load_n(&reactor->waiting, __ATOMIC_SEQ_CST))
		reactor->backend->wake(reactor);
}

static void random_bytes(struct world *world, void *buffer, size_t length)
{
	char *at = buffer;

	(void)world;
	while (length > 0) {
		ssize_t got = getrandom(at, length, 0);

		if (got < 0 && errno == EINTR)
			continue;
		assert(got > 0); /* the generator is seeded long before us */
		at += got;
		length -= (size_t)got;
	}
}

static void free_world(struct world *world)
{
	reactor_free((struct reactor *)world);
}

#define WORLD_OPS(backend_name)                                                           \
	{                                                                                 \
		.name = backend_name, .submit = submit, .kick = kick, .now_ns = now_ns,   \
		.wall_seconds = wall_seconds, .timer_arm = timer_arm,                     \
		.timer_cancel = timer_cancel, .random = random_bytes, .free = free_world, \
	}

static const struct world_ops uring_ops = WORLD_OPS("uring");
static const struct world_ops sync_ops = WORLD_OPS("sync");

static int take_memory(struct reactor *reactor, const struct reactor_options *options)
{
	/* Mapped and never written: reading it costs no memory but the kernel's one zero page. */
	void *zeros = mmap(
		NULL, REACTOR_ZEROS_BYTES, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (zeros == MAP_FAILED)
		return -ENOMEM;
	reactor->zeros = zeros;
	reactor->limits = calloc(reactor->member_max + 1, sizeof(*reactor->limits));
	reactor->members = calloc(reactor->member_max + 1, sizeof(struct member *));
	if (reactor->limits == NULL || reactor->members == NULL)
		return -ENOMEM;
	memcpy(reactor->members, options->members, options->member_count * sizeof(struct member *));
	reactor->memory_bytes = sizeof(*reactor) +
				(reactor->member_max + 1) *
					(sizeof(*reactor->limits) + sizeof(struct member *));
	return bounce_new(&reactor->bounce, &reactor->memory_bytes);
}

/*
 * Files in memory are copied, never waited for. io_uring cannot know and gives each request to a
 * kernel worker: two hand-overs for a copy, 2.5 times the processor time of a plain call.
 */
static bool are_in_memory(const struct reactor *reactor)
{
	unsigned count = 0;

	for (; count < reactor->member_max && reactor->members[count] != NULL; count++)
		if (!reactor->members[count]->in_memory)
			return false;
	return count > 0;
}

static int start_backend(
	struct reactor *reactor, const struct reactor_options *options, struct fault *fault)
{
	bool sync = options->sync || (!options->ring && are_in_memory(reactor));
	int r;

	if (!sync) {
		reactor->backend = &backend_uring;
		reactor->world.ops = &uring_ops;
		r = backend_uring.start(reactor, NULL);
		if (r == 0)
			return 0;
	}
	/* Kernels and containers that refuse io_uring still serve plain calls. */
	reactor->backend = &backend_sync;
	reactor->world.ops = &sync_ops;
	return backend_sync.start(reactor, fault);
}

static int wire_members(struct reactor *reactor, struct fault *fault)
{
	int r = 0;

	for (unsigned i = 0; r == 0 && i < reactor->member_max; i++)
		if (reactor->members[i] != NULL && reactor->members[i]->network != NULL) {
			r = wires_add(reactor, i);
			if (r < 0)
				(void)fault_set(fault, r, "%s: cannot be used: %s",
					reactor->members[i]->path, strerror(-r));
		}
	return r;
}

int reactor_new(const struct reactor_options *options, struct reactor **ret, struct fault *fault)
{
	struct reactor *reactor = calloc(1, sizeof(*reactor));
	int r;

	if (reactor == NULL)
		return fault_set(fault, -ENOMEM, "no memory for the reactor");
	reactor->member_max = (unsigned)max_u64(options->member_count, options->member_max);
	reactor->io_max = options->io_max > 0 ? options->io_max : 1;
	reactor->held_fd = options->held_fd;
	reactor->next_due_ns = UINT64_MAX;
	r = take_memory(reactor, options);
	if (r < 0)
		(void)fault_set(fault, r, "no memory for the reactor's buffers");
	else
		r = start_backend(reactor, options, fault);
	if (r < 0)
		reactor->backend = NULL;
	else
		r = wire_members(reactor, fault);
	if (r < 0) {
		reactor_free(reactor);
		return r;
	}
	*ret = reactor;
	return 0;
}

void reactor_free(struct reactor *reactor)
{
	if (reactor == NULL)
		return;
	wires_free(reactor);
	if (reactor->backend != NULL)
		reactor->backend->stop(reactor);
	bounce_free(reactor->bounce);
	free(reactor->limits);
	free(reactor->members);
	if (reactor->zeros != NULL)
		munmap((void *)reactor->zeros, REACTOR_ZEROS_BYTES);
	free(reactor);
}

const char *reactor_kind(const struct reactor *reactor)
{
	return reactor->backend->name;
}

struct world *reactor_world(struct reactor *reactor)
{
	return &reactor->world;
}

int reactor_member_add(struct reactor *reactor, struct member *member, unsigned *ret)
{
	unsigned index = 0;
	int r = 0;

	while (index < reactor->member_max && reactor->members[index] != NULL)
		index++;
	if (index == reactor->member_max)
		return -ENOSPC;
	reactor->members[index] = member;
	reactor->limits[index] = (struct member_limits){0};
	if (member->network != NULL)
		r = wires_add(reactor, index);
	else if (reactor->backend->member_changed != NULL)
		r = reactor->backend->member_changed(reactor, index);
	if (r < 0)
		reactor->members[index] = NULL;
	else
		*ret = index;
	return r;
}

void reactor_member_remove(struct reactor *reactor, unsigned index)
{
	bool is_wired;

	assert(index < reactor->member_max && reactor->members[index] != NULL);
	is_wired = reactor->members[index]->network != NULL;
	reactor->members[index] = NULL;
	if (is_wired)
		wires_remove(reactor, index);
	else if (reactor->backend->member_changed != NULL) /* taking a file out cannot fail */
		(void)reactor->backend->member_changed(reactor, index);
}

struct member *const *reactor_members(const struct reactor *reactor)
{
	return reactor->members;
}

unsigned reactor_member_max(const struct reactor *reactor)
{
	return reactor->member_max;
}

size_t reactor_memory(const struct reactor *reactor)
{
	return reactor->memory_bytes;
}

int reactor_watch_add(struct reactor *reactor, struct reactor_watch *watch)
{
	for (unsigned i = 0; i < WATCHES_MAX; i++) {
		struct watch_entry *entry = &reactor->watches[i];

		if (entry->watch != NULL || entry->armed)
			continue;
		entry->watch = watch;
		entry->generation++;
		watch->state = (int)i;
		reactor->backend->watch_changed(reactor, i);
		return 0;
	}
	return -ENOSPC;
}

void reactor_watch_remove(struct reactor *reactor, struct reactor_watch *watch)
{
	struct watch_entry *entry = &reactor->watches[watch->state];

	assert(entry->watch == watch);
	entry->watch = NULL;
	reactor->backend->watch_changed(reactor, (unsigned)watch->state);
}

/* At most EXPIRIES_MAX, or a timer that arms itself for now would keep all else from running. */
static unsigned expire_timers(struct reactor *reactor)
{
	unsigned count = 0;
	uint64_t now;

	if (reactor->timers == NULL)
		return 0;
	now = reactor_now_ns();
	while (count < EXPIRIES_MAX && reactor->timers != NULL && reactor->timers->due_ns <= now) {
		struct world_timer *timer = reactor->timers;

		timer_cancel(&reactor->world, timer);
		timer->expired(timer);
		count++;
	}
	return count;
}

static uint64_t until_timer(struct reactor *reactor, uint64_t wait_ns)
{
	uint64_t due = __atomic_load_n(&reactor->next_due_ns, __ATOMIC_SEQ_CST);
	uint64_t now;

	if (due == UINT64_MAX)
		return wait_ns;
	now = reactor_now_ns();
	return min_u64(wait_ns, due > now ? due - now : 0);
}

int reactor_wait(struct reactor *reactor, uint64_t wait_ns)
{
	int r;

	__atomic_store_n(&reactor->waiting, true, __ATOMIC_SEQ_CST);
	r = reactor->backend->wait(reactor, false, until_timer(reactor, wait_ns));
	__atomic_store_n(&reactor->waiting, false, __ATOMIC_SEQ_CST);
	return r;
}

int reactor_run(struct reactor *reactor, bool wait, uint64_t wait_ns)
{
	unsigned count = reactor->backend->deliver(reactor, wait);
	unsigned expired = expire_timers(reactor);
	int r;

	/* What the callbacks gathered. Completions dry up if nothing is handed over, and then the
	 * wait below does it with the same system call; a timer may be due for ever. */
	if (!wait || expired > 0)
		reactor->backend->kick(reactor);
	count += expired;
	if (count > 0 || !wait)
		return (int)count;
	r = reactor->backend->wait(reactor, true, until_timer(reactor, wait_ns));
	if (r < 0)
		return r;
	return (int)(reactor->backend->deliver(reactor, false) + expire_timers(reactor));
}
