/* SPDX-License-Identifier: MIT */
/* Names and places of running arrays, and the control socket, in a private runtime directory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "control/control.h"
#include "control/detail.h"
#include "control/export.h"
#include "control/runtime.h"
#include "control/server.h"
#include "control/socket.h"

/* The table of exports stands above; here an export whose process does what the name says. */
static int run_by_name(const struct export_start *start, struct fault *fault)
{
	if (strcmp(start->options->name, "refuses") == 0)
		return fault_set(fault, -ENODEV, "no such luck");
	if (strcmp(start->options->name, "dies") == 0)
		_exit(7);
	if (strcmp(start->options->name, "crashes") == 0)
		(void)raise(SIGKILL);
	(void)export_ready(start->ready_fd, "/a/node", "a note");
	return 0;
}

static const struct export_ops test_ops = {
	.name = "test",
	.kinds = EXPORT_KIND(ARRAY_EXPORT_FUSE),
	.run = run_by_name,
};

const struct export_ops *const export_rows[] = {&test_ops, NULL};

static char dir[PATH_MAX];

static int set_up(void **state)
{
	const char *tmp = getenv("TMPDIR");

	(void)snprintf(dir, sizeof(dir), "%s/strake-control-XXXXXX", tmp != NULL ? tmp : "/tmp");
	return mkdtemp(dir) == NULL || setenv("STRAKE_RUNTIME_DIR", dir, 1) != 0;
}

static int tear_down(void **state)
{
	return rmdir(dir); /* fails if anything was left behind */
}

static void names(void **state)
{
	static const char *const good[][2] = {
		{"md0", "md0"},
		{"/dev/md0", "md0"},
		{"/dev/md/data", "data"},
		{"data", "data"},
		{"/dev/md/0", "md0"},
		{"0", "md0"},
		{"with space", "with space"},
		{"gr\xc3\xbc\xc3\x9f", "gr\xc3\xbc\xc3\x9f"},
	};
	static const char *const bad[] = {"", "/dev/", "/dev/sda", "/tmp/x", "a/b", "-x", ".x",
		"a\nb", "x.sock", "x.links", "x.lock", "x.nbd", "/dev/md/", "x\xffy", "\xc0\x80",
		"\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe2\x82",
		"12345678901234567890123456789012345678901234567890123456789012345"};
	char name[NAME_MAX], path[PATH_MAX * 2];
	struct fault fault;

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_int_equal(runtime_name(good[i][0], name, &fault), 0);
		assert_string_equal(name, good[i][1]);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(runtime_name(bad[i], name, &fault), -EINVAL);
	(void)snprintf(path, sizeof(path), "%s/data", dir);
	assert_int_equal(runtime_name(path, name, &fault), 0);
	assert_string_equal(name, "data");
}

static void places(void **state)
{
	char path[PATH_MAX], expected[PATH_MAX * 2];

	runtime_link("md0", path);
	assert_string_equal(path, "/dev/md0");
	runtime_link("mdx", path);
	assert_string_equal(path, "/dev/md/mdx");
	assert_int_equal(runtime_socket("md0", path, NULL), 0);
	(void)snprintf(expected, sizeof(expected), "%s/md0.sock", dir);
	assert_string_equal(path, expected);
}

static void no_place(void **state)
{
	struct fault fault = {0};
	char path[PATH_MAX];

	setenv("STRAKE_RUNTIME_DIR", "/proc/cannot/be/made", 1);
	assert_true(runtime_dir(path, &fault) < 0);
	assert_non_null(strstr(fault.text, "/proc/cannot"));
	setenv("STRAKE_RUNTIME_DIR", "relative", 1);
	assert_int_equal(runtime_dir(path, &fault), -EINVAL);
	setenv("STRAKE_RUNTIME_DIR", dir, 1);
}

static json_t *echo(void *owner, json_t *request)
{
	struct fault fault = {0};
	json_t *reply;

	if (json_object_get(request, "fail") != NULL) {
		fault_set(&fault, -EBUSY, "in use by a test");
		return detail_error(&fault);
	}
	reply = detail_ok();
	json_object_set(reply, "heard", request);
	return reply;
}

static int call(const char *name, const char *text, json_t **ret, struct fault *fault)
{
	json_t *request = json_loads(text, 0, NULL);
	int r = control_call(name, request, ret, fault);

	json_decref(request);
	return r;
}

static void question_and_answer(void **state)
{
	struct control_server *server, *second;
	struct fault fault = {0};
	json_t *reply, *list;

	assert_int_equal(call("a", "{\"command\":\"ping\"}", &reply, &fault), -ENOENT);
	assert_int_equal(control_server_start("a", echo, NULL, &server, &fault), 0);
	assert_int_equal(
		call("a", "{\"command\":\"ping\",\"x\":[1,\"\\u00fc\"]}", &reply, &fault), 0);
	assert_int_equal(json_array_size(json_object_get(json_object_get(reply, "heard"), "x")), 2);
	json_decref(reply);
	assert_int_equal(call("a", "{\"fail\":1}", &reply, &fault), -EBUSY);
	assert_string_equal(fault.text, "in use by a test");
	assert_int_equal(control_server_start("a", echo, NULL, &second, &fault), -EBUSY);
	assert_non_null(strstr(fault.text, "already running"));
	assert_int_equal(runtime_clean("a", &fault), -EBUSY);
	assert_int_equal(control_list(&list, &fault), 0);
	assert_int_equal(json_array_size(list), 1);
	json_decref(list);
	control_server_stop(server);
	assert_int_equal(call("a", "{\"command\":\"ping\"}", &reply, &fault), -ENOENT);
}

