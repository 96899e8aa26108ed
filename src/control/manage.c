/* SPDX-License-Identifier: MIT */
#include "control/manage.h"

#include <errno.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>

#include "control/detail.h"
#include "control/manage_internal.h"
#include "util/cleanup.h"

struct running {
	const struct manage *manage;
	struct engine_command *command;
	int result;
	sem_t done;
};

static void command_done(struct engine_command *command, int result)
{
	struct running *running = command->owner;

	running->result = result;
	(void)sem_post(&running->done); /* cannot overflow: once */
}

static void start_command(void *argument)
{
	struct running *running = argument;

	engine_command(running->manage->engine, running->command);
	engine_kick(running->manage->engine);
}

int manage_command(const struct manage *manage, struct engine_command *command)
{
	struct running running = {.manage = manage, .command = command};

	command->done = command_done;
	command->owner = &running;
	(void)sem_init(&running.done, 0, 0); /* valid arguments */
	manage->on_engine(manage->owner, start_command, &running);
	while (sem_wait(&running.done) < 0) /* EINTR */
		;
	(void)sem_destroy(&running.done);
	if (running.result < 0 && command->fault != NULL && command->fault->error == 0)
		(void)fault_set(command->fault, running.result,
			"the change could not be recorded on the members: %s",
			strerror(-running.result));
	return running.result;
}

static const char *text_of(json_t *request, const char *key)
{
	return json_string_value(json_object_get(request, key));
}

json_t *manage_reply(const char *path)
{
	return json_pack("{s:b, s:[o]}", "ok", true, "devices", detail_string(path));
}

/* One line about the device goes before the engine's words, which know it by number only. */
static json_t *refuse(const char *path, struct fault *fault)
{
	(void)fault_prefix(fault, "%s: ", path);
	return NULL;
}

static json_t *run_on_device(const struct manage *manage, const struct manage_facts *facts,
	struct engine_command *command, struct fault *fault)
{
	char path[PATH_MAX];

	(void)manage_path(manage_member(manage, facts, command->device), path);
	command->fault = fault;
	if (manage_command(manage, command) < 0)
		return refuse(path, fault);
	return manage_reply(path);
}

static json_t *fail(const struct manage *manage, const struct manage_facts *facts, unsigned device,
	struct fault *fault)
{
	struct engine_command command = {.verb = ENGINE_FAIL, .device = device};

	return run_on_device(manage, facts, &command, fault);
}

struct leaving {
	const struct manage *manage;
	unsigned index;
};

static void leave(void *argument)
{
	const struct leaving *leaving = argument;

	reactor_member_remove(leaving->manage->reactor, leaving->index);
}

/* The kernel may keep a descriptor's file for a moment; its lock is given back now. */
static void let_go(const struct manage *manage, unsigned index)
{
	struct member *member = reactor_members(manage->reactor)[index];
	struct leaving leaving = {manage, index};

	manage->on_engine(manage->owner, leave, &leaving);
	member_release(member);
	if (manage->dispose != NULL)
		manage->dispose(manage->owner, member);
	else
		member_close(member);
}

static json_t *remove_device(const struct manage *manage, const struct manage_facts *facts,
	unsigned device, struct fault *fault)
{
	struct engine_command command = {.verb = ENGINE_REMOVE, .device = device};
	json_t *reply = run_on_device(manage, facts, &command, fault);
	_cleanup_(manage_facts_free) struct manage_facts *now = NULL;

	/* It has gone even if the others could not take the record of it. */
	if (manage_facts_take(manage, &now, NULL) == 0 &&
		now->devices[device].state == ENGINE_DEVICE_FREE)
		let_go(manage, facts->devices[device].member);
	return reply;
}

typedef json_t *(*device_verb)(const struct manage *manage, const struct manage_facts *facts,
	unsigned device, struct fault *fault);

static bool is_chosen(const struct manage *manage, const struct manage_facts *facts,
	unsigned device, const char *keyword)
{
	bool faulty = facts->devices[device].state == ENGINE_DEVICE_FAULTY;

	if (facts->devices[device].state == ENGINE_DEVICE_FREE)
		return false;
	if (strcmp(keyword, "detached") == 0)
		return manage_is_detached(manage_member(manage, facts, device));
	return faulty;
}

/* All devices that a keyword stands for; none is no error. */
static json_t *run_on_all(const struct manage *manage, const struct manage_facts *facts,
	const char *keyword, device_verb verb, struct fault *fault)
{
	json_t *devices = json_array();

	for (unsigned i = 0; i < facts->device_max && fault->error == 0; i++) {
		json_t *one = NULL;

		if (!is_chosen(manage, facts, i, keyword) ||
			(verb == fail && facts->devices[i].state == ENGINE_DEVICE_FAULTY))
			continue;
		one = verb(manage, facts, i, fault);
		(void)json_array_extend(devices, json_object_get(one, "devices"));
		json_decref(one);
	}
	return json_pack("{s:b, s:o}", "ok", true, "devices", devices);
}

