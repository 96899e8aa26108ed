/* SPDX-License-Identifier: MIT */
/* Management commands, as people and scripts give them: at any time, also silly ones. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "md/plan.h"
#include "simulate/internal.h"
#include "util/rounding.h"

#define DEADLINE_NS (600 * SECOND)

static void done(struct engine_command *command, int result)
{
	struct operator* o = command->owner;

	o->finished = true;
	o->result = result;
}

static void give(struct run *run, enum engine_verb verb, unsigned device)
{
	struct operator* o = & run->operator;

	o->command.verb = verb;
	o->command.device = device;
	o->command.fault = &o->fault;
	o->command.done = done;
	o->command.owner = o;
	o->fault = (struct fault){0};
	o->busy = true;
	o->finished = false;
	o->started_ns = run_now(run);
	run_trace(run, "COMMAND %s: verb %u, device %u (disk %u)", simulate_deed_name(o->deed),
		verb, device, o->disk);
	engine_command(run->engine, &o->command);
}

static void prepare(struct run *run, enum simulate_deed deed)
{
	struct operator* o = & run->operator;

	o->command = (struct engine_command){.with = ENGINE_NONE};
	o->deed = deed;
	o->disk = ENGINE_NONE;
	o->expect_refusal = false;
}

/* A disk in one of the states (bits), drawn; ENGINE_NONE: there is none. */
static unsigned find(struct run *run, unsigned states)
{
	unsigned from = (unsigned)draw(&run->chaos, run->disk_count);

	for (unsigned i = 0; i < run->disk_count; i++) {
		unsigned disk = (from + i) % run->disk_count;

		if ((states >> run->disks[disk].state & 1) != 0)
			return disk;
	}
	return ENGINE_NONE;
}

#define IN(state) (1u << ENGINE_DEVICE_##state)

static void fail(struct run *run)
{
	unsigned disk = find(run, IN(IN_SYNC) | IN(REBUILDING) | IN(SPARE));

	if (disk == ENGINE_NONE || (!run->options->beyond && !atlas_may_lose(run, disk)))
		return;
	run->operator.disk = disk;
	run->disks[disk].was_failed = run->disks[disk].doomed = true;
	if (run->disks[disk].state == ENGINE_DEVICE_IN_SYNC && !run->blackout)
		atlas_lost_copy(run);
	give(run, ENGINE_FAIL, run->disks[disk].device);
}

static void remove_disk(struct run *run)
{
	unsigned disk = run->operator.follow_disk;

	if (disk == ENGINE_NONE || run->disks[disk].state != ENGINE_DEVICE_FAULTY)
		disk = find(run, IN(FAULTY) | (chance(&run->chaos, 20) ? IN(SPARE) : 0));

	if (disk == ENGINE_NONE)
		return;
	run->operator.disk = disk;
	give(run, ENGINE_REMOVE, run->disks[disk].device);
}

unsigned operator_loose_disk(const struct run *run, bool with_slot)
{
	for (unsigned i = 0; i < run->disk_count; i++) {
		const struct disk *disk = &run->disks[i];

		if (disk->state == ENGINE_DEVICE_FREE && !disk->dead && !disk->away &&
			(!with_slot || disk->slot != ENGINE_NONE))
			return i;
	}
	return ENGINE_NONE;
}

static unsigned free_number(const struct run *run)
{
	unsigned number = run->choice.slots;

	for (unsigned i = 0; i < engine_device_max(run->engine); i++) {
		struct engine_device_status status;

		engine_device_status(run->engine, i, &status);
		if (status.state == ENGINE_DEVICE_FREE || status.dev_number != number)
			continue;
		number++;
		i = UINT32_MAX; /* from 0 again */
	}
	return number;
}

/* What the array's superblocks say now. */
static bool live_super(struct run *run, struct md_super *ret)
{
	for (unsigned i = 0; i < run->disk_count; i++)
		if (run->disks[i].state == ENGINE_DEVICE_IN_SYNC && raid_read_super(run, i, ret))
			return true;
	return false;
}

