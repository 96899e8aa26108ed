/* SPDX-License-Identifier: MIT */

/*
 * The table of options. The order is the order of --help and of the manual page. Where a letter or
 * a long name means different things in different modes (mdadm's -b, -c, -f, --export), the rows
 * differ in their modes; before the mode is known, the first row counts.
 */

#include <errno.h>
#include <string.h>

#include "cli/table.h"
#include "cli/values.h"
#include "geometry/geometry.h"

#define C CLI_BIT(CLI_CREATE)
#define A CLI_BIT(CLI_ASSEMBLE)
#define B CLI_BIT(CLI_BUILD)
#define D CLI_BIT(CLI_DETAIL)
#define E CLI_BIT(CLI_EXAMINE)
#define S CLI_BIT(CLI_STOP)
#define Z CLI_BIT(CLI_ZERO)
#define Q CLI_BIT(CLI_QUERY)
#define T CLI_BIT(CLI_STATUS)
#define K CLI_BIT(CLI_CAT)
#define ALL CLI_ALL
#define AT(field) offsetof(struct cli_options, field)

static int bad_value(const char *what, const char *value, const char *wanted, struct fault *fault)
{
	return fault_set(fault, -EINVAL, "invalid %s: '%s'; use %s", what, value, wanted);
}

static int apply_level(struct cli_options *options, const char *value, struct fault *fault)
{
	static const char *const names[] = {"linear", "raid0", "raid1", "raid4", "raid5", "raid6",
		"raid10", "stripe", "mirror", "multipath", "faulty", "container"};
	struct nearest nearest = {.word = value};
	unsigned i;

	if (md_level_parse(value, &options->level) == 0) {
		options->level_text = value;
		return 0;
	}
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		nearest_feed(&nearest, names[i]);
	(void)fault_set(fault, -EINVAL, "invalid raid level: '%s'", value);
	if (nearest.best != NULL)
		(void)fault_append(fault, "; did you mean '%s'?", nearest.best);
	return fault_append(fault, "\nuse 0 (raid0, stripe) or linear: these run now");
}

static int apply_metadata(struct cli_options *options, const char *value, struct fault *fault)
{
	const struct md_format *format = md_format_by_name(value);

	if (strcmp(value, "imsm") == 0 || strcmp(value, "ddf") == 0)
		return fault_set(fault, -EOPNOTSUPP, "not yet supported: --metadata=%s", value);
	if (format == NULL)
		return bad_value("metadata version", value, "1.2, 1.1, 1.0 or 0.90", fault);
	options->version = format->version;
	options->metadata_given = true;
	return 0;
}

static int apply_uuid(struct cli_options *options, const char *value, struct fault *fault)
{
	if (md_uuid_parse(value, options->uuid) < 0)
		return bad_value("uuid", value, "32 hexadecimal digits", fault);
	options->uuid_given = true;
	return 0;
}

static int apply_data_offset(struct cli_options *options, const char *value, struct fault *fault)
{
	if (strcmp(value, "variable") == 0)
		return fault_set(fault, -EOPNOTSUPP, "not yet supported: --data-offset=variable");
	if (value_size(value, 1024, &options->data_offset_bytes) < 0)
		return bad_value("data offset", value, "KiB, or a number with K, M, G, s", fault);
	return 0;
}

static int apply_size(struct cli_options *options, const char *value, struct fault *fault)
{
	if (strcmp(value, "max") == 0)
		return 0;
	if (value_size(value, 1024, &options->size_bytes) < 0)
		return bad_value(
			"size", value, "KiB, a number with K, M, G, s, or the word max", fault);
	return 0;
}

static int apply_export(struct cli_options *options, const char *value, struct fault *fault)
{
	static const char *const names[] = {"auto", "fuse", "loop", "nbd", "none"};
	unsigned i;

	if (strncmp(value, "nbd:", 4) == 0 && value[4] != '\0') {
		options->export = CLI_EXPORT_NBD;
		options->nbd_path = value + 4;
		return 0;
	}
	for (i = 0; i < 5; i++) {
		if (strcmp(value, names[i]) == 0 && i != CLI_EXPORT_NBD) {
			options->export = (enum cli_export)i;
			return 0;
		}
	}
	return bad_value("export", value, "auto, fuse, loop, nbd:PATH or none", fault);
}

static int apply_io(struct cli_options *options, const char *value, struct fault *fault)
{
	if (strcmp(value, "sync") != 0 && strcmp(value, "uring") != 0 && strcmp(value, "auto") != 0)
		return bad_value("io", value, "auto, uring or sync", fault);
	options->sync_io = strcmp(value, "sync") == 0;
	options->ring_io = strcmp(value, "uring") == 0;
	return 0;
}

