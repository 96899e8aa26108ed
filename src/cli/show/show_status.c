/* SPDX-License-Identifier: MIT */

/* strake status: the text of /proc/mdstat for our running arrays. */

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/show/format.h"
#include "cli/show/running.h"
#include "control/control.h"
#include "util/cleanup.h"

/* The kernel's name of a device; words are split at blanks, so a file's blanks are escaped. */
static void print_device_name(const char *path, FILE *out)
{
	const char *slash = strrchr(path, '/');

	for (path = slash != NULL ? slash + 1 : path; *path != '\0'; path++) {
		if (*path == ' ')
			fprintf(out, "\\040");
		else
			print_clean(out, (char[]){*path, '\0'});
	}
}

static int newest_first(const void *a, const void *b)
{
	uint64_t x = fact_number(*(json_t *const *)a, "number");
	uint64_t y = fact_number(*(json_t *const *)b, "number");

	return x < y ? 1 : x > y ? -1 : 0;
}

static void print_member(const json_t *member, FILE *out)
{
	putc(' ', out);
	print_device_name(fact_string(member, "path", ""), out);
	fprintf(out, "[%" PRIu64 "]", fact_number(member, "number"));
	if (json_is_true(json_object_get(member, "write_mostly")))
		fprintf(out, "(W)");
	if (strstr(fact_string(member, "state", ""), "faulty") != NULL) {
		fprintf(out, "(F)");
		return;
	}
	if (!fact_is_set(member, "slot"))
		fprintf(out, "(S)");
	if (json_is_true(json_object_get(member, "replacement")))
		fprintf(out, "(R)");
}

/* Newest first, which for a set that starts at once is the highest number first. */
static void print_members(const json_t *reply, FILE *out)
{
	const json_t *members = json_object_get(reply, "members");
	_cleanup_free_ json_t **sorted = calloc(json_array_size(members) + 1, sizeof(*sorted));
	size_t count = 0, i;
	json_t *member;

	json_array_foreach(members, i, member)
	{
		if (sorted == NULL)
			print_member(member, out); /* without memory as they come */
		else
			sorted[count++] = member;
	}
	if (count > 0)
		qsort(sorted, count, sizeof(*sorted), newest_first);
	for (i = 0; i < count; i++)
		print_member(sorted[i], out);
	fprintf(out, "\n");
}

static void print_version(const json_t *reply, FILE *out)
{
	const char *metadata = fact_string(reply, "metadata", "");

	if (!fact_is_set(reply, "uuid"))
		fprintf(out, " super non-persistent");
	else if (strcmp(metadata, "0.90") != 0)
		fprintf(out, " super %s", metadata);
}

static bool has_member_in_sync(const json_t *reply, uint64_t slot)
{
	json_t *member;
	size_t i;

	json_array_foreach(json_object_get(reply, "members"), i, member)
	{
		if (fact_is_set(member, "slot") && fact_number(member, "slot") == slot &&
			strcmp(fact_string(member, "state", ""), "active sync") == 0)
			return true;
	}
	return false;
}

/* " [3/2] [UU_]" */
static void print_slots(const json_t *reply, FILE *out)
{
	uint64_t slots = fact_number(reply, "raid_devices");

	fprintf(out, " [%" PRIu64 "/%" PRIu64 "] [", slots,
		slots - fact_number(reply, "degraded_devices"));
	for (uint64_t slot = 0; slot < slots; slot++)
		putc(has_member_in_sync(reply, slot) ? 'U' : '_', out);
	fprintf(out, "]\n");
}

/* " 512K chunks 2 near-copies" */
static void print_copies(const json_t *reply, FILE *out)
{
	uint64_t layout = fact_number(reply, "layout_number");
	uint64_t near = layout & 0xff, far = layout >> 8 & 0xff;

	if (near != fact_number(reply, "raid_devices"))
		fprintf(out, " %" PRIu64 "K chunks", fact_number(reply, "chunk_bytes") / 1024);
	if (near > 1)
		fprintf(out, " %" PRIu64 " near-copies", near);
	if (far > 1)
		fprintf(out, " %" PRIu64 " %s-copies", far,
			(layout & 1u << 16) != 0 ? "offset" : "far");
	if ((layout >> 17) != 0)
		fprintf(out, " %" PRIu64 " devices per set", near * far);
}

static void print_level(const json_t *reply, FILE *out)
{
	uint64_t chunk_kib = fact_number(reply, "chunk_bytes") / 1024;
	json_int_t level = json_integer_value(json_object_get(reply, "level_number"));

	if (level <= 0)
		fprintf(out, " %" PRIu64 "k %s\n", chunk_kib, level < 0 ? "rounding" : "chunks");
	else if (level == 10)
		print_copies(reply, out);
	else if (level != 1)
		fprintf(out, " level %d, %" PRIu64 "k chunk, algorithm %" PRIu64, (int)level,
			chunk_kib, fact_number(reply, "layout_number"));
	if (level > 0)
		print_slots(reply, out);
}

#define BAR_CELLS 20u

