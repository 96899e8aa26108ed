/* SPDX-License-Identifier: MIT */
/*
 * The write-intent bitmap (specification 3.4, 3.5).
 *
 * In memory each bit has a count of the writes in flight behind it and some flags; beside that
 * there are two copies of the area on the members: the image as it shall be, and what is being
 * written. Bits are set in the image as soon as somebody wants to write, for a bit too many does no
 * harm. They are cleared only between updates, because before a cleared bit reaches a member, the
 * data must be durable that it stood for, and so must events_cleared.
 */
#include "engine/record_state.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "engine/sync.h"
#include "util/rounding.h"

#define PAGE_BYTES MD_BITMAP_BLOCK_BYTES
#define GAP_PAGES 4u /* so many pages that have not changed are written along */
#define AGE_CLEARED (2 * BIT_AGE)
#define WRITES_MAX UINT16_MAX
#define SCAN_MAX 256u /* bits that one question looks at, once it has an answer that is not no */

struct bit_range {
	uint64_t first, last;
};

static unsigned page_of(uint64_t bit)
{
	return (unsigned)((MD_BITMAP_HEADER_BYTES + bit / 8) / PAGE_BYTES);
}

static uint64_t bit_end(const struct bitmap *b, uint64_t bit)
{
	return (bit + 1) << b->shift;
}

static void change_image(struct bitmap *b, uint64_t bit, bool value)
{
	unsigned page = page_of(bit);

	md_bitmap_set(&b->header, b->image + MD_BITMAP_HEADER_BYTES, bit, value);
	b->page_flags[page] |= value ? PAGE_SET : PAGE_CLEARED;
	if (value)
		b->have_sets = true;
	else
		b->have_clears = true;
	b->page_dirty[page] += value ? 1u : -1u;
	b->dirty += value ? 1u : -UINT64_C(1);
}

static void set_bit(struct bitmap *b, uint64_t bit)
{
	if ((b->flags[bit] & BIT_SET) == 0) {
		b->flags[bit] |= BIT_SET;
		change_image(b, bit, true);
	}
}

static void need_bit(struct bitmap *b, uint64_t bit)
{
	if ((b->flags[bit] & BIT_NEEDS) == 0) {
		b->flags[bit] |= BIT_NEEDS;
		b->needing++;
	}
}

static void no_longer_need_bit(struct bitmap *b, uint64_t bit)
{
	if ((b->flags[bit] & BIT_NEEDS) != 0) {
		b->flags[bit] &= (uint8_t)~BIT_NEEDS;
		b->needing--;
	}
}

static void clear_bit(struct bitmap *b, uint64_t bit)
{
	assert(b->writes[bit] == 0 && (b->flags[bit] & BIT_NEEDS) == 0);
	b->flags[bit] = 0;
	change_image(b, bit, false);
}

static struct bit_range range_of(const struct bitmap *b, const struct work *work)
{
	const struct engine_request *request = work->request;
	uint64_t first, end;

	work->engine->level->sync_range(
		work->engine, request->offset_bytes, request->length_bytes, &first, &end);
	return (struct bit_range){min_u64(first >> b->shift, b->bits - 1),
		min_u64((max_u64(end, first + 1) - 1) >> b->shift, b->bits - 1)};
}

static void count_write(struct bitmap *b, uint64_t bit)
{
	assert(b->writes[bit] < WRITES_MAX);
	b->writes[bit]++;
	b->flags[bit] &= (uint8_t)~BIT_AGES;
}

bool bitmap_admit(struct record *record, const struct work *work)
{
	struct bitmap *b = record->bitmap;
	struct bit_range range = range_of(b, work);

	for (uint64_t bit = range.first; bit <= range.last; bit++)
		if ((b->flags[bit] & BIT_DURABLE) == 0)
			return false;
	for (uint64_t bit = range.first; bit <= range.last; bit++)
		count_write(b, bit);
	return true;
}

/* A bit that was set when the run began may be missing on other members: its page goes out too. */
void bitmap_want(struct record *record, const struct work *work)
{
	struct bitmap *b = record->bitmap;
	struct bit_range range = range_of(b, work);

	for (uint64_t bit = range.first; bit <= range.last; bit++) {
		count_write(b, bit);
		set_bit(b, bit);
		if ((b->flags[bit] & BIT_DURABLE) == 0) {
			b->page_flags[page_of(bit)] |= PAGE_SET;
			b->have_sets = true;
		}
	}
}

