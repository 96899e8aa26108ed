/* SPDX-License-Identifier: MIT */

/* strake examine --examine-bitmap and --examine-badblocks: what stands beside superblocks. */

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "cli/show/examine.h"
#include "cli/show/format.h"
#include "md/badblocks.h"
#include "md/bitmap.h"
#include "probe/probe.h"
#include "util/bytes.h"
#include "util/cleanup.h"
#include "util/rounding.h"

struct area {
	const char *path;
	struct member *member;
	struct md_super super;
	struct md_bitmap bitmap;
	uint64_t dirty_bits;
	bool logs_bad; /* there is a bad-block log */
	unsigned bad_count;
	uint64_t bad[MD_BADBLOCKS_MAX]; /* entries as they stand in the log */
};

struct form {
	int (*read)(struct area *area, struct fault *fault);
	void (*text)(const struct area *area, FILE *out);
	json_t *(*json)(const struct area *area);
};

/* "64 MB", "512 bytes" */
static void print_chunk(uint32_t bytes, FILE *out)
{
	static const char *const units[] = {"bytes", "KB", "MB", "GB"};
	unsigned unit = 0;

	while (bytes >= 1024 && unit < 3) {
		bytes /= 1024;
		unit++;
	}
	fprintf(out, "       Chunksize : %" PRIu32 " %s\n", bytes, units[unit]);
}

/* As the array's, where it is the array's: version 0.90 stores the words in another order. */
static char *uuid_text(const struct area *area, char text[MD_UUID_TEXT])
{
	uint8_t ours[16];

	md_bitmap_uuid(&area->super, ours);
	if (memcmp(ours, area->bitmap.uuid, sizeof(ours)) == 0)
		return md_uuid_format(area->super.set_uuid, text);
	return md_uuid_format(area->bitmap.uuid, text);
}

static const char *state_text(const struct md_bitmap *bitmap)
{
	return (bitmap->state & MD_BITMAP_STALE) != 0 ? "Out of date" : "OK";
}

static void bitmap_text(const struct area *area, FILE *out)
{
	const struct md_bitmap *bitmap = &area->bitmap;
	const uint64_t bits = md_bitmap_bits(bitmap);
	char uuid[MD_UUID_TEXT], size[FORMAT_SIZE_TEXT];

	fprintf(out, "        Filename : ");
	print_clean(out, area->path);
	fprintf(out, "\n           Magic : 6d746962\n");
	fprintf(out, "         Version : %" PRIu32 "\n", bitmap->version);
	fprintf(out, "            UUID : %s\n", uuid_text(area, uuid));
	fprintf(out, "          Events : %" PRIu64 "\n", bitmap->events);
	fprintf(out, "  Events Cleared : %" PRIu64 "\n", bitmap->events_cleared);
	fprintf(out, "           State : %s\n", state_text(bitmap));
	print_chunk(bitmap->chunk_bytes, out);
	fprintf(out, "          Daemon : %" PRIu32 "s flush period\n",
		bitmap->daemon_sleep_seconds);
	if (bitmap->write_behind > 0)
		fprintf(out, "      Write Mode : Allow write behind, max %" PRIu32 "\n",
			bitmap->write_behind);
	else
		fprintf(out, "      Write Mode : Normal\n");
	fprintf(out, "       Sync Size : %" PRIu64 "%s\n", bitmap->sync_size_sectors / 2,
		format_size(bitmap->sync_size_sectors * MD_SECTOR, size));
	fprintf(out, "          Bitmap : %" PRIu64 " bits (chunks), %" PRIu64 " dirty (%2.1f%%)\n",
		bits, area->dirty_bits,
		bits > 0 ? 100.0 * (double)area->dirty_bits / (double)bits : 0);
}

