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
#include "util/rounding.h"

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
#define M CLI_BIT(CLI_MANAGE)
#define W CLI_BIT(CLI_WAIT)
#define SIM CLI_BIT(CLI_SIM)
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
	return fault_append(fault, "\nuse linear, 0, 1, 4, 5, 6 or 10");
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
	options->spare_devices = count;
	return 0;
}

static int apply_bitmap(struct cli_options *options, const char *value, struct fault *fault)
{
	if (strcmp(value, "none") == 0)
		options->bitmap = MD_PLAN_BITMAP_NONE;
	else if (strcmp(value, "internal") == 0)
		options->bitmap = MD_PLAN_BITMAP_INTERNAL;
	else if (strcmp(value, "clustered") == 0 || strchr(value, '/') != NULL)
		return fault_set(fault, -EOPNOTSUPP,
			"not yet supported: --bitmap=%s; use internal or none", value);
	else
		return bad_value("bitmap", value, "internal or none", fault);
	return 0;
}

/* mdadm counts it in KiB where no unit is said. */
static int apply_bitmap_chunk(struct cli_options *options, const char *value, struct fault *fault)
{
	uint64_t bytes;

	if (value_size(value, 1024, &bytes) < 0 || bytes < MD_SECTOR || !is_power_of_two(bytes))
		return bad_value("bitmap chunk", value,
			"a power of two, in KiB or with K, M, G, s (64M)", fault);
	options->bitmap_chunk_bytes = bytes;
	return 0;
}

static int apply_delay(struct cli_options *options, const char *value, struct fault *fault)
{
	uint64_t seconds;

	if (value_number(value, &seconds) < 0 || seconds == 0 || seconds > UINT32_MAX)
		return bad_value("delay", value, "a number of seconds from 1 on", fault);
	options->daemon_sleep_seconds = (uint32_t)seconds;
	return 0;
}

/* As in mdadm: 256 writes where no number is said. */
static int apply_write_behind(struct cli_options *options, const char *value, struct fault *fault)
{
	uint64_t count = 256;

	if (value != NULL && (value_number(value, &count) < 0 || count == 0 || count > UINT32_MAX))
		return bad_value("number of writes for write-behind", value,
			"a number from 1 to 16383", fault);
	options->write_behind = (uint32_t)count;
	return 0;
}

static int apply_consistency(struct cli_options *options, const char *value, struct fault *fault)
{
	if (md_consistency_parse(value, &options->consistency) < 0)
		return bad_value("consistency policy", value, "resync, bitmap or none", fault);
	return 0;
}

/* Modes of their own in mdadm, forms of examine here. */
static int examine_form(struct cli_options *options, bool *form, struct fault *fault)
{
	if (options->mode != CLI_NONE && options->mode != CLI_EXAMINE)
		return fault_set(fault, -EINVAL,
			"--examine-bitmap and --examine-badblocks belong to examine, not to %s",
			verb_of_mode(options->mode)->name);
	options->mode = CLI_EXAMINE;
	*form = true;
	return 0;
}

static int apply_bitmap_form(struct cli_options *options, const char *value, struct fault *fault)
{
	(void)value;
	return examine_form(options, &options->bitmap_form, fault);
}

