/* SPDX-License-Identifier: MIT */
/*
 * Members. Block devices are taken with O_EXCL, which mount, swap, md and device mapper respect and
 * use themselves. Files are taken with flock(2): it works on descriptors opened read-only, stays
 * with the open file across fork(), and vanishes with the last process that has it. Read-only users
 * share a file; a writer has it alone. Locks of fcntl(2), which qemu-system and qemu-nbd hold over
 * their images, are looked for as well; flock(2) does not meet them.
 */
#include "io/member.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "io/holder.h"
#include "io/network.h"
#include "util/cleanup.h"
#include "util/rounding.h"

#define RELEASE_WAIT_MS 2000
#define RELEASE_POLL_MS 20
#define SECTOR_BYTES 512u
#define PAGE_BYTES 4096u

void member_close(struct member *member)
{
	if (member == NULL)
		return;
	if (member->fd >= 0)
		close(member->fd);
	if (member->network != NULL)
		network_free(member->network);
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

static int refuse_open(const char *path, bool readonly, int error, struct fault *fault)
{
	switch (error) {
	case -ENOENT:
		return fault_set(fault, error, "%s: no such file or device; check the name", path);
	case -EACCES:
	case -EPERM:
		return fault_set(fault, error, "%s: %s; run as its owner or as root%s", path,
			strerror(-error), readonly ? "" : ", or open it with --readonly");
	case -EROFS:
		return fault_set(fault, error,
			"%s: cannot be opened for writing: %s; use --readonly", path,
			strerror(-error));
	case -ENXIO:
	case -ENOMEDIUM:
		return fault_set(fault, error,
			"%s: %s: no device stands behind the name; check that it is plugged in",
			path, strerror(-error));
	case -ENAMETOOLONG:
		return fault_set(fault, error,
			"%.120s…: the name is too long (%zu bytes); name it from a folder nearer "
			"to it",
			path, strlen(path));
	default:
		return fault_set(fault, error, "%s: cannot be opened: %s; check the name", path,
			strerror(-error));
	}
}

static int refuse_busy(const struct member *member, struct fault *fault)
{
	char words[PATH_MAX + 64];

	if (holder_of_device(member, words, sizeof(words)))
		return fault_set(fault, -EBUSY, "%s: is %s; release it first", member->path, words);
	if (holder_process(member, words, sizeof(words)))
		return fault_set(
			fault, -EBUSY, "%s: is in use by %s; stop that first", member->path, words);
	return fault_set(fault, -EBUSY,
		"%s: is in use by another process or by the kernel; release it first",
		member->path);
}

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
	return refuse_open(member->path, member->readonly, -errno, fault);
}

/*
 * Has another program a lock of fcntl(2) that a lock of ours would meet? Asking works on any
 * descriptor. A file system that knows no such locks has none.
 */
