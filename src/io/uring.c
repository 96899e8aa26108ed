/* SPDX-License-Identifier: MIT */
/*
 * The reactor over io_uring: one ring for all members, descriptors registered, requests gathered by
 * submit() and handed to the kernel by one system call per kick().
 *
 * An I/O may take several steps: the rest after a short transfer, a copy through a bounce buffer, a
 * way to zero a range that the member does not know, a sync after what has no FUA of its own. The
 * stage says which step is in the ring; each completion decides on the next.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "io/internal.h"
#include "util/rounding.h"

#define RING_ENTRIES_MAX 4096u
#define REAP_BATCH 64u

/* user_data of a watch's poll request: odd, so never an I/O's address. */
#define WATCH_BIT 1u
#define NOTHING UINT64_MAX /* user_data of requests whose completion says nothing */

enum stage {
	STAGE_TRANSFER, /* straight from and to the caller's buffers */
	STAGE_BOUNCE,   /* through an aligned buffer, BOUNCE_BYTES at a time */
	STAGE_PUNCH,    /* fallocate: punch a hole */
	STAGE_RANGE,    /* fallocate: zero a range */
	STAGE_ZEROS,    /* write zeros, REACTOR_ZEROS_BYTES at a time */
	STAGE_SYNC,     /* fdatasync: a flush, or the FUA of the others */
};

struct uring {
	struct io_uring ring;
	unsigned inflight; /* I/Os with a step in the ring */
	struct world_io *waiting_first, **waiting_last;
	bool *watch_pending; /* by watch: its poll request has to be put into the ring */
	bool any_watch_pending;
};

static struct io_uring_sqe *get_sqe(struct uring *uring)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&uring->ring);

	while (sqe == NULL) {
		/* The submission queue is as long as io_max and watches together; steps of one
		 * I/O follow each other, so it can only be full of what was not submitted yet. */
		(void)io_uring_submit(&uring->ring); /* asked again at once if it failed */
		sqe = io_uring_get_sqe(&uring->ring);
	}
	return sqe;
}

static void prepare_vector(struct io_uring_sqe *sqe, const struct world_io *io, int fd,
	const struct iovec *iov, unsigned count, uint64_t offset)
{
	/* The plain calls are cheaper, but count in 32 bits. */
	bool plain = count == 1 && iov->iov_len <= 1u << 30;

	if (io->op == WORLD_READ && plain)
		io_uring_prep_read(sqe, fd, iov->iov_base, (unsigned)iov->iov_len, offset);
	else if (io->op == WORLD_READ)
		io_uring_prep_readv(sqe, fd, iov, count, offset);
	else if (plain)
		io_uring_prep_write(sqe, fd, iov->iov_base, (unsigned)iov->iov_len, offset);
	else
		io_uring_prep_writev(sqe, fd, iov, count, offset);
	if (io->op != WORLD_READ && (io->flags & WORLD_FUA))
		sqe->rw_flags = RWF_DSYNC;
}

/* After a short transfer: first the rest of the iovec that was cut, then the ones behind it. */
static void prepare_transfer(struct io_uring_sqe *sqe, struct world_io *io)
{
	uint64_t offset = io->offset_bytes + io->progress_bytes;
	size_t skip;
	unsigned index;

	if (io->progress_bytes == 0) {
		prepare_vector(sqe, io, (int)io->member, io->iov, io->iov_count, offset);
		return;
	}
	index = transfer_position(io, io->progress_bytes, &skip);
	if (skip == 0) {
		prepare_vector(
			sqe, io, (int)io->member, &io->iov[index], io->iov_count - index, offset);
		return;
	}
	io->rest.iov_base = (char *)io->iov[index].iov_base + skip;
	io->rest.iov_len = io->iov[index].iov_len - skip;
	prepare_vector(sqe, io, (int)io->member, &io->rest, 1, offset);
}

