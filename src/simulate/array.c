/* SPDX-License-Identifier: MIT */
/* Disks become an array and cease to be one: what create, assemble and stop do around an engine. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "engine/record.h"
#include "md/plan.h"
#include "simulate/internal.h"
#include "util/rounding.h"

#define DATA_OFFSET_SECTORS 128u
#define DISK_MORE_BYTES                                                          \
	(256u << 10) /* behind the data: superblocks and bitmaps of 0.90 and 1.0 \
		      */
#define DEVICES_MORE 8u

static void make_disks(struct run *run)
{
	const struct choice *c = &run->choice;
	uint64_t bytes[DISKS_MAX];
	struct sim_options options = {
		.seed = draw(&run->chaos, UINT64_MAX),
		.disk_count = run->disk_count,
		.disk_bytes = bytes,
		.latency_min_ns = c->latency_min_ns,
		.latency_max_ns = c->latency_max_ns,
	};
	struct fault fault = {0};

	for (unsigned i = 0; i < run->disk_count; i++)
		bytes[i] = round_up(DATA_OFFSET_SECTORS * MD_SECTOR + c->component_bytes +
					    DISK_MORE_BYTES + i % 3 * 4096,
			65536);
	if (sim_new(&options, &run->sim, &fault) < 0)
		abort();
}

/* What disks hold that were used before. */
static void fill_with_garbage(struct run *run)
{
	uint8_t block[4096];

	for (unsigned disk = 0; disk < run->disk_count; disk++)
		for (uint64_t at = 0; at < run->choice.component_bytes; at += sizeof(block)) {
			for (unsigned i = 0; i < sizeof(block); i += 8) {
				uint64_t word = draw(&run->chaos, UINT64_MAX);

				memcpy(block + i, &word, 8);
			}
			sim_disk_poke(run->sim, disk, DATA_OFFSET_SECTORS * MD_SECTOR + at, block,
				sizeof(block));
		}
}

static uint64_t disk_bytes(const struct run *run, unsigned disk)
{
	return sim_disk_size(run->sim, disk);
}

uint64_t raid_super_sectors(const struct run *run, unsigned disk)
{
	return disk_bytes(run, disk) / MD_SECTOR;
}

static void write_super(struct run *run, unsigned disk, const struct md_super *super)
{
	uint8_t block[MD_SUPER_BYTES] = {0};

	md_format(super->version)->encode(super, block);
	sim_disk_poke(run->sim, disk, super->super_offset * MD_SECTOR, block, sizeof(block));
}

static void plan_options(const struct run *run, struct md_plan_options *options)
{
	const struct choice *c = &run->choice;

	*options = (struct md_plan_options){
		.version = c->version,
		.level = c->level,
		.chunk_sectors = c->level == 1 ? MD_PLAN_DEFAULT : c->chunk_bytes / MD_SECTOR,
		.layout = c->level == 1 || c->level == 4 ? MD_PLAN_DEFAULT : c->layout,
		.size_sectors = c->component_bytes / MD_SECTOR,
		.data_offset = c->version == MD_VERSION_0_90 || c->version == MD_VERSION_1_0
				       ? MD_PLAN_DEFAULT
				       : DATA_OFFSET_SECTORS,
		.raid_disks = c->slots,
		.spare_disks = c->spares,
		.name = "sim",
		.assume_clean = c->assume_clean,
		.bitmap = c->bitmap ? MD_PLAN_BITMAP_INTERNAL : MD_PLAN_BITMAP_NONE,
		.bitmap_chunk_bytes = c->bitmap ? c->bitmap_chunk_bytes : 0,
		.daemon_sleep_seconds = c->daemon_seconds,
		.now_seconds = 1767225600,
	};
	memset(options->set_uuid, 0x5a, sizeof(options->set_uuid));
}

