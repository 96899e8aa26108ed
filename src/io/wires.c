/* SPDX-License-Identifier: MIT */
/*
 * Network members in a reactor. libnbd's calls write to the socket when they can, and say which
 * way they wait; one epoll(7) descriptor stands for the sockets of all members, so that the reactor
 * watches one thing, of which nothing changes when a socket fills up or a member comes.
 *
 * Answers arrive inside of libnbd, which may not be called from there: so each finished command
 * goes on a list, and the next step, or the caller's done(), comes when the reactor delivers. What
 * ends outside of that, a request to a server that is gone, rings the bell for it.
 *
 * A command is taken from the start of an I/O to its end; the I/Os that find none wait in line. Its
 * buffer joins small pieces of memory to one request. libnbd itself allocates about 100 bytes for
 * each request; if it cannot, the I/O fails with -ENOMEM.
 */
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "io/internal.h"
#include "io/network_nbd.h"
#include "util/rounding.h"

/* Servers work on a few requests of a connection at once (nbdkit: 16); the rest waits there. */
#define COMMANDS_MAX 32u
#define GATHER_BYTES (64u * 1024)
/* Pieces of memory from this size on are not worth a copy. */
#define PIECE_MIN_BYTES (32u * 1024)
/* Trimming or zeroing more at once keeps a server busy for long that does it by writing. */
#define RANGE_MAX_BYTES (128u * 1024 * 1024)
#define EVENTS_MAX 16
#define NOTICES_MAX 64u
#define BELL UINT32_MAX /* among the indexes of members in the epoll set */

enum stage {
	STAGE_TRANSFER,
	STAGE_TRIM,
	STAGE_ZERO,
	STAGE_ZEROS, /* written, where the server has no way to zero */
	STAGE_FLUSH, /* a flush, or the FUA of the others */
};

struct wire;

struct command {
	struct wire *wire;
	struct world_io *io;
	struct command *next; /* free, or finished */
	char *buffer;         /* GATHER_BYTES */
	uint64_t step_bytes;
	int error; /* of the step; positive */
	enum stage stage;
	bool gathered;
};

/* One member's. */
struct wire {
	struct wires *wires;
	struct network *network; /* NULL: none */
	unsigned index;
	int fd;             /* the socket, by a descriptor of our own; -1: the connection is lost */
	unsigned direction; /* which way it is watched */
	struct command *commands, *free_commands;
	char *buffers;
	struct world_io *waiting_first, **waiting_last;
	bool no_zero; /* the server has refused to */
};

struct wires {
	struct reactor *reactor;
	struct reactor_watch watch;
	int epoll_fd, bell_fd;
	bool is_delivering; /* who appends need not ring */
	struct command *done_first, **done_last;
	struct wire wires[];
};

static void ring(struct wires *wires)
{
	uint64_t one = 1;

	while (write(wires->bell_fd, &one, sizeof(one)) < 0 && errno == EINTR)
		;
}

static void command_finished(struct command *command, int error)
{
	struct wires *wires = command->wire->wires;

	command->error = error;
	command->next = NULL;
	*wires->done_last = command;
	wires->done_last = &command->next;
	if (!wires->is_delivering)
		ring(wires);
}

/* libnbd's, from inside of it. 1: it need not keep what it knows of the request. */
static int on_answer(void *user_data, int *error)
{
	command_finished(user_data, *error);
	return 1;
}

/* Watch what libnbd waits for; once the connection is lost, nothing. */
static void watch_wire(struct wire *wire)
{
	unsigned direction = 0;
	struct epoll_event event = {.data.u32 = wire->index};

	if (wire->fd < 0)
		return;
	if (!network_is_alive(wire->network)) {
		(void)epoll_ctl(wire->wires->epoll_fd, EPOLL_CTL_DEL, wire->fd, NULL);
		close(wire->fd);
		wire->fd = -1;
		return;
	}
	direction = nbd_aio_get_direction(wire->network->nbd);
	if (direction == wire->direction)
		return;
	wire->direction = direction;
	event.events = (direction & LIBNBD_AIO_DIRECTION_READ ? EPOLLIN : 0) |
		       (direction & LIBNBD_AIO_DIRECTION_WRITE ? EPOLLOUT : 0);
	(void)epoll_ctl(wire->wires->epoll_fd, EPOLL_CTL_MOD, wire->fd, &event); /* it is in */
}

static uint32_t fua_flag(const struct network *network, const struct world_io *io)
{
	return (io->flags & WORLD_FUA) && network->can_fua ? LIBNBD_CMD_FLAG_FUA : 0;
}

