/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>

#include "io/internal.h"

struct bounce {
	char *buffers;
	void *free_buffers[BOUNCE_COUNT];
	unsigned free_count;
	struct world_io *waiting_first, **waiting_last;
};

int bounce_new(struct bounce **ret, size_t *memory_bytes)
{
	struct bounce *bounce = calloc(1, sizeof(*bounce));

	if (bounce == NULL)
		return -ENOMEM;
	bounce->buffers = aligned_alloc(4096, (size_t)BOUNCE_COUNT * BOUNCE_BYTES);
	if (bounce->buffers == NULL) {
		free(bounce);
		return -ENOMEM;
	}
	for (unsigned i = 0; i < BOUNCE_COUNT; i++)
		bounce->free_buffers[i] = bounce->buffers + (size_t)i * BOUNCE_BYTES;
	bounce->free_count = BOUNCE_COUNT;
	bounce->waiting_last = &bounce->waiting_first;
	*memory_bytes += sizeof(*bounce) + (size_t)BOUNCE_COUNT * BOUNCE_BYTES;
	*ret = bounce;
	return 0;
}

void bounce_free(struct bounce *bounce)
{
	if (bounce == NULL)
		return;
	free(bounce->buffers);
	free(bounce);
}

void *bounce_get(struct bounce *bounce, struct world_io *io)
{
	io->bounce = NULL;
	if (bounce->free_count > 0) {
		io->bounce = bounce->free_buffers[--bounce->free_count];
		return io->bounce;
	}
	io->next = NULL;
	*bounce->waiting_last = io;
	bounce->waiting_last = &io->next;
	return NULL;
}

struct world_io *bounce_put(struct bounce *bounce, struct world_io *io)
{
	struct world_io *next = bounce->waiting_first;
	void *buffer = io->bounce;

	io->bounce = NULL;
	if (next == NULL) {
		bounce->free_buffers[bounce->free_count++] = buffer;
		return NULL;
	}
	bounce->waiting_first = next->next;
	if (bounce->waiting_first == NULL)
		bounce->waiting_last = &bounce->waiting_first;
	next->bounce = buffer;
	return next;
}