void bitmap_is_durable(struct record *record, const struct work *work)
{
	struct bitmap *b = record->bitmap;
	struct bit_range range = range_of(b, work);

	for (uint64_t bit = range.first; bit <= range.last; bit++)
		b->flags[bit] |= BIT_DURABLE;
}

static void forget_spans(struct bitmap *b, uint64_t first, uint64_t end)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < b->span_count; i++)
		if (b->spans[i].end <= first || b->spans[i].first >= end)
			b->spans[kept++] = b->spans[i];
	b->span_count = kept;
}

/* A write that missed a member leaves its chunks in need of sync, whatever was synced before. */
void bitmap_release(struct record *record, const struct work *work, bool clean)
{
	struct bitmap *b = record->bitmap;
	struct bit_range range = range_of(b, work);

	for (uint64_t bit = range.first; bit <= range.last; bit++) {
		assert(b->writes[bit] > 0);
		b->writes[bit]--;
		if (!clean)
			need_bit(b, bit);
	}
	if (!clean)
		forget_spans(b, range.first << b->shift, bit_end(b, range.last));
	else if (!record->degraded && b->header.events_cleared < record->master.events)
		b->header.events_cleared = record->master.events;
}

static bool may_clear(const struct bitmap *b, uint64_t bit)
{
	return (b->flags[bit] & (BIT_SET | BIT_NEEDS)) == BIT_SET && b->writes[bit] == 0;
}

/* Calls @visit for each set bit; skips pages without any. */
static void visit_set_bits(struct bitmap *b, void (*visit)(struct bitmap *b, uint64_t bit))
{
	for (uint64_t bit = 0; bit < b->bits;) {
		unsigned page = page_of(bit);
		uint64_t end = ((uint64_t)(page + 1) * PAGE_BYTES - MD_BITMAP_HEADER_BYTES) * 8;

		for (; bit < min_u64(end, b->bits) && b->page_dirty[page] > 0; bit++)
			if ((b->flags[bit] & BIT_SET) != 0)
				visit(b, bit);
		bit = min_u64(end, b->bits);
	}
}

static void clear_if_idle(struct bitmap *b, uint64_t bit)
{
	if (may_clear(b, bit))
		clear_bit(b, bit);
}

static void grow_older(struct bitmap *b, uint64_t bit)
{
	if (!may_clear(b, bit))
		return;
	b->flags[bit] += BIT_AGE;
	if ((b->flags[bit] & BIT_AGES) >= AGE_CLEARED)
		clear_bit(b, bit);
}

void bitmap_clear_idle(struct record *record)
{
	assert(record->update.step == RECORD_IDLE);
	if (!record->degraded && record->touched)
		visit_set_bits(record->bitmap, clear_if_idle);
}

/* Only where there is something to wait for: bits that may become clear, as long as all is whole.
 */
static void arm_daemon(struct record *record)
{
	struct bitmap *b = record->bitmap;
	struct world *world = record->engine->world;

	if (b->daemon.armed || !record->touched || record->sealed || record->degraded ||
		b->dirty == b->needing)
		return;
	world->ops->timer_arm(world, &b->daemon,
		world_now_ns(world) + b->header.daemon_sleep_seconds * UINT64_C(1000000000));
}

static void run_daemon(struct record *record)
{
	struct bitmap *b = record->bitmap;

	b->daemon_due = false;
	if (!record->degraded && !record->sealed)
		visit_set_bits(b, grow_older);
	if (b->have_clears) {
		b->clears_due = true;
		record_schedule(record);
	}
	arm_daemon(record);
}

static void daemon_expired(struct world_timer *timer)
{
	struct record *record = timer->owner;

	if (record->update.step != RECORD_IDLE)
		record->bitmap->daemon_due = true;
	else
		run_daemon(record);
}

/* When nothing is to be resynced and no slot lacks a member in sync, then all is whole. */
void bitmap_consider(struct record *record)
{
	struct bitmap *b = record->bitmap;

	if (!record->degraded && b->needing > 0 &&
		sync_resync_bytes(record->engine) == UINT64_MAX) {
		visit_set_bits(b, no_longer_need_bit);
		b->span_count = 0;
	}
	arm_daemon(record);
}

bool record_has_bitmap(const struct engine *engine)
{
	return record_of(engine)->bitmap != NULL;
}

