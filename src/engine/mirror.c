/* SPDX-License-Identifier: MIT */
/*
 * Requests to a mirror.
 *
 * Like those of the levels without redundancy they are worked off in windows, inside which each
 * device gets few, long I/Os: a piece of the array joins an I/O that ends where it begins. A
 * request that lies in one run of the layout (all of them, for RAID 1) needs no cutting: every
 * copy is written from the caller's own iovecs.
 */
#include "engine/mirror.h"

#include <assert.h>
#include <errno.h>
#include "engine/badblocks.h"
#include "util/rounding.h"

#define IOS_MORE 32u             /* I/Os in a window beyond one for each device */
#define STEP_MEMORY (256u << 10) /* for the copies of one step */
#define STEP_BYTES_MIN 512u

static const enum world_op world_ops_of[] = {
	[ENGINE_READ] = WORLD_READ,
	[ENGINE_WRITE] = WORLD_WRITE,
	[ENGINE_DISCARD] = WORLD_DISCARD,
	[ENGINE_ZERO] = WORLD_ZERO,
};

static bool start_window(struct work *work);

/* Does anything that stands before @lock in the line overlap it? */
static bool must_wait(const struct range_lock *lock)
{
	for (const struct range_lock *other = lock->previous; other != NULL;
		other = other->previous)
		if (other->first_bytes < lock->end_bytes && lock->first_bytes < other->end_bytes)
			return true;
	return false;
}

bool mirror_lock(struct mirror *mirror, struct range_lock *lock)
{
	lock->next = NULL;
	lock->previous = mirror->last_lock;
	if (lock->previous != NULL)
		lock->previous->next = lock;
	else
		mirror->first_lock = lock;
	mirror->last_lock = lock;
	lock->granted = !must_wait(lock);
	mirror->locks_waiting += !lock->granted;
	return lock->granted;
}

/* locked() may take and give back locks: look from the beginning after each. */
static void grant_waiting(struct mirror *mirror)
{
	struct range_lock *lock = mirror->first_lock;

	while (mirror->locks_waiting > 0 && lock != NULL) {
		if (lock->granted || must_wait(lock)) {
			lock = lock->next;
			continue;
		}
		lock->granted = true;
		mirror->locks_waiting--;
		lock->locked(lock);
		lock = mirror->first_lock;
	}
}

void mirror_unlock(struct mirror *mirror, struct range_lock *lock)
{

	if (lock->previous != NULL)
		lock->previous->next = lock->next;
	else
		mirror->first_lock = lock->next;
	if (lock->next != NULL)
		lock->next->previous = lock->previous;
	else
		mirror->last_lock = lock->previous;
	mirror->locks_waiting -= !lock->granted;
	grant_waiting(mirror);
}

static uint64_t request_end(const struct work *work)
{
	return work->request->offset_bytes + work->request->length_bytes;
}

static bool is_read(const struct work *work)
{
	return work->request->op == ENGINE_READ;
}

static bool has_buffers(const struct work *work)
{
	return is_read(work) || work->request->op == ENGINE_WRITE;
}

static void end_request(struct work *work)
{
	struct engine *engine = work->engine;

	if (!is_read(work)) {
		mirror_unlock(mirror_of(engine), &mirror_work_of(work)->lock);
		world_kick(engine->world);
	}
	work_end(work);
}

/* Nothing could be submitted, and the submitter may be on the stack. */
static void end_unserved(struct work *work)
{
	if (!is_read(work)) {
		mirror_unlock(mirror_of(work->engine), &mirror_work_of(work)->lock);
		record_release(work, false);
	}
	work_finish_later(work);
}

void mirror_window_ended(struct work *work)
{
	if (work->next_offset == request_end(work)) {
		end_request(work);
		return;
	}
	if (start_window(work))
		world_kick(work->engine->world);
	else
		end_request(work);
}

static void note_failed_read(struct mirror_work *own, uint64_t first, uint64_t end)
{
	if (own->failed_first >= own->failed_end) {
		own->failed_first = first;
		own->failed_end = end;
	} else {
		own->failed_first = min_u64(own->failed_first, first);
		own->failed_end = max_u64(own->failed_end, end);
	}
}

