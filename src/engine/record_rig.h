/* SPDX-License-Identifier: MIT */
#ifndef STRAKE_ENGINE_RECORD_RIG_H
#define STRAKE_ENGINE_RECORD_RIG_H

/*
 * For tests of the record: an array on simulated disks with real superblocks and bitmaps on them,
 * started from nothing but what these say, as often as a test likes.
 */

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/engine.h"
#include "engine/redundancy.h"
#include "md/assembly.h"
#include "md/badblocks.h"
#include "md/bitmap.h"
#include "sim/sim.h"
#include "util/rounding.h"

#define K 1024u
#define DISKS_MAX 6u
#define DISK_SECTORS 32768u
#define SIZE_SECTORS 20480u
#define DATA_SECTOR 2048u
#define BITMAP_SECTORS 40u
#define FIRST_EVENTS 10u
#define MS UINT64_C(1000000)
#define STEPS_MAX 2000000u

struct rig_options {
	enum md_version version;
	int level;
	unsigned slots, spares, disks; /* more disks than those are there, without superblocks */
	uint32_t bitmap_chunk;         /* 0: none */
	uint32_t block_bytes;
	uint64_t seed;
	bool dirty;
};

struct rig {
	struct sim *sim;
	struct engine *engine;
	struct rig_options options;
	/* As read from the disks. */
	struct md_super supers[DISKS_MAX];
	struct md_candidate candidates[DISKS_MAX];
	unsigned disk_of[DISKS_MAX]; /* by candidate */
	unsigned candidate_count;
	struct md_assembly assembly;
	struct md_bitmap bitmap;
	uint8_t area[BITMAP_SECTORS * MD_SECTOR];
	bool absent[DISKS_MAX];
	bool use_logs;
	struct md_badblocks bad[DISKS_MAX]; /* by the assembly's devices */
	struct fault fault;
};

static const char *const rig_paths[DISKS_MAX] = {"d0", "d1", "d2", "d3", "d4", "d5"};

static inline uint64_t rig_data_sector(const struct rig *rig)
{
	return rig->options.version == MD_VERSION_1_1 || rig->options.version == MD_VERSION_1_2
		       ? DATA_SECTOR
		       : 0;
}

static inline bool rig_has_bitmap(const struct rig *rig)
{
	return rig->options.bitmap_chunk != 0;
}

static inline void rig_describe_090(struct md_super *super, unsigned slots, unsigned spares)
{
	struct md_super_090 *v = &super->v090;

	for (unsigned i = 0; i < slots + spares; i++)
		v->disks[i] = (struct md_super_090_disk){i, 7, i, i, i < slots ? 6 : 0};
	v->minor_version = 90;
	v->nr_disks = v->working_disks = slots + spares;
	v->active_disks = slots;
	v->spare_disks = spares;
	v->cp_events = super->resync_offset == MD_CLEAN ? super->events : 0;
	v->this_disk = v->disks[super->dev_number];
}

/* Places as mdadm would choose, more or less. */
static inline void rig_place(const struct rig *rig, struct md_super *super)
{
	assert_int_equal(
		md_format(super->version)->location(DISK_SECTORS, &super->super_offset), 0);
	super->data_offset = rig_data_sector(rig);
	super->data_sectors = SIZE_SECTORS + 64;
	if (super->version == MD_VERSION_0_90)
		super->data_sectors = super->super_offset;
	super->bitmap_offset = super->version == MD_VERSION_1_0 ? -(int32_t)BITMAP_SECTORS - 8
								: (int32_t)8;
	if (super->version != MD_VERSION_0_90) {
		super->bblog_offset = super->version == MD_VERSION_1_0
					      ? -8
					      : (int32_t)(8 + BITMAP_SECTORS);
		super->bblog_sectors = 8;
	}
}

