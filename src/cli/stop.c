/* SPDX-License-Identifier: MIT */

/* stop: the named arrays, or with --scan all that run. What a killed process left is cleared too.
 */

#include <errno.h>
#include <mntent.h>
#include <stdlib.h>
#include <string.h>

#include "cli/run.h"
#include "cli/say.h"
#include "cli/show/show.h"
#include "control/control.h"
#include "control/remains.h"
#include "control/runtime.h"
#include "util/cleanup.h"

/* "/run/strake/md0", the array as a file, is a name as well. */
static const char *strip_directory(const char *word)
{
	char directory[PATH_MAX];
	size_t length;

	if (runtime_dir(directory, NULL) < 0)
		return word;
	length = strlen(directory);
	if (strncmp(word, directory, length) == 0 && word[length] == '/')
		return word + length + 1;
	return word;
}

/* A file system on a dead array keeps its device: nobody but its owner may take it away. */
static void warn_mounted(const json_t *devices)
{
	struct mntent *entry;
	FILE *mounts = setmntent("/proc/self/mounts", "re");
	json_t *device;
	size_t i;

	while (mounts != NULL && (entry = getmntent(mounts)) != NULL) {
		json_array_foreach(devices, i, device)
		{
			char place[PATH_MAX];

			if (entry->mnt_fsname[0] != '/' ||
				realpath(entry->mnt_fsname, place) == NULL ||
				strcmp(place, json_string_value(device)) != 0)
				continue;
			say("%s is still mounted on %s, with nothing behind it any more: unmount "
			    "it ('umount %s'), its device goes with it",
				entry->mnt_fsname, entry->mnt_dir, entry->mnt_dir);
		}
	}
	if (mounts != NULL)
		(void)endmntent(mounts);
}

static void say_cleared(const char *word, const json_t *paths)
{
	char text[2048] = "";
	size_t used = 0, i;
	json_t *path;

	json_array_foreach(paths, i, path)
	{
		if (used < sizeof(text))
			used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s",
				i == 0 ? "" : ", ", json_string_value(path));
	}
	say("%s: its process had died; removed what it left: %s", word, text);
}

/*
 * The wreck of a killed process. -ENOENT if there is none. The name is taken meanwhile: another
 * command may be about to start the array again.
 */
static int clear(
	const char *name, const char *word, const struct cli_options *options, struct fault *fault)
{
	_cleanup_(runtime_release) struct runtime_claim claim = {.fd = -1};
	json_t *remains = remains_find(name), *paths = json_object_get(remains, "paths");
	int r = -ENOENT;

	if (json_array_size(paths) > 0) {
		r = runtime_claim(name, &claim, fault);
		if (r == 0)
			r = runtime_clean(name, fault);
		if (r == 0 && !options->quiet)
			say_cleared(word, paths);
		if (r == 0)
			warn_mounted(json_object_get(remains, "devices"));
	}
	json_decref(remains);
	return r;
}

static int ask(const char *name, const char *command, json_t **ret, struct fault *fault)
{
	json_t *request = json_pack("{s:s}", "command", command);
	int r = control_call(name, request, ret, fault);

	json_decref(request);
	return r;
}

/* What there is to be told afterwards is known only before. */
static int stop_running(const char *name, struct fault *fault)
{
	json_t *detail = NULL, *reply = NULL;
	int r;

	(void)ask(name, "detail", &detail, NULL); /* without it there is no warning */
	r = ask(name, "stop", &reply, fault);
	if (r == 0)
		show_lost_members(detail, true);
	json_decref(reply);
	json_decref(detail);
	return r;
}

static int stop_one(const char *word, const struct cli_options *options, struct fault *fault)
{
	char name[NAME_MAX];
	int r;

	r = runtime_name(strip_directory(word), name, fault);
	if (r == 0)
		r = stop_running(name, fault);
	if (r == 0 && !options->quiet)
		say("stopped %s", word);
	if (r != -ENOENT)
		return r;
	r = clear(name, word, options, fault);
	if (r == -ENOENT)
		return fault_set(fault, r,
			"stop %s: no such array is running ('strake status' lists those that are)",
			word);
	return r;
}

static int stop_list(json_t *names, const struct cli_options *options, struct fault *fault)
{
	int code = CLI_OK;
	json_t *name;
	size_t i;

	json_array_foreach(names, i, name)
	{
		if (stop_one(json_string_value(name), options, fault) < 0)
			code = say_fault(fault, CLI_FAILED);
	}
	json_decref(names);
	return code;
}

/*
 * Arrays may be members of others: what is in use now may be free when another one has stopped. So
 * those that are busy are tried again as long as any array stops; then what is left is told.
 */
static int stop_running_all(json_t *names, const struct cli_options *options, struct fault *fault)
{
	size_t before = json_array_size(names) + 1;

	while (json_array_size(names) > 0 && json_array_size(names) < before) {
		before = json_array_size(names);
		for (size_t i = before; i-- > 0;) {
			const char *name = json_string_value(json_array_get(names, i));

			if (stop_one(name, options, fault) == 0)
				(void)json_array_remove(names, i); /* the index is inside */
		}
	}
	return stop_list(names, options, fault);
}

static int stop_all(const struct cli_options *options, struct fault *fault)
{
	json_t *running = NULL, *dead = NULL;
	int code;

	if (control_list_dead(&dead, fault) < 0)
		return say_fault(fault, CLI_FAILED);
	if (control_list(&running, fault) < 0) {
		json_decref(dead);
		return say_fault(fault, CLI_FAILED);
	}
	code = stop_running_all(running, options, fault);
	return stop_list(dead, options, fault) == CLI_OK ? code : CLI_FAILED;
}

int cli_stop(const struct cli_options *options)
{
	_cleanup_free_ struct fault *fault = calloc(1, sizeof(*fault));
	int code = CLI_OK;
	unsigned i;

	if (fault == NULL)
		return say_no_memory();
	if (options->word_count == 0)
		return stop_all(options, fault);
	for (i = 0; i < options->word_count; i++) {
		if (stop_one(options->words[i], options, fault) < 0)
			code = say_fault(fault, CLI_FAILED);
	}
	return code;
}
