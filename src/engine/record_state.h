/* SPDX-License-Identifier: MIT */
#ifndef STRAKE_ENGINE_RECORD_STATE_H
#define STRAKE_ENGINE_RECORD_STATE_H

/*
 * What the files of the record share.
 *
 * record.c        who asks: changes, writes that want to start, writes that have ended, close
 * record_update.c one update: flush, bad-block logs, bitmap, superblocks, each step durable before
 *                 the next one begins
 * record_super.c  what the superblocks say
 * bitmap.c        the write-intent bitmap
 * badblocks.c     the members' bad-block logs
 *
 * At most one update is in flight; what changes meanwhile goes into the next one. So the
 * superblocks of live members are never more than one event apart.
 */

#include "engine/devices.h"
#include "engine/record.h"
#include "md/badblocks.h"
#include "md/bitmap.h"

#define RECORD_BLOCK_BYTES 4096u /* alignment of everything that is written */
#define BITMAP_SPANS_MAX 64u

/* Steps of an update, in the order in which they are done; those that are not needed are left out.
 */
enum record_step {
	RECORD_IDLE,
	RECORD_FLUSH,   /* what the superblocks will call right is durable on the members */
	RECORD_LOGS,    /* bad-block logs */
	RECORD_HEADER,  /* bitmap: events_cleared, before any bit is cleared */
	RECORD_PAGES,   /* bitmap: header, and pages that have changed */
	RECORD_SUPERS,  /* in three ranks */
	RECORD_TRAILER, /* bitmap: header, if the event count went back */
	RECORD_STEP_END,
};

/*
 * Superblocks go out in ranks, each durable before the next, so that the table of roles in the
 * freshest superblock is true of all others if the update is cut short anywhere. A member that has
 * become whole says so before others drop the one it replaces; one that gets a slot does so only
 * after the others know, or it would be the freshest and alone. Before all that, members that
 * missed an update at the start get that one: two behind would be stale.
 */
enum record_rank { RECORD_BEHIND, RECORD_BETTER, RECORD_SAME, RECORD_NEW, RECORD_RANKS };

struct record_fact {
	enum engine_device_state state;
	unsigned slot;
	bool replacement;
};

struct record_device {
	struct record *record;
	unsigned device; /* its number in the engine */
	bool present;    /* a member with a superblock */
	bool failure_known;
	bool has_bitmap;  /* holds a whole copy that this run has written */
	bool gets_bitmap; /* in this update */
	bool log_is_new;  /* its bad-block log differs from the member's */
	bool log_in_update;
	/* What the superblocks on the members say of it, and what those in flight do. */
	struct record_fact recorded, filled;
	bool is_behind;        /* at the start it missed the latest update */
	bool is_new;           /* joined, and was not recorded yet */
	bool is_filled;        /* it has a superblock in this update, */
	enum record_rank rank; /* that goes out so */
	uint32_t corrected_before;
	uint32_t block_bytes; /* logical block of the member, at most RECORD_BLOCK_BYTES */
	uint64_t bitmap_offset_bytes;
	struct md_super super;
	/* One I/O at a time. */
	struct world_io io;
	struct iovec iov;
	uint64_t flush_covers;
	unsigned page;    /* of the bitmap, that comes next */
	uint8_t *block;   /* superblock to be written, */
	uint8_t *written; /* and as the member has it */
	uint8_t *log;
	struct md_badblocks bad;
};

/* A range of the sync address space that was made whole while its bits are not yet all so. */
struct bitmap_span {
	uint64_t first, end;
};

enum bitmap_flag { /* of a bit */
	BIT_SET = 0x1,
	BIT_DURABLE = 0x2, /* set on all members */
	BIT_NEEDS = 0x4,   /* needs sync */
	BIT_AGE = 0x8,     /* runs of the daemon without a write, times this */
	BIT_AGES = 0x18,
};

enum bitmap_page_flag {
	PAGE_SET = 0x1,     /* has bits that the members lack */
	PAGE_CLEARED = 0x2, /* lacks bits that the members have */
	PAGE_NOW = 0x4,     /* goes out in this update */
};

struct bitmap {
	struct md_bitmap header;  /* events and events_cleared as they shall be */
	uint64_t cleared_written; /* events_cleared as the members have it */
	uint64_t bits;
	unsigned shift;   /* log2 of the sync bytes of a bit */
	uint64_t dirty;   /* bits that are set */
	uint64_t needing; /* bits that need sync; each is set */
	uint16_t *writes; /* by bit: in flight */
	uint8_t *flags;   /* by bit */
	size_t bytes;     /* of the area on a member */
	unsigned pages;
	uint8_t *page_flags;
	uint32_t *page_dirty;        /* by page: bits that are set */
	uint8_t *image;              /* the area as it shall be */
	uint8_t *out;                /* the area as it is being written, or was */
	bool have_sets, have_clears; /* some page has that flag */
	bool clears_due;             /* write them now */
	bool daemon_due;             /* the daemon ran into an update */
	struct bitmap_span spans[BITMAP_SPANS_MAX];
	unsigned span_count;
	struct world_timer daemon;
};

