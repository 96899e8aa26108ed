/* SPDX-License-Identifier: MIT */
#include "control/server.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include "control/detail.h"
#include "control/memory.h"
#include "control/remains.h"
#include "control/runtime.h"
#include "control/socket.h"
#include "util/cleanup.h"

#define REQUEST_BYTES_MAX (64u << 10)
#define CLIENT_SECONDS_MAX                                                     \
	5 /* a client that says nothing may not keep the others waiting longer \
	   */

struct control_server {
	json_t *(*handle)(void *owner, json_t *request);
	void *owner;
	int listen_fd;
	int stop_fd; /* eventfd */
	pthread_t thread;
	char name[NAME_MAX];
	char path[PATH_MAX];
	dev_t device; /* of the socket file: only our own is removed */
	ino_t inode;
};

static json_t *answer(const struct control_server *server, int r, json_t *request)
{
	struct fault fault = {0};

	if (r == 0)
		return server->handle(server->owner, request);
	fault_set(&fault, r, "control socket: the request is no JSON object on one line: %s",
		strerror(-r));
	return detail_error(&fault);
}

/* Half an answer is none. The words for that need no memory. */
static int send_answer(int fd, const json_t *reply)
{
	static const char sorry[] =
		"{\"ok\":false,\"errno\":12,\"error\":\"the array's process is out of memory: what "
		"was asked may be done or not; look with 'strake detail', and try again\"}\n";
	int r = memory_was_short() ? -ENOMEM : control_send(fd, reply);

	if (r == -ENOMEM && send(fd, sorry, strlen(sorry), MSG_NOSIGNAL) < 0)
		return -errno;
	return r;
}

static void serve_client(struct control_server *server, int fd)
{
	const struct timeval limit = {.tv_sec = CLIENT_SECONDS_MAX};
	json_t *request = NULL, *reply;
	int r;

	(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	(void)memory_was_short(); /* what was before concerns nobody any more */
	r = control_receive(fd, REQUEST_BYTES_MAX, &request);
	if (r == -ENODATA)
		return; /* it has left */
	reply = answer(server, r, request);
	(void)send_answer(fd, reply); /* a client that left does not hear it */
	json_decref(request);
	json_decref(reply);
}

static void *serve(void *argument)
{
	struct control_server *server = argument;
	struct pollfd fds[2] = {
		{.fd = server->stop_fd, .events = POLLIN},
		{.fd = server->listen_fd, .events = POLLIN},
	};

	for (;;) {
		_cleanup_close_ int client = -1;

		if (poll(fds, 2, -1) < 0)
			continue; /* EINTR; nothing else can be wrong with these two */
		if (fds[0].revents != 0)
			return NULL;
		client = accept4(server->listen_fd, NULL, NULL, SOCK_CLOEXEC);
		if (client >= 0)
			serve_client(server, client);
	}
}

int control_lock(struct fault *fault)
{
	_cleanup_close_ int fd = -1;
	char dir[PATH_MAX];
	int r = runtime_dir(dir, fault);

	if (r < 0)
		return r;
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || flock(fd, LOCK_EX) < 0)
		return fault_set(fault, -errno, "runtime directory %s: cannot lock it: %s", dir,
			strerror(errno));
	return steal_fd(&fd);
}

/* A socket file whose owner is dead refuses connections: then, and only then, it is removed. */
int control_look(const char *name, struct fault *fault)
{
	_cleanup_close_ int fd = -1;
	struct fault connect_fault = {0};
	char path[PATH_MAX];
	struct stat st;
	int r = runtime_socket(name, path, fault);

	if (r < 0)
		return r;
	fd = control_socket(name, false, &connect_fault);
	if (fd >= 0)
		return fault_set(fault, -EBUSY, "array %s: already running; strake stop %s ends it",
			name, name);
	if (fd == -ENOENT)
		return 0;
	if (fd != -ECONNREFUSED || lstat(path, &st) < 0 || !S_ISSOCK(st.st_mode))
		return fault_set(fault, fd, "%s", connect_fault.text);
	return 1;
}

int control_clean_socket(const char *name, struct fault *fault)
{
	char path[PATH_MAX];
	int r = control_look(name, fault);

	if (r <= 0)
		return r;
	r = runtime_socket(name, path, fault);
	if (r == 0 && unlink(path) < 0 && errno != ENOENT)
		return fault_set(fault, -errno, "array %s: stale socket %s: cannot remove it: %s",
			name, path, strerror(errno));
	return r;
}

