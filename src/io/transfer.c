/* SPDX-License-Identifier: MIT */
/* Positions in iovec arrays: for I/O that was cut short, and for copies through a flat buffer. */
#include <assert.h>
#include <string.h>

#include "io/internal.h"
#include "util/rounding.h"

#define SECTOR_BYTES 512u

unsigned transfer_position(const struct world_io *io, uint64_t progress, size_t *ret_skip)
{
	unsigned index = 0;

	while (progress >= io->iov[index].iov_len) {
		progress -= io->iov[index].iov_len;
		index++;
		assert(index < io->iov_count);
	}
	*ret_skip = progress;
	return index;
}

static void copy(
	const struct world_io *io, uint64_t progress, char *buffer, size_t length, bool to_buffer)
{
	size_t skip;
	unsigned index = transfer_position(io, progress, &skip);

	while (length > 0) {
		char *at = (char *)io->iov[index].iov_base + skip;
		size_t step = min_u64(length, io->iov[index].iov_len - skip);

		if (to_buffer)
			memcpy(buffer, at, step);
		else
			memcpy(at, buffer, step);
		buffer += step;
		length -= step;
		index++;
		skip = 0;
	}
}

void transfer_gather(const struct world_io *io, uint64_t progress, void *buffer, size_t length)
{
	copy(io, progress, buffer, length, true);
}

void transfer_scatter(
	const struct world_io *io, uint64_t progress, const void *buffer, size_t length)
{
	copy(io, progress, (char *)buffer, length, false);
}

bool transfer_is_aligned(const struct member *member, const struct world_io *io)
{
	uintptr_t addresses = 0, lengths = 0;

	if (!member->direct)
		return true;
	for (unsigned i = 0; i < io->iov_count; i++) {
		addresses |= (uintptr_t)io->iov[i].iov_base;
		lengths |= io->iov[i].iov_len;
	}
	/* A device may take addresses at 4 bytes and yet ask whole sectors of each length, not of
	 * their sum alone: the kernel's bdev_iter_is_aligned(). */
	return (addresses & (member->memory_align - 1)) == 0 && lengths % SECTOR_BYTES == 0;
}
