/* SPDX-License-Identifier: MIT */
#ifndef STRAKE_ENGINE_STRIPE_H
#define STRAKE_ENGINE_STRIPE_H

/*
 * RAID 4, 5 and 6. The unit of locking, grouping and buffering is the band: the same columns (a
 * range of a chunk) of all blocks of one stripe. Columns do not depend on each other, so bands are
 * independent arrays of one row each.
 *
 * stripe.c        start, end, requests, bands given to who asks for them
 * stripe_cut.c    requests cut into pieces, one per band, and pieces into iovecs
 * stripe_band.c   what every kind of work in a band needs: who can be read, I/O, healing
 * stripe_parity.c the arithmetic over buffers and iovecs
 * stripe_read.c   reads: past the bands where all is well, through them where it is not
 * stripe_write.c  writes: full stripe, read-modify-write, reconstruct-write
 * stripe_sync.c   windows of the background action
 *
 * Work in a band goes over a slice of its columns: all columns that are concerned, or, where
 * sectors cannot be read and redundancy does not suffice for all of them together, one sector
 * after the other, so that exactly what is lost is lost.
 */

#include "engine/devices.h"
#include "engine/record.h"
#include "engine/sync.h"
#include "geometry/stripes.h"

#define STRIPE_SECTOR 512u
#define STRIPE_PIECES 16u /* bands that one request works in at once */

/* What a request or a window wants of one band. */
struct piece {
	struct work *work;      /* NULL: a window's */
	struct stripe_job *job; /* the window's */
	struct piece *next;
	uint64_t stripe;
	uint32_t column; /* where the band begins in the chunk */
	/*
	 * Columns, counted from the band's: of data @first from @first_lo on, of data @last up to
	 * @last_hi, all of those in between. A window wants [first_lo, last_hi) of every slot.
	 */
	unsigned first, last;
	uint32_t first_lo, last_hi;
};

/* A window of the background action. */
struct stripe_job {
	struct sync_window *window;
	unsigned pending;
	int result;
	struct piece *pieces; /* level->job_pieces */
};

/* Reads past the bands: adjacent bytes of one device in one I/O. */
struct run {
	struct world_io io;
	struct stripe_work *owner;
	unsigned slot, device;
	uint64_t member_first, member_end; /* data bytes */
} __attribute__((aligned(ENGINE_ALIGN)));

/* What a work object has in addition. */
struct stripe_work {
	struct work *work;
	/* Being cut into pieces: array bytes, the place reached. */
	uint64_t first_bytes, end_bytes;
	uint64_t stripe;
	uint32_t column;
	bool second_half; /* of a band where first and last data share no column */
	bool cut;         /* all of it */
	unsigned busy;    /* pieces in bands */
	struct piece *free_pieces;
	/* The iovec at hand, and at which byte of the request it begins. */
	unsigned iov_index;
	uint64_t iov_offset;
	/* READ past the bands: one window. */
	struct run *runs; /* level->runs_max */
	unsigned runs_pending;
	uint64_t window_first, window_end; /* array bytes */
	/* Which device failed to give what; ENGINE_NONE: none. Its bytes are not asked for again.
	 */
	unsigned suspect;
	uint64_t suspect_first, suspect_end; /* member data bytes */
	struct stripe_work *next_deferred;
	struct piece pieces[STRIPE_PIECES];
};

/* Where the columns of a block are, in memory. */
enum source {
	SOURCE_NONE,
	SOURCE_BUFFER,
	SOURCE_CALLER, /* block->iov, of the request's buffers */
};

/* A block of a band: data 0, 1, …, then P, then Q. */
struct block {
	uint16_t slot;
	uint16_t index; /* in parity.h's order of a stripe */
	uint8_t source;
	bool bad;        /* could not be read, in this slice, from @bad_device */
	bool writable;   /* the slot has devices to write to */
	bool landed;     /* some device took what was written */
	bool wanted;     /* WRITE: P or Q is to be written. SYNC: is to be rebuilt */
	unsigned device; /* to read from; ENGINE_NONE: the block cannot be read */
	unsigned bad_device;
	uint32_t lo, hi;             /* columns that the group writes or reads */
	uint32_t slice_lo, slice_hi; /* those within the slice */
	uint32_t dirty_lo, dirty_hi; /* SYNC: columns to be written */
	unsigned iov_count, iov_next;
	uint32_t iov_lo, iov_at; /* columns where iov[0], iov[iov_next] begin */
	struct iovec *iov;       /* room for one per sector */
	uint8_t *buffer;
};

