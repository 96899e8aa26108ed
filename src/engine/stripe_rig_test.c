/* SPDX-License-Identifier: MIT */
#include "engine/stripe_rig_test.h"

#include <stdlib.h>
#include <string.h>

#include "parity/parity.h"
#include "sim/sim.h"
#include "util/rounding.h"

#define DATA_OFFSET (8 * K)

/* --- What the linker puts in place of sync.c's functions ---------------------------------------
 */

void __wrap_sync_window_done(struct sync_window *window, int result);
void __wrap_sync_mismatch(struct engine *engine, uint64_t first, uint64_t length, unsigned slot);
bool __wrap_sync_is_consistent(const struct engine *engine, uint64_t first, uint64_t end);
void __wrap_sync_consider(struct engine *engine);
int __wrap_sync_new(struct engine *engine, const struct engine_config *config, struct fault *fault);
void __wrap_sync_free(struct engine *engine);

void __wrap_sync_window_done(struct sync_window *window, int result)
{
	struct rig *rig = window->owner;

	rig->windows_done++;
	rig->window_result = result;
}

void __wrap_sync_mismatch(struct engine *engine, uint64_t first, uint64_t length, unsigned slot)
{
	struct rig *rig = engine->owner;

	assert_true(rig->mismatch_count < 64);
	rig->mismatches[rig->mismatch_count++] = (struct engine_mismatch){first, length, slot};
}

bool __wrap_sync_is_consistent(const struct engine *engine, uint64_t first, uint64_t end)
{
	const struct rig *rig = engine->owner;

	assert_true(first < end);
	return !rig->inconsistent;
}

void __wrap_sync_consider(struct engine *engine)
{
	(void)engine;
}

int __wrap_sync_new(struct engine *engine, const struct engine_config *config, struct fault *fault)
{
	(void)engine;
	(void)config;
	(void)fault;
	return 0;
}

void __wrap_sync_free(struct engine *engine)
{
	(void)engine;
}

/* --- Contents ----------------------------------------------------------------------------------
 */

/* splitmix64 of id and place: no two sectors and no two ids look alike. */
void rig_content(uint32_t id, uint64_t sector, uint8_t *ret)
{
	uint64_t state = ((uint64_t)id << 32) ^ (sector * 0x9e3779b97f4a7c15u);

	if (id == 0) { /* of ENGINE_ZERO */
		memset(ret, 0, SECTOR);
		return;
	}
	for (unsigned i = 0; i < SECTOR; i += 8) {
		uint64_t z = state += 0x9e3779b97f4a7c15u;

		z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
		z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
		z ^= z >> 31;
		memcpy(ret + i, &z, 8);
	}
}

void rig_expect(const struct rig *rig, uint64_t offset, uint64_t length, uint8_t *ret)
{
	for (uint64_t at = 0; at < length; at += SECTOR) {
		uint64_t sector = (offset + at) / SECTOR;

		rig_content(rig->ids[sector], sector, ret + at);
	}
}

/* Terms of the sums one by one: what level and layout mean, not how the engine computes. */
void rig_expect_member(const struct rig *rig, unsigned slot, uint64_t offset, uint8_t *ret)
{
	const struct stripes *s = &rig->stripes;
	uint16_t slots[256 * 8], exponents[256 * 8];
	uint64_t stripe = offset >> s->chunk_shift;
	uint32_t in_chunk = (uint32_t)offset & (s->chunk_bytes - 1);
	uint8_t sector[SECTOR];
	unsigned p, q;

	stripes_roles(s, stripe, slots, exponents, &p, &q);
	memset(ret, 0, SECTOR);
	for (unsigned data = 0; data < s->data; data++) {
		uint64_t at = stripes_array_offset(s, stripe, data) + in_chunk;

		rig_expect(rig, at, SECTOR, sector);
		if (slots[data] == slot)
			memcpy(ret, sector, SECTOR);
		else if (slot == p)
			parity_update(0, NULL, sector, ret, NULL, SECTOR);
		else if (slot == q)
			parity_update(exponents[data], NULL, sector, NULL, ret, SECTOR);
	}
}

