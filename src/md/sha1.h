/* SPDX-License-Identifier: MIT */
#ifndef STRAKE_MD_SHA1_H
#define STRAKE_MD_SHA1_H

/*
 * SHA-1 (FIPS 180-4), for one purpose: version 0.90 recognises its host by the hash of the host's
 * name (specification 2.4). Nothing here relies on it being hard to forge.
 */

#include <stddef.h>
#include <stdint.h>

#define MD_SHA1_BYTES 20

/* Digest of @length bytes at @data (NULL allowed if @length is 0). */
void md_sha1(const void *data, size_t length, uint8_t digest[MD_SHA1_BYTES]);

#endif
