/* SPDX-License-Identifier: MIT */
/* Superblocks rule by rule, on blocks made here; the real md's are in super_golden_test.c. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "md/golden.h"
#include "util/bytes.h"

#define SECTORS 32768u
#define AT_090 32640u

/* The clean two-member RAID 1 of specification 1.3, as 1.2. */
static void vector_12(uint8_t block[MD_SUPER_BYTES])
{
	static const uint8_t uuids[] = {0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef, 0x00, 0x11,
		0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x1f, 0x78, 0x81, 0x5b, 0xf4, 0x74, 0xed, 0x15,
		0x22, 0xb7, 0xc2, 0x68, 0x1d, 0x5d, 0xc5, 0x42};

	memset(block, 0, 256);
	memset(block + 256, 0xff, MD_SUPER_BYTES - 256);
	put_le32(block, 0xa92b4efc);
	put_le32(block + 4, 1);
	memcpy(block + 16, uuids, 16);
	memcpy(block + 32, "myhost:data", 11);
	put_le64(block + 64, 0x6b0de3b8);
	put_le32(block + 72, 1);
	put_le64(block + 80, 0x7800);
	put_le32(block + 92, 2);
	put_le64(block + 128, 0x800);
	put_le64(block + 136, 0x7800);
	put_le64(block + 144, 8);
	memcpy(block + 168, uuids + 16, 16);
	put_le16(block + 186, 8);
	put_le32(block + 188, 16);
	put_le64(block + 192, 0x6b0de3b8);
	put_le64(block + 208, UINT64_MAX);
	put_le32(block + 216, 0x71e7a76e);
	put_le32(block + 220, 128);
	put_le16(block + 256, 0);
	put_le16(block + 258, 1);
}

/* The test vector of specification 2.5. */
static void vector_090(uint8_t block[MD_SUPER_BYTES])
{
	static const uint32_t words[][2] = {{0, 0xa92b4efc}, {2, 0x5a}, {5, 0x241226eb},
		{6, 0x6b0de3ba}, {7, 1}, {8, 0x3fc0}, {9, 2}, {10, 2}, {11, 7}, {13, 0x2781cc49},
		{14, 0x755301d1}, {15, 0x7aa1b733}, {32, 0x6b0de3ba}, {33, 1}, {34, 2}, {35, 2},
		{38, 0xbad00300}, {39, 1}, {129, 7}, {132, 6}, {160, 1}, {161, 7}, {162, 1},
		{163, 1}, {164, 6}, {993, 7}, {996, 6}};

	memset(block, 0, MD_SUPER_BYTES);
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		put_le32(block + 4 * (size_t)words[i][0], words[i][1]);
}

static int decode_12(const uint8_t *block, struct md_super *super, struct fault *fault)
{
	return md_format(MD_VERSION_1_2)->decode(block, 8, SECTORS, super, fault);
}

static int decode_090(const uint8_t *block, struct md_super *super)
{
	return md_format(MD_VERSION_0_90)->decode(block, AT_090, SECTORS, super, NULL);
}

static void vector_of_1_2(void **state)
{
	uint8_t block[MD_SUPER_BYTES], again[MD_SUPER_BYTES];
	struct md_super s;

	vector_12(block);
	assert_int_equal(decode_12(block, &s, NULL), 0);
	assert_int_equal(s.checksum_expected, 0x71e7a76e);
	assert_string_equal(s.name, "myhost:data");
	assert_int_equal(s.size_sectors, 30720);
	assert_int_equal(md_super_role(&s), 0);
	md_format(MD_VERSION_1_2)->encode(&s, again);
	assert_memory_equal(block, again, sizeof(block));
}

static void vector_of_0_90(void **state)
{
	uint8_t block[MD_SUPER_BYTES], again[MD_SUPER_BYTES];
	char text[MD_UUID_TEXT];
	struct md_super s;

	vector_090(block);
	assert_int_equal(decode_090(block, &s), 0);
	assert_int_equal(s.checksum_expected, 0xbad00300);
	assert_string_equal(
		md_uuid_format(s.set_uuid, text), "241226eb:2781cc49:755301d1:7aa1b733");
	assert_int_equal(s.resync_offset, MD_CLEAN);
	assert_int_equal(s.size_sectors, 32640);
	assert_int_equal(s.v090.md_minor, 7);
	md_format(MD_VERSION_0_90)->encode(&s, again);
	assert_memory_equal(block, again, sizeof(block));
}