static int apply_update(struct cli_options *options, const char *value, struct fault *fault)
{
	if (strcmp(value, "layout-original") == 0)
		options->update_layout = GEOMETRY_RAID0_ORIGINAL;
	else if (strcmp(value, "layout-alternate") == 0)
		options->update_layout = GEOMETRY_RAID0_ALTERNATE;
	else
		return fault_set(fault, -EOPNOTSUPP,
			"not yet supported: --update=%s (known: layout-original, layout-alternate)",
			value);
	return 0;
}

static int apply_spares(struct cli_options *options, const char *value, struct fault *fault)
{
	uint64_t count;

	if (value_number(value, &count) < 0)
		return bad_value("number of spare-devices", value, "a number", fault);
	if (count == 0)
		return 0;
	return fault_set(fault, -EOPNOTSUPP,
		"not yet supported: --spare-devices; RAID 0 and linear have no use for spares");
}

static int apply_bitmap(struct cli_options *options, const char *value, struct fault *fault)
{
	if (strcmp(value, "none") == 0)
		return 0;
	return fault_set(fault, -EOPNOTSUPP,
		"not yet supported: --bitmap=%s; RAID 0 and linear have no bitmap", value);
}

static int apply_scan_in(struct cli_options *options, const char *value, struct fault *fault)
{
	options->scan_in[options->scan_in_count++] = (char *)value; /* only read */
	return 0;
}

#define MODE(name_, letter_, mode_, help_)                                           \
	{                                                                            \
		.name = name_, .letter = letter_, .modes = ALL, .kind = OPTION_MODE, \
		.mode = mode_, .help = help_                                         \
	}
#define FLAG(name_, letter_, modes_, field, help_)                                      \
	{                                                                               \
		.name = name_, .letter = letter_, .modes = modes_, .kind = OPTION_FLAG, \
		.offset = AT(field), .help = help_                                      \
	}
#define VALUE(kind_, name_, letter_, value_, modes_, field, help_)                                 \
	{                                                                                          \
		.name = name_, .letter = letter_, .value = value_, .modes = modes_, .kind = kind_, \
		.offset = AT(field), .help = help_                                                 \
	}
#define CALL(name_, letter_, value_, modes_, apply_, help_)                         \
	{                                                                           \
		.name = name_, .letter = letter_, .value = value_, .modes = modes_, \
		.kind = OPTION_CALL, .apply = apply_, .help = help_                 \
	}
#define IGNORED(name_, letter_, value_, modes_)                                              \
	{                                                                                    \
		.name = name_, .letter = letter_, .value = value_, .modes = modes_,          \
		.kind = OPTION_IGNORED, .help = "Accepted for mdadm's sake, without effect." \
	}
#define LATER(name_, letter_, value_, modes_)                                       \
	{                                                                           \
		.name = name_, .letter = letter_, .value = value_, .modes = modes_, \
		.kind = OPTION_UNSUPPORTED                                          \
	}

