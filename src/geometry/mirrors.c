/* SPDX-License-Identifier: MIT */
/*
 * RAID 1 and RAID 10.
 *
 * RAID 10 deals out the chunks of the array, each `near` times in a row, over the cells of the
 * members row by row (specification 7.6): the j-th near copy of chunk c is cell u = c · near + j,
 * on slot u mod n in row u / n. Cells map one to one to near copies, so u / near inverts it.
 *
 * The far copies are the same rows again, `far` times in all, with the slots turned by `near` each
 * time, within sets of slots. Without sets (one set of n slots) copy (j, f) is on slot
 * (c · near + j + f · near) mod n: a run of near · far neighbours, all different since copies <= n.
 * With sets of F slots the slot turns within its own set; the last set takes the n mod F slots left
 * over. The rows of turn f follow in section f of the member (far) or directly below (offset).
 *
 * Linux decides by d + near > last_start whether slot d is in the last set. That also catches the
 * last near - 1 slots of the set before, whose copies then fall on those of the last set. Only for
 * near = 1, or with no slot left over, or with a single set, is it right; the others are refused.
 */
#include "geometry/mirrors.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "util/rounding.h"

#define CHUNK_BYTES_MIN 4096u /* Linux: a page, and a power of two */
#define SECTOR_BYTES 512u

enum far_set_kind {
	ONE_SET,
	SETS_BY_FAR,    /* n / far slots each */
	SETS_BY_COPIES, /* near · far slots each */
	SETS_INVALID,
};

static inline uint64_t divide(uint64_t value, unsigned divisor)
{
	return (value >> 32) == 0 ? (uint32_t)value / divisor : value / divisor;
}

/* The set of @slot: its first slot, and how many it has. */
static inline unsigned set_of(const struct mirrors *m, unsigned slot, unsigned *ret_start)
{
	if (slot >= m->last_start) {
		*ret_start = m->last_start;
		return m->slots - m->last_start;
	}
	*ret_start = slot - slot % m->set_slots;
	return m->set_slots;
}

/* The slot of the next far copy. */
static inline unsigned turn(const struct mirrors *m, unsigned slot)
{
	unsigned start, size = set_of(m, slot, &start);
	unsigned turned = slot + m->near;

	return turned < start + size ? turned : start + (turned - start) % size;
}

/* @turns times back. */
static inline unsigned turn_back(const struct mirrors *m, unsigned slot, unsigned turns)
{
	unsigned start, size = set_of(m, slot, &start);
	unsigned back = turns * m->near % size;

	return start + (slot - start + size - back) % size;
}

static uint64_t map_chunk(const struct mirrors *m, uint64_t chunk, uint64_t in_chunk,
	uint64_t length, struct geometry_piece *copy)
{
	uint64_t stride = (m->offset ? 1 : m->rows) << m->chunk_shift;
	uint64_t cell = chunk * m->near;
	uint64_t row = divide(cell, m->slots);
	unsigned slot = (unsigned)(cell - row * m->slots);

	for (unsigned near = 0; near < m->near; near++) {
		uint64_t at = ((m->offset ? row * m->far : row) << m->chunk_shift) + in_chunk;
		unsigned turned = slot;

		*copy++ = (struct geometry_piece){slot, at, length};
		for (unsigned far = 1; far < m->far; far++) {
			turned = turn(m, turned);
			at += stride;
			*copy++ = (struct geometry_piece){turned, at, length};
		}
		if (++slot == m->slots) {
			slot = 0;
			row++;
		}
	}
	return length;
}

uint64_t mirrors_map(const struct mirrors *m, uint64_t offset, struct geometry_piece *copies)
{
	uint64_t in_chunk;

	assert(offset < m->array_bytes);
	if (m->chunked) {
		in_chunk = offset & (m->chunk_bytes - 1);
		return map_chunk(
			m, offset >> m->chunk_shift, in_chunk, m->chunk_bytes - in_chunk, copies);
	}
	for (unsigned slot = 0; slot < m->slots; slot++)
		copies[slot] = (struct geometry_piece){slot, offset, m->array_bytes - offset};
	return m->array_bytes - offset;
}

/* The row of near copies that row @row of a member repeats, and how often it was turned. */
static uint64_t base_row(const struct mirrors *m, uint64_t row, unsigned *ret_turns)
{
	uint64_t base;

	if (m->offset) {
		base = divide(row, m->far);
		*ret_turns = (unsigned)(row - base * m->far);
		return base;
	}
	*ret_turns = (unsigned)(row / m->rows);
	return row % m->rows;
}

