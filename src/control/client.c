/* SPDX-License-Identifier: MIT */
/* The asking end of the control socket. */
#include "control/control.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "control/runtime.h"
#include "control/socket.h"
#include "util/cleanup.h"

#define EXIT_WAIT_MS 60000
#define ANSWER_WAIT_MS 10000
#define ASK_AGAIN_MS 10

/*
 * A descriptor of the serving process, taken before the question: when "stop" was answered, the
 * process still has to flush and leave, and the caller shall find it gone. -1 if there is none to
 * wait for (the process itself, in tests; kernels before 5.3).
 */
static int server_process(int fd, const json_t *request)
{
	const char *command = json_string_value(json_object_get(request, "command"));
	struct ucred peer;
	socklen_t length = sizeof(peer);

	if (command == NULL || strcmp(command, "stop") != 0)
		return -1;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) < 0 || peer.pid == getpid())
		return -1;
	return (int)syscall(SYS_pidfd_open, peer.pid, 0);
}

static int wait_for_exit(int pidfd, const char *name, struct fault *fault)
{
	struct pollfd fd = {.fd = pidfd, .events = POLLIN};
	int r;

	do {
		r = poll(&fd, 1, EXIT_WAIT_MS);
	} while (r < 0 && errno == EINTR);
	if (r > 0)
		return 0;
	return fault_set(fault, r < 0 ? -errno : -ETIMEDOUT,
		"array %s: stopped, but its process has not ended after %d seconds", name,
		EXIT_WAIT_MS / 1000);
}

static int judge_reply(json_t *reply, const char *name, struct fault *fault)
{
	const char *words = json_string_value(json_object_get(reply, "error"));
	int error = (int)json_integer_value(json_object_get(reply, "errno"));

	if (json_is_true(json_object_get(reply, "ok")))
		return 0;
	return fault_set(fault, error > 0 ? -error : -EBADMSG, "%s",
		words != NULL ? words : "the array's process sent an answer without words");
}

static int no_such_array(const char *name, int r, struct fault *fault)
{
	if (r == -ENOENT || r == -ECONNREFUSED)
		return fault_set(fault, -ENOENT,
			"array %s: not running; strake status lists the running ones", name);
	return r;
}

/*
 * The process that answers may die of something else (a client of its NBD socket) and be replaced,
 * while the array goes on. Questions that may be asked twice are then asked again.
 */
static bool is_lost(int r, const json_t *request)
{
	const char *command = json_string_value(json_object_get(request, "command"));

	return (r == -ENODATA || r == -ECONNRESET || r == -EPIPE) && command != NULL &&
	       (strcmp(command, "ping") == 0 || strcmp(command, "detail") == 0 ||
		       strcmp(command, "stop") == 0);
}

struct call {
	const char *name;
	json_t *request, *reply;
	int pidfd;
	bool connected;
};

/* Questions are answered at once by a process that can; what changes something may take its time.
 */
