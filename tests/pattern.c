/* SPDX-License-Identifier: MIT */

/*
 * pattern write|verify FILE SEED [OFFSET LENGTH]
 *
 * Writes or checks content in which every 8 bytes depend on the seed and on their own place, so
 * that a block in the wrong place, a repeated one or an old one is noticed and named. OFFSET and
 * LENGTH are bytes, multiples of 512; default is the whole of FILE. FILE "-" is standard output or
 * input; then the content is the range itself, and verify insists that it ends where LENGTH says.
 */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BLOCK_BYTES (1u << 20)
#define SECTOR_BYTES 512u
#define SECTOR_WORDS (SECTOR_BYTES / 8)

struct job {
	const char *path;
	int fd;
	bool stream;
	uint64_t seed;
	uint64_t offset, length;
	uint64_t buffer[BLOCK_BYTES / 8];
	uint64_t expected[BLOCK_BYTES / 8];
};

/* splitmix64, by Sebastiano Vigna (public domain): neighbouring inputs give unrelated outputs. */
static uint64_t mix(uint64_t x)
{
	x += UINT64_C(0x9e3779b97f4a7c15);
	x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
	return x ^ (x >> 31);
}

static void fill(uint64_t *words, uint64_t seed, uint64_t offset, size_t length)
{
	uint64_t sector = offset / SECTOR_BYTES;
	size_t i, n = length / 8;

	for (i = 0; i < n; i++)
		words[i] = mix(mix(seed) ^ (sector * SECTOR_WORDS + i));
}

static int fail(const struct job *job, const char *what, int error)
{
	fprintf(stderr, "pattern: %s: %s: %s\n", job->path, what, strerror(error));
	return 1;
}

static int write_block(struct job *job, uint64_t at, size_t length)
{
	const char *p = (const char *)job->expected;
	size_t done = 0;

	while (done < length) {
		ssize_t n = job->stream
				    ? write(job->fd, p + done, length - done)
				    : pwrite(job->fd, p + done, length - done, (off_t)(at + done));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return fail(job, "write", n < 0 ? errno : EIO);
		done += (size_t)n;
	}
	return 0;
}

static int read_block(struct job *job, uint64_t at, size_t length)
{
	char *p = (char *)job->buffer;
	size_t done = 0;

	while (done < length) {
		ssize_t n = job->stream
				    ? read(job->fd, p + done, length - done)
				    : pread(job->fd, p + done, length - done, (off_t)(at + done));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return fail(job, "read", errno);
		if (n == 0) {
			fprintf(stderr,
				"pattern: %s: ends at byte %" PRIu64 ", %" PRIu64 " wanted\n",
				job->path, at + done, job->offset + job->length);
			return 1;
		}
		done += (size_t)n;
	}
	return 0;
}

static int verify_block(struct job *job, uint64_t at, size_t length)
{
	size_t i, n = length / 8;

	if (read_block(job, at, length) != 0)
		return 1;
	if (memcmp(job->buffer, job->expected, length) == 0)
		return 0;
	for (i = 0; job->buffer[i] == job->expected[i] && i < n; i++)
		;
	fprintf(stderr,
		"pattern: %s: first difference at byte %" PRIu64 " (sector %" PRIu64
		"): %016" PRIx64 " instead of %016" PRIx64 "\n",
		job->path, at + i * 8, (at + i * 8) / SECTOR_BYTES, job->buffer[i],
		job->expected[i]);
	return 1;
}

static int run(struct job *job, bool verify)
{
	uint64_t at = job->offset, end = job->offset + job->length;
	char more;

	for (; at < end; at += BLOCK_BYTES) {
		size_t length = end - at < BLOCK_BYTES ? (size_t)(end - at) : BLOCK_BYTES;

		fill(job->expected, job->seed, at, length);
		if (verify ? verify_block(job, at, length) : write_block(job, at, length))
			return 1;
	}
	if (!verify && fsync(job->fd) < 0 && !(job->stream && errno == EINVAL))
		return fail(job, "fsync", errno);
	if (verify && job->stream && read(job->fd, &more, 1) != 0) {
		fprintf(stderr, "pattern: %s: more than %" PRIu64 " bytes\n", job->path,
			job->length);
		return 1;
	}
	return 0;
}

static int open_job(struct job *job, bool verify, bool ranged)
{
	off_t size;

	job->stream = strcmp(job->path, "-") == 0;
	if (job->stream) {
		job->fd = verify ? STDIN_FILENO : STDOUT_FILENO;
		return 0;
	}
	job->fd = open(job->path, (verify ? O_RDONLY : O_WRONLY) | O_CLOEXEC);
	if (job->fd < 0)
		return fail(job, "open", errno);
	if (ranged)
		return 0;
	size = lseek(job->fd, 0, SEEK_END);
	if (size < 0)
		return fail(job, "size", errno);
	job->length = (uint64_t)size;
	return 0;
}

int main(int argc, char **argv)
{
	static struct job job;
	bool verify = argc > 1 && strcmp(argv[1], "verify") == 0;

	if ((argc != 4 && argc != 6) || (!verify && strcmp(argv[1], "write") != 0)) {
		fprintf(stderr, "usage: pattern write|verify FILE SEED [OFFSET LENGTH]\n");
		return 2;
	}
	job.path = argv[2];
	job.seed = strtoull(argv[3], NULL, 0);
	if (argc == 6) {
		job.offset = strtoull(argv[4], NULL, 0);
		job.length = strtoull(argv[5], NULL, 0);
	}
	if (open_job(&job, verify, argc == 6) != 0)
		return 1;
	if (job.length == 0 || (job.offset | job.length) % SECTOR_BYTES != 0) {
		fprintf(stderr,
			"pattern: %s: %" PRIu64 " bytes at %" PRIu64 ": not whole sectors\n",
			job.path, job.length, job.offset);
		return 2;
	}
	return run(&job, verify);
}
