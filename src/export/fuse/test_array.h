/* SPDX-License-Identifier: MIT */
#ifndef STRAKE_EXPORT_FUSE_TEST_ARRAY_H
#define STRAKE_EXPORT_FUSE_TEST_ARRAY_H

/* For tests: a RAID 0 over two sparse files in a private folder, started and stopped for real. */

#include <jansson.h>
#include <limits.h>

#include "control/array.h"

#define TEST_CHUNK_BYTES 65536u
#define TEST_DATA_OFFSET_BYTES 1048576u
#define TEST_MEMBER_BYTES (33u << 20)
#define TEST_ARRAY_BYTES (64u << 20)

struct test_array {
	char dir[64];
	char name[64];
	char node[PATH_MAX];
	char member_path[2][128];
	enum array_export export;
	bool readonly;
	struct fault fault;
};

/* Make folder and files; STRAKE_RUNTIME_DIR is the folder. */
void test_array_init(struct test_array *array, const char *name);
/* Stop whatever still runs, by kill if need be. */
void test_array_end(struct test_array *array);
/* The same, and remove everything. */
void test_array_fini(struct test_array *array);

int test_array_start(struct test_array *array);
int test_array_call(struct test_array *array, const char *request, json_t **ret);
int test_array_stop(struct test_array *array);
/* kill -9, and wait until it is gone. */
void test_array_kill(struct test_array *array);
pid_t test_array_pid(struct test_array *array);

#endif
