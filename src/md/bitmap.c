/* SPDX-License-Identifier: MIT */
/*
 * The write-intent bitmap: fields, bits, place, and the rules by which md believes it. Checked
 * against what mdadm 4.2 writes and against drivers/md/md-bitmap.c of Linux 6.1.
 */
#include "md/bitmap.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "util/bytes.h"
#include "util/rounding.h"

#define BITMAP_MAGIC 0x6d746962u /* "bitm" */
#define VERSION_HOST_ENDIAN 3u
#define VERSION_LITTLE 4u
#define VERSION_CLUSTERED 5u
#define CHUNK_BYTES_MIN 512u
#define CHUNK_BYTES_MIN_MADE 4096u               /* mdadm makes none smaller */
#define CHUNK_BYTES_DEFAULT (UINT64_C(64) << 20) /* mdadm 4.2 */
#define CHUNK_BYTES_MAX (UINT64_C(1) << 31)      /* largest power of two of the field */
#define WRITE_BEHIND_MAX 16383u                  /* the kernel's COUNTER_MAX */
#define DAEMON_SLEEP_MAX_SECONDS (UINT32_MAX / 1000)
#define OFFSET_090 8u /* sectors behind the superblock's start */
#define ROOM_090 120u /* 64 KiB reserved, less the superblock */
#define TAIL_10 16u   /* a 1.0 device reaches at least so far behind its superblock's start */

enum field {
	MAGIC = 0,
	VERSION = 4,
	UUID = 8,
	EVENTS = 24,
	EVENTS_CLEARED = 32,
	SYNC_SIZE = 40,
	STATE = 48,
	CHUNKSIZE = 52,
	DAEMON_SLEEP = 56,
	WRITE_BEHIND = 60,
	SECTORS_RESERVED = 64,
	NODES = 68,
	CLUSTER_NAME = 72,
};

static void decode_fields(const uint8_t *block, struct md_bitmap *ret)
{
	memset(ret, 0, sizeof(*ret));
	ret->version = get_le32(block + VERSION);
	memcpy(ret->uuid, block + UUID, sizeof(ret->uuid));
	ret->events = get_le64(block + EVENTS);
	ret->events_cleared = get_le64(block + EVENTS_CLEARED);
	ret->sync_size_sectors = get_le64(block + SYNC_SIZE);
	ret->state = get_le32(block + STATE);
	ret->chunk_bytes = get_le32(block + CHUNKSIZE);
	ret->daemon_sleep_seconds = get_le32(block + DAEMON_SLEEP);
	ret->write_behind = get_le32(block + WRITE_BEHIND);
	ret->sectors_reserved = get_le32(block + SECTORS_RESERVED);
	ret->nodes = get_le32(block + NODES);
	memcpy(ret->cluster_name, block + CLUSTER_NAME, sizeof(ret->cluster_name));
}

int md_bitmap_decode(const void *block, struct md_bitmap *ret, struct fault *fault)
{
	const uint8_t *bytes = block;

	if (get_le32(bytes + MAGIC) != BITMAP_MAGIC)
		return fault_set(fault, -ENODATA,
			"bitmap: field magic: is 0x%" PRIx32 ", there is no bitmap here",
			get_le32(bytes + MAGIC));
	decode_fields(bytes, ret);
	if (ret->version < VERSION_HOST_ENDIAN || ret->version > VERSION_CLUSTERED)
		return fault_set(fault, -EOPNOTSUPP,
			"bitmap: field version: is %" PRIu32 ", versions 3, 4 and 5 are known",
			ret->version);
	if (!is_power_of_two(ret->chunk_bytes) || ret->chunk_bytes < CHUNK_BYTES_MIN)
		return fault_set(fault, -EUCLEAN,
			"bitmap: field chunksize: is %" PRIu32
			" bytes, no power of two from 512 up",
			ret->chunk_bytes);
	if (ret->daemon_sleep_seconds == 0 || ret->daemon_sleep_seconds > DAEMON_SLEEP_MAX_SECONDS)
		return fault_set(fault, -EUCLEAN,
			"bitmap: field daemon_sleep: is %" PRIu32 " seconds, must be 1 to %" PRIu32,
			ret->daemon_sleep_seconds, DAEMON_SLEEP_MAX_SECONDS);
	if (ret->write_behind > WRITE_BEHIND_MAX)
		return fault_set(fault, -EUCLEAN,
			"bitmap: field write_behind: is %" PRIu32 ", at most %u is allowed",
			ret->write_behind, WRITE_BEHIND_MAX);
	return 0;
}