static bool answer(const struct bitmap *b, uint64_t bit)
{
	return (b->flags[bit] & BIT_NEEDS) != 0;
}

bool bitmap_needs_sync(const struct engine *engine, uint64_t first, uint64_t *ret_end)
{
	const struct bitmap *b = record_of(engine)->bitmap;
	uint64_t bit, end = engine->redundant->sync_bytes, start;
	bool needs;

	if (b == NULL) {
		*ret_end = end;
		return true;
	}
	start = bit = min_u64(first >> b->shift, b->bits - 1);
	needs = answer(b, bit);
	if (!needs && b->needing == 0) {
		*ret_end = end;
		return false;
	}
	while (bit + 1 < b->bits && answer(b, bit + 1) == needs &&
		(!needs || bit - start < SCAN_MAX))
		bit++;
	*ret_end = bit + 1 == b->bits ? end : bit_end(b, bit);
	return needs;
}

/*
 * Note a span; those that touch become one. If there are too many, the lowest is forgotten: its bit
 * stays set until the next walk, which is safe.
 */
static struct bitmap_span *note_span(struct bitmap *b, uint64_t first, uint64_t end)
{
	struct bitmap_span merged = {first, end};
	unsigned kept = 0;

	for (unsigned i = 0; i < b->span_count; i++) {
		struct bitmap_span span = b->spans[i];

		if (span.end < merged.first || span.first > merged.end) {
			b->spans[kept++] = span;
			continue;
		}
		merged.first = min_u64(merged.first, span.first);
		merged.end = max_u64(merged.end, span.end);
	}
	if (kept == BITMAP_SPANS_MAX) {
		memmove(&b->spans[0], &b->spans[1], sizeof(b->spans) - sizeof(b->spans[0]));
		kept--;
	}
	b->spans[kept] = merged;
	b->span_count = kept + 1;
	return &b->spans[kept];
}

/*
 * While a slot has no member in sync, the bits say what that slot misses: nothing is cleared then.
 */
void bitmap_synced(struct engine *engine, uint64_t first, uint64_t end)
{
	struct record *record = record_of(engine);
	struct bitmap *b = record->bitmap;
	const struct bitmap_span *span;
	uint64_t bit;

	if (b == NULL || devices_degraded(engine) || first >= end)
		return;
	span = note_span(b, first, end);
	for (bit = round_up(span->first, UINT64_C(1) << b->shift) >> b->shift;
		bit < b->bits &&
		min_u64(bit_end(b, bit), engine->redundant->sync_bytes) <= span->end;
		bit++)
		no_longer_need_bit(b, bit);
	arm_daemon(record);
}

void bitmap_need_all_set(struct engine *engine)
{
	struct bitmap *b = record_of(engine)->bitmap;

	if (b == NULL)
		return;
	visit_set_bits(b, need_bit);
	b->span_count = 0;
}

void bitmap_need_everything(struct engine *engine)
{
	struct record *record = record_of(engine);
	struct bitmap *b = record->bitmap;

	if (b == NULL)
		return;
	for (uint64_t bit = 0; bit < b->bits; bit++) {
		set_bit(b, bit);
		need_bit(b, bit);
	}
	b->span_count = 0;
	record_schedule(record);
}

void bitmap_counts(const struct engine *engine, uint32_t *ret_chunk_bytes, uint64_t *ret_bits,
	uint64_t *ret_dirty)
{
	const struct bitmap *b = record_of(engine)->bitmap;

	*ret_chunk_bytes = b != NULL ? b->header.chunk_bytes : 0;
	*ret_bits = b != NULL ? b->bits : 0;
	*ret_dirty = b != NULL ? b->dirty : 0;
}

uint64_t record_events_cleared(const struct engine *engine)
{
	const struct bitmap *b = record_of(engine)->bitmap;

	return b != NULL ? b->header.events_cleared : 0;
}

void bitmap_choose_pages(struct record *record)
{
	struct bitmap *b = record->bitmap;

	for (unsigned page = 0; page < b->pages; page++) {
		uint8_t *flags = &b->page_flags[page];

		if ((*flags & (PAGE_SET | PAGE_CLEARED)) != 0 ||
			(page == 0 && record->update.supers))
			*flags |= PAGE_NOW;
	}
	record->update.clears = b->have_clears;
	record->update.cleared = b->header.events_cleared;
	for (unsigned i = 0; i < record->engine->device_max; i++) {
		struct record_device *d = &record->devices[i];

		d->page = 0;
		d->gets_bitmap = record_device_wants_bitmap(d) && !d->has_bitmap;
		if (!record_device_wants_bitmap(d))
			d->has_bitmap = false;
	}
}

