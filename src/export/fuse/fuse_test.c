/* SPDX-License-Identifier: MIT */
/* The array as a FUSE file: every byte where it belongs, every refusal, every end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "export/fuse/test_array.h"

static struct test_array array;

static int set_up(void **state)
{
	test_array_init(&array, "fuse");
	return 0;
}

static int tear_down(void **state)
{
	test_array_fini(&array);
	return access(array.dir, F_OK) == 0; /* something was left behind */
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
	int r = test_array_start(&array);

	if (r < 0)
		print_error("%s\n", array.fault.text);
	assert_int_equal(r, 0);
}

static void stop(void)
{
	int r = test_array_stop(&array);

	if (r < 0)
		print_error("%s\n", array.fault.text);
	assert_int_equal(r, 0);
	assert_true(access(array.node, F_OK) < 0 && errno == ENOENT);
}

static uint8_t *random_bytes(size_t length, unsigned seed)
{
	uint8_t *bytes = malloc(length);

	assert_non_null(bytes);
	for (size_t i = 0; i < length; i++)
		bytes[i] = (uint8_t)(rand_r(&seed) >> 7);
	return bytes;
}

static void check(int fd, const uint8_t *expected, size_t length, off_t offset)
{
	uint8_t *found = malloc(length);

	assert_non_null(found);
	assert_int_equal(pread(fd, found, length, offset), length);
	for (size_t i = 0; i < length; i++)
		if (found[i] != expected[i])
			fail_msg("byte %zu differs", (size_t)offset + i);
	free(found);
}

/* Reads and writes of odd lengths at odd places, through the page cache and past it. */
static void any_bytes(void **state)
{
	static const struct {
		off_t offset;
		size_t length;
	} ranges[] = {{0, 1}, {511, 1}, {511, 2}, {1000, 24}, {1024, 512}, {1023, 514},
		{4096, 4096}, {TEST_CHUNK_BYTES - 1, 2}, {1, 3 << 20}, {512, 2 << 20},
		{TEST_ARRAY_BYTES - 1, 1}, {TEST_ARRAY_BYTES - 5000, 5000}};
	static const int flags[] = {O_RDWR, O_RDWR | O_DIRECT, O_RDWR | O_DSYNC};
	uint8_t *shadow = calloc(1, TEST_ARRAY_BYTES);

	start();
	for (unsigned f = 0; f < 3; f++) {
		int fd = open(array.node, flags[f]);

		assert_true(fd >= 0);
		for (unsigned i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
			uint8_t *bytes = random_bytes(ranges[i].length, i + 100 * f);

			assert_int_equal(pwrite(fd, bytes, ranges[i].length, ranges[i].offset),
				ranges[i].length);
			memcpy(shadow + ranges[i].offset, bytes, ranges[i].length);
			check(fd, bytes, ranges[i].length, ranges[i].offset);
			free(bytes);
		}
		check(fd, shadow, TEST_ARRAY_BYTES, 0);
		assert_int_equal(fsync(fd), 0);
		close(fd);
	}
	stop();
	start(); /* what was written is on the members, not in some memory */
	int fd = open(array.node, O_RDONLY);
	check(fd, shadow, TEST_ARRAY_BYTES, 0);
	close(fd);
	stop();
	fd = open(array.member_path[1], O_RDONLY);
	check(fd, shadow + TEST_CHUNK_BYTES, TEST_CHUNK_BYTES, TEST_DATA_OFFSET_BYTES);
	close(fd);
	free(shadow);
}

#define RECORD_BYTES 100u
#define WRITERS 8u
#define RECORDS 4000u

static void *write_records(void *argument)
{
	unsigned self = *(unsigned *)argument;
	int fd = open(array.node, O_RDWR | O_DIRECT);
	uint8_t record[RECORD_BYTES];

	for (unsigned i = self; i < RECORDS; i += WRITERS) {
		memset(record, (int)(i % 255 + 1), sizeof(record));
		if (pwrite(fd, record, sizeof(record), (off_t)i * RECORD_BYTES) != RECORD_BYTES)
			break;
	}
	close(fd);
	return NULL;
}

/* Neighbouring records share sectors: were the read-modify-writes not serialised, some would be
 * lost. */
static void neighbours(void **state)
{
	pthread_t threads[WRITERS];
	unsigned numbers[WRITERS];
	uint8_t record[RECORD_BYTES];
	int fd;

	start();
	for (unsigned i = 0; i < WRITERS; i++) {
		numbers[i] = i;
		assert_int_equal(pthread_create(&threads[i], NULL, write_records, &numbers[i]), 0);
	}
	for (unsigned i = 0; i < WRITERS; i++)
		pthread_join(threads[i], NULL);
	fd = open(array.node, O_RDONLY);
	for (unsigned i = 0; i < RECORDS; i++) {
		memset(record, (int)(i % 255 + 1), sizeof(record));
		check(fd, record, RECORD_BYTES, (off_t)i * RECORD_BYTES);
	}
	close(fd);
	stop();
}

static void the_end(void **state)
{
	uint8_t bytes[300] = {7};
	struct stat st;
	int fd;

	start();
	fd = open(array.node, O_RDWR);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_size, TEST_ARRAY_BYTES);
	assert_int_equal(st.st_mode, S_IFREG | 0600);
	assert_int_equal(pwrite(fd, bytes, 300, TEST_ARRAY_BYTES - 100), 100);
	assert_int_equal(pread(fd, bytes, 300, TEST_ARRAY_BYTES - 100), 100);
	assert_int_equal(pread(fd, bytes, 300, TEST_ARRAY_BYTES), 0);
	assert_int_equal(pwrite(fd, bytes, 1, TEST_ARRAY_BYTES), -1);
	assert_int_equal(errno, ENOSPC);
	assert_int_equal(ftruncate(fd, TEST_ARRAY_BYTES), 0);
	assert_int_equal(ftruncate(fd, TEST_ARRAY_BYTES - 1), -1);
	assert_int_equal(errno, EPERM);
	assert_int_equal(ftruncate(fd, TEST_ARRAY_BYTES + 1), -1);
	assert_int_equal(errno, ENOSPC);
	assert_int_equal(fchmod(fd, 0666), -1);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_size, TEST_ARRAY_BYTES);
	close(fd);
	stop();
}

