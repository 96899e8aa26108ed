/* SPDX-License-Identifier: MIT */

/* build: an array of members without superblocks. What a superblock would say is said by options.
 */

#include <errno.h>
#include <stdlib.h>

#include "cli/run.h"
#include "cli/say.h"
#include "cli/start.h"
#include "engine/engine.h"
#include "util/cleanup.h"

#define DEFAULT_CHUNK_BYTES (512u * 1024)

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

static int check_request(const struct cli_options *options, const char *name, struct fault *fault)
{
	if (engine_level_name(options->level) == NULL)
		return fault_set(fault, -EOPNOTSUPP, "not yet supported: build of level %s",
			md_level_name(options->level));
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

static int fill_assembly(const struct cli_options *options, const struct member_set *set,
	const struct md_super *super, struct md_assembly *ret, struct fault *fault)
{
	uint64_t chunk = options->chunk_bytes;
	unsigned i;

	if (chunk == CLI_DEFAULT)
		chunk = options->level == GEOMETRY_LEVEL_LINEAR ? 0 : DEFAULT_CHUNK_BYTES;
	if (chunk > UINT32_MAX)
		return fault_set(fault, -EINVAL, "chunk of %llu bytes: at most 4 GiB are possible",
			(unsigned long long)chunk);
	ret->super = super;
	ret->slot_count = set->count;
	ret->level = options->level;
	ret->chunk_bytes = (uint32_t)chunk;
	ret->layout = options->layout == CLI_DEFAULT ? GEOMETRY_RAID0_ORIGINAL
						     : (uint32_t)options->layout;
	if (options->level == GEOMETRY_LEVEL_LINEAR)
		ret->layout = 0;
	for (i = 0; i < set->count; i++) {
		ret->slots[i].candidate = (int)i;
		ret->slots[i].data_bytes = set->members[i]->size_bytes / MD_SECTOR * MD_SECTOR;
	}
	return assembly_check(ret, fault);
}

static int build(const struct cli_options *options, char *name, struct fault *fault)
{
	_cleanup_(member_set_close) struct member_set set = {NULL, NULL, 0};
	_cleanup_(runtime_release) struct runtime_claim claim = {.fd = -1};
	_cleanup_free_ struct md_assembly *assembly = calloc(1, sizeof(*assembly));
	_cleanup_free_ struct md_super *super = calloc(1, sizeof(*super));
	struct start start = {options, assembly, &set, name, false};
	unsigned flags = MEMBER_EXCLUSIVE | (options->readonly ? MEMBER_READONLY : 0);
	int r;

	if (assembly == NULL || super == NULL)
		return fault_set(fault, -ENOMEM, "no memory");
	r = check_request(options, name, fault);
	if (r == 0)
		r = start_possible(name, &claim, fault);
	if (r == 0)
		r = member_set_open(&set, options->members, options->member_count, flags, fault);
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
		return CLI_FAILED;
	if (check_words(options, name, fault) < 0)
		return say_fault(fault, CLI_USAGE);
	return build(options, name, fault) < 0 ? say_fault(fault, CLI_FAILED) : CLI_OK;
}
