/* SPDX-License-Identifier: MIT */
#include "export/nbd/nbd_array.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include <unistd.h>

#include "control/redundancy.h"
#include "export/nbd/changes.h"
#include "probe/probe.h"
#include "util/cleanup.h"

/*
 * nbdkit works on 16 requests of a connection at once, so this serves 16 busy connections before
 * requests wait in the engine's queue.
 */
#define REQUESTS_MAX 256u
#define MEMBER_IO_MAX 512u

int nbd_array_add_path(struct nbd_array *array, const char *path)
{
	struct nbd_member *members;
	char *copy = strdup(path);

	if (copy == NULL)
		return -ENOMEM;
	members = reallocarray(array->members, array->member_count + 1, sizeof(*members));
	if (members == NULL) {
		free(copy);
		return -ENOMEM;
	}
	array->members = members;
	members[array->member_count++] = (struct nbd_member){.path = copy};
	return 0;
}

/* Forbidden to write, by mode bits, a read-only mount or the device itself. */
static bool is_write_refusal(int error)
{
	return error == -EACCES || error == -EPERM || error == -EROFS;
}

static int open_one(struct nbd_array *array, struct nbd_member *member, struct fault *fault)
{
	unsigned flags = MEMBER_EXCLUSIVE | (array->readonly ? MEMBER_READONLY : 0);
	int r = member_open(member->path, flags, &member->member, fault);

	if (r < 0 && !array->readonly && is_write_refusal(r)) {
		r = member_open(member->path, flags | MEMBER_READONLY, &member->member, fault);
		if (r == 0)
			array->readonly = true;
	}
	return r;
}

/*
 * A device named twice would otherwise be refused as in use, by us. Looked for before it is taken:
 * the second look shares, and only reads.
 */
static int refuse_same(const struct nbd_array *array, unsigned index, struct fault *fault)
{
	const char *path = array->members[index].path;
	struct member *look;
	unsigned i, same = index;
	int r;

	if (index == 0)
		return 0;
	r = member_open(path, MEMBER_READONLY, &look, fault);
	if (r < 0)
		return r;
	for (i = 0; i < index; i++) {
		if (member_is_same(array->members[i].member, look))
			same = i;
	}
	member_close(look);
	if (same == index)
		return 0;
	return fault_set(fault, -EINVAL, "%s: is the same device as %s; name each member once",
		path, array->members[same].path);
}

static int read_super(struct nbd_member *member, struct fault *fault)
{
	member->super = malloc(sizeof(*member->super));
	if (member->super == NULL)
		return fault_set(fault, -ENOMEM, "%s: out of memory", member->path);
	return probe_read_super(member->member, member->super, fault);
}

static int assemble(struct nbd_array *array, struct fault *fault)
{
	unsigned i;

	array->candidates = calloc(array->member_count, sizeof(*array->candidates));
	array->assembly = malloc(sizeof(*array->assembly));
	if (array->candidates == NULL || array->assembly == NULL)
		return fault_set(
			fault, -ENOMEM, "out of memory for %u members", array->member_count);
	for (i = 0; i < array->member_count; i++) {
		struct nbd_member *member = &array->members[i];

		array->candidates[i] = (struct md_candidate){
			.path = member->path,
			.device_sectors = member->member->size_bytes / MD_SECTOR,
			.super = member->super,
		};
	}
	return md_assemble(
		array->candidates, array->member_count, &array->assemble, array->assembly, fault);
}

static void drop(struct nbd_array *array, unsigned index)
{
	struct nbd_member *member = &array->members[index];

	if (member->member != NULL)
		member_close(member->member);
	free(member->super);
	free(member->path);
	*member = array->members[--array->member_count];
}

/* What came or went while an earlier process ran. */
static void apply_change(void *owner, bool joined, const char *path)
{
	struct nbd_array *array = owner;
	unsigned i = 0;

	while (i < array->member_count && strcmp(array->members[i].path, path) != 0)
		i++;
	if (!joined && i < array->member_count)
		drop(array, i);
	else if (joined && i == array->member_count)
		(void)nbd_array_add_path(array, path); /* without it the array is degraded */
}

/*
 * The superblocks decide who is a member: one that cannot be read any more is done without, as far
 * as the level can.
 */
static void leave_out(struct nbd_array *array, unsigned index, const struct fault *fault)
{
	syslog(LOG_DAEMON | LOG_WARNING, "strake: array %s: started again without a member: %s",
		array->name, fault->text);
	drop(array, index);
}

static int open_again(struct nbd_array *array, struct fault *fault)
{
	if (changes_read(array->changes_fd, apply_change, array) < 0)
		return fault_set(fault, -EIO, "cannot read which members came and went");
	for (unsigned i = array->member_count; i-- > 0;) {
		struct nbd_member *member = &array->members[i];
		int r = member->member == NULL ? open_one(array, member, fault) : 0;

		if (r == 0)
			r = read_super(member, fault);
		if (r < 0)
			leave_out(array, i, fault);
		fault->error = 0;
	}
	return assemble(array, fault);
}

int nbd_array_open(struct nbd_array *array, struct fault *fault)
{
	unsigned i;
	int r;

	if (array->assembly != NULL)
		return 0;
	if (array->redundant && array->changes_fd >= 0)
		return open_again(array, fault);
	array->persistent = true;
	for (i = 0; !array->supervised && i < array->member_count; i++) {
		r = refuse_same(array, i, fault);
		if (r == 0)
			r = open_one(array, &array->members[i], fault);
		if (r < 0)
			return r;
	}
	for (i = 0; i < array->member_count; i++) {
		r = read_super(&array->members[i], fault);
		if (r < 0)
			return r;
	}
	return assemble(array, fault);
}

