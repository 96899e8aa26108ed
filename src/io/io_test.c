/* SPDX-License-Identifier: MIT */
/*
 * One grid of cases over both reactors, over the page cache and over O_DIRECT where the folder's
 * file system has it: content against a shadow copy, errors, limits, and the rules of world.h.
 */
#include "io/test_rig.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "io/internal.h"
#include "util/rounding.h"

#define FILE_BYTES (2 * K * K)
#define IO_MAX 8u
#define JOBS_MAX 300u

struct flavour {
	const char *name;
	bool sync;
	bool direct;
	bool memory; /* the file is on tmpfs, which has no ZERO_RANGE */
};

static const struct flavour flavours[] = {
	{"uring, page cache", false, false, false},
	{"uring, O_DIRECT", false, true, false},
	{"uring, tmpfs", false, false, true},
	{"sync, page cache", true, false, false},
	{"sync, O_DIRECT", true, true, false},
	{"sync, tmpfs", true, false, true},
};

struct rig {
	const struct flavour *flavour;
	char folder[256], path[300];
	struct member
		*members[2]; /* a file; a device of the kernel put in its place by some tests */
	struct member special;
	struct reactor *reactor;
	struct world *world;
	uint8_t *shadow;
	bool inside_submit;
	unsigned pending;
};

struct job {
	struct world_io io;
	struct rig *rig;
	struct iovec iov[8];
	uint8_t *buffer;
	int result;
	unsigned done_count;
};

static void start_reactor(struct rig *rig)
{
	struct reactor_options options = {.members = rig->members,
		.member_count = 2,
		.io_max = IO_MAX,
		.sync = rig->flavour->sync,
		.ring = !rig->flavour->sync};
	struct fault fault = {0};

	assert_int_equal(reactor_new(&options, &rig->reactor, &fault), 0);
	assert_string_equal(reactor_kind(rig->reactor), rig->flavour->sync ? "sync" : "uring");
	rig->world = reactor_world(rig->reactor);
}

/* The second member: @path of the kernel, /dev/full and the like, which no member_open() takes. */
static void start_with(struct rig *rig, const char *path, int mode)
{
	rig->special = (struct member){.path = (char *)path,
		.size_bytes = FILE_BYTES,
		.fd = open(path, mode | O_CLOEXEC),
		.memory_align = 1};
	assert_true(rig->special.fd >= 0);
	rig->members[1] = &rig->special;
	reactor_free(rig->reactor);
	start_reactor(rig);
}

