/* SPDX-License-Identifier: MIT */
/* A simulated run in a process of its own. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/sim.h"

#define SECONDS_MAX 300u /* of real time: nothing simulated takes that long */

static _Noreturn void child(const struct simulate_options *options, struct simulate_result *shared)
{
	(void)alarm(SECONDS_MAX);
	simulate_run(options, shared);
	if (options->out != NULL)
		(void)fflush(options->out);
	_exit(0);
}

static void note_end(int status, struct simulate_result *result)
{
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return;
	if (result->failed) /* it had found something before */
		return;
	result->failed = true;
	(void)snprintf(result->kind, sizeof(result->kind), "%s",
		WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM ? "endless" : "crash");
	(void)snprintf(result->text, sizeof(result->text), "the process ended with %s %d",
		WIFSIGNALED(status) ? "signal" : "exit code",
		WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
}

int sim_run_apart(const struct simulate_options *options, struct simulate_result *ret)
{
	struct simulate_result *shared = mmap(
		NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int status = 0;
	pid_t pid;

	if (shared == MAP_FAILED)
		return -ENOMEM;
	(void)fflush(stdout);
	pid = fork();
	if (pid == 0)
		child(options, shared);
	if (pid < 0) {
		(void)munmap(shared, sizeof(*shared));
		return -EAGAIN;
	}
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	*ret = *shared;
	(void)munmap(shared, sizeof(*shared));
	note_end(status, ret);
	return 0;
}
