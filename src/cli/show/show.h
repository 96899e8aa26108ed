/* SPDX-License-Identifier: MIT */
#ifndef STRAKE_CLI_SHOW_SHOW_H
#define STRAKE_CLI_SHOW_SHOW_H

/* Printing facts in mdadm's forms and as JSON. Each function returns the program's exit code. */

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

enum show_form { SHOW_TEXT, SHOW_BRIEF, SHOW_EXPORT, SHOW_JSON };

struct show_options {
	enum show_form form;
	bool scan;            /* all devices or all running arrays */
	bool verbose;         /* with SHOW_BRIEF */
	bool test;            /* detail: exit code tells the array's health */
	const char *homehost; /* for "(local to host H)" */
	FILE *out;            /* facts; errors go to stderr */
};

int show_examine(char *const *paths, unsigned count, const struct show_options *options);
/* The write-intent bitmap, or the bad-block log, of each device. */
int show_bitmap(char *const *paths, unsigned count, const struct show_options *options);
int show_badblocks(char *const *paths, unsigned count, const struct show_options *options);
int show_detail(char *const *names, unsigned count, const struct show_options *options);
int show_query(char *const *paths, unsigned count, const struct show_options *options);
/* strake status: what /proc/mdstat would say about all running arrays, or about the named ones. */
int show_status(char *const *names, unsigned count, const struct show_options *options);

/*
 * Warn, on stderr, of members whose file has been deleted, from an array's detail reply: while the
 * array runs, or (@stopped) afterwards.
 */
void show_lost_members(const json_t *reply, bool stopped);

#endif
