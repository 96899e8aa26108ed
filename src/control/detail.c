/* SPDX-License-Identifier: MIT */
#include "control/detail.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "control/detail_internal.h"
#include "geometry/geometry.h"
#include "util/cleanup.h"
#include "util/rounding.h"

static void take_redundancy(const struct engine *engine, struct detail_counters *ret)
{
	ret->device_count = 0;
	ret->redundant = engine_status(engine, &ret->status);
	if (!ret->redundant)
		return;
	memcpy(ret->mismatches, ret->status.mismatches,
		ret->status.mismatch_count * sizeof(*ret->mismatches));
	ret->status.mismatches = ret->mismatches;
	ret->device_count = (unsigned)min_u64(engine_device_max(engine), DETAIL_DEVICES_MAX);
	for (unsigned i = 0; i < ret->device_count; i++)
		engine_device_status(engine, i, &ret->devices[i]);
}

void detail_take(const struct engine *engine, unsigned slot_count, struct detail_counters *ret)
{
	ret->total = *engine_counters(engine);
	ret->array_bytes = engine_array_bytes(engine);
	ret->stripe_bytes = engine_stripe_bytes(engine);
	ret->engine_memory_bytes = engine_memory(engine);
	ret->broken = engine_is_broken(engine);
	ret->slot_count = slot_count;
	for (unsigned i = 0; i < slot_count; i++)
		ret->slots[i] = *engine_slot_counters(engine, i);
	take_redundancy(engine, ret);
}

json_t *detail_string(const char *text)
{
	json_t *ret = json_string(text);
	char *escaped, *end;

	if (ret != NULL)
		return ret;
	escaped = malloc(4 * strlen(text) + 1);
	if (escaped == NULL)
		return NULL;
	for (end = escaped; *text != '\0'; text++) {
		if ((unsigned char)*text >= 0x80)
			end += sprintf(end, "\\%03o", (unsigned char)*text);
		else
			*end++ = *text;
	}
	*end = '\0';
	ret = json_string(escaped);
	free(escaped);
	return ret;
}

/* jansson's setters refuse a NULL value, which is how an allocation that failed arrives. */
static json_t *optional_text(const char *text)
{
	return text != NULL ? detail_string(text) : json_null();
}

static json_t *optional_size(uint64_t bytes)
{
	return bytes != 0 ? json_integer((json_int_t)bytes) : json_null();
}

int detail_set_all(json_t *object, json_t *part)
{
	int r = part == NULL ? -1 : json_object_update(object, part);

	json_decref(part);
	return r;
}

static unsigned zone_count(const struct md_assembly *assembly)
{
	uint64_t *slot_bytes = calloc(assembly->slot_count, sizeof(*slot_bytes));
	struct geometry_config config = {
		.level = assembly->level,
		.layout = assembly->layout,
		.chunk_bytes = assembly->chunk_bytes,
		.slots = assembly->slot_count,
		.slot_bytes = slot_bytes,
	};
	struct geometry *geometry = NULL;
	unsigned zones = 0;

	for (unsigned i = 0; slot_bytes != NULL && i < assembly->slot_count; i++)
		slot_bytes[i] = assembly->slots[i].data_bytes;
	if (slot_bytes != NULL && geometry_new(&config, &geometry, NULL) == 0) {
		zones = geometry_zone_count(geometry);
		geometry_free(geometry);
	}
	free(slot_bytes);
	return zones;
}

/* As md's array_state has it; what has failed beyond the redundancy tells "failed". */
static const char *state_of(const struct detail_counters *counters)
{
	if (counters->redundant)
		return counters->status.active ? "active" : "clean";
	return counters->broken ? "broken" : "clean";
}

static json_t *identity(const struct detail_facts *facts, const struct detail_counters *counters)
{
	return json_pack("{s:b, s:o, s:o, s:o, s:s, s:i, s:b, s:s, s:s}", "ok", true, "name",
		detail_string(facts->name), "node", detail_string(facts->node), "device",
		optional_text(facts->device), "export", facts->export, "pid", (int)getpid(),
		"readonly", counters->redundant ? counters->status.readonly : facts->readonly, "io",
		facts->io, "state", state_of(counters));
}

/*
 * How much of each member is used, as md tells it: for RAID 10 without what is left over where the
 * copies do not fill the members evenly.
 */
