/* SPDX-License-Identifier: MIT */
#ifndef STRAKE_EXPORT_NBD_NBD_EXPORT_H
#define STRAKE_EXPORT_NBD_NBD_EXPORT_H

#include "control/export.h"

/* An array on a Unix socket: nbdkit in the background with our plugin. */
extern const struct export_ops nbd_export_ops;

#endif