static void plan(struct run *run)
{
	const unsigned count = run->choice.slots + run->choice.spares;
	struct md_plan_device devices[DISKS_MAX] = {0};
	struct md_plan_options options;
	struct fault fault = {0};
	struct md_bitmap header;
	uint8_t *area = calloc(1, MD_PLAN_BITMAP_BYTES_MAX);
	uint64_t sector, room;
	size_t bytes;

	for (unsigned i = 0; i < count; i++) {
		devices[i].path = "disk";
		devices[i].sectors = raid_super_sectors(run, i);
		memset(devices[i].device_uuid, 1 + (int)i, sizeof(devices[i].device_uuid));
	}
	plan_options(run, &options);
	if (area == NULL)
		abort();
	if (md_plan_create(&options, devices, count, run->supers, &fault) < 0) {
		run_fail(run, "create", "%s", fault.text);
		free(area);
		return;
	}
	bytes = md_plan_bitmap(&options, &run->supers[0], &header, area);
	for (unsigned i = 0; i < count; i++) {
		write_super(run, i, &run->supers[i]);
		if (bytes > 0 && md_bitmap_location(&run->supers[i], &sector, &room, &fault) == 0)
			sim_disk_poke(run->sim, i, sector * MD_SECTOR, area, bytes);
	}
	free(area);
}

void raid_create(struct run *run)
{
	make_disks(run);
	if (run->choice.garbage)
		fill_with_garbage(run);
	run->rows = run->choice.component_bytes / MD_SECTOR;
	run->dirty_rows = calloc(1, run->rows + 8);
	run->assembly = calloc(1, sizeof(*run->assembly));
	if (run->dirty_rows == NULL || run->assembly == NULL)
		abort();
	for (unsigned i = 0; i < run->disk_count; i++)
		run->disks[i].slot = ENGINE_NONE;
	plan(run);
}

void raid_free(struct run *run)
{
	if (run->engine != NULL)
		engine_free(run->engine);
	sim_free(run->sim);
	shadow_free(run->shadow);
	free(run->dirty_rows);
	free(run->assembly);
}

bool raid_read_super(struct run *run, unsigned disk, struct md_super *ret)
{
	const struct md_format *format = md_format(run->choice.version);
	uint64_t sectors = raid_super_sectors(run, disk), sector;
	uint8_t block[MD_SUPER_BYTES];

	if (format->location(sectors, &sector) < 0)
		return false;
	sim_disk_peek(run->sim, disk, sector * MD_SECTOR, block, sizeof(block));
	return format->decode(block, sector, sectors, ret, NULL) == 0;
}

static unsigned find_candidates(struct run *run, struct md_candidate *candidates, unsigned *disks)
{
	static const char *const names[DISKS_MAX] = {"disk0", "disk1", "disk2", "disk3", "disk4",
		"disk5", "disk6", "disk7", "disk8", "disk9", "disk10", "disk11", "disk12", "disk13",
		"disk14", "disk15"};
	unsigned count = 0;

	for (unsigned i = 0; i < run->disk_count; i++) {
		if (run->disks[i].dead || run->disks[i].away ||
			!raid_read_super(run, i, &run->supers[i]))
			continue;
		disks[count] = i;
		candidates[count++] = (struct md_candidate){
			names[i], raid_super_sectors(run, i), &run->supers[i]};
	}
	return count;
}

/*
 * A member of the array without a valid superblock: a power cut within a write of several sectors
 * left neither the old one nor the new one. No array that is degraded already survives that.
 */
static bool has_torn_super(struct run *run)
{
	struct md_super *scratch = malloc(sizeof(*scratch));
	bool torn = false;

	if (scratch == NULL)
		abort();
	for (unsigned i = 0; i < run->disk_count; i++)
		torn |= run->disks[i].state == ENGINE_DEVICE_IN_SYNC && !run->disks[i].dead &&
			!run->disks[i].away && !raid_read_super(run, i, scratch);
	free(scratch);
	return torn;
}

/*
 * Without force an array must start, but where the atlas knows a reason: parity that may be wrong
 * while a member is missing (md refuses so too), or many disks that were away together. --run is
 * said for members that the freshest knows and that are gone.
 */
