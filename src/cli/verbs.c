/* SPDX-License-Identifier: MIT */

/* The table of verbs, and what each does with a parsed command line. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/run.h"
#include "cli/say.h"
#include "cli/show/show.h"
#include "cli/table.h"
#include "control/memory.h"
#include "util/cleanup.h"

static struct show_options show_options_of(const struct cli_options *options)
{
	struct show_options show = {
		.form = SHOW_TEXT,
		.scan = options->scan,
		.verbose = options->verbose,
		.test = options->test,
		.homehost = cli_homehost(options),
		.out = stdout,
	};

	if (options->json)
		show.form = SHOW_JSON;
	else if (options->export_form)
		show.form = SHOW_EXPORT;
	else if (options->brief || options->scan)
		show.form = SHOW_BRIEF;
	return show;
}

static int no_words(const struct cli_options *options, const char *what)
{
	if (options->word_count > 0 || options->scan)
		return 0;
	say("%s: no %s given\n'strake %s --help' lists its options",
		verb_of_mode(options->mode)->name, what, verb_of_mode(options->mode)->name);
	return CLI_USAGE;
}

/* Facts that lack a part are a failure; what else needed memory has told of it itself. */
static int if_whole(int code)
{
	if (!memory_was_short() || code != CLI_OK)
		return code;
	(void)fflush(stdout); /* whatever it is, it is not all */
	say("out of memory: what was printed may not be complete; try again");
	return CLI_FAILED;
}

static int run_examine(const struct cli_options *options)
{
	struct show_options show = show_options_of(options);

	if (no_words(options, "devices") != 0)
		return CLI_USAGE;
	if (options->bitmap_form)
		return if_whole(show_bitmap(options->words, options->word_count, &show));
	if (options->badblocks_form)
		return if_whole(show_badblocks(options->words, options->word_count, &show));
	return if_whole(show_examine(options->words, options->word_count, &show));
}

static int run_detail(const struct cli_options *options)
{
	struct show_options show = show_options_of(options);

	if (no_words(options, "arrays") != 0)
		return CLI_USAGE;
	return if_whole(show_detail(options->words, options->word_count, &show));
}

static int run_query(const struct cli_options *options)
{
	struct show_options show = show_options_of(options);

	if (no_words(options, "devices") != 0)
		return CLI_USAGE;
	return if_whole(show_query(options->words, options->word_count, &show));
}

static int run_status(const struct cli_options *options)
{
	struct show_options show = show_options_of(options);

	show.form = options->json ? SHOW_JSON : SHOW_TEXT;
	return if_whole(show_status(options->words, options->word_count, &show));
}

static int run_stop(const struct cli_options *options)
{
	if (no_words(options, "arrays") != 0)
		return CLI_USAGE;
	return cli_stop(options);
}

static int run_zero(const struct cli_options *options)
{
	if (no_words(options, "devices") != 0)
		return CLI_USAGE;
	return cli_zero(options);
}

static int run_cat(const struct cli_options *options)
{
	if (no_words(options, "members") != 0)
		return CLI_USAGE;
	return cli_cat(options);
}

#define LATER(name_, help_)                                    \
	{                                                      \
		.name = name_, .mode = CLI_NONE, .help = help_ \
	}

