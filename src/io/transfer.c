/* SPDX-License-Identifier: MIT */
/* Positions in iovec arrays: for I/O that was cut short, and for copies through a flat buffer. */
#include <assert.h>
#include <string.h>

#include "io/internal.h"
#include "util/rounding.h"

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
	uintptr_t bits = 0;

	if (!member->direct)
		return true;
	for (unsigned i = 0; i < io->iov_count; i++)
		bits |= (uintptr_t)io->iov[i].iov_base | io->iov[i].iov_len;
	/* memory_align is a power of two and at most a page; lengths are sectors already. */
	return (bits & (member->memory_align - 1)) == 0;
}
