/* SPDX-License-Identifier: MIT */
/*
 * Superblock versions 1.0, 1.1 and 1.2: little-endian everywhere, told apart only by their place.
 * Fields: specification 1.2, the kernel's struct mdp_superblock_1. Refusals: specification 1.5.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "md/super_internal.h"
#include "util/bytes.h"
#include "util/rounding.h"

/* Bytes of the fixed part, and offsets of the fields in it. */
enum {
	HEAD_BYTES = 256,
	MAGIC = 0,
	MAJOR_VERSION = 4,
	FEATURE_MAP = 8,
	PAD0 = 12,
	SET_UUID = 16,
	SET_NAME = 32,
	CTIME = 64,
	LEVEL = 72,
	LAYOUT = 76,
	SIZE = 80,
	CHUNK = 88,
	RAID_DISKS = 92,
	BITMAP_OFFSET = 96,
	PPL_SECTORS = 98,
	NEW_LEVEL = 100,
	RESHAPE_POSITION = 104,
	DELTA_DISKS = 112,
	NEW_LAYOUT = 116,
	NEW_CHUNK = 120,
	NEW_OFFSET = 124,
	DATA_OFFSET = 128,
	DATA_SIZE = 136,
	SUPER_OFFSET = 144,
	RECOVERY_OFFSET = 152,
	DEV_NUMBER = 160,
	CORRECTED_READS = 164,
	DEVICE_UUID = 168,
	DEVFLAGS = 184,
	BBLOG_SHIFT = 185,
	BBLOG_SECTORS = 186,
	BBLOG_OFFSET = 188,
	UTIME = 192,
	EVENTS = 200,
	RESYNC_OFFSET = 208,
	CHECKSUM = 216,
	MAX_DEV = 220,
	LOGICAL_BLOCK = 224,
	PAD3 = 228,
	ROLES = 256,
};

#define DEVICE_SECTORS_MIN 24u
#define DATA_SECTORS_MIN 10u
#define ANY_PPL (MD_FEATURE_PPL | MD_FEATURE_MULTIPLE_PPL)
/* Largest page size md runs with: no kernel offers a larger logical block. */
#define LOGICAL_BLOCK_MAX 65536u

static int location_10(uint64_t device_sectors, uint64_t *ret_sector)
{
	if (device_sectors < DEVICE_SECTORS_MIN)
		return -ERANGE;
	*ret_sector = round_down(device_sectors - 16, 8);
	return 0;
}

static int location_11(uint64_t device_sectors, uint64_t *ret_sector)
{
	if (device_sectors < DEVICE_SECTORS_MIN)
		return -ERANGE;
	*ret_sector = 0;
	return 0;
}

static int location_12(uint64_t device_sectors, uint64_t *ret_sector)
{
	if (device_sectors < DEVICE_SECTORS_MIN)
		return -ERANGE;
	*ret_sector = 8;
	return 0;
}

/* Specification 1.3; @role_count is at most MD_ROLES_MAX. */
static uint32_t checksum(const uint8_t *block, uint32_t role_count)
{
	uint32_t bytes = HEAD_BYTES + 2 * role_count;
	uint64_t sum = 0;
	uint32_t i;

	for (i = 0; i + 4 <= bytes; i += 4)
		if (i != CHECKSUM)
			sum += get_le32(block + i);
	if (i < bytes)
		sum += get_le16(block + i);
	return md_fold(sum);
}

