/* SPDX-License-Identifier: MIT */
/* Many threads over one engine, in the io_uring world and in the plain one. */

#include "export/nbd/shared_engine.h"
#include "geometry/geometry.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define MEMBERS 3u
#define MEMBER_BYTES (16u << 20)
#define CHUNK_BYTES (64u << 10)
#define THREADS 16u
#define AREA_BYTES (1u << 20) /* of the array, for each thread alone */
#define BLOCK_BYTES 4096u
#define ROUNDS 300u

struct bed {
	char folder[64];
	struct member *members[MEMBERS];
	struct reactor *reactor;
	struct engine *engine;
	struct shared_engine *shared;
};

static void make_members(struct bed *bed)
{
	struct fault fault = {0};
	unsigned i;

	strcpy(bed->folder, "/tmp/shared_engine.XXXXXX");
	assert_non_null(mkdtemp(bed->folder));
	for (i = 0; i < MEMBERS; i++) {
		char path[96];
		int fd;

		snprintf(path, sizeof(path), "%s/%u", bed->folder, i);
		fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		assert_true(fd >= 0);
		assert_int_equal(ftruncate(fd, MEMBER_BYTES), 0);
		close(fd);
		assert_int_equal(member_open(path, MEMBER_EXCLUSIVE, &bed->members[i], &fault), 0);
		assert_int_equal(unlink(path), 0);
	}
	assert_int_equal(rmdir(bed->folder), 0);
}

struct limits {
	bool sync_io;
	unsigned requests_max, io_max;
	int level; /* 0, or 1: then one thread has the engine */
};

static void make_engine(struct bed *bed, struct limits limits)
{
	struct reactor_options options = {.members = bed->members,
		.member_count = MEMBERS,
		.io_max = limits.io_max,
		.sync = limits.sync_io};
	struct engine_slot slots[MEMBERS];
	struct engine_device devices[MEMBERS];
	struct engine_redundancy redundancy = {.component_bytes = MEMBER_BYTES,
		.resync_bytes = UINT64_MAX,
		.devices = devices,
		.device_count = MEMBERS,
		.device_max = MEMBERS};
	struct engine_config config = {.level = limits.level,
		.layout = GEOMETRY_RAID0_ORIGINAL,
		.chunk_bytes = CHUNK_BYTES,
		.slot_count = MEMBERS,
		.slots = slots,
		.requests_max = limits.requests_max,
		.redundancy = limits.level == 0 ? NULL : &redundancy};
	struct fault fault = {0};
	unsigned i;

	for (i = 0; i < MEMBERS; i++) {
		slots[i] = (struct engine_slot){.member = i, .data_bytes = MEMBER_BYTES};
		devices[i] = (struct engine_device){.member = i,
			.slot = i,
			.in_sync = true,
			.data_bytes = MEMBER_BYTES,
			.logical_block_bytes = 512};
	}
	assert_int_equal(reactor_new(&options, &bed->reactor, &fault), 0);
	if (limits.sync_io)
		assert_string_equal(reactor_kind(bed->reactor), "sync");
	assert_int_equal(engine_new(&config, reactor_world(bed->reactor), &bed->engine, &fault), 0);
	assert_int_equal(shared_engine_new(bed->engine, bed->reactor, &bed->shared), 0);
}

static void bed_init(struct bed *bed, struct limits limits)
{
	make_members(bed);
	make_engine(bed, limits);
}

static void bed_fini(struct bed *bed)
{
	unsigned i;

	assert_int_equal(engine_inflight(bed->engine), 0);
	shared_engine_free(bed->shared);
	engine_free(bed->engine);
	reactor_free(bed->reactor);
	for (i = 0; i < MEMBERS; i++)
		member_close(bed->members[i]);
}

static int transfer(struct bed *bed, enum engine_op op, unsigned flags, uint64_t offset,
	void *buffer, size_t length)
{
	struct iovec iov = {buffer, length};
	struct engine_request request = {.op = op,
		.flags = flags,
		.offset_bytes = offset,
		.length_bytes = length,
		.iov = &iov,
		.iov_count = 1};

	return shared_engine_do(bed->shared, &request);
}

static int flush(struct bed *bed)
{
	struct engine_request request = {.op = ENGINE_FLUSH};

	return shared_engine_do(bed->shared, &request);
}

