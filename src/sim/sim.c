/* SPDX-License-Identifier: MIT */
/*
 * Events in virtual time. Each submitted request becomes an event at a drawn latency from now; its
 * effect happens when the event is delivered, so what completes first has happened first. Events of
 * equal time keep their order of submission.
 */
#include "sim/sim.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sim/disk.h"
#include "util/rounding.h"

struct event {
	uint64_t due_ns;
	uint64_t order;
	uint64_t flush_covers; /* FLUSH: writes completed when it was submitted */
	struct world_io *io;
};

struct sim {
	struct world world;
	struct sim_options options;
	uint64_t random_state;
	uint64_t now_ns;
	uint64_t order;
	struct event *heap; /* the earliest first */
	size_t event_count, event_room;
	struct world_timer *timers; /* rising due_ns */
	struct sim_fault faults[SIM_FAULTS_MAX];
	unsigned fault_count;
	void (*completed)(void *owner, const struct world_io *io, int result);
	void *completed_owner;
	struct sim_disk *disks[];
};

/* splitmix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014). */
static uint64_t next_random(struct sim *sim)
{
	uint64_t z = sim->random_state += 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

uint64_t sim_draw(struct sim *sim, uint64_t below)
{
	return below == 0 ? 0 : next_random(sim) % below;
}

static bool is_before(const struct event *a, const struct event *b)
{
	return a->due_ns != b->due_ns ? a->due_ns < b->due_ns : a->order < b->order;
}

static void heap_push(struct sim *sim, struct event event)
{
	size_t at;

	if (sim->event_count == sim->event_room) {
		sim->event_room = sim->event_room == 0 ? 256 : sim->event_room * 2;
		sim->heap = realloc(sim->heap, sim->event_room * sizeof(*sim->heap));
		assert(sim->heap != NULL);
	}
	at = sim->event_count++;
	while (at > 0 && is_before(&event, &sim->heap[(at - 1) / 2])) {
		sim->heap[at] = sim->heap[(at - 1) / 2];
		at = (at - 1) / 2;
	}
	sim->heap[at] = event;
}

static struct event heap_pop(struct sim *sim)
{
	struct event top = sim->heap[0], last = sim->heap[--sim->event_count];
	size_t at = 0;

	for (;;) {
		size_t child = 2 * at + 1;

		if (child + 1 < sim->event_count &&
			is_before(&sim->heap[child + 1], &sim->heap[child]))
			child++;
		if (child >= sim->event_count || is_before(&last, &sim->heap[child]))
			break;
		sim->heap[at] = sim->heap[child];
		at = child;
	}
	if (sim->event_count > 0)
		sim->heap[at] = last;
	return top;
}

static bool fault_concerns(const struct sim_fault *fault, const struct world_io *io)
{
	if (fault->times == 0 || fault->disk != io->member || !(fault->ops & (1u << io->op)))
		return false;
	return io->op == WORLD_FLUSH ||
	       (io->offset_bytes < fault->offset_bytes + fault->length_bytes &&
		       fault->offset_bytes < io->offset_bytes + io->length_bytes);
}

static void remove_fault(struct sim *sim, unsigned index)
{
	sim->fault_count--;
	memmove(&sim->faults[index], &sim->faults[index + 1],
		(sim->fault_count - index) * sizeof(sim->faults[0]));
}

/* Some fault fires: it may be its last time. */
static void use_up(struct sim *sim, unsigned index)
{
	struct sim_fault *fault = &sim->faults[index];

	if (fault->times != UINT32_MAX && --fault->times == 0)
		remove_fault(sim, index);
}

static uint64_t injected_delay(struct sim *sim, const struct world_io *io)
{
	for (unsigned i = 0; i < sim->fault_count; i++) {
		uint64_t delay_ns = sim->faults[i].delay_ns;

		if (delay_ns == 0 || !fault_concerns(&sim->faults[i], io))
			continue;
		if (sim->faults[i].error == 0)
			use_up(sim, i);
		return delay_ns;
	}
	return 0;
}

static void submit(struct world *world, struct world_io *io)
{
	struct sim *sim = (struct sim *)world;
	uint64_t spread = sim->options.latency_max_ns - sim->options.latency_min_ns;
	struct event event = {.io = io, .order = sim->order++};

	assert(io->member < sim->options.disk_count);
	assert(io->op == WORLD_FLUSH || io->length_bytes > 0);
	assert(io->offset_bytes % SIM_SECTOR == 0 && io->length_bytes % SIM_SECTOR == 0);
	event.due_ns = sim->now_ns + sim->options.latency_min_ns + sim_draw(sim, spread + 1);
	event.due_ns += injected_delay(sim, io);
	if (io->op == WORLD_FLUSH)
		event.flush_covers = sim_disk_sequence(sim->disks[io->member]);
	heap_push(sim, event);
}

static void kick(struct world *world)
{
	(void)world; /* nothing is gathered: submit() has queued the event */
}

static uint64_t now_ns(struct world *world)
{
	return ((struct sim *)world)->now_ns;
}

/* The virtual calendar begins on 2026-01-01. */
static uint64_t wall_seconds(struct world *world)
{
	return 1767225600u + ((struct sim *)world)->now_ns / 1000000000u;
}

static void timer_cancel(struct world *world, struct world_timer *timer)
{
	struct world_timer **at = &((struct sim *)world)->timers;

	if (!timer->armed)
		return;
	while (*at != timer)
		at = &(*at)->next;
	*at = timer->next;
	timer->armed = 0;
}

static void timer_arm(struct world *world, struct world_timer *timer, uint64_t due_ns)
{
	struct world_timer **at = &((struct sim *)world)->timers;

	timer_cancel(world, timer);
	while (*at != NULL && (*at)->due_ns <= due_ns)
		at = &(*at)->next;
	timer->due_ns = due_ns;
	timer->next = *at;
	timer->armed = 1;
	*at = timer;
}

static void random_bytes(struct world *world, void *buffer, size_t length)
{
	uint8_t *bytes = buffer;

	for (size_t i = 0; i < length; i++)
		bytes[i] = (uint8_t)next_random((struct sim *)world);
}

static void free_world(struct world *world)
{
	sim_free((struct sim *)world);
}

static const struct world_ops sim_ops = {
	.name = "sim",
	.submit = submit,
	.kick = kick,
	.now_ns = now_ns,
	.wall_seconds = wall_seconds,
	.timer_arm = timer_arm,
	.timer_cancel = timer_cancel,
	.random = random_bytes,
	.free = free_world,
};

int sim_new(const struct sim_options *options, struct sim **ret, struct fault *fault)
{
	struct sim *sim = calloc(1, sizeof(*sim) + options->disk_count * sizeof(sim->disks[0]));
	int r = sim == NULL ? -ENOMEM : 0;

	if (r == 0) {
		sim->world.ops = &sim_ops;
		sim->options = *options;
		sim->options.disk_bytes = NULL;
		sim->random_state = options->seed;
	}
	for (unsigned i = 0; r == 0 && i < options->disk_count; i++) {
		assert(options->disk_bytes[i] % SIM_SECTOR == 0);
		r = sim_disk_new(options->disk_bytes[i], &sim->disks[i]);
	}
	if (r < 0) {
		sim_free(sim);
		return fault_set(fault, r, "no memory for %u virtual disks", options->disk_count);
	}
	*ret = sim;
	return 0;
}

void sim_free(struct sim *sim)
{
	if (sim == NULL)
		return;
	for (unsigned i = 0; i < sim->options.disk_count; i++)
		sim_disk_free(sim->disks[i]);
	free(sim->heap);
	free(sim);
}

struct world *sim_world(struct sim *sim)
{
	return &sim->world;
}

uint64_t sim_now_ns(const struct sim *sim)
{
	return sim->now_ns;
}

int sim_fault_add(struct sim *sim, const struct sim_fault *fault)
{
	if (sim->fault_count == SIM_FAULTS_MAX)
		return -ENOSPC;
	sim->faults[sim->fault_count++] = *fault;
	return 0;
}

void sim_faults_clear(struct sim *sim)
{
	sim->fault_count = 0;
}

void sim_faults_remove(struct sim *sim, unsigned tag)
{
	for (unsigned i = sim->fault_count; i-- > 0;)
		if (sim->faults[i].tag == tag)
			remove_fault(sim, i);
}

const struct sim_fault *sim_faults(const struct sim *sim, unsigned *ret_count)
{
	*ret_count = sim->fault_count;
	return sim->faults;
}

static int injected_error(struct sim *sim, const struct world_io *io, bool *ret_performed)
{
	for (unsigned i = 0; i < sim->fault_count; i++) {
		struct sim_fault *fault = &sim->faults[i];
		int error = fault->error;

		if (error == 0 || !fault_concerns(fault, io))
			continue;
		*ret_performed = fault->performed;
		use_up(sim, i);
		return error;
	}
	return 0;
}

/* A disk puts new sectors in the place of bad ones that are written. */
static void heal(struct sim *sim, const struct world_io *io)
{
	for (unsigned i = sim->fault_count; i-- > 0;) {
		const struct sim_fault *fault = &sim->faults[i];

		if (fault->until_written && fault->disk == io->member &&
			fault->offset_bytes >= io->offset_bytes &&
			fault->offset_bytes < io->offset_bytes + io->length_bytes)
			remove_fault(sim, i);
	}
}

static void read_vector(struct sim_disk *disk, const struct world_io *io)
{
	uint64_t offset = io->offset_bytes;

	for (unsigned i = 0; i < io->iov_count; i++) {
		sim_disk_read(disk, offset, io->iov[i].iov_base, io->iov[i].iov_len);
		offset += io->iov[i].iov_len;
	}
	assert(offset == io->offset_bytes + io->length_bytes);
}

static int write_vector(struct sim_disk *disk, const struct world_io *io, bool durable)
{
	uint64_t offset = io->offset_bytes;
	int r = 0;

	for (unsigned i = 0; i < io->iov_count && r == 0; i++) {
		r = sim_disk_write(disk, offset, io->iov[i].iov_base, io->iov[i].iov_len, durable);
		offset += io->iov[i].iov_len;
	}
	assert(offset == io->offset_bytes + io->length_bytes);
	return r;
}

/* Zeros, or after a discard what some disks return: a byte that nobody wrote. */
static int fill(struct sim_disk *disk, const struct world_io *io, uint8_t byte)
{
	uint8_t block[4096];
	uint64_t done = 0;
	int r = 0;

	memset(block, byte, sizeof(block));
	while (done < io->length_bytes && r == 0) {
		size_t step = min_u64(sizeof(block), io->length_bytes - done);

		r = sim_disk_write(
			disk, io->offset_bytes + done, block, step, io->flags & WORLD_FUA);
		done += step;
	}
	return r;
}

static int operate(struct sim *sim, const struct event *event)
{
	struct world_io *io = event->io;
	struct sim_disk *disk = sim->disks[io->member];
	struct sim_disk_counters *counters = sim_disk_stats(disk);

	counters->iovecs += io->iov_count;
	switch (io->op) {
	case WORLD_READ:
		counters->reads++;
		read_vector(disk, io);
		return 0;
	case WORLD_WRITE:
		counters->writes++;
		return write_vector(disk, io, io->flags & WORLD_FUA);
	case WORLD_FLUSH:
		counters->flushes++;
		sim_disk_flush(disk, event->flush_covers);
		return 0;
	case WORLD_DISCARD:
		counters->discards++;
		return fill(disk, io, 0xdd);
	case WORLD_ZERO:
		counters->zeros++;
		return fill(disk, io, 0);
	}
	abort();
}

static int perform(struct sim *sim, const struct event *event)
{
	struct world_io *io = event->io;
	bool performed = false;
	int error = injected_error(sim, io, &performed), r;

	if (error < 0 && !performed)
		return error;
	if (io->op != WORLD_FLUSH &&
		io->offset_bytes + io->length_bytes > sim_disk_bytes(sim->disks[io->member]))
		return -EIO;
	r = operate(sim, event);
	if (io->op == WORLD_WRITE || io->op == WORLD_ZERO || io->op == WORLD_DISCARD)
		heal(sim, io);
	return error < 0 ? error : r;
}

static bool expire_timer(struct sim *sim)
{
	struct world_timer *timer = sim->timers;

	if (timer == NULL || (sim->event_count > 0 && sim->heap[0].due_ns < timer->due_ns))
		return false;
	sim->timers = timer->next;
	timer->armed = 0;
	sim->now_ns = max_u64(sim->now_ns, timer->due_ns);
	timer->expired(timer);
	return true;
}

bool sim_step(struct sim *sim)
{
	struct event event;
	int r;

	if (expire_timer(sim))
		return true;
	if (sim->event_count == 0)
		return false;
	event = heap_pop(sim);
	sim->now_ns = event.due_ns;
	r = perform(sim, &event);
	if (sim->completed != NULL)
		sim->completed(sim->completed_owner, event.io, r);
	event.io->done(event.io, r);
	return true;
}

uint64_t sim_run(struct sim *sim, uint64_t limit)
{
	uint64_t steps = 0;

	while (steps < limit && sim_step(sim))
		steps++;
	return steps;
}

static uint64_t draw_for_disk(void *owner, uint64_t below)
{
	return sim_draw(owner, below);
}

void sim_power_cut(struct sim *sim)
{
	/* What was in flight may have reached the cache: as undurable as what had completed. */
	for (size_t i = 0; i < sim->event_count; i++) {
		struct world_io *io = sim->heap[i].io;
		struct sim_disk *disk = sim->disks[io->member];

		if (io->op == WORLD_WRITE)
			(void)write_vector(disk, io, false); /* lost anyway if memory is short */
		else if (io->op == WORLD_ZERO || io->op == WORLD_DISCARD)
			io->flags &= ~WORLD_FUA,
				(void)fill(disk, io, io->op == WORLD_ZERO ? 0 : 0xdd);
	}
	sim->event_count = 0;
	while (sim->timers != NULL)
		timer_cancel(&sim->world, sim->timers);
	for (unsigned i = 0; i < sim->options.disk_count; i++)
		sim_disk_power_cut(sim->disks[i], draw_for_disk, sim);
}

/* The first @length bytes of a write. */
static void write_start(struct sim_disk *disk, const struct world_io *io, uint64_t length)
{
	uint64_t done = 0;

	for (unsigned i = 0; i < io->iov_count && done < length; i++) {
		uint64_t step = min_u64(io->iov[i].iov_len, length - done);

		if (sim_disk_write(
			    disk, io->offset_bytes + done, io->iov[i].iov_base, step, false) < 0)
			abort();
		done += step;
	}
}

void sim_kill(struct sim *sim)
{
	for (size_t i = 0; i < sim->event_count; i++) {
		struct event *event = &sim->heap[i];
		uint64_t how = sim_draw(sim, 3);

		if (how == 0)
			(void)perform(sim, event);
		else if (how == 1 && event->io->op == WORLD_WRITE)
			write_start(sim->disks[event->io->member], event->io,
				SIM_SECTOR * sim_draw(sim, event->io->length_bytes / SIM_SECTOR));
	}
	sim->event_count = 0;
	while (sim->timers != NULL)
		timer_cancel(&sim->world, sim->timers);
}

void sim_undurable(struct sim *sim, unsigned disk, void (*told)(void *owner, uint64_t offset_bytes),
	void *owner)
{
	sim_disk_undurable(sim->disks[disk], told, owner);
}

void sim_trace(struct sim *sim,
	void (*completed)(void *owner, const struct world_io *io, int result), void *owner)
{
	sim->completed = completed;
	sim->completed_owner = owner;
}

void sim_disk_peek(struct sim *sim, unsigned disk, uint64_t offset, void *buffer, size_t length)
{
	sim_disk_read(sim->disks[disk], offset, buffer, length);
}

void sim_disk_poke(
	struct sim *sim, unsigned disk, uint64_t offset, const void *buffer, size_t length)
{
	if (sim_disk_write(sim->disks[disk], offset, buffer, length, true) < 0)
		abort();
}

uint64_t sim_disk_size(const struct sim *sim, unsigned disk)
{
	return sim_disk_bytes(sim->disks[disk]);
}

const struct sim_disk_counters *sim_disk_counters(struct sim *sim, unsigned disk)
{
	return sim_disk_stats(sim->disks[disk]);
}
