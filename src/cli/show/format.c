/* SPDX-License-Identifier: MIT */

#include "cli/show/format.h"

#include "control/detail.h"

#include <stdlib.h>
#include <string.h>

#include "md/sha1.h"

#define KIB (UINT64_C(1) << 10)
#define GIB (UINT64_C(1) << 30)
#define TIB (UINT64_C(1) << 40)

/* From here on a size also gets a readable form, and from 2 of a unit on that unit. */
#define READABLE_FROM (5000 * KIB)

struct unit {
	uint64_t until_bytes; /* below this, this unit is used */
	uint64_t binary_bytes, decimal_bytes;
	char letter;
};

static const struct unit units[] = {
	{2 * GIB, UINT64_C(1) << 20, 1000000, 'M'},
	{2 * TIB, GIB, 1000000000, 'G'},
	{UINT64_MAX, TIB, 1000000000000, 'T'},
};

/* NULL where no readable form is given; sizes of 2^63 and more are no sizes but damage. */
static const struct unit *unit_of(uint64_t bytes)
{
	const struct unit *unit = units;

	if (bytes < READABLE_FROM || bytes > INT64_MAX)
		return NULL;
	while (bytes >= unit->until_bytes)
		unit++;
	return unit;
}

/* In hundredths, rounded to the nearest, halves up. */
static uint64_t hundredths(uint64_t bytes, uint64_t unit_bytes)
{
	return (uint64_t)(((unsigned __int128)bytes * 200 / unit_bytes + 1) / 2);
}

char *format_size(uint64_t bytes, char text[FORMAT_SIZE_TEXT])
{
	const struct unit *unit = unit_of(bytes);
	uint64_t binary, decimal;

	text[0] = '\0';
	if (unit == NULL)
		return text;
	binary = hundredths(bytes, unit->binary_bytes);
	/* mdadm's order of operations here: the division by a two-hundredth comes first. */
	decimal = (bytes / (unit->decimal_bytes / 200) + 1) / 2;
	snprintf(text, FORMAT_SIZE_TEXT, " (%llu.%02llu %ciB %llu.%02llu %cB)",
		(unsigned long long)(binary / 100), (unsigned long long)(binary % 100),
		unit->letter, (unsigned long long)(decimal / 100),
		(unsigned long long)(decimal % 100), unit->letter);
	return text;
}

char *format_size_brief(uint64_t bytes, bool binary, char text[FORMAT_SIZE_TEXT])
{
	const struct unit *unit = unit_of(bytes);
	uint64_t value;

	text[0] = '\0';
	if (unit == NULL)
		return text;
	value = binary ? hundredths(bytes, unit->binary_bytes)
		       : (bytes / (unit->decimal_bytes / 200) + 1) / 2;
	snprintf(text, FORMAT_SIZE_TEXT, "%llu.%02llu%c%sB", (unsigned long long)(value / 100),
		(unsigned long long)(value % 100), unit->letter, binary ? "i" : "");
	return text;
}

/* The form of ctime(3), cut at 24 bytes as mdadm does: damaged times have longer years. */
char *format_time(uint64_t seconds, char text[FORMAT_TIME_TEXT])
{
	static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
	static const char days[] = "SunMonTueWedThuFriSat";
	time_t when = (time_t)seconds;
	struct tm tm;

	if (localtime_r(&when, &tm) == NULL) {
		snprintf(text, FORMAT_TIME_TEXT, "%llu", (unsigned long long)seconds);
		return text;
	}
	snprintf(text, FORMAT_TIME_TEXT, "%.3s %.3s%3d %.2d:%.2d:%.2d %d", days + 3 * tm.tm_wday,
		months + 3 * tm.tm_mon, tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec,
		1900 + tm.tm_year);
	text[24] = '\0';
	return text;
}

void print_clean(FILE *out, const char *text)
{
	for (; *text != '\0'; text++) {
		unsigned char c = (unsigned char)*text;

		if ((c < ' ' && c != '\t') || c == 0x7f)
			fprintf(out, "\\%03o", c);
		else
			putc(c, out);
	}
}

/* The quote that does not occur first; where it occurs too, it is closed and the other one opened.
 */
void print_quoted(FILE *out, const char *text)
{
	const char *special = strpbrk(text, "'\"");
	char quote = '"';

	if (strpbrk(text, " \t'\"") == NULL) {
		print_clean(out, text);
		return;
	}
	if (special != NULL && *special == '"')
		quote = '\'';
	putc(quote, out);
	for (; *text != '\0'; text++) {
		if (*text == quote) {
			putc(quote, out);
			quote = quote == '"' ? '\'' : '"';
			putc(quote, out);
		}
		print_clean(out, (char[]){*text, '\0'});
	}
	putc(quote, out);
}

void print_path_part(FILE *out, const char *text)
{
	for (; *text != '\0'; text++) {
		if (*text == ' ' || *text == '\t')
			putc('_', out);
		else if (*text == '/')
			putc('-', out);
		else
			print_clean(out, (char[]){*text, '\0'});
	}
}

bool name_is_local(const char *set_name, const char *homehost)
{
	size_t length = homehost == NULL ? 0 : strlen(homehost);

	return length > 0 && length < 32 && strncmp(set_name, homehost, length) == 0 &&
	       set_name[length] == ':';
}

bool uuid_is_local(const uint8_t uuid[16], const char *homehost)
{
	uint8_t digest[MD_SHA1_BYTES];

	if (homehost == NULL || homehost[0] == '\0')
		return false;
	/* The words stand in the byte order of the disk, the hash in its own. */
	md_sha1(homehost, strlen(homehost), digest);
	for (unsigned i = 0; i < 8; i++)
		if (uuid[8 + (i ^ 3)] != digest[i])
			return false;
	return true;
}

json_t *json_text(const char *text)
{
	return detail_string(text);
}

void print_json(FILE *out, const json_t *value)
{
	json_dumpf(value, out, JSON_INDENT(2));
	putc('\n', out);
}
