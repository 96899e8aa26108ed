/* SPDX-License-Identifier: MIT */
/* Virtual clients: each has one request at a time, and all of them one shadow of the array. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "simulate/internal.h"
#include "util/rounding.h"

#define DEADLINE_NS (600 * SECOND)
#define POISON 0xa5

static const char *const op_names[] = {"read", "write", "flush", "discard", "zero"};

void clients_init(struct run *run)
{
	for (unsigned i = 0; i < run->choice.clients; i++) {
		struct client *client = &run->clients[i];

		client->run = run;
		client->number = i;
		client->buffer = calloc(REQUEST_SECTORS_MAX, SHADOW_SECTOR);
		if (client->buffer == NULL)
			abort();
	}
}

void clients_free(struct run *run)
{
	for (unsigned i = 0; i < run->choice.clients; i++)
		free(run->clients[i].buffer);
}

static void done(struct engine_request *request, int result)
{
	struct client *client = request->owner;

	if (client->finished)
		run_fail(client->run, "twice", "client %u was told twice", client->number);
	client->finished = true;
	client->result = result;
}

static void cut_buffer(struct run *run, struct client *client, uint64_t length)
{
	uint64_t at = 0;
	unsigned n = 0;

	while (at < length) {
		uint64_t step = n == 7 || chance(&run->workload, 60)
					? length - at
					: SHADOW_SECTOR *
						  (1 + draw(&run->workload,
							       (length - at) / SHADOW_SECTOR));

		client->iov[n++] = (struct iovec){client->buffer + at, step};
		at += step;
	}
	client->request.iov = client->iov;
	client->request.iov_count = n;
}

static enum engine_op choose_op(struct run *run)
{
	const unsigned *weights = run->choice.weights;
	unsigned sum = 0, at;

	for (unsigned i = 0; i < 5; i++)
		sum += weights[i];
	at = (unsigned)draw(&run->workload, sum);
	for (unsigned i = 0; i < 5; i++) {
		if (at < weights[i])
			return (enum engine_op)i;
		at -= weights[i];
	}
	return ENGINE_READ;
}

static void choose_range(struct run *run, struct client *client)
{
	const struct choice *c = &run->choice;
	struct engine_request *r = &client->request;
	uint64_t sectors = run->array_bytes / SHADOW_SECTOR, first, count;

	count = 1 + draw(&run->workload, min_u64(c->sectors_max, sectors));
	if (c->hot_percent < 100 && chance(&run->workload, 3))
		count = min_u64(sectors, 1 + draw(&run->workload, REQUEST_SECTORS_MAX));
	count = min_u64(count, REQUEST_SECTORS_MAX);
	first = draw(&run->workload, sectors);
	if (chance(&run->workload, c->sequential_percent))
		first = client->position;
	else if (chance(&run->workload, c->hot_percent))
		first = sectors * c->hot_percent_from / 100 +
			draw(&run->workload, min_u64(64, sectors));
	if (first >= sectors)
		first = 0;
	count = min_u64(count, sectors - first);
	client->position = first + count;
	r->offset_bytes = first * SHADOW_SECTOR;
	r->length_bytes = count * SHADOW_SECTOR;
}

/* Levels with parity have no use for a discard: what was there stays, as durable as it was. */
static bool changes_nothing(const struct run *run, const struct engine_request *r)
{
	return r->op == ENGINE_FLUSH ||
	       (r->op == ENGINE_DISCARD && is_parity_level(run->choice.level));
}

static void prepare(struct run *run, struct client *client)
{
	struct engine_request *r = &client->request;
	uint64_t first = r->offset_bytes / SHADOW_SECTOR, count = r->length_bytes / SHADOW_SECTOR;

	if (r->op == ENGINE_READ) {
		memset(client->buffer, POISON, r->length_bytes);
		cut_buffer(run, client, r->length_bytes);
		client->began = shadow_read_begin(run->shadow);
		return;
	}
	if (r->op == ENGINE_FLUSH) {
		client->began = shadow_tick(run->shadow);
		return;
	}
	client->id = ++run->write_id;
	if (changes_nothing(run, r))
		return;
	if (r->op == ENGINE_WRITE) {
		shadow_stamp(client->id, first, count, client->buffer);
		cut_buffer(run, client, r->length_bytes);
	}
	shadow_begin(run->shadow, client->id,
		r->op == ENGINE_ZERO      ? SHADOW_ZERO
		: r->op == ENGINE_DISCARD ? SHADOW_ANY
					  : client->id,
		first, count);
}

