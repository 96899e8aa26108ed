/* SPDX-License-Identifier: MIT */
#include "export/fuse/file.h"

#define FUSE_USE_VERSION 314
#include <fuse_lowlevel.h>

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "export/fuse/file_internal.h"
#include "util/cleanup.h"

#define FUSE_MAJOR 10 /* misc devices; admin-guide/devices.txt */
#define FUSE_MINOR 229
#define BACKGROUND_MAX 128 /* asynchronous requests the kernel may have here at once */
#define ATTRIBUTES_VALID_SECONDS 86400.0 /* nothing about the file ever changes */

static void file_init(void *owner, struct fuse_conn_info *conn)
{
	const struct array_file *file = owner;

	/*
	 * ATOMIC_O_TRUNC would have the kernel believe in a size of 0 after open(O_TRUNC), and
	 * AUTO_INVAL_DATA ask for attributes before reads; splice copies more than it saves here.
	 */
	conn->want &= ~(unsigned)(FUSE_CAP_ATOMIC_O_TRUNC | FUSE_CAP_AUTO_INVAL_DATA |
				  FUSE_CAP_SPLICE_READ | FUSE_CAP_SPLICE_WRITE |
				  FUSE_CAP_SPLICE_MOVE);
	conn->want |= conn->capable & (FUSE_CAP_ASYNC_READ | FUSE_CAP_ASYNC_DIO);
	conn->max_write = FILE_TRANSFER_MAX;
	conn->max_background = BACKGROUND_MAX;
	conn->congestion_threshold = BACKGROUND_MAX * 3 / 4;
	if (file->options.readahead_bytes > 0 && file->options.readahead_bytes < UINT32_MAX)
		conn->max_readahead = (unsigned)file->options.readahead_bytes;
}

static void attributes(const struct array_file *file, struct stat *ret)
{
	*ret = (struct stat){
		.st_ino = FUSE_ROOT_ID,
		.st_mode = S_IFREG | (file->options.readonly ? 0400 : 0600),
		.st_nlink = 1,
		.st_uid = geteuid(),
		.st_gid = getegid(),
		.st_size = (off_t)file->size_bytes,
		.st_blocks = (blkcnt_t)(file->size_bytes / FILE_SECTOR),
		.st_blksize = BUFFERS_PAGE_BYTES,
	};
}

static void file_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct stat st;

	attributes(fuse_req_userdata(req), &st);
	(void)fuse_reply_attr(req, &st, ATTRIBUTES_VALID_SECONDS);
}

/* An array has the size, mode and owner that it has. Times may be "set": nobody keeps them. */
static void file_setattr(
	fuse_req_t req, fuse_ino_t ino, struct stat *attr, int to_set, struct fuse_file_info *fi)
{
	const struct array_file *file = fuse_req_userdata(req);
	const int refused = FUSE_SET_ATTR_MODE | FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID;
	bool resize = (to_set & FUSE_SET_ATTR_SIZE) != 0 &&
		      (uint64_t)attr->st_size != file->size_bytes;

	if (file->options.readonly && (to_set & FUSE_SET_ATTR_SIZE) != 0)
		(void)fuse_reply_err(req, EROFS);
	else if (resize && (uint64_t)attr->st_size > file->size_bytes)
		(void)fuse_reply_err(req, ENOSPC);
	else if (resize || (to_set & refused) != 0)
		(void)fuse_reply_err(req, EPERM);
	else
		file_getattr(req, ino, fi);
}

static void file_statfs(fuse_req_t req, fuse_ino_t ino)
{
	const struct array_file *file = fuse_req_userdata(req);
	const struct statvfs st = {
		.f_bsize = BUFFERS_PAGE_BYTES,
		.f_frsize = BUFFERS_PAGE_BYTES,
		.f_blocks = file->size_bytes / BUFFERS_PAGE_BYTES,
		.f_files = 1,
		.f_namemax = NAME_MAX,
	};

	(void)fuse_reply_statfs(req, &st);
}

