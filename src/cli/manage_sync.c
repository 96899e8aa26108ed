/* SPDX-License-Identifier: MIT */

/* Background actions of a running array: wait for them, check, repair, speed. */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/manage.h"
#include "cli/run.h"
#include "cli/say.h"
#include "cli/show/running.h"
#include "util/cleanup.h"

#define LOOK_US 200000
#define BEGINS_WITHIN_MS 2000 /* what a change has asked for, begins a moment later */
#define BAR 20

static const char *action_of(const json_t *status)
{
	return fact_string(status, "action", "idle");
}

static bool is_running(const json_t *status)
{
	return strcmp(action_of(status), "idle") != 0 && strcmp(action_of(status), "frozen") != 0;
}

/* /proc/mdstat's word for it. */
static const char *action_name(const json_t *status)
{
	return strcmp(action_of(status), "recover") == 0 ? "recovery" : action_of(status);
}

/* Is something to be expected: a device to be rebuilt, a resync that is pending? */
static bool is_pending(const json_t *status)
{
	json_t *device;
	size_t i;

	if (json_is_true(json_object_get(status, "failed")) ||
		json_is_true(json_object_get(status, "readonly")) ||
		strcmp(action_of(status), "frozen") == 0)
		return false;
	json_array_foreach(json_object_get(status, "devices"), i, device)
	{
		if (strcmp(fact_string(device, "state", ""), "rebuilding") == 0)
			return true;
	}
	return fact_is_set(status, "resync_bytes");
}

/* As the kernel prints it, but for the units of the speed: KiB. */
static void format_progress(const json_t *status, char *text, size_t size)
{
	uint64_t position = fact_number(status, "position_bytes");
	uint64_t total = fact_number(status, "total_bytes"), speed, left;
	double share = total > 0 ? (double)position / (double)total : 0;
	unsigned filled = (unsigned)(share * BAR);
	char bar[BAR + 1];

	speed = fact_number(status, "speed_bytes_s");
	left = total > position ? total - position : 0;
	for (unsigned i = 0; i < BAR; i++)
		bar[i] = i < filled ? '=' : i == filled ? '>' : '.';
	bar[BAR] = '\0';
	(void)snprintf(text, size,
		"[%s]  %s = %4.1f%% (%" PRIu64 "/%" PRIu64 ") finish=%.1fmin speed=%" PRIu64
		"K/sec",
		bar, action_name(status), share * 100, position / 1024, total / 1024,
		speed > 0 ? (double)left / (double)speed / 60 : 0, speed / 1024);
}

struct shown {
	bool terminal, quiet;
	unsigned tenth; /* a line for each tenth where there is no terminal */
	char action[16];
};

static void show(struct shown *shown, const struct managed *managed, const json_t *status)
{
	uint64_t total = fact_number(status, "total_bytes");
	unsigned tenth = total > 0 ? (unsigned)(fact_number(status, "position_bytes") * 10 / total)
				   : 0;
	char text[200];

	if (shown->quiet)
		return;
	format_progress(status, text, sizeof(text));
	if (shown->terminal) {
		(void)printf("\r\033[K%s: %s", managed->word, text);
	} else if (strcmp(shown->action, action_name(status)) != 0 || tenth != shown->tenth) {
		(void)printf("%s: %s\n", managed->word, text);
		shown->tenth = tenth;
	}
	(void)snprintf(shown->action, sizeof(shown->action), "%s", action_name(status));
	(void)fflush(stdout);
}

static void show_end(const struct shown *shown, const struct managed *managed)
{
	if (shown->quiet || shown->action[0] == '\0')
		return;
	(void)printf("%s%s: %s ended\n", shown->terminal ? "\r\033[K" : "", managed->word,
		shown->action);
}

/* What could not be read when it was needed is recorded as bad, and the array is not what it was.
 */
static int tell_bad_ranges(struct managed *managed)
{
	json_t *device, *status = NULL;
	int found = 0;
	size_t i;

	if (managed_call(managed, "status", NULL, &status) < 0)
		return 0; /* it has been stopped */
	json_array_foreach(json_object_get(status, "devices"), i, device)
	{
		if (fact_number(device, "bad_ranges") == 0)
			continue;
		say("%s: %s: %" PRIu64
		    " ranges are recorded as bad, for want of a source or because "
		    "the device cannot hold them; 'strake examine --examine-badblocks %s' lists "
		    "them",
			managed->word, fact_string(device, "path", ""),
			fact_number(device, "bad_ranges"), fact_string(device, "path", ""));
		found = 1;
	}
	json_decref(status);
	return found;
}

