/* SPDX-License-Identifier: MIT */
#ifndef STRAKE_CLI_RUN_H
#define STRAKE_CLI_RUN_H

/* The commands. Each prints what it has to say and returns the program's exit code. */

#include "cli/options.h"

int cli_main(int argc, char *const *argv);

int cli_create(const struct cli_options *options);
int cli_assemble(const struct cli_options *options);
int cli_build(const struct cli_options *options);
int cli_stop(const struct cli_options *options);
int cli_zero(const struct cli_options *options);
int cli_cat(const struct cli_options *options);
int cli_partprobe(const struct cli_options *options);
int cli_sim(const struct cli_options *options);
int cli_readahead(const struct cli_options *options);
int cli_manage(const struct cli_options *options);
int cli_readonly(const struct cli_options *options); /* readwrite too */
int cli_wait(const struct cli_options *options);
int cli_action(const struct cli_options *options);
int cli_check(const struct cli_options *options);
int cli_repair(const struct cli_options *options);
int cli_speed(const struct cli_options *options);

/* --homehost, or this host's name; NULL for none. */
const char *cli_homehost(const struct cli_options *options);

#endif
