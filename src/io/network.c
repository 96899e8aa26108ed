/* SPDX-License-Identifier: MIT */
/*
 * Connections to NBD servers (https://github.com/NetworkBlockDevice/nbd/blob/master/doc/proto.md),
 * by libnbd: one per member, and I/O that waits for its answer. I/O that does not: wires.c.
 *
 * A connection that is lost is not made again while an array runs: whether what was written before
 * has become durable would not be known.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "io/holder.h"
#include "io/network_nbd.h"
#include "util/cleanup.h"
#include "util/rounding.h"

#define SECTOR_BYTES 512u
#define CONNECT_WAIT_MS 20000
#define HOLD_WAIT_MS 2000
#define POLL_MS 20

/*
 * A host that is gone says nothing. As long as it has something to answer, TCP gives it up after
 * LOST_MS; an idle connection is asked about as often.
 */
#define LOST_MS 30000u
#define IDLE_ASK_S 10
#define IDLE_ASK_AGAIN_S 5
#define IDLE_ASKS 4

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void network_free(struct network *network)
{
	if (network == NULL)
		return;
	/* No word of farewell: a process that has made another one serve says nothing for it. */
	if (network->nbd != NULL)
		nbd_close(network->nbd);
	free(network->key);
	free(network);
}

static void free_network(struct network **network)
{
	network_free(*network);
}

const char *network_key(const struct network *network)
{
	return network->key;
}

bool network_is_alive(const struct network *network)
{
	return network->nbd != NULL && nbd_aio_is_dead(network->nbd) == 0 &&
	       nbd_aio_is_closed(network->nbd) == 0;
}

/* libnbd's own words without its function's name at their front: "connect: Connection refused". */
static const char *bare_error(void)
{
	const char *words = nbd_get_error(), *colon = words != NULL ? strstr(words, ": ") : NULL;

	if (colon != NULL && strncmp(words, "nbd_", 4) == 0)
		words = colon + 2;
	return words != NULL ? words : "it does not say why";
}

static int refuse_connection(const char *path, struct fault *fault)
{
	int error = nbd_get_errno() > 0 ? -nbd_get_errno() : -EIO;

	return fault_set(fault, error,
		"%s: no connection to this NBD server: %s; check that it runs and has this export",
		path, bare_error());
}

static void watch_over_host(struct nbd_handle *nbd)
{
	int fd = nbd_aio_get_fd(nbd);
	const struct {
		int level, name, value;
	} options[] = {
		{SOL_SOCKET, SO_KEEPALIVE, 1},
		{IPPROTO_TCP, TCP_USER_TIMEOUT, (int)LOST_MS},
		{IPPROTO_TCP, TCP_KEEPIDLE, IDLE_ASK_S},
		{IPPROTO_TCP, TCP_KEEPINTVL, IDLE_ASK_AGAIN_S},
		{IPPROTO_TCP, TCP_KEEPCNT, IDLE_ASKS},
	};

	/* Refused where there is no TCP: other sockets tell by themselves. */
	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
		(void)setsockopt(fd, options[i].level, options[i].name, &options[i].value,
			sizeof(options[i].value));
}

static int await_connection(
	struct nbd_handle *nbd, const char *path, int64_t end_ms, struct fault *fault)
{
	while (nbd_aio_is_ready(nbd) != 1) {
		int64_t left_ms = end_ms - now_ms();
		int r;

		if (left_ms <= 0)
			return fault_set(fault, -ETIMEDOUT,
				"%s: this NBD server does not answer within %d s; check that it "
				"runs and takes one more client",
				path, CONNECT_WAIT_MS / 1000);
		r = nbd_poll(nbd, (int)left_ms);
		if (r < 0)
			return refuse_connection(path, fault);
		if (nbd_aio_is_dead(nbd) == 1 || nbd_aio_is_closed(nbd) == 1)
			return fault_set(fault, -ECONNRESET,
				"%s: the NBD server hung up; check its log and the export's name",
				path);
	}
	return 0;
}

static int start_connection(const struct network *network, struct nbd_handle *nbd, const char *path)
{
	/* The files that a URI may name (keys, certificates) are the user's own to read. */
	if (nbd_set_uri_allow_local_file(nbd, true) < 0 || nbd_set_pread_initialize(nbd, false) < 0)
		return -1;
	return network->is_uri ? nbd_aio_connect_uri(nbd, path) : nbd_aio_connect_unix(nbd, path);
}

static int try_to_connect(
	struct network *network, const char *path, int64_t end_ms, struct fault *fault)
{
	struct nbd_handle *nbd = nbd_create();
	int r;

