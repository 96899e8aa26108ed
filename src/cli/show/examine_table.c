/* SPDX-License-Identifier: MIT */

/* examine: a device without a superblock, but with a partition table of the PC's old kind. */

#include <inttypes.h>

#include "cli/show/examine.h"
#include "util/bytes.h"

#define TABLE_AT 446u
#define ENTRY_BYTES 16u
#define ENTRIES 4u

bool examine_table(const char *path, const uint8_t sector[MD_SECTOR], FILE *out)
{
	if (sector[510] != 0x55 || sector[511] != 0xaa)
		return false;
	fprintf(out, "%s:\n   MBR Magic : aa55\n", path);
	for (unsigned i = 0; i < ENTRIES; i++) {
		const uint8_t *entry = sector + TABLE_AT + i * ENTRY_BYTES;

		if (get_le32(entry + 12) != 0)
			fprintf(out,
				"Partition[%u] : %12" PRIu32 " sectors at %12" PRIu32
				" (type %02x)\n",
				i, get_le32(entry + 12), get_le32(entry + 8), entry[4]);
	}
	return true;
}
