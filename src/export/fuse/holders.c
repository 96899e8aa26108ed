/* SPDX-License-Identifier: MIT */
#include "export/fuse/holders.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "export/fuse/loop.h"
#include "util/cleanup.h"

/* The kernel writes blanks and the like in these files as \040. */
static void unescape(char *text)
{
	char *out = text;

	for (const char *in = text; *in != '\0'; in++) {
		if (in[0] == '\\' && isdigit((unsigned char)in[1]) &&
			isdigit((unsigned char)in[2]) && isdigit((unsigned char)in[3])) {
			*out++ = (char)((in[1] - '0') * 64 + (in[2] - '0') * 8 + (in[3] - '0'));
			in += 3;
		} else {
			*out++ = *in;
		}
	}
	*out = '\0';
}

static bool is_device(const char *path, dev_t device)
{
	struct stat st;

	return path[0] == '/' && stat(path, &st) == 0 && S_ISBLK(st.st_mode) &&
	       st.st_rdev == device;
}

/*
 * mountinfo: "ID PARENT MAJOR:MINOR ROOT MOUNTPOINT OPTIONS … - TYPE SOURCE OPTIONS". File systems
 * over several devices (btrfs) have numbers of their own, so the source counts as well; only
 * sources in /dev are looked at, because a stat() of others may hang.
 */
static bool is_mount_of(char *line, dev_t device, char point[PATH_MAX])
{
	unsigned major, minor;
	char source[PATH_MAX];
	char *tail = strstr(line, " - ");

	if (tail == NULL || sscanf(tail, " - %*s %4095s", source) != 1 ||
		sscanf(line, "%*s %*s %u:%u %*s %4095s", &major, &minor, point) != 3)
		return false;
	unescape(source);
	unescape(point);
	return makedev(major, minor) == device ||
	       (strncmp(source, "/dev/", 5) == 0 && is_device(source, device));
}

static bool find_mount(dev_t device, char *ret, size_t ret_bytes)
{
	_cleanup_fclose_ FILE *file = fopen("/proc/self/mountinfo", "re");
	_cleanup_free_ char *line = NULL;
	char point[PATH_MAX];
	size_t size = 0;

	while (file != NULL && getline(&line, &size, file) > 0)
		if (is_mount_of(line, device, point)) {
			(void)snprintf(ret, ret_bytes, "mounted on %s", point);
			return true;
		}
	return false;
}

static bool find_swap(dev_t device, char *ret, size_t ret_bytes)
{
	_cleanup_fclose_ FILE *file = fopen("/proc/swaps", "re");
	_cleanup_free_ char *line = NULL;
	size_t size = 0;

	while (file != NULL && getline(&line, &size, file) > 0) {
		line[strcspn(line, " \t")] = '\0';
		unescape(line);
		if (is_device(line, device)) {
			(void)snprintf(ret, ret_bytes, "used as swap area");
			return true;
		}
	}
	return false;
}

/* Device mapper and md put themselves into their members' "holders". */
static bool find_stacked(dev_t device, char *ret, size_t ret_bytes)
{
	char path[NAME_MAX + 32];
	struct dirent *entry;
	bool found = false;
	DIR *dir;

	(void)snprintf(
		path, sizeof(path), "/sys/dev/block/%u:%u/holders", major(device), minor(device));
	dir = opendir(path);
	while (dir != NULL && !found && (entry = readdir(dir)) != NULL) {
		found = entry->d_name[0] != '.';
		if (found)
			(void)snprintf(ret, ret_bytes, "part of /dev/%s", entry->d_name);
	}
	if (dir != NULL)
		closedir(dir);
	return found;
}

/* A file is told by its path: a stat() through a process's descriptor could hang or fail. */
struct wanted {
	dev_t device;     /* of a block device, or 0 */
	const char *path; /* of a file, or NULL */
};

static bool is_wanted(int fds, const char *fd, const struct wanted *wanted)
{
	char target[PATH_MAX];
	struct stat st;
	ssize_t n = readlinkat(fds, fd, target, sizeof(target) - 1);

	if (n <= 0)
		return false;
	target[n] = '\0';
	if (wanted->path != NULL)
		return strcmp(target, wanted->path) == 0;
	return strncmp(target, "/dev/", 5) == 0 && fstatat(fds, fd, &st, 0) == 0 &&
	       S_ISBLK(st.st_mode) && st.st_rdev == wanted->device;
}

static bool process_has(const char *pid, const struct wanted *wanted)
{
	char path[NAME_MAX + 32];
	struct dirent *entry;
	bool found = false;
	DIR *dir;

	(void)snprintf(path, sizeof(path), "/proc/%s/fd", pid);
	dir = opendir(path); /* other users' are closed to us; their holds show when we try */
	while (dir != NULL && !found && (entry = readdir(dir)) != NULL)
		found = is_wanted(dirfd(dir), entry->d_name, wanted);
	if (dir != NULL)
		closedir(dir);
	return found;
}

static void process_name(const char *pid, char ret[64])
{
	_cleanup_fclose_ FILE *file = NULL;
	char path[NAME_MAX + 32];

	(void)snprintf(path, sizeof(path), "/proc/%s/comm", pid);
	file = fopen(path, "re");
	if (file == NULL || fgets(ret, 64, file) == NULL)
		(void)snprintf(ret, 64, "?");
	ret[strcspn(ret, "\n")] = '\0';
}

static bool find_process(const struct wanted *wanted, char *ret, size_t ret_bytes)
{
	DIR *dir = opendir("/proc");
	struct dirent *entry;
	char name[64];
	bool found = false;

	while (dir != NULL && !found && (entry = readdir(dir)) != NULL) {
		if (!isdigit((unsigned char)entry->d_name[0]) || atol(entry->d_name) == getpid())
			continue;
		found = process_has(entry->d_name, wanted);
		if (!found)
			continue;
		process_name(entry->d_name, name);
		(void)snprintf(ret, ret_bytes, "open in process %s (%s)", entry->d_name, name);
	}
	if (dir != NULL)
		closedir(dir);
	return found;
}

static bool find_loop(const char *path, int except, char *ret, size_t ret_bytes)
{
	int numbers[8];
	unsigned count = loop_find(path, numbers, 8);

	for (unsigned i = 0; i < count; i++)
		if (numbers[i] != except) {
			(void)snprintf(ret, ret_bytes, "attached to /dev/loop%d", numbers[i]);
			return true;
		}
	return false;
}

bool holders_of_device(const char *node, char *ret, size_t ret_bytes)
{
	struct wanted wanted = {0};
	struct stat st;

	if (stat(node, &st) < 0 || !S_ISBLK(st.st_mode))
		return false;
	wanted.device = st.st_rdev;
	return find_mount(st.st_rdev, ret, ret_bytes) || find_swap(st.st_rdev, ret, ret_bytes) ||
	       find_stacked(st.st_rdev, ret, ret_bytes) || find_loop(node, -1, ret, ret_bytes) ||
	       find_process(&wanted, ret, ret_bytes);
}

bool holders_of_file(const char *path, int except_loop, char *ret, size_t ret_bytes)
{
	const struct wanted wanted = {.path = path};

	return find_loop(path, except_loop, ret, ret_bytes) ||
	       find_process(&wanted, ret, ret_bytes);
}