static void locations(void **state)
{
	static const struct {
		enum md_version version;
		uint64_t sectors, at;
		int result;
	} rows[] = {
		{MD_VERSION_1_0, 20971520, 20971504, 0},
		{MD_VERSION_1_0, 24, 8, 0},
		{MD_VERSION_1_0, 31, 8, 0},
		{MD_VERSION_1_0, 32, 16, 0},
		{MD_VERSION_1_0, 23, 0, -ERANGE},
		{MD_VERSION_1_1, 24, 0, 0},
		{MD_VERSION_1_1, 23, 0, -ERANGE},
		{MD_VERSION_1_2, 24, 8, 0},
		{MD_VERSION_1_2, 0, 0, -ERANGE},
		{MD_VERSION_0_90, 127, 0, -ERANGE},
		{MD_VERSION_0_90, 128, 0, 0},
		{MD_VERSION_0_90, 32768, 32640, 0},
		{MD_VERSION_0_90, 32767, 32512, 0},
		{MD_VERSION_0_90, 32895, 32640, 0},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint64_t at = 0;

		assert_int_equal(
			md_format(rows[i].version)->location(rows[i].sectors, &at), rows[i].result);
		assert_int_equal(at, rows[i].at);
	}
}

struct change {
	unsigned byte, bytes;
	uint64_t value;
};

static void apply(uint8_t *block, const struct change *change)
{
	for (unsigned i = 0; i < change->bytes; i++)
		block[change->byte + i] = (uint8_t)(change->value >> (8 * i));
}

