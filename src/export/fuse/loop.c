/* SPDX-License-Identifier: MIT */
#include "export/fuse/loop.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/loop.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "util/cleanup.h"

#define SECTOR 512u
#define ATTEMPTS_MAX 64 /* others may take the free device between our question and our hand */
#define DETACH_WAIT_MS 3000
#define POLL_MS 10

void loop_name(int number, struct loop *ret)
{
	ret->number = number;
	(void)snprintf(ret->node, sizeof(ret->node), "/dev/loop%d", number);
}

static int open_control(struct fault *fault)
{
	int fd = open("/dev/loop-control", O_RDWR | O_CLOEXEC);

	if (fd >= 0)
		return fd;
	return fault_set(fault, errno == ENOENT || errno == ENXIO ? -ENODEV : -errno,
		"no loop device: /dev/loop-control: %s", strerror(errno));
}

static int configure(const struct loop *loop, int file_fd, const char *path, bool readonly)
{
	_cleanup_close_ int fd = open(loop->node, (readonly ? O_RDONLY : O_RDWR) | O_CLOEXEC);
	struct loop_config config = {
		.fd = (uint32_t)file_fd,
		.block_size = SECTOR,
		.info.lo_flags = LO_FLAGS_DIRECT_IO | (readonly ? LO_FLAGS_READ_ONLY : 0),
	};

	if (fd < 0)
		return -errno;
	(void)snprintf(
		(char *)config.info.lo_file_name, sizeof(config.info.lo_file_name), "%s", path);
	return ioctl(fd, LOOP_CONFIGURE, &config) < 0 ? -errno : 0;
}

/* Find a free device and take it; the next if somebody was faster. */
static int take_free(int control_fd, int file_fd, const char *path, bool readonly, struct loop *ret,
	struct fault *fault)
{
	int r = -EBUSY;

	for (unsigned i = 0; i < ATTEMPTS_MAX && r == -EBUSY; i++) {
		int number = ioctl(control_fd, LOOP_CTL_GET_FREE);

		if (number < 0)
			return fault_set(fault, errno == ENOSPC ? -ENODEV : -errno,
				"no loop device is free: %s", strerror(errno));
		loop_name(number, ret);
		r = configure(ret, file_fd, path, readonly);
	}
	if (r < 0)
		return fault_set(fault, r == -ENOENT || r == -EBUSY ? -ENODEV : r,
			"loop device %s cannot be used: %s", ret->node, strerror(-r));
	return 0;
}

int loop_attach(const char *path, bool readonly, uint64_t readahead_bytes, struct loop *ret,
	struct fault *fault)
{
	_cleanup_close_ int control_fd = open_control(fault), file_fd = -1;
	int r;

	if (control_fd < 0)
		return control_fd;
	file_fd = open(path, (readonly ? O_RDONLY : O_RDWR) | O_DIRECT | O_CLOEXEC);
	if (file_fd < 0)
		return fault_set(fault, -errno, "%s: %s", path, strerror(errno));
	r = take_free(control_fd, file_fd, path, readonly, ret, fault);
	if (r == 0 && readahead_bytes != LOOP_UNCHANGED)
		(void)loop_set_readahead(ret, readahead_bytes); /* only speed depends on it */
	return r;
}

static bool read_backing(int number, char ret[PATH_MAX])
{
	_cleanup_fclose_ FILE *file = NULL;
	char path[64];

	(void)snprintf(path, sizeof(path), "/sys/block/loop%d/loop/backing_file", number);
	file = fopen(path, "re");
	if (file == NULL || fgets(ret, PATH_MAX, file) == NULL)
		return false;
	ret[strcspn(ret, "\n")] = '\0';
	return true;
}

int loop_detach(const struct loop *loop, int exclusive_fd)
{
	const struct timespec pause = {.tv_nsec = POLL_MS * 1000000L};
	char backing[PATH_MAX];
	int r = ioctl(exclusive_fd, LOOP_CLR_FD, 0) < 0 ? -errno : 0;

	close(exclusive_fd); /* the device is let go with its last descriptor */
	if (r < 0)
		return r == -ENXIO ? 0 : r; /* ENXIO: somebody had detached it already */
	for (unsigned waited_ms = 0; read_backing(loop->number, backing); waited_ms += POLL_MS) {
		if (waited_ms >= DETACH_WAIT_MS)
			return -EBUSY;
		(void)nanosleep(&pause, NULL); /* woken early, we look early */
	}
	return 0;
}

void loop_abandon(const struct loop *loop)
{
	_cleanup_close_ int fd = open(loop->node, O_RDONLY | O_CLOEXEC);
	struct loop_info64 info;

	if (fd < 0)
		return;
	/* With PARTSCAN the kernel drops the partitions when it lets the device go. */
	if (ioctl(fd, LOOP_GET_STATUS64, &info) == 0) {
		info.lo_flags |= LO_FLAGS_PARTSCAN;
		(void)ioctl(fd, LOOP_SET_STATUS64, &info); /* else they stay until its next use */
	}
	(void)ioctl(fd, LOOP_CLR_FD, 0); /* ENXIO: it is free already, as wanted */
}

/* The kernel writes " (deleted)" behind a path that is gone or no longer reachable. */
static bool is_backing(const char *backing, const char *path)
{
	size_t length = strlen(path);

	return strncmp(backing, path, length) == 0 &&
	       (backing[length] == '\0' || strcmp(backing + length, " (deleted)") == 0);
}

unsigned loop_find(const char *path, int *ret_numbers, unsigned max)
{
	DIR *dir = opendir("/sys/block");
	struct dirent *entry;
	char backing[PATH_MAX];
	unsigned count = 0;
	int number;

	while (dir != NULL && count < max && (entry = readdir(dir)) != NULL)
		if (sscanf(entry->d_name, "loop%d", &number) == 1 &&
			read_backing(number, backing) && is_backing(backing, path))
			ret_numbers[count++] = number;
	if (dir != NULL)
		closedir(dir);
	return count;
}

/* By device and inode, not by name: the name may have been mounted over. */
bool loop_is_ours(const struct loop *loop, const char *path)
{
	_cleanup_close_ int fd = open(loop->node, O_RDONLY | O_CLOEXEC);
	struct loop_info64 info;
	struct stat file;

	return fd >= 0 && ioctl(fd, LOOP_GET_STATUS64, &info) == 0 && stat(path, &file) == 0 &&
	       info.lo_device == file.st_dev && info.lo_inode == file.st_ino;
}

int loop_set_readahead(const struct loop *loop, uint64_t bytes)
{
	_cleanup_close_ int fd = open(loop->node, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || ioctl(fd, BLKRASET, (unsigned long)(bytes / SECTOR)) < 0)
		return -errno;
	return 0;
}

int loop_get_readahead(const struct loop *loop, uint64_t *ret_bytes)
{
	_cleanup_close_ int fd = open(loop->node, O_RDONLY | O_CLOEXEC);
	long sectors;

	if (fd < 0 || ioctl(fd, BLKRAGET, &sectors) < 0)
		return -errno;
	*ret_bytes = (uint64_t)sectors * SECTOR;
	return 0;
}
