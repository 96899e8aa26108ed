/* SPDX-License-Identifier: MIT */
/* Every superblock of tests/golden/supers.txt: decoded, compared with mdadm, encoded, damaged. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "md/golden.h"
#include "util/bytes.h"
#include "util/cleanup.h"

static const char *golden_path;

static void each_golden(void (*check)(const struct golden *golden))
{
	_cleanup_fclose_ FILE *file = fopen(golden_path, "re");
	struct golden golden;
	unsigned count = 0;

	assert_non_null(file);
	for (; golden_next(file, &golden); count++)
		check(&golden);
	assert_true(count >= 100); /* the file is there in full */
}

static int decode(const struct golden *golden, const uint8_t *block, struct md_super *super,
	struct fault *fault)
{
	return md_format(golden_version(golden))
		->decode(block, golden->at, golden->sectors, super, fault);
}

static void decode_good(const struct golden *golden, struct md_super *super)
{
	struct fault fault = {0};

	if (decode(golden, golden->block, super, &fault) != 0)
		fail_msg("%s: %s", golden->name, fault.text);
}

/* mdadm's words begin with @text, and it ends where one of their words does. */
static void expect_text(const struct golden *golden, const char *key, const char *text)
{
	const char *say = golden_say(golden, key);
	size_t length = strlen(text);

	if (say == NULL || strncmp(say, text, length) != 0 || (say[length] & ~' ') != 0)
		fail_msg("%s: %s: mdadm says \"%s\", decoded \"%s\"", golden->name, key,
			say != NULL ? say : "(nothing)", text);
}

static void expect_number(const struct golden *golden, const char *key, const char *before,
	uint64_t number, const char *after)
{
	char text[64];

	(void)snprintf(text, sizeof(text), "%s%llu%s", before, (unsigned long long)number, after);
	expect_text(golden, key, text);
}

static void expect_hex(const struct golden *golden, const char *key, const char *before,
	uint32_t number, const char *after)
{
	char text[64];

	(void)snprintf(text, sizeof(text), "%s%x%s", before, number, after);
	expect_text(golden, key, text);
}

static void compare_common(const struct golden *golden, const struct md_super *s)
{
	char text[64], *end;
	const char *say;

	expect_text(golden, s->version == MD_VERSION_0_90 ? "UUID" : "Array UUID",
		md_uuid_format(s->set_uuid, text));
	expect_text(golden, "Raid Level", md_level_name(s->level));
	say = golden_say(golden, "Raid Devices");
	assert_non_null(say);
	assert_int_equal(strtoul(say, &end, 10), s->raid_disks);
	say = golden_say(golden, "Events");
	assert_non_null(say);
	assert_int_equal(strtoul(say, &end, 10), s->events);
	expect_hex(golden, "Checksum", "", s->checksum, " - correct");
	assert_int_equal(s->checksum, s->checksum_expected);
	expect_text(golden, "State", s->resync_offset == MD_CLEAN ? "clean" : "active");
	if (golden_say(golden, "Chunk Size") != NULL)
		expect_number(golden, "Chunk Size", "", s->chunk_sectors / 2, "K");
	say = golden_say(golden, "Layout");
	if (say != NULL && strcmp(say, "-unknown-") != 0)
		expect_text(golden, "Layout", md_layout_name(s->level, s->layout, text));
}

static void compare_role(const struct golden *golden, const struct md_super *s)
{
	unsigned role = md_super_role(s);

	if (role == MD_ROLE_SPARE)
		expect_text(golden, "Device Role", "spare");
	else if (role == MD_ROLE_JOURNAL)
		expect_text(golden, "Device Role", "Journal");
	else
		expect_number(golden, "Device Role", "Active device ", role, "");
}