static bool inverse_chunked(const struct mirrors *m, unsigned slot, uint64_t member_offset,
	uint64_t *ret_array_offset, uint64_t *ret_length)
{
	uint64_t in_chunk = member_offset & (m->chunk_bytes - 1);
	uint64_t row = member_offset >> m->chunk_shift;
	uint64_t chunk;
	unsigned turns;

	*ret_length = UINT64_MAX;
	if (row >= m->rows * m->far)
		return false;
	*ret_length = m->chunk_bytes - in_chunk;
	row = base_row(m, row, &turns);
	chunk = divide(row * m->slots + turn_back(m, slot, turns), m->near);
	if (chunk >= m->chunks)
		return false;
	*ret_array_offset = (chunk << m->chunk_shift) + in_chunk;
	return true;
}

bool mirrors_inverse(const struct mirrors *m, unsigned slot, uint64_t member_offset,
	uint64_t *ret_array_offset, uint64_t *ret_length)
{
	assert(slot < m->slots);
	if (m->chunked)
		return inverse_chunked(m, slot, member_offset, ret_array_offset, ret_length);
	*ret_length = UINT64_MAX;
	if (member_offset >= m->array_bytes)
		return false;
	*ret_array_offset = member_offset;
	*ret_length = m->array_bytes - member_offset;
	return true;
}

/* Has the chunk whose first near copy is on @slot a copy that is in sync? */
static bool chunk_available(const struct mirrors *m, const bool *in_sync, unsigned slot)
{
	for (unsigned near = 0; near < m->near; near++) {
		unsigned turned = slot;

		for (unsigned far = 0; far < m->far; far++) {
			if (in_sync[turned])
				return true;
			turned = turn(m, turned);
		}
		slot = slot + 1 == m->slots ? 0 : slot + 1;
	}
	return false;
}

/*
 * Which slots a chunk is on depends only on where its first copy is; these places repeat after at
 * most n chunks. An array of fewer chunks than that is held to the same rule, as md does.
 */
bool mirrors_available(const struct mirrors *m, const bool *in_sync)
{
	unsigned slot = 0;

	if (!m->chunked)
		return memchr(in_sync, true, m->slots * sizeof(*in_sync)) != NULL;
	do {
		if (!chunk_available(m, in_sync, slot))
			return false;
		slot = (slot + m->near) % m->slots;
	} while (slot != 0);
	return true;
}

/* Is a slot named twice among the copies of the chunk that begins on @first? */
static bool chunk_shares_slot(const struct mirrors *m, unsigned first)
{
	bool seen[GEOMETRY_SLOTS_MAX] = {false};

	for (unsigned near = 0; near < m->near; near++) {
		unsigned slot = (first + near) % m->slots;

		for (unsigned far = 0; far < m->far; far++) {
			if (seen[slot])
				return true;
			seen[slot] = true;
			slot = turn(m, slot);
		}
	}
	return false;
}

/* With one set this cannot be (see above); sets smaller than the copies need can do it. */
static bool copies_share_slot(const struct mirrors *m)
{
	unsigned first = 0;

	if (m->set_slots == m->slots)
		return false;
	do {
		if (chunk_shares_slot(m, first))
			return true;
		first = (first + m->near) % m->slots;
	} while (first != 0);
	return false;
}

static int read_layout(struct mirrors *m, uint32_t layout, struct fault *fault)
{
	unsigned kind = layout >> 17;

	if (kind >= SETS_INVALID)
		return fault_set(fault, -EINVAL,
			"RAID 10 layout %#x has bits that no version of md knows", layout);
	m->near = layout & 0xff;
	m->far = layout >> 8 & 0xff;
	m->offset = (layout & MIRRORS_LAYOUT_OFFSET) != 0;
	m->copies = m->near * m->far;
	if (m->copies < 2 || m->copies > m->slots)
		return fault_set(fault, -EINVAL,
			"RAID 10 layout %#x keeps %u copies; with %u slots there can be 2 to %u",
			layout, m->copies, m->slots, m->slots);
	m->set_slots = m->slots;
	if (kind == SETS_BY_FAR)
		m->set_slots = m->slots / m->far;
	else if (kind == SETS_BY_COPIES)
		m->set_slots = m->copies;
	m->last_start = (m->slots / m->set_slots - 1) * m->set_slots;
	return 0;
}

