/* SPDX-License-Identifier: MIT */
#include "export/nbd/supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#include "engine/engine.h"
#include "export/nbd/changes.h"
#include "export/nbd/handover.h"
#include "util/cleanup.h"

#define WORDS_MAX 4096
/* Where sd_listen_fds(3) has the first descriptor, and descriptors that must not be there go. */
#define LISTEN_FD 3
#define OTHER_FDS_FROM 10

/*
 * There is no limit to how often nbdkit is started again: clients would decide when it is reached.
 * But one that served for less than a second is followed by a growing pause, so that a storm costs
 * little. Only starts that fail, which is no client's doing, are counted.
 */
#define SERVED_WELL_MS 1000
#define PAUSE_FIRST_MS 20
#define PAUSE_MAX_MS 1000
#define FAILED_STARTS_MAX 5

struct supervisor {
	const struct supervised *what;
	sigset_t old_signals;
	int signal_fd;
	bool stopping;  /* a signal said so */
	pid_t nbdkit;   /* 0: none */
	int words_fd;   /* what it says until it is ready */
	int changes_fd; /* see changes.h; -1: members do not come and go */
	int io_fd; /* closed at its end when the last member I/O of it is over; before that, a byte
		    * says that the array is broken, or a 'c' that members have come or gone */
	bool io_ended;
	bool broken; /* a flush has failed: no flush may succeed until a user starts the array */
	int64_t ready_ms;
	unsigned pause_ms, failed_starts;
	char words[WORDS_MAX];
	size_t words_length;
};

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* nbdkit, from here on in the child; what goes wrong is said where its own words would be. */

/* This array's descriptors get copies that survive exec; those of the parent do not. */
static int make_handover(const struct supervisor *supervisor, bool again, int io_fd)
{
	const struct supervised *what = supervisor->what;
	struct handover handover = {
		.start = what->start,
		.again = again,
		.broken = supervisor->broken,
		.control_fd = fcntl(what->control_fd, F_DUPFD, OTHER_FDS_FROM),
		.io_fd = fcntl(io_fd, F_DUPFD, OTHER_FDS_FROM),
		.changes_fd = supervisor->changes_fd < 0
				      ? -1
				      : fcntl(supervisor->changes_fd, F_DUPFD, OTHER_FDS_FROM),
	};
	_cleanup_free_ struct fault *fault = calloc(1, sizeof(*fault));
	int fd = -ENOMEM;

	if (fault != NULL && handover.control_fd >= 0 && handover.io_fd >= 0)
		fd = handover_write(&handover, OTHER_FDS_FROM, fault);
	if (fd < 0)
		fprintf(stderr, "%s",
			fault == NULL || fault->text[0] == '\0' ? "out of memory or descriptors"
								: fault->text);
	return fd;
}

static int announce_socket(int listen_fd)
{
	char pid[16];

	(void)snprintf(pid, sizeof(pid), "%d", (int)getpid());
	return setenv("LISTEN_FDS", "1", 1) == 0 && setenv("LISTEN_PID", pid, 1) == 0 &&
			       dup2(listen_fd, LISTEN_FD) == LISTEN_FD
		       ? 0
		       : -errno;
}

static void exec_nbdkit(const struct supervised *what, int handover_fd)
{
	const struct array_options *options = what->start->options;
	char name[NAME_MAX + 8], path[PATH_MAX + 8], handover[32];
	const char *argv[] = {"nbdkit", "--foreground", what->plugin_path, name, path, handover,
		options->readonly ? "--readonly" : NULL, NULL};

	(void)snprintf(name, sizeof(name), "name=%s", options->name);
	(void)snprintf(path, sizeof(path), "socket=%s", what->socket_path);
	(void)snprintf(handover, sizeof(handover), "handover=%d", handover_fd);
	execvp(argv[0], (char *const *)argv);
	fprintf(stderr, "cannot run nbdkit: %s", strerror(errno));
}

/*
 * When the parent dies (kill -9), the array ends in order. The signal could have come before it was
 * asked for: then the parent is another one already.
 */
static bool follow(pid_t parent)
{
	(void)prctl(PR_SET_PDEATHSIG, SIGTERM, 0, 0, 0); /* a valid signal number */
	return getppid() == parent;
}

