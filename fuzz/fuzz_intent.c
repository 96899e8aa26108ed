/* SPDX-License-Identifier: MIT */
/*
 * Fuzz target: write-intent bitmaps and bad-block logs of any content. Input: byte 0 chooses (bit
 * 0: a bitmap or a log; bits 1 to 3: the array it is said to belong to), the rest is the area,
 * filled up with zeros.
 *
 * What is checked besides memory: what was accepted can be encoded, and is decoded to the same
 * again; every bit that the header speaks of lies within the room of the array; ranges are sorted,
 * apart and where decode found them; a refusal has words.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz/fuzz.h"
#include "md/badblocks.h"
#include "md/bitmap.h"

#define AREA_BYTES 8192u

static void must(bool holds)
{
	if (!holds)
		abort();
}

/* An array that the area could belong to: its level and size decide what a bitmap has to cover. */
static void make_super(unsigned choice, struct md_super *ret)
{
	memset(ret, 0, sizeof(*ret));
	ret->version = choice & 1 ? MD_VERSION_1_0 : MD_VERSION_1_2;
	ret->feature_map = MD_FEATURE_BITMAP | MD_FEATURE_BAD_BLOCKS;
	ret->level = choice & 2 ? 10 : 5;
	ret->layout = choice & 2 ? 0x102 : 2;
	ret->chunk_sectors = 128;
	ret->raid_disks = 4;
	ret->size_sectors = 1u << 20;
	ret->data_offset = ret->version == MD_VERSION_1_2 ? 2048 : 0;
	ret->data_sectors = ret->size_sectors;
	ret->super_offset = ret->version == MD_VERSION_1_2 ? 8 : (1u << 20) + 64;
	ret->bitmap_offset = ret->version == MD_VERSION_1_2 ? 8 : -24;
	ret->bblog_offset = ret->version == MD_VERSION_1_2 ? 24 : -8;
	ret->bblog_sectors = 8;
	ret->bblog_shift = choice & 4 ? 3 : 0;
	ret->events = 20;
}

static void check_bits(const struct md_bitmap *bitmap, const uint8_t *area, uint64_t room_sectors)
{
	const uint8_t *bits = area + MD_BITMAP_HEADER_BYTES;
	uint64_t count = md_bitmap_bits(bitmap), dirty = 0;

	must(md_bitmap_bytes(count) >= MD_BITMAP_HEADER_BYTES + count / 8);
	must(md_bitmap_bytes(count) <= room_sectors * MD_SECTOR);
	if (md_bitmap_bytes(count) > AREA_BYTES)
		return;
	for (uint64_t bit = 0; bit < count; bit++)
		dirty += md_bitmap_get(bitmap, bits, bit);
	must(dirty == md_bitmap_dirty(bitmap, bits));
}

static void try_bitmap(const struct md_super *super, const uint8_t *area)
{
	uint8_t block[MD_BITMAP_HEADER_BYTES];
	struct md_bitmap bitmap, again;
	struct fault fault = {0};
	uint64_t sector, room_sectors;
	int r = md_bitmap_decode(area, &bitmap, &fault);

	must(r <= 0 && (r == 0 || fault.text[0] != '\0'));
	if (r < 0)
		return;
	md_bitmap_encode(&bitmap, block);
	must(md_bitmap_decode(block, &again, NULL) == 0);
	must(again.sync_size_sectors == bitmap.sync_size_sectors &&
		again.chunk_bytes == bitmap.chunk_bytes && again.events == bitmap.events);
	must(md_bitmap_location(super, &sector, &room_sectors, NULL) == 0);
	fault = (struct fault){0};
	r = md_bitmap_check(&bitmap, super, &fault);
	must(r == 0 || r == -ESTALE || r == -EUCLEAN);
	must(r == 0 || fault.text[0] != '\0');
	/* As the kernel and the engine do: it is the array that says how much there is to cover. */
	bitmap.sync_size_sectors = md_bitmap_sync_sectors(super);
	if (r != -EUCLEAN)
		check_bits(&bitmap, area, room_sectors);
}

static void check_ranges(const struct md_badblocks *table)
{
	must(table->count <= MD_BADBLOCKS_MAX && md_badblocks_entries(table) <= table->entries_max);
	for (unsigned i = 0; i < table->count; i++) {
		const struct md_bad_range *range = &table->ranges[i];
		struct md_bad_range found;

		must(range->length_sectors > 0);
		must(range->start_sector + range->length_sectors > range->start_sector);
		must(i == 0 ||
			range[-1].start_sector + range[-1].length_sectors < range->start_sector);
		must(md_badblocks_overlaps(table, range->start_sector, 1, &found));
	}
}

static void try_badblocks(const struct md_super *super, const uint8_t *area)
{
	static struct md_badblocks table, again;
	uint8_t log[MD_BADBLOCKS_LOG_BYTES];
	struct fault fault = {0};
	int r = md_badblocks_decode(super, area, &table, &fault);

	must(r <= 0 && (r == 0 || fault.text[0] != '\0'));
	if (r < 0)
		return;
	check_ranges(&table);
	md_badblocks_encode(&table, log);
	must(md_badblocks_decode(super, log, &again, NULL) == 0);
	must(again.count == table.count &&
		memcmp(again.ranges, table.ranges, table.count * sizeof(table.ranges[0])) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t area[AREA_BYTES];
	static struct md_super super;
	size_t length;

	if (size == 0)
		return 0;
	length = size - 1 < sizeof(area) ? size - 1 : sizeof(area);
	memset(area, 0, sizeof(area));
	memcpy(area, data + 1, length);
	make_super(data[0] >> 1 & 7, &super);
	if ((data[0] & 1) != 0)
		try_badblocks(&super, area);
	else
		try_bitmap(&super, area);
	return 0;
}
