/* SPDX-License-Identifier: MIT */
#ifndef STRAKE_IO_TEST_RIG_H
#define STRAKE_IO_TEST_RIG_H

/* What the tests of this folder share: private folders, and one reactor over one file. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "io/reactor.h"

#define K 1024u
#define SECTOR 512u

/* A private folder in @parent (NULL: $TMPDIR or /tmp); remove_folder() takes its files along. */
static inline void make_folder(const char *parent, char *folder, size_t size)
{
	if (parent == NULL)
		parent = getenv("TMPDIR");
	(void)snprintf(folder, size, "%s/strake-io-test.XXXXXX", parent != NULL ? parent : "/tmp");
	assert_non_null(mkdtemp(folder));
}

/* Numbers that repeat with the seed (xorshift64). */
static inline uint64_t next_number(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static inline void fill(void *buffer, size_t length, uint64_t seed)
{
	uint8_t *at = buffer;

	seed = seed * 2 + 1;
	for (size_t i = 0; i < length; i++)
		at[i] = (uint8_t)(next_number(&seed) >> 24);
}

#endif