static void submit(struct run *run, struct client *client)
{
	client->busy = true;
	client->finished = false;
	client->request.done = done;
	client->request.owner = client;
	client->started_ns = run_now(run);
	client->may_be_refused = run->readonly;
	run->started++;
	run_trace(run, "client %u: %s %" PRIu64 "+%" PRIu64 "%s #%" PRIu64, client->number,
		op_names[client->request.op], client->request.offset_bytes / SHADOW_SECTOR,
		client->request.length_bytes / SHADOW_SECTOR,
		client->request.flags & ENGINE_FUA ? " FUA" : "",
		client->request.op == ENGINE_READ ? 0 : client->id);
	engine_submit(run->engine, &client->request);
}

static void start(struct run *run, struct client *client)
{
	client->request = (struct engine_request){.op = choose_op(run)};
	if (client->request.op != ENGINE_FLUSH)
		choose_range(run, client);
	if (client->request.op != ENGINE_READ && client->request.op != ENGINE_FLUSH &&
		chance(&run->workload, run->choice.fua_percent))
		client->request.flags = ENGINE_FUA;
	prepare(run, client);
	submit(run, client);
}

void clients_start(struct run *run)
{
	for (unsigned i = 0; i < run->choice.clients; i++) {
		struct client *client = &run->clients[i];

		if (client->busy || client->next_ns > run_now(run) ||
			run->started >= run->choice.operations || run->stop_wanted)
			continue;
		start(run, client);
	}
	engine_kick(run->engine);
}

static void check_sector(
	struct run *run, struct client *client, uint64_t sector, const uint8_t *bytes)
{
	char text[350];

	if (shadow_accept(run->shadow, sector, client->began, shadow_value(sector, bytes),
		    !run->no_choices))
		return;
	shadow_explain(run->shadow, sector, bytes, text, sizeof(text));
	run_fail(run, "wrong-bytes", "client %u read %" PRIu64 "+%" PRIu64 ": %s", client->number,
		client->request.offset_bytes / SHADOW_SECTOR,
		client->request.length_bytes / SHADOW_SECTOR, text);
}

static bool failed_here(const struct client *client, uint64_t offset)
{
	const struct engine_request *r = &client->request;

	return client->result < 0 && offset >= r->fail_offset_bytes &&
	       offset < r->fail_offset_bytes + r->fail_length_bytes;
}

static void check_read(struct run *run, struct client *client)
{
	const struct engine_request *r = &client->request;

	for (uint64_t at = 0; at < r->length_bytes; at += SHADOW_SECTOR)
		if (!failed_here(client, r->offset_bytes + at) && !run_is_over(run))
			check_sector(run, client, (r->offset_bytes + at) / SHADOW_SECTOR,
				client->buffer + at);
	shadow_read_end(run->shadow, client->began);
}

/* Runs of sectors that failed and that did not. */
static void end_write(struct run *run, struct client *client)
{
	const struct engine_request *r = &client->request;
	uint64_t end = r->offset_bytes + r->length_bytes, at = r->offset_bytes;
	bool durable = (r->flags & ENGINE_FUA) != 0;

	while (at < end) {
		bool failed = failed_here(client, at);
		uint64_t until = at;

		while (until < end && failed_here(client, until) == failed)
			until += SHADOW_SECTOR;
		shadow_end(run->shadow, client->id, at / SHADOW_SECTOR,
			(until - at) / SHADOW_SECTOR, !failed, durable);
		if (failed)
			atlas_mark_write(run, at / SHADOW_SECTOR, (until - at) / SHADOW_SECTOR);
		at = until;
	}
}

/* Beyond the redundancy: only ranges that really cannot be had, and nothing around them. */
static void check_exact(struct run *run, const struct client *client)
{
	const struct engine_request *r = &client->request;
	uint64_t last = r->fail_offset_bytes + r->fail_length_bytes - SHADOW_SECTOR;

	if (r->op != ENGINE_READ || run->blackout)
		return;
	if (r->fail_length_bytes == 0 || r->fail_offset_bytes < r->offset_bytes ||
		last >= r->offset_bytes + r->length_bytes)
		run_fail(run, "range", "the failed range is not within the request");
	else if (atlas_is_readable(run, r->fail_offset_bytes / SHADOW_SECTOR) ||
		 atlas_is_readable(run, last / SHADOW_SECTOR))
		run_fail(run, "range",
			"a read failed at sectors %" PRIu64 " to %" PRIu64
			", but one of these can be read",
			r->fail_offset_bytes / SHADOW_SECTOR, last / SHADOW_SECTOR);
}

