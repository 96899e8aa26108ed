/* SPDX-License-Identifier: MIT */
#ifndef STRAKE_ENGINE_SYNC_RIG_TEST_H
#define STRAKE_ENGINE_SYNC_RIG_TEST_H

/*
 * For tests of the background action by itself: over a level whose windows do what a test says,
 * and a record that only notes what it is asked. (The linker puts both in the place of the real
 * ones.)
 */

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "engine/devices.h"
#include "engine/record.h"
#include "engine/sync.h"
#include "util/rounding.h"

struct sim;

#define K 1024u
#define WINDOW SYNC_WINDOW_BYTES
#define DISKS 6u
#define WINDOWS 40u /* of the fake array */
#define COMPONENT (uint64_t)(WINDOWS * WINDOW - 12 * K)
#define SECOND_NS UINT64_C(1000000000)

struct rig {
	struct sim *sim;
	struct engine *engine;
	struct engine_device devices[DISKS];
	struct engine_redundancy redundancy;
	struct engine_config config;
	struct engine_level level;

	/* The level. */
	bool hold; /* windows end only when the test says so */
	struct sync_window *held[SYNC_WINDOWS_MAX];
	unsigned held_count;
	struct world_io ios[SYNC_WINDOWS_MAX];
	struct iovec iovs[SYNC_WINDOWS_MAX];
	uint8_t buffer[WINDOW];
	unsigned issued[WINDOWS + 1]; /* how often, by window */
	/* The write of each window: it is durable when its device was flushed up to here. */
	uint64_t stamps[WINDOWS + 1];
	unsigned stamp_devices[WINDOWS + 1];
	uint64_t latest_first;
	enum engine_action latest_action;
	unsigned in_flight, most_in_flight;
	uint64_t lost_at; /* windows around this byte fail */
	unsigned lost_device;
	unsigned mismatch_every; /* windows with a number that this divides have one */

	/* The record. */
	unsigned changes;
	bool has_bitmap;
	bool needs[WINDOWS]; /* one bit per window */
	uint64_t synced_bytes;

	char events[64][200];
	unsigned event_count;
	bool stopped;
};

/* @slots slots with a device each, and @spares spares. */
void rig_init(struct rig *rig, int level, unsigned slots, unsigned spares);
void rig_start(struct rig *rig);
void rig_fini(struct rig *rig);
/* A held window ends. */
void release(struct rig *rig, unsigned index);
bool has_event(const struct rig *rig, const char *words);
struct engine_status status_of(const struct rig *rig);
enum engine_device_state state_of(const struct rig *rig, unsigned device);
/* Until nothing is to be done any more: every action ends. */
void run_out(struct rig *rig);
/* Until @count windows have been issued since forget_windows(). */
void run_windows(struct rig *rig, unsigned count);
void forget_windows(struct rig *rig);
/* The windows from number @first to @end were issued once, the others not. */
void assert_issued(const struct rig *rig, unsigned first, unsigned end);
int command(struct rig *rig, struct engine_command *command);
int fail_device(struct rig *rig, unsigned device);

#endif
