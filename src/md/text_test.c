/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "md/super.h"

static void uuids(void **state)
{
	static const char *const spellings[] = {
		"01234567:89abcdef:00112233:44556677",
		"0123456789abcdef0011223344556677",
		"01234567-89ab-cdef-0011-223344556677",
		"01234567.89ABCDEF.00112233.44556677",
		"01234567 89abcdef 00112233 44556677",
	};
	static const char *const wrong[] = {
		"",
		"0123456789abcdef001122334455667",
		"0123456789abcdef00112233445566778",
		"0123456789abcdef001122334455667g",
		"0x23456789abcdef0011223344556677",
	};
	char text[MD_UUID_TEXT];
	uint8_t uuid[16];

	for (size_t i = 0; i < sizeof(spellings) / sizeof(spellings[0]); i++) {
		memset(uuid, 0xee, sizeof(uuid));
		assert_int_equal(md_uuid_parse(spellings[i], uuid), 0);
		assert_ptr_equal(md_uuid_format(uuid, text), text);
		assert_string_equal(text, spellings[0]);
	}
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_int_equal(md_uuid_parse(wrong[i], uuid), -EINVAL);
	assert_string_equal(md_uuid_format(uuid, text), spellings[0]); /* left alone by errors */
}

static void level_names(void **state)
{
	static const int all[] = {-5, -4, -1, 0, 1, 4, 5, 6, 10};
	int level = 99;

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		assert_int_equal(md_level_parse(md_level_name(all[i]), &level), 0);
		assert_int_equal(level, all[i]);
	}
	assert_int_equal(md_level_parse("stripe", &level), 0);
	assert_int_equal(level, 0);
	assert_int_equal(md_level_parse("mirror", &level), 0);
	assert_int_equal(level, 1);
	assert_int_equal(md_level_parse("10", &level), 0);
	assert_int_equal(level, 10);
	assert_int_equal(md_level_parse("raid7", &level), -EINVAL);
	assert_int_equal(md_level_parse("", &level), -EINVAL);
	assert_string_equal(md_level_name(0), "raid0");
	assert_string_equal(md_level_name(-1), "linear");
	assert_string_equal(md_level_name(2), "-unknown-");
}

static void layout_names(void **state)
{
	static const struct {
		int level;
		uint32_t layout;
		const char *text;
	} rows[] = {
		{0, 1, "original"},
		{0, 2, "alternate"},
		{0, 0, NULL},
		{0, 0xffffffff, NULL},
		{1, 0, NULL},
		{4, 0, NULL},
		{5, 2, "left-symmetric"},
		{5, 1, "right-asymmetric"},
		{5, 6, NULL},
		{6, 8, "ddf-zero-restart"},
		{6, 18, "left-symmetric-6"},
		{6, 7, NULL},
		{10, 0x102, "near=2"},
		{10, 0x201, "far=2"},
		{10, 0x10301, "offset=3"},
		{10, 0x202, "near=2, far=2"},
		{10, 0x101, "NO REDUNDANCY"},
		{10, 0x80102, NULL},
		{10, 0xffff, "near=255, far=255"},
		{10, 0x1ffff, "near=255, offset=255"},
		{10, 0, NULL},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char buffer[32];
		const char *name = md_layout_name(rows[i].level, rows[i].layout, buffer);

		if (rows[i].text == NULL)
			assert_null(name);
		else
			assert_string_equal(name, rows[i].text);
	}
}

static void layouts_parsed(void **state)
{
	static const struct {
		int level;
		const char *text;
		uint32_t layout;
	} rows[] = {
		{0, "original", 1},
		{0, "alternate", 2},
		{0, "2", 2},
		{5, "ls", 2},
		{5, "ra", 1},
		{5, "parity-first", 4},
		{5, "ddf-N-continue", 2},
		{6, "ddf-N-continue", 10},
		{6, "parity-first-6", 20},
		{10, "n2", 0x102},
		{10, "f3", 0x301},
		{10, "o2", 0x10201},
	};
	static const struct {
		int level;
		const char *text;
	} wrong[] = {
		{0, "left-symmetric"},
		{0, ""},
		{1, "n2"},
		{4, "ls"},
		{5, "xx"},
		{10, "n"},
		{10, ""},
		{10, "n0"},
		{10, "n256"},
		{10, "x2"},
		{10, "n2x"},
		{10, "n-1"},
	};
	uint32_t layout = 0;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(md_layout_parse(rows[i].level, rows[i].text, &layout), 0);
		assert_int_equal(layout, rows[i].layout);
	}
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_int_equal(md_layout_parse(wrong[i].level, wrong[i].text, &layout), -EINVAL);
}

static void names(void **state)
{
	static const struct {
		const char *homehost, *name, *text;
	} rows[] = {
		{"host", "0", "host:0"},
		{NULL, "0", "0"},
		{"", "0", "0"},
		{"host", "other:data", "other:data"},
		/* 31 characters with the prefix still fit, 32 do not. */
		{"host", "abcdefghijklmnopqrstuvwxyz", "host:abcdefghijklmnopqrstuvwxyz"},
		{"host", "abcdefghijklmnopqrstuvwxyz1", "abcdefghijklmnopqrstuvwxyz1"},
		{NULL, "abcdefghijklmnopqrstuvwxyz0123456789", "abcdefghijklmnopqrstuvwxyz01234"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char text[MD_NAME_MAX + 1];

		memset(text, 'x', sizeof(text));
		md_name_compose(rows[i].homehost, rows[i].name, text);
		assert_string_equal(text, rows[i].text);
	}
	assert_string_equal(md_name_bare("host:data"), "data");
	assert_string_equal(md_name_bare("data"), "data");
	assert_string_equal(md_name_bare(""), "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(uuids),
		cmocka_unit_test(level_names),
		cmocka_unit_test(layout_names),
		cmocka_unit_test(layouts_parsed),
		cmocka_unit_test(names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
