/* SPDX-License-Identifier: MIT */
#include "control/memory.h"

#include <jansson.h>
#include <stdlib.h>

/* jansson's allocator is given no context. */
static __thread bool was_short;

static void *take(size_t size)
{
	void *memory = malloc(size);

	was_short |= memory == NULL;
	return memory;
}

void memory_watch(void)
{
	json_set_alloc_funcs(take, free);
}

bool memory_was_short(void)
{
	bool answer = was_short;

	was_short = false;
	return answer;
}
