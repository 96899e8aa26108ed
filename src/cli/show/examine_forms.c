/* SPDX-License-Identifier: MIT */

/* examine: the forms for programs and configuration files, --export and --brief. */

#include <inttypes.h>
#include <string.h>

#include "cli/show/examine.h"
#include "cli/show/format.h"

void examine_export(const struct examine_device *device, FILE *out)
{
	const struct md_super *super = &device->super;
	bool old = super->version == MD_VERSION_0_90;
	char text[FORMAT_SIZE_TEXT], uuid[MD_UUID_TEXT];
	uint64_t bytes;

	fprintf(out, "MD_LEVEL=%s\n", md_level_name(super->level));
	fprintf(out, "MD_DEVICES=%d\n", (int)super->raid_disks);
	if (!old && super->name[0] != '\0') {
		fprintf(out, "MD_NAME=");
		print_clean(out, super->name);
		fprintf(out, "\n");
	}
	if (!old && examine_array_bytes(super, &bytes))
		fprintf(out, "MD_ARRAY_SIZE=%s\n", format_size_brief(bytes, false, text));
	fprintf(out, "MD_UUID=%s\n", md_uuid_format(super->set_uuid, uuid));
	/* mdadm 4.2 gives 0.90's creation time here; who needs the update time takes the JSON. */
	fprintf(out, "MD_UPDATE_TIME=%" PRIu64 "\n",
		examine_seconds(old ? super->ctime : super->utime));
	if (!old)
		fprintf(out, "MD_DEV_UUID=%s\n", md_uuid_format(super->device_uuid, uuid));
	fprintf(out, "MD_EVENTS=%" PRIu64 "\n", super->events);
}

static void brief_line_090(const struct md_super *super, bool verbose, FILE *out)
{
	char uuid[MD_UUID_TEXT];

	fprintf(out, "ARRAY /dev/md%d", (int)super->v090.md_minor);
	if (verbose)
		fprintf(out, " level=%s num-devices=%d", md_level_name(super->level),
			(int)super->raid_disks);
	fprintf(out, " UUID=%s\n", md_uuid_format(super->set_uuid, uuid));
}

static void brief_line(const struct md_super *super, bool verbose, FILE *out)
{
	const char *level = md_level_name(super->level);
	char uuid[MD_UUID_TEXT];

	if (super->version == MD_VERSION_0_90) {
		brief_line_090(super, verbose, out);
		return;
	}
	fprintf(out, "ARRAY ");
	if (super->name[0] != '\0') {
		fprintf(out, "/dev/md/");
		print_path_part(out, md_name_bare(super->name));
		fprintf(out, " ");
	}
	if (verbose && strcmp(level, "-unknown-") != 0)
		fprintf(out, " level=%s", level);
	fprintf(out, " metadata=%s ", md_format(super->version)->name);
	if (verbose)
		fprintf(out, "num-devices=%d ", (int)super->raid_disks);
	fprintf(out, "UUID=%s", md_uuid_format(super->set_uuid, uuid));
	if (super->name[0] != '\0') {
		fprintf(out, " name=");
		print_quoted(out, super->name);
	}
	fprintf(out, "\n");
}

static bool same_array(const struct md_super *a, const struct md_super *b)
{
	return (a->version == MD_VERSION_0_90) == (b->version == MD_VERSION_0_90) &&
	       memcmp(a->set_uuid, b->set_uuid, sizeof(a->set_uuid)) == 0;
}

static bool is_first_of_its_array(const struct examine_device *devices, unsigned index)
{
	for (unsigned i = 0; i < index; i++)
		if (same_array(&devices[i].super, &devices[index].super))
			return false;
	return true;
}

static void brief_array(const struct examine_device *devices, unsigned count, unsigned first,
	const struct show_options *options)
{
	const struct md_super *super = &devices[first].super;
	unsigned spares = 0;
	char separator = '=';

	brief_line(super, options->verbose, options->out);
	for (unsigned i = first; i < count; i++)
		if (same_array(super, &devices[i].super) && !examine_is_active(&devices[i].super))
			spares++;
	if (spares > 0)
		fprintf(options->out, "   spares=%u", spares);
	if (options->verbose) {
		fprintf(options->out, "   devices");
		for (unsigned i = first; i < count; i++) {
			if (!same_array(super, &devices[i].super))
				continue;
			fprintf(options->out, "%c%s", separator, devices[i].path);
			separator = ',';
		}
	}
	if (spares > 0 || options->verbose)
		fprintf(options->out, "\n");
}

/* mdadm lists the array it found last first. */
void examine_brief(
	const struct examine_device *devices, unsigned count, const struct show_options *options)
{
	for (unsigned i = count; i-- > 0;)
		if (is_first_of_its_array(devices, i))
			brief_array(devices, count, i, options);
}
