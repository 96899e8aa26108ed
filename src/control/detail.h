/* SPDX-License-Identifier: MIT */
#ifndef STRAKE_CONTROL_DETAIL_H
#define STRAKE_CONTROL_DETAIL_H

/*
 * The detail JSON (docs/json.md) from the facts that every serving process has.
 *
 * Two steps, because the engine belongs to one thread (or one lock): detail_take() copies numbers
 * there, allocating nothing; detail_make() builds the JSON anywhere.
 */

#include <jansson.h>
#include <stdbool.h>

#include "engine/engine.h"
#include "io/member.h"
#include "md/assembly.h"

/* Devices of an array with redundancy: slots, spares, and those that come while it runs. */
#define DETAIL_DEVICES_MAX (MD_ROLES_MAX + 64u)

struct detail_counters {
	struct engine_counters total;
	uint64_t array_bytes, stripe_bytes;
	size_t engine_memory_bytes;
	bool broken; /* engine_is_broken() */
	unsigned slot_count;
	struct engine_slot_counters slots[GEOMETRY_SLOTS_MAX];

	/* Levels with redundancy only. */
	bool redundant;
	struct engine_status status; /* its mismatches are those below */
	struct engine_mismatch mismatches[ENGINE_MISMATCHES_MAX];
	unsigned device_count; /* numbers, of which some are free */
	struct engine_device_status devices[DETAIL_DEVICES_MAX];
};

struct detail_partition {
	unsigned number;
	uint64_t start_bytes, length_bytes;
	char node[64];
};

struct detail_facts {
	const char *name;
	const char *node;   /* the path to use */
	const char *device; /* what lies underneath; NULL for nbd */
	const char *export; /* "loop", "fuse", "nbd" */
	const char *io;     /* reactor_kind() */
	bool readonly;
	bool persistent; /* false: there is no superblock (--build) */
	const struct md_assembly *assembly;
	/* By member index of the world, which at start is the candidate's; NULL: not in use. */
	struct member *const *members;
	unsigned member_count;
	uint64_t readahead_bytes;
	size_t reactor_memory_bytes, export_memory_bytes;
	const struct detail_partition *partitions;
	unsigned partition_count;
};

/* Copy @engine's numbers; @slot_count as in the assembly. Call where the engine may be touched. */
void detail_take(const struct engine *engine, unsigned slot_count, struct detail_counters *ret);

/* The reply object, {"ok": true, …}; NULL if memory is out. */
json_t *detail_make(const struct detail_facts *facts, const struct detail_counters *counters);

/*
 * A string of JSON, which is UTF-8, from a path or a name, which may be anything: where @text is no
 * UTF-8, its bytes from 0x80 on become \NNN, octal.
 */
json_t *detail_string(const char *text);

/* {"ok": true}, and {"ok": false, "errno": N, "error": "words"}: the other replies. */
json_t *detail_ok(void);
json_t *detail_error(const struct fault *fault);

#endif
