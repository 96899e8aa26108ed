/* SPDX-License-Identifier: MIT */

/*
 * superedit FILE AT FIELD WIDTH VALUE
 *
 * Set the little-endian field of WIDTH bytes at FIELD of the md superblock at byte AT of FILE, and
 * make its checksum right again: what a hostile image would hold. By the specification, sections
 * 1.3 and 2.5, not by strake's code.
 */

#include <endian.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SUPER_BYTES 4096

static uint32_t word_at(const unsigned char *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return le32toh(v);
}

static void checksum(unsigned char *super)
{
	size_t at = 152, covered = SUPER_BYTES, i; /* 0.90 */
	uint64_t sum = 0;
	uint32_t folded;

	if (word_at(super + 4) == 1) {
		at = 216;
		covered = 256 + 2 * (size_t)word_at(super + 220);
		if (covered > SUPER_BYTES)
			covered = SUPER_BYTES;
	}
	memset(super + at, 0, 4);
	for (i = 0; i + 4 <= covered; i += 4)
		sum += word_at(super + i);
	if (covered % 4 == 2)
		sum += (uint32_t)(super[i] | super[i + 1] << 8);
	folded = htole32((uint32_t)((sum & 0xffffffff) + (sum >> 32)));
	memcpy(super + at, &folded, sizeof(folded));
}

int main(int argc, char **argv)
{
	unsigned char super[SUPER_BYTES];
	unsigned long field, width, i;
	uint64_t value;
	off_t at;
	int fd;

	if (argc != 6) {
		fprintf(stderr, "usage: superedit FILE AT FIELD WIDTH VALUE\n");
		return 2;
	}
	at = strtol(argv[2], NULL, 0);
	field = strtoul(argv[3], NULL, 0);
	width = strtoul(argv[4], NULL, 0);
	value = strtoull(argv[5], NULL, 0);
	fd = open(argv[1], O_RDWR | O_CLOEXEC);
	if (fd < 0 || field > SUPER_BYTES - 8 || width > 8 ||
		pread(fd, super, sizeof(super), at) != (ssize_t)sizeof(super)) {
		perror(argv[1]);
		return 1;
	}
	for (i = 0; i < width; i++)
		super[field + i] = (unsigned char)(value >> 8 * i);
	checksum(super);
	if (pwrite(fd, super, sizeof(super), at) != (ssize_t)sizeof(super)) {
		perror(argv[1]);
		return 1;
	}
	return close(fd);
}