static json_t *run_verb(const struct manage *manage, const struct manage_facts *facts,
	json_t *request, device_verb verb, struct fault *fault)
{
	const char *keyword = text_of(request, "keyword");
	unsigned device;

	if (keyword != NULL)
		return run_on_all(manage, facts, keyword, verb, fault);
	if (manage_find_named(manage, facts, text_of(request, "device"), &device, fault) < 0)
		return NULL;
	return verb(manage, facts, device, fault);
}

static json_t *do_fail(const struct manage *manage, const struct manage_facts *facts,
	json_t *request, struct fault *fault)
{
	return run_verb(manage, facts, request, fail, fault);
}

static json_t *do_remove(const struct manage *manage, const struct manage_facts *facts,
	json_t *request, struct fault *fault)
{
	return run_verb(manage, facts, request, remove_device, fault);
}

static json_t *do_replace(const struct manage *manage, const struct manage_facts *facts,
	json_t *request, struct fault *fault)
{
	struct engine_command command = {.verb = ENGINE_REPLACE, .with = ENGINE_NONE};
	const char *with = text_of(request, "with");
	json_t *reply;

	if (manage_find_named(manage, facts, text_of(request, "device"), &command.device, fault) <
		0)
		return NULL;
	if (with != NULL && manage_find_named(manage, facts, with, &command.with, fault) < 0) {
		(void)fault_append(fault, "; add it as a spare first");
		return NULL;
	}
	reply = run_on_device(manage, facts, &command, fault);
	(void)json_object_set_new(
		reply, "slot", json_integer(facts->devices[command.device].slot)); /* NULL-safe */
	return reply;
}

static const char *const action_names[] = {
	[ENGINE_ACTION_IDLE] = "idle",
	[ENGINE_ACTION_RESYNC] = "resync",
	[ENGINE_ACTION_RECOVERY] = "recover",
	[ENGINE_ACTION_CHECK] = "check",
	[ENGINE_ACTION_REPAIR] = "repair",
	[ENGINE_ACTION_FROZEN] = "frozen",
};
#define ACTIONS (sizeof(action_names) / sizeof(action_names[0]))

static json_t *run_plain(
	const struct manage *manage, struct engine_command *command, struct fault *fault)
{
	command->fault = fault;
	if (manage_command(manage, command) < 0)
		return refuse(manage->name, fault);
	return detail_ok();
}

static json_t *do_sync(const struct manage *manage, const struct manage_facts *facts,
	json_t *request, struct fault *fault)
{
	struct engine_command command = {.verb = ENGINE_SYNC};
	const char *name = text_of(request, "action");

	(void)facts;
	while (name != NULL && command.action < ACTIONS &&
		strcmp(name, action_names[command.action]) != 0)
		command.action++;
	if (name == NULL || command.action == ACTIONS)
		(void)fault_set(fault, -EINVAL,
			"no such action; use check, repair, resync, recover, idle or frozen");
	else
		return run_plain(manage, &command, fault);
	return NULL;
}

static uint64_t number_or(json_t *request, const char *key, uint64_t other)
{
	const json_t *value = json_object_get(request, key);

	return json_is_integer(value) && json_integer_value(value) >= 0
		       ? (uint64_t)json_integer_value(value)
		       : other;
}

static json_t *do_speed(const struct manage *manage, const struct manage_facts *facts,
	json_t *request, struct fault *fault)
{
	struct engine_command command = {
		.verb = ENGINE_SYNC_SPEED,
		.speed_min = number_or(request, "min", facts->status.sync_speed_min),
		.speed_max = number_or(request, "max", facts->status.sync_speed_max),
	};

	if (command.speed_min > command.speed_max) {
		(void)fault_set(fault, -EINVAL, "the lowest speed is above the highest; set both");
		return refuse(manage->name, fault);
	}
	return run_plain(manage, &command, fault);
}

static json_t *do_readonly(const struct manage *manage, const struct manage_facts *facts,
	json_t *request, struct fault *fault)
{
	struct engine_command command = {.verb = ENGINE_READONLY};

	(void)facts;
	(void)request;
	return run_plain(manage, &command, fault);
}

/* Members opened for reading take no writes, whatever the engine believes. */
static json_t *do_readwrite(const struct manage *manage, const struct manage_facts *facts,
	json_t *request, struct fault *fault)
{
	struct engine_command command = {.verb = ENGINE_READWRITE};

	(void)request;
	for (unsigned i = 0; i < facts->device_max; i++) {
		if (facts->devices[i].state == ENGINE_DEVICE_FREE ||
			!manage_member(manage, facts, i)->readonly)
			continue;
		(void)fault_set(fault, -EROFS,
			"the array was started with its members open for reading only; stop it and "
			"assemble it without --readonly");
		return refuse(manage->name, fault);
	}
	return run_plain(manage, &command, fault);
}

static json_t *optional(bool is_there, uint64_t value)
{
	return is_there ? json_integer((json_int_t)value) : json_null();
}

