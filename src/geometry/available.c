/* SPDX-License-Identifier: MIT */
#include "geometry/available.h"

#include <errno.h>
#include <stddef.h>

#include "geometry/mirrors.h"
#include "geometry/stripes.h"

#define ANY_CHUNK_BYTES 4096u /* availability depends on slots and layout only */

static unsigned count_missing(unsigned slots, const bool *in_sync)
{
	unsigned missing = 0;

	for (unsigned slot = 0; slot < slots; slot++)
		missing += !in_sync[slot];
	return missing;
}

/* A member size for which each layout has room for at least a chunk. */
static bool mirrors_are_available(int level, uint32_t layout, unsigned slots, const bool *in_sync)
{
	uint64_t member_bytes = 256 * 256 * (uint64_t)ANY_CHUNK_BYTES;
	struct mirrors mirrors;

	if (mirrors_init(level, layout, ANY_CHUNK_BYTES, slots, member_bytes, &mirrors, NULL) < 0)
		return false;
	return mirrors_available(&mirrors, in_sync);
}

static bool stripes_are_available(int level, uint32_t layout, unsigned slots, const bool *in_sync)
{
	struct stripes stripes;

	if (stripes_init(level, layout, ANY_CHUNK_BYTES, slots, ANY_CHUNK_BYTES, &stripes, NULL) <
		0)
		return false;
	return count_missing(slots, in_sync) <= stripes.parities;
}

bool geometry_available(int level, uint32_t layout, unsigned slots, const bool *in_sync)
{
	switch (level) {
	case GEOMETRY_LEVEL_LINEAR:
	case 0:
		return slots > 0 && count_missing(slots, in_sync) == 0;
	case 1:
	case 10:
		return mirrors_are_available(level, layout, slots, in_sync);
	default:
		return stripes_are_available(level, layout, slots, in_sync);
	}
}

int geometry_component_array_bytes(int level, uint32_t layout, uint32_t chunk_bytes, unsigned slots,
	uint64_t component_bytes, uint64_t *ret, struct fault *fault)
{
	struct stripes stripes;
	struct mirrors mirrors;
	int r;

	if (level == GEOMETRY_LEVEL_LINEAR || level == 0)
		return fault_set(fault, -EINVAL,
			"the size of a level %d array is the sum of what its members have", level);
	if (level == 1 || level == 10) {
		r = mirrors_init(
			level, layout, chunk_bytes, slots, component_bytes, &mirrors, fault);
		if (r == 0)
			*ret = mirrors.array_bytes;
		return r;
	}
	r = stripes_init(level, layout, chunk_bytes, slots, component_bytes, &stripes, fault);
	if (r == 0)
		*ret = stripes.array_bytes;
	return r;
}
