/* SPDX-License-Identifier: MIT */
/* RAID 1: all members hold the same. All but one can be lost.  */
#include "engine/mirror.h"

const struct engine_level engine_level_raid1 = {
	.level = 1,
	.name = "raid1",
	.slots_min = 1,
	.redundant = true,
	.init = mirror_init,
	.start = mirror_start,
	.sync_range = mirror_sync_range,
	.sync_window = mirror_sync_window,
	.stripe_bytes = mirror_stripe_bytes,
};