const struct option_row option_rows[] = {
	MODE("create", 'C', CLI_CREATE, "Make a new array."),
	MODE("assemble", 'A', CLI_ASSEMBLE, "Start an array that exists."),
	MODE("build", 'B', CLI_BUILD, "Start an array without superblocks."),
	MODE("detail", 'D', CLI_DETAIL, "Print the facts of a running array."),
	MODE("examine", 'E', CLI_EXAMINE, "Print the superblocks of devices."),
	MODE("stop", 'S', CLI_STOP, "Stop running arrays."),
	MODE("query", 'Q', CLI_QUERY, "Say what a device has to do with arrays."),
	MODE("zero-superblock", 0, CLI_ZERO, "Erase the superblocks of devices."),
	MODE("misc", 0, CLI_NONE, "Accepted for mdadm's sake, without effect."),

	CALL("level", 'l', "LEVEL", C | B, apply_level,
		"RAID level, by number or name: 0, raid0, stripe, linear. Others exist and are not "
		"yet supported."),
	VALUE(OPTION_COUNT, "raid-devices", 'n', "N", C | B, raid_devices,
		"Number of members. If it is not given, the members are counted."),
	VALUE(OPTION_KIB, "chunk", 'c', "SIZE", C | B, chunk_bytes,
		"Chunk size in KiB, or with a unit (64K, 1M). Default: 512K."),
	VALUE(OPTION_KIB, "rounding", 0, "SIZE", C | B, chunk_bytes,
		"For linear arrays: the same as *--chunk*."),
	CALL("metadata", 'e', "VERSION", ALL, apply_metadata,
		"Version of the superblock: 1.2 (default), 1.1, 1.0 or 0.90."),
	VALUE(OPTION_TEXT, "name", 'N', "NAME", C | A | B, name,
		"create: name in the superblock. assemble: start the array that has this name."),
	VALUE(OPTION_TEXT, "homehost", 0, "HOST", C | A | D | E, homehost,
		"Host the array belongs to: part of its name. Default: this host's name; <none>: "
		"no host."),
	CALL("uuid", 'u', "UUID", C | A, apply_uuid,
		"create: UUID of the array instead of a random one. assemble: start the array that "
		"has it."),
	CALL("data-offset", 0, "SIZE", C, apply_data_offset,
		"Where data starts on each member, in KiB or with a unit."),
	CALL("size", 'z', "SIZE", C, apply_size,
		"How much of each member to use, in KiB or with a unit, or max."),
	VALUE(OPTION_TEXT, "layout", 'p', "LAYOUT", C | A | B, layout_text,
		"RAID 0 of unequal members: original or alternate, how the later zones rotate."),
	VALUE(OPTION_TEXT, "parity", 0, "LAYOUT", C | B, layout_text, "The same as *--layout*."),
	CALL("update", 'U', "WHAT", A, apply_update,
		"layout-original or layout-alternate: the layout to assume for a RAID 0 of unequal "
		"members that records none. The superblocks are not changed."),
	FLAG("assume-clean", 0, C | B, assume_clean,
		"Accepted; RAID 0 and linear have no redundancy to synchronise."),
	FLAG("run", 'R', C | A | B, run,
		"create: do not refuse or ask because of what is found on members."),
	FLAG("force", 'f', ALL, force,
		"create: as *--run*. assemble: accept superblocks that look out of date where this "
		"is safe."),
	FLAG("readonly", 'o', C | A | B, readonly,
		"Members are opened for reading only; every write to the array is refused."),
	CALL("export", 0, "HOW", C | A | B, apply_export,
		"How the array appears: auto, loop (block device), fuse (a file), nbd:PATH (Unix "
		"socket), none (create: only write the superblocks, start nothing)."),
	VALUE(OPTION_BYTES, "readahead", 0, "BYTES", C | A | B, readahead_bytes,
		"Read-ahead of the block device, units allowed. Default: two full stripes."),
	CALL("io", 0, "HOW", C | A | B | K, apply_io,
		"How members are read and written: uring (io_uring), sync (pread and pwrite), or "
		"auto: io_uring unless all members are files in memory."),
	CALL("scan-in", 0, "PATH", A, apply_scan_in,
		"With *--uuid*, *--name* or *--scan*: look for members in this directory, file, "
		"device or pattern, or in \"partitions\". May be given several times."),
	FLAG("scan", 's', A | D | E | S | T, scan,
		"assemble: find members, in the given paths or else in /proc/partitions, and start "
		"every complete array. examine: all devices. detail, stop: all running arrays."),
	FLAG("brief", 'b', D | E, brief, "One ARRAY line each."),
	FLAG("export", 'Y', D | E, export_form, "KEY=value lines."),
	FLAG("json", 0, D | E | Q | T, json, "JSON, as docs/json.md describes it."),
	FLAG("test", 't', D, test, "The exit code tells the state of the array."),
	VALUE(OPTION_BYTES, "offset", 0, "BYTES", K, offset_bytes,
		"First byte of the array to write out, units allowed."),
	VALUE(OPTION_BYTES, "length", 0, "BYTES", K, length_bytes,
		"How many bytes to write out, units allowed. Default: to the end."),
	FLAG("verbose", 'v', ALL, verbose, "Say more."),
	FLAG("quiet", 'q', ALL, quiet, "Say less."),
	FLAG("help", 'h', ALL, help, "Print the options, those of a mode if one is given before."),
	FLAG("version", 'V', ALL, version_wanted, "Print the version."),
	VALUE(OPTION_TEXT, "completion", 0, "SHELL", CLI_BIT(CLI_NONE), completion,
		"Print the completion script for bash."),

	IGNORED("auto", 'a', "WHAT", C | A | B),
	IGNORED("config", 'c', "FILE", A | D | E | S),
	IGNORED("no-degraded", 0, NULL, A),
	IGNORED("consistency-policy", 'k', "POLICY", C | B),

	CALL("spare-devices", 'x', "N", C, apply_spares, "Only 0 for now."),
	CALL("bitmap", 'b', "WHERE", C | B | A, apply_bitmap, "Only none for now."),
	LATER("bitmap-chunk", 0, "SIZE", ALL),
	LATER("delay", 'd', "SECONDS", ALL),
	LATER("write-journal", 0, "DEVICE", ALL),
	LATER("backup-file", 0, "FILE", ALL),
	LATER("super-minor", 'm', "N", ALL),
	LATER("nodes", 0, "N", ALL),
	LATER("home-cluster", 0, "NAME", ALL),
	LATER("write-mostly", 0, NULL, ALL),
	LATER("write-behind", 0, "N", ALL),
	LATER("failfast", 0, NULL, ALL),
	LATER("grow", 'G', NULL, ALL),
	LATER("monitor", 'F', NULL, ALL),
	LATER("follow", 0, NULL, ALL),
	LATER("incremental", 'I', NULL, ALL),
	LATER("manage", 0, NULL, ALL),
	LATER("auto-detect", 0, NULL, ALL),
	LATER("udev-rules", 0, NULL, ALL),
	LATER("add", 0, NULL, ALL),
	LATER("re-add", 0, NULL, ALL),
	LATER("add-spare", 0, NULL, ALL),
	LATER("add-journal", 0, NULL, ALL),
	LATER("fail", 0, NULL, ALL),
	LATER("set-faulty", 0, NULL, ALL),
	LATER("remove", 'r', NULL, ALL),
	LATER("replace", 0, NULL, ALL),
	LATER("with", 0, "DEVICE", ALL),
	LATER("examine-bitmap", 'X', NULL, ALL),
	LATER("examine-badblocks", 0, NULL, ALL),
	LATER("detail-platform", 0, NULL, ALL),
	LATER("kill-subarray", 0, "N", ALL),
	LATER("update-subarray", 0, "N", ALL),
	LATER("readwrite", 'w', NULL, ALL),
	LATER("wait", 'W', NULL, ALL),
	LATER("wait-clean", 0, NULL, ALL),
	LATER("action", 0, "WHAT", ALL),
	LATER("array-size", 'Z', "SIZE", ALL),
	LATER("continue", 0, NULL, ALL),
	LATER("freeze-reshape", 0, NULL, ALL),
	LATER("dump", 0, "DIR", ALL),
	LATER("restore", 0, "DIR", ALL),
	LATER("rebuild-map", 0, NULL, ALL),
};

