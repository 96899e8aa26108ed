/* SPDX-License-Identifier: MIT */

/* examine: the JSON form; docs/json.md describes it. */

#include <inttypes.h>

#include "cli/show/examine.h"
#include "cli/show/format.h"

static json_t *sectors(uint64_t count)
{
	return json_integer((json_int_t)(count * MD_SECTOR));
}

static json_t *sectors_if(bool known, uint64_t count)
{
	return known ? sectors(count) : json_null();
}

static json_t *hex(uint32_t value)
{
	return json_sprintf("%08" PRIx32, value);
}

static json_t *features(uint32_t map)
{
	static const char *const names[] = {"bitmap", "recovery-offset", "reshape", "bad-blocks",
		"replacement", "reshape-backwards", "new-offset", "recovery-bitmap", "clustered",
		"journal", "ppl", "multiple-ppl", "raid0-layout"};
	json_t *list = json_array();

	for (unsigned bit = 0; bit < 32; bit++) {
		if ((map & (1u << bit)) == 0)
			continue;
		if (bit < sizeof(names) / sizeof(names[0]))
			json_array_append_new(list, json_string(names[bit]));
		else
			json_array_append_new(list, json_sprintf("unknown-0x%x", 1u << bit));
	}
	return list;
}

static json_t *layout(int level, uint32_t number)
{
	char buffer[32];
	const char *name = md_layout_name(level, number, buffer);

	return name != NULL ? json_string(name) : json_null();
}

static json_t *reshape(const struct md_super *super)
{
	if ((super->feature_map & MD_FEATURE_RESHAPE) == 0)
		return json_null();
	return json_pack("{so, si, si, ss, so, sI, sI}", "position_bytes",
		sectors(super->reshape_position), "delta_devices", super->delta_disks,
		"new_level_number", super->new_level, "new_level", md_level_name(super->new_level),
		"new_layout", layout(super->new_level, super->new_layout), "new_layout_number",
		(json_int_t)super->new_layout, "new_chunk_bytes",
		(json_int_t)super->new_chunk_sectors * MD_SECTOR);
}

static json_t *areas(const struct md_super *super)
{
	bool has_ppl = (super->feature_map & (MD_FEATURE_PPL | MD_FEATURE_MULTIPLE_PPL)) != 0;
	bool has_log = super->bblog_sectors != 0 && super->bblog_offset != 0;
	json_t *ppl = json_null(), *log = json_null();

	if (has_ppl)
		ppl = json_pack("{sI, sI}", "offset_bytes",
			(json_int_t)super->ppl_offset * (json_int_t)MD_SECTOR, "length_bytes",
			(json_int_t)super->ppl_sectors * MD_SECTOR);
	if (has_log)
		log = json_pack("{sI, si, sb}", "offset_bytes",
			(json_int_t)super->bblog_offset * (json_int_t)MD_SECTOR, "entries",
			(int)(super->bblog_sectors * (MD_SECTOR / 8)), "bad_blocks_present",
			(int)((super->feature_map & MD_FEATURE_BAD_BLOCKS) != 0));
	return json_pack("{so, so, so}", "bitmap_offset_bytes",
		(super->feature_map & MD_FEATURE_BITMAP) != 0 && super->version != MD_VERSION_0_90
			? json_integer((json_int_t)super->bitmap_offset * (json_int_t)MD_SECTOR)
			: json_null(),
		"ppl", ppl, "bad_block_log", log);
}

static const char *role_name(const struct md_super *super)
{
	unsigned role = md_super_role(super);

	if (role == MD_ROLE_JOURNAL)
		return "journal";
	if (role == MD_ROLE_FAULTY)
		return "faulty";
	if (role > MD_ROLE_SLOT_MAX)
		return "spare";
	return (super->feature_map & MD_FEATURE_REPLACEMENT) != 0 ? "replacement" : "active";
}

