/* SPDX-License-Identifier: MIT */
/*
 * The reactor over plain system calls: for kernels without io_uring, and as a second opinion. I/O
 * is done one after the other when the reactor runs, never inside submit().
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/uio.h>
#include <unistd.h>

#include "io/internal.h"
#include "util/rounding.h"

#define LOOKS_PASSED_OVER_MAX 16u

struct sync {
	struct world_io *first, **last;
	unsigned queued; /* read by a waiting thread without the owner's lock */
	int wake_fd;
	unsigned passed_over; /* looks at the watches left out, one after the other */
	void *bounce;
	/*
	 * What a waiting thread polls: by watch, its descriptor and events. A copy, for that thread
	 * looks without the owner's lock, and a watch that is removed meanwhile may be gone.
	 */
	uint64_t polled[WATCHES_MAX];
};

#define POLL_NOTHING UINT64_MAX

static void sync_submit(struct reactor *reactor, struct world_io *io)
{
	struct sync *sync = reactor->data;

	io->next = NULL;
	*sync->last = io;
	sync->last = &io->next;
	__atomic_add_fetch(&sync->queued, 1, __ATOMIC_SEQ_CST);
}

static void sync_wake(struct reactor *reactor)
{
	struct sync *sync = reactor->data;
	uint64_t one = 1;

	while (write(sync->wake_fd, &one, sizeof(one)) < 0 && errno == EINTR)
		;
}

static void sync_kick(struct reactor *reactor)
{
	struct sync *sync = reactor->data;

	if (__atomic_load_n(&sync->queued, __ATOMIC_SEQ_CST) > 0 &&
		__atomic_load_n(&reactor->waiting, __ATOMIC_SEQ_CST))
		sync_wake(reactor);
}

static ssize_t move(
	const struct world_io *io, int fd, const struct iovec *iov, unsigned count, uint64_t offset)
{
	int flags = io->flags & WORLD_FUA ? RWF_DSYNC : 0;
	ssize_t moved;

	do {
		moved = io->op == WORLD_READ ? preadv2(fd, iov, (int)count, (off_t)offset, 0)
					     : pwritev2(fd, iov, (int)count, (off_t)offset, flags);
	} while (moved < 0 && (errno == EINTR || errno == EAGAIN));
	return moved < 0 ? -errno : moved;
}

/* One step of a transfer from io->progress_bytes on. Returns bytes moved or a negative errno. */
static ssize_t transfer_step(struct reactor *reactor, struct world_io *io, bool bounce)
{
	struct sync *sync = reactor->data;
	const struct member *member = reactor->members[io->member];
	uint64_t offset = io->offset_bytes + io->progress_bytes;
	uint64_t left = io->length_bytes - io->progress_bytes;
	size_t skip;
	unsigned index;
	ssize_t moved;

	if (bounce) {
		io->rest = (struct iovec){sync->bounce, min_u64(left, BOUNCE_BYTES)};
		if (io->op == WORLD_WRITE)
			transfer_gather(io, io->progress_bytes, sync->bounce, io->rest.iov_len);
		moved = move(io, member->fd, &io->rest, 1, offset);
		if (moved > 0 && io->op == WORLD_READ)
			transfer_scatter(io, io->progress_bytes, sync->bounce, (size_t)moved);
		return moved;
	}
	index = transfer_position(io, io->progress_bytes, &skip);
	if (skip == 0)
		return move(io, member->fd, &io->iov[index], io->iov_count - index, offset);
	io->rest.iov_base = (char *)io->iov[index].iov_base + skip;
	io->rest.iov_len = io->iov[index].iov_len - skip;
	return move(io, member->fd, &io->rest, 1, offset);
}

static int transfer(struct reactor *reactor, struct world_io *io)
{
	bool bounce = !transfer_is_aligned(reactor->members[io->member], io);

	io->progress_bytes = 0;
	while (io->progress_bytes < io->length_bytes) {
		ssize_t moved = transfer_step(reactor, io, bounce);

		if (moved < 0)
			return (int)moved;
		if (moved == 0) /* behind the end of the member */
			return -EIO;
		io->progress_bytes += (uint64_t)moved;
	}
	return 0;
}

