/* SPDX-License-Identifier: MIT */
#include "md/sha1.h"

#include <string.h>

#include "util/bytes.h"

#define BLOCK_BYTES 64u
#define LENGTH_BYTES 8u /* the message's length in bits ends the last block */

static uint32_t rotate_left(uint32_t value, unsigned bits)
{
	return value << bits | value >> (32 - bits);
}

/* f(t) and K(t) of the standard, sections 4.1.1 and 4.2.1. */
static uint32_t mix(unsigned t, uint32_t b, uint32_t c, uint32_t d)
{
	if (t < 20)
		return ((b & c) | (~b & d)) + 0x5a827999;
	if (t < 40)
		return (b ^ c ^ d) + 0x6ed9eba1;
	if (t < 60)
		return ((b & c) | (b & d) | (c & d)) + 0x8f1bbcdc;
	return (b ^ c ^ d) + 0xca62c1d6;
}

static void expand(const uint8_t *block, uint32_t w[80])
{
	for (unsigned t = 0; t < 16; t++)
		w[t] = get_be32(block + 4 * t);
	for (unsigned t = 16; t < 80; t++)
		w[t] = rotate_left(w[t - 3] ^ w[t - 8] ^ w[t - 14] ^ w[t - 16], 1);
}

static void compress(uint32_t h[5], const uint8_t *block)
{
	uint32_t w[80], a = h[0], b = h[1], c = h[2], d = h[3], e = h[4];

	expand(block, w);
	for (unsigned t = 0; t < 80; t++) {
		uint32_t next = rotate_left(a, 5) + mix(t, b, c, d) + e + w[t];

		e = d;
		d = c;
		c = rotate_left(b, 30);
		b = a;
		a = next;
	}
	h[0] += a;
	h[1] += b;
	h[2] += c;
	h[3] += d;
	h[4] += e;
}

void md_sha1(const void *data, size_t length, uint8_t digest[MD_SHA1_BYTES])
{
	uint32_t h[5] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};
	const size_t rest = length % BLOCK_BYTES;
	const uint8_t *bytes = data;
	uint8_t tail[2 * BLOCK_BYTES] = {0};
	size_t tail_bytes = rest + 1 + LENGTH_BYTES <= BLOCK_BYTES ? BLOCK_BYTES : 2 * BLOCK_BYTES;

	for (size_t at = 0; at + BLOCK_BYTES <= length; at += BLOCK_BYTES)
		compress(h, bytes + at);
	if (rest > 0)
		memcpy(tail, bytes + length - rest, rest);
	tail[rest] = 0x80;
	put_be32(tail + tail_bytes - 8, (uint32_t)((uint64_t)length >> 29));
	put_be32(tail + tail_bytes - 4, (uint32_t)((uint64_t)length << 3));
	for (size_t at = 0; at < tail_bytes; at += BLOCK_BYTES)
		compress(h, tail + at);
	for (unsigned i = 0; i < 5; i++)
		put_be32(digest + 4 * i, h[i]);
}
