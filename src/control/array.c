/* SPDX-License-Identifier: MIT */
/* From an assembly to a background process that serves it. */
#include "control/array.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "control/export.h"
#include "control/runtime.h"
#include "control/socket.h"
#include "util/cleanup.h"

#ifndef PR_SET_IO_FLUSHER
#define PR_SET_IO_FLUSHER 57
#endif

#define OOM_SCORE "-900" /* below ordinary programs, above "never": a leak must not kill the rest */

/* What travels through the pipe, once, from the background process to the one that waits. */
struct ready_message {
	int error; /* 0: ready */
	char node[PATH_MAX];
	char text[FAULT_TEXT_MAX]; /* the fault, or the note */
};

static int send_message(int fd, const struct ready_message *message)
{
	const char *bytes = (const char *)message;
	size_t done = 0;

	while (done < sizeof(*message)) {
		ssize_t n = write(fd, bytes + done, sizeof(*message) - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		done += (size_t)n;
	}
	return 0;
}

static size_t receive_message(int fd, struct ready_message *ret)
{
	char *bytes = (char *)ret;
	size_t done = 0;

	while (done < sizeof(*ret)) {
		ssize_t n = read(fd, bytes + done, sizeof(*ret) - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		done += (size_t)n;
	}
	return done;
}

static void detach_from_terminal(void)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int fd = 0; null >= 0 && fd <= 2; fd++)
		(void)dup2(null, fd); /* only the terminal stays open if this fails */
	if (null > 2)
		close(null);
	if (chdir("/") < 0)
		return; /* then the working directory's file system stays in use */
}

int export_ready(int ready_fd, const char *node, const char *note)
{
	struct ready_message message = { 0 };
	int r;

	(void)snprintf(message.node, sizeof(message.node), "%s", node);
	(void)snprintf(message.text, sizeof(message.text), "%s", note != NULL ? note : "");
	r = send_message(ready_fd, &message);
	close(ready_fd);
	detach_from_terminal();
	return r;
}

static void lower_oom_score(void)
{
	_cleanup_close_ int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	if (fd >= 0 && write(fd, OOM_SCORE, strlen(OOM_SCORE)) < 0)
		return; /* needs CAP_SYS_RESOURCE; without, we are judged as everybody */
}

void export_harden(void)
{
	(void)prctl(PR_SET_IO_FLUSHER, 1, 0, 0, 0); /* needs CAP_SYS_RESOURCE; best effort */
	lower_oom_score();
}

/*
 * Buffers that no load has touched yet stay unpopulated (MCL_ONFAULT): an idle array keeps a few
 * megabytes instead of its limit, and PR_SET_IO_FLUSHER covers the fault when it comes.
 */
void export_lock_memory(void)
{
	(void)mlockall(MCL_CURRENT | MCL_ONFAULT); /* RLIMIT_MEMLOCK may forbid it; best effort */
}

static const struct export_ops *find_export(enum array_export kind)
{
	for (unsigned i = 0; export_rows[i] != NULL; i++)
		if ((export_rows[i]->kinds & EXPORT_KIND(kind)) != 0)
			return export_rows[i];
	return NULL;
}

int runtime_clean(const char *name, struct fault *fault)
{
	_cleanup_close_ int lock = control_lock(fault);
	int r = lock < 0 ? lock : control_clean_socket(name, fault);

	for (unsigned i = 0; r == 0 && export_rows[i] != NULL; i++)
		if (export_rows[i]->clean != NULL)
			r = export_rows[i]->clean(name, fault);
	return r;
}

static _Noreturn void serve_array(const struct export_ops *ops, const struct export_start *start)
{
	struct ready_message message = { 0 };
	struct fault fault = { 0 };
	char title[16];

	(void)setsid(); /* cannot fail: a fresh child leads no group */
	(void)snprintf(title, sizeof(title), "strake:%s", start->options->name);
	(void)prctl(PR_SET_NAME, title);
	message.error = ops->run(start, &fault);
	if (message.error < 0) {
		(void)snprintf(message.text, sizeof(message.text), "%s", fault.text);
		(void)send_message(start->ready_fd, &message); /* closed: it had been ready */
	}
	_exit(message.error < 0);
}

static int judge_end(pid_t pid, const char *name, struct fault *fault)
{
	int status = 0;

	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (WIFSIGNALED(status))
		return fault_set(fault, -ECHILD,
			"array %s: its process was ended by signal %d before the array was ready",
			name, WTERMSIG(status));
	return fault_set(fault, -ECHILD, "array %s: its process ended with exit status %d before the "
		"array was ready; what it said stands above", name, WEXITSTATUS(status));
}

static int await_ready(pid_t pid, int fd, const char *name, char node[PATH_MAX],
	struct fault *fault)
{
	_cleanup_free_ struct ready_message *message = calloc(1, sizeof(*message));

	if (message == NULL)
		return fault_set(fault, -ENOMEM, "array %s: out of memory", name);
	if (receive_message(fd, message) < sizeof(*message))
		return judge_end(pid, name, fault);
	if (message->error < 0) {
		(void)waitpid(pid, NULL, 0); /* it is past its last word */
		return fault_set(fault, message->error, "%s", message->text);
	}
	memcpy(node, message->node, PATH_MAX);
	if (fault != NULL)
		memcpy(fault->text, message->text, sizeof(fault->text));
	return 0;
}

/* The caller is the strake command, which ends soon: its orphan then belongs to init. */
static int launch(const struct export_ops *ops, struct export_start *start, char node[PATH_MAX],
	struct fault *fault)
{
	_cleanup_close_ int reader = -1;
	const char *name = start->options->name;
	int pipe_fds[2];
	pid_t pid;

	if (pipe2(pipe_fds, O_CLOEXEC) < 0)
		return fault_set(fault, -errno, "array %s: pipe: %s", name, strerror(errno));
	reader = pipe_fds[0];
	start->ready_fd = pipe_fds[1];
	fflush(NULL); /* what is buffered must not be printed twice */
	pid = fork();
	if (pid == 0) {
		close(reader);
		serve_array(ops, start);
	}
	close(pipe_fds[1]);
	if (pid < 0)
		return fault_set(fault, -errno, "array %s: cannot start a process: %s", name,
			strerror(errno));
	return await_ready(pid, reader, name, node, fault);
}

int array_start(const struct md_assembly *assembly, struct member *const *members,
	unsigned member_count, const struct array_options *options, char node[PATH_MAX],
	struct fault *fault)
{
	const struct export_ops *ops = find_export(options->export);
	struct export_start start = {
		.assembly = assembly,
		.members = members,
		.member_count = member_count,
		.options = options,
	};
	int r;

	if (fault != NULL)
		*fault = (struct fault){ 0 };
	if (ops == NULL)
		return fault_set(fault, -EOPNOTSUPP, "array %s: this program was built without the "
			"export that was asked for", options->name);
	r = runtime_clean(options->name, fault);
	return r < 0 ? r : launch(ops, &start, node, fault);
}