static json_t *bitmap_json(const struct area *area)
{
	const struct md_bitmap *bitmap = &area->bitmap;
	char uuid[MD_UUID_TEXT];

	return json_pack("{so, sI, ss, sI, sI, ss, sI, sI, sI, sI, sI, sI}", "path",
		json_text(area->path), "version", (json_int_t)bitmap->version, "uuid",
		uuid_text(area, uuid), "events", (json_int_t)bitmap->events, "events_cleared",
		(json_int_t)bitmap->events_cleared, "state", state_text(bitmap), "chunk_bytes",
		(json_int_t)bitmap->chunk_bytes, "daemon_sleep_seconds",
		(json_int_t)bitmap->daemon_sleep_seconds, "write_behind",
		(json_int_t)bitmap->write_behind, "sync_bytes",
		(json_int_t)(bitmap->sync_size_sectors * MD_SECTOR), "bits",
		(json_int_t)md_bitmap_bits(bitmap), "dirty_bits", (json_int_t)area->dirty_bits);
}

static int read_bits(struct area *area, uint64_t sector, uint64_t room_sectors, struct fault *fault)
{
	const uint64_t bits = md_bitmap_bits(&area->bitmap);
	_cleanup_free_ uint8_t *block = NULL;
	size_t bytes;
	int r;

	if (bits / 8 > room_sectors * MD_SECTOR ||
		md_bitmap_bytes(bits) > round_up(room_sectors * MD_SECTOR, MD_BITMAP_BLOCK_BYTES))
		return fault_set(fault, -EUCLEAN,
			"%s: its bitmap claims %" PRIu64 " bits, more than fit into the %" PRIu64
			" sectors of its place: all of the array counts as changed",
			area->path, bits, room_sectors);
	bytes = MD_BITMAP_HEADER_BYTES + (size_t)((bits + 7) / 8);
	bytes = (size_t)round_up(bytes, MD_SECTOR);
	block = malloc(bytes);
	if (block == NULL)
		return fault_set(fault, -ENOMEM, "%s: out of memory", area->path);
	r = member_read(area->member, sector * MD_SECTOR, block, bytes);
	if (r < 0)
		return fault_set(
			fault, r, "%s: cannot read the bitmap: %s", area->path, strerror(-r));
	area->dirty_bits = md_bitmap_dirty(&area->bitmap, block + MD_BITMAP_HEADER_BYTES);
	return 0;
}

static int read_bitmap(struct area *area, struct fault *fault)
{
	uint8_t header[MD_SECTOR];
	uint64_t sector, room;
	int r = md_bitmap_location(&area->super, &sector, &room, fault);

	if (r == -ENODATA)
		return fault_set(fault, r,
			"%s has no bitmap: the array was made without one ('strake examine %s' "
			"shows its superblock)",
			area->path, area->path);
	if (r == 0)
		r = member_read(area->member, sector * MD_SECTOR, header, sizeof(header));
	if (r == 0)
		r = md_bitmap_decode(header, &area->bitmap, fault);
	if (r < 0 && fault->error != 0) {
		(void)fault_append(fault, "; all of the array counts as changed, and to start it "
					  "makes the bitmap anew");
		return fault_prefix(fault, "%s: ", area->path);
	}
	if (r < 0)
		return fault_set(
			fault, r, "%s: cannot read the bitmap: %s", area->path, strerror(-r));
	return read_bits(area, sector, room, fault);
}

static uint64_t bad_start(const struct area *area, unsigned i)
{
	return area->bad[i] >> 10 << area->super.bblog_shift;
}

static uint64_t bad_length(const struct area *area, unsigned i)
{
	return (area->bad[i] & 0x3ff) << area->super.bblog_shift;
}

static void bad_text(const struct area *area, FILE *out)
{
	fprintf(out, "%s",
		!area->logs_bad       ? "No bad-blocks list configured on "
		: area->bad_count > 0 ? "Bad-blocks on "
				      : "Bad-blocks list is empty in ");
	print_clean(out, area->path);
	fprintf(out, "%s\n", area->bad_count > 0 ? ":" : "");
	for (unsigned i = 0; i < area->bad_count; i++)
		fprintf(out, "%20" PRIu64 " for %" PRIu64 " sectors\n", bad_start(area, i),
			bad_length(area, i));
}