struct band_io {
	struct world_io io;
	struct band *band;
	struct block *block;
	unsigned device;
	struct iovec one;
} __attribute__((aligned(ENGINE_ALIGN)));

enum plan {
	PLAN_NONE,        /* nothing can be done with this slice */
	PLAN_WRITE,       /* no parity to keep */
	PLAN_READ_MODIFY, /* old data and parity: parity follows the difference */
	PLAN_RECONSTRUCT, /* data that is not written: parity anew */
	PLAN_RECOVER,     /* as that, but some of it has to be computed from parity first */
};

struct band {
	struct stripe_level *level;
	struct band *next; /* in its hash chain, or in the free list */
	struct band *next_deferred;
	uint64_t stripe;
	uint64_t member_bytes; /* where the band begins in the data of each member */
	uint32_t column;
	bool narrow;  /* sector by sector */
	bool did_io;  /* for this group */
	bool new_bad; /* in this round of reads */
	bool ignore_suspect;
	uint8_t plan;
	struct piece *queue, **queue_last;
	struct piece *group, **group_last; /* worked on; by array offset */
	unsigned first, last;              /* data that the group concerns */
	uint32_t lo, hi;                   /* columns that it concerns */
	uint32_t slice_lo, slice_hi;       /* columns worked on */
	unsigned bad_count;
	unsigned pending, io_count;
	unsigned heal_next;
	int error; /* the first of a write */
	void (*step)(struct band *band);
	void (*healed)(struct band *band);
	struct block *blocks; /* data, P, Q (RAID 6) */
	struct band_io *ios;  /* two per block */
};

struct stripe_level {
	struct engine *engine;
	struct stripes stripes;
	unsigned block_count; /* of a band: slots */
	unsigned exponents;
	uint32_t band_bytes;
	unsigned band_count, bands_used;
	unsigned hash_mask;
	struct band *bands, **hash, *free_bands;
	struct block *blocks;
	struct band_io *ios;
	struct iovec *iovs;
	uint8_t *buffers, *zeros, *scratch;
	uint16_t *slots, *order;               /* scratch of roles: data */
	void **pointers;                       /* scratch of stripe_parity.c: exponents + 2 */
	struct piece *waiting, **waiting_last; /* no band is free for them */
	struct stripe_work *works;
	struct run *runs;
	unsigned runs_max;
	unsigned *run_of; /* scratch of stripe_read.c, per slot */
	struct stripe_job jobs[SYNC_WINDOWS_MAX];
	struct piece *job_pieces;
	/* Ends that nothing else would bring about: from a timer, never inside a submit. */
	struct world_timer timer;
	struct band *deferred_bands;
	struct stripe_work *deferred_works;
};

static inline struct stripe_level *stripe_level(const struct engine *engine)
{
	return engine->redundant->level;
}

static inline struct stripe_work *stripe_work(const struct work *work)
{
	return &stripe_level(work->engine)->works[work - work->engine->works];
}

static inline struct block *band_p(const struct band *band)
{
	return &band->blocks[band->level->stripes.data];
}

/* NULL: RAID 4 and 5. */
static inline struct block *band_q(const struct band *band)
{
	return band->level->stripes.parities == 1 ? NULL : band_p(band) + 1;
}

static inline void piece_columns(
	const struct piece *piece, unsigned data, uint32_t band_bytes, uint32_t *lo, uint32_t *hi)
{
	*lo = data == piece->first ? piece->first_lo : 0;
	*hi = data == piece->last ? piece->last_hi : band_bytes;
}

/* Array byte of a column of the band that @piece wants. */
static inline uint64_t piece_array_bytes(
	const struct stripes *stripes, const struct piece *piece, unsigned data, uint32_t column)
{
	return stripes_array_offset(stripes, piece->stripe, data) + piece->column + column;
}

