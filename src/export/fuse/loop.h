/* SPDX-License-Identifier: MIT */
#ifndef STRAKE_EXPORT_FUSE_LOOP_H
#define STRAKE_EXPORT_FUSE_LOOP_H

/* A loop device over the FUSE file. Nothing here may run on the reactor's thread: the kernel asks
 * the file while these functions wait. */

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "util/fault.h"

#define LOOP_UNCHANGED UINT64_MAX

struct loop {
	int number;
	char node[32]; /* /dev/loopN */
};

/*
 * Attach a free loop device to file @path with direct I/O and 512-byte blocks, read-only if
 * @readonly; set its read-ahead unless LOOP_UNCHANGED. -ENODEV there are no loop devices (no
 * /dev/loop-control, none free), -EPERM, -EACCES; with words.
 */
int loop_attach(const char *path, bool readonly, uint64_t readahead_bytes, struct loop *ret,
	struct fault *fault);

/*
 * Detach. The caller holds @exclusive_fd, an O_EXCL descriptor of the device (nobody else can take
 * it), which is closed here in any case. Returns when the device is free: -EBUSY if somebody keeps
 * it open.
 */
int loop_detach(const struct loop *loop, int exclusive_fd);

/*
 * Detach a device whose file is dead. If a file system is still mounted on it, it answers with
 * errors, and the kernel frees it when that is unmounted.
 */
void loop_abandon(const struct loop *loop);

/* Loop devices over @path, which may be dead: up to @max numbers. Returns how many. */
unsigned loop_find(const char *path, int *ret_numbers, unsigned max);
void loop_name(int number, struct loop *ret);
/*
 * Is the device still over file @path, which a living FUSE process serves? Anybody may have
 * detached it (losetup -d), and the kernel gives the number to the next one who asks.
 */
bool loop_is_ours(const struct loop *loop, const char *path);

int loop_set_readahead(const struct loop *loop, uint64_t bytes);
int loop_get_readahead(const struct loop *loop, uint64_t *ret_bytes);

#endif