static json_t *bad_json(const struct area *area)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < area->bad_count; i++)
		(void)json_array_append_new(
			list, json_pack("{sI, sI}", "offset_bytes",
				      (json_int_t)(bad_start(area, i) * MD_SECTOR), "length_bytes",
				      (json_int_t)(bad_length(area, i) * MD_SECTOR)));
	return json_pack("{so, sb, so}", "path", json_text(area->path), "has_log",
		(int)area->logs_bad, "bad_blocks", list);
}

/* Unused entries are all ones; the order is whatever was written. */
static int read_bad(struct area *area, struct fault *fault)
{
	_cleanup_free_ struct md_badblocks *table = malloc(sizeof(*table));
	uint8_t log[MD_BADBLOCKS_LOG_BYTES];
	uint64_t sector, sectors;
	int r;

	if (table == NULL)
		return fault_set(fault, -ENOMEM, "%s: out of memory", area->path);
	if (md_badblocks_location(&area->super, &sector, &sectors) < 0)
		return 0;
	area->logs_bad = true;
	if ((area->super.feature_map & MD_FEATURE_BAD_BLOCKS) == 0)
		return 0;
	sectors = min_u64(sectors, sizeof(log) / MD_SECTOR);
	r = member_read(area->member, sector * MD_SECTOR, log, (size_t)sectors * MD_SECTOR);
	if (r < 0)
		return fault_set(fault, r, "%s: cannot read the bad-block log: %s", area->path,
			strerror(-r));
	r = md_badblocks_decode(&area->super, log, table, fault);
	if (r < 0)
		return fault_prefix(fault, "%s: ", area->path);
	for (unsigned i = 0; i < sectors * MD_SECTOR / 8; i++)
		if (get_le64(log + 8 * (size_t)i) != UINT64_MAX)
			area->bad[area->bad_count++] = get_le64(log + 8 * (size_t)i);
	return 0;
}

static const struct form bitmap_form = {read_bitmap, bitmap_text, bitmap_json};
static const struct form bad_form = {read_bad, bad_text, bad_json};

static int read_area(const struct form *form, struct area *area, struct fault *fault)
{
	int r = member_open(area->path, MEMBER_READONLY, &area->member, fault);

	if (r < 0)
		return r;
	r = probe_read_super(area->member, &area->super, fault);
	if (r == -ENODATA)
		r = fault_set(fault, r,
			"No md superblock detected on %s; name a member, not the array",
			area->path);
	if (r == 0)
		r = form->read(area, fault);
	member_close(area->member);
	return r;
}

static int show_one(const struct form *form, const char *path, const struct show_options *options,
	json_t *devices, json_t *failures)
{
	_cleanup_free_ struct area *area = calloc(1, sizeof(*area));
	_cleanup_free_ struct fault *fault = calloc(1, sizeof(*fault));

	if (area == NULL || fault == NULL) {
		fprintf(stderr, "strake: %s: out of memory\n", path);
		return 1;
	}
	area->path = path;
	if (read_area(form, area, fault) < 0) {
		fprintf(stderr, "strake: %s\n", fault->text);
		json_array_append_new(failures,
			json_pack("{sb, so, si, so}", "ok", false, "path", json_text(path), "errno",
				-fault->error, "error", json_text(fault->text)));
		return 1;
	}
	if (options->form == SHOW_JSON)
		json_array_append_new(devices, form->json(area));
	else
		form->text(area, options->out);
	return 0;
}

static int show(const struct form *form, char *const *paths, unsigned count,
	const struct show_options *options)
{
	json_t *devices = json_array(), *failures = json_array(), *all;
	int ret = 0;

	for (unsigned i = 0; i < count; i++)
		ret |= show_one(form, paths[i], options, devices, failures);
	all = json_pack("{so, so}", "devices", devices, "failures", failures);
	if (options->form == SHOW_JSON)
		print_json(options->out, all);
	json_decref(all);
	return ret;
}

int show_bitmap(char *const *paths, unsigned count, const struct show_options *options)
{
	return show(&bitmap_form, paths, count, options);
}

int show_badblocks(char *const *paths, unsigned count, const struct show_options *options)
{
	return show(&bad_form, paths, count, options);
}