/* Each rule of specification 1.5: what breaks it, the error, and the words that must be said. */
static void rules_of_1_x(void **state)
{
	static const struct {
		struct change changes[3];
		int error;
		const char *words;
	} rows[] = {
		{{{0, 4, 0}}, -ENODATA, "field magic:"},
		{{{4, 4, 0}}, -ENODATA, "field major_version:"},
		{{{4, 4, 2}}, -EUCLEAN, "field major_version:"},
		{{{8, 4, 0x2000}}, -EOPNOTSUPP, "field feature_map: unknown feature bits 0x2000"},
		{{{8, 4, 0x80002001}}, -EOPNOTSUPP, "unknown feature bits 0x80002000"},
		{{{8, 4, 0x401}}, -EUCLEAN, "field feature_map: 0x401: PPL and a bitmap"},
		{{{8, 4, 0x801}}, -EUCLEAN, "field feature_map: 0x801: PPL and a bitmap"},
		{{{8, 4, 0x600}}, -EUCLEAN, "PPL and a journal"},
		{{{8, 4, 0xc00}}, -EUCLEAN, "one PPL and several PPLs"},
		{{{8, 4, 0x1000}}, -EUCLEAN, "a RAID 0 layout at another level"},
		{{{256, 2, 0xfffd}}, -EUCLEAN, "this member is a journal"},
		{{{256, 2, 0xff00}}, -EUCLEAN, "field dev_roles: entry 0 is 0xff00"},
		{{{12, 4, 1}}, -EUCLEAN, "field pad0:"},
		{{{224, 4, 256}}, -EUCLEAN, "field logical_block_size:"},
		{{{224, 4, 131072}}, -EUCLEAN, "field logical_block_size:"},
		{{{228, 1, 1}}, -EUCLEAN, "field pad3:"},
		{{{255, 1, 1}}, -EUCLEAN, "field pad3:"},
		{{{92, 4, 0}}, -EUCLEAN, "field raid_disks:"},
		{{{92, 4, 0xffffffff}}, -EUCLEAN, "field raid_disks:"},
		{{{8, 4, 4}, {112, 4, 2}}, -EUCLEAN, "field delta_disks:"},
		{{{220, 4, 60000}}, -EUCLEAN, "field max_dev:"},
		{{{220, 4, 1921}}, -EUCLEAN, "field max_dev:"},
		{{{144, 8, 16}}, -EUCLEAN, "field super_offset:"},
		{{{136, 8, 9}}, -EUCLEAN, "field data_size:"},
		{{{136, 8, 0x7801}}, -EUCLEAN, "field data_size:"},
		{{{136, 8, UINT64_MAX}}, -EUCLEAN, "field data_size:"},
		{{{128, 8, 8}}, -EUCLEAN, "field data_offset:"},
		{{{128, 8, SECTORS + 1}}, -EUCLEAN, "field data_offset:"},
		{{{128, 8, UINT64_MAX}}, -EUCLEAN, "field data_offset:"},
		{{{80, 8, 0x7801}}, -EUCLEAN, "field size:"},
		{{{8, 4, 0x40}, {124, 4, 0xfffff7f9}}, -EUCLEAN, "field new_offset:"},
		{{{8, 4, 0x40}, {124, 4, 0xfffff000}}, -EUCLEAN, "field new_offset:"},
		{{{8, 4, 0x40}, {124, 4, 0x7fffffff}}, -EUCLEAN, "field new_offset:"},
		{{{8, 4, 8}, {186, 2, 9}}, -EUCLEAN, "field bblog_size:"},
		{{{8, 4, 8}, {188, 4, 0}}, -EUCLEAN, "field bblog_offset:"},
		{{{8, 4, 8}}, 0, ""},
		{{{8, 4, 0x40}, {124, 4, 0xfffff809}}, 0,
			""}, /* to sector 9, behind the superblock */
		{{{224, 4, 512}}, 0, ""},
		{{{224, 4, 4096}}, 0, ""},
		{{{220, 4, 1}}, 0, ""},
		{{{220, 4, 1920}, {128, 8, 16}}, 0, ""},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint8_t block[MD_SUPER_BYTES];
		struct fault fault = {0};
		struct md_super s;
		int r;

		vector_12(block);
		for (unsigned c = 0; c < 3; c++)
			apply(block, &rows[i].changes[c]);
		golden_fix_checksum(block, MD_VERSION_1_2);
		r = decode_12(block, &s, &fault);
		if (r != rows[i].error || strstr(fault.text, rows[i].words) == NULL)
			fail_msg("row %zu: %d \"%s\"", i, r, fault.text);
	}
}

/* 1.0 keeps its data before the superblock. */
static void data_of_1_0_ends_before_it(void **state)
{
	const struct md_format *format = md_format(MD_VERSION_1_0);
	uint8_t block[MD_SUPER_BYTES];
	struct md_super s;

	vector_12(block);
	put_le64(block + 144, SECTORS - 16);
	put_le64(block + 128, 0);
	put_le64(block + 136, SECTORS - 16);
	golden_fix_checksum(block, MD_VERSION_1_0);
	assert_int_equal(format->decode(block, SECTORS - 16, SECTORS, &s, NULL), 0);
	put_le64(block + 136, SECTORS - 15);
	golden_fix_checksum(block, MD_VERSION_1_0);
	assert_int_equal(format->decode(block, SECTORS - 16, SECTORS, &s, NULL), -EUCLEAN);
}

/* On the largest device that numbers allow, the new data offset would come out small again. */
static void new_offset_does_not_wrap(void **state)
{
	uint8_t block[MD_SUPER_BYTES];
	struct fault fault = {0};
	struct md_super s;

	vector_12(block);
	put_le64(block + 80, 10);
	put_le64(block + 128, UINT64_MAX - 20);
	put_le64(block + 136, 10);
	golden_fix_checksum(block, MD_VERSION_1_2);
	assert_int_equal(md_format(MD_VERSION_1_2)->decode(block, 8, UINT64_MAX, &s, NULL), 0);
	put_le32(block + 8, MD_FEATURE_NEW_OFFSET);
	put_le32(block + 124, 0x7fffffff);
	golden_fix_checksum(block, MD_VERSION_1_2);
	assert_int_equal(
		md_format(MD_VERSION_1_2)->decode(block, 8, UINT64_MAX, &s, &fault), -EUCLEAN);
	assert_non_null(strstr(fault.text, "field new_offset:"));
}

