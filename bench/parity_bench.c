/* SPDX-License-Identifier: MIT */
/*
 * Parity against the memory it works on: parity_bench ROUNDS MILLISECONDS
 *
 * The bound of an operation is the same traffic without arithmetic: memchr() for a byte that is not
 * there reads the blocks that the operation reads, memset() writes those that it writes. Bound and
 * operation take turns; figures are medians over the rounds, ratios the median of the rounds'
 * ratios. "memory" walks through 512 MiB, "cache" stays in one stripe; "unaligned" is memory with
 * blocks that lie 8 bytes behind a multiple of 64. GB/s count the data blocks only, per second of
 * the thread's CPU time. All is zeros: the time does not depend on the content. Ratios above 1 are
 * no mistake: parity reads several blocks side by side, which brings more from memory than the
 * bound's one after the other. Prints a JSON array.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "parity/parity.h"

#define POOL_BYTES ((size_t)512 << 20)
#define ROUNDS_MAX 101u

struct place {
	const char *name;
	size_t skew_bytes;
	bool one_stripe;
};

static const struct place places[] = {
	{"memory", 0, false}, {"unaligned", 8, false}, {"cache", 0, true}};

/* One stripe of the pool: n data, P, Q. */
struct job {
	unsigned n;
	size_t bytes;
	void *block[PARITY_DATA_MAX + 2];
};

struct operation {
	const char *name;
	unsigned reads, writes; /* blocks of P and Q */
	void (*run)(const struct job *job);
};

static void run_p(const struct job *job)
{
	parity_xor(job->n, (const void *const *)job->block, job->block[job->n], job->bytes);
}

static void run_pq(const struct job *job)
{
	parity_pq(job->n, (const void *const *)job->block, job->block[job->n],
		job->block[job->n + 1], job->bytes);
}

/* Reads n - 2 data blocks, P and Q, writes two: the traffic of P + Q. */
static void run_recover(const struct job *job)
{
	const unsigned lost[] = {0, job->n - 1};

	if (!parity_recover(job->n, job->block, 2, lost, job->bytes))
		abort();
}

static void run_locate(const struct job *job)
{
	const void *const *stripe = (const void *const *)job->block;

	if (parity_locate(job->n, stripe, job->bytes, NULL, NULL) != PARITY_CONSISTENT)
		abort();
}

static const struct operation operations[] = {
	{"P", 0, 1, run_p},
	{"P and Q", 0, 2, run_pq},
	{"two lost data blocks", 0, 2, run_recover},
	{"check of P and Q", 2, 0, run_locate},
};

static void run_bound(const struct operation *operation, const struct job *job)
{
	for (unsigned i = 0; i < job->n + operation->reads; i++)
		if (memchr(job->block[i], 0xff, job->bytes) != NULL)
			abort();
	for (unsigned i = 0; i < operation->writes; i++)
		memset(job->block[job->n + i], 0, job->bytes);
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* GB/s of data blocks over about @ms; @bound: without arithmetic. */
static double measure(const struct operation *operation, const struct place *place, bool bound,
	unsigned n, size_t bytes, uint8_t *pool, unsigned ms)
{
	struct job job = {.n = n, .bytes = bytes};
	size_t pitch = bytes + place->skew_bytes * 8, stripe_bytes = (n + 2) * pitch;
	size_t stripes = place->one_stripe ? 1 : POOL_BYTES / stripe_bytes;
	uint64_t done = 0, start = now_ns(), elapsed;

	do {
		/* 64 stripes between looks at the clock. */
		for (unsigned k = 0; k < 64; k++, done++) {
			uint8_t *stripe = pool + done % stripes * stripe_bytes;

			for (unsigned i = 0; i < n + 2; i++)
				job.block[i] = stripe + i * pitch + place->skew_bytes;
			if (bound)
				run_bound(operation, &job);
			else
				operation->run(&job);
		}
		elapsed = now_ns() - start;
	} while (elapsed < ms * (uint64_t)1000000);
	return (double)(done * n * bytes) / (double)elapsed;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void compare(const struct operation *operation, const struct place *place, unsigned n,
	size_t bytes, uint8_t *pool, unsigned rounds, unsigned ms)
{
	double bound[ROUNDS_MAX], ours[ROUNDS_MAX], ratio[ROUNDS_MAX];
	static bool is_first = true;

	for (unsigned r = 0; r < rounds; r++) {
		bound[r] = measure(operation, place, true, n, bytes, pool, ms);
		ours[r] = measure(operation, place, false, n, bytes, pool, ms);
		ratio[r] = ours[r] / bound[r];
	}
	qsort(bound, rounds, sizeof(double), by_value);
	qsort(ours, rounds, sizeof(double), by_value);
	qsort(ratio, rounds, sizeof(double), by_value);
	printf("%s{\"operation\": \"%s\", \"place\": \"%s\", \"data_blocks\": %u, "
	       "\"block_bytes\": %zu, \"bound_gb_s\": %.2f, \"gb_s\": %.2f, \"ratio\": %.3f, "
	       "\"ratio_min\": %.3f, \"ratio_max\": %.3f, \"bound_spread\": %.2f}",
		is_first ? "" : ",\n", operation->name, place->name, n, bytes, bound[rounds / 2],
		ours[rounds / 2], ratio[rounds / 2], ratio[0], ratio[rounds - 1],
		(bound[rounds - 1] - bound[0]) / bound[rounds / 2]);
	fflush(stdout);
	is_first = false;
}

static void compare_all(uint8_t *pool, unsigned rounds, unsigned ms)
{
	for (size_t p = 0; p < sizeof(places) / sizeof(places[0]); p++)
		for (size_t o = 0; o < sizeof(operations) / sizeof(operations[0]); o++)
			for (unsigned n = 4; n <= 16; n *= 2)
				for (size_t bytes = 4096; bytes <= 65536; bytes *= 16)
					compare(&operations[o], &places[p], n, bytes, pool, rounds,
						ms);
}

int main(int argc, char **argv)
{
	unsigned rounds = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 0;
	unsigned ms = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 0;
	uint8_t *pool;

	if (argc != 3 || rounds == 0 || rounds > ROUNDS_MAX || ms == 0) {
		fprintf(stderr, "usage: parity_bench ROUNDS MILLISECONDS (at most %u rounds)\n",
			ROUNDS_MAX);
		return 2;
	}
	pool = mmap(NULL, POOL_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (pool == MAP_FAILED) {
		perror("parity_bench: 512 MiB of memory");
		return 1;
	}
	(void)madvise(pool, POOL_BYTES, MADV_HUGEPAGE); /* only if the kernel likes */
	memset(pool, 0, POOL_BYTES);
	printf("[");
	compare_all(pool, rounds, ms);
	printf("]\n");
	munmap(pool, POOL_BYTES);
	return 0;
}
