/* SPDX-License-Identifier: MIT */
#ifndef STRAKE_PARITY_FIELD_H
#define STRAKE_PARITY_FIELD_H

/*
 * GF(2^8) with the polynomial 0x11d, by powers of g = 2: every element but 0 is one of g^0 to
 * g^254, products add exponents, quotients subtract them, all modulo 255. For the parity folder.
 */

#include <stdint.h>

extern const uint8_t parity_power[255]; /* g^index */
extern const uint8_t parity_log[256];   /* the exponent; not of 0 */

/* g^@exponent; any exponent, also above 254. */
static inline uint8_t field_power(unsigned exponent)
{
	return parity_power[exponent % 255];
}

/* g^-@exponent; exponent at most 255. */
static inline uint8_t field_power_inverse(unsigned exponent)
{
	return field_power(255 - exponent);
}

/* @a / @b; @b is not 0. */
static inline uint8_t field_divide(uint8_t a, uint8_t b)
{
	return a == 0 ? 0 : field_power(255u + parity_log[a] - parity_log[b]);
}

#endif
