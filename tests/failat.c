/* SPDX-License-Identifier: MIT */

/*
 * Preloaded into the program: makes the Nth of its allocations, or the Nth of its calls that do
 * I/O, fail, once or from then on. What to do stands in a file, $FAILAT, that is shared by the
 * process, by what it forks, and by the test (failat.sh), which may change it at any time:
 *
 *   bytes 0–7   calls until one fails, little-endian; 0: none does
 *   byte 8      what is counted: 1 allocations, 2 I/O
 *   byte 9      not 0: all after it fail too
 *   byte 10     set to 1 when one has failed
 *   bytes 12–15 only while the process of this number lives (0: always; -1: the next that starts):
 *               a command's own background process is looked at as long as the command waits for it
 *
 * Apart from that, and with --io=sync, $FAILAT_UNREADABLE has sectors that cannot be read and that
 * no write mends: "PATH BYTE LENGTH" in each line, of a file that is opened later too.
 *
 * What failed, and where, is appended to $FAILAT.log. Calls go to the kernel by syscall(), so that
 * nothing here needs dlsym(), which allocates.
 */

#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#define FRAMES 24

enum { COUNTS_ALLOCATIONS = 1, COUNTS_IO = 2 };

struct control {
	int64_t left;
	uint8_t counts, lasting, hit, unused;
	int32_t pid;
};

static struct control *control;
static int log_fd = -1;
static __thread bool busy; /* telling of a failure allocates */

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);

__attribute__((constructor)) static void begin(void)
{
	const char *path = getenv("FAILAT");
	char name[PATH_MAX];
	void *frames[FRAMES], *map;
	int fd;

	if (path == NULL)
		return;
	fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC, 0);
	map = mmap(NULL, sizeof(*control), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (fd < 0 || map == MAP_FAILED)
		abort();
	close(fd);
	(void)snprintf(name, sizeof(name), "%s.log", path);
	fd = (int)syscall(
		SYS_openat, AT_FDCWD, name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	/* Out of the way of the descriptors that the program itself gets. */
	log_fd = fcntl(fd, F_DUPFD_CLOEXEC, 900);
	close(fd);
	(void)backtrace(frames, FRAMES); /* loads a library at its first call */
	unsetenv("LD_PRELOAD");          /* other programs that this one runs */
	control = map;
	if (control->pid == -1)
		control->pid = getpid();
}

static void tell(const char *what)
{
	void *frames[FRAMES];
	int count, saved = errno;

	busy = true;
	count = backtrace(frames, FRAMES);
	dprintf(log_fd, "%s failed in process %d:\n", what, getpid());
	backtrace_symbols_fd(frames + 2, count - 2, log_fd);
	busy = false;
	errno = saved;
}

static bool is_watched(void)
{
	int32_t pid = control->pid;

	if (pid < 0) /* it is yet to come */
		return false;
	return pid == 0 || pid == getpid() || kill(pid, 0) == 0;
}

/* Shall this call fail? */
static bool fails(int counts, const char *what)
{
	int64_t left;

	if (control == NULL || busy || (control->counts & counts) == 0 || control->left == 0)
		return false;
	if (!is_watched())
		return false;
	left = __atomic_sub_fetch(&control->left, 1, __ATOMIC_SEQ_CST);
	if (left > 0)
		return false;
	if (control->lasting)
		__atomic_store_n(&control->left, 1, __ATOMIC_SEQ_CST);
	else if (left < 0) { /* another thread was the one */
		__atomic_store_n(&control->left, 0, __ATOMIC_SEQ_CST);
		return false;
	}
	control->hit = 1;
	tell(what);
	errno = counts == COUNTS_IO ? EIO : ENOMEM;
	return true;
}

EXPORT void *malloc(size_t size)
{
	return fails(COUNTS_ALLOCATIONS, "malloc") ? NULL : __libc_malloc(size);
}

EXPORT void *calloc(size_t count, size_t size)
{
	return fails(COUNTS_ALLOCATIONS, "calloc") ? NULL : __libc_calloc(count, size);
}

EXPORT void *realloc(void *old, size_t size)
{
	return fails(COUNTS_ALLOCATIONS, "realloc") ? NULL : __libc_realloc(old, size);
}

EXPORT void *aligned_alloc(size_t alignment, size_t size)
{
	return fails(COUNTS_ALLOCATIONS, "aligned_alloc") ? NULL : __libc_memalign(alignment, size);
}

EXPORT int posix_memalign(void **ret, size_t alignment, size_t size)
{
	int saved = errno;
	void *memory;

	if (fails(COUNTS_ALLOCATIONS, "posix_memalign")) {
		errno = saved;
		return ENOMEM;
	}
	memory = __libc_memalign(alignment, size);
	if (memory == NULL)
		return ENOMEM;
	*ret = memory;
	return 0;
}

/* Does a line of $FAILAT_UNREADABLE name bytes of [@at, @at + @size) of @fd? */
static bool is_unreadable(int fd, off64_t at, size_t size)
{
	const char *line = getenv("FAILAT_UNREADABLE");
	char link[32], path[PATH_MAX], name[PATH_MAX];
	long long first, length;
	ssize_t n;

	if (line == NULL)
		return false;
	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, path, sizeof(path) - 1);
	path[n > 0 ? n : 0] = '\0';
	for (; line != NULL && *line != '\0'; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (sscanf(line, "%4095s %lld %lld", name, &first, &length) == 3 &&
			strcmp(name, path) == 0 && at < first + length &&
			first < at + (off64_t)size) {
			errno = EIO;
			return true;
		}
	}
	return false;
}

