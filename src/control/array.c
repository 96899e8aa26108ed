/* SPDX-License-Identifier: MIT */
/* From an assembly to a background process that serves it. */
#include "control/array.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "control/export.h"
#include "control/ready.h"
#include "control/remains.h"
#include "control/runtime.h"
#include "control/socket.h"
#include "util/cleanup.h"

/* The control socket goes last: while it is there, the rest can still be found by its name. */
int runtime_clean(const char *name, struct fault *fault)
{
	_cleanup_close_ int lock = control_lock(fault);
	int r = lock < 0 ? lock : control_look(name, fault);

	r = r > 0 ? 0 : r;
	for (unsigned i = 0; r == 0 && export_rows[i] != NULL; i++)
		if (export_rows[i]->clean != NULL)
			r = export_rows[i]->clean(name, fault);
	if (r == 0)
		r = remains_clean_nbd(name, fault);
	return r < 0 ? r : control_clean_socket(name, fault);
}

static _Noreturn void serve_array(const struct export_ops *ops, const struct export_start *start)
{
	struct ready_message message = {0};
	struct fault fault = {0};
	char title[16];

	(void)setsid(); /* cannot fail: a fresh child leads no group */
	(void)snprintf(title, sizeof(title), "strake:%s", start->options->name);
	(void)prctl(PR_SET_NAME, title);
	message.error = ops->run(start, &fault);
	if (message.error < 0) {
		(void)snprintf(message.text, sizeof(message.text), "%s", fault.text);
		(void)ready_send(start->ready_fd, &message); /* closed: it had been ready */
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
	return fault_set(fault, -ECHILD,
		"array %s: its process ended with exit status %d before the "
		"array was ready; what it said stands above",
		name, WEXITSTATUS(status));
}

static int await_ready(pid_t pid, int fd, const char *name, struct ready_message *message,
	char node[PATH_MAX], struct fault *fault)
{
	if (ready_receive(fd, message) < sizeof(*message))
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
	/* Taken first: once there is a process its word must be heard. */
	_cleanup_free_ struct ready_message *message = calloc(1, sizeof(*message));
	_cleanup_close_ int reader = -1;
	const char *name = start->options->name;
	int pipe_fds[2];
	pid_t pid;

	if (message == NULL)
		return fault_set(fault, -ENOMEM, "array %s: out of memory", name);
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
	/* The other process has these connections now; servers may take one client only. */
	for (unsigned i = 0; pid > 0 && i < start->member_count; i++)
		member_disconnect(start->members[i]);
	if (pid < 0)
		return fault_set(fault, -errno, "array %s: cannot start a process: %s", name,
			strerror(errno));
	return await_ready(pid, reader, name, message, node, fault);
}

/* This export is not to be had on this machine or by this user; another one may be. */
static bool is_absent(int error)
{
	return error == -ENODEV || error == -EACCES || error == -EPERM || error == -EOPNOTSUPP;
}

/* @first: why the export that would have been better is none here. */
static void explain_choice(const struct fault *first, const char *node, struct fault *note)
{
	if (first->error == 0 || note == NULL)
		return;
	(void)fault_prefix(note, "%s\ntherefore the array is %s%s", first->text, node,
		note->text[0] != '\0' ? "\n" : "");
}

/* The table's order is the order of preference: asked for none, the first that can be had. */
static int launch_first(struct export_start *start, char node[PATH_MAX], struct fault *fault)
{
	_cleanup_free_ struct fault *first = calloc(1, sizeof(*first));
	enum array_export kind = start->options->export;
	bool tried = false;
	int r = 0;

	if (first == NULL)
		return fault_set(fault, -ENOMEM, "array %s: out of memory", start->options->name);
	for (unsigned i = 0; export_rows[i] != NULL; i++) {
		if ((export_rows[i]->kinds & EXPORT_KIND(kind)) == 0)
			continue;
		tried = true;
		r = launch(export_rows[i], start, node, fault);
		if (r == 0)
			explain_choice(first, node, fault);
		if (r == 0 || !is_absent(r))
			return r;
		if (first->error == 0 && fault != NULL)
			*first = *fault;
		if (fault != NULL)
			*fault = (struct fault){0};
	}
	if (!tried)
		return fault_set(fault, -EOPNOTSUPP,
			"array %s: this program was built without "
			"the export that was asked for",
			start->options->name);
	return fault_set(fault, first->error, "%s", first->text);
}

int array_start(const struct md_assembly *assembly, struct member *const *members,
	unsigned member_count, const struct array_options *options, char node[PATH_MAX],
	struct fault *fault)
{
	struct export_start start = {
		.assembly = assembly,
		.members = members,
		.member_count = member_count,
		.options = options,
	};
	int r;

	if (fault != NULL)
		*fault = (struct fault){0};
	r = runtime_clean(options->name, fault);
	if (r < 0)
		return r;
	if (options->nbd_path != NULL)
		remains_record_nbd(options->name, options->nbd_path);
	r = launch_first(&start, node, fault);
	if (r < 0)
		remains_forget_nbd(options->name);
	return r;
}
