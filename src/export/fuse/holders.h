/* SPDX-License-Identifier: MIT */
#ifndef STRAKE_EXPORT_FUSE_HOLDERS_H
#define STRAKE_EXPORT_FUSE_HOLDERS_H

/* Who uses a device or file, in words for the one who wants to stop it. */

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/*
 * Is device @node ("/dev/loop3p1") mounted, a swap area, part of another device (device mapper, md,
 * loop), or open in a process other than this one? Then true, with the first such use in @ret:
 * "mounted on /mnt", "open in process 123 (fdisk)".
 */
bool holders_of_device(const char *node, char *ret, size_t ret_bytes);

/* The same for a file: open in a process, or under a loop device other than @except (or -1). */
bool holders_of_file(const char *path, int except_loop, char *ret, size_t ret_bytes);

#endif