/* As the kernel's status_resync(), which counts in KiB here. */
static void print_progress(const struct running_sync *sync, FILE *out)
{
	uint64_t speed = sync->speed_bytes_s > 0 ? sync->speed_bytes_s : 1;
	uint64_t left_s = (sync->total_bytes - sync->position_bytes) / speed;
	unsigned done = sync->permille / 50;

	if (sync->pending) {
		fprintf(out, "\tresync=PENDING\n      ");
		return;
	}
	fprintf(out, "[");
	for (unsigned i = 0; i < done; i++)
		putc('=', out);
	putc('>', out);
	for (unsigned i = done; i < BAR_CELLS; i++)
		putc('.', out);
	fprintf(out,
		"]  %s =%3u.%u%% (%" PRIu64 "/%" PRIu64 ") finish=%" PRIu64 ".%" PRIu64
		"min speed=%" PRIu64 "K/sec\n      ",
		sync->kind, sync->permille / 10, sync->permille % 10, sync->position_bytes / 1024,
		sync->total_bytes / 1024, left_s / 60, left_s % 60 / 6, sync->speed_bytes_s / 1024);
}

#define BITS_IN_PAGE 2048u /* the kernel's counters of two bytes */

/*
 * The kernel counts the pages of counters that it has in memory: those with a bit that is set. Here
 * only the number of such bits is known; each may be in a page of its own.
 */
static void print_bitmap(const json_t *bitmap, FILE *out)
{
	uint64_t bits = fact_number(bitmap, "bits"), dirty = fact_number(bitmap, "dirty_bits");
	uint64_t pages = (bits + BITS_IN_PAGE - 1) / BITS_IN_PAGE;
	uint64_t used = dirty < pages ? dirty : pages, chunk = fact_number(bitmap, "chunk_bytes");

	fprintf(out, "bitmap: %" PRIu64 "/%" PRIu64 " pages [%" PRIu64 "KB], %" PRIu64 "%s chunk\n",
		used, pages, used * 4, chunk >= 1024 ? chunk / 1024 : chunk,
		chunk >= 1024 ? "KB" : "B");
}

static void print_array(const json_t *reply, FILE *out)
{
	const json_t *bitmap = json_object_get(reply, "bitmap");
	struct running_sync sync = fact_sync(reply);
	bool redundant = fact_is_redundant(reply);

	/* "broken" is a word of md's array_state; mdstat's readers pass over what is in brackets.
	 */
	fprintf(out, "%s : active%s%s %s", fact_string(reply, "name", ""),
		json_is_true(json_object_get(reply, "readonly")) ? " (read-only)" : "",
		!redundant && detail_health(reply) == 2 ? " (broken)" : "",
		fact_string(reply, "level", ""));
	print_members(reply, out);
	fprintf(out, "      %" PRIu64 " blocks", fact_number(reply, "array_bytes") / 1024);
	print_version(reply, out);
	print_level(reply, out);
	/* The blanks are always there; what comes next may be nothing. */
	fprintf(out, "      ");
	if (sync.kind != NULL)
		print_progress(&sync, out);
	if (json_is_object(bitmap))
		print_bitmap(bitmap, out);
	fprintf(out, "\n");
}

void status_text(const json_t *replies, FILE *out)
{
	json_t *reply;
	size_t i;

	fprintf(out,
		"Personalities : [linear] [raid0] [raid1] [raid10] [raid6] [raid5] [raid4] \n");
	json_array_foreach(replies, i, reply) print_array(reply, out);
	fprintf(out, "unused devices: <none>\n");
}

/* Not in the text itself, which programs read: there these arrays are not. */
static void say_dead(const json_t *dead)
{
	struct fault fault = {0};
	json_t *name;
	size_t i;

	json_array_foreach(dead, i, name)
	{
		(void)control_dead_fault(json_string_value(name), &fault);
		fprintf(stderr, "strake: %s\n", fault.text);
	}
}

/* An ordinary user's list is not the machine's. */
static void say_whose(void)
{
	json_t *names = control_list_root(), *name;
	size_t i;

	if (json_array_size(names) > 0)
		fprintf(stderr, "strake: shown are your own arrays; root has others (");
	json_array_foreach(names, i, name)
		fprintf(stderr, "%s%s", i == 0 ? "" : ", ", json_string_value(name));
	if (json_array_size(names) > 0)
		fprintf(stderr, "), which only root can see: run 'strake status' as root\n");
	json_decref(names);
}

static void print_status(
	const json_t *replies, json_t *failures, json_t *dead, const struct show_options *options)
{
	json_t *json, *reply;
	size_t i;

	if (options->form == SHOW_JSON) {
		json = json_pack("{s[sssssss], sO, sO, sO}", "personalities", "linear", "raid0",
			"raid1", "raid10", "raid6", "raid5", "raid4", "arrays", replies, "failures",
			failures, "dead", dead);
		print_json(options->out, json);
		json_decref(json);
		return;
	}
	status_text(replies, options->out);
	json_array_foreach(replies, i, reply) show_lost_members(reply, false);
	say_dead(dead);
}

/* Moves what failed from @replies to a list of its own. */
static json_t *take_failures(json_t *replies)
{
	json_t *failures = json_array();

	for (size_t i = json_array_size(replies); i-- > 0;) {
		json_t *reply = json_array_get(replies, i);

		if (!is_failure(reply))
			continue;
		json_array_insert(failures, 0, reply);
		json_array_remove(replies, i);
	}
	return failures;
}

int show_status(char *const *names, unsigned count, const struct show_options *options)
{
	json_t *replies = NULL, *dead = NULL, *failures;
	int failed = running_gather(names, count, count == 0, &replies);

	failures = take_failures(replies);
	if (count > 0 || control_list_dead(&dead, NULL) < 0)
		dead = json_array();
	/* Without a directory to look into, "no arrays" would be no answer. */
	if (options->form == SHOW_JSON || count > 0 || !failed)
		print_status(replies, failures, dead, options);
	if (count == 0)
		say_whose();
	json_decref(failures);
	json_decref(dead);
	json_decref(replies);
	return failed;
}
