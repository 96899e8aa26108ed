/* SPDX-License-Identifier: MIT */
#ifndef STRAKE_SIMULATE_INTERNAL_H
#define STRAKE_SIMULATE_INTERNAL_H

/*
 * What the parts of a run share.
 *
 * choose.c   the seed's choices, in words
 * array.c    disks become an array: create, assemble, start, stop, crash
 * atlas.c    what the array must survive at this moment, and what it may lose
 * fault.c    faults
 * client.c   virtual clients
 * operator.c management commands
 * verify.c   what the disks hold at the end
 * run.c      the order of all that
 */

#include "engine/engine.h"
#include "md/assembly.h"
#include "sim/sim.h"
#include "simulate/shadow.h"
#include "simulate/simulate.h"

#define DISKS_MAX 16u
#define CLIENTS_MAX 16u
#define REQUEST_SECTORS_MAX 1024u
#define SECOND UINT64_C(1000000000)
#define MILLI UINT64_C(1000000)

struct random {
	uint64_t state;
};

struct choice {
	int level;
	uint32_t layout;
	uint32_t chunk_bytes;
	unsigned slots, spares, more; /* disks that join later */
	uint64_t component_bytes;
	enum md_version version;
	bool bitmap, assume_clean, garbage;
	uint32_t bitmap_chunk_bytes;
	uint64_t speed_max, safe_mode_ns;
	unsigned requests_max;
	uint64_t latency_min_ns, latency_max_ns;

	unsigned clients;
	uint64_t operations;
	unsigned weights[5]; /* by engine_op */
	unsigned fua_percent, sequential_percent, hot_percent, pause_percent;
	uint64_t sectors_max, pause_ns;
	unsigned hot_percent_from; /* where in the array the hot sectors begin */
	uint32_t daemon_seconds;   /* of the bitmap */

	uint64_t fault_every_ns, deed_every_ns;
	unsigned fault_weights[FAULTS], deed_weights[DEEDS];
};

struct disk {
	bool dead, away, doomed;
	bool counted;                   /* its own superblock calls it in sync */
	bool was_failed;                /* by a command: no doom needed */
	uint64_t back_ns;               /* away until */
	uint64_t spoiled_ns;            /* a sector went bad last */
	unsigned slot;                  /* that it had last, or ENGINE_NONE */
	enum engine_device_state state; /* as it was seen last; FREE: not in the array */
	unsigned device;
};

struct client {
	struct run *run;
	unsigned number;
	struct engine_request request;
	struct iovec iov[8];
	uint8_t *buffer;
	uint64_t id, began, next_ns, started_ns, position;
	bool busy, finished, may_be_refused; /* read-only */
	int result;
};

struct operator
{
	struct engine_command command;
	struct engine_device add;
	struct md_super super;
	struct fault fault;
	enum simulate_deed deed;
	unsigned disk;
	bool busy, finished, expect_refusal;
	/* What people do next: a device that failed is removed, and tried again. */
	enum simulate_deed follow; /* DEEDS: nothing */
	unsigned follow_disk;
	int result;
	uint64_t next_ns, started_ns;
};

struct run {
	const struct simulate_options *options;
	struct simulate_result *result;
	struct choice choice;
	struct random workload, chaos;
	struct sim *sim;
	struct engine *engine;
	struct shadow *shadow;
	struct disk disks[DISKS_MAX];
	unsigned disk_count;
	struct md_super supers[DISKS_MAX]; /* scratch of assembly and create */
	struct md_assembly *assembly;
	struct client clients[CLIENTS_MAX];
	struct operator operator;
	struct world_timer tick;
	uint64_t array_bytes, data_offset[DISKS_MAX];
	uint64_t next_fault_ns, fault_number, write_id, started, completed;
	bool recorded; /* the engine keeps superblocks */
	bool look;     /* the engine has something to tell: look at the devices */
	bool readonly; /* asked for */
	bool blackout; /* errors are no wonder until the array is well again */
	bool resync;   /* copies or parity may be wrong */
	bool needs_repair;
	bool ended;      /* without a failure: the disks went beyond what any array survives */
	bool no_choices; /* bad sectors where copies may differ: any may be the one that counts */
	bool quiet;      /* no faults, no deeds any more */
	bool stop_wanted;
	uint64_t blackout_ends_ns; /* 0: not yet */
	uint64_t steps;
	uint8_t *dirty_rows; /* one byte for each sector of a member's data: parity may be wrong */
	uint64_t rows;
	uint64_t stall_ns; /* extra time that operations may take */
	uint64_t last_stall_ns;
};

