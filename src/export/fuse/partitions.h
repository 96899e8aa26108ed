/* SPDX-License-Identifier: MIT */
#ifndef STRAKE_EXPORT_FUSE_PARTITIONS_H
#define STRAKE_EXPORT_FUSE_PARTITIONS_H

/*
 * Partitions of a loop device, for kernels without partition parsers: libblkid reads the table,
 * BLKPG tells the kernel. What the kernel has is asked of the kernel (sysfs), never remembered, so
 * partitions that fdisk or the kernel itself have added are seen as well.
 */

#include <stdint.h>

#include "export/fuse/loop.h"

#define PARTITIONS_MAX 256u

struct partition {
	unsigned number; /* from 1 */
	uint64_t start_bytes, length_bytes;
};

struct partitions {
	unsigned count;
	struct partition list[PARTITIONS_MAX]; /* by number */
};

/* What the table in file @path says; none if there is no table. -EIO and the like if unreadable. */
int partitions_probe(const char *path, struct partitions *ret);
/* What the kernel has for @loop. */
int partitions_current(const struct loop *loop, struct partitions *ret);

/*
 * Make the kernel's partitions those of @wanted. Unchanged ones are not touched. One that is in use
 * is not forced: it stays as it is, is named in @fault, and -EBUSY is returned after all others
 * were done.
 */
int partitions_apply(const struct loop *loop, const struct partitions *wanted, struct fault *fault);

/* /dev/loopNpM */
void partition_node(const struct loop *loop, unsigned number, char ret[64]);

#endif