static void free_server(struct control_server *server)
{
	if (server == NULL)
		return;
	if (server->listen_fd >= 0)
		close(server->listen_fd);
	if (server->stop_fd >= 0)
		close(server->stop_fd);
	free(server);
}

static void free_serverp(struct control_server **server)
{
	free_server(*server);
}

int control_server_listen(const char *name, struct fault *fault)
{
	/* Between bind and listen our socket looks stale: nobody may look. */
	_cleanup_close_ int lock = control_lock(fault);
	_cleanup_close_ int fd = -1;
	char path[PATH_MAX];
	int r = lock < 0 ? lock : control_clean_socket(name, fault);

	if (r == 0)
		r = runtime_socket(name, path, fault);
	if (r < 0)
		return r;
	fd = control_socket(name, true, fault);
	if (fd < 0)
		return fd;
	if (listen(fd, 16) < 0) {
		r = fault_set(
			fault, -errno, "array %s: socket %s: %s", name, path, strerror(errno));
		(void)unlink(path); /* bound a moment ago, under the lock: ours */
		return r;
	}
	return steal_fd(&fd);
}

static void remove_socket(const struct control_server *server)
{
	struct stat st;

	if (lstat(server->path, &st) < 0 || st.st_dev != server->device ||
		st.st_ino != server->inode)
		return; /* gone already: as wanted */
	remains_forget_nbd(server->name);
	(void)unlink(server->path);
}

/* Everything but the thread. */
static int prepare(struct control_server *server, const char *name, struct fault *fault)
{
	struct stat st;
	int r = runtime_socket(name, server->path, fault);

	if (r < 0)
		return r;
	(void)snprintf(server->name, sizeof(server->name), "%s", name);
	if (stat(server->path, &st) < 0)
		return fault_set(fault, -errno, "array %s: socket %s: %s", name, server->path,
			strerror(errno));
	server->device = st.st_dev;
	server->inode = st.st_ino;
	server->stop_fd = eventfd(0, EFD_CLOEXEC);
	if (server->stop_fd < 0)
		return fault_set(fault, -errno, "array %s: eventfd: %s", name, strerror(errno));
	return 0;
}

int control_server_adopt(const char *name, int listen_fd,
	json_t *(*handle)(void *owner, json_t *request), void *owner, struct control_server **ret,
	struct fault *fault)
{
	_cleanup_(free_serverp) struct control_server *server = calloc(1, sizeof(*server));
	int r;

	if (server == NULL)
		return fault_set(fault, -ENOMEM, "array %s: out of memory", name);
	server->handle = handle;
	server->owner = owner;
	server->listen_fd = server->stop_fd = -1; /* the caller's until all went well */
	r = prepare(server, name, fault);
	if (r < 0)
		return r;
	server->listen_fd = listen_fd;
	r = -pthread_create(&server->thread, NULL, serve, server);
	if (r < 0) {
		server->listen_fd = -1;
		return fault_set(
			fault, r, "array %s: cannot start a thread: %s", name, strerror(-r));
	}
	*ret = steal_ptr(server);
	return 0;
}

/* Of a socket that we have bound and still hold, so that nobody can have taken its name. */
static void unlink_own(const char *name)
{
	char path[PATH_MAX];

	if (runtime_socket(name, path, NULL) == 0)
		(void)unlink(path); /* gone already: as wanted */
}

int control_server_start(const char *name, json_t *(*handle)(void *owner, json_t *request),
	void *owner, struct control_server **ret, struct fault *fault)
{
	_cleanup_close_ int fd = control_server_listen(name, fault);
	int r;

	if (fd < 0)
		return fd;
	r = control_server_adopt(name, fd, handle, owner, ret, fault);
	if (r == 0)
		(void)steal_fd(&fd);
	else
		unlink_own(name);
	return r;
}

void control_server_stop(struct control_server *server)
{
	const uint64_t one = 1;

	if (server == NULL)
		return;
	if (write(server->stop_fd, &one, sizeof(one)) != sizeof(one))
		abort(); /* an eventfd takes its first 8 bytes, or our own memory is damaged */
	(void)pthread_join(server->thread, NULL); /* our own, joinable thread */
	remove_socket(server);
	free_server(server);
}
