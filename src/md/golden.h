/* SPDX-License-Identifier: MIT */
#ifndef STRAKE_MD_GOLDEN_H
#define STRAKE_MD_GOLDEN_H

/*
 * For tests: superblocks that the real md wrote (tests/golden/supers.txt), with what mdadm said of
 * them, and a checksum of its own, written from the specification and not from the code.
 */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "md/super.h"

#define GOLDEN_SAYS_MAX 64

struct golden {
	char name[64];
	uint64_t sectors, at;
	char says[GOLDEN_SAYS_MAX][128]; /* "Key=value" */
	unsigned say_count;
	uint8_t block[MD_SUPER_BYTES];
};

static inline void golden_hex_line(struct golden *golden, const char *line)
{
	uint8_t row[32] = {0};
	unsigned offset = 0;
	char hex[80] = "";

	if (sscanf(line, "%x %64s", &offset, hex) != 2 || offset > MD_SUPER_BYTES - 32)
		abort();
	for (unsigned i = 0; i < 32; i++) {
		unsigned byte = 0;

		if (sscanf(hex + 2 * (size_t)i, "%2x", &byte) != 1)
			abort();
		row[i] = (uint8_t)byte;
	}
	/* Lines equal to the one before are left out of the file. */
	for (; offset < MD_SUPER_BYTES; offset += 32)
		memcpy(golden->block + offset, row, 32);
}

/* The next member of @file; false at its end. */
static inline bool golden_next(FILE *file, struct golden *golden)
{
	char line[256];

	memset(golden, 0, sizeof(*golden));
	while (fgets(line, sizeof(line), file) != NULL) {
		unsigned long long number = 0;

		line[strcspn(line, "\n")] = '\0';
		if (strcmp(line, "end") == 0)
			return true;
		if (sscanf(line, "member %63s", golden->name) == 1)
			continue;
		if (sscanf(line, "sectors %llu", &number) == 1)
			golden->sectors = number;
		else if (sscanf(line, "at %llu", &number) == 1)
			golden->at = number;
		else if (strncmp(line, "say ", 4) == 0 && golden->say_count < GOLDEN_SAYS_MAX)
			(void)snprintf(golden->says[golden->say_count++], 128, "%.127s", line + 4);
		else
			golden_hex_line(golden, line);
	}
	return false;
}

/* What mdadm said of @key, or NULL. */
static inline const char *golden_say(const struct golden *golden, const char *key)
{
	size_t length = strlen(key);

	for (unsigned i = 0; i < golden->say_count; i++)
		if (strncmp(golden->says[i], key, length) == 0 && golden->says[i][length] == '=')
			return golden->says[i] + length + 1;
	return NULL;
}

static inline enum md_version golden_version(const struct golden *golden)
{
	const char *version = golden_say(golden, "Version");

	if (version == NULL)
		abort();
	return md_format_by_name(strncmp(version, "0.90", 4) == 0 ? "0.90" : version)->version;
}

static inline uint32_t golden_word(const uint8_t *block, unsigned byte)
{
	return block[byte] | (uint32_t)block[byte + 1] << 8 | (uint32_t)block[byte + 2] << 16 |
	       (uint32_t)block[byte + 3] << 24;
}

/* Bytes of @block that its checksum covers. */
static inline unsigned golden_covered(const uint8_t *block, enum md_version version)
{
	uint32_t max_dev = golden_word(block, 220);

	if (version == MD_VERSION_0_90)
		return MD_SUPER_BYTES;
	return max_dev > MD_ROLES_MAX ? MD_SUPER_BYTES : 256 + 2 * max_dev;
}

/* Put the right checksum into a little-endian block of any version. */
static inline void golden_fix_checksum(uint8_t *block, enum md_version version)
{
	unsigned place = version == MD_VERSION_0_90 ? 4 * 38 : 216;
	unsigned covered = golden_covered(block, version);
	uint64_t sum = 0;

	memset(block + place, 0, 4);
	for (unsigned i = 0; i < covered / 4; i++)
		sum += golden_word(block, 4 * i);
	if (covered % 4 == 2)
		sum += block[covered - 2] + ((uint64_t)block[covered - 1] << 8);
	sum = (sum & 0xffffffff) + (sum >> 32);
	for (unsigned i = 0; i < 4; i++)
		block[place + i] = (uint8_t)(sum >> (8 * i));
}

#endif
