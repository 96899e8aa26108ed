/* SPDX-License-Identifier: MIT */
#ifndef STRAKE_CONTROL_CONTROL_H
#define STRAKE_CONTROL_CONTROL_H

/*
 * The control socket: one JSON object per line in, one per line out. Both ends.
 *
 * Requests: {"command": "detail"|"stop"|"partprobe"|"readahead"|"ping", …}
 * Replies:  {"ok": true, …} or {"ok": false, "errno": N, "error": "words"}
 */

#include <jansson.h>

#include "util/fault.h"

/*
 * Ask the running array @name. *@ret is the reply object (caller's reference) when 0 is returned.
 * -ENOENT no such array runs (a stale socket counts as none); what the array answered otherwise.
 */
int control_call(const char *name, json_t *request, json_t **ret, struct fault *fault);

/* Names of all running arrays, sorted, as a JSON array of strings; stale sockets do not count. */
int control_list(json_t **ret, struct fault *fault);

#endif
