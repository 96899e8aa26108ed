/* SPDX-License-Identifier: MIT */
/*
 * Superblock version 0.90: 1024 words in the byte order of the host that made the array, either
 * order (specification 2). Fields as in the kernel's struct mdp_super_s.
 */
#include <errno.h>
#include <string.h>

#include "md/super_internal.h"
#include "util/bytes.h"
#include "util/rounding.h"

/* Indices of words. */
enum {
	WORDS = 1024,
	MAGIC = 0,
	MAJOR_VERSION = 1,
	MINOR_VERSION = 2,
	SET_UUID0 = 5,
	CTIME = 6,
	LEVEL = 7,
	SIZE = 8,
	NR_DISKS = 9,
	RAID_DISKS = 10,
	MD_MINOR = 11,
	SET_UUID1 = 13,
	UTIME = 32,
	STATE = 33,
	ACTIVE_DISKS = 34,
	WORKING_DISKS = 35,
	FAILED_DISKS = 36,
	SPARE_DISKS = 37,
	CHECKSUM = 38,
	EVENTS = 39,
	CP_EVENTS = 41,
	RECOVERY_CP = 43,
	RESHAPE_POSITION = 44,
	NEW_LEVEL = 46,
	DELTA_DISKS = 47,
	NEW_LAYOUT = 48,
	NEW_CHUNK = 49,
	LAYOUT = 64,
	CHUNK = 65,
	DISKS = 128,
	THIS_DISK = 992,
	DISK_WORDS = 32,
	DISKS_MAX = 27,
};

#define STATE_CLEAN 0x1u
#define STATE_BITMAP 0x100u
#define DISK_FAULTY 0x1u
#define DISK_ACTIVE 0x2u
#define DISK_SYNC 0x4u
#define DISK_REMOVED 0x8u
#define BITMAP_OFFSET 8 /* sectors from the superblock, always */

/* The words of a block in one of the two orders. */
struct words {
	uint8_t *bytes;
	bool big;
};

static uint32_t get(const uint8_t *block, bool big, unsigned word)
{
	return big ? get_be32(block + 4 * word) : get_le32(block + 4 * word);
}

/* A pair of words stands in the order that makes it a number of the same host. */
static uint64_t get_pair(const uint8_t *block, bool big, unsigned word)
{
	uint64_t first = get(block, big, word), second = get(block, big, word + 1);

	return big ? first << 32 | second : second << 32 | first;
}

static void put(struct words words, unsigned word, uint32_t value)
{
	if (words.big)
		put_be32(words.bytes + 4 * word, value);
	else
		put_le32(words.bytes + 4 * word, value);
}

static void put_pair(struct words words, unsigned word, uint64_t value)
{
	put(words, word + (words.big ? 1 : 0), (uint32_t)value);
	put(words, word + (words.big ? 0 : 1), (uint32_t)(value >> 32));
}

static int location(uint64_t device_sectors, uint64_t *ret_sector)
{
	if (device_sectors < 128)
		return -ERANGE;
	*ret_sector = round_down(device_sectors, 128) - 128;
	return 0;
}

static uint32_t checksum(const uint8_t *block, bool big)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < WORDS; i++)
		if (i != CHECKSUM)
			sum += get(block, big, i);
	return md_fold(sum);
}

/* Old kernels stored a sum of 16 bits: like md, compare what is left after folding to that. */
static uint32_t fold16(uint32_t sum)
{
	sum = (sum & 0xffff) + (sum >> 16);
	return (sum & 0xffff) + (sum >> 16);
}

/* Words 0 and 1 to 3, each printed as a number: in big-endian order the text comes out right. */
static void decode_uuid(const uint8_t *block, bool big, uint8_t uuid[16])
{
	put_be32(uuid, get(block, big, SET_UUID0));
	for (unsigned i = 0; i < 3; i++)
		put_be32(uuid + 4 + 4 * (size_t)i, get(block, big, SET_UUID1 + i));
}

