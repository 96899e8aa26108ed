/* SPDX-License-Identifier: MIT */
#ifndef STRAKE_IO_MEMBER_H
#define STRAKE_IO_MEMBER_H

/*
 * A member as the operating system knows it: a block device or a regular file, opened, measured
 * and, if asked, taken exclusively (O_EXCL for block devices, flock(2) for files: shared for
 * MEMBER_READONLY, else alone). Opening never writes.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "util/fault.h"

#define MEMBER_READONLY (1u << 0)  /* open with O_RDONLY */
#define MEMBER_EXCLUSIVE (1u << 1) /* take it: refused if anybody else has */
#define MEMBER_BUFFERED (1u << 2)  /* never O_DIRECT */

struct member {
	char *path; /* as the user named it */
	int fd;
	uint64_t size_bytes;
	uint32_t logical_block_bytes; /* smallest write the device knows; 512 for files */
	uint32_t memory_align;        /* what O_DIRECT asks of buffer addresses; 1 if not direct */
	bool is_block;
	bool direct;    /* opened with O_DIRECT; only if it takes 512-byte offsets and lengths */
	bool in_memory; /* a file of tmpfs or ramfs: there is no device to wait for */
	bool readonly;
	dev_t device;          /* block device: its number; file: the file system's */
	ino_t inode;           /* files only */
	uint32_t major, minor; /* of the block device; 0 for files */
};

/*
 * Open @path. Refused, with words naming the path and what to do: -ENOENT no such file, -EISDIR,
 * -ENOTBLK neither file nor block device, -EACCES, -EBUSY with the holder named (a mount point, a
 * swap area, an md array of the kernel, a loop device, device mapper, a running strake array or
 * another process), -ENAMETOOLONG, any errno of open(2).
 */
int member_open(const char *path, unsigned flags, struct member **ret, struct fault *fault);
void member_close(struct member *member);

/* Same device or file, whatever the two paths say. */
bool member_is_same(const struct member *a, const struct member *b);

/* Whole reads and writes outside any world, for superblocks; any alignment. 0 or negative errno. */
int member_read(const struct member *member, uint64_t offset_bytes, void *buffer, size_t length);
int member_write(
	const struct member *member, uint64_t offset_bytes, const void *buffer, size_t length);
int member_sync(const struct member *member);

#endif