static void limit_wait(int fd, const json_t *request)
{
	const char *command = json_string_value(json_object_get(request, "command"));
	const struct timeval limit = {.tv_sec = CONTROL_WAIT_SECONDS};

	if (command != NULL && (strcmp(command, "ping") == 0 || strcmp(command, "detail") == 0))
		(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
}

static int no_answer(const char *name, int r, struct fault *fault)
{
	if (r == -EAGAIN)
		return fault_set(fault, -ETIMEDOUT,
			"array %s: its process (socket %s.sock) has not answered for %d seconds: "
			"it is stopped, or waits for a device; check with 'ps -C strake -o "
			"pid,stat,args' and the kernel's log, and try again",
			name, name, CONTROL_WAIT_SECONDS);
	return fault_set(fault, r, "array %s: its process (socket %s.sock) does not answer: %s",
		name, name, strerror(-r));
}

static int ask(struct call *call, struct fault *fault)
{
	_cleanup_close_ int fd = control_socket(call->name, false, fault);
	int r;

	call->connected = fd >= 0;
	if (!call->connected)
		return fd;
	if (call->pidfd < 0)
		call->pidfd = server_process(fd, call->request);
	limit_wait(fd, call->request);
	r = control_send(fd, call->request);
	return r == 0 ? control_receive(fd, CONTROL_LINE_MAX, &call->reply) : r;
}

static int ask_until_answered(struct call *call, struct fault *fault)
{
	static const struct timespec pause = {.tv_nsec = ASK_AGAIN_MS * 1000000L};
	int r = ask(call, fault);
	unsigned waited_ms;

	for (waited_ms = 0; is_lost(r, call->request) && waited_ms < ANSWER_WAIT_MS;
		waited_ms += ASK_AGAIN_MS) {
		nanosleep(&pause, NULL);
		r = ask(call, fault);
	}
	/* Only an array that ends in order takes its socket away: "stop" was heard at first. */
	if (r == -ENOENT && waited_ms > 0 && call->pidfd >= 0) {
		call->reply = json_pack("{s:b}", "ok", true);
		return call->reply != NULL ? 0 : -ENOMEM;
	}
	if (!call->connected && r != -EAGAIN)
		return no_such_array(call->name, r, fault);
	return r == 0 ? 0 : no_answer(call->name, r, fault);
}

int control_call(const char *name, json_t *request, json_t **ret, struct fault *fault)
{
	struct call call = {.name = name, .request = request, .pidfd = -1};
	_cleanup_close_ int pidfd = -1;
	int r = ask_until_answered(&call, fault);

	pidfd = call.pidfd;
	if (r == 0)
		r = judge_reply(call.reply, name, fault);
	if (pidfd >= 0 && (r == 0 || json_is_true(json_object_get(call.reply, "stopped")))) {
		int exited = wait_for_exit(pidfd, name, r == 0 ? fault : NULL);

		r = r == 0 ? exited : r;
	}
	if (r < 0)
		json_decref(call.reply);
	else
		*ret = call.reply;
	return r;
}

/* The array name in a directory entry NAME.sock; false if it is none. */
static bool socket_name(const char *entry, char name[NAME_MAX])
{
	char name_again[NAME_MAX];
	size_t length = strlen(entry);

	if (length <= 5 || length >= NAME_MAX || strcmp(entry + length - 5, ".sock") != 0)
		return false;
	memcpy(name, entry, length - 5);
	name[length - 5] = '\0';
	return runtime_name(name, name_again, NULL) == 0; /* else it cannot be one of ours */
}

static bool is_running(const char *name)
{
	int fd = control_socket(name, false, NULL);

	if (fd >= 0)
		close(fd);
	return fd >= 0 || fd == -EAGAIN; /* too many wait for it already: see control_socket() */
}

static int not_dot(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

/* Between bind and listen a socket looks dead: looked at a second time, under the lock, it does
 * not.
 */
bool control_is_dead(const char *name)
{
	_cleanup_close_ int lock = -1;

	if (control_look(name, NULL) <= 0)
		return false;
	lock = control_lock(NULL);
	return control_look(name, NULL) > 0;
}

int control_dead_fault(const char *name, struct fault *fault)
{
	return fault_set(fault, -EOWNERDEAD,
		"%s: its process died; run 'strake assemble %s …' to start it again or 'strake "
		"stop %s' to clear what it left",
		name, name, name);
}

static int list(bool (*is_wanted)(const char *name), json_t **ret, struct fault *fault)
{
	struct dirent **entries = NULL;
	char dir[PATH_MAX], name[NAME_MAX];
	json_t *names;
	int count, r = runtime_dir(dir, fault);

	if (r < 0)
		return r;
	count = scandir(dir, &entries, not_dot, alphasort);
	if (count < 0)
		return fault_set(fault, -errno, "runtime directory %s: %s", dir, strerror(errno));
	names = json_array();
	for (int i = 0; i < count; i++) {
		if (socket_name(entries[i]->d_name, name) && is_wanted(name) &&
			json_array_append_new(names, json_string(name)) < 0)
			r = fault_set(fault, -ENOMEM, "out of memory");
		free(entries[i]);
	}
	free(entries);
	if (r < 0)
		json_decref(names);
	else
		*ret = names;
	return r;
}

int control_list(json_t **ret, struct fault *fault)
{
	return list(is_running, ret, fault);
}

int control_list_dead(json_t **ret, struct fault *fault)
{
	return list(control_is_dead, ret, fault);
}

json_t *control_list_root(void)
{
	const char *chosen = getenv("STRAKE_RUNTIME_DIR");
	struct dirent **entries = NULL;
	json_t *names = json_array();
	char name[NAME_MAX];
	int count;

	if (geteuid() == 0 || (chosen != NULL && chosen[0] != '\0'))
		return names;
	count = scandir(RUNTIME_DIR_ROOT, &entries, not_dot, alphasort);
	for (int i = 0; i < count; i++) {
		if (socket_name(entries[i]->d_name, name))
			(void)json_array_append_new(names, json_string(name)); /* for words */
		free(entries[i]);
	}
	free(entries);
	return names;
}
