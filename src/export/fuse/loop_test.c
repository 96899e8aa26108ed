/* SPDX-License-Identifier: MIT */
/* The array as a block device: partitions come and go with the table, and nothing stays behind. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "export/fuse/test_array.h"

#define WAIT_STEPS 100 /* of 50 ms */

static struct test_array array;
static char device[64]; /* /dev/loopN underneath */

static int set_up(void **state)
{
	test_array_init(&array, "loop");
	array.export = ARRAY_EXPORT_LOOP;
	return 0;
}

static int tear_down(void **state)
{
	test_array_fini(&array);
	return access(array.dir, F_OK) == 0;
}

/* A test that failed half-way leaves nothing to the next. */
static int end_test(void **state)
{
	array.readonly = false;
	test_array_end(&array);
	return 0;
}

static void start(void)
{
	char target[PATH_MAX];
	int r = test_array_start(&array);

	if (r < 0)
		print_error("%s\n", array.fault.text);
	assert_int_equal(r, 0);
	assert_non_null(realpath(array.node, target));
	(void)snprintf(device, sizeof(device), "%.60s", target);
}

static bool exists(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0;
}

static bool is_attached(void)
{
	char path[128];

	(void)snprintf(path, sizeof(path), "/sys/block/%s/loop/backing_file", device + 5);
	return exists(path);
}

static void stop(void)
{
	int r = test_array_stop(&array);

	if (r < 0)
		print_error("%s\n", array.fault.text);
	assert_int_equal(r, 0);
	assert_false(exists(array.node));
	assert_false(is_attached());
}

static void partition(unsigned number, char ret[PATH_MAX + 8])
{
	(void)snprintf(ret, PATH_MAX + 8, "%sp%u", array.node, number);
}

static bool wait_for(unsigned number, bool there)
{
	char path[PATH_MAX + 8];

	partition(number, path);
	for (unsigned i = 0; i < WAIT_STEPS; i++) {
		if (exists(path) == there)
			return true;
		(void)usleep(50000);
	}
	return false;
}

static void write_table(const char *type, const char *lines)
{
	char command[PATH_MAX + 128];
	FILE *pipe;

	(void)snprintf(command, sizeof(command),
		"sfdisk -q --no-reread --no-tell-kernel "
		"-X %s %s >/dev/null 2>&1",
		type, array.node);
	pipe = popen(command, "w");
	assert_non_null(pipe);
	(void)fputs(lines, pipe);
	assert_int_equal(pclose(pipe), 0);
}

static void appears(void **state)
{
	unsigned long readahead;
	uint64_t size;
	int fd, block;

	start();
	fd = open(array.node, O_RDWR);
	assert_true(fd >= 0);
	assert_int_equal(ioctl(fd, BLKGETSIZE64, &size), 0);
	assert_int_equal(size, TEST_ARRAY_BYTES);
	assert_int_equal(ioctl(fd, BLKSSZGET, &block), 0);
	assert_int_equal(block, 512);
	assert_int_equal(ioctl(fd, BLKRAGET, &readahead), 0);
	assert_int_equal(readahead * 512, 4 * TEST_CHUNK_BYTES); /* two stripes of two chunks */
	close(fd);
	stop();
}

static void table_changes(void **state)
{
	uint8_t out[4096], in[4096];
	char path[PATH_MAX + 8];
	json_t *reply;
	int fd;

	start();
	write_table("gpt", "start=2048,size=8192\nstart=20480,size=8192\n");
	assert_true(wait_for(1, true) && wait_for(2, true));
	partition(2, path);
	memset(out, 0x5a, sizeof(out));
	fd = open(path, O_RDWR | O_SYNC);
	assert_int_equal(pwrite(fd, out, sizeof(out), 4096), sizeof(out));
	close(fd);
	fd = open(array.node, O_RDONLY);
	assert_int_equal(pread(fd, in, sizeof(in), 20480 * 512 + 4096), sizeof(in));
	assert_memory_equal(in, out, sizeof(in));
	close(fd);
	write_table(
		"dos", "start=2048,size=8192\n"); /* the first is the same, the second is gone */
	assert_true(wait_for(2, false));
	partition(1, path);
	assert_true(exists(path));
	assert_int_equal(test_array_call(&array, "{\"command\":\"partprobe\"}", &reply), 0);
	assert_int_equal(json_array_size(json_object_get(reply, "partitions")), 1);
	json_decref(reply);
	stop();
	assert_false(exists(path));
	start(); /* the table is read at start */
	assert_true(exists(path));
	stop();
}

/* A partition in use is neither taken away nor does the array stop; both say so. */
static void busy(void **state)
{
	char path[PATH_MAX + 8];
	json_t *reply;
	int fd;

	start();
	write_table("gpt", "start=2048,size=8192\n");
	assert_true(wait_for(1, true));
	partition(1, path);
	fd = open(path, O_RDONLY);
	assert_true(fd >= 0);
	write_table("gpt", "start=40960,size=8192\n");
	assert_int_equal(test_array_call(&array, "{\"command\":\"partprobe\"}", &reply), -EBUSY);
	assert_non_null(strstr(array.fault.text, "in use"));
	assert_int_equal(test_array_stop(&array), -EBUSY);
	assert_non_null(strstr(array.fault.text, "open in process"));
	assert_true(exists(path));
	close(fd);
	assert_int_equal(test_array_call(&array, "{\"command\":\"partprobe\"}", &reply), 0);
	json_decref(reply);
	assert_int_equal(
		test_array_call(&array, "{\"command\":\"readahead\",\"bytes\":1048576}", &reply),
		0);
	assert_int_equal(json_integer_value(json_object_get(reply, "readahead_bytes")), 1048576);
	json_decref(reply);
	stop();
}

static void killed(void **state)
{
	char first[sizeof(device)], path[PATH_MAX + 8];

	start();
	memcpy(first, device, sizeof(first));
	partition(1, path);
	assert_true(exists(path)); /* from the test before */
	test_array_kill(&array);
	assert_true(exists(path)); /* left behind */
	start();
	assert_true(exists(path));
	if (strcmp(first, device) != 0) {
		char now[sizeof(device)];

		memcpy(now, device, sizeof(now));
		memcpy(device, first, sizeof(device));
		assert_false(is_attached());
		memcpy(device, now, sizeof(device));
	}
	stop();
}

static void read_only(void **state)
{
	int fd, value = 0;

	array.readonly = true;
	start();
	fd = open(array.node, O_RDONLY);
	assert_int_equal(ioctl(fd, BLKROGET, &value), 0);
	assert_int_equal(value, 1);
	close(fd);
	stop();
	array.readonly = false;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(appears, end_test),
		cmocka_unit_test_teardown(table_changes, end_test),
		cmocka_unit_test_teardown(busy, end_test),
		cmocka_unit_test_teardown(killed, end_test),
		cmocka_unit_test_teardown(read_only, end_test),
	};

	if (geteuid() != 0 || access("/dev/loop-control", R_OK | W_OK) < 0 ||
		access("/dev/fuse", R_OK | W_OK) < 0) {
		puts("skipped: needs root, /dev/loop-control and /dev/fuse");
		return 77;
	}
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