static void decode_array(const uint8_t *block, struct md_super *super)
{
	super->feature_map = get_le32(block + FEATURE_MAP);
	memcpy(super->set_uuid, block + SET_UUID, sizeof(super->set_uuid));
	memcpy(super->name, block + SET_NAME, MD_NAME_MAX);
	super->ctime = get_le64(block + CTIME);
	super->level = (int32_t)get_le32(block + LEVEL);
	super->layout = get_le32(block + LAYOUT);
	super->size_sectors = get_le64(block + SIZE);
	super->chunk_sectors = get_le32(block + CHUNK);
	super->raid_disks = get_le32(block + RAID_DISKS);
	if ((super->feature_map & ANY_PPL) != 0) {
		super->ppl_offset = (int16_t)get_le16(block + BITMAP_OFFSET);
		super->ppl_sectors = get_le16(block + PPL_SECTORS);
	} else {
		super->bitmap_offset = (int32_t)get_le32(block + BITMAP_OFFSET);
	}
	super->new_level = (int32_t)get_le32(block + NEW_LEVEL);
	super->reshape_position = get_le64(block + RESHAPE_POSITION);
	super->delta_disks = (int32_t)get_le32(block + DELTA_DISKS);
	super->new_layout = get_le32(block + NEW_LAYOUT);
	super->new_chunk_sectors = get_le32(block + NEW_CHUNK);
	super->new_offset = (int32_t)get_le32(block + NEW_OFFSET);
	super->utime = get_le64(block + UTIME);
	super->events = get_le64(block + EVENTS);
	super->resync_offset = get_le64(block + RESYNC_OFFSET);
	super->checksum = get_le32(block + CHECKSUM);
	super->role_count = get_le32(block + MAX_DEV);
	super->logical_block_bytes = get_le32(block + LOGICAL_BLOCK);
}

/* Needs the roles: the same bytes are the journal's tail on a journal and else the checkpoint. */
static void decode_member(const uint8_t *block, struct md_super *super)
{
	uint64_t progress = get_le64(block + RECOVERY_OFFSET);

	super->data_offset = get_le64(block + DATA_OFFSET);
	super->data_sectors = get_le64(block + DATA_SIZE);
	super->super_offset = get_le64(block + SUPER_OFFSET);
	super->dev_number = get_le32(block + DEV_NUMBER);
	super->corrected_reads = get_le32(block + CORRECTED_READS);
	memcpy(super->device_uuid, block + DEVICE_UUID, sizeof(super->device_uuid));
	super->devflags = block[DEVFLAGS];
	super->bblog_shift = block[BBLOG_SHIFT];
	super->bblog_sectors = get_le16(block + BBLOG_SECTORS);
	super->bblog_offset = (int32_t)get_le32(block + BBLOG_OFFSET);
	if (md_super_role(super) == MD_ROLE_JOURNAL)
		super->journal_tail = progress;
	else
		super->recovery_offset = progress;
}

static void decode_fields(const uint8_t *block, enum md_version version, struct md_super *super)
{
	memset(super, 0, sizeof(*super));
	super->version = version;
	decode_array(block, super);
	if (super->role_count <= MD_ROLES_MAX) {
		for (uint32_t i = 0; i < super->role_count; i++)
			super->roles[i] = get_le16(block + ROLES + 2 * (size_t)i);
		super->checksum_expected = checksum(block, super->role_count);
	}
	decode_member(block, super);
}

/* What must be right before any other field means something. */
static int check_frame(
	const uint8_t *block, uint64_t at, const struct md_super *s, struct fault *fault)
{
	uint32_t major = get_le32(block + MAJOR_VERSION);
	uint32_t unknown = s->feature_map & ~(uint32_t)MD_FEATURE_ALL;

	/* On a device of less than 128 KiB version 0.90 stands where 1.1 would. */
	if (major != 1)
		return md_field_fault(fault, major == 0 ? -ENODATA : -EUCLEAN, s->version,
			"major_version", "is %u, must be 1", major);
	if (s->role_count > MD_ROLES_MAX)
		return md_field_fault(fault, -EUCLEAN, s->version, "max_dev",
			"is %u, at most %u roles fit into a superblock", s->role_count,
			MD_ROLES_MAX);
	if (s->checksum != s->checksum_expected)
		return md_field_fault(fault, -EBADMSG, s->version, "sb_csum",
			"checksum is %08x, expected %08x: the superblock is damaged", s->checksum,
			s->checksum_expected);
	if (s->super_offset != at)
		return md_field_fault(fault, -EUCLEAN, s->version, "super_offset",
			"says sector %llu but was read from sector %llu",
			(unsigned long long)s->super_offset, (unsigned long long)at);
	if (unknown != 0)
		return md_field_fault(fault, -EOPNOTSUPP, s->version, "feature_map",
			"unknown feature bits 0x%x: made by a newer md than this program knows",
			unknown);
	return 0;
}

