/* SPDX-License-Identifier: MIT */
#ifndef STRAKE_EXPORT_FUSE_BUFFERS_H
#define STRAKE_EXPORT_FUSE_BUFFERS_H

/*
 * Data buffers of the FUSE file, all mapped at start.
 *
 * The next request's length is not known before it is read, so a buffer for the largest must stand
 * ready each time; yet a 4 KiB write shall not occupy 1 MiB. So buffers are cut from slabs of one
 * huge page: room for the largest request is offered at the current slab's cut, and only what was
 * used is taken. A slab counts the buffers taken from it and is empty again when the last one
 * returns. The slab emptied last is filled next, so a light load touches little memory.
 */

#include <stddef.h>
#include <stdint.h>

#define BUFFERS_SLAB_BYTES (2u << 20)
#define BUFFERS_PAGE_BYTES 4096u

struct slab {
	uint8_t *memory;
	size_t cut;     /* bytes taken so far, a multiple of the page size */
	unsigned taken; /* buffers not yet returned */
	struct slab *next_free;
};

struct buffers {
	uint8_t *map; /* the whole mapping, slabs aligned inside */
	size_t map_bytes;
	struct slab *slabs;
	unsigned slab_count;
	struct slab *current; /* never NULL after init */
	struct slab *free;
};

/* -ENOMEM. */
int buffers_init(struct buffers *buffers, unsigned slab_count);
void buffers_fini(struct buffers *buffers);

/*
 * Room for @length bytes (at most half a slab), page aligned; NULL if there is none now. Nothing is
 * taken: the next call offers the same place.
 */
void *buffers_offer(struct buffers *buffers, size_t length);
/* Take the first @length bytes of what was offered last. */
struct slab *buffers_take(struct buffers *buffers, size_t length);
void buffers_return(struct buffers *buffers, struct slab *slab);

#endif
