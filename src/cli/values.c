/* SPDX-License-Identifier: MIT */
#include "cli/values.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/rounding.h"

#define NEAREST_WORD_MAX 40

static int read_digits(const char *text, uint64_t *ret, const char **ret_end)
{
	char *end;
	unsigned long long value;

	if (!isdigit((unsigned char)text[0]))
		return -EINVAL;
	errno = 0;
	value = strtoull(text, &end, 10);
	if (errno == ERANGE)
		return -ERANGE;
	*ret = value;
	*ret_end = end;
	return 0;
}

static uint64_t unit_of(const char *suffix, uint64_t unit_bytes)
{
	static const char letters[] = "KMGT";
	const char *found;

	if (suffix[0] == '\0')
		return unit_bytes;
	if (strcmp(suffix, "s") == 0)
		return 512;
	found = strchr(letters, toupper((unsigned char)suffix[0]));
	if (found == NULL)
		return 0;
	if (suffix[1] != '\0' && strcmp(suffix + 1, "iB") != 0 && strcmp(suffix + 1, "B") != 0)
		return 0;
	return UINT64_C(1024) << (10 * (found - letters));
}

int value_size(const char *text, uint64_t unit_bytes, uint64_t *ret)
{
	const char *end;
	uint64_t value, unit;
	int r;

	r = read_digits(text, &value, &end);
	if (r < 0)
		return r;
	unit = unit_of(end, unit_bytes);
	if (unit == 0)
		return -EINVAL;
	if (mul_overflows(value, unit, &value) || value == UINT64_MAX)
		return -ERANGE;
	*ret = value;
	return 0;
}

int value_number(const char *text, uint64_t *ret)
{
	const char *end;
	uint64_t value;
	int r;

	r = read_digits(text, &value, &end);
	if (r < 0)
		return r;
	if (*end != '\0')
		return -EINVAL;
	*ret = value;
	return 0;
}

/* Levenshtein's distance, one row at a time. */
static unsigned edits(const char *a, const char *b)
{
	unsigned row[NEAREST_WORD_MAX + 1];
	size_t a_length = strlen(a), b_length = strlen(b), i, j;

	if (a_length > NEAREST_WORD_MAX || b_length > NEAREST_WORD_MAX)
		return NEAREST_WORD_MAX;
	for (j = 0; j <= b_length; j++)
		row[j] = (unsigned)j;
	for (i = 1; i <= a_length; i++) {
		unsigned diagonal = row[0];

		row[0] = (unsigned)i;
		for (j = 1; j <= b_length; j++) {
			unsigned above = row[j];
			unsigned best = diagonal + (a[i - 1] != b[j - 1]);

			best = above + 1 < best ? above + 1 : best;
			row[j] = row[j - 1] + 1 < best ? row[j - 1] + 1 : best;
			diagonal = above;
		}
	}
	return row[b_length];
}

void nearest_feed(struct nearest *nearest, const char *candidate)
{
	size_t limit = strlen(nearest->word) / 2;
	unsigned distance = edits(nearest->word, candidate);

	/* "crea" and "create": a beginning is near however much is missing. */
	if (strlen(nearest->word) >= 2 &&
		strncmp(candidate, nearest->word, strlen(nearest->word)) == 0)
		distance = 1;
	if (distance > (limit < 1 ? 1 : limit) || distance > 4)
		return;
	if (nearest->best == NULL || distance < nearest->distance) {
		nearest->best = candidate;
		nearest->distance = distance;
	}
}