static void logical_block_size_both_forms(void **state)
{
	uint8_t block[MD_SUPER_BYTES], again[MD_SUPER_BYTES];
	struct md_super s;

	vector_12(block);
	assert_int_equal(decode_12(block, &s, NULL), 0);
	assert_int_equal(s.logical_block_bytes, 0);
	put_le32(block + 224, 512);
	assert_int_equal(decode_12(block, &s, NULL), -EBADMSG);
	golden_fix_checksum(block, MD_VERSION_1_2);
	assert_int_equal(decode_12(block, &s, NULL), 0);
	assert_int_equal(s.logical_block_bytes, 512);
	md_format(MD_VERSION_1_2)->encode(&s, again);
	assert_memory_equal(block, again, sizeof(block));
}

static void rules_of_0_90(void **state)
{
	static const struct {
		struct change changes[3];
		int error;
		const char *words;
	} rows[] = {
		{{{0, 4, 0}}, -ENODATA, "field magic:"},
		{{{4, 4, 1}}, -ENODATA, "field major_version:"},
		{{{4, 4, 3}}, -EUCLEAN, "field major_version:"},
		{{{8, 4, 92}}, -EUCLEAN, "field minor_version:"},
		{{{40, 4, 0}}, -EUCLEAN, "field raid_disks:"},
		{{{40, 4, 28}}, -EUCLEAN, "field raid_disks:"},
		{{{260, 4, 513}}, -EUCLEAN, "field chunk_size:"},
		{{{3968, 4, 27}}, -EUCLEAN, "field this_disk:"},
		{{{32, 4, 16321}}, -EUCLEAN, "field size:"},
		{{{32, 4, 0xffffffff}}, -EUCLEAN, "field size:"},
		{{{8, 4, 91}, {188, 4, 2}}, -EUCLEAN, "field delta_disks:"},
		{{{8, 4, 91}, {196, 4, 1}}, -EUCLEAN, "field new_chunk:"},
		{{{8, 4, 91}, {188, 4, 1}, {196, 4, 4096}}, 0, ""},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint8_t block[MD_SUPER_BYTES];
		struct fault fault = {0};
		struct md_super s;
		int r;

		vector_090(block);
		for (unsigned c = 0; c < 3; c++)
			apply(block, &rows[i].changes[c]);
		golden_fix_checksum(block, MD_VERSION_0_90);
		r = md_format(MD_VERSION_0_90)->decode(block, AT_090, SECTORS, &s, &fault);
		if (r != rows[i].error || strstr(fault.text, rows[i].words) == NULL)
			fail_msg("row %zu: %d \"%s\"", i, r, fault.text);
	}
}

/* Specification 2.6: state bit 0, cp_events against events, recovery_cp. */
static void clean_or_not_in_0_90(void **state)
{
	static const struct {
		uint32_t clean, events, cp_events, recovery_cp;
		uint64_t resync;
	} rows[] = {
		{1, 5, 5, 0xffffffff, MD_CLEAN},
		{1, 5, 0, 0, MD_CLEAN},
		{0, 5, 0, 0, 0},
		{0, 5, 5, 1234, 1234},
		{0, 5, 4, 1234, 0},
		{0, 5, 5, 0, 0},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint8_t block[MD_SUPER_BYTES], again[MD_SUPER_BYTES];
		struct md_super s;

		vector_090(block);
		put_le32(block + 132, rows[i].clean);
		put_le32(block + 156, rows[i].events);
		put_le32(block + 164, rows[i].cp_events);
		put_le32(block + 172, rows[i].recovery_cp);
		golden_fix_checksum(block, MD_VERSION_0_90);
		assert_int_equal(decode_090(block, &s), 0);
		assert_int_equal(s.resync_offset, rows[i].resync);
		md_format(MD_VERSION_0_90)->encode(&s, again);
		assert_int_equal(decode_090(again, &s), 0);
		assert_int_equal(s.resync_offset, rows[i].resync);
	}
}

