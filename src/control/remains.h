/* SPDX-License-Identifier: MIT */
#ifndef STRAKE_CONTROL_REMAINS_H
#define STRAKE_CONTROL_REMAINS_H

/* What a killed process leaves behind, and how to name it to people. */

#include <jansson.h>

#include "util/fault.h"

/*
 * What stands there of an array @name that does not run: {"paths": ["/run/strake/md0.sock", …],
 * "devices": ["/dev/loop3"]}; paths is empty if there is nothing. NULL if memory is out or there is
 * no runtime directory. Only looks.
 */
json_t *remains_find(const char *name);

/*
 * An NBD socket lies where the user said: DIR/NAME.nbd leads there as long as the array runs, so
 * that it can be found when the process was killed. Best effort: without the link the socket stays
 * until the next start with the same path.
 */
void remains_record_nbd(const char *name, const char *path);
void remains_forget_nbd(const char *name);
/* Remove the socket to which DIR/NAME.nbd leads if nobody listens there any more, and the link. */
int remains_clean_nbd(const char *name, struct fault *fault);

#endif
