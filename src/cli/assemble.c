/* SPDX-License-Identifier: MIT */

/*
 * assemble: from members to a running array. Only reads, but with --force.
 *
 * Members are either named, or found: by UUID, by name, or (--scan) all there are, grouped by UUID.
 * Finding opens devices without taking them; the members of each array are then taken exclusively
 * and read again.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/run.h"
#include "cli/say.h"
#include "cli/start.h"
#include "control/control.h"
#include "control/detail.h"
#include "probe/probe.h"
#include "util/cleanup.h"

/* A device with a superblock that was met while looking for members. */
struct found {
	char *path; /* owned by the scan's list */
	uint8_t uuid[16];
	char name[MD_NAME_MAX + 1];
	bool done;
};

struct search {
	const struct cli_options *options;
	const char *running_name; /* only arrays that would run under this name; NULL: any */
	char **paths;
	unsigned path_count;
	struct found *found;
	unsigned found_count;
	json_t *running;  /* UUID texts of the running arrays */
	json_t *started;  /* UUID texts of those that this command has started */
	json_t *failures; /* of the present round: words */
	bool again;       /* not the first round: what is to be said of devices was said */
	struct fault *fault;
};

/* A round begins with what there is now. */
static void search_reset(struct search *search)
{
	if (search->paths != NULL)
		probe_scan_free(search->paths, search->path_count);
	free(search->found);
	json_decref(search->running);
	json_decref(search->failures);
	search->paths = NULL;
	search->found = NULL;
	search->path_count = search->found_count = 0;
	search->running = NULL;
	search->failures = json_array();
}

static void search_fini(struct search *search)
{
	search_reset(search);
	json_decref(search->failures);
	json_decref(search->started);
	free(search->fault);
}

/* The running name for what a superblock says: "0" → md0, "host:data" → data, 0.90's minor → mdN.
 */
static void own_name(const struct md_super *super, char ret[NAME_MAX])
{
	const char *bare = md_name_bare(super->name);
	char word[96];

	if (super->version == MD_VERSION_0_90)
		(void)snprintf(word, sizeof(word), "md%u", super->v090.md_minor);
	else if (bare[0] != '\0' && bare[strspn(bare, "0123456789")] == '\0')
		(void)snprintf(word, sizeof(word), "md%s", bare);
	else
		(void)snprintf(word, sizeof(word), "%s", bare[0] != '\0' ? bare : "md127");
	if (runtime_name(word, ret, NULL) < 0)
		(void)snprintf(ret, NAME_MAX, "md127"); /* a name that is no file name */
}

/* A name that runs already gets a number behind it, as mdadm gives foreign arrays. */
static int name_of_super(const struct md_super *super, char ret[NAME_MAX],
	struct runtime_claim *claim, struct fault *fault)
{
	char word[96], base[NAME_MAX];
	unsigned i;
	int r;

	own_name(super, base);
	(void)snprintf(ret, NAME_MAX, "%s", base);
	for (i = 0; i < 100; i++) {
		r = start_possible(ret, claim, fault);
		if (r != -EBUSY)
			return r;
		(void)snprintf(word, sizeof(word), "%.80s_%u", base, i);
		r = runtime_name(word, ret, fault);
		if (r < 0)
			return r;
	}
	return fault_set(
		fault, -EBUSY, "all names %s, %s_0 … are taken by running arrays", base, base);
}

static int choose_name(const char *given, const struct md_super *super, char ret[NAME_MAX],
	struct runtime_claim *claim, struct fault *fault)
{
	int r;

	if (given == NULL)
		return name_of_super(super, ret, claim, fault);
	r = runtime_name(given, ret, fault);
	return r < 0 ? r : start_possible(ret, claim, fault);
}

static int refuse_degraded(const struct md_assembly *assembly, struct fault *fault)
{
	return fault_set(fault, -ENODEV,
		"%u of %u members are there, and --no-degraded was given; name the missing ones "
		"too, "
		"or leave --no-degraded out",
		assembly->slot_count - assembly->missing_count, assembly->slot_count);
}

