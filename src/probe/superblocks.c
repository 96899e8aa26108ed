/* SPDX-License-Identifier: MIT */

/* Superblocks on members: reading, choosing, writing, zeroing. The bytes' meaning is md's affair.
 */

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "probe/probe.h"
#include "probe/superblocks.h"
#include "util/bytes.h"

static int read_block(const struct member *member, const struct md_format *format,
	struct md_super_blocks *ret, struct fault *fault)
{
	uint64_t sector;
	int r;

	r = format->location(member->size_bytes / MD_SECTOR, &sector);
	if (r == -ERANGE)
		return 0;
	if (r < 0)
		return fault_set(fault, r, "%s: place of a version %s superblock: %s", member->path,
			format->name, strerror(-r));
	if (sector * MD_SECTOR + MD_SUPER_BYTES > member->size_bytes)
		return 0;

	r = member_read(member, sector * MD_SECTOR, ret->block[format->version], MD_SUPER_BYTES);
	if (r < 0)
		return fault_set(fault, r,
			"%s: cannot read the place of a version %s superblock (%u bytes at byte "
			"%" PRIu64 "): %s",
			member->path, format->name, MD_SUPER_BYTES, sector * MD_SECTOR,
			strerror(-r));

	ret->sector[format->version] = sector;
	ret->present[format->version] = true;
	return 0;
}

int probe_read_blocks(const struct member *member, struct md_super_blocks *ret, struct fault *fault)
{
	int r;

	memset(ret, 0, sizeof(*ret));
	for (unsigned v = 0; v < MD_VERSIONS; v++) {
		r = read_block(member, md_format(v), ret, fault);
		if (r < 0)
			return r;
	}
	return 0;
}

int probe_read_super(const struct member *member, struct md_super *ret, struct fault *fault)
{
	_cleanup_free_ struct md_super_blocks *blocks = malloc(sizeof(*blocks));
	int r;

	if (blocks == NULL)
		return fault_set(fault, -ENOMEM, "%s: out of memory", member->path);

	r = probe_read_blocks(member, blocks, fault);
	if (r < 0)
		return r;

	r = md_super_choose(blocks, member->size_bytes / MD_SECTOR, ret, fault);
	if (r == -ENODATA)
		return fault_set(fault, r, "%s: no md superblock found", member->path);
	if (r < 0)
		fault_prefix(fault, "%s: ", member->path);
	return r;
}

int probe_write_super(
	const struct member *member, const struct md_super *super, struct fault *fault)
{
	_cleanup_free_ uint8_t *block = calloc(1, MD_SUPER_BYTES);
	int r;

	if (block == NULL)
		return fault_set(fault, -ENOMEM, "%s: out of memory", member->path);

	md_format(super->version)->encode(super, block);
	r = member_write(member, super->super_offset * MD_SECTOR, block, MD_SUPER_BYTES);
	if (r == 0)
		r = member_sync(member);
	if (r < 0)
		return fault_set(fault, r,
			"%s: cannot write the superblock (%u bytes at byte %" PRIu64 "): %s",
			member->path, MD_SUPER_BYTES, super->super_offset * MD_SECTOR,
			strerror(-r));
	return 0;
}

/*
 * A 1.x superblock that names another place belongs to another device (a partition that ends where
 * this device ends, say): it is not this device's, however damaged ours may be.
 */
bool probe_super_is_here(const struct md_super_blocks *blocks, enum md_version version,
	uint64_t device_sectors, struct md_super *scratch)
{
	const uint8_t *block = blocks->block[version];
	int r;

	if (!blocks->present[version])
		return false;
	r = md_format(version)->decode(
		block, blocks->sector[version], device_sectors, scratch, NULL);
	if (r == -ENODATA)
		return false;
	return version == MD_VERSION_0_90 || get_le64(block + 144) == blocks->sector[version];
}

struct zero_work {
	struct md_super_blocks blocks;
	struct md_super scratch;
	uint8_t zeros[MD_SUPER_BYTES];
};

int probe_zero_supers(const struct member *member, struct fault *fault)
{
	_cleanup_free_ struct zero_work *work = calloc(1, sizeof(*work));
	int zeroed = 0;
	int r;

	if (work == NULL)
		return fault_set(fault, -ENOMEM, "%s: out of memory", member->path);

	r = probe_read_blocks(member, &work->blocks, fault);
	for (unsigned v = 0; r == 0 && v < MD_VERSIONS; v++) {
		if (!probe_super_is_here(
			    &work->blocks, v, member->size_bytes / MD_SECTOR, &work->scratch))
			continue;
		r = member_write(
			member, work->blocks.sector[v] * MD_SECTOR, work->zeros, MD_SUPER_BYTES);
		if (r < 0)
			fault_set(fault, r,
				"%s: cannot write zeros over the version %s superblock at byte "
				"%" PRIu64 ": %s",
				member->path, md_format(v)->name,
				work->blocks.sector[v] * MD_SECTOR, strerror(-r));
		zeroed++;
	}
	if (r < 0)
		return r;

	r = zeroed > 0 ? member_sync(member) : 0;
	if (r < 0)
		return fault_set(fault, r, "%s: cannot sync: %s", member->path, strerror(-r));
	return zeroed;
}