static void prepare_bounce(struct io_uring_sqe *sqe, struct world_io *io)
{
	size_t length = min_u64(BOUNCE_BYTES, io->length_bytes - io->progress_bytes);

	if (io->op == WORLD_WRITE)
		transfer_gather(io, io->progress_bytes, io->bounce, length);
	io->rest = (struct iovec){io->bounce, length};
	prepare_vector(
		sqe, io, (int)io->member, &io->rest, 1, io->offset_bytes + io->progress_bytes);
}

static void prepare_zeros(struct reactor *reactor, struct io_uring_sqe *sqe, struct world_io *io)
{
	io->rest.iov_base = (void *)reactor->zeros;
	io->rest.iov_len = min_u64(REACTOR_ZEROS_BYTES, io->length_bytes - io->progress_bytes);
	prepare_vector(
		sqe, io, (int)io->member, &io->rest, 1, io->offset_bytes + io->progress_bytes);
}

static void prepare_fallocate(struct io_uring_sqe *sqe, const struct world_io *io, int mode)
{
	io_uring_prep_fallocate(sqe, (int)io->member, mode | FALLOC_FL_KEEP_SIZE,
		(off_t)io->offset_bytes, (off_t)io->length_bytes);
}

/* Put the step that io->stage names into the ring. */
static void step(struct reactor *reactor, struct world_io *io)
{
	struct uring *uring = reactor->data;
	struct io_uring_sqe *sqe;

	if (io->stage == STAGE_BOUNCE && io->bounce == NULL &&
		bounce_get(reactor->bounce, io) == NULL)
		return; /* in line for a buffer; release_bounce() goes on with it */
	sqe = get_sqe(uring);
	switch ((enum stage)io->stage) {
	case STAGE_TRANSFER:
		prepare_transfer(sqe, io);
		break;
	case STAGE_BOUNCE:
		prepare_bounce(sqe, io);
		break;
	case STAGE_PUNCH:
		prepare_fallocate(sqe, io, FALLOC_FL_PUNCH_HOLE);
		break;
	case STAGE_RANGE:
		prepare_fallocate(sqe, io, FALLOC_FL_ZERO_RANGE);
		break;
	case STAGE_ZEROS:
		prepare_zeros(reactor, sqe, io);
		break;
	case STAGE_SYNC:
		io_uring_prep_fsync(sqe, (int)io->member, IORING_FSYNC_DATASYNC);
		break;
	}
	sqe->flags |= IOSQE_FIXED_FILE;
	io_uring_sqe_set_data(sqe, io);
}

/* How to zero: the cheapest way that the member has not refused yet and the flags allow. */
static enum stage zero_stage(const struct reactor *reactor, const struct world_io *io)
{
	const struct member_limits *limits = &reactor->limits[io->member];

	if ((io->flags & WORLD_MAY_UNMAP) && !limits->no_punch_hole)
		return STAGE_PUNCH;
	if (!limits->no_zero_range)
		return STAGE_RANGE;
	return STAGE_ZEROS;
}

static enum stage first_stage(const struct reactor *reactor, const struct world_io *io)
{
	switch (io->op) {
	case WORLD_READ:
	case WORLD_WRITE:
		return transfer_is_aligned(reactor->members[io->member], io) ? STAGE_TRANSFER
									     : STAGE_BOUNCE;
	case WORLD_FLUSH:
		return STAGE_SYNC;
	case WORLD_DISCARD:
		return STAGE_PUNCH;
	case WORLD_ZERO:
		return zero_stage(reactor, io);
	}
	abort();
}

static void begin(struct reactor *reactor, struct world_io *io)
{
	io->progress_bytes = 0;
	io->bounce = NULL;
	io->stage = first_stage(reactor, io);
	step(reactor, io);
}

static void uring_submit(struct reactor *reactor, struct world_io *io)
{
	struct uring *uring = reactor->data;

	if (uring->inflight >= reactor->io_max) {
		io->next = NULL;
		*uring->waiting_last = io;
		uring->waiting_last = &io->next;
		return;
	}
	uring->inflight++;
	begin(reactor, io);
}

