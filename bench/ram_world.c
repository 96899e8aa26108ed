/* SPDX-License-Identifier: MIT */
#include "ram_world.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

struct ram_world {
	struct world world;
	uint64_t member_bytes;
	size_t pool_bytes;
	char *pool;
	bool is_view; /* the pool belongs to another world */
	struct world_io *first, **last;
};

static void submit(struct world *world, struct world_io *io)
{
	struct ram_world *ram = (struct ram_world *)world;

	io->next = NULL;
	*ram->last = io;
	ram->last = &io->next;
}

static void kick(struct world *world)
{
	(void)world;
}

static uint64_t now_ns(struct world *world)
{
	struct timespec now;

	(void)world;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void free_world(struct world *world)
{
	struct ram_world *ram = (struct ram_world *)world;

	if (!ram->is_view)
		munmap(ram->pool, ram->pool_bytes);
	free(ram);
}

/* Nothing here ever waits: what engines would do later, in the background, they never do. */
static void ignore_timer(struct world *world, struct world_timer *timer)
{
	(void)world;
	(void)timer;
}

static void never_expire(struct world *world, struct world_timer *timer, uint64_t due_ns)
{
	(void)world;
	(void)timer;
	(void)due_ns;
}

static uint64_t wall_seconds(struct world *world)
{
	(void)world;
	return (uint64_t)time(NULL);
}

static const struct world_ops ram_ops = {
	.name = "ram",
	.submit = submit,
	.kick = kick,
	.now_ns = now_ns,
	.wall_seconds = wall_seconds,
	.timer_arm = never_expire,
	.timer_cancel = ignore_timer,
	.free = free_world,
};

struct world *ram_world_new(unsigned members, uint64_t member_bytes)
{
	struct ram_world *ram = calloc(1, sizeof(*ram));

	if (ram == NULL)
		return NULL;
	ram->world.ops = &ram_ops;
	ram->member_bytes = member_bytes;
	ram->last = &ram->first;
	ram->pool_bytes = members * member_bytes;
	ram->pool = mmap(
		NULL, ram->pool_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (ram->pool == MAP_FAILED) {
		free(ram);
		return NULL;
	}
	(void)madvise(ram->pool, ram->pool_bytes, MADV_HUGEPAGE); /* small pages work, slower */
	memset(ram->pool, 0x5a, ram->pool_bytes);
	return &ram->world;
}

struct world *ram_world_flat(struct world *world)
{
	struct ram_world *ram = (struct ram_world *)world;
	struct ram_world *flat = malloc(sizeof(*flat));

	if (flat == NULL)
		return NULL;
	*flat = *ram;
	flat->member_bytes = ram->pool_bytes;
	flat->last = &flat->first;
	flat->is_view = true;
	return &flat->world;
}

static void perform(struct ram_world *ram, const struct world_io *io)
{
	char *at = ram->pool + io->member * ram->member_bytes + io->offset_bytes;

	assert(io->offset_bytes + io->length_bytes <= ram->member_bytes);
	for (unsigned i = 0; i < io->iov_count; i++) {
		if (io->op == WORLD_READ)
			memcpy(io->iov[i].iov_base, at, io->iov[i].iov_len);
		else if (io->op == WORLD_WRITE)
			memcpy(at, io->iov[i].iov_base, io->iov[i].iov_len);
		at += io->iov[i].iov_len;
	}
}

/* First all copies, then all completions: a device moves a batch and then raises one interrupt. */
unsigned ram_world_run(struct world *world)
{
	struct ram_world *ram = (struct ram_world *)world;
	struct world_io *io = ram->first;
	unsigned count = 0;

	ram->first = NULL;
	ram->last = &ram->first;
	for (const struct world_io *copy = io; copy != NULL; copy = copy->next)
		perform(ram, copy);
	while (io != NULL) {
		struct world_io *next = io->next;

		io->done(io, 0);
		io = next;
		count++;
	}
	return count;
}
