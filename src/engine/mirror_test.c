/* SPDX-License-Identifier: MIT */
/*
 * Mirrors in the simulated world: contents against a shadow copy while devices are missing, fail
 * and return errors; what reaches which copy; windows of the background action.
 */
#include "engine/mirror.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "geometry/available.h"
#include "sim/sim.h"
#include "util/rounding.h"

#define K 1024u
#define DEVICES_MAX 8u
#define DATA_OFFSET (8 * K)
#define REQUESTS_MAX 6u
#define CALLS_MAX 12u

struct shape {
	int level;
	uint32_t layout;
	uint32_t chunk_bytes;
	unsigned slots;
	uint64_t component_bytes;
};

static const struct shape shapes[] = {
	{1, 0, 0, 2, 96 * K},
	{1, 0, 0, 3, 64 * K + 512},
	{1, 0, 0, 1, 32 * K},
	{10, 0x102, 4 * K, 2, 64 * K},
	{10, 0x102, 4 * K, 4, 48 * K},
	{10, 0x102, 8 * K, 3, 56 * K},
	{10, 0x103, 4 * K, 4, 40 * K},
	{10, 0x201, 4 * K, 2, 64 * K},
	{10, 0x201, 4 * K, 3, 40 * K},
	{10, 0x10201, 4 * K, 4, 48 * K},
	{10, 0x10201, 4 * K, 3, 40 * K},
	{10, 0x202, 4 * K, 4, 32 * K},
};
#define SHAPES (sizeof(shapes) / sizeof(shapes[0]))

struct rig {
	const struct shape *shape;
	struct sim *sim;
	struct engine *engine;
	struct engine_device devices[DEVICES_MAX];
	unsigned device_count;
	uint64_t bytes;
	uint8_t *shadow;
};

struct call {
	struct rig *rig;
	struct engine_request request;
	struct iovec iov[8];
	uint8_t *buffer;
	int result;
	bool busy, done;
};

static void rig_init(struct rig *rig, const struct shape *shape, unsigned missing, uint64_t seed)
{
	uint64_t disk_bytes[DEVICES_MAX];
	struct sim_options options = {.seed = seed,
		.disk_count = shape->slots,
		.disk_bytes = disk_bytes,
		.latency_min_ns = 1000,
		.latency_max_ns = 900000};
	struct engine_redundancy redundancy = {.component_bytes = shape->component_bytes,
		.resync_bytes = UINT64_MAX,
		.devices = rig->devices,
		.device_max = DEVICES_MAX};
	struct engine_config config = {.level = shape->level,
		.layout = shape->layout,
		.chunk_bytes = shape->chunk_bytes,
		.slot_count = shape->slots,
		.requests_max = REQUESTS_MAX,
		.redundancy = &redundancy};
	struct fault fault = {0};

	memset(rig, 0, sizeof(*rig));
	rig->shape = shape;
	for (unsigned slot = 0; slot < shape->slots; slot++) {
		disk_bytes[slot] = DATA_OFFSET + slot * 4 * K + shape->component_bytes;
		if ((missing >> slot & 1) != 0)
			continue;
		rig->devices[rig->device_count++] = (struct engine_device){
			.member = slot,
			.slot = slot,
			.in_sync = true,
			.data_offset_bytes = DATA_OFFSET + slot * 4 * K,
			.data_bytes = shape->component_bytes,
		};
	}
	redundancy.device_count = rig->device_count;
	assert_int_equal(sim_new(&options, &rig->sim, NULL), 0);
	if (engine_new(&config, sim_world(rig->sim), &rig->engine, &fault) < 0)
		fail_msg("level %d: %s", shape->level, fault.text);
	rig->bytes = engine_array_bytes(rig->engine);
	rig->shadow = calloc(1, rig->bytes);
}

static void rig_fini(struct rig *rig)
{
	assert_int_equal(engine_inflight(rig->engine), 0);
	engine_free(rig->engine);
	sim_free(rig->sim);
	free(rig->shadow);
}

static void on_done(struct engine_request *request, int result)
{
	struct call *call = request->owner;

	assert_false(call->done);
	call->done = true;
	call->result = result;
}