static int set_up(void **state)
{
	const struct flavour *flavour = *state;
	struct rig *rig = calloc(1, sizeof(*rig));
	struct fault fault = {0};
	int fd;

	rig->flavour = flavour;
	make_folder(flavour->memory ? "/dev/shm" : NULL, rig->folder, sizeof(rig->folder));
	(void)snprintf(rig->path, sizeof(rig->path), "%s/member", rig->folder);
	rig->shadow = malloc(FILE_BYTES);
	fill(rig->shadow, FILE_BYTES, 1);
	fd = open(rig->path, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
	assert_int_equal(write(fd, rig->shadow, FILE_BYTES), FILE_BYTES);
	close(fd);
	assert_int_equal(member_open(rig->path, flavour->direct ? 0 : MEMBER_BUFFERED,
				 &rig->members[0], &fault),
		0);
	rig->members[1] = rig->members[0];
	start_reactor(rig);
	*state = rig;
	return 0;
}

static int tear_down(void **state)
{
	struct rig *rig = *state;

	reactor_free(rig->reactor);
	if (rig->members[1] == &rig->special)
		close(rig->special.fd);
	member_close(rig->members[0]);
	free(rig->shadow);
	assert_int_equal(unlink(rig->path), 0);
	assert_int_equal(rmdir(rig->folder), 0);
	free(rig);
	return 0;
}

/* Is this flavour to be had here? Else the case is skipped with the reason. */
static struct rig *usable(void **state)
{
	struct rig *rig = *state;

	if (rig->flavour->direct && !rig->members[0]->direct) {
		print_message("%s: no O_DIRECT of 512 bytes there\n", rig->folder);
		skip();
	}
	return rig;
}

static void job_done(struct world_io *io, int result)
{
	struct job *job = io->owner;

	assert_false(job->rig->inside_submit);
	assert_true(job->rig->pending > 0);
	job->rig->pending--;
	job->done_count++;
	job->result = result;
}

static void job_submit(struct rig *rig, struct job *job)
{
	job->rig = rig;
	job->io.owner = job;
	job->io.done = job_done;
	job->done_count = 0;
	rig->pending++;
	rig->inside_submit = true;
	world_submit(rig->world, &job->io);
	rig->inside_submit = false;
}

static void run_all(struct rig *rig)
{
	rig->inside_submit = true;
	world_kick(rig->world);
	rig->inside_submit = false;
	while (rig->pending > 0)
		assert_true(reactor_run(rig->reactor, true, UINT64_MAX) >= 0);
}

static int run(struct rig *rig, struct job *job)
{
	job_submit(rig, job);
	run_all(rig);
	assert_int_equal(job->done_count, 1);
	return job->result;
}

/*
 * A transfer of @length bytes at @offset through @pieces iovecs. Buffers begin at @skew bytes
 * behind a page; with @ragged the pieces are cut at odd bytes, else at sectors.
 */
struct shape {
	uint64_t offset;
	size_t length;
	unsigned pieces, skew;
	bool ragged;
};

static void job_shape(struct job *job, enum world_op op, const struct shape *shape)
{
	size_t left = shape->length, piece, at = 0;

	memset(job, 0, sizeof(*job));
	job->buffer = aligned_alloc(4096, round_up(shape->length + shape->skew, 4096));
	memset(job->buffer, 0xee, shape->length + shape->skew);
	for (unsigned i = 0; i < shape->pieces; i++) {
		piece = left / (shape->pieces - i);
		if (i + 1 < shape->pieces)
			piece = shape->ragged ? piece / 2 + 3 : round_down(piece, SECTOR);
		job->iov[i] = (struct iovec){job->buffer + shape->skew + at, piece};
		at += piece;
		left -= piece;
	}
	assert_int_equal(left, 0);
	job->io = (struct world_io){.op = op,
		.iov = job->iov,
		.iov_count = shape->pieces,
		.offset_bytes = shape->offset,
		.length_bytes = shape->length};
}

static uint8_t *job_data(const struct job *job)
{
	return job->iov[0].iov_base;
}

/* The whole file, read past the reactor, is the shadow copy. */
static void check_content(struct rig *rig)
{
	uint8_t *content = malloc(FILE_BYTES);
	int fd = open(rig->path, O_RDONLY | O_CLOEXEC);
	struct stat attributes;

	assert_int_equal(read(fd, content, FILE_BYTES), FILE_BYTES);
	assert_memory_equal(content, rig->shadow, FILE_BYTES);
	assert_int_equal(fstat(fd, &attributes), 0);
	assert_int_equal(attributes.st_size, FILE_BYTES);
	close(fd);
	free(content);
}

static void check_shape(struct rig *rig, const struct shape *shape, unsigned flags)
{
	struct job job;

	job_shape(&job, WORLD_READ, shape);
	assert_int_equal(run(rig, &job), 0);
	assert_memory_equal(job_data(&job), rig->shadow + shape->offset, shape->length);
	free(job.buffer);
	job_shape(&job, WORLD_WRITE, shape);
	job.io.flags = flags;
	fill(job_data(&job), shape->length, shape->offset + shape->length);
	memcpy(rig->shadow + shape->offset, job_data(&job), shape->length);
	assert_int_equal(run(rig, &job), 0);
	assert_memory_equal(job_data(&job), rig->shadow + shape->offset, shape->length);
	free(job.buffer);
}

static void reads_and_writes(void **state)
{
	static const uint64_t offsets[] = {0, SECTOR, 4096 - SECTOR, 8192, FILE_BYTES};
	static const size_t lengths[] = {SECTOR, 4096, 4096 + SECTOR, 256 * K, 600 * K + SECTOR};
	struct rig *rig = usable(state);

	for (unsigned o = 0; o < 5; o++) {
		for (unsigned l = 0; l < 5; l++) {
			struct shape shape = {offsets[o], lengths[l], 1, 0, false};

			if (shape.offset == FILE_BYTES) /* up to the last sector */
				shape.offset -= shape.length;
			check_shape(rig, &shape, 0);
			shape.skew = 1;
			check_shape(rig, &shape, WORLD_FUA);
			shape.pieces = 5;
			shape.ragged = true;
			check_shape(rig, &shape, 0);
			shape.pieces = shape.length > 2 * K ? 5 : 1;
			shape.ragged = false;
			shape.skew = SECTOR;
			check_shape(rig, &shape, WORLD_FUA);
		}
	}
	check_content(rig);
}

/* More requests than may be in flight, of mixed shapes, each finished once and none inside submit.
 */
static void many_at_once(void **state)
{
	struct rig *rig = usable(state);
	struct job *jobs = calloc(JOBS_MAX, sizeof(*jobs));
	uint64_t number = 7;

	for (unsigned round = 0; round < 2; round++) {
		for (unsigned i = 0; i < JOBS_MAX; i++) {
			struct shape shape = {i * 6 * K, 6 * K, 1 + i % 4,
				next_number(&number) % 2 ? 0 : i % 31, i % 3 == 0};

			job_shape(&jobs[i], round == 0 ? WORLD_WRITE : WORLD_READ, &shape);
			if (round == 0)
				fill(job_data(&jobs[i]), shape.length, i);
			job_submit(rig, &jobs[i]);
		}
		run_all(rig);
		for (unsigned i = 0; i < JOBS_MAX; i++) {
			assert_int_equal(jobs[i].done_count, 1);
			assert_int_equal(jobs[i].result, 0);
			if (round == 0)
				memcpy(rig->shadow + i * 6 * K, job_data(&jobs[i]), 6 * K);
			else
				assert_memory_equal(
					rig->shadow + i * 6 * K, job_data(&jobs[i]), 6 * K);
			free(jobs[i].buffer);
		}
	}
	check_content(rig);
	free(jobs);
}

static void resubmit(struct world_io *io, int result)
{
	struct job *job = io->owner;
	struct rig *rig = job->rig;
	unsigned count = job->done_count + 1;

	job_done(io, result);
	assert_int_equal(result, 0);
	if (count == 50)
		return;
	job_submit(rig, job);
	io->done = resubmit;
	job->done_count = count;
}

/* A completion may submit the next request, the very object that has just completed. */
static void submits_from_done(void **state)
{
	struct rig *rig = usable(state);
	struct shape shape = {0, 4096, 1, 0, false};
	struct job jobs[2 * IO_MAX];

	for (unsigned i = 0; i < 2 * IO_MAX; i++) {
		shape.offset = i * 4096;
		shape.skew = i % 2;
		job_shape(&jobs[i], WORLD_READ, &shape);
		job_submit(rig, &jobs[i]);
		jobs[i].io.done = resubmit;
	}
	run_all(rig);
	for (unsigned i = 0; i < 2 * IO_MAX; i++) {
		assert_int_equal(jobs[i].done_count, 50);
		assert_memory_equal(job_data(&jobs[i]), rig->shadow + i * 4096, 4096);
		free(jobs[i].buffer);
	}
}

static int run_range(struct rig *rig, unsigned member, enum world_op op, unsigned flags,
	uint64_t offset, uint64_t length)
{
	struct job job = {.io = {.op = op,
				  .member = member,
				  .flags = flags,
				  .offset_bytes = offset,
				  .length_bytes = length}};

	return run(rig, &job);
}

static blkcnt_t blocks(const struct rig *rig)
{
	struct stat attributes;

	assert_int_equal(fsync(rig->members[0]->fd), 0); /* ext4 allocates late */
	assert_int_equal(fstat(rig->members[0]->fd, &attributes), 0);
	return attributes.st_blocks;
}

static void zeroes(void **state)
{
	static const struct {
		uint64_t offset, length;
		unsigned flags;
	} ranges[] = {
		{0, SECTOR, 0},
		{3 * SECTOR, 20 * SECTOR, WORLD_FUA},
		{64 * K, 700 * K + SECTOR, 0}, /* more than one step, where zeros are written */
		{FILE_BYTES - SECTOR, SECTOR, 0},
		{5 * SECTOR, 2 * SECTOR, WORLD_MAY_UNMAP},
		{1024 * K, 512 * K, WORLD_MAY_UNMAP | WORLD_FUA},
	};
	struct rig *rig = usable(state);
	blkcnt_t before = blocks(rig);

	for (unsigned i = 0; i < 6; i++) {
		if (ranges[i].flags & WORLD_MAY_UNMAP)
			assert_true(blocks(rig) >= before); /* else the space stays */
		assert_int_equal(run_range(rig, 0, WORLD_ZERO, ranges[i].flags, ranges[i].offset,
					 ranges[i].length),
			0);
		memset(rig->shadow + ranges[i].offset, 0, ranges[i].length);
		check_content(rig);
	}
	assert_true(blocks(rig) <= before - 900); /* the last range: 1,024 blocks, edges may stay */
}

static void discards(void **state)
{
	struct rig *rig = usable(state);
	uint64_t offset = 128 * K, length = 1024 * K;
	blkcnt_t before = blocks(rig);
	int fd;

	assert_int_equal(run_range(rig, 0, WORLD_DISCARD, WORLD_FUA, offset, length), 0);
	assert_true(blocks(rig) < before);
	fd = open(rig->path, O_RDWR | O_CLOEXEC);
	/* What the range reads is not defined; all around it is. */
	assert_int_equal(pwrite(fd, rig->shadow + offset, length, (off_t)offset), length);
	close(fd);
	check_content(rig);
}

/* A member that has no holes and no ranges: discard is advice, zeros are written. */
static void falls_back(void **state)
{
	struct rig *rig = usable(state);

	start_with(rig, "/dev/null", O_RDWR);
	for (unsigned i = 0; i < 3; i++) { /* the second time it is remembered */
		assert_int_equal(run_range(rig, 1, WORLD_DISCARD, 0, 0, 4096), 0);
		assert_int_equal(run_range(rig, 1, WORLD_ZERO, WORLD_MAY_UNMAP, 0, 700 * K), 0);
		assert_int_equal(run_range(rig, 1, WORLD_ZERO, WORLD_FUA, 0, 4096), 0);
	}
	close(rig->special.fd);
	start_with(rig, "/dev/full", O_RDWR);
	assert_int_equal(run_range(rig, 1, WORLD_ZERO, WORLD_MAY_UNMAP, 0, 700 * K), -ENOSPC);
	assert_int_equal(run_range(rig, 1, WORLD_ZERO, 0, 0, 4096), -ENOSPC);
}

/* Errors of the member arrive as they are; a flush really asks the member. */
static void passes_errors_on(void **state)
{
	struct shape shape = {0, 4096, 1, 0, false};
	struct rig *rig = usable(state);
	struct job job;

	start_with(rig, "/dev/full", O_WRONLY);
	for (unsigned pieces = 1; pieces <= 2; pieces++) {
		shape.pieces = pieces;
		job_shape(&job, WORLD_WRITE, &shape);
		job.io.member = 1;
		assert_int_equal(run(rig, &job), -ENOSPC);
		free(job.buffer);
		job_shape(&job, WORLD_READ, &shape);
		job.io.member = 1;
		assert_int_equal(run(rig, &job), -EBADF);
		free(job.buffer);
	}
	assert_int_equal(run_range(rig, 1, WORLD_FLUSH, 0, 0, 0), -EINVAL);
	assert_int_equal(run_range(rig, 0, WORLD_FLUSH, 0, 0, 0), 0);
}

static void meets_the_end(void **state)
{
	struct rig *rig = usable(state);
	struct shape shape = {FILE_BYTES, 4096, 1, 0, false};
	struct job job;

	for (unsigned skew = 0; skew < 2; skew++) {
		shape.skew = skew;
		for (shape.pieces = 1; shape.pieces < 5; shape.pieces += 3) {
			shape.offset = FILE_BYTES; /* wholly behind the end */
			job_shape(&job, WORLD_READ, &shape);
			assert_int_equal(run(rig, &job), -EIO);
			free(job.buffer);
			shape.offset = FILE_BYTES - 3 * SECTOR; /* half of it */
			job_shape(&job, WORLD_READ, &shape);
			assert_int_equal(run(rig, &job), -EIO);
			assert_memory_equal(job_data(&job), rig->shadow + shape.offset, 3 * SECTOR);
			free(job.buffer);
		}
	}
	check_content(rig);
}

/* The limit of file size cuts a write short: what went through is kept, the rest is the error. */
static void short_write_goes_on(void **state)
{
	struct rig *rig = usable(state);
	struct shape shape = {64 * K, 16 * K, 3, 0, false};
	struct rlimit before, limit;
	struct job job;

	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	limit = (struct rlimit){70 * K, before.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	job_shape(&job, WORLD_WRITE, &shape);
	fill(job_data(&job), shape.length, 99);
	assert_int_equal(run(rig, &job), -EFBIG);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	signal(SIGXFSZ, SIG_DFL);
	memcpy(rig->shadow + shape.offset, job_data(&job), 6 * K);
	check_content(rig);
	free(job.buffer);
}

/* The kernel moves at most 2 GiB less a page at once: the rest begins inside an iovec. */
static void long_read_goes_on(void **state)
{
	const uint64_t length = 2049ull * 1024 * K;
	struct rig *rig = usable(state);
	struct iovec iov[4];
	struct job job = {.io = {.op = WORLD_READ,
				  .member = 1,
				  .iov = iov,
				  .iov_count = 4,
				  .length_bytes = length}};
	uint8_t *sink = malloc(1024 * K * K), *last = calloc(1, 1024 * K);
	struct member *file = rig->members[0];

	/* A hole in tmpfs, read into one sink over and over, and the tail into @last. */
	assert_int_equal(ftruncate(file->fd, (off_t)length), 0);
	fill(last, 64, 5);
	assert_int_equal(pwrite(file->fd, last, 64, (off_t)length - 64), 64);
	memset(last, 0, 64);
	iov[0] = (struct iovec){sink, 1024 * K * K};
	iov[1] = (struct iovec){sink, 1024 * K * K - 8192};
	iov[2] = (struct iovec){last, 8192}; /* the cut is in here */
	iov[3] = (struct iovec){last, 1024 * K};
	fill(sink, 64, 5);
	assert_int_equal(run(rig, &job), 0);
	fill(sink, 64, 5);
	assert_memory_equal(last + 1024 * K - 64, sink, 64);
	assert_int_equal(ftruncate(file->fd, FILE_BYTES), 0);
	free(sink);
	free(last);
}

/* cachestat(2), Linux 6.5: pages of the file that wait to be written. -1: no such call. */
static int64_t dirty_pages(const struct rig *rig)
{
	struct {
		uint64_t offset, length;
	} range = {0, 0};
	struct {
		uint64_t cache, dirty, writeback, evicted, recently_evicted;
	} answer;

	if (syscall(451, rig->members[0]->fd, &range, &answer, 0) < 0)
		return -1;
	return (int64_t)(answer.dirty + answer.writeback);
}

/* FUA and flush leave nothing of the file waiting in memory; a plain write does. */
static void makes_durable(void **state)
{
	struct rig *rig = usable(state);
	struct shape shape = {256 * K, 64 * K, 1, 0, false};
	struct job job;

	if (dirty_pages(rig) < 0) {
		print_message("no cachestat(2) here\n");
		skip();
	}
	for (shape.pieces = 1; shape.pieces <= 2; shape.pieces++) {
		job_shape(&job, WORLD_WRITE, &shape);
		assert_int_equal(run(rig, &job), 0);
		if (!rig->flavour->direct)
			assert_true(dirty_pages(rig) > 0);
		assert_int_equal(run_range(rig, 0, WORLD_FLUSH, 0, 0, 0), 0);
		assert_int_equal(dirty_pages(rig), 0);
		job.io.flags = WORLD_FUA;
		assert_int_equal(run(rig, &job), 0);
		assert_int_equal(dirty_pages(rig), 0);
		free(job.buffer);
	}
	/* Half a page at each end is written by the page cache even where a range is zeroed. */
	assert_int_equal(run_range(rig, 0, WORLD_ZERO, WORLD_FUA, 256 * K + SECTOR, 64 * K), 0);
	assert_int_equal(dirty_pages(rig), 0);
}

/* A ring that cannot be set up (here: one descriptor is none) is no error: plain calls then. */
static void refused_ring_falls_back(void **state)
{
	struct rig *rig = usable(state);
	struct reactor_options options = {.members = rig->members, .member_count = 2, .io_max = 8};
	struct fault fault = {0};

	rig->special = (struct member){.fd = 1 << 20, .memory_align = 1};
	rig->members[1] = &rig->special;
	reactor_free(rig->reactor);
	assert_int_equal(reactor_new(&options, &rig->reactor, &fault), 0);
	assert_string_equal(reactor_kind(rig->reactor), "sync");
	assert_int_equal(fault.error, 0);
	assert_string_equal(fault.text, "");
	rig->world = reactor_world(rig->reactor);
	check_shape(rig, &(struct shape){0, 8192, 2, 1, true}, 0);
	check_content(rig);
	rig->members[1] = rig->members[0];
}

struct errand {
	struct rig *rig;
	struct job *jobs;
	unsigned count;
};

static void *submit_and_end(void *argument)
{
	struct errand *errand = argument;

	for (unsigned i = 0; i < errand->count; i++)
		job_submit(errand->rig, &errand->jobs[i]);
	world_kick(errand->rig->world);
	return NULL;
}

/* The kernel cancels what a thread has in io_uring when that thread ends; nobody may notice. */
static void outlives_its_thread(void **state)
{
	static const enum world_op ops[] = {WORLD_ZERO, WORLD_WRITE, WORLD_WRITE, WORLD_WRITE};
	struct rig *rig = usable(state);
	struct job jobs[4 * IO_MAX];
	struct errand errand = {rig, jobs, 4 * IO_MAX};

	for (unsigned round = 0; round < 20; round++) {
		pthread_t thread;

		for (unsigned i = 0; i < errand.count; i++) {
			job_shape(&jobs[i], ops[i % 4], &(struct shape){i * 8 * K, 8 * K, 1, i, 0});
			jobs[i].io.flags = WORLD_FUA; /* slow: in line when the thread ends */
			fill(job_data(&jobs[i]), 8 * K, i + round);
			if (ops[i % 4] == WORLD_ZERO)
				memset(rig->shadow + i * 8 * K, 0, 8 * K);
			if (ops[i % 4] == WORLD_WRITE)
				memcpy(rig->shadow + i * 8 * K, job_data(&jobs[i]), 8 * K);
		}
		assert_int_equal(pthread_create(&thread, NULL, submit_and_end, &errand), 0);
		assert_int_equal(pthread_join(thread, NULL), 0);
		run_all(rig);
		for (unsigned i = 0; i < errand.count; i++) {
			assert_int_equal(jobs[i].result, 0);
			free(jobs[i].buffer);
		}
		check_content(rig);
	}
}

/* The like, sure to be cancelled: a read that waits for what comes after its thread has ended. */
static void outwaits_its_thread(void **state)
{
	struct rig *rig = usable(state);
	struct job job;
	struct errand errand = {rig, &job, 1};
	pthread_t thread;
	int ends[2];

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	rig->special = (struct member){.fd = ends[0], .memory_align = 1};
	rig->members[1] = &rig->special;
	reactor_free(rig->reactor);
	start_reactor(rig);
	job_shape(&job, WORLD_READ, &(struct shape){0, SECTOR, 1, 0, false});
	job.io.member = 1;
	assert_int_equal(pthread_create(&thread, NULL, submit_and_end, &errand), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(write(ends[1], rig->shadow, SECTOR), SECTOR);
	run_all(rig);
	assert_int_equal(job.result, 0);
	assert_memory_equal(job_data(&job), rig->shadow, SECTOR);
	close(ends[1]);
	free(job.buffer);
}

/* Whether a bounce buffer is needed, also as devices see it that take addresses at 4 bytes. */
static void knows_alignment(void **state)
{
	static const struct {
		uint32_t memory_align; /* 0: not direct */
		size_t skew, first, second;
		bool aligned;
	} rows[] = {
		{0, 1, 513, 511, true},
		{512, 0, 512, 512, true},
		{512, 512, 512, 1024, true},
		{512, 4, 512, 512, false},
		{512, 0, 516, 508, false},
		{4, 4, 512, 512, true},
		{4, 2, 512, 512, false},
		{4, 4, 516, 508, false}, /* the sum is a sector's multiple, its parts are not */
		{1, 1, 512, 512, true},
		{1, 1, 513, 511, false},
	};
	char *page = aligned_alloc(4096, 4096);

	(void)state;
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct iovec iov[] = {{page + rows[i].skew, rows[i].first},
			{page + 2048 + rows[i].skew, rows[i].second}};
		struct member member = {
			.direct = rows[i].memory_align > 0, .memory_align = rows[i].memory_align};
		struct world_io io = {.op = WORLD_READ, .iov = iov, .iov_count = 2};

		assert_int_equal(transfer_is_aligned(&member, &io), rows[i].aligned);
	}
	free(page);
}

/* Nothing is allocated after the start. */
static void memory_is_fixed(void **state)
{
	struct rig *rig = usable(state);
	size_t before = reactor_memory(rig->reactor);

	assert_true(before > 0);
	check_shape(rig, &(struct shape){0, 700 * K, 5, 1, true}, 0);
	assert_int_equal(reactor_memory(rig->reactor), before);
}

struct test_case {
	const char *name;
	void (*run)(void **state);
	bool (*applies)(const struct flavour *flavour); /* NULL: always */
};

static bool on_tmpfs(const struct flavour *flavour)
{
	return flavour->memory;
}

static bool on_disk(const struct flavour *flavour)
{
	return !flavour->memory;
}

static bool over_ring(const struct flavour *flavour)
{
	return !flavour->sync;
}

static const struct test_case cases[] = {
	{"reads and writes", reads_and_writes, NULL},
	{"many at once", many_at_once, NULL},
	{"submits from done", submits_from_done, NULL},
	{"zeroes", zeroes, NULL},
	{"discards", discards, NULL},
	{"falls back where the member cannot", falls_back, NULL},
	{"passes errors on", passes_errors_on, NULL},
	{"meets the end", meets_the_end, NULL},
	{"short write goes on", short_write_goes_on, NULL},
	{"long read goes on", long_read_goes_on, on_tmpfs},
	{"makes durable", makes_durable, on_disk},
	{"refused ring falls back", refused_ring_falls_back, over_ring},
	{"outlives its thread", outlives_its_thread, NULL},
	{"outwaits its thread", outwaits_its_thread, over_ring},
	{"knows alignment", knows_alignment, on_tmpfs},
	{"memory is fixed", memory_is_fixed, NULL},
};

#define CASES (sizeof(cases) / sizeof(cases[0]))
#define FLAVOURS (sizeof(flavours) / sizeof(flavours[0]))

int main(void)
{
	static struct CMUnitTest tests[CASES * FLAVOURS];
	static char names[CASES * FLAVOURS][80];
	size_t count = 0;

	for (size_t f = 0; f < FLAVOURS; f++) {
		for (size_t c = 0; c < CASES; c++) {
			if (cases[c].applies != NULL && !cases[c].applies(&flavours[f]))
				continue;
			(void)snprintf(names[count], sizeof(names[count]), "%s: %s",
				flavours[f].name, cases[c].name);
			tests[count] = (struct CMUnitTest){names[count], cases[c].run, set_up,
				tear_down, (void *)&flavours[f]};
			count++;
		}
	}
	return _cmocka_run_group_tests("io", tests, count, NULL, NULL);
}