/* Layouts whose numbers are well formed, but under which copies do not protect. */
static int check_layout(const struct mirrors *m, uint32_t layout, struct fault *fault)
{
	if (m->near > 1 && m->far > 1 && m->offset && m->slots % m->near != 0)
		return fault_set(fault, -EINVAL,
			"RAID 10 layout %#x (near=%u, offset=%u) on %u slots puts copies of "
			"different chunks into the same place, so that they overwrite each other; "
			"the number of slots must be a multiple of %u",
			layout, m->near, m->far, m->slots, m->near);
	if (m->near > 1 && m->far > 1 && m->last_start != 0 && m->slots % m->set_slots != 0)
		return fault_set(fault, -EINVAL,
			"RAID 10 layout %#x on %u slots puts copies of different chunks into the "
			"same place, so that they overwrite each other; the number of slots must "
			"be a multiple of the far set of %u",
			layout, m->slots, m->set_slots);
	if (copies_share_slot(m))
		return fault_set(fault, -EINVAL,
			"RAID 10 layout %#x on %u slots, in far sets of %u, puts two copies of a "
			"chunk on the same member, where they protect nothing",
			layout, m->slots, m->set_slots);
	return 0;
}

static int check_chunk(uint32_t chunk_bytes, struct fault *fault)
{
	if (is_power_of_two(chunk_bytes) && chunk_bytes >= CHUNK_BYTES_MIN)
		return 0;
	return fault_set(fault, -EINVAL,
		"RAID 10 needs a chunk size that is a power of two and at least %u bytes; %u is "
		"not",
		CHUNK_BYTES_MIN, chunk_bytes);
}

/* Specification 7.1: ((S/C)/far · n / near) · C, divided in this order. */
static int set_size(struct mirrors *m, uint64_t member_bytes, struct fault *fault)
{
	uint64_t cells;

	m->chunk_shift = (unsigned)__builtin_ctz(m->chunk_bytes);
	m->rows = (member_bytes >> m->chunk_shift) / m->far;
	if (mul_overflows(m->rows, m->slots, &cells) ||
		cells / m->near > (uint64_t)INT64_MAX >> m->chunk_shift)
		return fault_set(fault, -ERANGE,
			"the members together are larger than 8 EiB; no array can be");
	m->chunks = cells / m->near;
	m->array_bytes = m->sync_bytes = m->chunks << m->chunk_shift;
	if (m->chunks == 0)
		return fault_set(fault, -EINVAL,
			"the members have room for %llu bytes of data, less than the %u chunks of "
			"%u bytes that each must hold; use larger members or a smaller chunk",
			(unsigned long long)member_bytes, m->far, m->chunk_bytes);
	return 0;
}

static int init_raid10(
	struct mirrors *m, uint32_t layout, uint64_t member_bytes, struct fault *fault)
{
	int r;

	m->chunked = true;
	r = read_layout(m, layout, fault);
	if (r < 0)
		return r;
	r = check_layout(m, layout, fault);
	if (r < 0)
		return r;
	r = check_chunk(m->chunk_bytes, fault);
	if (r < 0)
		return r;
	return set_size(m, member_bytes, fault);
}

static int init_raid1(struct mirrors *m, uint64_t member_bytes, struct fault *fault)
{
	m->copies = m->slots;
	m->chunk_bytes = 0;
	m->array_bytes = m->sync_bytes = round_down(member_bytes, SECTOR_BYTES);
	if (m->array_bytes == 0)
		return fault_set(fault, -EINVAL, "the members have no room for data");
	if (m->array_bytes > INT64_MAX)
		return fault_set(
			fault, -ERANGE, "the members are larger than 8 EiB; no array can be");
	return 0;
}

int mirrors_init(int level, uint32_t layout, uint32_t chunk_bytes, unsigned slots,
	uint64_t member_bytes, struct mirrors *ret, struct fault *fault)
{
	struct mirrors m = {.slots = slots, .chunk_bytes = chunk_bytes};
	int r;

	if (level != 1 && level != 10)
		return fault_set(fault, -EINVAL, "level %d has no mirrors", level);
	if (slots == 0 || slots > GEOMETRY_SLOTS_MAX)
		return fault_set(fault, -EINVAL, "an array has 1 to %u slots, not %u",
			GEOMETRY_SLOTS_MAX, slots);
	r = level == 1 ? init_raid1(&m, member_bytes, fault)
		       : init_raid10(&m, layout, member_bytes, fault);
	if (r < 0)
		return r;
	*ret = m;
	return 0;
}
