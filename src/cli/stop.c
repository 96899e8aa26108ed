/* SPDX-License-Identifier: MIT */

/* stop: the named arrays, or with --scan all that run. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/run.h"
#include "cli/say.h"
#include "control/control.h"
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

static int stop_one(const char *word, const struct cli_options *options, struct fault *fault)
{
	json_t *request = json_pack("{s:s}", "command", "stop"), *reply = NULL;
	char name[NAME_MAX];
	int r;

	r = runtime_name(strip_directory(word), name, fault);
	if (r == 0)
		r = control_call(name, request, &reply, fault);
	json_decref(request);
	json_decref(reply);
	if (r == -ENOENT)
		return fault_set(fault, r,
			"stop %s: no such array is running ('strake status' lists those that are)",
			word);
	if (r == 0 && !options->quiet)
		say("stopped %s", word);
	return r;
}

static int stop_all(const struct cli_options *options, struct fault *fault)
{
	json_t *names = NULL, *name;
	size_t i;
	int r, code = CLI_OK;

	r = control_list(&names, fault);
	if (r < 0)
		return say_fault(fault, CLI_FAILED);
	json_array_foreach(names, i, name)
	{
		if (stop_one(json_string_value(name), options, fault) < 0)
			code = say_fault(fault, CLI_FAILED);
	}
	json_decref(names);
	return code;
}

int cli_stop(const struct cli_options *options)
{
	_cleanup_free_ struct fault *fault = calloc(1, sizeof(*fault));
	int code = CLI_OK;
	unsigned i;

	if (fault == NULL)
		return CLI_FAILED;
	if (options->word_count == 0)
		return stop_all(options, fault);
	for (i = 0; i < options->word_count; i++) {
		if (stop_one(options->words[i], options, fault) < 0)
			code = say_fault(fault, CLI_FAILED);
	}
	return code;
}
