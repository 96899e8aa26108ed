/* SPDX-License-Identifier: MIT */
#ifndef STRAKE_CLI_SAY_H
#define STRAKE_CLI_SAY_H

/* Messages to people: lines on standard error, each begins with "strake: ". */

#include "util/fault.h"

/* Exit codes; man/strake.8.scd lists what each command means by them. */
#define CLI_OK 0
#define CLI_FAILED 1
#define CLI_USAGE 2

void say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Print @fault and return @code. */
int say_fault(const struct fault *fault, int code);

/* Where not even the room for words could be had. Returns CLI_FAILED. */
int say_no_memory(void);

#endif