static void old_checksum_of_16_bits(void **state)
{
	uint8_t block[MD_SUPER_BYTES];
	struct md_super s;

	vector_090(block);
	put_le32(block + 152, 0xbad0 + 0x0300);
	assert_int_equal(decode_090(block, &s), 0);
	put_le32(block + 152, 0xbad0 + 0x0301);
	assert_int_equal(decode_090(block, &s), -EBADMSG);
}

/* disks[this_disk.number] tells the slot, not the place of the descriptor (specification 2.3). */
static void roles_of_0_90(void **state)
{
	static const struct {
		uint32_t raid_disk, disk_state;
		unsigned role;
	} rows[] = {
		{0, 6, 0},
		{1, 6, 1},
		{1, 4, 1},
		{0, 0, MD_ROLE_SPARE},
		{0, 2, MD_ROLE_SPARE},
		{0, 1, MD_ROLE_FAULTY},
		{0, 9, MD_ROLE_SPARE},
		{0, 8, MD_ROLE_SPARE},
		{2, 6, MD_ROLE_SPARE},
		{0x10001, 6, MD_ROLE_SPARE},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint8_t block[MD_SUPER_BYTES];
		struct md_super s;

		vector_090(block);
		put_le32(block + 512 + 12, rows[i].raid_disk);
		put_le32(block + 512 + 16, rows[i].disk_state);
		golden_fix_checksum(block, MD_VERSION_0_90);
		assert_int_equal(decode_090(block, &s), 0);
		assert_int_equal(md_super_role(&s), rows[i].role);
	}
}

static void roles_of_1_x(void **state)
{
	uint8_t block[MD_SUPER_BYTES];
	struct md_super s;

	vector_12(block);
	put_le32(block + 160, 1);
	golden_fix_checksum(block, MD_VERSION_1_2);
	assert_int_equal(decode_12(block, &s, NULL), 0);
	assert_int_equal(md_super_role(&s), 1);
	s.dev_number = 2;
	assert_int_equal(md_super_role(&s), MD_ROLE_SPARE);
	s.dev_number = 128; /* behind the last role, as the kernel sees it */
	s.roles[128] = 1;
	assert_int_equal(md_super_role(&s), MD_ROLE_SPARE);
	s.dev_number = UINT32_MAX;
	assert_int_equal(md_super_role(&s), MD_ROLE_SPARE);
}

static void put_12(
	struct md_super_blocks *blocks, enum md_version version, uint64_t at, uint64_t ctime)
{
	uint8_t *block = blocks->block[version];

	vector_12(block);
	put_le64(block + 64, ctime);
	put_le64(block + 144, at);
	put_le64(block + 136, 0x7000);
	put_le64(block + 80, 0x7000);
	golden_fix_checksum(block, version);
	blocks->present[version] = true;
	blocks->sector[version] = at;
}

static void put_090(struct md_super_blocks *blocks, uint32_t ctime)
{
	uint8_t *block = blocks->block[MD_VERSION_0_90];

	vector_090(block);
	put_le32(block + 24, ctime);
	golden_fix_checksum(block, MD_VERSION_0_90);
	blocks->present[MD_VERSION_0_90] = true;
	blocks->sector[MD_VERSION_0_90] = AT_090;
}

static void newest_is_chosen(void **state)
{
	static struct md_super_blocks blocks;
	struct md_super s;

	memset(&blocks, 0, sizeof(blocks));
	put_12(&blocks, MD_VERSION_1_0, SECTORS - 16, 100);
	put_12(&blocks, MD_VERSION_1_1, 0, 100);
	put_12(&blocks, MD_VERSION_1_2, 8, 100);
	assert_int_equal(md_super_choose(&blocks, SECTORS, &s, NULL), 0);
	assert_int_equal(s.version, MD_VERSION_1_0); /* the first wins a tie */
	put_12(&blocks, MD_VERSION_1_2, 8, 101);
	assert_int_equal(md_super_choose(&blocks, SECTORS, &s, NULL), 0);
	assert_int_equal(s.version, MD_VERSION_1_2);
	/* Microseconds count among 1.x, but not against 0.90. */
	put_12(&blocks, MD_VERSION_1_1, 0, UINT64_C(1) << 40 | 101);
	assert_int_equal(md_super_choose(&blocks, SECTORS, &s, NULL), 0);
	assert_int_equal(s.version, MD_VERSION_1_1);
	put_090(&blocks, 101);
	assert_int_equal(md_super_choose(&blocks, SECTORS, &s, NULL), 0);
	assert_int_equal(s.version, MD_VERSION_0_90);
	put_090(&blocks, 99);
	assert_int_equal(md_super_choose(&blocks, SECTORS, &s, NULL), 0);
	assert_int_equal(s.version, MD_VERSION_1_1);
}

