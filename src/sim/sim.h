/* SPDX-License-Identifier: MIT */
#ifndef STRAKE_SIM_SIM_H
#define STRAKE_SIM_SIM_H

/*
 * The simulated world: virtual disks in memory, a virtual clock, seeded randomness, faults.
 *
 * Nothing here depends on real time or on the machine: the same options and the same calls give the
 * same run, to the byte. Latencies are drawn from the seed, so requests complete out of order.
 *
 * A disk keeps what is durable apart from what its volatile write cache holds. A completed write is
 * visible to reads at once, but becomes durable only by a flush submitted after its completion, or
 * by FUA. At a power cut each sector that has undurable writes ends up with the durable content or
 * with that of any one of those writes, chosen by the seed; writes in flight count as undurable.
 */

#include <stdbool.h>
#include <stdint.h>

#include "util/fault.h"
#include "world/world.h"

struct sim;

struct sim_options {
	uint64_t seed;
	unsigned disk_count;
	const uint64_t *disk_bytes; /* multiples of 512 */
	uint64_t latency_min_ns;
	uint64_t latency_max_ns;
};

int sim_new(const struct sim_options *options, struct sim **ret, struct fault *fault);
void sim_free(struct sim *sim);

struct world *sim_world(struct sim *sim);

/* Deliver the next event, moving the clock to it. False if nothing is pending. */
bool sim_step(struct sim *sim);
/* Step until nothing is pending or @limit events were delivered; returns how many were. */
uint64_t sim_run(struct sim *sim, uint64_t limit);
uint64_t sim_now_ns(const struct sim *sim);

/* A number from the simulation's own generator, below @below; for tests to draw from. */
uint64_t sim_draw(struct sim *sim, uint64_t below);

/* Which operations a fault concerns: bits (1u << WORLD_READ) … */
struct sim_fault {
	unsigned disk;
	unsigned ops;
	uint64_t offset_bytes;
	uint64_t length_bytes; /* any overlap triggers it; FLUSH always overlaps */
	int error;      /* negative errno that the request gets; a read or write does nothing */
	unsigned times; /* how often it fires; UINT32_MAX: for ever */
	/* The rest may be left zero. */
	uint64_t delay_ns;  /* the request takes that much longer; error may be 0 then */
	bool until_written; /* writing its first sector ends it, as a disk's bad sector */
	bool performed;     /* the operation is done although the error is told */
	unsigned tag;       /* the caller's, for sim_faults_remove() */
};
#define SIM_FAULTS_MAX 64
/* -ENOSPC if there are SIM_FAULTS_MAX already. */
int sim_fault_add(struct sim *sim, const struct sim_fault *fault);
void sim_faults_clear(struct sim *sim);
void sim_faults_remove(struct sim *sim, unsigned tag);
/* Those that can still fire; valid until the simulation goes on. */
const struct sim_fault *sim_faults(const struct sim *sim, unsigned *ret_count);

/*
 * The power goes off: requests in flight are forgotten (their done() is never called), timers too,
 * caches are lost as described above. The disks can be used again at once; faults stay.
 */
void sim_power_cut(struct sim *sim);

/*
 * The program is killed, the disks stay powered: of the requests in flight each is done wholly, or
 * its first sectors, or nothing of it; none of them and no timer is heard of again.
 */
void sim_kill(struct sim *sim);

/* Called for each sector of @disk that a power cut now could lose or change. */
void sim_undurable(struct sim *sim, unsigned disk, void (*told)(void *owner, uint64_t offset_bytes),
	void *owner);

/* Called at each completion of a member I/O, before its done(). NULL: nobody. */
void sim_trace(struct sim *sim,
	void (*completed)(void *owner, const struct world_io *io, int result), void *owner);

/* What a read would return now; and change it behind everybody's back, durably. */
void sim_disk_peek(
	struct sim *sim, unsigned disk, uint64_t offset_bytes, void *buffer, size_t length);
void sim_disk_poke(
	struct sim *sim, unsigned disk, uint64_t offset_bytes, const void *buffer, size_t length);

uint64_t sim_disk_size(const struct sim *sim, unsigned disk);

struct sim_disk_counters {
	uint64_t reads, writes, flushes, discards, zeros;
	uint64_t iovecs;            /* of reads and writes together */
	uint64_t undurable_sectors; /* versions in the cache at this moment */
};
const struct sim_disk_counters *sim_disk_counters(struct sim *sim, unsigned disk);

#endif
