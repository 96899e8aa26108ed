/* SPDX-License-Identifier: MIT */
/*
 * Bad-block table and log. The table keeps whole ranges; the log's entries are cut from them only
 * when it is written, so the number of entries is what has to be watched: a log that is full must
 * be known before a range is accepted, because what is not recorded would be read.
 */
#include "md/badblocks.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "util/bytes.h"
#include "util/rounding.h"

#define ENTRY_BYTES 8u
#define LENGTH_BITS 10u
#define UNITS_MAX (UINT64_C(1) << 54) /* what an entry's start can count to */
#define SHIFT_MAX 9u                  /* so that the last sector of UNITS_MAX units has a number */

void md_badblocks_init(const struct md_super *super, struct md_badblocks *ret)
{
	const bool usable = super->bblog_offset != 0 && super->bblog_shift <= SHIFT_MAX;
	const unsigned sectors = usable ? super->bblog_sectors : 0;

	ret->entries_max = sectors * (MD_SECTOR / ENTRY_BYTES);
	if (ret->entries_max > MD_BADBLOCKS_MAX)
		ret->entries_max = MD_BADBLOCKS_MAX;
	ret->shift = super->bblog_shift;
	ret->count = 0;
}

int md_badblocks_location(
	const struct md_super *super, uint64_t *ret_device_sector, uint64_t *ret_sectors)
{
	const int64_t offset = super->bblog_offset;

	if (super->bblog_sectors == 0 || offset == 0 ||
		(offset < 0 && (uint64_t)-offset > super->super_offset))
		return -ENODATA;
	*ret_device_sector = super->super_offset + (uint64_t)offset;
	*ret_sectors = super->bblog_sectors;
	return 0;
}

static uint64_t entries_of(const struct md_badblocks *table, const struct md_bad_range *range)
{
	const uint64_t units = range->length_sectors >> table->shift;

	return round_up(units, MD_BADBLOCKS_ENTRY_MAX) / MD_BADBLOCKS_ENTRY_MAX;
}

static uint64_t range_end(const struct md_bad_range *range)
{
	return range->start_sector + range->length_sectors;
}

unsigned md_badblocks_entries(const struct md_badblocks *table)
{
	uint64_t entries = 0;

	for (unsigned i = 0; i < table->count; i++)
		entries += entries_of(table, &table->ranges[i]);
	return (unsigned)entries;
}

/* Put @count ranges in the place of ranges @first … @end - 1, if the log can hold the result. */
static int splice(struct md_badblocks *table, unsigned first, unsigned end,
	const struct md_bad_range *with, unsigned count)
{
	uint64_t entries = md_badblocks_entries(table);

	assert(first <= end && end <= table->count);
	for (unsigned i = first; i < end; i++)
		entries -= entries_of(table, &table->ranges[i]);
	for (unsigned i = 0; i < count; i++)
		entries += entries_of(table, &with[i]);
	if (entries > table->entries_max)
		return -ENOSPC;
	memmove(&table->ranges[first + count], &table->ranges[end],
		(table->count - end) * sizeof(*with));
	memcpy(&table->ranges[first], with, count * sizeof(*with));
	table->count = table->count - (end - first) + count;
	return 0;
}