struct worker {
	struct bed *bed;
	pthread_t thread;
	unsigned number;
	unsigned wrong; /* requests that failed or read what was not written */
};

/* One block or a run over several chunks, at a random place of the worker's own area. */
static unsigned write_and_read_back(
	struct worker *worker, unsigned *seed, unsigned char *out, unsigned char *in)
{
	unsigned blocks = rand_r(seed) % 8 == 0 ? 40 : 1;
	uint64_t first = (unsigned)rand_r(seed) % (AREA_BYTES / BLOCK_BYTES - blocks);
	uint64_t offset = (uint64_t)worker->number * AREA_BYTES + first * BLOCK_BYTES;
	size_t length = blocks * BLOCK_BYTES;
	unsigned flags = rand_r(seed) % 16 == 0 ? ENGINE_FUA : 0;

	memset(out, rand_r(seed), length);
	memcpy(out, &offset, sizeof(offset));
	if (transfer(worker->bed, ENGINE_WRITE, flags, offset, out, length) != 0)
		return 1;
	if (rand_r(seed) % 32 == 0 && flush(worker->bed) != 0)
		return 1;
	if (transfer(worker->bed, ENGINE_READ, 0, offset, in, length) != 0)
		return 1;
	return memcmp(out, in, length) != 0;
}

static void *work(void *argument)
{
	struct worker *worker = argument;
	unsigned char *out = aligned_alloc(BLOCK_BYTES, 40 * BLOCK_BYTES);
	unsigned char *in = aligned_alloc(BLOCK_BYTES, 40 * BLOCK_BYTES);
	unsigned seed = worker->number, i;

	for (i = 0; i < ROUNDS; i++)
		worker->wrong += write_and_read_back(worker, &seed, out, in);
	free(out);
	free(in);
	return NULL;
}

/* A read of the first block, which is on member 0. */
static void *read_first(void *argument)
{
	struct worker *worker = argument;
	unsigned char *buffer = aligned_alloc(BLOCK_BYTES, BLOCK_BYTES);

	worker->wrong = transfer(worker->bed, ENGINE_READ, 0, 0, buffer, BLOCK_BYTES) != 0;
	free(buffer);
	return NULL;
}

/* A read of the second chunk, which is on member 1. */
static void *read_second(void *argument)
{
	struct worker *worker = argument;
	unsigned char *buffer = aligned_alloc(BLOCK_BYTES, BLOCK_BYTES);

	worker->wrong = transfer(worker->bed, ENGINE_READ, 0, CHUNK_BYTES, buffer, BLOCK_BYTES) !=
			0;
	free(buffer);
	return NULL;
}

static void run_workers(struct bed *bed, void *(*function)(void *))
{
	struct worker workers[THREADS] = {0};
	unsigned i;

	for (i = 0; i < THREADS; i++) {
		workers[i].bed = bed;
		workers[i].number = i;
		assert_int_equal(
			pthread_create(&workers[i].thread, NULL, function, &workers[i]), 0);
	}
	for (i = 0; i < THREADS; i++)
		pthread_join(workers[i].thread, NULL);
	for (i = 0; i < THREADS; i++)
		assert_int_equal(workers[i].wrong, 0);
}

struct counted {
	const struct bed *bed;
	uint64_t writes, reads, inflight;
};

static void count(void *argument)
{
	struct counted *counted = argument;
	const struct engine_counters *counters = engine_counters(counted->bed->engine);

	counted->writes = counters->requests[ENGINE_WRITE];
	counted->reads = counters->requests[ENGINE_READ];
	counted->inflight = engine_inflight(counted->bed->engine);
}

static void many_threads(bool sync_io, int level)
{
	struct bed bed;
	struct counted counted = {.bed = &bed};

	/* Few at once, so that threads submit for each other. */
	bed_init(&bed, (struct limits){sync_io, 8, 4, level});
	run_workers(&bed, work);
	shared_engine_call(bed.shared, count, &counted);
	assert_int_equal(counted.writes, THREADS * ROUNDS);
	assert_int_equal(counted.reads, THREADS * ROUNDS);
	bed_fini(&bed);
}

static void test_many_threads_uring(void **state)
{
	many_threads(false, 0);
}

