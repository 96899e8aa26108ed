/* SPDX-License-Identifier: MIT */
#ifndef STRAKE_CONTROL_EXPORT_H
#define STRAKE_CONTROL_EXPORT_H

/*
 * What an export is to array_start(): one row of a table. The table stands in export/exports.c,
 * above this layer; a new export is one file with one struct export_ops and one line there.
 *
 * array_start() forks; in the background process it calls the row's run(). From then on the process
 * is the export's: it makes reactor and engine (or replaces itself by a program that does), puts
 * the array where clients find it, starts the control server, says export_ready(), serves until it
 * is told to stop, and cleans up.
 */

#include "control/array.h"
#include "md/assembly.h"

#define EXPORT_KIND(kind) (1u << (kind))

struct export_start {
	const struct md_assembly *assembly;
	/*
	 * Index = candidate index of the assembly; taken exclusively, descriptors open and
	 * close-on-exec. Whoever executes another program hands the descriptors over (the exclusive
	 * hold goes with them) instead of opening the paths again.
	 */
	struct member *const *members;
	unsigned member_count;
	const struct array_options *options;
	int ready_fd; /* for export_ready(); close-on-exec */
};

struct export_ops {
	const char *name;
	unsigned kinds; /* EXPORT_KIND()s of enum array_export that it serves */
	/*
	 * Runs in the background process, which leads a session of its own; standard descriptors
	 * are still the caller's. 0 when the array was stopped; negative, with words, if it could
	 * not start (everything undone): they reach the caller of array_start().
	 */
	int (*run)(const struct export_start *start, struct fault *fault);
	/*
	 * Remove what a killed process left of array @name: only what is provably its own. NULL if
	 * such a process leaves nothing. Called when no array of that name runs. 0, or negative
	 * with words if something stays that would be in the way.
	 */
	int (*clean)(const char *name, struct fault *fault);
};

/* The table, ended by NULL. Defined in export/exports.c. */
extern const struct export_ops *const export_rows[];

/*
 * Tell the waiting array_start() that @node can be used, and one line that the user should see
 * (@note, or NULL). Closes @ready_fd; from here on the process detaches from the terminal: standard
 * descriptors become /dev/null.
 */
int export_ready(int ready_fd, const char *node, const char *note);

/*
 * Best effort against being starved by the very memory pressure that our own writes shall relieve:
 * PR_SET_IO_FLUSHER (before threads and rings are made: they inherit it), out-of-memory score.
 */
void export_harden(void);
/* Lock what is resident now and whatever becomes so later. After all memory is taken. */
void export_lock_memory(void);

#endif
