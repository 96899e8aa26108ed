/* SPDX-License-Identifier: MIT */
#ifndef STRAKE_IO_NETWORK_H
#define STRAKE_IO_NETWORK_H

/*
 * Members that an NBD server has: named by a URI (nbd://host/export, nbds://…,
 * nbd+unix:///export?socket=/path, nbd+vsock://…) or by the path of a Unix socket.
 *
 * member.c hands such members on to here; nothing else of the program need know what they are.
 * Without libnbd (network_none.c) they are refused.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "io/member.h"
#include "world/world.h"

struct reactor;

/*
 * network_name.c: what a word names. Two words that name the same export of the same server have
 * the same key: a socket is told by the folder's real path, a host by its name (not by its
 * addresses), the port and the export.
 */
struct network_name {
	char *path; /* the word, with the socket's path made absolute */
	char *key;
	bool is_uri;
};

/* Is it a URI of NBD, or does a socket stand at this path? */
bool network_is_word(const char *word);
/* -ENOMEM; -EINVAL for a URI that names no server. */
int network_name_parse(const char *word, struct network_name *ret, struct fault *fault);
void network_name_fini(struct network_name *name);

/*
 * The hold on an export. NBD has no such thing, so it holds among the programs of this machine (of
 * one network namespace) that keep to it: an abstract Unix socket, whose name is made from the key,
 * and which ends with the last process that has its descriptor.
 */
struct network_hold_address {
	char name[64]; /* without the zero byte at its front */
};
struct network_hold_address network_hold_address(const char *key);

/* member_open() and the like for such a member. */
int network_member_open(const char *word, unsigned flags, struct member **ret, struct fault *fault);
/* Gives the connection up, and with it the object; the server learns nothing from it. */
void network_free(struct network *network);
const char *network_key(const struct network *network);
int network_read(const struct member *member, uint64_t offset_bytes, void *buffer, size_t length);
int network_write(
	const struct member *member, uint64_t offset_bytes, const void *buffer, size_t length);
int network_sync(const struct member *member);

/*
 * wires.c: network members in a reactor. A reactor's wires come with its first such member. -ENOMEM
 * or errors of epoll(7).
 */
int wires_add(struct reactor *reactor, unsigned index);
void wires_remove(struct reactor *reactor, unsigned index);
void wires_free(struct reactor *reactor);
void wires_submit(struct reactor *reactor, struct world_io *io);

#endif
