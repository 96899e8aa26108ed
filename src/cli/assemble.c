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
	json_t *running; /* UUID texts of the running arrays */
	struct fault *fault;
};

static void search_fini(struct search *search)
{
	if (search->paths != NULL)
		probe_scan_free(search->paths, search->path_count);
	free(search->found);
	json_decref(search->running);
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

/*
 * Members that were found are all there are: as with mdadm, an array of them starts if it can at
 * all. Of members that were named some may have been forgotten.
 */
static int assemble_paths(char *const *paths, unsigned count, const char *given, bool found,
	const struct cli_options *options, struct fault *fault)
{
	struct md_assembly_options how = {
		.force = options->force,
		.raid0_layout = options->update_layout,
		.run = options->run || found,
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
		if (options->verbose)
			(void)say_fault(search->fault, 0);
		return;
	}
	r = probe_read_super(member, super, search->fault);
	if (r == 0 && is_wanted(search, super))
		add_found(search, path, super);
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

static int find(struct search *search)
{
	_cleanup_free_ struct md_super *super = calloc(1, sizeof(*super));
	_cleanup_free_ char **words = NULL;
	unsigned count, i;
	int r;

	if (super == NULL || gather_words(search->options, &words, &count) < 0)
		return fault_set(search->fault, -ENOMEM, "no memory");
	r = probe_scan(words, count, &search->paths, &search->path_count, search->fault);
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

static json_t *ask_detail(const char *name)
{
	json_t *request = json_pack("{s:s}", "command", "detail"), *reply = NULL;

	if (control_call(name, request, &reply, NULL) < 0)
		reply = NULL;
	json_decref(request);
	return reply;
}

/* The UUIDs of the arrays that run: these are left alone. */
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

		(void)json_array_append(search->running, json_object_get(detail, "uuid"));
		json_decref(detail);
	}
	json_decref(names);
	return 0;
}

static bool is_running(const struct search *search, const uint8_t uuid[16])
{
	char text[MD_UUID_TEXT];
	json_t *running;
	size_t i;

	(void)md_uuid_format(uuid, text);
	json_array_foreach(search->running, i, running)
	{
		if (json_is_string(running) && strcmp(json_string_value(running), text) == 0)
			return true;
	}
	return false;
}

/* Take all members of the array that found[@first] belongs to. 1 if it runs already. */
static int assemble_group(struct search *search, unsigned first)
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
	if (is_running(search, one->uuid)) {
		if (!search->options->quiet)
			say("array %s is running already; left alone",
				md_uuid_format(one->uuid, text));
		return 1;
	}
	r = assemble_paths(
		paths, count, search->options->array, true, search->options, search->fault);
	if (r < 0)
		(void)fault_prefix(search->fault,
			"array %s (%s): ", md_uuid_format(one->uuid, text),
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

/*
 * As with mdadm, --scan is content when an array was started (here also: runs already): stray
 * members of others are told, and no failure. One array that was asked for is.
 */
static int assemble_groups(struct search *search)
{
	const struct cli_options *options = search->options;
	bool asked = options->uuid_given || options->name != NULL || options->array != NULL;
	unsigned i, good = 0, bad = 0;

	for (i = 0; i < search->found_count; i++) {
		if (search->found[i].done)
			continue;
		if (assemble_group(search, i) >= 0) {
			good++;
			continue;
		}
		bad++;
		(void)say_fault(search->fault, CLI_FAILED);
	}
	return bad == 0 || (good > 0 && !asked) ? CLI_OK : CLI_FAILED;
}

static int assemble_search(struct search *search)
{
	if (find(search) < 0 || list_running(search) < 0)
		return say_fault(search->fault, CLI_FAILED);
	if (search->found_count == 0)
		return none_found(search);
	if (search->options->array != NULL && is_ambiguous(search)) {
		say("assemble %s: members of several arrays are there; --uuid=UUID chooses one "
		    "('strake examine --scan' lists them)",
			search->options->array);
		return CLI_FAILED;
	}
	return assemble_groups(search);
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
		return CLI_FAILED;
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