void bitmap_copy_header(struct record *record, uint64_t events, uint64_t events_cleared)
{
	struct bitmap *b = record->bitmap;
	struct md_bitmap header = b->header;

	header.events = events;
	header.events_cleared = events_cleared;
	md_bitmap_encode(&header, b->out);
}

/* Bits that were set since the update began go along: they may, and it saves a second write. */
void bitmap_copy_pages(struct record *record)
{
	struct bitmap *b = record->bitmap;

	for (unsigned page = 0; page < b->pages; page++) {
		size_t at = (size_t)page * PAGE_BYTES;
		size_t skip = page == 0 ? MD_BITMAP_HEADER_BYTES : 0;

		if ((b->page_flags[page] & PAGE_NOW) == 0)
			continue;
		memcpy(b->out + at + skip, b->image + at + skip, PAGE_BYTES - skip);
		b->page_flags[page] = PAGE_NOW; /* from now on it may change again */
	}
}

static bool goes_out(const struct record_device *d, unsigned page)
{
	return d->gets_bitmap || (d->record->bitmap->page_flags[page] & PAGE_NOW) != 0;
}

bool bitmap_next_run(struct record_device *d, size_t *ret_offset, size_t *ret_length)
{
	const struct bitmap *b = d->record->bitmap;
	unsigned end;

	while (d->page < b->pages && !goes_out(d, d->page))
		d->page++;
	if (d->page >= b->pages)
		return false;
	end = d->page + 1;
	for (unsigned page = end; page < b->pages && page - end <= GAP_PAGES; page++)
		if (goes_out(d, page))
			end = page + 1;
	*ret_offset = (size_t)d->page * PAGE_BYTES;
	*ret_length = min_u64((uint64_t)end * PAGE_BYTES, b->bytes) - *ret_offset;
	d->page = end;
	return true;
}

/* Pages that did not make it on all members are still to be written. */
static void forget_pages(struct bitmap *b, bool done)
{
	b->have_sets = b->have_clears = false;
	for (unsigned page = 0; page < b->pages; page++) {
		uint8_t *flags = &b->page_flags[page];

		if (!done && (*flags & PAGE_NOW) != 0)
			*flags |= PAGE_SET | PAGE_CLEARED;
		*flags &= (uint8_t)~PAGE_NOW;
		b->have_sets = b->have_sets || (*flags & PAGE_SET) != 0;
		b->have_clears = b->have_clears || (*flags & PAGE_CLEARED) != 0;
	}
}

void bitmap_update_ended(struct record *record, bool done)
{
	struct bitmap *b = record->bitmap;

	forget_pages(b, done);
	b->cleared_written = done ? record->update.cleared : UINT64_MAX;
	for (unsigned i = 0; i < record->engine->device_max; i++) {
		struct record_device *d = &record->devices[i];

		if (done && d->gets_bitmap)
			d->has_bitmap = true;
		d->gets_bitmap = false;
	}
	b->clears_due = b->clears_due && !done;
	if (b->daemon_due)
		run_daemon(record);
	arm_daemon(record);
}

static int take_memory(struct record *record, struct bitmap *b)
{
	struct engine *engine = record->engine;
	size_t bytes = (size_t)b->pages * PAGE_BYTES;
	uint8_t *area;

	b->writes = engine_take(engine, b->bits, sizeof(*b->writes));
	b->flags = engine_take(engine, b->bits, sizeof(*b->flags));
	b->page_flags = engine_take(engine, b->pages, sizeof(*b->page_flags));
	b->page_dirty = engine_take(engine, b->pages, sizeof(*b->page_dirty));
	area = engine_take(engine, 1, 2 * bytes + RECORD_BLOCK_BYTES);
	if (b->writes == NULL || b->flags == NULL || b->page_flags == NULL ||
		b->page_dirty == NULL || area == NULL)
		return -ENOMEM;
	b->image = (uint8_t *)round_up((uintptr_t)area, RECORD_BLOCK_BYTES);
	b->out = b->image + bytes;
	return 0;
}

