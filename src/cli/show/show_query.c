/* SPDX-License-Identifier: MIT */

/* strake query: one line about an array's node, about a member, or that it is neither. */

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/show/format.h"
#include "cli/show/running.h"
#include "io/member.h"
#include "probe/probe.h"
#include "util/cleanup.h"

void query_array(const char *word, const json_t *reply, FILE *out)
{
	uint64_t spares = fact_number(reply, "spare_devices");
	char size[FORMAT_SIZE_TEXT];

	fprintf(out,
		"%s: %s %s %" PRIu64 " devices, %" PRIu64
		" spare%s. Use strake --detail for more detail.\n",
		word, format_size_brief(fact_number(reply, "array_bytes"), true, size),
		fact_string(reply, "level", ""), fact_number(reply, "raid_devices"), spares,
		spares == 1 ? "" : "s");
}

/* Is the same device or file a member of this running array? */
static bool has_member(const json_t *reply, const char *path, const struct stat *device)
{
	const json_t *members = json_object_get(reply, "members");
	struct stat st;
	json_t *member;
	size_t i;

	json_array_foreach(members, i, member)
	{
		if (strcmp(fact_string(member, "path", ""), path) == 0)
			return true;
		if (stat(fact_string(member, "path", ""), &st) != 0)
			continue;
		if (S_ISBLK(device->st_mode) && S_ISBLK(st.st_mode) &&
			st.st_rdev == device->st_rdev)
			return true;
		if (st.st_dev == device->st_dev && st.st_ino == device->st_ino)
			return true;
	}
	return false;
}

/* The node of the running array that holds this device, copied to @node. */
static bool find_holder(const char *path, char node[PATH_MAX])
{
	struct fault fault = {0};
	json_t *replies = NULL, *reply;
	struct stat device = {0};
	bool is_found = false;
	size_t i;

	if ((stat(path, &device) != 0 && !member_is_network_word(path)) ||
		running_all(&replies, &fault) < 0)
		return false;
	json_array_foreach(replies, i, reply)
	{
		if (!has_member(reply, path, &device))
			continue;
		snprintf(node, PATH_MAX, "%s",
			fact_string(reply, "node", fact_string(reply, "name", "")));
		is_found = true;
		break;
	}
	json_decref(replies);
	return is_found;
}

static void query_member(const char *path, const struct md_super *super, FILE *out)
{
	char node[PATH_MAX];
	bool is_active = find_holder(path, node);

	fprintf(out,
		"%s: device %" PRIu32 " in %" PRIu32 " device %s %s %s.  Use strake --examine for "
		"more detail.\n",
		path, super->dev_number, super->raid_disks, is_active ? "active" : "inactive",
		md_level_name(super->level), is_active ? node : "array");
}

/* Reading failed: what it holds is not known. A damaged superblock is an answer. */
static bool is_unknown(int r)
{
	return r == -EIO || r == -ENOMEM;
}

static int query_path(const char *path, FILE *out)
{
	_cleanup_free_ struct md_super *super = calloc(1, sizeof(*super));
	struct fault fault = {0};
	struct member *member;
	struct stat st;
	int r;

	if ((stat(path, &st) != 0 && !member_is_network_word(path)) || super == NULL) {
		fprintf(stderr, "strake: cannot open %s: %s; check the name\n", path,
			strerror(errno));
		return 1;
	}
	fprintf(out, "%s: is not an md array\n", path);
	r = member_open(path, MEMBER_READONLY, &member, &fault);
	if (r == -EISDIR || r == -ENOTBLK)
		return 0;
	if (r < 0) {
		fprintf(stderr, "strake: %s\n", fault.text);
		return 1;
	}
	r = probe_read_super(member, super, &fault);
	member_close(member);
	if (r == 0)
		query_member(path, super, out);
	else if (r != -ENODATA)
		fprintf(stderr, "strake: %s\n", fault.text);
	return is_unknown(r);
}

static json_t *member_json(const char *word, const struct md_super *super)
{
	char uuid[MD_UUID_TEXT], node[PATH_MAX];

	return json_pack("{sI, sI, ss, ss, so}", "device_number", (json_int_t)super->dev_number,
		"raid_devices", (json_int_t)super->raid_disks, "level", md_level_name(super->level),
		"uuid", md_uuid_format(super->set_uuid, uuid), "array_node",
		find_holder(word, node) ? json_text(node) : json_null());
}

/* A directory or the like can be opened, and is neither array nor member, as in the text. */
static int query_json_one(const char *word, json_t *list)
{
	_cleanup_free_ struct md_super *super = calloc(1, sizeof(*super));
	json_t *reply = NULL, *one;
	struct fault fault = {0};
	struct member *member;
	int r;

	one = json_pack("{so, sn, sn}", "path", json_text(word), "array", "member");
	if (running_find(word, &reply, &fault) == 0) {
		json_object_set_new(one, "array", reply);
		return json_array_append_new(list, one);
	}
	r = super == NULL ? fault_set(&fault, -ENOMEM, "%s: out of memory", word)
			  : member_open(word, MEMBER_READONLY, &member, &fault);
	if (r < 0 && r != -EISDIR && r != -ENOTBLK) {
		fprintf(stderr, "strake: %s\n", fault.text);
		json_decref(one);
		json_array_append_new(list, failure_json("path", word, &fault));
		return 1;
	}
	if (r == 0) {
		r = probe_read_super(member, super, &fault);
		if (r == 0)
			json_object_set_new(one, "member", member_json(word, super));
		if (is_unknown(r))
			fprintf(stderr, "strake: %s\n", fault.text);
		member_close(member);
	}
	return json_array_append_new(list, one) < 0 || is_unknown(r);
}

static int query_json(char *const *paths, unsigned count, FILE *out)
{
	json_t *list = json_array();
	int ret = 0;

	for (unsigned i = 0; i < count; i++)
		ret |= query_json_one(paths[i], list) != 0;
	print_json(out, list);
	json_decref(list);
	return ret;
}

int show_query(char *const *paths, unsigned count, const struct show_options *options)
{
	struct fault fault = {0};
	json_t *reply;
	int ret = 0;

	if (options->form == SHOW_JSON)
		return query_json(paths, count, options->out);
	for (unsigned i = 0; i < count; i++) {
		if (running_find(paths[i], &reply, &fault) == 0) {
			query_array(paths[i], reply, options->out);
			json_decref(reply);
		} else if (query_path(paths[i], options->out) != 0) {
			ret = 1;
		}
	}
	return ret;
}
