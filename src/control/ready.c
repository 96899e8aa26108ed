/* SPDX-License-Identifier: MIT */
/* What a serving process says and does about itself (export.h). */
#include "control/ready.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "control/export.h"
#include "util/cleanup.h"

#ifndef PR_SET_IO_FLUSHER
#define PR_SET_IO_FLUSHER 57
#endif

#define OOM_SCORE                                                                       \
	"-900" /* below ordinary programs, above "never": a leak must not kill the rest \
		*/

int ready_send(int fd, const struct ready_message *message)
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

size_t ready_receive(int fd, struct ready_message *ret)
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
	struct ready_message message = {0};
	int r;

	(void)snprintf(message.node, sizeof(message.node), "%s", node);
	(void)snprintf(message.text, sizeof(message.text), "%s", note != NULL ? note : "");
	r = ready_send(ready_fd, &message);
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
