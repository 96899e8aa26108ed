/* SPDX-License-Identifier: MIT */
#ifndef STRAKE_EXPORT_FUSE_FUSE_EXPORT_H
#define STRAKE_EXPORT_FUSE_FUSE_EXPORT_H

#include "control/export.h"

/* FUSE file, and as root a loop device over it: ARRAY_EXPORT_AUTO, _FUSE and _LOOP. */
extern const struct export_ops fuse_export_ops;

#endif
