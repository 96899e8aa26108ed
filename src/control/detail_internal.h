/* SPDX-License-Identifier: MIT */
#ifndef STRAKE_CONTROL_DETAIL_INTERNAL_H
#define STRAKE_CONTROL_DETAIL_INTERNAL_H

/* What the files of the detail JSON share. */

#include "control/detail.h"

/* Put what @part has (released) into @object. Negative if memory is out. */
int detail_set_all(json_t *object, json_t *part);

/* The member's path from the root on: whoever asks stands in another directory than who named it.
 */
const char *detail_path(const struct member *member, char buffer[PATH_MAX]);
/* Does no directory name it any more? */
bool detail_is_deleted(const struct member *member);

/* Levels with redundancy: counts, health and background action; the devices. NULL: memory. */
json_t *detail_redundancy(const struct detail_facts *facts, const struct detail_counters *counters);
json_t *detail_devices(const struct detail_facts *facts, const struct detail_counters *counters);

#endif
