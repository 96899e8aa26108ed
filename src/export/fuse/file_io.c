/* SPDX-License-Identifier: MIT */
/*
 * READ, WRITE, FSYNC and FALLOCATE of the FUSE file.
 *
 * The engine takes whole sectors; clients of a file write any bytes. A write with ragged ends reads
 * the sectors at its ends first, puts its bytes into them and writes all back. Between that read
 * and that write no other write may touch these sectors, or it would be undone: a ragged write and
 * any write that overlaps it (counted in sectors) run one after the other, in the order of arrival.
 * Whole-sector writes never wait for each other.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <string.h>

#include "export/fuse/file_internal.h"
#include "util/rounding.h"

static void list_append(struct file_list *list, struct file_io *io)
{
	io->next = NULL;
	io->previous = list->last;
	if (list->last != NULL)
		list->last->next = io;
	else
		list->first = io;
	list->last = io;
}

static void list_remove(struct file_list *list, struct file_io *io)
{
	*(io->previous != NULL ? &io->previous->next : &list->first) = io->next;
	*(io->next != NULL ? &io->next->previous : &list->last) = io->previous;
}

static bool is_write(const struct file_io *io)
{
	return io->opcode == FUSE_WRITE || io->opcode == FUSE_FALLOCATE;
}

static bool is_ragged(const struct file_io *io)
{
	return io->head_bytes != 0 || io->tail_bytes != 0;
}

/* First byte of the first sector, and first byte behind the last. */
static uint64_t sectors_first(const struct file_io *io)
{
	return round_down(io->offset_bytes, FILE_SECTOR);
}

static uint64_t sectors_end(const struct file_io *io)
{
	return round_up(io->offset_bytes + io->length_bytes, FILE_SECTOR);
}

static bool must_wait(const struct file_io *io, const struct file_io *earlier)
{
	return (is_ragged(io) || is_ragged(earlier)) && sectors_first(io) < sectors_end(earlier) &&
	       sectors_first(earlier) < sectors_end(io);
}

static void next_step(struct file_io *io);

/* May @io, not in a list or in the waiting list, run besides all that came before it? */
static bool may_run(const struct array_file *file, const struct file_io *io)
{
	for (const struct file_io *other = file->active.first; other != NULL; other = other->next)
		if (must_wait(io, other))
			return false;
	for (const struct file_io *other = file->waiting.first; other != NULL && other != io;
		other = other->next)
		if (must_wait(io, other))
			return false;
	return true;
}

static void begin_write(struct array_file *file, struct file_io *io)
{
	file->unaligned += is_ragged(io);
	if (file->unaligned > 0 && !may_run(file, io)) {
		list_append(&file->waiting, io);
		return;
	}
	list_append(&file->active, io);
	next_step(io);
}

static void end_write(struct array_file *file, struct file_io *io)
{
	struct file_io *next;

	list_remove(&file->active, io);
	file->unaligned -= is_ragged(io);
	for (struct file_io *waiter = file->waiting.first; waiter != NULL; waiter = next) {
		next = waiter->next;
		if (!may_run(file, waiter))
			continue;
		list_remove(&file->waiting, waiter);
		list_append(&file->active, waiter);
		next_step(waiter);
	}
}

static void split(struct file_io *io)
{
	uint32_t into = (uint32_t)(io->offset_bytes % FILE_SECTOR);
	uint64_t end = io->offset_bytes + io->length_bytes;

	io->head_bytes = io->tail_bytes = 0;
	if (into != 0)
		io->head_bytes = (uint32_t)min_u64(FILE_SECTOR - into, io->length_bytes);
	if (io->head_bytes < io->length_bytes)
		io->tail_bytes = (uint32_t)(end % FILE_SECTOR);
	io->middle_bytes = io->length_bytes - io->head_bytes - io->tail_bytes;
}

static void release(struct file_io *io)
{
	struct array_file *file = io->file;

	if (io->slab != NULL)
		buffers_return(&file->buffers, io->slab);
	io->slab = NULL;
	list_append(&file->idle, io);
	if (!file->paused || file->ended)
		return;
	file->paused = false;
	if (reactor_watch_add(file->options.reactor, &file->watch) < 0)
		file->paused = true; /* the next release tries again */
}

static void reply_read(struct file_io *io)
{
	struct iovec parts[3];
	unsigned count = 0;

	if (io->head_bytes > 0)
		parts[count++] = (struct iovec){
			io->edges + io->offset_bytes % FILE_SECTOR, io->head_bytes};
	if (io->middle_bytes > 0)
		parts[count++] = (struct iovec){io->data, io->middle_bytes};
	if (io->tail_bytes > 0)
		parts[count++] = (struct iovec){io->edges + FILE_SECTOR, io->tail_bytes};
	file_reply(io->file, io->unique, 0, parts, count);
}