static inline void rig_super(const struct rig *rig, unsigned number, struct md_super *super)
{
	const struct rig_options *o = &rig->options;

	memset(super, 0, sizeof(*super));
	super->version = o->version;
	memset(super->set_uuid, 0x11, 16);
	memset(super->device_uuid, 0x20 + (int)number, 16);
	if (o->version != MD_VERSION_0_90)
		(void)snprintf(super->name, sizeof(super->name), "host:data");
	super->ctime = super->utime = 1700000000;
	super->level = o->level;
	super->layout = o->level == 10 ? 0x102 : o->level == 1 ? 0 : 2;
	super->chunk_sectors = o->level == 1 ? 0 : 128;
	super->raid_disks = o->slots;
	super->size_sectors = SIZE_SECTORS;
	super->resync_offset = o->dirty ? 0 : MD_CLEAN;
	super->events = FIRST_EVENTS;
	super->dev_number = number;
	super->role_count = o->version == MD_VERSION_0_90 ? 27 : 128;
	for (unsigned i = 0; i < MD_ROLES_MAX; i++)
		super->roles[i] = i < o->slots ? (uint16_t)i : MD_ROLE_SPARE;
	if (rig_has_bitmap(rig))
		super->feature_map = MD_FEATURE_BITMAP;
	rig_place(rig, super);
	if (o->version == MD_VERSION_0_90)
		rig_describe_090(super, o->slots, o->spares);
}

static inline void rig_write_super(struct rig *rig, unsigned disk, const struct md_super *super)
{
	uint8_t block[MD_SUPER_BYTES];

	md_format(super->version)->encode(super, block);
	sim_disk_poke(rig->sim, disk, super->super_offset * MD_SECTOR, block, sizeof(block));
}

static inline void rig_write_bitmap(struct rig *rig, unsigned disk, const struct md_super *super)
{
	uint8_t area[BITMAP_SECTORS * MD_SECTOR];
	struct md_bitmap bitmap;
	uint64_t sector, room;

	memset(area, 0, sizeof(area));
	assert_int_equal(md_bitmap_location(super, &sector, &room, NULL), 0);
	md_bitmap_init(super, rig->options.bitmap_chunk, &bitmap);
	bitmap.events = bitmap.events_cleared = FIRST_EVENTS;
	md_bitmap_encode(&bitmap, area);
	assert_true(md_bitmap_bytes(md_bitmap_bits(&bitmap)) <= sizeof(area));
	sim_disk_poke(rig->sim, disk, sector * MD_SECTOR, area, sizeof(area));
}

/* The superblock of @disk, if there is a valid one. */
static inline bool rig_read_super(struct rig *rig, unsigned disk, struct md_super *ret)
{
	const struct md_format *format = md_format(rig->options.version);
	uint8_t block[MD_SUPER_BYTES];
	struct fault fault = {0};
	uint64_t at;

	assert_int_equal(format->location(DISK_SECTORS, &at), 0);
	sim_disk_peek(rig->sim, disk, at * MD_SECTOR, block, sizeof(block));
	return format->decode(block, at, DISK_SECTORS, ret, &fault) == 0;
}

/* -EUCLEAN and so on, with words in rig->fault. */
static inline int rig_assemble(struct rig *rig, bool force)
{
	struct md_assembly_options options = {.force = force, .run = true};
	unsigned count = 0;

	for (unsigned disk = 0; disk < rig->options.disks; disk++) {
		if (rig->absent[disk] || !rig_read_super(rig, disk, &rig->supers[count]))
			continue;
		rig->candidates[count] = (struct md_candidate){
			rig_paths[disk], DISK_SECTORS, &rig->supers[count]};
		rig->disk_of[count++] = disk;
	}
	rig->candidate_count = count;
	rig->fault = (struct fault){0};
	return md_assemble(rig->candidates, count, &options, &rig->assembly, &rig->fault);
}