static uint64_t component_bytes(
	const struct md_assembly *assembly, const struct detail_counters *counters)
{
	const uint64_t chunk = assembly->chunk_bytes, slots = assembly->slot_count;
	const uint64_t copies = (assembly->layout & 0xff) * (assembly->layout >> 8 & 0xff);

	if (assembly->level <= 0)
		return assembly->super->size_sectors * MD_SECTOR;
	if (assembly->level != 10 || chunk == 0)
		return assembly->component_bytes;
	return (counters->array_bytes / chunk * copies + slots - 1) / slots * chunk;
}

static json_t *shape(const struct detail_facts *facts, const struct detail_counters *counters)
{
	const struct md_assembly *assembly = facts->assembly;
	const struct md_super *super = assembly->super;
	char buffer[32];

	return json_pack("{s:o, s:s, s:i, s:o, s:I, s:i, s:I, s:I, s:I, s:o}", "metadata",
		optional_text(facts->persistent ? md_format(super->version)->name : NULL), "level",
		md_level_name(assembly->level), "level_number", assembly->level, "layout",
		optional_text(md_layout_name(assembly->level, assembly->layout, buffer)),
		"layout_number", (json_int_t)assembly->layout, "zones", (int)zone_count(assembly),
		"chunk_bytes", (json_int_t)assembly->chunk_bytes, "stripe_bytes",
		(json_int_t)counters->stripe_bytes, "array_bytes",
		(json_int_t)counters->array_bytes, "component_bytes",
		optional_size(component_bytes(assembly, counters)));
}

/* Levels without redundancy: every member has a slot, from start to end. */
static json_t *census(const struct detail_facts *facts)
{
	unsigned slots = facts->assembly->slot_count;
	unsigned active = slots - facts->assembly->missing_count;
	unsigned total = facts->member_count;

	return json_pack("{s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:b, s:s, s:n, s:n, s:n}",
		"raid_devices", (int)slots, "total_devices", (int)total, "active_devices",
		(int)active, "working_devices", (int)total, "failed_devices", 0, "spare_devices",
		(int)(total > active ? total - active : 0), "degraded_devices",
		(int)(slots - active), "failed", false, "consistency_policy", "none", "bitmap",
		"resync_offset_bytes", "sync");
}

/* md's times keep seconds in the low 40 bits. */
static json_int_t seconds(uint64_t md_time)
{
	return (json_int_t)(md_time & ((1ull << 40) - 1));
}

static json_t *origin(const struct detail_facts *facts, const struct detail_counters *counters)
{
	const struct md_super *super = facts->assembly->super;
	const struct engine_status *status = &counters->status;
	bool old = super->version == MD_VERSION_0_90;
	char uuid[MD_UUID_TEXT];

	if (!facts->persistent)
		return json_pack("{s:n, s:n, s:n, s:n, s:n, s:n}", "uuid", "array_name",
			"preferred_minor", "events", "creation_time", "update_time");
	return json_pack("{s:s, s:o, s:o, s:I, s:I, s:I}", "uuid",
		md_uuid_format(super->set_uuid, uuid), "array_name",
		optional_text(old ? NULL : super->name), "preferred_minor",
		old ? json_integer(super->v090.md_minor) : json_null(), "events",
		(json_int_t)(counters->redundant ? status->events : super->events), "creation_time",
		seconds(super->ctime), "update_time",
		counters->redundant ? (json_int_t)status->update_seconds : seconds(super->utime));
}

static json_t *service(const struct detail_facts *facts, const struct detail_counters *counters)
{
	uint32_t block = facts->assembly->logical_block_bytes;

	return json_pack("{s:I, s:I, s:{s:I, s:I, s:I}}", "readahead_bytes",
		(json_int_t)facts->readahead_bytes, "logical_block_bytes",
		(json_int_t)(block != 0 ? block : MD_SECTOR), "memory_bytes", "engine",
		(json_int_t)counters->engine_memory_bytes, "reactor",
		(json_int_t)facts->reactor_memory_bytes, "export",
		(json_int_t)facts->export_memory_bytes);
}

/* The descriptor number that holds @slot: the index in the freshest superblock's roles. */
static int slot_number(const struct md_super *super, unsigned slot)
{
	for (unsigned i = 0; i < super->role_count && i < MD_ROLES_MAX; i++)
		if (super->roles[i] == slot)
			return (int)i;
	return (int)slot;
}

/* Does no directory name it any more? Of a device this is the node, which goes when it is pulled.
 */
bool detail_is_deleted(const struct member *member)
{
	struct stat st;

	return fstat(member->fd, &st) == 0 && st.st_nlink == 0;
}

