/* SPDX-License-Identifier: MIT */
#ifndef STRAKE_IO_INTERNAL_H
#define STRAKE_IO_INTERNAL_H

/*
 * What the two reactors share. A reactor is a world (its first field), the timers and watches that
 * both kinds keep alike, and a backend that moves the bytes: uring.c or sync.c.
 */

#include "io/reactor.h"

#define WATCHES_MAX 64

/* What a member turned out not to support: learned once, not asked again. */
struct member_limits {
	bool no_punch_hole;
	bool no_zero_range;
};

struct backend {
	const char *name;
	int (*start)(struct reactor *reactor, struct fault *fault);
	void (*stop)(struct reactor *reactor);
	void (*submit)(struct reactor *reactor, struct world_io *io);
	void (*kick)(struct reactor *reactor);
	/*
	 * Deliver what is finished, without waiting; returns how many. With @waits_next the caller
	 * calls wait() at once if that was nothing, so what wait() sees too may be left to it.
	 */
	unsigned (*deliver)(struct reactor *reactor, bool waits_next);
	/*
	 * Block until deliver() has something, or @wait_ns passed. With @submit, hand over gathered
	 * requests in the same call; without, touch nothing that submitting touches.
	 * 0 or negative errno.
	 */
	int (*wait)(struct reactor *reactor, bool submit, uint64_t wait_ns);
	void (*watch_changed)(struct reactor *reactor, unsigned index);
	/* members[@index] has changed; NULL: this backend need not know. 0 or negative errno. */
	int (*member_changed)(struct reactor *reactor, unsigned index);
	/* Make a wait() of another thread return, so that it looks at the timers again. */
	void (*wake)(struct reactor *reactor);
};

struct watch_entry {
	struct reactor_watch *watch; /* NULL: free */
	unsigned generation;         /* tells a late event of an earlier watch in this entry */
	bool armed;                  /* uring: a poll request is in the ring */
};

struct reactor {
	struct world world;
	const struct backend *backend;
	struct member **members; /* [member_max]; NULL: free */
	struct member_limits *limits;
	unsigned member_max;
	unsigned io_max;
	int held_fd; /* 0: none */
	size_t memory_bytes;
	struct world_timer *timers; /* rising due_ns */
	/* First timer's due time for reactor_wait(), which runs without the owner's lock. */
	uint64_t next_due_ns;
	bool waiting; /* a thread is in reactor_wait(); atomic, like next_due_ns */
	struct watch_entry watches[WATCHES_MAX];
	struct bounce *bounce;
	struct wires *wires; /* network members; NULL: there was none yet */
	const void *zeros;   /* REACTOR_ZEROS_BYTES of zeros, aligned */
	void *data;          /* the backend's */
};

#define REACTOR_ZEROS_BYTES (256u * 1024)

/* The descriptor for the backend's own I/O to a member; -1: none, or a network member. */
static inline int reactor_local_fd(const struct reactor *reactor, unsigned index)
{
	const struct member *member = reactor->members[index];

	return member != NULL && member->network == NULL ? member->fd : -1;
}

extern const struct backend backend_uring;
extern const struct backend backend_sync;

uint64_t reactor_now_ns(void);
/* Did fallocate say that the member cannot, not that it failed? */
bool reactor_is_unsupported(int error);
/* Remember it, where the answer does not depend on the range (-EINVAL may). */
bool reactor_is_lasting(int error);

/* transfer.c: where an I/O goes on after @io->progress_bytes. */

/* Index of the iovec that holds byte @progress, and the byte within it. */
unsigned transfer_position(const struct world_io *io, uint64_t progress, size_t *ret_skip);
/* Copy between the iovecs from @progress on and a flat buffer. */
void transfer_gather(const struct world_io *io, uint64_t progress, void *buffer, size_t length);
void transfer_scatter(
	const struct world_io *io, uint64_t progress, const void *buffer, size_t length);
/* May the member take these buffers as they are? */
bool transfer_is_aligned(const struct member *member, const struct world_io *io);

/* bounce.c: aligned buffers for I/O whose own buffers O_DIRECT would refuse. */

#define BOUNCE_BYTES (256u * 1024)
#define BOUNCE_COUNT 8

struct bounce;
int bounce_new(struct bounce **ret, size_t *memory_bytes);
void bounce_free(struct bounce *bounce);
/* A buffer of BOUNCE_BYTES for @io, or NULL and @io waits in line. */
void *bounce_get(struct bounce *bounce, struct world_io *io);
/* Give @io's buffer back. Returns the next I/O in line, which has got it, or NULL. */
struct world_io *bounce_put(struct bounce *bounce, struct world_io *io);

#endif
