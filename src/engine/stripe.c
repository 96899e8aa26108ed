/* SPDX-License-Identifier: MIT */
/*
 * RAID 4, 5 and 6: start and end, requests, and the bands: who holds one, who waits for it.
 *
 * A band is taken by the first piece that wants it, and given back when nobody waits any more.
 * Pieces that come while it is worked on wait in its queue; writes among them are then taken
 * together, as long as they fit: their columns together leave no gap, in no block, and no byte is
 * written twice. So small sequential writes become large ones by themselves.
 */
#include "engine/stripe.h"

#include <assert.h>
#include <errno.h>

#include "util/rounding.h"

#define BUFFER_BYTES (32u << 20) /* of all bands together, if that makes BANDS_MIN of them */
#define BAND_BYTES_MAX (64u << 10)
#define BAND_BYTES_MIN 4096u
#define BANDS_GOOD 16u /* smaller bands rather than fewer */
#define BANDS_MIN 8u
#define RUNS_MIN 32u

/* --- Groups ---------------------------------------------------------------------------------- */

static bool is_write(const struct piece *piece)
{
	return piece->work != NULL && piece->work->request->op != ENGINE_READ;
}

static bool touch_or_overlap(uint32_t lo, uint32_t hi, uint32_t other_lo, uint32_t other_hi)
{
	return lo <= other_hi && other_lo <= hi;
}

/* The cutter has seen to it that pieces of several blocks leave no gap in the columns. */
static void columns_of(
	const struct piece *piece, uint32_t band_bytes, uint32_t *ret_lo, uint32_t *ret_hi)
{
	bool few = piece->work == NULL || piece->first == piece->last;

	*ret_lo = few ? piece->first_lo : 0;
	*ret_hi = few ? piece->last_hi : band_bytes;
}

/* May @piece be written together with the group? */
static bool fits(const struct band *band, const struct piece *piece)
{
	uint32_t band_bytes = band->level->band_bytes, lo, hi;

	columns_of(piece, band_bytes, &lo, &hi);
	if (!touch_or_overlap(lo, hi, band->lo, band->hi))
		return false;
	for (unsigned i = piece->first; i <= piece->last; i++) {
		const struct block *block = &band->blocks[i];

		piece_columns(piece, i, band_bytes, &lo, &hi);
		if (block->lo != block->hi && lo != block->hi && hi != block->lo)
			return false;
	}
	return true;
}

static uint64_t place_in_stripe(const struct stripe_level *level, const struct piece *piece)
{
	return ((uint64_t)piece->first << level->stripes.chunk_shift) + piece->first_lo;
}

static void insert_by_place(struct band *band, struct piece *piece)
{
	struct piece **at = &band->group;
	uint64_t place = place_in_stripe(band->level, piece);

	while (*at != NULL && place_in_stripe(band->level, *at) < place)
		at = &(*at)->next;
	piece->next = *at;
	*at = piece;
}

static void add_columns(struct band *band, const struct piece *piece)
{
	uint32_t lo, hi;

	for (unsigned i = piece->first; i <= piece->last; i++) {
		struct block *block = &band->blocks[i];

		piece_columns(piece, i, band->level->band_bytes, &lo, &hi);
		if (block->lo == block->hi) {
			block->lo = lo;
			block->hi = hi;
		} else {
			block->lo = (uint32_t)min_u64(block->lo, lo);
			block->hi = (uint32_t)max_u64(block->hi, hi);
		}
	}
	columns_of(piece, band->level->band_bytes, &lo, &hi);
	band->lo = (uint32_t)min_u64(band->lo, lo);
	band->hi = (uint32_t)max_u64(band->hi, hi);
	if (piece->first < band->first)
		band->first = piece->first;
	if (piece->last > band->last)
		band->last = piece->last;
}

static struct piece *dequeue(struct band *band)
{
	struct piece *piece = band->queue;

	band->queue = piece->next;
	if (band->queue == NULL)
		band->queue_last = &band->queue;
	return piece;
}

static void take_group(struct band *band)
{
	struct piece *piece = dequeue(band);

	band->lo = UINT32_MAX;
	band->hi = 0;
	band->first = UINT32_MAX;
	band->last = 0;
	piece->next = NULL;
	band->group = piece;
	add_columns(band, piece);
	while (is_write(piece) && band->queue != NULL && is_write(band->queue) &&
		fits(band, band->queue)) {
		struct piece *more = dequeue(band);

		add_columns(band, more);
		insert_by_place(band, more);
	}
}

static void run_band(struct band *band)
{
	take_group(band);
	band_begin(band);
}

/* --- Who holds which band -------------------------------------------------------------------- */

static struct band **chain_of(struct stripe_level *level, uint64_t stripe, uint32_t column)
{
	uint64_t number = (stripe << level->stripes.chunk_shift) + column;

