/* SPDX-License-Identifier: MIT */
#ifndef STRAKE_UTIL_CLEANUP_H
#define STRAKE_UTIL_CLEANUP_H

/*
 * Scope cleanup: a variable declared with one of these attributes releases what it holds when its
 * scope ends, whichever way. A pointer that must outlive the scope is moved out with steal_ptr(),
 * a descriptor with steal_fd().
 */

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define _cleanup_(fn) __attribute__((cleanup(fn)))

static inline void cleanup_freep(void *p)
{
	free(*(void **)p);
}

static inline void cleanup_closep(int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

static inline void cleanup_fclosep(FILE **file)
{
	if (*file != NULL)
		fclose(*file);
}

#define _cleanup_free_ _cleanup_(cleanup_freep)
#define _cleanup_close_ _cleanup_(cleanup_closep)
#define _cleanup_fclose_ _cleanup_(cleanup_fclosep)

#define steal_ptr(ptr)                           \
	({                                       \
		__typeof__(ptr) stolen_ = (ptr); \
		(ptr) = NULL;                    \
		stolen_;                         \
	})

static inline int steal_fd(int *fd)
{
	int stolen = *fd;

	*fd = -1;
	return stolen;
}

#endif
