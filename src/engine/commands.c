/* SPDX-License-Identifier: MIT */
/*
 * Management commands. Each changes the devices table and asks for the record of it; it is done
 * when that is durable. What has to wait for requests in flight looks again every half millisecond:
 * commands are rare, and so the I/O path need not know of them.
 */
#include <assert.h>
#include <errno.h>

#include "engine/devices.h"
#include "engine/record.h"
#include "engine/sync.h"

#define LOOK_AGAIN_NS 500000u

static void advance(struct engine *engine);

/* The first command in the list is the one in progress; it ends here. */
static void finish(struct engine *engine, int result)
{
	struct redundant *r = engine->redundant;
	struct engine_command *command = r->commands;

	r->commands = command->next;
	command->next = NULL;
	r->command_started = false;
	command->done(command, result);
	if (r->commands != NULL && !r->command_started)
		advance(engine);
}

static void recorded(struct record_waiter *waiter, int result)
{
	finish(waiter->owner, result);
}

static void finish_when_recorded(struct engine *engine)
{
	struct redundant *r = engine->redundant;

	r->command_waiter.done = recorded;
	r->command_waiter.owner = engine;
	record_change(engine, &r->command_waiter);
	sync_consider(engine);
	world_kick(engine->world);
}

static void look_again(struct world_timer *timer)
{
	advance(timer->owner);
}

static void wait_a_little(struct engine *engine)
{
	struct redundant *r = engine->redundant;
	struct world *world = engine->world;

	r->command_timer.expired = look_again;
	r->command_timer.owner = engine;
	world->ops->timer_arm(world, &r->command_timer, world_now_ns(world) + LOOK_AGAIN_NS);
}

static bool is_device(const struct engine *engine, unsigned device)
{
	return device < engine->device_max && engine->devices[device].state != ENGINE_DEVICE_FREE;
}

static int no_device(const struct engine_command *command)
{
	return fault_set(command->fault, -ENODEV, "the array has no device %u", command->device);
}

static void do_fail(struct engine *engine, struct engine_command *command)
{
	const struct device *d = &engine->devices[command->device];

	if (!is_device(engine, command->device)) {
		finish(engine, no_device(command));
	} else if (d->state == ENGINE_DEVICE_IN_SYNC &&
		   !device_is_expendable(engine, command->device)) {
		finish(engine, fault_set(command->fault, -EBUSY,
				       "device %u holds data that no other device has: the array "
				       "would fail; add a spare and wait until it is rebuilt",
				       command->device));
	} else {
		(void)device_fail(engine, command->device);
		finish_when_recorded(engine);
	}
}

static void do_remove(struct engine *engine, struct engine_command *command)
{
	struct device *d = &engine->devices[command->device];

	if (!is_device(engine, command->device)) {
		finish(engine, no_device(command));
		return;
	}
	if (d->state != ENGINE_DEVICE_FAULTY && d->state != ENGINE_DEVICE_SPARE) {
		finish(engine, fault_set(command->fault, -EBUSY,
				       "device %u is in use in slot %u; fail it first",
				       command->device, d->slot));
		return;
	}
	if (d->inflight > 0) {
		wait_a_little(engine);
		return;
	}
	record_device_remove(engine, command->device);
	*d = (struct device){.state = ENGINE_DEVICE_FREE, .slot = ENGINE_NONE};
	finish_when_recorded(engine);
}

static unsigned free_number(const struct engine *engine)
{
	for (unsigned i = 0; i < engine->device_max; i++)
		if (engine->devices[i].state == ENGINE_DEVICE_FREE)
			return i;
	return ENGINE_NONE;
}

static int join(
	struct engine *engine, struct engine_command *command, const struct engine_device *device)
{
	unsigned number = free_number(engine);
	int r;

	if (number == ENGINE_NONE)
		return fault_set(command->fault, -ENOSPC,
			"the array has room for %u devices, and as many; remove a faulty one first",
			engine->device_max);
	r = device_set(engine, number, device, command->fault);
	if (r < 0)
		return r;
	r = record_device_add(engine, number, device, command->fault);
	if (r < 0) {
		if (device->slot != ENGINE_NONE)
			engine->redundant->active[device->slot] = ENGINE_NONE;
		engine->devices[number] = (struct device){.slot = ENGINE_NONE};
		return r;
	}
	command->result_device = number;
	return 0;
}

