/* SPDX-License-Identifier: MIT */
#ifndef STRAKE_MD_ASSEMBLY_VERDICT_H
#define STRAKE_MD_ASSEMBLY_VERDICT_H

/* Levels with redundancy: what was decided of each candidate, and what follows from it. */

#include "md/assembly_internal.h"

struct verdict {
	bool accepted;
	unsigned role; /* slot, or MD_ROLE_SPARE */
	bool in_sync, replacement;
	bool from_spare; /* its slot is news from the freshest; the device itself says spare */
	uint64_t recovered_sectors;
	enum md_rejection reason; /* if not accepted */
	unsigned by;
	bool forcible; /* rejected for its history only, and its data are whole */
	bool forced;   /* and then accepted all the same */
};

/* From verdicts to the result: force, then whether the array may be started. */
int assembly_start(struct assembling *a, struct verdict *verdicts);

/* Takes stale members in until the level has enough (specification 8.2). */
int assembly_force(struct assembling *a, struct verdict *verdicts);

/* Declares the array clean although parity may be wrong. */
int assembly_force_clean(struct assembling *a, const struct verdict *verdicts);

/* Can the array be read in full with the accepted ones that are in sync? */
bool assembly_available(const struct assembling *a, const struct verdict *verdicts);

#endif
