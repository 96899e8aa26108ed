/* SPDX-License-Identifier: MIT */

/* strake detail: one running array, from its control socket's reply, in mdadm's forms. */

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "cli/show/format.h"
#include "cli/show/running.h"
#include "md/super.h"
#include "util/cleanup.h"

#define NO_UUID "00000000:00000000:00000000:00000000"

static bool is_old(const json_t *reply)
{
	return strcmp(fact_string(reply, "metadata", ""), "0.90") == 0;
}

/* Built arrays have no superblock and so no name, UUID, times or events on any disk. */
static bool is_persistent(const json_t *reply)
{
	return fact_is_set(reply, "uuid");
}

int detail_health(const json_t *reply)
{
	bool is_short = fact_number(reply, "active_devices") < fact_number(reply, "raid_devices");

	if (strcmp(fact_string(reply, "state", ""), "broken") == 0 ||
		json_is_true(json_object_get(reply, "failed")))
		return 2;
	/* As mdadm: a faulty member whose slot another has taken is no reason. */
	if (fact_is_redundant(reply))
		return fact_number(reply, "degraded_devices") > 0;
	/* The others do not run with a member less. */
	return is_short ? 2 : 0;
}

static void print_head(const json_t *reply, FILE *out)
{
	char size[FORMAT_SIZE_TEXT], when[FORMAT_TIME_TEXT];
	uint64_t bytes = fact_number(reply, "array_bytes");

	fprintf(out, "%s:\n", fact_string(reply, "node", fact_string(reply, "name", "")));
	fprintf(out, "           Version : %s\n", fact_string(reply, "metadata", ""));
	if (fact_is_set(reply, "creation_time"))
		fprintf(out, "     Creation Time : %s\n",
			format_time(fact_number(reply, "creation_time"), when));
	fprintf(out, "        Raid Level : %s\n", fact_string(reply, "level", "-unknown-"));
	fprintf(out, "        Array Size : %" PRIu64 "%s\n", bytes / 1024,
		format_size(bytes, size));
	/* A 0.90 superblock of these levels may record a size too; it means nothing there. */
	if (fact_is_redundant(reply) && fact_is_set(reply, "component_bytes")) {
		bytes = fact_number(reply, "component_bytes");
		fprintf(out, "     Used Dev Size : %" PRIu64 "%s\n", bytes / 1024,
			format_size(bytes, size));
	}
	fprintf(out, "      Raid Devices : %" PRIu64 "\n", fact_number(reply, "raid_devices"));
	fprintf(out, "     Total Devices : %" PRIu64 "\n", fact_number(reply, "total_devices"));
	if (is_old(reply))
		fprintf(out, "   Preferred Minor : %" PRIu64 "\n",
			fact_number(reply, "preferred_minor"));
	if (is_persistent(reply))
		fprintf(out, "       Persistence : Superblock is persistent\n");
	fprintf(out, "\n");
	if (fact_is_set(reply, "bitmap"))
		fprintf(out, "     Intent Bitmap : Internal\n\n");
}

/*
 * "clean" or "active"; and as the kernel's array_state has it for the levels without redundancy.
 */
static const char *state_of(const json_t *reply)
{
	const char *state = fact_string(reply, "state", "clean");

	if (fact_is_redundant(reply))
		return state;
	if (strcmp(state, "broken") != 0 && json_is_true(json_object_get(reply, "readonly")))
		return "readonly";
	return state;
}

static const char *health_words(const json_t *reply)
{
	if (detail_health(reply) == 2)
		return ", FAILED";
	return fact_number(reply, "degraded_devices") > 0 ? ", degraded" : "";
}

static const char *sync_words(const struct running_sync *sync)
{
	if (sync->kind == NULL)
		return "";
	if (sync->pending)
		return ", resyncing (PENDING)";
	return strcmp(sync->kind, "recovery") == 0 ? ", recovering"
	       : strcmp(sync->kind, "check") == 0  ? ", checking"
						   : ", resyncing";
}

/* What mdadm has no line for: only where there is something to tell. */
static void print_errors(const json_t *reply, FILE *out)
{
	json_t *member;
	size_t i;

	json_array_foreach(json_object_get(reply, "members"), i, member)
	{
		if (fact_number(member, "errors") == 0)
			continue;
		fprintf(out, "            Errors : %" PRIu64 " on ", fact_number(member, "errors"));
		print_clean(out, fact_string(member, "path", ""));
		if (fact_is_set(member, "slot"))
			fprintf(out, " (slot %" PRIu64 ")", fact_number(member, "slot"));
		fprintf(out, "\n");
	}
}