/* No device can serve all of the piece; of a read, parts may be found on several. */
static void piece_unserved(struct work *work, uint64_t first, uint64_t end)
{
	if (is_read(work))
		note_failed_read(mirror_work_of(work), first, end);
	else
		work_fail(work, first, end, -EIO);
}

/*
 * The last copy in sync refused a write that a device being rebuilt has taken. Which of both holds
 * now what the array does nobody knows, and the walk may be past that place: so the rebuild begins
 * anew.
 */
static void last_copy_failed(struct work *work, const struct mirror_io *io, int result)
{
	struct engine *engine = work->engine;
	bool sent = false;

	work_fail(work, io->array_first, io->array_end, result);
	for (unsigned i = 0; i < engine->device_max; i++) {
		if (engine->devices[i].state != ENGINE_DEVICE_REBUILDING)
			continue;
		engine_event(engine, "device %u: rebuilt anew, as a write failed on its source", i);
		device_to_spare(engine, i);
		sent = true;
	}
	if (!sent)
		return;
	record_change(engine, NULL);
	sync_consider(engine);
}

static void judge(struct mirror_io *io, int result)
{
	struct work *work = io->work;
	struct engine *engine = work->engine;

	if (is_read(work))
		note_failed_read(mirror_work_of(work), io->array_first, io->array_end);
	else if (io->io.op == WORLD_DISCARD && result == -EOPNOTSUPP)
		work_fail(
			work, io->array_first, io->array_end, result); /* no fault of the device */
	else if (!device_fail(engine, io->device) || engine->redundant->failed)
		last_copy_failed(work, io, result);
}

static void forget_badblocks(const struct mirror_io *io)
{
	struct engine *engine = io->work->engine;
	uint64_t length = io->member_end - io->member_first;

	if (io->io.op != WORLD_DISCARD &&
		badblocks_overlap(engine, io->device, io->member_first, length))
		badblocks_remove(engine, io->device, io->member_first, length);
}

static void io_done(struct world_io *world_io, int result)
{
	struct mirror_io *io = world_io->owner;
	struct work *work = io->work;
	struct mirror_work *own = mirror_work_of(work);

	device_account(work->engine, io->device, world_io, result);
	if (result < 0)
		judge(io, result);
	else if (!is_read(work))
		forget_badblocks(io);
	if (--work->pending > 0)
		return;
	if (own->failed_first < own->failed_end)
		mirror_repair(own);
	else
		mirror_window_ended(work);
}

static struct mirror_io *open_io(
	struct work *work, unsigned device, uint64_t member_first, uint64_t array_first)
{
	struct mirror_work *own = mirror_work_of(work);
	struct mirror_io *io = &own->ios[own->io_count++];

	io->device = device;
	io->member_first = io->member_end = member_first;
	io->array_first = array_first;
	io->io.op = world_ops_of[work->request->op];
	io->io.flags = work->request->flags;
	io->io.iov = NULL;
	io->io.iov_count = 0;
	return io;
}

static void submit_io(struct mirror_io *io)
{
	io->io.length_bytes = io->member_end - io->member_first;
	device_submit(io->work->engine, io->device, &io->io, io->member_first);
}

/* The number of an I/O of the window that ends where this piece begins, or of a new one. */
static unsigned join(struct work *work, unsigned device, uint64_t member_first, uint64_t length,
	uint64_t array_first)
{
	struct mirror_work *own = mirror_work_of(work);
	struct mirror_io *io = NULL;

	for (unsigned i = own->io_count; i-- > 0 && io == NULL;)
		if (own->ios[i].device == device && own->ios[i].member_end == member_first)
			io = &own->ios[i];
	if (io == NULL)
		io = open_io(work, device, member_first, array_first);
	io->member_end += length;
	io->array_end = array_first + length;
	return (unsigned)(io - own->ios);
}

/* The devices that a piece goes to, with the copy that each is of. */
static unsigned destinations(struct work *work, const struct geometry_piece *places,
	uint64_t offset, uint64_t length, unsigned *devices, unsigned *copies)
{
	struct engine *engine = work->engine;
	unsigned count = 0;

	if (is_read(work)) {
		bool consistent = sync_is_consistent(engine, offset, offset + length);

		devices[0] = mirror_choose(engine, places, length, consistent, &copies[0]);
		return devices[0] != ENGINE_NONE;
	}
	for (unsigned copy = 0; copy < mirror_of(engine)->geometry.copies; copy++) {
		unsigned both[2];
		unsigned writers = slot_writers(engine, places[copy].slot, both);

		for (unsigned i = 0; i < writers; i++) {
			devices[count] = both[i];
			copies[count++] = copy;
		}
	}
	return count;
}