	/* Fibonacci hashing (Knuth, TAOCP 6.4): strides of whole stripes spread too. */
	number = number / BAND_BYTES_MIN * 0x9e3779b97f4a7c15u;
	return &level->hash[(number >> 32) & level->hash_mask];
}

static struct band *find_band(struct stripe_level *level, const struct piece *piece)
{
	struct band *band = *chain_of(level, piece->stripe, piece->column);

	while (band != NULL && (band->stripe != piece->stripe || band->column != piece->column))
		band = band->next;
	return band;
}

static void set_roles(struct band *band)
{
	struct stripe_level *level = band->level;
	const struct stripes *s = &level->stripes;
	uint16_t *order = s->parities == 2 ? level->order : NULL;
	unsigned p, q;

	stripes_roles(s, band->stripe, level->slots, order, &p, &q);
	for (unsigned i = 0; i < s->data; i++) {
		band->blocks[i].slot = level->slots[i];
		band->blocks[i].index = order != NULL ? order[i] : (uint16_t)i;
	}
	band_p(band)->slot = (uint16_t)p;
	band_p(band)->index = (uint16_t)level->exponents;
	if (s->parities == 1)
		return;
	band_q(band)->slot = (uint16_t)q;
	band_q(band)->index = (uint16_t)(level->exponents + 1);
}

static struct band *take_band(struct stripe_level *level, const struct piece *piece)
{
	struct band *band = level->free_bands, **chain;

	level->free_bands = band->next;
	band->stripe = piece->stripe;
	band->column = piece->column;
	band->member_bytes = stripes_member_offset(&level->stripes, piece->stripe) + piece->column;
	chain = chain_of(level, band->stripe, band->column);
	band->next = *chain;
	*chain = band;
	set_roles(band);
	return band;
}

static void enqueue(struct band *band, struct piece *piece)
{
	piece->next = NULL;
	*band->queue_last = piece;
	band->queue_last = &piece->next;
}

void stripe_enqueue(struct stripe_level *level, struct piece *piece)
{
	struct band *band = find_band(level, piece);

	if (band != NULL) {
		enqueue(band, piece);
	} else if (level->free_bands != NULL && level->waiting == NULL) {
		band = take_band(level, piece);
		enqueue(band, piece);
		run_band(band);
	} else {
		piece->next = NULL;
		*level->waiting_last = piece;
		level->waiting_last = &piece->next;
	}
}

/* Those who wait for a free band, in their order. */
static void serve_waiting(struct stripe_level *level)
{
	while (level->waiting != NULL) {
		struct piece *piece = level->waiting;
		struct band *band = find_band(level, piece);
		bool is_new = band == NULL;

		if (is_new && level->free_bands == NULL)
			return;
		level->waiting = piece->next;
		if (level->waiting == NULL)
			level->waiting_last = &level->waiting;
		if (is_new)
			band = take_band(level, piece);
		enqueue(band, piece);
		if (is_new)
			run_band(band);
	}
}

static void give_back(struct band *band)
{
	struct stripe_level *level = band->level;
	struct band **at = chain_of(level, band->stripe, band->column);

	while (*at != band)
		at = &(*at)->next;
	*at = band->next;
	band->next = level->free_bands;
	level->free_bands = band;
	serve_waiting(level);
}

/* --- Requests -------------------------------------------------------------------------------- */

static void work_bands_done(struct stripe_work *sw)
{
	if (sw->work->request->op == ENGINE_READ)
		stripe_read_next(sw);
	else
		work_end(sw->work);
}

/* Hand out pieces as far as there are free ones. */
static void pump(struct stripe_work *sw)
{
	struct stripe_level *level = stripe_level(sw->work->engine);

	while (!sw->cut && sw->free_pieces != NULL) {
		struct piece *piece = sw->free_pieces;

		if (!stripe_cut_next(sw, piece))
			break;
		sw->free_pieces = piece->next;
		sw->busy++;
		stripe_enqueue(level, piece);
	}
}

static void piece_done(struct piece *piece)
{
	struct stripe_work *sw;

	if (piece->work == NULL) {
		stripe_piece_synced(piece);
		return;
	}
	sw = stripe_work(piece->work);
	piece->next = sw->free_pieces;
	sw->free_pieces = piece;
	sw->busy--;
	pump(sw);
	if (sw->cut && sw->busy == 0)
		work_bands_done(sw);
}

void stripe_through_bands(struct stripe_work *sw, uint64_t first, uint64_t end)
{
	assert(sw->busy == 0);
	stripe_cut_start(sw, first, end);
	pump(sw);
}