/* What members are known not to hold: a rebuild goes over what it cannot read. */
static void print_bad_ranges(const json_t *reply, FILE *out)
{
	json_t *member;
	size_t i;

	json_array_foreach(json_object_get(reply, "members"), i, member)
	{
		if (fact_number(member, "bad_ranges") == 0)
			continue;
		fprintf(out, "        Bad Ranges : %" PRIu64 " on ",
			fact_number(member, "bad_ranges"));
		print_clean(out, fact_string(member, "path", ""));
		fprintf(out, " (--examine-badblocks lists them)\n");
	}
}

static void print_devices(const json_t *reply, FILE *out)
{
	struct running_sync sync = fact_sync(reply);
	char when[FORMAT_TIME_TEXT];

	if (is_persistent(reply))
		fprintf(out, "       Update Time : %s\n",
			format_time(fact_number(reply, "update_time"), when));
	fprintf(out, "             State : %s%s%s \n", state_of(reply), health_words(reply),
		sync_words(&sync));
	fprintf(out, "    Active Devices : %" PRIu64 "\n", fact_number(reply, "active_devices"));
	fprintf(out, "   Working Devices : %" PRIu64 "\n", fact_number(reply, "working_devices"));
	fprintf(out, "    Failed Devices : %" PRIu64 "\n", fact_number(reply, "failed_devices"));
	fprintf(out, "     Spare Devices : %" PRIu64 "\n", fact_number(reply, "spare_devices"));
	print_errors(reply, out);
	print_bad_ranges(reply, out);
	fprintf(out, "\n");
}

/* RAID 1 has neither layout nor chunk, RAID 4 no layout. */
static void print_geometry(const json_t *reply, FILE *out)
{
	json_int_t level = json_integer_value(json_object_get(reply, "level_number"));
	uint64_t chunk_kib = fact_number(reply, "chunk_bytes") / 1024;

	if (strcmp(fact_string(reply, "level", ""), "linear") == 0) {
		fprintf(out, "          Rounding : %" PRIu64 "K\n\n", chunk_kib);
	} else if (level != 1) {
		if (level != 4)
			fprintf(out, "            Layout : %s\n",
				fact_string(reply, "layout", "-unknown-"));
		fprintf(out, "        Chunk Size : %" PRIu64 "K\n\n", chunk_kib);
	}
	fprintf(out, "Consistency Policy : %s\n\n",
		fact_string(reply, "consistency_policy", "none"));
}

static void print_progress(const json_t *reply, FILE *out)
{
	struct running_sync sync = fact_sync(reply);
	const char *label = "Resync";

	if (sync.kind == NULL || sync.pending)
		return;
	if (strcmp(sync.kind, "recovery") == 0)
		label = "Rebuild";
	else if (strcmp(sync.kind, "check") == 0)
		label = "Check";
	fprintf(out, "    %7s Status : %u%% complete\n\n", label, sync.permille / 10);
}

static bool is_local(const json_t *reply, const char *homehost)
{
	uint8_t uuid[16];

	if (!is_old(reply))
		return name_is_local(fact_string(reply, "array_name", ""), homehost);
	return md_uuid_parse(fact_string(reply, "uuid", ""), uuid) == 0 &&
	       uuid_is_local(uuid, homehost);
}

static void print_identity(const json_t *reply, const char *homehost, FILE *out)
{
	const char *uuid = fact_string(reply, "uuid", NO_UUID);
	uint64_t events = fact_number(reply, "events");
	char local[300] = "";

	if (!is_persistent(reply))
		return;
	if (is_local(reply, homehost))
		snprintf(local, sizeof(local), "(local to host %s)", homehost);
	if (is_old(reply)) {
		fprintf(out, "              UUID : %s%s%s\n", uuid, local[0] != '\0' ? " " : "",
			local);
		fprintf(out, "            Events : %" PRIu64 ".%" PRIu64 "\n\n", events >> 32,
			events & UINT32_MAX);
		return;
	}
	fprintf(out, "              Name : ");
	print_clean(out, fact_string(reply, "array_name", ""));
	fprintf(out, "%s%s\n", local[0] != '\0' ? "  " : "", local);
	fprintf(out, "              UUID : %s\n", uuid);
	fprintf(out, "            Events : %" PRIu64 "\n\n", events);
}

