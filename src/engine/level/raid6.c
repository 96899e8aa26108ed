/* SPDX-License-Identifier: MIT */
/* RAID 6: as RAID 5, with a second parity. Two slots may be missing. */
#include "engine/stripe.h"

const struct engine_level engine_level_raid6 = {
	.level = 6,
	.name = "raid6",
	.slots_min = 4,
	.start = stripe_start,
	.redundant = true,
	.init = stripe_init,
	.sync_range = stripe_sync_range,
	.sync_window = stripe_sync_window,
	.stripe_bytes = stripe_stripe_bytes,
};
