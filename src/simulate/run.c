/* SPDX-License-Identifier: MIT */
/* A run from its beginning to its end. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "simulate/internal.h"
#include "util/rounding.h"

#define STEPS_MAX 20000000u
#define LOOK_STEPS 32u
#define QUIET_NS (7200 * SECOND)
#define CALM_NS (5 * SECOND) /* after a blackout, until errors are wrong again */

/* splitmix64, as in sim.c; each part of a run has its own, so that one does not disturb another. */
uint64_t draw(struct random *random, uint64_t below)
{
	uint64_t z = random->state += 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	z ^= z >> 31;
	return below == 0 ? 0 : z % below;
}

bool chance(struct random *random, unsigned percent)
{
	return draw(random, 100) < percent;
}

static void mix(struct run *run, uint64_t value)
{
	run->result->hash = (run->result->hash ^ value) * UINT64_C(0x100000001b3);
	run->result->hash ^= run->result->hash >> 31;
}

void run_trace(struct run *run, const char *format, ...)
{
	va_list args;

	if (!run->options->trace || run->options->out == NULL)
		return;
	(void)fprintf(run->options->out, "%13.6f ms  ", (double)run_now(run) / 1e6);
	va_start(args, format);
	(void)vfprintf(run->options->out, format, args);
	va_end(args);
	(void)fputc('\n', run->options->out);
}

void run_fail(struct run *run, const char *kind, const char *format, ...)
{
	struct simulate_result *result = run->result;
	va_list args;

	if (result->failed)
		return;
	result->failed = true;
	(void)snprintf(result->kind, sizeof(result->kind), "%s", kind);
	va_start(args, format);
	(void)vsnprintf(result->text, sizeof(result->text), format, args);
	va_end(args);
	run_trace(run, "FAILED: %s: %s", result->kind, result->text);
}

static void heard_io(void *owner, const struct world_io *io, int result)
{
	static const char *const names[] = {"read", "write", "flush", "discard", "zero"};
	struct run *run = owner;

	run->result->member_ios++;
	mix(run, run_now(run));
	mix(run, (uint64_t)io->op << 32 ^ io->member ^ (uint64_t)io->offset_bytes << 8);
	mix(run, io->length_bytes ^ (uint64_t)(int64_t)result << 32);
	run_trace(run, "    disk %u: %s%s %" PRIu64 "+%" PRIu64 ": %d", io->member, names[io->op],
		io->flags & WORLD_FUA ? " FUA" : "", io->offset_bytes / SHADOW_SECTOR,
		io->length_bytes / SHADOW_SECTOR, result);
}

static void tick(struct world_timer *timer)
{
	(void)timer; /* it only makes the clock go on */
}

static void arm(struct run *run, uint64_t due_ns)
{
	struct world *world = sim_world(run->sim);

	run->tick.expired = tick;
	world->ops->timer_arm(world, &run->tick, max_u64(due_ns, run_now(run) + 1));
}

static void arm_next(struct run *run)
{
	uint64_t next;

	fault_returns(run);
	next = min_u64(clients_next_ns(run), fault_next_ns(run));
	if (!run->operator.busy && !run->quiet)
		next = min_u64(next, run->operator.next_ns);
	if (next != UINT64_MAX)
		arm(run, next);
	else if (run->quiet)
		arm(run, run_now(run) + SECOND);
}

static void look(struct run *run)
{
	struct engine_status status;

	run->look = false;
	atlas_look(run);
	(void)engine_status(run->engine, &status);
	if (status.failed && !run->blackout && !run->options->beyond)
		run_fail(run, "array-failed", "the array has failed");
	if (status.mismatch_sectors != 0 && !run->resync && !run->needs_repair &&
		!run->options->beyond && !run->quiet)
		run_fail(run, "mismatch", "%" PRIu64 " sectors do not match",
			status.mismatch_sectors);
}

void run_step(struct run *run)
{
	arm_next(run);
	if (!sim_step(run->sim)) {
		if (clients_busy(run) > 0 || run->operator.busy)
			run_fail(run, "stuck", "nothing is under way, but somebody waits");
		return;
	}
	run->steps++;
	if (run->steps > STEPS_MAX)
		run_fail(run, "endless", "%u steps", STEPS_MAX);
	clients_collect(run);
	if (!run_is_over(run))
		operator_collect(run);
	if (run->engine != NULL && !run_is_over(run) && (run->look || run->steps % LOOK_STEPS == 0))
		look(run);
}

static void pass_time(struct run *run, uint64_t until_ns)
{
	while (run_now(run) < until_ns) {
		arm(run, until_ns);
		(void)sim_step(run->sim);
	}
}

static uint64_t last_back_ns(const struct run *run)
{
	uint64_t last = 0;

	for (unsigned i = 0; i < run->disk_count; i++)
		if (run->disks[i].away)
			last = max_u64(last, run->disks[i].back_ns);
	return last;
}

/* After a crash: at once, or when all disks are there again. */
static bool restart(struct run *run)
{
	pass_time(run, run_now(run) + MILLI * draw(&run->chaos, 2000));
	fault_returns(run);
	if (run->blackout || chance(&run->chaos, 70)) {
		pass_time(run, last_back_ns(run));
		fault_returns(run);
	}
	if (raid_start(run)) {
		run->blackout = false;
		return true;
	}
	pass_time(run, last_back_ns(run));
	fault_returns(run);
	if (!run_is_over(run) && raid_start(run)) {
		run->blackout = false;
		return true;
	}
	if (!run_is_over(run) && !run->options->beyond)
		run_fail(run, "assembly", "the array does not start again");
	return false;
}

