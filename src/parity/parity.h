/* SPDX-License-Identifier: MIT */
#ifndef STRAKE_PARITY_PARITY_H
#define STRAKE_PARITY_PARITY_H

/*
 * The arithmetic of RAID 4, 5 and 6 over blocks in memory: P, Q, their updates, lost blocks, and
 * which block is wrong. The file parity.c derives it all. P and Q are md's:
 *
 *     P = D_0 ^ D_1 ^ ... ^ D_(n-1)        Q = g^0 D_0 ^ g^1 D_1 ^ ... ^ g^(n-1) D_(n-1)
 *
 * in GF(2^8) with the polynomial 0x11d and g = 2. The index i of a data block is its exponent; the
 * caller orders the blocks as the layout says (specification 7.5, "Q order").
 *
 * A stripe is an array of n_data + 2 pointers: data 0 to n_data - 1, then P, then Q.
 *
 * True for every function here:
 *  - Blocks have any alignment and any length, 0 among them. Fastest: all pointers and the length
 *    multiples of 64, and at least 4 KiB.
 *  - A data pointer that is NULL stands for a block of zeros (the gaps in the exponents of the DDF
 *    layouts, chunks beyond the end of a member, chunks that are known to be zero).
 *  - Blocks do not overlap, except where a function says that two may be the same.
 *  - Nothing is allocated, nothing blocks, nothing is kept: any number of threads may call.
 */

#include <stdbool.h>
#include <stddef.h>

/* g^255 = g^0, so 255 exponents differ. (md allows 255 members: 253 data blocks.) */
#define PARITY_DATA_MAX 255u

/*
 * @target = xor of all @count @sources, @bytes each; zeros if there are none. Any count: RAID 5 has
 * no limit in arithmetic. NULL sources are zeros; @target may be one (or several) of the sources.
 */
void parity_xor(unsigned count, const void *const *sources, void *target, size_t bytes);

/*
 * P and Q of @n_data (1 to PARITY_DATA_MAX) blocks. @p or @q may be NULL: not wanted. @p and @q
 * must not be among the data.
 */
void parity_pq(unsigned n_data, const void *const *data, void *p, void *q, size_t bytes);

/*
 * Read-modify-write: data block @index changes from @before to @after, P and Q follow in place:
 * P ^= before ^ after, Q ^= g^index (before ^ after). @p or @q may be NULL: not wanted. @before or
 * @after may be NULL, zeros; so one call adds a block, or a difference, to P and Q.
 */
void parity_update(
	unsigned index, const void *before, const void *after, void *p, void *q, size_t bytes);

/*
 * Compute lost blocks of a stripe from the others. @lost[0 .. n_lost-1] are different indices into
 * @stripe: below n_data data, n_data P, n_data + 1 Q. More than two never come back.
 *
 * A lost block's pointer says where it goes; NULL: it is lost, but nobody wants it (one of two
 * lost blocks may be read by itself). P and Q that are not lost but NULL are not there (Q of a
 * RAID 5 always; P and Q that were not read because they are not needed: one lost data block needs
 * only P; lost P or Q need only the data). Other blocks are only read.
 *
 * False, and nothing is written: what is there does not determine what is wanted.
 */
bool parity_recover(
	unsigned n_data, void *const *stripe, unsigned n_lost, const unsigned *lost, size_t bytes);

bool parity_is_zero(const void *block, size_t bytes);

#define PARITY_CONSISTENT (-1)
#define PARITY_CANNOT_TELL (-2)

/*
 * Look whether a stripe (none of it lost) is consistent, and if not, which one block is wrong: its
 * index as in parity_recover(), or PARITY_CONSISTENT or PARITY_CANNOT_TELL. The rule is that of
 * mdadm's raid6check: every byte that does not fit must accuse the same block. Without Q (NULL)
 * a mismatch is always PARITY_CANNOT_TELL; NULL data is never accused.
 *
 * An answer is evidence, not proof: two wrong blocks can look like one wrong third. For wrong
 * bytes at the same offsets that differ independently, a false answer over k of them has a chance
 * of about 255^(1-k); but equal damage to two data blocks cancels in P and accuses Q. So ask for
 * ranges in which damage happens as a whole (a sector or more, not bytes).
 *
 * [*ret_first, *ret_end) spans the bytes that do not fit (both 0 if consistent); either may be
 * NULL.
 */
int parity_locate(unsigned n_data, const void *const *stripe, size_t bytes, size_t *ret_first,
	size_t *ret_end);

#endif