	if (nbd == NULL)
		return fault_set(fault, -ENOMEM, "%s: no memory to open it", path);
	r = start_connection(network, nbd, path) < 0 ? refuse_connection(path, fault)
						     : await_connection(nbd, path, end_ms, fault);
	if (r < 0) {
		nbd_close(nbd);
		return r;
	}
	watch_over_host(nbd);
	network->nbd = nbd;
	return 0;
}

/*
 * The queue in front of a Unix socket may be full (-EAGAIN): that of a server that takes one client
 * is short, and it may not have noticed yet that the last one has gone.
 */
static int connect_server(struct network *network, const char *path, struct fault *fault)
{
	const struct timespec pause = {.tv_nsec = POLL_MS * 1000000L};
	int64_t end_ms = now_ms() + CONNECT_WAIT_MS;
	int r;

	while ((r = try_to_connect(network, path, end_ms, fault)) == -EAGAIN && now_ms() < end_ms)
		(void)nanosleep(&pause, NULL); /* woken early, we look early */
	if (r == 0 && fault != NULL)
		*fault = (struct fault){0};
	return r;
}

/* What it can do, and how big it is. */
static int measure(struct network *network, struct member *member, struct fault *fault)
{
	struct nbd_handle *nbd = network->nbd;
	int64_t size = nbd_get_size(nbd), smallest = nbd_get_block_size(nbd, LIBNBD_SIZE_MINIMUM),
		largest = nbd_get_block_size(nbd, LIBNBD_SIZE_MAXIMUM);

	if (size < 0)
		return refuse_connection(member->path, fault);
	if (smallest > (int64_t)SECTOR_BYTES)
		return fault_set(fault, -EOPNOTSUPP,
			"%s: this NBD server takes blocks of %d bytes and no smaller ones; make it "
			"take sectors of 512 (nbdkit: --filter=blocksize)",
			member->path, (int)smallest);
	if (nbd_is_read_only(nbd) == 1 && !member->readonly)
		return fault_set(fault, -EROFS,
			"%s: the NBD server has this export read-only; use --readonly",
			member->path);
	network->payload_max_bytes = NETWORK_PAYLOAD_MAX_BYTES;
	if (largest >= (int64_t)SECTOR_BYTES && largest < (int64_t)NETWORK_PAYLOAD_MAX_BYTES)
		network->payload_max_bytes = (uint32_t)round_down((uint64_t)largest, SECTOR_BYTES);
	network->can_flush = nbd_can_flush(nbd) == 1;
	network->can_fua = nbd_can_fua(nbd) == 1;
	network->can_trim = nbd_can_trim(nbd) == 1;
	network->can_zero = nbd_can_zero(nbd) == 1;
	member->size_bytes = network->size_bytes = (uint64_t)size;
	return 0;
}

static int bind_hold(int fd, const char *key)
{
	struct network_hold_address address = network_hold_address(key);
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	size_t length = strlen(address.name);

	memcpy(name.sun_path + 1, address.name, length);
	return bind(fd, (const struct sockaddr *)&name,
		       (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length)) < 0
		       ? -errno
		       : 0;
}

static int refuse_held(const struct member *member, struct fault *fault)
{
	char words[512];

	if (holder_process(member, words, sizeof(words)))
		return fault_set(
			fault, -EBUSY, "%s: is in use by %s; stop that first", member->path, words);
	return fault_set(fault, -EBUSY,
		"%s: is in use by another process of this machine; stop that first", member->path);
}

/* As with local members (member.c), a hold that nobody can be named for may be about to end. */
static int take_hold(const struct member *member, struct fault *fault)
{
	const struct timespec pause = {.tv_nsec = POLL_MS * 1000000L};
	unsigned waited_ms = 0;
	char words[512];
	int r;

	for (;;) {
		r = bind_hold(member->fd, member->network->key);
		if (r == 0)
			return 0;
		if (r != -EADDRINUSE)
			return fault_set(
				fault, r, "%s: cannot be held: %s", member->path, strerror(-r));
		if (waited_ms >= HOLD_WAIT_MS || holder_process(member, words, sizeof(words)))
			return refuse_held(member, fault);
		(void)nanosleep(&pause, NULL); /* woken early, we look early */
		waited_ms += POLL_MS;
	}
}

static struct member *new_member(struct network_name *name, unsigned flags)
{
	struct member *member = calloc(1, sizeof(*member));

