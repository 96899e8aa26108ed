/* SPDX-License-Identifier: MIT */
/*
 * Members. Block devices are taken with O_EXCL, which mount, swap, md and device mapper respect and
 * use themselves. Files are taken with flock(2): it works on descriptors opened read-only, stays
 * with the open file across fork(), and vanishes with the last process that has it. Read-only users
 * share a file; a writer has it alone.
 */
#include "io/member.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "io/holder.h"
#include "util/cleanup.h"
#include "util/rounding.h"

#define SECTOR_BYTES 512u
#define PAGE_BYTES 4096u

void member_close(struct member *member)
{
	if (member == NULL)
		return;
	if (member->fd >= 0)
		close(member->fd);
	free(member->path);
	free(member);
}

static void close_member(struct member **member)
{
	member_close(*member);
}

#define _cleanup_member_ _cleanup_(close_member)

static int check_kind(const char *path, const struct stat *attributes, struct fault *fault)
{
	if (S_ISREG(attributes->st_mode) || S_ISBLK(attributes->st_mode))
		return 0;
	if (S_ISDIR(attributes->st_mode))
		return fault_set(fault, -EISDIR,
			"%s: is a directory; name a block device or an image file", path);
	return fault_set(fault, -ENOTBLK,
		"%s: is neither a block device nor a regular file; name one of these", path);
}

static int refuse_open(const char *path, int error, struct fault *fault)
{
	switch (error) {
	case -ENOENT:
		return fault_set(fault, error, "%s: no such file or device; check the name", path);
	case -EACCES:
	case -EPERM:
		return fault_set(fault, error,
			"%s: %s; run as its owner or as root, or open it with --readonly", path,
			strerror(-error));
	case -EROFS:
		return fault_set(fault, error, "%s: read-only; use --readonly", path);
	case -ENAMETOOLONG:
		return fault_set(fault, error, "%.120s…: the name is too long (%zu bytes)", path,
			strlen(path));
	default:
		return fault_set(fault, error, "%s: cannot be opened: %s", path, strerror(-error));
	}
}

static int refuse_busy(const struct member *member, struct fault *fault)
{
	char words[PATH_MAX + 64];

	if (holder_of_device(member, words, sizeof(words)))
		return fault_set(fault, -EBUSY, "%s: is %s; release it first", member->path, words);
	if (holder_process(member, words, sizeof(words)))
		return fault_set(fault, -EBUSY,
			"%s: is in use by %s; stop that first (a running array: strake stop)",
			member->path, words);
	return fault_set(fault, -EBUSY,
		"%s: is in use by another process or by the kernel; release it first",
		member->path);
}

/* O_EXCL may be refused by a holder that is gone a moment later; that is for the user to see. */
static int open_device(struct member *member, unsigned flags, struct fault *fault)
{
	int mode = (flags & MEMBER_READONLY ? O_RDONLY : O_RDWR) | O_CLOEXEC;

	if ((flags & MEMBER_EXCLUSIVE) && member->is_block)
		mode |= O_EXCL;
	member->fd = open(member->path, mode);
	if (member->fd >= 0)
		return 0;
	if (errno == EBUSY)
		return refuse_busy(member, fault);
	return refuse_open(member->path, -errno, fault);
}

static int take_exclusively(const struct member *member, struct fault *fault)
{
	char words[PATH_MAX + 64];

	/* A mount of the same device by somebody else shows in O_EXCL; a loop device does not. */
	if (holder_of_device(member, words, sizeof(words)))
		return refuse_busy(member, fault);
	if (member->is_block)
		return 0;
	if (flock(member->fd, (member->readonly ? LOCK_SH : LOCK_EX) | LOCK_NB) == 0)
		return 0;
	if (errno == EWOULDBLOCK)
		return refuse_busy(member, fault);
	return fault_set(fault, -errno, "%s: cannot be locked: %s", member->path, strerror(errno));
}

static int measure(struct member *member, struct fault *fault)
{
	int logical = SECTOR_BYTES;
	struct stat attributes;

	if (fstat(member->fd, &attributes) < 0)
		return refuse_open(member->path, -errno, fault);
	if (!member->is_block) {
		member->size_bytes = (uint64_t)attributes.st_size;
		member->logical_block_bytes = SECTOR_BYTES;
		return 0;
	}
	if (ioctl(member->fd, BLKGETSIZE64, &member->size_bytes) < 0 ||
		ioctl(member->fd, BLKSSZGET, &logical) < 0)
		return fault_set(fault, -errno, "%s: its size cannot be read: %s", member->path,
			strerror(errno));
	member->logical_block_bytes = (uint32_t)logical;
	return 0;
}

/*
 * What O_DIRECT asks of the member: 0 if offsets and lengths of 512 bytes do, with the alignment of
 * buffers; -EOPNOTSUPP if it is not to be had or not at that grain.
 */
static int direct_alignment(const struct member *member, uint32_t *ret_memory_align)
{
	struct statx extended;

	memset(&extended, 0, sizeof(extended));
	if (member->is_block && member->logical_block_bytes != SECTOR_BYTES)
		return -EOPNOTSUPP;
#ifdef STATX_DIOALIGN
	if (statx(member->fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &extended) == 0 &&
		(extended.stx_mask & STATX_DIOALIGN)) {
		if (extended.stx_dio_offset_align == 0 ||
			extended.stx_dio_offset_align > SECTOR_BYTES)
			return -EOPNOTSUPP;
		*ret_memory_align = extended.stx_dio_mem_align;
		return is_power_of_two(*ret_memory_align) && *ret_memory_align <= SECTOR_BYTES
			       ? 0
			       : -EOPNOTSUPP;
	}
#endif
	/* Kernels before 6.1 do not tell; block devices of 512 bytes take sectors, files may not.
	 */
	*ret_memory_align = SECTOR_BYTES;
	return member->is_block ? 0 : -EOPNOTSUPP;
}