static int flush(int fd)
{
	int r;

	do {
		r = fdatasync(fd);
	} while (r < 0 && errno == EINTR);
	return r < 0 ? -errno : 0;
}

static int allocate(const struct world_io *io, int fd, int mode)
{
	int r;

	do {
		r = fallocate(fd, mode | FALLOC_FL_KEEP_SIZE, (off_t)io->offset_bytes,
			(off_t)io->length_bytes);
	} while (r < 0 && errno == EINTR);
	return r < 0 ? -errno : 0;
}

static int write_zeros(struct reactor *reactor, struct world_io *io, int fd)
{
	for (uint64_t done = 0; done < io->length_bytes;) {
		struct iovec zeros = {(void *)reactor->zeros,
			min_u64(REACTOR_ZEROS_BYTES, io->length_bytes - done)};
		ssize_t moved = move(io, fd, &zeros, 1, io->offset_bytes + done);

		if (moved <= 0)
			return moved < 0 ? (int)moved : -EIO;
		done += (uint64_t)moved;
	}
	return 0;
}

static int zero(struct reactor *reactor, struct world_io *io, int fd)
{
	struct member_limits *limits = &reactor->limits[io->member];
	int r = -EOPNOTSUPP;

	if ((io->flags & WORLD_MAY_UNMAP) && !limits->no_punch_hole) {
		r = allocate(io, fd, FALLOC_FL_PUNCH_HOLE);
		limits->no_punch_hole = reactor_is_lasting(r);
	}
	if (reactor_is_unsupported(r) && !limits->no_zero_range) {
		r = allocate(io, fd, FALLOC_FL_ZERO_RANGE);
		limits->no_zero_range = reactor_is_lasting(r);
	}
	if (reactor_is_unsupported(r))
		return write_zeros(reactor, io, fd);
	return r == 0 && (io->flags & WORLD_FUA) ? flush(fd) : r;
}

static int perform(struct reactor *reactor, struct world_io *io)
{
	int fd = reactor->members[io->member]->fd;
	int r;

	switch (io->op) {
	case WORLD_READ:
	case WORLD_WRITE:
		return transfer(reactor, io);
	case WORLD_FLUSH:
		return flush(fd);
	case WORLD_DISCARD:
		r = allocate(io, fd, FALLOC_FL_PUNCH_HOLE);
		if (reactor_is_unsupported(r)) /* advice that the member does not take */
			return 0;
		return r == 0 && (io->flags & WORLD_FUA) ? flush(fd) : r;
	case WORLD_ZERO:
		return zero(reactor, io, fd);
	}
	abort();
}

static unsigned perform_queued(struct reactor *reactor)
{
	struct sync *sync = reactor->data;
	struct world_io *io = sync->first;
	unsigned count = 0;

	/* What the callbacks submit is done at the next run. */
	sync->first = NULL;
	sync->last = &sync->first;
	while (io != NULL) {
		struct world_io *next = io->next;

		__atomic_sub_fetch(&sync->queued, 1, __ATOMIC_SEQ_CST);
		io->done(io, perform(reactor, io));
		io = next;
		count++;
	}
	return count;
}

static unsigned gather_watches(struct reactor *reactor, struct pollfd *fds, unsigned *indexes)
{
	unsigned count = 0;

	for (unsigned i = 0; i < WATCHES_MAX; i++) {
		const struct reactor_watch *watch = reactor->watches[i].watch;

		if (watch == NULL)
			continue;
		fds[count] = (struct pollfd){.fd = watch->fd, .events = watch->events};
		indexes[count++] = i;
	}
	return count;
}

static unsigned deliver_watches(struct reactor *reactor)
{
	struct pollfd fds[WATCHES_MAX];
	unsigned indexes[WATCHES_MAX], generations[WATCHES_MAX], delivered = 0;
	unsigned count = gather_watches(reactor, fds, indexes);

	if (count == 0 || poll(fds, count, 0) <= 0) /* errors show again in wait() */
		return 0;
	for (unsigned i = 0; i < count; i++)
		generations[i] = reactor->watches[indexes[i]].generation;
	for (unsigned i = 0; i < count; i++) {
		struct watch_entry *entry = &reactor->watches[indexes[i]];

		/* An earlier callback may have removed it, or put another in its place. */
		if (fds[i].revents == 0 || entry->watch == NULL ||
			entry->generation != generations[i])
			continue;
		entry->watch->ready(entry->watch, fds[i].revents);
		delivered++;
	}
	return delivered;
}

