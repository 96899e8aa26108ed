/* SPDX-License-Identifier: MIT */

/* Both grammars give the same answers; what is wrong is refused with the right words. */

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "cli/table.h"
#include "cli/values.h"
#include "geometry/geometry.h"

#define WORDS_MAX 40

struct line {
	char text[512];
	char *argv[WORDS_MAX + 1];
	int argc;
	struct cli_options options;
	struct fault fault;
	int result;
};

static void parse(struct line *line, const char *text)
{
	char *word, *rest;

	memset(line, 0, sizeof(*line));
	assert_true(strlen(text) < sizeof(line->text));
	strcpy(line->text, text);
	line->argv[line->argc++] = line->text +
				   strlen(text); /* the program's name: not looked at */
	for (word = strtok_r(line->text, " ", &rest); word != NULL;
		word = strtok_r(NULL, " ", &rest)) {
		assert_true(line->argc < WORDS_MAX);
		line->argv[line->argc++] = word;
	}
	line->result = cli_options_parse(line->argc, line->argv, &line->options, &line->fault);
}

static void assert_same_text(const char *a, const char *b)
{
	assert_int_equal(a == NULL, b == NULL);
	if (a != NULL)
		assert_string_equal(a, b);
}

/* Everything but which row of the table each option was found in. */
static void assert_same(struct cli_options *a, struct cli_options *b)
{
	unsigned i;

	assert_int_equal(a->word_count, b->word_count);
	for (i = 0; i < a->word_count; i++) {
		assert_string_equal(a->words[i], b->words[i]);
		if (i > 0) /* the first is the array */
			assert_same_text(a->word_verbs[i], b->word_verbs[i]);
	}
	assert_int_equal(a->member_count, b->member_count);
	for (i = 0; i < a->member_count; i++)
		assert_string_equal(a->members[i], b->members[i]);
	assert_same_text(a->array, b->array);
	assert_same_text(a->name, b->name);
	assert_same_text(a->homehost, b->homehost);
	assert_same_text(a->layout_text, b->layout_text);
	assert_same_text(a->nbd_path, b->nbd_path);
	assert_int_equal(a->level_text == NULL, b->level_text == NULL);
	cli_options_free(a);
	cli_options_free(b);
	a->words = b->words = a->scan_in = b->scan_in = a->members = b->members = NULL;
	a->array = b->array = a->name = b->name = a->homehost = b->homehost = NULL;
	a->layout_text = b->layout_text = a->nbd_path = b->nbd_path = NULL;
	a->level_text = b->level_text = a->verb = b->verb = NULL;
	a->action = b->action = NULL;
	a->word_verbs = b->word_verbs = NULL;
	a->word_flags = b->word_flags = NULL;
	a->member_flags = b->member_flags = NULL;
	memset(a->used, 0, sizeof(a->used));
	memset(b->used, 0, sizeof(b->used));
	assert_memory_equal(a, b, sizeof(*a));
}