static json_t *array_facts(const struct md_super *super, const char *homehost)
{
	char uuid[MD_UUID_TEXT];
	uint64_t bytes;
	bool sized = examine_array_bytes(super, &bytes);

	return json_pack("{ss, sI, so, ss, so, sb, sI, ss, si, so, sI, sI, sI, so, so}", "metadata",
		md_format(super->version)->name, "feature_map", (json_int_t)super->feature_map,
		"features", features(super->feature_map), "uuid",
		md_uuid_format(super->set_uuid, uuid), "array_name",
		super->name[0] != '\0' ? json_text(super->name) : json_null(), "local",
		(int)examine_is_local(super, homehost), "creation_time",
		(json_int_t)examine_seconds(super->ctime), "level", md_level_name(super->level),
		"level_number", super->level, "layout", layout(super->level, super->layout),
		"layout_number", (json_int_t)super->layout, "raid_devices",
		(json_int_t)super->raid_disks, "chunk_bytes",
		(json_int_t)super->chunk_sectors * MD_SECTOR, "array_bytes",
		sized ? json_integer((json_int_t)bytes) : json_null(), "component_bytes",
		sectors_if(super->level > 0, super->size_sectors));
}

static json_t *member_facts(const struct examine_device *device)
{
	const struct md_super *super = &device->super;
	struct examine_unused unused = examine_unused(device);
	unsigned role = md_super_role(super);
	bool is_old = super->version == MD_VERSION_0_90;
	bool moves = (super->feature_map & MD_FEATURE_NEW_OFFSET) != 0;
	bool recovers = (super->feature_map & MD_FEATURE_RECOVERY_OFFSET) != 0;
	char uuid[MD_UUID_TEXT];

	return json_pack("{so, so, so, so, so, so, so, so, sI, ss, so, sb, sb}",
		"super_offset_bytes", sectors(super->super_offset), "data_offset_bytes",
		sectors(super->data_offset), "data_bytes", sectors(super->data_sectors),
		"new_data_offset_bytes",
		sectors_if(moves, super->data_offset + (uint64_t)(int64_t)super->new_offset),
		"recovery_offset_bytes", sectors_if(recovers, super->recovery_offset),
		"unused_before_bytes", sectors_if(unused.known, unused.before),
		"unused_after_bytes", sectors_if(unused.known, unused.after), "device_uuid",
		is_old ? json_null() : json_string(md_uuid_format(super->device_uuid, uuid)),
		"device_number", (json_int_t)super->dev_number, "role", role_name(super), "slot",
		role <= MD_ROLE_SLOT_MAX ? json_integer(role) : json_null(), "write_mostly",
		(int)((super->devflags & MD_DEVFLAG_WRITE_MOSTLY) != 0), "failfast",
		(int)((super->devflags & MD_DEVFLAG_FAILFAST) != 0));
}

static json_t *state_facts(const struct md_super *super)
{
	uint32_t block = super->logical_block_bytes;
	char slots[MD_ROLES_MAX + 1];
	bool clean = super->resync_offset == MD_CLEAN;
	bool is_consistent = examine_array_state(super, slots);

	return json_pack("{ss, so, sI, sI, ss, sb, so, so, sb, so, so, so}", "state",
		clean ? "clean" : "active", "resync_offset_bytes",
		sectors_if(!clean, super->resync_offset), "update_time",
		(json_int_t)examine_seconds(super->utime), "events", (json_int_t)super->events,
		"array_state", slots, "array_state_consistent", (int)is_consistent, "checksum",
		hex(super->checksum), "checksum_expected", hex(super->checksum_expected),
		"checksum_correct", (int)(super->checksum == super->checksum_expected), "reshape",
		reshape(super), "logical_block_bytes",
		block != 0 ? json_integer(block) : json_null(), "needs_kernel",
		block != 0 ? json_string("6.19") : json_null());
}

json_t *examine_json(const struct examine_device *device, const char *homehost)
{
	json_t *ret = json_pack("{so, so}", "path", json_text(device->path), "device_bytes",
		sectors(device->device_sectors));
	json_t *parts[] = {array_facts(&device->super, homehost), member_facts(device),
		state_facts(&device->super), areas(&device->super)};

	for (unsigned i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		json_object_update_missing(ret, parts[i]);
		json_decref(parts[i]);
	}
	return ret;
}