static void describe(struct run *run, unsigned disk)
{
	struct operator* o = & run->operator;

	o->add = (struct engine_device){
		.member = disk,
		.slot = ENGINE_NONE,
		.data_offset_bytes = o->super.data_offset * MD_SECTOR,
		.data_bytes = o->super.data_sectors * MD_SECTOR,
		.logical_block_bytes = 512,
		.super = &o->super,
	};
	o->command.add = &o->add;
	o->disk = disk;
	run->data_offset[disk] = o->add.data_offset_bytes;
}

static bool array_has_failed(const struct run *run)
{
	struct engine_status status;

	(void)engine_status(run->engine, &status);
	return status.failed;
}

/* As control does it: no old superblock is left, the engine writes the new one. */
static bool plan_add(struct run *run, unsigned disk)
{
	struct operator* o = & run->operator;
	struct md_super *array = &run->supers[0];
	struct md_plan_device device = {.path = "disk", .sectors = raid_super_sectors(run, disk)};
	uint8_t zeros[MD_SUPER_BYTES] = {0};

	if (array_has_failed(run))
		return false; /* refused before anything is written */
	memset(device.device_uuid, 0x80 + (int)draw(&run->chaos, 100), sizeof(device.device_uuid));
	if (!live_super(run, array) ||
		md_plan_add(array, &device, free_number(run), &o->super, NULL) < 0)
		return false;
	sim_disk_poke(run->sim, disk, o->super.super_offset * MD_SECTOR, zeros, sizeof(zeros));
	describe(run, disk);
	sim_faults_remove(run->sim, TAG_DOOM + disk); /* it is another disk now */
	return true;
}

static bool plan_re_add(struct run *run, unsigned disk)
{
	struct operator* o = & run->operator;
	const uint32_t unfinished = MD_FEATURE_RECOVERY_OFFSET | MD_FEATURE_REPLACEMENT;
	struct engine_status status;

	(void)engine_status(run->engine, &status);
	if (!raid_read_super(run, disk, &o->super) || md_super_role(&o->super) > MD_ROLE_SLOT_MAX ||
		((o->super.feature_map & unfinished) != 0 &&
			(o->super.feature_map & MD_FEATURE_RECOVERY_BITMAP) == 0) ||
		o->super.events > status.events)
		return false;
	describe(run, disk);
	o->add.slot = md_super_role(&o->super);
	sim_faults_remove(run->sim, TAG_DOOM + disk);
	return true;
}

static void add(struct run *run, bool re_add)
{
	unsigned disk = run->operator.follow_disk;

	if (disk == ENGINE_NONE || run->disks[disk].state != ENGINE_DEVICE_FREE ||
		run->disks[disk].dead || run->disks[disk].away)
		disk = operator_loose_disk(run, re_add);

	if (disk == ENGINE_NONE || !(re_add ? plan_re_add(run, disk) : plan_add(run, disk)))
		return;
	give(run, re_add ? ENGINE_RE_ADD : ENGINE_ADD, ENGINE_NONE);
}

static void replace(struct run *run)
{
	unsigned disk = find(run, IN(IN_SYNC));

	if (disk == ENGINE_NONE || run->disks[disk].doomed)
		return;
	/* A copy on a disk with hard errors is worth less than the original. */
	for (unsigned i = 0; i < run->disk_count; i++)
		if (run->disks[i].state == ENGINE_DEVICE_SPARE && run->disks[i].doomed)
			return;
	run->operator.disk = disk;
	run->disks[disk].was_failed = true;
	give(run, ENGINE_REPLACE, run->disks[disk].device);
}

static void sync_action(struct run *run, enum engine_action action)
{
	run->operator.command.action = action;
	give(run, ENGINE_SYNC, ENGINE_NONE);
}

static void speed(struct run *run)
{
	run->operator.command.speed_min = UINT64_C(1024) << draw(&run->chaos, 12);
	run->operator.command.speed_max = run->choice.speed_max << draw(&run->chaos, 4);
	give(run, ENGINE_SYNC_SPEED, ENGINE_NONE);
}

