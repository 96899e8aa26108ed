/* SPDX-License-Identifier: MIT */
#include "control/assembled.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

#include "control/redundancy.h"
#include "util/cleanup.h"
#include "util/rounding.h"

#define ERRORS_ALL_LOGGED 10u /* per slot; a dead disk must not fill the log */

static const char *const what[] = {
	[WORLD_READ] = "read",
	[WORLD_WRITE] = "write",
	[WORLD_FLUSH] = "flush",
	[WORLD_DISCARD] = "discard",
	[WORLD_ZERO] = "zeroing",
};

/*
 * Devices of an array with redundancy have numbers of their own; there is always a member behind
 * one that has just failed an I/O.
 */
static const struct member *member_of(const struct assembled *assembled, unsigned device)
{
	struct engine_device_status status;

	if (assembled->engine == NULL || engine_device_max(assembled->engine) == 0)
		return assembled->members[assembled->assembly->slots[device].candidate];
	engine_device_status(assembled->engine, device, &status);
	return assembled->members[status.member];
}

static uint64_t errors_of(const struct assembled *assembled, unsigned device)
{
	struct engine_device_status status;

	if (engine_device_max(assembled->engine) == 0)
		return engine_slot_counters(assembled->engine, device)->errors;
	engine_device_status(assembled->engine, device, &status);
	return status.errors;
}

static void log_member_error(void *owner, unsigned device, const struct world_io *io, int error)
{
	const struct assembled *assembled = owner;
	uint64_t errors = errors_of(assembled, device);

	if (errors > ERRORS_ALL_LOGGED && !is_power_of_two(errors))
		return;
	syslog(LOG_DAEMON | LOG_ERR,
		"strake: array %s: device %u (%s): %s of %" PRIu64 " bytes at byte %" PRIu64
		": %s (%" PRIu64 " errors so far)",
		assembled->name, device, member_of(assembled, device)->path, what[io->op],
		io->length_bytes, io->offset_bytes, strerror(-error), errors);
}

static void log_event(void *owner, const char *text)
{
	const struct assembled *assembled = owner;

	syslog(LOG_DAEMON | LOG_NOTICE, "strake: array %s: %s", assembled->name, text);
}

static int gather_slots(const struct md_assembly *assembly, struct engine_slot **ret)
{
	struct engine_slot *slots = calloc(assembly->slot_count + 1, sizeof(*slots));

	if (slots == NULL)
		return -ENOMEM;
	for (unsigned i = 0; i < assembly->slot_count; i++)
		slots[i] = (struct engine_slot){
			.member = (unsigned)assembly->slots[i].candidate,
			.data_offset_bytes = assembly->slots[i].data_offset_bytes,
			.data_bytes = assembly->slots[i].data_bytes,
		};
	*ret = slots;
	return 0;
}

/* What a bitmap that is not to be trusted means for the start goes to the log. */
static int gather(struct assembled *assembled, struct redundancy *redundancy, struct fault *fault)
{
	_cleanup_free_ struct fault *note = calloc(1, sizeof(*note));
	int r;

	if (note == NULL)
		return fault_set(fault, -ENOMEM, "out of memory");
	r = redundancy_gather(assembled->assembly, assembled->members, redundancy, note, fault);
	if (assembled->name == NULL)
		return r;
	redundancy->engine.event = log_event;
	if (note->text[0] != '\0')
		log_event(assembled, note->text);
	return r;
}

int assembled_engine_new(
	struct assembled *assembled, struct world *world, struct engine **ret, struct fault *fault)
{
	const struct md_assembly *assembly = assembled->assembly;
	_cleanup_(redundancy_free) struct redundancy redundancy = {0};
	_cleanup_free_ struct engine_slot *slots = NULL;
	struct engine_config config = {
		.level = assembly->level,
		.layout = assembly->layout,
		.chunk_bytes = assembly->chunk_bytes,
		.slot_count = assembly->slot_count,
		.readonly = assembled->readonly,
		.requests_max = assembled->requests_max,
		.member_error = assembled->name != NULL ? log_member_error : NULL,
		.owner = assembled,
	};
	int r = gather_slots(assembly, &slots);

	config.slots = slots;
	if (r < 0)
		return fault_set(
			fault, -ENOMEM, "out of memory for %u slots", assembly->slot_count);
	if (engine_level_is_redundant(assembly->level)) {
		r = gather(assembled, &redundancy, fault);
		config.redundancy = &redundancy.engine;
	}
	if (r == 0)
		r = engine_new(&config, world, &assembled->engine, fault);
	if (r == 0)
		*ret = assembled->engine;
	return r;
}