void md_bitmap_encode(const struct md_bitmap *bitmap, void *block)
{
	uint8_t *bytes = block;

	memset(bytes, 0, MD_BITMAP_HEADER_BYTES);
	put_le32(bytes + MAGIC, BITMAP_MAGIC);
	put_le32(bytes + VERSION, bitmap->version);
	memcpy(bytes + UUID, bitmap->uuid, sizeof(bitmap->uuid));
	put_le64(bytes + EVENTS, bitmap->events);
	put_le64(bytes + EVENTS_CLEARED, bitmap->events_cleared);
	put_le64(bytes + SYNC_SIZE, bitmap->sync_size_sectors);
	put_le32(bytes + STATE, bitmap->state);
	put_le32(bytes + CHUNKSIZE, bitmap->chunk_bytes);
	put_le32(bytes + DAEMON_SLEEP, bitmap->daemon_sleep_seconds);
	put_le32(bytes + WRITE_BEHIND, bitmap->write_behind);
	put_le32(bytes + SECTORS_RESERVED, bitmap->sectors_reserved);
	put_le32(bytes + NODES, bitmap->nodes);
	memcpy(bytes + CLUSTER_NAME, bitmap->cluster_name, sizeof(bitmap->cluster_name));
}

static uint64_t bits_for(uint64_t sync_sectors, uint32_t chunk_bytes)
{
	const uint64_t chunk_sectors = chunk_bytes / MD_SECTOR;

	assert(chunk_sectors > 0);
	return sync_sectors / chunk_sectors + (sync_sectors % chunk_sectors != 0);
}

uint64_t md_bitmap_bits(const struct md_bitmap *bitmap)
{
	return bits_for(bitmap->sync_size_sectors, bitmap->chunk_bytes);
}

size_t md_bitmap_bytes(uint64_t bits)
{
	return round_up(MD_BITMAP_HEADER_BYTES + bits / 8 + (bits % 8 != 0), MD_BITMAP_BLOCK_BYTES);
}

/* Version 3 numbers the bits within the words of the host: other bytes on big-endian hosts only. */
static size_t byte_of(const struct md_bitmap *bitmap, uint64_t bit)
{
	const bool swapped = bitmap->version == VERSION_HOST_ENDIAN &&
			     __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;

	return swapped ? bit / 8 ^ (sizeof(unsigned long) - 1) : bit / 8;
}

bool md_bitmap_get(const struct md_bitmap *bitmap, const uint8_t *bits, uint64_t bit)
{
	return (bits[byte_of(bitmap, bit)] >> bit % 8 & 1) != 0;
}

void md_bitmap_set(const struct md_bitmap *bitmap, uint8_t *bits, uint64_t bit, bool value)
{
	uint8_t *byte = &bits[byte_of(bitmap, bit)];
	const uint8_t mask = (uint8_t)(1u << bit % 8);

	*byte = value ? *byte | mask : *byte & (uint8_t)~mask;
}

/* Sums of neighbouring fields of 1, 2 and 4 bits; the product adds up the bytes in the top one. */
static uint64_t ones_of(uint64_t word)
{
	word -= word >> 1 & UINT64_C(0x5555555555555555);
	word = (word & UINT64_C(0x3333333333333333)) + (word >> 2 & UINT64_C(0x3333333333333333));
	word = (word + (word >> 4)) & UINT64_C(0x0f0f0f0f0f0f0f0f);
	return word * UINT64_C(0x0101010101010101) >> 56;
}

/* Whole words first: within one the order of its bytes does not matter. */
uint64_t md_bitmap_dirty(const struct md_bitmap *bitmap, const uint8_t *bits)
{
	const uint64_t count = md_bitmap_bits(bitmap);
	uint64_t dirty = 0, bit = 0;

	for (; count - bit >= 64; bit += 64)
		dirty += ones_of(get_le64(bits + bit / 8));
	for (; bit < count; bit++)
		dirty += md_bitmap_get(bitmap, bits, bit);
	return dirty;
}

void md_bitmap_uuid(const struct md_super *super, uint8_t ret[16])
{
	const bool words = super->version == MD_VERSION_0_90 && !super->v090.foreign_order;

	/* set_uuid has 0.90's words highest byte first; on a little-endian disk they are not. */
	for (unsigned i = 0; i < 16; i++)
		ret[i] = super->set_uuid[words ? i ^ 3 : i];
}

/* Specification 7.1; 0 if the fields, which come from a disk, make no array. */
static uint64_t raid10_sectors(const struct md_super *super)
{
	const uint32_t near = super->layout & 0xff, far = super->layout >> 8 & 0xff;
	uint64_t chunks;

	if (near == 0 || far == 0 || super->chunk_sectors == 0)
		return 0;
	chunks = super->size_sectors / super->chunk_sectors / far;
	if (mul_overflows(chunks, super->raid_disks, &chunks))
		return 0;
	chunks /= near;
	return mul_overflows(chunks, super->chunk_sectors, &chunks) ? 0 : chunks;
}