static int apply_badblocks_form(struct cli_options *options, const char *value, struct fault *fault)
{
	(void)value;
	return examine_form(options, &options->badblocks_form, fault);
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
#define VERB(name_, letter_, help_)                                                              \
	{                                                                                        \
		.name = name_, .letter = letter_, .modes = M, .kind = OPTION_VERB, .help = help_ \
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
	MODE("manage", 0, CLI_MANAGE, "Change the members of a running array."),
	MODE("misc", 0, CLI_NONE, "Accepted for mdadm's sake, without effect."),

	VERB("fail", 'f', "The members that follow become faulty; or the word detached."),
	VERB("set-faulty", 0, "The same as *--fail*."),
	VERB("remove", 'r',
		"The members that follow, faulty or spare, leave the array; or the words failed, "
		"faulty, detached."),
	VERB("add", 'a',
		"The devices that follow join the array. One that was a member is taken back with "
		"a copy of what it missed, if that is known."),
	VERB("re-add", 0,
		"The devices that follow, which were members, are taken back if only what they "
		"missed has to be copied; or the word missing: all such devices that are found."),
	VERB("add-spare", 0, "The devices that follow join the array as spares."),
	VERB("replace", 0, "The members that follow are copied to spares and then become faulty."),
	VERB("with", 0, "After *--replace*: the spares to take, in the same order."),

	CALL("level", 'l', "LEVEL", C | B | SIM, apply_level,
		"RAID level, by number or name: linear, 0 (raid0, stripe), 1 (raid1, mirror), 4, "
		"5, "
		"6, 10."),
	VALUE(OPTION_COUNT, "raid-devices", 'n', "N", C | B, raid_devices,
		"Number of members that are no spares. If it is not given, the members are "
		"counted."),
	CALL("spare-devices", 'x', "N", C, apply_spares,
		"Number of spares among the named devices: the last ones."),
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
		"RAID 5 and 6: how parity rotates (left-symmetric …). RAID 10: copies near (n2), "
		"far "
		"(f2) or offset (o2). RAID 0 of unequal members: original or alternate."),
	VALUE(OPTION_TEXT, "parity", 0, "LAYOUT", C | B, layout_text, "The same as *--layout*."),
	CALL("update", 'U', "WHAT", A, apply_update,
		"layout-original or layout-alternate: the layout to assume for a RAID 0 of unequal "
		"members that records none. The superblocks are not changed."),
	FLAG("assume-clean", 0, C | B, assume_clean,
		"The members' redundancy is right already: no initial resync."),
	CALL("bitmap", 'b', "WHERE", C | B | A, apply_bitmap,
		"Write-intent bitmap: internal or none. Default: internal where members have more "
		"than 100 GiB."),
	CALL("bitmap-chunk", 0, "SIZE", C, apply_bitmap_chunk,
		"How much of a member (RAID 10: of the array) a bit of the bitmap stands for, in "
		"KiB "
		"or with a unit. Default: 64M."),
	CALL("delay", 'd', "SECONDS", C, apply_delay,
		"Idle time after which bits of the bitmap are cleared. Default: 5."),
	CALL("consistency-policy", 'k', "POLICY", C | B, apply_consistency,
		"How the redundancy is made whole after a crash: resync or bitmap (none for levels "
		"without)."),
	FLAG("write-mostly", 0, C | B | M, write_mostly,
		"RAID 1: devices named behind this are read only if the others cannot be."),
	FLAG("failfast", 0, C | B | M, failfast, "Recorded for the devices named behind this."),
	{.name = "write-behind",
		.value = "N",
		.modes = C,
		.kind = OPTION_CALL,
		.apply = apply_write_behind,
		.optional = true,
		.help = "Recorded: how many writes may lag on write-mostly members (256 if no "
			"number is given). Needs a bitmap; here all writes wait for all members."},
	FLAG("run", 'R', C | A | B | K, run,
		"create: do not refuse or ask because of what is found on members. assemble, cat: "
		"go on although members that were there before are missing."),
	FLAG("force", 'f', ALL, force,
		"create: as *--run*, and no member of RAID 4, 5, 6 is left to be rebuilt. "
		"assemble: "
		"take stale members back, and start a degraded array that was not stopped cleanly; "
		"what is changed for that is told."),
	FLAG("readonly", 'o', C | A | B | M | CLI_BIT(CLI_READONLY), readonly,
		"create, assemble, build: members are opened for reading only; every write to the "
		"array is refused. A running array: it takes no more writes."),
	FLAG("readwrite", 'w', M | CLI_BIT(CLI_READWRITE), readwrite,
		"A running array takes writes again."),
	FLAG("wait", 'W', M | W | CLI_BIT(CLI_CHECK) | CLI_BIT(CLI_REPAIR), wait,
		"Wait until resync, recovery, check or repair has ended."),
	VALUE(OPTION_TEXT, "action", 0, "WHAT", CLI_BIT(CLI_ACTION), action,
		"check, repair, resync, idle or frozen, as in md's sync_action."),
	VALUE(OPTION_KIB, "min", 0, "SPEED", CLI_BIT(CLI_SPEED), speed_min_bytes,
		"Speed per member that resync keeps up beside other I/O, in KiB per second or with "
		"a unit."),
	VALUE(OPTION_KIB, "max", 0, "SPEED", CLI_BIT(CLI_SPEED), speed_max_bytes,
		"Speed per member that resync does not exceed, in KiB per second or with a unit."),
	FLAG("yes", 0, CLI_BIT(CLI_REPAIR), yes, "Do not ask before something is rewritten."),
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
	FLAG("no-degraded", 0, A, no_degraded,
		"Do not start an array that lacks members, also with *--scan*."),
	FLAG("brief", 'b', D | E, brief, "One ARRAY line each."),
	FLAG("export", 'Y', D | E, export_form, "KEY=value lines."),
	CALL("examine-bitmap", 'X', NULL, E, apply_bitmap_form,
		"What the write-intent bitmaps of members say."),
	CALL("examine-badblocks", 0, NULL, E, apply_badblocks_form,
		"Which blocks members have recorded as bad."),
	FLAG("json", 0, D | E | Q | T, json, "JSON, as docs/json.md describes it."),
	FLAG("test", 't', D, test, "The exit code tells the state of the array."),
	VALUE(OPTION_BYTES, "offset", 0, "BYTES", K, offset_bytes,
		"First byte of the array to write out, units allowed."),
	VALUE(OPTION_BYTES, "length", 0, "BYTES", K, length_bytes,
		"How many bytes to write out, units allowed. Default: to the end."),
	VALUE(OPTION_TEXT, "seed", 0, "N", SIM, sim_seed,
		"The first seed. Default: the time, which is printed."),
	VALUE(OPTION_TEXT, "runs", 0, "N", SIM, sim_runs, "Runs, with rising seeds. Default: 1."),
	VALUE(OPTION_TEXT, "jobs", 0, "N", SIM, sim_jobs, "Processes that share the runs."),
	VALUE(OPTION_TEXT, "atlas", 0, "WHICH", SIM, sim_atlas,
		"within: only faults that the level survives, so any loss is a failure. beyond: "
		"more than it survives; then errors must be exact, and bytes never wrong."),
	FLAG("trace", 0, SIM, sim_trace, "Print everything that happens."),
	FLAG("no-shrink", 0, SIM, sim_no_shrink, "Do not cut a failing run down."),
	FLAG("first-failure", 0, SIM, sim_first, "End with the first run that fails."),
	FLAG("twice", 0, SIM, sim_twice, "Run each seed twice and compare the traces."),
	VALUE(OPTION_TEXT, "ops", 0, "N", SIM, sim_ops, "Operations of a run."),
	VALUE(OPTION_TEXT, "clients", 0, "N", SIM, sim_clients, "Clients of a run."),
	VALUE(OPTION_TEXT, "no-faults", 0, "WORDS", SIM, sim_no_faults,
		"Kinds of faults to leave out, or all."),
	VALUE(OPTION_TEXT, "no-commands", 0, "WORDS", SIM, sim_no_commands,
		"Management commands to leave out, or all."),
	VALUE(OPTION_TEXT, "skip", 0, "NUMBERS", SIM, sim_skip,
		"Numbers of single faults to leave out, as a shrunk run prints them."),
	FLAG("verbose", 'v', ALL, verbose, "Say more."),
	FLAG("quiet", 'q', ALL, quiet, "Say less."),
	FLAG("help", 'h', ALL, help, "Print the options, those of a mode if one is given before."),
	FLAG("version", 'V', ALL, version_wanted, "Print the version."),
	VALUE(OPTION_TEXT, "completion", 0, "SHELL", CLI_BIT(CLI_NONE), completion,
		"Print the completion script for bash."),

	IGNORED("auto", 'a', "WHAT", C | A | B),
	IGNORED("config", 'c', "FILE", A | D | E | S),

	LATER("write-journal", 0, "DEVICE", ALL),
	LATER("backup-file", 0, "FILE", ALL),
	LATER("super-minor", 'm', "N", ALL),
	LATER("nodes", 0, "N", ALL),
	LATER("home-cluster", 0, "NAME", ALL),
	LATER("grow", 'G', NULL, ALL),
	LATER("monitor", 'F', NULL, ALL),
	LATER("follow", 0, NULL, ALL),
	LATER("incremental", 'I', NULL, ALL),
	LATER("auto-detect", 0, NULL, ALL),
	LATER("udev-rules", 0, NULL, ALL),
	LATER("add-journal", 0, NULL, ALL),
	LATER("detail-platform", 0, NULL, ALL),
	LATER("kill-subarray", 0, "N", ALL),
	LATER("update-subarray", 0, "N", ALL),
	LATER("wait-clean", 0, NULL, ALL),
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
	case OPTION_VERB:
		options->verb = row->name;
		if (options->mode == CLI_NONE)
			options->mode = CLI_MANAGE;
		return 0;
	case OPTION_IGNORED:
		return 0;
	case OPTION_UNSUPPORTED:
		break;
	}
	return fault_set(
		fault, -EOPNOTSUPP, "not yet supported: --%s; nothing was done", row->name);
}