static void decode_disk(
	const uint8_t *block, bool big, unsigned word, struct md_super_090_disk *ret)
{
	ret->number = get(block, big, word);
	ret->major = get(block, big, word + 1);
	ret->minor = get(block, big, word + 2);
	ret->raid_disk = get(block, big, word + 3);
	ret->state = get(block, big, word + 4);
}

static void decode_counts(const uint8_t *block, bool big, struct md_super_090 *v)
{
	v->foreign_order = big != (__BYTE_ORDER == __BIG_ENDIAN);
	v->minor_version = get(block, big, MINOR_VERSION);
	v->md_minor = get(block, big, MD_MINOR);
	v->state = get(block, big, STATE);
	v->nr_disks = get(block, big, NR_DISKS);
	v->active_disks = get(block, big, ACTIVE_DISKS);
	v->working_disks = get(block, big, WORKING_DISKS);
	v->failed_disks = get(block, big, FAILED_DISKS);
	v->spare_disks = get(block, big, SPARE_DISKS);
	v->cp_events = get_pair(block, big, CP_EVENTS);
	for (unsigned i = 0; i < DISKS_MAX; i++)
		decode_disk(block, big, DISKS + DISK_WORDS * i, &v->disks[i]);
	decode_disk(block, big, THIS_DISK, &v->this_disk);
}

/* Only meaningful, and only filled, while a reshape is in progress. */
static void decode_reshape(const uint8_t *block, bool big, struct md_super *s)
{
	if (s->v090.minor_version != 91)
		return;
	s->feature_map |= MD_FEATURE_RESHAPE;
	s->reshape_position = get_pair(block, big, RESHAPE_POSITION);
	s->new_level = (int32_t)get(block, big, NEW_LEVEL);
	s->delta_disks = (int32_t)get(block, big, DELTA_DISKS);
	s->new_layout = get(block, big, NEW_LAYOUT);
	s->new_chunk_sectors = get(block, big, NEW_CHUNK) / MD_SECTOR;
}

/* Specification 2.6. A checkpoint of another moment than the events is not to be trusted. */
static uint64_t decode_resync(const uint8_t *block, bool big, const struct md_super *s)
{
	if ((s->v090.state & STATE_CLEAN) != 0)
		return MD_CLEAN;
	if (s->v090.cp_events == s->events)
		return get(block, big, RECOVERY_CP);
	return 0;
}

static uint16_t disk_role(const struct md_super *s, const struct md_super_090_disk *disk)
{
	uint32_t in_slot = s->v090.minor_version == 91 ? DISK_SYNC | DISK_ACTIVE : DISK_SYNC;

	if ((disk->state & DISK_REMOVED) != 0)
		return MD_ROLE_SPARE; /* an unused entry */
	if ((disk->state & DISK_FAULTY) != 0)
		return MD_ROLE_FAULTY;
	if ((disk->state & in_slot) != 0 && disk->raid_disk < s->raid_disks &&
		disk->raid_disk < DISKS_MAX)
		return (uint16_t)disk->raid_disk;
	return MD_ROLE_SPARE;
}

static void decode_fields(const uint8_t *block, bool big, uint64_t at, struct md_super *s)
{
	memset(s, 0, sizeof(*s));
	s->version = MD_VERSION_0_90;
	decode_counts(block, big, &s->v090);
	decode_uuid(block, big, s->set_uuid);
	s->ctime = get(block, big, CTIME);
	s->utime = get(block, big, UTIME);
	s->level = (int32_t)get(block, big, LEVEL);
	s->layout = get(block, big, LAYOUT);
	s->size_sectors = 2 * (uint64_t)get(block, big, SIZE);
	s->chunk_sectors = get(block, big, CHUNK) / MD_SECTOR;
	s->raid_disks = get(block, big, RAID_DISKS);
	s->events = get_pair(block, big, EVENTS);
	s->resync_offset = decode_resync(block, big, s);
	decode_reshape(block, big, s);
	if ((s->v090.state & STATE_BITMAP) != 0) {
		s->feature_map |= MD_FEATURE_BITMAP;
		s->bitmap_offset = BITMAP_OFFSET;
	}
	s->data_sectors = at;
	s->super_offset = at;
	s->dev_number = s->v090.this_disk.number;
	s->role_count = DISKS_MAX;
	for (unsigned i = 0; i < DISKS_MAX; i++)
		s->roles[i] = disk_role(s, &s->v090.disks[i]);
	if (s->dev_number < DISKS_MAX)
		s->devflags = (uint8_t)(s->v090.disks[s->dev_number].state >> 9 & 3);
	s->checksum = get(block, big, CHECKSUM);
	s->checksum_expected = checksum(block, big);
}

