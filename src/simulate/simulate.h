/* SPDX-License-Identifier: MIT */
#ifndef STRAKE_SIMULATE_SIMULATE_H
#define STRAKE_SIMULATE_SIMULATE_H

/*
 * One simulated run: the engine as it ships on virtual disks, virtual clients that know what they
 * wrote, faults, power cuts and management commands, all from one seed; and the checks.
 *
 * The same options give the same run, to the byte. docs/simulator.md describes it.
 */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum simulate_fault {
	FAULT_LATENT,      /* a sector cannot be read until it is rewritten */
	FAULT_FLAKY,       /* a sector cannot be read once */
	FAULT_SLOW_SECTOR, /* as LATENT, and it takes the disk 120 s to say so */
	FAULT_STALL,       /* one I/O takes seconds */
	FAULT_HARD,        /* a sector cannot be read, rewritten or not */
	FAULT_WRITE,       /* a write fails, and was not done */
	FAULT_WRITE_DONE,  /* a write fails, but was done */
	FAULT_NO_SPACE,    /* a write fails with ENOSPC */
	FAULT_FLUSH,       /* a flush fails */
	FAULT_DEAD,        /* a disk answers nothing any more */
	FAULT_VANISH,      /* a disk is away for a while */
	FAULT_BLACKOUT,    /* several or all disks are away for a while */
	FAULT_POWER,       /* the power fails */
	FAULT_KILL,        /* the program is killed */
	FAULTS,
};

enum simulate_deed {
	DEED_FAIL,
	DEED_REMOVE,
	DEED_ADD,
	DEED_RE_ADD,
	DEED_REPLACE,
	DEED_CHECK,
	DEED_REPAIR,
	DEED_IDLE,
	DEED_FROZEN,
	DEED_SPEED,
	DEED_READONLY, /* and read-write again */
	DEED_STOP,     /* and assemble again */
	DEED_SILLY,    /* what must be refused */
	DEEDS,
};

#define SIMULATE_SKIPS_MAX 64u

struct simulate_options {
	uint64_t seed;
	bool beyond; /* more faults than the level survives */
	bool trace;  /* everything that happens goes to @out */
	bool level_given;
	int level;
	/* What a shrunk run leaves out; the rest stays the same as far as it can. */
	uint64_t operations;                /* of clients; 0: as the seed says */
	unsigned clients;                   /* 0: as the seed says */
	uint32_t no_faults;                 /* bits of simulate_fault */
	uint32_t no_deeds;                  /* bits of simulate_deed */
	uint32_t skips[SIMULATE_SKIPS_MAX]; /* numbers of faults that do not happen */
	unsigned skip_count;
	FILE *out; /* the choice, the trace; NULL: nothing is said */
};

struct simulate_result {
	bool failed;
	char kind[24];  /* which check */
	char text[400]; /* what it saw */
	uint64_t operations, member_ios, virtual_ns, restarts, faults, deeds;
	uint64_t fault_counts[FAULTS];
	uint64_t hash; /* of everything that happened */
	int level;
	uint64_t last_fault;                        /* number of faults drawn so far */
	uint32_t fault_numbers[SIMULATE_SKIPS_MAX]; /* of those that happened, the latest ones */
	unsigned fault_number_count;
	unsigned clients;
	uint64_t operations_wanted;
};

void simulate_run(const struct simulate_options *options, struct simulate_result *ret);

const char *simulate_fault_name(enum simulate_fault fault);
const char *simulate_deed_name(enum simulate_deed deed);

#endif