static void holes(void **state)
{
	const off_t offset = 300001;
	const size_t length = 200777;
	uint8_t *bytes = random_bytes(1 << 20, 5);
	int fd;

	start();
	fd = open(array.node, O_RDWR);
	for (int mode = 0; mode < 2; mode++) {
		uint8_t *expected = malloc(1 << 20);

		memcpy(expected, bytes, 1 << 20);
		memset(expected + offset, 0, length);
		assert_int_equal(pwrite(fd, bytes, 1 << 20, 0), 1 << 20);
		assert_int_equal(fallocate(fd,
					 FALLOC_FL_KEEP_SIZE | (mode == 0 ? FALLOC_FL_PUNCH_HOLE
									  : FALLOC_FL_ZERO_RANGE),
					 offset, (off_t)length),
			0);
		check(fd, expected, 1 << 20, 0);
		memset(expected + 10, 0, 5); /* within one sector */
		assert_int_equal(
			fallocate(fd, FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE, 10, 5), 0);
		check(fd, expected, 1 << 20, 0);
		free(expected);
	}
	assert_int_equal(fallocate(fd, 0, 0, 4096), -1);
	assert_int_equal(errno, EOPNOTSUPP);
	close(fd);
	free(bytes);
	stop();
}

static void read_only(void **state)
{
	struct stat st;
	int fd;

	array.readonly = true;
	start();
	assert_true(open(array.node, O_RDWR) < 0);
	assert_true(errno == EROFS || errno == EACCES);
	assert_true(open(array.node, O_WRONLY) < 0);
	fd = open(array.node, O_RDONLY);
	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0400);
	assert_int_equal(fsync(fd), 0);
	close(fd);
	stop();
	array.readonly = false;
}

static void commands(void **state)
{
	json_t *reply;

	start();
	assert_int_equal(test_array_call(&array, "{\"command\":\"ping\"}", &reply), 0);
	json_decref(reply);
	assert_int_equal(test_array_call(&array, "{\"command\":\"detail\"}", &reply), 0);
	assert_string_equal(json_string_value(json_object_get(reply, "export")), "fuse");
	assert_string_equal(json_string_value(json_object_get(reply, "node")), array.node);
	assert_int_equal(
		json_integer_value(json_object_get(reply, "array_bytes")), TEST_ARRAY_BYTES);
	assert_int_equal(json_array_size(json_object_get(reply, "members")), 2);
	json_decref(reply);
	assert_int_equal(test_array_call(&array, "{\"command\":\"no\"}", &reply), -EINVAL);
	assert_int_equal(
		test_array_call(&array, "{\"command\":\"partprobe\"}", &reply), -EOPNOTSUPP);
	stop();
	assert_int_equal(test_array_call(&array, "{\"command\":\"ping\"}", &reply), -ENOENT);
}

/* Same name again, members free or not. */
static void twice(void **state)
{
	struct test_array other = array;

	start();
	other.fault = (struct fault){0};
	assert_int_equal(test_array_start(&other), -EBUSY);
	stop();
}

static void stop_while_open(void **state)
{
	int fd;

	start();
	fd = open(array.node, O_RDONLY);
	assert_int_equal(test_array_stop(&array), -EBUSY);
	assert_non_null(strstr(array.fault.text, "open in process"));
	close(fd);
	stop();
}

static void signals(void **state)
{
	pid_t pid;

	start();
	pid = test_array_pid(&array);
	assert_int_equal(kill(pid, SIGTERM), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_true(access(array.node, F_OK) < 0 && errno == ENOENT);
}

static void killed(void **state)
{
	start();
	test_array_kill(&array);
	assert_true(open(array.node, O_RDONLY) < 0);
	assert_true(errno == ENOTCONN || errno == ECONNABORTED);
	start();
	stop();
}

/* A file that is somebody's is not covered by a mount. */
static void foreign_file(void **state)
{
	char path[PATH_MAX];
	int fd;

	(void)snprintf(path, sizeof(path), "%s/%s", array.dir, array.name);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
	assert_int_equal(write(fd, "mine", 4), 4);
	close(fd);
	assert_int_equal(test_array_start(&array), -EEXIST);
	assert_non_null(strstr(array.fault.text, path));
	assert_int_equal(unlink(path), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(any_bytes, end_test),
		cmocka_unit_test_teardown(neighbours, end_test),
		cmocka_unit_test_teardown(the_end, end_test),
		cmocka_unit_test_teardown(holes, end_test),
		cmocka_unit_test_teardown(read_only, end_test),
		cmocka_unit_test_teardown(commands, end_test),
		cmocka_unit_test_teardown(twice, end_test),
		cmocka_unit_test_teardown(stop_while_open, end_test),
		cmocka_unit_test_teardown(signals, end_test),
		cmocka_unit_test_teardown(killed, end_test),
		cmocka_unit_test_teardown(foreign_file, end_test),
	};

	if (access("/dev/fuse", R_OK | W_OK) < 0) {
		puts("skipped: no /dev/fuse");
		return 77;
	}
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
