/* SPDX-License-Identifier: MIT */
#ifndef STRAKE_WORLD_WORLD_H
#define STRAKE_WORLD_WORLD_H

/*
 * The world: the only doors through which the engine reaches disks, time and randomness.
 *
 * Three implementations stand behind this one table: io/uring (the kernel's io_uring), io/sync
 * (plain pread and pwrite) and sim (virtual disks, virtual time, seeded faults). The engine cannot
 * tell which one it runs in.
 *
 * Rules every world keeps:
 * - submit() never calls done() from inside itself; completions are delivered only while the
 *   world's owner runs it (io/reactor.h, sim/sim.h), all on the thread that runs it.
 * - A request completes exactly once, with 0 or a negative errno. Short transfers are continued by
 *   the world; a read that meets the end of the member completes with -EIO.
 * - The iovec array and the buffers belong to the caller and stay untouched until done().
 * - Requests may complete in any order; only a flush orders: it makes durable every write that had
 *   completed before the flush was submitted.
 */

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

enum world_op {
	WORLD_READ,
	WORLD_WRITE,
	WORLD_FLUSH,   /* whole member; offset and length unused */
	WORLD_DISCARD, /* the content may be forgotten; what is read afterwards is not defined */
	WORLD_ZERO,    /* reads zeros afterwards; may deallocate if WORLD_MAY_UNMAP is set */
};

#define WORLD_FUA (1u << 0)       /* with WRITE, DISCARD and ZERO: durable when done() is called */
#define WORLD_MAY_UNMAP (1u << 1) /* with ZERO: giving up the space is welcome */

struct world;

/*
 * One request to one member. Owned by the submitter, who fills the first part and must keep the
 * object alive until done(); the second part is the world's own. No allocation on either side.
 */
struct world_io {
	enum world_op op;
	unsigned flags;          /* WORLD_FUA, WORLD_MAY_UNMAP */
	unsigned member;         /* index of the member in this world */
	unsigned iov_count;      /* READ and WRITE only; 1 … IOV_MAX */
	uint64_t offset_bytes;   /* on the member; a multiple of 512 */
	uint64_t length_bytes;   /* sum of the iovecs, or the range of DISCARD and ZERO; > 0 */
	const struct iovec *iov; /* READ and WRITE only */
	void (*done)(struct world_io *io, int result);
	void *owner; /* the submitter's, for done() */

	/* The world's own from submit() to done(). */
	struct world_io *next;
	uint64_t progress_bytes;
	void *bounce;
	struct iovec rest; /* the iovec being continued after a short transfer */
	unsigned stage;

	unsigned tag; /* the submitter's, like owner */
};

/* A timer is embedded in its owner's object; at most one expiry is pending for it. */
struct world_timer {
	uint64_t due_ns;
	void (*expired)(struct world_timer *timer);
	void *owner;
	struct world_timer *next; /* the world's own while armed */
	int armed;
};

struct world_ops {
	const char *name; /* "uring", "sync", "sim" */
	void (*submit)(struct world *world, struct world_io *io);
	/* Hand over what submit() has gathered; called once after a batch of submits. */
	void (*kick)(struct world *world);
	/* Monotonic time; only differences mean something. */
	uint64_t (*now_ns)(struct world *world);
	/* Wall-clock seconds since 1970, for superblock times. */
	uint64_t (*wall_seconds)(struct world *world);
	/* Arm (or re-arm) @timer for @due_ns on the now_ns() clock. */
	void (*timer_arm)(struct world *world, struct world_timer *timer, uint64_t due_ns);
	void (*timer_cancel)(struct world *world, struct world_timer *timer);
	void (*random)(struct world *world, void *buffer, size_t length);
	void (*free)(struct world *world);
};

/* First field of every implementation's own struct. */
struct world {
	const struct world_ops *ops;
};

static inline void world_submit(struct world *world, struct world_io *io)
{
	world->ops->submit(world, io);
}

static inline void world_kick(struct world *world)
{
	world->ops->kick(world);
}

static inline uint64_t world_now_ns(struct world *world)
{
	return world->ops->now_ns(world);
}

static inline void world_free(struct world *world)
{
	if (world != NULL)
		world->ops->free(world);
}

#endif
