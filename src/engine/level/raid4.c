/* SPDX-License-Identifier: MIT */
/* RAID 4: chunks dealt out over all slots but the last, which holds their parity. */
#include "engine/stripe.h"

const struct engine_level engine_level_raid4 = {
	.level = 4,
	.name = "raid4",
	.slots_min = 2,
	.start = stripe_start,
	.redundant = true,
	.init = stripe_init,
	.sync_range = stripe_sync_range,
	.sync_window = stripe_sync_window,
	.stripe_bytes = stripe_stripe_bytes,
};