static _Noreturn void be_nbdkit(
	const struct supervisor *supervisor, bool again, int words_fd, int io_fd, pid_t parent)
{
	const struct supervised *what = supervisor->what;
	int listen_fd, handover_fd = -1;

	if (dup2(words_fd, STDOUT_FILENO) < 0 || dup2(words_fd, STDERR_FILENO) < 0 ||
		!follow(parent))
		_exit(127);
	(void)sigprocmask(SIG_SETMASK, &supervisor->old_signals, NULL); /* valid arguments */
	/* The descriptor that goes to number 3 first: something else may be there, maybe itself. */
	listen_fd = fcntl(what->listen_fd, F_DUPFD_CLOEXEC, OTHER_FDS_FROM);
	if (listen_fd >= 0)
		handover_fd = make_handover(supervisor, again, io_fd);
	if (handover_fd >= 0 && announce_socket(listen_fd) == 0)
		exec_nbdkit(what, handover_fd);
	fflush(stderr);
	_exit(127);
}

/* The parent's side. */

/* Network members: nbdkit has its own connections, and a server may take one client only. */
static void disconnect_members(const struct export_start *start)
{
	for (unsigned i = 0; i < start->member_count; i++)
		member_disconnect(start->members[i]);
}

static int start_nbdkit(struct supervisor *supervisor, bool again)
{
	pid_t parent = getpid();
	int words[2], io[2];

	disconnect_members(supervisor->what->start);
	if (pipe2(words, O_CLOEXEC) < 0)
		return -errno;
	if (pipe2(io, O_CLOEXEC) < 0) {
		close(words[0]);
		close(words[1]);
		return -EMFILE;
	}
	(void)fcntl(words[0], F_SETFL, O_NONBLOCK); /* valid descriptors and flag */
	(void)fcntl(io[0], F_SETFL, O_NONBLOCK);
	supervisor->nbdkit = fork();
	if (supervisor->nbdkit == 0)
		be_nbdkit(supervisor, again, words[1], io[1], parent);
	close(words[1]);
	close(io[1]);
	supervisor->words_fd = words[0];
	supervisor->io_fd = io[0];
	supervisor->io_ended = false;
	supervisor->words_length = 0;
	if (supervisor->nbdkit > 0)
		return 0;
	supervisor->nbdkit = 0;
	return -errno;
}

static void close_pipes(struct supervisor *supervisor)
{
	if (supervisor->words_fd >= 0)
		close(supervisor->words_fd);
	if (supervisor->io_fd >= 0)
		close(supervisor->io_fd);
	supervisor->words_fd = supervisor->io_fd = -1;
}

static void take_signals(struct supervisor *supervisor)
{
	struct signalfd_siginfo signal;

	while (read(supervisor->signal_fd, &signal, sizeof(signal)) == sizeof(signal)) {
		if (signal.ssi_signo == SIGCHLD)
			continue; /* waitpid() tells */
		supervisor->stopping = true;
		if (supervisor->nbdkit > 0)
			(void)kill(supervisor->nbdkit, SIGTERM); /* a child: at least a zombie */
	}
}

/* Wait for @fd (-1: none) to become readable or closed, or a signal, @wait_ms at most (-1: ever).
 */
static bool await(struct supervisor *supervisor, int fd, int wait_ms)
{
	struct pollfd fds[2] = {
		{.fd = supervisor->signal_fd, .events = POLLIN}, {.fd = fd, .events = POLLIN}};

	if (poll(fds, 2, wait_ms) < 0)
		return false; /* EINTR; nothing else can be wrong with these two */
	if (fds[0].revents != 0)
		take_signals(supervisor);
	return fds[1].revents != 0;
}

/*
 * Words until the byte 0, which says that clients are served from now on, or until the end. Keeps
 * what fits. 1 ready, 0 more to come, -1 ended without.
 */
static int take_words(struct supervisor *supervisor)
{
	char byte;
	ssize_t n;

	while ((n = read(supervisor->words_fd, &byte, 1)) == 1) {
		if (byte == '\0')
			return 1;
		if (supervisor->words_length < WORDS_MAX - 1)
			supervisor->words[supervisor->words_length++] = byte;
	}
	supervisor->words[supervisor->words_length] = '\0';
	return n < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : -1;
}

static bool becomes_ready(struct supervisor *supervisor)
{
	int r = 0;

	while (r == 0)
		if (await(supervisor, supervisor->words_fd, -1))
			r = take_words(supervisor);
	supervisor->ready_ms = now_ms();
	return r > 0;
}

