/* SPDX-License-Identifier: MIT */
#include "export/nbd/nbd_array.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

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

int nbd_array_open(struct nbd_array *array, struct fault *fault)
{
	unsigned i;
	int r;

	if (array->assembly != NULL)
		return 0;
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
		.members = array->handles,
		.readonly = array->readonly,
		.requests_max = REQUESTS_MAX,
	};
	return assembled_engine_new(
		&array->assembled, reactor_world(array->reactor), &array->engine, fault);
}

int nbd_array_start(struct nbd_array *array, struct fault *fault)
{
	struct reactor_options options = {
		.member_count = array->member_count,
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
	r = shared_engine_new(array->engine, array->reactor, &array->shared);
	if (r < 0)
		return fault_set(
			fault, r, "cannot share the array between threads: %s", strerror(-r));
	return 0;
}

void nbd_array_close(struct nbd_array *array)
{
	unsigned i;

	shared_engine_free(array->shared);
	if (array->engine != NULL)
		engine_free(array->engine);
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
