/* SPDX-License-Identifier: MIT */
#include "export/nbd/changes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/cleanup.h"

int changes_new(void)
{
	_cleanup_close_ int fd = memfd_create("strake-changes", MFD_CLOEXEC);

	/* Several processes may have it at once: appending is then the only safe way. */
	if (fd < 0 || fcntl(fd, F_SETFL, O_APPEND) < 0)
		return -errno;
	return steal_fd(&fd);
}

int changes_note(int fd, bool joined, const char *path)
{
	size_t length = strlen(path) + 2;
	_cleanup_free_ char *entry = malloc(length);
	ssize_t n;

	if (entry == NULL)
		return -ENOMEM;
	entry[0] = joined ? '+' : '-';
	memcpy(entry + 1, path, length - 1);
	n = write(fd, entry, length);
	return n < 0 ? -errno : n < (ssize_t)length ? -ENOSPC : 0;
}

int changes_read(int fd, void (*entry)(void *owner, bool joined, const char *path), void *owner)
{
	_cleanup_free_ char *text = NULL;
	struct stat status;
	ssize_t length;

	if (fstat(fd, &status) < 0)
		return -errno;
	text = calloc(1, (size_t)status.st_size + 1);
	if (text == NULL)
		return -ENOMEM;
	length = pread(fd, text, (size_t)status.st_size, 0);
	if (length < 0)
		return -errno;
	for (char *at = text; at < text + length; at += strlen(at) + 1)
		entry(owner, *at == '+', at + 1);
	return 0;
}