static void check_result(struct run *run, const struct client *client)
{
	const struct engine_request *r = &client->request;

	if (client->result == -EROFS && client->may_be_refused && r->op != ENGINE_READ)
		return;
	if (run->options->beyond) {
		check_exact(run, client);
		return;
	}
	if (!run->blackout)
		run_fail(run, "error", "client %u: %s %" PRIu64 "+%" PRIu64 " ended with %d",
			client->number, op_names[r->op], r->offset_bytes / SHADOW_SECTOR,
			r->length_bytes / SHADOW_SECTOR, client->result);
}

static void rest(struct run *run, struct client *client)
{
	client->busy = false;
	client->next_ns = run_now(run);
	if (chance(&run->workload, run->choice.pause_percent))
		client->next_ns += draw(&run->workload, run->choice.pause_ns);
}

static void collect(struct run *run, struct client *client)
{
	const struct engine_request *r = &client->request;

	run_trace(run, "client %u: %s %" PRIu64 "+%" PRIu64 " done: %d", client->number,
		op_names[r->op], r->offset_bytes / SHADOW_SECTOR, r->length_bytes / SHADOW_SECTOR,
		client->result);
	run->completed++;
	if (client->result < 0) {
		run_trace(run, "client %u: failed %" PRIu64 "+%" PRIu64, client->number,
			r->fail_offset_bytes / SHADOW_SECTOR, r->fail_length_bytes / SHADOW_SECTOR);
		check_result(run, client);
	}
	if (r->op == ENGINE_READ)
		check_read(run, client);
	else if (!changes_nothing(run, r))
		end_write(run, client);
	else if (r->op == ENGINE_FLUSH && client->result == 0)
		shadow_flushed(run->shadow, client->began);
	rest(run, client);
}

void clients_collect(struct run *run)
{
	for (unsigned i = 0; i < run->choice.clients; i++) {
		struct client *client = &run->clients[i];

		if (!client->busy)
			continue;
		if (client->finished)
			collect(run, client);
		else if (run_now(run) - client->started_ns > DEADLINE_NS + run->stall_ns)
			run_fail(run, "deadline",
				"client %u: %s %" PRIu64 "+%" PRIu64
				" has been waiting for %" PRIu64 " s",
				client->number, op_names[client->request.op],
				client->request.offset_bytes / SHADOW_SECTOR,
				client->request.length_bytes / SHADOW_SECTOR,
				(run_now(run) - client->started_ns) / SECOND);
		if (run_is_over(run))
			return;
	}
}

unsigned clients_busy(const struct run *run)
{
	unsigned busy = 0;

	for (unsigned i = 0; i < run->choice.clients; i++)
		busy += run->clients[i].busy;
	return busy;
}

void clients_forget(struct run *run)
{
	for (unsigned i = 0; i < run->choice.clients; i++)
		run->clients[i].busy = run->clients[i].finished = false;
}

uint64_t clients_next_ns(const struct run *run)
{
	uint64_t next = UINT64_MAX;

	for (unsigned i = 0; i < run->choice.clients && !run->stop_wanted &&
			     run->started < run->choice.operations;
		i++)
		if (!run->clients[i].busy)
			next = min_u64(next, run->clients[i].next_ns);
	return next;
}

void client_read_all(struct run *run)
{
	struct client *client = &run->clients[0];
	uint64_t at = 0;

	while (at < run->array_bytes && !run_is_over(run)) {
		client->request = (struct engine_request){
			.op = ENGINE_READ,
			.offset_bytes = at,
			.length_bytes = min_u64(
				REQUEST_SECTORS_MAX * SHADOW_SECTOR, run->array_bytes - at),
		};
		at += client->request.length_bytes;
		prepare(run, client);
		submit(run, client);
		engine_kick(run->engine);
		while (client->busy && !run_is_over(run))
			run_step(run);
	}
}