static void compare_1(const struct golden *golden, const struct md_super *s)
{
	char text[64];

	expect_hex(golden, "Feature Map", "0x", s->feature_map, "");
	expect_text(golden, "Name", s->name);
	expect_number(golden, "Avail Dev Size", "", s->data_sectors, " sectors");
	if (golden_say(golden, "Used Dev Size") != NULL)
		expect_number(golden, "Used Dev Size", "", s->size_sectors, " sectors");
	if (golden_say(golden, "Data Offset") != NULL)
		expect_number(golden, "Data Offset", "", s->data_offset, " sectors");
	else
		assert_int_equal(s->data_offset, 0);
	expect_number(golden, "Super Offset", "", s->super_offset, " sectors");
	expect_text(golden, "Device UUID", md_uuid_format(s->device_uuid, text));
	if ((s->feature_map & MD_FEATURE_BITMAP) != 0) {
		(void)snprintf(text, sizeof(text), "%d sectors", s->bitmap_offset);
		expect_text(golden, "Internal Bitmap", text);
	}
	if ((s->feature_map & (MD_FEATURE_PPL | MD_FEATURE_MULTIPLE_PPL)) != 0) {
		(void)snprintf(text, sizeof(text), "%u sectors at offset %d sectors",
			s->ppl_sectors, s->ppl_offset);
		expect_text(golden, "PPL", text);
	}
	if ((s->feature_map & MD_FEATURE_RECOVERY_OFFSET) != 0)
		expect_number(golden, "Recovery Offset", "", s->recovery_offset, " sectors");
	if (golden_say(golden, "Bad Block Log") != NULL) {
		(void)snprintf(text, sizeof(text), "%u entries available at offset %d sectors",
			s->bblog_sectors * 64u, s->bblog_offset);
		expect_text(golden, "Bad Block Log", text);
	}
	compare_role(golden, s);
}

static void compare_090(const struct golden *golden, const struct md_super *s)
{
	const struct md_super_090 *v = &s->v090;

	assert_false(v->foreign_order);
	expect_number(golden, "Total Devices", "", v->nr_disks, "");
	expect_number(golden, "Preferred Minor", "", v->md_minor, "");
	expect_number(golden, "Active Devices", "", v->active_disks, "");
	expect_number(golden, "Working Devices", "", v->working_disks, "");
	expect_number(golden, "Failed Devices", "", v->failed_disks, "");
	expect_number(golden, "Spare Devices", "", v->spare_disks, "");
	if (golden_say(golden, "Used Dev Size") != NULL)
		expect_number(golden, "Used Dev Size", "", s->size_sectors / 2, "");
}

static void compare(const struct golden *golden)
{
	struct md_super super;

	decode_good(golden, &super);
	compare_common(golden, &super);
	if (super.version == MD_VERSION_0_90)
		compare_090(golden, &super);
	else
		compare_1(golden, &super);
}

static void decoded_as_mdadm_says(void **state)
{
	each_golden(compare);
}

/*
 * Compares what the checksum covers: of 1.x, md writes up to the last role (to the sector's end,
 * which is the same with 128 roles). What the device held behind that stays there; we put ff bytes.
 */
static void same_bytes(
	const struct golden *golden, const uint8_t *want, const uint8_t *have, const char *what)
{
	unsigned covered = golden_covered(want, golden_version(golden));

	for (unsigned i = 0; i < covered; i++)
		if (want[i] != have[i])
			fail_msg("%s: %s: byte %u is %02x, must be %02x", golden->name, what, i,
				have[i], want[i]);
}

static void encode_again(const struct golden *golden)
{
	uint8_t block[MD_SUPER_BYTES];
	struct md_super super;

	decode_good(golden, &super);
	memset(block, 0xa5, sizeof(block));
	md_format(super.version)->encode(&super, block);
	same_bytes(golden, golden->block, block, "encoded again");
	for (unsigned i = golden_covered(block, super.version); i < MD_SUPER_BYTES; i++)
		assert_int_equal(block[i], 0xff);
}

static void encoded_to_the_same_bytes(void **state)
{
	each_golden(encode_again);
}

static void swap_words(uint8_t *block, unsigned a, unsigned b)
{
	uint32_t first = get_le32(block + 4 * a);

	put_le32(block + 4 * a, get_le32(block + 4 * b));
	put_le32(block + 4 * b, first);
}

