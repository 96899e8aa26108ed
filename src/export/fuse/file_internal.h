/* SPDX-License-Identifier: MIT */
#ifndef STRAKE_EXPORT_FUSE_FILE_INTERNAL_H
#define STRAKE_EXPORT_FUSE_FILE_INTERNAL_H

/* What file.c (session, rare requests) and file_io.c (data requests) share. */

#include <linux/fuse.h>
#include <sys/uio.h>

#include "export/fuse/buffers.h"
#include "export/fuse/file.h"

#define FILE_SECTOR 512u
#define FILE_TRANSFER_MAX (1u << 20) /* what the kernel's 256 pages per request make */
#define FILE_IOS_MAX 256u
#define FILE_SLABS 24u
/* Header and fixed part of READ and WRITE alike: behind it a WRITE's payload begins. */
#define FILE_HEADER_BYTES (sizeof(struct fuse_in_header) + sizeof(struct fuse_write_in))
/* The longest other request is a SETXATTR with 64 KiB of value. */
#define FILE_RARE_BYTES (128u << 10)

enum file_step {
	STEP_READ_HEAD,
	STEP_READ_TAIL,
	STEP_WRITE_HEAD, /* zeroing only: writes take their edges along */
	STEP_WRITE_TAIL,
	STEP_BODY,
	STEP_END,
};

/*
 * A request in progress. Its byte range is head, middle and tail: head and tail are the parts of
 * sectors at the ends, which pass through edges[]; the middle is whole sectors. A range within one
 * sector is all head or all tail.
 */
struct file_io {
	struct engine_request request;
	struct iovec iov[3];
	struct array_file *file;
	uint64_t unique; /* the kernel's number of the request */
	uint32_t opcode; /* FUSE_READ, FUSE_WRITE, FUSE_FSYNC, FUSE_FALLOCATE */
	enum file_step step;
	unsigned flags;                      /* ENGINE_FUA, ENGINE_MAY_UNMAP */
	uint64_t offset_bytes, length_bytes; /* the client's */
	uint32_t head_bytes, tail_bytes;
	uint64_t middle_bytes;
	struct slab *slab; /* holds @data; NULL if none */
	uint8_t *data;
	uint8_t *edges;                  /* two sectors */
	struct file_io *next, *previous; /* in one of the file's lists */
};

struct file_list {
	struct file_io *first, *last;
};

struct array_file {
	struct array_file_options options;
	char path[PATH_MAX];
	uint64_t size_bytes;
	struct fuse_session *session;
	int fd;
	bool made; /* the file to mount over */
	bool mounted;
	bool ended;
	bool paused; /* watch removed until a request or buffer is free again */
	struct reactor_watch watch;
	struct buffers buffers;
	struct file_io *ios;
	uint8_t *edges;
	struct file_list idle;
	/* Writes and zeroings: those at work, and those held back by an overlapping one. */
	struct file_list active, waiting;
	unsigned unaligned; /* of both lists; while 0 nothing needs to be compared */
	/* The header, and all of a request that libfuse answers; aligned as the protocol is. */
	uint8_t rare[FILE_RARE_BYTES] __attribute__((aligned(8)));
};

static inline const struct fuse_in_header *file_header(const struct array_file *file)
{
	return (const void *)file->rare;
}

static inline const void *file_argument(const struct array_file *file)
{
	return file->rare + sizeof(struct fuse_in_header);
}

/* Answer request @unique; @iov (may be NULL) follows the header. @error: 0 or negative errno. */
void file_reply(struct array_file *file, uint64_t unique, int error, const struct iovec *iov,
	unsigned iov_count);

/* Read requests until there are none, or nothing to hold them; the caller kicks the engine. */
void file_receive(struct array_file *file);

/* Begin the request whose header is in file->rare (and whose payload was offered by buffers). */
void file_io_start(struct array_file *file, void *data);

#endif