/* The array may be stopped meanwhile: then there is nothing to wait for any more. */
int managed_wait(struct managed *managed)
{
	struct shown shown = {.terminal = isatty(STDOUT_FILENO), .quiet = managed->options->quiet};
	unsigned idle_ms = 0;
	json_t *status = NULL;
	bool waited = false;
	int r;

	for (;;) {
		r = managed_call(managed, "status", NULL, &status);
		if (r == -ENOENT && waited)
			break;
		if (r < 0)
			return say_fault(&managed->fault, r);
		if (is_running(status)) {
			waited = true;
			idle_ms = 0;
			show(&shown, managed, status);
		} else if (!is_pending(status) || idle_ms >= BEGINS_WITHIN_MS) {
			json_decref(status);
			break;
		}
		json_decref(status);
		(void)usleep(LOOK_US);
		idle_ms += LOOK_US / 1000;
	}
	show_end(&shown, managed);
	return waited ? tell_bad_ranges(managed) : 1;
}

int cli_wait(const struct cli_options *options)
{
	int code = CLI_OK;

	if (options->word_count == 0) {
		say("wait: no array named ('strake wait md0')");
		return CLI_USAGE;
	}
	for (unsigned i = 0; i < options->word_count; i++) {
		struct managed managed;

		if (managed_init(&managed, options, options->words[i]) < 0) {
			code = CLI_FAILED;
			continue;
		}
		if (managed_wait(&managed) != 0)
			code = CLI_FAILED;
		managed_fini(&managed);
	}
	return code;
}

static int start_action(struct managed *managed, const char *action)
{
	if (managed_call(managed, "sync", json_pack("{s:s}", "action", action), NULL) < 0)
		return say_fault(&managed->fault, CLI_FAILED);
	return CLI_OK;
}

int cli_action(const struct cli_options *options)
{
	int code = CLI_OK;

	if (options->word_count == 0 || options->action == NULL) {
		say("action: what and of which array? ('strake --action=check md0')");
		return CLI_USAGE;
	}
	for (unsigned i = 0; i < options->word_count && code == CLI_OK; i++) {
		struct managed managed;

		if (managed_init(&managed, options, options->words[i]) < 0)
			return CLI_FAILED;
		code = start_action(&managed, options->action);
		managed_fini(&managed);
	}
	return code;
}

static const char *path_in_slot(const json_t *status, uint64_t slot)
{
	json_t *device;
	size_t i;

	json_array_foreach(json_object_get(status, "devices"), i, device)
	{
		if (fact_is_set(device, "slot") && fact_number(device, "slot") == slot &&
			!json_is_true(json_object_get(device, "replacement")))
			return fact_string(device, "path", "");
	}
	return "no device";
}

/* What a repair writes where it cannot be told which member is wrong. */
static const char *unknown_remedy(const struct managed *managed)
{
	uint64_t level = fact_number(managed->detail, "level_number");

	return level == 1 || level == 10
		       ? "cannot tell which copy is wrong: the first copy is written over the "
			 "others"
		       : "cannot tell which member is wrong: the parity is computed anew from the "
			 "data";
}

/* RAID 10 counts in bytes of the array, the others in bytes of each member's data. */
static void print_mismatches(
	const struct managed *managed, const json_t *status, bool as_plan, FILE *out)
{
	bool of_array = fact_number(managed->detail, "level_number") == 10;
	json_t *range;
	size_t i;

	json_array_foreach(json_object_get(status, "mismatches"), i, range)
	{
		uint64_t first = fact_number(range, "offset_bytes");
		uint64_t slot = fact_number(range, "slot");

		(void)fprintf(out, "%s: bytes %" PRIu64 " to %" PRIu64 " of %s: ", managed->word,
			first, first + fact_number(range, "length_bytes") - 1,
			of_array ? "the array" : "each member's data");
		if (fact_is_set(range, "slot"))
			(void)fprintf(out, "slot %" PRIu64 " (%s) is wrong%s\n", slot,
				path_in_slot(status, slot),
				as_plan ? ": rewritten from the others" : "");
		else
			(void)fprintf(out, "%s\n",
				as_plan ? unknown_remedy(managed)
					: "cannot tell which member is wrong");
	}
	if (!json_is_true(json_object_get(status, "mismatches_are_all")))
		(void)fprintf(out, "%s: and more: only the first ranges are kept\n", managed->word);
}

