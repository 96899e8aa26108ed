/* SPDX-License-Identifier: MIT */

/* create: from the command line and the opened members to what has to be written. */

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "cli/create.h"
#include "cli/run.h"
#include "cli/say.h"
#include "util/cleanup.h"

static int random_bytes(void *buffer, size_t length, struct fault *fault)
{
	if (getrandom(buffer, length, 0) != (ssize_t)length)
		return fault_set(fault, -EIO, "no random numbers for a UUID: %s", strerror(errno));
	return 0;
}

static int fill_devices(struct creation *creation)
{
	const uint8_t *flags = creation->options->member_flags;
	int r = 0;

	for (unsigned i = 0; r == 0 && i < creation->count; i++) {
		const struct member *member;

		creation->devices[i] = (struct md_plan_device){0};
		if (creation->member_of[i] == CREATION_MISSING)
			continue;
		member = creation->set.members[creation->member_of[i]];
		creation->devices[i] = (struct md_plan_device){
			.path = member->path,
			.sectors = member->size_bytes / MD_SECTOR,
			.major = member->major,
			.minor = member->minor,
			.write_mostly = (flags[i] & CLI_WORD_WRITE_MOSTLY) != 0,
			.failfast = (flags[i] & CLI_WORD_FAILFAST) != 0,
		};
		r = random_bytes(creation->devices[i].device_uuid, 16, creation->fault);
	}
	return r;
}

static uint64_t in_sectors(uint64_t bytes)
{
	return bytes == CLI_DEFAULT ? MD_PLAN_DEFAULT : bytes / MD_SECTOR;
}

static int fill_options(struct creation *creation)
{
	const struct cli_options *options = creation->options;
	const char *bare = start_bare_name(creation->name);
	struct timespec now;

	(void)clock_gettime(CLOCK_REALTIME, &now);
	creation->plan = (struct md_plan_options){
		.version = options->version,
		.level = options->level,
		.chunk_sectors = in_sectors(options->chunk_bytes),
		.layout = options->layout,
		.size_sectors = in_sectors(options->size_bytes),
		.data_offset = in_sectors(options->data_offset_bytes),
		.raid_disks = creation->count - (unsigned)options->spare_devices,
		.spare_disks = (unsigned)options->spare_devices,
		.name = options->name != NULL ? options->name : bare,
		.homehost = cli_homehost(options),
		.md_minor = bare != creation->name ? (uint32_t)strtoul(bare, NULL, 10) : 127,
		.assume_clean = options->assume_clean,
		.force = options->force,
		.layout_explicit = options->layout_text != NULL,
		.bitmap = options->bitmap,
		.consistency = options->consistency,
		.bitmap_chunk_bytes = options->bitmap_chunk_bytes,
		.daemon_sleep_seconds = options->daemon_sleep_seconds,
		.write_behind = options->write_behind,
		.uuid_given = options->uuid_given,
		.now_seconds = (uint64_t)now.tv_sec,
		/* md reads the high bits of the time as seconds too: 2106. mdadm writes none. */
		.now_microseconds = 0,
	};
	memcpy(creation->plan.set_uuid, options->uuid, 16);
	return options->uuid_given ? 0 : random_bytes(creation->plan.set_uuid, 16, creation->fault);
}

/* The plan has a superblock for each device that was listed; the set has them by member. */
static int make(struct creation *creation)
{
	_cleanup_free_ struct md_super *supers = calloc(creation->count, sizeof(*supers));
	int r;

	if (supers == NULL)
		return fault_set(
			creation->fault, -ENOMEM, "no memory for %u members", creation->count);
	r = md_plan_create(
		&creation->plan, creation->devices, creation->count, supers, creation->fault);
	for (unsigned i = 0; r == 0 && i < creation->count; i++)
		if (creation->member_of[i] != CREATION_MISSING)
			creation->set.supers[creation->member_of[i]] = supers[i];
	return r;
}

static int make_bitmap(struct creation *creation)
{
	struct md_bitmap header;

	creation->bitmap_area = calloc(1, MD_PLAN_BITMAP_BYTES_MAX);
	if (creation->bitmap_area == NULL)
		return fault_set(creation->fault, -ENOMEM, "no memory for the bitmap");
	creation->bitmap_bytes = md_plan_bitmap(
		&creation->plan, &creation->set.supers[0], &header, creation->bitmap_area);
	return 0;
}

/* Members that are all zeros make an array that is clean at once. */
static int use_blanks(struct creation *creation)
{
	if (creation->plan.level <= 0 || creation->plan.assume_clean ||
		!creation_is_blank(creation))
		return 0;
	creation->plan.blank = true;
	return make(creation);
}

static int take_memory(struct creation *creation)
{
	creation->devices = calloc(creation->count, sizeof(*creation->devices));
	creation->set.supers = calloc(creation->set.count + 1, sizeof(*creation->set.supers));
	if (creation->devices == NULL || creation->set.supers == NULL)
		return fault_set(
			creation->fault, -ENOMEM, "no memory for %u members", creation->count);
	return 0;
}

int creation_plan(struct creation *creation)
{
	struct md_assembly_options assembly_options = {.force = false};
	int r = take_memory(creation);

	if (r == 0)
		r = fill_devices(creation);
	if (r == 0)
		r = fill_options(creation);
	if (r == 0)
		r = make(creation);
	if (r == 0)
		r = use_blanks(creation);
	if (r == 0)
		r = make_bitmap(creation);
	if (r == 0)
		r = member_set_assemble(
			&creation->set, &assembly_options, &creation->assembly, creation->fault);
	if (r < 0) {
		(void)fault_prefix(creation->fault, "create %s: ", creation->name);
		(void)fault_append(creation->fault, "; nothing was written");
	}
	return r;
}
