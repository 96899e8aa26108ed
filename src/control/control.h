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
#include <stdbool.h>

#include "util/fault.h"

/*
 * Ask the running array @name. *@ret is the reply object (caller's reference) when 0 is returned.
 * -ENOENT no such array runs (a stale socket counts as none); what the array answered otherwise.
 */
int control_call(const char *name, json_t *request, json_t **ret, struct fault *fault);

/* Names of all running arrays, sorted, as a JSON array of strings; stale sockets do not count. */
int control_list(json_t **ret, struct fault *fault);
/* Names of the arrays whose process died and left its socket, in the same form. */
int control_list_dead(json_t **ret, struct fault *fault);

/*
 * For a user whose own arrays are listed: the names of root's arrays, which only root may ask. An
 * empty list for root, and where STRAKE_RUNTIME_DIR says which arrays are meant. NULL if memory is
 * out.
 */
json_t *control_list_root(void);

/* Did a process of this name die without cleaning up? */
bool control_is_dead(const char *name);
/* "md47: its process died; run …": the words about such an array. Returns -EOWNERDEAD. */
int control_dead_fault(const char *name, struct fault *fault);

#endif
