/* SPDX-License-Identifier: MIT */

/*
 * create: look first, write last. Everything that can be known to fail is tried before the first
 * byte is written; if writing itself fails, what stood there is put back.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "cli/run.h"
#include "cli/say.h"
#include "cli/start.h"
#include "engine/engine.h"
#include "md/plan.h"
#include "probe/probe.h"
#include "util/cleanup.h"

struct creation {
	const struct cli_options *options;
	char name[NAME_MAX];
	struct member_set set; /* supers: the planned ones */
	struct md_assembly *assembly;
	struct md_super_blocks *old; /* what stood in the superblocks' places, by member */
	unsigned findings;
	struct runtime_claim claim;
	bool destroy; /* consent to lose what was found */
	struct fault *fault;
};

static void creation_fini(struct creation *creation)
{
	runtime_release(&creation->claim);
	member_set_close(&creation->set);
	free(creation->assembly);
	free(creation->old);
	free(creation->fault);
}

static int refuse_missing(const struct creation *creation)
{
	const struct cli_options *options = creation->options;
	unsigned i;

	for (i = 0; i < options->member_count; i++) {
		if (strcmp(options->members[i], "missing") == 0)
			return fault_set(creation->fault, -EINVAL,
				"create %s: 'missing' is impossible with level %s: it has no "
				"redundancy, every member must be there",
				creation->name, md_level_name(options->level));
	}
	return 0;
}