static void try_direct(struct member *member)
{
	uint32_t align;
	int flags = fcntl(member->fd, F_GETFL);

	member->memory_align = 1;
	if (flags < 0 || direct_alignment(member, &align) < 0)
		return;
	if (fcntl(member->fd, F_SETFL, flags | O_DIRECT) < 0)
		return;
	member->direct = true;
	member->memory_align = align;
}

static struct member *member_new(const char *path, unsigned flags, const struct stat *attributes)
{
	struct member *member = calloc(1, sizeof(*member));

	if (member == NULL)
		return NULL;
	member->fd = -1;
	member->path = strdup(path);
	if (member->path == NULL) {
		free(member);
		return NULL;
	}
	member->readonly = flags & MEMBER_READONLY;
	member->is_block = S_ISBLK(attributes->st_mode);
	if (member->is_block) {
		member->device = attributes->st_rdev;
		member->major = major(attributes->st_rdev);
		member->minor = minor(attributes->st_rdev);
	} else {
		member->device = attributes->st_dev;
		member->inode = attributes->st_ino;
	}
	return member;
}

int member_open(const char *path, unsigned flags, struct member **ret, struct fault *fault)
{
	_cleanup_member_ struct member *member = NULL;
	struct stat attributes;
	int r;

	if (stat(path, &attributes) < 0)
		return refuse_open(path, -errno, fault);
	r = check_kind(path, &attributes, fault);
	if (r < 0)
		return r;
	member = member_new(path, flags, &attributes);
	if (member == NULL)
		return fault_set(fault, -ENOMEM, "%s: no memory to open it", path);
	r = open_device(member, flags, fault);
	if (r == 0 && (flags & MEMBER_EXCLUSIVE))
		r = take_exclusively(member, fault);
	if (r == 0)
		r = measure(member, fault);
	if (r < 0)
		return r;
	member->memory_align = 1;
	if (!(flags & MEMBER_BUFFERED))
		try_direct(member);
	*ret = steal_ptr(member);
	return 0;
}

bool member_is_same(const struct member *a, const struct member *b)
{
	return a->is_block == b->is_block && a->device == b->device && a->inode == b->inode;
}

/* Aligned for any O_DIRECT: a copy of the pages that [offset, offset + length) touches. */
static void *page_buffer(uint64_t offset, size_t length, uint64_t *ret_start, size_t *ret_length)
{
	uint64_t start = round_down(offset, PAGE_BYTES);

	*ret_start = start;
	*ret_length = round_up(offset + length, PAGE_BYTES) - start;
	return aligned_alloc(PAGE_BYTES, *ret_length);
}

static int read_all(int fd, uint64_t offset, char *buffer, size_t length)
{
	while (length > 0) {
		ssize_t got = pread(fd, buffer, length, (off_t)offset);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (got == 0)
			return -EIO;
		buffer += got;
		offset += (uint64_t)got;
		length -= (size_t)got;
	}
	return 0;
}

static int write_all(int fd, uint64_t offset, const char *buffer, size_t length)
{
	while (length > 0) {
		ssize_t done = pwrite(fd, buffer, length, (off_t)offset);

		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return -errno;
		if (done == 0)
			return -EIO;
		buffer += done;
		offset += (uint64_t)done;
		length -= (size_t)done;
	}
	return 0;
}

/* The pages that the range touches, cut at the member's end (whole sectors at least). */
static int read_pages(const struct member *member, uint64_t start, char *pages, size_t length)
{
	size_t inside = min_u64(length, member->size_bytes - start);
	size_t sectors = round_down(inside, SECTOR_BYTES);
	int r;

	memset(pages, 0, length);
	r = read_all(member->fd, start, pages, sectors);
	if (r < 0 || sectors == inside || member->direct)
		return r; /* a file's odd tail cannot be read directly; nothing of ours is there */
	return read_all(member->fd, start + sectors, pages + sectors, inside - sectors);
}

int member_read(const struct member *member, uint64_t offset, void *buffer, size_t length)
{
	_cleanup_free_ char *pages = NULL;
	uint64_t start, end;
	size_t page_bytes;
	int r;

	if (add_overflows(offset, length, &end) || end > member->size_bytes)
		return -ERANGE;
	if (length == 0)
		return 0;
	pages = page_buffer(offset, length, &start, &page_bytes);
	if (pages == NULL)
		return -ENOMEM;
	r = read_pages(member, start, pages, page_bytes);
	if (r == 0)
		memcpy(buffer, pages + (offset - start), length);
	return r;
}

int member_write(const struct member *member, uint64_t offset, const void *buffer, size_t length)
{
	_cleanup_free_ char *pages = NULL;
	uint64_t start, end, first, last;
	size_t page_bytes;
	int r;

	if (add_overflows(offset, length, &end) || end > member->size_bytes)
		return -ERANGE;
	if (member->readonly)
		return -EROFS;
	if (length == 0)
		return 0;
	pages = page_buffer(offset, length, &start, &page_bytes);
	if (pages == NULL)
		return -ENOMEM;
	/* Only the sectors that change are written; their unchanged bytes are read before. */
	r = read_pages(member, start, pages, page_bytes);
	if (r < 0)
		return r;
	memcpy(pages + (offset - start), buffer, length);
	first = round_down(offset, member->logical_block_bytes);
	last = min_u64(round_up(end, member->logical_block_bytes), member->size_bytes);
	return write_all(member->fd, first, pages + (first - start), last - first);
}

int member_sync(const struct member *member)
{
	int r;

	do {
		r = fsync(member->fd);
	} while (r < 0 && errno == EINTR);
	return r < 0 ? -errno : 0;
}
