/* SPDX-License-Identifier: MIT */
#ifndef STRAKE_CLI_SHOW_EXAMINE_H
#define STRAKE_CLI_SHOW_EXAMINE_H

/* What was read off one device, and the forms it is printed in. Inside src/cli/show only. */

#include <jansson.h>

#include "cli/show/show.h"
#include "md/super.h"

/* From here on mdadm's texts take a role for no slot; the kernel already from 0xff00 on. */
#define EXAMINE_NO_SLOT 0xfff0u

struct examine_bitmap { /* of a write-intent bitmap's own superblock */
	bool found;
	uint64_t sync_sectors;
	uint32_t chunk_sectors;
	uint32_t nodes;
	char cluster_name[65];
};

struct examine_device {
	const char *path;
	uint64_t device_sectors;
	struct md_super super;
	struct examine_bitmap bitmap;
};

/* Derived facts (examine_facts.c). All in sectors. */
struct examine_unused {
	uint64_t before, after; /* @after wraps, as mdadm's, where the device is too short */
	bool known;             /* false while a reshape moves the data offset */
};
struct examine_unused examine_unused(const struct examine_device *device);
bool examine_array_bytes(
	const struct md_super *super, uint64_t *ret); /* false if not to be known */
/* 'A', '.', 'R', '?' for each slot. @ret holds MD_ROLES_MAX + 1. True if nothing contradicts. */
bool examine_array_state(const struct md_super *super, char *ret);
bool examine_is_local(const struct md_super *super, const char *homehost);
/* A member of a slot, also while it recovers; spares, journals and replacements are none. */
bool examine_is_active(const struct md_super *super);
uint64_t examine_seconds(uint64_t stored); /* of ctime and utime */

void examine_text(const struct examine_device *device, const struct show_options *options);
void examine_text_090(const struct examine_device *device, const struct show_options *options);
void examine_text_reshape(const struct md_super *super, FILE *out);
void examine_text_layout(const struct md_super *super, FILE *out);
/* What mdadm says of a device with a master boot record: its entries. False if there is none. */
bool examine_table(const char *path, const uint8_t sector[MD_SECTOR], FILE *out);
void examine_export(const struct examine_device *device, FILE *out);
/* One line for each array that the devices belong to. */
void examine_brief(
	const struct examine_device *devices, unsigned count, const struct show_options *options);
json_t *examine_json(const struct examine_device *device, const char *homehost);

#endif
