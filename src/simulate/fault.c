/* SPDX-License-Identifier: MIT */
/* Faults: when, which, where; what the atlas does not allow does not happen. */
#include <errno.h>
#include <inttypes.h>

#include "simulate/internal.h"
#include "util/rounding.h"

#define WRITES (1u << WORLD_WRITE | 1u << WORLD_ZERO)
#define ALL_OPS 0x1fu
#define SPOILED_MAX 24u
#define STALLS_MAX 40u
#define SLOW_MAX 12u
#define SPOIL_NS SECOND

static void add(struct run *run, const struct sim_fault *fault)
{
	(void)sim_fault_add(run->sim, fault); /* the table is full: no fault then */
}

static unsigned any_disk(struct run *run)
{
	return (unsigned)draw(&run->chaos, run->disk_count);
}

unsigned fault_spoiled_count(const struct run *run)
{
	unsigned count, spoiled = 0;
	const struct sim_fault *faults = sim_faults(run->sim, &count);

	for (unsigned i = 0; i < count; i++)
		spoiled += faults[i].tag == TAG_SECTOR + faults[i].disk;
	return spoiled;
}

/* The row's copies must outlive it; and copies that may differ can be chosen anew. */
static bool spoil(struct run *run, unsigned disk, enum simulate_fault kind)
{
	uint64_t row = draw(&run->chaos, run->rows);
	struct sim_fault fault = {
		.disk = disk,
		.ops = 1u << WORLD_READ,
		.length_bytes = SHADOW_SECTOR,
		.error = -EIO,
		.times = UINT32_MAX,
		.until_written = true,
		.tag = TAG_SECTOR + disk,
	};

	if (chance(&run->chaos, 50))
		row = draw(&run->chaos, min_u64(64, run->rows));
	if (run->disks[disk].state != ENGINE_DEVICE_IN_SYNC ||
		fault_spoiled_count(run) >= SPOILED_MAX)
		return false;
	/* A sector that goes bad beside one that is just being mended costs the device. */
	if (run->disks[disk].spoiled_ns != 0 &&
		run_now(run) < run->disks[disk].spoiled_ns + SPOIL_NS)
		return false;
	if (!run->options->beyond && !atlas_may_spoil(run, disk, row))
		return false;
	run->disks[disk].spoiled_ns = run_now(run) + 1;
	fault.offset_bytes = run->data_offset[disk] + row * SHADOW_SECTOR;
	/* Beyond, what could not be read must not be readable when that is looked at. */
	if (kind == FAULT_FLAKY && !run->options->beyond)
		fault.times = 1;
	if (kind == FAULT_SLOW_SECTOR && run->result->fault_counts[kind] >= SLOW_MAX)
		return false;
	if (kind == FAULT_SLOW_SECTOR) {
		fault.delay_ns = 120 * SECOND;
		run->stall_ns += 600 * SECOND;
	}
	add(run, &fault);
	if (run->resync) {
		run->no_choices = true;
		shadow_undo_choices(run->shadow);
	}
	run_trace(run, "FAULT %" PRIu64 ": %s: disk %u row %" PRIu64, run->fault_number,
		simulate_fault_name(kind), disk, row);
	return true;
}

static bool stall(struct run *run, unsigned disk)
{
	struct sim_fault fault = {
		.disk = disk,
		.ops = ALL_OPS,
		.length_bytes = UINT64_MAX,
		.times = 1 + (unsigned)draw(&run->chaos, 3),
		.delay_ns = SECOND * (1 + draw(&run->chaos, 30)),
		.tag = TAG_STALL,
	};

	if (run->result->fault_counts[FAULT_STALL] >= STALLS_MAX)
		return false;
	run->stall_ns += 4 * fault.delay_ns * fault.times;
	add(run, &fault);
	run_trace(run, "FAULT %" PRIu64 ": stall: disk %u", run->fault_number, disk);
	return true;
}

/* From now on the engine may fail @disk, and nothing depends on it. */
static bool doom(struct run *run, unsigned disk)
{
	if (!run->options->beyond && !atlas_may_lose(run, disk)) {
		/* Bad sectors elsewhere may be all that forbids it. */
		if (!chance(&run->chaos, 30))
			return false;
		for (unsigned i = 0; i < run->disk_count; i++)
			sim_faults_remove(run->sim, TAG_SECTOR + i);
		if (!atlas_may_lose(run, disk))
			return false;
	}
	run->disks[disk].doomed = true;
	run->no_choices |= run->resync;
	if (run->disks[disk].state == ENGINE_DEVICE_IN_SYNC && !run->blackout)
		atlas_lost_copy(run);
	return true;
}

