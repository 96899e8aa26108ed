/* SPDX-License-Identifier: MIT */

/*
 * cat: an array's content to standard output, read-only, without starting it. Several large reads
 * are in flight; they are written out in order, from a ring of buffers.
 */

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "cli/members.h"
#include "cli/run.h"
#include "cli/say.h"
#include "control/assembled.h"
#include "engine/engine.h"
#include "io/reactor.h"
#include "util/cleanup.h"
#include "util/rounding.h"

#define READ_BYTES (1024u * 1024)
#define READS_MAX 8u
#define IO_MAX 1024u

struct cat_read {
	struct engine_request request;
	struct iovec iov;
	bool is_done;
};

struct cat {
	const struct cli_options *options;
	struct member_set set;
	struct md_assembly *assembly;
	struct reactor *reactor;
	struct assembled assembled;
	struct engine *engine;
	char *buffers;
	struct cat_read reads[READS_MAX];
	uint64_t at_bytes;   /* next byte to be written out */
	uint64_t end_bytes;  /* behind the last */
	uint64_t next_bytes; /* next byte to be asked for; a multiple of 512 */
	struct fault *fault;
};

static void cat_fini(struct cat *cat)
{
	if (cat->engine != NULL)
		engine_free(cat->engine);
	if (cat->reactor != NULL)
		reactor_free(cat->reactor);
	member_set_close(&cat->set);
	free(cat->assembly);
	free(cat->buffers);
	free(cat->fault);
}

static int open_array(struct cat *cat)
{
	const struct cli_options *options = cat->options;
	struct md_assembly_options how = {
		.force = options->force,
		.raid0_layout = options->update_layout,
		.run = options->run,
		.readonly = true,
	};
	int r;

	r = member_set_open(&cat->set, options->words, options->word_count,
		MEMBER_READONLY | MEMBER_EXCLUSIVE, cat->fault);
	if (r == 0)
		r = member_set_read(&cat->set, cat->fault);
	if (r == 0)
		r = member_set_assemble(&cat->set, &how, &cat->assembly, cat->fault);
	if (r == 0)
		member_set_say_rejected(&cat->set, cat->assembly);
	return r;
}

static int open_engine(struct cat *cat)
{
	const struct reactor_options options = {
		.members = cat->set.members,
		.member_count = cat->set.count,
		.io_max = IO_MAX,
		.sync = cat->options->sync_io,
		.ring = cat->options->ring_io,
	};
	int r;

	if (posix_memalign((void **)&cat->buffers, 4096, (size_t)READS_MAX * READ_BYTES) != 0)
		return fault_set(cat->fault, -ENOMEM, "no memory for the buffers");
	r = reactor_new(&options, &cat->reactor, cat->fault);
	if (r < 0)
		return r;
	cat->assembled = (struct assembled){
		.assembly = cat->assembly,
		.members = cat->set.members,
		.readonly = true,
		.requests_max = READS_MAX,
	};
	return assembled_engine_new(
		&cat->assembled, reactor_world(cat->reactor), &cat->engine, cat->fault);
}

static int choose_range(struct cat *cat)
{
	const struct cli_options *options = cat->options;
	uint64_t size = engine_array_bytes(cat->engine);

	if (options->offset_bytes > size)
		return fault_set(cat->fault, -ERANGE,
			"cat: offset %" PRIu64 " is beyond the end of the array, which has %" PRIu64
			" bytes",
			options->offset_bytes, size);
	cat->at_bytes = options->offset_bytes;
	cat->end_bytes = size;
	if (options->length_bytes != CLI_DEFAULT && options->length_bytes > size - cat->at_bytes)
		return fault_set(cat->fault, -ERANGE,
			"cat: bytes %" PRIu64 " + %" PRIu64
			" are beyond the end of the array, which has %" PRIu64 " bytes",
			cat->at_bytes, options->length_bytes, size);
	if (options->length_bytes != CLI_DEFAULT)
		cat->end_bytes = cat->at_bytes + options->length_bytes;
	cat->next_bytes = round_down(cat->at_bytes, MD_SECTOR);
	return 0;
}

static void read_done(struct engine_request *request, int result)
{
	struct cat_read *read = request->owner;

	request->result = result;
	read->is_done = true;
}