/*
 * Looking at the watches costs a system call: not when the caller waits next, which looks as well,
 * or comes back at once because I/O was done; but then every so often, or they would starve.
 */
static unsigned sync_deliver(struct reactor *reactor, bool waits_next)
{
	struct sync *sync = reactor->data;
	unsigned count = perform_queued(reactor);

	if (waits_next && ++sync->passed_over < LOOKS_PASSED_OVER_MAX)
		return count;
	sync->passed_over = 0;
	return count + deliver_watches(reactor);
}

static unsigned gather_polled(const struct sync *sync, struct pollfd *fds)
{
	unsigned count = 0;

	for (unsigned i = 0; i < WATCHES_MAX; i++) {
		uint64_t polled = __atomic_load_n(&sync->polled[i], __ATOMIC_SEQ_CST);

		if (polled != POLL_NOTHING)
			fds[count++] = (struct pollfd){
				.fd = (int)(polled >> 32), .events = (short)(polled & UINT16_MAX)};
	}
	return count;
}

static int sync_wait(struct reactor *reactor, bool submit, uint64_t wait_ns)
{
	struct sync *sync = reactor->data;
	struct pollfd fds[WATCHES_MAX + 1];
	unsigned count = gather_polled(sync, fds);
	struct timespec limit = {.tv_sec = (time_t)(wait_ns / 1000000000u),
		.tv_nsec = (long)(wait_ns % 1000000000u)};
	uint64_t value;
	int r = 0;

	(void)submit; /* nothing is gathered elsewhere */
	fds[count++] = (struct pollfd){.fd = sync->wake_fd, .events = POLLIN};
	/* reactor_wait() set its flag before this look: a kick() in between sees the flag. */
	if (__atomic_load_n(&sync->queued, __ATOMIC_SEQ_CST) == 0)
		r = ppoll(fds, count, wait_ns == UINT64_MAX ? NULL : &limit, NULL);
	r = r < 0 ? -errno : 0;
	if (fds[count - 1].revents != 0 && read(sync->wake_fd, &value, sizeof(value)) < 0 &&
		errno != EAGAIN && errno != EINTR)
		return -errno;
	return r;
}

static void sync_watch_changed(struct reactor *reactor, unsigned index)
{
	struct sync *sync = reactor->data;
	const struct reactor_watch *watch = reactor->watches[index].watch;
	uint64_t polled = POLL_NOTHING;

	if (watch != NULL)
		polled = (uint64_t)(uint32_t)watch->fd << 32 | (uint16_t)watch->events;
	__atomic_store_n(&sync->polled[index], polled, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&reactor->waiting, __ATOMIC_SEQ_CST))
		sync_wake(reactor);
}

static void sync_stop(struct reactor *reactor)
{
	struct sync *sync = reactor->data;

	if (sync->wake_fd >= 0)
		close(sync->wake_fd);
	free(sync->bounce);
	free(sync);
}

static int sync_start(struct reactor *reactor, struct fault *fault)
{
	struct sync *sync = calloc(1, sizeof(*sync));

	if (sync == NULL)
		return fault_set(fault, -ENOMEM, "no memory for the reactor");
	reactor->data = sync;
	sync->last = &sync->first;
	for (unsigned i = 0; i < WATCHES_MAX; i++)
		sync->polled[i] = POLL_NOTHING;
	sync->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	sync->bounce = aligned_alloc(4096, BOUNCE_BYTES);
	if (sync->wake_fd < 0 || sync->bounce == NULL) {
		int r = sync->wake_fd < 0 ? -errno : -ENOMEM;

		sync_stop(reactor);
		return fault_set(fault, r, "reactor: %s", strerror(-r));
	}
	reactor->memory_bytes += sizeof(*sync) + BOUNCE_BYTES;
	return 0;
}

const struct backend backend_sync = {
	.name = "sync",
	.start = sync_start,
	.stop = sync_stop,
	.submit = sync_submit,
	.kick = sync_kick,
	.deliver = sync_deliver,
	.wait = sync_wait,
	.watch_changed = sync_watch_changed,
	.wake = sync_wake,
};
