/* SPDX-License-Identifier: MIT */
/*
 * Requests cut into pieces: what a contiguous range of the array is in one band.
 *
 * Within a stripe the range runs through data first … last. A band sees of it the columns that lie
 * in its range of the chunk: of the first data from some column on, of the last up to some column,
 * of those between all. If there are just these two and they share no column, they are two pieces:
 * together they would update parity in the gap between them too.
 */
#include <assert.h>
#include <string.h>

#include "engine/stripe.h"
#include "util/rounding.h"

void stripe_cut_start(struct stripe_work *sw, uint64_t first, uint64_t end)
{
	const struct stripes *s = &stripe_level(sw->work->engine)->stripes;
	unsigned data;
	uint32_t in_chunk;

	sw->first_bytes = first;
	sw->end_bytes = end;
	stripes_locate(s, first, &sw->stripe, &data, &in_chunk);
	sw->column = 0;
	sw->second_half = false;
	sw->cut = false;
	sw->iov_index = 0;
	sw->iov_offset = 0;
}

/* A range within one stripe. */
struct span {
	unsigned first, last; /* data */
	uint32_t lo, hi;      /* bytes in their chunks */
};

static struct span span_of(const struct stripes *s, const struct stripe_work *sw)
{
	uint64_t base = stripes_array_offset(s, sw->stripe, 0);
	uint64_t next = stripes_array_offset(s, sw->stripe + 1, 0);
	uint64_t lo = max_u64(sw->first_bytes, base) - base;
	uint64_t hi = min_u64(sw->end_bytes, next) - base - 1; /* the last byte */
	uint32_t mask = s->chunk_bytes - 1;

	return (struct span){
		.first = (unsigned)(lo >> s->chunk_shift),
		.last = (unsigned)(hi >> s->chunk_shift),
		.lo = (uint32_t)lo & mask,
		.hi = ((uint32_t)hi & mask) + 1,
	};
}

/* What @span has in the band at @column, in columns of the band; false: nothing. */
static bool clip(const struct span *span, uint32_t column, uint32_t band_bytes, struct span *ret)
{
	*ret = *span;
	if (span->lo >= column + band_bytes) {
		ret->first++;
		ret->lo = 0;
	} else {
		ret->lo = span->lo > column ? span->lo - column : 0;
	}
	if (span->hi <= column) {
		if (ret->last == 0)
			return false;
		ret->last--;
		ret->hi = band_bytes;
	} else {
		ret->hi = (uint32_t)min_u64(span->hi - column, band_bytes);
	}
	return ret->first <= ret->last;
}

static void next_band(struct stripe_work *sw, const struct stripe_level *level, bool stripe_ends)
{
	sw->second_half = false;
	sw->column += level->band_bytes;
	if (stripe_ends || sw->column >= level->stripes.chunk_bytes) {
		sw->column = 0;
		sw->stripe++;
	}
}

/* Bands before those of a range that lies in one chunk need not be looked at. */
static void skip_bands(struct stripe_work *sw, const struct span *span, uint32_t band_bytes)
{
	if (span->first == span->last && span->lo >= sw->column + band_bytes)
		sw->column = span->lo & ~(band_bytes - 1);
}

static void set_piece(
	const struct stripe_work *sw, const struct span *part, struct piece *piece, bool halves)
{
	uint32_t band_bytes = stripe_level(sw->work->engine)->band_bytes;

	piece->work = sw->work;
	piece->stripe = sw->stripe;
	piece->column = sw->column;
	piece->first = halves && sw->second_half ? part->last : part->first;
	piece->last = halves && !sw->second_half ? part->first : part->last;
	piece->first_lo = piece->first == part->first ? part->lo : 0;
	piece->last_hi = piece->last == part->last ? part->hi : band_bytes;
}