uint64_t md_bitmap_sync_sectors(const struct md_super *super)
{
	if (super->level == 10)
		return raid10_sectors(super);
	if (super->level >= 4 && super->chunk_sectors > 0)
		return round_down(super->size_sectors, super->chunk_sectors);
	return super->size_sectors;
}

static int place_fault(const struct md_super *super, const char *why, struct fault *fault)
{
	return fault_set(fault, -EUCLEAN,
		"superblock %s: field bitmap_offset: is %" PRId32 ", which puts the bitmap %s",
		md_format(super->version)->name, super->bitmap_offset, why);
}

/* Behind the superblock: up to the data, or up to the end of a 1.0 device. */
static int room_behind(
	const struct md_super *super, uint64_t at, uint64_t *ret_end, struct fault *fault)
{
	const uint64_t sectors = round_up(256 + 2 * (uint64_t)super->role_count, 512) / MD_SECTOR;

	if (at < super->super_offset + sectors)
		return place_fault(super, "into the superblock", fault);
	if (super->data_offset > super->super_offset && at >= super->data_offset)
		return place_fault(super, "into the data", fault);
	*ret_end = super->data_offset > super->super_offset ? super->data_offset
							    : super->super_offset + TAIL_10;
	return 0;
}

static int room_before(
	const struct md_super *super, uint64_t at, uint64_t *ret_end, struct fault *fault)
{
	uint64_t data_end;

	if (super->data_offset > super->super_offset)
		return place_fault(super, "before the superblock, where data follows it", fault);
	if (add_overflows(super->data_offset, super->size_sectors, &data_end) || data_end > at)
		return place_fault(super, "into the data", fault);
	*ret_end = super->super_offset;
	return 0;
}

/* The bad-block log may follow the bitmap; it may not lie around its start. */
static int leave_bad_blocks(
	const struct md_super *super, uint64_t at, uint64_t *end, struct fault *fault)
{
	const uint64_t log = super->super_offset + (uint64_t)(int64_t)super->bblog_offset;

	if (super->bblog_sectors == 0 || super->bblog_offset == 0)
		return 0;
	if (at >= log && at < log + super->bblog_sectors)
		return place_fault(super, "into the bad-block log", fault);
	if (log > at)
		*end = min_u64(*end, log);
	return 0;
}

int md_bitmap_location(const struct md_super *super, uint64_t *ret_device_sector,
	uint64_t *ret_room_sectors, struct fault *fault)
{
	const int64_t offset = super->bitmap_offset;
	uint64_t at = super->super_offset + (uint64_t)offset, end = 0;
	int r;

	if ((super->feature_map & MD_FEATURE_BITMAP) == 0)
		return fault_set(fault, -ENODATA, "the array has no internal bitmap");
	if (super->version == MD_VERSION_0_90) {
		*ret_device_sector = super->super_offset + OFFSET_090;
		*ret_room_sectors = ROOM_090;
		return 0;
	}
	if (offset < 0 && (uint64_t)-offset > super->super_offset)
		return place_fault(super, "before the device", fault);
	r = offset < 0 ? room_before(super, at, &end, fault) : room_behind(super, at, &end, fault);
	if (r == 0)
		r = leave_bad_blocks(super, at, &end, fault);
	if (r == 0 && end <= at)
		r = place_fault(super, "behind the end of the device", fault);
	if (r < 0)
		return r;
	*ret_device_sector = at;
	*ret_room_sectors = end - at;
	return 0;
}

/* The smallest chunk whose bits fit, counted as mdadm counts (specification 3.3). */
static uint64_t smallest_chunk(uint64_t sync_sectors, uint64_t room_sectors)
{
	const uint64_t bits_max = (room_sectors * MD_SECTOR - MD_BITMAP_HEADER_BYTES) * 8;
	uint64_t chunk = CHUNK_BYTES_MIN_MADE;
	uint64_t bits = sync_sectors / (chunk / MD_SECTOR) + 1;

	for (; bits > bits_max; bits = (bits + 1) / 2)
		chunk *= 2;
	return chunk;
}