static void finish(struct file_io *io, int result)
{
	struct array_file *file = io->file;
	struct fuse_write_out written = {.size = (uint32_t)io->length_bytes};
	struct iovec iov = {&written, sizeof(written)};

	if (result < 0 || io->opcode == FUSE_FSYNC || io->opcode == FUSE_FALLOCATE)
		file_reply(file, io->unique, result, NULL, 0);
	else if (io->opcode == FUSE_READ)
		reply_read(io);
	else
		file_reply(file, io->unique, 0, &iov, 1);
	if (is_write(io)) {
		end_write(file, io);
		if (file->options.written != NULL)
			file->options.written(
				file->options.owner, io->offset_bytes, io->length_bytes);
	}
	release(io);
}

static void step_done(struct engine_request *request, int result)
{
	struct file_io *io = request->owner;

	if (result < 0 || io->step == STEP_END)
		finish(io, result);
	else
		next_step(io);
	engine_kick(io->file->options.engine);
}

static void submit(
	struct file_io *io, enum engine_op op, uint64_t offset, uint64_t length, unsigned iov_count)
{
	io->request.op = op;
	io->request.flags = op == ENGINE_WRITE ? io->flags & ENGINE_FUA : io->flags;
	io->request.offset_bytes = offset;
	io->request.length_bytes = length;
	io->request.iov = io->iov;
	io->request.iov_count = iov_count;
	engine_submit(io->file->options.engine, &io->request);
}

static void submit_edge(struct file_io *io, enum engine_op op, bool head)
{
	uint64_t offset = head ? sectors_first(io) : sectors_end(io) - FILE_SECTOR;

	io->iov[0] = (struct iovec){io->edges + (head ? 0 : FILE_SECTOR), FILE_SECTOR};
	submit(io, op, offset, FILE_SECTOR, 1);
}

/* The whole range in one request; data in memory follows a write's head directly. */
static void submit_transfer(struct file_io *io, enum engine_op op)
{
	uint8_t *middle = io->data + (op == ENGINE_WRITE ? io->head_bytes : 0);
	unsigned count = 0;

	if (io->head_bytes > 0)
		io->iov[count++] = (struct iovec){io->edges, FILE_SECTOR};
	if (io->middle_bytes > 0)
		io->iov[count++] = (struct iovec){middle, io->middle_bytes};
	if (io->tail_bytes > 0)
		io->iov[count++] = (struct iovec){io->edges + FILE_SECTOR, FILE_SECTOR};
	submit(io, op, sectors_first(io), sectors_end(io) - sectors_first(io), count);
}

/* Put a write's or zeroing's bytes into the sectors read at its ends. */
static void patch_edges(struct file_io *io)
{
	uint8_t *head = io->edges + io->offset_bytes % FILE_SECTOR;
	uint8_t *tail = io->edges + FILE_SECTOR;

	if (io->opcode == FUSE_WRITE) {
		memcpy(head, io->data, io->head_bytes);
		memcpy(tail, io->data + io->head_bytes + io->middle_bytes, io->tail_bytes);
	} else {
		memset(head, 0, io->head_bytes);
		memset(tail, 0, io->tail_bytes);
	}
}

static void submit_body(struct file_io *io)
{
	switch (io->opcode) {
	case FUSE_READ:
		submit_transfer(io, ENGINE_READ);
		break;
	case FUSE_WRITE:
		patch_edges(io);
		submit_transfer(io, ENGINE_WRITE);
		break;
	case FUSE_FSYNC:
		submit(io, ENGINE_FLUSH, 0, 0, 0);
		break;
	default: /* FUSE_FALLOCATE; length 0, when all was in the edges, still completes later */
		submit(io, ENGINE_ZERO, round_up(io->offset_bytes, FILE_SECTOR), io->middle_bytes,
			0);
		break;
	}
}

