/* SPDX-License-Identifier: MIT */
#ifndef STRAKE_CONTROL_MANAGE_INTERNAL_H
#define STRAKE_CONTROL_MANAGE_INTERNAL_H

/* Between manage.c, manage_find.c and manage_add.c. */

#include <limits.h>

#include "control/manage.h"

/* A copy of what the engine knows, taken on its thread. */
struct manage_facts {
	struct engine_status status; /* mismatches points to the copy below */
	struct engine_mismatch mismatches[ENGINE_MISMATCHES_MAX];
	unsigned device_max;
	struct engine_device_status *devices; /* [device_max] */
};

/* Caller frees with manage_facts_free(). -ENOMEM. */
int manage_facts_take(const struct manage *manage, struct manage_facts **ret, struct fault *fault);
void manage_facts_free(struct manage_facts **facts);

/* The member behind @device. */
const struct member *manage_member(
	const struct manage *manage, const struct manage_facts *facts, unsigned device);
/* Its path as it is now, for words and replies. */
char *manage_path(const struct member *member, char ret[PATH_MAX]);
/* Has its device been unplugged, its file deleted? */
bool manage_is_detached(const struct member *member);
/* The device that @word names: a path, or MAJOR:MINOR. ENGINE_NONE if none of the array's. */
unsigned manage_find(
	const struct manage *manage, const struct manage_facts *facts, const char *word);
/* The same, with words: -ENODEV. */
int manage_find_named(const struct manage *manage, const struct manage_facts *facts,
	const char *word, unsigned *ret, struct fault *fault);

/* The reply that names devices: {"ok":true,"devices":[…]}. */
json_t *manage_reply(const char *path);

/* add, add-spare, re-add: open, look, decide, hand over. */
json_t *manage_add(const struct manage *manage, const struct manage_facts *facts, json_t *request,
	struct fault *fault);

#endif
