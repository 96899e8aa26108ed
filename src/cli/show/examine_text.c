/* SPDX-License-Identifier: MIT */

/* examine: the text for version 1 superblocks, byte for byte mdadm 4.2's. */

#include <inttypes.h>

#include "cli/show/examine.h"
#include "cli/show/format.h"

static const char *layout_text(int level, uint32_t layout, char buffer[32])
{
	const char *name = md_layout_name(level, layout, buffer);

	if (name != NULL)
		return name;
	if (level == 0 && layout == 0)
		return "dangerous"; /* recorded as "not known which" */
	if (level != 10)
		return "-unknown-";
	snprintf(buffer, 32, "near=%u, far=%u", layout & 255, (layout >> 8) & 255);
	return buffer;
}

/* The levels whose layouts have names that are printed; level 0 only if it is recorded. */
static bool layout_is_shown(const struct md_super *super)
{
	return super->level == 5 || super->level == 6 || super->level == 10 ||
	       (super->level == 0 && (super->feature_map & MD_FEATURE_RAID0_LAYOUT) != 0);
}

void examine_text_layout(const struct md_super *super, FILE *out)
{
	char buffer[32];

	if (layout_is_shown(super))
		fprintf(out, "         Layout : %s\n",
			layout_text(super->level, super->layout, buffer));
	switch (super->level) {
	case 0:
	case 4:
	case 5:
	case 6:
	case 10:
		fprintf(out, "     Chunk Size : %" PRIu32 "K\n", super->chunk_sectors / 2);
		break;
	case -1:
		fprintf(out, "       Rounding : %" PRIu32 "K\n", super->chunk_sectors / 2);
		break;
	}
	fprintf(out, "\n");
}

static void print_new_layout(const struct md_super *super, FILE *out)
{
	uint32_t layout = super->new_layout;
	char buffer[32];

	if (layout == super->layout)
		return;
	if (super->level == 10 && super->version == MD_VERSION_0_90)
		fprintf(out, "     New Layout : near=%u, %s=%u\n", layout & 255,
			(layout & 0x10000) != 0 ? "offset" : "far", (layout >> 8) & 255);
	else if (super->level == 5 || super->level == 6 || super->level == 10)
		fprintf(out, "     New Layout : %s\n", layout_text(super->level, layout, buffer));
}

void examine_text_reshape(const struct md_super *super, FILE *out)
{
	bool old = super->version == MD_VERSION_0_90;
	char size[FORMAT_SIZE_TEXT];

	fprintf(out, "  Reshape pos'n : %" PRIu64 "%s\n", super->reshape_position / 2,
		format_size(super->reshape_position * MD_SECTOR, size));
	if (super->delta_disks != 0)
		fprintf(out, "  Delta Devices : %d (%d->%d)\n", super->delta_disks,
			(int)(super->raid_disks - (uint32_t)super->delta_disks),
			(int)super->raid_disks);
	if (super->new_level != super->level)
		fprintf(out, "      New Level : %s\n", md_level_name(super->new_level));
	print_new_layout(super, out);
	if (super->new_chunk_sectors != super->chunk_sectors && old)
		fprintf(out, "  New Chunksize : %" PRIu32 "\n",
			super->new_chunk_sectors * MD_SECTOR);
	else if (super->new_chunk_sectors != super->chunk_sectors)
		fprintf(out, "  New Chunksize : %" PRIu32 "K\n", super->new_chunk_sectors / 2);
	fprintf(out, "\n");
}

static void print_identity(const struct examine_device *device, const char *homehost, FILE *out)
{
	const struct md_super *super = &device->super;
	char uuid[MD_UUID_TEXT], when[FORMAT_TIME_TEXT];

	fprintf(out, "          Magic : a92b4efc\n");
	fprintf(out, "        Version : %s\n", md_format(super->version)->name);
	fprintf(out, "    Feature Map : 0x%" PRIx32 "\n", super->feature_map);
	fprintf(out, "     Array UUID : %s\n", md_uuid_format(super->set_uuid, uuid));
	fprintf(out, "           Name : ");
	print_clean(out, super->name);
	if (examine_is_local(super, homehost))
		fprintf(out, "  (local to host %s)", homehost);
	fprintf(out, "\n");
	if (device->bitmap.found && device->bitmap.nodes > 0) {
		fprintf(out, "   Cluster Name : ");
		print_clean(out, device->bitmap.cluster_name);
		fprintf(out, "\n");
	}
	fprintf(out, "  Creation Time : %s\n", format_time(examine_seconds(super->ctime), when));
	fprintf(out, "     Raid Level : %s\n", md_level_name(super->level));
	fprintf(out, "   Raid Devices : %d\n", (int)super->raid_disks);
	fprintf(out, "\n");
}

static void print_sizes(const struct examine_device *device, FILE *out)
{
	const struct md_super *super = &device->super;
	char text[FORMAT_SIZE_TEXT];
	uint64_t bytes;

	fprintf(out, " Avail Dev Size : %" PRIu64 " sectors%s\n", super->data_sectors,
		format_size(super->data_sectors * MD_SECTOR, text));
	if (examine_array_bytes(super, &bytes))
		fprintf(out, "     Array Size : %" PRIu64 " KiB%s\n", bytes >> 10,
			format_size(bytes, text));
	/* mdadm takes a negative level for a large one: linear shows its used size, 0. */
	if (super->level != 0 && super->size_sectors != super->data_sectors)
		fprintf(out, "  Used Dev Size : %" PRIu64 " sectors%s\n", super->size_sectors,
			format_size(super->size_sectors * MD_SECTOR, text));
}

