/* SPDX-License-Identifier: MIT */
#ifndef STRAKE_BENCH_RAM_WORLD_H
#define STRAKE_BENCH_RAM_WORLD_H

/*
 * Members in the process's own memory: what a disk would be if it cost only its copy. The content
 * lies in one pool of huge pages, touched beforehand. Requests are copied when the world is run,
 * not when they are submitted, as with any other world.
 */

#include <stdint.h>

#include "world/world.h"

struct world *ram_world_new(unsigned members, uint64_t member_bytes);
/* The same memory seen as one large member. The pool stays the first world's. */
struct world *ram_world_flat(struct world *world);
/* Copy and complete everything submitted so far; returns how many requests that were. */
unsigned ram_world_run(struct world *world);

#endif
