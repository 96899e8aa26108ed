/* SPDX-License-Identifier: MIT */

/* partprobe and readahead: requests to a running array. */

#include <errno.h>
#include <stdlib.h>

#include "cli/run.h"
#include "cli/say.h"
#include "cli/values.h"
#include "control/control.h"
#include "control/runtime.h"
#include "util/cleanup.h"

/* Takes over @request. */
static int ask(const char *word, json_t *request, const char *verb)
{
	_cleanup_free_ struct fault *fault = calloc(1, sizeof(*fault));
	json_t *reply = NULL;
	char name[NAME_MAX];
	int r;

	if (fault == NULL || request == NULL)
		return say_no_memory();
	r = runtime_name(word, name, fault);
	if (r == 0)
		r = control_call(name, request, &reply, fault);
	json_decref(request);
	json_decref(reply);
	if (r == -ENOENT && control_is_dead(name))
		(void)control_dead_fault(name, fault);
	else if (r == -ENOENT)
		(void)fault_set(fault, r,
			"%s %s: no such array is running ('strake status' lists those that are)",
			verb, word);
	return r < 0 ? say_fault(fault, CLI_FAILED) : CLI_OK;
}

int cli_partprobe(const struct cli_options *options)
{
	int code = CLI_OK;
	unsigned i;

	if (options->word_count == 0) {
		say("partprobe: no array named ('strake partprobe md0')");
		return CLI_USAGE;
	}
	for (i = 0; i < options->word_count; i++) {
		if (ask(options->words[i], json_pack("{s:s}", "command", "partprobe"),
			    "partprobe") != CLI_OK)
			code = CLI_FAILED;
	}
	return code;
}

int cli_readahead(const struct cli_options *options)
{
	uint64_t bytes;

	if (options->word_count != 2 || value_size(options->words[1], 1, &bytes) < 0 ||
		bytes > INT64_MAX) {
		say("readahead: an array and a number of bytes (or with K, M) are needed: 'strake "
		    "readahead md0 2M'");
		return CLI_USAGE;
	}
	return ask(options->words[0],
		json_pack("{s:s,s:I}", "command", "readahead", "bytes", (json_int_t)bytes),
		"readahead");
}
