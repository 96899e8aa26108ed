/* SPDX-License-Identifier: MIT */
/* Built without libnbd: network members are known by name, and refused. */
#include <errno.h>

#include "io/network.h"

int network_member_open(const char *word, unsigned flags, struct member **ret, struct fault *fault)
{
	return fault_set(fault, -EOPNOTSUPP,
		"%s: this program was built without libnbd and has no network members; install "
		"libnbd-dev and build it again, or make a block device of it with nbd-client",
		word);
}

int member_adopt(struct member *member, struct fault *fault)
{
	return 0;
}

void member_disconnect(struct member *member)
{
}

/* There is no such member, so nobody comes here. */

void network_free(struct network *network)
{
}

const char *network_key(const struct network *network)
{
	return "";
}

int network_read(const struct member *member, uint64_t offset, void *buffer, size_t length)
{
	return -EOPNOTSUPP;
}

int network_write(const struct member *member, uint64_t offset, const void *buffer, size_t length)
{
	return -EOPNOTSUPP;
}

int network_sync(const struct member *member)
{
	return -EOPNOTSUPP;
}

int wires_add(struct reactor *reactor, unsigned index)
{
	return -EOPNOTSUPP;
}

void wires_remove(struct reactor *reactor, unsigned index)
{
}

void wires_free(struct reactor *reactor)
{
}

void wires_submit(struct reactor *reactor, struct world_io *io)
{
	(void)io;
}
