/* SPDX-License-Identifier: MIT */

/*
 * A copy of the places of a network member where signatures stand, for libblkid, which reads
 * descriptors and nothing else: a sparse file in memory, as large as the member.
 *
 * Signatures stand in the first 4 MiB and the last 2 MiB (libblkid's tables: VMFS at 2 MiB, ZFS's
 * labels at both ends, backup GPT and the RAID formats at the end). What else is looked at is found
 * from there: of that, NTFS's file table decides whether it is NTFS, and is copied too.
 */

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "probe/superblocks.h"
#include "util/bytes.h"
#include "util/cleanup.h"
#include "util/rounding.h"

#define HEAD_BYTES (4u * 1024 * 1024)
#define TAIL_BYTES (2u * 1024 * 1024)
#define STEP_BYTES (256u * 1024)
#define TABLE_BYTES 8192u

static int copy_range(const struct member *member, uint64_t at, uint64_t end, char *buffer, int fd)
{
	while (at < end) {
		size_t length = min_u64(STEP_BYTES, end - at);
		int r = member_read(member, at, buffer, length);

		if (r < 0)
			return r;
		if (pwrite(fd, buffer, length, (off_t)at) != (ssize_t)length)
			return -ENOMEM; /* it lives in memory */
		at += length;
	}
	return 0;
}

static int copy_ntfs_table(const struct member *member, char *buffer, int fd)
{
	uint8_t boot[512];
	uint64_t at, cluster_bytes;

	if (member->size_bytes < sizeof(boot) ||
		pread(fd, boot, sizeof(boot), 0) != (ssize_t)sizeof(boot) ||
		memcmp(boot + 3, "NTFS    ", 8) != 0)
		return 0;
	cluster_bytes = (uint64_t)(boot[11] | boot[12] << 8) * boot[13];
	if (mul_overflows(get_le64(boot + 48), cluster_bytes, &at) || at > member->size_bytes ||
		member->size_bytes - at < TABLE_BYTES)
		return 0;
	return copy_range(member, at, at + TABLE_BYTES, buffer, fd);
}

int probe_copy_ends(const struct member *member)
{
	_cleanup_close_ int fd = memfd_create("strake-probe", MFD_CLOEXEC);
	_cleanup_free_ char *buffer = malloc(STEP_BYTES);
	uint64_t size = member->size_bytes, head = min_u64(size, HEAD_BYTES);
	int r;

	if (fd < 0 || buffer == NULL)
		return fd < 0 ? -errno : -ENOMEM;
	if (ftruncate(fd, (off_t)size) < 0)
		return -errno;
	r = copy_range(member, 0, head, buffer, fd);
	if (r == 0)
		r = copy_range(
			member, max_u64(head, size - min_u64(size, TAIL_BYTES)), size, buffer, fd);
	if (r == 0)
		r = copy_ntfs_table(member, buffer, fd);
	return r < 0 ? r : steal_fd(&fd);
}
