/* SPDX-License-Identifier: MIT */
#ifndef STRAKE_ENGINE_SYNC_INTERNAL_H
#define STRAKE_ENGINE_SYNC_INTERNAL_H

/*
 * The parts of the background action:
 *
 * sync.c        what is to be done now, and what users ask for
 * sync_walk.c   windows over the address space, low-water mark, flushes
 * sync_end.c    beginning, checkpoints and end of each kind of action
 * sync_found.c  what check and repair found
 * sync_pace.c   how fast it may go
 *
 * Everything is done from one world timer; whoever calls from elsewhere only leaves a note and arms
 * that timer. So nothing here ever runs inside a level's or a client's stack.
 */

#include "engine/devices.h"
#include "engine/record.h"
#include "engine/sync.h"

#define PACE_MARKS 8u

/* How fast windows may start. Bytes are those of the address space that is walked. */
struct sync_pace {
	uint64_t min, max; /* bytes per second */
	/* When the next window would be due if it went at exactly these rates. */
	uint64_t min_due_ns, max_due_ns;
	uint64_t requests;     /* of clients, completed until the latest look */
	uint64_t busy_ns;      /* clients were seen last */
	uint64_t gap_until_ns; /* clients are there: leave them alone until then */
	/* Speed over the last seconds. */
	uint64_t done_bytes;
	struct {
		uint64_t ns, bytes;
	} marks[PACE_MARKS];
	unsigned mark_count, newest_mark;
};

enum sync_phase {
	SYNC_RESTS,
	SYNC_WALKS,
	SYNC_DRAINS, /* interrupted: no new windows */
	SYNC_ENDS,   /* all windows are done: flush, then the end */
};

struct sync_place {
	struct sync_window window;
	bool busy;
	uint64_t issued_ns;
	uint64_t counted_end; /* mismatches are counted up to here */
};

struct sync_flush {
	struct world_io io;
	struct sync *sync;
	unsigned device;
	uint64_t covers;
};

struct sync {
	struct engine *engine;
	struct world_timer timer;
	enum sync_phase phase;
	enum engine_action action; /* that runs; IDLE */
	bool look;                 /* sync_consider() was called */
	bool frozen, paused;
	bool interrupted; /* the walk ends before its end */
	void (*stopped)(struct engine *engine);
	enum engine_action request; /* CHECK or REPAIR, asked for and not yet done; IDLE */
	uint64_t request_from;      /* goes on here after a pause */

	/*
	 * Where a resync is pending: from resync_bytes as far as is durable on the members, from
	 * consistent_below as of now. UINT64_MAX: nowhere.
	 */
	uint64_t resync_bytes, consistent_below;

	/* The walk. All windows below low_bytes are done; what they wrote below settled_bytes is
	 * durable. */
	uint64_t first_bytes, next_bytes, end_bytes;
	uint64_t low_bytes, settled_bytes, recorded_bytes;
	uint64_t settled_ns, recorded_ns;
	bool by_bitmap; /* skip what needs no sync */
	unsigned inflight;
	struct sync_place places[SYNC_WINDOWS_MAX];

	bool flushing;
	unsigned flush_pending;
	uint64_t flush_low_bytes; /* what the flush makes durable */
	struct sync_flush *flushes;

	/* Windows that failed and were not dealt with yet, merged; and how many there were. */
	uint64_t lost_first, lost_end;
	bool lost;
	unsigned lost_count;

	uint64_t mismatch_sectors;
	unsigned mismatch_count;
	struct engine_mismatch mismatches[ENGINE_MISMATCHES_MAX];

	struct sync_pace pace;
};

/* sync.c */
/* Run the timer at @due_ns, or earlier if it is armed so. */
void sync_wake(struct sync *sync, uint64_t due_ns);
void sync_wake_now(struct sync *sync);
/* Would a walk find anything to compare or to make equal? */
bool sync_has_redundancy(const struct engine *engine);
const char *sync_action_name(enum engine_action action);

/* sync_walk.c */
void sync_walk_start(struct sync *sync, enum engine_action action, uint64_t first, uint64_t end);
void sync_walk_interrupt(struct sync *sync);
/* Whatever can be done now: a flush that ended, windows to start, the end. */
void sync_walk_advance(struct sync *sync);

/* sync_end.c */
/* Begin @action; false if there is nothing to walk over. */
bool sync_begin(struct sync *sync, enum engine_action action);
/* What is below settled_bytes is durable now; it was @before until now. */
void sync_settled(struct sync *sync, uint64_t before);
void sync_end(struct sync *sync);
/* Windows could not be made whole: say so, give up the rebuilds concerned. */
void sync_deal_with_lost(struct sync *sync);
/* A replacement is in sync beside the device that it replaces: that one goes. */
void sync_finish_replacements(struct engine *engine);
bool sync_has_rebuilding(const struct engine *engine, bool walked_only);
bool sync_has_takeover(const struct engine *engine);

/* sync_found.c */
void sync_found_reset(struct sync *sync);
void sync_found_tell(struct sync *sync);

/* sync_pace.c */
void pace_set(struct sync_pace *pace, uint64_t min, uint64_t max);
void pace_start(struct sync_pace *pace, uint64_t now_ns);
/* Look whether clients are there. */
void pace_look(struct sync_pace *pace, const struct engine *engine, uint64_t now_ns);
/* 0: a window may start now, with @inflight others under way; else when to ask again. */
uint64_t pace_wait(const struct sync_pace *pace, uint64_t now_ns, unsigned inflight);
void pace_issued(struct sync_pace *pace, uint64_t now_ns, uint64_t bytes);
void pace_done(struct sync_pace *pace, uint64_t now_ns, uint64_t issued_ns, uint64_t bytes);
uint64_t pace_speed(const struct sync_pace *pace, uint64_t now_ns);

#endif
