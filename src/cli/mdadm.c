/* SPDX-License-Identifier: MIT */

/*
 * The scanner of both grammars: mdadm's (a mode is an option) and the verbs' (the first word is the
 * mode). Options and words may be mixed; long options may be shortened as long as they stay
 * unambiguous within the mode; letters may be joined ("-l0", "-sv").
 */

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/table.h"
#include "cli/values.h"
#include "control/runtime.h"
#include "geometry/geometry.h"

struct scan {
	int argc;
	char *const *argv;
	int at; /* next argument */
	struct cli_options *options;
	struct fault *fault;
};

static bool row_fits(const struct option_row *row, enum cli_mode mode)
{
	return mode == CLI_NONE || (row->modes & CLI_BIT(mode)) != 0;
}

static const char *mode_name(enum cli_mode mode)
{
	return mode == CLI_NONE ? "strake" : verb_of_mode(mode)->name;
}

/* The first row with this letter in this mode, else in any. */
static const struct option_row *find_letter(char letter, enum cli_mode mode)
{
	const struct option_row *elsewhere = NULL;
	unsigned i;

	for (i = 0; i < option_row_count; i++) {
		if (option_rows[i].letter != letter)
			continue;
		if (row_fits(&option_rows[i], mode))
			return &option_rows[i];
		if (elsewhere == NULL)
			elsewhere = &option_rows[i];
	}
	return elsewhere;
}

/* Before the mode is known, "=" tells the two rows of --export apart. */
static bool value_fits(const struct option_row *row, enum cli_mode mode, bool has_value)
{
	return mode != CLI_NONE || has_value == (row->value != NULL);
}

static const struct option_row *find_exact(
	const char *name, size_t length, enum cli_mode mode, bool has_value)
{
	const struct option_row *second = NULL;
	unsigned i;

	for (i = 0; i < option_row_count; i++) {
		const struct option_row *row = &option_rows[i];

		if (strlen(row->name) != length || strncmp(row->name, name, length) != 0)
			continue;
		if (row_fits(row, mode) && value_fits(row, mode, has_value))
			return row;
		if (second == NULL)
			second = row;
	}
	return second;
}

static int unknown_option(const struct scan *scan, const char *name, size_t length)
{
	char word[64];
	struct nearest nearest = {.word = word};
	unsigned i;

	length = length < sizeof(word) - 1 ? length : sizeof(word) - 1;
	memcpy(word, name, length);
	word[length] = '\0';
	for (i = 0; i < option_row_count; i++) {
		if (option_rows[i].kind != OPTION_UNSUPPORTED &&
			row_fits(&option_rows[i], scan->options->mode))
			nearest_feed(&nearest, option_rows[i].name);
	}
	(void)fault_set(scan->fault, -EINVAL, "unrecognized option '--%s'", word);
	if (nearest.best != NULL)
		(void)fault_append(scan->fault, "; did you mean '--%s'?", nearest.best);
	return fault_append(scan->fault, "\n'strake --help' lists the options");
}

/* Shortened names: every row of the mode that begins so must be the same option. */
static int find_shortened(
	const struct scan *scan, const char *name, size_t length, const struct option_row **ret)
{
	const struct option_row *found = NULL;
	unsigned i, others = 0;

	for (i = 0; i < option_row_count; i++) {
		const struct option_row *row = &option_rows[i];

		if (!row_fits(row, scan->options->mode) || strncmp(row->name, name, length) != 0)
			continue;
		if (found == NULL)
			found = row;
		else if (strcmp(found->name, row->name) == 0)
			continue;
		else if (others++ == 0)
			(void)fault_set(scan->fault, -EINVAL,
				"option '--%.*s' is ambiguous; possibilities: '--%s' '--%s'",
				(int)length, name, found->name, row->name);
		else
			(void)fault_append(scan->fault, " '--%s'", row->name);
	}
	if (others > 0)
		return -EINVAL;
	if (found == NULL || length == 0)
		return unknown_option(scan, name, length);
	*ret = found;
	return 0;
}