/* What must be refused. */
static void silly(struct run *run)
{
	unsigned disk = find(run, IN(IN_SYNC) | IN(REBUILDING));

	run->operator.expect_refusal = true;
	switch (draw(&run->chaos, 3)) {
	case 0:
		give(run, ENGINE_FAIL, engine_device_max(run->engine) - 1 + 5);
		break;
	case 1:
		if (disk == ENGINE_NONE || run->disks[disk].doomed || run->disks[disk].was_failed)
			return;
		give(run, ENGINE_REMOVE, run->disks[disk].device);
		break;
	default:
		run->operator.command.with = engine_device_max(run->engine) + 5;
		give(run, ENGINE_REPLACE, 0);
	}
}

static void act(struct run *run, enum simulate_deed deed)
{
	prepare(run, deed);
	switch (deed) {
	case DEED_FAIL:
		fail(run);
		break;
	case DEED_REMOVE:
		remove_disk(run);
		break;
	case DEED_ADD:
	case DEED_RE_ADD:
		add(run, deed == DEED_RE_ADD);
		break;
	case DEED_REPLACE:
		replace(run);
		break;
	case DEED_CHECK:
		sync_action(run, ENGINE_ACTION_CHECK);
		break;
	case DEED_REPAIR:
		sync_action(run, ENGINE_ACTION_REPAIR);
		break;
	case DEED_IDLE:
		sync_action(
			run, chance(&run->chaos, 50) ? ENGINE_ACTION_IDLE : ENGINE_ACTION_RESYNC);
		break;
	case DEED_FROZEN:
		sync_action(run, ENGINE_ACTION_FROZEN);
		break;
	case DEED_SPEED:
		speed(run);
		break;
	case DEED_READONLY:
		run->readonly = true;
		give(run, ENGINE_READONLY, ENGINE_NONE);
		break;
	case DEED_STOP:
		run->readonly = run->stop_wanted = true; /* exports stop asking */
		give(run, ENGINE_STOP, ENGINE_NONE);
		break;
	default:
		silly(run);
	}
}

static enum simulate_deed draw_deed(struct run *run)
{
	const unsigned *weights = run->choice.deed_weights;
	unsigned sum = 0, at, deed = 0;

	for (unsigned i = 0; i < DEEDS; i++)
		sum += weights[i];
	if (sum == 0)
		return DEEDS;
	at = (unsigned)draw(&run->chaos, sum);
	while (at >= weights[deed])
		at -= weights[deed++];
	return (enum simulate_deed)deed;
}

static enum simulate_deed choose_deed(struct run *run)
{
	if (run->operator.follow != DEEDS)
		return run->operator.follow;
	return draw_deed(run);
}

void operator_tick(struct run *run)
{
	struct operator* o = & run->operator;
	struct random own, kept;
	enum simulate_deed deed;

	if (o->busy || run_now(run) < o->next_ns || run->quiet)
		return;
	o->next_ns = run_now(run) + 1 + draw(&run->chaos, 2 * run->choice.deed_every_ns);
	own.state = draw(&run->chaos, UINT64_MAX);
	kept = run->chaos;
	run->chaos = own;
	deed = choose_deed(run);
	if (run->readonly) {
		prepare(run, DEED_READONLY);
		give(run, ENGINE_READWRITE, ENGINE_NONE);
	} else if (deed == DEED_STOP && !run->recorded) {
		run_trace(run, "no stop: the engine keeps no record");
	} else if (deed < DEEDS) {
		act(run, deed);
		o->follow = DEEDS;
		o->follow_disk = ENGINE_NONE;
	}
	run->result->deeds += o->busy;
	run->chaos = kept;
}

static bool may_be_refused(const struct operator* o, int result)
{
	switch (o->command.verb) {
	case ENGINE_FAIL:
	case ENGINE_REMOVE: /* it may have gone, or come, meanwhile */
		return result == -ENODEV || result == -EBUSY;
	case ENGINE_ADD:
		return result == -ENOSPC;
	case ENGINE_RE_ADD:
		return result == -EINVAL || result == -EBUSY || result == -ENOSPC;
	case ENGINE_REPLACE:
		return result == -EBUSY || result == -ENODEV;
	case ENGINE_SYNC:
		return result == -EBUSY || result == -EINVAL;
	default:
		return false;
	}
}