static int assemble(struct run *run, const struct md_candidate *candidates, unsigned count)
{
	struct md_assembly_options how = {0};
	struct fault fault = {0};
	int r = md_assemble(candidates, count, &how, run->assembly, &fault);

	if (r == -ENODEV && !has_torn_super(run)) {
		how.run = true;
		fault = (struct fault){0};
		r = md_assemble(candidates, count, &how, run->assembly, &fault);
	}
	if (r == 0)
		return 0;
	run_trace(run, "assembly refused: %s", fault.text);
	if (has_torn_super(run)) {
		run_trace(run, "a superblock was torn, and the array cannot do without it");
		run->ended = true;
		return r;
	}
	if (!run->blackout &&
		!(r == -EUCLEAN && is_parity_level(run->choice.level) && run->assembly->degraded)) {
		if (!run->options->beyond)
			run_fail(run, "assembly", "%s", fault.text);
		return r;
	}
	how.force = true;
	fault = (struct fault){0};
	r = md_assemble(candidates, count, &how, run->assembly, &fault);
	if (r < 0 && !run->options->beyond)
		run_fail(run, "assembly", "by force: %s", fault.text);
	if (r == 0)
		run->needs_repair = run->choice.level == 6;
	return r;
}

/* What --force changes goes to the disks before the array starts. */
static void write_changes(struct run *run, const unsigned *disks)
{
	for (unsigned i = 0; i < run->assembly->change_count; i++) {
		const struct md_assembly_change *change = &run->assembly->changes[i];
		unsigned disk = disks[change->candidate];

		md_change_apply(change, &run->supers[disk]);
		write_super(run, disk, &run->supers[disk]);
		run_trace(run, "force: disk %u: change %u to %" PRIu64, disk, change->what,
			change->value);
	}
}

/* As control does it: from the first member in sync; one that is unusable counts as all set. */
static bool read_bitmap(
	struct run *run, const unsigned *disks, struct engine_bitmap *bitmap, uint8_t **ret_area)
{
	const struct md_assembly_device *device = NULL;
	uint64_t sector, room;
	int r;

	for (unsigned i = 0; i < run->assembly->device_count && device == NULL; i++)
		if (run->assembly->devices[i].in_sync)
			device = &run->assembly->devices[i];
	if (device == NULL || (run->assembly->super->feature_map & MD_FEATURE_BITMAP) == 0 ||
		md_bitmap_location(device->super, &sector, &room, NULL) < 0)
		return false;
	*ret_area = calloc(1, round_up(room * MD_SECTOR, MD_BITMAP_BLOCK_BYTES));
	if (*ret_area == NULL)
		abort();
	sim_disk_peek(run->sim, disks[device->candidate], sector * MD_SECTOR, *ret_area,
		room * MD_SECTOR);
	r = md_bitmap_decode(*ret_area, &bitmap->header, NULL);
	if (r == 0)
		r = md_bitmap_check(&bitmap->header, run->assembly->super, NULL);
	if (r < 0 && r != -ESTALE)
		run_fail(run, "bitmap", "the bitmap of disk %u is not valid any more: %d",
			disks[device->candidate], r);
	bitmap->stale = r == -ESTALE;
	bitmap->bits = *ret_area + MD_BITMAP_HEADER_BYTES;
	return r == 0 || r == -ESTALE;
}

static void heard(void *owner, const char *text)
{
	struct run *run = owner;

	run->look = true;
	run_trace(run, "engine: %s", text);
}

static void gather(struct run *run, const unsigned *disks, struct engine_device *devices)
{
	for (unsigned i = 0; i < run->disk_count; i++) {
		run->disks[i].state = ENGINE_DEVICE_FREE;
		run->disks[i].slot = ENGINE_NONE;
	}
	for (unsigned i = 0; i < run->assembly->device_count; i++) {
		const struct md_assembly_device *d = &run->assembly->devices[i];
		unsigned disk = disks[d->candidate];

		devices[i] = (struct engine_device){
			.member = disk,
			.slot = d->slot <= MD_ROLE_SLOT_MAX ? d->slot : ENGINE_NONE,
			.in_sync = d->in_sync,
			.replacement = d->replacement,
			.recovered_bytes = d->recovery_offset_bytes,
			.data_offset_bytes = d->data_offset_bytes,
			.data_bytes = d->data_bytes,
			.logical_block_bytes = 512,
			.super = d->super,
		};
		run->data_offset[disk] = d->data_offset_bytes;
		run_trace(run,
			"assembled: disk %u: slot %d%s%s, recovered %" PRIu64 ", events %" PRIu64,
			disk, (int)devices[i].slot, d->in_sync ? ", in sync" : "",
			d->replacement ? ", replacement" : "", d->recovery_offset_bytes,
			d->super->events);
	}
	for (unsigned i = 0; i < run->assembly->rejected_count; i++)
		run_trace(run, "assembled without disk %u: reason %u",
			disks[run->assembly->rejected[i].candidate],
			run->assembly->rejected[i].reason);
}

