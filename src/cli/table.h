/* SPDX-License-Identifier: MIT */
#ifndef STRAKE_CLI_TABLE_H
#define STRAKE_CLI_TABLE_H

/* The two tables behind both grammars: options and verbs. */

#include <stddef.h>

#include "cli/options.h"

#define CLI_BIT(mode) (1u << (mode))
#define CLI_ALL ((1u << CLI_MODES) - 1)

enum option_kind {
	OPTION_FLAG,        /* sets the bool at the offset */
	OPTION_TEXT,        /* stores the value's pointer at the offset */
	OPTION_BYTES,       /* uint64_t; plain numbers are bytes */
	OPTION_KIB,         /* uint64_t, bytes; plain numbers are KiB, as in mdadm */
	OPTION_COUNT,       /* uint64_t, 1 … UINT32_MAX */
	OPTION_CALL,        /* apply() */
	OPTION_MODE,        /* chooses the mode at @mode */
	OPTION_VERB,        /* what to do with the words that follow (manage) */
	OPTION_IGNORED,     /* accepted, without effect */
	OPTION_UNSUPPORTED, /* known to mdadm, not done yet */
};

struct option_row {
	const char *name;  /* long, without dashes */
	char letter;       /* short form or 0 */
	const char *value; /* what its value is called; NULL: takes none */
	unsigned modes;    /* CLI_BIT()s of the modes that take it */
	enum option_kind kind;
	size_t offset; /* into struct cli_options */
	enum cli_mode mode;
	int (*apply)(struct cli_options *options, const char *value, struct fault *fault);
	const char *help;
	bool optional; /* its value is: only "--name=value" has one, else apply() gets NULL */
};

extern const struct option_row option_rows[];
extern const unsigned option_row_count;

/* Act on @row as given with @value. */
int option_apply(const struct option_row *row, const char *value, struct cli_options *options,
	struct fault *fault);

/* A verb: a subcommand, and the mode of mdadm's grammar that it stands for. */
struct verb_row {
	const char *name;
	enum cli_mode mode; /* CLI_NONE: not yet supported */
	const char *usage;  /* behind "strake VERB " */
	const char *help;
	int (*run)(const struct cli_options *options);
};

extern const struct verb_row verb_rows[];
extern const unsigned verb_row_count;

const struct verb_row *verb_find(const char *name);
const struct verb_row *verb_of_mode(enum cli_mode mode);

#endif