/* stripe.c: what engine_level wants. */
int stripe_init(struct engine *engine, const struct engine_config *config, struct fault *fault);
void stripe_start(struct work *work);
uint64_t stripe_stripe_bytes(const struct engine *engine);
void stripe_sync_range(const struct engine *engine, uint64_t offset, uint64_t length,
	uint64_t *ret_first, uint64_t *ret_end);
void stripe_sync_window(struct sync_window *window);

/* stripe.c */
/* Work on [@first, @end) of the array in bands; stripe_bands_done() when all of it is done. */
void stripe_through_bands(struct stripe_work *sw, uint64_t first, uint64_t end);
/* @piece waits for its band and is then worked on. */
void stripe_enqueue(struct stripe_level *level, struct piece *piece);
/* The group has been dealt with. */
void band_group_done(struct band *band);
/* End @sw's work from the timer. */
void stripe_defer(struct stripe_work *sw);

/* stripe_cut.c */
void stripe_cut_start(struct stripe_work *sw, uint64_t first, uint64_t end);
/* The next piece of it; false: there is none. */
bool stripe_cut_next(struct stripe_work *sw, struct piece *piece);
/* The iovecs of [@lo, @hi) of @data; returns how many were written to @iov (one per sector at
 * most). */
unsigned piece_gather(struct stripe_level *level, const struct piece *piece, unsigned data,
	uint32_t lo, uint32_t hi, struct iovec *iov);
/* block->iov of @data: all that the group has of it in the slice. */
void band_gather(struct band *band, unsigned data);
/* From or to the buffer, all that the group has of @data in the slice. */
void band_copy_in(struct band *band, unsigned data);
void band_copy_out(struct band *band, unsigned data);

/* stripe_band.c */
/* The group is chosen: work on all its columns at once. */
void band_begin(struct band *band);
/* Redundancy does not suffice: sector by sector. False: that is already so, or would not help. */
bool band_narrow(struct band *band);
/* The slice is dealt with: the next one, or the group is done. */
void band_slice_done(struct band *band);
/* Who can be read and written now. Returns how many data blocks cannot be read. */
unsigned band_survey(struct band *band);
unsigned band_readable_parities(const struct band *band);
/* Read columns of @block to where its source says. A failure makes it bad. */
void band_read(struct band *band, struct block *block, uint32_t lo, uint32_t hi);
/* To all devices of the block's slot. A failure makes the device faulty. */
void band_write(struct band *band, struct block *block, const struct iovec *iov, unsigned iov_count,
	uint64_t bytes, uint32_t lo);
void band_write_buffer(struct band *band, struct block *block, uint32_t lo, uint32_t hi);
void band_write_device(
	struct band *band, struct block *block, unsigned device, uint32_t lo, uint32_t hi);
/* Go on with @step when all I/O is done. */
void band_then(struct band *band, void (*step)(struct band *band));
/*
 * Read what @lost (data blocks that cannot be read) needs for the columns of the slice: all others
 * and as many parities, into the buffers. The sources of lost blocks are their buffers then.
 */
void band_read_for_recovery(struct band *band, unsigned lost, uint32_t lo, uint32_t hi);
/* The buffers of bad blocks hold what they should: rewrite, read again, compare. Then @healed. */
void band_heal(struct band *band, void (*healed)(struct band *band));

/* stripe_parity.c: over columns of all blocks, each where its source says. */
void band_compute_parity(struct band *band, uint32_t lo, uint32_t hi, bool p, bool q);
/* All data blocks that cannot be read, from the others. */
void band_recover(struct band *band, uint32_t lo, uint32_t hi);
/* All blocks are in their buffers: does parity fit? As parity_locate(). */
int band_check(struct band *band, uint32_t lo, uint32_t hi);
/* Compute block @index of parity.h's order from the others, in its buffer. */
void band_recover_one(struct band *band, unsigned index, uint32_t lo, uint32_t hi);

/* stripe_read.c, stripe_write.c, stripe_sync.c: work on the slice, then band_slice_done(). */
void stripe_read_slice(struct band *band);
void stripe_write_slice(struct band *band);
void stripe_sync_slice(struct band *band);
void stripe_read_start(struct stripe_work *sw);
/* All pieces of the window are done. */
void stripe_read_next(struct stripe_work *sw);
void stripe_piece_synced(struct piece *piece);

#endif
