/* SPDX-License-Identifier: MIT */
/*
 * Linear and RAID 0 as one idea: zones.
 *
 * A zone is a range of the array that is striped, chunk by chunk, over a fixed list of k slots, and
 * on each of them occupies the same member range. A linear array has one zone per slot with k = 1.
 * A RAID 0 array of equal members has one zone over all slots; where members are unequal, the
 * distinct usable sizes z1 < z2 < … cut the members into layers, and layer i is a zone over the
 * slots that reach that far (specification 7.3).
 *
 * Inside a zone that starts at array byte A, the chunk at zone offset off = c·C goes to
 *
 *     row = c / k      position in the slot list = (c + rotation) mod k
 *
 * where the rotation is 0 for the "alternate" layout and (A / C) mod k for the "original" one,
 * which counts chunks from the start of the array, not of the zone. Example of the specification:
 * chunk 1, members of 3, 5 and 4 chunks; zone 1 covers array chunks 9 and 10 on slots 1 and 2; 9
 * mod 2 = 1, so the original layout begins it on slot 2 and the alternate one on slot 1.
 */
#include "geometry/geometry.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "util/cleanup.h"
#include "util/rounding.h"

#define SECTOR_BYTES 512u

struct zone {
	uint64_t start;        /* array byte */
	uint64_t end;          /* array byte behind it */
	uint64_t member_start; /* member byte, the same on each of its slots */
	unsigned width;        /* k, the number of slots */
	unsigned rotation;     /* position of the zone's first chunk in the slot list */
	const unsigned *slots; /* @width slots in rising order; owned by the geometry */
};

struct geometry {
	uint64_t array_bytes;
	uint32_t chunk_bytes; /* 0: the zones are not striped (linear) */
	int chunk_shift;      /* log2 of the chunk, -1 if it is no power of two */
	unsigned slot_count;
	unsigned zone_count;
	unsigned *slot_lists; /* storage behind zone.slots */
	struct zone *zones;
};

/* c / k for the common case that both fit in 32 bits, where division is several times faster. */
static inline uint64_t divide(uint64_t value, unsigned divisor)
{
	if ((value >> 32) == 0)
		return (uint32_t)value / divisor;
	return value / divisor;
}

static inline uint64_t chunk_of(const struct geometry *g, uint64_t bytes)
{
	return g->chunk_shift >= 0 ? bytes >> g->chunk_shift : bytes / g->chunk_bytes;
}

static const struct zone *find_zone(const struct geometry *g, uint64_t offset)
{
	unsigned low = 0, high = g->zone_count - 1;

	while (low < high) {
		unsigned middle = (low + high) / 2;

		if (offset < g->zones[middle].end)
			high = middle;
		else
			low = middle + 1;
	}
	return &g->zones[low];
}

/* The array may end inside its last zone: the kernel exports less if the chunk is no power of 2. */
static inline uint64_t zone_end(const struct geometry *g, const struct zone *zone)
{
	return min_u64(zone->end, g->array_bytes);
}

struct geometry_piece geometry_map(const struct geometry *g, uint64_t offset)
{
	const struct zone *zone = g->zone_count == 1 ? g->zones : find_zone(g, offset);
	uint64_t in_zone = offset - zone->start;
	uint64_t chunk, row, in_chunk, position;

	assert(offset < g->array_bytes);
	if (zone->width == 1)
		return (struct geometry_piece){
			zone->slots[0], zone->member_start + in_zone, zone_end(g, zone) - offset};
	chunk = chunk_of(g, in_zone);
	in_chunk = in_zone - chunk * g->chunk_bytes;
	row = divide(chunk, zone->width);
	position = chunk - row * zone->width + zone->rotation;
	if (position >= zone->width)
		position -= zone->width;
	return (struct geometry_piece){zone->slots[position],
		zone->member_start + row * g->chunk_bytes + in_chunk,
		min_u64(g->chunk_bytes - in_chunk, g->array_bytes - offset)};
}

/* Position of @slot in the zone's rising list, or -1. */
static int position_of(const struct zone *zone, unsigned slot)
{
	unsigned low = 0, high = zone->width;

	while (low < high) {
		unsigned middle = (low + high) / 2;

		if (zone->slots[middle] < slot)
			low = middle + 1;
		else
			high = middle;
	}
	return low < zone->width && zone->slots[low] == slot ? (int)low : -1;
}

/*
 * The member's chunks in the range are those zone chunks c with (c + rotation) mod k = position;
 * consecutive ones are k apart in the array and adjacent on the member.
 */
