/* SPDX-License-Identifier: MIT */
#ifndef STRAKE_ENGINE_INTERNAL_H
#define STRAKE_ENGINE_INTERNAL_H

/*
 * What the engine's own files share: the engine's state, the work objects that requests borrow
 * while they are in progress, and the table of levels.
 */

#include "engine/engine.h"
#include "geometry/geometry.h"

struct redundant;
struct sync_window;

/* Longest iovec handed to a member at once; the kernel takes 1024 (IOV_MAX). */
struct redundant;
struct sync_window;

#define ENGINE_IOV_MAX 512u

/* Pooled objects start at a cache line: neighbours in the pool are in flight at the same time. */
#define ENGINE_ALIGN 64u

/* One member I/O of a request, with the array range that depends on it. */
struct part {
	struct world_io io;
	struct work *work;
	unsigned device;      /* its number: the index of this part among its work's */
	uint64_t array_first; /* bytes; for failures */
	uint64_t array_end;
	uint64_t flush_covers; /* FLUSH: writes up to this number become durable */
} __attribute__((aligned(ENGINE_ALIGN)));

/*
 * A request in progress. Pooled: engine_config.requests_max of them exist. A request that lies on
 * one member uses the embedded io and touches nothing behind next_free: two cache lines. The tag of
 * that io is the slot.
 */
struct work {
	struct world_io io;
	struct engine *engine;
	struct engine_request *request;
	struct work *next_free;

	struct part *parts;     /* one per device, by its number */
	uint64_t next_offset;   /* array byte where the next window starts */
	unsigned pending;       /* parts given to the world and not yet done */
	unsigned iov_index;     /* position in the request's iovecs that belongs to next_offset */
	size_t iov_skip;        /* bytes */
	struct work *next_held; /* record.c: waits for the record to be durable */
	struct iovec *iov;      /* ENGINE_IOV_MAX, shared out among the parts of a window */
} __attribute__((aligned(ENGINE_ALIGN)));

_Static_assert(offsetof(struct work, parts) <= 2 * ENGINE_ALIGN, "the fast path's two cache lines");

/*
 * A member of the array. Without redundancy device i is slot i; with it devices are numbered on
 * their own, and redundant.active[] says which one stands in a slot.
 */
struct device {
	struct engine_slot where;
	struct engine_slot_counters counters;
	/*
	 * Writes are numbered as they complete. A flush covers those that had completed when it was
	 * submitted; while one covers all, another flush has nothing to do here. The first flush
	 * always does: whoever ran the array before may have left unflushed writes.
	 */
	uint64_t written;
	uint64_t flushed;
	/* A flush failed: acknowledged writes may be gone for good, so all later flushes fail too.
	 */
	bool flush_lost;

	/* Levels with redundancy (devices.h). */
	enum engine_device_state state;
	unsigned slot; /* ENGINE_NONE: a spare */
	bool replacement, write_mostly, failfast;
	uint64_t recovered_bytes; /* REBUILDING: in sync below, in member data bytes */
	unsigned inflight;        /* member I/O of any kind */
	uint32_t corrected_reads; /* sectors read wrongly, rewritten and then read well */
	/* sync.c: the recovery that runs rebuilds it from its start; it could not be rebuilt, so it
	 * is not tried again by itself; it misses no more than what the bitmap knows. */
	bool rebuilds, given_up, by_bitmap;
};

/* A piece of a window while it is being cut. */
struct cut {
	unsigned slot;
	struct iovec iov;
};

