/* SPDX-License-Identifier: MIT */
#ifndef STRAKE_CLI_MEMBERS_H
#define STRAKE_CLI_MEMBERS_H

/* Several members at once, and what assembly says about them. */

#include "cli/options.h"
#include "io/member.h"
#include "md/assembly.h"

struct member_set {
	struct member **members;
	struct md_super *supers; /* NULL until member_set_read(); one for each member */
	unsigned count;
};

/*
 * Open all of @paths with @flags. The same device twice is refused (-EINVAL), whatever the paths
 * look like. On error nothing stays open.
 */
int member_set_open(struct member_set *set, char *const *paths, unsigned count, unsigned flags,
	struct fault *fault);
void member_set_close(struct member_set *set);

/* Read the superblock of every member; -ENODATA if one has none. */
int member_set_read(struct member_set *set, struct fault *fault);

/*
 * md_assemble() over the set, and geometry_new() over its result. *@ret is malloc()ed; its @super
 * points into the set.
 */
int member_set_assemble(const struct member_set *set, const struct md_assembly_options *options,
	struct md_assembly **ret, struct fault *fault);

/*
 * Close the members that the assembly has rejected: nobody holds them any more. The others get new
 * numbers, in the set and in the assembly, whose rejected[] and changes[] are empty afterwards.
 */
void member_set_drop_rejected(struct member_set *set, struct md_assembly *assembly);

/* Say on standard error, a line each, which members were rejected and why. */
void member_set_say_rejected(const struct member_set *set, const struct md_assembly *assembly);

/*
 * Write what --force has changed, in the order that the assembly gives, and say it. @set's
 * superblocks are changed too.
 */
int member_set_force(
	struct member_set *set, const struct md_assembly *assembly, struct fault *fault);

/* Does geometry take it? */
int assembly_check(const struct md_assembly *assembly, struct fault *fault);

#endif