static int list_handles(struct nbd_array *array, struct fault *fault)
{
	unsigned i;

	array->handles = calloc(array->member_count, sizeof(*array->handles));
	if (array->handles == NULL)
		return fault_set(
			fault, -ENOMEM, "out of memory for %u members", array->member_count);
	for (i = 0; i < array->member_count; i++)
		array->handles[i] = array->members[i].member;
	return 0;
}

static int start_engine(struct nbd_array *array, struct fault *fault)
{
	array->assembled = (struct assembled){
		.name = array->name != NULL ? array->name : "without a name",
		.assembly = array->assembly,
		.members = reactor_members(array->reactor),
		.readonly = array->readonly,
		.requests_max = REQUESTS_MAX,
	};
	return assembled_engine_new(
		&array->assembled, reactor_world(array->reactor), &array->engine, fault);
}

static void on_engine(void *owner, void (*function)(void *argument), void *argument)
{
	struct nbd_array *array = owner;

	shared_engine_call(array->shared, function, argument);
}

/* The supervisor looks when a byte tells it to. */
static void note_change(struct nbd_array *array, bool has_joined, const char *path)
{
	if (!array->supervised || array->changes_fd < 0)
		return;
	if (changes_note(array->changes_fd, has_joined, path) < 0)
		syslog(LOG_DAEMON | LOG_WARNING,
			"strake: array %s: if nbdkit dies, the next one will not know of the "
			"change of %s",
			array->name, path);
	(void)!write(array->io_fd, "c", 1); /* fails only if the supervisor is gone */
}

static void joined(void *owner, const struct member *member)
{
	note_change(owner, true, member->path);
}

static void dispose(void *owner, struct member *member)
{
	struct nbd_array *array = owner;

	note_change(array, false, member->path);
	for (unsigned i = 0; i < array->member_count; i++)
		if (array->members[i].member == member)
			array->members[i].member = NULL;
	member_close(member);
}

/* Candidates that take no part (stale, failed) must not be kept from being added again. */
static void close_idle_members(struct nbd_array *array)
{
	for (unsigned i = 0; i < array->member_count; i++) {
		bool is_used = false;

		for (unsigned d = 0; d < array->assembly->device_count; d++)
			is_used |= array->assembly->devices[d].candidate == i;
		if (is_used)
			continue;
		reactor_member_remove(array->reactor, i);
		dispose(array, array->members[i].member);
	}
}

static void set_up_management(struct nbd_array *array)
{
	array->manage = (struct manage){
		.name = array->name != NULL ? array->name : "without a name",
		.engine = array->engine,
		.reactor = array->reactor,
		.assembly = array->assembly,
		.persistent = array->persistent,
		.on_engine = on_engine,
		.joined = joined,
		.dispose = dispose,
		.owner = array,
	};
	if (engine_device_max(array->engine) > 0)
		close_idle_members(array);
}

int nbd_array_start(struct nbd_array *array, struct fault *fault)
{
	struct reactor_options options = {
		.member_count = array->member_count,
		.member_max = redundancy_member_max(array->assembly, array->member_count),
		.io_max = MEMBER_IO_MAX,
		.sync = array->sync_io,
		.ring = array->ring_io,
		.held_fd = array->supervised ? array->io_fd : 0,
	};
	int r = list_handles(array, fault);

	options.members = array->handles;
	if (r == 0)
		r = reactor_new(&options, &array->reactor, fault);
	if (r == 0)
		r = start_engine(array, fault);
	if (r < 0)
		return r;
	set_up_management(array);
	r = shared_engine_new(array->engine, array->reactor, &array->shared);
	if (r < 0)
		return fault_set(
			fault, r, "cannot share the array between threads: %s", strerror(-r));
	return 0;
}

int nbd_array_stop(struct nbd_array *array, struct fault *fault)
{
	struct engine_command stop = {.verb = ENGINE_STOP, .fault = fault};
	struct engine_request flush = {.op = ENGINE_FLUSH};
	int stopped = 0, r = array->readonly ? 0 : shared_engine_do(array->shared, &flush);

	if (engine_device_max(array->engine) > 0)
		stopped = manage_command(&array->manage, &stop);
	if (r < 0)
		return fault_set(fault, r, "flush at the end: %s", strerror(-r));
	return stopped;
}

static bool is_from_start(const struct nbd_array *array, const struct member *member)
{
	for (unsigned i = 0; i < array->member_count; i++)
		if (array->members[i].member == member)
			return true;
	return false;
}

static void close_added(struct nbd_array *array)
{
	for (unsigned i = 0; i < reactor_member_max(array->reactor); i++) {
		struct member *member = reactor_members(array->reactor)[i];

		if (member == NULL || is_from_start(array, member))
			continue;
		reactor_member_remove(array->reactor, i);
		member_close(member);
	}
}

void nbd_array_close(struct nbd_array *array)
{
	unsigned i;

	shared_engine_free(array->shared);
	if (array->engine != NULL)
		engine_free(array->engine);
	if (array->reactor != NULL)
		close_added(array);
	if (array->reactor != NULL)
		reactor_free(array->reactor);
	for (i = 0; i < array->member_count; i++) {
		if (array->members[i].member != NULL)
			member_close(array->members[i].member);
		free(array->members[i].super);
		free(array->members[i].path);
	}
	free(array->members);
	free(array->handles);
	free(array->candidates);
	free(array->assembly);
	free(array->super);
	free(array->name);
	*array = (struct nbd_array){0};
}
