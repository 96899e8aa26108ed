/* SPDX-License-Identifier: MIT */
/*
 * Parity over a band whose blocks lie in buffers and in the iovecs of requests.
 *
 * The arithmetic wants each block in one piece, so it goes over runs of columns in which no block
 * changes from one iovec to the next; and over few enough columns at once that what is read first
 * is still in the cache for the I/O that follows.
 */
#include <assert.h>
#include <string.h>

#include "engine/stripe.h"
#include "parity/parity.h"
#include "util/rounding.h"

#define RUN_BYTES (32u << 10)

/* Go to the iovec that holds column @at; shorten *@bytes to what it holds from there. */
static void *in_iovecs(struct block *block, uint32_t at, uint32_t *bytes)
{
	const struct iovec *iov = &block->iov[block->iov_next];
	uint32_t skip;

	while (at - block->iov_at >= iov->iov_len) {
		block->iov_at += (uint32_t)iov->iov_len;
		iov++;
	}
	block->iov_next = (unsigned)(iov - block->iov);
	assert(block->iov_next < block->iov_count);
	skip = at - block->iov_at;
	*bytes = (uint32_t)min_u64(*bytes, iov->iov_len - skip);
	return (uint8_t *)iov->iov_base + skip;
}

static void rewind_iovecs(struct band *band)
{
	for (unsigned i = 0; i < band->level->stripes.data; i++) {
		band->blocks[i].iov_next = 0;
		band->blocks[i].iov_at = band->blocks[i].iov_lo;
	}
}

/* level->pointers[] for columns from @at on; returns for how many columns, up to @end, they hold.
 */
static uint32_t point(struct band *band, uint32_t at, uint32_t end)
{
	struct stripe_level *level = band->level;
	uint32_t bytes = (uint32_t)min_u64(end - at, RUN_BYTES);

	if (level->stripes.ddf) /* two of the exponents have no block, other ones in each stripe */
		memset(level->pointers, 0, level->exponents * sizeof(*level->pointers));
	for (unsigned i = 0; i < level->block_count; i++) {
		struct block *block = &band->blocks[i];
		void **pointer = &level->pointers[block->index];

		if (block->source == SOURCE_BUFFER)
			*pointer = block->buffer + at;
		else if (block->source == SOURCE_CALLER)
			*pointer = in_iovecs(block, at, &bytes);
		else
			*pointer = NULL;
	}
	return bytes;
}

static const void *const *as_sources(const struct stripe_level *level)
{
	return (const void *const *)level->pointers;
}

void band_compute_parity(struct band *band, uint32_t lo, uint32_t hi, bool p, bool q)
{
	struct stripe_level *level = band->level;
	unsigned n = level->exponents;
	uint32_t bytes;

	if (!p && !q)
		return;
	rewind_iovecs(band);
	for (uint32_t at = lo; at < hi; at += bytes) {
		bytes = point(band, at, hi);
		if (!q) /* any number of blocks */
			parity_xor(n, as_sources(level), band_p(band)->buffer + at, bytes);
		else
			parity_pq(n, as_sources(level), p ? band_p(band)->buffer + at : NULL,
				band_q(band)->buffer + at, bytes);
	}
}

/* level->pointers[] set: the lost block of a RAID 4 or 5 is the sum of the others. */
static void recover_by_xor(struct stripe_level *level, unsigned lost, uint32_t bytes)
{
	void *target = level->pointers[lost];

	if (target == NULL)
		return;
	level->pointers[lost] = NULL;
	parity_xor(level->exponents + 1, as_sources(level), target, bytes);
}

static void recover(struct band *band, unsigned count, const unsigned *lost, uint32_t bytes)
{
	struct stripe_level *level = band->level;

	if (level->stripes.parities == 1)
		recover_by_xor(level, lost[0], bytes);
	else if (!parity_recover(level->exponents, level->pointers, count, lost, bytes))
		assert(!"the caller has counted");
}

void band_recover(struct band *band, uint32_t lo, uint32_t hi)
{
	unsigned lost[2], count = 0;
	uint32_t bytes;

	for (unsigned i = 0; i < band->level->stripes.data; i++)
		if (band->blocks[i].device == ENGINE_NONE) {
			assert(count < band->level->stripes.parities);
			lost[count++] = band->blocks[i].index;
		}
	if (count == 0)
		return;
	rewind_iovecs(band);
	for (uint32_t at = lo; at < hi; at += bytes) {
		bytes = point(band, at, hi);
		recover(band, count, lost, bytes);
	}
}

void band_recover_one(struct band *band, unsigned index, uint32_t lo, uint32_t hi)
{
	(void)point(band, lo, hi);
	assert(hi - lo <= RUN_BYTES);
	recover(band, 1, &index, hi - lo);
}

/* RAID 4 and 5: data and P add up to zero. */
static int check_by_xor(struct stripe_level *level, uint32_t bytes)
{
	parity_xor(level->exponents + 1, as_sources(level), level->scratch, bytes);
	return parity_is_zero(level->scratch, bytes) ? PARITY_CONSISTENT : PARITY_CANNOT_TELL;
}

/* RAID 6 with one block not read: what parity is left over fits or does not, and tells no more. */
static int check_remaining(struct band *band, uint32_t at, uint32_t bytes)
{
	struct stripe_level *level = band->level;
	const struct block *p = band_p(band), *q = band_q(band);

	if (q->device == ENGINE_NONE)
		return check_by_xor(level, bytes);
	(void)p; /* not read, or used up for the data block that was not */
	parity_pq(level->exponents, as_sources(level), NULL, level->scratch, bytes);
	return memcmp(level->scratch, q->buffer + at, bytes) == 0 ? PARITY_CONSISTENT
								  : PARITY_CANNOT_TELL;
}

static bool all_were_read(const struct band *band)
{
	for (unsigned i = 0; i < band->level->block_count; i++)
		if (band->blocks[i].device == ENGINE_NONE)
			return false;
	return true;
}

int band_check(struct band *band, uint32_t lo, uint32_t hi)
{
	struct stripe_level *level = band->level;
	bool whole = all_were_read(band);
	uint32_t bytes;
	int verdict = PARITY_CONSISTENT;

	for (uint32_t at = lo; at < hi && verdict == PARITY_CONSISTENT; at += bytes) {
		bytes = point(band, at, hi);
		if (level->stripes.parities == 1)
			verdict = check_by_xor(level, bytes);
		else if (!whole)
			verdict = check_remaining(band, at, bytes);
		else
			verdict = parity_locate(
				level->exponents, as_sources(level), bytes, NULL, NULL);
	}
	return verdict;
}