static void submit(struct cat *cat, unsigned index)
{
	struct cat_read *read = &cat->reads[index];
	uint64_t end = round_up(cat->end_bytes, MD_SECTOR); /* array sizes are whole sectors */
	uint64_t length = min_u64(READ_BYTES, end - cat->next_bytes);

	read->iov = (struct iovec){cat->buffers + (size_t)index * READ_BYTES, (size_t)length};
	read->is_done = false;
	read->request = (struct engine_request){
		.op = ENGINE_READ,
		.offset_bytes = cat->next_bytes,
		.length_bytes = length,
		.iov = &read->iov,
		.iov_count = 1,
		.done = read_done,
		.owner = read,
	};
	cat->next_bytes += length;
	engine_submit(cat->engine, &read->request);
}

/* Standard output may be a pipe that somebody made non-blocking. */
static int write_out(const char *data, size_t length)
{
	while (length > 0) {
		ssize_t written = write(STDOUT_FILENO, data, length);

		if (written >= 0) {
			data += written;
			length -= (size_t)written;
		} else if (errno == EAGAIN) {
			struct pollfd out = {.fd = STDOUT_FILENO, .events = POLLOUT};

			(void)poll(&out, 1, -1);
		} else if (errno != EINTR) {
			return -errno;
		}
	}
	return 0;
}

static int write_read(struct cat *cat, const struct cat_read *read)
{
	const struct engine_request *request = &read->request;
	uint64_t end = min_u64(request->offset_bytes + request->length_bytes, cat->end_bytes);
	int r, failed = request->result;

	if (failed < 0)
		end = min_u64(end, max_u64(request->fail_offset_bytes, cat->at_bytes));
	r = write_out((const char *)read->iov.iov_base + (cat->at_bytes - request->offset_bytes),
		(size_t)(end - cat->at_bytes));
	if (r < 0)
		return fault_set(
			cat->fault, r, "cat: standard output: cannot write: %s", strerror(-r));
	cat->at_bytes = end;
	if (failed < 0)
		return fault_set(cat->fault, failed,
			"cat: read of bytes %" PRIu64 " to %" PRIu64
			" of the array failed: %s; what was written ends before byte %" PRIu64,
			request->fail_offset_bytes,
			request->fail_offset_bytes + request->fail_length_bytes - 1,
			strerror(-failed), cat->at_bytes);
	return 0;
}

static int wait_for(struct cat *cat, const struct cat_read *read)
{
	int r = 0;

	while (!read->is_done && (r >= 0 || r == -EINTR))
		r = reactor_run(cat->reactor, true, UINT64_MAX);
	if (!read->is_done)
		return fault_set(cat->fault, r, "cat: waiting for members: %s", strerror(-r));
	return 0;
}

/* The requests are this function's callers' memory: none may be in flight when they go. */
static void drain(struct cat *cat)
{
	int r = 0;

	while (engine_inflight(cat->engine) > 0 && (r >= 0 || r == -EINTR))
		r = reactor_run(cat->reactor, true, UINT64_MAX);
}

static int stream(struct cat *cat)
{
	unsigned head = 0, index;
	int r = 0;

	for (index = 0; index < READS_MAX && cat->next_bytes < cat->end_bytes; index++)
		submit(cat, index);
	while (r == 0 && cat->at_bytes < cat->end_bytes) {
		engine_kick(cat->engine);
		r = wait_for(cat, &cat->reads[head]);
		if (r == 0)
			r = write_read(cat, &cat->reads[head]);
		if (r == 0 && cat->next_bytes < cat->end_bytes)
			submit(cat, head);
		head = (head + 1) % READS_MAX;
	}
	engine_kick(cat->engine);
	drain(cat);
	return r;
}

static int run(struct cat *cat)
{
	int r;

	r = open_array(cat);
	if (r == 0)
		r = open_engine(cat);
	if (r == 0)
		r = choose_range(cat);
	return r < 0 ? r : stream(cat);
}

int cli_cat(const struct cli_options *options)
{
	_cleanup_(cat_fini) struct cat cat = {.options = options};
	int r;

	cat.fault = calloc(1, sizeof(*cat.fault));
	if (cat.fault == NULL)
		return say_no_memory();
	(void)signal(SIGPIPE, SIG_IGN);
	r = run(&cat);
	if (r == -EPIPE)
		return CLI_FAILED; /* the reader has had enough: nothing to say */
	return r < 0 ? say_fault(cat.fault, CLI_FAILED) : CLI_OK;
}