static void release_bounce(struct reactor *reactor, struct world_io *io)
{
	struct world_io *next;

	if (io->bounce == NULL)
		return;
	next = bounce_put(reactor->bounce, io);
	if (next != NULL)
		step(reactor, next);
}

static void finish(struct reactor *reactor, struct world_io *io, int result)
{
	struct uring *uring = reactor->data;
	struct world_io *next = uring->waiting_first;

	release_bounce(reactor, io);
	if (next != NULL) {
		uring->waiting_first = next->next;
		if (uring->waiting_first == NULL)
			uring->waiting_last = &uring->waiting_first;
		begin(reactor, next);
	} else {
		uring->inflight--;
	}
	io->done(io, result);
}

/* @moved bytes of the transfer are through. Goes on with the rest, if there is one. */
static void transferred(struct reactor *reactor, struct world_io *io, unsigned moved)
{
	if (moved == 0) { /* a read behind the end of the member; no write returns 0 */
		finish(reactor, io, -EIO);
		return;
	}
	if (io->stage == STAGE_BOUNCE && io->op == WORLD_READ)
		transfer_scatter(io, io->progress_bytes, io->bounce, moved);
	io->progress_bytes += moved;
	if (io->progress_bytes == io->length_bytes)
		finish(reactor, io, 0);
	else
		step(reactor, io);
}

/* The member does not know this way to zero: remember that and try the next one. */
static void zero_otherwise(struct reactor *reactor, struct world_io *io, int error)
{
	struct member_limits *limits = &reactor->limits[io->member];

	if (io->stage == STAGE_PUNCH) {
		limits->no_punch_hole |= reactor_is_lasting(error);
		io->stage = limits->no_zero_range ? STAGE_ZEROS : STAGE_RANGE;
	} else {
		limits->no_zero_range |= reactor_is_lasting(error);
		io->stage = STAGE_ZEROS;
	}
	step(reactor, io);
}

static void fallocated(struct reactor *reactor, struct world_io *io, int result)
{
	if (result < 0 && !reactor_is_unsupported(result)) {
		finish(reactor, io, result);
	} else if (result < 0 && io->op == WORLD_DISCARD) {
		finish(reactor, io, 0); /* advice that the member does not take */
	} else if (result < 0) {
		zero_otherwise(reactor, io, result);
	} else if (io->flags & WORLD_FUA) {
		io->stage = STAGE_SYNC;
		step(reactor, io);
	} else {
		finish(reactor, io, 0);
	}
}

static void advance(struct reactor *reactor, struct world_io *io, int result)
{
	/* We cancel no I/O, but the kernel does when the thread that handed it over ends. */
	if (result == -EINTR || result == -EAGAIN || result == -ECANCELED) {
		step(reactor, io);
		return;
	}
	switch ((enum stage)io->stage) {
	case STAGE_TRANSFER:
	case STAGE_BOUNCE:
	case STAGE_ZEROS:
		if (result < 0)
			finish(reactor, io, result);
		else
			transferred(reactor, io, (unsigned)result);
		break;
	case STAGE_PUNCH:
	case STAGE_RANGE:
		fallocated(reactor, io, result);
		break;
	case STAGE_SYNC:
		finish(reactor, io, result < 0 ? result : 0);
		break;
	}
}

static uint64_t watch_data(const struct reactor *reactor, unsigned index)
{
	return (uint64_t)reactor->watches[index].generation << 32 | index << 1 | WATCH_BIT;
}

/* Ask for one event; asked again after it was delivered, so watches are level-triggered. */
static void arm_watches(struct reactor *reactor)
{
	struct uring *uring = reactor->data;

	if (!uring->any_watch_pending)
		return;
	uring->any_watch_pending = false;
	for (unsigned i = 0; i < WATCHES_MAX; i++) {
		struct watch_entry *entry = &reactor->watches[i];
		struct io_uring_sqe *sqe;

		if (!uring->watch_pending[i])
			continue;
		uring->watch_pending[i] = false;
		if (entry->watch == NULL || entry->armed)
			continue;
		sqe = get_sqe(uring);
		io_uring_prep_poll_add(sqe, entry->watch->fd, (unsigned)entry->watch->events);
		sqe->user_data = watch_data(reactor, i);
		entry->armed = true;
	}
}