/* The next bytes of the request's iovecs, @bytes at most, without moving on. */
static struct iovec peek_buffer(struct work *work, uint64_t bytes)
{
	const struct iovec *iov;

	for (;;) {
		assert(work->iov_index < work->request->iov_count);
		iov = &work->request->iov[work->iov_index];
		if (work->iov_skip < iov->iov_len)
			break;
		work->iov_index++;
		work->iov_skip = 0;
	}
	return (struct iovec){(char *)iov->iov_base + work->iov_skip,
		min_u64(bytes, iov->iov_len - work->iov_skip)};
}

/*
 * Give a piece to its destinations: cuts are noted in engine->cuts (slot: number of the I/O).
 * False: the window is full.
 */
static bool place_piece(struct work *work, uint64_t length, struct iovec iov, unsigned *cuts)
{
	struct engine *engine = work->engine;
	struct mirror *mirror = mirror_of(engine);
	unsigned count = destinations(
		work, mirror->places, work->next_offset, length, mirror->devices, mirror->copies);

	if (mirror_work_of(work)->io_count + count > mirror->ios_max ||
		*cuts + count > ENGINE_IOV_MAX)
		return false;
	if (count == 0)
		piece_unserved(work, work->next_offset, work->next_offset + length);
	for (unsigned i = 0; i < count; i++) {
		unsigned io = join(work, mirror->devices[i],
			mirror->places[mirror->copies[i]].member_offset, length, work->next_offset);

		engine->cuts[(*cuts)++] = (struct cut){io, iov};
	}
	return true;
}

/* Several runs at once. Returns the number of cuts. */
static unsigned cut_window(struct work *work)
{
	struct mirror *mirror = mirror_of(work->engine);
	uint64_t end = request_end(work);
	unsigned cuts = 0;

	while (work->next_offset < end) {
		uint64_t run = mirrors_map(&mirror->geometry, work->next_offset, mirror->places);
		uint64_t length = min_u64(run, end - work->next_offset);
		struct iovec iov = {0};

		if (has_buffers(work)) {
			iov = peek_buffer(work, length);
			length = iov.iov_len;
		}
		if (!place_piece(work, length, iov, &cuts))
			break;
		work->iov_skip += iov.iov_len;
		work->next_offset += length;
	}
	return cuts;
}

/* Each I/O's iovecs are to be adjacent: count them, then deal them out. */
static void deal_cuts(struct work *work, unsigned cuts)
{
	const struct cut *cut = work->engine->cuts;
	struct mirror_work *own = mirror_work_of(work);
	struct iovec *next = work->iov;

	for (unsigned i = 0; i < cuts; i++)
		own->ios[cut[i].slot].io.iov_count++;
	for (unsigned i = 0; i < own->io_count; i++) {
		own->ios[i].io.iov = next;
		next += own->ios[i].io.iov_count;
		own->ios[i].io.iov_count = 0;
	}
	for (unsigned i = 0; i < cuts; i++) {
		struct world_io *io = &own->ios[cut[i].slot].io;

		((struct iovec *)io->iov)[io->iov_count++] = cut[i].iov;
	}
}

/* Iovecs of the next @bytes, as far as ENGINE_IOV_MAX goes; returns how many bytes they are. */
static uint64_t gather_iovecs(struct work *work, uint64_t bytes, unsigned *ret_count)
{
	uint64_t gathered = 0;
	unsigned count = 0;

	while (gathered < bytes && count < ENGINE_IOV_MAX) {
		work->iov[count] = peek_buffer(work, bytes - gathered);
		work->iov_skip += work->iov[count].iov_len;
		gathered += work->iov[count++].iov_len;
	}
	*ret_count = count;
	return gathered;
}

/*
 * The window is one run: every copy is transferred by the same iovecs. Returns the bytes it takes,
 * with the iovecs in *@ret_iov: the caller's own if all of the request is in this run.
 */
