/* SPDX-License-Identifier: MIT */
#include "md/sha1.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void digest_text(const char *data, size_t length, char text[41])
{
	uint8_t digest[MD_SHA1_BYTES];

	md_sha1(data, length, digest);
	for (unsigned i = 0; i < MD_SHA1_BYTES; i++)
		(void)snprintf(text + 2 * i, 3, "%02x", digest[i]);
}

/* The standard's examples, and the host name of specification 2.4. */
static void test_known(void **state)
{
	static const struct {
		const char *message, *digest;
	} rows[] = {
		{"", "da39a3ee5e6b4b0d3255bfef95601890afd80709"},
		{"abc", "a9993e364706816aba3e25717850c26c9cd0d89d"},
		{"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
			"84983e441c3bd26ebaae4aa1f95129e5e54670f1"},
		{"abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmn"
		 "hijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu",
			"a49b2446a02c645bf419f995b67091253a04a259"},
		{"host", "86dd1cf45142e904"},
		{"myhost", "d101537533b7a17a"},
	};
	char text[41];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		digest_text(rows[i].message, strlen(rows[i].message), text);
		assert_memory_equal(text, rows[i].digest, strlen(rows[i].digest));
	}
}

/*
 * Every length around the block boundaries: the SHA-1 of all the digests of 'a' x 0…200, as other
 * programs compute it.
 */
static void test_lengths(void **state)
{
	char message[200], all[201 * MD_SHA1_BYTES], text[41];

	memset(message, 'a', sizeof(message));
	for (unsigned n = 0; n <= sizeof(message); n++)
		md_sha1(message, n, (uint8_t *)all + (size_t)n * MD_SHA1_BYTES);
	digest_text(all, sizeof(all), text);
	assert_string_equal(text, "f6f332e8f89c35ee3df74d34ef8fda777d9647b9");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_known),
		cmocka_unit_test(test_lengths),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
