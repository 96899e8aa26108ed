/* SPDX-License-Identifier: MIT */
#ifndef STRAKE_PROBE_PROBE_H
#define STRAKE_PROBE_PROBE_H

/*
 * Looking at devices: which superblocks they hold, what else lives on them, which devices there
 * are. Everything here but probe_write_super() and probe_zero_supers() only reads.
 */

#include <stdbool.h>

#include "io/member.h"
#include "md/super.h"

/* Read the superblock areas of @member. Areas that the device is too small for are not present. */
int probe_read_blocks(
	const struct member *member, struct md_super_blocks *ret, struct fault *fault);

/* Read and choose (md_super_choose). */
int probe_read_super(const struct member *member, struct md_super *ret, struct fault *fault);

/* Encode @super and write it at its super_offset, then sync the member. */
int probe_write_super(
	const struct member *member, const struct md_super *super, struct fault *fault);

/* Overwrite the 4096 bytes of every md superblock found with zeros. Returns how many, or an errno.
 */
int probe_zero_supers(const struct member *member, struct fault *fault);

/*
 * What lives on a device already: partition tables (backup GPT included), file systems, LUKS, LVM,
 * swap, RAID members of any format (ours and what libblkid knows). One line per finding.
 */
struct probe_finding {
	char *what; /* "ext4 file system, label \"data\"", "GPT partition table (backup)" */
	char *type; /* short machine word: "ext4", "gpt", "md-1.2" */
	uint64_t offset_bytes;
	char *uuid; /* or NULL */
};
int probe_findings(const struct member *member, struct probe_finding **ret, unsigned *ret_count,
	struct fault *fault);
void probe_findings_free(struct probe_finding *findings, unsigned count);

/*
 * Devices to scan: each of @words is a path of a device or file, a directory (its regular files and
 * block devices, not deeper), a glob, or the word "partitions" (all of /proc/partitions, without
 * arrays that strake runs itself). No words: "partitions". Paths are unique, sorted.
 */
int probe_scan(char *const *words, unsigned word_count, char ***ret, unsigned *ret_count,
	struct fault *fault);
void probe_scan_free(char **paths, unsigned count);

#endif
