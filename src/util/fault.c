/* SPDX-License-Identifier: MIT */
#include "util/fault.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int fault_set(struct fault *fault, int error, const char *format, ...)
{
	va_list args;

	if (fault == NULL)
		return error;
	fault->error = error;
	va_start(args, format);
	(void)vsnprintf(fault->text, sizeof(fault->text), format, args); /* cut off if too long */
	va_end(args);
	return error;
}

int fault_prefix(struct fault *fault, const char *format, ...)
{
	char old[FAULT_TEXT_MAX];
	va_list args;
	size_t used;

	if (fault == NULL)
		return 0;
	memcpy(old, fault->text, sizeof(old));
	va_start(args, format);
	(void)vsnprintf(fault->text, sizeof(fault->text), format, args);
	va_end(args);
	used = strlen(fault->text);
	(void)snprintf(fault->text + used, sizeof(fault->text) - used, "%s", old);
	return fault->error;
}

int fault_append(struct fault *fault, const char *format, ...)
{
	size_t used;
	va_list args;

	if (fault == NULL)
		return 0;
	used = strnlen(fault->text, sizeof(fault->text));
	va_start(args, format);
	(void)vsnprintf(fault->text + used, sizeof(fault->text) - used, format, args);
	va_end(args);
	return fault->error;
}
