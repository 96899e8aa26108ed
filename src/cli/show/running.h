/* SPDX-License-Identifier: MIT */
#ifndef STRAKE_CLI_SHOW_RUNNING_H
#define STRAKE_CLI_SHOW_RUNNING_H

/* Running arrays as their control sockets describe them (docs/json.md). For src/cli/show and
 * for the commands that change them. */

#include <jansson.h>
#include <stdint.h>

#include "cli/show/show.h"
#include "util/fault.h"

/* The detail reply of the running array that @word names, by name or by any path of its node. */
int running_find(const char *word, json_t **ret, struct fault *fault);
/* The detail replies of all running arrays: an array, sorted by name. */
int running_all(json_t **ret, struct fault *fault);

/*
 * The replies of all running arrays with @all, else of those that @words name; an array in *@ret.
 * What cannot be had is told on stderr, once each, and stands in the array as failure_json().
 * Returns the exit code so far: 0 or 1.
 */
int running_gather(char *const *words, unsigned count, bool all, json_t **ret);

/* {"ok": false, @key: @word, "errno": …, "error": …}: what --json has where something failed. */
json_t *failure_json(const char *key, const char *word, const struct fault *fault);
bool is_failure(const json_t *reply);

/* Facts of a reply; missing and null ones are @absent or 0. */
const char *fact_string(const json_t *reply, const char *key, const char *absent);
uint64_t fact_number(const json_t *reply, const char *key);
bool fact_is_set(const json_t *reply, const char *key); /* there and not null */

/* A level with redundancy, whose devices come and go? */
bool fact_is_redundant(const json_t *reply);

/* The background action of an array, as md's progress line has it. */
struct running_sync {
	const char *kind; /* "recovery", "resync", "check"; NULL: none runs and none is due */
	bool pending;     /* a resync is due but may not run */
	uint64_t position_bytes, total_bytes, speed_bytes_s;
	unsigned permille;
};
struct running_sync fact_sync(const json_t *reply);

/* The forms, each for one reply. */
void detail_text(const json_t *reply, const struct show_options *options);
void detail_brief(const json_t *reply, const struct show_options *options);
void detail_export(const json_t *reply, FILE *out);
int detail_health(const json_t *reply); /* exit code of --test: 0, 1 degraded, 2 unusable */
/* /proc/mdstat for an array of replies. */
void status_text(const json_t *replies, FILE *out);
void query_array(const char *word, const json_t *reply, FILE *out);

#endif