int md_bitmap_choose_chunk(uint64_t sync_sectors, uint64_t room_sectors, uint64_t wanted_bytes,
	uint32_t *ret_chunk_bytes, struct fault *fault)
{
	const uint64_t wanted = wanted_bytes;
	uint64_t smallest;

	if (room_sectors == 0 || room_sectors > UINT32_MAX)
		return fault_set(fault, -ENOSPC,
			"there is no room for a bitmap on the members; use --bitmap=none or a "
			"larger --data-offset");
	smallest = smallest_chunk(sync_sectors, room_sectors);
	if (wanted != 0 && !is_power_of_two(wanted))
		return fault_set(fault, -EINVAL,
			"bitmap chunk of %" PRIu64 " bytes is no power of two; try "
			"--bitmap-chunk=64M",
			wanted);
	if (smallest > CHUNK_BYTES_MAX || wanted > CHUNK_BYTES_MAX)
		return fault_set(fault, -ERANGE,
			"bitmap chunk of %" PRIu64 " bytes is too large: at most 2 GiB can be "
			"recorded%s",
			max_u64(wanted, smallest),
			smallest > CHUNK_BYTES_MAX ? ", and a smaller one needs more room than "
						     "the members leave; use --bitmap=none"
						   : "; choose a smaller --bitmap-chunk");
	if (wanted != 0 && wanted < smallest)
		return fault_set(fault, -ERANGE,
			"bitmap chunk of %" PRIu64 " bytes is too small: with %" PRIu64
			" KiB of room for the bitmap it must be at least %" PRIu64
			"; choose a larger --bitmap-chunk",
			wanted, room_sectors / 2, smallest);
	*ret_chunk_bytes = (uint32_t)(wanted != 0 ? wanted
						  : max_u64(smallest, CHUNK_BYTES_DEFAULT));
	return 0;
}

void md_bitmap_init(const struct md_super *super, uint32_t chunk_bytes, struct md_bitmap *ret)
{
	*ret = (struct md_bitmap){
		.version = VERSION_LITTLE,
		.sync_size_sectors = md_bitmap_sync_sectors(super),
		.chunk_bytes = chunk_bytes,
		.daemon_sleep_seconds = MD_BITMAP_DAEMON_SLEEP_SECONDS,
	};
	md_bitmap_uuid(super, ret->uuid);
}

static int check_room(
	const struct md_bitmap *bitmap, const struct md_super *super, struct fault *fault)
{
	const uint64_t bits = bits_for(md_bitmap_sync_sectors(super), bitmap->chunk_bytes);
	const uint64_t bytes = MD_BITMAP_HEADER_BYTES + bits / 8 + (bits % 8 != 0);
	uint64_t at, room;
	int r = md_bitmap_location(super, &at, &room, fault);

	if (r == -ENODATA) /* in a file: as large as it needs to be */
		return 0;
	if (r == 0 && bytes > room * MD_SECTOR)
		r = fault_set(fault, -EUCLEAN,
			"bitmap: field chunksize: %" PRIu32 " bytes make a bitmap of %" PRIu64
			" bytes, but the members have room for %" PRIu64 " only",
			bitmap->chunk_bytes, bytes, room * MD_SECTOR);
	return r;
}

/*
 * The kernel never looks at sync_size: it takes the array's. A bitmap that was made for another
 * size says nothing of what it does not cover, hence all of it is dirty; but it can be gone on
 * with.
 */
static int check_fresh(
	const struct md_bitmap *bitmap, const struct md_super *super, struct fault *fault)
{
	const uint64_t sectors = md_bitmap_sync_sectors(super);

	if (bitmap->sync_size_sectors != sectors)
		return fault_set(fault, -ESTALE,
			"bitmap: field sync_size: covers %" PRIu64
			" sectors, the array has %" PRIu64,
			bitmap->sync_size_sectors, sectors);
	if ((bitmap->state & MD_BITMAP_STALE) != 0)
		return fault_set(fault, -ESTALE, "bitmap: field state: says that it is stale");
	if (bitmap->events < super->events)
		return fault_set(fault, -ESTALE,
			"bitmap: field events: is %" PRIu64 ", the array was written until %" PRIu64
			" without it",
			bitmap->events, super->events);
	return 0;
}

int md_bitmap_check(
	const struct md_bitmap *bitmap, const struct md_super *super, struct fault *fault)
{
	uint8_t uuid[16];
	int r;

	md_bitmap_uuid(super, uuid);
	if (memcmp(uuid, bitmap->uuid, sizeof(uuid)) != 0)
		return fault_set(fault, -EUCLEAN, "bitmap: field uuid: belongs to another array");
	if (bitmap->version == VERSION_CLUSTERED)
		return fault_set(fault, -EUCLEAN,
			"bitmap: field version: a clustered bitmap, with one set of bits for each "
			"of %" PRIu32 " nodes, which this program cannot combine",
			bitmap->nodes);
	r = check_room(bitmap, super, fault);
	return r < 0 ? r : check_fresh(bitmap, super, fault);
}