static void start(struct call *call, enum engine_op op, uint64_t offset, uint64_t length)
{
	struct rig *rig = call->rig;
	uint64_t at = 0;
	unsigned n = 0;

	while (at < length && op <= ENGINE_WRITE) {
		uint64_t step = n == 7 ? length - at
				       : 512 * (1 + sim_draw(rig->sim, (length - at) / 512));

		call->iov[n++] = (struct iovec){call->buffer + at, step};
		at += step;
	}
	call->busy = true;
	call->done = false;
	call->request = (struct engine_request){.op = op,
		.offset_bytes = offset,
		.length_bytes = length,
		.iov = call->iov,
		.iov_count = n,
		.done = on_done,
		.owner = call};
	engine_submit(rig->engine, &call->request);
}

static int run(struct rig *rig, enum engine_op op, uint64_t offset, uint64_t length, void *buffer)
{
	struct call call = {.rig = rig, .buffer = buffer};

	start(&call, op, offset, length);
	engine_kick(rig->engine);
	while (!call.done)
		assert_true(sim_step(rig->sim));
	return call.result;
}

static void fill(struct rig *rig, uint8_t *buffer, uint64_t length)
{
	for (uint64_t i = 0; i < length; i += 8) {
		uint64_t value = sim_draw(rig->sim, UINT64_MAX);

		memcpy(buffer + i, &value, 8);
	}
}

static void check_all(struct rig *rig, uint64_t seed)
{
	uint8_t *buffer = malloc(rig->bytes);

	assert_int_equal(run(rig, ENGINE_READ, 0, rig->bytes, buffer), 0);
	for (uint64_t i = 0; i < rig->bytes; i++)
		if (buffer[i] != rig->shadow[i])
			fail_msg("level %d layout %#x, %u slots, seed %llu: byte %llu differs",
				rig->shape->level, rig->shape->layout, rig->shape->slots,
				(unsigned long long)seed, (unsigned long long)i);
	free(buffer);
}

/* Every copy on every written device holds what the shadow does. */
static void check_copies(struct rig *rig)
{
	struct mirror *mirror = mirror_of(rig->engine);
	struct geometry_piece places[64];
	uint8_t sector[512];

	for (uint64_t at = 0; at < rig->bytes; at += 512) {
		(void)mirrors_map(&mirror->geometry, at, places);
		for (unsigned copy = 0; copy < mirror->geometry.copies; copy++) {
			unsigned device = rig->engine->redundant->active[places[copy].slot];
			const struct device *d = &rig->engine->devices[device];

			if (device == ENGINE_NONE)
				continue;
			sim_disk_peek(rig->sim, d->where.member,
				d->where.data_offset_bytes + places[copy].member_offset, sector,
				512);
			assert_memory_equal(sector, rig->shadow + at, 512);
		}
	}
}

/* Which array ranges are in flight: overlapping reads and writes are not compared. */
static bool overlaps(const struct call *calls, unsigned count, uint64_t offset, uint64_t length)
{
	for (unsigned i = 0; i < count; i++)
		if (calls[i].busy && calls[i].request.offset_bytes < offset + length &&
			offset < calls[i].request.offset_bytes + calls[i].request.length_bytes)
			return true;
	return false;
}

static void finish_call(struct rig *rig, struct call *call, uint64_t seed)
{
	const struct engine_request *request = &call->request;

	call->busy = false;
	if (call->result != 0)
		fail_msg("seed %llu: op %d at %llu: %d", (unsigned long long)seed, request->op,
			(unsigned long long)request->offset_bytes, call->result);
	if (request->op == ENGINE_WRITE)
		memcpy(rig->shadow + request->offset_bytes, call->buffer, request->length_bytes);
	else if (request->op == ENGINE_ZERO)
		memset(rig->shadow + request->offset_bytes, 0, request->length_bytes);
	else if (request->op == ENGINE_READ && memcmp(rig->shadow + request->offset_bytes,
						       call->buffer, request->length_bytes) != 0)
		fail_msg("level %d layout %#x, %u slots, seed %llu: read at %llu differs",
			rig->shape->level, rig->shape->layout, rig->shape->slots,
			(unsigned long long)seed, (unsigned long long)request->offset_bytes);
}

static void start_random(struct rig *rig, struct call *calls, struct call *call)
{
	static const enum engine_op ops[] = {
		ENGINE_READ, ENGINE_READ, ENGINE_WRITE, ENGINE_WRITE, ENGINE_ZERO, ENGINE_FLUSH};
	enum engine_op op = ops[sim_draw(rig->sim, 6)];
	uint64_t sectors = rig->bytes / 512;
	uint64_t first = sim_draw(rig->sim, sectors);
	uint64_t most = sim_draw(rig->sim, 4) == 0 ? sectors - first : min_u64(sectors - first, 24);
	uint64_t length = 512 * (1 + sim_draw(rig->sim, most));

	if (overlaps(calls, CALLS_MAX, 512 * first, length))
		return;
	if (op == ENGINE_WRITE)
		fill(rig, call->buffer, length);
	if (op == ENGINE_FLUSH)
		first = length = 0;
	start(call, op, 512 * first, length);
}

