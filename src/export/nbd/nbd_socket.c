/* SPDX-License-Identifier: MIT */
#include "export/nbd/nbd_socket.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "control/runtime.h"
#include "util/cleanup.h"

/* The server changes its directory, so the path must be absolute; and it must fit an address. */
static int absolute_socket(
	const char *name, const char *path, char ret[PATH_MAX], struct fault *fault)
{
	char folder[PATH_MAX] = "";

	if (path[0] != '/' && getcwd(folder, sizeof(folder)) == NULL)
		return fault_set(fault, -errno, "array %s: NBD socket %s: current directory: %s",
			name, path, strerror(errno));
	if (snprintf(ret, PATH_MAX, "%s%s%s", folder, folder[0] == '\0' ? "" : "/", path) >=
		(int)sizeof(((struct sockaddr_un *)NULL)->sun_path))
		return fault_set(fault, -ENAMETOOLONG,
			"array %s: NBD socket %.200s: longer than "
			"the %zu bytes that a socket's path may have; choose a shorter one",
			name, path, sizeof(((struct sockaddr_un *)NULL)->sun_path) - 1);
	return 0;
}

/* Where the user said, or else in the runtime directory. */
static int choose_socket(
	const struct array_options *options, char ret[PATH_MAX], struct fault *fault)
{
	char runtime[PATH_MAX];
	int r;

	if (options->nbd_path != NULL)
		return absolute_socket(options->name, options->nbd_path, ret, fault);
	r = runtime_file(options->name, runtime, fault);
	if (r < 0)
		return r;
	if (strlen(runtime) + strlen(".nbd") >= sizeof(runtime))
		return fault_set(fault, -ENAMETOOLONG, "array %s: runtime directory: path too long",
			options->name);
	strcat(runtime, ".nbd");
	return absolute_socket(options->name, runtime, ret, fault);
}

/* 0 nobody listens, -EBUSY somebody does. */
static int try_connect(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	_cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	memcpy(address.sun_path, path, strlen(path) + 1);
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0)
		return -EBUSY;
	return errno == ECONNREFUSED || errno == ENOENT ? 0 : -errno;
}

/* bind() would say it too, but not what to do. */
static int check_folder(const char *name, const char *path, struct fault *fault)
{
	char folder[PATH_MAX];

	(void)snprintf(folder, sizeof(folder), "%.*s", (int)(strrchr(path, '/') - path + 1), path);
	if (access(folder, W_OK | X_OK) == 0)
		return 0;
	return fault_set(fault, -errno,
		"array %s: NBD socket %s: cannot make a socket in %s: %s; "
		"choose a directory that you may write to",
		name, path, folder, strerror(errno));
}

/* A socket whose server was killed would be in the way; anything else there is not ours. */
static int clear_socket(const char *name, const char *path, struct fault *fault)
{
	struct stat st;
	int r;

	if (lstat(path, &st) < 0)
		return errno == ENOENT ? 0
				       : fault_set(fault, -errno, "array %s: NBD socket %s: %s",
						 name, path, strerror(errno));
	if (!S_ISSOCK(st.st_mode))
		return fault_set(fault, -EEXIST,
			"array %s: NBD socket %s: the file exists and is "
			"no socket; choose another path",
			name, path);
	r = try_connect(path);
	if (r == -EBUSY)
		return fault_set(fault, r,
			"array %s: NBD socket %s: another server listens there; "
			"stop it or choose another path",
			name, path);
	if (r == 0 && unlink(path) < 0)
		r = -errno;
	return r == 0 ? 0
		      : fault_set(fault, r,
				"array %s: NBD socket %s: cannot remove the socket "
				"that a killed server left: %s",
				name, path, strerror(-r));
}

int nbd_socket_choose(const struct array_options *options, char ret[PATH_MAX], struct fault *fault)
{
	int r = choose_socket(options, ret, fault);

	if (r == 0)
		r = check_folder(options->name, ret, fault);
	return r == 0 ? clear_socket(options->name, ret, fault) : r;
}

int nbd_socket_listen(const char *name, const char *path, struct fault *fault)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	_cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	memcpy(address.sun_path, path, strlen(path) + 1);
	if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ||
		listen(fd, SOMAXCONN) < 0)
		return fault_set(fault, -errno, "array %s: NBD socket %s: %s; choose another path",
			name, path, strerror(errno));
	return steal_fd(&fd);
}
