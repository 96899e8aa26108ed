/* SPDX-License-Identifier: MIT */

/*
 * Preloaded into user-mode-linux. Linux 6.1's UML hands PTRACE_SETREGSET an XSAVE area of the size
 * it was built for; a host CPU with a larger one (AMX: 11,008 bytes instead of 2,696) refuses that
 * with EFAULT and UML dies with "ptrace set fp regs failed, errno = 14". Here the area UML knows is
 * laid over the host's whole one, so that both see the size they expect.
 */

#include <elf.h>
#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define XSTATE_MAX 65536

__attribute__((visibility("default"))) long ptrace(enum __ptrace_request request, ...);

static long raw(long request, long pid, void *address, void *data)
{
	return syscall(SYS_ptrace, request, pid, address, data);
}

static long get_whole(long pid, char *area, size_t *ret_length)
{
	struct iovec whole = {area, XSTATE_MAX};
	long r = raw(PTRACE_GETREGSET, pid, (void *)NT_X86_XSTATE, &whole);

	*ret_length = whole.iov_len;
	return r;
}

static long xstate(long request, long pid, struct iovec *iov)
{
	static char area[XSTATE_MAX]; /* UML's kernel is one thread */
	size_t length;

	if (get_whole(pid, area, &length) < 0)
		return -1;
	if (iov->iov_len > length)
		iov->iov_len = length;
	if (request == PTRACE_GETREGSET) {
		memcpy(iov->iov_base, area, iov->iov_len);
		return 0;
	}
	memcpy(area, iov->iov_base, iov->iov_len);
	return raw(request, pid, (void *)NT_X86_XSTATE, &(struct iovec){area, length});
}

long ptrace(enum __ptrace_request request, ...)
{
	va_list ap;
	long pid, r;
	void *address, *data;
	long word;

	va_start(ap, request);
	pid = va_arg(ap, int);
	address = va_arg(ap, void *);
	data = va_arg(ap, void *);
	va_end(ap);
	if ((request == PTRACE_GETREGSET || request == PTRACE_SETREGSET) &&
		(long)address == NT_X86_XSTATE)
		return xstate(request, pid, data);
	/* As glibc: a peek returns the word that the system call stores at @data. */
	if (request >= PTRACE_PEEKTEXT && request <= PTRACE_PEEKUSER) {
		r = raw(request, pid, address, &word);
		if (r < 0)
			return r;
		errno = 0;
		return word;
	}
	return raw(request, pid, address, data);
}