static uint64_t member_byte(const struct rig *rig, unsigned slot, uint64_t offset)
{
	return DATA_OFFSET + (slot % 7) * 4 * K + offset;
}

static void check_device(struct rig *rig, unsigned device)
{
	const struct device *d = &rig->engine->devices[device];
	uint64_t end = rig->stripes.stripe_count << rig->stripes.chunk_shift;
	uint8_t expected[SECTOR], found[SECTOR];

	if (d->state == ENGINE_DEVICE_REBUILDING)
		end = min_u64(end, round_down(d->recovered_bytes, SECTOR));
	else if (d->state != ENGINE_DEVICE_IN_SYNC)
		return;
	for (uint64_t at = 0; at < end; at += SECTOR) {
		rig_expect_member(rig, d->slot, at, expected);
		sim_disk_peek(
			rig->sim, d->where.member, member_byte(rig, d->slot, at), found, SECTOR);
		if (memcmp(expected, found, SECTOR) != 0)
			fail_msg("device %u in slot %u is wrong at data byte %llu", device, d->slot,
				(unsigned long long)at);
	}
}

void rig_check_members(struct rig *rig)
{
	for (unsigned i = 0; i < rig->engine->device_max; i++)
		check_device(rig, i);
}

void rig_check_array(struct rig *rig)
{
	uint8_t *expected = malloc(rig->bytes), *found = malloc(rig->bytes);

	memset(found, 0xa5, rig->bytes);
	rig_expect(rig, 0, rig->bytes, expected);
	assert_int_equal(rig_run(rig, ENGINE_READ, 0, rig->bytes, found, 0), 0);
	for (uint64_t at = 0; at < rig->bytes; at += SECTOR)
		if (memcmp(expected + at, found + at, SECTOR) != 0)
			fail_msg("the array is wrong at byte %llu", (unsigned long long)at);
	free(expected);
	free(found);
}

/* --- Start and end -----------------------------------------------------------------------------
 */

static void fill_members(struct rig *rig, unsigned rebuilding, uint64_t recovered_bytes)
{
	uint64_t end = rig->stripes.stripe_count << rig->stripes.chunk_shift;
	uint8_t sector[SECTOR];

	for (unsigned slot = 0; slot < rig->shape.slots; slot++)
		for (uint64_t at = 0; at < end; at += SECTOR) {
			if ((rebuilding >> slot & 1) != 0 && at >= recovered_bytes)
				rig_content(0xdead, at, sector);
			else
				rig_expect_member(rig, slot, at, sector);
			sim_disk_poke(rig->sim, slot, member_byte(rig, slot, at), sector, SECTOR);
		}
}

static void place_devices(
	struct rig *rig, unsigned missing, unsigned rebuilding, uint64_t recovered_bytes)
{
	for (unsigned slot = 0; slot < rig->shape.slots; slot++) {
		bool rebuilds = slot < 32 && (rebuilding >> slot & 1) != 0;

		if (slot < 32 && (missing >> slot & 1) != 0)
			continue;
		rig->devices[rig->device_count++] = (struct engine_device){
			.member = slot,
			.slot = slot,
			.in_sync = !rebuilds,
			.recovered_bytes = rebuilds ? recovered_bytes : 0,
			.data_offset_bytes = member_byte(rig, slot, 0),
			.data_bytes = rig->shape.component_bytes,
		};
	}
}