static void do_add(struct engine *engine, struct engine_command *command)
{
	struct engine_device device = *command->add;
	int r;

	device.slot = ENGINE_NONE;
	device.in_sync = device.replacement = false;
	r = engine->redundant->failed
		    ? fault_set(command->fault, -EIO,
			      "the array has failed; a device cannot be added to it")
		    : join(engine, command, &device);
	if (r < 0)
		finish(engine, r);
	else
		finish_when_recorded(engine);
}

/* Specification 3.6: may the device have its slot back with a copy of the changes only? */
static int check_re_add(const struct engine *engine, const struct engine_command *command)
{
	const struct engine_device *add = command->add;

	if (add->super == NULL || add->slot == ENGINE_NONE || add->slot >= engine->slot_count)
		return fault_set(command->fault, -EINVAL,
			"the device had no slot in the array; add it as a spare instead");
	if (engine->redundant->active[add->slot] != ENGINE_NONE)
		return fault_set(command->fault, -EBUSY,
			"slot %u, which the device had, is taken; add it as a spare instead",
			add->slot);
	if (add->super->events > record_events(engine))
		return fault_set(command->fault, -EINVAL,
			"the device knows of event %llu, the array only of %llu: it belongs to a "
			"later state of the array; add it instead if its content may be lost",
			(unsigned long long)add->super->events,
			(unsigned long long)record_events(engine));
	if ((add->super->feature_map & (MD_FEATURE_RECOVERY_OFFSET | MD_FEATURE_RECOVERY_BITMAP)) ==
		MD_FEATURE_RECOVERY_OFFSET)
		return fault_set(command->fault, -EINVAL,
			"the device was being rebuilt when it left, and so was never whole; add it "
			"instead (all of it is copied then)");
	if (!record_has_bitmap(engine) && add->super->events != record_events(engine))
		return fault_set(command->fault, -EINVAL,
			"the array has no write-intent bitmap, so what the device missed is not "
			"known; add it instead (all of it is copied then)");
	if (record_has_bitmap(engine) && add->super->events < record_events_cleared(engine))
		return fault_set(command->fault, -EINVAL,
			"the device left at event %llu, and the bitmap knows of changes only since "
			"event %llu; add it instead (all of it is copied then)",
			(unsigned long long)add->super->events,
			(unsigned long long)record_events_cleared(engine));
	return 0;
}

static void do_re_add(struct engine *engine, struct engine_command *command)
{
	struct engine_device device = *command->add;
	int r = check_re_add(engine, command);

	device.replacement = device.in_sync = false;
	device.recovered_bytes = 0;
	if (r == 0)
		r = join(engine, command, &device);
	if (r < 0) {
		finish(engine, r);
		return;
	}
	engine->devices[command->result_device].by_bitmap = record_has_bitmap(engine);
	bitmap_need_all_set(engine);
	finish_when_recorded(engine);
}

static unsigned find_spare(const struct engine *engine, unsigned wanted)
{
	for (unsigned i = 0; i < engine->device_max; i++)
		if (engine->devices[i].state == ENGINE_DEVICE_SPARE &&
			(wanted == ENGINE_NONE || wanted == i))
			return i;
	return ENGINE_NONE;
}

static int start_replacement(struct engine *engine, struct engine_command *command)
{
	struct redundant *r = engine->redundant;
	struct device *old = &engine->devices[command->device];
	unsigned spare = find_spare(engine, command->with);

	if (!is_device(engine, command->device) || old->slot == ENGINE_NONE)
		return no_device(command);
	if (old->state != ENGINE_DEVICE_IN_SYNC || r->replacement[old->slot] != ENGINE_NONE)
		return fault_set(command->fault, -EBUSY,
			"device %u is not in sync, or is being replaced already", command->device);
	if (spare == ENGINE_NONE)
		return fault_set(command->fault, -ENODEV,
			"no spare to replace device %u with; add one first", command->device);
	r->replacement[old->slot] = spare;
	engine->devices[spare].slot = old->slot;
	engine->devices[spare].replacement = true;
	engine->devices[spare].recovered_bytes = 0;
	engine->devices[spare].state = ENGINE_DEVICE_REBUILDING;
	return 0;
}

static void do_replace(struct engine *engine, struct engine_command *command)
{
	int r = start_replacement(engine, command);

	if (r < 0)
		finish(engine, r);
	else
		finish_when_recorded(engine);
}

