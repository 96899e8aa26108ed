/* SPDX-License-Identifier: MIT */
#include "sim/disk.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/rounding.h"

#define PAGE_BYTES 65536u

/* Pages that were never written are NULL and read as zeros. */
struct medium {
	uint8_t **pages;
	size_t page_count;
};

/* One sector as one write left it in the cache. */
struct version {
	uint64_t sector;
	uint64_t sequence;
	uint8_t data[SIM_SECTOR];
};

struct sim_disk {
	uint64_t size_bytes;
	uint64_t sequence;
	struct medium visible;
	struct medium durable;
	struct version *versions; /* rising sequence */
	size_t version_count, version_room;
	struct sim_disk_counters counters;
};

static int medium_init(struct medium *medium, uint64_t size_bytes)
{
	medium->page_count = (size_bytes + PAGE_BYTES - 1) / PAGE_BYTES;
	medium->pages = calloc(medium->page_count, sizeof(*medium->pages));
	return medium->pages == NULL ? -ENOMEM : 0;
}

static void medium_fini(struct medium *medium)
{
	for (size_t i = 0; medium->pages != NULL && i < medium->page_count; i++)
		free(medium->pages[i]);
	free(medium->pages);
}

static void medium_read(
	const struct medium *medium, uint64_t offset, uint8_t *buffer, size_t length)
{
	while (length > 0) {
		const uint8_t *page = medium->pages[offset / PAGE_BYTES];
		size_t at = offset % PAGE_BYTES;
		size_t step = min_u64(length, PAGE_BYTES - at);

		if (page != NULL)
			memcpy(buffer, page + at, step);
		else
			memset(buffer, 0, step);
		offset += step;
		buffer += step;
		length -= step;
	}
}

static int medium_write(
	struct medium *medium, uint64_t offset, const uint8_t *buffer, size_t length)
{
	while (length > 0) {
		uint8_t **page = &medium->pages[offset / PAGE_BYTES];
		size_t at = offset % PAGE_BYTES;
		size_t step = min_u64(length, PAGE_BYTES - at);

		if (*page == NULL)
			*page = calloc(1, PAGE_BYTES);
		if (*page == NULL)
			return -ENOMEM;
		memcpy(*page + at, buffer, step);
		offset += step;
		buffer += step;
		length -= step;
	}
	return 0;
}

int sim_disk_new(uint64_t size_bytes, struct sim_disk **ret)
{
	struct sim_disk *disk = calloc(1, sizeof(*disk));

	if (disk == NULL)
		return -ENOMEM;
	disk->size_bytes = size_bytes;
	if (medium_init(&disk->visible, size_bytes) < 0 ||
		medium_init(&disk->durable, size_bytes) < 0) {
		sim_disk_free(disk);
		return -ENOMEM;
	}
	*ret = disk;
	return 0;
}

void sim_disk_free(struct sim_disk *disk)
{
	if (disk == NULL)
		return;
	medium_fini(&disk->visible);
	medium_fini(&disk->durable);
	free(disk->versions);
	free(disk);
}

uint64_t sim_disk_bytes(const struct sim_disk *disk)
{
	return disk->size_bytes;
}

struct sim_disk_counters *sim_disk_stats(struct sim_disk *disk)
{
	disk->counters.undurable_sectors = disk->version_count;
	return &disk->counters;
}

void sim_disk_read(const struct sim_disk *disk, uint64_t offset, void *buffer, size_t length)
{
	assert(offset + length <= disk->size_bytes);
	medium_read(&disk->visible, offset, buffer, length);
}

static int remember_version(struct sim_disk *disk, uint64_t sector, const uint8_t *data)
{
	struct version *version;

	if (disk->version_count == disk->version_room) {
		size_t room = disk->version_room == 0 ? 64 : disk->version_room * 2;
		struct version *grown = realloc(disk->versions, room * sizeof(*grown));

		if (grown == NULL)
			return -ENOMEM;
		disk->versions = grown;
		disk->version_room = room;
	}
	version = &disk->versions[disk->version_count++];
	version->sector = sector;
	version->sequence = disk->sequence;
	memcpy(version->data, data, SIM_SECTOR);
	return 0;
}