static int check_frame(
	const uint8_t *block, bool big, const struct md_super *s, struct fault *fault)
{
	uint32_t major = get(block, big, MAJOR_VERSION);

	if (major != 0)
		return md_field_fault(fault, major == 1 ? -ENODATA : -EUCLEAN, s->version,
			"major_version", "is %u, must be 0", major);
	if (fold16(s->checksum) != fold16(s->checksum_expected))
		return md_field_fault(fault, -EBADMSG, s->version, "sb_csum",
			"checksum is %08x, expected %08x: the superblock is damaged", s->checksum,
			s->checksum_expected);
	if (s->v090.minor_version != 90 && s->v090.minor_version != 91)
		return md_field_fault(fault, -EUCLEAN, s->version, "minor_version",
			"is %u, must be 90 or 91", s->v090.minor_version);
	return 0;
}

static int check_reshape(
	const uint8_t *block, bool big, const struct md_super *s, struct fault *fault)
{
	int64_t old_disks = (int64_t)s->raid_disks - s->delta_disks;

	if (s->v090.minor_version != 91)
		return 0;
	if (old_disks < 1 || old_disks > DISKS_MAX)
		return md_field_fault(fault, -EUCLEAN, s->version, "delta_disks",
			"is %d with %u raid_disks", s->delta_disks, s->raid_disks);
	if (get(block, big, NEW_CHUNK) % MD_SECTOR != 0)
		return md_field_fault(fault, -EUCLEAN, s->version, "new_chunk",
			"is %u bytes, no multiple of 512", get(block, big, NEW_CHUNK));
	return 0;
}

static int check_fields(
	const uint8_t *block, bool big, const struct md_super *s, struct fault *fault)
{
	if (s->raid_disks == 0 || s->raid_disks > DISKS_MAX)
		return md_field_fault(fault, -EUCLEAN, s->version, "raid_disks",
			"is %u, must be 1 to %u", s->raid_disks, DISKS_MAX);
	if (get(block, big, CHUNK) % MD_SECTOR != 0)
		return md_field_fault(fault, -EUCLEAN, s->version, "chunk_size",
			"is %u bytes, no multiple of 512", get(block, big, CHUNK));
	if (s->dev_number >= DISKS_MAX)
		return md_field_fault(fault, -EUCLEAN, s->version, "this_disk",
			"its number is %u, there are %u descriptors", s->dev_number, DISKS_MAX);
	if (s->level >= 1 && s->size_sectors > s->data_sectors)
		return md_field_fault(fault, -EUCLEAN, s->version, "size",
			"is %llu sectors per member, but this one has only %llu",
			(unsigned long long)s->size_sectors, (unsigned long long)s->data_sectors);
	return check_reshape(block, big, s, fault);
}

static int decode(const void *block, uint64_t at, uint64_t device_sectors, struct md_super *ret,
	struct fault *fault)
{
	const uint8_t *bytes = block;
	bool big = get_be32(bytes) == MD_MAGIC;
	int r;

	if (!big && get_le32(bytes) != MD_MAGIC)
		return md_field_fault(
			fault, -ENODATA, MD_VERSION_0_90, "magic", "no md superblock here");
	if (at > device_sectors)
		return md_field_fault(fault, -ENODATA, MD_VERSION_0_90, "position",
			"sector %llu lies behind the device's end", (unsigned long long)at);
	decode_fields(bytes, big, at, ret);
	r = check_frame(bytes, big, ret, fault);
	return r < 0 ? r : check_fields(bytes, big, ret, fault);
}

