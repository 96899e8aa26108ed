/* SPDX-License-Identifier: MIT */
#ifndef STRAKE_ENGINE_STRIPE_RIG_TEST_H
#define STRAKE_ENGINE_STRIPE_RIG_TEST_H

/*
 * For tests of RAID 4, 5 and 6: an array in the simulated world whose every byte is known, on the
 * array and on each member; and a background action that does what the test says (the functions of
 * sync.h that the levels call are replaced when the test is linked).
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/devices.h"
#include "engine/sync.h"
#include "geometry/stripes.h"

struct sim;

#define K 1024u
#define SECTOR 512u
#define RIG_DEVICES_MAX 16u

struct shape {
	int level;
	uint32_t layout, chunk_bytes;
	unsigned slots;
	uint64_t component_bytes;
};

struct rig {
	struct shape shape;
	struct stripes stripes;
	struct sim *sim;
	struct engine *engine;
	struct engine_device devices[RIG_DEVICES_MAX];
	unsigned device_count;
	uint64_t bytes;
	uint32_t *ids; /* per sector of the array: which content it has; rig_content() */
	unsigned events;
	/* The background action. */
	bool inconsistent; /* what sync_is_consistent() denies */
	unsigned windows_done;
	int window_result;
	struct engine_mismatch mismatches[64];
	unsigned mismatch_count;
};

struct call {
	struct rig *rig;
	struct engine_request request;
	struct iovec iov[8];
	uint8_t *buffer;
	int result;
	bool done;
};

/* All devices in sync but for those in the @missing and @rebuilding masks of slots. */
void rig_init(struct rig *rig, const struct shape *shape, unsigned missing, unsigned rebuilding,
	uint64_t recovered_bytes, uint64_t seed);
void rig_fini(struct rig *rig);
/* What a sector of the array contains when its id is @id. */
void rig_content(uint32_t id, uint64_t sector, uint8_t *ret);
/* The array's right content. */
void rig_expect(const struct rig *rig, uint64_t offset, uint64_t length, uint8_t *ret);
/* The right content of a sector of a slot's data, parity too. */
void rig_expect_member(const struct rig *rig, unsigned slot, uint64_t offset, uint8_t *ret);
/* Every device in sync (and every rebuilding one, below where it is) holds what it should. */
void rig_check_members(struct rig *rig);
void rig_check_array(struct rig *rig);

void rig_start(struct rig *rig, struct call *call, enum engine_op op, uint64_t offset,
	uint64_t length, uint8_t *buffer, unsigned flags);
int rig_finish(struct rig *rig, struct call *call);
int rig_run(struct rig *rig, enum engine_op op, uint64_t offset, uint64_t length, uint8_t *buffer,
	unsigned flags);
/* Write content @id; on success the ids say so. */
int rig_write(struct rig *rig, uint64_t offset, uint64_t length, uint32_t id, unsigned flags);
/* A window of the background action; its result. */
int rig_window(struct rig *rig, enum engine_action action, uint64_t first, uint64_t end);
/* All of it, in windows; devices that rebuild are in sync afterwards. The worst result. */
int rig_walk(struct rig *rig, enum engine_action action);

/* A fault on bytes of the data of the device in @slot. */
void rig_fault(struct rig *rig, unsigned slot, unsigned ops, uint64_t offset, uint64_t length,
	int error, unsigned times);
/* Change a sector of a slot's data behind everybody's back. */
void rig_damage(struct rig *rig, unsigned slot, uint64_t offset, uint8_t xor_with);
uint64_t rig_reads(struct rig *rig);
uint64_t rig_writes(struct rig *rig);

#endif