/* A sector that is durable now cannot fall back to an older version of itself. */
static void forget_range(struct sim_disk *disk, uint64_t first, uint64_t end)
{
	size_t kept = 0;

	for (size_t i = 0; i < disk->version_count; i++) {
		uint64_t sector = disk->versions[i].sector;

		if (sector >= first && sector < end)
			continue;
		if (kept != i)
			disk->versions[kept] = disk->versions[i];
		kept++;
	}
	disk->version_count = kept;
}

int sim_disk_write(
	struct sim_disk *disk, uint64_t offset, const void *buffer, size_t length, bool durable)
{
	const uint8_t *bytes = buffer;
	int r;

	assert(offset + length <= disk->size_bytes);
	assert(offset % SIM_SECTOR == 0 && length % SIM_SECTOR == 0);
	disk->sequence++;
	r = medium_write(&disk->visible, offset, bytes, length);
	if (r < 0)
		return r;
	if (durable) {
		forget_range(disk, offset / SIM_SECTOR, (offset + length) / SIM_SECTOR);
		return medium_write(&disk->durable, offset, bytes, length);
	}
	for (size_t at = 0; at < length && r == 0; at += SIM_SECTOR)
		r = remember_version(disk, (offset + at) / SIM_SECTOR, bytes + at);
	return r;
}

uint64_t sim_disk_sequence(const struct sim_disk *disk)
{
	return disk->sequence;
}

void sim_disk_flush(struct sim_disk *disk, uint64_t sequence)
{
	size_t kept = 0;

	for (size_t i = 0; i < disk->version_count; i++) {
		struct version *version = &disk->versions[i];

		if (version->sequence > sequence) {
			if (kept != i)
				disk->versions[kept] = *version;
			kept++;
			continue;
		}
		/* The page exists: calloc'ed at the latest when the version was made visible. */
		if (medium_write(&disk->durable, version->sector * SIM_SECTOR, version->data,
			    SIM_SECTOR) < 0)
			abort();
	}
	disk->version_count = kept;
}

void sim_disk_undurable(
	const struct sim_disk *disk, void (*told)(void *owner, uint64_t offset_bytes), void *owner)
{
	for (size_t i = 0; i < disk->version_count; i++)
		told(owner, disk->versions[i].sector * SIM_SECTOR);
}

static int by_sector(const void *a, const void *b)
{
	const struct version *x = a, *y = b;

	if (x->sector != y->sector)
		return x->sector < y->sector ? -1 : 1;
	return x->sequence < y->sequence ? -1 : x->sequence > y->sequence;
}

/* After the cut both media are the same again. */
static void settle_sector(struct sim_disk *disk, uint64_t sector, const uint8_t *data)
{
	uint8_t durable[SIM_SECTOR];

	if (data == NULL) {
		medium_read(&disk->durable, sector * SIM_SECTOR, durable, SIM_SECTOR);
		data = durable;
	}
	if (medium_write(&disk->visible, sector * SIM_SECTOR, data, SIM_SECTOR) < 0 ||
		medium_write(&disk->durable, sector * SIM_SECTOR, data, SIM_SECTOR) < 0)
		abort();
}

void sim_disk_power_cut(
	struct sim_disk *disk, uint64_t (*draw)(void *owner, uint64_t below), void *owner)
{
	size_t i = 0;

	if (disk->version_count > 0)
		qsort(disk->versions, disk->version_count, sizeof(*disk->versions), by_sector);
	while (i < disk->version_count) {
		uint64_t sector = disk->versions[i].sector;
		size_t end = i;
		uint64_t chosen;

		while (end < disk->version_count && disk->versions[end].sector == sector)
			end++;
		chosen = draw(owner, end - i + 1); /* 0: none of them survives */
		settle_sector(
			disk, sector, chosen == 0 ? NULL : disk->versions[i + chosen - 1].data);
		i = end;
	}
	disk->version_count = 0;
}
