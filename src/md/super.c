/* SPDX-License-Identifier: MIT */
/* The table of superblock versions, the choice among several on one device, the role rule. */
#include "md/super.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "md/super_internal.h"

static const struct md_format *const formats[MD_VERSIONS] = {
	[MD_VERSION_0_90] = &md_format_090,
	[MD_VERSION_1_0] = &md_format_10,
	[MD_VERSION_1_1] = &md_format_11,
	[MD_VERSION_1_2] = &md_format_12,
};

static const struct {
	const char *name;
	enum md_version version;
} names[] = {
	{"0", MD_VERSION_0_90},
	{"0.90", MD_VERSION_0_90},
	{"1.0", MD_VERSION_1_0},
	{"1.00", MD_VERSION_1_0},
	{"1.1", MD_VERSION_1_1},
	{"1.01", MD_VERSION_1_1},
	{"1.2", MD_VERSION_1_2},
	{"1.02", MD_VERSION_1_2},
	{"1", MD_VERSION_1_2},
	{"default", MD_VERSION_1_2},
};

const struct md_format *md_format(enum md_version version)
{
	return (unsigned)version < MD_VERSIONS ? formats[version] : NULL;
}

const struct md_format *md_format_by_name(const char *name)
{
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(names[i].name, name) == 0)
			return formats[names[i].version];
	return NULL;
}

int md_field_fault(struct fault *fault, int error, enum md_version version, const char *field,
	const char *format, ...)
{
	char why[256];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(why, sizeof(why), format, args);
	va_end(args);
	return fault_set(
		fault, error, "md superblock %s: field %s: %s", formats[version]->name, field, why);
}

unsigned md_super_role(const struct md_super *super)
{
	/* The kernel, too, takes a member beyond the list of roles for a spare. */
	if (super->dev_number >= super->role_count || super->dev_number >= MD_ROLES_MAX)
		return MD_ROLE_SPARE;
	return super->roles[super->dev_number];
}

/* Does @candidate come before @best, which was tried first? A tie goes to the first. */
static bool is_newer(const struct md_super *candidate, const struct md_super *best)
{
	const uint64_t seconds_mask = (UINT64_C(1) << 40) - 1;

	/* 0.90 knows only seconds. Against it the microseconds on top of 1.x must not count. */
	if (best->version == MD_VERSION_0_90)
		return (candidate->ctime & seconds_mask) > best->ctime;
	return candidate->ctime > best->ctime;
}

/*
 * A 1.x block that names another place as its own is no superblock of this device: it is a
 * partition's, seen through the whole disk. mdadm does not see it either.
 */
static int decode_here(const struct md_super_blocks *blocks, enum md_version version,
	uint64_t device_sectors, struct md_super *ret, struct fault *fault)
{
	uint64_t at = blocks->sector[version];
	int r = formats[version]->decode(blocks->block[version], at, device_sectors, ret, fault);

	if (r == -EUCLEAN && version != MD_VERSION_0_90 && ret->super_offset != at)
		return -ENODATA;
	return r;
}

int md_super_choose(const struct md_super_blocks *blocks, uint64_t device_sectors,
	struct md_super *ret, struct fault *fault)
{
	int best = -ENODATA;

	for (unsigned v = 0; v < MD_VERSIONS; v++) {
		struct md_super super;
		struct fault why = {0};
		int r;

		if (!blocks->present[v])
			continue;
		r = decode_here(blocks, (enum md_version)v, device_sectors, &super, &why);
		if (r == -ENODATA || (best == 0 && r < 0))
			continue;
		if (best != -ENODATA && (best == 0 || r < 0) && !is_newer(&super, ret))
			continue;
		best = r;
		*ret = super;
		if (fault != NULL && r < 0)
			*fault = why;
	}
	if (best == -ENODATA)
		return fault_set(fault, -ENODATA, "no md superblock");
	if (best == 0 && fault != NULL)
		*fault = (struct fault){0};
	return best;
}