static struct geometry_piece striped_range(const struct geometry *g, const struct zone *zone,
	uint64_t in_zone, uint64_t length, unsigned position)
{
	uint64_t last_byte = in_zone + length - 1;
	uint64_t first = chunk_of(g, in_zone), last = chunk_of(g, last_byte);
	unsigned width = zone->width;
	unsigned wanted = (position + width - zone->rotation) % width;
	uint64_t mine_first = first + (wanted + width - first % width) % width;
	uint64_t mine_last, begin, end;

	if (mine_first > last)
		return (struct geometry_piece){zone->slots[position], 0, 0};
	mine_last = last - (last % width + width - wanted) % width;
	begin = mine_first / width * g->chunk_bytes;
	if (mine_first == first)
		begin += in_zone - first * g->chunk_bytes;
	end = mine_last / width * g->chunk_bytes;
	end += mine_last == last ? last_byte - last * g->chunk_bytes + 1 : g->chunk_bytes;
	return (struct geometry_piece){
		zone->slots[position], zone->member_start + begin, end - begin};
}

struct geometry_piece geometry_member_range(
	const struct geometry *g, uint64_t offset, uint64_t length, unsigned slot)
{
	const struct zone *zone = find_zone(g, offset);
	uint64_t in_zone = offset - zone->start;
	int position = position_of(zone, slot);

	assert(length <= zone_end(g, zone) - offset);
	if (position < 0 || length == 0)
		return (struct geometry_piece){slot, 0, 0};
	if (zone->width == 1)
		return (struct geometry_piece){slot, zone->member_start + in_zone, length};
	return striped_range(g, zone, in_zone, length, (unsigned)position);
}

uint64_t geometry_zone_end(const struct geometry *g, uint64_t offset)
{
	return zone_end(g, find_zone(g, offset));
}

uint64_t geometry_array_bytes(const struct geometry *g)
{
	return g->array_bytes;
}

unsigned geometry_zone_count(const struct geometry *g)
{
	return g->zone_count;
}

unsigned geometry_width(const struct geometry *g)
{
	return g->zones[0].width;
}

/* What of a slot's @bytes is used: whole chunks (RAID 0), whole units of rounding (linear). */
static uint64_t usable_bytes(const struct geometry_config *config, unsigned slot)
{
	uint64_t unit = config->chunk_bytes != 0 ? config->chunk_bytes : SECTOR_BYTES;

	return round_down(config->slot_bytes[slot], unit);
}

static int check_slots(const struct geometry_config *config, struct fault *fault)
{
	uint64_t total = 0;

	for (unsigned slot = 0; slot < config->slots; slot++) {
		if (usable_bytes(config, slot) == 0)
			return fault_set(fault, -EINVAL,
				"slot %u has room for %llu bytes of data, less than one chunk of "
				"%u bytes; use a larger member or a smaller chunk",
				slot, (unsigned long long)config->slot_bytes[slot],
				config->chunk_bytes);
		if (add_overflows(total, config->slot_bytes[slot], &total) || total > INT64_MAX)
			return fault_set(fault, -ERANGE,
				"the members together are larger than 8 EiB; no array can be");
	}
	return 0;
}

static int check_config(const struct geometry_config *config, struct fault *fault)
{
	if (config->level != GEOMETRY_LEVEL_LINEAR && config->level != 0)
		return fault_set(fault, -EOPNOTSUPP, "level %d cannot run yet", config->level);
	if (config->slots == 0 || config->slots > GEOMETRY_SLOTS_MAX)
		return fault_set(fault, -EINVAL, "an array has 1 to %u slots, not %u",
			GEOMETRY_SLOTS_MAX, config->slots);
	if (config->level == 0 && config->chunk_bytes == 0)
		return fault_set(fault, -EINVAL, "RAID 0 needs a chunk size; it is 0");
	if (config->chunk_bytes % SECTOR_BYTES != 0)
		return fault_set(fault, -EINVAL, "chunk size %u is no multiple of %u bytes",
			config->chunk_bytes, SECTOR_BYTES);
	return check_slots(config, fault);
}

static void add_zone(struct geometry *g, uint64_t member_start, uint64_t height,
	const unsigned *slots, unsigned width)
{
	struct zone *zone = &g->zones[g->zone_count];
	uint64_t start = g->zone_count == 0 ? 0 : zone[-1].end;

	g->zone_count++;
	*zone = (struct zone){.start = start,
		.end = start + height * width,
		.member_start = member_start,
		.width = width,
		.slots = slots};
}

