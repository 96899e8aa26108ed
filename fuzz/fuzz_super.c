/* SPDX-License-Identifier: MIT */
/*
 * Fuzz target: superblocks of any content. Input: byte 0 says which (see enum), bytes 1 to 8 the
 * device's sectors, little-endian, the rest the superblock, filled up with zeros.
 *
 * What is checked besides memory: what was accepted can be encoded, and is decoded to the same
 * again; numbers that others rely on are within their limits; a refusal has words.
 */
#include <stdlib.h>
#include <string.h>

#include "fuzz/fuzz.h"
#include "md/golden.h"
#include "md/super.h"
#include "util/bytes.h"

enum {
	INPUT_VERSION = 0x3,
	INPUT_CHECKSUM = 0x4,    /* put the right checksum in: get past it */
	INPUT_POSITION = 0x8,    /* put the right super_offset in */
	INPUT_EVERYWHERE = 0x10, /* choose among four copies */
};

#define INPUT_HEAD 9

/* A broken promise is a crash, for the fuzz engine to see. */
static void must(bool holds)
{
	if (!holds)
		abort();
}

static void check_accepted(const struct md_super *super)
{
	unsigned role = md_super_role(super);
	uint64_t end = super->data_offset + super->data_sectors;

	must(super->role_count <= MD_ROLES_MAX);
	must(super->raid_disks >= 1 && super->raid_disks <= MD_ROLES_MAX);
	must(end >= super->data_offset);
	must(super->super_offset >= end || super->super_offset < super->data_offset ||
		super->version == MD_VERSION_0_90);
	must(role <= MD_ROLE_SLOT_MAX || role >= MD_ROLE_JOURNAL);
	must((super->feature_map & ~(uint32_t)MD_FEATURE_ALL) == 0);
}

static void check_round_trip(const struct md_super *super, uint64_t at, uint64_t sectors)
{
	const struct md_format *format = md_format(super->version);
	uint8_t first[MD_SUPER_BYTES], second[MD_SUPER_BYTES];
	struct md_super again;

	format->encode(super, first);
	must(format->decode(first, at, sectors, &again, NULL) == 0);
	format->encode(&again, second);
	must(memcmp(first, second, sizeof(first)) == 0);
}

static void check_texts(const struct md_super *super)
{
	char uuid[MD_UUID_TEXT], layout[32], name[MD_NAME_MAX + 1];
	uint8_t parsed[16];

	must(md_uuid_parse(md_uuid_format(super->set_uuid, uuid), parsed) == 0);
	must(memcmp(parsed, super->set_uuid, sizeof(parsed)) == 0);
	must(strlen(md_level_name(super->level)) > 0);
	(void)md_layout_name(super->level, super->layout, layout);
	md_name_compose("host", md_name_bare(super->name), name);
	must(strlen(name) < MD_NAME_MAX);
}

static void decode_one(
	const struct md_format *format, const uint8_t *block, uint64_t at, uint64_t sectors)
{
	struct md_super super;
	struct fault fault = {0};
	int r = format->decode(block, at, sectors, &super, &fault);

	must(r <= 0 && fault.error == r);
	must(r == 0 || strstr(fault.text, "field ") != NULL);
	if (r < 0)
		return;
	check_accepted(&super);
	check_round_trip(&super, at, sectors);
	check_texts(&super);
}

static void choose(const uint8_t *block, uint64_t sectors)
{
	static struct md_super_blocks blocks; /* 16 KiB */
	struct md_super super;
	struct fault fault = {0};
	int r;

	for (unsigned v = 0; v < MD_VERSIONS; v++) {
		memcpy(blocks.block[v], block, MD_SUPER_BYTES);
		blocks.present[v] = md_format((enum md_version)v)
					    ->location(sectors, &blocks.sector[v]) == 0;
	}
	r = md_super_choose(&blocks, sectors, &super, &fault);
	must(r <= 0 && fault.error == r);
	if (r == 0)
		check_accepted(&super);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t block[MD_SUPER_BYTES] = {0};
	const struct md_format *format;
	uint64_t sectors, at;

	if (size < INPUT_HEAD || size - INPUT_HEAD > MD_SUPER_BYTES)
		return 0;
	format = md_format((enum md_version)(data[0] & INPUT_VERSION));
	sectors = get_le64(data + 1);
	memcpy(block, data + INPUT_HEAD, size - INPUT_HEAD);
	if (format->location(sectors, &at) < 0)
		return 0;
	if ((data[0] & INPUT_POSITION) != 0 && format->version != MD_VERSION_0_90)
		put_le64(block + 144, at);
	if ((data[0] & INPUT_CHECKSUM) != 0)
		golden_fix_checksum(block, format->version);
	if ((data[0] & INPUT_EVERYWHERE) != 0)
		choose(block, sectors);
	decode_one(format, block, at, sectors);
	return 0;
}