/* mdadm's words for a set of RAID 10 with near copies alone: "set-A", "set-B". */
static void print_set(const json_t *reply, const json_t *member, FILE *out)
{
	uint64_t layout = fact_number(reply, "layout_number"), near = layout & 0xff;

	if (fact_number(reply, "level_number") != 10 || (layout >> 8 & 0xff) != 1 || near == 0 ||
		near > 26 || fact_number(reply, "raid_devices") % near != 0)
		return;
	fprintf(out, " set-%c", (char)('A' + fact_number(member, "slot") % near));
}

static void print_word(const char *word, FILE *out)
{
	(void)fputc(' ', out);
	(void)fputs(word, out);
}

static void print_state(const json_t *reply, const json_t *member, FILE *out)
{
	const char *state = fact_string(member, "state", "spare");
	bool is_spare = strncmp(state, "spare", 5) == 0;

	if (!is_spare)
		print_word(state, out);
	if (strcmp(state, "active sync") == 0)
		print_set(reply, member, out);
	if (json_is_true(json_object_get(member, "write_mostly")))
		fprintf(out, " writemostly");
	if (json_is_true(json_object_get(member, "failfast")))
		fprintf(out, " failfast");
	if (is_spare)
		print_word(state, out);
}

static void print_member(const json_t *reply, const json_t *member, FILE *out)
{
	fprintf(out, "   %5" PRIu64 "   %5" PRIu64 "    %5" PRIu64, fact_number(member, "number"),
		fact_number(member, "major"), fact_number(member, "minor"));
	if (fact_is_set(member, "slot"))
		fprintf(out, "    %5" PRIu64 "     ", fact_number(member, "slot"));
	else
		fprintf(out, "        -     ");
	print_state(reply, member, out);
	fprintf(out, "   ");
	print_clean(out, fact_string(member, "path", ""));
	fprintf(out, "\n");
}

/* The members of a slot, a replacement behind what it replaces. False if there is none. */
static bool print_slot(const json_t *reply, uint64_t slot, bool replacement, FILE *out)
{
	bool found = false;
	json_t *member;
	size_t i;

	json_array_foreach(json_object_get(reply, "members"), i, member)
	{
		if (!fact_is_set(member, "slot") || fact_number(member, "slot") != slot ||
			json_is_true(json_object_get(member, "replacement")) != replacement)
			continue;
		print_member(reply, member, out);
		found = true;
	}
	return found;
}

/* By slot; then, behind an empty line, those without one. */
static void print_members(const json_t *reply, FILE *out)
{
	const json_t *members = json_object_get(reply, "members");
	bool is_first = true;
	json_t *member;
	size_t i;

	fprintf(out, "    Number   Major   Minor   RaidDevice State\n");
	for (uint64_t slot = 0; slot < fact_number(reply, "raid_devices"); slot++) {
		if (!print_slot(reply, slot, false, out))
			fprintf(out, "       -       0        0    %5" PRIu64 "      removed\n",
				slot);
		(void)print_slot(reply, slot, true, out);
	}
	json_array_foreach(members, i, member)
	{
		if (fact_is_set(member, "slot"))
			continue;
		fprintf(out, "%s", is_first ? "\n" : "");
		print_member(reply, member, out);
		is_first = false;
	}
}

void detail_text(const json_t *reply, const struct show_options *options)
{
	print_head(reply, options->out);
	print_devices(reply, options->out);
	print_geometry(reply, options->out);
	print_progress(reply, options->out);
	print_identity(reply, options->homehost, options->out);
	print_members(reply, options->out);
}

