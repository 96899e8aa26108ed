/* SPDX-License-Identifier: MIT */
#include "control/assembled.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

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

static void log_member_error(void *owner, unsigned slot, const struct world_io *io, int error)
{
	const struct assembled *assembled = owner;
	const struct member *member = assembled
					      ->members[assembled->assembly->slots[slot].candidate];
	uint64_t errors = engine_slot_counters(assembled->engine, slot)->errors;

	if (errors > ERRORS_ALL_LOGGED && !is_power_of_two(errors))
		return;
	syslog(LOG_DAEMON | LOG_ERR,
		"strake: array %s: slot %u (%s): %s of %" PRIu64 " bytes at byte %" PRIu64
		": %s (%" PRIu64 " errors so far)",
		assembled->name, slot, member->path, what[io->op], io->length_bytes,
		io->offset_bytes, strerror(-error), errors);
}

int assembled_engine_new(
	struct assembled *assembled, struct world *world, struct engine **ret, struct fault *fault)
{
	const struct md_assembly *assembly = assembled->assembly;
	_cleanup_free_ struct engine_slot *slots = calloc(assembly->slot_count, sizeof(*slots));
	const struct engine_config config = {
		.level = assembly->level,
		.layout = assembly->layout,
		.chunk_bytes = assembly->chunk_bytes,
		.slot_count = assembly->slot_count,
		.slots = slots,
		.readonly = assembled->readonly,
		.requests_max = assembled->requests_max,
		.member_error = assembled->name != NULL ? log_member_error : NULL,
		.owner = assembled,
	};
	int r;

	if (slots == NULL)
		return fault_set(
			fault, -ENOMEM, "out of memory for %u slots", assembly->slot_count);
	for (unsigned i = 0; i < assembly->slot_count; i++)
		slots[i] = (struct engine_slot){
			.member = (unsigned)assembly->slots[i].candidate,
			.data_offset_bytes = assembly->slots[i].data_offset_bytes,
			.data_bytes = assembly->slots[i].data_bytes,
		};
	r = engine_new(&config, world, &assembled->engine, fault);
	if (r == 0)
		*ret = assembled->engine;
	return r;
}
