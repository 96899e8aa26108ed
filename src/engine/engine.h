/* SPDX-License-Identifier: MIT */
#ifndef STRAKE_ENGINE_ENGINE_H
#define STRAKE_ENGINE_ENGINE_H

/*
 * The engine: requests to an array become requests to its members.
 *
 * Single-threaded and deterministic. It calls no operating system; disks, time and randomness come
 * through the world it is given. All memory is taken in engine_new(): the I/O path allocates
 * nothing, and engine_memory() tells how much it is.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "engine/redundancy.h"
#include "util/fault.h"
#include "world/world.h"

struct engine;

enum engine_op {
	ENGINE_READ,
	ENGINE_WRITE,
	ENGINE_FLUSH,
	ENGINE_DISCARD,
	ENGINE_ZERO, /* write zeroes */
};

#define ENGINE_FUA WORLD_FUA
#define ENGINE_MAY_UNMAP WORLD_MAY_UNMAP

/*
 * One request of a client. The client owns it, fills the first part and keeps it, the iovec array
 * and the buffers until done(). Offset and length are multiples of 512 (length 0 is allowed and
 * touches nothing); READ and WRITE iovecs may have any lengths that are multiples of 512 and must
 * sum up to @length_bytes.
 */
struct engine_request {
	enum engine_op op;
	unsigned flags; /* ENGINE_FUA, ENGINE_MAY_UNMAP */
	uint64_t offset_bytes;
	uint64_t length_bytes;
	const struct iovec *iov;
	unsigned iov_count;
	int result; /* the engine's own; here so that a common request stays in one cache line */
	/*
	 * Called once, never from inside engine_submit(); from engine_kick() for what needed no
	 * member, else when the world is run. @result: 0; -ERANGE beyond the end (nothing was
	 * done); -EINVAL not a multiple of 512; -EROFS; -EIO or what the member said. If it is
	 * negative, fail_offset and fail_length bound the array range that is concerned: the bytes
	 * of the request outside it were transferred.
	 */
	void (*done)(struct engine_request *request, int result);
	void *owner;
	uint64_t fail_offset_bytes; /* meaningful only if the result is negative */
	uint64_t fail_length_bytes;

	/* The engine's own from submit to done(). */
	struct engine_request *next;
};

struct engine_slot {
	unsigned member; /* index of the member in the world */
	uint64_t data_offset_bytes;
	uint64_t data_bytes;
};

struct engine_config {
	int level; /* md's number */
	uint32_t layout;
	uint32_t chunk_bytes;
	unsigned slot_count;
	const struct engine_slot *slots; /* copied */
	bool readonly;
	unsigned requests_max; /* requests worked on at once; more wait in a queue, unallocated */
	/* Called (if not NULL) for each member I/O that failed, before the request completes. */
	void (*member_error)(void *owner, unsigned device, const struct world_io *io, int error);
	void *owner;
	/* Levels with redundancy: their devices, record and sync state; @slots is not used. */
	const struct engine_redundancy *redundancy;
};

struct engine_counters {
	uint64_t requests[5]; /* by engine_op, completed */
	uint64_t bytes[5];
	uint64_t errors;
	uint64_t member_ios;
};

struct engine_slot_counters {
	uint64_t reads, writes, read_bytes, written_bytes, errors;
};

/*
 * Start an array in @world (not owned). Writes nothing.
 * Errors: those of geometry_new(); -EOPNOTSUPP a level without a table row; -ENOMEM.
 */
int engine_new(const struct engine_config *config, struct world *world, struct engine **ret,
	struct fault *fault);
/* No request may be in flight. */
void engine_free(struct engine *engine);

void engine_submit(struct engine *engine, struct engine_request *request);
/* Hand gathered member I/O to the world; call after each batch of engine_submit(). */
void engine_kick(struct engine *engine);

uint64_t engine_array_bytes(const struct engine *engine);
/* Bytes of one full stripe of data: chunk times data members; 0 where the level has no chunks. */
uint64_t engine_stripe_bytes(const struct engine *engine);
unsigned engine_zone_count(const struct engine *engine);
/*
 * A flush of a member failed, so acknowledged writes may be lost: all later flushes fail with -EIO
 * until the array is started again.
 */
bool engine_is_broken(const struct engine *engine);
unsigned engine_inflight(const struct engine *engine); /* requests not yet done, queued ones too */
size_t engine_memory(const struct engine *engine);
const struct engine_counters *engine_counters(const struct engine *engine);
const struct engine_slot_counters *engine_slot_counters(const struct engine *engine, unsigned slot);

/* Is there a level table row for md level @level? Its name, or NULL. */
const char *engine_level_name(int level);
/* Is it one with redundancy, which wants engine_config.redundancy? */
bool engine_level_is_redundant(int level);

#endif
