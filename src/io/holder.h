/* SPDX-License-Identifier: MIT */
#ifndef STRAKE_IO_HOLDER_H
#define STRAKE_IO_HOLDER_H

/* Who has a device or file: for the words of a refusal, and to refuse what no lock would. */

#include <stdbool.h>
#include <stddef.h>

#include "io/member.h"

/*
 * A user of the member that O_EXCL or a lock does not always show: a mount of it or of one of its
 * partitions, a swap area, a device built on it (md, device mapper, bcache), a loop device over it.
 * Writes "mounted on /srv" or the like; false if there is none.
 */
bool holder_of_device(const struct member *member, char *words, size_t size);

/*
 * A process that has the member open, best one that has locked it: "process 123 (qemu-nbd)", "the
 * running array md0 (process 123)" or our own, by another descriptor; false if none is seen.
 */
bool holder_process(const struct member *member, char *words, size_t size);

#endif
