/* SPDX-License-Identifier: MIT */
/*
 * The least that a FUSE file over a store can cost: one file as root, one thread, pread and pwrite
 * on FILE, the same libfuse and the same mount settings as strake's export.
 *
 *   fuse_reference FILE MOUNTPOINT      (MOUNTPOINT is a regular file; runs until unmounted)
 */
#define FUSE_USE_VERSION 314
#include <errno.h>
#include <fcntl.h>
#include <fuse_lowlevel.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define TRANSFER_MAX (1u << 20)

static int store;
static char *buffer;

static void set_up(void *data, struct fuse_conn_info *connection)
{
	(void)data;
	connection->max_write = TRANSFER_MAX;
	connection->max_read = TRANSFER_MAX;
	connection->max_background = 128;
	connection->congestion_threshold = 128;
}

static void get_attributes(fuse_req_t request, fuse_ino_t inode, struct fuse_file_info *file)
{
	struct stat attributes;

	(void)inode;
	(void)file;
	if (fstat(store, &attributes) < 0) {
		fuse_reply_err(request, errno);
		return;
	}
	attributes.st_ino = FUSE_ROOT_ID;
	fuse_reply_attr(request, &attributes, 3600);
}

static void open_file(fuse_req_t request, fuse_ino_t inode, struct fuse_file_info *file)
{
	(void)inode;
	file->keep_cache = 1;
	fuse_reply_open(request, file);
}

static void read_file(fuse_req_t request, fuse_ino_t inode, size_t size, off_t offset,
	struct fuse_file_info *file)
{
	ssize_t got = pread(store, buffer, size, offset);

	(void)inode;
	(void)file;
	if (got < 0)
		fuse_reply_err(request, errno);
	else
		fuse_reply_buf(request, buffer, (size_t)got);
}

static void write_file(fuse_req_t request, fuse_ino_t inode, const char *data, size_t size,
	off_t offset, struct fuse_file_info *file)
{
	ssize_t done = pwrite(store, data, size, offset);

	(void)inode;
	(void)file;
	if (done < 0)
		fuse_reply_err(request, errno);
	else
		fuse_reply_write(request, (size_t)done);
}

static void sync_file(
	fuse_req_t request, fuse_ino_t inode, int data_only, struct fuse_file_info *file)
{
	(void)inode;
	(void)data_only;
	(void)file;
	fuse_reply_err(request, fdatasync(store) < 0 ? errno : 0);
}

static const struct fuse_lowlevel_ops operations = {
	.init = set_up,
	.getattr = get_attributes,
	.open = open_file,
	.read = read_file,
	.write = write_file,
	.fsync = sync_file,
};

int main(int argc, char **argv)
{
	char option[] = "-omax_read=1048576";
	char *words[] = {argv[0], option, NULL};
	struct fuse_args args = FUSE_ARGS_INIT(2, words);
	struct fuse_session *session;

	if (argc != 3) {
		fprintf(stderr, "usage: fuse_reference FILE MOUNTPOINT\n");
		return 2;
	}
	store = open(argv[1], O_RDWR | O_CLOEXEC);
	if (store < 0) {
		perror(argv[1]);
		return 1;
	}
	buffer = aligned_alloc(1 << 21, 1 << 21);
	(void)madvise(buffer, 1 << 21, MADV_HUGEPAGE); /* small pages work, slower */
	session = fuse_session_new(&args, &operations, sizeof(operations), NULL);
	if (session == NULL || fuse_session_mount(session, argv[2]) != 0)
		return 1;
	(void)fuse_set_signal_handlers(session); /* without them only unmounting ends it */
	(void)fuse_session_loop(session);        /* ends when unmounted */
	fuse_session_unmount(session);
	fuse_session_destroy(session);
	return 0;
}
