/* SPDX-License-Identifier: MIT */
#ifndef STRAKE_CLI_OPTIONS_H
#define STRAKE_CLI_OPTIONS_H

/*
 * The command line, parsed. One table of options (options.c) feeds the parser, --help, the bash
 * completion and the manual page's list of options.
 */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "md/plan.h"
#include "md/super.h"
#include "util/fault.h"

enum cli_mode {
	CLI_NONE,
	CLI_CREATE,
	CLI_ASSEMBLE,
	CLI_BUILD,
	CLI_DETAIL,
	CLI_EXAMINE,
	CLI_STOP,
	CLI_ZERO,
	CLI_QUERY,
	CLI_STATUS,
	CLI_CAT,
	CLI_PARTPROBE,
	CLI_READAHEAD,
	CLI_MANAGE,
	CLI_READONLY,
	CLI_READWRITE,
	CLI_WAIT,
	CLI_ACTION,
	CLI_CHECK,
	CLI_REPAIR,
	CLI_SPEED,
	CLI_SIM,
	CLI_MODES,
};

/* What mdadm's options say about the devices behind them. */
#define CLI_WORD_WRITE_MOSTLY 0x1u
#define CLI_WORD_FAILFAST 0x2u

enum cli_export {
	CLI_EXPORT_AUTO,
	CLI_EXPORT_FUSE,
	CLI_EXPORT_LOOP,
	CLI_EXPORT_NBD,
	CLI_EXPORT_NONE, /* metadata only, nothing runs */
};

#define CLI_DEFAULT UINT64_MAX /* "not said" for the 64-bit numbers below; as MD_PLAN_DEFAULT */
#define CLI_ROWS_MAX 128

struct cli_options {
	enum cli_mode mode;
	char **words; /* what is no option, in order; the strings are argv's */
	unsigned word_count;
	uint8_t *word_flags; /* by word: CLI_WORD_… that were given before it */
	/* manage: for each word what is to be done with it, "fail" and so on; NULL: not said. */
	const char **word_verbs;
	const char *verb; /* for words that follow */
	char **scan_in;   /* values of --scan-in */
	unsigned scan_in_count;
	/* create, assemble, build: the first word, if it names an array, and the words behind it.
	 */
	const char *array;
	char **members;
	const uint8_t *member_flags; /* by member, as word_flags */
	unsigned member_count;

	const char *level_text;
	int level;
	uint64_t raid_devices; /* CLI_DEFAULT: count the members */
	uint64_t spare_devices;
	uint64_t chunk_bytes;
	const char *layout_text;
	uint64_t layout; /* md's number for the level */
	bool metadata_given;
	enum md_version version;
	const char *name;
	const char *homehost; /* NULL: not said */
	char host[256];       /* this host's name; filled by cli_main() */
	bool uuid_given;
	uint8_t uuid[16];
	uint64_t data_offset_bytes;
	uint64_t size_bytes;
	uint32_t update_layout; /* --update=layout-…: GEOMETRY_RAID0_… */
	enum md_plan_bitmap bitmap;
	uint64_t bitmap_chunk_bytes;   /* 0: not said */
	uint32_t daemon_sleep_seconds; /* 0: not said */
	uint32_t write_behind;         /* writes; 0: none */
	enum md_consistency consistency;
	bool write_mostly, failfast; /* for the words to come */
	bool no_degraded;
	bool bitmap_form, badblocks_form; /* of examine */
	bool assume_clean, run, force, readonly, scan, verbose, quiet, brief, json, test;
	enum cli_export export;
	const char *nbd_path;
	bool export_form; /* --export of --detail and --examine: KEY=value lines */
	uint64_t readahead_bytes;
	bool sync_io;
	bool ring_io;
	uint64_t offset_bytes, length_bytes;
	/* sim */
	const char *sim_seed, *sim_runs, *sim_jobs, *sim_atlas, *sim_ops, *sim_clients;
	const char *sim_no_faults, *sim_no_commands, *sim_skip;
	bool sim_trace, sim_no_shrink, sim_twice, sim_first;
	bool help, version_wanted;
	bool readwrite, wait, yes;
	const char *action;
	uint64_t speed_min_bytes, speed_max_bytes;
	const char *completion;

	bool used[CLI_ROWS_MAX]; /* by row of the table: was it given? */
};

/*
 * Parse @argv in either grammar. 0; -EINVAL for a usage error (exit code 2); -EOPNOTSUPP for what
 * strake knows of but cannot do yet (exit code 1); -ENOMEM. @ret is to be freed in all cases.
 */
int cli_options_parse(int argc, char *const *argv, struct cli_options *ret, struct fault *fault);
void cli_options_free(struct cli_options *options);

/* --help, for the mode if one was given; the completion script; the manual page's option list. */
void cli_help(enum cli_mode mode, FILE *out);
int cli_completion(const char *kind, FILE *out, struct fault *fault);

#endif
