/* SPDX-License-Identifier: MIT */
#ifndef STRAKE_CONTROL_READY_H
#define STRAKE_CONTROL_READY_H

/* The one message from a background process to the array_start() that waits for it. */

#include <limits.h>
#include <stddef.h>

#include "util/fault.h"

struct ready_message {
	int error; /* 0: ready */
	char node[PATH_MAX];
	char text[FAULT_TEXT_MAX]; /* the fault, or the note */
};

int ready_send(int fd, const struct ready_message *message);
/* Bytes received: fewer than a message if the process ended without a word. */
size_t ready_receive(int fd, struct ready_message *ret);

#endif