const unsigned option_row_count = sizeof(option_rows) / sizeof(option_rows[0]);
_Static_assert(sizeof(option_rows) / sizeof(option_rows[0]) <= CLI_ROWS_MAX, "raise CLI_ROWS_MAX");

static int apply_mode(
	const struct option_row *row, struct cli_options *options, struct fault *fault)
{
	if (row->mode == CLI_NONE)
		return 0;
	if (options->mode != CLI_NONE && options->mode != row->mode)
		return fault_set(fault, -EINVAL,
			"--%s would set the mode to '%s', but it is already set to '%s'", row->name,
			verb_of_mode(row->mode)->name, verb_of_mode(options->mode)->name);
	options->mode = row->mode;
	return 0;
}

static int apply_number(
	const struct option_row *row, const char *value, uint64_t *ret, struct fault *fault)
{
	uint64_t unit = row->kind == OPTION_KIB ? 1024 : 1;
	int r;

	if (row->kind != OPTION_COUNT)
		r = value_size(value, unit, ret);
	else
		r = value_number(value, ret);
	if (row->kind == OPTION_COUNT && (r < 0 || *ret < 1 || *ret > UINT32_MAX))
		return bad_value("number of raid devices", value, "a number from 1 on", fault);
	if (r < 0)
		return bad_value(row->name, value,
			unit == 1 ? "bytes, or a number with K, M, G, T, s"
				  : "KiB, or a number with K, M, G, T, s",
			fault);
	return 0;
}

int option_apply(const struct option_row *row, const char *value, struct cli_options *options,
	struct fault *fault)
{
	char *field = (char *)options + row->offset;

	switch (row->kind) {
	case OPTION_FLAG:
		*(bool *)field = true;
		return 0;
	case OPTION_TEXT:
		*(const char **)field = value;
		return 0;
	case OPTION_BYTES:
	case OPTION_KIB:
	case OPTION_COUNT:
		return apply_number(row, value, (uint64_t *)field, fault);
	case OPTION_CALL:
		return row->apply(options, value, fault);
	case OPTION_MODE:
		return apply_mode(row, options, fault);
	case OPTION_IGNORED:
		return 0;
	case OPTION_UNSUPPORTED:
		break;
	}
	return fault_set(
		fault, -EOPNOTSUPP, "not yet supported: --%s; nothing was done", row->name);
}
