/* SPDX-License-Identifier: MIT */
#ifndef STRAKE_CONTROL_RUNTIME_H
#define STRAKE_CONTROL_RUNTIME_H

/*
 * Where running arrays leave their traces: DIR/NAME.sock (control socket), DIR/NAME (the array as a
 * FUSE file), and as root the links /dev/NAME (md0, md127) or /dev/md/NAME, and NAMEpN for
 * partitions. DIR is $STRAKE_RUNTIME_DIR if set, else /run/strake for root, else
 * $XDG_RUNTIME_DIR/strake.
 */

#include <limits.h>
#include <stdbool.h>

#include "util/fault.h"

#define RUNTIME_DIR_ROOT "/run/strake"

/* The directory, made (mode 0755) if absent. -ENXIO if XDG_RUNTIME_DIR is needed and not set. */
int runtime_dir(char ret[PATH_MAX], struct fault *fault);

/* "/dev/md0", "md0", "/dev/md/data", "data" → "md0", "data". -EINVAL for what cannot be a name. */
int runtime_name(const char *word, char ret[NAME_MAX], struct fault *fault);

/* md0 → /dev/md0, data → /dev/md/data. */
void runtime_link(const char *name, char ret[PATH_MAX]);

int runtime_socket(const char *name, char ret[PATH_MAX], struct fault *fault);
int runtime_file(const char *name, char ret[PATH_MAX], struct fault *fault);
/* DIR/NAME.links: the record of links in /dev that a running array has made (one "LINK TARGET" a
 * line), so that those of a killed one can be told from anybody else's. */
int runtime_links(const char *name, char ret[PATH_MAX], struct fault *fault);
/* DIR/NAME.nbd: the NBD socket of an array, or a link to where the user wanted it. */
int runtime_nbd(const char *name, char ret[PATH_MAX], struct fault *fault);

/*
 * Remove what a killed process left of array @name: its socket, and what the exports know (dead
 * FUSE mounts, loop devices, links). Nothing that is not provably ours, nothing of a running array.
 * -EBUSY "already running"; or an errno with words if something in the way cannot be removed.
 */
int runtime_clean(const char *name, struct fault *fault);

/*
 * A name taken for the time in which a command makes an array run under it: others are refused
 * before they write a byte. The lock, on DIR/NAME.lock, ends with the command however that ends;
 * the array's own process does not inherit it.
 */
struct runtime_claim {
	int fd; /* -1: nothing claimed */
	char path[PATH_MAX];
};

/* -EBUSY "another command is starting it"; or an errno with words. */
int runtime_claim(const char *name, struct runtime_claim *ret, struct fault *fault);
/* Give it up; nothing to do if there is none. */
void runtime_release(struct runtime_claim *claim);

#endif