static void both_grammars(void **state)
{
	static const char *const pairs[][2] = {
		{"--create /dev/md0 --level=0 --raid-devices=2 /dev/xvde /dev/xvdf",
			"create /dev/md0 --level 0 --raid-devices 2 /dev/xvde /dev/xvdf"},
		{"-C /dev/md0 -l0 -n2 a b", "create /dev/md0 -l 0 -n 2 a b"},
		{"-C -l stripe -n 2 md0 a b", "create md0 --level=raid0 a --raid-dev=2 b"},
		{"/dev/md0 --create a b --level=linear", "create /dev/md0 a b -llinear"},
		{"-Cl0 -n2 -c64 -e1.0 -Nx md0 a b", "create md0 a b --chunk 64K --metadata=1.0 "
						    "--name x --level 0 --raid-devices=2"},
		{"-C md0 -l0 -n2 --data-offset=2048 -z 4096 a b",
			"create md0 -l0 -n2 a b --data-offset 2M --size=4M"},
		{"-C md0 -l0 -n2 -Rfov --assume-clean a b",
			"create md0 --run --force --readonly --verbose --assume-c -l0 -n2 a b"},
		{"-C md0 -l0 -n2 --layout=alternate --homehost=h a b",
			"create md0 a b -n 2 -l 0 -p alternate --homehost h"},
		{"-C md0 -l0 -n2 --export=nbd:/s --readahead=1M --io=sync a b",
			"create md0 a b -l0 -n2 --export nbd:/s --readahead 1048576 --io sync"},
		{"-C md0 -l0 -n2 -a yes -x0 -b none -e default a b",
			"create md0 -l0 -n2 --auto=md --spare-devices=0 --metadata 1.2 -bnone a b"},
		{"-A /dev/md0 -c /x -u 01234567:89abcdef:00112233:44556677 a",
			"assemble /dev/md0 --config=/x --uuid 0123456789abcdef0011223344556677 a"},
		{"-As --update=layout-alternate", "assemble --scan -U layout-alternate"},
		{"-B md5 -l0 -n2 -c 4 a b",
			"build md5 --level 0 --raid-devices 2 --rounding 4 a b"},
		{"-D -s -b", "detail --scan --brief"},
		{"--detail --export --test /dev/md0", "detail -Y -t /dev/md0"},
		{"-Evb a b", "examine a b --verbose --brief"},
		{"--misc --examine --json a", "examine a --json"},
		{"-S -- -odd", "stop -- -odd"},
		{"--zero-superblock -f a", "zero-superblock a --force"},
		{"--zero a", "zero-superblock a"},
		{"-Qq a", "query --quiet a"},
		{"/dev/md0 --fail a --remove a b --add c", "fail /dev/md0 a -r a b -a c"},
		{"/dev/md0 -f a -r a -a b", "manage /dev/md0 --fail a --remove a --add b"},
		{"--manage md0 --replace a --with b", "replace md0 a --with b"},
		{"-f md0 a", "md0 --fail a"},
		{"md0 --re-add missing --add-spare b", "re-add md0 missing --add-spare b"},
		{"-o md0 md1", "readonly md0 md1 --readonly"},
		{"--misc --readwrite md0", "readwrite md0 --readwrite"},
		{"-W md0", "wait md0 --wait"},
		{"md0 --action=check", "action md0 --action check"},
	};
	size_t i;

	for (i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		static struct line a, b;

		parse(&a, pairs[i][0]);
		parse(&b, pairs[i][1]);
		if (a.result != 0 || b.result != 0)
			print_error("%s: %s\n%s: %s\n", pairs[i][0], a.fault.text, pairs[i][1],
				b.fault.text);
		assert_int_equal(a.result, 0);
		assert_int_equal(b.result, 0);
		assert_same(&a.options, &b.options);
	}
}

static void values_arrive(void **state)
{
	static struct line line;

	parse(&line, "-C md0 -l raid0 -n 3 -c 64 -e 0.90 --data-offset 1M -z 100s a b c");
	assert_int_equal(line.result, 0);
	assert_int_equal(line.options.mode, CLI_CREATE);
	assert_string_equal(line.options.array, "md0");
	assert_int_equal(line.options.member_count, 3);
	assert_int_equal(line.options.level, 0);
	assert_int_equal(line.options.raid_devices, 3);
	assert_int_equal(line.options.chunk_bytes, 65536);
	assert_int_equal(line.options.version, MD_VERSION_0_90);
	assert_int_equal(line.options.data_offset_bytes, 1048576);
	assert_int_equal(line.options.size_bytes, 51200);
	assert_true(line.options.readahead_bytes == CLI_DEFAULT);
	cli_options_free(&line.options);

	parse(&line, "cat --offset 3 --length 1K a b");
	assert_int_equal(line.options.offset_bytes, 3);
	assert_int_equal(line.options.length_bytes, 1024);
	assert_int_equal(line.options.word_count, 2);
	cli_options_free(&line.options);

	parse(&line, "assemble md0 --layout=alternate a");
	assert_int_equal(line.options.update_layout, GEOMETRY_RAID0_ALTERNATE);
	cli_options_free(&line.options);
}

/* assemble: the first word is a member if such a file exists. */
static void assemble_without_a_name(void **state)
{
	static struct line line;

	parse(&line, "assemble /dev/null /dev/zero");
	assert_null(line.options.array);
	assert_int_equal(line.options.member_count, 2);
	cli_options_free(&line.options);
	parse(&line, "assemble no-such-file /dev/zero");
	assert_string_equal(line.options.array, "no-such-file");
	assert_int_equal(line.options.member_count, 1);
	cli_options_free(&line.options);
}