static bool is_zero(const uint8_t *bytes, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (bytes[i] != 0)
			return false;
	return true;
}

/*
 * Linux 6.19 and later keep the logical block size at byte 224, without a feature bit; all others
 * have zeros there.
 */
static int check_padding(const uint8_t *block, const struct md_super *s, struct fault *fault)
{
	uint32_t bytes = s->logical_block_bytes;

	if (!is_zero(block + PAD0, 4))
		return md_field_fault(fault, -EUCLEAN, s->version, "pad0", "is not zero");
	if (bytes != 0 && (!is_power_of_two(bytes) || bytes < 512 || bytes > LOGICAL_BLOCK_MAX))
		return md_field_fault(fault, -EUCLEAN, s->version, "logical_block_size",
			"is %u bytes, no power of two from 512 to %u", bytes, LOGICAL_BLOCK_MAX);
	if (!is_zero(block + PAD3, ROLES - PAD3))
		return md_field_fault(fault, -EUCLEAN, s->version, "pad3", "is not zero");
	return 0;
}

static const char *feature_contradiction(const struct md_super *s)
{
	uint32_t map = s->feature_map;

	if ((map & ANY_PPL) == ANY_PPL)
		return "one PPL and several PPLs at once";
	if ((map & ANY_PPL) != 0 && (map & MD_FEATURE_BITMAP) != 0)
		return "PPL and a bitmap at once";
	if ((map & ANY_PPL) != 0 && (map & MD_FEATURE_JOURNAL) != 0)
		return "PPL and a journal at once";
	if ((map & MD_FEATURE_RAID0_LAYOUT) != 0 && s->level != 0)
		return "a RAID 0 layout at another level";
	if ((map & MD_FEATURE_JOURNAL) == 0 && md_super_role(s) == MD_ROLE_JOURNAL)
		return "this member is a journal, but the array has none";
	return NULL;
}

static int check_array(const struct md_super *s, struct fault *fault)
{
	const char *contradiction = feature_contradiction(s);
	int64_t old_disks = (int64_t)s->raid_disks - s->delta_disks;
	bool reshape = (s->feature_map & MD_FEATURE_RESHAPE) != 0;

	if (contradiction != NULL)
		return md_field_fault(fault, -EUCLEAN, s->version, "feature_map", "0x%x: %s",
			s->feature_map, contradiction);
	if (s->raid_disks == 0 || s->raid_disks > MD_ROLES_MAX)
		return md_field_fault(fault, -EUCLEAN, s->version, "raid_disks",
			"is %u, must be 1 to %u", s->raid_disks, MD_ROLES_MAX);
	if (reshape && (old_disks < 1 || old_disks > MD_ROLES_MAX))
		return md_field_fault(fault, -EUCLEAN, s->version, "delta_disks",
			"is %d with %u raid_disks", s->delta_disks, s->raid_disks);
	for (uint32_t i = 0; i < s->role_count; i++)
		if (s->roles[i] > MD_ROLE_SLOT_MAX && s->roles[i] < MD_ROLE_JOURNAL)
			return md_field_fault(fault, -EUCLEAN, s->version, "dev_roles",
				"entry %u is 0x%x, neither a slot nor a state", i, s->roles[i]);
	return 0;
}

/* May data start at sector @offset? @new names the second offset that a reshape moves to. */
static int check_data_start(
	const struct md_super *s, uint64_t offset, uint64_t limit, bool new, struct fault *fault)
{
	const char *field = new ? "new_offset" : "data_offset";
	uint64_t block = max_u64(s->logical_block_bytes, MD_SECTOR);
	uint64_t super_end = s->super_offset +
			     round_up(HEAD_BYTES + 2 * (uint64_t)s->role_count, block) / MD_SECTOR;

	if (s->version != MD_VERSION_1_0 && offset < super_end)
		return md_field_fault(fault, -EUCLEAN, s->version, field,
			"data would start at sector %llu, inside the superblock (to sector %llu)",
			(unsigned long long)offset, (unsigned long long)super_end);
	if (offset > limit)
		return md_field_fault(fault, -EUCLEAN, s->version, field,
			"data would start at sector %llu, behind the last usable sector %llu",
			(unsigned long long)offset, (unsigned long long)limit);
	return 0;
}