bool stripe_cut_next(struct stripe_work *sw, struct piece *piece)
{
	const struct stripe_level *level = stripe_level(sw->work->engine);
	const struct stripes *s = &level->stripes;

	while (stripes_array_offset(s, sw->stripe, 0) < sw->end_bytes) {
		struct span span = span_of(s, sw), part;
		bool halves;

		skip_bands(sw, &span, level->band_bytes);
		if (!clip(&span, sw->column, level->band_bytes, &part)) {
			next_band(sw, level, false);
			continue;
		}
		halves = part.last == part.first + 1 && part.hi < part.lo;
		set_piece(sw, &part, piece, halves);
		if (halves && !sw->second_half)
			sw->second_half = true;
		else
			next_band(sw, level,
				span.first == span.last &&
					span.hi <= sw->column + level->band_bytes);
		return true;
	}
	sw->cut = true;
	return false;
}

/* Move the work's place in the iovecs to the one that holds byte @offset of the request. */
static void seek(struct stripe_work *sw, uint64_t offset)
{
	const struct engine_request *request = sw->work->request;

	if (offset < sw->iov_offset)
		sw->iov_index = 0, sw->iov_offset = 0;
	while (offset - sw->iov_offset >= request->iov[sw->iov_index].iov_len) {
		sw->iov_offset += request->iov[sw->iov_index].iov_len;
		sw->iov_index++;
		assert(sw->iov_index < request->iov_count);
	}
}

unsigned piece_gather(struct stripe_level *level, const struct piece *piece, unsigned data,
	uint32_t lo, uint32_t hi, struct iovec *iov)
{
	const struct engine_request *request = piece->work->request;
	struct stripe_work *sw = stripe_work(piece->work);
	uint64_t offset = piece_array_bytes(&level->stripes, piece, data, lo);
	uint64_t left = hi - lo;
	unsigned count = 0;

	offset -= request->offset_bytes;
	if (request->op == ENGINE_ZERO) {
		iov[0] = (struct iovec){level->zeros, left};
		return 1;
	}
	while (left > 0) {
		const struct iovec *from;
		uint64_t skip, bytes;

		seek(sw, offset);
		from = &request->iov[sw->iov_index];
		skip = offset - sw->iov_offset;
		bytes = min_u64(left, from->iov_len - skip);
		iov[count++] = (struct iovec){(uint8_t *)from->iov_base + skip, bytes};
		offset += bytes;
		left -= bytes;
	}
	return count;
}

void band_gather(struct band *band, unsigned data)
{
	struct block *block = &band->blocks[data];
	uint32_t band_bytes = band->level->band_bytes;

	block->iov_count = block->iov_next = 0;
	block->iov_lo = block->iov_at = block->slice_lo;
	for (const struct piece *piece = band->group; piece != NULL; piece = piece->next) {
		uint32_t lo, hi;

		if (data < piece->first || data > piece->last)
			continue;
		piece_columns(piece, data, band_bytes, &lo, &hi);
		lo = (uint32_t)max_u64(lo, block->slice_lo);
		hi = (uint32_t)min_u64(hi, block->slice_hi);
		if (lo < hi)
			block->iov_count += piece_gather(
				band->level, piece, data, lo, hi, &block->iov[block->iov_count]);
	}
}

void band_copy_in(struct band *band, unsigned data)
{
	struct block *block = &band->blocks[data];
	uint32_t at = block->slice_lo;

	band_gather(band, data);
	for (unsigned i = 0; i < block->iov_count; at += (uint32_t)block->iov[i++].iov_len)
		memcpy(block->buffer + at, block->iov[i].iov_base, block->iov[i].iov_len);
}

void band_copy_out(struct band *band, unsigned data)
{
	struct block *block = &band->blocks[data];
	uint32_t at = block->slice_lo;

	band_gather(band, data);
	for (unsigned i = 0; i < block->iov_count; at += (uint32_t)block->iov[i++].iov_len)
		memcpy(block->iov[i].iov_base, block->buffer + at, block->iov[i].iov_len);
}
