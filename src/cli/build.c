/* SPDX-License-Identifier: MIT */

/* build: an array of members without superblocks. What a superblock would say is said by options.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/run.h"
#include "cli/say.h"
#include "cli/start.h"
#include "util/cleanup.h"
#include "util/rounding.h"

#define DEFAULT_CHUNK_BYTES (512u * 1024)
#define RAID10_NEAR_2 0x102u

/* What is wrong with the command line, whatever the machine looks like. */
static int check_words(const struct cli_options *options, char name[NAME_MAX], struct fault *fault)
{
	int r;

	if (options->array == NULL)
		return fault_set(fault, -EINVAL, "build: no array named ('strake build md0 …')");
	r = runtime_name(options->array, name, fault);
	if (r < 0)
		return r;
	if (options->level_text == NULL || options->raid_devices == CLI_DEFAULT)
		return fault_set(fault, -EINVAL,
			"build %s: --level and --raid-devices are needed: no superblock tells them",
			name);
	if (options->export == CLI_EXPORT_NONE)
		return fault_set(
			fault, -EINVAL, "build %s: with --export=none nothing would be done", name);
	return 0;
}

static bool is_missing(const char *word)
{
	return strcmp(word, "missing") == 0;
}

static unsigned count_missing(const struct cli_options *options)
{
	unsigned count = 0;

	for (unsigned i = 0; i < options->member_count; i++)
		count += is_missing(options->members[i]);
	return count;
}

/* As in mdadm: without superblocks nothing could tell which members' parity is right. */
static int check_level(const struct cli_options *options, const char *name, struct fault *fault)
{
	if (options->level != GEOMETRY_LEVEL_LINEAR && options->level != 0 && options->level != 1 &&
		options->level != 10)
		return fault_set(fault, -EOPNOTSUPP,
			"build %s: arrays of level %s cannot be built without superblocks; use "
			"linear, 0, 1 or 10, or create",
			name, md_level_name(options->level));
	if (count_missing(options) == options->member_count)
		return fault_set(fault, -EINVAL,
			"build %s: no members given: name at least one device", name);
	if (options->bitmap == MD_PLAN_BITMAP_INTERNAL)
		return fault_set(fault, -EINVAL,
			"build %s: an internal bitmap stands beside a superblock, and there is "
			"none; leave out --bitmap, or use create",
			name);
	if (count_missing(options) > 0 && options->level <= 0)
		return fault_set(fault, -EINVAL,
			"build %s: 'missing' is impossible with level %s: it has no redundancy, "
			"every member must be there",
			name, md_level_name(options->level));
	return 0;
}

static int check_request(const struct cli_options *options, const char *name, struct fault *fault)
{
	int r = check_level(options, name, fault);

	if (r < 0)
		return r;
	if (options->member_count != options->raid_devices)
		return fault_set(fault, -ENODEV,
			"build %s: %u members given, --raid-devices=%llu asked for", name,
			options->member_count, (unsigned long long)options->raid_devices);
	if (options->member_count > GEOMETRY_SLOTS_MAX)
		return fault_set(
			fault, -EINVAL, "build %s: at most %u members", name, GEOMETRY_SLOTS_MAX);
	return 0;
}

static void fill_super(const struct cli_options *options, struct md_super *super)
{
	*super = (struct md_super){
		.version = MD_VERSION_1_2,
		.level = options->level,
		.raid_disks = options->member_count,
		.resync_offset = MD_CLEAN,
	};
}

static uint64_t default_chunk(int level)
{
	return level == GEOMETRY_LEVEL_LINEAR || level == 1 ? 0 : DEFAULT_CHUNK_BYTES;
}

static uint32_t default_layout(int level)
{
	return level == 0 ? GEOMETRY_RAID0_ORIGINAL : level == 10 ? RAID10_NEAR_2 : 0;
}

static int fill_shape(
	const struct cli_options *options, struct md_assembly *ret, struct fault *fault)
{
	uint64_t chunk = options->chunk_bytes;

	if (chunk == CLI_DEFAULT)
		chunk = default_chunk(options->level);
	if (chunk > UINT32_MAX)
		return fault_set(fault, -EINVAL, "chunk of %llu bytes: at most 4 GiB are possible",
			(unsigned long long)chunk);
	ret->slot_count = options->member_count;
	ret->level = options->level;
	ret->chunk_bytes = (uint32_t)chunk;
	ret->layout = options->layout == CLI_DEFAULT ? default_layout(options->level)
						     : (uint32_t)options->layout;
	if (options->level == GEOMETRY_LEVEL_LINEAR)
		ret->layout = 0;
	return 0;
}