/*
 * Everybody is back. Whatever lives on goes on for a while; then the array is started anew: it has
 * failed, or its last copy has failed a flush, so that it vouches for nothing any more.
 */
static void end_blackout(struct run *run)
{
	struct engine_status status;

	if (!run->blackout || last_back_ns(run) != 0)
		return;
	if (run->blackout_ends_ns == 0)
		run->blackout_ends_ns = run_now(run) + 1 + draw(&run->chaos, CALM_NS);
	(void)engine_status(run->engine, &status);
	if (!status.failed && run_now(run) < run->blackout_ends_ns)
		return;
	run->blackout_ends_ns = 0;
	raid_kill(run);
}

static void work(struct run *run)
{
	while (!run_is_over(run) &&
		(run->started < run->choice.operations || clients_busy(run) > 0)) {
		fault_tick(run);
		if (run->engine == NULL && !restart(run))
			return;
		if (run_is_over(run))
			return;
		end_blackout(run);
		if (run->engine == NULL)
			continue;
		operator_tick(run);
		clients_start(run);
		run_step(run);
	}
}

static bool is_well(struct run *run)
{
	struct engine_status status;

	(void)engine_status(run->engine, &status);
	return status.in_sync == status.slots && status.action == ENGINE_ACTION_IDLE &&
	       status.resync_bytes == UINT64_MAX;
}

/* Faulty devices go, others come, until every slot has one in sync. */
static void make_well(struct run *run)
{
	uint64_t until_ns = run_now(run) + QUIET_NS;

	(void)operator_do(run, ENGINE_READWRITE, ENGINE_NONE, ENGINE_ACTION_IDLE);
	(void)operator_do(run, ENGINE_SYNC, ENGINE_NONE, ENGINE_ACTION_IDLE);
	(void)operator_do(run, ENGINE_SYNC_SPEED, ENGINE_NONE, ENGINE_ACTION_IDLE);
	while (!run_is_over(run) && !is_well(run)) {
		unsigned loose;

		look(run);
		for (unsigned i = 0; i < run->disk_count && !run_is_over(run); i++)
			if (run->disks[i].state == ENGINE_DEVICE_FAULTY)
				(void)operator_do(run, ENGINE_REMOVE, run->disks[i].device,
					ENGINE_ACTION_IDLE);
		loose = run_is_over(run) ? ENGINE_NONE : operator_loose_disk(run, false);
		if (loose != ENGINE_NONE && operator_add(run, loose, false) < 0 &&
			!run_is_over(run))
			(void)operator_do(run, ENGINE_SYNC, ENGINE_NONE, ENGINE_ACTION_RESYNC);
		for (unsigned i = 0; i < 1000 && !run_is_over(run) && !is_well(run); i++)
			run_step(run);
		if (run_now(run) > until_ns + run->stall_ns)
			run_fail(run, "not-well",
				"redundancy is not whole 2 hours after the last "
				"fault");
	}
}

static void stop(struct run *run)
{
	if (!run->recorded || run_is_over(run))
		return;
	if (operator_do(run, ENGINE_STOP, ENGINE_NONE, ENGINE_ACTION_IDLE) < 0 || run_is_over(run))
		return;
	if (run->assembly->degraded || !run->assembly->clean)
		run_fail(run, "superblocks", "the stopped array assembles %s",
			run->assembly->degraded ? "degraded" : "dirty");
}

static void finish(struct run *run)
{
	run->quiet = true;
	while (run->operator.busy && !run_is_over(run))
		run_step(run);
	if (run_is_over(run))
		return;
	fault_end_all(run);
	if (run->blackout || run->engine == NULL) {
		if (run->engine != NULL)
			raid_kill(run);
		if (!restart(run))
			return;
	}
	make_well(run);
	if (!run_is_over(run))
		verify_scrub(run);
	if (!run_is_over(run))
		client_read_all(run);
	if (!run_is_over(run) && chance(&run->chaos, 30))
		verify_corruption(run);
	stop(run);
	if (!run_is_over(run))
		verify_disks(run);
}

void simulate_run(const struct simulate_options *options, struct simulate_result *ret)
{
	struct run *run = calloc(1, sizeof(*run));

	if (run == NULL)
		abort();
	memset(ret, 0, sizeof(*ret));
	run->options = options;
	run->result = ret;
	choose(run);
	run->operator.follow = DEEDS;
	run->operator.follow_disk = ENGINE_NONE;
	choice_print(run);
	raid_create(run);
	sim_trace(run->sim, heard_io, run);
	if (!run_is_over(run) && raid_start(run)) {
		run->shadow = shadow_new(run->array_bytes / SHADOW_SECTOR,
			run->choice.garbage ? SHADOW_ANY : SHADOW_ZERO);
		run->resync = true;
		if (run->choice.garbage)
			memset(run->dirty_rows, 1, run->rows);
		if (!is_parity_level(run->choice.level))
			shadow_unsure(run->shadow);
		clients_init(run);
		work(run);
		if (!run_is_over(run) && !(options->beyond && run->engine == NULL) &&
			!options->beyond)
			finish(run);
		clients_free(run);
	}
	ret->operations = run->completed;
	ret->virtual_ns = run_now(run);
	ret->last_fault = run->fault_number;
	raid_free(run);
	free(run);
}
