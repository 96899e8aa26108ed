/* SPDX-License-Identifier: MIT */
/* The detail JSON of arrays with redundancy: from what the engine says while it runs. */
#include <limits.h>

#include "control/detail_internal.h"

/* md's words, as in sync_action. */
static const char *const action_names[] = {
	[ENGINE_ACTION_IDLE] = "idle",
	[ENGINE_ACTION_RESYNC] = "resync",
	[ENGINE_ACTION_RECOVERY] = "recover",
	[ENGINE_ACTION_CHECK] = "check",
	[ENGINE_ACTION_REPAIR] = "repair",
	[ENGINE_ACTION_FROZEN] = "frozen",
};

static json_t *optional(bool is_there, uint64_t value)
{
	return is_there ? json_integer((json_int_t)value) : json_null();
}

struct census {
	int total, active, working, failed, spare;
};

/* md's counting: what is being rebuilt counts as a spare. */
static struct census count(const struct detail_counters *counters)
{
	struct census ret = {0};

	for (unsigned i = 0; i < counters->device_count; i++) {
		enum engine_device_state state = counters->devices[i].state;

		ret.total += state != ENGINE_DEVICE_FREE;
		ret.failed += state == ENGINE_DEVICE_FAULTY;
		ret.active += state == ENGINE_DEVICE_IN_SYNC;
		ret.spare += state == ENGINE_DEVICE_SPARE || state == ENGINE_DEVICE_REBUILDING;
	}
	ret.working = ret.total - ret.failed;
	return ret;
}

static json_t *bitmap_json(const struct engine_status *status)
{
	if (status->bitmap_chunk_bytes == 0)
		return json_null();
	return json_pack("{s:s, s:I, s:I, s:I}", "location", "internal", "chunk_bytes",
		(json_int_t)status->bitmap_chunk_bytes, "bits", (json_int_t)status->bitmap_bits,
		"dirty_bits", (json_int_t)status->bitmap_dirty);
}

static json_t *mismatches_json(const struct engine_status *status)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < status->mismatch_count; i++) {
		const struct engine_mismatch *m = &status->mismatches[i];

		(void)json_array_append_new(
			list, json_pack("{s:I, s:I, s:o}", "offset_bytes",
				      (json_int_t)m->sync_offset_bytes, "length_bytes",
				      (json_int_t)m->length_bytes, "slot",
				      optional(m->slot != ENGINE_NONE, m->slot)));
	}
	return list;
}

static json_t *sync_json(const struct engine_status *status)
{
	return json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:b, s:o}", "action",
		action_names[status->action], "position_bytes", (json_int_t)status->position_bytes,
		"total_bytes", (json_int_t)status->total_bytes, "speed_bytes_s",
		(json_int_t)status->speed_bytes_s, "speed_min_bytes_s",
		(json_int_t)status->sync_speed_min, "speed_max_bytes_s",
		(json_int_t)status->sync_speed_max, "mismatch_sectors",
		(json_int_t)status->mismatch_sectors, "mismatches_are_all",
		status->mismatch_count < ENGINE_MISMATCHES_MAX, "mismatches",
		mismatches_json(status));
}

json_t *detail_redundancy(const struct detail_facts *facts, const struct detail_counters *counters)
{
	const struct engine_status *status = &counters->status;
	const struct census census = count(counters);

	return json_pack("{s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:b, s:s, s:o, s:o, s:o}",
		"raid_devices", (int)facts->assembly->slot_count, "total_devices", census.total,
		"active_devices", census.active, "working_devices", census.working,
		"failed_devices", census.failed, "spare_devices", census.spare, "degraded_devices",
		(int)(status->slots - status->in_sync), "failed", status->failed,
		"consistency_policy", status->bitmap_chunk_bytes != 0 ? "bitmap" : "resync",
		"bitmap", bitmap_json(status), "resync_offset_bytes",
		optional(status->resync_bytes != UINT64_MAX, status->resync_bytes), "sync",
		sync_json(status));
}

/* mdadm's words; a faulty one has lost its slot. */
static const char *state_of(const struct engine_device_status *device)
{
	switch (device->state) {
	case ENGINE_DEVICE_IN_SYNC:
		return "active sync";
	case ENGINE_DEVICE_REBUILDING:
		return "spare rebuilding";
	case ENGINE_DEVICE_FAULTY:
		return "faulty";
	default:
		return "spare";
	}
}

static json_t *device_json(
	const struct engine_device_status *device, const struct member *member, bool persistent)
{
	bool has_slot = device->slot != ENGINE_NONE && device->state != ENGINE_DEVICE_FAULTY;
	bool rebuilds = device->state == ENGINE_DEVICE_REBUILDING;
	char path[PATH_MAX];

	return json_pack("{s:o, s:o, s:i, s:s, s:b, s:b, s:b, s:o, s:b, s:I, s:I, s:I, s:I, s:I, "
			 "s:I, s:I, s:I, s:I, s:I, s:I, s:i}",
		"path", detail_string(detail_path(member, path)), "slot",
		optional(has_slot, device->slot), "number",
		/* Where no superblock numbers the devices, mdadm does it by slot. */
		(int)(!persistent && has_slot ? device->slot : device->dev_number), "state",
		state_of(device), "replacement", device->replacement, "write_mostly",
		device->write_mostly, "failfast", device->failfast, "recovered_bytes",
		optional(rebuilds, device->recovered_bytes), "deleted", detail_is_deleted(member),
		"major", (json_int_t)member->major, "minor", (json_int_t)member->minor,
		"size_bytes", (json_int_t)member->size_bytes, "data_offset_bytes",
		(json_int_t)device->data_offset_bytes, "data_bytes", (json_int_t)device->data_bytes,
		"corrected_reads", (json_int_t)device->corrected_reads, "errors",
		(json_int_t)device->errors, "reads", (json_int_t)device->reads, "writes",
		(json_int_t)device->writes, "read_bytes", (json_int_t)device->read_bytes,
		"written_bytes", (json_int_t)device->written_bytes, "bad_ranges",
		(int)device->bad_ranges);
}

json_t *detail_devices(const struct detail_facts *facts, const struct detail_counters *counters)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < counters->device_count; i++) {
		const struct engine_device_status *device = &counters->devices[i];

		if (device->state == ENGINE_DEVICE_FREE || facts->members[device->member] == NULL)
			continue;
		if (json_array_append_new(list, device_json(device, facts->members[device->member],
							facts->persistent)) < 0) {
			json_decref(list);
			return NULL;
		}
	}
	return list;
}
