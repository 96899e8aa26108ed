/* SPDX-License-Identifier: MIT */
#ifndef STRAKE_CONTROL_MEMORY_H
#define STRAKE_CONTROL_MEMORY_H

/*
 * JSON that lacks a part because memory was short must not pass for the whole. Objects are built
 * in hundreds of places whose results nobody could check one by one; so jansson's allocations are
 * watched, and whoever hands the outcome on asks once.
 */

#include <stdbool.h>

/* At the start of the program, before the first JSON value. */
void memory_watch(void);

/* Has this thread missed memory for JSON since it last asked? */
bool memory_was_short(void);

#endif
