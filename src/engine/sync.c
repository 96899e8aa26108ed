/* SPDX-License-Identifier: MIT */
/* The background action. Nothing runs yet. */
#include "engine/sync.h"

#include <errno.h>

#include "engine/devices.h"

int sync_new(struct engine *engine, const struct engine_config *config, struct fault *fault)
{
	(void)engine;
	(void)config;
	(void)fault;
	return 0;
}

void sync_free(struct engine *engine)
{
	(void)engine;
}

void sync_window_done(struct sync_window *window, int result)
{
	(void)window;
	(void)result;
}

void sync_mismatch(struct engine *engine, uint64_t first, uint64_t length, unsigned slot)
{
	(void)engine;
	(void)first;
	(void)length;
	(void)slot;
}

bool sync_is_consistent(const struct engine *engine, uint64_t first, uint64_t end)
{
	(void)engine;
	(void)first;
	(void)end;
	return true;
}

void sync_consider(struct engine *engine)
{
	(void)engine;
}

void sync_pause(struct engine *engine, void (*stopped)(struct engine *engine))
{
	stopped(engine);
}

void sync_resume(struct engine *engine)
{
	(void)engine;
}

int sync_request(struct engine *engine, enum engine_action action)
{
	(void)engine;
	(void)action;
	return -EOPNOTSUPP;
}

void sync_set_speed(struct engine *engine, uint64_t min, uint64_t max)
{
	(void)engine;
	(void)min;
	(void)max;
}

uint64_t sync_resync_bytes(const struct engine *engine)
{
	(void)engine;
	return UINT64_MAX;
}

void sync_status(const struct engine *engine, struct engine_status *ret)
{
	(void)engine;
	(void)ret;
}