static void let_go(void *owner, bool joined, const char *path)
{
	const struct export_start *start = owner;

	for (unsigned i = 0; !joined && i < start->member_count; i++) {
		struct member *member = start->members[i];

		if (member->fd < 0 || strcmp(member->path, path) != 0)
			continue;
		close(member->fd);
		member->fd = -1;
		member_disconnect(member);
	}
}

/* A member that has left the array must not be held here. One that joined is not held at all. */
static void let_go_members(const struct supervisor *supervisor)
{
	if (supervisor->changes_fd >= 0)
		(void)changes_read(supervisor->changes_fd, let_go,
			(void *)supervisor->what->start); /* fails for lack of memory only */
}

/* What nbdkit says while it serves, and the end of its last member I/O. */
static void take_io(struct supervisor *supervisor)
{
	char byte;
	ssize_t n = read(supervisor->io_fd, &byte, 1);

	if (n == 0)
		supervisor->io_ended = true;
	else if (n == 1 && byte == 'c')
		let_go_members(supervisor);
	else if (n == 1)
		supervisor->broken = true;
}

/* Its exit status, as waitpid() gives it. */
static int await_end(struct supervisor *supervisor)
{
	int status = 0;

	while (waitpid(supervisor->nbdkit, &status, WNOHANG) == 0)
		if (await(supervisor, supervisor->io_ended ? -1 : supervisor->io_fd, -1))
			take_io(supervisor);
	supervisor->nbdkit = 0;
	return status;
}

/* "nbdkit: error: array is broken\n" and "nbdkit: strake[1]: error: …" → "array is broken". */
static const char *bare_words(struct supervisor *supervisor)
{
	size_t length = supervisor->words_length;
	char *error, *words = supervisor->words;

	while (length > 0 && words[length - 1] == '\n')
		words[--length] = '\0';
	if (length == 0)
		return "nbdkit ended without a word";
	error = strncmp(words, "nbdkit: ", 8) == 0 ? strstr(words, "error: ") : NULL;
	return error != NULL ? error + 7 : words;
}

/*
 * Member I/O that nbdkit had begun goes on without it, and the kernel may write after nbdkit is
 * gone what a client sends again, differently, to its successor. Not before it is over may there be
 * one.
 */
static void await_last_io(struct supervisor *supervisor)
{
	while (!supervisor->stopping && !supervisor->io_ended)
		if (await(supervisor, supervisor->io_fd, -1))
			take_io(supervisor);
}

static void rest(struct supervisor *supervisor, int64_t served_ms)
{
	int64_t end_ms;

	if (served_ms >= SERVED_WELL_MS) {
		supervisor->pause_ms = 0;
		return;
	}
	supervisor->pause_ms = supervisor->pause_ms == 0 ? PAUSE_FIRST_MS
							 : supervisor->pause_ms * 2;
	if (supervisor->pause_ms > PAUSE_MAX_MS)
		supervisor->pause_ms = PAUSE_MAX_MS;
	end_ms = now_ms() + supervisor->pause_ms;
	while (!supervisor->stopping && now_ms() < end_ms)
		(void)await(supervisor, -1, (int)(end_ms - now_ms()));
}

static void log_death(const struct supervisor *supervisor, pid_t pid, int status)
{
	const char *name = supervisor->what->start->options->name;
	char how[64];

	if (WIFSIGNALED(status))
		(void)snprintf(how, sizeof(how), "was ended by signal %d (%s)", WTERMSIG(status),
			strsignal(WTERMSIG(status)));
	else
		(void)snprintf(how, sizeof(how), "ended with exit status %d", WEXITSTATUS(status));
	syslog(LOG_DAEMON | LOG_ERR,
		"strake: array %s: its nbdkit (process %d) %s; starting another one; the array's "
		"clients must connect again",
		name, (int)pid, how);
}

/*
 * The next engine knows nothing of the writes that this one has completed, so a flush would not
 * cover them. Therefore all members are flushed now. If that fails there is no second try that
 * could be believed: the kernel tells once and forgets.
 */
static void flush_members(struct supervisor *supervisor)
{
	const struct export_start *start = supervisor->what->start;

	for (unsigned i = 0; i < start->member_count; i++) {
		bool is_held = start->members[i]->fd >= 0 && !start->members[i]->readonly;
		int r = is_held ? member_sync(start->members[i]) : 0;

		if (r == 0)
			continue;
		supervisor->broken = true;
		syslog(LOG_DAEMON | LOG_ERR,
			"strake: array %s: the flush of %s after the death of nbdkit failed: %s; "
			"what was written last may be lost",
			start->options->name, start->members[i]->path, strerror(-r));
	}
}

