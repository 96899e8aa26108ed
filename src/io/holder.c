/* SPDX-License-Identifier: MIT */
#include "io/holder.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/loop.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "io/network.h"
#include "util/cleanup.h"

static void close_dir(DIR **dir)
{
	if (*dir != NULL)
		closedir(*dir);
}

#define _cleanup_dir_ _cleanup_(close_dir)

/*
 * Content of a small file of /proc or /sys without the newline at its end (one inside belongs to
 * it: the backing file of a loop device may have one in its name); false if there is none.
 */
static bool read_line(const char *path, char *line, size_t size)
{
	_cleanup_fclose_ FILE *file = fopen(path, "re");
	size_t length;

	if (file == NULL)
		return false;
	length = fread(line, 1, size - 1, file);
	if (length > 0 && line[length - 1] == '\n')
		length--;
	line[length] = '\0';
	return length > 0;
}

/* mountinfo writes space, tab, newline and backslash as \ooo. */
static void unescape(char *text)
{
	char *out = text;

	for (const char *in = text; *in != '\0'; out++) {
		if (in[0] == '\\' && isdigit((unsigned char)in[1]) &&
			isdigit((unsigned char)in[2]) && isdigit((unsigned char)in[3])) {
			*out = (char)((in[1] - '0') * 64 + (in[2] - '0') * 8 + (in[3] - '0'));
			in += 4;
		} else {
			*out = *in++;
		}
	}
	*out = '\0';
}

static bool is_block_device(const char *path, dev_t device)
{
	struct stat attributes;

	return stat(path, &attributes) == 0 && S_ISBLK(attributes.st_mode) &&
	       attributes.st_rdev == device;
}

/* btrfs and others mount under numbers of their own; the line's second part names the device. */
static bool is_source(const char *line, dev_t device)
{
	const char *second = strstr(line, " - ");
	char source[PATH_MAX];

	if (second == NULL || sscanf(second, " - %*s %4095s", source) != 1 || source[0] != '/')
		return false;
	unescape(source);
	return is_block_device(source, device);
}

static bool is_mounted(unsigned major_number, unsigned minor_number, char *words, size_t size)
{
	_cleanup_fclose_ FILE *file = fopen("/proc/self/mountinfo", "re");
	_cleanup_free_ char *line = NULL;
	size_t room = 0;

	while (file != NULL && getline(&line, &room, file) > 0) {
		unsigned a, b;
		char point[PATH_MAX];

		if (sscanf(line, "%*u %*u %u:%u %*s %4095s", &a, &b, point) != 3)
			continue;
		if ((a != major_number || b != minor_number) &&
			!is_source(line, makedev(major_number, minor_number)))
			continue;
		unescape(point);
		(void)snprintf(words, size, "mounted on %s", point);
		return true;
	}
	return false;
}

static bool is_same(const struct stat *attributes, const struct member *member)
{
	if (member->network != NULL) /* see held_socket() */
		return S_ISSOCK(attributes->st_mode) && attributes->st_ino == member->inode;
	if (member->is_block)
		return S_ISBLK(attributes->st_mode) && attributes->st_rdev == member->device;
	return S_ISREG(attributes->st_mode) && attributes->st_dev == member->device &&
	       attributes->st_ino == member->inode;
}

static bool is_path_of(const char *path, const struct member *member)
{
	struct stat attributes;

	return stat(path, &attributes) == 0 && is_same(&attributes, member);
}

static bool is_swap(const struct member *member, char *words, size_t size)
{
	_cleanup_fclose_ FILE *swaps = fopen("/proc/swaps", "re");
	_cleanup_free_ char *line = NULL;
	size_t room = 0;

	while (swaps != NULL && getline(&line, &room, swaps) > 0) {
		char path[PATH_MAX];

		if (sscanf(line, "%4095s", path) != 1)
			continue;
		unescape(path);
		if (is_path_of(path, member)) {
			(void)snprintf(words, size, "in use as swap");
			return true;
		}
	}
	return false;
}