static void print_offsets(const struct examine_device *device, FILE *out)
{
	/* Both facts are in the same bytes; the flag decides here, whatever the role says. */
	bool is_journal = md_super_role(&device->super) == MD_ROLE_JOURNAL;
	const struct md_super *super = &device->super;
	struct examine_unused unused = examine_unused(device);

	if (super->data_offset != 0)
		fprintf(out, "    Data Offset : %" PRIu64 " sectors\n", super->data_offset);
	if (super->new_offset != 0 && (super->feature_map & MD_FEATURE_NEW_OFFSET) != 0)
		fprintf(out, "     New Offset : %" PRIu64 " sectors\n",
			super->data_offset + (uint64_t)(int64_t)super->new_offset);
	fprintf(out, "   Super Offset : %" PRIu64 " sectors\n", super->super_offset);
	if ((super->feature_map & MD_FEATURE_RECOVERY_OFFSET) != 0)
		fprintf(out, "Recovery Offset : %" PRIu64 " sectors\n",
			is_journal ? super->journal_tail : super->recovery_offset);
	if (unused.before != 0 || unused.after != 0)
		fprintf(out,
			"   Unused Space : before=%" PRIu64 " sectors, after=%" PRIu64 " sectors\n",
			unused.before, unused.after);
}

static void print_state(const struct md_super *super, FILE *out)
{
	char uuid[MD_UUID_TEXT];

	fprintf(out, "          State : %s\n",
		super->resync_offset == MD_CLEAN ? "clean" : "active");
	fprintf(out, "    Device UUID : %s\n\n", md_uuid_format(super->device_uuid, uuid));
	if ((super->feature_map & MD_FEATURE_BITMAP) != 0)
		fprintf(out, "Internal Bitmap : %" PRId32 " sectors from superblock\n",
			super->bitmap_offset);
	else if ((super->feature_map & (MD_FEATURE_PPL | MD_FEATURE_MULTIPLE_PPL)) != 0)
		fprintf(out, "            PPL : %u sectors at offset %d sectors from superblock\n",
			super->ppl_sectors, super->ppl_offset);
	if ((super->feature_map & MD_FEATURE_RESHAPE) != 0)
		examine_text_reshape(super, out);
	if (super->devflags != 0)
		fprintf(out, "          Flags :%s%s\n",
			(super->devflags & MD_DEVFLAG_WRITE_MOSTLY) != 0 ? " write-mostly" : "",
			(super->devflags & MD_DEVFLAG_FAILFAST) != 0 ? " failfast" : "");
}

static void print_upkeep(const struct md_super *super, FILE *out)
{
	char when[FORMAT_TIME_TEXT];

	fprintf(out, "    Update Time : %s\n", format_time(examine_seconds(super->utime), when));
	if (super->bblog_sectors != 0 && super->bblog_offset != 0)
		fprintf(out,
			"  Bad Block Log : %u entries available at offset %" PRId32 " sectors%s\n",
			super->bblog_sectors * (MD_SECTOR / 8), super->bblog_offset,
			(super->feature_map & MD_FEATURE_BAD_BLOCKS) != 0 ? " - bad blocks present."
									  : "");
	/* mdadm has no line for this; kernels up to 6.18 refuse such a superblock. */
	if (super->logical_block_bytes != 0)
		fprintf(out,
			"     Block Size : logical block size %" PRIu32 "; needs kernel >= 6.19\n",
			super->logical_block_bytes);
	if (super->checksum == super->checksum_expected)
		fprintf(out, "       Checksum : %" PRIx32 " - correct\n", super->checksum);
	else
		fprintf(out, "       Checksum : %" PRIx32 " - expected %" PRIx32 "\n",
			super->checksum, super->checksum_expected);
	fprintf(out, "         Events : %" PRIu64 "\n\n", super->events);
}

static void print_roles(const struct md_super *super, FILE *out)
{
	fprintf(out, "WARNING Array state is inconsistent - each number should appear only once\n");
	for (unsigned i = 0; i < super->role_count && i < MD_ROLES_MAX; i++)
		if (super->roles[i] >= MD_ROLE_FAULTY)
			fprintf(out, " %u:-", i);
		else
			fprintf(out, " %u:%u", i, super->roles[i]);
	fprintf(out, "\n");
}

static void print_role(const struct md_super *super, FILE *out)
{
	unsigned role = md_super_role(super);
	char state[MD_ROLES_MAX + 1];
	bool consistent = examine_array_state(super, state);

	if (role == MD_ROLE_JOURNAL)
		fprintf(out, "   Device Role : Journal\n");
	else if (role >= EXAMINE_NO_SLOT)
		fprintf(out, "   Device Role : spare\n");
	else
		fprintf(out, "   Device Role : %s device %u\n",
			(super->feature_map & MD_FEATURE_REPLACEMENT) != 0 ? "Replacement"
									   : "Active",
			role);
	fprintf(out, "   Array State : %s ('A' == active, '.' == missing, 'R' == replacing)\n",
		state);
	if (!consistent)
		print_roles(super, out);
}

void examine_text(const struct examine_device *device, const struct show_options *options)
{
	FILE *out = options->out;

	fprintf(out, "%s:\n", device->path);
	if (device->super.version == MD_VERSION_0_90) {
		examine_text_090(device, options);
		return;
	}
	print_identity(device, options->homehost, out);
	print_sizes(device, out);
	print_offsets(device, out);
	print_state(&device->super, out);
	print_upkeep(&device->super, out);
	examine_text_layout(&device->super, out);
	print_role(&device->super, out);
}
