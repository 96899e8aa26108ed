/* SPDX-License-Identifier: MIT */
/*
 * The engine in the simulated world: contents against a shadow copy over a grid of arrays, exact
 * failure ranges, flush and power cuts, and what reaches the members.
 */
#include "engine/engine.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sim/sim.h"
#include "util/rounding.h"

#define K 1024u
#define SLOTS_MAX 6u
#define DATA_OFFSET (8 * K)

/* An array in a simulation, with a flat copy of what it must contain. */
struct rig {
	struct sim *sim;
	struct engine *engine;
	struct engine_slot slots[SLOTS_MAX];
	struct engine_config config;
	uint64_t bytes;
	uint8_t *shadow;
	unsigned member_errors;
	uint64_t failed_bytes[SLOTS_MAX];
};

struct call {
	struct engine_request request;
	struct iovec iov[8];
	int result;
	bool done;
};

static void on_member_error(void *owner, unsigned slot, const struct world_io *io, int error)
{
	struct rig *rig = owner;

	assert_true(slot < rig->config.slot_count && error < 0 && io != NULL);
	rig->member_errors++;
	rig->failed_bytes[slot] += io->length_bytes;
}

static void rig_start(struct rig *rig)
{
	struct fault fault = {0};

	if (engine_new(&rig->config, sim_world(rig->sim), &rig->engine, &fault) < 0)
		fail_msg("%s", fault.text);
	rig->bytes = engine_array_bytes(rig->engine);
}