static int check_count(const struct creation *creation)
{
	const struct cli_options *options = creation->options;
	unsigned given = options->member_count;
	uint64_t wanted = options->raid_devices == CLI_DEFAULT ? given : options->raid_devices;

	if (given < wanted)
		return fault_set(creation->fault, -EINVAL,
			"create %s: you haven't given enough devices to create this array: %u "
			"given, --raid-devices=%" PRIu64 " asked for",
			creation->name, given, wanted);
	if (given > wanted)
		return fault_set(creation->fault, -EINVAL,
			"create %s: you have listed more devices (%u) than are in the array "
			"(--raid-devices=%" PRIu64 ")",
			creation->name, given, wanted);
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

	if (engine_level_name(options->level) == NULL)
		return fault_set(creation->fault, -EOPNOTSUPP,
			"not yet supported: creating level %s (%s); levels that run now: 0 and "
			"linear; nothing was written",
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

static int random_bytes(void *buffer, size_t length, struct fault *fault)
{
	if (getrandom(buffer, length, 0) != (ssize_t)length)
		return fault_set(fault, -EIO, "no random numbers for a UUID: %s", strerror(errno));
	return 0;
}

static int fill_devices(const struct creation *creation, struct md_plan_device *devices)
{
	unsigned i;
	int r;

	for (i = 0; i < creation->set.count; i++) {
		const struct member *member = creation->set.members[i];

		devices[i] = (struct md_plan_device){
			.path = member->path,
			.sectors = member->size_bytes / MD_SECTOR,
			.major = member->major,
			.minor = member->minor,
		};
		r = random_bytes(devices[i].device_uuid, 16, creation->fault);
		if (r < 0)
			return r;
	}
	return 0;
}

static uint64_t in_sectors(uint64_t bytes)
{
	return bytes == CLI_DEFAULT ? MD_PLAN_DEFAULT : bytes / MD_SECTOR;
}

static int fill_plan(const struct creation *creation, struct md_plan_options *plan)
{
	const struct cli_options *options = creation->options;
	const char *bare = start_bare_name(creation->name);
	struct timespec now;

	(void)clock_gettime(CLOCK_REALTIME, &now);
	*plan = (struct md_plan_options){
		.version = options->version,
		.level = options->level,
		.chunk_sectors = in_sectors(options->chunk_bytes),
		.layout = options->layout,
		.size_sectors = in_sectors(options->size_bytes),
		.data_offset = in_sectors(options->data_offset_bytes),
		.raid_disks = options->member_count,
		.name = options->name != NULL ? options->name : bare,
		.homehost = cli_homehost(options),
		.md_minor = bare != creation->name ? (uint32_t)strtoul(bare, NULL, 10) : 127,
		.assume_clean = options->assume_clean,
		.layout_explicit = options->layout_text != NULL,
		.uuid_given = options->uuid_given,
		.now_seconds = (uint64_t)now.tv_sec,
		/* md reads the high bits of the time as seconds too: 2106. mdadm writes none. */
		.now_microseconds = 0,
	};
	memcpy(plan->set_uuid, options->uuid, 16);
	return options->uuid_given ? 0 : random_bytes(plan->set_uuid, 16, creation->fault);
}

/* The planned superblocks, and whether they can be assembled again as an array that runs. */
static int plan(struct creation *creation)
{
	struct md_assembly_options assembly_options = {.force = false};
	_cleanup_free_ struct md_plan_device *devices = NULL;
	struct member_set *set = &creation->set;
	struct md_plan_options plan_options;
	int r;

	devices = calloc(set->count, sizeof(*devices));
	set->supers = calloc(set->count, sizeof(*set->supers));
	if (devices == NULL || set->supers == NULL)
		return fault_set(creation->fault, -ENOMEM, "no memory for %u members", set->count);
	r = fill_devices(creation, devices);
	if (r == 0)
		r = fill_plan(creation, &plan_options);
	if (r == 0)
		r = md_plan_create(
			&plan_options, devices, set->count, set->supers, creation->fault);
	if (r == 0)
		r = member_set_assemble(
			set, &assembly_options, &creation->assembly, creation->fault);
	if (r < 0) {
		(void)fault_prefix(creation->fault, "create %s: ", creation->name);
		(void)fault_append(creation->fault, "; nothing was written");
	}
	return r;
}

static int open_members(struct creation *creation)
{
	const struct cli_options *options = creation->options;
	unsigned i;
	int r;

	r = member_set_open(&creation->set, options->members, options->member_count,
		MEMBER_EXCLUSIVE, creation->fault);
	for (i = 0; r == 0 && i < creation->set.count; i++) {
		if (creation->set.members[i]->size_bytes == 0)
			r = fault_set(creation->fault, -EINVAL,
				"create %s: %s is empty: a member needs room for a superblock and "
				"data ('truncate -s 1G FILE' makes a file larger); nothing was "
				"written",
				creation->name, creation->set.members[i]->path);
	}
	return r;
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

static int remember(struct creation *creation)
{
	unsigned i;
	int r = 0;

	creation->old = calloc(creation->set.count, sizeof(*creation->old));
	if (creation->old == NULL)
		return fault_set(
			creation->fault, -ENOMEM, "no memory for %u members", creation->set.count);
	for (i = 0; r == 0 && i < creation->set.count; i++)
		r = probe_read_blocks(creation->set.members[i], &creation->old[i], creation->fault);
	return r;
}

/* Only what changed is written: a member that refuses writes was not changed either. */
static int restore_block(const struct member *member, uint64_t offset_bytes, const uint8_t *old)
{
	uint8_t now[MD_SUPER_BYTES];
	int r;

	r = member_read(member, offset_bytes, now, sizeof(now));
	if (r == 0 && memcmp(now, old, sizeof(now)) == 0)
		return 0;
	r = member_write(member, offset_bytes, old, MD_SUPER_BYTES);
	return r < 0 ? r : member_sync(member);
}

static int restore_one(const struct member *member, const struct md_super_blocks *old)
{
	unsigned version;
	int r = 0;

	for (version = 0; r == 0 && version < MD_VERSIONS; version++) {
		if (old->present[version])
			r = restore_block(
				member, old->sector[version] * MD_SECTOR, old->block[version]);
	}
	return r;
}

/* After a failed write: put back what stood there, on all members that were reached. */
static void restore(struct creation *creation, unsigned count)
{
	unsigned i, failed = 0;
	int r;

	for (i = 0; i < count; i++) {
		r = restore_one(creation->set.members[i], &creation->old[i]);
		if (r < 0)
			(void)fault_append(creation->fault,
				"\n%s: what stood there could not be put back: %s",
				creation->set.members[i]->path, strerror(-r));
		failed += r < 0;
	}
	if (failed == 0)
		(void)fault_append(creation->fault, "\nthe superblock areas of all members are as "
						    "they were before; create it again "
						    "when the cause is gone");
}

/* With consent, superblocks at other places go: assembly must not find two truths. */
static int write_one(struct creation *creation, unsigned index)
{
	const struct member *member = creation->set.members[index];
	int r = 0;

	if (creation->findings > 0)
		r = probe_zero_supers(member, creation->fault);
	return r < 0 ? r : probe_write_super(member, &creation->set.supers[index], creation->fault);
}

static int write_all(struct creation *creation)
{
	unsigned i;
	int r;

	r = remember(creation);
	if (r < 0)
		return r;
	for (i = 0; i < creation->set.count; i++) {
		r = write_one(creation, i);
		if (r < 0) {
			(void)fault_prefix(creation->fault, "create %s: ", creation->name);
			restore(creation, i + 1);
			return r;
		}
	}
	return 0;
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
		r = plan(creation);
	if (r == 0)
		r = look(creation);
	if (r < 0)
		return r;
	if (!options->metadata_given && !options->quiet)
		say("Defaulting to version 1.2 metadata");
	r = write_all(creation);
	return r < 0 ? r : finish(creation);
}

int cli_create(const struct cli_options *options)
{
	_cleanup_(creation_fini) struct creation creation = {.options = options, .claim.fd = -1};

	creation.fault = calloc(1, sizeof(*creation.fault));
	if (creation.fault == NULL)
		return CLI_FAILED;
	if (check_words(&creation) < 0)
		return say_fault(creation.fault, CLI_USAGE);
	if (create(&creation) < 0)
		return say_fault(creation.fault, CLI_FAILED);
	return CLI_OK;
}