static void start_engine(struct rig *rig)
{
	const struct shape *shape = &rig->shape;
	struct engine_redundancy redundancy = {.component_bytes = shape->component_bytes,
		.resync_bytes = UINT64_MAX,
		.devices = rig->devices,
		.device_count = rig->device_count,
		.device_max = RIG_DEVICES_MAX};
	struct engine_config config = {.level = shape->level,
		.layout = shape->layout,
		.chunk_bytes = shape->chunk_bytes,
		.slot_count = shape->slots,
		.requests_max = 6,
		.owner = rig,
		.redundancy = &redundancy};
	struct fault fault = {0};

	if (engine_new(&config, sim_world(rig->sim), &rig->engine, &fault) < 0)
		fail_msg("level %d: %s", shape->level, fault.text);
	assert_int_equal(engine_array_bytes(rig->engine), rig->stripes.array_bytes);
}

void rig_init(struct rig *rig, const struct shape *shape, unsigned missing, unsigned rebuilding,
	uint64_t recovered_bytes, uint64_t seed)
{
	uint64_t disk_bytes[RIG_DEVICES_MAX];
	struct sim_options options = {.seed = seed,
		.disk_count = shape->slots,
		.disk_bytes = disk_bytes,
		.latency_min_ns = 1000,
		.latency_max_ns = 900000};

	memset(rig, 0, sizeof(*rig));
	rig->shape = *shape;
	assert_true(shape->slots <= RIG_DEVICES_MAX);
	assert_int_equal(stripes_init(shape->level, shape->layout, shape->chunk_bytes, shape->slots,
				 shape->component_bytes, &rig->stripes, NULL),
		0);
	for (unsigned slot = 0; slot < shape->slots; slot++)
		disk_bytes[slot] = member_byte(rig, slot, shape->component_bytes);
	assert_int_equal(sim_new(&options, &rig->sim, NULL), 0);
	rig->bytes = rig->stripes.array_bytes;
	rig->ids = malloc(rig->bytes / SECTOR * sizeof(*rig->ids));
	for (uint64_t i = 0; i < rig->bytes / SECTOR; i++)
		rig->ids[i] = 1;
	place_devices(rig, missing, rebuilding, recovered_bytes);
	fill_members(rig, rebuilding | missing, recovered_bytes);
	start_engine(rig);
}

void rig_fini(struct rig *rig)
{
	assert_int_equal(engine_inflight(rig->engine), 0);
	engine_free(rig->engine);
	sim_free(rig->sim);
	free(rig->ids);
}

/* --- Requests ----------------------------------------------------------------------------------
 */

static void on_done(struct engine_request *request, int result)
{
	struct call *call = request->owner;

	assert_false(call->done);
	call->done = true;
	call->result = result;
}

/* The buffer is cut into up to eight iovecs at drawn places. */
void rig_start(struct rig *rig, struct call *call, enum engine_op op, uint64_t offset,
	uint64_t length, uint8_t *buffer, unsigned flags)
{
	uint64_t at = 0;
	unsigned n = 0;

	memset(call, 0, sizeof(*call));
	while (buffer != NULL && at < length) {
		uint64_t step = n == 7 || sim_draw(rig->sim, 3) == 0
					? length - at
					: SECTOR * (1 + sim_draw(rig->sim, (length - at) / SECTOR));

		call->iov[n++] = (struct iovec){buffer + at, step};
		at += step;
	}
	call->rig = rig;
	call->buffer = buffer;
	call->request = (struct engine_request){.op = op,
		.flags = flags,
		.offset_bytes = offset,
		.length_bytes = length,
		.iov = call->iov,
		.iov_count = n,
		.done = on_done,
		.owner = call};
	engine_submit(rig->engine, &call->request);
	assert_false(call->done);
}

int rig_finish(struct rig *rig, struct call *call)
{
	engine_kick(rig->engine);
	while (!call->done)
		if (!sim_step(rig->sim))
			fail_msg("a request at %llu of %llu bytes never ends",
				(unsigned long long)call->request.offset_bytes,
				(unsigned long long)call->request.length_bytes);
	return call->result;
}