static void run_random(
	struct rig *rig, unsigned rounds, uint64_t seed, void (*disturb)(struct rig *rig))
{
	struct call calls[CALLS_MAX] = {0};

	for (unsigned i = 0; i < CALLS_MAX; i++) {
		calls[i].rig = rig;
		calls[i].buffer = malloc(rig->bytes);
	}
	for (unsigned round = 0; round < rounds; round++) {
		struct call *call = &calls[sim_draw(rig->sim, CALLS_MAX)];

		if (disturb != NULL)
			disturb(rig);
		if (!call->busy)
			start_random(rig, calls, call);
		engine_kick(rig->engine);
		(void)sim_run(rig->sim, sim_draw(rig->sim, 4));
		for (unsigned i = 0; i < CALLS_MAX; i++)
			if (calls[i].busy && calls[i].done)
				finish_call(rig, &calls[i], seed);
	}
	engine_kick(rig->engine);
	while (engine_inflight(rig->engine) > 0)
		assert_true(sim_step(rig->sim));
	for (unsigned i = 0; i < CALLS_MAX; i++) {
		if (calls[i].busy)
			finish_call(rig, &calls[i], seed);
		free(calls[i].buffer);
	}
}

static bool is_runnable(const struct shape *shape, unsigned missing)
{
	bool in_sync[DEVICES_MAX];

	for (unsigned slot = 0; slot < shape->slots; slot++)
		in_sync[slot] = (missing >> slot & 1) == 0;
	return geometry_available(shape->level, shape->layout, shape->slots, in_sync);
}

static void test_contents(void **state)
{
	(void)state;
	for (unsigned s = 0; s < SHAPES; s++)
		for (unsigned missing = 0; missing < 1u << shapes[s].slots; missing++) {
			struct rig rig;

			if (!is_runnable(&shapes[s], missing))
				continue;
			rig_init(&rig, &shapes[s], missing, s * 100 + missing);
			run_random(&rig, 400, s * 100 + missing, NULL);
			check_all(&rig, s * 100 + missing);
			check_copies(&rig);
			rig_fini(&rig);
		}
}

/* A read has failed and its repair is at work or about to begin. */
static bool is_repairing(const struct rig *rig)
{
	const struct mirror *mirror = mirror_of(rig->engine);

	for (unsigned i = 0; i < REQUESTS_MAX; i++)
		if (mirror->works[i].failed_first < mirror->works[i].failed_end)
			return true;
	return mirror->repairs != NULL;
}

/* Read errors on one slot, anywhere, many times: repaired by rewriting, never seen by a client. */
static void read_errors(struct rig *rig)
{
	struct sim_fault fault = {.disk = 0, .ops = 1u << WORLD_READ, .error = -EIO};

	/* Not while one is being repaired: the sector that was rewritten must not fail again. */
	if (sim_draw(rig->sim, 8) != 0 || is_repairing(rig))
		return;
	sim_faults_clear(rig->sim); /* one at a time: else reading again could meet another */
	fault.times = 1 + (unsigned)sim_draw(rig->sim, 2); /* 1: it went by itself */
	fault.offset_bytes = rig->devices[0].data_offset_bytes +
			     512 * sim_draw(rig->sim, rig->shape->component_bytes / 512);
	fault.length_bytes = 512;
	(void)sim_fault_add(rig->sim, &fault);
}

static void test_read_errors(void **state)
{
	unsigned corrected = 0;

	(void)state;
	for (unsigned s = 0; s < SHAPES; s++)
		for (uint64_t seed = 0; seed < 8; seed++) {
			struct rig rig;

			if (shapes[s].slots == 1)
				continue;
			rig_init(&rig, &shapes[s], 0, seed);
			run_random(&rig, 600, seed, read_errors);
			sim_faults_clear(rig.sim);
			check_all(&rig, seed);
			check_copies(&rig);
			assert_int_equal(rig.engine->devices[0].state, ENGINE_DEVICE_IN_SYNC);
			corrected += rig.engine->devices[0].corrected_reads;
			rig_fini(&rig);
		}
	assert_true(corrected > 100);
}

