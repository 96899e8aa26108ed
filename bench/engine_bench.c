/* SPDX-License-Identifier: MIT */
/*
 * What the engine adds to what it stands on, printed as one JSON line.
 *
 *   engine_bench ram|files OP BLOCK_BYTES DEPTH SECONDS ROUNDS [FILE...]
 *
 * ram: members in this process's memory; files: the FILEs, through the io_uring reactor. OP is
 * randread, randwrite, read or write. Each round measures first "raw", requests straight to the
 * world, then "engine", a RAID 0 over the same members: one driver, the same buffers, the same
 * memory or files. ns_per_op is CPU time; the ratio is raw / engine of each round, so 1 means that
 * the engine costs nothing. From the environment: MEMBERS (ram only, 4), CHUNK_KIB (64), LEVEL (0),
 * MISSING (bits of members that are not there). What it is compared with: raw requests of the same
 * kind; with RAW_MIX=1 half reads, half writes; with RAW_IOS=n one request counts as n of them;
 * with HEALTHY=1 the same array with all members instead.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "engine/engine.h"
#include "io/reactor.h"
#include "ram_world.h"

#define RAM_TOTAL_BYTES (1ull << 30)
#define DEPTH_MAX 256

#define ROUNDS_MAX 101

struct bench;

struct figure {
	double ns_per_op;      /* CPU */
	double ops_per_second; /* wall clock */
};

struct slot {
	struct bench *bench;
	struct iovec iov;
	struct world_io io;
	struct engine_request request;
};

struct bench {
	struct world *world;     /* of the engine */
	struct world *raw_world; /* of raw requests: ram as one member; files as they are */
	struct reactor *reactor; /* NULL: ram */
	struct engine *engine;   /* all of it */
	struct engine *healthy;  /* or NULL: what it is compared with, instead of raw requests */
	struct engine *subject;  /* measured now; NULL: raw requests */
	bool raw_mix;
	unsigned members;
	uint64_t member_bytes, total_bytes, block_bytes, position, random_state, completed;
	bool is_random, is_write, stopping;
	unsigned depth, inflight;
	struct slot slots[DEPTH_MAX];
};