/* A start that failed; @first: the user still listens. 0: try again. */
static int judge_failure(struct supervisor *supervisor, bool first, int r, struct fault *fault)
{
	const char *name = supervisor->what->start->options->name;

	if (r == 0)
		fault_set(fault, r = -EIO, "array %s: cannot export it by NBD: %s", name,
			bare_words(supervisor));
	else
		fault_set(fault, r, "array %s: cannot start nbdkit: %s", name, strerror(-r));
	if (first)
		return r;
	if (++supervisor->failed_starts < FAILED_STARTS_MAX)
		return 0;
	syslog(LOG_DAEMON | LOG_ERR, "strake: %s; tried %d times; the array is stopped",
		fault->text, FAILED_STARTS_MAX);
	return r;
}

/*
 * Which devices had failed stands in superblocks; without them nobody knows any more, and a device
 * that missed writes must not be read again.
 */
static int check_again(const struct supervisor *supervisor, struct fault *fault)
{
	const struct export_start *start = supervisor->what->start;

	if (start->options->persistent || !engine_level_is_redundant(start->assembly->level))
		return 0;
	fault_set(fault, -EUCLEAN,
		"array %s: its nbdkit died, and without superblocks it is not known which members "
		"are in sync; build it again from those that are",
		start->options->name);
	syslog(LOG_DAEMON | LOG_ERR, "strake: %s", fault->text);
	return -EUCLEAN;
}

/* One nbdkit from start to end: 1 another one is needed, 0 the array was stopped, or an error. */
static int serve_once(struct supervisor *supervisor, bool first, struct fault *fault)
{
	const struct supervised *what = supervisor->what;
	int status, r = start_nbdkit(supervisor, !first);
	pid_t pid = supervisor->nbdkit;
	bool ready = r == 0 && becomes_ready(supervisor);

	if (ready && first)
		(void)export_ready(what->start->ready_fd, what->socket_path, NULL);
	if (ready)
		supervisor->failed_starts = 0;
	status = pid > 0 ? await_end(supervisor) : 0;
	if (ready && WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	if (supervisor->stopping)
		return fault_set(fault, -EINTR, "array %s: a signal stopped its process",
			what->start->options->name);
	if (!ready)
		r = judge_failure(supervisor, first, r, fault);
	if (r < 0)
		return r;
	if (ready)
		log_death(supervisor, pid, status);
	if (pid > 0)
		await_last_io(supervisor);
	let_go_members(supervisor);
	r = check_again(supervisor, fault);
	if (r < 0)
		return r;
	if (ready && !supervisor->stopping)
		flush_members(supervisor);
	rest(supervisor, ready ? now_ms() - supervisor->ready_ms : 0);
	return supervisor->stopping ? -EINTR : 1;
}

static int take_over_signals(struct supervisor *supervisor)
{
	sigset_t signals;

	sigemptyset(&signals);
	sigaddset(&signals, SIGCHLD);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGHUP);
	if (sigprocmask(SIG_BLOCK, &signals, &supervisor->old_signals) < 0)
		return -errno;
	supervisor->signal_fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
	return supervisor->signal_fd < 0 ? -errno : 0;
}

int supervise(const struct supervised *supervised, struct fault *fault)
{
	_cleanup_free_ struct supervisor *supervisor = calloc(1, sizeof(*supervisor));
	const char *name = supervised->start->options->name;
	bool first = true;
	int r;

	if (supervisor == NULL)
		return fault_set(fault, -ENOMEM, "array %s: out of memory", name);
	supervisor->what = supervised;
	supervisor->words_fd = supervisor->io_fd = supervisor->changes_fd = -1;
	if (engine_level_is_redundant(supervised->start->assembly->level))
		supervisor->changes_fd = changes_new();
	if (supervisor->changes_fd < -1)
		return fault_set(fault, supervisor->changes_fd, "array %s: a memory file: %s", name,
			strerror(-supervisor->changes_fd));
	r = take_over_signals(supervisor);
	if (r < 0)
		return fault_set(fault, r, "array %s: signals: %s", name, strerror(-r));
	do {
		r = serve_once(supervisor, first, fault);
		close_pipes(supervisor);
		first = false;
	} while (r > 0);
	close(supervisor->signal_fd);
	if (supervisor->changes_fd >= 0)
		close(supervisor->changes_fd);
	return r;
}