/* From the first member in sync; the return value is md_bitmap_check()'s. */
static inline int rig_read_bitmap(struct rig *rig)
{
	for (unsigned i = 0; i < rig->assembly.device_count; i++) {
		const struct md_assembly_device *device = &rig->assembly.devices[i];
		uint64_t sector, room;

		if (!device->in_sync || device->slot > MD_ROLE_SLOT_MAX)
			continue;
		assert_int_equal(md_bitmap_location(device->super, &sector, &room, NULL), 0);
		sim_disk_peek(rig->sim, rig->disk_of[device->candidate], sector * MD_SECTOR,
			rig->area, sizeof(rig->area));
		assert_int_equal(md_bitmap_decode(rig->area, &rig->bitmap, NULL), 0);
		return md_bitmap_check(&rig->bitmap, rig->assembly.super, &rig->fault);
	}
	fail_msg("no member in sync");
	return 0;
}

static inline struct engine_device rig_device(
	const struct rig *rig, const struct md_assembly_device *device)
{
	return (struct engine_device){
		.member = rig->disk_of[device->candidate],
		.slot = device->slot <= MD_ROLE_SLOT_MAX ? device->slot : ENGINE_NONE,
		.in_sync = device->in_sync,
		.replacement = device->replacement,
		.recovered_bytes = device->recovery_offset_bytes,
		.data_offset_bytes = device->data_offset_bytes,
		.data_bytes = device->data_bytes,
		.logical_block_bytes = rig->options.block_bytes,
		.super = device->super,
	};
}

/* With RECORD_TRACE in the environment a failed run can be followed. */
static inline void rig_event(void *owner, const char *text)
{
	const struct rig *rig = owner;

	if (getenv("RECORD_TRACE") != NULL)
		print_message(
			"%9llu us: %s\n", (unsigned long long)(sim_now_ns(rig->sim) / 1000), text);
}

/* The bad-block log of @super on @disk; empty without the feature. */
static inline void rig_read_log(
	struct rig *rig, unsigned disk, const struct md_super *super, struct md_badblocks *ret)
{
	uint8_t log[MD_BADBLOCKS_LOG_BYTES];
	uint64_t sector, sectors;

	md_badblocks_init(super, ret);
	if ((super->feature_map & MD_FEATURE_BAD_BLOCKS) == 0)
		return;
	assert_int_equal(md_badblocks_location(super, &sector, &sectors), 0);
	sim_disk_peek(rig->sim, disk, sector * MD_SECTOR, log, sectors * MD_SECTOR);
	assert_int_equal(md_badblocks_decode(super, log, ret, &rig->fault), 0);
}

/* From what was assembled. */
static inline void rig_start(struct rig *rig, bool readonly)
{
	struct engine_device devices[DISKS_MAX];
	struct engine_bitmap bitmap = {0};
	struct engine_redundancy redundancy = {.component_bytes = rig->assembly.component_bytes,
		.resync_bytes = rig->assembly.clean ? UINT64_MAX
						    : rig->assembly.resync_offset_bytes,
		.devices = devices,
		.device_count = rig->assembly.device_count,
		.device_max = DISKS_MAX + 2,
		.event = rig_event};
	struct engine_config config = {.level = rig->options.level,
		.layout = rig->assembly.layout,
		.chunk_bytes = rig->assembly.chunk_bytes,
		.slot_count = rig->options.slots,
		.readonly = readonly,
		.requests_max = 16,
		.owner = rig,
		.redundancy = &redundancy};

	for (unsigned i = 0; i < rig->assembly.device_count; i++) {
		devices[i] = rig_device(rig, &rig->assembly.devices[i]);
		if (!rig->use_logs)
			continue;
		rig_read_log(rig, devices[i].member, devices[i].super, &rig->bad[i]);
		devices[i].bad = &rig->bad[i];
	}
	if (rig_has_bitmap(rig)) {
		bitmap.stale = rig_read_bitmap(rig) < 0;
		bitmap.header = rig->bitmap;
		bitmap.bits = rig->area + MD_BITMAP_HEADER_BYTES;
		redundancy.bitmap = &bitmap;
	}
	rig->fault = (struct fault){0};
	if (engine_new(&config, sim_world(rig->sim), &rig->engine, &rig->fault) < 0)
		fail_msg("start: %s", rig->fault.text);
}