static double seconds_of(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* xorshift64* (Vigna 2016): cheap, so that the driver does not hide what is measured. */
static uint64_t next_random(struct bench *bench)
{
	uint64_t x = bench->random_state;

	x ^= x >> 12;
	x ^= x << 25;
	x ^= x >> 27;
	bench->random_state = x;
	return x * 0x2545f4914f6cdd1du;
}

static uint64_t next_offset(struct bench *bench)
{
	uint64_t blocks = bench->total_bytes / bench->block_bytes;

	if (bench->is_random) /* the high half scaled down: no division */
		return (uint64_t)(((next_random(bench) >> 32) * blocks) >> 32) * bench->block_bytes;
	bench->position += bench->block_bytes;
	if (bench->position + bench->block_bytes > bench->total_bytes)
		bench->position = 0;
	return bench->position;
}

static void issue(struct slot *slot)
{
	struct bench *bench = slot->bench;
	uint64_t offset = next_offset(bench);

	if (bench->subject != NULL) {
		slot->request.offset_bytes = offset;
		engine_submit(bench->subject, &slot->request);
		return;
	}
	if (bench->raw_mix)
		slot->io.op = slot->io.op == WORLD_READ ? WORLD_WRITE : WORLD_READ;
	if (bench->reactor != NULL) {
		slot->io.member = (unsigned)(offset / bench->member_bytes);
		offset %= bench->member_bytes;
	}
	slot->io.offset_bytes = offset;
	world_submit(bench->raw_world, &slot->io);
}

static void fail(const char *what, int error)
{
	fprintf(stderr, "engine_bench: %s: %s\n", what, strerror(-error));
	exit(1);
}

static void next(struct slot *slot)
{
	slot->bench->completed++;
	if (slot->bench->stopping)
		slot->bench->inflight--;
	else
		issue(slot);
}

static void io_done(struct world_io *io, int result)
{
	struct slot *slot = io->owner;

	if (result < 0)
		fail("I/O", result);
	next(slot);
}

static void request_done(struct engine_request *request, int result)
{
	struct slot *slot = request->owner;

	if (result < 0)
		fail("request", result);
	next(slot);
}

static void prepare_slot(struct bench *bench, struct slot *slot, char *buffer)
{
	slot->bench = bench;
	slot->iov = (struct iovec){buffer, bench->block_bytes};
	slot->io = (struct world_io){.op = bench->is_write ? WORLD_WRITE : WORLD_READ,
		.iov = &slot->iov,
		.iov_count = 1,
		.length_bytes = bench->block_bytes,
		.done = io_done,
		.owner = slot};
	slot->request = (struct engine_request){.op = bench->is_write ? ENGINE_WRITE : ENGINE_READ,
		.iov = &slot->iov,
		.iov_count = 1,
		.length_bytes = bench->block_bytes,
		.done = request_done,
		.owner = slot};
}

static void run_once(struct bench *bench)
{
	if (bench->subject != NULL)
		engine_kick(bench->subject);
	else
		world_kick(bench->raw_world);
	if (bench->reactor == NULL)
		ram_world_run(bench->subject != NULL ? bench->world : bench->raw_world);
	else if (reactor_run(bench->reactor, true, UINT64_MAX) < 0)
		fail("reactor", -1);
}

static void run_for(struct bench *bench, double seconds)
{
	double end = seconds_of(CLOCK_MONOTONIC) + seconds;

	while (seconds_of(CLOCK_MONOTONIC) < end)
		for (int i = 0; i < 64; i++)
			run_once(bench);
}

/* One subject for @seconds after a warm-up of a fifth of it. */
static struct figure measure(struct bench *bench, struct engine *subject, double seconds)
{
	double cpu, wall;
	uint64_t completed;

	bench->subject = subject;
	bench->stopping = false;
	bench->inflight = bench->depth;
	for (unsigned i = 0; i < bench->depth; i++)
		issue(&bench->slots[i]);
	run_for(bench, seconds / 5);
	completed = bench->completed;
	cpu = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
	wall = seconds_of(CLOCK_MONOTONIC);
	run_for(bench, seconds);
	cpu = seconds_of(CLOCK_PROCESS_CPUTIME_ID) - cpu;
	wall = seconds_of(CLOCK_MONOTONIC) - wall;
	completed = bench->completed - completed;
	bench->stopping = true;
	while (bench->inflight > 0)
		run_once(bench);
	return (struct figure){cpu * 1e9 / (double)completed, (double)completed / wall};
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static double median(double *values, unsigned count)
{
	qsort(values, count, sizeof(*values), by_value);
	return values[count / 2];
}

static unsigned from_environment(const char *name, unsigned fallback)
{
	const char *text = getenv(name);

	return text != NULL ? (unsigned)strtoul(text, NULL, 10) : fallback;
}

static void report(struct bench *bench, unsigned rounds, double seconds)
{
	double raw_ns[ROUNDS_MAX], engine_ns[ROUNDS_MAX], ratio[ROUNDS_MAX], wall[ROUNDS_MAX];
	double raw_spread, raw_ios = from_environment("RAW_IOS", 1);

	for (unsigned i = 0; i < rounds; i++) {
		struct figure raw = measure(bench, bench->healthy, seconds);
		struct figure engine = measure(bench, bench->engine, seconds);

		raw.ns_per_op *= raw_ios;
		raw.ops_per_second /= raw_ios;

		raw_ns[i] = raw.ns_per_op;
		engine_ns[i] = engine.ns_per_op;
		ratio[i] = raw.ns_per_op / engine.ns_per_op;
		wall[i] = engine.ops_per_second / raw.ops_per_second;
	}
	(void)median(raw_ns, rounds);
	raw_spread = (raw_ns[rounds - 1] - raw_ns[0]) / raw_ns[rounds / 2];
	(void)median(ratio, rounds);
	printf("{\"ratio\": %.3f, \"ratio_min\": %.3f, \"ratio_max\": %.3f, "
	       "\"ratio_wall\": %.3f, \"raw_ns\": %.1f, \"engine_ns\": %.1f, "
	       "\"raw_spread\": %.2f, \"rounds\": %u, \"engine_bytes\": %zu}\n",
		ratio[rounds / 2], ratio[0], ratio[rounds - 1], median(wall, rounds),
		raw_ns[rounds / 2], median(engine_ns, rounds), raw_spread, rounds,
		engine_memory(bench->engine));
}

static void open_files(struct bench *bench, char **paths, unsigned count, unsigned depth)
{
	struct reactor_options options = {.io_max = depth * 2, .member_count = count};
	struct member **members = calloc(count, sizeof(*members));
	struct fault fault = {0};

	for (unsigned i = 0; i < count; i++)
		if (member_open(paths[i], 0, &members[i], &fault) < 0)
			fail(fault.text, fault.error);
	options.members = members;
	if (reactor_new(&options, &bench->reactor, &fault) < 0)
		fail(fault.text, fault.error);
	bench->world = reactor_world(bench->reactor);
	bench->raw_world = bench->world;
	bench->member_bytes = members[0]->size_bytes;
	bench->members = count;
}

/* Devices for the levels with redundancy: one per slot that is not missing. */
static unsigned list_devices(
	const struct bench *bench, unsigned missing, struct engine_device *devices)
{
	unsigned count = 0;

	for (unsigned i = 0; i < bench->members; i++)
		if (i >= 32 || (missing >> i & 1) == 0)
			devices[count++] = (struct engine_device){.member = i,
				.slot = i,
				.in_sync = true,
				.data_bytes = bench->member_bytes};
	return count;
}

/* RAID 0 original, RAID 10 near=2, left-symmetric. */
static uint32_t default_layout(unsigned level)
{
	return level == 0 ? 1 : level == 10 ? 0x102 : 2;
}

static struct engine *start_engine(struct bench *bench, unsigned missing)
{
	struct engine_slot *slots = calloc(bench->members, sizeof(*slots));
	struct engine_device *devices = calloc(bench->members, sizeof(*devices));
	struct engine_redundancy redundancy = {.component_bytes = bench->member_bytes,
		.resync_bytes = UINT64_MAX,
		.devices = devices,
		.device_count = list_devices(bench, missing, devices),
		.device_max = bench->members};
	struct engine_config config = {.level = (int)from_environment("LEVEL", 0),
		.layout = default_layout(from_environment("LEVEL", 0)),
		.chunk_bytes = from_environment("CHUNK_KIB", 64) * 1024,
		.slot_count = bench->members,
		.slots = slots,
		.redundancy = &redundancy,
		.requests_max = bench->depth};
	struct engine *engine = NULL;
	struct fault fault = {0};

	for (unsigned i = 0; i < bench->members; i++)
		slots[i] = (struct engine_slot){.member = i, .data_bytes = bench->member_bytes};
	if (engine_new(&config, bench->world, &engine, &fault) < 0)
		fail(fault.text, fault.error);
	free(slots);
	free(devices);
	return engine;
}

static void prepare_slots(struct bench *bench)
{
	size_t bytes = bench->depth * bench->block_bytes + (2 << 20);
	char *buffers = mmap(
		NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (buffers == MAP_FAILED)
		fail("buffers", -ENOMEM);
	(void)madvise(buffers, bytes, MADV_HUGEPAGE); /* small pages work, slower */
	for (unsigned i = 0; i < bench->depth; i++) {
		char *buffer = buffers + i * bench->block_bytes;

		memset(buffer, (int)i, bench->block_bytes);
		prepare_slot(bench, &bench->slots[i], buffer);
	}
}

static void open_ram(struct bench *bench)
{
	bench->members = from_environment("MEMBERS", 4);
	bench->member_bytes = RAM_TOTAL_BYTES / bench->members / 65536 * 65536;
	bench->world = ram_world_new(bench->members, bench->member_bytes);
	bench->raw_world = ram_world_flat(bench->world);
}

int main(int argc, char **argv)
{
	static struct bench bench;
	unsigned rounds;

	if (argc < 7) {
		fprintf(stderr, "usage: engine_bench ram|files randread|randwrite|read|write "
				"BLOCK_BYTES DEPTH SECONDS ROUNDS [FILE...]\n");
		return 2;
	}
	bench.is_random = strncmp(argv[2], "rand", 4) == 0;
	bench.is_write = strstr(argv[2], "write") != NULL;
	bench.block_bytes = strtoull(argv[3], NULL, 10);
	bench.depth = (unsigned)strtoul(argv[4], NULL, 10);
	rounds = (unsigned)strtoul(argv[6], NULL, 10);
	bench.random_state = 88172645463325252u;
	if (bench.depth == 0 || bench.depth > DEPTH_MAX || bench.block_bytes == 0 || rounds == 0 ||
		rounds > ROUNDS_MAX)
		return 2;
	if (strcmp(argv[1], "ram") == 0)
		open_ram(&bench);
	else
		open_files(&bench, argv + 7, (unsigned)argc - 7, bench.depth);
	bench.engine = start_engine(&bench, from_environment("MISSING", 0));
	if (from_environment("HEALTHY", 0) != 0)
		bench.healthy = start_engine(&bench, 0);
	bench.raw_mix = from_environment("RAW_MIX", 0) != 0;
	bench.total_bytes = engine_array_bytes(bench.engine);
	prepare_slots(&bench);
	report(&bench, rounds, strtod(argv[5], NULL));
	return 0;
}
