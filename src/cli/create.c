/* SPDX-License-Identifier: MIT */

/*
 * create: look first, write last. Everything that can be known to fail is tried before the first
 * byte is written; if writing itself fails, what stood there is put back.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/create.h"
#include "cli/run.h"
#include "cli/say.h"
#include "engine/engine.h"
#include "util/cleanup.h"

static void creation_fini(struct creation *creation)
{
	runtime_release(&creation->claim);
	for (unsigned i = 0; creation->old != NULL && i < creation->set.count; i++)
		free(creation->old[i].bitmap);
	free(creation->old);
	free(creation->now);
	member_set_close(&creation->set);
	free(creation->member_of);
	free(creation->devices);
	free(creation->bitmap_area);
	free(creation->assembly);
	free(creation->fault);
}

bool creation_is_missing(const struct creation *creation, unsigned index)
{
	return strcmp(creation->options->members[index], "missing") == 0;
}

static unsigned count_missing(const struct creation *creation)
{
	unsigned count = 0;

	for (unsigned i = 0; i < creation->options->member_count; i++)
		count += creation_is_missing(creation, i);
	return count;
}

static int refuse_missing(const struct creation *creation)
{
	const struct cli_options *options = creation->options;

	if (count_missing(creation) == 0)
		return 0;
	if (options->level <= 0)
		return fault_set(creation->fault, -EINVAL,
			"create %s: 'missing' is impossible with level %s: it has no redundancy, "
			"every member must be there",
			creation->name, md_level_name(options->level));
	if (count_missing(creation) == options->member_count)
		return fault_set(creation->fault, -EINVAL,
			"create %s: all members are 'missing': name at least one device",
			creation->name);
	return 0;
}

static int check_count(const struct creation *creation)
{
	const struct cli_options *options = creation->options;
	uint64_t given = options->member_count, spares = options->spare_devices;
	uint64_t wanted = options->raid_devices == CLI_DEFAULT ? given
							       : options->raid_devices + spares;
	char more[64] = "";

	if (spares > 0)
		(void)snprintf(more, sizeof(more), " and --spare-devices=%" PRIu64, spares);
	if (given < wanted)
		return fault_set(creation->fault, -EINVAL,
			"create %s: you haven't given enough devices to create this array: "
			"%" PRIu64 " given, --raid-devices=%" PRIu64 "%s asked for",
			creation->name, given, wanted - spares, more);
	if (given > wanted)
		return fault_set(creation->fault, -EINVAL,
			"create %s: you have listed more devices (%" PRIu64 ") than are in the "
			"array (--raid-devices=%" PRIu64 "%s)",
			creation->name, given, wanted - spares, more);
	if (spares >= given)
		return fault_set(creation->fault, -EINVAL,
			"create %s: --spare-devices=%" PRIu64 " of %" PRIu64
			" devices leaves none for the array",
			creation->name, spares, given);
	if (given > GEOMETRY_SLOTS_MAX)
		return fault_set(creation->fault, -EINVAL, "create %s: at most %u members",
			creation->name, GEOMETRY_SLOTS_MAX);
	return 0;
}

/* What is wrong with the command line, whatever the machine looks like. */
static int check_words(struct creation *creation)
{
	const struct cli_options *options = creation->options;
	int r;

	if (options->array == NULL)
		return fault_set(creation->fault, -EINVAL,
			"create: no array named: its name comes first ('strake create md0 …')");
	r = runtime_name(options->array, creation->name, creation->fault);
	if (r < 0)
		return r;
	if (options->level_text == NULL)
		return fault_set(creation->fault, -EINVAL,
			"create %s: a RAID level is needed to create an array (--level=0)",
			creation->name);
	if (options->member_count == 0)
		return fault_set(creation->fault, -EINVAL,
			"create %s: no members given: name them behind the array", creation->name);
	if (options->export == CLI_EXPORT_NONE && options->readonly)
		return fault_set(creation->fault, -EINVAL,
			"create %s: --readonly starts the array for reading, --export=none starts "
			"nothing",
			creation->name);
	return 0;
}

static int check_request(struct creation *creation)
{
	const struct cli_options *options = creation->options;
	int r;

	/* What only writes superblocks is the plan's affair, and other programs run it. */
	if (options->export != CLI_EXPORT_NONE && engine_level_name(options->level) == NULL)
		return fault_set(creation->fault, -EOPNOTSUPP,
			"not yet supported: creating level %s (%s); use linear, 0, 1, 4, 5, 6 or "
			"10; nothing was written",
			options->level_text, md_level_name(options->level));
	r = check_count(creation);
	return r < 0 ? r : refuse_missing(creation);
}

/* What has to be right for starting is looked at before anything is written. */
static int check_start(struct creation *creation)
{
	if (creation->options->export == CLI_EXPORT_NONE)
		return 0;
	if (start_possible(creation->name, &creation->claim, creation->fault) < 0)
		return fault_append(creation->fault, "; nothing was written");
	return 0;
}

/* The devices that are there, and at which place of the command line each was. */
static int open_listed(struct creation *creation)
{
	const struct cli_options *options = creation->options;
	_cleanup_free_ char **paths = calloc(options->member_count, sizeof(*paths));
	unsigned count = 0;

	creation->count = options->member_count;
	creation->member_of = calloc(options->member_count, sizeof(*creation->member_of));
	if (paths == NULL || creation->member_of == NULL)
		return fault_set(
			creation->fault, -ENOMEM, "no memory for %u members", creation->count);
	for (unsigned i = 0; i < options->member_count; i++) {
		creation->member_of[i] = CREATION_MISSING;
		if (creation_is_missing(creation, i))
			continue;
		creation->member_of[i] = count;
		paths[count++] = options->members[i];
	}
	return member_set_open(&creation->set, paths, count, MEMBER_EXCLUSIVE, creation->fault);
}

