/* SPDX-License-Identifier: MIT */
/* The row of the export table for NBD: what must be there for it, and the sockets. */

#include "export/nbd/nbd_export.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "control/runtime.h"
#include "control/server.h"
#include "export/nbd/nbd_socket.h"
#include "export/nbd/supervisor.h"

#define PLUGIN "nbdkit-strake-plugin.so"

/* In the build tree the plugin lies below the program's folder; else where it is installed. */
static int find_plugin(const char *name, char ret[PATH_MAX], struct fault *fault)
{
	static const char *const places[] = {"src/export/nbd", "../export/nbd"};
	char program[PATH_MAX];
	ssize_t length = readlink("/proc/self/exe", program, sizeof(program) - 1);
	unsigned i;

	program[length > 0 ? length : 0] = '\0';
	if (strrchr(program, '/') != NULL)
		*strrchr(program, '/') = '\0';
	for (i = 0; length > 0 && i < sizeof(places) / sizeof(places[0]); i++) {
		if (snprintf(ret, PATH_MAX, "%s/%s/" PLUGIN, program, places[i]) < PATH_MAX &&
			access(ret, R_OK) == 0)
			return 0;
	}
	(void)snprintf(ret, PATH_MAX, "%s/" PLUGIN, NBDKIT_PLUGIN_DIR);
	if (access(ret, R_OK) == 0)
		return 0;
	return fault_set(fault, -errno,
		"array %s: cannot export it by NBD: %s: %s; install strake "
		"together with its nbdkit plugin",
		name, ret, strerror(errno));
}

static bool is_program(const char *folder, int length)
{
	char path[PATH_MAX];

	return snprintf(path, sizeof(path), "%.*s/nbdkit", length, folder) < (int)sizeof(path) &&
	       access(path, X_OK) == 0;
}

static int find_nbdkit(const char *name, struct fault *fault)
{
	const char *folder = getenv("PATH");

	while (folder != NULL && *folder != '\0') {
		int length = (int)strcspn(folder, ":");

		if (is_program(folder, length))
			return 0;
		folder += length + (folder[length] == ':');
	}
	return fault_set(fault, -ENOENT,
		"array %s: cannot export it by NBD: the program nbdkit "
		"is not in PATH; install the package nbdkit",
		name);
}

/* What a failure leaves would look like the wreck of a killed array. */
static void remove_sockets(struct supervised *what)
{
	if (what->listen_fd >= 0)
		close(what->listen_fd);
	if (what->control_fd < 0)
		return; /* nothing of this name is ours */
	close(what->control_fd);
	(void)runtime_clean(
		what->start->options->name, NULL); /* best effort; the next start tries */
}

static int serve(struct supervised *what, struct fault *fault)
{
	const char *name = what->start->options->name;

	what->control_fd = control_server_listen(name, fault);
	if (what->control_fd < 0)
		return what->control_fd;
	what->listen_fd = nbd_socket_listen(name, what->socket_path, fault);
	if (what->listen_fd < 0)
		return what->listen_fd;
	export_harden(); /* nbdkit inherits it */
	return supervise(what, fault);
}

static int nbd_run(const struct export_start *start, struct fault *fault)
{
	const char *name = start->options->name;
	char plugin[PATH_MAX], socket[PATH_MAX];
	struct supervised what = {start, plugin, socket, -1, -1};
	int r = find_nbdkit(name, fault);

	if (r == 0)
		r = find_plugin(name, plugin, fault);
	if (r == 0)
		r = nbd_socket_choose(start->options, socket, fault);
	if (r == 0)
		r = serve(&what, fault);
	if (r < 0)
		remove_sockets(&what);
	return r;
}

/* What a killed one leaves, control/remains.c finds. */
const struct export_ops nbd_export_ops = {
	.name = "nbd",
	.kinds = EXPORT_KIND(ARRAY_EXPORT_NBD) | EXPORT_KIND(ARRAY_EXPORT_AUTO),
	.run = nbd_run,
};