static void check(struct run *run)
{
	const struct operator* o = & run->operator;

	if (o->expect_refusal && o->result == 0)
		run_fail(run, "not-refused", "verb %u of device %u was not refused",
			o->command.verb, o->command.device);
	if (o->result == 0 || o->expect_refusal || run->blackout || run->options->beyond ||
		(o->result == -EROFS && run->readonly) || may_be_refused(o, o->result))
		return;
	run_fail(run, "command", "%s (verb %u): %d %s", simulate_deed_name(o->deed),
		o->command.verb, o->result, o->fault.text);
}

/* Sooner than another thing would be done. */
static void follow(struct run *run)
{
	struct operator* o = & run->operator;
	bool may = (run->options->no_deeds >> DEED_RE_ADD & 1) == 0 && chance(&run->chaos, 70);

	if (o->result < 0 || o->disk == ENGINE_NONE || !may || run->quiet)
		return;
	if (o->deed == DEED_FAIL)
		o->follow = DEED_REMOVE;
	else if (o->deed == DEED_REMOVE && run->disks[o->disk].slot != ENGINE_NONE)
		o->follow = DEED_RE_ADD;
	else
		return;
	o->follow_disk = o->disk;
	o->next_ns = run_now(run) + draw(&run->chaos, 100 * MILLI);
}

static void stopped(struct run *run)
{
	bool whole = !run->resync && !run->blackout && run->operator.result == 0;

	clients_collect(run);
	run->stop_wanted = false;
	raid_stopped(run);
	if (run_is_over(run) || run->blackout || !raid_start(run))
		return;
	if (whole && !run->assembly->clean && !run->options->beyond)
		run_fail(run, "dirty", "the array is dirty after a clean stop");
}

void operator_collect(struct run *run)
{
	struct operator* o = & run->operator;

	if (!o->busy)
		return;
	if (!o->finished) {
		if (run_now(run) - o->started_ns > DEADLINE_NS + run->stall_ns)
			run_fail(run, "deadline", "%s (verb %u) does not end",
				simulate_deed_name(o->deed), o->command.verb);
		return;
	}
	o->busy = false;
	run->look = true;
	run_trace(run, "COMMAND done: %d %s", o->result, o->fault.text);
	check(run);
	follow(run);
	if (o->deed == DEED_FAIL && o->disk != ENGINE_NONE && o->result < 0)
		run->disks[o->disk].was_failed = false;
	if (o->command.verb == ENGINE_READWRITE)
		run->readonly = false;
	if (o->command.verb == ENGINE_STOP && !run_is_over(run))
		stopped(run);
}

static int wait_done(struct run *run)
{
	while (run->operator.busy && !run_is_over(run))
		run_step(run);
	return run_is_over(run) ? -EIO : run->operator.result;
}

int operator_do(struct run *run, enum engine_verb verb, unsigned device, enum engine_action action)
{
	while (run->operator.busy && !run_is_over(run))
		run_step(run);
	if (run_is_over(run))
		return -EIO;
	prepare(run, DEED_IDLE);
	run->operator.command.action = action;
	if (verb == ENGINE_SYNC_SPEED)
		run->operator.command.speed_max = UINT64_C(1) << 40;
	give(run, verb, device);
	return wait_done(run);
}

int operator_add(struct run *run, unsigned disk, bool re_add)
{
	if (run_is_over(run))
		return -EIO;
	prepare(run, re_add ? DEED_RE_ADD : DEED_ADD);
	if (!(re_add ? plan_re_add(run, disk) : plan_add(run, disk)))
		return -EINVAL;
	give(run, re_add ? ENGINE_RE_ADD : ENGINE_ADD, ENGINE_NONE);
	return wait_done(run);
}