static void watch_pending(struct uring *uring, unsigned index)
{
	uring->watch_pending[index] = true;
	uring->any_watch_pending = true;
}

static void uring_watch_changed(struct reactor *reactor, unsigned index)
{
	struct uring *uring = reactor->data;
	struct watch_entry *entry = &reactor->watches[index];

	if (entry->watch != NULL) {
		watch_pending(uring, index);
		if (__atomic_load_n(&reactor->waiting, __ATOMIC_SEQ_CST))
			reactor->backend->kick(reactor); /* or it would not wait for this one */
	} else if (entry->armed) {
		struct io_uring_sqe *sqe = get_sqe(uring);

		io_uring_prep_poll_remove(sqe, watch_data(reactor, index));
		sqe->user_data = NOTHING;
	}
}

static void deliver_watch(struct reactor *reactor, uint64_t data, int result)
{
	unsigned index = (unsigned)(data & UINT32_MAX) >> 1;
	struct watch_entry *entry = &reactor->watches[index];
	unsigned generation = (unsigned)(data >> 32);

	entry->armed = false; /* an entry is not used again while it is armed */
	if (entry->watch == NULL || generation != entry->generation)
		return;
	if (result == -EBADF) /* as poll(2) would say it; else the owner never learns */
		result = POLLNVAL;
	if (result > 0)
		entry->watch->ready(entry->watch, (short)result);
	/* Only now: armed earlier, it would tell again what the callback was about to take. */
	if (entry->watch != NULL && generation == entry->generation)
		watch_pending(reactor->data, index);
}

static unsigned reap(struct reactor *reactor)
{
	struct uring *uring = reactor->data;
	struct io_uring_cqe *cqes[REAP_BATCH];
	struct {
		uint64_t data;
		int result;
	} done[REAP_BATCH];
	unsigned count = io_uring_peek_batch_cqe(&uring->ring, cqes, REAP_BATCH);

	/* Copied and given back first: a callback may need room in the ring. */
	for (unsigned i = 0; i < count; i++) {
		done[i].data = cqes[i]->user_data;
		done[i].result = cqes[i]->res;
	}
	io_uring_cq_advance(&uring->ring, count);
	for (unsigned i = 0; i < count; i++) {
		if (i + 1 < count && !(done[i + 1].data & WATCH_BIT))
			__builtin_prefetch((void *)done[i + 1].data);
		if (done[i].data == NOTHING)
			continue;
		if (done[i].data & WATCH_BIT)
			deliver_watch(reactor, done[i].data, done[i].result);
		else
			advance(reactor, (struct world_io *)done[i].data, done[i].result);
	}
	return count;
}

static unsigned uring_deliver(struct reactor *reactor, bool waits_next)
{
	unsigned total = 0, count;

	do {
		count = reap(reactor);
		total += count;
	} while (count == REAP_BATCH && total < 16 * REAP_BATCH);
	arm_watches(reactor);
	return total;
}

static void uring_kick(struct reactor *reactor)
{
	struct uring *uring = reactor->data;
	int r;

	arm_watches(reactor);
	while (io_uring_sq_ready(&uring->ring) > 0) {
		r = io_uring_submit(&uring->ring);
		/* -EAGAIN, -EBUSY: the kernel is short of memory; the next call tries again. */
		if (r <= 0 && r != -EINTR)
			break;
	}
}

static void uring_wake(struct reactor *reactor)
{
	struct uring *uring = reactor->data;
	struct io_uring_sqe *sqe = get_sqe(uring);

	io_uring_prep_nop(sqe);
	sqe->user_data = NOTHING;
	uring_kick(reactor);
}

