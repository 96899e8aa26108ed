/* SPDX-License-Identifier: MIT */
#ifndef STRAKE_MD_ASSEMBLY_H
#define STRAKE_MD_ASSEMBLY_H

/*
 * Assembly: from the superblocks of some devices to one array whose slots are filled, or to the
 * words that say why not (specification 8). Pure. Here sectors become bytes, for geometry and
 * engine.
 */

#include <stdbool.h>
#include <stdint.h>

#include "geometry/geometry.h"
#include "md/super.h"

/* A device that holds a valid superblock. */
struct md_candidate {
	const char *path; /* for messages; owned by the caller */
	uint64_t device_sectors;
	const struct md_super *super;
};

struct md_assembly_slot {
	/* The device that is, or is being rebuilt to be, this slot's member: index into the
	   candidates, -1 while the slot is empty. */
	int candidate;
	int replacement; /* candidate that is to take over from it, -1 for none */
	uint64_t data_offset_bytes;
	uint64_t data_bytes; /* usable on this member, before rounding to chunks */
};

struct md_assembly_options {
	bool force;
	uint32_t raid0_layout; /* --layout / --update=layout-…: used where the superblock has none;
				  GEOMETRY_RAID0_UNKNOWN for "not said" */
	bool run;              /* start although members that were there before are missing */
	bool readonly; /* nothing will be written: what only writing cannot do yet is accepted;
			  everything else is as strict as without */
};

/* A device that takes part, in whatever role. */
struct md_assembly_device {
	unsigned candidate;
	const struct md_super *super;
	unsigned slot; /* or MD_ROLE_SPARE */
	bool in_sync;
	bool replacement;    /* beside another device of its slot, which it is to replace */
	bool has_bad_blocks; /* its log is not empty and must be read before its data */
	bool write_mostly, failfast;
	uint64_t recovery_offset_bytes; /* rebuilding: the member's data is right below this */
	uint64_t data_offset_bytes;
	uint64_t data_bytes;
	unsigned dev_number;
};
#define MD_ASSEMBLY_DEVICES_MAX MD_ROLES_MAX

/* Why a candidate takes no part. */
enum md_rejection {
	MD_REJECTED_STALE,       /* fewer events than the freshest: it missed writes */
	MD_REJECTED_FAILED,      /* the freshest reports it as failed or removed */
	MD_REJECTED_SPLIT_BRAIN, /* it reports the freshest as failed: both may have been written */
	MD_REJECTED_DUPLICATE,   /* a newer device holds its slot or number */
	MD_REJECTED_STRAY_SPARE, /* a spare that knows a later state than every member here */
	MD_REJECTED_ROLE,        /* its own superblock calls it faulty, or a journal */
	MD_REJECTED_CONTRADICTS, /* stale or spare, and made for another geometry */
	MD_REJECTED_TOO_SMALL,   /* its data does not hold the array's component size */
};

struct md_assembly_rejected {
	unsigned candidate;
	enum md_rejection reason;
	unsigned by; /* candidate that it was compared with: the freshest, or the newer duplicate */
};

/*
 * What --force changes. To be written in the order of the list, so that after a power cut in
 * between it can be forced again; the array may start once all of it is durable.
 */
enum md_change {
	MD_CHANGE_ROLE,     /* roles[dev_number] := value */
	MD_CHANGE_EVENTS,   /* events := value: a stale member is declared up to date */
	MD_CHANGE_RECOVERY, /* recovery_offset := 0: what was rebuilt may not fit parity any more */
	MD_CHANGE_CLEAN,    /* resync_offset := MD_CLEAN: parity is declared right */
};

struct md_assembly_change {
	unsigned candidate; /* whose superblock is changed */
	enum md_change what;
	unsigned dev_number; /* MD_CHANGE_ROLE */
	uint64_t value, old;
};
/* Enough for any array of up to 60 members; more is refused. */
#define MD_ASSEMBLY_CHANGES_MAX 4096u

#define MD_CANDIDATES_MAX 4096u

struct md_assembly {
	const struct md_super *super; /* the freshest; array-wide facts come from here */
	unsigned freshest;            /* its candidate */
	unsigned slot_count;
	unsigned missing_count; /* empty slots */
	struct md_assembly_slot slots[GEOMETRY_SLOTS_MAX];
	/* Ready for geometry_new(), but for slot_bytes, which the caller gathers from slots[]. */
	int level;
	uint32_t layout;
	uint32_t chunk_bytes;
	uint32_t logical_block_bytes; /* what the superblock records; 0 if nothing */

	/* Levels with redundancy; the others have their facts here as well, but no component. */
	uint64_t component_bytes; /* used size of each member */
	uint64_t events;
	bool clean;
	uint64_t resync_offset_bytes; /* consistent below; MD_CLEAN if clean. Specification 1.6: of
					 the member's data, for RAID 10 of the array */
	unsigned in_sync_count;       /* slots with a device that is in sync */
	bool degraded;                /* fewer than slot_count */
	unsigned device_count;
	struct md_assembly_device devices[MD_ASSEMBLY_DEVICES_MAX]; /* in the candidates' order */
	unsigned rejected_count;
	struct md_assembly_rejected rejected[MD_CANDIDATES_MAX];
	unsigned change_count; /* 0 without force */
	struct md_assembly_change changes[MD_ASSEMBLY_CHANGES_MAX];
};

/* An assembly without slots, devices and anything else. */
void md_assembly_clear(struct md_assembly *assembly);

/*
 * Assemble @count candidates. Fills *@ret (caller's, large: not on the stack of a deep call).
 * 0 if the array can be started as it is described there (and, if there are changes, once those are
 * written; with readonly they need not be). Else, with words that name devices and fields:
 * -EUCLEAN devices of different arrays, contradictory superblocks, two devices for one slot,
 * conflicting event counts (levels without redundancy), several zones without a layout, parity
 * that may be wrong while members are missing (dirty and degraded); -ENODEV too few members for the
 * level, or fewer than the freshest superblock knows and neither run nor force ("need all N to
 * start it"); -EOPNOTSUPP a level or feature that cannot run yet (named); -EINVAL no candidate;
 * -E2BIG more than MD_CANDIDATES_MAX. After -ENODEV or a refusal because of dirt the result is
 * filled as far as it goes: rejected[] and slots[] are for the user to see.
 */
int md_assemble(const struct md_candidate *candidates, unsigned count,
	const struct md_assembly_options *options, struct md_assembly *ret, struct fault *fault);

/* One line of words for a rejected candidate, or for a change; returns @text. */
#define MD_ASSEMBLY_LINE_MAX 1024
char *md_rejection_text(const struct md_candidate *candidates,
	const struct md_assembly_rejected *rejected, char text[MD_ASSEMBLY_LINE_MAX]);
char *md_change_text(const struct md_candidate *candidates, const struct md_assembly_change *change,
	char text[MD_ASSEMBLY_LINE_MAX]);

/* Make @change in the superblock of its candidate, decoded; the caller encodes and writes it. */
void md_change_apply(const struct md_assembly_change *change, struct md_super *super);

#endif
