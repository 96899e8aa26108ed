/* SPDX-License-Identifier: MIT */
/* The table of exports: a new one is one line here and one struct export_ops of its own.
 * --export=auto takes the first that can be had: the order is the order of preference. */
#include <stddef.h>

#include "export/fuse/fuse_export.h"
#include "export/nbd/nbd_export.h"

const struct export_ops *const export_rows[] = {
	&fuse_export_ops,
	&nbd_export_ops,
	NULL,
};
