/* SPDX-License-Identifier: MIT */
#ifndef STRAKE_EXPORT_FUSE_BLOCK_H
#define STRAKE_EXPORT_FUSE_BLOCK_H

/*
 * The array as a block device: loop device, its partitions and the links to them, as one thing that
 * is there or not. Not for the reactor's thread; the caller serialises.
 */

#include "control/detail.h"
#include "export/fuse/loop.h"

struct block;

/*
 * Attach a loop device to @file (the FUSE file of array @name), add its partitions, make the links.
 * Errors of loop_attach() and links_make(), with words and everything undone.
 */
int block_new(const char *name, const char *file, bool readonly, uint64_t readahead_bytes,
	struct block **ret, struct fault *fault);

/*
 * Take all of it away and free. A loop device that is ours no more is left alone. -EBUSY with the
 * use named if anything of it is in use: then it is as it was.
 */
int block_free(struct block *block, struct fault *fault);

/* Read the table again. -ENODEV the loop device is ours no more; -EBUSY names partitions that
 * changed in the table but are in use. */
int block_reread(struct block *block, struct fault *fault);

/* False once somebody else has detached the loop device: it may be anybody's now. */
bool block_is_ours(const struct block *block);
const char *block_node(const struct block *block); /* the link: /dev/md0 */
const struct loop *block_loop(const struct block *block);
/* The partitions that exist now, with their links; at most @max. */
unsigned block_partitions(const struct block *block, struct detail_partition *ret, unsigned max);

/* Detach the loop devices over @file, whose FUSE process is dead, and their partitions. */
void block_clean(const char *file);

#endif
