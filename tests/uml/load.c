/* SPDX-License-Identifier: MIT */

/*
 * A write load whose flushed part can be verified after a crash.
 *
 *   load run FILE SEED LOG WORKERS SECONDS
 *   load verify FILE SEED LOG WORKERS
 *
 * FILE holds zeros before the first run. Each worker has a part of it for itself and writes ranges
 * that follow from seed, worker and number of the write; even workers flush after a few writes, odd
 * ones write through. How many writes are known to be flushed is kept in LOG, written through. A
 * crash may leave of each sector: the newest flushed write, or one of those that came behind it and
 * were issued. Anything else is loss (older), or damage (none of the workers' writes).
 */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SECTOR_BYTES 512u
#define SECTOR_WORDS (SECTOR_BYTES / 8)
#define WRITE_SECTORS_MAX 96u
#define BATCH_MAX 8u /* writes between two flushes */
#define WORKERS_MAX 16u

struct job {
	const char *path;
	uint64_t seed;
	int fd, log_fd;
	unsigned worker;
	uint64_t first_sector, sectors; /* the worker's part */
};

struct range {
	uint64_t first, count;
};

/* splitmix64, by Sebastiano Vigna (public domain). */
static uint64_t mix(uint64_t x)
{
	x += UINT64_C(0x9e3779b97f4a7c15);
	x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
	return x ^ (x >> 31);
}

static uint64_t draw(const struct job *job, uint64_t number, unsigned what)
{
	return mix(mix(mix(job->seed) + job->worker) + number * 4 + what);
}

static struct range range_of(const struct job *job, uint64_t number)
{
	uint64_t count = 1 + draw(job, number, 0) % WRITE_SECTORS_MAX;

	if (draw(job, number, 1) % 3 == 0) /* small ones meet in a stripe */
		count = 1 + count % 8;
	return (struct range){
		job->first_sector + draw(job, number, 2) % (job->sectors - count), count};
}

/* The first word tells the write, from 1. */
static void fill(const struct job *job, uint64_t *words, uint64_t sector, uint64_t number)
{
	words[0] = number + 1;
	for (unsigned i = 1; i < SECTOR_WORDS; i++)
		words[i] = mix(draw(job, number, 3) ^ (sector * SECTOR_WORDS + i));
}

static bool write_one(const struct job *job, uint64_t *buffer, uint64_t number)
{
	struct range range = range_of(job, number);
	size_t length = range.count * SECTOR_BYTES;
	ssize_t n;

	for (uint64_t i = 0; i < range.count; i++)
		fill(job, buffer + i * SECTOR_WORDS, range.first + i, number);
	n = pwrite(job->fd, buffer, length, (off_t)(range.first * SECTOR_BYTES));
	return n == (ssize_t)length;
}

static bool log_flushed(const struct job *job, uint64_t count)
{
	return pwrite(job->log_fd, &count, sizeof(count), (off_t)(job->worker * sizeof(count))) ==
	       sizeof(count);
}

static uint64_t read_flushed(const struct job *job)
{
	uint64_t count = 0;

	if (pread(job->log_fd, &count, sizeof(count), (off_t)(job->worker * sizeof(count))) !=
		sizeof(count))
		return 0;
	return count;
}

/* Until time is over or a write fails, as it does when the array's process is killed. */
static int work(const struct job *job, unsigned seconds)
{
	time_t end = time(NULL) + seconds;
	uint64_t number = read_flushed(job), flushed = number;
	bool through = job->worker % 2 == 1;
	void *buffer;

	if (posix_memalign(&buffer, 4096, WRITE_SECTORS_MAX * SECTOR_BYTES) != 0)
		return 1;
	while (time(NULL) < end && write_one(job, buffer, number)) {
		number++;
		if (!through && number - flushed < BATCH_MAX && draw(job, number, 0) % 5 != 0)
			continue;
		if (!through && fdatasync(job->fd) < 0)
			break;
		flushed = number;
		if (!log_flushed(job, flushed))
			break;
	}
	free(buffer);
	return 0;
}

static bool covers(struct range range, uint64_t sector)
{
	return sector >= range.first && sector < range.first + range.count;
}

static int wrong(const struct job *job, uint64_t sector, uint64_t found, uint64_t wanted)
{
	fprintf(stderr,
		"load: %s: sector %" PRIu64 " (worker %u): write %" PRIu64 ", flushed was %" PRIu64
		"; damaged unless older\n",
		job->path, sector, job->worker, found, wanted);
	return 1;
}