/* One bad sector: answered from the other copy, rewritten, read again, counted. */
static void test_one_bad_sector(void **state)
{
	struct sim_fault fault = {.disk = 0,
		.ops = 1u << WORLD_READ,
		.offset_bytes = DATA_OFFSET + 8 * K,
		.length_bytes = 512,
		.error = -EIO,
		.times = 2}; /* the read and the same in the repair */
	uint8_t *buffer = malloc(16 * K);
	struct rig rig;

	(void)state;
	rig_init(&rig, &shapes[0], 0, 1);
	fill(&rig, buffer, 16 * K);
	memcpy(rig.shadow, buffer, 16 * K);
	assert_int_equal(run(&rig, ENGINE_WRITE, 0, 16 * K, buffer), 0);
	memset(buffer, 0, 16 * K);
	assert_int_equal(sim_fault_add(rig.sim, &fault), 0);
	assert_int_equal(run(&rig, ENGINE_READ, 0, 16 * K, buffer), 0);
	assert_memory_equal(buffer, rig.shadow, 16 * K);
	assert_int_equal(sim_disk_counters(rig.sim, 0)->writes, 2);
	assert_int_equal(sim_disk_counters(rig.sim, 0)->reads, 1); /* that went well: the last */
	assert_int_equal(rig.engine->devices[0].corrected_reads, 32);
	assert_int_equal(rig.engine->devices[0].state, ENGINE_DEVICE_IN_SYNC);
	rig_fini(&rig);
	free(buffer);
}

/* One slot refuses all from some moment on: it is failed, nothing else is noticed. */
static void death(struct rig *rig)
{
	struct sim_fault fault = {.disk = rig->shape->slots - 1,
		.ops = UINT32_MAX,
		.length_bytes = UINT64_MAX,
		.error = -EIO,
		.times = UINT32_MAX};

	if (sim_draw(rig->sim, 60) == 0)
		(void)sim_fault_add(rig->sim, &fault);
}

static void test_death(void **state)
{
	(void)state;
	for (unsigned s = 0; s < SHAPES; s++)
		for (uint64_t seed = 0; seed < 8; seed++) {
			unsigned last = shapes[s].slots - 1;
			struct rig rig;

			if (shapes[s].slots == 1)
				continue;
			rig_init(&rig, &shapes[s], 0, seed);
			run_random(&rig, 600, seed, death);
			check_all(&rig, seed);
			check_copies(&rig);
			assert_int_equal(rig.engine->devices[last].state, ENGINE_DEVICE_FAULTY);
			assert_int_equal(rig.engine->redundant->active[last], ENGINE_NONE);
			rig_fini(&rig);
		}
}

/* The last copy is never failed; errors name exactly the sectors that no copy has. */
static void test_last_copy(void **state)
{
	uint8_t *buffer = malloc(96 * K);
	struct call call = {.buffer = buffer};
	struct rig rig;

	(void)state;
	rig_init(&rig, &shapes[0], 0, 1);
	for (unsigned disk = 0; disk < 2; disk++) {
		struct sim_fault fault = {.disk = disk,
			.ops = 1u << WORLD_READ | 1u << WORLD_WRITE,
			.offset_bytes = rig.devices[disk].data_offset_bytes + 20 * K,
			.length_bytes = 1024,
			.error = -EIO,
			.times = UINT32_MAX};

		assert_int_equal(sim_fault_add(rig.sim, &fault), 0);
	}
	call.rig = &rig;
	start(&call, ENGINE_READ, 0, 96 * K);
	engine_kick(rig.engine);
	while (!call.done)
		assert_true(sim_step(rig.sim));
	assert_int_equal(call.result, -EIO);
	assert_int_equal(call.request.fail_offset_bytes, 20 * K);
	assert_int_equal(call.request.fail_length_bytes, 1024);
	assert_int_equal(run(&rig, ENGINE_WRITE, 20 * K, 512, buffer), -EIO);
	assert_int_equal(devices_in_sync(rig.engine), 1);
	assert_int_equal(run(&rig, ENGINE_WRITE, 40 * K, 512, buffer), 0);
	rig_fini(&rig);
	free(buffer);
}

/*
 * The source of a rebuild refuses a write behind the position, which the device being rebuilt has
 * taken: what differs then is copied again before that device counts as in sync.
 */
