/* SPDX-License-Identifier: MIT */
/*
 * RAID 4, 5 and 6 in the simulated world, everything at once: requests that overlap, windows of the
 * background action between them, devices missing, rebuilding and failing, sectors that cannot be
 * read, all within what the level survives. A read returns what was there before, or what a write
 * in flight brings. Afterwards every member holds what it should, parity too.
 *
 * One seed chooses everything; STRIPE_SEED runs one, STRIPE_RUNS that many.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/stripe_rig_test.h"
#include "sim/sim.h"
#include "util/rounding.h"

#define CALLS 10u
#define RUNS 200u
#define ROUNDS 8u

struct run {
	struct rig rig;
	uint64_t seed;
	uint32_t next_id;
	unsigned faulty; /* slots that may fail: with the missing ones no more than the parities */
	/* The calls of a round; what they write, and what the array had before. */
	struct call calls[CALLS];
	uint32_t ids[CALLS];
	uint32_t *before;
	bool walking;
	struct sync_window window;
	unsigned windows_started;
};

static uint64_t draw(struct run *run, uint64_t below)
{
	return sim_draw(run->rig.sim, below);
}

/* --- The array ---------------------------------------------------------------------------------
 */

/* splitmix64: the simulator does not exist yet. */
static uint64_t next(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

static struct shape draw_shape(uint64_t *state)
{
	static const uint32_t layouts6[] = {0, 1, 2, 3, 4, 5, 8, 9, 10, 16, 17, 18, 19, 20};
	static const uint32_t chunks[] = {4 * K, 4 * K, 8 * K, 16 * K, 64 * K, 128 * K};
	struct shape shape = {.level = 4 + (int)(next(state) % 3)};

	if (next(state) % 2 == 0)
		shape.level = 6;
	shape.layout = shape.level == 6 ? layouts6[next(state) % 14] : (uint32_t)(next(state) % 6);
	shape.chunk_bytes = chunks[next(state) % 6];
	shape.slots = (shape.level == 6 ? 4 : 2) + (unsigned)(next(state) % 6);
	shape.component_bytes = shape.chunk_bytes * (2 + next(state) % 4);
	if (shape.chunk_bytes == 4 * K)
		shape.component_bytes *= 4;
	shape.component_bytes += next(state) % 3 * SECTOR; /* what is no whole chunk is not used */
	return shape;
}

static unsigned draw_slots(uint64_t *state, unsigned slots, unsigned count)
{
	unsigned mask = 0;

	while (count-- > 0)
		mask |= 1u << next(state) % slots;
	return mask;
}

static void start(struct run *run, uint64_t seed)
{
	uint64_t state = seed * 0x1234567u + 99;
	struct shape shape = draw_shape(&state);
	unsigned parities = shape.level == 6 ? 2 : 1;
	unsigned lost = draw_slots(&state, shape.slots, (unsigned)(next(&state) % (parities + 1)));
	unsigned rebuilding = next(&state) % 2 == 0 ? lost : lost & (unsigned)next(&state);
	unsigned spent = (unsigned)__builtin_popcount(lost);

	memset(run, 0, sizeof(*run));
	run->seed = seed;
	rig_init(&run->rig, &shape, lost & ~rebuilding, rebuilding,
		next(&state) % (shape.component_bytes / SECTOR) * SECTOR, seed);
	run->faulty = draw_slots(&state, shape.slots, parities - spent);
	if (next(&state) % 3 == 0)
		run->faulty = 0;
	run->next_id = 2;
	run->before = calloc(run->rig.bytes / SECTOR, sizeof(*run->before));
}

/* --- Faults and windows ------------------------------------------------------------------------
 */

static void draw_faults(struct run *run)
{
	const struct stripes *s = &run->rig.stripes;
	uint64_t sectors = (s->stripe_count << s->chunk_shift) / SECTOR;

	sim_faults_clear(run->rig.sim);
	for (unsigned slot = 0; slot < run->rig.shape.slots; slot++) {
		unsigned count = (run->faulty >> slot & 1) != 0 ? (unsigned)draw(run, 8) : 0;

		while (count-- > 0) {
			uint64_t at = draw(run, sectors);
			unsigned ops = 1u << WORLD_READ;

			if (draw(run, 16) == 0)
				ops |= 1u << WORLD_WRITE;
			rig_fault(&run->rig, slot, ops, at * SECTOR,
				SECTOR * (1 + draw(run, min_u64(sectors - at, 16))), -EIO,
				1 + (unsigned)draw(run, 3));
		}
	}
}

/* A window beside the requests; those of a recovery come in order, so that the devices' places
 * may be moved on. */
static void maybe_window(struct run *run)
{
	struct rig *rig = &run->rig;
	uint64_t total = rig->engine->redundant->sync_bytes;
	uint64_t first = draw(run, total / SYNC_WINDOW_BYTES + 1) * SYNC_WINDOW_BYTES;

	if (run->windows_started != rig->windows_done || first >= total || draw(run, 2) == 0)
		return;
	run->window = (struct sync_window){.engine = rig->engine,
		.action = draw(run, 2) == 0 ? ENGINE_ACTION_CHECK : ENGINE_ACTION_RECOVERY,
		.first_bytes = first,
		.end_bytes = min_u64(first + SYNC_WINDOW_BYTES, total),
		.owner = rig,
		.number = (unsigned)draw(run, SYNC_WINDOWS_MAX)};
	run->windows_started++;
	rig->engine->level->sync_window(&run->window);
}

/* --- A round of requests -----------------------------------------------------------------------
 */

static void fill(struct run *run, unsigned i, uint64_t offset, uint64_t length)
{
	for (uint64_t at = 0; at < length; at += SECTOR)
		rig_content(run->ids[i], (offset + at) / SECTOR, run->calls[i].buffer + at);
}

static void start_call(struct run *run, unsigned i, uint64_t around)
{
	static const enum engine_op ops[] = {ENGINE_READ, ENGINE_READ, ENGINE_WRITE, ENGINE_WRITE,
		ENGINE_WRITE, ENGINE_WRITE, ENGINE_ZERO, ENGINE_DISCARD};
	enum engine_op op = ops[draw(run, 8)];
	uint64_t sectors = run->rig.bytes / SECTOR;
	uint64_t first = draw(run, 2) == 0 ? draw(run, sectors)
					   : min_u64(around + draw(run, 64), sectors - 1);
	uint64_t most = draw(run, 2) == 0 ? sectors - first : min_u64(sectors - first, 24);
	uint64_t length = (1 + draw(run, most)) * SECTOR;
	uint8_t *buffer = op <= ENGINE_WRITE ? malloc(length) : NULL;

	run->ids[i] = op == ENGINE_WRITE ? run->next_id++ : 0;
	run->calls[i].buffer = buffer;
	if (op == ENGINE_WRITE)
		fill(run, i, first * SECTOR, length);
	rig_start(&run->rig, &run->calls[i], op, first * SECTOR, length, buffer,
		draw(run, 4) == 0 ? ENGINE_FUA : 0);
}

static bool writes_sector(const struct run *run, unsigned i, uint64_t sector)
{
	const struct engine_request *request = &run->calls[i].request;

	return (request->op == ENGINE_WRITE || request->op == ENGINE_ZERO) &&
	       sector * SECTOR >= request->offset_bytes &&
	       sector * SECTOR < request->offset_bytes + request->length_bytes;
}

/* The id that @found has as content of @sector: the one before the round, or one of its writes. */
static bool find_id(struct run *run, uint64_t sector, const uint8_t *found, uint32_t *ret)
{
	uint8_t content[SECTOR];

	*ret = run->before[sector];
	rig_content(*ret, sector, content);
	if (memcmp(content, found, SECTOR) == 0)
		return true;
	for (unsigned i = 0; i < CALLS; i++) {
		if (!writes_sector(run, i, sector))
			continue;
		*ret = run->ids[i];
		rig_content(*ret, sector, content);
		if (memcmp(content, found, SECTOR) == 0)
			return true;
	}
	return false;
}

static void check_read(struct run *run, const struct call *call)
{
	const struct engine_request *request = &call->request;

	for (uint64_t at = 0; at < request->length_bytes; at += SECTOR) {
		uint64_t sector = (request->offset_bytes + at) / SECTOR;
		uint32_t id;

		if (!find_id(run, sector, call->buffer + at, &id))
			fail_msg("seed %llu: sector %llu reads as nobody wrote it",
				(unsigned long long)run->seed, (unsigned long long)sector);
	}
}

/* Which of the writes of the round came last on each sector is the array's to say; once. */
static void settle(struct run *run)
{
	struct rig *rig = &run->rig;
	uint8_t *content = malloc(rig->bytes);

	assert_int_equal(rig_run(rig, ENGINE_READ, 0, rig->bytes, content, 0), 0);
	for (uint64_t sector = 0; sector < rig->bytes / SECTOR; sector++) {
		bool was_written = false;

		for (unsigned i = 0; i < CALLS; i++)
			was_written |= writes_sector(run, i, sector);
		if (!find_id(run, sector, content + sector * SECTOR, &rig->ids[sector]))
			fail_msg("seed %llu: sector %llu holds what nobody wrote",
				(unsigned long long)run->seed, (unsigned long long)sector);
		if (was_written && rig->ids[sector] == run->before[sector] &&
			run->before[sector] != 0)
			fail_msg("seed %llu: a write of sector %llu is lost",
				(unsigned long long)run->seed, (unsigned long long)sector);
	}
	free(content);
}

static void run_round(struct run *run)
{
	struct rig *rig = &run->rig;
	uint64_t around = draw(run, rig->bytes / SECTOR);

	memcpy(run->before, rig->ids, rig->bytes / SECTOR * sizeof(*run->before));
	draw_faults(run);
	for (unsigned i = 0; i < CALLS; i++) {
		start_call(run, i, around);
		maybe_window(run);
	}
	for (unsigned i = 0; i < CALLS; i++)
		if (rig_finish(rig, &run->calls[i]) != 0)
			fail_msg("seed %llu: op %d fails with %d", (unsigned long long)run->seed,
				(int)run->calls[i].request.op, run->calls[i].result);
	while (run->windows_started != rig->windows_done)
		assert_true(sim_step(rig->sim));
	for (unsigned i = 0; i < CALLS; i++) {
		if (run->calls[i].request.op == ENGINE_READ)
			check_read(run, &run->calls[i]);
		free(run->calls[i].buffer);
	}
	sim_faults_clear(rig->sim);
	settle(run);
	rig_check_members(rig);
	assert_false(rig->engine->redundant->failed);
	assert_int_equal(rig->mismatch_count, 0);
}

static void run_seed(uint64_t seed)
{
	struct run *run = malloc(sizeof(*run));

	start(run, seed);
	for (unsigned round = 0; round < ROUNDS; round++)
		run_round(run);
	assert_int_equal(rig_walk(&run->rig, ENGINE_ACTION_RECOVERY), 0);
	rig_check_members(&run->rig);
	rig_check_array(&run->rig);
	assert_int_equal(rig_walk(&run->rig, ENGINE_ACTION_CHECK), 0);
	assert_int_equal(run->rig.mismatch_count, 0);
	rig_fini(&run->rig);
	free(run->before);
	free(run);
}

static void test_random(void **state)
{
	const char *seed = getenv("STRIPE_SEED"), *runs = getenv("STRIPE_RUNS");
	uint64_t first = seed != NULL ? strtoull(seed, NULL, 10) : 1;
	uint64_t count = runs != NULL ? strtoull(runs, NULL, 10) : seed != NULL ? 1 : RUNS;

	for (uint64_t i = 0; i < count; i++) {
		print_message("seed %llu\r", (unsigned long long)(first + i));
		run_seed(first + i);
	}
}

/* --- Beyond the redundancy ---------------------------------------------------------------------
 */

enum { LOSSES = 12 };
#define COLUMN_MASK 0xffffffffffffu /* above: the slot after the last lost one */

/* In each of some columns more slots than the level can lose do not give their sector. */
static void draw_losses(struct run *run, uint64_t *columns)
{
	struct rig *rig = &run->rig;
	uint64_t sectors = rig->engine->redundant->sync_bytes / SECTOR;
	unsigned slots = rig->shape.slots;

	for (unsigned i = 0; i < LOSSES; i++) {
		unsigned slot = (unsigned)draw(run, slots), left = rig->stripes.parities + 1;

		columns[i] = draw(run, sectors);
		for (unsigned j = 0; j < i; j++)
			if ((columns[j] & COLUMN_MASK) == columns[i])
				left = 0;
		for (; left > 0; left--, slot = (slot + 1) % slots)
			rig_fault(rig, slot, 1u << WORLD_READ, columns[i] * SECTOR, SECTOR, -EIO,
				UINT32_MAX);
		columns[i] |= (uint64_t)slot << 48;
	}
}

static bool is_lost(const struct rig *rig, const uint64_t *columns, uint64_t sector)
{
	const struct stripes *s = &rig->stripes;
	uint64_t stripe, column;
	uint32_t in_chunk;
	unsigned data, slot, slots = rig->shape.slots;

	stripes_locate(s, sector * SECTOR, &stripe, &data, &in_chunk);
	column = (stripes_member_offset(s, stripe) + in_chunk) / SECTOR;
	slot = stripes_data_slot(s, stripe, data);
	for (unsigned i = 0; i < LOSSES; i++) {
		unsigned after = (unsigned)(columns[i] >> 48);

		if ((columns[i] & COLUMN_MASK) == column)
			return (after + slots - 1 - slot) % slots <= s->parities;
	}
	return false;
}

static void check_lossy_read(struct run *run, const uint64_t *columns)
{
	struct rig *rig = &run->rig;
	uint64_t sectors = rig->bytes / SECTOR, first = draw(run, sectors);
	uint64_t count = 1 + draw(run, sectors - first), lost_first = UINT64_MAX, lost_end = 0;
	uint8_t *buffer = malloc(count * SECTOR), expected[SECTOR];
	struct call call;
	int r;

	rig_start(rig, &call, ENGINE_READ, first * SECTOR, count * SECTOR, buffer, 0);
	r = rig_finish(rig, &call);
	for (uint64_t sector = first; sector < first + count; sector++) {
		if (is_lost(rig, columns, sector)) {
			lost_first = min_u64(lost_first, sector);
			lost_end = sector + 1;
			continue;
		}
		rig_expect(rig, sector * SECTOR, SECTOR, expected);
		assert_memory_equal(buffer + (sector - first) * SECTOR, expected, SECTOR);
	}
	assert_int_equal(r, lost_end > 0 ? -EIO : 0);
	if (lost_end > 0) {
		assert_int_equal(call.request.fail_offset_bytes, lost_first * SECTOR);
		assert_int_equal(call.request.fail_length_bytes, (lost_end - lost_first) * SECTOR);
	}
	free(buffer);
}

/* Errors for exactly the sectors concerned, and no device is blamed for what cannot be healed. */
static void test_lossy_reads(void **state)
{
	for (uint64_t seed = 1; seed <= 120; seed++) {
		struct run *run = calloc(1, sizeof(*run));
		uint64_t columns[LOSSES], random = seed;
		struct shape shape = draw_shape(&random);

		print_message("seed %llu\r", (unsigned long long)seed);
		if (shape.slots == 2 + (shape.level == 6))
			shape.slots++;
		rig_init(&run->rig, &shape, 0, 0, 0, seed);
		draw_losses(run, columns);
		for (unsigned i = 0; i < 10; i++)
			check_lossy_read(run, columns);
		assert_int_equal(devices_in_sync(run->rig.engine), shape.slots);
		rig_check_members(&run->rig);
		rig_fini(&run->rig);
		free(run);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_lossy_reads),
	};

	return cmocka_run_group_tests_name("stripe random", tests, NULL, NULL);
}
