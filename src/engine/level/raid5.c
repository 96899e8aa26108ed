/* SPDX-License-Identifier: MIT */
/* RAID 5: as RAID 4, but parity moves from slot to slot. One slot may be missing. */
#include "engine/stripe.h"

const struct engine_level engine_level_raid5 = {
	.level = 5,
	.name = "raid5",
	.slots_min = 2,
	.start = stripe_start,
	.redundant = true,
	.init = stripe_init,
	.sync_range = stripe_sync_range,
	.sync_window = stripe_sync_window,
	.stripe_bytes = stripe_stripe_bytes,
};