	if (member == NULL)
		return NULL;
	member->fd = -1;
	member->network = calloc(1, sizeof(*member->network));
	if (member->network == NULL) {
		free(member);
		return NULL;
	}
	member->path = steal_ptr(name->path);
	member->network->key = steal_ptr(name->key);
	member->network->is_uri = name->is_uri;
	member->readonly = flags & MEMBER_READONLY;
	member->logical_block_bytes = SECTOR_BYTES;
	member->memory_align = 1;
	return member;
}

static int open_member(struct member *member, unsigned flags, struct fault *fault)
{
	int r = 0;

	member->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (member->fd < 0)
		return fault_set(
			fault, -errno, "%s: cannot be opened: %s", member->path, strerror(errno));
	if (flags & MEMBER_EXCLUSIVE)
		r = take_hold(member, fault);
	if (r == 0)
		r = connect_server(member->network, member->path, fault);
	return r < 0 ? r : measure(member->network, member, fault);
}

int network_member_open(const char *word, unsigned flags, struct member **ret, struct fault *fault)
{
	_cleanup_(network_name_fini) struct network_name name = {NULL, NULL, false};
	struct member *member;
	int r = network_name_parse(word, &name, fault);

	if (r < 0)
		return r;
	member = new_member(&name, flags);
	if (member == NULL)
		return fault_set(fault, -ENOMEM, "%s: no memory to open it", word);
	r = open_member(member, flags, fault);
	if (r < 0)
		member_close(member);
	else
		*ret = member;
	return r;
}

int member_adopt(struct member *member, struct fault *fault)
{
	_cleanup_(network_name_fini) struct network_name name = {NULL, NULL, false};
	_cleanup_(free_network) struct network *network = NULL;
	uint64_t size_bytes = member->size_bytes;
	int r;

	if (member->network == NULL)
		return 0;
	member->network = NULL; /* an address in another process */
	r = network_name_parse(member->path, &name, fault);
	if (r < 0)
		return r;
	network = calloc(1, sizeof(*network));
	if (network == NULL)
		return fault_set(fault, -ENOMEM, "%s: no memory to open it", member->path);
	network->key = steal_ptr(name.key);
	network->is_uri = name.is_uri;
	r = connect_server(network, member->path, fault);
	if (r == 0)
		r = measure(network, member, fault);
	if (r == 0 && member->size_bytes != size_bytes)
		r = fault_set(fault, -ESTALE,
			"%s: the NBD server has another export there now; check it", member->path);
	if (r == 0)
		member->network = steal_ptr(network);
	return r;
}

void member_disconnect(struct member *member)
{
	if (member->network == NULL || member->network->nbd == NULL)
		return;
	nbd_close(member->network->nbd);
	member->network->nbd = NULL;
}

int network_connect(const struct member *member, struct fault *fault)
{
	struct network *network = member->network;
	int r;

	if (network->nbd != NULL)
		return network_is_alive(network) ? 0 : -ENOTCONN;
	r = connect_server(network, member->path, fault);
	if (r == 0 && nbd_get_size(network->nbd) != (int64_t)network->size_bytes)
		r = fault_set(fault, -ESTALE,
			"%s: the NBD server has another export there now; check it", member->path);
	return r;
}

static int failure(const struct network *network)
{
	if (!network_is_alive(network))
		return -ENOTCONN;
	return nbd_get_errno() > 0 ? -nbd_get_errno() : -EIO;
}

int network_read(const struct member *member, uint64_t offset, void *buffer, size_t length)
{
	const struct network *network = member->network;
	char *at = buffer;
	int r = network_connect(member, NULL);

	while (r == 0 && length > 0) {
		size_t step = min_u64(length, network->payload_max_bytes);

		if (nbd_pread(network->nbd, at, step, offset, 0) < 0)
			r = failure(network);
		at += step;
		offset += step;
		length -= step;
	}
	return r;
}

static int write_sectors(
	const struct network *network, uint64_t offset, const char *at, size_t length)
{
	while (length > 0) {
		size_t step = min_u64(length, network->payload_max_bytes);

		if (nbd_pwrite(network->nbd, at, step, offset, 0) < 0)
			return failure(network);
		at += step;
		offset += step;
		length -= step;
	}
	return 0;
}

int network_write(const struct member *member, uint64_t offset, const void *buffer, size_t length)
{
	int r = network_connect(member, NULL);

	return r < 0 ? r : write_sectors(member->network, offset, buffer, length);
}

int network_sync(const struct member *member)
{
	int r = network_connect(member, NULL);

	if (r < 0 || !member->network->can_flush)
		return r;
	return nbd_flush(member->network->nbd, 0) < 0 ? failure(member->network) : 0;
}
