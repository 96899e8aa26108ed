/* SPDX-License-Identifier: MIT */
/* Which words name the same export, and what the member is called then. */
#include <errno.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "io/network.h"
#include "io/test_rig.h"
#include "util/cleanup.h"

static void same_export(const char *one, const char *other, bool expected)
{
	_cleanup_(network_name_fini) struct network_name a = {NULL, NULL, false};
	_cleanup_(network_name_fini) struct network_name b = {NULL, NULL, false};

	assert_int_equal(network_name_parse(one, &a, NULL), 0);
	assert_int_equal(network_name_parse(other, &b, NULL), 0);
	if ((strcmp(a.key, b.key) == 0) != expected)
		fail_msg("%s and %s: keys %s and %s", one, other, a.key, b.key);
	assert_int_equal(
		strcmp(network_hold_address(a.key).name, network_hold_address(b.key).name) == 0,
		expected);
}

static void uris_of_hosts(void **state)
{
	(void)state;
	same_export("nbd://host/", "nbd://host", true);
	same_export("nbd://host/", "NBD://HOST:10809/", true);
	same_export("nbd://host/a", "nbds://user@host/a?tls-certificates=/x", true);
	same_export("nbd://host/a%20b", "nbd://host/%61 b", true);
	same_export("nbd://[::1]/a", "nbd://[::1]:10809/a", true);
	same_export("nbd://host/a", "nbd://host/b", false);
	same_export("nbd://host/a", "nbd://host:10810/a", false);
	same_export("nbd://host/a", "nbd+vsock://host/a", false);
	same_export("nbd://host/a", "nbd://hosta/", false);
}

static void uris_of_sockets(void **state)
{
	char folder[256], here[512], there[512];

	(void)state;
	make_folder(NULL, folder, sizeof(folder));
	assert_int_equal(chdir(folder), 0);
	(void)snprintf(here, sizeof(here), "nbd+unix:///?socket=%s/none", folder);
	(void)snprintf(there, sizeof(there), "%s/none", folder);
	same_export(here, "nbd+unix:///?socket=none", true);
	same_export(here, there, true);
	same_export(here, "none", true);
	same_export(here, "nbds+unix://x/?a=b&socket=./none", true);
	same_export(here, "nbd+unix:///?socket=%6eone", true);
	same_export(here, "nbd+unix:///a?socket=none", false);
	same_export(here, "nbd+unix:///?socket=none2", false);
	assert_int_equal(symlink(".", "link"), 0);
	same_export(here, "nbd+unix:///?socket=link/none", true);
	assert_int_equal(unlink("link"), 0);
	assert_int_equal(chdir("/"), 0);
	assert_int_equal(rmdir(folder), 0);
}

static void relative_sockets_are_made_absolute(void **state)
{
	_cleanup_(network_name_fini) struct network_name name = {NULL, NULL, false};

	(void)state;
	assert_int_equal(chdir("/usr/lib"), 0);
	assert_int_equal(network_name_parse("nbd+unix:///x?socket=a%20b&c=d", &name, NULL), 0);
	assert_string_equal(name.path, "nbd+unix:///x?socket=/usr/lib/a%20b&c=d");
	network_name_fini(&name);
	assert_int_equal(network_name_parse("nbd+unix:///x?socket=%2fa", &name, NULL), 0);
	assert_string_equal(name.path, "nbd+unix:///x?socket=%2fa");
	assert_int_equal(chdir("/"), 0);
}

static void bad_uris(void **state)
{
	struct network_name name;

	(void)state;
	assert_int_equal(network_name_parse("nbd:///x", &name, NULL), -EINVAL);
	assert_int_equal(network_name_parse("nbd+unix:///x", &name, NULL), -EINVAL);
	assert_int_equal(network_name_parse("nbd+unix:///x?socket=", &name, NULL), -EINVAL);
	assert_int_equal(network_name_parse("nbd+unix:///x?sockets=a", &name, NULL), -EINVAL);
}

static void words(void **state)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	_cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char folder[64];

	(void)state;
	assert_true(network_is_word("nbd://host"));
	assert_true(network_is_word("NBDS+UNIX://?socket=x"));
	assert_false(network_is_word("http://host"));
	assert_false(network_is_word("nbd:/host"));
	assert_false(network_is_word("nbd"));
	assert_false(network_is_word(""));
	make_folder(NULL, folder, sizeof(folder));
	assert_false(network_is_word(folder));
	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s/s", folder);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_true(network_is_word(address.sun_path));
	assert_int_equal(unlink(address.sun_path), 0);
	assert_int_equal(rmdir(folder), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(uris_of_hosts),
		cmocka_unit_test(uris_of_sockets),
		cmocka_unit_test(relative_sockets_are_made_absolute),
		cmocka_unit_test(bad_uris),
		cmocka_unit_test(words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