static bool spoil_device(struct run *run, unsigned disk, enum simulate_fault kind)
{
	struct sim_fault fault = {
		.disk = disk,
		.ops = kind == FAULT_FLUSH ? 1u << WORLD_FLUSH : WRITES,
		.length_bytes = UINT64_MAX,
		.error = kind == FAULT_NO_SPACE ? -ENOSPC : -EIO,
		.times = 1,
		.performed = kind == FAULT_WRITE_DONE,
		.tag = TAG_DOOM + disk,
	};

	if (run->disks[disk].state == ENGINE_DEVICE_FREE ||
		(kind == FAULT_HARD && run->disks[disk].state != ENGINE_DEVICE_IN_SYNC) ||
		!doom(run, disk))
		return false;
	if (kind == FAULT_HARD) {
		fault.ops = 1u << WORLD_READ;
		fault.offset_bytes = run->data_offset[disk] +
				     draw(&run->chaos, run->rows) * SHADOW_SECTOR;
		fault.length_bytes = SHADOW_SECTOR;
		fault.times = UINT32_MAX;
	}
	add(run, &fault);
	run_trace(run, "FAULT %" PRIu64 ": %s: disk %u", run->fault_number,
		simulate_fault_name(kind), disk);
	return true;
}

static void take_away(struct run *run, unsigned disk, uint64_t back_ns)
{
	struct sim_fault fault = {
		.disk = disk,
		.ops = ALL_OPS,
		.length_bytes = UINT64_MAX,
		.error = -ENODEV,
		.times = UINT32_MAX,
		.tag = TAG_AWAY + disk,
	};

	run->disks[disk].away = true;
	run->disks[disk].doomed = true;
	run->disks[disk].back_ns = back_ns;
	add(run, &fault);
}

static bool die(struct run *run, unsigned disk)
{
	unsigned dead = 0;

	for (unsigned i = 0; i < run->disk_count; i++)
		dead += run->disks[i].dead;
	if (run->disks[disk].dead || run->disks[disk].away || dead > run->choice.more + 1 ||
		!doom(run, disk))
		return false;
	take_away(run, disk, UINT64_MAX);
	run->disks[disk].away = false;
	run->disks[disk].dead = true;
	run_trace(run, "FAULT %" PRIu64 ": dead: disk %u", run->fault_number, disk);
	return true;
}

static bool vanish(struct run *run, unsigned disk)
{
	if (run->disks[disk].dead || run->disks[disk].away || !doom(run, disk))
		return false;
	take_away(run, disk, run_now(run) + MILLI * (1 + draw(&run->chaos, 3000)));
	run_trace(run, "FAULT %" PRIu64 ": vanish: disk %u", run->fault_number, disk);
	return true;
}

/* Some or all of them at about the same time, and all back together. */
static bool black_out(struct run *run)
{
	uint64_t back_ns = run_now(run) + MILLI * (1 + draw(&run->chaos, 3000));
	unsigned percent = chance(&run->chaos, 50) ? 100 : 50;

	if (!run->recorded || run->blackout)
		return false;
	for (unsigned i = 0; i < run->disk_count; i++)
		sim_faults_remove(run->sim, TAG_SECTOR + i);
	/* Who failed cannot be recorded while nobody is there: any copy may be the one that counts.
	 */
	run->blackout = run->resync = run->no_choices = true;
	/* RAID 10 keeps a device that holds the last copy of anything: writes that failed on it may
	 * have been done on others. */
	run->needs_repair |= run->choice.level == 10;
	if (!is_parity_level(run->choice.level))
		shadow_unsure(run->shadow);
	for (unsigned i = 0; i < run->disk_count; i++)
		if (!run->disks[i].dead && !run->disks[i].away && chance(&run->chaos, percent))
			take_away(run, i, back_ns);
	atlas_lost_copy(run);
	run_trace(run, "FAULT %" PRIu64 ": blackout", run->fault_number);
	return true;
}

