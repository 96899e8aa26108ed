/* SPDX-License-Identifier: MIT */
#ifndef STRAKE_ENGINE_BADBLOCKS_H
#define STRAKE_ENGINE_BADBLOCKS_H

/*
 * Bad blocks of members (specification 4): ranges that must not be read, because the member does
 * not hold the array's bytes there. Offsets are bytes of the member's data, the data offset not
 * included; lengths are bytes; both are multiples of 512.
 */

#include <errno.h>

#include "engine/internal.h"

/* Is any byte of the range bad? Then a read of it counts as failed on this member. */
bool badblocks_overlap(
	const struct engine *engine, unsigned device, uint64_t data_offset, uint64_t length);

/* How many ranges its log has. */
unsigned badblocks_count(const struct engine *engine, unsigned device);

/*
 * A range of @device could not be made right. 0: it is in the member's log, and a request that ends
 * now waits in work_end() until that is durable. -ENOSPC (the log is full), -EOPNOTSUPP (the member
 * has no log): nothing is noted; the caller fails the device.
 */
int badblocks_add(struct engine *engine, unsigned device, uint64_t data_offset, uint64_t length);

/*
 * The right bytes have been written to the range, durably or not: it is good again. The member's
 * log says so some time after the bytes are durable.
 */
void badblocks_remove(
	struct engine *engine, unsigned device, uint64_t data_offset, uint64_t length);

#endif
