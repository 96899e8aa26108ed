/* SPDX-License-Identifier: MIT */
#include "export/fuse/test_array.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "control/control.h"
#include "control/export.h"
#include "control/runtime.h"
#include "export/fuse/fuse_export.h"

const struct export_ops *const export_rows[] = {&fuse_export_ops, NULL};

void test_array_init(struct test_array *array, const char *name)
{
	*array = (struct test_array){.export = ARRAY_EXPORT_FUSE};
	(void)snprintf(array->dir, sizeof(array->dir), "/tmp/strake-%s-XXXXXX", name);
	assert(mkdtemp(array->dir) != NULL);
	assert(setenv("STRAKE_RUNTIME_DIR", array->dir, 1) == 0);
	(void)snprintf(array->name, sizeof(array->name), "%s-%d", name, (int)getpid());
	for (unsigned i = 0; i < 2; i++) {
		int fd;

		(void)snprintf(array->member_path[i], sizeof(array->member_path[i]), "%s/d%u.img",
			array->dir, i);
		fd = open(array->member_path[i], O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		assert(fd >= 0);
		assert(ftruncate(fd, TEST_MEMBER_BYTES) == 0);
		close(fd);
	}
}

static int start_over(struct test_array *array, struct member *const *members)
{
	static struct md_super super;
	static struct md_assembly assembly; /* large */
	const struct array_options options = {
		.name = array->name,
		.readonly = array->readonly,
		.export = array->export,
		.readahead_bytes = UINT64_MAX,
		.persistent = true,
	};

	super.version = MD_VERSION_1_2;
	super.raid_disks = 2;
	super.role_count = 2;
	super.roles[1] = 1;
	assembly.super = &super;
	assembly.slot_count = 2;
	assembly.chunk_bytes = TEST_CHUNK_BYTES;
	assembly.layout = GEOMETRY_RAID0_ORIGINAL;
	for (int i = 0; i < 2; i++)
		assembly.slots[i] = (struct md_assembly_slot){
			.candidate = i,
			.replacement = -1,
			.data_offset_bytes = TEST_DATA_OFFSET_BYTES,
			.data_bytes = TEST_MEMBER_BYTES - TEST_DATA_OFFSET_BYTES,
		};
	return array_start(&assembly, members, 2, &options, array->node, &array->fault);
}

int test_array_start(struct test_array *array)
{
	unsigned flags = MEMBER_EXCLUSIVE | (array->readonly ? MEMBER_READONLY : 0);
	struct member *members[2] = {NULL, NULL};
	int r = 0;

	for (unsigned i = 0; i < 2 && r == 0; i++)
		r = member_open(array->member_path[i], flags, &members[i], &array->fault);
	if (r == 0)
		r = start_over(array, members);
	for (unsigned i = 0; i < 2; i++)
		if (members[i] != NULL)
			member_close(members[i]);
	return r;
}

int test_array_call(struct test_array *array, const char *request, json_t **ret)
{
	json_t *object = json_loads(request, 0, NULL);
	int r;

	assert(object != NULL);
	r = control_call(array->name, object, ret, &array->fault);
	json_decref(object);
	return r;
}

static void reap(void)
{
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
}

int test_array_stop(struct test_array *array)
{
	json_t *reply = NULL;
	int r = test_array_call(array, "{\"command\":\"stop\"}", &reply);

	json_decref(reply);
	reap();
	return r;
}

pid_t test_array_pid(struct test_array *array)
{
	json_t *reply = NULL;
	pid_t pid = 0;

	if (test_array_call(array, "{\"command\":\"detail\"}", &reply) == 0)
		pid = (pid_t)json_integer_value(json_object_get(reply, "pid"));
	json_decref(reply);
	return pid;
}

void test_array_kill(struct test_array *array)
{
	pid_t pid = test_array_pid(array);

	if (pid <= 1)
		return;
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0); /* our child */
}

void test_array_end(struct test_array *array)
{
	int r = test_array_stop(array);

	if (r < 0 && r != -ENOENT)
		test_array_kill(array);
	(void)runtime_clean(array->name, NULL);
}

void test_array_fini(struct test_array *array)
{
	char path[PATH_MAX];

	test_array_end(array);
	for (unsigned i = 0; i < 2; i++)
		(void)unlink(array->member_path[i]);
	(void)snprintf(path, sizeof(path), "%s/%s", array->dir, array->name);
	(void)unlink(path);
	(void)rmdir(array->dir);
}