const struct verb_row verb_rows[] = {
	{"create", CLI_CREATE, "ARRAY --level LEVEL [OPTION…] MEMBER…",
		"Write superblocks on the members and start the new array.", cli_create},
	{"assemble", CLI_ASSEMBLE, "[ARRAY] [OPTION…] MEMBER…",
		"Start an array from its members' superblocks; with --scan all that are found.",
		cli_assemble},
	{"build", CLI_BUILD, "ARRAY --level LEVEL --raid-devices N [OPTION…] MEMBER…",
		"Start an array of members without superblocks.", cli_build},
	{"detail", CLI_DETAIL, "[OPTION…] ARRAY… | --scan", "Print the facts of running arrays.",
		run_detail},
	{"examine", CLI_EXAMINE, "[OPTION…] MEMBER… | --scan",
		"Print what superblocks devices and files hold.", run_examine},
	{"status", CLI_STATUS, "[--json] [ARRAY…]",
		"Print what /proc/mdstat would say about the running arrays.", run_status},
	{"stop", CLI_STOP, "ARRAY… | --scan", "Flush and stop running arrays.", run_stop},
	{"query", CLI_QUERY, "DEVICE…", "Say what devices have to do with arrays.", run_query},
	{"zero-superblock", CLI_ZERO, "MEMBER…", "Erase the superblocks of devices.", run_zero},
	{"cat", CLI_CAT, "[--offset N] [--length N] MEMBER…",
		"Write the content of an array to standard output, without starting it.", run_cat},
	{"partprobe", CLI_PARTPROBE, "ARRAY", "Read the partition table of an array again.",
		cli_partprobe},
	{"sim", CLI_SIM, "[--seed N] [--runs N] [OPTION…]",
		"Run the engine in a simulated world, with faults, from a seed.", cli_sim},
	{"readahead", CLI_READAHEAD, "ARRAY BYTES",
		"Set the read-ahead of an array's block device.", cli_readahead},
	{"manage", CLI_MANAGE, "ARRAY --fail|--remove|--add|… DEVICE… …",
		"Change the members of a running array.", cli_manage},
	{"fail", CLI_MANAGE, "ARRAY MEMBER…|detached", "Members become faulty.", cli_manage},
	{"remove", CLI_MANAGE, "ARRAY MEMBER…|faulty|detached",
		"Faulty and spare members leave the array.", cli_manage},
	{"add", CLI_MANAGE, "ARRAY [--force] DEVICE…", "Devices join the array.", cli_manage},
	{"re-add", CLI_MANAGE, "ARRAY DEVICE…|missing",
		"Former members come back; only what they missed is copied.", cli_manage},
	{"add-spare", CLI_MANAGE, "ARRAY [--force] DEVICE…", "Devices join as spares.", cli_manage},
	{"replace", CLI_MANAGE, "ARRAY MEMBER… [--with SPARE…]",
		"Members are copied to spares while they still serve, then become faulty.",
		cli_manage},
	{"readonly", CLI_READONLY, "ARRAY…", "Running arrays take no more writes.", cli_readonly},
	{"readwrite", CLI_READWRITE, "ARRAY…", "They take writes again.", cli_readonly},
	{"wait", CLI_WAIT, "ARRAY…",
		"Wait until resync, recovery, check and repair have ended, and show how far they "
		"are.",
		cli_wait},
	{"check", CLI_CHECK, "ARRAY [--wait]",
		"Read all members and compare; say which ranges differ, and which member is wrong "
		"if that can be told.",
		cli_check},
	{"repair", CLI_REPAIR, "ARRAY [--yes]",
		"Check, say what would be rewritten, ask, and rewrite it.", cli_repair},
	{"action", CLI_ACTION, "--action=WHAT ARRAY…",
		"Start or stop a background action, as md's sync_action.", cli_action},
	{"speed", CLI_SPEED, "ARRAY [--min SPEED] [--max SPEED]",
		"Show or set the speed of background actions.", cli_speed},
	LATER("grow", ""),
	LATER("monitor", ""),
	LATER("why", ""),
	LATER("where", ""),
	LATER("bench", ""),
	LATER("advise", ""),
	LATER("recover", ""),
	LATER("undo", ""),
	LATER("compat", ""),
};

const unsigned verb_row_count = sizeof(verb_rows) / sizeof(verb_rows[0]);

const struct verb_row *verb_find(const char *name)
{
	unsigned i;

	for (i = 0; i < verb_row_count; i++) {
		if (strcmp(verb_rows[i].name, name) == 0)
			return &verb_rows[i];
	}
	return NULL;
}

const struct verb_row *verb_of_mode(enum cli_mode mode)
{
	unsigned i;

	for (i = 0; i < verb_row_count; i++) {
		if (verb_rows[i].mode == mode)
			return &verb_rows[i];
	}
	return NULL;
}

static int exit_code(int r)
{
	return r == -EINVAL ? CLI_USAGE : CLI_FAILED;
}

int cli_main(int argc, char *const *argv)
{
	_cleanup_(cli_options_free) struct cli_options options = {0};
	_cleanup_free_ struct fault *fault = calloc(1, sizeof(*fault));
	int r;

	if (fault == NULL)
		return say_no_memory();
	r = cli_options_parse(argc, argv, &options, fault);
	if (r < 0)
		return say_fault(fault, exit_code(r));
	if (options.version_wanted) {
		(void)printf("strake - v%s\n", STRAKE_VERSION);
		return CLI_OK;
	}
	if (options.help) {
		cli_help(options.mode, stdout);
		return CLI_OK;
	}
	if (options.completion != NULL) {
		r = cli_completion(options.completion, stdout, fault);
		return r < 0 ? say_fault(fault, exit_code(r)) : CLI_OK;
	}
	if (gethostname(options.host, sizeof(options.host) - 1) < 0)
		options.host[0] = '\0';
	return verb_of_mode(options.mode)->run(&options);
}