static void rig_init(struct rig *rig, int level, uint32_t chunk, uint32_t layout, unsigned slots,
	const uint64_t *data_bytes, uint64_t seed)
{
	uint64_t disk_bytes[SLOTS_MAX];
	struct sim_options options = {.seed = seed,
		.disk_count = slots,
		.disk_bytes = disk_bytes,
		.latency_min_ns = 1000,
		.latency_max_ns = 900000};

	memset(rig, 0, sizeof(*rig));
	for (unsigned i = 0; i < slots; i++) {
		/* Each slot has its own data offset and a member number that is not the slot. */
		rig->slots[i].member = slots - 1 - i;
		rig->slots[i].data_offset_bytes = DATA_OFFSET + i * 4 * K;
		rig->slots[i].data_bytes = data_bytes[i];
		disk_bytes[slots - 1 - i] = DATA_OFFSET + i * 4 * K + data_bytes[i];
	}
	rig->config = (struct engine_config){.level = level,
		.layout = layout,
		.chunk_bytes = chunk,
		.slot_count = slots,
		.slots = rig->slots,
		.requests_max = 4,
		.member_error = on_member_error,
		.owner = rig};
	assert_int_equal(sim_new(&options, &rig->sim, NULL), 0);
	rig_start(rig);
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

/* Submit a request whose buffer is cut into up to eight iovecs at drawn places. */
static void start(struct rig *rig, struct call *call, enum engine_op op, uint64_t offset,
	uint64_t length, void *buffer, unsigned flags)
{
	uint64_t at = 0;
	unsigned n = 0;

	memset(call, 0, sizeof(*call));
	while (buffer != NULL && at < length) {
		uint64_t step = n == 7 ? length - at
				       : 512 * (1 + sim_draw(rig->sim, (length - at) / 512));

		call->iov[n++] = (struct iovec){(uint8_t *)buffer + at, step};
		at += step;
	}
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

static int finish(struct rig *rig, struct call *call)
{
	engine_kick(rig->engine);
	while (!call->done)
		assert_true(sim_step(rig->sim));
	return call->result;
}

static int run(struct rig *rig, enum engine_op op, uint64_t offset, uint64_t length, void *buffer,
	unsigned flags)
{
	struct call call;

	start(rig, &call, op, offset, length, buffer, flags);
	return finish(rig, &call);
}

static void fill_random(struct rig *rig, uint8_t *buffer, uint64_t length)
{
	for (uint64_t i = 0; i < length; i++)
		buffer[i] = (uint8_t)sim_draw(rig->sim, 256);
}

static void check_content(struct rig *rig)
{
	uint8_t *content = malloc(rig->bytes);

	memset(content, 0xa5, rig->bytes);
	assert_int_equal(run(rig, ENGINE_READ, 0, rig->bytes, content, 0), 0);
	assert_memory_equal(content, rig->shadow, rig->bytes);
	free(content);
}

/* A batch of writes and zeroings that do not overlap, more at once than there are work objects. */
static void write_batch(struct rig *rig)
{
	enum { BATCH = 12 };
	struct call calls[BATCH];
	uint64_t part = rig->bytes / BATCH / 512 * 512;

	for (unsigned i = 0; i < BATCH; i++) {
		uint64_t skip = sim_draw(rig->sim, part / 512) * 512;
		uint64_t offset = i * part + skip;
		uint64_t length = 512 + sim_draw(rig->sim, (part - skip) / 512) * 512;

		if (sim_draw(rig->sim, 4) == 0) {
			memset(rig->shadow + offset, 0, length);
			start(rig, &calls[i], ENGINE_ZERO, offset, length, NULL, 0);
		} else {
			fill_random(rig, rig->shadow + offset, length);
			start(rig, &calls[i], ENGINE_WRITE, offset, length, rig->shadow + offset,
				0);
		}
	}
	for (unsigned i = 0; i < BATCH; i++)
		assert_int_equal(finish(rig, &calls[i]), 0);
}

static void read_some(struct rig *rig)
{
	for (int i = 0; i < 20; i++) {
		uint64_t offset = sim_draw(rig->sim, rig->bytes / 512) * 512;
		uint64_t length = 512 + sim_draw(rig->sim, (rig->bytes - offset) / 512) * 512;
		uint8_t *buffer = malloc(length);

		assert_int_equal(run(rig, ENGINE_READ, offset, length, buffer, 0), 0);
		assert_memory_equal(buffer, rig->shadow + offset, length);
		free(buffer);
	}
}

static void test_contents_grid(void **state)
{
	static const uint32_t chunks[] = {512, 4 * K, 6 * K, 64 * K};

	for (unsigned n = 1; n <= SLOTS_MAX; n++)
		for (unsigned c = 0; c < 4; c++)
			for (unsigned variant = 0; variant < 8; variant++) {
				uint64_t bytes[SLOTS_MAX];
				struct rig rig;

				for (unsigned i = 0; i < n; i++)
					bytes[i] = 192 * K + (variant & 4 ? i * 2 * chunks[c] : 0);
				rig_init(&rig, variant & 1 ? 0 : -1, chunks[c], variant & 2 ? 1 : 2,
					n, bytes, n * 100 + c * 10 + variant);
				for (int round = 0; round < 2; round++)
					write_batch(&rig);
				check_content(&rig);
				read_some(&rig);
				rig_fini(&rig);
			}
}

/* Each byte is where the geometry says, behind the data offset, and nothing else was touched. */
static void test_placement(void **state)
{
	const uint64_t bytes[] = {256 * K, 256 * K, 256 * K};
	struct rig rig;
	uint8_t sector[512], head[DATA_OFFSET];

	rig_init(&rig, 0, 64 * K, 1, 3, bytes, 7);
	for (uint64_t i = 0; i < rig.bytes; i++)
		rig.shadow[i] = (uint8_t)(i / 512 * 7 + i);
	assert_int_equal(run(&rig, ENGINE_WRITE, 0, rig.bytes, rig.shadow, 0), 0);
	for (uint64_t a = 0; a < rig.bytes; a += 512) {
		uint64_t chunk = a / (64 * K);
		unsigned slot = chunk % 3;
		uint64_t at = rig.slots[slot].data_offset_bytes + chunk / 3 * 64 * K + a % (64 * K);

		sim_disk_peek(rig.sim, rig.slots[slot].member, at, sector, 512);
		assert_memory_equal(sector, rig.shadow + a, 512);
	}
	for (unsigned slot = 0; slot < 3; slot++) {
		sim_disk_peek(rig.sim, rig.slots[slot].member, 0, head, sizeof(head));
		for (unsigned i = 0; i < sizeof(head); i++)
			assert_int_equal(head[i], 0);
	}
	rig_fini(&rig);
}

/* One vectored I/O per member for a contiguous run, whatever the number of chunks. */
static void test_one_io_per_member(void **state)
{
	const uint64_t bytes[] = {1024 * K, 1024 * K, 1024 * K, 1024 * K};
	struct rig rig;
	uint8_t *buffer = malloc(1024 * K);
	struct call call;

	rig_init(&rig, 0, 16 * K, 1, 4, bytes, 3);
	memset(&call, 0, sizeof(call));
	call.iov[0] = (struct iovec){buffer, 1024 * K};
	call.request = (struct engine_request){.op = ENGINE_READ,
		.offset_bytes = 8 * K,
		.length_bytes = 1024 * K,
		.iov = call.iov,
		.iov_count = 1,
		.done = on_done,
		.owner = &call};
	engine_submit(rig.engine, &call.request);
	assert_int_equal(finish(&rig, &call), 0);
	for (unsigned disk = 0; disk < 4; disk++)
		assert_int_equal(sim_disk_counters(rig.sim, disk)->reads, 1);
	assert_int_equal(engine_counters(rig.engine)->member_ios, 4);
	assert_int_equal(run(&rig, ENGINE_DISCARD, 0, rig.bytes, NULL, 0), 0);
	for (unsigned disk = 0; disk < 4; disk++)
		assert_int_equal(sim_disk_counters(rig.sim, disk)->discards, 1);
	free(buffer);
	rig_fini(&rig);
}

static void test_ranges(void **state)
{
	const uint64_t bytes[] = {128 * K, 128 * K};
	struct rig rig;
	uint8_t buffer[1024];

	rig_init(&rig, 0, 4 * K, 1, 2, bytes, 4);
	assert_int_equal(run(&rig, ENGINE_READ, 0, 0, NULL, 0), 0);
	assert_int_equal(run(&rig, ENGINE_READ, rig.bytes, 0, NULL, 0), 0);
	assert_int_equal(run(&rig, ENGINE_READ, rig.bytes - 512, 512, buffer, 0), 0);
	assert_int_equal(run(&rig, ENGINE_READ, rig.bytes - 512, 1024, buffer, 0), -ERANGE);
	assert_int_equal(run(&rig, ENGINE_READ, rig.bytes, 512, buffer, 0), -ERANGE);
	assert_int_equal(run(&rig, ENGINE_WRITE, UINT64_MAX - 511, 1024, buffer, 0), -ERANGE);
	assert_int_equal(run(&rig, ENGINE_READ, 100, 512, buffer, 0), -EINVAL);
	assert_int_equal(run(&rig, ENGINE_READ, 0, 100, buffer, 0), -EINVAL);
	assert_int_equal(engine_counters(rig.engine)->member_ios, 1);
	rig_fini(&rig);
}

/* Ranges beyond 4 GiB, on disks that stay empty in memory. */
static void test_over_4_gib(void **state)
{
	const uint64_t bytes[] = {6ull << 30, 6ull << 30};
	uint64_t disks[] = {7ull << 30, 7ull << 30};
	struct engine_slot slots[] = {{0, 1 << 20, 6ull << 30}, {1, 1 << 20, 6ull << 30}};
	struct sim_options options = {.seed = 1, .disk_count = 2, .disk_bytes = disks};
	struct rig rig = {.config = {.level = 0,
				  .layout = 1,
				  .chunk_bytes = 512 * K,
				  .slot_count = 2,
				  .slots = slots,
				  .requests_max = 2,
				  .member_error = on_member_error}};
	uint8_t pattern[512], back[512];
	uint64_t far = (9ull << 30) + 512 * 3;

	rig.config.owner = &rig;
	assert_int_equal(sim_new(&options, &rig.sim, NULL), 0);
	rig_start(&rig);
	assert_int_equal(rig.bytes, bytes[0] * 2);
	memset(pattern, 0x5a, sizeof(pattern));
	assert_int_equal(run(&rig, ENGINE_WRITE, far, 512, pattern, 0), 0);
	assert_int_equal(run(&rig, ENGINE_READ, far, 512, back, 0), 0);
	assert_memory_equal(back, pattern, 512);
	/* Fail before the disk does the work: the ranges are what is looked at. */
	for (unsigned disk = 0; disk < 2; disk++)
		assert_int_equal(sim_fault_add(rig.sim, &(struct sim_fault){.disk = disk,
								.ops = 1u << WORLD_DISCARD,
								.offset_bytes = 1 << 20,
								.length_bytes = 6ull << 30,
								.error = -EOPNOTSUPP,
								.times = UINT32_MAX}),
			0);
	assert_int_equal(run(&rig, ENGINE_DISCARD, 0, rig.bytes, NULL, 0), -EOPNOTSUPP);
	for (unsigned slot = 0; slot < 2; slot++)
		assert_int_equal(rig.failed_bytes[slot], 6ull << 30);
	assert_int_equal(engine_slot_counters(rig.engine, 0)->written_bytes, 512);
	rig_fini(&rig);
}

static void test_readonly(void **state)
{
	const uint64_t bytes[] = {64 * K, 64 * K};
	struct rig rig;
	uint8_t buffer[512] = {1};

	rig_init(&rig, 0, 4 * K, 1, 2, bytes, 5);
	engine_free(rig.engine);
	rig.config.readonly = true;
	rig_start(&rig);
	assert_int_equal(run(&rig, ENGINE_WRITE, 0, 512, buffer, 0), -EROFS);
	assert_int_equal(run(&rig, ENGINE_ZERO, 0, 512, NULL, 0), -EROFS);
	assert_int_equal(run(&rig, ENGINE_DISCARD, 0, 512, NULL, 0), -EROFS);
	assert_int_equal(run(&rig, ENGINE_FLUSH, 0, 0, NULL, 0), 0);
	assert_int_equal(engine_counters(rig.engine)->member_ios, 0);
	assert_int_equal(run(&rig, ENGINE_READ, 0, 512, buffer, 0), 0);
	assert_int_equal(buffer[0], 0);
	rig_fini(&rig);
}

/* A bad sector fails the requests that touch it, and no others; the range told contains it. */
static void test_error_exact(void **state)
{
	const uint64_t bytes[] = {64 * K, 64 * K, 64 * K};
	const uint64_t bad = 37 * 512; /* array byte: chunk 4, so slot 1, row 1, 2560 bytes in */
	struct rig rig;
	uint8_t *buffer = malloc(192 * K);

	rig_init(&rig, 0, 4 * K, 1, 3, bytes, 6);
	assert_int_equal(
		sim_fault_add(rig.sim,
			&(struct sim_fault){.disk = rig.slots[1].member,
				.ops = 1u << WORLD_READ,
				.length_bytes = 512,
				.error = -EIO,
				.times = UINT32_MAX,
				.offset_bytes = rig.slots[1].data_offset_bytes + 4 * K + 2560}),
		0);
	for (uint64_t a = 0; a < rig.bytes; a += 512)
		assert_int_equal(run(&rig, ENGINE_READ, a, 512, buffer, 0), a == bad ? -EIO : 0);
	for (int i = 0; i < 300; i++) {
		uint64_t offset = sim_draw(rig.sim, rig.bytes / 512) * 512;
		uint64_t length = 512 + sim_draw(rig.sim, (rig.bytes - offset) / 512) * 512;
		bool hit = offset <= bad && bad < offset + length;
		struct call call;

		start(&rig, &call, ENGINE_READ, offset, length, buffer, 0);
		assert_int_equal(finish(&rig, &call), hit ? -EIO : 0);
		if (!hit)
			continue;
		assert_true(call.request.fail_offset_bytes <= bad);
		assert_true(call.request.fail_offset_bytes + call.request.fail_length_bytes > bad);
		assert_true(call.request.fail_offset_bytes >= offset);
		assert_true(call.request.fail_offset_bytes + call.request.fail_length_bytes <=
			    offset + length);
	}
	assert_true(rig.member_errors > 1);
	assert_int_equal(engine_slot_counters(rig.engine, 1)->errors, rig.member_errors);
	assert_int_equal(engine_slot_counters(rig.engine, 0)->errors, 0);
	free(buffer);
	rig_fini(&rig);
}

/* ENOSPC of a member reaches the client as such. */
static void test_error_passes(void **state)
{
	const uint64_t bytes[] = {64 * K, 64 * K};
	struct rig rig;
	uint8_t buffer[8 * K] = {0};

	rig_init(&rig, 0, 4 * K, 1, 2, bytes, 8);
	assert_int_equal(sim_fault_add(rig.sim, &(struct sim_fault){.disk = 0,
							.ops = 1u << WORLD_WRITE,
							.length_bytes = UINT32_MAX,
							.error = -ENOSPC,
							.times = 1}),
		0);
	assert_int_equal(run(&rig, ENGINE_WRITE, 0, 8 * K, buffer, 0), -ENOSPC);
	assert_int_equal(run(&rig, ENGINE_WRITE, 0, 8 * K, buffer, 0), 0);
	rig_fini(&rig);
}

static uint64_t flushes(struct rig *rig, unsigned slot)
{
	return sim_disk_counters(rig->sim, rig->slots[slot].member)->flushes;
}

static void test_flush_reaches_written_members(void **state)
{
	const uint64_t bytes[] = {64 * K, 64 * K};
	struct rig rig;
	uint8_t buffer[512] = {0};

	rig_init(&rig, 0, 4 * K, 1, 2, bytes, 9);
	/* The first one goes everywhere: earlier users may have left unflushed writes. */
	assert_int_equal(run(&rig, ENGINE_FLUSH, 0, 0, NULL, 0), 0);
	assert_int_equal(flushes(&rig, 0) * 10 + flushes(&rig, 1), 11);
	assert_int_equal(run(&rig, ENGINE_FLUSH, 0, 0, NULL, 0), 0);
	assert_int_equal(flushes(&rig, 0) * 10 + flushes(&rig, 1), 11);
	assert_int_equal(run(&rig, ENGINE_WRITE, 4 * K, 512, buffer, 0), 0);
	assert_int_equal(run(&rig, ENGINE_FLUSH, 0, 0, NULL, 0), 0);
	assert_int_equal(flushes(&rig, 0) * 10 + flushes(&rig, 1), 12);
	rig_fini(&rig);
}

/* Two flushes at once: the second may not finish on the strength of the first one's start. */
static void test_flush_overlapping(void **state)
{
	for (uint64_t seed = 0; seed < 200; seed++) {
		const uint64_t bytes[] = {64 * K};
		struct rig rig;
		uint8_t buffer[512], back[512];
		struct call first, second;

		rig_init(&rig, 0, 4 * K, 1, 1, bytes, seed);
		memset(buffer, 0x77, sizeof(buffer));
		assert_int_equal(run(&rig, ENGINE_WRITE, 0, 512, buffer, 0), 0);
		start(&rig, &first, ENGINE_FLUSH, 0, 0, NULL, 0);
		start(&rig, &second, ENGINE_FLUSH, 0, 0, NULL, 0);
		assert_int_equal(finish(&rig, &second), 0);
		sim_power_cut(rig.sim);
		sim_disk_peek(rig.sim, 0, rig.slots[0].data_offset_bytes, back, 512);
		assert_memory_equal(back, buffer, 512);
		engine_free(rig.engine); /* its world lost power: requests are gone */
		sim_free(rig.sim);
		free(rig.shadow);
	}
}

static void test_flush_failure_sticks(void **state)
{
	const uint64_t bytes[] = {64 * K, 64 * K};
	struct rig rig;
	uint8_t buffer[8 * K] = {0};

	rig_init(&rig, 0, 4 * K, 1, 2, bytes, 10);
	assert_int_equal(run(&rig, ENGINE_WRITE, 0, 8 * K, buffer, 0), 0);
	assert_int_equal(
		sim_fault_add(rig.sim,
			&(struct sim_fault){
				.disk = 1, .ops = 1u << WORLD_FLUSH, .error = -EIO, .times = 1}),
		0);
	assert_int_equal(run(&rig, ENGINE_FLUSH, 0, 0, NULL, 0), -EIO);
	assert_true(engine_is_broken(rig.engine));
	assert_int_equal(run(&rig, ENGINE_FLUSH, 0, 0, NULL, 0), -EIO);
	rig_fini(&rig);
}

struct durable {
	uint64_t offset;
	uint8_t data[512];
	bool must; /* flushed or FUA: has to survive */
};

/* Writes, some flushed, some with FUA, some neither; then the power goes. */
static void power_cut_once(uint64_t seed)
{
	enum { SECTORS = 64 };
	const uint64_t bytes[] = {32 * K, 48 * K, 32 * K};
	struct durable sectors[SECTORS];
	struct rig rig;

	rig_init(&rig, seed & 1 ? 0 : -1, 4 * K, 1, 3, bytes, seed);
	for (unsigned i = 0; i < SECTORS; i++) {
		bool fua = sim_draw(rig.sim, 4) == 0;

		sectors[i].offset = i * (rig.bytes / SECTORS / 512 * 512);
		memset(sectors[i].data, 0x11, 512);
		/* An older, unflushed version below the one that counts. */
		assert_int_equal(
			run(&rig, ENGINE_WRITE, sectors[i].offset, 512, sectors[i].data, 0), 0);
		fill_random(&rig, sectors[i].data, 512);
		assert_int_equal(run(&rig, ENGINE_WRITE, sectors[i].offset, 512, sectors[i].data,
					 fua ? ENGINE_FUA : 0),
			0);
		sectors[i].must = fua;
		if (sim_draw(rig.sim, 8) == 0) {
			assert_int_equal(run(&rig, ENGINE_FLUSH, 0, 0, NULL, 0), 0);
			for (unsigned j = 0; j <= i; j++)
				sectors[j].must = true;
		}
	}
	sim_power_cut(rig.sim);
	engine_free(rig.engine);
	rig_start(&rig);
	for (unsigned i = 0; i < SECTORS; i++) {
		uint8_t back[512];

		assert_int_equal(run(&rig, ENGINE_READ, sectors[i].offset, 512, back, 0), 0);
		if (sectors[i].must)
			assert_memory_equal(back, sectors[i].data, 512);
	}
	rig_fini(&rig);
}

static void test_power_cuts(void **state)
{
	for (uint64_t seed = 1; seed <= 100; seed++)
		power_cut_once(seed);
}

/* The cut must really lose something, or the test above proves nothing. */
static void test_power_cut_loses(void **state)
{
	const uint64_t bytes[] = {64 * K};
	struct rig rig;
	uint8_t buffer[512];
	unsigned lost = 0;

	rig_init(&rig, 0, 4 * K, 1, 1, bytes, 11);
	for (int i = 1; i <= 40; i++) {
		uint8_t back[512];

		memset(buffer, i, sizeof(buffer));
		assert_int_equal(run(&rig, ENGINE_WRITE, 0, 512, buffer, 0), 0);
		sim_power_cut(rig.sim);
		assert_int_equal(run(&rig, ENGINE_READ, 0, 512, back, 0), 0);
		lost += memcmp(back, buffer, 512) != 0;
	}
	assert_in_range(lost, 5, 35);
	rig_fini(&rig);
}

/* A request submitted from done(), and a flush waiting behind a full house, are not forgotten. */
static void chain_done(struct engine_request *request, int result)
{
	struct call *call = request->owner;
	struct rig *rig = (struct rig *)call->iov[7].iov_base;

	assert_int_equal(result, 0);
	if (call->iov[7].iov_len-- == 0) {
		call->done = true;
		return;
	}
	engine_submit(rig->engine, request);
	engine_kick(rig->engine);
}

static void test_chains(void **state)
{
	static const enum engine_op ops[] = {ENGINE_FLUSH, ENGINE_READ};
	const uint64_t bytes[] = {64 * K, 64 * K};
	uint8_t buffer[16 * K];
	struct call calls[10];
	struct rig rig;

	rig_init(&rig, 0, 4 * K, 1, 2, bytes, 12);
	memset(calls, 0, sizeof(calls));
	for (unsigned i = 0; i < 10; i++) {
		calls[i].iov[0] = (struct iovec){buffer, sizeof(buffer)};
		calls[i].iov[7] = (struct iovec){&rig, 50};
		calls[i].request = (struct engine_request){.op = ops[i % 2],
			.length_bytes = i == 9 ? 0 : sizeof(buffer),
			.iov = calls[i].iov,
			.iov_count = 1,
			.done = chain_done,
			.owner = &calls[i]};
		engine_submit(rig.engine, &calls[i].request);
	}
	engine_kick(rig.engine);
	sim_run(rig.sim, 100000);
	for (unsigned i = 0; i < 10; i++)
		assert_true(calls[i].done);
	rig_fini(&rig);
}

static void test_same_seed_same_run(void **state)
{
	uint64_t ends[2];

	for (int i = 0; i < 2; i++) {
		const uint64_t bytes[] = {192 * K, 192 * K};
		struct rig rig;

		rig_init(&rig, 0, 4 * K, 1, 2, bytes, 99);
		write_batch(&rig);
		ends[i] = sim_now_ns(rig.sim);
		rig_fini(&rig);
	}
	assert_int_equal(ends[0], ends[1]);
}

static void test_refusals(void **state)
{
	struct engine_slot slots[2] = {{0, 4096, 1 << 20}, {1, 4096, 1 << 20}};
	struct engine_config config = {.level = -4, /* multipath */
		.chunk_bytes = 4096,
		.slot_count = 2,
		.slots = slots,
		.requests_max = 1};
	struct engine *engine = NULL;
	struct fault fault = {0};

	assert_int_equal(engine_new(&config, NULL, &engine, &fault), -EOPNOTSUPP);
	assert_non_null(strstr(fault.text, "not yet supported"));
	config.level = 0;
	config.slot_count = 0;
	assert_int_equal(engine_new(&config, NULL, &engine, &fault), -EINVAL);
	config.slot_count = 2;
	slots[1].data_offset_bytes = UINT64_MAX - 100;
	assert_int_equal(engine_new(&config, NULL, &engine, &fault), -ERANGE);
	assert_null(engine);
	assert_string_equal(engine_level_name(0), "raid0");
	assert_null(engine_level_name(-4));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_contents_grid),
		cmocka_unit_test(test_placement),
		cmocka_unit_test(test_one_io_per_member),
		cmocka_unit_test(test_ranges),
		cmocka_unit_test(test_over_4_gib),
		cmocka_unit_test(test_readonly),
		cmocka_unit_test(test_error_exact),
		cmocka_unit_test(test_error_passes),
		cmocka_unit_test(test_flush_reaches_written_members),
		cmocka_unit_test(test_flush_overlapping),
		cmocka_unit_test(test_flush_failure_sticks),
		cmocka_unit_test(test_power_cuts),
		cmocka_unit_test(test_power_cut_loses),
		cmocka_unit_test(test_chains),
		cmocka_unit_test(test_same_seed_same_run),
		cmocka_unit_test(test_refusals),
	};

	return cmocka_run_group_tests_name("engine", tests, NULL, NULL);
}
