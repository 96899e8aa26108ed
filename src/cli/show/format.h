/* SPDX-License-Identifier: MIT */
#ifndef STRAKE_CLI_SHOW_FORMAT_H
#define STRAKE_CLI_SHOW_FORMAT_H

/* Small texts that mdadm's forms share. Inside src/cli/show only. */

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#define FORMAT_SIZE_TEXT 64
#define FORMAT_TIME_TEXT 64

/* " (44.00 MiB 46.14 MB)"; nothing below 5,000 KiB, where the exact number is as easy to read. */
char *format_size(uint64_t bytes, char text[FORMAT_SIZE_TEXT]);
/* "44.00MiB" (@binary) or "46.14MB"; nothing below 5,000 KiB. */
char *format_size_brief(uint64_t bytes, bool binary, char text[FORMAT_SIZE_TEXT]);
/* "Mon Nov 30 23:32:51 2026", local time. */
char *format_time(uint64_t seconds, char text[FORMAT_TIME_TEXT]);

/* Print @text; control characters, which a hostile superblock may hold, as octal escapes. */
void print_clean(FILE *out, const char *text);
/* As a word of a configuration file: in quotes where it has blanks or quotes in it. */
void print_quoted(FILE *out, const char *text);
/* As the last part of a device's path: blanks become '_', '/' becomes '-'. */
void print_path_part(FILE *out, const char *text);

/* Is @set_name of the form "@homehost:…"? */
bool name_is_local(const char *set_name, const char *homehost);

/* Do the last two words of a 0.90 array's UUID hold the start of the hash of @homehost? */
bool uuid_is_local(const uint8_t uuid[16], const char *homehost);

/* A JSON string of any bytes: what is no UTF-8 becomes octal escapes, byte by byte. */
json_t *json_text(const char *text);

/* Pretty, keys in the order they were set, with a newline. */
void print_json(FILE *out, const json_t *value);

#endif