/* As a host of the other byte order would have written it: nothing but the order changes. */
static void other_order(const struct golden *golden)
{
	uint8_t swapped[MD_SUPER_BYTES], block[MD_SUPER_BYTES];
	struct md_super own, foreign;

	if (golden_version(golden) != MD_VERSION_0_90)
		return;
	for (unsigned i = 0; i < MD_SUPER_BYTES; i += 4)
		put_be32(swapped + i, get_le32(golden->block + i));
	swap_words(swapped, 39, 40);
	swap_words(swapped, 41, 42);
	decode_good(golden, &own);
	assert_int_equal(decode(golden, swapped, &foreign, NULL), 0);
	assert_true(foreign.v090.foreign_order);
	md_format(MD_VERSION_0_90)->encode(&foreign, block);
	same_bytes(golden, swapped, block, "foreign order");
	foreign.v090.foreign_order = false;
	assert_memory_equal(&own, &foreign, sizeof(own));
}

static void either_byte_order(void **state)
{
	each_golden(other_order);
}

static void damage_each_byte(const struct golden *golden)
{
	static const uint8_t flips[] = {0x01, 0x80, 0xff};
	unsigned covered = golden_covered(golden->block, golden_version(golden));
	uint8_t block[MD_SUPER_BYTES];
	struct md_super super;

	memcpy(block, golden->block, sizeof(block));
	for (unsigned i = 0; i < covered; i++)
		for (unsigned f = 0; f < sizeof(flips); f++) {
			block[i] ^= flips[f];
			if (decode(golden, block, &super, NULL) == 0)
				fail_msg("%s: byte %u ^ %02x was accepted", golden->name, i,
					flips[f]);
			block[i] ^= flips[f];
		}
}

static void damaged_byte_is_refused(void **state)
{
	each_golden(damage_each_byte);
}

/* A field, and the fields that a refusal may name besides: those that it stands in relation to. */
struct field {
	const char *name;
	unsigned byte, bytes;
	const char *also[4];
};

static const struct field fields_1[] = {
	{"magic", 0, 4, {0}},
	{"major_version", 4, 4, {0}},
	{"feature_map", 8, 4, {"new_offset", "delta_disks", "bblog", 0}},
	{"pad0", 12, 4, {0}},
	{"set_uuid", 16, 8, {0}},
	{"ctime", 64, 8, {0}},
	{"level", 72, 4, {"feature_map", 0}},
	{"layout", 76, 4, {0}},
	{"size", 80, 8, {0}},
	{"chunksize", 88, 4, {0}},
	{"raid_disks", 92, 4, {0}},
	{"bitmap_offset", 96, 4, {0}},
	{"new_level", 100, 4, {0}},
	{"reshape_position", 104, 8, {0}},
	{"delta_disks", 112, 4, {0}},
	{"new_layout", 116, 4, {0}},
	{"new_chunk", 120, 4, {0}},
	{"new_offset", 124, 4, {0}},
	{"data_offset", 128, 8, {"data_size", 0}},
	{"data_size", 136, 8, {"size", 0}},
	{"super_offset", 144, 8, {0}},
	{"recovery_offset", 152, 8, {0}},
	{"dev_number", 160, 4, {"size", 0}},
	{"cnt_corrected_read", 164, 4, {0}},
	{"device_uuid", 168, 8, {0}},
	{"devflags", 184, 1, {0}},
	{"bblog_shift", 185, 1, {0}},
	{"bblog_size", 186, 2, {0}},
	{"bblog_offset", 188, 4, {0}},
	{"utime", 192, 8, {0}},
	{"events", 200, 8, {0}},
	{"resync_offset", 208, 8, {0}},
	{"max_dev", 220, 4, {"data_offset", 0}},
	{"logical_block_size", 224, 4, {"data_offset", 0}},
	{"pad3", 228, 4, {0}},
	{"pad3", 252, 4, {0}},
	{"dev_roles", 256, 2, {"feature_map", 0}},
	{"dev_roles", 510, 2, {0}},
};

#define DISK(i) (512 + 128 * (i))