static int check_new_offset(const struct md_super *s, uint64_t limit, struct fault *fault)
{
	int64_t shift = s->new_offset;

	if ((s->feature_map & MD_FEATURE_NEW_OFFSET) == 0)
		return 0;
	/* data_offset has been found to be at most limit, so neither side can wrap. */
	if (shift < 0 ? (uint64_t)-shift > s->data_offset
		      : (uint64_t)shift > limit - s->data_offset)
		return md_field_fault(fault, -EUCLEAN, s->version, "new_offset",
			"is %lld with a data offset of %llu sectors and %llu usable ones",
			(long long)shift, (unsigned long long)s->data_offset,
			(unsigned long long)limit);
	return check_data_start(s, s->data_offset + (uint64_t)shift, limit, true, fault);
}

/* Data must lie between the superblock and the device's end, or before the superblock (1.0). */
static int check_extent(
	uint64_t at, uint64_t device_sectors, const struct md_super *s, struct fault *fault)
{
	uint64_t limit = s->version == MD_VERSION_1_0 ? at : device_sectors;
	uint64_t room;
	int r;

	r = check_data_start(s, s->data_offset, limit, false, fault);
	if (r == 0)
		r = check_new_offset(s, limit, fault);
	if (r < 0)
		return r;
	room = limit - s->data_offset;
	if (s->data_sectors < DATA_SECTORS_MIN || s->data_sectors > room)
		return md_field_fault(fault, -EUCLEAN, s->version, "data_size",
			"is %llu sectors, must be %u to %llu, what the device has from sector %llu",
			(unsigned long long)s->data_sectors, DATA_SECTORS_MIN,
			(unsigned long long)room, (unsigned long long)s->data_offset);
	if (s->size_sectors > s->data_sectors && md_super_role(s) != MD_ROLE_JOURNAL)
		return md_field_fault(fault, -EUCLEAN, s->version, "size",
			"is %llu sectors per member, but this one has only %llu",
			(unsigned long long)s->size_sectors, (unsigned long long)s->data_sectors);
	return 0;
}

static int check_bad_blocks(const struct md_super *s, struct fault *fault)
{
	if ((s->feature_map & MD_FEATURE_BAD_BLOCKS) == 0)
		return 0;
	if (s->bblog_sectors > 8)
		return md_field_fault(fault, -EUCLEAN, s->version, "bblog_size",
			"is %u sectors, at most 8 are allowed", s->bblog_sectors);
	if (s->bblog_offset == 0)
		return md_field_fault(fault, -EUCLEAN, s->version, "bblog_offset",
			"is 0, but there are bad blocks");
	return 0;
}

static int decode(enum md_version version, const uint8_t *block, uint64_t at,
	uint64_t device_sectors, struct md_super *ret, struct fault *fault)
{
	int r;

	if (get_le32(block + MAGIC) != MD_MAGIC)
		return md_field_fault(fault, -ENODATA, version, "magic", "no md superblock here");
	decode_fields(block, version, ret);
	r = check_frame(block, at, ret, fault);
	if (r == 0)
		r = check_padding(block, ret, fault);
	if (r == 0)
		r = check_array(ret, fault);
	if (r == 0)
		r = check_extent(at, device_sectors, ret, fault);
	if (r == 0)
		r = check_bad_blocks(ret, fault);
	return r;
}

static int decode_10(const void *block, uint64_t at, uint64_t device_sectors, struct md_super *ret,
	struct fault *fault)
{
	return decode(MD_VERSION_1_0, block, at, device_sectors, ret, fault);
}

static int decode_11(const void *block, uint64_t at, uint64_t device_sectors, struct md_super *ret,
	struct fault *fault)
{
	return decode(MD_VERSION_1_1, block, at, device_sectors, ret, fault);
}

static int decode_12(const void *block, uint64_t at, uint64_t device_sectors, struct md_super *ret,
	struct fault *fault)
{
	return decode(MD_VERSION_1_2, block, at, device_sectors, ret, fault);
}