static void build_linear(struct geometry *g, const struct geometry_config *config)
{
	for (unsigned slot = 0; slot < config->slots; slot++) {
		g->slot_lists[slot] = slot;
		add_zone(g, 0, usable_bytes(config, slot), &g->slot_lists[slot], 1);
	}
	g->array_bytes = g->zones[g->zone_count - 1].end;
}

/* Smallest usable size above @floor, 0 if there is none. */
static uint64_t next_height(const struct geometry_config *config, uint64_t floor)
{
	uint64_t best = 0;

	for (unsigned slot = 0; slot < config->slots; slot++) {
		uint64_t usable = usable_bytes(config, slot);

		if (usable > floor && (best == 0 || usable < best))
			best = usable;
	}
	return best;
}

/*
 * What the kernel exports of one member: for a chunk of C sectors it masks the member's sectors
 * with ~(C - 1), which takes something away where C is no power of two (specification 7.1).
 */
static uint64_t exported_bytes(uint64_t usable, uint32_t chunk_bytes)
{
	uint64_t mask = ~((uint64_t)chunk_bytes / SECTOR_BYTES - 1);

	return (usable / SECTOR_BYTES & mask) * SECTOR_BYTES;
}

/* Slot lists of all zones together: each slot stands in as many as there are sizes up to its own.
 */
static size_t count_list_entries(const struct geometry_config *config, unsigned *ret_zones)
{
	size_t entries = 0;
	unsigned zones = 0;

	for (uint64_t floor = 0; next_height(config, floor) != 0;
		floor = next_height(config, floor)) {
		zones++;
		for (unsigned slot = 0; slot < config->slots; slot++)
			entries += usable_bytes(config, slot) > floor;
	}
	*ret_zones = zones;
	return entries;
}

static void build_raid0(struct geometry *g, const struct geometry_config *config)
{
	unsigned *list = g->slot_lists;
	uint64_t floor = 0, top;

	while ((top = next_height(config, floor)) != 0) {
		unsigned width = 0;

		for (unsigned slot = 0; slot < config->slots; slot++)
			if (usable_bytes(config, slot) > floor)
				list[width++] = slot;
		add_zone(g, floor, top - floor, list, width);
		if (config->layout == GEOMETRY_RAID0_ORIGINAL) {
			struct zone *zone = &g->zones[g->zone_count - 1];

			zone->rotation = (unsigned)(zone->start / config->chunk_bytes % width);
		}
		list += width;
		floor = top;
	}
	for (unsigned slot = 0; slot < config->slots; slot++)
		g->array_bytes += exported_bytes(usable_bytes(config, slot), config->chunk_bytes);
}

static int check_layout(const struct geometry_config *config, unsigned zones, struct fault *fault)
{
	if (config->level != 0 || zones == 1 || config->layout == GEOMETRY_RAID0_ORIGINAL ||
		config->layout == GEOMETRY_RAID0_ALTERNATE)
		return 0;
	return fault_set(fault, -EUCLEAN,
		"the members have %u different sizes and the layout of the parts behind the "
		"smallest "
		"is not recorded (%u): it is \"original\" (1) if Linux before 3.14 or since 5.4 "
		"wrote "
		"it, \"alternate\" (2) if Linux 3.14 to 5.3 did; say which with --layout=original "
		"or "
		"--layout=alternate, and compare the data read-only before writing",
		zones, config->layout);
}

int geometry_new(const struct geometry_config *config, struct geometry **ret, struct fault *fault)
{
	_cleanup_free_ struct geometry *g = NULL;
	unsigned zones = config->slots;
	size_t entries = config->slots;
	int r;

	r = check_config(config, fault);
	if (r < 0)
		return r;
	if (config->level == 0)
		entries = count_list_entries(config, &zones);
	r = check_layout(config, zones, fault);
	if (r < 0)
		return r;
	/* One block: the struct, its zones, their slot lists. */
	g = calloc(1, sizeof(*g) + zones * sizeof(struct zone) + entries * sizeof(unsigned));
	if (g == NULL)
		return fault_set(fault, -ENOMEM, "no memory for the array's geometry");
	g->zones = (struct zone *)(g + 1);
	g->slot_lists = (unsigned *)(g->zones + zones);
	g->chunk_bytes = config->chunk_bytes;
	g->chunk_shift = is_power_of_two(config->chunk_bytes) ? __builtin_ctz(config->chunk_bytes)
							      : -1;
	g->slot_count = config->slots;
	if (config->level == 0)
		build_raid0(g, config);
	else
		build_linear(g, config);
	if (g->array_bytes == 0)
		return fault_set(fault, -EINVAL, "the array would have no space");
	*ret = steal_ptr(g);
	return 0;
}

void geometry_free(struct geometry *g)
{
	free(g);
}
