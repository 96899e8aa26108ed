/* SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "cli/run.h"
#include "cli/say.h"
#include "control/memory.h"

/* Facts that could not be printed ("strake detail md0 > /dev/full") are a failure. */
static int close_output(int code)
{
	if (fflush(stdout) == 0 && ferror(stdout) == 0)
		return code;
	say("standard output: cannot write: what was printed is not complete");
	return code != CLI_OK ? code : CLI_FAILED;
}

int main(int argc, char **argv)
{
	memory_watch();
	return close_output(cli_main(argc, argv));
}