/* The next piece of a transfer: a long one as it lies in memory, or some short ones gathered. */
static char *prepare_transfer(struct command *command)
{
	struct world_io *io = command->io;
	uint64_t left = io->length_bytes - io->progress_bytes;
	size_t skip, piece;
	unsigned index = transfer_position(io, io->progress_bytes, &skip);

	piece = io->iov[index].iov_len - skip;
	command->gathered = piece < left && piece < PIECE_MIN_BYTES;
	if (!command->gathered) {
		command->step_bytes = min_u64(piece, command->wire->network->payload_max_bytes);
		return (char *)io->iov[index].iov_base + skip;
	}
	command->step_bytes = min_u64(
		left, min_u64(GATHER_BYTES, command->wire->network->payload_max_bytes));
	if (io->op == WORLD_WRITE)
		transfer_gather(io, io->progress_bytes, command->buffer, command->step_bytes);
	return command->buffer;
}

static int64_t issue_transfer(
	struct command *command, struct nbd_handle *nbd, nbd_completion_callback answer)
{
	struct world_io *io = command->io;
	uint64_t offset = io->offset_bytes + io->progress_bytes;
	char *at = prepare_transfer(command);

	if (io->op == WORLD_READ)
		return nbd_aio_pread(nbd, at, command->step_bytes, offset, answer, 0);
	return nbd_aio_pwrite(
		nbd, at, command->step_bytes, offset, answer, fua_flag(command->wire->network, io));
}

static int64_t issue_range(
	struct command *command, struct nbd_handle *nbd, nbd_completion_callback answer)
{
	struct world_io *io = command->io;
	const struct network *network = command->wire->network;
	uint64_t offset = io->offset_bytes + io->progress_bytes;
	uint64_t most = RANGE_MAX_BYTES;
	uint32_t flags = fua_flag(network, io);

	if (command->stage == STAGE_ZEROS)
		most = min_u64(REACTOR_ZEROS_BYTES, network->payload_max_bytes);
	command->step_bytes = min_u64(most, io->length_bytes - io->progress_bytes);
	if (command->stage == STAGE_TRIM)
		return nbd_aio_trim(nbd, command->step_bytes, offset, answer, flags);
	if (command->stage == STAGE_ZEROS)
		return nbd_aio_pwrite(nbd, command->wire->wires->reactor->zeros,
			command->step_bytes, offset, answer, flags);
	if ((io->flags & WORLD_MAY_UNMAP) == 0)
		flags |= LIBNBD_CMD_FLAG_NO_HOLE;
	return nbd_aio_zero(nbd, command->step_bytes, offset, answer, flags);
}

/* Send the step that command->stage names. */
static void step(struct command *command)
{
	struct network *network = command->wire->network;
	nbd_completion_callback answer = {.callback = on_answer, .user_data = command};
	int64_t r;

	command->gathered = false;
	if (command->stage == STAGE_TRANSFER)
		r = issue_transfer(command, network->nbd, answer);
	else if (command->stage == STAGE_FLUSH)
		r = nbd_aio_flush(network->nbd, answer, 0);
	else
		r = issue_range(command, network->nbd, answer);
	if (r >= 0)
		return; /* there will be an answer, even if the connection is lost */
	if (!network_is_alive(network))
		command_finished(command, ENOTCONN);
	else
		command_finished(command, nbd_get_errno() > 0 ? nbd_get_errno() : EIO);
}

static enum stage first_stage(const struct wire *wire, const struct world_io *io)
{
	switch (io->op) {
	case WORLD_READ:
	case WORLD_WRITE:
		return STAGE_TRANSFER;
	case WORLD_FLUSH:
		return STAGE_FLUSH;
	case WORLD_DISCARD:
		return STAGE_TRIM;
	case WORLD_ZERO:
		return wire->network->can_zero && !wire->no_zero ? STAGE_ZERO : STAGE_ZEROS;
	}
	abort();
}

static void begin(struct command *command, struct world_io *io)
{
	const struct network *network = command->wire->network;

	command->io = io;
	io->progress_bytes = 0;
	command->stage = first_stage(command->wire, io);
	/* Advice that is not taken, and a cache that is not there. */
	if ((io->op == WORLD_DISCARD && !network->can_trim) ||
		(io->op == WORLD_FLUSH && !network->can_flush)) {
		io->progress_bytes = io->length_bytes;
		command->step_bytes = 0;
		command->gathered = false;
		command_finished(command, network_is_alive(network) ? 0 : ENOTCONN);
		return;
	}
	step(command);
}

void wires_submit(struct reactor *reactor, struct world_io *io)
{
	struct wire *wire = &reactor->wires->wires[io->member];
	struct command *command = wire->free_commands;

	if (command == NULL) {
		io->next = NULL;
		*wire->waiting_last = io;
		wire->waiting_last = &io->next;
		return;
	}
	wire->free_commands = command->next;
	begin(command, io);
	watch_wire(wire);
}

