/* SPDX-License-Identifier: MIT */
#ifndef STRAKE_UTIL_FAULT_H
#define STRAKE_UTIL_FAULT_H

/*
 * A fault is an error with its words. The layer that knows the user's words fills it in, once; the
 * outermost caller prints it, once. In between it travels as a negative errno plus this struct.
 */

#define FAULT_TEXT_MAX 6144

struct fault {
	int error;                 /* negative errno, 0 while nothing happened */
	char text[FAULT_TEXT_MAX]; /* who, what, where, why, what next; no newline at the end */
};

/* Fill @fault (NULL allowed) with @error, a negative errno, and a text; return @error. */
int fault_set(struct fault *fault, int error, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Put the formatted text before what @fault already says ("create md0: " …); return its error. */
int fault_prefix(struct fault *fault, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Append the formatted text to what @fault already says; return its error. */
int fault_append(struct fault *fault, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#endif
