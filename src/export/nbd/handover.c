/* SPDX-License-Identifier: MIT */
#include "export/nbd/handover.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

#include "export/nbd/nbd_array.h"
#include "util/cleanup.h"

struct handover_head {
	char version[16];
	uint64_t member_struct_bytes, super_bytes, assembly_bytes; /* tell builds apart */
	uint32_t member_count;
	bool has_super;
	bool persistent, readonly, sync_io, ring_io;
};

static int put(int fd, const void *buffer, size_t length)
{
	const char *bytes = buffer;

	while (length > 0) {
		ssize_t n = write(fd, bytes, length);

		if (n < 0)
			return -errno;
		bytes += n;
		length -= (size_t)n;
	}
	return 0;
}

static int get(int fd, void *buffer, size_t length)
{
	char *bytes = buffer;

	while (length > 0) {
		ssize_t n = read(fd, bytes, length);

		if (n <= 0)
			return n < 0 ? -errno : -EBADMSG;
		bytes += n;
		length -= (size_t)n;
	}
	return 0;
}

/* A member: the struct as it is, its path's length, the path. */
static int put_member(int fd, const struct member *member)
{
	uint32_t path_bytes = (uint32_t)strlen(member->path);
	int r = put(fd, member, sizeof(*member));

	if (r == 0)
		r = put(fd, &path_bytes, sizeof(path_bytes));
	if (r == 0)
		r = put(fd, member->path, path_bytes);
	if (r == 0 && fcntl(member->fd, F_SETFD, 0) < 0)
		r = -errno;
	return r;
}

static int put_all(int fd, const struct export_start *start)
{
	const struct md_assembly *assembly = start->assembly;
	struct handover_head head = {
		.version = STRAKE_VERSION,
		.member_struct_bytes = sizeof(struct member),
		.super_bytes = sizeof(*assembly->super),
		.assembly_bytes = sizeof(*assembly),
		.member_count = start->member_count,
		.has_super = assembly->super != NULL,
		.persistent = start->options->persistent,
		.readonly = start->options->readonly,
		.sync_io = start->options->sync_io,
		.ring_io = start->options->ring_io,
	};
	unsigned i;
	int r = put(fd, &head, sizeof(head));

	if (r == 0)
		r = put(fd, assembly, sizeof(*assembly));
	if (r == 0 && head.has_super)
		r = put(fd, assembly->super, sizeof(*assembly->super));
	for (i = 0; r == 0 && i < start->member_count; i++)
		r = put_member(fd, start->members[i]);
	return r;
}

int handover_write(const struct export_start *start, struct fault *fault)
{
	_cleanup_close_ int fd = memfd_create("strake-handover", 0);
	int r;

	if (fd < 0)
		r = -errno;
	else
		r = put_all(fd, start);
	if (r == 0 && lseek(fd, 0, SEEK_SET) < 0)
		r = -errno;
	if (r < 0)
		return fault_set(fault, r, "array %s: cannot hand it over to nbdkit: %s",
			start->options->name, strerror(-r));
	return steal_fd(&fd);
}

static int get_member(int fd, struct nbd_array *array)
{
	struct member *member;
	uint32_t path_bytes;
	int r;

	member = malloc(sizeof(*member));
	if (member == NULL)
		return -ENOMEM;
	r = get(fd, member, sizeof(*member));
	if (r == 0)
		r = get(fd, &path_bytes, sizeof(path_bytes));
	member->path = r == 0 ? calloc(1, (size_t)path_bytes + 1) : NULL;
	if (r == 0 && member->path == NULL)
		r = -ENOMEM;
	if (r == 0)
		r = get(fd, member->path, path_bytes);
	if (r == 0)
		r = nbd_array_add_path(array, member->path);
	if (r < 0) {
		free(member->path);
		free(member);
		return r;
	}
	array->members[array->member_count - 1].member = member;
	(void)fcntl(member->fd, F_SETFD, FD_CLOEXEC); /* nothing is executed from here on */
	return 0;
}

static int get_array(int fd, struct nbd_array *array)
{
	struct md_super *super = NULL;
	struct handover_head head;
	uint32_t i;
	int r = get(fd, &head, sizeof(head));

	if (r == 0 && (strncmp(head.version, STRAKE_VERSION, sizeof(head.version)) != 0 ||
			      head.member_struct_bytes != sizeof(struct member) ||
			      head.super_bytes != sizeof(*super) ||
			      head.assembly_bytes != sizeof(*array->assembly)))
		return -EBADMSG;
	array->assembly = malloc(sizeof(*array->assembly));
	if (r == 0)
		r = array->assembly == NULL ? -ENOMEM
					    : get(fd, array->assembly, sizeof(*array->assembly));
	if (r == 0 && head.has_super) {
		super = array->super = malloc(sizeof(*super));
		r = super == NULL ? -ENOMEM : get(fd, super, sizeof(*super));
	}
	if (r < 0)
		return r;
	array->assembly->super = super;
	array->persistent = head.persistent;
	array->readonly = head.readonly;
	array->sync_io = head.sync_io;
	array->ring_io = head.ring_io;
	for (i = 0; r == 0 && i < head.member_count; i++)
		r = get_member(fd, array);
	return r;
}

int handover_read(int fd, struct nbd_array *array, struct fault *fault)
{
	int r = get_array(fd, array);

	close(fd);
	if (r == -EBADMSG)
		return fault_set(fault, r,
			"the nbdkit plugin is not of the same version as strake "
			"(%s); install both from one build",
			STRAKE_VERSION);
	if (r < 0)
		return fault_set(
			fault, r, "cannot take the array over from strake: %s", strerror(-r));
	return 0;
}
