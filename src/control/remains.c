/* SPDX-License-Identifier: MIT */
#include "control/remains.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "control/detail.h"
#include "control/runtime.h"
#include "control/socket.h"
#include "util/cleanup.h"

void remains_record_nbd(const char *name, const char *path)
{
	char link[PATH_MAX], folder[PATH_MAX] = "", target[2 * PATH_MAX];

	if (runtime_nbd(name, link, NULL) < 0)
		return;
	if (path[0] != '/' && getcwd(folder, sizeof(folder)) == NULL)
		return;
	(void)snprintf(
		target, sizeof(target), "%s%s%s", folder, folder[0] != '\0' ? "/" : "", path);
	if (strcmp(target, link) != 0)
		(void)!symlink(target, link); /* best effort, see the header */
}

void remains_forget_nbd(const char *name)
{
	char link[PATH_MAX];
	struct stat st;

	if (runtime_nbd(name, link, NULL) == 0 && lstat(link, &st) == 0 && S_ISLNK(st.st_mode))
		(void)unlink(link); /* a stale link leads to a socket that is there or not */
}

/* A socket at which nobody listens? */
static bool is_dead_socket(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	_cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct stat st;

	if (fd < 0 || lstat(path, &st) < 0 || !S_ISSOCK(st.st_mode) ||
		strlen(path) >= sizeof(address.sun_path))
		return false;
	memcpy(address.sun_path, path, strlen(path) + 1);
	return connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0 &&
	       errno == ECONNREFUSED;
}

/* The dead NBD socket of array @name. */
static bool find_nbd(const char *name, char ret[PATH_MAX])
{
	char link[PATH_MAX];
	ssize_t n;

	if (runtime_nbd(name, link, NULL) < 0)
		return false;
	n = readlink(link, ret, PATH_MAX - 1);
	if (n > 0)
		ret[n] = '\0';
	else
		(void)snprintf(ret, PATH_MAX, "%s", link);
	return is_dead_socket(ret);
}

int remains_clean_nbd(const char *name, struct fault *fault)
{
	char path[PATH_MAX];

	if (find_nbd(name, path) && unlink(path) < 0 && errno != ENOENT)
		return fault_set(fault, -errno,
			"array %s: NBD socket %s: cannot remove what a killed process left: %s; "
			"remove it yourself",
			name, path, strerror(errno));
	remains_forget_nbd(name);
	return 0;
}

static void add(json_t *list, const char *path)
{
	(void)json_array_append_new(list, detail_string(path)); /* for words only */
}

/* open() and not stat(): see the FUSE export, which cleans it. */
static bool is_dead_mount(const char *path)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

	return fd < 0 && (errno == ENOTCONN || errno == ECONNABORTED);
}

/* The record's lines are "TARGET LINK"; targets are relative to the link's folder: "../loop3". */
static void add_links(const char *name, json_t *paths, json_t *devices)
{
	_cleanup_fclose_ FILE *file = NULL;
	char record[PATH_MAX], line[2 * PATH_MAX], target[PATH_MAX], device[PATH_MAX + 8];
	ssize_t n;

	if (runtime_links(name, record, NULL) < 0)
		return;
	file = fopen(record, "re");
	while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
		char *path = strchr(line, ' ');

		line[strcspn(line, "\n")] = '\0';
		if (path == NULL)
			continue;
		*path++ = '\0';
		n = readlink(path, target, sizeof(target) - 1);
		if (n <= 0 || (size_t)n != strlen(line) || memcmp(target, line, (size_t)n) != 0)
			continue;
		target[n] = '\0';
		add(paths, path);
		(void)snprintf(device, sizeof(device), "/dev/%s",
			strrchr(target, '/') != NULL ? strrchr(target, '/') + 1 : target);
		add(devices, device);
	}
}

json_t *remains_find(const char *name)
{
	json_t *paths = json_array(), *devices = json_array();
	char path[PATH_MAX];

	if (runtime_socket(name, path, NULL) < 0) {
		json_decref(paths);
		json_decref(devices);
		return NULL;
	}
	if (control_look(name, NULL) > 0)
		add(paths, path);
	if (runtime_file(name, path, NULL) == 0 && is_dead_mount(path))
		add(paths, path);
	if (find_nbd(name, path))
		add(paths, path);
	add_links(name, paths, devices);
	return json_pack("{s:o, s:o}", "paths", paths, "devices", devices);
}
