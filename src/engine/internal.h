/* SPDX-License-Identifier: MIT */
#ifndef STRAKE_ENGINE_INTERNAL_H
#define STRAKE_ENGINE_INTERNAL_H

/*
 * What the engine's own files share: the engine's state, the work objects that requests borrow
 * while they are in progress, and the table of levels.
 */

#include "engine/engine.h"
#include "geometry/geometry.h"

/* Longest iovec handed to a member at once; the kernel takes 1024 (IOV_MAX). */
#define ENGINE_IOV_MAX 512u

/* One member I/O of a request, with the array range that depends on it. */
struct part {
	struct world_io io;
	struct work *work;
	unsigned slot;
	uint64_t array_first; /* bytes; for failures */
	uint64_t array_end;
	uint64_t flush_covers; /* FLUSH: writes up to this number become durable */
};

/* A request in progress. Pooled: engine_config.requests_max of them exist. */
struct work {
	struct engine *engine;
	struct engine_request *request;
	struct work *next_free;
	uint64_t next_offset; /* array byte where the next window starts */
	unsigned iov_index;   /* position in the request's iovecs that belongs to next_offset */
	size_t iov_skip;      /* bytes */
	unsigned pending;     /* parts given to the world and not yet done */
	struct part *parts;   /* one per slot, by slot */
	struct iovec *iov;    /* ENGINE_IOV_MAX, shared out among the parts of a window */
};

struct slot_state {
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
	unsigned inflight;
	uint64_t array_bytes;
	uint32_t chunk_bytes;
	void (*member_error)(void *owner, unsigned slot, const struct world_io *io, int error);
	void *owner;
	size_t memory_bytes;
	struct engine_counters counters;
	struct slot_state *slots;
	struct work *works;
	struct work *free_works;
	struct part *parts;                                     /* storage behind work.parts */
	struct iovec *iovs;                                     /* storage behind work.iov */
	struct engine_request *waiting_first, **waiting_last;   /* no work object free */
	struct engine_request *finished_first, **finished_last; /* done() due at the next kick */
	/* Scratch of cut_window(), used within one call only. */
	struct cut *cuts;   /* ENGINE_IOV_MAX */
	unsigned *touched;  /* slots of the window, in order of appearance */
	unsigned *per_slot; /* cuts per slot; all zero between calls */
};

/*
 * A level: facts as data, arithmetic as functions. A new level is one file in level/ and one line
 * in the table of level.c.
 */
struct engine_level {
	int level; /* md's number */
	const char *name;
	unsigned slots_min;
	/* Submit parts for work->request; work_finish() when the last is done. */
	void (*start)(struct work *work);
};

extern const struct engine_level engine_level_linear;
extern const struct engine_level engine_level_raid0;

const struct engine_level *engine_level_find(int level);

/* spread.c: levels whose bytes each live in exactly one place. */
void spread_start(struct work *work);
/* flush.c: every level flushes alike. */
void flush_start(struct work *work);

/* engine.c, for the levels. */
/* Give the part of @slot, whose io is filled but for member and place, to the world. */
void part_submit(struct part *part, uint64_t data_offset_bytes);
/* Remember that the array range of @part failed with @error. */
void work_fail(struct work *work, const struct part *part, int error);
/* All parts are done: complete the request, give the work object to the next in line. */
void work_finish(struct work *work);
/* The same from within the submitter's stack, for a request that needed no part at all. */
void work_finish_later(struct work *work);

#endif