/* run.c */
uint64_t draw(struct random *random, uint64_t below);
bool chance(struct random *random, unsigned percent);
__attribute__((format(printf, 3, 4))) void run_fail(
	struct run *run, const char *kind, const char *format, ...);
__attribute__((format(printf, 2, 3))) void run_trace(struct run *run, const char *format, ...);
static inline bool run_is_over(const struct run *run)
{
	return run->result->failed || run->ended;
}
static inline uint64_t run_now(const struct run *run)
{
	return sim_now_ns(run->sim);
}
/* Step until nothing is in flight or @done() says so. */
void run_step(struct run *run);

/* choose.c */
void choose(struct run *run);
void choice_print(const struct run *run);

/* array.c */
void raid_create(struct run *run);
void raid_free(struct run *run);
/* Read superblocks, assemble, start. False: it could not be started. */
bool raid_start(struct run *run);
void raid_power_cut(struct run *run);
void raid_kill(struct run *run);
/* The engine was stopped by its own command. */
void raid_stopped(struct run *run);
bool raid_read_super(struct run *run, unsigned disk, struct md_super *ret);
uint64_t raid_super_sectors(const struct run *run, unsigned disk);

/* atlas.c */
bool is_parity_level(int level);
/* Look at the engine's devices after something has changed. */
void atlas_look(struct run *run);
void atlas_lost_slots(const struct run *run, bool lost[DISKS_MAX]);
unsigned atlas_lost_count(const struct run *run);
/* May the array be asked to live without @disk from now on? */
bool atlas_may_lose(const struct run *run, unsigned disk);
/* May the sector at @row of the data of @disk be unreadable? */
bool atlas_may_spoil(const struct run *run, unsigned disk, uint64_t row);
/* Can array sector @sector be read or computed, as the disks are now? */
bool atlas_is_readable(const struct run *run, uint64_t sector);
/* Redundancy was lost: what was uncertain through it is unknown now. */
void atlas_lost_copy(struct run *run);
void atlas_mark_write(struct run *run, uint64_t first, uint64_t count);
void atlas_mark_caches(struct run *run);
void atlas_clear_rows(struct run *run);
unsigned atlas_disk_of_slot(const struct run *run, unsigned slot);

/* fault.c */
void fault_tick(struct run *run);
void fault_end_all(struct run *run);
void fault_returns(struct run *run);
uint64_t fault_next_ns(const struct run *run);
unsigned fault_spoiled_count(const struct run *run); /* bad sectors */
#define TAG_SECTOR 100u                              /* + disk */
#define TAG_DOOM 200u
#define TAG_AWAY 300u
#define TAG_STALL 400u

/* client.c */
void clients_init(struct run *run);
void clients_free(struct run *run);
void clients_start(struct run *run);
void clients_collect(struct run *run);
unsigned clients_busy(const struct run *run);
void clients_forget(struct run *run);
uint64_t clients_next_ns(const struct run *run);
/* Read the whole array and compare. */
void client_read_all(struct run *run);

/* operator.c */
void operator_tick(struct run *run);
void operator_collect(struct run *run);
/* One command, waited for; its result. */
int operator_do(struct run *run, enum engine_verb verb, unsigned device, enum engine_action action);
int operator_add(struct run *run, unsigned disk, bool re_add);
unsigned operator_loose_disk(const struct run *run, bool with_slot);

/* verify.c */
void verify_disks(struct run *run);
void verify_corruption(struct run *run);
void verify_scrub(struct run *run);

#endif
