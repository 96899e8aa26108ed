/* SPDX-License-Identifier: MIT */
/* RAID 10: chunks striped over the members, each on several of them.  */
#include "engine/mirror.h"

const struct engine_level engine_level_raid10 = {
	.level = 10,
	.name = "raid10",
	.slots_min = 2,
	.redundant = true,
	.init = mirror_init,
	.start = mirror_start,
	.sync_range = mirror_sync_range,
	.sync_window = mirror_sync_window,
	.stripe_bytes = mirror_stripe_bytes,
};