static inline void rig_init(struct rig *rig, const struct rig_options *options)
{
	uint64_t bytes[DISKS_MAX];
	struct sim_options sim = {.seed = options->seed,
		.disk_count = options->disks,
		.disk_bytes = bytes,
		.latency_min_ns = 1000,
		.latency_max_ns = 900000};

	memset(rig, 0, sizeof(*rig));
	rig->options = *options;
	for (unsigned i = 0; i < options->disks; i++)
		bytes[i] = (uint64_t)DISK_SECTORS * MD_SECTOR;
	assert_int_equal(sim_new(&sim, &rig->sim, NULL), 0);
	for (unsigned i = 0; i < options->slots + options->spares; i++) {
		struct md_super super;

		rig_super(rig, i, &super);
		rig_write_super(rig, i, &super);
		if (rig_has_bitmap(rig))
			rig_write_bitmap(rig, i, &super);
	}
	if (rig_assemble(rig, false) < 0)
		fail_msg("assemble: %s", rig->fault.text);
}

static inline void rig_fini(struct rig *rig)
{
	engine_free(rig->engine);
	sim_free(rig->sim);
}

/* Requests and commands that are waited for. */
struct rig_call {
	struct engine_request request;
	struct engine_command command;
	struct iovec iov;
	int result;
	bool done;
};

static inline void rig_request_done(struct engine_request *request, int result)
{
	struct rig_call *call = request->owner;

	call->result = result;
	call->done = true;
}

static inline void rig_command_done(struct engine_command *command, int result)
{
	struct rig_call *call = command->owner;

	call->result = result;
	call->done = true;
}

static inline void rig_submit(struct rig *rig, struct rig_call *call, enum engine_op op,
	uint64_t offset, uint64_t length, void *buffer, unsigned flags)
{
	memset(call, 0, sizeof(*call));
	call->iov = (struct iovec){buffer, length};
	call->request = (struct engine_request){.op = op,
		.flags = flags,
		.offset_bytes = offset,
		.length_bytes = length,
		.iov = &call->iov,
		.iov_count = buffer != NULL,
		.done = rig_request_done,
		.owner = call};
	engine_submit(rig->engine, &call->request);
	engine_kick(rig->engine);
}

static inline int rig_wait(struct rig *rig, struct rig_call *call)
{
	unsigned steps = 0;

	while (!call->done) {
		assert_true(sim_step(rig->sim));
		assert_true(++steps < STEPS_MAX);
	}
	return call->result;
}

static inline int rig_write(struct rig *rig, uint64_t offset, void *buffer, uint64_t length)
{
	struct rig_call call;

	rig_submit(rig, &call, ENGINE_WRITE, offset, length, buffer, ENGINE_FUA);
	return rig_wait(rig, &call);
}

static inline int rig_command(struct rig *rig, enum engine_verb verb, unsigned device)
{
	struct rig_call call = {.command = {.verb = verb,
					.device = device,
					.with = ENGINE_NONE,
					.fault = &rig->fault,
					.done = rig_command_done}};

	call.command.owner = &call;
	engine_command(rig->engine, &call.command);
	return rig_wait(rig, &call);
}

static inline void rig_sleep(struct rig *rig, uint64_t ns)
{
	uint64_t end = sim_now_ns(rig->sim) + ns;

	while (sim_now_ns(rig->sim) < end && sim_step(rig->sim))
		;
}

/* A superblock for a disk that is to join: as a spare's, from a member's. */
static inline void rig_make_spare(struct rig *rig, unsigned disk, struct md_super *super)
{
	rig_super(rig, disk, super);
	super->dev_number = rig->options.slots + rig->options.spares;
	if (super->version == MD_VERSION_0_90)
		super->v090.this_disk = (struct md_super_090_disk){
			super->dev_number, 7, disk, super->dev_number, 0};
	super->events = 0;
	rig_write_super(rig, disk, super);
}

#endif
