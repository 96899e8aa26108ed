/* SPDX-License-Identifier: MIT */
#ifndef STRAKE_MD_BADBLOCKS_H
#define STRAKE_MD_BADBLOCKS_H

/*
 * The bad-block log of a 1.x member (specification 4): ranges of the device that must not be read.
 * All sectors here are device sectors, the data offset included.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "md/super.h"
#include "util/fault.h"

#define MD_BADBLOCKS_MAX 512u /* entries that the largest log (8 sectors) can hold */
#define MD_BADBLOCKS_LOG_BYTES 4096u
#define MD_BADBLOCKS_ENTRY_MAX 512u /* units in one entry, as the kernel writes them */

struct md_bad_range {
	uint64_t start_sector, length_sectors;
};

/* Sorted by start; ranges neither overlap nor touch. No memory of its own. */
struct md_badblocks {
	unsigned entries_max; /* of the member's log; 0: it has none */
	unsigned shift;       /* log2 of sectors in a unit; ranges are rounded out to whole units */
	unsigned count;
	struct md_bad_range ranges[MD_BADBLOCKS_MAX];
};

/* An empty table that is as large as the log of the member @super. */
void md_badblocks_init(const struct md_super *super, struct md_badblocks *ret);

/* Where the log stands on the device. -ENODATA the member has none. */
int md_badblocks_location(
	const struct md_super *super, uint64_t *ret_device_sector, uint64_t *ret_sectors);

/*
 * Decode the log of the member @super; @log holds bblog_sectors sectors of it. To be called only
 * with MD_FEATURE_BAD_BLOCKS: without it the log's content means nothing. Entries in any order, and
 * overlapping ones, are accepted. -EUCLEAN an entry is empty or ends beyond what sectors can count.
 */
int md_badblocks_decode(const struct md_super *super, const void *log, struct md_badblocks *ret,
	struct fault *fault);

/* The inverse: fills bblog_sectors sectors (entries_max entries) of @log. */
void md_badblocks_encode(const struct md_badblocks *table, void *log);

/* Entries that the table takes in the log (ranges longer than MD_BADBLOCKS_ENTRY_MAX are split). */
unsigned md_badblocks_entries(const struct md_badblocks *table);

/*
 * Add or take away @length_sectors (> 0) from @start_sector on. add: -ENOSPC if the log cannot
 * hold it (the table is unchanged; the member has to be failed). remove: only whole units become
 * good; -ENOSPC if a range would have to be split and the log is full (unchanged, still bad).
 */
int md_badblocks_add(struct md_badblocks *table, uint64_t start_sector, uint64_t length_sectors);
int md_badblocks_remove(struct md_badblocks *table, uint64_t start_sector, uint64_t length_sectors);

/* Is any sector of the range bad? @ret, unless NULL, gets the first bad part within the range. */
bool md_badblocks_overlaps(const struct md_badblocks *table, uint64_t start_sector,
	uint64_t length_sectors, struct md_bad_range *ret);

#endif