static void wrong_lines(void **state)
{
	static const struct {
		const char *text;
		int result;
		const char *words;
	} lines[] = {
		{"", -EINVAL, "no command"},
		{"creat md0", -EINVAL, "'create'"},
		{"frobnicate", -EINVAL, "'frobnicate'"},
		{"/dev/md0", -EINVAL, "'/dev/md0'"},
		{"/dev/md0 --add-journal /dev/sdc", -EOPNOTSUPP, "--add-journal"},
		{"create md0 --fail a", -EINVAL, "no meaning with create"},
		{"md0 --fail a --level=1", -EINVAL, "no meaning with manage"},
		{"-G /dev/md0", -EOPNOTSUPP, "--grow"},
		{"bench", -EOPNOTSUPP, "bench"},
		{"create md0 --levle=0", -EINVAL, "'--level'"},
		{"create md0 --re", -EINVAL, "ambiguous"},
		{"create md0 --level", -EINVAL, "needs a value"},
		{"create md0 --force=3", -EINVAL, "takes no value"},
		{"create md0 -j", -EINVAL, "'j'"},
		{"create md0 --level=raid55", -EINVAL, "'raid5'"},
		{"create md0 --level=0 --level=1", -EINVAL, "only once"},
		{"create md0 -n two", -EINVAL, "two"},
		{"create md0 -n 0", -EINVAL, "'0'"},
		{"create md0 -n -1", -EINVAL, "'-1'"},
		{"create md0 -c 64Q", -EINVAL, "64Q"},
		{"create md0 -c 99999999999999999999", -EINVAL, "chunk"},
		{"create md0 -c -4", -EINVAL, "'-4'"},
		{"create md0 -e 7", -EINVAL, "use 1.2"},
		{"create md0 -e imsm", -EOPNOTSUPP, "imsm"},
		{"create md0 -x one", -EINVAL, "spare"},
		{"create md0 -b somewhere", -EINVAL, "bitmap"},
		{"create md0 --export=usb", -EINVAL, "usb"},
		{"create md0 --export=nbd", -EINVAL, "nbd:PATH"},
		{"create md0 --brief", -EINVAL, "no meaning with create"},
		{"create md0 -l0 --layout=left-symmetric", -EINVAL, "left-symmetric"},
		{"create md0 -l0 a", -EINVAL, "--force"},
		{"create md0 -l0 -n1 a b", -EINVAL, "--force"},
		{"create md0 --uuid=12", -EINVAL, "12"},
		{"-C -D md0", -EINVAL, "already set"},
		{"stop --json md0", -EINVAL, "no meaning with stop"},
		{"assemble --update=name a", -EOPNOTSUPP, "--update=name"},
	};
	size_t i;

	for (i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		static struct line line;

		parse(&line, lines[i].text);
		if (line.result != lines[i].result ||
			strstr(line.fault.text, lines[i].words) == NULL)
			print_error("'%s': %d: %s\n", lines[i].text, line.result, line.fault.text);
		assert_int_equal(line.result, lines[i].result);
		assert_non_null(strstr(line.fault.text, lines[i].words));
		cli_options_free(&line.options);
	}
}

static void sizes(void **state)
{
	uint64_t value;

	assert_int_equal(value_size("1", 1024, &value), 0);
	assert_int_equal(value, 1024);
	assert_int_equal(value_size("3s", 1024, &value), 0);
	assert_int_equal(value, 1536);
	assert_int_equal(value_size("2GiB", 1, &value), 0);
	assert_true(value == UINT64_C(2) << 30);
	assert_int_equal(value_size("16777215T", 1, &value), 0);
	assert_int_equal(value_size("16777216T", 1, &value), -ERANGE);
	assert_int_equal(value_size("18446744073709551616", 1, &value), -ERANGE);
	assert_int_equal(value_size("", 1, &value), -EINVAL);
	assert_int_equal(value_size(" 1", 1, &value), -EINVAL);
	assert_int_equal(value_size("+1", 1, &value), -EINVAL);
	assert_int_equal(value_size("1Kx", 1, &value), -EINVAL);
}

/* A row that no letter or name reaches would be dead: each must be found by its own. */
static void table_is_sound(void **state)
{
	unsigned i, j;

	for (i = 0; i < option_row_count; i++) {
		const struct option_row *a = &option_rows[i];

		assert_non_null(a->name);
		assert_true(a->modes != 0);
		assert_true(a->kind == OPTION_UNSUPPORTED || a->help != NULL);
		for (j = i + 1; j < option_row_count; j++) {
			const struct option_row *b = &option_rows[j];

			/* In manage mode the verbs, which come first, have the letters. */
			if ((a->modes & b->modes) == 0 || a->kind == OPTION_VERB)
				continue;
			if (strcmp(a->name, b->name) == 0)
				fail_msg("two rows for --%s in one mode", a->name);
			if (a->letter != 0 && a->letter == b->letter)
				fail_msg("two rows for -%c in one mode", a->letter);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_grammars),
		cmocka_unit_test(values_arrive),
		cmocka_unit_test(assemble_without_a_name),
		cmocka_unit_test(wrong_lines),
		cmocka_unit_test(sizes),
		cmocka_unit_test(table_is_sound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