static bool is_record_locked(const struct member *member)
{
	struct flock lock = {.l_type = member->readonly ? F_RDLCK : F_WRLCK, .l_whence = SEEK_SET};

	return fcntl(member->fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

static int take_exclusively(const struct member *member, struct fault *fault)
{
	char words[PATH_MAX + 64];

	/* A mount of the same device by somebody else shows in O_EXCL; a loop device does not. */
	if (holder_of_device(member, words, sizeof(words)))
		return refuse_busy(member, fault);
	if (member->is_block)
		return 0;
	if (is_record_locked(member))
		return refuse_busy(member, fault);
	if (flock(member->fd, (member->readonly ? LOCK_SH : LOCK_EX) | LOCK_NB) == 0)
		return 0;
	if (errno == EWOULDBLOCK)
		return refuse_busy(member, fault);
	return fault_set(fault, -errno, "%s: cannot be locked: %s", member->path, strerror(errno));
}

static bool is_held_by_nobody_known(const struct member *member)
{
	char words[PATH_MAX + 64];

	return !holder_of_device(member, words, sizeof(words)) &&
	       !holder_process(member, words, sizeof(words));
}

/*
 * The kernel frees the io_uring of a process some time after the process is gone, and with it the
 * hold on its members. So a hold that nobody can be named for is given a moment to go away.
 */
static int open_and_take(struct member *member, unsigned flags, struct fault *fault)
{
	const struct timespec pause = {.tv_nsec = RELEASE_POLL_MS * 1000000L};
	unsigned waited_ms = 0;
	int r;

	for (;;) {
		r = open_device(member, flags, fault);
		if (r == 0 && (flags & MEMBER_EXCLUSIVE))
			r = take_exclusively(member, fault);
		if (r != -EBUSY || waited_ms >= RELEASE_WAIT_MS || !is_held_by_nobody_known(member))
			return r;
		if (member->fd >= 0)
			close(member->fd);
		member->fd = -1;
		(void)nanosleep(&pause, NULL); /* woken early, we look early */
		waited_ms += RELEASE_POLL_MS;
	}
}

static int measure(struct member *member, struct fault *fault)
{
	int logical = SECTOR_BYTES;
	struct stat attributes;

	if (fstat(member->fd, &attributes) < 0)
		return refuse_open(member->path, member->readonly, -errno, fault);
	if (member->device != (member->is_block ? attributes.st_rdev : attributes.st_dev) ||
		(!member->is_block && member->inode != attributes.st_ino))
		return fault_set(fault, -ESTALE,
			"%s: another file took this name while it was opened; try again",
			member->path);
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
	/* Kernels before 6.1 do not tell, nor do all file systems: try_direct() tries it out. */
	*ret_memory_align = SECTOR_BYTES;
	return 0;
}

static bool is_in_memory(const struct member *member)
{
	struct statfs system;

	return !member->is_block && fstatfs(member->fd, &system) == 0 &&
	       (system.f_type == TMPFS_MAGIC || system.f_type == RAMFS_MAGIC);
}

/* Does one sector, at an offset and an address that are sectors and nothing more, come through? */
static bool takes_sectors(const struct member *member)
{
	_cleanup_free_ char *buffer = aligned_alloc(4096, 4096);

	return buffer != NULL &&
	       pread(member->fd, buffer + SECTOR_BYTES, SECTOR_BYTES, SECTOR_BYTES) == SECTOR_BYTES;
}

/*
 * Only whole sectors can be moved directly: a file with an odd tail is left to the page cache.
 * tmpfs takes O_DIRECT and copies all the same: alignment and bounce buffers would be for nothing.
 */
static void try_direct(struct member *member)
{
	uint32_t align;
	int flags = fcntl(member->fd, F_GETFL);

	if (flags < 0 || member->size_bytes < 2 * SECTOR_BYTES ||
		member->size_bytes % SECTOR_BYTES != 0 || member->in_memory ||
		direct_alignment(member, &align) < 0)
		return;
	if (fcntl(member->fd, F_SETFL, flags | O_DIRECT) < 0)
		return;
	if (!takes_sectors(member)) {
		(void)fcntl(member->fd, F_SETFL, flags); /* as it was a moment ago */
		return;
	}
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

	if (network_is_word(path))
		return network_member_open(path, flags, ret, fault);
	if (stat(path, &attributes) < 0)
		return refuse_open(path, flags & MEMBER_READONLY, -errno, fault);
	r = check_kind(path, &attributes, fault);
	if (r < 0)
		return r;
	member = member_new(path, flags, &attributes);
	if (member == NULL)
		return fault_set(fault, -ENOMEM, "%s: no memory to open it", path);
	r = open_and_take(member, flags, fault);
	if (r == 0)
		r = measure(member, fault);
	if (r < 0)
		return r;
	member->memory_align = 1;
	member->in_memory = is_in_memory(member);
	if (!(flags & MEMBER_BUFFERED))
		try_direct(member);
	*ret = steal_ptr(member);
	return 0;
}

bool member_is_same(const struct member *a, const struct member *b)
{
	if (a->network != NULL || b->network != NULL)
		return a->network != NULL && b->network != NULL &&
		       strcmp(network_key(a->network), network_key(b->network)) == 0;
	return a->is_block == b->is_block && a->device == b->device && a->inode == b->inode;
}

bool member_is_named(const struct member *member, const char *word)
{
	_cleanup_(network_name_fini) struct network_name name = {NULL, NULL, false};

	return member->network != NULL &&
	       (strcmp(word, member->path) == 0 ||
		       (network_name_parse(word, &name, NULL) == 0 &&
			       strcmp(name.key, network_key(member->network)) == 0));
}

bool member_is_network_word(const char *word)
{
	return network_is_word(word);
}

void member_release(const struct member *member)
{
	int other;

	if (member->network == NULL) {
		if (!member->is_block)
			(void)flock(member->fd, LOCK_UN); /* closing it does the same */
		return;
	}
	/* A socket keeps its name until it is closed: another one takes its descriptor. */
	other = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (other < 0)
		return;                           /* it goes with us at the latest */
	(void)dup3(other, member->fd, O_CLOEXEC); /* both are valid */
	close(other);
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

/*
 * Pages on their way, aligned for any O_DIRECT. On the stack: what puts things back after a failure
 * must not need memory.
 */
#define STEP_BYTES (16u * PAGE_BYTES)

struct pages {
	char bytes[STEP_BYTES] __attribute__((aligned(PAGE_BYTES)));
};

/* How far the step goes that begins at @at, to @end at most: it touches no more than STEP_BYTES. */
static size_t step_length(uint64_t at, uint64_t end)
{
	return min_u64(end, round_down(at, PAGE_BYTES) + STEP_BYTES) - at;
}

/* The pages that [@at, @at + @length) touches, cut at the member's end (no odd tail if direct). */
static int read_pages(const struct member *member, uint64_t at, size_t length, struct pages *pages)
{
	uint64_t start = round_down(at, PAGE_BYTES);
	uint64_t end = min_u64(round_up(at + length, PAGE_BYTES), member->size_bytes);

	if (member->network != NULL)
		return network_read(member, start, pages->bytes, end - start);
	return read_all(member->fd, start, pages->bytes, end - start);
}

int member_read(const struct member *member, uint64_t offset, void *buffer, size_t length)
{
	char *to = buffer;
	struct pages pages;
	uint64_t end;
	int r = 0;

	if (add_overflows(offset, length, &end) || end > member->size_bytes)
		return -ERANGE;
	while (r == 0 && offset < end) {
		size_t step = step_length(offset, end);

		r = read_pages(member, offset, step, &pages);
		if (r == 0)
			memcpy(to, pages.bytes + offset % PAGE_BYTES, step);
		to += step;
		offset += step;
	}
	return r;
}

/*
 * Only the blocks that change are written. Their other bytes are read before, but not if there are
 * none: a block that cannot be read may still be overwritten.
 */
static int write_pages(const struct member *member, uint64_t at, const char *from, size_t length,
	struct pages *pages)
{
	uint64_t end = at + length, first = round_down(at, member->logical_block_bytes);
	uint64_t last = min_u64(round_up(end, member->logical_block_bytes), member->size_bytes);
	int r = first == at && last == end ? 0 : read_pages(member, at, length, pages);

	if (r < 0)
		return r;
	memcpy(pages->bytes + at % PAGE_BYTES, from, length);
	if (member->network != NULL)
		return network_write(
			member, first, pages->bytes + first % PAGE_BYTES, last - first);
	return write_all(member->fd, first, pages->bytes + first % PAGE_BYTES, last - first);
}

int member_write(const struct member *member, uint64_t offset, const void *buffer, size_t length)
{
	const char *from = buffer;
	struct pages pages;
	uint64_t end;
	int r = 0;

	if (add_overflows(offset, length, &end) || end > member->size_bytes)
		return -ERANGE;
	if (member->readonly)
		return -EROFS;
	while (r == 0 && offset < end) {
		size_t step = step_length(offset, end);

		r = write_pages(member, offset, from, step, &pages);
		from += step;
		offset += step;
	}
	return r;
}

int member_sync(const struct member *member)
{
	int r;

	if (member->network != NULL)
		return network_sync(member);
	do {
		r = fsync(member->fd);
	} while (r < 0 && errno == EINTR);
	return r < 0 ? -errno : 0;
}