/* The result of the last check: CLI_OK if all was right, CLI_FAILED if not. */
static int report(struct managed *managed, bool as_plan)
{
	json_t *status = NULL;
	uint64_t sectors;

	if (managed_call(managed, "status", NULL, &status) < 0)
		return say_fault(&managed->fault, CLI_FAILED);
	sectors = fact_number(status, "mismatch_sectors");
	if (!managed->options->quiet) {
		if (sectors == 0)
			(void)printf("%s: no mismatch\n", managed->word);
		else
			(void)printf("%s: %" PRIu64 " sectors are in ranges that do not match\n",
				managed->word, sectors);
		print_mismatches(managed, status, as_plan, stdout);
	}
	json_decref(status);
	return sectors == 0 ? CLI_OK : CLI_FAILED;
}

static int one_array(const struct cli_options *options, const char *verb, struct managed *managed)
{
	if (options->word_count != 1) {
		say("%s: one array is to be named ('strake %s md0')", verb, verb);
		return CLI_USAGE;
	}
	return managed_init(managed, options, options->words[0]) < 0 ? CLI_FAILED : CLI_OK;
}

int cli_check(const struct cli_options *options)
{
	struct managed managed;
	int code = one_array(options, "check", &managed);

	if (code != CLI_OK)
		return code;
	code = start_action(&managed, "check");
	if (code == CLI_OK && options->wait) {
		(void)managed_wait(&managed); /* a small array is through before one looks */
		code = report(&managed, false);
	} else if (code == CLI_OK && !options->quiet) {
		say("check of %s has begun: 'strake wait %s' waits for its end, 'strake detail %s' "
		    "tells what it found",
			managed.word, managed.word, managed.word);
	}
	managed_fini(&managed);
	return code;
}

static bool has_consent(const struct managed *managed)
{
	char answer[16];

	if (managed->options->yes)
		return true;
	if (!isatty(STDIN_FILENO)) {
		say("repair %s: nothing was written; --yes repairs it", managed->word);
		return false;
	}
	(void)fprintf(stderr, "Repair %s as said? ", managed->word);
	if (fgets(answer, sizeof(answer), stdin) != NULL && (answer[0] == 'y' || answer[0] == 'Y'))
		return true;
	say("repair %s: nothing was written", managed->word);
	return false;
}

static int repair(struct managed *managed)
{
	int code = start_action(managed, "repair");

	if (code != CLI_OK)
		return code;
	(void)managed_wait(managed);
	if (!managed->options->quiet)
		(void)printf("%s: repaired\n", managed->word);
	return CLI_OK;
}

/* The plan is what a check finds; nothing but bad sectors is rewritten by that. */
int cli_repair(const struct cli_options *options)
{
	struct managed managed;
	int code = one_array(options, "repair", &managed);

	if (code != CLI_OK)
		return code;
	code = start_action(&managed, "check");
	if (code == CLI_OK) {
		(void)managed_wait(&managed);
		if (report(&managed, true) != CLI_OK)
			code = has_consent(&managed) ? repair(&managed) : CLI_FAILED;
	}
	managed_fini(&managed);
	return code;
}

static int show_speed(struct managed *managed)
{
	json_t *status = NULL;

	if (managed_call(managed, "status", NULL, &status) < 0)
		return say_fault(&managed->fault, CLI_FAILED);
	(void)printf("%s: speed per member: min %" PRIu64 "K/sec, max %" PRIu64
		     "K/sec, now %" PRIu64 "K/sec\n",
		managed->word, fact_number(status, "sync_speed_min") / 1024,
		fact_number(status, "sync_speed_max") / 1024,
		is_running(status) ? fact_number(status, "speed_bytes_s") / 1024 : 0);
	json_decref(status);
	return CLI_OK;
}

int cli_speed(const struct cli_options *options)
{
	json_t *more = json_object();
	struct managed managed;
	int code = one_array(options, "speed", &managed);

	if (code != CLI_OK) {
		json_decref(more);
		return code;
	}
	if (options->speed_min_bytes != CLI_DEFAULT)
		(void)json_object_set_new(
			more, "min", json_integer((json_int_t)options->speed_min_bytes));
	if (options->speed_max_bytes != CLI_DEFAULT)
		(void)json_object_set_new(
			more, "max", json_integer((json_int_t)options->speed_max_bytes));
	if (json_object_size(more) == 0)
		json_decref(more);
	else if (managed_call(&managed, "speed", more, NULL) < 0)
		code = say_fault(&managed.fault, CLI_FAILED);
	if (code == CLI_OK && !options->quiet)
		code = show_speed(&managed);
	managed_fini(&managed);
	return code;
}