/* Not JSON, too long, nothing at all: an answer or a closed connection, and the server lives on. */
static void bad_clients(void **state)
{
	static char longest[100000];
	struct control_server *server;
	json_t *reply;
	int fd;

	memset(longest, 'x', sizeof(longest));
	assert_int_equal(control_server_start("a", echo, NULL, &server, NULL), 0);
	fd = control_socket("a", false, NULL);
	assert_int_equal(write(fd, "[1]\n", 4), 4);
	assert_int_equal(control_receive(fd, CONTROL_LINE_MAX, &reply), 0);
	assert_true(json_is_false(json_object_get(reply, "ok")));
	json_decref(reply);
	close(fd);
	close(control_socket("a", false, NULL));
	fd = control_socket("a", false, NULL);
	(void)signal(SIGPIPE, SIG_IGN);
	assert_true(write(fd, longest, sizeof(longest)) != 0);
	close(fd);
	assert_int_equal(call("a", "{}", &reply, NULL), 0);
	json_decref(reply);
	control_server_stop(server);
}

static void stale_socket(void **state)
{
	struct control_server *server;
	struct fault fault = {0};
	json_t *list;
	int fd = control_socket("a", true, &fault); /* bound, and then dead */

	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(control_list(&list, &fault), 0);
	assert_int_equal(json_array_size(list), 0);
	json_decref(list);
	assert_int_equal(control_server_start("a", echo, NULL, &server, &fault), 0);
	control_server_stop(server);
	fd = control_socket("a", true, &fault);
	close(fd);
	assert_int_equal(runtime_clean("a", &fault), 0);
}

/* What is no socket is not ours: it stays, and the start says so. */
static void foreign_file(void **state)
{
	struct control_server *server;
	struct fault fault = {0};
	char path[PATH_MAX];
	FILE *file;

	assert_int_equal(runtime_socket("a", path, NULL), 0);
	file = fopen(path, "w");
	assert_non_null(file);
	fclose(file);
	assert_true(control_server_start("a", echo, NULL, &server, &fault) < 0);
	assert_non_null(strstr(fault.text, path));
	assert_int_equal(unlink(path), 0);
}

/* A directory whose path does not fit into a socket address. */
static void long_directory(void **state)
{
	char deep[PATH_MAX * 2];
	struct control_server *server;
	json_t *reply;

	(void)snprintf(deep, sizeof(deep), "%s/%0120d", dir, 0);
	setenv("STRAKE_RUNTIME_DIR", deep, 1);
	assert_int_equal(control_server_start("a", echo, NULL, &server, NULL), 0);
	assert_int_equal(call("a", "{}", &reply, NULL), 0);
	json_decref(reply);
	control_server_stop(server);
	assert_int_equal(rmdir(deep), 0);
	setenv("STRAKE_RUNTIME_DIR", dir, 1);
}

static int start(
	const char *name, enum array_export export, char node[PATH_MAX], struct fault *fault)
{
	static struct md_assembly assembly; /* large */
	struct array_options options = {.name = name, .export = export};

	return array_start(&assembly, NULL, 0, &options, node, fault);
}

/* Whatever the background process does before it is ready, its starter hears of it. */
static void starting(void **state)
{
	char node[PATH_MAX];
	struct fault fault;

	assert_int_equal(start("works", ARRAY_EXPORT_FUSE, node, &fault), 0);
	assert_string_equal(node, "/a/node");
	assert_string_equal(fault.text, "a note");
	assert_true(wait(NULL) > 0);
	assert_int_equal(start("refuses", ARRAY_EXPORT_FUSE, node, &fault), -ENODEV);
	assert_string_equal(fault.text, "no such luck");
	assert_int_equal(start("dies", ARRAY_EXPORT_FUSE, node, &fault), -ECHILD);
	assert_non_null(strstr(fault.text, "exit status 7"));
	assert_int_equal(start("crashes", ARRAY_EXPORT_FUSE, node, &fault), -ECHILD);
	assert_non_null(strstr(fault.text, "signal 9"));
	assert_int_equal(start("works", ARRAY_EXPORT_NBD, node, &fault), -EOPNOTSUPP);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names),
		cmocka_unit_test(places),
		cmocka_unit_test(no_place),
		cmocka_unit_test(question_and_answer),
		cmocka_unit_test(bad_clients),
		cmocka_unit_test(stale_socket),
		cmocka_unit_test(foreign_file),
		cmocka_unit_test(long_directory),
		cmocka_unit_test(starting),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
