/* SPDX-License-Identifier: MIT */
#ifndef STRAKE_ENGINE_MIRROR_H
#define STRAKE_ENGINE_MIRROR_H

/*
 * RAID 1 and RAID 10: every byte of the array lives on several slots.
 *
 * mirror.c        requests: locked, cut into member I/O, completed
 * mirror_read.c   which copy is read, and reads whose copy failed
 * mirror_step.c   one range on all its copies: read, judged, made equal
 * mirror_sync.c   windows of resync, recovery, check and repair, as steps
 */

#include "engine/devices.h"
#include "engine/record.h"
#include "engine/sync.h"
#include "geometry/mirrors.h"

/*
 * A range of the array that somebody writes. Ranges that overlap are written one after the other,
 * in the order in which they were asked for: so all copies end up with the same bytes, and a
 * window of the background action never copies what is just being overwritten.
 */
struct range_lock {
	uint64_t first_bytes, end_bytes;
	bool granted;
	void (*locked)(struct range_lock *lock); /* told later, if it could not be had at once */
	void *owner;
	struct range_lock *next, *previous;
};

/* One member I/O of a request. */
struct mirror_io {
	struct world_io io;
	struct work *work;
	unsigned device;
	uint64_t member_first, member_end; /* data bytes */
	uint64_t array_first, array_end;
} __attribute__((aligned(ENGINE_ALIGN)));

/* What a work object has in addition. */
struct mirror_work {
	struct work *work;
	struct range_lock lock;
	struct mirror_io *ios; /* ios_max */
	unsigned io_count;
	/* READ: what the chosen copies could not give; empty if first is not below end. */
	uint64_t failed_first, failed_end;
	struct mirror_work *next_repair;
};

enum mirror_purpose {
	MIRROR_ANSWER, /* a client's read failed on the copy that was chosen */
	MIRROR_CHECK,
	MIRROR_EQUALISE, /* resync, repair */
	MIRROR_REBUILD,  /* one device */
};

enum mirror_read {
	MIRROR_NOT_READ, /* no device, or not asked */
	MIRROR_READ_WELL,
	MIRROR_READ_BADLY,
};

/* What speaks against reading a copy; compared field by field. */
struct mirror_cost {
	bool write_mostly;
	unsigned inflight; /* 0: it goes on where it was read last */
	uint64_t distance;
};

struct mirror_step_io {
	struct world_io io;
	struct mirror_step *step;
	struct iovec iov;
	unsigned copy, device;
	bool verify; /* written because it could not be read: read again afterwards */
} __attribute__((aligned(ENGINE_ALIGN)));

/*
 * A walk in steps over a range. Each step is a range that is contiguous on every copy: it is
 * locked, its copies are read, judged, written where they are wrong, and unlocked. Where no copy
 * can be read the walk goes sector by sector, so that exactly what is lost is told.
 */
struct mirror_step {
	struct engine *engine;
	enum mirror_purpose purpose;
	struct work *work;          /* ANSWER */
	struct sync_window *window; /* the others */
	unsigned target;            /* REBUILD: the device; ENGINE_NONE for the others */
	/* The walk: array bytes; REBUILD: bytes of the target's data. */
	uint64_t at_bytes, end_bytes;
	uint64_t sectors_until; /* sector by sector while at_bytes is below */
	int result, window_result;
	void (*done)(struct mirror_step *step); /* called by the timer, or from a completion */
	struct world_timer timer;

	/* The step. */
	struct range_lock lock; /* its range in the array */
	struct geometry_piece *places;
	unsigned copies; /* places of them */
	unsigned target_copy;
	bool read_one;  /* one copy is enough, as long as it can be read */
	uint8_t *right; /* the bytes that all copies should have */
	unsigned pending;
	enum mirror_read *read; /* [copies] */
	unsigned *read_device;  /* [copies] */
	/* [3 * copies]: reads use the first of them, writes all: each copy at most its two devices,
	   and the one that could not be read. */
	struct mirror_step_io *ios;
	unsigned write_count, write_next;
	/* [copies + 2] of step_bytes: the last two to read again what was rewritten, and to put
	   together what is right. */
	uint8_t *buffers;
};

struct mirror {
	struct mirrors geometry;
	unsigned ios_max;    /* per work */
	uint32_t step_bytes; /* longest step */
	bool single_runs;    /* windows of one run: RAID 1, or more copies than iovecs */
	struct mirror_work *works;
	struct mirror_io *ios;
	struct range_lock *first_lock, *last_lock;
	unsigned locks_waiting;
	uint64_t *read_end; /* by device: where it was read last */
	/* Scratch of one call. */
	struct geometry_piece *places;  /* [copies] */
	unsigned *devices, *copies;     /* [2 * copies]: where a piece goes */
	struct mirror_work *repairs;    /* reads that wait for another copy, first in first out */
	struct mirror_step answer_step; /* busy while there are repairs */
	struct mirror_step steps[SYNC_WINDOWS_MAX];
	/* Storage behind the steps. */
	struct geometry_piece *step_places;
	enum mirror_read *step_read;
	unsigned *step_devices;
	uint8_t *step_buffers;
	struct mirror_step_io *step_ios;
};

static inline struct mirror *mirror_of(const struct engine *engine)
{
	return engine->redundant->level;
}

static inline struct mirror_work *mirror_work_of(const struct work *work)
{
	return &mirror_of(work->engine)->works[work - work->engine->works];
}

int mirror_init(struct engine *engine, const struct engine_config *config, struct fault *fault);
void mirror_start(struct work *work);
void mirror_sync_range(const struct engine *engine, uint64_t offset, uint64_t length,
	uint64_t *ret_first, uint64_t *ret_end);
void mirror_sync_window(struct sync_window *window);
uint64_t mirror_stripe_bytes(const struct engine *engine);

/* mirror.c */
/* Ask for @lock (range, locked and owner are set). True: it is held now. */
bool mirror_lock(struct mirror *mirror, struct range_lock *lock);
/* Give it back; those who waited for it are told from here. */
void mirror_unlock(struct mirror *mirror, struct range_lock *lock);
/* All that the window of @work wanted was done, or is known to be lost: go on. */
void mirror_window_ended(struct work *work);

/* mirror_read.c */
/*
 * The device to read a run from that has the copies @places, and in *@ret_copy which of them it
 * is; ENGINE_NONE if no device can be read. @consistent: no resync is pending here.
 */
unsigned mirror_choose(const struct engine *engine, const struct geometry_piece *places,
	uint64_t length, bool consistent, unsigned *ret_copy);
/* Answer [failed_first, failed_end) from other copies, then mirror_window_ended(). */
void mirror_repair(struct mirror_work *repair);

/* mirror_step.c */
/* Walk; step->done() when at_bytes has reached end_bytes. May complete nothing from inside. */
void mirror_walk(struct mirror_step *step);

#endif