/*
 * Not here: the words that nobody reads (gvalid_words, patch_version, not_persistent, root_pv,
 * root_block, reserved ones), which are written as zeros; the reshape words, void in minor 90; and
 * state, events, cp_events and recovery_cp, which say one thing together (super_test.c).
 */
static const struct field fields_090[] = {
	{"magic", 0, 4, {0}},
	{"major_version", 4, 4, {0}},
	{"minor_version", 8, 4, {0}},
	{"set_uuid0", 20, 4, {0}},
	{"ctime", 24, 4, {0}},
	{"level", 28, 4, {"size", 0}},
	{"size", 32, 4, {0}},
	{"nr_disks", 36, 4, {0}},
	{"raid_disks", 40, 4, {0}},
	{"md_minor", 44, 4, {0}},
	{"set_uuid3", 60, 4, {0}},
	{"utime", 128, 4, {0}},
	{"active_disks", 136, 4, {0}},
	{"working_disks", 140, 4, {0}},
	{"failed_disks", 144, 4, {0}},
	{"spare_disks", 148, 4, {0}},
	{"layout", 256, 4, {0}},
	{"chunk_size", 260, 4, {0}},
	{"number", DISK(0), 4, {0}},
	{"major", DISK(1) + 4, 4, {0}},
	{"minor", DISK(2) + 8, 4, {0}},
	{"raid_disk", DISK(0) + 12, 4, {0}},
	{"state", DISK(26) + 16, 4, {0}},
	{"this_disk", 3968, 4, {0}},
	{"this_disk.state", 3984, 4, {0}},
};

static bool is_named(const struct field *field, const char *text)
{
	char words[64];

	(void)snprintf(words, sizeof(words), "field %s:", field->name);
	if (strstr(text, words) != NULL)
		return true;
	for (unsigned i = 0; i < 4 && field->also[i] != NULL; i++) {
		(void)snprintf(words, sizeof(words), "field %s", field->also[i]);
		if (strstr(text, words) != NULL)
			return true;
	}
	return false;
}

/* With a right checksum: refused by name, or decoded to what stands there. */
static void check_changed(
	const struct golden *golden, const struct field *field, const uint8_t *block)
{
	uint8_t again[MD_SUPER_BYTES];
	struct fault fault = {0};
	struct md_super super;
	int r = decode(golden, block, &super, &fault);

	if (r < 0 && !is_named(field, fault.text))
		fail_msg(
			"%s: changed %s: refused as \"%s\"", golden->name, field->name, fault.text);
	if (r < 0)
		return;
	/* Encoding gives back the changed bytes, so decoding must have seen them. */
	md_format(super.version)->encode(&super, again);
	same_bytes(golden, block, again, field->name);
}

static void change_field(const struct golden *golden, const struct field *field)
{
	enum md_version version = golden_version(golden);
	uint8_t block[MD_SUPER_BYTES];

	for (unsigned bit = 0; bit < 8 * field->bytes + 2; bit++) {
		memcpy(block, golden->block, sizeof(block));
		if (bit < 8 * field->bytes)
			block[field->byte + bit / 8] ^= (uint8_t)(1u << bit % 8);
		else
			memset(block + field->byte, bit % 2 != 0 ? 0xff : 0, field->bytes);
		golden_fix_checksum(block, version);
		check_changed(golden, field, block);
	}
}

static void change_each_field(const struct golden *golden)
{
	bool v1 = golden_version(golden) != MD_VERSION_0_90;
	const struct field *fields = v1 ? fields_1 : fields_090;
	size_t count = v1 ? sizeof(fields_1) / sizeof(fields_1[0])
			  : sizeof(fields_090) / sizeof(fields_090[0]);

	for (size_t i = 0; i < count; i++)
		change_field(golden, &fields[i]);
}

static void changed_field_is_refused_or_seen(void **state)
{
	each_golden(change_each_field);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(decoded_as_mdadm_says),
		cmocka_unit_test(encoded_to_the_same_bytes),
		cmocka_unit_test(either_byte_order),
		cmocka_unit_test(damaged_byte_is_refused),
		cmocka_unit_test(changed_field_is_refused_or_seen),
	};

	if (argc != 2)
		return 2;
	golden_path = argv[1];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