static int compare_words(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void print_sorted_devices(const json_t *reply, FILE *out)
{
	const json_t *members = json_object_get(reply, "members");
	_cleanup_free_ const char **paths = calloc(json_array_size(members) + 1, sizeof(*paths));
	size_t count = 0, i;
	json_t *member;

	if (paths == NULL)
		return;
	json_array_foreach(members, i, member) paths[count++] = fact_string(member, "path", "");
	qsort(paths, count, sizeof(*paths), compare_words);
	for (i = 0; i < count; i++) {
		fprintf(out, "%s", i == 0 ? "   devices=" : ",");
		print_clean(out, paths[i]);
	}
	fprintf(out, "\n");
}

void detail_brief(const json_t *reply, const struct show_options *options)
{
	FILE *out = options->out;

	fprintf(out, "ARRAY %s", fact_string(reply, "node", fact_string(reply, "name", "")));
	if (options->verbose)
		fprintf(out, " level=%s num-devices=%" PRIu64, fact_string(reply, "level", ""),
			fact_number(reply, "raid_devices"));
	fprintf(out, " metadata=%s", fact_string(reply, "metadata", ""));
	if (fact_number(reply, "spare_devices") > 0)
		fprintf(out, " spares=%" PRIu64, fact_number(reply, "spare_devices"));
	if (fact_is_set(reply, "array_name") && !is_old(reply)) {
		fprintf(out, " name=");
		print_quoted(out, fact_string(reply, "array_name", ""));
	}
	if (is_persistent(reply))
		fprintf(out, " UUID=%s", fact_string(reply, "uuid", NO_UUID));
	fprintf(out, "\n");
	if (options->verbose)
		print_sorted_devices(reply, out);
}

/* "/dev/ubdb" → "dev_ubdb": what may stand in a variable's name. */
static void print_variable(FILE *out, const char *path)
{
	for (path += path[0] == '/' ? 1 : 0; *path != '\0'; path++)
		putc(strchr("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz",
			     *path) != NULL
				? *path
				: '_',
			out);
}

static void export_member(const json_t *member, FILE *out)
{
	const char *path = fact_string(member, "path", "");

	fprintf(out, "MD_DEVICE_");
	print_variable(out, path);
	if (fact_is_set(member, "slot"))
		fprintf(out, "_ROLE=%" PRIu64 "\n", fact_number(member, "slot"));
	else
		fprintf(out, "_ROLE=spare\n");
	fprintf(out, "MD_DEVICE_");
	print_variable(out, path);
	fprintf(out, "_DEV=");
	print_clean(out, path);
	fprintf(out, "\n");
}

void detail_export(const json_t *reply, FILE *out)
{
	const char *node = fact_string(reply, "node", "");
	json_t *member;
	size_t i;

	fprintf(out, "MD_LEVEL=%s\n", fact_string(reply, "level", ""));
	fprintf(out, "MD_DEVICES=%" PRIu64 "\n", fact_number(reply, "raid_devices"));
	fprintf(out, "MD_METADATA=%s\n", fact_string(reply, "metadata", ""));
	fprintf(out, "MD_UUID=%s\n", fact_string(reply, "uuid", NO_UUID));
	if (strncmp(node, "/dev/md/", 8) == 0)
		fprintf(out, "MD_DEVNAME=%s\n", node + 8);
	if (fact_is_set(reply, "array_name") && !is_old(reply)) {
		fprintf(out, "MD_NAME=");
		print_clean(out, fact_string(reply, "array_name", ""));
		fprintf(out, "\n");
	}
	json_array_foreach(json_object_get(reply, "members"), i, member) export_member(member, out);
}

static void show_one(const json_t *reply, const struct show_options *options)
{
	if (options->form == SHOW_EXPORT)
		detail_export(reply, options->out);
	else if (options->form == SHOW_BRIEF || (options->form == SHOW_TEXT && options->scan))
		detail_brief(reply, options);
	else
		detail_text(reply, options);
}

int show_detail(char *const *names, unsigned count, const struct show_options *options)
{
	json_t *replies = NULL, *reply;
	int failed = running_gather(names, count, options->scan, &replies);
	int health = 0;
	size_t i;

	json_array_foreach(replies, i, reply)
	{
		if (is_failure(reply))
			continue;
		if (options->form != SHOW_JSON)
			show_one(reply, options);
		if (options->form == SHOW_TEXT)
			show_lost_members(reply, false);
		if (detail_health(reply) > health)
			health = detail_health(reply);
	}
	if (options->form == SHOW_JSON && (options->scan || count > 1))
		print_json(options->out, replies);
	else if (options->form == SHOW_JSON && json_array_size(replies) == 1)
		print_json(options->out, json_array_get(replies, 0));
	json_decref(replies);
	if (failed)
		return options->test ? 4 : 1;
	return options->test ? health : 0;
}
