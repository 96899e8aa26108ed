/* SPDX-License-Identifier: MIT */
#ifndef STRAKE_CLI_SIM_H
#define STRAKE_CLI_SIM_H

/* What the files of "strake sim" share. */

#include "simulate/simulate.h"

/*
 * One run in a process of its own, so that an assertion that fails, or a loop without end, is one
 * run's affair. Its output goes to @options->out, flushed. -ENOMEM, -EAGAIN: no process.
 */
int sim_run_apart(const struct simulate_options *options, struct simulate_result *ret);

/* Leave out what the failure @result does not need. Prints what it finds. */
void sim_shrink(const struct simulate_options *options, const struct simulate_result *result);

/* The command that repeats the run. */
void sim_print_command(const struct simulate_options *options, FILE *out);

#endif
