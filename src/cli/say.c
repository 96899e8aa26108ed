/* SPDX-License-Identifier: MIT */
#include "cli/say.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void print_lines(const char *text)
{
	while (*text != '\0') {
		size_t length = strcspn(text, "\n");

		(void)fprintf(stderr, "strake: %.*s\n", (int)length, text);
		text += length + (text[length] == '\n');
	}
}

void say(const char *format, ...)
{
	char text[FAULT_TEXT_MAX];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	print_lines(text);
}

int say_fault(const struct fault *fault, int code)
{
	print_lines(fault->text[0] != '\0' ? fault->text : strerror(-fault->error));
	return code;
}

int say_no_memory(void)
{
	say("out of memory: nothing was done; try again when other programs need less");
	return CLI_FAILED;
}