static int give(struct scan *scan, const struct option_row *row, const char *value)
{
	struct cli_options *options = scan->options;
	bool *used = &options->used[row - option_rows];

	if (*used && value != NULL && row->kind != OPTION_IGNORED &&
		strcmp(row->name, "scan-in") != 0)
		return fault_set(scan->fault, -EINVAL,
			"--%s may be given only once; the second value is '%s'", row->name, value);
	*used = true;
	return option_apply(row, value, options, scan->fault);
}

static int next_value(struct scan *scan, const struct option_row *row, const char **ret)
{
	if (scan->at == scan->argc)
		return fault_set(scan->fault, -EINVAL, "option '--%s' needs a value: %s", row->name,
			row->value);
	*ret = scan->argv[scan->at++];
	return 0;
}

static int scan_long(struct scan *scan, const char *text)
{
	const char *equals = strchr(text, '=');
	size_t length = equals != NULL ? (size_t)(equals - text) : strlen(text);
	const char *value = equals != NULL ? equals + 1 : NULL;
	const struct option_row *row;
	int r;

	row = find_exact(text, length, scan->options->mode, value != NULL);
	if (row == NULL) {
		r = find_shortened(scan, text, length, &row);
		if (r < 0)
			return r;
		row = find_exact(row->name, strlen(row->name), scan->options->mode, value != NULL);
	}
	if (row->value == NULL && value != NULL)
		return fault_set(scan->fault, -EINVAL, "option '--%s' takes no value", row->name);
	if (row->value != NULL && value == NULL && !row->optional &&
		row->kind != OPTION_UNSUPPORTED) {
		r = next_value(scan, row, &value);
		if (r < 0)
			return r;
	}
	return give(scan, row, value);
}

static int scan_letters(struct scan *scan, const char *text)
{
	for (; *text != '\0'; text++) {
		const struct option_row *row = find_letter(*text, scan->options->mode);
		const char *value = NULL;
		int r = 0;

		if (row == NULL)
			return fault_set(scan->fault, -EINVAL,
				"invalid option -- '%c'\n'strake --help' lists the options", *text);
		if (row->value != NULL && text[1] != '\0')
			value = text + 1;
		else if (row->value != NULL && row->kind != OPTION_UNSUPPORTED)
			r = next_value(scan, row, &value);
		if (r == 0)
			r = give(scan, row, value);
		if (r < 0 || row->value != NULL)
			return r;
	}
	return 0;
}

static void add_word(struct cli_options *options, char *word)
{
	options->word_flags[options->word_count] = (options->write_mostly ? CLI_WORD_WRITE_MOSTLY
									  : 0) |
						   (options->failfast ? CLI_WORD_FAILFAST : 0);
	options->words[options->word_count++] = word;
}

