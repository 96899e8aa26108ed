/* SPDX-License-Identifier: MIT */
#include "export/fuse/buffers.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "util/rounding.h"

int buffers_init(struct buffers *buffers, unsigned slab_count)
{
	/* One more, to align the first to a huge page. */
	size_t bytes = ((size_t)slab_count + 1) * BUFFERS_SLAB_BYTES;
	uint8_t *first;

	*buffers = (struct buffers){.slab_count = slab_count, .map_bytes = bytes};
	buffers->slabs = calloc(slab_count, sizeof(*buffers->slabs));
	buffers->map = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (buffers->slabs == NULL || buffers->map == MAP_FAILED) {
		if (buffers->map != MAP_FAILED)
			munmap(buffers->map, bytes);
		free(buffers->slabs);
		return -ENOMEM;
	}
	(void)madvise(buffers->map, bytes, MADV_HUGEPAGE); /* only speed depends on it */
	first = (uint8_t *)round_up((uintptr_t)buffers->map, BUFFERS_SLAB_BYTES);
	for (unsigned i = slab_count; i-- > 0;) {
		buffers->slabs[i].memory = first + (size_t)i * BUFFERS_SLAB_BYTES;
		buffers->slabs[i].next_free = buffers->free;
		buffers->free = &buffers->slabs[i];
	}
	buffers->current = buffers->free;
	buffers->free = buffers->current->next_free;
	return 0;
}

void buffers_fini(struct buffers *buffers)
{
	if (buffers->slabs == NULL)
		return;
	munmap(buffers->map, buffers->map_bytes);
	free(buffers->slabs);
	buffers->slabs = NULL;
}

void *buffers_offer(struct buffers *buffers, size_t length)
{
	struct slab *slab = buffers->current;

	assert(length <= BUFFERS_SLAB_BYTES / 2);
	if (slab->cut + length > BUFFERS_SLAB_BYTES) {
		slab = buffers->free;
		if (slab == NULL)
			return NULL;
		buffers->free = slab->next_free;
		buffers->current = slab;
	}
	return slab->memory + slab->cut;
}

struct slab *buffers_take(struct buffers *buffers, size_t length)
{
	struct slab *slab = buffers->current;

	slab->cut += round_up(length, BUFFERS_PAGE_BYTES);
	slab->taken++;
	assert(slab->cut <= BUFFERS_SLAB_BYTES);
	return slab;
}

void buffers_return(struct buffers *buffers, struct slab *slab)
{
	assert(slab->taken > 0);
	if (--slab->taken > 0)
		return;
	slab->cut = 0;
	if (slab == buffers->current)
		return;
	slab->next_free = buffers->free;
	buffers->free = slab;
}