/* Whoever asks stands in another directory than whoever named the member. */
const char *detail_path(const struct member *member, char buffer[PATH_MAX])
{
	static const char deleted[] = " (deleted)"; /* what the kernel writes behind the path */
	char link[32];
	ssize_t n;

	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", member->fd);
	n = member->path[0] == '/' || member->network != NULL
		    ? 0
		    : readlink(link, buffer, PATH_MAX - 1);
	if (n <= 0)
		return member->path;
	buffer[n] = '\0';
	if (detail_is_deleted(member) && (size_t)n > strlen(deleted))
		buffer[(size_t)n - strlen(deleted)] = '\0';
	return buffer;
}

static json_t *member_json(
	const struct detail_facts *facts, const struct detail_counters *counters, unsigned slot)
{
	const struct md_assembly_slot *place = &facts->assembly->slots[slot];
	const struct engine_slot_counters *c = &counters->slots[slot];
	const struct member *member = facts->members[place->candidate];
	char path[PATH_MAX];

	return json_pack(
		"{s:o, s:i, s:i, s:s, s:b, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}",
		"path", detail_string(detail_path(member, path)), "slot", (int)slot, "number",
		slot_number(facts->assembly->super, slot), "state", "active sync", "deleted",
		detail_is_deleted(member), "major", (json_int_t)member->major, "minor",
		(json_int_t)member->minor, "size_bytes", (json_int_t)member->size_bytes,
		"data_offset_bytes", (json_int_t)place->data_offset_bytes, "data_bytes",
		(json_int_t)place->data_bytes, "errors", (json_int_t)c->errors, "reads",
		(json_int_t)c->reads, "writes", (json_int_t)c->writes, "read_bytes",
		(json_int_t)c->read_bytes, "written_bytes", (json_int_t)c->written_bytes);
}

static json_t *members_json(
	const struct detail_facts *facts, const struct detail_counters *counters)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < facts->assembly->slot_count; i++)
		if (facts->assembly->slots[i].candidate >= 0 &&
			facts->members[facts->assembly->slots[i].candidate] != NULL &&
			json_array_append_new(list, member_json(facts, counters, i)) < 0) {
			json_decref(list);
			return NULL;
		}
	return list;
}

static json_t *partitions_json(const struct detail_facts *facts)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < facts->partition_count; i++) {
		const struct detail_partition *p = &facts->partitions[i];

		if (json_array_append_new(list,
			    json_pack("{s:i, s:s, s:I, s:I}", "number", (int)p->number, "node",
				    p->node, "start_bytes", (json_int_t)p->start_bytes,
				    "length_bytes", (json_int_t)p->length_bytes)) < 0) {
			json_decref(list);
			return NULL;
		}
	}
	return list;
}

static json_t *counters_json(const struct engine_counters *c)
{
	static const char *const names[] = {
		[ENGINE_READ] = "read",
		[ENGINE_WRITE] = "write",
		[ENGINE_FLUSH] = "flush",
		[ENGINE_DISCARD] = "discard",
		[ENGINE_ZERO] = "zero",
	};
	json_t *object = json_pack("{s:I}", "errors", (json_int_t)c->errors);

	for (unsigned op = 0; op < sizeof(names) / sizeof(names[0]); op++) {
		json_t *one = json_pack("{s:I}", "requests", (json_int_t)c->requests[op]);

		if (op != ENGINE_FLUSH)
			(void)json_object_set_new(one, "bytes",
				json_integer((json_int_t)c->bytes[op])); /* checked with @one */
		if (json_object_set_new(object, names[op], one) < 0) {
			json_decref(object);
			return NULL;
		}
	}
	return object;
}

json_t *detail_make(const struct detail_facts *facts, const struct detail_counters *counters)
{
	json_t *object = json_object();

	if (detail_set_all(object, identity(facts, counters)) == 0 &&
		detail_set_all(object, shape(facts, counters)) == 0 &&
		detail_set_all(object, counters->redundant ? detail_redundancy(facts, counters)
							   : census(facts)) == 0 &&
		detail_set_all(object, origin(facts, counters)) == 0 &&
		detail_set_all(object, service(facts, counters)) == 0 &&
		json_object_set_new(object, "members",
			counters->redundant ? detail_devices(facts, counters)
					    : members_json(facts, counters)) == 0 &&
		json_object_set_new(object, "partitions", partitions_json(facts)) == 0 &&
		json_object_set_new(object, "counters", counters_json(&counters->total)) == 0)
		return object;
	json_decref(object);
	return NULL;
}

json_t *detail_ok(void)
{
	return json_pack("{s:b}", "ok", true);
}

json_t *detail_error(const struct fault *fault)
{
	return json_pack(
		"{s:b, s:i, s:s}", "ok", false, "errno", -fault->error, "error", fault->text);
}
