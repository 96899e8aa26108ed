/* SPDX-License-Identifier: MIT */

/* strake status: the text of /proc/mdstat for our running arrays. */

#include <inttypes.h>
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

/* Newest first, which for a set that starts at once is the highest number first. */
static void print_members(const json_t *reply, FILE *out)
{
	const json_t *members = json_object_get(reply, "members");

	for (size_t i = json_array_size(members); i-- > 0;) {
		const json_t *member = json_array_get(members, i);
		bool is_faulty = strstr(fact_string(member, "state", ""), "faulty") != NULL;

		putc(' ', out);
		print_device_name(fact_string(member, "path", ""), out);
		fprintf(out, "[%" PRIu64 "]%s", fact_number(member, "number"),
			is_faulty                     ? "(F)"
			: fact_is_set(member, "slot") ? ""
						      : "(S)");
	}
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

static void print_array(const json_t *reply, FILE *out)
{
	const char *level = fact_string(reply, "level", "");

	/* "broken" is a word of md's array_state; mdstat's readers pass over what is in brackets.
	 */
	fprintf(out, "%s : active%s%s %s", fact_string(reply, "name", ""),
		json_is_true(json_object_get(reply, "readonly")) ? " (read-only)" : "",
		detail_health(reply) == 2 ? " (broken)" : "", level);
	print_members(reply, out);
	fprintf(out, "      %" PRIu64 " blocks", fact_number(reply, "array_bytes") / 1024);
	print_version(reply, out);
	fprintf(out, " %" PRIu64 "k %s\n", fact_number(reply, "chunk_bytes") / 1024,
		strcmp(level, "linear") == 0 ? "rounding" : "chunks");
	/* Here the kernel would report resync; the blanks before it are always there. */
	fprintf(out, "      \n");
}

void status_text(const json_t *replies, FILE *out)
{
	json_t *reply;
	size_t i;

	fprintf(out, "Personalities : [linear] [raid0] \n");
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
		json = json_pack("{s[ss], sO, sO, sO}", "personalities", "linear", "raid0",
			"arrays", replies, "failures", failures, "dead", dead);
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