/* Do the next step that applies. Only writes with ragged ends have any but the body. */
static void next_step(struct file_io *io)
{
	bool zeroing = io->opcode == FUSE_FALLOCATE;

	for (;;) {
		switch (io->step++) {
		case STEP_READ_HEAD:
			if (!is_write(io) || io->head_bytes == 0)
				break;
			submit_edge(io, ENGINE_READ, true);
			return;
		case STEP_READ_TAIL:
			if (!is_write(io) || io->tail_bytes == 0)
				break;
			submit_edge(io, ENGINE_READ, false);
			return;
		case STEP_WRITE_HEAD:
			if (!zeroing || io->head_bytes == 0)
				break;
			patch_edges(io);
			submit_edge(io, ENGINE_WRITE, true);
			return;
		case STEP_WRITE_TAIL:
			if (!zeroing || io->tail_bytes == 0)
				break;
			patch_edges(io);
			submit_edge(io, ENGINE_WRITE, false);
			return;
		default:
			submit_body(io);
			return;
		}
	}
}

/* Each of these fills @io from the request and returns 0, or the answer that needs no engine: a
 * negative errno, or 1 for success. */

static int fill_read(struct array_file *file, struct file_io *io)
{
	const struct fuse_read_in *in = file_argument(file);

	if (in->size > FILE_TRANSFER_MAX)
		return -EINVAL;
	io->offset_bytes = in->offset;
	if (in->offset >= file->size_bytes || in->size == 0)
		return 1; /* end of file */
	io->length_bytes = min_u64(in->size, file->size_bytes - in->offset);
	split(io);
	io->slab = buffers_take(&file->buffers, io->middle_bytes);
	return 0;
}

/* A write across the end is cut short there, as on a block device; the rest gets ENOSPC. */
static int fill_write(struct array_file *file, struct file_io *io)
{
	const struct fuse_write_in *in = file_argument(file);

	if (file->options.readonly)
		return -EROFS;
	if (in->size > FILE_TRANSFER_MAX)
		return -EINVAL;
	if (in->offset >= file->size_bytes)
		return -ENOSPC;
	if (in->size == 0)
		return 1;
	io->offset_bytes = in->offset;
	io->length_bytes = min_u64(in->size, file->size_bytes - in->offset);
	io->flags = (in->flags & O_DSYNC) != 0 ? ENGINE_FUA : 0;
	split(io);
	io->slab = buffers_take(&file->buffers, in->size);
	return 0;
}

static int fill_fallocate(struct array_file *file, struct file_io *io)
{
	const struct fuse_fallocate_in *in = file_argument(file);
	uint32_t kind = in->mode & ~(uint32_t)FALLOC_FL_KEEP_SIZE;
	uint64_t end;

	if (file->options.readonly)
		return -EROFS;
	if (!file->options.can_zero ||
		(kind != FALLOC_FL_PUNCH_HOLE && kind != FALLOC_FL_ZERO_RANGE))
		return -EOPNOTSUPP;
	if (add_overflows(in->offset, in->length, &end))
		return -EFBIG;
	if (end > file->size_bytes && (in->mode & FALLOC_FL_KEEP_SIZE) == 0)
		return -ENOSPC;
	if (in->offset >= file->size_bytes || in->length == 0)
		return 1;
	io->offset_bytes = in->offset;
	io->length_bytes = min_u64(in->length, file->size_bytes - in->offset);
	io->flags = kind == FALLOC_FL_PUNCH_HOLE ? ENGINE_MAY_UNMAP : 0;
	split(io);
	return 0;
}

static int fill_fsync(struct array_file *file)
{
	return file->options.readonly ? 1 : 0;
}

static int fill(struct array_file *file, struct file_io *io)
{
	switch (io->opcode) {
	case FUSE_READ:
		return fill_read(file, io);
	case FUSE_WRITE:
		return fill_write(file, io);
	case FUSE_FALLOCATE:
		return fill_fallocate(file, io);
	default:
		return fill_fsync(file);
	}
}

static struct file_io *take_idle(struct array_file *file)
{
	struct file_io *io = file->idle.last; /* the one used last is warm */

	list_remove(&file->idle, io);
	io->unique = file_header(file)->unique;
	io->opcode = file_header(file)->opcode;
	io->step = STEP_READ_HEAD;
	io->flags = 0;
	io->offset_bytes = io->length_bytes = io->middle_bytes = 0;
	io->head_bytes = io->tail_bytes = 0;
	io->request.owner = io;
	io->request.done = step_done;
	return io;
}

void file_io_start(struct array_file *file, void *data)
{
	struct file_io *io = take_idle(file);
	int r;

	io->data = data;
	r = fill(file, io);
	if (r != 0) {
		struct fuse_write_out nothing = {0};
		struct iovec iov = {&nothing, sizeof(nothing)};

		file_reply(
			file, io->unique, r < 0 ? r : 0, &iov, r > 0 && io->opcode == FUSE_WRITE);
		release(io);
	} else if (is_write(io)) {
		begin_write(file, io);
	} else {
		next_step(io);
	}
}