int rig_run(struct rig *rig, enum engine_op op, uint64_t offset, uint64_t length, uint8_t *buffer,
	unsigned flags)
{
	struct call call;

	rig_start(rig, &call, op, offset, length, buffer, flags);
	return rig_finish(rig, &call);
}

int rig_write(struct rig *rig, uint64_t offset, uint64_t length, uint32_t id, unsigned flags)
{
	uint8_t *buffer = malloc(length);
	int r;

	for (uint64_t at = 0; at < length; at += SECTOR)
		rig_content(id, (offset + at) / SECTOR, buffer + at);
	r = rig_run(rig, ENGINE_WRITE, offset, length, buffer, flags);
	for (uint64_t at = 0; r == 0 && at < length; at += SECTOR)
		rig->ids[(offset + at) / SECTOR] = id;
	free(buffer);
	return r;
}

/* --- The background action ---------------------------------------------------------------------
 */

int rig_window(struct rig *rig, enum engine_action action, uint64_t first, uint64_t end)
{
	struct sync_window window = {.engine = rig->engine,
		.action = action,
		.first_bytes = first,
		.end_bytes = end,
		.owner = rig,
		.number = 3};
	unsigned done = rig->windows_done;

	rig->engine->level->sync_window(&window);
	assert_int_equal(rig->windows_done, done);
	while (rig->windows_done == done)
		assert_true(sim_step(rig->sim));
	assert_int_equal(rig->windows_done, done + 1);
	return rig->window_result;
}

static void advance_rebuilding(struct rig *rig, uint64_t end, uint64_t total)
{
	for (unsigned i = 0; i < rig->engine->device_max; i++) {
		struct device *d = &rig->engine->devices[i];

		if (d->state != ENGINE_DEVICE_REBUILDING)
			continue;
		d->recovered_bytes = max_u64(d->recovered_bytes, end);
		if (end == total)
			d->state = ENGINE_DEVICE_IN_SYNC;
	}
}

int rig_walk(struct rig *rig, enum engine_action action)
{
	uint64_t total = rig->engine->redundant->sync_bytes;
	int worst = 0;

	for (uint64_t at = 0; at < total;) {
		uint64_t end = min_u64(
			round_down(at, SYNC_WINDOW_BYTES) + SYNC_WINDOW_BYTES, total);
		int r = rig_window(rig, action, at, end);

		if (r < 0)
			worst = r;
		if (action == ENGINE_ACTION_RECOVERY)
			advance_rebuilding(rig, end, total);
		at = end;
	}
	return worst;
}

/* --- Faults ------------------------------------------------------------------------------------
 */

void rig_fault(struct rig *rig, unsigned slot, unsigned ops, uint64_t offset, uint64_t length,
	int error, unsigned times)
{
	assert_int_equal(
		sim_fault_add(rig->sim, &(struct sim_fault){.disk = slot,
						.ops = ops,
						.offset_bytes = member_byte(rig, slot, offset),
						.length_bytes = length,
						.error = error,
						.times = times}),
		0);
}

void rig_damage(struct rig *rig, unsigned slot, uint64_t offset, uint8_t xor_with)
{
	uint8_t sector[SECTOR];

	sim_disk_peek(rig->sim, slot, member_byte(rig, slot, offset), sector, SECTOR);
	for (unsigned i = 0; i < SECTOR; i++)
		sector[i] ^= (uint8_t)(xor_with + i);
	sim_disk_poke(rig->sim, slot, member_byte(rig, slot, offset), sector, SECTOR);
}

uint64_t rig_reads(struct rig *rig)
{
	uint64_t count = 0;

	for (unsigned slot = 0; slot < rig->shape.slots; slot++)
		count += sim_disk_counters(rig->sim, slot)->reads;
	return count;
}

uint64_t rig_writes(struct rig *rig)
{
	uint64_t count = 0;

	for (unsigned slot = 0; slot < rig->shape.slots; slot++)
		count += sim_disk_counters(rig->sim, slot)->writes;
	return count;
}
