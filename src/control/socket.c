/* SPDX-License-Identifier: MIT */
#include "control/socket.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "control/runtime.h"
#include "util/cleanup.h"

/*
 * A socket address holds 107 bytes, a path 4,095. A path that is too long is reached through its
 * directory's descriptor, which @dir_fd keeps open meanwhile.
 */
static int make_address(const char *path, struct sockaddr_un *ret, int *dir_fd)
{
	char dir[PATH_MAX];
	const char *slash = strrchr(path, '/');
	int n;

	*ret = (struct sockaddr_un){.sun_family = AF_UNIX};
	if (strlen(path) < sizeof(ret->sun_path)) {
		memcpy(ret->sun_path, path, strlen(path) + 1);
		return 0;
	}
	(void)snprintf(dir, sizeof(dir), "%.*s", (int)(slash - path), path);
	*dir_fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (*dir_fd < 0)
		return -errno;
	n = snprintf(ret->sun_path, sizeof(ret->sun_path), "/proc/self/fd/%d%s", *dir_fd, slash);
	return n < (int)sizeof(ret->sun_path) ? 0 : -ENAMETOOLONG;
}

/* The owner alone may speak with the array: the socket's mode is set before anybody can connect. */
static int bind_socket(int fd, const struct sockaddr_un *address)
{
	if (fchmod(fd, 0600) < 0 ||
		bind(fd, (const struct sockaddr *)address, sizeof(*address)) < 0)
		return -errno;
	return 0;
}

int control_socket(const char *name, bool listening, struct fault *fault)
{
	_cleanup_close_ int fd = -1, dir_fd = -1;
	const struct timeval limit = {.tv_sec = CONTROL_WAIT_SECONDS};
	struct sockaddr_un address;
	char path[PATH_MAX];
	int r = runtime_socket(name, path, fault);

	if (r < 0)
		return r;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return fault_set(
			fault, -errno, "array %s: cannot make a socket: %s", name, strerror(errno));
	if (!listening) /* when the backlog of a stopped process is full, connect() waits for it */
		(void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	r = make_address(path, &address, &dir_fd);
	if (r == 0 && listening)
		r = bind_socket(fd, &address);
	else if (r == 0 && connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		r = -errno;
	if (r < 0)
		return fault_set(fault, r, "array %s: socket %s: %s", name, path, strerror(-r));
	return steal_fd(&fd);
}

int control_send(int fd, const json_t *object)
{
	_cleanup_free_ char *text = json_dumps(object, JSON_COMPACT | JSON_PRESERVE_ORDER);
	size_t length, done = 0;

	if (text == NULL)
		return -ENOMEM;
	length = strlen(text);
	text[length++] = '\n'; /* in the place of the NUL */
	while (done < length) {
		ssize_t n = send(fd, text + done, length - done, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		done += (size_t)n;
	}
	return 0;
}

/* Read up to the first newline into *@text, growing it. Returns the line's length. */
static ssize_t receive_line(int fd, size_t line_max, char **text)
{
	size_t size = 0, used = 0;

	for (;;) {
		char *newline, *grown;
		ssize_t n;

		if (used == size) {
			size = size == 0 ? 4096 : size * 2;
			grown = used >= line_max ? NULL : realloc(*text, size);
			if (grown == NULL)
				return used >= line_max ? -EMSGSIZE : -ENOMEM;
			*text = grown;
		}
		n = recv(fd, *text + used, size - used, 0);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -ENODATA;
		newline = memchr(*text + used, '\n', (size_t)n);
		used += (size_t)n;
		if (newline != NULL)
			return newline - *text;
	}
}

int control_receive(int fd, size_t line_max, json_t **ret)
{
	_cleanup_free_ char *text = NULL;
	ssize_t length = receive_line(fd, line_max, &text);
	json_t *object;

	if (length < 0)
		return (int)length;
	object = json_loadb(text, (size_t)length, JSON_REJECT_DUPLICATES, NULL);
	if (!json_is_object(object)) {
		json_decref(object);
		return -EBADMSG;
	}
	*ret = object;
	return 0;
}
