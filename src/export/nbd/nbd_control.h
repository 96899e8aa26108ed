/* SPDX-License-Identifier: MIT */
#ifndef STRAKE_EXPORT_NBD_NBD_CONTROL_H
#define STRAKE_EXPORT_NBD_NBD_CONTROL_H

/* The control socket of an array that is served by NBD: detail and stop. */

#include <sys/types.h>

#include "export/nbd/nbd_array.h"

struct nbd_control;

struct nbd_control_options {
	const char *socket_path; /* where clients connect, NULL if unknown; kept */
	void (*shutdown)(void);  /* asks the server to end; returns at once */
	pid_t supervisor;        /* the process that holds the array, 0 if that is this one */
};

/* The array has a name and is started. Errors of control_server_start(); -ENOMEM. */
int nbd_control_start(struct nbd_array *array, const struct nbd_control_options *options,
	struct nbd_control **ret, struct fault *fault);
/* NULL is allowed. */
void nbd_control_stop(struct nbd_control *control);

/* A client came (+1) or went (-1); from any thread. */
void nbd_control_clients(struct nbd_control *control, int change);

#endif
