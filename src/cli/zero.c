/* SPDX-License-Identifier: MIT */

/* zero-superblock: every md superblock of the named devices becomes zeros. */

#include <stdlib.h>

#include "cli/members.h"
#include "cli/run.h"
#include "cli/say.h"
#include "probe/probe.h"
#include "util/cleanup.h"

static int zero_one(char *const *path, const struct cli_options *options, struct fault *fault)
{
	_cleanup_(member_set_close) struct member_set set = {NULL, NULL, 0};
	int r;

	r = member_set_open(&set, path, 1, MEMBER_EXCLUSIVE, fault);
	if (r < 0)
		return fault_append(fault, "; not zeroing");
	r = probe_zero_supers(set.members[0], fault);
	if (r == 0 && !options->quiet)
		say("Unrecognised md component device - %s", *path);
	if (r > 0 && options->verbose)
		say("%s: %d superblock%s zeroed", *path, r, r == 1 ? "" : "s");
	return r;
}

int cli_zero(const struct cli_options *options)
{
	_cleanup_free_ struct fault *fault = calloc(1, sizeof(*fault));
	int code = CLI_OK;
	unsigned i;

	if (fault == NULL)
		return say_no_memory();
	for (i = 0; i < options->word_count; i++) {
		if (zero_one(&options->words[i], options, fault) < 0)
			code = say_fault(fault, CLI_FAILED);
	}
	return code;
}