static void end_group(struct band *band)
{
	struct piece *piece = band->group;

	for (unsigned i = band->first; i <= band->last; i++)
		band->blocks[i].lo = band->blocks[i].hi = 0;
	band->group = NULL;
	/* First these: what their clients write next may join those that wait. */
	while (piece != NULL) {
		struct piece *next = piece->next;

		piece_done(piece);
		piece = next;
	}
	if (band->queue != NULL)
		run_band(band);
	else
		give_back(band);
}

/* --- Ends from the timer --------------------------------------------------------------------- */

static void end_deferred(struct world_timer *timer)
{
	struct stripe_level *level = timer->owner;
	struct band *band = level->deferred_bands;
	struct stripe_work *sw = level->deferred_works;

	level->deferred_bands = NULL;
	level->deferred_works = NULL;
	while (band != NULL) {
		struct band *next = band->next_deferred;

		end_group(band);
		band = next;
	}
	while (sw != NULL) {
		struct stripe_work *next = sw->next_deferred;

		work_end(sw->work);
		sw = next;
	}
}

static void arm(struct stripe_level *level)
{
	struct world *world = level->engine->world;

	level->timer.expired = end_deferred;
	level->timer.owner = level;
	if (!level->timer.armed)
		world->ops->timer_arm(world, &level->timer, world_now_ns(world));
}

void band_group_done(struct band *band)
{
	struct stripe_level *level = band->level;

	if (band->did_io) {
		end_group(band); /* this is an I/O's completion */
		return;
	}
	band->next_deferred = level->deferred_bands;
	level->deferred_bands = band;
	arm(level);
}

void stripe_defer(struct stripe_work *sw)
{
	struct stripe_level *level = stripe_level(sw->work->engine);

	sw->next_deferred = level->deferred_works;
	level->deferred_works = sw;
	arm(level);
}

void stripe_start(struct work *work)
{
	const struct engine_request *request = work->request;
	struct stripe_work *sw = stripe_work(work);
	uint64_t end = request->offset_bytes + request->length_bytes;

	sw->suspect = ENGINE_NONE;
	if (request->op == ENGINE_READ) {
		stripe_read_start(sw);
	} else if (request->op == ENGINE_DISCARD) {
		/* Members may return anything for discarded bytes: parity would not fit them. */
		stripe_defer(sw);
	} else if (work->engine->redundant->failed) {
		work_fail(work, request->offset_bytes, end, -EIO);
		stripe_defer(sw);
	} else {
		stripe_through_bands(sw, request->offset_bytes, end);
	}
}

/* --- Facts ----------------------------------------------------------------------------------- */

uint64_t stripe_stripe_bytes(const struct engine *engine)
{
	const struct stripes *s = &stripe_level(engine)->stripes;

	return (uint64_t)s->data << s->chunk_shift;
}

void stripe_sync_range(const struct engine *engine, uint64_t offset, uint64_t length,
	uint64_t *ret_first, uint64_t *ret_end)
{
	const struct stripes *s = &stripe_level(engine)->stripes;
	uint64_t first, last;
	unsigned first_data, last_data;
	uint32_t lo, hi;

	stripes_locate(s, offset, &first, &first_data, &lo);
	stripes_locate(s, offset + length - 1, &last, &last_data, &hi);
	*ret_first = stripes_member_offset(s, first);
	*ret_end = stripes_member_offset(s, last + 1);
	/* Only one chunk of the first stripe, of the last: not all of its columns. */
	if (first_data == s->data - 1 || (first == last && first_data == last_data))
		*ret_first += lo;
	if (last_data == 0 || (first == last && first_data == last_data))
		*ret_end = stripes_member_offset(s, last) + hi + 1;
}

/* --- Start and end --------------------------------------------------------------------------- */

static void choose_bands(struct stripe_level *level)
{
	uint64_t slots = level->stripes.slots;
	uint32_t bytes = level->stripes.chunk_bytes;

	if (bytes > BAND_BYTES_MAX)
		bytes = BAND_BYTES_MAX;
	while (bytes > BAND_BYTES_MIN && BUFFER_BYTES / (slots * bytes) < BANDS_GOOD)
		bytes /= 2;
	level->band_bytes = bytes;
	level->band_count = (unsigned)max_u64(
		BANDS_MIN, min_u64(4096, BUFFER_BYTES / (slots * bytes)));
}

