/* SPDX-License-Identifier: MIT */
#ifndef STRAKE_MD_BITMAP_H
#define STRAKE_MD_BITMAP_H

/*
 * The write-intent bitmap (specification 3): a header of 256 bytes, then one bit for each chunk of
 * the sync address space (sectors of a member's data; sectors of the array for RAID 10). A set bit
 * says that the redundancy of its chunk may be wrong. Every member that is in a slot and not faulty
 * holds the same copy.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "md/super.h"
#include "util/fault.h"

#define MD_BITMAP_HEADER_BYTES 256u /* the bits follow */
#define MD_BITMAP_BLOCK_BYTES 4096u /* areas are made and written in these */
#define MD_BITMAP_DAEMON_SLEEP_SECONDS 5u

enum md_bitmap_state { /* bits of md_bitmap.state */
	MD_BITMAP_STALE = 0x2,
	MD_BITMAP_WRITE_ERROR = 0x4,
	MD_BITMAP_HOST_ENDIAN = 0x8000,
};

struct md_bitmap {
	uint32_t version; /* 4; 3: bits in the writing host's order; 5: clustered */
	uint8_t uuid[16]; /* as on disk; see md_bitmap_uuid() */
	uint64_t events;
	uint64_t events_cleared;    /* array's event count when bits were last cleared */
	uint64_t sync_size_sectors; /* covered by the bits */
	uint32_t state;             /* md_bitmap_state bits */
	uint32_t chunk_bytes;       /* of the sync address space per bit; a power of two >= 512 */
	uint32_t daemon_sleep_seconds;
	uint32_t write_behind;     /* most writes that may lag on write-mostly members; 0: none */
	uint32_t sectors_reserved; /* room for the bitmap; 0: not recorded */
	uint32_t nodes;            /* version 5 only */
	char cluster_name[64];     /* version 5 only; not always terminated */
};

/*
 * Decode the header from the first MD_BITMAP_HEADER_BYTES (or more) of a bitmap area. Negative:
 * nothing of it can be used, so treat every bit as set. @fault says why.
 * -ENODATA the magic is wrong, -EOPNOTSUPP a version that is not 3, 4 or 5, -EUCLEAN a field
 * contradicts the format (named). As for superblocks, *@ret is filled once the magic was right.
 */
int md_bitmap_decode(const void *block, struct md_bitmap *ret, struct fault *fault);

/* The inverse: fills all MD_BITMAP_HEADER_BYTES of @block. */
void md_bitmap_encode(const struct md_bitmap *bitmap, void *block);

/* Number of bits: sync_size_sectors in chunks, rounded up. */
uint64_t md_bitmap_bits(const struct md_bitmap *bitmap);
/* Bytes of the area of a bitmap with @bits bits: header and bits, rounded up to blocks. */
size_t md_bitmap_bytes(uint64_t bits);

/* One bit. @bits points behind the header; @bit is below md_bitmap_bits(). */
bool md_bitmap_get(const struct md_bitmap *bitmap, const uint8_t *bits, uint64_t bit);
void md_bitmap_set(const struct md_bitmap *bitmap, uint8_t *bits, uint64_t bit, bool value);
/* Number of bits that are set. */
uint64_t md_bitmap_dirty(const struct md_bitmap *bitmap, const uint8_t *bits);

/* The UUID that a bitmap of this array holds: 0.90 keeps the words in the writer's order. */
void md_bitmap_uuid(const struct md_super *super, uint8_t ret[16]);
/* Sectors of the sync address space of the array: what its bitmap has to cover. */
uint64_t md_bitmap_sync_sectors(const struct md_super *super);

/*
 * Where on its device the member @super has the bitmap, and how many sectors may be used there.
 * -ENODATA the array has no internal bitmap; -EUCLEAN the place contradicts the rest of the
 * superblock (before the device, in the superblock or in the data).
 */
int md_bitmap_location(const struct md_super *super, uint64_t *ret_device_sector,
	uint64_t *ret_room_sectors, struct fault *fault);

/*
 * Bytes per bit for a bitmap over @sync_sectors that must fit into @room_sectors, as mdadm chooses
 * (specification 3.3): @wanted_bytes, or the default if that is 0. -EINVAL no power of two,
 * -ERANGE too small for the room or larger than a bitmap can say, -ENOSPC no room.
 */
int md_bitmap_choose_chunk(uint64_t sync_sectors, uint64_t room_sectors, uint64_t wanted_bytes,
	uint32_t *ret_chunk_bytes, struct fault *fault);

/* The header of a new bitmap for the array of @super: events 0, nothing cleared yet. */
void md_bitmap_init(const struct md_super *super, uint32_t chunk_bytes, struct md_bitmap *ret);

/*
 * Does the bitmap belong to the array whose freshest superblock is @super, and do its bits count?
 * 0 yes. -ESTALE it belongs, but the array was written without it (or it says so): treat every bit
 * as set, and go on with this bitmap (specification 3.5). -EUCLEAN another array's, of another
 * size, or larger than its space (named in @fault): treat every bit as set, and write nothing to
 * it before it was made anew.
 */
int md_bitmap_check(
	const struct md_bitmap *bitmap, const struct md_super *super, struct fault *fault);

#endif
