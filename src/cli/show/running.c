/* SPDX-License-Identifier: MIT */

#include "cli/show/running.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "cli/show/format.h"
#include "control/control.h"
#include "control/runtime.h"
#include "md/super.h"
#include "util/cleanup.h"

static void jsonp_decref(json_t **json)
{
	json_decref(*json);
}

#define _cleanup_json_ _cleanup_(jsonp_decref)

const char *fact_string(const json_t *reply, const char *key, const char *absent)
{
	const char *value = json_string_value(json_object_get(reply, key));

	return value != NULL ? value : absent;
}

uint64_t fact_number(const json_t *reply, const char *key)
{
	return (uint64_t)json_integer_value(json_object_get(reply, key));
}

bool fact_is_set(const json_t *reply, const char *key)
{
	const json_t *value = json_object_get(reply, key);

	return value != NULL && !json_is_null(value);
}

bool fact_is_redundant(const json_t *reply)
{
	return json_integer_value(json_object_get(reply, "level_number")) > 0;
}

/* mdstat has no word of its own for repair. */
static const char *kind_of(const char *action)
{
	static const char *const kinds[][2] = {{"recover", "recovery"}, {"resync", "resync"},
		{"repair", "resync"}, {"check", "check"}};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (strcmp(action, kinds[i][0]) == 0)
			return kinds[i][1];
	return NULL;
}

/* The kernel counts parts of 1024 sectors for the percentage, and one more than there are. */
#define SYNC_SCALE (UINT64_C(1024) * MD_SECTOR)

struct running_sync fact_sync(const json_t *reply)
{
	const json_t *sync = json_object_get(reply, "sync");
	struct running_sync ret = {
		.kind = kind_of(fact_string(sync, "action", "idle")),
		.position_bytes = fact_number(sync, "position_bytes"),
		.total_bytes = fact_number(sync, "total_bytes"),
		.speed_bytes_s = fact_number(sync, "speed_bytes_s"),
	};

	if (ret.kind == NULL && fact_is_set(reply, "resync_offset_bytes"))
		ret = (struct running_sync){.kind = "resync", .pending = true};
	ret.permille = (unsigned)((ret.position_bytes / SYNC_SCALE) * 1000 /
				  (ret.total_bytes / SYNC_SCALE + 1));
	if (ret.permille > 1000)
		ret.permille = 1000;
	return ret;
}

static int ask(const char *name, json_t **ret, struct fault *fault)
{
	_cleanup_json_ json_t *request = json_pack("{ss}", "command", "detail");

	if (request == NULL)
		return fault_set(fault, -ENOMEM, "%s: out of memory", name);
	return control_call(name, request, ret, fault);
}

int running_all(json_t **ret, struct fault *fault)
{
	_cleanup_json_ json_t *names = NULL;
	_cleanup_json_ json_t *replies = json_array();
	json_t *name, *reply;
	size_t i;
	int r;

	r = control_list(&names, fault);
	if (r < 0)
		return r;
	json_array_foreach(names, i, name)
	{
		r = ask(json_string_value(name), &reply, fault);
		if (r == -ENOENT)
			continue; /* stopped since it was listed */
		if (r < 0)
			return r;
		json_array_append_new(replies, reply);
	}
	*ret = steal_ptr(replies);
	return 0;
}

/* Do both paths lead to the same place? */
static bool is_path_of(const char *place, const char *path)
{
	char a[PATH_MAX];

	return path != NULL && realpath(path, a) != NULL && strcmp(a, place) == 0;
}

static int find_by_path(const char *path, json_t **ret, struct fault *fault)
{
	_cleanup_json_ json_t *replies = NULL;
	char place[PATH_MAX];
	json_t *reply;
	size_t i;
	int r;

	if (realpath(path, place) == NULL)
		return fault_set(fault, -errno,
			"cannot open %s: %s; see 'strake status' for those that run", path,
			strerror(errno));
	r = running_all(&replies, fault);
	if (r < 0)
		return r;
	json_array_foreach(replies, i, reply)
	{
		if (!is_path_of(place, fact_string(reply, "node", NULL)) &&
			!is_path_of(place, fact_string(reply, "device", NULL)))
			continue;
		*ret = json_incref(reply);
		return 0;
	}
	return fault_set(fault, -ENODEV, "%s does not appear to be an md device", path);
}

int running_find(const char *word, json_t **ret, struct fault *fault)
{
	bool is_name = strchr(word, '/') == NULL || strncmp(word, "/dev/", 5) == 0;
	char name[NAME_MAX], link[PATH_MAX];
	int r;

	if (is_name && runtime_name(word, name, NULL) == 0) {
		r = ask(name, ret, fault);
		if (r != -ENOENT)
			return r;
		if (control_is_dead(name))
			return control_dead_fault(name, fault);
		runtime_link(name, link);
		if (strchr(word, '/') == NULL && access(word, F_OK) != 0)
			return fault_set(fault, -ENOENT,
				"cannot open %s: %s; see 'strake status' for those that run", link,
				strerror(ENOENT));
	}
	return find_by_path(word, ret, fault);
}

json_t *failure_json(const char *key, const char *word, const struct fault *fault)
{
	return json_pack("{s:b, s:o, s:i, s:o}", "ok", false, key,
		word != NULL ? json_text(word) : json_null(), "errno", -fault->error, "error",
		json_text(fault->text));
}

bool is_failure(const json_t *reply)
{
	return json_is_false(json_object_get(reply, "ok"));
}

static void add_failure(json_t *replies, const char *word, const struct fault *fault)
{
	fprintf(stderr, "strake: %s\n", fault->text);
	json_array_append_new(replies, failure_json("name", word, fault));
}

int running_gather(char *const *words, unsigned count, bool all, json_t **ret)
{
	struct fault fault = {0};
	json_t *reply;
	int failed = 0;

	if (all && running_all(ret, &fault) == 0)
		return 0;
	*ret = json_array();
	if (all) {
		add_failure(*ret, NULL, &fault);
		return 1;
	}
	for (unsigned i = 0; i < count; i++) {
		if (running_find(words[i], &reply, &fault) == 0) {
			json_array_append_new(*ret, reply);
			continue;
		}
		add_failure(*ret, words[i], &fault);
		failed = 1;
	}
	return failed;
}

void show_lost_members(const json_t *reply, bool stopped)
{
	json_t *member;
	size_t i;

	json_array_foreach(json_object_get(reply, "members"), i, member)
	{
		if (!json_is_true(json_object_get(member, "deleted")))
			continue;
		fprintf(stderr, "strake: %s: member ", fact_string(reply, "name", ""));
		print_clean(stderr, fact_string(member, "path", ""));
		if (stopped)
			fprintf(stderr, " had been deleted: its data went with the array\n");
		else if (fact_number(member, "major") != 0)
			fprintf(stderr, " is gone from /dev: has the device been taken away?\n");
		else
			fprintf(stderr, " has been deleted: its data is gone when the array stops; "
					"copy the array's content away first\n");
	}
}
