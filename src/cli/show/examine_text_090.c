/* SPDX-License-Identifier: MIT */

/* examine: the text for version 0.90 superblocks, byte for byte mdadm 4.2's. */

#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "cli/show/examine.h"
#include "cli/show/format.h"

#define STATE_CLEAN 0x1u
#define STATE_BITMAP 0x100u
#define DISK_WRITE_MOSTLY 0x200u
#define DISK_FAILFAST 0x400u
#define DISKS_MAX 27

static void print_identity(const struct md_super *super, const char *homehost, FILE *out)
{
	char uuid[MD_UUID_TEXT], when[FORMAT_TIME_TEXT];

	fprintf(out, "          Magic : a92b4efc\n");
	fprintf(out, "        Version : 0.%02" PRIu32 ".00\n", super->v090.minor_version);
	fprintf(out, "           UUID : %s", md_uuid_format(super->set_uuid, uuid));
	if (examine_is_local(super, homehost))
		fprintf(out, " (local to host %s)", homehost);
	fprintf(out, "\n");
	fprintf(out, "  Creation Time : %s\n", format_time(examine_seconds(super->ctime), when));
	fprintf(out, "     Raid Level : %s\n", md_level_name(super->level));
}

static void print_sizes(const struct md_super *super, FILE *out)
{
	char text[FORMAT_SIZE_TEXT];
	uint64_t bytes;

	if (super->level > 0)
		fprintf(out, "  Used Dev Size : %d%s\n", (int)(super->size_sectors / 2),
			format_size(super->size_sectors * MD_SECTOR, text));
	if (examine_array_bytes(super, &bytes))
		fprintf(out, "     Array Size : %" PRIu64 "%s\n", bytes >> 10,
			format_size(bytes, text));
	fprintf(out, "   Raid Devices : %d\n", (int)super->raid_disks);
	fprintf(out, "  Total Devices : %d\n", (int)super->v090.nr_disks);
	fprintf(out, "Preferred Minor : %d\n\n", (int)super->v090.md_minor);
}

static void print_upkeep(const struct md_super *super, FILE *out)
{
	const struct md_super_090 *old = &super->v090;
	char when[FORMAT_TIME_TEXT];

	fprintf(out, "    Update Time : %s\n", format_time(examine_seconds(super->utime), when));
	fprintf(out, "          State : %s\n",
		(old->state & STATE_CLEAN) != 0 ? "clean" : "active");
	if ((old->state & STATE_BITMAP) != 0)
		fprintf(out, "Internal Bitmap : present\n");
	fprintf(out, " Active Devices : %d\n", (int)old->active_disks);
	fprintf(out, "Working Devices : %d\n", (int)old->working_disks);
	fprintf(out, " Failed Devices : %d\n", (int)old->failed_disks);
	fprintf(out, "  Spare Devices : %d\n", (int)old->spare_disks);
	if (super->checksum == super->checksum_expected)
		fprintf(out, "       Checksum : %" PRIx32 " - correct\n", super->checksum);
	else
		fprintf(out, "       Checksum : %" PRIx32 " - expected %" PRIx32 "\n",
			super->checksum, super->checksum_expected);
	fprintf(out, "         Events : %" PRIu64 "\n\n", super->events);
}

/* The node of the device that has this number on this machine now; false if there is none. */
static bool device_node(uint32_t major, uint32_t minor, char ret[PATH_MAX])
{
	char path[64], target[PATH_MAX];
	const char *name;
	ssize_t length;

	if (major == 0 && minor == 0)
		return false;
	snprintf(path, sizeof(path), "/sys/dev/block/%" PRIu32 ":%" PRIu32, major, minor);
	length = readlink(path, target, sizeof(target) - 1);
	if (length <= 0)
		return false;
	target[length] = '\0';
	name = strrchr(target, '/');
	if (name == NULL)
		return false;
	snprintf(ret, PATH_MAX, "/dev%s", name);
	return access(ret, F_OK) == 0;
}

static void print_disk(const char *label, const struct md_super_090_disk *disk, FILE *out)
{
	static const char *const words[] = {" faulty", " active", " sync", " removed"};
	uint32_t flags = disk->state & (DISK_WRITE_MOSTLY | DISK_FAILFAST);
	char node[PATH_MAX];

	fprintf(out, "%4s %5d   %5d    %5d    %5d     ", label, (int)disk->number, (int)disk->major,
		(int)disk->minor, (int)disk->raid_disk);
	for (unsigned bit = 0; bit < 4; bit++)
		if ((disk->state & (1u << bit)) != 0)
			fprintf(out, "%s", words[bit]);
	if ((flags & DISK_WRITE_MOSTLY) != 0)
		fprintf(out, " write-mostly");
	if ((flags & DISK_FAILFAST) != 0)
		fprintf(out, " failfast");
	if (disk->state == flags)
		fprintf(out, " spare");
	if (device_node(disk->major, disk->minor, node))
		fprintf(out, "   %s", node);
	fprintf(out, "\n");
}

static void print_disks(const struct md_super *super, FILE *out)
{
	int64_t count = (int64_t)super->raid_disks + super->v090.spare_disks;
	char label[16];

	if ((super->feature_map & MD_FEATURE_RESHAPE) != 0 && super->delta_disks < 0)
		count -= super->delta_disks;
	fprintf(out, "      Number   Major   Minor   RaidDevice State\n");
	print_disk("this", &super->v090.this_disk, out);
	fprintf(out, "\n");
	for (int i = 0; i < count && i < DISKS_MAX; i++) {
		snprintf(label, sizeof(label), "%4d", i);
		print_disk(label, &super->v090.disks[i], out);
	}
}

void examine_text_090(const struct examine_device *device, const struct show_options *options)
{
	const struct md_super *super = &device->super;

	print_identity(super, options->homehost, options->out);
	print_sizes(super, options->out);
	if (super->v090.minor_version > 90)
		examine_text_reshape(super, options->out);
	print_upkeep(super, options->out);
	examine_text_layout(super, options->out);
	print_disks(super, options->out);
}