/* Extended attributes are asked for before each write unless the answer is "never". */
static const struct fuse_lowlevel_ops file_ops = {
	.init = file_init,
	.getattr = file_getattr,
	.setattr = file_setattr,
	.statfs = file_statfs,
};

void file_reply(struct array_file *file, uint64_t unique, int error, const struct iovec *iov,
	unsigned iov_count)
{
	struct fuse_out_header header = {.error = error, .unique = unique};
	struct iovec all[4] = {{&header, sizeof(header)}};
	size_t length = sizeof(header);

	for (unsigned i = 0; i < iov_count; i++) {
		all[i + 1] = iov[i];
		length += iov[i].iov_len;
	}
	header.len = (uint32_t)length;
	if (writev(file->fd, all, (int)iov_count + 1) < 0)
		return; /* ENOENT: the asker was killed; ENODEV: unmounted. Nobody hears us. */
}

/*
 * The page cache may keep what was read through an ordinary open: whatever changes the array comes
 * through this mount, and direct writes drop the pages they cover. Opening anew starts afresh (no
 * FOPEN_KEEP_CACHE), which also covers a read that raced with such a write. Direct opens, the loop
 * device's among them, run in parallel.
 */
static void open_file(struct array_file *file)
{
	const struct fuse_open_in *in = file_argument(file);
	struct fuse_open_out out = {0};
	struct iovec iov = {&out, sizeof(out)};
	int error = 0;

	if (file->options.readonly && (in->flags & O_ACCMODE) != O_RDONLY)
		error = -EROFS;
	if ((in->flags & O_DIRECT) != 0)
		out.open_flags = FOPEN_DIRECT_IO | FOPEN_PARALLEL_DIRECT_WRITES;
	file_reply(file, file_header(file)->unique, error, &iov, error == 0);
}

static void answer_rare(struct array_file *file, const uint8_t *data, size_t length)
{
	struct fuse_buf buf = {.mem = file->rare, .size = length};

	if (length > sizeof(file->rare)) {
		file_reply(file, file_header(file)->unique, -E2BIG, NULL, 0);
		return;
	}
	if (length > FILE_HEADER_BYTES)
		memcpy(file->rare + FILE_HEADER_BYTES, data, length - FILE_HEADER_BYTES);
	fuse_session_process_buf(file->session, &buf);
}

static void dispatch(struct array_file *file, uint8_t *data, size_t length)
{
	switch (file_header(file)->opcode) {
	case FUSE_READ:
	case FUSE_WRITE:
	case FUSE_FSYNC:
	case FUSE_FALLOCATE:
		file_io_start(file, data);
		break;
	case FUSE_OPEN:
		open_file(file);
		break;
	case FUSE_INTERRUPT: /* "not implemented": the kernel stops sending them */
		file_reply(file, file_header(file)->unique | 1, -ENOSYS, NULL, 0);
		break;
	default:
		answer_rare(file, data, length);
		break;
	}
}

static void end(struct array_file *file)
{
	file->ended = true;
	if (!file->paused)
		reactor_watch_remove(file->options.reactor, &file->watch);
	file->options.ended(file->options.owner);
}

static void pause_reading(struct array_file *file)
{
	file->paused = true;
	reactor_watch_remove(file->options.reactor, &file->watch);
}

/* One request. False if there is no more for now. */
static bool receive_one(struct array_file *file)
{
	uint8_t *data = buffers_offer(&file->buffers, FILE_TRANSFER_MAX);
	struct iovec iov[2] = {{file->rare, FILE_HEADER_BYTES}, {data, FILE_TRANSFER_MAX}};
	ssize_t n;

	if (data == NULL || file->idle.first == NULL) {
		pause_reading(file);
		return false;
	}
	n = readv(file->fd, iov, 2);
	if (n < 0 && (errno == EINTR || errno == ENOENT))
		return true; /* ENOENT: the request was taken back while we read it */
	if (n < 0 && errno == EAGAIN)
		return false;
	if (n < (ssize_t)sizeof(struct fuse_in_header)) {
		end(file); /* ENODEV: unmounted, or the connection was cut */
		return false;
	}
	dispatch(file, data, (size_t)n);
	return true;
}