#define IO(name, call) (fails(COUNTS_IO, name) ? -1 : (call))

EXPORT ssize_t pread64(int fd, void *buffer, size_t size, off64_t at)
{
	if (is_unreadable(fd, at, size))
		return -1;
	return IO("pread", syscall(SYS_pread64, fd, buffer, size, at));
}

EXPORT ssize_t pwrite64(int fd, const void *buffer, size_t size, off64_t at)
{
	return IO("pwrite", syscall(SYS_pwrite64, fd, buffer, size, at));
}

EXPORT ssize_t preadv64v2(int fd, const struct iovec *iov, int count, off64_t at, int flags)
{
	size_t size = 0;

	for (int i = 0; i < count; i++)
		size += iov[i].iov_len;
	if (is_unreadable(fd, at, size))
		return -1;
	return IO("preadv2", syscall(SYS_preadv2, fd, iov, count, at, 0, flags));
}

EXPORT ssize_t pwritev64v2(int fd, const struct iovec *iov, int count, off64_t at, int flags)
{
	return IO("pwritev2", syscall(SYS_pwritev2, fd, iov, count, at, 0, flags));
}

EXPORT int fsync(int fd)
{
	return (int)IO("fsync", syscall(SYS_fsync, fd));
}

EXPORT int fdatasync(int fd)
{
	return (int)IO("fdatasync", syscall(SYS_fdatasync, fd));
}

EXPORT int open64(const char *path, int flags, ...)
{
	va_list args;
	int mode;

	va_start(args, flags);
	mode = va_arg(args, int);
	va_end(args);
	return (int)IO("open", syscall(SYS_openat, AT_FDCWD, path, flags, mode));
}

EXPORT int openat64(int folder, const char *path, int flags, ...)
{
	va_list args;
	int mode;

	va_start(args, flags);
	mode = va_arg(args, int);
	va_end(args);
	return (int)IO("openat", syscall(SYS_openat, folder, path, flags, mode));
}

EXPORT int ioctl(int fd, unsigned long request, ...)
{
	va_list args;
	void *argument;

	va_start(args, request);
	argument = va_arg(args, void *);
	va_end(args);
	return (int)IO("ioctl", syscall(SYS_ioctl, fd, request, argument));
}

/* The same for libraries built without large files, where these are functions of other names. */

EXPORT int plain_open(const char *path, int flags, int mode) __asm__("open");
EXPORT int plain_openat(int folder, const char *path, int flags, int mode) __asm__("openat");
EXPORT ssize_t plain_pread(int fd, void *buffer, size_t size, off64_t at) __asm__("pread");
EXPORT ssize_t plain_pwrite(int fd, const void *buffer, size_t size, off64_t at) __asm__("pwrite");

int plain_open(const char *path, int flags, int mode)
{
	return open64(path, flags, mode);
}

int plain_openat(int folder, const char *path, int flags, int mode)
{
	return openat64(folder, path, flags, mode);
}

ssize_t plain_pread(int fd, void *buffer, size_t size, off64_t at)
{
	return pread64(fd, buffer, size, at);
}

ssize_t plain_pwrite(int fd, const void *buffer, size_t size, off64_t at)
{
	return pwrite64(fd, buffer, size, at);
}