static void encode_array(const struct md_super *super, uint8_t *block)
{
	put_le32(block + MAGIC, MD_MAGIC);
	put_le32(block + MAJOR_VERSION, 1);
	put_le32(block + FEATURE_MAP, super->feature_map);
	memcpy(block + SET_UUID, super->set_uuid, sizeof(super->set_uuid));
	memcpy(block + SET_NAME, super->name, strnlen(super->name, MD_NAME_MAX));
	put_le64(block + CTIME, super->ctime);
	put_le32(block + LEVEL, (uint32_t)super->level);
	put_le32(block + LAYOUT, super->layout);
	put_le64(block + SIZE, super->size_sectors);
	put_le32(block + CHUNK, super->chunk_sectors);
	put_le32(block + RAID_DISKS, super->raid_disks);
	if ((super->feature_map & ANY_PPL) != 0) {
		put_le16(block + BITMAP_OFFSET, (uint16_t)super->ppl_offset);
		put_le16(block + PPL_SECTORS, super->ppl_sectors);
	} else {
		put_le32(block + BITMAP_OFFSET, (uint32_t)super->bitmap_offset);
	}
	put_le32(block + NEW_LEVEL, (uint32_t)super->new_level);
	put_le64(block + RESHAPE_POSITION, super->reshape_position);
	put_le32(block + DELTA_DISKS, (uint32_t)super->delta_disks);
	put_le32(block + NEW_LAYOUT, super->new_layout);
	put_le32(block + NEW_CHUNK, super->new_chunk_sectors);
	put_le32(block + NEW_OFFSET, (uint32_t)super->new_offset);
	put_le64(block + UTIME, super->utime);
	put_le64(block + EVENTS, super->events);
	put_le64(block + RESYNC_OFFSET, super->resync_offset);
	put_le32(block + MAX_DEV, super->role_count);
	put_le32(block + LOGICAL_BLOCK, super->logical_block_bytes);
}

static void encode_member(const struct md_super *super, uint8_t *block)
{
	bool journal = md_super_role(super) == MD_ROLE_JOURNAL;

	put_le64(block + DATA_OFFSET, super->data_offset);
	put_le64(block + DATA_SIZE, super->data_sectors);
	put_le64(block + SUPER_OFFSET, super->super_offset);
	put_le64(block + RECOVERY_OFFSET, journal ? super->journal_tail : super->recovery_offset);
	put_le32(block + DEV_NUMBER, super->dev_number);
	put_le32(block + CORRECTED_READS, super->corrected_reads);
	memcpy(block + DEVICE_UUID, super->device_uuid, sizeof(super->device_uuid));
	block[DEVFLAGS] = super->devflags;
	block[BBLOG_SHIFT] = super->bblog_shift;
	put_le16(block + BBLOG_SECTORS, super->bblog_sectors);
	put_le32(block + BBLOG_OFFSET, (uint32_t)super->bblog_offset);
}

/*
 * Behind the last role stand ff bytes, "unused", as in mdadm's memory: whoever raises max_dev later
 * must not find zeros there, which would mean slot 0. On the device mdadm and the kernel write
 * whole sectors up to the last role and leave the rest of the 4096 bytes as it was.
 */
static void encode(const struct md_super *super, void *block)
{
	uint8_t *bytes = block;

	assert(super->role_count <= MD_ROLES_MAX);
	memset(bytes, 0, HEAD_BYTES);
	memset(bytes + HEAD_BYTES, 0xff, MD_SUPER_BYTES - HEAD_BYTES);
	encode_array(super, bytes);
	encode_member(super, bytes);
	for (uint32_t i = 0; i < super->role_count; i++)
		put_le16(bytes + ROLES + 2 * (size_t)i, super->roles[i]);
	put_le32(bytes + CHECKSUM, checksum(bytes, super->role_count));
}

const struct md_format md_format_10 = {
	.version = MD_VERSION_1_0,
	.name = "1.0",
	.location = location_10,
	.decode = decode_10,
	.encode = encode,
};

const struct md_format md_format_11 = {
	.version = MD_VERSION_1_1,
	.name = "1.1",
	.location = location_11,
	.decode = decode_11,
	.encode = encode,
};

const struct md_format md_format_12 = {
	.version = MD_VERSION_1_2,
	.name = "1.2",
	.location = location_12,
	.decode = decode_12,
	.encode = encode,
};