static int uring_wait(struct reactor *reactor, bool submit, uint64_t wait_ns)
{
	struct uring *uring = reactor->data;
	struct __kernel_timespec timeout = {.tv_sec = (int64_t)(wait_ns / 1000000000u),
		.tv_nsec = (long long)(wait_ns % 1000000000u)};
	struct __kernel_timespec *limit = wait_ns == UINT64_MAX ? NULL : &timeout;
	struct io_uring_cqe *cqe;
	int r;

	if (submit && limit == NULL)
		r = io_uring_submit_and_wait(&uring->ring, 1);
	else if (submit)
		r = io_uring_submit_and_wait_timeout(&uring->ring, &cqe, 1, limit, NULL);
	else
		r = io_uring_wait_cqe_timeout(&uring->ring, &cqe, limit);
	/* -EAGAIN, -EBUSY: short of memory, as in uring_kick(). Early is allowed, an error is not:
	 * what is queued goes on as soon as the kernel has room. */
	return r == -ETIME || r == -EAGAIN || r == -EBUSY || r > 0 ? 0 : r;
}

static int register_members(struct reactor *reactor, struct uring *uring)
{
	unsigned count = reactor->member_max;
	int *fds = calloc(count + 1, sizeof(*fds));
	int r = 0;

	if (fds == NULL)
		return -ENOMEM;
	for (unsigned i = 0; i < count; i++)
		fds[i] = reactor_local_fd(reactor, i);
	if (reactor->held_fd > 0) /* no request names it: it goes when the whole ring goes */
		fds[count++] = reactor->held_fd;
	if (count > 0)
		r = io_uring_register_files(&uring->ring, fds, count);
	free(fds);
	return r;
}

static int uring_member_changed(struct reactor *reactor, unsigned index)
{
	struct uring *uring = reactor->data;
	int fd = reactor_local_fd(reactor, index);
	int r = io_uring_register_files_update(&uring->ring, index, &fd, 1);

	return r < 0 ? r : 0;
}

static int uring_start(struct reactor *reactor, struct fault *fault)
{
	struct uring *uring = calloc(1, sizeof(*uring) + WATCHES_MAX * sizeof(bool));
	unsigned entries = 16;
	int r;

	if (uring == NULL)
		return fault_set(fault, -ENOMEM, "no memory for the reactor");
	uring->watch_pending = (bool *)(uring + 1);
	uring->waiting_last = &uring->waiting_first;
	while (entries < reactor->io_max + WATCHES_MAX && entries < RING_ENTRIES_MAX)
		entries *= 2;
	if (reactor->io_max > entries - WATCHES_MAX)
		reactor->io_max = entries - WATCHES_MAX;
	r = io_uring_queue_init(entries, &uring->ring, 0);
	if (r < 0) {
		free(uring);
		return fault_set(fault, r, "io_uring: %s", strerror(-r));
	}
	/* Without it (before Linux 5.11) a wait with a time limit would need the submission queue.
	 */
	r = uring->ring.features & IORING_FEAT_EXT_ARG ? 0 : -EOPNOTSUPP;
	if (r == 0)
		r = register_members(reactor, uring);
	if (r < 0) {
		io_uring_queue_exit(&uring->ring);
		free(uring);
		return fault_set(fault, r, "io_uring: setting up the ring: %s", strerror(-r));
	}
	reactor->data = uring;
	reactor->memory_bytes += sizeof(*uring) + uring->ring.sq.ring_sz +
				 entries * sizeof(struct io_uring_sqe) + uring->ring.cq.ring_sz;
	return 0;
}

static void uring_stop(struct reactor *reactor)
{
	struct uring *uring = reactor->data;

	/* The kernel takes a closed ring apart later, on its own; until then members that are still
	 * registered stay open, and so stay taken. */
	(void)io_uring_unregister_files(&uring->ring);
	io_uring_queue_exit(&uring->ring);
	free(uring);
}

const struct backend backend_uring = {
	.name = "uring",
	.start = uring_start,
	.stop = uring_stop,
	.submit = uring_submit,
	.kick = uring_kick,
	.deliver = uring_deliver,
	.wait = uring_wait,
	.watch_changed = uring_watch_changed,
	.member_changed = uring_member_changed,
	.wake = uring_wake,
};