static void finish(struct command *command, int result)
{
	struct wire *wire = command->wire;
	struct world_io *io = command->io, *next = wire->waiting_first;

	command->io = NULL;
	if (next != NULL) {
		wire->waiting_first = next->next;
		if (next->next == NULL)
			wire->waiting_last = &wire->waiting_first;
		begin(command, next);
	} else {
		command->next = wire->free_commands;
		wire->free_commands = command;
	}
	io->done(io, result);
}

static int error_of(const struct command *command)
{
	/* A server that is about to end answers what it will not do any more with ESHUTDOWN. */
	if (command->error == ESHUTDOWN || !network_is_alive(command->wire->network))
		return -ENOTCONN;
	return -command->error;
}

static void failed(struct command *command)
{
	int error = error_of(command);

	if (command->stage == STAGE_TRIM && reactor_is_unsupported(error)) {
		finish(command, 0);
	} else if (command->stage == STAGE_ZERO && reactor_is_unsupported(error)) {
		command->wire->no_zero |= reactor_is_lasting(error);
		command->stage = STAGE_ZEROS;
		step(command);
	} else {
		finish(command, error);
	}
}

/* The step is done: the next one, or the end. */
static void advance(struct command *command)
{
	struct world_io *io = command->io;
	const struct network *network = command->wire->network;

	if (command->stage == STAGE_FLUSH) {
		finish(command, 0);
		return;
	}
	if (command->gathered && io->op == WORLD_READ)
		transfer_scatter(io, io->progress_bytes, command->buffer, command->step_bytes);
	io->progress_bytes += command->step_bytes;
	if (io->progress_bytes < io->length_bytes) {
		step(command);
	} else if ((io->flags & WORLD_FUA) && io->op != WORLD_READ && !network->can_fua &&
		   network->can_flush) {
		command->stage = STAGE_FLUSH;
		step(command);
	} else {
		finish(command, 0);
	}
}

/* What is on the list now; what comes onto it meanwhile rings, so that nothing else starves. */
static void deliver(struct wires *wires)
{
	struct command *command = wires->done_first;

	wires->done_first = NULL;
	wires->done_last = &wires->done_first;
	wires->is_delivering = false;
	while (command != NULL) {
		struct command *next = command->next;
		struct wire *wire = command->wire;

		if (command->error != 0)
			failed(command);
		else
			advance(command);
		watch_wire(wire);
		command = next;
	}
}

/* What libnbd waits for, as far as it is there. */
static short ready_events(const struct wire *wire, unsigned direction)
{
	struct pollfd fd = {.fd = wire->fd,
		.events = (short)((direction & LIBNBD_AIO_DIRECTION_READ ? POLLIN : 0) |
				  (direction & LIBNBD_AIO_DIRECTION_WRITE ? POLLOUT : 0))};

	return poll(&fd, 1, 0) == 1 ? fd.revents : 0;
}

/*
 * Let libnbd read or write, once: as long as it has begun to read an answer it sends nothing, so it
 * must not be told to read where there is nothing to read. False if there was nothing to do.
 */
static bool notify(struct wire *wire)
{
	struct nbd_handle *nbd = wire->network->nbd;
	unsigned direction = nbd_aio_get_direction(nbd);
	short events = ready_events(wire, direction);
	const short lost = POLLHUP | POLLERR | POLLNVAL;

	/* An error shows in the state, and in the answers of all commands. */
	if ((events & (POLLIN | lost)) && (direction & LIBNBD_AIO_DIRECTION_READ))
		return nbd_aio_notify_read(nbd) == 0;
	if ((events & (POLLOUT | lost)) && (direction & LIBNBD_AIO_DIRECTION_WRITE))
		return nbd_aio_notify_write(nbd) == 0;
	return false;
}

static void attend(struct wire *wire)
{
	for (unsigned i = 0; i < NOTICES_MAX && wire->fd >= 0 && notify(wire); i++)
		;
	if (wire->network != NULL)
		watch_wire(wire);
}

static void on_ready(struct reactor_watch *watch, short revents)
{
	struct wires *wires = watch->owner;
	struct epoll_event events[EVENTS_MAX];
	int count = epoll_wait(wires->epoll_fd, events, EVENTS_MAX, 0);
	uint64_t rung;

	(void)revents;
	wires->is_delivering = true;
	for (int i = 0; i < count; i++) {
		if (events[i].data.u32 == BELL)
			(void)!read(wires->bell_fd, &rung, sizeof(rung)); /* it was readable */
		else
			attend(&wires->wires[events[i].data.u32]);
	}
	deliver(wires);
}

