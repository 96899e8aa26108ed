/* SPDX-License-Identifier: MIT */
/* Windows of the background action on a mirror, as walks. */
#include "engine/mirror.h"

static struct mirror_step *step_of(const struct sync_window *window)
{
	return &mirror_of(window->engine)->steps[window->number];
}

static unsigned next_rebuilding(const struct engine *engine, unsigned from)
{
	for (unsigned device = from; device < engine->device_max; device++)
		if (engine->devices[device].state == ENGINE_DEVICE_REBUILDING)
			return device;
	return ENGINE_NONE;
}

static void start_walk(struct mirror_step *step, unsigned target);

static void walked(struct mirror_step *step)
{
	struct sync_window *window = step->window;
	unsigned next = ENGINE_NONE;

	if (step->result < 0)
		step->window_result = step->result;
	if (step->purpose == MIRROR_REBUILD && step->target != ENGINE_NONE)
		next = next_rebuilding(step->engine, step->target + 1);
	if (next != ENGINE_NONE) {
		start_walk(step, next);
		world_kick(step->engine->world);
	} else {
		sync_window_done(window, step->window_result);
	}
}

static void start_walk(struct mirror_step *step, unsigned target)
{
	step->target = target;
	step->at_bytes = step->window->first_bytes;
	/* Nothing rebuilds any more: an empty walk, which ends by itself. */
	step->end_bytes = step->purpose == MIRROR_REBUILD && target == ENGINE_NONE
				  ? step->at_bytes
				  : step->window->end_bytes;
	step->done = walked;
	mirror_walk(step);
}

static enum mirror_purpose purpose_of(enum engine_action action)
{
	if (action == ENGINE_ACTION_RECOVERY)
		return MIRROR_REBUILD;
	return action == ENGINE_ACTION_CHECK ? MIRROR_CHECK : MIRROR_EQUALISE;
}

void mirror_sync_window(struct sync_window *window)
{
	struct mirror_step *step = step_of(window);

	step->window = window;
	step->work = NULL;
	step->purpose = purpose_of(window->action);
	step->window_result = 0;
	start_walk(step,
		step->purpose == MIRROR_REBUILD ? next_rebuilding(window->engine, 0) : ENGINE_NONE);
}