struct engine {
	struct world *world;
	struct geometry *geometry;
	const struct engine_level *level;
	bool readonly;
	bool delivering; /* deliver_finished() is on the stack */
	unsigned slot_count;
	unsigned device_max; /* of devices[]; slot_count without redundancy */
	unsigned inflight, inflight_writes;
	uint64_t array_bytes;
	uint32_t chunk_bytes;
	uint32_t layout;
	void (*member_error)(void *owner, unsigned slot, const struct world_io *io, int error);
	void *owner;
	size_t memory_bytes;
	struct taken *taken; /* all of it; start.c */
	struct engine_counters counters;
	struct device *devices;
	struct work *works;
	struct work *free_works;
	struct part *parts;                                     /* storage behind work.parts */
	struct iovec *iovs;                                     /* storage behind work.iov */
	struct engine_request *waiting_first, **waiting_last;   /* no work object free */
	struct engine_request *finished_first, **finished_last; /* done() due at the next kick */
	/* Scratch of cut_window(), used within one call only. */
	struct cut *cuts;            /* ENGINE_IOV_MAX */
	unsigned *touched;           /* slots of the window, in order of appearance */
	unsigned *per_slot;          /* cuts per slot; all zero between calls */
	struct redundant *redundant; /* NULL: the level has no redundancy */
};

/*
 * A level: facts as data, arithmetic as functions. A new level is one file in level/ and one line
 * in the table of level.c.
 */
struct engine_level {
	int level; /* md's number */
	const char *name;
	unsigned slots_min;
	/*
	 * Submit parts for work->request; work_finish() when the last is done, work_end() if the
	 * level has redundancy. Never FLUSH (flush.c) and never an empty range.
	 */
	void (*start)(struct work *work);

	/* The rest is for levels with redundancy only. */
	bool redundant;
	/* Take memory (engine_take()), check numbers, set array_bytes and redundant->sync_bytes. */
	int (*init)(struct engine *engine, const struct engine_config *config, struct fault *fault);
	/* Smallest range of the sync address space that a write to this array range touches. */
	void (*sync_range)(const struct engine *engine, uint64_t offset, uint64_t length,
		uint64_t *ret_first, uint64_t *ret_end);
	/*
	 * Make one window whole, or look whether it is (sync.h). Asynchronous; excludes client
	 * writes to the window while it works; ends with sync_window_done().
	 */
	void (*sync_window)(struct sync_window *window);
	uint64_t (*stripe_bytes)(const struct engine *engine);
};

extern const struct engine_level engine_level_linear;
extern const struct engine_level engine_level_raid0;
extern const struct engine_level engine_level_raid1;
extern const struct engine_level engine_level_raid4;
extern const struct engine_level engine_level_raid5;
extern const struct engine_level engine_level_raid6;
extern const struct engine_level engine_level_raid10;

const struct engine_level *engine_level_find(int level);

/* spread.c: levels whose bytes each live in exactly one place. */
void spread_start(struct work *work);
/* start.c: zeroed, cache-line aligned memory that lives as long as the engine and is counted. */
void *engine_take(struct engine *engine, size_t count, size_t size);
/*
 * The same for buffers, with any content: not touched before it is used, so that who never needs it
 * does not have it; in huge pages where the system gives them unasked.
 */
#define ENGINE_BUFFER_ALIGN (2u << 20)
void *engine_take_buffers(struct engine *engine, size_t bytes);
/* flush.c: every level flushes alike. */
void flush_start(struct work *work);

/* engine.c, for the levels. */
/*
 * Fill in where @io, @offset_in_data bytes into the data of @device, goes, and give it to the
 * world.
 */
void device_submit(
	struct engine *engine, unsigned device, struct world_io *io, uint64_t offset_in_data);
/* The same at a byte of the member itself, for what lies outside the data. */
void device_submit_at(
	struct engine *engine, unsigned device, struct world_io *io, uint64_t member_offset);
/* As device_submit() for a part, which then counts as pending. */
void part_submit(struct part *part, uint64_t offset_in_data);
/* Count @io of @device, done with @result; tell the log of a failure. To be called once per I/O. */
void device_account(struct engine *engine, unsigned device, const struct world_io *io, int result);
/* Remember that the array range [@first, @end) failed with @error. */
void work_fail(struct work *work, uint64_t first, uint64_t end, int error);
/* Nothing is pending: complete the request, give the work object to the next in line. */
void work_finish(struct work *work);
/*
 * Levels with redundancy end a request so: bitmap bits are given back, and if a member failed, the
 * request completes only when the other members' superblocks say so durably.
 */
void work_end(struct work *work);
/* The same from within the submitter's stack, for a request that needed no part at all. */
void work_finish_later(struct work *work);

#endif
