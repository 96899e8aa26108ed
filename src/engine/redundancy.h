/* SPDX-License-Identifier: MIT */
#ifndef STRAKE_ENGINE_REDUNDANCY_H
#define STRAKE_ENGINE_REDUNDANCY_H

/*
 * What arrays with redundancy (RAID 1, 4, 5, 6, 10) have beyond the others: devices that fail, are
 * added and rebuilt; a record of that on the members (superblocks, write-intent bitmap); a
 * background action that makes the redundancy whole or looks whether it is.
 *
 * A device is a member in whatever role: in a slot, replacing the one in a slot, or spare. The
 * engine numbers devices as they come; a number is free again after the device was removed.
 *
 * The sync address space is what md counts resync, bitmap and checkpoints in: bytes of a member's
 * data for RAID 1, 4, 5 and 6, bytes of the array for RAID 10 (specification 1.6, 3.1).
 */

#include <stdbool.h>
#include <stdint.h>

#include "md/badblocks.h"
#include "md/bitmap.h"
#include "md/super.h"
#include "util/fault.h"

struct engine;

#define ENGINE_NONE UINT32_MAX /* no device, no slot, no world member */

enum engine_device_state {
	ENGINE_DEVICE_FREE, /* the number is not in use */
	ENGINE_DEVICE_SPARE,
	ENGINE_DEVICE_REBUILDING, /* has a slot; in sync below recovered_bytes only */
	ENGINE_DEVICE_IN_SYNC,
	ENGINE_DEVICE_FAULTY, /* not touched any more */
};

struct engine_device {
	unsigned member; /* index of the member in the world */
	unsigned slot;   /* ENGINE_NONE: a spare */
	bool in_sync;    /* else rebuilding, from recovered_bytes */
	bool replacement;
	bool write_mostly, failfast;
	uint64_t recovered_bytes; /* member data bytes */
	uint64_t data_offset_bytes;
	uint64_t data_bytes;
	uint32_t logical_block_bytes; /* of the member; superblock writes keep to it */
	/* The member's own superblock; copied. NULL if the array keeps no record (--build). */
	const struct md_super *super;
	/*
	 * Its bad-block log, decoded (empty if the superblock lacks the feature); copied. NULL: the
	 * log is not used, and what cannot be made right fails the member; not allowed if the
	 * superblock says that there are bad blocks.
	 */
	const struct md_badblocks *bad;
};

/* The write-intent bitmap as read from a member, or as it was just created. */
struct engine_bitmap {
	struct md_bitmap header;
	const uint8_t *bits; /* little-endian bits as on disk, md_bitmap_bits() of them; copied */
	bool stale;          /* all bits count as set (3.5) */
	/* Device sector on each member follows from its superblock (md_bitmap_location()). */
};

struct engine_redundancy {
	uint64_t component_bytes;            /* used size of each member */
	uint64_t resync_bytes;               /* consistent below; UINT64_MAX: everywhere (clean) */
	const struct engine_device *devices; /* copied */
	unsigned device_count;
	unsigned device_max; /* numbers that can be in use at once, spares and replacements too */
	const struct engine_bitmap *bitmap; /* NULL: none */
	uint64_t safe_mode_ns; /* idle time after which the array is marked clean; 0: 200 ms */
	uint64_t sync_speed_min, sync_speed_max; /* bytes per second and member; 0: md's defaults */
	/* What the log should hear; may be NULL. @text is one line, without the array's name. */
	void (*event)(void *owner, const char *text);
};

/* The background action that runs, or is asked for. md's sync_action words. */
enum engine_action {
	ENGINE_ACTION_IDLE,
	ENGINE_ACTION_RESYNC,
	ENGINE_ACTION_RECOVERY,
	ENGINE_ACTION_CHECK,
	ENGINE_ACTION_REPAIR,
	ENGINE_ACTION_FROZEN, /* nothing runs, nothing starts */
};

/* A range that check found inconsistent. */
struct engine_mismatch {
	uint64_t sync_offset_bytes, length_bytes;
	unsigned slot; /* whose content is wrong; ENGINE_NONE: cannot tell */
};
#define ENGINE_MISMATCHES_MAX 256u

struct engine_device_status {
	enum engine_device_state state;
	unsigned member, slot, dev_number;
	bool replacement, write_mostly, failfast;
	uint64_t recovered_bytes;
	uint64_t data_offset_bytes, data_bytes;
	uint32_t corrected_reads;
	unsigned bad_ranges; /* entries of its bad-block log: what it does not hold */
	uint64_t reads, writes, read_bytes, written_bytes, errors;
};

struct engine_status {
	bool active; /* marked as being written; else clean */
	bool readonly;
	bool failed; /* too many devices are gone: writes and many reads fail */
	unsigned slots, in_sync, devices;
	uint64_t events;
	uint64_t update_seconds; /* of the latest superblock */
	uint64_t resync_bytes;   /* UINT64_MAX: nothing to resync */
	enum engine_action action;
	uint64_t position_bytes, total_bytes; /* of the action, in sync space (recovery: member) */
	uint64_t speed_bytes_s;               /* over the last seconds */
	uint64_t mismatch_sectors;            /* of the last check or repair, in md's counting */
	unsigned mismatch_count;              /* entries of mismatches[], the first ones found */
	const struct engine_mismatch *mismatches;
	uint32_t bitmap_chunk_bytes; /* 0: no bitmap */
	uint64_t bitmap_bits, bitmap_dirty;
	uint64_t sync_speed_min, sync_speed_max;
};

/* False for levels without redundancy; then *@ret is not touched. */
bool engine_status(const struct engine *engine, struct engine_status *ret);
unsigned engine_device_max(const struct engine *engine);
void engine_device_status(
	const struct engine *engine, unsigned device, struct engine_device_status *ret);

enum engine_verb {
	ENGINE_FAIL,       /* @device becomes faulty */
	ENGINE_REMOVE,     /* @device (faulty or spare) leaves the array; its number becomes free */
	ENGINE_ADD,        /* @add joins as a spare, and is rebuilt if a slot is vacant */
	ENGINE_RE_ADD,     /* @add takes its former slot back; only what changed is copied */
	ENGINE_REPLACE,    /* @device is copied to a spare (@with or any), then becomes faulty */
	ENGINE_SYNC,       /* @action: IDLE (interrupt), CHECK, REPAIR, RESYNC, FROZEN */
	ENGINE_SYNC_SPEED, /* @speed_min, @speed_max */
	ENGINE_READONLY,   /* drain, mark clean, refuse writes */
	ENGINE_READWRITE,
	ENGINE_STOP, /* as READONLY, checkpoint of the action included; requests then fail */
};

/* A management command. The caller keeps it until done(), which the world's run calls. */
struct engine_command {
	enum engine_verb verb;
	unsigned device;
	unsigned with; /* ENGINE_NONE: any spare */
	const struct engine_device *add;
	enum engine_action action;
	uint64_t speed_min, speed_max;
	struct fault *fault; /* words for a negative result */
	/*
	 * 0 when the record of it is durable (or nothing needs recording); -EBUSY the last device
	 * of its kind, an active one; -ENODEV no such device; -EINVAL, -ENOSPC (no number free,
	 * too small), -EROFS, -EOPNOTSUPP (the level has no redundancy), -EIO.
	 */
	void (*done)(struct engine_command *command, int result);
	void *owner;
	struct engine_command *next; /* the engine's own */
	unsigned result_device;      /* ADD, RE_ADD: the number that was given */
};

void engine_command(struct engine *engine, struct engine_command *command);

#endif