static bool crash(struct run *run, enum simulate_fault kind)
{
	if (!run->recorded)
		return false;
	run_trace(run, "FAULT %" PRIu64 ": %s", run->fault_number, simulate_fault_name(kind));
	if (kind == FAULT_POWER)
		raid_power_cut(run);
	else
		raid_kill(run);
	return true;
}

static bool inject(struct run *run, enum simulate_fault kind)
{
	unsigned disk = any_disk(run);

	switch (kind) {
	case FAULT_LATENT:
	case FAULT_FLAKY:
	case FAULT_SLOW_SECTOR:
		return spoil(run, disk, kind);
	case FAULT_STALL:
		return stall(run, disk);
	case FAULT_DEAD:
		return die(run, disk);
	case FAULT_VANISH:
		return vanish(run, disk);
	case FAULT_BLACKOUT:
		return black_out(run);
	case FAULT_POWER:
	case FAULT_KILL:
		return crash(run, kind);
	default:
		return spoil_device(run, disk, kind);
	}
}

static bool is_skipped(const struct run *run)
{
	for (unsigned i = 0; i < run->options->skip_count; i++)
		if (run->options->skips[i] == run->fault_number)
			return true;
	return false;
}

static void note(struct run *run, enum simulate_fault kind)
{
	struct simulate_result *result = run->result;

	result->faults++;
	result->fault_counts[kind]++;
	if (result->fault_number_count == SIMULATE_SKIPS_MAX)
		for (unsigned i = 1; i < SIMULATE_SKIPS_MAX; i++)
			result->fault_numbers[i - 1] = result->fault_numbers[i];
	else
		result->fault_number_count++;
	result->fault_numbers[result->fault_number_count - 1] = (uint32_t)run->fault_number;
}

/* The draws are made also for a fault that is left out, so that the others stay as they are. */
static void fault(struct run *run)
{
	const unsigned *weights = run->choice.fault_weights;
	struct random own = {draw(&run->chaos, UINT64_MAX)}, kept;
	unsigned sum = 0, at, kind = 0;

	run->fault_number++;
	for (unsigned i = 0; i < FAULTS; i++)
		sum += weights[i];
	if (sum == 0 || is_skipped(run))
		return;
	kept = run->chaos;
	run->chaos = own;
	at = (unsigned)draw(&run->chaos, sum);
	while (at >= weights[kind])
		at -= weights[kind++];
	/* A blackout is enough by itself. */
	if ((!run->blackout || kind == FAULT_STALL) && inject(run, (enum simulate_fault)kind))
		note(run, (enum simulate_fault)kind);
	run->chaos = kept;
}

void fault_returns(struct run *run)
{
	for (unsigned i = 0; i < run->disk_count; i++) {
		struct disk *disk = &run->disks[i];

		if (!disk->away || disk->back_ns > run_now(run))
			continue;
		disk->away = false;
		sim_faults_remove(run->sim, TAG_AWAY + i);
		run_trace(run, "disk %u is back", i);
	}
}

void fault_tick(struct run *run)
{
	fault_returns(run);
	if (run->quiet || run_now(run) < run->next_fault_ns)
		return;
	run->next_fault_ns = run_now(run) + 1 + draw(&run->chaos, 2 * run->choice.fault_every_ns);
	fault(run);
}

uint64_t fault_next_ns(const struct run *run)
{
	uint64_t next = run->quiet ? UINT64_MAX : run->next_fault_ns;

	for (unsigned i = 0; i < run->disk_count; i++)
		if (run->disks[i].away)
			next = min_u64(next, run->disks[i].back_ns);
	return next;
}

/* Bad sectors stay: the scrub is to find them. Dead disks are replaced by new ones. */
void fault_end_all(struct run *run)
{
	uint8_t zeros[4096] = {0};

	for (unsigned i = 0; i < run->disk_count; i++) {
		struct disk *disk = &run->disks[i];

		sim_faults_remove(run->sim, TAG_DOOM + i);
		sim_faults_remove(run->sim, TAG_AWAY + i);
		if (disk->dead && disk->state != ENGINE_DEVICE_IN_SYNC)
			for (uint64_t at = 0; at < sim_disk_size(run->sim, i); at += 4096)
				sim_disk_poke(run->sim, i, at, zeros,
					min_u64(4096, sim_disk_size(run->sim, i) - at));
		disk->dead = disk->away = false;
	}
	sim_faults_remove(run->sim, TAG_STALL);
}