void file_receive(struct array_file *file)
{
	while (!file->ended && receive_one(file))
		;
}

static void file_ready(struct reactor_watch *watch, short revents)
{
	struct array_file *file = watch->owner;

	file_receive(file);
	engine_kick(file->options.engine);
}

static void ignore_log(enum fuse_log_level level, const char *format, va_list args)
{
	/* libfuse's words name neither array nor remedy; ours do. */
}

/* The file to mount over. Only an empty regular file is taken: it is one that we have made. */
static int make_mount_point(struct array_file *file, struct fault *fault)
{
	_cleanup_close_ int fd = open(
		file->path, O_RDONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return fault_set(fault, -errno, "array %s: cannot make the file %s: %s",
			file->options.name, file->path, strerror(errno));
	if (!S_ISREG(st.st_mode) || st.st_size != 0)
		return fault_set(fault, -EEXIST,
			"array %s: %s exists and is no empty file; move it "
			"away, or give the array another name",
			file->options.name, file->path);
	return 0;
}

static int check_fuse(const char *name, struct fault *fault)
{
	_cleanup_close_ int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);

	if (fd >= 0)
		return 0;
	return fault_set(fault, errno == ENOENT || errno == ENXIO ? -ENODEV : -errno,
		"array %s: no file can be offered: /dev/fuse: %s; load the module fuse, or use "
		"--export=nbd:SOCKET or strake cat, which need no kernel help",
		name, strerror(errno));
}

/* libfuse 3.14 returns descriptor 0, and no error, if it lacks memory in the middle of mounting. */
static bool is_fuse_device(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISCHR(st.st_mode) &&
	       st.st_rdev == makedev(FUSE_MAJOR, FUSE_MINOR);
}

static int mount_session(struct array_file *file, struct fault *fault)
{
	char program[] = "strake", flag[] = "-o";
	char options[] = "fsname=strake,subtype=strake,default_permissions";
	char *argv[] = {program, flag, options, NULL};
	struct fuse_args args = FUSE_ARGS_INIT(3, argv);

	fuse_set_log_func(ignore_log);
	file->session = fuse_session_new(&args, &file_ops, sizeof(file_ops), file);
	fuse_opt_free_args(&args);
	if (file->session == NULL)
		return fault_set(fault, -ENOMEM, "array %s: FUSE session: out of memory",
			file->options.name);
	errno = 0;
	if (fuse_session_mount(file->session, file->path) < 0)
		return fault_set(fault, errno != 0 ? -errno : -EPERM,
			"array %s: cannot mount FUSE on "
			"%s%s%s; %s, or use --export=nbd:SOCKET",
			file->options.name, file->path, errno != 0 ? ": " : "",
			errno != 0 ? strerror(errno) : "",
			geteuid() == 0 ? "the container or kernel must allow mounts"
				       : "ordinary users need the program fusermount3");
	file->fd = fuse_session_fd(file->session);
	if (!is_fuse_device(file->fd))
		return fault_set(fault, -ENOMEM, "array %s: cannot mount FUSE on %s: out of memory",
			file->options.name, file->path);
	file->mounted = true;
	if (fcntl(file->fd, F_SETFL, fcntl(file->fd, F_GETFL) | O_NONBLOCK) < 0)
		return fault_set(fault, -errno, "array %s: /dev/fuse: %s", file->options.name,
			strerror(errno));
	return 0;
}