static void start_engine(struct run *run, const unsigned *disks)
{
	const struct md_assembly *a = run->assembly;
	struct engine_device devices[DISKS_MAX];
	struct engine_bitmap bitmap = {0};
	uint8_t *area = NULL;
	struct engine_redundancy redundancy = {
		.component_bytes = a->component_bytes,
		.resync_bytes = a->clean ? UINT64_MAX : a->resync_offset_bytes,
		.devices = devices,
		.device_count = a->device_count,
		.device_max = (unsigned)max_u64(a->device_count, a->slot_count) + DEVICES_MORE,
		.safe_mode_ns = run->choice.safe_mode_ns,
		.sync_speed_max = run->choice.speed_max,
		.event = heard,
	};
	struct engine_config config = {
		.level = a->level,
		.layout = a->layout,
		.chunk_bytes = a->chunk_bytes,
		.slot_count = a->slot_count,
		.requests_max = run->choice.requests_max,
		.redundancy = &redundancy,
		.owner = run,
	};
	struct fault fault = {0};

	gather(run, disks, devices);
	if (read_bitmap(run, disks, &bitmap, &area))
		redundancy.bitmap = &bitmap;
	if (engine_new(&config, sim_world(run->sim), &run->engine, &fault) < 0)
		run_fail(run, "start", "%s", fault.text);
	free(area);
}

bool raid_start(struct run *run)
{
	struct md_candidate candidates[DISKS_MAX];
	unsigned disks[DISKS_MAX];
	unsigned count = find_candidates(run, candidates, disks);

	if (count == 0 || assemble(run, candidates, count) < 0)
		return false;
	write_changes(run, disks);
	if (!run_is_over(run))
		start_engine(run, disks);
	if (run->engine == NULL)
		return false;
	run->recorded = record_is_kept(run->engine);
	run->array_bytes = engine_array_bytes(run->engine);
	run->readonly = false;
	run->resync = run->resync || !run->assembly->clean;
	atlas_look(run);
	atlas_lost_copy(run);
	return true;
}

static void forget_engine(struct run *run)
{
	clients_forget(run);
	run->operator.busy = run->operator.finished = run->stop_wanted = false;
	run->operator.follow = DEEDS;
	run->operator.follow_disk = ENGINE_NONE;
	engine_free(run->engine);
	run->engine = NULL;
	run->result->restarts++;
	run->tick.armed = 0;
	/* What was about to fail has not: the next start counts on it. */
	for (unsigned i = 0; i < run->disk_count; i++)
		sim_faults_remove(run->sim, TAG_DOOM + i);
	for (unsigned i = 0; i < run->disk_count; i++)
		run->disks[i].was_failed = false;
}

static void note_crash(struct run *run)
{
	atlas_mark_caches(run);
	for (unsigned i = 0; i < run->choice.clients; i++) {
		const struct client *client = &run->clients[i];

		if (client->busy && client->request.op != ENGINE_READ &&
			client->request.op != ENGINE_FLUSH)
			atlas_mark_write(run, client->request.offset_bytes / MD_SECTOR,
				client->request.length_bytes / MD_SECTOR);
	}
	run->resync = true;
	run->no_choices |= fault_spoiled_count(run) > 0;
	if (!is_parity_level(run->choice.level))
		shadow_unsure(run->shadow);
}

void raid_power_cut(struct run *run)
{
	run_trace(run, "POWER CUT");
	note_crash(run);
	sim_power_cut(run->sim);
	shadow_crash(run->shadow, true);
	forget_engine(run);
}

void raid_kill(struct run *run)
{
	run_trace(run, "KILL");
	note_crash(run);
	sim_kill(run->sim);
	shadow_crash(run->shadow, false);
	forget_engine(run);
}

void raid_stopped(struct run *run)
{
	run_trace(run, "STOPPED");
	sim_kill(run->sim); /* nothing is in flight; timers go */
	shadow_crash(run->shadow, false);
	forget_engine(run);
}
