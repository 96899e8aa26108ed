/* SPDX-License-Identifier: MIT */

/* What is generated from the tables: --help, the bash completion, the manual page's option list. */

#include <errno.h>
#include <string.h>

#include "cli/table.h"

static bool is_shown(const struct option_row *row)
{
	return row->kind != OPTION_UNSUPPORTED && row->kind != OPTION_IGNORED;
}

static void print_names(const struct option_row *row, FILE *out)
{
	char text[80];

	(void)snprintf(text, sizeof(text), "--%s%s%s", row->name, row->value != NULL ? "=" : "",
		row->value != NULL ? row->value : "");
	if (row->letter != 0)
		(void)fprintf(out, "  -%c, %-24s", row->letter, text);
	else
		(void)fprintf(out, "      %-24s", text);
}

/* The help text without the manual page's marks, folded behind the names. */
static void print_help_text(const char *help, FILE *out)
{
	size_t column = 30;

	while (*help != '\0') {
		size_t length = strcspn(help, " "), i;

		if (column + length > 96) {
			(void)fprintf(out, "\n%30s", "");
			column = 30;
		}
		(void)fputc(' ', out);
		for (i = 0; i < length; i++) {
			if (help[i] != '*')
				(void)fputc(help[i], out);
		}
		column += length + 1;
		help += length + (help[length] == ' ');
	}
	(void)fputc('\n', out);
}

static void print_options(enum cli_mode mode, FILE *out)
{
	unsigned i;

	for (i = 0; i < option_row_count; i++) {
		const struct option_row *row = &option_rows[i];

		if (!is_shown(row) || row->kind == OPTION_MODE)
			continue;
		if (mode != CLI_NONE && (row->modes & CLI_BIT(mode)) == 0)
			continue;
		print_names(row, out);
		print_help_text(row->help, out);
	}
}

static void print_verbs(FILE *out)
{
	unsigned i;

	for (i = 0; i < verb_row_count; i++) {
		if (verb_rows[i].mode == CLI_NONE)
			continue;
		(void)fprintf(out, "  strake %s %s\n      %s\n", verb_rows[i].name,
			verb_rows[i].usage, verb_rows[i].help);
	}
}

void cli_help(enum cli_mode mode, FILE *out)
{
	unsigned i;

	if (mode != CLI_NONE) {
		const struct verb_row *verb = verb_of_mode(mode);

		(void)fprintf(out, "Usage: strake %s %s\n%s\n\nOptions:\n", verb->name, verb->usage,
			verb->help);
		print_options(mode, out);
		return;
	}
	(void)fputs(
		"strake: software RAID in user space, on disk the same as Linux md\n\nCommands:\n",
		out);
	print_verbs(out);
	(void)fputs("\nThe same in mdadm's grammar, with the options of the command:\n", out);
	for (i = 0; i < option_row_count; i++) {
		if (option_rows[i].kind != OPTION_MODE || option_rows[i].mode == CLI_NONE)
			continue;
		print_names(&option_rows[i], out);
		print_help_text(option_rows[i].help, out);
	}
	(void)fputs(
		"\n'strake COMMAND --help' lists the options of a command; all are in strake(8).\n",
		out);
}

static void print_long_names(enum cli_mode mode, FILE *out)
{
	unsigned i;

	for (i = 0; i < option_row_count; i++) {
		const struct option_row *row = &option_rows[i];

		if (!is_shown(row) || (mode != CLI_NONE && row->kind == OPTION_MODE))
			continue;
		if ((row->modes & CLI_BIT(mode)) != 0)
			(void)fprintf(out, " --%s%s", row->name, row->value != NULL ? "=" : "");
	}
}

static void print_bash(FILE *out)
{
	unsigned i;

	(void)fputs("# bash completion for strake, made by 'strake --completion bash'\n"
		    "_strake()\n{\n\tlocal word=${COMP_WORDS[COMP_CWORD]} words\n"
		    "\tcase ${COMP_WORDS[1]} in\n",
		out);
	for (i = 0; i < verb_row_count; i++) {
		if (verb_rows[i].mode == CLI_NONE)
			continue;
		(void)fprintf(out, "\t%s) words=\"", verb_rows[i].name);
		print_long_names(verb_rows[i].mode, out);
		(void)fputs("\" ;;\n", out);
	}
	(void)fputs("\t*) words=\"", out);
	print_long_names(CLI_NONE, out);
	(void)fputs("\" ;;\n\tesac\n\tif ((COMP_CWORD == 1)); then\n\t\twords+=\"", out);
	for (i = 0; i < verb_row_count; i++) {
		if (verb_rows[i].mode != CLI_NONE)
			(void)fprintf(out, " %s", verb_rows[i].name);
	}
	(void)fputs("\"\n\tfi\n"
		    "\tmapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$word\"; compgen -f -- "
		    "\"$word\")\n"
		    "}\ncomplete -o filenames -o nospace -F _strake strake\n",
		out);
}

/* In scdoc's language: underscores stand for underlining and have to be escaped. */
static void print_scdoc_text(const char *text, FILE *out)
{
	for (; *text != '\0'; text++) {
		if (*text == '_' || *text == '<' || *text == '#')
			(void)fputc('\\', out);
		(void)fputc(*text, out);
	}
}

static void print_scdoc(FILE *out)
{
	unsigned i;

	for (i = 0; i < option_row_count; i++) {
		const struct option_row *row = &option_rows[i];
		unsigned mode, said = 0;

		if (row->kind == OPTION_UNSUPPORTED)
			continue;
		(void)fputc('*', out);
		if (row->letter != 0)
			(void)fprintf(out, "-%c*, *", row->letter);
		(void)fprintf(out, "--%s*", row->name);
		if (row->value != NULL)
			(void)fprintf(out, "=_%s_", row->value);
		(void)fputs("\n\t", out);
		print_scdoc_text(row->help, out);
		for (mode = CLI_NONE + 1; mode < CLI_MODES && row->modes != CLI_ALL; mode++) {
			if ((row->modes & CLI_BIT(mode)) != 0)
				(void)fprintf(out, "%s%s", said++ == 0 ? " (" : ", ",
					verb_of_mode((enum cli_mode)mode)->name);
		}
		(void)fputs(said > 0 ? ")\n\n" : "\n\n", out);
	}
}

int cli_completion(const char *kind, FILE *out, struct fault *fault)
{
	if (strcmp(kind, "bash") == 0)
		print_bash(out);
	else if (strcmp(kind, "scdoc") == 0)
		print_scdoc(out);
	else
		return fault_set(fault, -EINVAL, "no completion for '%s'; known: bash", kind);
	return 0;
}
