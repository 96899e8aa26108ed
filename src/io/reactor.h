/* SPDX-License-Identifier: MIT */
#ifndef STRAKE_IO_REACTOR_H
#define STRAKE_IO_REACTOR_H

/*
 * A reactor is a world over real members together with the loop that runs it: it delivers the
 * completions of member I/O, expires timers and watches descriptors (a FUSE session, a socket),
 * all on one thread.
 */

#include <poll.h>
#include <stdbool.h>

#include "io/member.h"
#include "world/world.h"

struct reactor_watch {
	int fd;
	short events; /* POLLIN, POLLOUT */
	void (*ready)(struct reactor_watch *watch, short revents);
	void *owner;
	struct reactor_watch *next; /* the reactor's own */
	int state;
};

struct reactor;

struct reactor_options {
	struct member *const *members; /* world_io.member indexes this; members are not owned */
	unsigned member_count;
	unsigned member_max; /* room for members that come later; less than member_count: none */
	unsigned io_max;     /* member I/Os in flight at once; more are queued inside */
	bool sync;           /* plain pread and pwrite instead of io_uring */
	bool ring;           /* io_uring even where all members live in memory */
	/*
	 * A descriptor, or 0 for none, that io_uring keeps open until the last member I/O has
	 * ended, even those that the kernel finishes for a dead process: the other end of a pipe
	 * tells when.
	 */
	int held_fd;
};

/*
 * io_uring, unless @options->sync says so, all members live in memory, or the kernel refuses it:
 * then plain calls. reactor_kind() tells which.
 * -ENOMEM, or the errno of the set-up.
 */
int reactor_new(const struct reactor_options *options, struct reactor **ret, struct fault *fault);
/* No I/O may be in flight: the kernel would move its bytes all the same, whenever. */
void reactor_free(struct reactor *reactor);
const char *reactor_kind(const struct reactor *reactor); /* "uring" or "sync" */

struct world *reactor_world(struct reactor *reactor);

/*
 * A member comes: *@ret is its index, for world_io.member. It stays the caller's, who keeps it open
 * until it is removed. -ENOSPC no room (member_max); errors of registering the descriptor.
 */
int reactor_member_add(struct reactor *reactor, struct member *member, unsigned *ret);
/* It goes; no I/O to it may be in flight. Its index may be given to another one. */
void reactor_member_remove(struct reactor *reactor, unsigned index);
/* By index, reactor_member_max() entries; NULL: free. Valid as long as the reactor. */
struct member *const *reactor_members(const struct reactor *reactor);
unsigned reactor_member_max(const struct reactor *reactor);

/* Level-triggered; ready() is called from reactor_run(). A watch may be removed from its ready().
 */
int reactor_watch_add(struct reactor *reactor, struct reactor_watch *watch);
void reactor_watch_remove(struct reactor *reactor, struct reactor_watch *watch);

/*
 * Block until reactor_run() would have something to deliver, or @wait_ns have passed; may return
 * early, so ask reactor_run(). Timers and watches that come meanwhile are heeded. May run on
 * one thread, without any lock, while another submits I/O to the world under the owner's lock;
 * touches no state that submitting touches. reactor_run() itself must be called under that lock.
 */
int reactor_wait(struct reactor *reactor, uint64_t wait_ns);

/*
 * Deliver what is due. With @wait, block until something can be delivered or @wait_ns have passed
 * (UINT64_MAX: no limit); without, return at once. Returns the number of events met, or a negative
 * errno (-EINTR for a signal). 0 says only that nothing was met: a signal that arrives while
 * requests are handed over may end the wait early, and steps of unfinished requests count as
 * events. With @wait, what callbacks submitted is handed over when the next call would block; an
 * owner who does not call again at once calls world_kick().
 */
int reactor_run(struct reactor *reactor, bool wait, uint64_t wait_ns);

/* Bytes that the reactor has allocated: after reactor_new() only network members change it. */
size_t reactor_memory(const struct reactor *reactor);

#endif