/* The array may be started: what it takes for that, and what is not needed. */
static int prepare(struct member_set *set, struct md_assembly *assembly,
	const struct cli_options *options, struct fault *fault)
{
	int r = 0;

	if (options->no_degraded && assembly->missing_count > 0)
		return refuse_degraded(assembly, fault);
	member_set_say_rejected(set, assembly);
	if (!options->readonly)
		r = member_set_force(set, assembly, fault);
	if (r == 0)
		member_set_drop_rejected(set, assembly);
	return r;
}

/* @run: start it although members are missing that were there before. */
static int assemble_paths(char *const *paths, unsigned count, const char *given, bool run,
	const struct cli_options *options, struct fault *fault)
{
	struct md_assembly_options how = {
		.force = options->force,
		.raid0_layout = options->update_layout,
		.run = options->run || run,
		.readonly = options->readonly,
	};
	_cleanup_(member_set_close) struct member_set set = {NULL, NULL, 0};
	_cleanup_(runtime_release) struct runtime_claim claim = {.fd = -1};
	_cleanup_free_ struct md_assembly *assembly = NULL;
	unsigned flags = MEMBER_EXCLUSIVE | (options->readonly ? MEMBER_READONLY : 0);
	char name[NAME_MAX];
	struct start start = {options, NULL, &set, name, true};
	int r;

	r = member_set_open(&set, paths, count, flags, fault);
	if (r == 0)
		r = member_set_read(&set, fault);
	if (r == 0)
		r = choose_name(given, &set.supers[0], name, &claim, fault);
	if (r == 0)
		r = member_set_assemble(&set, &how, &assembly, fault);
	if (r == 0)
		r = prepare(&set, assembly, options, fault);
	if (r < 0)
		return r;
	start.assembly = assembly;
	return start_array(&start, fault);
}

static void add_found(struct search *search, char *path, const struct md_super *super)
{
	struct found *found = &search->found[search->found_count++];

	found->path = path;
	memcpy(found->uuid, super->set_uuid, 16);
	memcpy(found->name, super->name, sizeof(found->name));
}

static bool is_wanted(const struct search *search, const struct md_super *super)
{
	const struct cli_options *options = search->options;
	char name[NAME_MAX];

	own_name(super, name);
	if (search->running_name != NULL && strcmp(name, search->running_name) != 0)
		return false;
	if (options->uuid_given && memcmp(options->uuid, super->set_uuid, 16) != 0)
		return false;
	return options->name == NULL || strcmp(options->name, super->name) == 0 ||
	       strcmp(options->name, md_name_bare(super->name)) == 0;
}

/* Devices that cannot be opened or hold nothing are passed over; damaged superblocks are told. */
static void look_at(struct search *search, char *path, struct md_super *super)
{
	const struct cli_options *options = search->options;
	struct member *member;
	int r;

	r = member_open(path, MEMBER_READONLY | MEMBER_BUFFERED, &member, search->fault);
	if (r < 0) {
		if (options->verbose && !search->again)
			(void)say_fault(search->fault, 0);
		return;
	}
	r = probe_read_super(member, super, search->fault);
	if (r == 0 && is_wanted(search, super))
		add_found(search, path, super);
	else if (search->again)
		; /* said before */
	else if (r == 0 && options->verbose)
		say("%s: is no member of the wanted array", path);
	else if (r < 0 && (r != -ENODATA || options->verbose))
		(void)say_fault(search->fault, 0);
	member_close(member);
}

static int gather_words(const struct cli_options *options, char ***ret, unsigned *ret_count)
{
	unsigned count = options->member_count + options->scan_in_count;
	char **words = calloc(count + 1, sizeof(*words));

	if (words == NULL)
		return -ENOMEM;
	memcpy(words, options->members, options->member_count * sizeof(*words));
	memcpy(words + options->member_count, options->scan_in,
		options->scan_in_count * sizeof(*words));
	*ret = words;
	*ret_count = count;
	return 0;
}

static json_t *ask_detail(const char *name)
{
	json_t *request = json_pack("{s:s}", "command", "detail"), *reply = NULL;

	if (control_call(name, request, &reply, NULL) < 0)
		reply = NULL;
	json_decref(request);
	return reply;
}

