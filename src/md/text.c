/* SPDX-License-Identifier: MIT */
/* Words of md: UUIDs, levels, layouts, names, as mdadm 4.2 prints and reads them. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "md/super.h"

struct word {
	const char *name;
	int value;
};

/* The first name of each level is the one that is printed. */
static const struct word levels[] = {
	{"linear", -1},
	{"-1", -1},
	{"raid0", 0},
	{"0", 0},
	{"stripe", 0},
	{"raid1", 1},
	{"1", 1},
	{"mirror", 1},
	{"raid4", 4},
	{"4", 4},
	{"raid5", 5},
	{"5", 5},
	{"raid6", 6},
	{"6", 6},
	{"raid10", 10},
	{"10", 10},
	{"multipath", -4},
	{"mp", -4},
	{"-4", -4},
	{"faulty", -5},
	{"-5", -5},
	{"container", -100},
};

static const struct word raid0_layouts[] = {
	{"original", 1},
	{"alternate", 2},
	{"1", 1},
	{"2", 2},
};

static const struct word raid5_layouts[] = {
	{"left-asymmetric", 0},
	{"right-asymmetric", 1},
	{"left-symmetric", 2},
	{"right-symmetric", 3},
	{"parity-first", 4},
	{"parity-last", 5},
	{"la", 0},
	{"ra", 1},
	{"ls", 2},
	{"rs", 3},
	{"ddf-zero-restart", 1},
	{"ddf-N-restart", 0},
	{"ddf-N-continue", 2},
	{"default", 2},
};

static const struct word raid6_layouts[] = {
	{"left-asymmetric", 0},
	{"right-asymmetric", 1},
	{"left-symmetric", 2},
	{"right-symmetric", 3},
	{"parity-first", 4},
	{"parity-last", 5},
	{"ddf-zero-restart", 8},
	{"ddf-N-restart", 9},
	{"ddf-N-continue", 10},
	{"left-asymmetric-6", 16},
	{"right-asymmetric-6", 17},
	{"left-symmetric-6", 18},
	{"right-symmetric-6", 19},
	{"parity-first-6", 20},
	{"la", 0},
	{"ra", 1},
	{"ls", 2},
	{"rs", 3},
	{"default", 2},
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const char *word_name(const struct word *words, size_t count, int64_t value)
{
	for (size_t i = 0; i < count; i++)
		if (words[i].value == value)
			return words[i].name;
	return NULL;
}

static const struct word *word_find(const struct word *words, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(words[i].name, name) == 0)
			return &words[i];
	return NULL;
}

char *md_uuid_format(const uint8_t uuid[16], char text[MD_UUID_TEXT])
{
	char *p = text;

	for (unsigned i = 0; i < 16; i++) {
		if (i > 0 && i % 4 == 0)
			*p++ = ':';
		p += snprintf(p, 3, "%02x", uuid[i]);
	}
	return text;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

int md_uuid_parse(const char *text, uint8_t uuid[16])
{
	uint8_t bytes[16] = {0};
	unsigned digits = 0;

	for (; *text != '\0'; text++) {
		int digit = hex_digit(*text);

		if (digit < 0 && strchr(":-. ", *text) != NULL)
			continue;
		if (digit < 0 || digits == 32)
			return -EINVAL;
		bytes[digits / 2] = (uint8_t)(bytes[digits / 2] << 4 | digit);
		digits++;
	}
	if (digits != 32)
		return -EINVAL;
	memcpy(uuid, bytes, sizeof(bytes));
	return 0;
}

const char *md_level_name(int level)
{
	const char *name = word_name(levels, COUNT(levels), level);

	return name != NULL ? name : "-unknown-";
}

int md_level_parse(const char *text, int *ret)
{
	const struct word *word = word_find(levels, COUNT(levels), text);

	if (word == NULL)
		return -EINVAL;
	*ret = word->value;
	return 0;
}

/* Near copies in bits 0-7, far copies in 8-15, bit 16 for offset (specification 7.6). */
static const char *raid10_layout_name(uint32_t layout, char buffer[32])
{
	unsigned near = layout & 0xff, far = layout >> 8 & 0xff;
	const char *word = (layout & 0x10000) != 0 ? "offset" : "far";

	if (layout >> 19 != 0 || near == 0 || far == 0)
		return NULL;
	if (near == 1 && far == 1)
		(void)snprintf(buffer, 32, "NO REDUNDANCY");
	else if (far == 1)
		(void)snprintf(buffer, 32, "near=%u", near);
	else if (near == 1)
		(void)snprintf(buffer, 32, "%s=%u", word, far);
	else
		(void)snprintf(buffer, 32, "near=%u, %s=%u", near, word, far);
	return buffer;
}

const char *md_layout_name(int level, uint32_t layout, char buffer[32])
{
	const char *name = NULL;

	if (level == 0)
		name = word_name(raid0_layouts, COUNT(raid0_layouts), layout);
	else if (level == 5)
		name = word_name(raid5_layouts, COUNT(raid5_layouts), layout);
	else if (level == 6)
		name = word_name(raid6_layouts, COUNT(raid6_layouts), layout);
	else if (level == 10)
		return raid10_layout_name(layout, buffer);
	if (name == NULL)
		return NULL;
	(void)snprintf(buffer, 32, "%s", name);
	return buffer;
}

/* n2, f3, o2: a letter and a number of copies, 1 to 255 (near) or 2 to 255. */
static int raid10_layout_parse(const char *text, uint32_t *ret)
{
	const char letter = text[0];
	unsigned long copies;
	char *end;

	if (letter == '\0' || strchr("nfo", letter) == NULL || text[1] < '0' || text[1] > '9')
		return -EINVAL;
	copies = strtoul(text + 1, &end, 10);
	if (*end != '\0' || copies < 1 || copies > 255)
		return -EINVAL;
	if (letter == 'n')
		*ret = 0x100 + (uint32_t)copies;
	else
		*ret = (letter == 'o' ? 0x10001u : 0x1u) + ((uint32_t)copies << 8);
	return 0;
}

int md_layout_parse(int level, const char *text, uint32_t *ret)
{
	const struct word *word = NULL;

	if (level == 10)
		return raid10_layout_parse(text, ret);
	if (level == 0)
		word = word_find(raid0_layouts, COUNT(raid0_layouts), text);
	else if (level == 5)
		word = word_find(raid5_layouts, COUNT(raid5_layouts), text);
	else if (level == 6)
		word = word_find(raid6_layouts, COUNT(raid6_layouts), text);
	if (word == NULL)
		return -EINVAL;
	*ret = (uint32_t)word->value;
	return 0;
}

void md_name_compose(const char *homehost, const char *name, char ret[MD_NAME_MAX + 1])
{
	bool prefix = homehost != NULL && homehost[0] != '\0' && strchr(name, ':') == NULL &&
		      strlen(homehost) + 1 + strlen(name) < MD_NAME_MAX;
	size_t length = strnlen(name, MD_NAME_MAX - 1);

	memset(ret, 0, MD_NAME_MAX + 1);
	if (prefix)
		(void)snprintf(ret, MD_NAME_MAX + 1, "%s:%s", homehost, name);
	else
		memcpy(ret, name, length);
}

const char *md_name_bare(const char *set_name)
{
	const char *colon = strchr(set_name, ':');

	return colon != NULL ? colon + 1 : set_name;
}