static int scan_arguments(struct scan *scan)
{
	bool only_words = false;

	while (scan->at < scan->argc) {
		char *arg = scan->argv[scan->at++];
		int r = 0;

		if (only_words || arg[0] != '-' || arg[1] == '\0') {
			scan->options->word_verbs[scan->options->word_count] = scan->options->verb;
			add_word(scan->options, arg);
		} else if (strcmp(arg, "--") == 0)
			only_words = true;
		else if (arg[1] == '-')
			r = scan_long(scan, arg + 2);
		else
			r = scan_letters(scan, arg + 1);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Options given before the mode was known, or such as other modes take. */
static int check_modes(const struct cli_options *options, struct fault *fault)
{
	unsigned i;

	for (i = 0; i < option_row_count; i++) {
		if (options->used[i] && !row_fits(&option_rows[i], options->mode))
			return fault_set(fault, -EINVAL,
				"option '--%s' has no meaning with %s\n'strake %s --help' lists "
				"its options",
				option_rows[i].name, mode_name(options->mode),
				mode_name(options->mode));
	}
	return 0;
}

/*
 * Is the first word the array's name? For create and build always. assemble may be given members
 * only: an existing file or device is a member, but for what stands in /dev/md's place.
 */
static bool is_array_word(enum cli_mode mode, const char *word)
{
	struct stat status;

	if (mode != CLI_ASSEMBLE || strncmp(word, "/dev/md", 7) == 0)
		return true;
	return strchr(word, '/') == NULL && stat(word, &status) < 0;
}

static void split_words(struct cli_options *options)
{
	unsigned first = 0;

	if (options->mode != CLI_CREATE && options->mode != CLI_ASSEMBLE &&
		options->mode != CLI_BUILD)
		return;
	if (options->word_count > 0 && is_array_word(options->mode, options->words[0]))
		options->array = options->words[first++];
	options->members = options->words + first;
	options->member_flags = options->word_flags + first;
	options->member_count = options->word_count - first;
}

static const char *layouts_of(int level)
{
	switch (level) {
	case 0:
		return "use original or alternate";
	case 5:
	case 6:
		return "use left-symmetric, left-asymmetric, right-symmetric, right-asymmetric, "
		       "parity-first, parity-last or another name that the manual lists";
	case 10:
		return "use nK, fK or oK with K copies, for example n2";
	default:
		return "it has none: leave out --layout";
	}
}

static int resolve_layout(struct cli_options *options, struct fault *fault)
{
	uint32_t layout;
	int level = options->level_text != NULL ? options->level : 0;

	if (options->layout_text == NULL)
		return 0;
	if (md_layout_parse(level, options->layout_text, &layout) < 0)
		return fault_set(fault, -EINVAL, "layout '%s' is not understood for level %s; %s",
			options->layout_text, md_level_name(level), layouts_of(level));
	options->layout = layout;
	if (options->mode == CLI_ASSEMBLE && options->update_layout == 0)
		options->update_layout = layout;
	return 0;
}

static int unknown_word(const char *word, struct fault *fault)
{
	struct nearest nearest = {.word = word};
	unsigned i;

	if (strchr(word, '/') != NULL)
		return fault_set(fault, -EINVAL,
			"it is not said what to do with '%s'\n'strake --help' lists the commands",
			word);
	for (i = 0; i < verb_row_count; i++) {
		if (verb_rows[i].mode != CLI_NONE)
			nearest_feed(&nearest, verb_rows[i].name);
	}
	(void)fault_set(fault, -EINVAL, "unknown command '%s'", word);
	if (nearest.best != NULL)
		(void)fault_append(fault, "; did you mean '%s'?", nearest.best);
	return fault_append(fault, "\n'strake --help' lists the commands");
}

/* As in mdadm: one member is a slip of the finger more often than a wish. */
static int check_single(const struct cli_options *options, struct fault *fault)
{
	uint64_t count = options->raid_devices;

	if (count == CLI_DEFAULT)
		count = options->member_count;
	if (count != 1 || options->force ||
		(options->mode != CLI_CREATE && options->mode != CLI_BUILD))
		return 0;
	return fault_set(fault, -EINVAL,
		"'1' is an unusual number of members for an array, so it is probably a mistake; if "
		"you really mean it, add --force; nothing was written");
}

/*
 * "create -l0 a.img b.img" has forgotten the name: the first member would be taken for it. Links of
 * arrays are block devices, and their FUSE files regular ones: neither is in the way of its name.
 */
static int check_name(const struct cli_options *options, struct fault *fault)
{
	const char *word = options->array, *node = word;
	char name[NAME_MAX];
	struct stat status;

	if (word == NULL || stat(word, &status) < 0 ||
		(!S_ISREG(status.st_mode) && !S_ISBLK(status.st_mode)))
		return 0;
	node += strncmp(word, "/dev/", 5) == 0 ? 5 : 0;
	if (S_ISBLK(status.st_mode) && strncmp(node, "md", 2) == 0 &&
		(node[2] == '/' || isdigit((unsigned char)node[2])))
		return 0;
	if (S_ISREG(status.st_mode) && word[0] == '/' && node == word &&
		runtime_name(word, name, NULL) == 0)
		return 0;
	return fault_set(fault, -EINVAL,
		"%s: '%s' is an existing %s and stands where the array's name belongs; name the "
		"array first: 'strake %s md0 …'; nothing was done",
		mode_name(options->mode), word, S_ISREG(status.st_mode) ? "file" : "block device",
		mode_name(options->mode));
}

/* mdadm's misc mode: these say by themselves what is to be done with the arrays named. */
static enum cli_mode mode_of_options(const struct cli_options *options)
{
	if (options->mode != CLI_NONE)
		return options->mode;
	if (options->action != NULL)
		return CLI_ACTION;
	if (options->wait)
		return CLI_WAIT;
	if (options->readwrite)
		return CLI_READWRITE;
	return options->readonly ? CLI_READONLY : CLI_NONE;
}

static int finish(struct cli_options *options, struct fault *fault)
{
	int r;

	options->mode = mode_of_options(options);

	if (options->help || options->version_wanted || options->completion != NULL)
		return 0;
	if (options->mode == CLI_NONE && options->word_count > 0)
		return unknown_word(options->words[0], fault);
	if (options->mode == CLI_NONE)
		return fault_set(
			fault, -EINVAL, "no command given\n'strake --help' lists the commands");
	r = check_modes(options, fault);
	if (r < 0)
		return r;
	split_words(options);
	r = check_name(options, fault);
	if (r == 0)
		r = check_single(options, fault);
	return r < 0 ? r : resolve_layout(options, fault);
}

static void set_defaults(struct cli_options *options)
{
	*options = (struct cli_options){
		.raid_devices = CLI_DEFAULT,
		.chunk_bytes = CLI_DEFAULT,
		.layout = CLI_DEFAULT,
		.version = MD_VERSION_1_2,
		.data_offset_bytes = CLI_DEFAULT,
		.size_bytes = CLI_DEFAULT,
		.readahead_bytes = CLI_DEFAULT,
		.length_bytes = CLI_DEFAULT,
		.speed_min_bytes = CLI_DEFAULT,
		.speed_max_bytes = CLI_DEFAULT,
	};
}

/* The verb before everything else; mdadm's grammar has an option or a device there. */
static int take_verb(struct scan *scan)
{
	const struct verb_row *verb;

	if (scan->at == scan->argc)
		return 0;
	verb = verb_find(scan->argv[scan->at]);
	if (verb == NULL)
		return 0;
	scan->at++;
	if (verb->mode == CLI_NONE)
		return fault_set(scan->fault, -EOPNOTSUPP,
			"not yet supported: %s; nothing was done", verb->name);
	scan->options->mode = verb->mode;
	if (verb->mode == CLI_MANAGE && strcmp(verb->name, "manage") != 0)
		scan->options->verb = verb->name;
	return 0;
}

int cli_options_parse(int argc, char *const *argv, struct cli_options *ret, struct fault *fault)
{
	struct scan scan = {argc, argv, 1, ret, fault};
	int r;

	set_defaults(ret);
	ret->words = calloc((size_t)argc + 1, sizeof(*ret->words));
	ret->word_flags = calloc((size_t)argc + 1, sizeof(*ret->word_flags));
	ret->scan_in = calloc((size_t)argc + 1, sizeof(*ret->scan_in));
	ret->word_verbs = calloc((size_t)argc + 1, sizeof(*ret->word_verbs));
	if (ret->words == NULL || ret->word_flags == NULL || ret->scan_in == NULL ||
		ret->word_verbs == NULL)
		return fault_set(fault, -ENOMEM, "no memory for the command line");
	r = take_verb(&scan);
	if (r == 0)
		r = scan_arguments(&scan);
	if (r == 0)
		r = finish(ret, fault);
	return r;
}

void cli_options_free(struct cli_options *options)
{
	free(options->words);
	free(options->word_flags);
	free(options->scan_in);
	free(options->word_verbs);
}
