/* SPDX-License-Identifier: MIT */
/* Linear: members one behind the other. Capacity is the sum; any loss is a loss of data. */
#include "engine/internal.h"

const struct engine_level engine_level_linear = {
	.level = -1,
	.name = "linear",
	.slots_min = 1,
	.start = spread_start,
};
