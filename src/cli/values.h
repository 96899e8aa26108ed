/* SPDX-License-Identifier: MIT */
#ifndef STRAKE_CLI_VALUES_H
#define STRAKE_CLI_VALUES_H

/* Words to numbers, and the nearest known word to an unknown one. */

#include <stdint.h>

/*
 * A size: decimal digits, then nothing (times @unit_bytes), or s (512-byte sectors), K, M, G or T
 * (powers of 1024; a following "iB" or "B" is allowed). -EINVAL if it is none, -ERANGE if too
 * large.
 */
int value_size(const char *text, uint64_t unit_bytes, uint64_t *ret);

/* A number of decimal digits only. */
int value_number(const char *text, uint64_t *ret);

/*
 * Feed candidate words one by one; afterwards best is the one with the fewest edits, NULL if none
 * is near enough to be worth naming.
 */
struct nearest {
	const char *word;
	const char *best;
	unsigned distance;
};
void nearest_feed(struct nearest *nearest, const char *candidate);

#endif
