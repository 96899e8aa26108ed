/* SPDX-License-Identifier: MIT */

/*
 * Are new members blank? Redundancy of zeros is right as it is (a copy of zeros is zeros, and so is
 * their parity), so an array of blank members needs no initial resync.
 */

#include <errno.h>
#include <stdlib.h>

#include "cli/create.h"
#include "util/cleanup.h"
#include "util/rounding.h"

#define READ_BYTES (1024u * 1024)
/* Of one member. Reading more takes longer than people expect of create; a resync does it aside. */
#define READ_MAX_BYTES (UINT64_C(64) << 20)

static bool is_zero(const uint64_t *words, size_t bytes)
{
	for (size_t i = 0; i < bytes / sizeof(*words); i++)
		if (words[i] != 0)
			return false;
	return true;
}

static bool reads_zero(const struct member *member, uint64_t at, uint64_t end, uint64_t *buffer)
{
	while (at < end) {
		size_t length = (size_t)min_u64(READ_BYTES, end - at);

		if (member_read(member, at, buffer, length) < 0 || !is_zero(buffer, length))
			return false;
		at += length;
	}
	return true;
}

/*
 * The next range of data at or behind @at in a file; the rest is holes, which read as zeros. Block
 * devices, and file systems that know no holes, say that everything is data.
 */
static uint64_t next_data(const struct member *member, uint64_t at, uint64_t end, uint64_t *ret_end)
{
	off_t data = lseek(member->fd, (off_t)at, SEEK_DATA), hole;

	if (data < 0 && errno == ENXIO)
		return end;
	hole = data < 0 ? -1 : lseek(member->fd, data, SEEK_HOLE);
	*ret_end = hole < 0 ? end : min_u64((uint64_t)hole, end);
	return data < 0 ? at : (uint64_t)data;
}

static bool member_is_blank(
	const struct member *member, uint64_t at, uint64_t end, uint64_t *buffer)
{
	uint64_t budget = READ_MAX_BYTES, data_end;
	bool is_file = !member->is_block && member->network == NULL;

	while (at < end) {
		at = is_file ? next_data(member, at, end, &data_end) : at;
		if (!is_file)
			data_end = end;
		if (at >= end)
			return true;
		/* Sectors are whole, in files too: what is read begins and ends on one. */
		at = round_down(at, MD_SECTOR);
		data_end = min_u64(round_up(data_end, MD_SECTOR), end);
		if (data_end - at > budget || !reads_zero(member, at, data_end, buffer))
			return false;
		budget -= data_end - at;
		at = data_end;
	}
	return true;
}

bool creation_is_blank(const struct creation *creation)
{
	_cleanup_free_ uint64_t *buffer = NULL;

	if (posix_memalign((void **)&buffer, 4096, READ_BYTES) != 0)
		return false;
	for (unsigned i = 0; i < creation->count && i < creation->plan.raid_disks; i++) {
		unsigned index = creation->member_of[i];
		const struct md_super *super;
		uint64_t at;

		if (index == CREATION_MISSING)
			continue;
		super = &creation->set.supers[index];
		at = super->data_offset * MD_SECTOR;
		if (!member_is_blank(creation->set.members[index], at,
			    at + super->size_sectors * MD_SECTOR, buffer))
			return false;
	}
	return true;
}