static bool holds(json_t *list, const char *text)
{
	json_t *entry;
	size_t i;

	json_array_foreach(list, i, entry)
	{
		if (json_is_string(entry) && text != NULL &&
			strcmp(json_string_value(entry), text) == 0)
			return true;
	}
	return false;
}

static int add_path(struct search *search, const char *path)
{
	char **more = realloc(search->paths, (search->path_count + 1) * sizeof(*more));

	if (more == NULL)
		return -ENOMEM;
	search->paths = more;
	more[search->path_count] = strdup(path);
	if (more[search->path_count] == NULL)
		return -ENOMEM;
	search->path_count++;
	return 0;
}

/*
 * The UUIDs of the arrays that run: these are left alone. The nodes of those that this command has
 * started may be members of others.
 */
static int list_running(struct search *search)
{
	json_t *names = NULL, *name;
	size_t i;
	int r;

	search->running = json_array();
	r = control_list(&names, search->fault);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	json_array_foreach(names, i, name)
	{
		json_t *detail = ask_detail(json_string_value(name));
		json_t *uuid = json_object_get(detail, "uuid");
		const char *node = json_string_value(json_object_get(detail, "node"));

		(void)json_array_append(search->running, uuid);
		if (node != NULL && holds(search->started, json_string_value(uuid)))
			r = add_path(search, node);
		json_decref(detail);
		if (r < 0)
			break;
	}
	json_decref(names);
	return r < 0 ? fault_set(search->fault, r, "no memory for the running arrays") : 0;
}

static int find(struct search *search)
{
	_cleanup_free_ struct md_super *super = calloc(1, sizeof(*super));
	_cleanup_free_ char **words = NULL;
	unsigned count, i;
	int r;

	if (super == NULL || gather_words(search->options, &words, &count) < 0)
		return fault_set(search->fault, -ENOMEM, "no memory");
	r = probe_scan(words, count, &search->paths, &search->path_count, search->fault);
	if (r == 0)
		r = list_running(search);
	if (r < 0)
		return r;
	search->found = calloc(search->path_count + 1, sizeof(*search->found));
	if (search->found == NULL)
		return fault_set(
			search->fault, -ENOMEM, "no memory for %u devices", search->path_count);
	for (i = 0; i < search->path_count; i++)
		look_at(search, search->paths[i], super);
	return 0;
}

/* Take all members of the array that found[@first] belongs to. 1 if it runs already. */
static int assemble_group(struct search *search, unsigned first, bool run)
{
	_cleanup_free_ char **paths = calloc(search->found_count, sizeof(*paths));
	const struct found *one = &search->found[first];
	char text[MD_UUID_TEXT];
	unsigned i, count = 0;
	int r;

	if (paths == NULL)
		return fault_set(search->fault, -ENOMEM, "no memory");
	for (i = first; i < search->found_count; i++) {
		if (memcmp(search->found[i].uuid, one->uuid, 16) != 0)
			continue;
		search->found[i].done = true;
		paths[count++] = search->found[i].path;
	}
	(void)md_uuid_format(one->uuid, text);
	if (holds(search->running, text)) {
		if (!search->options->quiet && !search->again)
			say("array %s is running already; left alone", text);
		return 1;
	}
	r = assemble_paths(
		paths, count, search->options->array, run, search->options, search->fault);
	if (r == 0)
		(void)json_array_append_new(search->started, json_string(text));
	else
		(void)fault_prefix(search->fault, "array %s (%s): ", text,
			one->name[0] != '\0' ? one->name : "no name");
	return r;
}

/* More than one array for one name: the caller has to say which. */
static bool is_ambiguous(const struct search *search)
{
	unsigned i;

	for (i = 1; i < search->found_count; i++) {
		if (memcmp(search->found[i].uuid, search->found[0].uuid, 16) != 0)
			return true;
	}
	return false;
}