static int take_memory(struct stripe_level *level, const struct engine_config *config)
{
	struct engine *engine = level->engine;
	size_t bands = level->band_count, blocks = bands * level->block_count;
	size_t sectors = level->band_bytes / STRIPE_SECTOR;
	size_t job_pieces = SYNC_WINDOWS_MAX * (SYNC_WINDOW_BYTES / BAND_BYTES_MIN + 1);

	level->bands = engine_take(engine, bands, sizeof(*level->bands));
	level->hash = engine_take(engine, level->hash_mask + 1, sizeof(*level->hash));
	level->blocks = engine_take(engine, blocks, sizeof(*level->blocks));
	level->ios = engine_take(engine, blocks * 2, sizeof(*level->ios));
	level->iovs = engine_take(engine, blocks * sectors, sizeof(*level->iovs));
	level->buffers = engine_take_buffers(engine, blocks * level->band_bytes);
	level->zeros = engine_take(engine, 1, level->band_bytes);
	level->scratch = engine_take(engine, 1, level->band_bytes);
	level->slots = engine_take(engine, level->stripes.data, sizeof(*level->slots));
	level->order = engine_take(engine, level->stripes.data, sizeof(*level->order));
	level->pointers = engine_take(engine, level->exponents + 2, sizeof(*level->pointers));
	level->works = engine_take(engine, config->requests_max, sizeof(*level->works));
	level->runs = engine_take(
		engine, (size_t)config->requests_max * level->runs_max, sizeof(*level->runs));
	level->run_of = engine_take(engine, engine->slot_count, sizeof(*level->run_of));
	level->job_pieces = engine_take(engine, job_pieces, sizeof(*level->job_pieces));
	return level->bands == NULL || level->hash == NULL || level->blocks == NULL ||
			       level->ios == NULL || level->iovs == NULL ||
			       level->buffers == NULL || level->zeros == NULL ||
			       level->scratch == NULL || level->slots == NULL ||
			       level->order == NULL || level->pointers == NULL ||
			       level->works == NULL || level->runs == NULL ||
			       level->run_of == NULL || level->job_pieces == NULL
		       ? -ENOMEM
		       : 0;
}

static void link_band(struct stripe_level *level, unsigned number)
{
	struct band *band = &level->bands[number];
	size_t first = (size_t)number * level->block_count;
	size_t sectors = level->band_bytes / STRIPE_SECTOR;

	band->level = level;
	band->queue_last = &band->queue;
	band->blocks = &level->blocks[first];
	band->ios = &level->ios[first * 2];
	for (unsigned i = 0; i < level->block_count; i++) {
		band->blocks[i].iov = &level->iovs[(first + i) * sectors];
		band->blocks[i].buffer = level->buffers + (first + i) * level->band_bytes;
	}
	for (unsigned i = 0; i < level->block_count * 2; i++) {
		band->ios[i].band = band;
		band->ios[i].io.owner = &band->ios[i];
	}
	band->next = level->free_bands;
	level->free_bands = band;
}

static void link_work(struct stripe_level *level, unsigned number)
{
	struct stripe_work *sw = &level->works[number];

	sw->work = &level->engine->works[number];
	sw->suspect = ENGINE_NONE;
	sw->runs = &level->runs[(size_t)number * level->runs_max];
	for (unsigned i = 0; i < level->runs_max; i++) {
		sw->runs[i].owner = sw;
		sw->runs[i].io.owner = &sw->runs[i];
	}
	for (unsigned i = 0; i < STRIPE_PIECES; i++) {
		sw->pieces[i].next = sw->free_pieces;
		sw->free_pieces = &sw->pieces[i];
	}
}

static void link_memory(struct stripe_level *level, const struct engine_config *config)
{
	level->waiting_last = &level->waiting;
	for (unsigned i = level->band_count; i-- > 0;)
		link_band(level, i);
	for (unsigned i = 0; i < config->requests_max; i++)
		link_work(level, i);
	for (unsigned i = 0; i < SYNC_WINDOWS_MAX; i++)
		level->jobs[i]
			.pieces = &level->job_pieces[i * (SYNC_WINDOW_BYTES / BAND_BYTES_MIN + 1)];
}

int stripe_init(struct engine *engine, const struct engine_config *config, struct fault *fault)
{
	struct redundant *r = engine->redundant;
	struct stripe_level *level = engine_take(engine, 1, sizeof(*level));
	int result;

	if (level == NULL)
		return -ENOMEM;
	r->level = level;
	level->engine = engine;
	result = stripes_init(config->level, config->layout, config->chunk_bytes,
		config->slot_count, r->component_bytes, &level->stripes, fault);
	if (result < 0)
		return result;
	engine->array_bytes = level->stripes.array_bytes;
	r->sync_bytes = level->stripes.stripe_count << level->stripes.chunk_shift;
	level->block_count = level->stripes.slots;
	level->exponents = stripes_exponents(&level->stripes);
	level->runs_max = RUNS_MIN + engine->slot_count;
	choose_bands(level);
	level->hash_mask = 1;
	while (level->hash_mask < level->band_count * 2)
		level->hash_mask *= 2;
	level->hash_mask--;
	result = take_memory(level, config);
	if (result == 0)
		link_memory(level, config);
	return result;
}