/* Devices built on this one: md0, dm-3, bcache0 … in /sys/…/holders. */
static bool has_holder(const char *sys, char *words, size_t size)
{
	char path[PATH_MAX], name[256];
	_cleanup_dir_ DIR *dir = NULL;
	struct dirent *entry;

	(void)snprintf(path, sizeof(path), "%s/holders", sys);
	dir = opendir(path);
	while (dir != NULL && (entry = readdir(dir)) != NULL) {
		if (entry->d_name[0] == '.')
			continue;
		(void)snprintf(path, sizeof(path), "%s/holders/%s/dm/name", sys, entry->d_name);
		if (read_line(path, name, sizeof(name)))
			(void)snprintf(words, size, "used by the device-mapper device %s", name);
		else if (strncmp(entry->d_name, "md", 2) == 0)
			(void)snprintf(
				words, size, "a member of the kernel's array %s", entry->d_name);
		else
			(void)snprintf(words, size, "used by the device %s", entry->d_name);
		return true;
	}
	return false;
}

/*
 * Is the member what the loop device @name lies over? /sys tells everybody the path, but a path may
 * have been deleted while the file has another, or be one of another root folder; the device itself
 * tells numbers (in the encoding of dev_t), to those who may open it.
 */
static bool is_loop_over(const char *name, const struct member *member)
{
	char path[PATH_MAX], backing[PATH_MAX];
	struct loop_info64 info = {0};
	_cleanup_close_ int fd = -1;

	(void)snprintf(path, sizeof(path), "/sys/block/%s/loop/backing_file", name);
	if (!read_line(path, backing, sizeof(backing)))
		return false; /* over nothing */
	if (is_path_of(backing, member))
		return true;
	(void)snprintf(path, sizeof(path), "/dev/%s", name);
	fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 || ioctl(fd, LOOP_GET_STATUS64, &info) < 0)
		return false;
	return member->is_block
		       ? info.lo_rdevice == member->device
		       : info.lo_device == member->device && info.lo_inode == member->inode;
}

static bool has_loop_device(const struct member *member, char *words, size_t size)
{
	_cleanup_dir_ DIR *dir = opendir("/sys/block");
	struct dirent *entry;

	while (dir != NULL && (entry = readdir(dir)) != NULL) {
		if (strncmp(entry->d_name, "loop", 4) != 0 || !is_loop_over(entry->d_name, member))
			continue;
		(void)snprintf(words, size, "the backing %s of /dev/%s",
			member->is_block ? "device" : "file", entry->d_name);
		return true;
	}
	return false;
}

static bool is_used(unsigned major_number, unsigned minor_number, char *words, size_t size)
{
	const struct member device = {
		.is_block = true, .device = makedev(major_number, minor_number)};
	char sys[64];

	(void)snprintf(sys, sizeof(sys), "/sys/dev/block/%u:%u", major_number, minor_number);
	return is_mounted(major_number, minor_number, words, size) ||
	       is_swap(&device, words, size) || has_holder(sys, words, size) ||
	       has_loop_device(&device, words, size);
}

/* A partition of the device in use: its words with the partition's name before them. */
static bool partition_is_used(const struct member *member, char *words, size_t size)
{
	char sys[64], path[PATH_MAX], numbers[64], inner[PATH_MAX];
	_cleanup_dir_ DIR *dir = NULL;
	struct dirent *entry;

	(void)snprintf(sys, sizeof(sys), "/sys/dev/block/%u:%u", member->major, member->minor);
	dir = opendir(sys);
	while (dir != NULL && (entry = readdir(dir)) != NULL) {
		unsigned a, b;

		(void)snprintf(path, sizeof(path), "%s/%s/partition", sys, entry->d_name);
		if (entry->d_name[0] == '.' || access(path, F_OK) != 0)
			continue;
		(void)snprintf(path, sizeof(path), "%s/%s/dev", sys, entry->d_name);
		if (!read_line(path, numbers, sizeof(numbers)) ||
			sscanf(numbers, "%u:%u", &a, &b) != 2 ||
			!is_used(a, b, inner, sizeof(inner)))
			continue;
		(void)snprintf(words, size, "in use: its partition %s is %s", entry->d_name, inner);
		return true;
	}
	return false;
}

/* The member is a partition, and somebody has the whole disk. */
static bool disk_is_used(const struct member *member, char *words, size_t size)
{
	char path[128], numbers[64], inner[PATH_MAX];
	unsigned a, b;

	(void)snprintf(
		path, sizeof(path), "/sys/dev/block/%u:%u/partition", member->major, member->minor);
	if (access(path, F_OK) != 0)
		return false;
	(void)snprintf(
		path, sizeof(path), "/sys/dev/block/%u:%u/../dev", member->major, member->minor);
	if (!read_line(path, numbers, sizeof(numbers)) || sscanf(numbers, "%u:%u", &a, &b) != 2 ||
		!is_used(a, b, inner, sizeof(inner)))
		return false;
	(void)snprintf(words, size, "in use: the whole disk is %s", inner);
	return true;
}

