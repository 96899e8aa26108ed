/* SPDX-License-Identifier: MIT */
/*
 * The row of the export table for NBD. nbdkit runs in a child, so that what it says when it cannot
 * start comes back as words; once it serves, this process is of no use any more and leaves.
 */

#include "export/nbd/nbd_export.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "control/runtime.h"
#include "export/nbd/handover.h"
#include "util/cleanup.h"

#define PLUGIN "nbdkit-strake-plugin.so"
#define WORDS_MAX 4096

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

/* nbdkit changes its directory, so the path must be absolute; and it must fit into an address. */
static int absolute_socket(
	const char *name, const char *path, char ret[PATH_MAX], struct fault *fault)
{
	char folder[PATH_MAX] = "";

	if (path[0] != '/' && getcwd(folder, sizeof(folder)) == NULL)
		return fault_set(fault, -errno, "array %s: NBD socket %s: current directory: %s",
			name, path, strerror(errno));
	if (snprintf(ret, PATH_MAX, "%s%s%s", folder, folder[0] == '\0' ? "" : "/", path) >=
		(int)sizeof(((struct sockaddr_un *)NULL)->sun_path))
		return fault_set(fault, -ENAMETOOLONG,
			"array %s: NBD socket %.200s: longer than "
			"the %zu bytes that a socket's path may have; choose a shorter one",
			name, path, sizeof(((struct sockaddr_un *)NULL)->sun_path) - 1);
	return 0;
}

/* Where the user said, or else in the runtime directory. */
static int choose_socket(
	const struct array_options *options, char ret[PATH_MAX], struct fault *fault)
{
	char runtime[PATH_MAX];
	int r;

	if (options->nbd_path != NULL)
		return absolute_socket(options->name, options->nbd_path, ret, fault);
	r = runtime_file(options->name, runtime, fault);
	if (r < 0)
		return r;
	if (strlen(runtime) + strlen(".nbd") >= sizeof(runtime))
		return fault_set(fault, -ENAMETOOLONG, "array %s: runtime directory: path too long",
			options->name);
	strcat(runtime, ".nbd");
	return absolute_socket(options->name, runtime, ret, fault);
}

/* 0 nobody listens, -EBUSY somebody does. */
static int try_connect(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	_cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	memcpy(address.sun_path, path, strlen(path) + 1);
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0)
		return -EBUSY;
	return errno == ECONNREFUSED || errno == ENOENT ? 0 : -errno;
}

/* nbdkit would say it too, but not what to do. */
static int check_folder(const char *name, const char *path, struct fault *fault)
{
	char folder[PATH_MAX];

	(void)snprintf(folder, sizeof(folder), "%.*s", (int)(strrchr(path, '/') - path + 1), path);
	if (access(folder, W_OK | X_OK) == 0)
		return 0;
	return fault_set(fault, -errno,
		"array %s: NBD socket %s: cannot make a socket in %s: %s; "
		"choose a directory that you may write to",
		name, path, folder, strerror(errno));
}

/* A socket whose server was killed would be in nbdkit's way; anything else there is not ours. */
static int clear_socket(const char *name, const char *path, struct fault *fault)
{
	struct stat st;
	int r;

	if (lstat(path, &st) < 0)
		return errno == ENOENT ? 0
				       : fault_set(fault, -errno, "array %s: NBD socket %s: %s",
						 name, path, strerror(errno));
	if (!S_ISSOCK(st.st_mode))
		return fault_set(fault, -EEXIST,
			"array %s: NBD socket %s: the file exists and is "
			"no socket; choose another path",
			name, path);
	r = try_connect(path);
	if (r == -EBUSY)
		return fault_set(fault, r,
			"array %s: NBD socket %s: another server listens there; "
			"stop it or choose another path",
			name, path);
	if (r == 0 && unlink(path) < 0)
		r = -errno;
	return r == 0 ? 0
		      : fault_set(fault, r,
				"array %s: NBD socket %s: cannot remove the socket "
				"that a killed server left: %s",
				name, path, strerror(-r));
}

struct launch {
	const struct export_start *start;
	char plugin[PATH_MAX];
	char socket[PATH_MAX];
	int handover_fd;
};

