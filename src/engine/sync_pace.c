/* SPDX-License-Identifier: MIT */
/*
 * How fast the background action goes.
 *
 * Never faster than the maximum. While no client is there: as fast as that. While clients are
 * there: one window at a time, and after each a gap that is a multiple of what the window took.
 * So a client's request meets at most one window in front of it, the action gets a fixed share of
 * the members' time, however fast they are, and all of it as soon as the clients rest. (md waits
 * in the same case until nothing of the action is in flight, without a gap.) But never slower than
 * the minimum: below it, windows start whatever clients do.
 *
 * Rates are kept by the time at which the next window would be due if all had started exactly at
 * that rate: one number, no clock tick.
 */
#include "engine/sync_internal.h"

#include "util/rounding.h"

#define SECOND_NS 1000000000u
#define SPEED_MIN_DEFAULT (1000u << 10)   /* md's, 1000 KiB/s */
#define SPEED_MAX_DEFAULT (200000u << 10) /* md's, 200000 KiB/s */
#define BURST_NS 20000000u                /* what was not used is made good for that long */
#define REST_NS 50000000u                 /* clients silent for so long are away */
#define LOOK_NS 10000000u                 /* how often to look whether they still are there */
#define GAP_FACTOR 3u                     /* a quarter of the time is the action's */

void pace_set(struct sync_pace *pace, uint64_t min, uint64_t max)
{
	pace->min = min != 0 ? min : SPEED_MIN_DEFAULT;
	pace->max = max_u64(max != 0 ? max : SPEED_MAX_DEFAULT, pace->min);
	/* What is due by the old rates means nothing; the next look is now. */
	pace->min_due_ns = pace->max_due_ns = 0;
}

void pace_start(struct sync_pace *pace, uint64_t now_ns)
{
	pace->min_due_ns = pace->max_due_ns = pace->gap_until_ns = 0;
	pace->done_bytes = 0;
	pace->mark_count = 1;
	pace->newest_mark = 0;
	pace->marks[0].ns = now_ns;
	pace->marks[0].bytes = 0;
}

void pace_look(struct sync_pace *pace, const struct engine *engine, uint64_t now_ns)
{
	uint64_t requests = 0;

	for (unsigned op = 0; op < 5; op++)
		requests += engine->counters.requests[op];
	if (requests != pace->requests || engine->inflight > 0)
		pace->busy_ns = now_ns + 1; /* 0: never */
	pace->requests = requests;
}

static bool is_busy(const struct sync_pace *pace, uint64_t now_ns)
{
	return pace->busy_ns != 0 && now_ns < pace->busy_ns + REST_NS;
}

uint64_t pace_wait(const struct sync_pace *pace, uint64_t now_ns, unsigned inflight)
{
	uint64_t due = min_u64(pace->min_due_ns, now_ns + LOOK_NS);

	if (now_ns < pace->max_due_ns)
		return pace->max_due_ns;
	if (!is_busy(pace, now_ns) || now_ns >= pace->min_due_ns)
		return 0;
	if (inflight > 0)
		return due;
	return now_ns >= pace->gap_until_ns ? 0 : min_u64(due, pace->gap_until_ns);
}

static uint64_t time_of(uint64_t bytes, uint64_t rate)
{
	return bytes * SECOND_NS / rate; /* a window's bytes: no overflow */
}

void pace_issued(struct sync_pace *pace, uint64_t now_ns, uint64_t bytes)
{
	uint64_t burst_from = now_ns > BURST_NS ? now_ns - BURST_NS : 0;
	uint64_t cost_min = time_of(bytes, pace->min);

	pace->max_due_ns = max_u64(pace->max_due_ns, burst_from) + time_of(bytes, pace->max);
	/* What was done above the minimum is no reason to stand still later. */
	pace->min_due_ns = min_u64(
		max_u64(pace->min_due_ns, burst_from) + cost_min, now_ns + cost_min);
}

void pace_done(struct sync_pace *pace, uint64_t now_ns, uint64_t issued_ns, uint64_t bytes)
{
	pace->gap_until_ns = now_ns + GAP_FACTOR * (now_ns - issued_ns);
	pace->done_bytes += bytes;
	if (now_ns - pace->marks[pace->newest_mark].ns < SECOND_NS)
		return;
	pace->newest_mark = (pace->newest_mark + 1) % PACE_MARKS;
	pace->marks[pace->newest_mark].ns = now_ns;
	pace->marks[pace->newest_mark].bytes = pace->done_bytes;
	if (pace->mark_count < PACE_MARKS)
		pace->mark_count++;
}

uint64_t pace_speed(const struct sync_pace *pace, uint64_t now_ns)
{
	unsigned oldest = (pace->newest_mark + PACE_MARKS + 1 - pace->mark_count) % PACE_MARKS;
	uint64_t bytes = pace->done_bytes - pace->marks[oldest].bytes;
	uint64_t passed_us = (now_ns - pace->marks[oldest].ns) / 1000;

	return pace->mark_count == 0 || passed_us == 0
		       ? 0
		       : (uint64_t)((double)bytes * 1e6 / (double)passed_us);
}