/* What redundancy wants beyond slots; a resync is due unless the user knows better. */
static void fill_redundancy(const struct cli_options *options, struct md_assembly *ret)
{
	uint64_t least = UINT64_MAX;

	for (unsigned i = 0; i < ret->slot_count; i++) {
		const struct md_assembly_slot *slot = &ret->slots[i];

		if (slot->candidate < 0)
			continue;
		least = min_u64(least, slot->data_bytes);
		ret->devices[ret->device_count++] = (struct md_assembly_device){
			.candidate = (unsigned)slot->candidate,
			.slot = i,
			.in_sync = true,
			.write_mostly = (options->member_flags[i] & CLI_WORD_WRITE_MOSTLY) != 0,
			.failfast = (options->member_flags[i] & CLI_WORD_FAILFAST) != 0,
			.data_bytes = slot->data_bytes,
			.dev_number = i,
		};
	}
	ret->component_bytes = ret->chunk_bytes != 0 ? round_down(least, ret->chunk_bytes) : least;
	ret->clean = options->assume_clean;
	ret->resync_offset_bytes = options->assume_clean ? MD_CLEAN : 0;
	ret->in_sync_count = ret->device_count;
	ret->degraded = ret->in_sync_count < ret->slot_count;
}

static int fill_assembly(const struct cli_options *options, const struct member_set *set,
	const struct md_super *super, struct md_assembly *ret, struct fault *fault)
{
	unsigned member = 0;
	int r;

	md_assembly_clear(ret);
	ret->super = super;
	r = fill_shape(options, ret, fault);
	if (r < 0)
		return r;
	for (unsigned i = 0; i < options->member_count; i++) {
		if (is_missing(options->members[i])) {
			ret->missing_count++;
			continue;
		}
		ret->slots[i].candidate = (int)member;
		ret->slots[i].data_bytes = round_down(set->members[member]->size_bytes, MD_SECTOR);
		member++;
	}
	if (options->level > 0)
		fill_redundancy(options, ret);
	return assembly_check(ret, fault);
}

static int open_members(
	const struct cli_options *options, struct member_set *set, struct fault *fault)
{
	_cleanup_free_ char **paths = calloc(options->member_count + 1, sizeof(*paths));
	unsigned flags = MEMBER_EXCLUSIVE | (options->readonly ? MEMBER_READONLY : 0);
	unsigned count = 0;

	if (paths == NULL)
		return fault_set(fault, -ENOMEM, "no memory");
	for (unsigned i = 0; i < options->member_count; i++)
		if (!is_missing(options->members[i]))
			paths[count++] = options->members[i];
	return member_set_open(set, paths, count, flags, fault);
}

static int build(const struct cli_options *options, char *name, struct fault *fault)
{
	_cleanup_(member_set_close) struct member_set set = {NULL, NULL, 0};
	_cleanup_(runtime_release) struct runtime_claim claim = {.fd = -1};
	_cleanup_free_ struct md_assembly *assembly = calloc(1, sizeof(*assembly));
	_cleanup_free_ struct md_super *super = calloc(1, sizeof(*super));
	struct start start = {options, assembly, &set, name, false};
	int r;

	if (assembly == NULL || super == NULL)
		return fault_set(fault, -ENOMEM, "no memory");
	r = check_request(options, name, fault);
	if (r == 0)
		r = start_possible(name, &claim, fault);
	if (r == 0)
		r = open_members(options, &set, fault);
	if (r < 0)
		return r;
	fill_super(options, super);
	r = fill_assembly(options, &set, super, assembly, fault);
	return r < 0 ? r : start_array(&start, fault);
}

int cli_build(const struct cli_options *options)
{
	_cleanup_free_ struct fault *fault = calloc(1, sizeof(*fault));
	char name[NAME_MAX];

	if (fault == NULL)
		return say_no_memory();
	if (check_words(options, name, fault) < 0)
		return say_fault(fault, CLI_USAGE);
	return build(options, name, fault) < 0 ? say_fault(fault, CLI_FAILED) : CLI_OK;
}
