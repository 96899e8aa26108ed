/* SPDX-License-Identifier: MIT */
/* The table of levels: a new one is a file in level/ and a line here. */
#include <stddef.h>

#include "engine/internal.h"

static const struct engine_level *const levels[] = {
	&engine_level_linear,
	&engine_level_raid0,
	&engine_level_raid1,
	&engine_level_raid4,
	&engine_level_raid5,
	&engine_level_raid6,
	&engine_level_raid10,
};

const struct engine_level *engine_level_find(int level)
{
	for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++)
		if (levels[i]->level == level)
			return levels[i];
	return NULL;
}
