/* SPDX-License-Identifier: MIT */
#ifndef STRAKE_IO_MEMBER_H
#define STRAKE_IO_MEMBER_H

/*
 * A member as the operating system knows it: a block device or a regular file, opened, measured
 * and, if asked, taken exclusively (O_EXCL for block devices, flock(2) for files: shared for
 * MEMBER_READONLY, else alone). Or an export of an NBD server, by URI or by the path of a Unix
 * socket, which is taken among the programs of this machine only, and never shared. Opening never
 * writes.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "util/fault.h"

#define MEMBER_READONLY (1u << 0)  /* open with O_RDONLY */
#define MEMBER_EXCLUSIVE (1u << 1) /* take it: refused if anybody else has */
#define MEMBER_BUFFERED (1u << 2)  /* never O_DIRECT */

struct network; /* io/network.h */

struct member {
	char *path; /* as the user named it; what names an NBD server's socket is made absolute */
	int fd;     /* of a network member: only the hold on it, no bytes pass there */
	struct network *network; /* NULL: not a network member */
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
 * another process), -ENAMETOOLONG, any errno of open(2). For what an NBD server has: -EROFS it is
 * read-only there, -EINVAL the URI, -ETIMEDOUT, -ECONNREFUSED and other errors of connecting,
 * -EOPNOTSUPP blocks too large, or built without libnbd.
 */
int member_open(const char *path, unsigned flags, struct member **ret, struct fault *fault);
void member_close(struct member *member);

/* Same device or file, whatever the two paths say. */
bool member_is_same(const struct member *a, const struct member *b);

/* Does the word, a URI or the path of a socket, which need not be there, name this network member?
 */
bool member_is_named(const struct member *member, const char *word);
/* Is it a URI of NBD, or does a socket stand at this path? */
bool member_is_network_word(const char *word);

/*
 * Give back what MEMBER_EXCLUSIVE took of a file, for all processes that have it, or of a network
 * member, for this one; it stays open.
 */
void member_release(const struct member *member);

/*
 * A network member's connection cannot be used by two processes. Whoever goes on after fork() uses
 * it, and others only close the member, or their side of the connection: member_read() and the like
 * connect again. A process that was executed has the bytes of the struct, with another path, and
 * the descriptor: member_adopt() makes a member of these, by a connection of its own; 0, or what
 * member_open() returns, -ESTALE if the size is another one. No matter for local members.
 */
void member_disconnect(struct member *member);
int member_adopt(struct member *member, struct fault *fault);

/* Whole reads and writes outside any world, for superblocks; any alignment. 0 or negative errno. */
int member_read(const struct member *member, uint64_t offset_bytes, void *buffer, size_t length);
int member_write(
	const struct member *member, uint64_t offset_bytes, const void *buffer, size_t length);
int member_sync(const struct member *member);

#endif