/*
 * Specification 3.5: which of the bits that are set on the members say that something is wrong? If
 * a member is missing and was so before, all of them: they say what it misses.
 */
static void load_bits(struct record *record, const struct engine_redundancy *redundancy)
{
	struct bitmap *b = record->bitmap;
	const struct engine_bitmap *from = redundancy->bitmap;
	bool complete = !devices_degraded(record->engine) ||
			from->header.events_cleared == record->master.events;
	uint64_t start = complete ? redundancy->resync_bytes : 0;

	/* What lies behind the last bit is as mdadm leaves it. */
	memset(b->image, 0xff, (size_t)b->pages * PAGE_BYTES);
	for (uint64_t bit = 0; bit < b->bits; bit++) {
		bool set = from->stale || from->bits == NULL ||
			   md_bitmap_get(&from->header, from->bits, bit);

		if (!set) {
			md_bitmap_set(&b->header, b->image + MD_BITMAP_HEADER_BYTES, bit, false);
			continue;
		}
		b->flags[bit] = BIT_SET;
		b->page_dirty[page_of(bit)]++;
		b->dirty++;
		if (from->stale || bit_end(b, bit) >= start)
			need_bit(b, bit);
	}
	memcpy(b->out, b->image, (size_t)b->pages * PAGE_BYTES);
}

static int check_header(
	const struct engine *engine, const struct md_bitmap *header, struct fault *fault)
{
	uint64_t sync_bytes = engine->redundant->sync_bytes;

	if (!is_power_of_two(header->chunk_bytes) || header->daemon_sleep_seconds == 0)
		return fault_set(fault, -EINVAL, "the bitmap's header makes no sense");
	if (sync_bytes == 0 || sync_bytes / header->chunk_bytes > UINT32_MAX)
		return fault_set(fault, -EINVAL, "a bitmap cannot cover %llu bytes",
			(unsigned long long)sync_bytes);
	return 0;
}

/* Chunk size 0: there is no room for a bitmap on the members, so none is kept. */
int bitmap_new(
	struct record *record, const struct engine_redundancy *redundancy, struct fault *fault)
{
	const struct engine_bitmap *from = redundancy->bitmap;
	struct engine *engine = record->engine;
	struct bitmap *b;
	int r;

	if (!record->kept || from == NULL || from->header.chunk_bytes == 0)
		return 0;
	r = check_header(engine, &from->header, fault);
	if (r < 0)
		return r;
	b = record->bitmap = engine_take(engine, 1, sizeof(*b));
	if (b == NULL)
		return -ENOMEM;
	b->header = from->header;
	b->header.state &= ~(uint32_t)MD_BITMAP_STALE;
	b->header.sync_size_sectors = engine->redundant->sync_bytes / MD_SECTOR;
	b->shift = (unsigned)__builtin_ctz(b->header.chunk_bytes);
	b->bits = md_bitmap_bits(&b->header);
	b->bytes = md_bitmap_bytes(b->bits);
	b->pages = (unsigned)(b->bytes / PAGE_BYTES);
	b->daemon.expired = daemon_expired;
	b->daemon.owner = record;
	r = take_memory(record, b);
	if (r < 0)
		return r;
	if (from->stale)
		b->header.events_cleared = record->master.events;
	b->cleared_written = UINT64_MAX; /* not known */
	load_bits(record, redundancy);
	return 0;
}

void bitmap_free(struct record *record)
{
	struct bitmap *b = record->bitmap;
	struct world *world = record->engine->world;

	if (b == NULL)
		return;
	world->ops->timer_cancel(world, &b->daemon);
}

int bitmap_place(struct record *record, struct record_device *d, struct fault *fault)
{
	struct bitmap *b = record->bitmap;
	uint64_t sector, room, needed;
	int r = md_bitmap_location(&d->super, &sector, &room, fault);

	if (r < 0)
		return r;
	needed = round_up(MD_BITMAP_HEADER_BYTES + (b->bits + 7) / 8, d->block_bytes);
	if (needed > room * MD_SECTOR)
		return fault_set(fault, -ENOSPC,
			"device %u has room for %llu bytes of bitmap, the array's takes %llu",
			d->device, (unsigned long long)room * MD_SECTOR,
			(unsigned long long)needed);
	b->bytes = min_u64(b->bytes, round_down(room * MD_SECTOR, d->block_bytes));
	d->bitmap_offset_bytes = sector * MD_SECTOR;
	return 0;
}