/* The first range that ends behind @sector. */
static unsigned find(const struct md_badblocks *table, uint64_t sector)
{
	unsigned low = 0, high = table->count;

	while (low < high) {
		const unsigned middle = low + (high - low) / 2;

		if (range_end(&table->ranges[middle]) > sector)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

/* Can the log say the sectors of this range at all? */
static bool countable(const struct md_badblocks *table, uint64_t start, uint64_t length)
{
	uint64_t end;

	return !add_overflows(start, length, &end) && end <= UNITS_MAX << table->shift;
}

/* Ranges that touch the new one become one with it. */
static int add(struct md_badblocks *table, uint64_t start, uint64_t end)
{
	unsigned first = find(table, start > 0 ? start - 1 : 0), last = first;

	for (; last < table->count && table->ranges[last].start_sector <= end; last++) {
		start = min_u64(start, table->ranges[last].start_sector);
		end = max_u64(end, range_end(&table->ranges[last]));
	}
	return splice(table, first, last, &(struct md_bad_range){start, end - start}, 1);
}

int md_badblocks_add(struct md_badblocks *table, uint64_t start_sector, uint64_t length_sectors)
{
	const uint64_t unit = UINT64_C(1) << table->shift;

	assert(length_sectors > 0);
	if (table->entries_max == 0 || !countable(table, start_sector, length_sectors))
		return -ENOSPC;
	return add(table, round_down(start_sector, unit),
		round_up(start_sector + length_sectors, unit));
}

/* What is left of the ranges at both ends of [@start, @end). */
static int cut(struct md_badblocks *table, uint64_t start, uint64_t end)
{
	const unsigned first = find(table, start);
	struct md_bad_range rest[2];
	unsigned last = first, count = 0;

	while (last < table->count && table->ranges[last].start_sector < end)
		last++;
	if (first == last)
		return 0;
	if (table->ranges[first].start_sector < start)
		rest[count++] = (struct md_bad_range){table->ranges[first].start_sector,
			start - table->ranges[first].start_sector};
	if (range_end(&table->ranges[last - 1]) > end)
		rest[count++] = (struct md_bad_range){
			end, range_end(&table->ranges[last - 1]) - end};
	return splice(table, first, last, rest, count);
}

int md_badblocks_remove(struct md_badblocks *table, uint64_t start_sector, uint64_t length_sectors)
{
	const uint64_t unit = UINT64_C(1) << table->shift;
	uint64_t start, end;

	assert(length_sectors > 0);
	if (table->count == 0 || !countable(table, start_sector, length_sectors))
		return 0; /* nothing that is so far out can have been recorded */
	start = round_up(start_sector, unit);
	end = round_down(start_sector + length_sectors, unit);
	return start < end ? cut(table, start, end) : 0;
}

bool md_badblocks_overlaps(const struct md_badblocks *table, uint64_t start_sector,
	uint64_t length_sectors, struct md_bad_range *ret)
{
	const unsigned i = find(table, start_sector);
	uint64_t end, first;

	if (add_overflows(start_sector, length_sectors, &end))
		end = UINT64_MAX;
	if (i == table->count || table->ranges[i].start_sector >= end)
		return false;
	first = max_u64(start_sector, table->ranges[i].start_sector);
	if (ret != NULL)
		*ret = (struct md_bad_range){
			first, min_u64(end, range_end(&table->ranges[i])) - first};
	return true;
}

static int entry_fault(unsigned index, uint64_t entry, const char *why, struct fault *fault)
{
	return fault_set(fault, -EUCLEAN,
		"bad-block log: entry %u (0x%016" PRIx64 ") %s: the log is damaged", index, entry,
		why);
}

static int decode_entry(
	struct md_badblocks *table, unsigned index, uint64_t entry, struct fault *fault)
{
	const uint64_t units = entry & ((1u << LENGTH_BITS) - 1);
	const uint64_t start = entry >> LENGTH_BITS;

	if (units == 0)
		return entry_fault(index, entry, "is empty", fault);
	if (start + units > UNITS_MAX)
		return entry_fault(index, entry, "ends beyond the last sector", fault);
	if (add(table, start << table->shift, (start + units) << table->shift) < 0)
		return entry_fault(index, entry, "is more than the log can hold", fault);
	return 0;
}

int md_badblocks_decode(const struct md_super *super, const void *log, struct md_badblocks *ret,
	struct fault *fault)
{
	const uint8_t *bytes = log;
	int r = 0;

	md_badblocks_init(super, ret);
	if (ret->entries_max == 0)
		return fault_set(fault, -EUCLEAN,
			"bad-block log: %u sectors at offset %d in units of 2^%u sectors cannot be "
			"used",
			super->bblog_sectors, super->bblog_offset, super->bblog_shift);
	for (unsigned i = 0; r == 0 && i < ret->entries_max; i++) {
		const uint64_t entry = get_le64(bytes + (size_t)i * ENTRY_BYTES);

		if (entry == UINT64_MAX)
			break;
		r = decode_entry(ret, i, entry, fault);
	}
	return r;
}

void md_badblocks_encode(const struct md_badblocks *table, void *log)
{
	uint8_t *next = log;

	assert(md_badblocks_entries(table) <= table->entries_max);
	memset(next, 0xff, (size_t)table->entries_max * ENTRY_BYTES);
	for (unsigned i = 0; i < table->count; i++) {
		uint64_t unit = table->ranges[i].start_sector >> table->shift;
		uint64_t left = table->ranges[i].length_sectors >> table->shift;

		for (; left > 0; next += ENTRY_BYTES) {
			const uint64_t units = min_u64(left, MD_BADBLOCKS_ENTRY_MAX);

			put_le64(next, unit << LENGTH_BITS | units);
			unit += units;
			left -= units;
		}
	}
}