/* What one update is about. */
struct record_update {
	uint64_t generation; /* of the state that it makes durable */
	bool supers;
	bool back;  /* the event count goes back by one */
	bool again; /* a member that is gone may have the same count: one more makes it durable */
	uint64_t events_before, peak_before;
	bool flush;
	bool closing;
	bool clears;      /* bits are cleared on the members */
	uint64_t cleared; /* events_cleared in the bitmap's header */
	bool serial;      /* superblocks one by one: a power cut could leave one torn */
	int error;
	/* Position of the step in progress. */
	enum record_step step;
	enum record_rank rank;
	unsigned device;
	unsigned pending;
};

struct work_list {
	struct work *first, *last; /* by next_held */
};

struct record {
	/* What every write looks at. */
	bool kept;
	bool active_durable; /* marked active on all members */
	bool busy;           /* a write began or ended since the last tick of safe mode */
	unsigned writes;     /* admitted or waiting for it */
	struct bitmap *bitmap;

	struct engine *engine;
	bool active; /* as the latest update says */
	bool degraded;
	bool can_decrease; /* the latest update was nothing but clean to active */
	bool sealed;       /* read-only: nothing is written */
	bool touched;      /* something was written, or is to be */
	bool stalled;      /* an update failed without a consequence: not again of its own accord */
	bool closing;
	bool want_clean; /* idle for long enough */
	bool twice;      /* a member failed: one update more than is needed */
	unsigned idle_ticks;
	uint64_t peak_events; /* highest count that any member may have */
	uint64_t safe_mode_ns;
	uint64_t generation; /* of the state; durable, and at the latest failure of a member */
	uint64_t durable_generation, failure_generation;
	struct record_waiter *waiters, **waiters_last, *closer;
	struct work_list wanting; /* writes for the next update, */
	struct work_list flying;  /* and for the one in flight */
	struct work_list held;
	struct record_update update;
	struct record_device *devices; /* by the engine's number */
	struct md_super master;        /* what all superblocks have in common */
	struct world_timer wake;       /* due at once: so that nothing happens inside a caller */
	struct world_timer safe_mode;
};

static inline struct record *record_of(const struct engine *engine)
{
	return engine->redundant->record;
}

/* Is this a member that superblocks are written to? */
static inline bool record_device_lives(const struct record_device *d)
{
	enum engine_device_state state = d->record->engine->devices[d->device].state;

	return d->present && state != ENGINE_DEVICE_FREE && state != ENGINE_DEVICE_FAULTY;
}

static inline bool record_device_wants_bitmap(const struct record_device *d)
{
	return d->present && d->record->bitmap != NULL &&
	       device_is_written(d->record->engine, d->device);
}

/* record.c */
void record_schedule(struct record *record);
/* The update in flight has ended, with update.error. */
void record_update_ended(struct record *record);

/* Something that requests depend on has changed: they wait until it is durable. */
void record_must_be_durable(struct record *record);

/* badblocks.c */
/* The log of @d as it is on the member; NULL: it is not used. -EINVAL: then it must be empty. */
int badblocks_take(struct record_device *d, const struct md_super *super,
	const struct md_badblocks *bad, struct fault *fault);
/* Encode the logs that go out in the next update. True: there are some. */
bool badblocks_fill(struct record *record);
void badblocks_update_ended(struct record *record, bool done);

/* record_update.c */
void record_update_start(struct record *record);

/* record_super.c */
int record_super_init(
	struct record *record, const struct engine_redundancy *redundancy, struct fault *fault);
void record_super_adopt(
	struct record *record, struct record_device *d, const struct engine_device *device);
unsigned record_super_free_number(const struct record *record);
bool record_super_number_is_free(const struct record *record, unsigned number);
/* The superblocks of the next update, encoded into the devices' blocks; ranks and all. */
void record_super_fill(struct record *record, uint64_t resync_offset);
size_t record_super_bytes(const struct record_device *d);

/* bitmap.c */
int bitmap_new(
	struct record *record, const struct engine_redundancy *redundancy, struct fault *fault);
void bitmap_free(struct record *record);
/* Where @d has its copy. */
int bitmap_place(struct record *record, struct record_device *d, struct fault *fault);
/* True: the bits of @work are durable, and count its write. */
bool bitmap_admit(struct record *record, const struct work *work);
/* Set the bits of @work and count its write; they become durable with the next update. */
void bitmap_want(struct record *record, const struct work *work);
/* The update that was to write the bits of @work has done so. */
void bitmap_is_durable(struct record *record, const struct work *work);
void bitmap_release(struct record *record, const struct work *work, bool clean);
/* Clear all that may be cleared, however lately it was written. */
void bitmap_clear_idle(struct record *record);
/* What members need sync for has gone, if all is in sync; arm the daemon if it has work. */
void bitmap_consider(struct record *record);
/* Choose the pages of this update; header and all pages of it are copied when they go out. */
void bitmap_choose_pages(struct record *record);
void bitmap_copy_header(struct record *record, uint64_t events, uint64_t events_cleared);
void bitmap_copy_pages(struct record *record);
/* The next run of pages for @d, and where it lies in the area; false: none. */
bool bitmap_next_run(struct record_device *d, size_t *ret_offset, size_t *ret_length);
/* @done: all of its pages are durable on all members that live. */
void bitmap_update_ended(struct record *record, bool done);

#endif
