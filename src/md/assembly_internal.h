/* SPDX-License-Identifier: MIT */
#ifndef STRAKE_MD_ASSEMBLY_INTERNAL_H
#define STRAKE_MD_ASSEMBLY_INTERNAL_H

/* What the assembly*.c share: one assembly on its way, and the rules that hold for every level. */

#include "md/assembly.h"

#define ASSEMBLY_LISTED_MAX 16u /* slots or devices named in one message */

struct assembling {
	const struct md_candidate *candidates;
	unsigned count;
	const struct md_assembly_options *options;
	const struct md_candidate *best; /* the freshest */
	struct md_assembly *ret;
	struct fault *fault;
};

/* The array's name for messages, or its UUID where it has none. */
const char *assembly_name(const struct md_super *super, char uuid[MD_UUID_TEXT]);

/* A slot, or one of md_role for a member without. */
unsigned assembly_role(const struct md_candidate *candidate);
bool assembly_has_slot(const struct md_candidate *candidate);

/* Does @other tell of the same geometry as the freshest? No option overrides that. */
bool assembly_same_geometry(const struct assembling *a, const struct md_candidate *other);
int assembly_refuse_geometry(const struct assembling *a, const struct md_candidate *other);

int assembly_refuse_double(
	const struct assembling *a, const struct md_candidate *one, const struct md_candidate *two);
int assembly_refuse_slot(const struct assembling *a, const struct md_candidate *candidate);

/* The layout that counts: one of RAID 0 without the feature bit is to be ignored (7.3). */
int64_t assembly_layout(const struct md_super *super);

/* Sectors of data that the kernel uses on a member. */
uint64_t assembly_usable_sectors(const struct md_super *super);
/* First sector of the device that cannot hold data any more. */
uint64_t assembly_data_limit(const struct md_candidate *candidate);
/* Does the device hold the data that its superblock claims? */
bool assembly_extent_fits(const struct md_candidate *candidate);

/* The device in @ret->devices that @candidate becomes; fills what does not depend on the level. */
struct md_assembly_device *assembly_add_device(struct assembling *a, unsigned candidate);

/* The way of a level: from the freshest and the candidates to the result. */
int assembly_striped(struct assembling *a);   /* linear, RAID 0 */
int assembly_redundant(struct assembling *a); /* RAID 1, 4, 5, 6, 10 */

#endif