static json_t *mismatches_json(const struct engine_status *status)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < status->mismatch_count; i++) {
		const struct engine_mismatch *m = &status->mismatches[i];

		(void)json_array_append_new(
			list, json_pack("{s:I, s:I, s:o}", "offset_bytes",
				      (json_int_t)m->sync_offset_bytes, "length_bytes",
				      (json_int_t)m->length_bytes, "slot",
				      optional(m->slot != ENGINE_NONE, m->slot)));
	}
	return list;
}

static const char *const state_names[] = {
	[ENGINE_DEVICE_SPARE] = "spare",
	[ENGINE_DEVICE_REBUILDING] = "rebuilding",
	[ENGINE_DEVICE_IN_SYNC] = "in sync",
	[ENGINE_DEVICE_FAULTY] = "faulty",
};

static json_t *devices_json(const struct manage *manage, const struct manage_facts *facts)
{
	json_t *list = json_array();
	char path[PATH_MAX];

	for (unsigned i = 0; i < facts->device_max; i++) {
		const struct engine_device_status *d = &facts->devices[i];

		if (d->state == ENGINE_DEVICE_FREE)
			continue;
		(void)json_array_append_new(list,
			json_pack("{s:o, s:i, s:o, s:s, s:b, s:I, s:i}", "path",
				detail_string(manage_path(manage_member(manage, facts, i), path)),
				"number", (int)d->dev_number, "slot",
				optional(d->slot != ENGINE_NONE, d->slot), "state",
				state_names[d->state], "replacement", d->replacement,
				"recovered_bytes", (json_int_t)d->recovered_bytes, "bad_ranges",
				(int)d->bad_ranges));
	}
	return list;
}

static json_t *do_status(const struct manage *manage, const struct manage_facts *facts,
	json_t *request, struct fault *fault)
{
	const struct engine_status *s = &facts->status;

	(void)request;
	(void)fault;
	return json_pack("{s:b, s:s, s:I, s:I, s:I, s:o, s:I, s:b, s:o, s:b, s:b, s:b, s:i, s:i,"
			 " s:I, s:I, s:I, s:I, s:I, s:o}",
		"ok", true, "action", action_names[s->action], "position_bytes",
		(json_int_t)s->position_bytes, "total_bytes", (json_int_t)s->total_bytes,
		"speed_bytes_s", (json_int_t)s->speed_bytes_s, "resync_bytes",
		optional(s->resync_bytes != UINT64_MAX, s->resync_bytes), "mismatch_sectors",
		(json_int_t)s->mismatch_sectors, "mismatches_are_all",
		s->mismatch_count < ENGINE_MISMATCHES_MAX, "mismatches", mismatches_json(s),
		"active", s->active, "readonly", s->readonly, "failed", s->failed, "slots",
		(int)s->slots, "in_sync", (int)s->in_sync, "events", (json_int_t)s->events,
		"sync_speed_min", (json_int_t)s->sync_speed_min, "sync_speed_max",
		(json_int_t)s->sync_speed_max, "bitmap_bits", (json_int_t)s->bitmap_bits,
		"bitmap_dirty", (json_int_t)s->bitmap_dirty, "devices",
		devices_json(manage, facts));
}

static const struct {
	const char *name;
	json_t *(*run)(const struct manage *manage, const struct manage_facts *facts,
		json_t *request, struct fault *fault);
} verbs[] = {
	{"fail", do_fail},
	{"remove", do_remove},
	{"add", manage_add},
	{"add-spare", manage_add},
	{"re-add", manage_add},
	{"replace", do_replace},
	{"sync", do_sync},
	{"speed", do_speed},
	{"readonly", do_readonly},
	{"readwrite", do_readwrite},
	{"status", do_status},
};

static json_t *run(const struct manage *manage, json_t *request, struct fault *fault)
{
	_cleanup_(manage_facts_free) struct manage_facts *facts = NULL;
	const char *verb = text_of(request, "verb");

	if (engine_device_max(manage->engine) == 0) {
		(void)fault_set(fault, -EOPNOTSUPP,
			"array %s: level %s has no redundancy: its members cannot come and go, and "
			"there is nothing to check; stop and assemble it instead",
			manage->name, md_level_name(manage->assembly->level));
		return NULL;
	}
	if (manage_facts_take(manage, &facts, fault) < 0)
		return NULL;
	for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++)
		if (verb != NULL && strcmp(verb, verbs[i].name) == 0)
			return verbs[i].run(manage, facts, request, fault);
	(void)fault_set(fault, -EINVAL, "array %s: no such verb of manage", manage->name);
	return NULL;
}

json_t *manage_handle(const struct manage *manage, json_t *request)
{
	_cleanup_free_ struct fault *fault = calloc(1, sizeof(*fault));
	json_t *reply;

	if (fault == NULL)
		return NULL;
	reply = run(manage, request, fault);
	if (fault->error == 0)
		return reply;
	json_decref(reply);
	return detail_error(fault);
}