static int none_found(const struct search *search)
{
	const struct cli_options *options = search->options;
	const char *name = search->running_name;

	say("No arrays found: none of the %u devices looked at is a member of an array%s%s%s%s; "
	    "'strake examine FILE…' tells what a device holds: check name, UUID and paths%s",
		search->path_count, options->uuid_given ? " with the wanted UUID" : "",
		options->name != NULL ? " with the wanted name" : "",
		name != NULL ? " called " : "", name != NULL ? name : "",
		name != NULL ? ", or name the members" : "");
	return CLI_FAILED;
}

/* All groups that are found and not yet running. Returns how many of them were started. */
static unsigned assemble_groups(struct search *search, bool run, unsigned *ret_good)
{
	unsigned started = 0;

	*ret_good = 0;
	for (unsigned i = 0; i < search->found_count; i++) {
		int r;

		if (search->found[i].done)
			continue;
		r = assemble_group(search, i, run);
		started += r == 0;
		*ret_good += r >= 0;
		if (r < 0)
			(void)json_array_append_new(
				search->failures, detail_string(search->fault->text));
	}
	return started;
}

/*
 * As with mdadm, --scan is content when an array was started (here also: runs already): stray
 * members of others are told, and no failure. One array that was asked for is.
 */
static int judge(const struct search *search, unsigned good)
{
	const struct cli_options *options = search->options;
	bool asked = options->uuid_given || options->name != NULL || options->array != NULL;
	json_t *words;
	size_t i;

	json_array_foreach(search->failures, i, words) say("%s", json_string_value(words));
	return json_array_size(search->failures) == 0 || (good > 0 && !asked) ? CLI_OK : CLI_FAILED;
}

static bool is_refused(const struct search *search)
{
	if (search->options->array == NULL || !is_ambiguous(search))
		return false;
	say("assemble %s: members of several arrays are there; --uuid=UUID chooses one "
	    "('strake examine --scan' lists them)",
		search->options->array);
	return true;
}

/*
 * Arrays may be members of others, so there are rounds, as long as one starts anything. Members
 * that were found are all there are, and as with mdadm an array of them starts if it can at all;
 * but first those that are complete, for what is missing in another may be one of them.
 */
static int assemble_search(struct search *search)
{
	unsigned started, good;
	bool run = false, last;

	search->started = json_array();
	do {
		search_reset(search);
		if (find(search) < 0)
			return say_fault(search->fault, CLI_FAILED);
		if (search->found_count == 0)
			return none_found(search);
		if (!search->again && is_refused(search))
			return CLI_FAILED;
		started = assemble_groups(search, run, &good);
		search->again = true;
		last = started == 0 && (run || json_array_size(search->failures) == 0);
		run = started == 0;
	} while (!last);
	return judge(search, good);
}

static int assemble_named(const struct cli_options *options, struct fault *fault)
{
	int r;

	r = assemble_paths(
		options->members, options->member_count, options->array, false, options, fault);
	if (r < 0)
		(void)fault_prefix(fault, "assemble %s: ",
			options->array != NULL ? options->array : options->members[0]);
	return r;
}

int cli_assemble(const struct cli_options *options)
{
	_cleanup_(search_fini) struct search search = {.options = options};
	char name[NAME_MAX];

	search.fault = calloc(1, sizeof(*search.fault));
	if (search.fault == NULL)
		return say_no_memory();
	if (options->export == CLI_EXPORT_NONE) {
		say("assemble: with --export=none nothing would be done; 'strake examine' looks "
		    "only");
		return CLI_USAGE;
	}
	if (options->array != NULL && runtime_name(options->array, name, search.fault) < 0)
		return say_fault(search.fault, CLI_USAGE);
	if (options->scan || options->uuid_given || options->name != NULL ||
		options->scan_in_count > 0)
		return assemble_search(&search);
	if (options->member_count == 0 && options->array != NULL) {
		search.running_name = name;
		return assemble_search(&search);
	}
	if (options->member_count == 0) {
		say("assemble: no members given: name them, or --scan, --uuid or --name to find "
		    "them");
		return CLI_USAGE;
	}
	if (assemble_named(options, search.fault) < 0)
		return say_fault(search.fault, CLI_FAILED);
	return CLI_OK;
}