static uint64_t choose_iovecs(
	struct work *work, uint64_t length, const struct iovec **ret_iov, unsigned *ret_count)
{
	const struct engine_request *request = work->request;

	*ret_iov = NULL;
	*ret_count = 0;
	if (!has_buffers(work))
		return length;
	if (length == request->length_bytes && request->iov_count <= ENGINE_IOV_MAX) {
		*ret_iov = request->iov;
		*ret_count = request->iov_count;
		return length;
	}
	*ret_iov = work->iov;
	return gather_iovecs(work, length, ret_count);
}

/* @run bytes from next_offset on are one run of the layout; its copies are in mirror->places. */
static void open_run(struct work *work, uint64_t run)
{
	struct mirror *mirror = mirror_of(work->engine);
	uint64_t first = work->next_offset;
	const struct iovec *iov;
	unsigned iov_count, count;
	uint64_t length = choose_iovecs(
		work, min_u64(run, request_end(work) - first), &iov, &iov_count);

	count = destinations(work, mirror->places, first, length, mirror->devices, mirror->copies);
	work->next_offset += length;
	if (count == 0)
		piece_unserved(work, first, first + length);
	for (unsigned i = 0; i < count; i++) {
		struct mirror_io *io = open_io(work, mirror->devices[i],
			mirror->places[mirror->copies[i]].member_offset, first);

		io->member_end += length;
		io->array_end = first + length;
		io->io.iov = iov;
		io->io.iov_count = iov_count;
	}
}

/* False: there is nothing that could be submitted; next_offset is at the end. */
static bool start_window(struct work *work)
{
	struct mirror *mirror = mirror_of(work->engine);
	struct mirror_work *own = mirror_work_of(work);
	uint64_t end = request_end(work);

	own->io_count = 0;
	own->failed_first = own->failed_end = 0;
	while (own->io_count == 0 && work->next_offset < end) {
		uint64_t run = mirrors_map(&mirror->geometry, work->next_offset, mirror->places);

		if (run >= end - work->next_offset || mirror->single_runs) {
			open_run(work, run);
		} else {
			unsigned cuts = cut_window(work);

			if (has_buffers(work))
				deal_cuts(work, cuts);
		}
	}
	for (unsigned i = 0; i < own->io_count; i++)
		work->pending++;
	for (unsigned i = 0; i < own->io_count; i++)
		submit_io(&own->ios[i]);
	if (own->io_count == 0 && own->failed_first < own->failed_end) {
		mirror_repair(own);
		return true;
	}
	return own->io_count > 0;
}

static void start_locked(struct range_lock *lock)
{
	struct work *work = lock->owner;

	if (!start_window(work))
		end_unserved(work);
}

void mirror_start(struct work *work)
{
	struct mirror_work *own = mirror_work_of(work);

	work->next_offset = work->request->offset_bytes;
	work->iov_index = 0;
	work->iov_skip = 0;
	if (!is_read(work)) {
		own->lock.first_bytes = work->next_offset;
		own->lock.end_bytes = request_end(work);
		own->lock.locked = start_locked;
		own->lock.owner = work;
		if (!mirror_lock(mirror_of(work->engine), &own->lock))
			return;
	}
	if (!start_window(work))
		end_unserved(work);
}

void mirror_sync_range(const struct engine *engine, uint64_t offset, uint64_t length,
	uint64_t *ret_first, uint64_t *ret_end)
{
	(void)engine; /* RAID 1: member bytes are array bytes; RAID 10 counts array bytes (3.1) */
	*ret_first = offset;
	*ret_end = offset + length;
}

uint64_t mirror_stripe_bytes(const struct engine *engine)
{
	const struct mirrors *m = &mirror_of(engine)->geometry;

	return m->chunked ? (uint64_t)m->chunk_bytes * (m->slots / m->near) : 0;
}

static void link_works(struct engine *engine, unsigned requests)
{
	struct mirror *mirror = mirror_of(engine);

	for (unsigned i = 0; i < requests; i++) {
		struct mirror_work *own = &mirror->works[i];

		own->work = &engine->works[i];
		own->ios = &mirror->ios[(size_t)i * mirror->ios_max];
		for (unsigned k = 0; k < mirror->ios_max; k++) {
			own->ios[k].work = own->work;
			own->ios[k].io.owner = &own->ios[k];
			own->ios[k].io.done = io_done;
		}
	}
}