static void encode_disk(struct words words, unsigned word, const struct md_super_090_disk *disk)
{
	put(words, word, disk->number);
	put(words, word + 1, disk->major);
	put(words, word + 2, disk->minor);
	put(words, word + 3, disk->raid_disk);
	put(words, word + 4, disk->state);
}

static void encode_counts(struct words words, const struct md_super_090 *v)
{
	put(words, NR_DISKS, v->nr_disks);
	put(words, MD_MINOR, v->md_minor);
	put(words, ACTIVE_DISKS, v->active_disks);
	put(words, WORKING_DISKS, v->working_disks);
	put(words, FAILED_DISKS, v->failed_disks);
	put(words, SPARE_DISKS, v->spare_disks);
	for (unsigned i = 0; i < DISKS_MAX; i++)
		encode_disk(words, DISKS + DISK_WORDS * i, &v->disks[i]);
	encode_disk(words, THIS_DISK, &v->this_disk);
}

static void encode_reshape(struct words words, const struct md_super *s)
{
	put_pair(words, RESHAPE_POSITION, s->reshape_position);
	put(words, NEW_LEVEL, (uint32_t)s->new_level);
	put(words, DELTA_DISKS, (uint32_t)s->delta_disks);
	put(words, NEW_LAYOUT, s->new_layout);
	put(words, NEW_CHUNK, s->new_chunk_sectors * MD_SECTOR);
}

/*
 * The three places that tell whether the array is clean say the same (specification 2.6). mdadm
 * leaves cp_events and the checkpoint of a new clean array 0; the kernel, with its first write,
 * sets cp_events to the events and the checkpoint to all ones. Neither matters while it is clean.
 */
static void encode_resync(struct words words, const struct md_super *s)
{
	const uint32_t clean_cp = s->v090.cp_events == s->events ? UINT32_MAX : 0;
	bool clean = s->resync_offset == MD_CLEAN;
	bool checkpoint = !clean && s->resync_offset != 0;
	uint32_t state = s->v090.state & ~(STATE_CLEAN | STATE_BITMAP);

	if (clean)
		state |= STATE_CLEAN;
	if ((s->feature_map & MD_FEATURE_BITMAP) != 0)
		state |= STATE_BITMAP;
	put(words, STATE, state);
	put(words, RECOVERY_CP, clean ? clean_cp : (uint32_t)s->resync_offset);
	put_pair(words, CP_EVENTS, checkpoint ? s->events : s->v090.cp_events);
}

static void encode(const struct md_super *s, void *block)
{
	bool host_big = __BYTE_ORDER == __BIG_ENDIAN;
	struct words words = {block, s->v090.foreign_order ? !host_big : host_big};
	bool reshape = (s->feature_map & MD_FEATURE_RESHAPE) != 0;

	memset(block, 0, MD_SUPER_BYTES);
	put(words, MAGIC, MD_MAGIC);
	put(words, MINOR_VERSION, reshape ? 91 : 90);
	put(words, SET_UUID0, get_be32(s->set_uuid));
	for (unsigned i = 0; i < 3; i++)
		put(words, SET_UUID1 + i, get_be32(s->set_uuid + 4 + 4 * (size_t)i));
	put(words, CTIME, (uint32_t)s->ctime);
	put(words, UTIME, (uint32_t)s->utime);
	put(words, LEVEL, (uint32_t)s->level);
	put(words, LAYOUT, s->layout);
	put(words, SIZE, (uint32_t)(s->size_sectors / 2));
	put(words, CHUNK, s->chunk_sectors * MD_SECTOR);
	put(words, RAID_DISKS, s->raid_disks);
	put_pair(words, EVENTS, s->events);
	encode_counts(words, &s->v090);
	encode_resync(words, s);
	if (reshape)
		encode_reshape(words, s);
	put(words, CHECKSUM, checksum(block, words.big));
}

const struct md_format md_format_090 = {
	.version = MD_VERSION_0_90,
	.name = "0.90",
	.location = location,
	.decode = decode,
	.encode = encode,
};
