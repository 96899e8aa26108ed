/* SPDX-License-Identifier: MIT */
#ifndef STRAKE_MD_SUPER_INTERNAL_H
#define STRAKE_MD_SUPER_INTERNAL_H

/* What super.c, super1.c and super090.c share. */

#include "md/super.h"

#define MD_MAGIC 0xa92b4efcu

extern const struct md_format md_format_090, md_format_10, md_format_11, md_format_12;

/* "Field @field is …": the one form of all refusals, so that tests and people find the field. */
int md_field_fault(struct fault *fault, int error, enum md_version version, const char *field,
	const char *format, ...) __attribute__((format(printf, 5, 6)));

/* Low half plus high half of the sum of the words: one fold, with wrap (specification 1.3). */
static inline uint32_t md_fold(uint64_t sum)
{
	return (uint32_t)((sum & UINT32_MAX) + (sum >> 32));
}

#endif