static int take_memory(struct array_file *file)
{
	file->ios = calloc(FILE_IOS_MAX, sizeof(*file->ios));
	file->edges = aligned_alloc(BUFFERS_PAGE_BYTES, FILE_IOS_MAX * 2 * FILE_SECTOR);
	if (file->ios == NULL || file->edges == NULL)
		return -ENOMEM;
	for (unsigned i = 0; i < FILE_IOS_MAX; i++) {
		struct file_io *io = &file->ios[i];

		io->file = file;
		io->edges = file->edges + (size_t)i * 2 * FILE_SECTOR;
		io->previous = file->idle.last;
		*(file->idle.last != NULL ? &file->idle.last->next : &file->idle.first) = io;
		file->idle.last = io;
	}
	return buffers_init(&file->buffers, FILE_SLABS);
}

static void array_file_freep(struct array_file **file)
{
	array_file_free(*file);
}

int array_file_mount(
	const struct array_file_options *options, struct array_file **ret, struct fault *fault)
{
	_cleanup_(array_file_freep) struct array_file *file = calloc(1, sizeof(*file));
	int r;

	if (file == NULL || take_memory(file) < 0)
		return fault_set(fault, -ENOMEM, "array %s: out of memory", options->name);
	file->options = *options;
	file->size_bytes = engine_array_bytes(options->engine);
	file->fd = -1;
	r = check_fuse(options->name, fault);
	if (r < 0)
		return r;
	(void)snprintf(file->path, sizeof(file->path), "%s", options->path);
	r = make_mount_point(file, fault);
	file->made = r == 0;
	if (r == 0)
		r = mount_session(file, fault);
	if (r < 0)
		return r;
	file->watch = (struct reactor_watch){
		.fd = file->fd,
		.events = POLLIN,
		.ready = file_ready,
		.owner = file,
	};
	r = reactor_watch_add(options->reactor, &file->watch);
	if (r < 0)
		return fault_set(fault, r, "array %s: %s", options->name, strerror(-r));
	*ret = steal_ptr(file);
	return 0;
}

static void remove_mount_point(const char *path)
{
	struct stat st;

	if (path[0] != '\0' && lstat(path, &st) == 0 && S_ISREG(st.st_mode) && st.st_size == 0)
		(void)unlink(path); /* an empty file left behind is in nobody's way */
}

void array_file_free(struct array_file *file)
{
	if (file == NULL)
		return;
	if (file->mounted)
		fuse_session_unmount(file->session); /* only if still mounted; it looks */
	if (file->session != NULL)
		fuse_session_destroy(file->session);
	if (file->made)
		remove_mount_point(file->path);
	buffers_fini(&file->buffers);
	free(file->ios);
	free(file->edges);
	free(file);
}

size_t array_file_memory(const struct array_file *file)
{
	return sizeof(*file) + FILE_IOS_MAX * (sizeof(*file->ios) + 2 * FILE_SECTOR) +
	       file->buffers.map_bytes;
}

static int run_fusermount(const char *path, const char *options)
{
	char program[] = "fusermount3", end_of_options[] = "--";
	char flags[8], word[PATH_MAX];
	char *argv[] = {program, flags, end_of_options, word, NULL};
	posix_spawn_file_actions_t actions;
	int status = 0, r;
	pid_t pid;

	(void)snprintf(flags, sizeof(flags), "%s", options);
	(void)snprintf(word, sizeof(word), "%s", path);
	if (posix_spawn_file_actions_init(&actions) != 0)
		return -ENOMEM;
	r = -posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
	if (r == 0)
		r = -posix_spawnp(&pid, program, &actions, NULL, argv, environ);
	(void)posix_spawn_file_actions_destroy(&actions); /* frees memory; cannot fail */
	if (r < 0)
		return r;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -EBUSY;
}

int array_file_unmount(const char *path)
{
	if (geteuid() != 0)
		return run_fusermount(path, "-uq");
	return umount2(path, UMOUNT_NOFOLLOW) < 0 ? -errno : 0;
}

int array_file_unmount_dead(const char *path)
{
	if (geteuid() != 0)
		return run_fusermount(path, "-uqz");
	return umount2(path, UMOUNT_NOFOLLOW | MNT_DETACH) < 0 ? -errno : 0;
}