static void free_wires(struct wires *wires)
{
	if (wires->bell_fd >= 0)
		close(wires->bell_fd);
	if (wires->epoll_fd >= 0)
		close(wires->epoll_fd);
	free(wires);
}

static int open_wires(struct wires *wires)
{
	struct epoll_event event = {.events = EPOLLIN, .data.u32 = BELL};
	int r;

	wires->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (wires->epoll_fd < 0)
		return -errno;
	wires->bell_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (wires->bell_fd < 0 ||
		epoll_ctl(wires->epoll_fd, EPOLL_CTL_ADD, wires->bell_fd, &event) < 0)
		return -errno;
	wires->watch = (struct reactor_watch){
		.fd = wires->epoll_fd, .events = POLLIN, .ready = on_ready, .owner = wires};
	r = reactor_watch_add(wires->reactor, &wires->watch);
	return r;
}

static int wires_new(struct reactor *reactor)
{
	size_t bytes = sizeof(struct wires) + reactor->member_max * sizeof(struct wire);
	struct wires *wires = calloc(1, bytes);
	int r;

	if (wires == NULL)
		return -ENOMEM;
	wires->reactor = reactor;
	wires->epoll_fd = wires->bell_fd = -1;
	wires->done_last = &wires->done_first;
	r = open_wires(wires);
	if (r < 0) {
		free_wires(wires);
		return r;
	}
	reactor->wires = wires;
	reactor->memory_bytes += bytes;
	return 0;
}

static int take_memory(struct wire *wire, struct reactor *reactor)
{
	wire->commands = calloc(COMMANDS_MAX, sizeof(*wire->commands));
	wire->buffers = malloc((size_t)COMMANDS_MAX * GATHER_BYTES);
	if (wire->commands == NULL || wire->buffers == NULL)
		return -ENOMEM;
	for (unsigned i = 0; i < COMMANDS_MAX; i++) {
		struct command *command = &wire->commands[i];

		command->wire = wire;
		command->buffer = wire->buffers + (size_t)i * GATHER_BYTES;
		command->next = wire->free_commands;
		wire->free_commands = command;
	}
	reactor->memory_bytes += COMMANDS_MAX * (sizeof(struct command) + GATHER_BYTES);
	return 0;
}

static void drop_wire(struct wire *wire)
{
	if (wire->fd >= 0) {
		(void)epoll_ctl(wire->wires->epoll_fd, EPOLL_CTL_DEL, wire->fd, NULL);
		close(wire->fd);
	}
	free(wire->commands);
	free(wire->buffers);
	*wire = (struct wire){.fd = -1};
}

static int set_up(struct wire *wire, struct reactor *reactor, unsigned index)
{
	struct epoll_event event = {.data.u32 = index};
	struct network *network = reactor->members[index]->network;
	int r;

	*wire = (struct wire){
		.wires = reactor->wires, .network = network, .index = index, .fd = -1};
	wire->waiting_last = &wire->waiting_first;
	if (take_memory(wire, reactor) < 0)
		return -ENOMEM;
	r = network_connect(reactor->members[index], NULL);
	if (r < 0)
		return r;
	/* Its own descriptor leaves the set when we say so, not when libnbd closes its one. */
	wire->fd = dup(nbd_aio_get_fd(network->nbd));
	if (wire->fd < 0 ||
		epoll_ctl(reactor->wires->epoll_fd, EPOLL_CTL_ADD, wire->fd, &event) < 0)
		return -errno;
	watch_wire(wire);
	return 0;
}

int wires_add(struct reactor *reactor, unsigned index)
{
	struct wire *wire;
	int r = reactor->wires != NULL ? 0 : wires_new(reactor);

	if (r < 0)
		return r;
	wire = &reactor->wires->wires[index];
	r = set_up(wire, reactor, index);
	if (r < 0)
		drop_wire(wire);
	return r;
}

void wires_remove(struct reactor *reactor, unsigned index)
{
	struct wire *wire = &reactor->wires->wires[index];

	reactor->memory_bytes -= COMMANDS_MAX * (sizeof(struct command) + GATHER_BYTES);
	drop_wire(wire);
}

void wires_free(struct reactor *reactor)
{
	struct wires *wires = reactor->wires;

	if (wires == NULL)
		return;
	for (unsigned i = 0; i < reactor->member_max; i++)
		if (wires->wires[i].network != NULL)
			drop_wire(&wires->wires[i]);
	reactor_watch_remove(reactor, &wires->watch);
	free_wires(wires);
	reactor->wires = NULL;
}
