/* SPDX-License-Identifier: MIT */

/* strake examine: what the superblocks on devices say. */

#include <errno.h>
#include <string.h>

#include "cli/show/examine.h"
#include "cli/show/format.h"
#include "probe/probe.h"
#include "util/bytes.h"
#include "util/cleanup.h"

#define BITMAP_MAGIC 0x6d746962u

struct examine {
	const struct show_options *options;
	struct examine_device *devices;
	unsigned count;
	json_t *failures; /* for JSON: devices without a superblock */
	int exit_code;
};

static void memberp_close(struct member **member)
{
	if (*member != NULL)
		member_close(*member);
}

/* The bitmap's header tells where the bitmap ends; that it cannot be read is no reason to stop. */
static void read_bitmap(const struct member *member, struct examine_device *device)
{
	const struct md_super *super = &device->super;
	uint64_t at = super->super_offset + (uint64_t)(int64_t)super->bitmap_offset;
	uint8_t header[MD_SECTOR];

	if (super->version == MD_VERSION_0_90 || (super->feature_map & MD_FEATURE_BITMAP) == 0 ||
		at >= device->device_sectors ||
		member_read(member, at * MD_SECTOR, header, sizeof(header)) < 0 ||
		get_le32(header) != BITMAP_MAGIC)
		return;
	device->bitmap.found = true;
	device->bitmap.sync_sectors = get_le64(header + 40);
	device->bitmap.chunk_sectors = get_le32(header + 52) / MD_SECTOR;
	device->bitmap.nodes = get_le32(header + 68);
	memcpy(device->bitmap.cluster_name, header + 72, 64);
}

/* A superblock whose fields say that it belongs elsewhere is none of this device (mdadm's rule). */
static bool is_here(const struct examine_device *device)
{
	uint64_t sector;

	return md_format(device->super.version)->location(device->device_sectors, &sector) == 0 &&
	       device->super.super_offset == sector;
}

/* No superblock: a partition table is an answer too, though only in the text. */
static int no_super(
	const struct member *member, const struct show_options *options, struct fault *fault)
{
	uint8_t sector[MD_SECTOR];

	if (options->form == SHOW_TEXT && member_read(member, 0, sector, sizeof(sector)) == 0 &&
		examine_table(member->path, sector, options->out))
		return 0;
	return fault_set(fault, -ENODATA,
		"No md superblock detected on %s. If it was a member, check the device's name and "
		"its partitions; superblocks 1.0 and 0.90 stand at the end, where they are not "
		"found any more once the device was enlarged or cut",
		member->path);
}

/* 1: found, with words about damage in @fault if there is any; 0: no more to be said. */
static int read_device(const char *path, const struct show_options *options,
	struct examine_device *device, struct fault *fault)
{
	_cleanup_(memberp_close) struct member *member = NULL;
	int r;

	memset(device, 0, sizeof(*device));
	device->path = path;
	r = member_open(path, MEMBER_READONLY, &member, fault);
	if (r < 0)
		return r;
	device->device_sectors = member->size_bytes / MD_SECTOR;
	r = probe_read_super(member, &device->super, fault);
	if (r == -ENODATA || ((r == -EUCLEAN || r == -EBADMSG) && !is_here(device)))
		return no_super(member, options, fault);
	if (r < 0 && r != -EBADMSG && r != -EUCLEAN && r != -EOPNOTSUPP)
		return r;
	read_bitmap(member, device);
	return 1;
}

static void fail(struct examine *examine, const char *path, int error, const struct fault *fault)
{
	bool brief = examine->options->form == SHOW_BRIEF;

	/* A list of arrays does not mention what is none; a scan not even what cannot be opened. */
	if (examine->options->scan || (brief && error == -ENODATA))
		return;
	fprintf(stderr, "strake: %s\n", fault->text);
	examine->exit_code = 1;
	json_array_append_new(examine->failures,
		json_pack("{sb, so, si, so}", "ok", false, "path", json_text(path), "errno", -error,
			"error", json_text(fault->text)));
}

static void examine_one(struct examine *examine, const char *path)
{
	struct examine_device *device = &examine->devices[examine->count];
	_cleanup_free_ struct fault *fault = calloc(1, sizeof(*fault));
	int r;

	if (fault == NULL) {
		fprintf(stderr, "strake: %s: out of memory\n", path);
		examine->exit_code = 1;
		return;
	}
	r = read_device(path, examine->options, device, fault);
	if (r < 0) {
		fail(examine, path, r, fault);
		return;
	}
	if (r == 0)
		return;
	if (fault->error < 0)
		fprintf(stderr, "strake: %s\n", fault->text);
	if (examine->options->form == SHOW_BRIEF || examine->options->form == SHOW_JSON)
		examine->count++; /* printed together at the end */
	else if (examine->options->form == SHOW_EXPORT)
		examine_export(device, examine->options->out);
	else
		examine_text(device, examine->options);
}

static void finish(struct examine *examine)
{
	const struct show_options *options = examine->options;
	json_t *list;

	if (options->form == SHOW_BRIEF)
		examine_brief(examine->devices, examine->count, options);
	if (options->form != SHOW_JSON)
		return;
	list = json_array();
	for (unsigned i = 0; i < examine->count; i++)
		json_array_append_new(list, examine_json(&examine->devices[i], options->homehost));
	list = json_pack("{so, sO}", "devices", list, "failures", examine->failures);
	print_json(options->out, list);
	json_decref(list);
}

static int examine_all(char *const *paths, unsigned count, const struct show_options *options)
{
	struct examine examine = {.options = options};

	examine.devices = calloc(count + 1, sizeof(*examine.devices));
	examine.failures = json_array();
	if (examine.devices == NULL || examine.failures == NULL) {
		fprintf(stderr, "strake: examine: out of memory\n");
		examine.exit_code = 1;
	} else {
		for (unsigned i = 0; i < count; i++)
			examine_one(&examine, paths[i]);
		finish(&examine);
	}
	free(examine.devices);
	json_decref(examine.failures);
	return examine.exit_code;
}

int show_examine(char *const *paths, unsigned count, const struct show_options *options)
{
	struct show_options actual = *options;
	struct fault fault = {0};
	char **found;
	unsigned found_count;
	int r;

	if (!options->scan)
		return examine_all(paths, count, options);
	if (actual.form == SHOW_TEXT)
		actual.form = SHOW_BRIEF;
	r = probe_scan(paths, count, &found, &found_count, &fault);
	if (r < 0) {
		fprintf(stderr, "strake: %s\n", fault.text);
		return 1;
	}
	r = examine_all(found, found_count, &actual);
	probe_scan_free(found, found_count);
	return r;
}
