/* SPDX-License-Identifier: MIT */
#ifndef STRAKE_SIM_DISK_H
#define STRAKE_SIM_DISK_H

/*
 * A virtual disk: sparse content in memory, twice: as reads see it, and as it would survive a power
 * cut; between the two, the versions of sectors that were written and not yet made durable.
 */

#include "sim/sim.h"

#define SIM_SECTOR 512u

struct sim_disk;

int sim_disk_new(uint64_t size_bytes, struct sim_disk **ret);
void sim_disk_free(struct sim_disk *disk);
uint64_t sim_disk_bytes(const struct sim_disk *disk);
struct sim_disk_counters *sim_disk_stats(struct sim_disk *disk);

void sim_disk_read(const struct sim_disk *disk, uint64_t offset, void *buffer, size_t length);
/*
 * Write as into the cache; @durable: as into the medium. Writes are numbered in the order of these
 * calls. -ENOMEM.
 */
int sim_disk_write(
	struct sim_disk *disk, uint64_t offset, const void *buffer, size_t length, bool durable);
/* Number of the latest write: what a flush submitted now covers. */
uint64_t sim_disk_sequence(const struct sim_disk *disk);
/* Make all writes up to number @sequence durable. */
void sim_disk_flush(struct sim_disk *disk, uint64_t sequence);
void sim_disk_undurable(
	const struct sim_disk *disk, void (*told)(void *owner, uint64_t offset_bytes), void *owner);
/* Lose the cache; @draw(owner, n) chooses, for each sector, which of n versions survives. */
void sim_disk_power_cut(
	struct sim_disk *disk, uint64_t (*draw)(void *owner, uint64_t below), void *owner);

#endif