static void test_source_refuses(void **state)
{
	struct sim_fault fault = {.disk = 0, .ops = 1u << WORLD_WRITE, .error = -EIO, .times = 1};
	uint8_t *buffer = malloc(96 * K);
	struct device *rebuilt;
	struct rig rig;

	(void)state;
	rig_init(&rig, &shapes[0], 0, 1);
	rebuilt = &rig.engine->devices[1];
	rebuilt->state = ENGINE_DEVICE_REBUILDING;
	rebuilt->recovered_bytes = 48 * K;
	fill(&rig, buffer, 96 * K);
	assert_int_equal(run(&rig, ENGINE_WRITE, 0, 96 * K, buffer), 0);
	fault.offset_bytes = rig.devices[0].data_offset_bytes + 8 * K;
	fault.length_bytes = 4 * K;
	assert_int_equal(sim_fault_add(rig.sim, &fault), 0);
	fill(&rig, buffer, 4 * K);
	assert_int_equal(run(&rig, ENGINE_WRITE, 8 * K, 4 * K, buffer), -EIO);
	assert_int_equal(rig.engine->devices[0].state, ENGINE_DEVICE_IN_SYNC);
	for (unsigned i = 0; i < 100000 && rebuilt->state != ENGINE_DEVICE_IN_SYNC; i++)
		assert_true(sim_step(rig.sim));
	assert_int_equal(rebuilt->state, ENGINE_DEVICE_IN_SYNC);
	assert_int_equal(run(&rig, ENGINE_READ, 0, 96 * K, rig.shadow), 0);
	check_copies(&rig);
	rig_fini(&rig);
	free(buffer);
}

/* Sequential streams stay on one member, different streams take different ones. */
static void test_streams(void **state)
{
	uint8_t *buffer = malloc(4 * K);
	struct rig rig;
	struct call calls[] = {{.rig = &rig, .buffer = buffer}, {.rig = &rig, .buffer = buffer}};

	(void)state;
	rig_init(&rig, &shapes[0], 0, 1);
	for (unsigned i = 0; i < 8; i++)
		assert_int_equal(run(&rig, ENGINE_READ, i * 4 * K, 4 * K, buffer), 0);
	assert_int_equal(
		sim_disk_counters(rig.sim, 0)->reads * sim_disk_counters(rig.sim, 1)->reads, 0);
	for (unsigned i = 0; i < 8; i++) {
		start(&calls[0], ENGINE_READ, 32 * K + i * 4 * K, 4 * K);
		start(&calls[1], ENGINE_READ, 64 * K + i * 4 * K, 4 * K);
		engine_kick(rig.engine);
		while (!calls[0].done || !calls[1].done)
			assert_true(sim_step(rig.sim));
	}
	assert_true(sim_disk_counters(rig.sim, 0)->reads >= 8);
	assert_int_equal(
		sim_disk_counters(rig.sim, 0)->reads + sim_disk_counters(rig.sim, 1)->reads, 24);
	assert_true(sim_disk_counters(rig.sim, 1)->reads >= 8);
	rig_fini(&rig);
	free(buffer);
}

/* Overlapping writes in flight leave all copies alike. */
static void test_overlapping_writes(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 50; seed++) {
		struct call calls[REQUESTS_MAX] = {0};
		struct rig rig;

		rig_init(&rig, &shapes[seed % SHAPES], 0, seed);
		for (unsigned i = 0; i < REQUESTS_MAX; i++) {
			calls[i].rig = &rig;
			calls[i].buffer = malloc(16 * K);
			fill(&rig, calls[i].buffer, 16 * K);
			start(&calls[i], ENGINE_WRITE, 512 * sim_draw(rig.sim, 16),
				512 * (1 + sim_draw(rig.sim, 31)));
		}
		engine_kick(rig.engine);
		(void)sim_run(rig.sim, UINT64_MAX);
		for (unsigned i = 0; i < REQUESTS_MAX; i++) {
			assert_true(calls[i].done);
			assert_int_equal(calls[i].result, 0);
			free(calls[i].buffer);
		}
		assert_int_equal(run(&rig, ENGINE_READ, 0, rig.bytes, rig.shadow), 0);
		check_copies(&rig);
		rig_fini(&rig);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_contents),
		cmocka_unit_test(test_read_errors),
		cmocka_unit_test(test_one_bad_sector),
		cmocka_unit_test(test_death),
		cmocka_unit_test(test_last_copy),
		cmocka_unit_test(test_source_refuses),
		cmocka_unit_test(test_streams),
		cmocka_unit_test(test_overlapping_writes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
