/* SPDX-License-Identifier: MIT */
#include "export/nbd/nbd_control.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "control/detail.h"
#include "control/server.h"
#include "util/cleanup.h"

/* A client that has closed its socket is noticed a moment later. */
#define CLIENTS_LEAVE_MS 1000

struct nbd_control {
	struct nbd_array *array;
	struct nbd_control_options options;
	struct control_server *server;
	atomic_int clients;
};

static json_t *answer_error(int error, const char *text, const char *name)
{
	_cleanup_free_ struct fault *fault = malloc(sizeof(*fault));

	if (fault == NULL)
		return NULL;
	fault_set(fault, error, "array %s: %s", name, text);
	return detail_error(fault);
}

struct taking {
	struct nbd_array *array;
	struct detail_counters *counters;
};

static void take_counters(void *argument)
{
	const struct taking *taking = argument;

	detail_take(taking->array->engine, taking->array->assembly->slot_count, taking->counters);
}

/* They may have come and gone since the start. */
static unsigned member_count(const struct nbd_array *array)
{
	struct member *const *members = reactor_members(array->reactor);
	unsigned count = 0;

	for (unsigned i = 0; i < reactor_member_max(array->reactor); i++)
		count += members[i] != NULL;
	return count;
}

static json_t *answer_detail(struct nbd_control *control)
{
	struct nbd_array *array = control->array;
	_cleanup_free_ struct detail_counters *counters = malloc(sizeof(*counters));
	struct detail_facts facts = {
		.name = array->name,
		.node = control->options.socket_path != NULL ? control->options.socket_path
							     : array->name,
		.export = "nbd",
		.io = reactor_kind(array->reactor),
		.readonly = array->readonly,
		.persistent = array->persistent,
		.assembly = array->assembly,
		.members = reactor_members(array->reactor),
		.member_count = member_count(array),
		.reactor_memory_bytes = reactor_memory(array->reactor),
	};
	struct taking taking = {array, counters};
	json_t *reply;

	if (counters == NULL)
		return NULL;
	shared_engine_call(array->shared, take_counters, &taking);
	reply = detail_make(&facts, counters);
	if (reply != NULL && array->was_broken)
		(void)json_object_set_new(reply, "state", json_string("broken"));
	/* This process may be replaced; the array's is the one that stays, and ends with it. */
	if (reply != NULL && control->options.supervisor > 0)
		(void)json_object_set_new(reply, "pid", json_integer(control->options.supervisor));
	return reply;
}

static bool clients_are_gone(struct nbd_control *control)
{
	static const struct timespec pause = {.tv_nsec = 10000000};
	unsigned waited_ms;

	for (waited_ms = 0; atomic_load(&control->clients) > 0; waited_ms += 10) {
		if (waited_ms >= CLIENTS_LEAVE_MS)
			return false;
		nanosleep(&pause, NULL);
	}
	return true;
}

static json_t *answer_stop(struct nbd_control *control)
{
	char text[96];

	if (!clients_are_gone(control)) {
		snprintf(text, sizeof(text), "in use by NBD clients (%d); disconnect them first",
			atomic_load(&control->clients));
		return answer_error(-EBUSY, text, control->array->name);
	}
	control->options.shutdown();
	return detail_ok();
}

static json_t *handle(void *owner, json_t *request)
{
	struct nbd_control *control = owner;
	const char *command = json_string_value(json_object_get(request, "command"));

	if (command == NULL)
		command = "";
	if (strcmp(command, "ping") == 0)
		return detail_ok();
	if (strcmp(command, "detail") == 0)
		return answer_detail(control);
	if (strcmp(command, "stop") == 0)
		return answer_stop(control);
	if (strcmp(command, "manage") == 0)
		return manage_handle(&control->array->manage, request);
	if (strcmp(command, "partprobe") == 0 || strcmp(command, "readahead") == 0)
		return answer_error(-EOPNOTSUPP,
			"is served by NBD and is no block device here; "
			"use the client's own means for partitions and read-ahead",
			control->array->name);
	return answer_error(-EINVAL, "no such command", control->array->name);
}

int nbd_control_start(struct nbd_array *array, const struct nbd_control_options *options,
	struct nbd_control **ret, struct fault *fault)
{
	struct nbd_control *control = calloc(1, sizeof(*control));
	int r;

	if (control == NULL)
		return fault_set(fault, -ENOMEM, "array %s: out of memory", array->name);
	control->array = array;
	control->options = *options;
	if (array->supervised)
		r = control_server_adopt(
			array->name, array->control_fd, handle, control, &control->server, fault);
	else
		r = control_server_start(array->name, handle, control, &control->server, fault);
	if (r < 0) {
		free(control);
		return r;
	}
	*ret = control;
	return 0;
}

void nbd_control_stop(struct nbd_control *control)
{
	if (control == NULL)
		return;
	control_server_stop(control->server);
	free(control);
}

void nbd_control_clients(struct nbd_control *control, int change)
{
	if (control != NULL)
		atomic_fetch_add(&control->clients, change);
}