static int verify_sector(const struct job *job, uint64_t sector, uint64_t newest, uint64_t flushed)
{
	uint64_t words[SECTOR_WORDS], expected[SECTOR_WORDS] = {0};
	uint64_t found;

	if (pread(job->fd, words, SECTOR_BYTES, (off_t)(sector * SECTOR_BYTES)) !=
		(ssize_t)SECTOR_BYTES) {
		fprintf(stderr, "load: %s: sector %" PRIu64 ": %s\n", job->path, sector,
			strerror(errno));
		return 1;
	}
	found = words[0];
	if (found != newest && (found <= flushed || found > flushed + BATCH_MAX ||
				       !covers(range_of(job, found - 1), sector)))
		return wrong(job, sector, found, newest);
	if (found != 0)
		fill(job, expected, sector, found - 1);
	return memcmp(words, expected, SECTOR_BYTES) == 0 ? 0 : wrong(job, sector, found, newest);
}

static int verify(const struct job *job, uint64_t *ret_flushed)
{
	uint64_t *newest = calloc(job->sectors, sizeof(*newest)); /* write number + 1; 0: none */
	uint64_t flushed = read_flushed(job);
	int failures = 0;

	if (newest == NULL)
		return 1;
	for (uint64_t number = 0; number < flushed; number++) {
		struct range range = range_of(job, number);

		for (uint64_t i = 0; i < range.count; i++)
			newest[range.first - job->first_sector + i] = number + 1;
	}
	for (uint64_t i = 0; i < job->sectors && failures < 10; i++)
		failures += verify_sector(job, job->first_sector + i, newest[i], flushed);
	free(newest);
	*ret_flushed += flushed;
	return failures;
}

static int open_files(struct job *job, const char *log, bool running)
{
	int flags = running ? O_WRONLY | O_DIRECT : O_RDONLY;

	if (running && job->worker % 2 == 1)
		flags |= O_DSYNC;
	job->fd = open(job->path, flags | O_CLOEXEC);
	job->log_fd = open(
		log, (running ? O_RDWR | O_CREAT | O_DSYNC : O_RDONLY) | O_CLOEXEC, 0644);
	if (job->fd >= 0 && job->log_fd >= 0)
		return 0;
	fprintf(stderr, "load: %s: %s\n", job->fd < 0 ? job->path : log, strerror(errno));
	return 1;
}

static int place(struct job *job, unsigned workers)
{
	off_t size = lseek(job->fd, 0, SEEK_END);

	job->sectors = size < 0 ? 0 : (uint64_t)size / SECTOR_BYTES / workers;
	job->first_sector = job->sectors * job->worker;
	if (job->sectors > WRITE_SECTORS_MAX)
		return 0;
	fprintf(stderr, "load: %s: too small for %u workers\n", job->path, workers);
	return 1;
}

static int run_worker(struct job *job, const char *log, unsigned workers, unsigned seconds)
{
	return open_files(job, log, true) != 0 || place(job, workers) != 0 || work(job, seconds);
}

static int run_all(struct job *job, const char *log, unsigned workers, unsigned seconds)
{
	int status, failures = 0;

	for (job->worker = 0; job->worker < workers; job->worker++) {
		if (fork() == 0)
			_exit(run_worker(job, log, workers, seconds));
	}
	while (wait(&status) > 0)
		failures += status != 0;
	return failures != 0;
}

static int verify_all(struct job *job, const char *log, unsigned workers)
{
	uint64_t flushed = 0;
	int failures = 0;

	for (job->worker = 0; job->worker < workers; job->worker++) {
		if (open_files(job, log, false) != 0 || place(job, workers) != 0)
			return 1;
		failures += verify(job, &flushed);
		(void)close(job->fd);
		(void)close(job->log_fd);
	}
	printf("load: %" PRIu64 " flushed writes\n", flushed);
	if (flushed == 0)
		fprintf(stderr, "load: %s: nothing was flushed: nothing is proved\n", job->path);
	return failures != 0 || flushed == 0;
}

int main(int argc, char **argv)
{
	struct job job = {0};
	bool running = argc == 7 && strcmp(argv[1], "run") == 0;
	unsigned workers = argc >= 6 ? (unsigned)atoi(argv[5]) : 0;

	if ((!running && (argc != 6 || strcmp(argv[1], "verify") != 0)) || workers == 0 ||
		workers > WORKERS_MAX) {
		fprintf(stderr, "usage: load run FILE SEED LOG WORKERS SECONDS\n"
				"       load verify FILE SEED LOG WORKERS\n");
		return 2;
	}
	job.path = argv[2];
	job.seed = strtoull(argv[3], NULL, 0);
	if (running)
		return run_all(&job, argv[4], workers, (unsigned)atoi(argv[6]));
	return verify_all(&job, argv[4], workers);
}