static _Noreturn void exec_nbdkit(const struct launch *launch, int words_fd)
{
	const struct array_options *options = launch->start->options;
	char name[NAME_MAX + 8], path[PATH_MAX + 8], handover[32];
	const char *argv[] = {"nbdkit", "--foreground", "--unix", launch->socket, launch->plugin,
		name, path, handover, options->readonly ? "--readonly" : NULL, NULL};

	(void)snprintf(name, sizeof(name), "name=%s", options->name);
	(void)snprintf(path, sizeof(path), "socket=%s", launch->socket);
	(void)snprintf(handover, sizeof(handover), "handover=%d", launch->handover_fd);
	export_harden();
	if (dup2(words_fd, STDOUT_FILENO) >= 0 && dup2(words_fd, STDERR_FILENO) >= 0)
		execvp(argv[0], (char *const *)argv);
	dprintf(words_fd, "cannot run nbdkit: %s", strerror(errno));
	_exit(127);
}

/* What comes before the byte 0, or before the end: true if that byte came. Keeps what fits. */
static bool read_words(int fd, char words[WORDS_MAX])
{
	size_t length = 0;
	ssize_t n;
	char byte;

	while ((n = read(fd, &byte, 1)) == 1 || (n < 0 && errno == EINTR)) {
		if (n == 1 && byte == '\0')
			return true;
		if (n == 1 && length < WORDS_MAX - 1)
			words[length++] = byte;
	}
	words[length] = '\0';
	return false;
}

/* "nbdkit: error: array is broken\n" and "nbdkit: strake[1]: error: …" → "array is broken". */
static const char *bare_words(char *words)
{
	size_t length = strlen(words);
	char *error;

	while (length > 0 && words[length - 1] == '\n')
		words[--length] = '\0';
	error = strncmp(words, "nbdkit: ", 8) == 0 ? strstr(words, "error: ") : NULL;
	return error != NULL ? error + 7 : words;
}

static int serve(const struct launch *launch, struct fault *fault)
{
	const struct export_start *start = launch->start;
	char words[WORDS_MAX];
	int ends[2];
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return fault_set(
			fault, -errno, "array %s: pipe: %s", start->options->name, strerror(errno));
	pid = fork();
	if (pid < 0)
		return fault_set(fault, -errno, "array %s: cannot start a process: %s",
			start->options->name, strerror(errno));
	if (pid == 0)
		exec_nbdkit(launch, ends[1]);
	close(ends[1]);
	if (read_words(ends[0], words))
		return export_ready(start->ready_fd, launch->socket, NULL);
	(void)waitpid(pid, NULL, 0); /* that it failed is known, and why */
	(void)clear_socket(start->options->name, launch->socket, NULL);
	return fault_set(fault, -EIO, "array %s: cannot export it by NBD: %s", start->options->name,
		words[0] == '\0' ? "nbdkit ended without a word" : bare_words(words));
}

static int nbd_run(const struct export_start *start, struct fault *fault)
{
	_cleanup_free_ struct launch *launch = calloc(1, sizeof(*launch));
	const char *name = start->options->name;
	int r;

	if (launch == NULL)
		return fault_set(fault, -ENOMEM, "array %s: out of memory", name);
	launch->start = start;
	r = find_nbdkit(name, fault);
	if (r == 0)
		r = find_plugin(name, launch->plugin, fault);
	if (r == 0)
		r = choose_socket(start->options, launch->socket, fault);
	if (r == 0)
		r = check_folder(name, launch->socket, fault);
	if (r == 0)
		r = clear_socket(name, launch->socket, fault);
	if (r < 0)
		return r;
	launch->handover_fd = handover_write(start, fault);
	return launch->handover_fd < 0 ? launch->handover_fd : serve(launch, fault);
}

/* A killed one leaves its socket, which lies where the user said: the next run clears it. */
const struct export_ops nbd_export_ops = {
	.name = "nbd",
	.kinds = EXPORT_KIND(ARRAY_EXPORT_NBD) | EXPORT_KIND(ARRAY_EXPORT_AUTO),
	.run = nbd_run,
};
