/* SPDX-License-Identifier: MIT */
/* RAID 0: chunks dealt out to the members in turn. Any loss is a loss of data. */
#include "engine/internal.h"

const struct engine_level engine_level_raid0 = {
	.level = 0,
	.name = "raid0",
	.slots_min = 1,
	.start = spread_start,
};