/* Why does a check or repair find nothing to do its work on? */
static const char *no_scrub(const struct engine *engine)
{
	if (engine->redundant->failed)
		return "the array has failed; stop it and assemble it with --force";
	if (engine->readonly)
		return "the array is read-only; make it read-write first";
	return "members are missing or not rebuilt yet, and without them there is nothing to "
	       "compare the others with; add members, wait until they are rebuilt, and ask again";
}

static void do_sync(struct engine *engine, struct engine_command *command)
{
	int r = sync_request(engine, command->action);

	if (r == -EBUSY)
		(void)fault_set(command->fault, r,
			"another action is running, or has to be first; wait for its end, or "
			"interrupt a check with --action=idle");
	else if (r < 0)
		(void)fault_set(command->fault, r, "%s", no_scrub(engine));
	finish(engine, r);
}

static void paused(struct engine *engine)
{
	engine->redundant->command_paused = true;
}

/* Reads go on while an array becomes read-only, and may never end. */
static bool is_drained(const struct engine *engine, const struct engine_command *command)
{
	return command->verb == ENGINE_STOP ? engine->inflight == 0 : engine->inflight_writes == 0;
}

static void closed(struct record_waiter *waiter, int result)
{
	struct engine *engine = waiter->owner;

	engine->redundant->command_closing = false;
	engine->redundant->closed_badly = result < 0;
	finish(engine, result);
}

/* READONLY and STOP: no more writes, none in flight, no action, all said on the members. */
static void do_close(struct engine *engine, struct engine_command *command)
{
	struct redundant *r = engine->redundant;

	if (!r->command_closing) {
		r->command_closing = true;
		r->command_paused = false;
		r->was_readonly = engine->readonly;
		r->stopping = command->verb == ENGINE_STOP;
		engine->readonly = true;
		sync_pause(engine, paused);
	}
	if (!r->command_paused || !is_drained(engine, command)) {
		wait_a_little(engine);
		return;
	}
	if (r->was_readonly) {
		r->command_closing = false;
		finish(engine, 0);
		return;
	}
	r->command_waiter.done = closed;
	r->command_waiter.owner = engine;
	record_close(engine, &r->command_waiter);
	world_kick(engine->world);
}

static void do_readwrite(struct engine *engine)
{
	engine->readonly = false;
	sync_resume(engine);
	sync_consider(engine);
	world_kick(engine->world);
	finish(engine, 0);
}

static bool changes_members(enum engine_verb verb)
{
	return verb != ENGINE_READONLY && verb != ENGINE_READWRITE && verb != ENGINE_STOP &&
	       verb != ENGINE_SYNC_SPEED;
}

static void dispatch(struct engine *engine, struct engine_command *command)
{
	switch (command->verb) {
	case ENGINE_FAIL:
		do_fail(engine, command);
		break;
	case ENGINE_REMOVE:
		do_remove(engine, command);
		break;
	case ENGINE_ADD:
		do_add(engine, command);
		break;
	case ENGINE_RE_ADD:
		do_re_add(engine, command);
		break;
	case ENGINE_REPLACE:
		do_replace(engine, command);
		break;
	case ENGINE_SYNC:
		do_sync(engine, command);
		break;
	case ENGINE_SYNC_SPEED:
		sync_set_speed(engine, command->speed_min, command->speed_max);
		finish(engine, 0);
		break;
	case ENGINE_READWRITE:
		do_readwrite(engine);
		break;
	case ENGINE_READONLY:
	case ENGINE_STOP:
		do_close(engine, command);
		break;
	}
}

static void advance(struct engine *engine)
{
	struct engine_command *command = engine->redundant->commands;

	engine->redundant->command_started = true;
	if (engine->readonly && changes_members(command->verb))
		finish(engine, fault_set(command->fault, -EROFS,
				       "the array is read-only; make it read-write first"));
	else
		dispatch(engine, command);
}

/* From the world's run, so that done() is never called inside engine_command(). */
void engine_command(struct engine *engine, struct engine_command *command)
{
	struct redundant *r = engine->redundant;
	struct engine_command **last;

	assert(r != NULL);
	for (last = &r->commands; *last != NULL; last = &(*last)->next)
		;
	*last = command;
	command->next = NULL;
	command->result_device = ENGINE_NONE;
	if (r->commands == command)
		wait_a_little(engine);
}
