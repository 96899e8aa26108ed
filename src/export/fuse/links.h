/* SPDX-License-Identifier: MIT */
#ifndef STRAKE_EXPORT_FUSE_LINKS_H
#define STRAKE_EXPORT_FUSE_LINKS_H

/*
 * Links in /dev that name the array's devices, and the record of them (runtime_links()), by which a
 * later start tells the links of a killed process from anybody else's.
 */

#include "util/fault.h"

struct links;

int links_new(const char *name, struct links **ret, struct fault *fault);
void links_free(struct links *links); /* the links stay */

/*
 * Link @path to device @node. The record is written before the link appears. -EEXIST if something
 * is there that is not the same link.
 */
int links_make(struct links *links, const char *path, const char *node, struct fault *fault);
/* Remove the links to nodes for which @keep says false (NULL: all); the record if none is left. */
void links_remove(
	struct links *links, int (*keep)(const void *owner, const char *path), const void *owner);

/* Remove the links on record of array @name that still lead where it says, and the record. */
int links_clean(const char *name, struct fault *fault);

#endif
