/* SPDX-License-Identifier: MIT */
#ifndef STRAKE_IO_NETWORK_NBD_H
#define STRAKE_IO_NETWORK_NBD_H

/* What network.c and wires.c share, with libnbd's own header. */

#include <libnbd.h>

#include "io/network.h"

/* No server need take a larger request (NBD's protocol.md, "Block sizes"). */
#define NETWORK_PAYLOAD_MAX_BYTES (32u * 1024 * 1024)

struct network {
	char *key;
	bool is_uri;                /* else the member's path is a socket's */
	struct nbd_handle *nbd;     /* NULL: not connected at present */
	uint64_t size_bytes;        /* at the first connection */
	uint32_t payload_max_bytes; /* of one read or write */
	bool can_flush, can_fua, can_trim, can_zero;
};

/* Connected, again where member_disconnect() has closed it; -ENOTCONN where it was lost. */
int network_connect(const struct member *member, struct fault *fault);
/* Is the connection there? */
bool network_is_alive(const struct network *network);

#endif