bool holder_of_device(const struct member *member, char *words, size_t size)
{
	if (member->network != NULL)
		return false;
	if (!member->is_block)
		return has_loop_device(member, words, size) || is_swap(member, words, size);
	return is_used(member->major, member->minor, words, size) ||
	       partition_is_used(member, words, size) || disk_is_used(member, words, size);
}

/* A descriptor with a lock: a "lock:" line in its fdinfo (man 5 proc). */
static bool has_lock(const char *process, const char *descriptor)
{
	char path[PATH_MAX], content[2048];

	(void)snprintf(path, sizeof(path), "/proc/%s/fdinfo/%s", process, descriptor);
	return read_line(path, content, sizeof(content)) && strstr(content, "\nlock:") != NULL;
}

/*
 * How closely the process has the member: 0 not at all, 1 open, 2 locked. Of our own process the
 * descriptor of this very attempt does not count, nor does a mere look at a file by another one.
 */
static int grip(const char *process, bool own, const struct member *member)
{
	char path[PATH_MAX];
	_cleanup_dir_ DIR *dir = NULL;
	struct dirent *entry;
	int found = 0;

	(void)snprintf(path, sizeof(path), "/proc/%s/fd", process);
	dir = opendir(path); /* another user's process: not ours to see */
	while (dir != NULL && found < 2 && (entry = readdir(dir)) != NULL) {
		struct stat attributes;

		if (entry->d_name[0] == '.' ||
			(own && strtol(entry->d_name, NULL, 10) == member->fd) ||
			fstatat(dirfd(dir), entry->d_name, &attributes, 0) < 0 ||
			!is_same(&attributes, member))
			continue;
		if (member->network != NULL || has_lock(process, entry->d_name))
			found = 2;
		else if (!own || member->is_block)
			found = 1;
	}
	return found;
}

/* An array's process is called "strake:NAME", cut at 15 bytes as the kernel does. */
static void describe(const char *process, char *words, size_t size)
{
	char path[PATH_MAX], name[256];

	(void)snprintf(path, sizeof(path), "/proc/%s/comm", process);
	if (!read_line(path, name, sizeof(name)))
		(void)snprintf(words, size, "process %s", process);
	else if (strncmp(name, "strake:", 7) == 0)
		(void)snprintf(words, size, "the running array %s%s (process %s)", name + 7,
			strlen(name) == 15 ? "…" : "", process);
	else
		(void)snprintf(words, size, "process %s (%s)", process, name);
}

/* The inode of the socket that is the hold on a network member; 0: nobody has it. */
static ino_t held_socket(const struct member *member)
{
	struct network_hold_address address = network_hold_address(network_key(member->network));
	_cleanup_fclose_ FILE *file = fopen("/proc/net/unix", "re");
	_cleanup_free_ char *line = NULL;
	size_t room = 0;

	while (file != NULL && getline(&line, &room, file) > 0) {
		unsigned long inode;
		char name[128];

		if (sscanf(line, "%*s %*s %*s %*s %*s %*s %lu @%127s", &inode, name) == 2 &&
			strcmp(name, address.name) == 0)
			return inode;
	}
	return 0;
}

bool holder_process(const struct member *given, char *words, size_t size)
{
	_cleanup_dir_ DIR *dir = opendir("/proc");
	struct member sought = *given;
	const struct member *member = &sought;
	struct dirent *entry;
	int best = 0;

	if (given->network != NULL && (sought.inode = held_socket(given)) == 0)
		return false;

	while (dir != NULL && best < 2 && (entry = readdir(dir)) != NULL) {
		bool own;
		int found;

		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		own = strtol(entry->d_name, NULL, 10) == getpid();
		found = grip(entry->d_name, own, member);
		if (found <= best)
			continue;
		best = found;
		if (own)
			(void)snprintf(words, size, "this very command, which has it already");
		else
			describe(entry->d_name, words, size);
	}
	return best > 0;
}