static void test_many_threads_sync(void **state)
{
	many_threads(true, 0);
}

static void test_one_owner_uring(void **state)
{
	many_threads(false, 1);
}

static void test_one_owner_sync(void **state)
{
	many_threads(true, 1);
}

struct errand_time {
	struct bed *bed;
	struct world_timer timer;
	bool expired;
};

static void expired(struct world_timer *timer)
{
	struct errand_time *time = timer->owner;

	time->expired = true;
}

static void arm(void *argument)
{
	struct errand_time *time = argument;
	struct world *world = reactor_world(time->bed->reactor);

	time->timer = (struct world_timer){.expired = expired, .owner = time};
	world->ops->timer_arm(world, &time->timer, world_now_ns(world) + 1000000);
}

static void look(void *argument)
{
	struct errand_time *time = argument, *copy = time + 1;

	copy->expired = time->expired;
}

/* Timers of the engine expire although no client asks anything. */
static void test_owner_works_alone(void **state)
{
	static const struct timespec pause = {.tv_nsec = 100000000};
	struct bed bed;
	struct errand_time time[2] = {{.bed = &bed}};

	bed_init(&bed, (struct limits){false, 8, 4, 1});
	shared_engine_call(bed.shared, arm, time);
	nanosleep(&pause, NULL);
	shared_engine_call(bed.shared, look, time);
	assert_true(time[1].expired);
	bed_fini(&bed);
}

/* Until @started reads have been submitted and @done of them are done. */
static void wait_for_reads(struct bed *bed, unsigned started, unsigned done)
{
	struct counted counted = {.bed = bed};
	uint64_t seen_started, seen_done;

	do {
		shared_engine_call(bed->shared, count, &counted);
		seen_done = counted.reads;
		seen_started = seen_done + counted.inflight;
		sched_yield();
	} while (seen_started != started || seen_done != done);
}

/*
 * io_uring cancels what a thread has submitted when it ends, so a thread must outlive the requests
 * that it may have submitted I/O for. A pipe in place of a member keeps one in flight.
 */
static void test_thread_outlives_older_requests(void **state)
{
	struct bed bed;
	struct worker slow = {.bed = &bed}, quick = {.bed = &bed};
	struct timespec soon;
	char block[BLOCK_BYTES] = {0};
	int ends[2], file;

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	make_members(&bed);
	file = bed.members[0]->fd;
	bed.members[0]->fd = ends[0];
	make_engine(&bed, (struct limits){false, 8, 8, 0});
	pthread_create(&slow.thread, NULL, read_first, &slow);
	wait_for_reads(&bed, 1, 0);
	pthread_create(&quick.thread, NULL, read_second, &quick);
	wait_for_reads(&bed, 2, 1);
	clock_gettime(CLOCK_REALTIME, &soon);
	soon.tv_sec += 1;
	assert_int_equal(pthread_timedjoin_np(quick.thread, NULL, &soon), ETIMEDOUT);
	assert_int_equal(write(ends[1], block, sizeof(block)), sizeof(block));
	pthread_join(quick.thread, NULL);
	pthread_join(slow.thread, NULL);
	assert_int_equal(slow.wrong + quick.wrong, 0);
	bed.members[0]->fd = file;
	bed_fini(&bed);
	close(ends[0]);
	close(ends[1]);
}

static void test_error_reaches_its_owner(void **state)
{
	unsigned char *buffer = aligned_alloc(BLOCK_BYTES, BLOCK_BYTES);
	struct bed bed;

	bed_init(&bed, (struct limits){false, 8, 4, 0});
	assert_int_equal(
		transfer(&bed, ENGINE_READ, 0, MEMBERS * MEMBER_BYTES, buffer, BLOCK_BYTES),
		-ERANGE);
	assert_int_equal(transfer(&bed, ENGINE_READ, 0, 0, buffer, BLOCK_BYTES), 0);
	bed_fini(&bed);
	free(buffer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_many_threads_uring),
		cmocka_unit_test(test_many_threads_sync),
		cmocka_unit_test(test_thread_outlives_older_requests),
		cmocka_unit_test(test_one_owner_uring),
		cmocka_unit_test(test_one_owner_sync),
		cmocka_unit_test(test_owner_works_alone),
		cmocka_unit_test(test_error_reaches_its_owner),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