static void valid_is_preferred_to_damaged(void **state)
{
	static struct md_super_blocks blocks;
	struct fault fault = {0};
	struct md_super s;

	memset(&blocks, 0, sizeof(blocks));
	assert_int_equal(md_super_choose(&blocks, SECTORS, &s, &fault), -ENODATA);
	put_12(&blocks, MD_VERSION_1_1, 0, 200);
	blocks.block[MD_VERSION_1_1][100] ^= 1;
	assert_int_equal(md_super_choose(&blocks, SECTORS, &s, &fault), -EBADMSG);
	assert_non_null(strstr(fault.text, "sb_csum"));
	assert_int_equal(s.version, MD_VERSION_1_1);
	put_12(&blocks, MD_VERSION_1_2, 8, 100);
	assert_int_equal(md_super_choose(&blocks, SECTORS, &s, &fault), 0);
	assert_int_equal(s.version, MD_VERSION_1_2);
	assert_int_equal(fault.error, 0);
	/* Whichever was found first: here the valid one, and the damaged one is newer. */
	put_12(&blocks, MD_VERSION_1_1, 0, 100);
	put_12(&blocks, MD_VERSION_1_2, 8, 200);
	blocks.block[MD_VERSION_1_2][100] ^= 1;
	assert_int_equal(md_super_choose(&blocks, SECTORS, &s, &fault), 0);
	assert_int_equal(s.version, MD_VERSION_1_1);
	assert_int_equal(fault.error, 0);
}

/* A partition's superblock seen through the whole disk is nobody's. */
static void misplaced_is_none(void **state)
{
	static struct md_super_blocks blocks;
	struct md_super s;

	memset(&blocks, 0, sizeof(blocks));
	put_12(&blocks, MD_VERSION_1_0, SECTORS - 16, 100);
	blocks.sector[MD_VERSION_1_0] = SECTORS + 2048 - 16;
	assert_int_equal(md_super_choose(&blocks, SECTORS + 2048, &s, NULL), -ENODATA);
}

static void format_names(void **state)
{
	assert_int_equal(md_format_by_name("1")->version, MD_VERSION_1_2);
	assert_int_equal(md_format_by_name("default")->version, MD_VERSION_1_2);
	assert_int_equal(md_format_by_name("0")->version, MD_VERSION_0_90);
	assert_null(md_format_by_name("1.3"));
	assert_null(md_format_by_name(""));
	for (unsigned v = 0; v < MD_VERSIONS; v++) {
		const struct md_format *format = md_format((enum md_version)v);

		assert_int_equal(format->version, v);
		assert_ptr_equal(md_format_by_name(format->name), format);
	}
	assert_null(md_format((enum md_version)MD_VERSIONS));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(vector_of_1_2),
		cmocka_unit_test(vector_of_0_90),
		cmocka_unit_test(locations),
		cmocka_unit_test(rules_of_1_x),
		cmocka_unit_test(data_of_1_0_ends_before_it),
		cmocka_unit_test(new_offset_does_not_wrap),
		cmocka_unit_test(logical_block_size_both_forms),
		cmocka_unit_test(rules_of_0_90),
		cmocka_unit_test(clean_or_not_in_0_90),
		cmocka_unit_test(old_checksum_of_16_bits),
		cmocka_unit_test(roles_of_0_90),
		cmocka_unit_test(roles_of_1_x),
		cmocka_unit_test(newest_is_chosen),
		cmocka_unit_test(valid_is_preferred_to_damaged),
		cmocka_unit_test(misplaced_is_none),
		cmocka_unit_test(format_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
