/* SPDX-License-Identifier: MIT */
#ifndef STRAKE_CLI_MANAGE_H
#define STRAKE_CLI_MANAGE_H

/* Between manage.c and manage_sync.c: a running array that is asked to change. */

#include <jansson.h>
#include <limits.h>

#include "cli/options.h"

struct managed {
	const struct cli_options *options;
	const char *word; /* the array as the user named it */
	char name[NAME_MAX];
	json_t *detail; /* when the command began */
	struct fault fault;
};

/* Find the array; 0 or a negative errno with the words said already. */
int managed_init(struct managed *managed, const struct cli_options *options, const char *word);
void managed_fini(struct managed *managed);

/*
 * Ask it with {"command":"manage","verb":@verb} and @more (taken over, may be NULL). *@ret (may be
 * NULL) is the reply. A negative errno with words in managed->fault.
 */
int managed_call(struct managed *managed, const char *verb, json_t *more, json_t **ret);

/* Wait for the end of the background action and show how far it is. 1: there was none. */
int managed_wait(struct managed *managed);

#endif
