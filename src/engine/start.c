/* SPDX-License-Identifier: MIT */
/* Start and end of an engine: everything that is ever allocated is allocated here. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine/devices.h"
#include "util/cleanup.h"
#include "util/rounding.h"

/* Stands before each piece of memory, and keeps its alignment. */
struct taken {
	struct taken *next;
	void *buffers; /* given back with it */
} __attribute__((aligned(ENGINE_ALIGN)));

void *engine_take(struct engine *engine, size_t count, size_t size)
{
	size_t bytes = round_up(count * size, ENGINE_ALIGN) + sizeof(struct taken);
	struct taken *taken = aligned_alloc(ENGINE_ALIGN, bytes);

	if (taken == NULL)
		return NULL;
	memset(taken, 0, bytes);
	taken->next = engine->taken;
	engine->taken = taken;
	engine->memory_bytes += bytes;
	return taken + 1;
}

void *engine_take_buffers(struct engine *engine, size_t bytes)
{
	struct taken *holder = engine_take(engine, 0, 0);

	if (holder == NULL)
		return NULL;
	bytes = round_up(bytes, ENGINE_BUFFER_ALIGN);
	holder[-1].buffers = aligned_alloc(ENGINE_BUFFER_ALIGN, bytes);
	if (holder[-1].buffers != NULL)
		engine->memory_bytes += bytes;
	return holder[-1].buffers;
}

static int make_geometry(
	struct engine *engine, const struct engine_config *config, struct fault *fault)
{
	_cleanup_free_ uint64_t *bytes = calloc(config->slot_count, sizeof(*bytes));
	struct geometry_config geometry = {.level = config->level,
		.layout = config->layout,
		.chunk_bytes = config->chunk_bytes,
		.slots = config->slot_count,
		.slot_bytes = bytes};
	int r;

	if (bytes == NULL)
		return -ENOMEM;
	for (unsigned slot = 0; slot < config->slot_count; slot++)
		bytes[slot] = config->slots[slot].data_bytes;
	r = geometry_new(&geometry, &engine->geometry, fault);
	if (r == 0)
		engine->array_bytes = geometry_array_bytes(engine->geometry);
	return r;
}

static void link_pools(struct engine *engine, const struct engine_config *config)
{
	for (unsigned i = config->requests_max; i-- > 0;) {
		struct work *work = &engine->works[i];

		work->engine = engine;
		work->io.owner = work;
		work->parts = &engine->parts[(size_t)i * engine->device_max];
		work->iov = &engine->iovs[(size_t)i * ENGINE_IOV_MAX];
		for (unsigned device = 0; device < engine->device_max; device++) {
			work->parts[device].work = work;
			work->parts[device].device = device;
			work->parts[device].io.owner = &work->parts[device];
		}
		work->next_free = engine->free_works;
		engine->free_works = work;
	}
}

static int make_pools(struct engine *engine, const struct engine_config *config)
{
	size_t requests = config->requests_max, slots = config->slot_count;
	size_t devices = engine->device_max;

	engine->devices = engine_take(engine, devices, sizeof(*engine->devices));
	engine->works = engine_take(engine, requests, sizeof(*engine->works));
	engine->parts = engine_take(engine, requests * devices, sizeof(*engine->parts));
	engine->iovs = engine_take(engine, requests * ENGINE_IOV_MAX, sizeof(*engine->iovs));
	engine->cuts = engine_take(engine, ENGINE_IOV_MAX, sizeof(*engine->cuts));
	engine->touched = engine_take(engine, slots, sizeof(*engine->touched));
	engine->per_slot = engine_take(engine, slots, sizeof(*engine->per_slot));
	if (engine->devices == NULL || engine->works == NULL || engine->parts == NULL ||
		engine->iovs == NULL || engine->cuts == NULL || engine->touched == NULL ||
		engine->per_slot == NULL)
		return -ENOMEM;
	link_pools(engine, config);
	return 0;
}

/* Linear and RAID 0: device i is slot i. */
static int place_slots(
	struct engine *engine, const struct engine_config *config, struct fault *fault)
{
	for (unsigned slot = 0; slot < config->slot_count; slot++)
		engine->devices[slot] = (struct device){
			.where = config->slots[slot],
			.written = 1,
			.slot = slot,
			.state = ENGINE_DEVICE_IN_SYNC,
		};
	return make_geometry(engine, config, fault);
}

static int check_config(const struct engine_config *config, struct fault *fault)
{
	const struct engine_level *level = engine_level_find(config->level);

	if (level == NULL)
		return fault_set(
			fault, -EOPNOTSUPP, "level %d is not yet supported", config->level);
	if (config->slot_count < level->slots_min || config->slot_count > GEOMETRY_SLOTS_MAX)
		return fault_set(fault, -EINVAL, "%s takes %u to %u members, not %u", level->name,
			level->slots_min, GEOMETRY_SLOTS_MAX, config->slot_count);
	if (config->requests_max == 0)
		return fault_set(fault, -EINVAL, "room for at least one request is needed");
	for (unsigned slot = 0; !level->redundant && slot < config->slot_count; slot++) {
		uint64_t end;

		if (add_overflows(config->slots[slot].data_offset_bytes,
			    config->slots[slot].data_bytes, &end) ||
			end > INT64_MAX)
			return fault_set(fault, -ERANGE, "slot %u ends beyond 8 EiB", slot);
	}
	return 0;
}

int engine_new(const struct engine_config *config, struct world *world, struct engine **ret,
	struct fault *fault)
{
	struct engine *engine;
	int r = check_config(config, fault);

	if (r < 0)
		return r;
	engine = calloc(1, sizeof(*engine));
	if (engine == NULL)
		return fault_set(fault, -ENOMEM, "no memory for the engine");
	engine->memory_bytes = sizeof(*engine);
	engine->world = world;
	engine->level = engine_level_find(config->level);
	engine->readonly = config->readonly;
	engine->slot_count = config->slot_count;
	engine->device_max = engine->level->redundant && config->redundancy != NULL
				     ? config->redundancy->device_max
				     : config->slot_count;
	engine->chunk_bytes = config->chunk_bytes;
	engine->layout = config->layout;
	engine->member_error = config->member_error;
	engine->owner = config->owner;
	engine->waiting_last = &engine->waiting_first;
	engine->finished_last = &engine->finished_first;
	r = make_pools(engine, config);
	if (r == 0)
		r = engine->level->redundant ? redundant_new(engine, config, fault)
					     : place_slots(engine, config, fault);
	if (r == -ENOMEM)
		(void)fault_set(fault, -ENOMEM, "no memory for %u requests over %u members",
			config->requests_max, config->slot_count);
	if (r < 0) {
		engine_free(engine);
		return r;
	}
	*ret = engine;
	return 0;
}

void engine_free(struct engine *engine)
{
	struct taken *next;

	if (engine == NULL)
		return;
	redundant_free(engine);
	geometry_free(engine->geometry);
	for (struct taken *taken = engine->taken; taken != NULL; taken = next) {
		next = taken->next;
		free(taken->buffers);
		free(taken);
	}
	free(engine);
}