static void link_step(struct engine *engine, struct mirror_step *step, unsigned number)
{
	struct mirror *mirror = mirror_of(engine);
	size_t copies = mirror->geometry.copies;

	step->engine = engine;
	step->places = &mirror->step_places[number * copies];
	step->buffers = &mirror->step_buffers[number * (copies + 2) * mirror->step_bytes];
	step->read = &mirror->step_read[number * copies];
	step->read_device = &mirror->step_devices[number * copies];
	step->ios = &mirror->step_ios[number * 3 * copies];
	for (size_t i = 0; i < 3 * copies; i++) {
		step->ios[i].step = step;
		step->ios[i].io.owner = &step->ios[i];
	}
}

static int take_memory(struct engine *engine, unsigned requests)
{
	struct mirror *mirror = mirror_of(engine);
	size_t copies = mirror->geometry.copies, steps = SYNC_WINDOWS_MAX + 1;

	mirror->works = engine_take(engine, requests, sizeof(*mirror->works));
	mirror->ios = engine_take(engine, (size_t)requests * mirror->ios_max, sizeof(*mirror->ios));
	mirror->read_end = engine_take(engine, engine->device_max, sizeof(*mirror->read_end));
	mirror->places = engine_take(engine, copies, sizeof(*mirror->places));
	mirror->devices = engine_take(engine, 2 * copies, sizeof(*mirror->devices));
	mirror->copies = engine_take(engine, 2 * copies, sizeof(*mirror->copies));
	mirror->step_places = engine_take(engine, steps * copies, sizeof(*mirror->step_places));
	mirror->step_read = engine_take(engine, steps * copies, sizeof(*mirror->step_read));
	mirror->step_devices = engine_take(engine, steps * copies, sizeof(*mirror->step_devices));
	mirror->step_ios = engine_take(engine, steps * 3 * copies, sizeof(*mirror->step_ios));
	mirror->step_buffers = engine_take(engine, steps * (copies + 2), mirror->step_bytes);
	if (mirror->works == NULL || mirror->ios == NULL || mirror->read_end == NULL ||
		mirror->places == NULL || mirror->devices == NULL || mirror->copies == NULL ||
		mirror->step_places == NULL || mirror->step_read == NULL ||
		mirror->step_devices == NULL || mirror->step_ios == NULL ||
		mirror->step_buffers == NULL)
		return -ENOMEM;
	return 0;
}

/* Few copies: 64 KiB at a time; many: less, so that memory stays bounded. */
static uint32_t choose_step(unsigned copies)
{
	uint32_t bytes = SYNC_WINDOW_BYTES;

	while (bytes > STEP_BYTES_MIN && (uint64_t)bytes * copies > STEP_MEMORY)
		bytes /= 2;
	return bytes;
}

int mirror_init(struct engine *engine, const struct engine_config *config, struct fault *fault)
{
	struct mirror *mirror = engine_take(engine, 1, sizeof(*mirror));
	int r;

	engine->redundant->level = mirror;
	if (mirror == NULL)
		return -ENOMEM;
	r = mirrors_init(config->level, config->layout, config->chunk_bytes, config->slot_count,
		engine->redundant->component_bytes, &mirror->geometry, fault);
	if (r < 0)
		return r;
	engine->array_bytes = mirror->geometry.array_bytes;
	engine->redundant->sync_bytes = mirror->geometry.sync_bytes;
	mirror->ios_max = 2 * mirror->geometry.copies + IOS_MORE;
	mirror->single_runs = !mirror->geometry.chunked ||
			      2 * mirror->geometry.copies > ENGINE_IOV_MAX;
	mirror->step_bytes = choose_step(mirror->geometry.copies);
	r = take_memory(engine, config->requests_max);
	if (r < 0)
		return r;
	link_works(engine, config->requests_max);
	for (unsigned i = 0; i < SYNC_WINDOWS_MAX; i++)
		link_step(engine, &mirror->steps[i], i);
	link_step(engine, &mirror->answer_step, SYNC_WINDOWS_MAX);
	return 0;
}