static int open_members(struct creation *creation)
{
	int r = open_listed(creation);

	for (unsigned i = 0; r == 0 && i < creation->set.count; i++) {
		if (creation->set.members[i]->size_bytes == 0)
			r = fault_set(creation->fault, -EINVAL,
				"create %s: %s is empty: a member needs room for a superblock and "
				"data ('truncate -s 1G FILE' makes a file larger); nothing was "
				"written",
				creation->name, creation->set.members[i]->path);
	}
	return r;
}

static const struct member *smallest_sectors(const struct member_set *set)
{
	const struct member *least = set->members[0];

	for (unsigned i = 1; i < set->count; i++)
		if (set->members[i]->logical_block_bytes < least->logical_block_bytes)
			least = set->members[i];
	return least;
}

/*
 * We offer sectors of 512 bytes whatever the members have; the kernel's md offers the largest of
 * its members, and a file system made here might not mount there. Better known before than after.
 */
static int check_sectors(const struct creation *creation)
{
	const struct member *least = smallest_sectors(&creation->set);

	for (unsigned i = 0; i < creation->set.count; i++) {
		const struct member *member = creation->set.members[i];

		if (member->logical_block_bytes == least->logical_block_bytes ||
			creation->options->force)
			continue;
		return fault_set(creation->fault, -EINVAL,
			"create %s: %s has sectors of %u bytes, %s of %u: the kernel's md would "
			"give the array sectors of %u; nothing was written. Use devices of one "
			"kind; --force mixes them",
			creation->name, member->path, member->logical_block_bytes, least->path,
			least->logical_block_bytes, member->logical_block_bytes);
	}
	return 0;
}

static int look_at(struct creation *creation, const struct member *member)
{
	struct probe_finding *findings;
	unsigned count, i;
	int r;

	r = probe_findings(member, &findings, &count, creation->fault);
	if (r < 0)
		return r;
	for (i = 0; i < count; i++)
		say("%s: holds %s (at byte %" PRIu64 "%s%s)", member->path, findings[i].what,
			findings[i].offset_bytes, findings[i].uuid != NULL ? ", UUID " : "",
			findings[i].uuid != NULL ? findings[i].uuid : "");
	creation->findings += count;
	probe_findings_free(findings, count);
	return 0;
}

static bool ask(void)
{
	char answer[16];

	(void)fputs("Continue creating array? ", stderr);
	if (fgets(answer, sizeof(answer), stdin) == NULL)
		return false;
	return answer[0] == 'y' || answer[0] == 'Y';
}

/* List what lives on the members; go on only with consent. */
static int look(struct creation *creation)
{
	const struct cli_options *options = creation->options;
	unsigned i;
	int r;

	for (i = 0; i < creation->set.count; i++) {
		r = look_at(creation, creation->set.members[i]);
		if (r < 0)
			return r;
	}
	creation->destroy = options->run || options->force;
	if (creation->findings == 0 || creation->destroy)
		return 0;
	if (isatty(STDIN_FILENO)) {
		creation->destroy = ask();
		return creation->destroy ? 0
					 : fault_set(creation->fault, -ECANCELED,
						   "create aborted; nothing was written");
	}
	return fault_set(creation->fault, -EEXIST,
		"create %s: refused because of what the members hold; nothing was written. Look at "
		"it first; --force (or --run) creates the array all the same, and it is lost",
		creation->name);
}

static int finish(struct creation *creation)
{
	const struct cli_options *options = creation->options;
	struct start start = {options, creation->assembly, &creation->set, creation->name, true};
	int r;

	if (options->export == CLI_EXPORT_NONE) {
		if (!options->quiet)
			say("array %s created on %u members; nothing was started (--export=none)",
				creation->name, creation->set.count);
		return 0;
	}
	r = start_array(&start, creation->fault);
	if (r < 0)
		(void)fault_append(creation->fault,
			"\nthe superblocks are written: 'strake assemble %s MEMBER…' starts the "
			"array when the cause is gone",
			creation->name);
	return r;
}

/* What was decided for the user. */
static void say_choices(const struct creation *creation)
{
	const struct md_assembly *assembly = creation->assembly;

	if (!creation->options->metadata_given)
		say("Defaulting to version 1.2 metadata");
	if (creation->plan.blank)
		say("the members read as zeros: their redundancy is right as it is, and no initial "
		    "resync is needed");
	else if (assembly->level > 0 && !assembly->clean)
		say("the members hold data: a resync makes their redundancy right while the array "
		    "is in use");
	else if (assembly->device_count > assembly->in_sync_count + creation->plan.spare_disks)
		say("the last member is built from the others while the array is in use");
}

static int create(struct creation *creation)
{
	const struct cli_options *options = creation->options;
	int r;

	r = check_request(creation);
	if (r == 0)
		r = check_start(creation);
	if (r == 0)
		r = open_members(creation);
	if (r == 0)
		r = check_sectors(creation);
	if (r == 0)
		r = creation_plan(creation);
	if (r == 0)
		r = look(creation);
	if (r < 0)
		return r;
	if (!options->quiet)
		say_choices(creation);
	r = creation_write(creation);
	return r < 0 ? r : finish(creation);
}

int cli_create(const struct cli_options *options)
{
	_cleanup_(creation_fini) struct creation creation = {.options = options, .claim.fd = -1};

	creation.fault = calloc(1, sizeof(*creation.fault));
	if (creation.fault == NULL)
		return say_no_memory();
	if (check_words(&creation) < 0)
		return say_fault(creation.fault, CLI_USAGE);
	if (create(&creation) < 0)
		return say_fault(creation.fault, CLI_FAILED);
	return CLI_OK;
}
