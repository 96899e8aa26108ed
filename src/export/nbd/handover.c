/* SPDX-License-Identifier: MIT */
#include "export/nbd/handover.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <syslog.h>

#include "engine/engine.h"
#include "export/nbd/nbd_array.h"
#include "util/cleanup.h"

struct handover_head {
	char version[16];
	uint64_t member_struct_bytes, super_bytes, assembly_bytes; /* tell builds apart */
	uint32_t member_count;
	bool has_assembly, has_super;
	bool persistent, readonly, sync_io, ring_io, broken;
	struct md_assembly_options assemble; /* where there is no assembly */
	int control_fd, io_fd, changes_fd;
	bool redundant;
	bool again;
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

/* A descriptor that survives exec and is no lower than @fd_min: there the others are needed. */
static int keep(int fd, int fd_min)
{
	if (fd < fd_min)
		fd = fcntl(fd, F_DUPFD, fd_min);
	else if (fcntl(fd, F_SETFD, 0) < 0)
		return -errno;
	return fd < 0 ? -errno : fd;
}

/* A member: the struct as it is, its path's length, the path. */
static int put_member(int fd, const struct member *member, int fd_min)
{
	uint32_t path_bytes = (uint32_t)strlen(member->path);
	struct member kept = *member;
	int r;

	kept.fd = keep(member->fd, fd_min);
	if (kept.fd < 0)
		return kept.fd;
	r = put(fd, &kept, sizeof(kept));
	if (r == 0)
		r = put(fd, &path_bytes, sizeof(path_bytes));
	return r == 0 ? put(fd, member->path, path_bytes) : r;
}

/*
 * How to assemble what was assembled before. Without redundancy nothing changes while an array
 * runs: what the user has insisted on once holds. With it, the superblocks themselves tell.
 */
static struct md_assembly_options options_again(const struct md_assembly *assembly, bool readonly)
{
	if (engine_level_is_redundant(assembly->level))
		return (struct md_assembly_options){
			.run = true, /* who was missing at the start may be missing again */
			/* Nothing of what force has changed is written then. */
			.force = readonly && assembly->change_count > 0,
			.readonly = readonly,
		};
	return (struct md_assembly_options){
		.force = assembly->level == 0 || assembly->level == GEOMETRY_LEVEL_LINEAR,
		.raid0_layout = assembly->level == 0 ? assembly->layout : GEOMETRY_RAID0_UNKNOWN,
	};
}

static int put_all(int fd, const struct handover *handover, int fd_min)
{
	const struct export_start *start = handover->start;
	const struct md_assembly *assembly = start->assembly;
	bool redundant = engine_level_is_redundant(assembly->level);
	struct handover_head head = {
		.version = STRAKE_VERSION,
		.member_struct_bytes = sizeof(struct member),
		.super_bytes = sizeof(*assembly->super),
		.assembly_bytes = sizeof(*assembly),
		.has_assembly = (!handover->again && !redundant) || !start->options->persistent,
		.has_super = assembly->super != NULL,
		.persistent = start->options->persistent,
		.readonly = start->options->readonly,
		.sync_io = start->options->sync_io,
		.ring_io = start->options->ring_io,
		.broken = handover->broken,
		.assemble = options_again(assembly, start->options->readonly),
		.control_fd = handover->control_fd,
		.io_fd = handover->io_fd,
		.changes_fd = handover->changes_fd,
		.redundant = redundant && start->options->persistent,
		.again = handover->again,
	};
	unsigned i;
	int r;

	for (i = 0; i < start->member_count; i++)
		head.member_count += start->members[i]->fd >= 0;
	r = put(fd, &head, sizeof(head));
	if (r == 0 && head.has_assembly)
		r = put(fd, assembly, sizeof(*assembly));
	if (r == 0 && head.has_assembly && head.has_super)
		r = put(fd, assembly->super, sizeof(*assembly->super));
	for (i = 0; r == 0 && i < start->member_count; i++)
		if (start->members[i]->fd >= 0) /* else it has left the array */
			r = put_member(fd, start->members[i], fd_min);
	return r;
}

int handover_write(const struct handover *handover, int fd_min, struct fault *fault)
{
	_cleanup_close_ int fd = memfd_create("strake-handover", MFD_CLOEXEC);
	int r, kept = -1;

	if (fd < 0)
		r = -errno;
	else
		r = put_all(fd, handover, fd_min);
	if (r == 0 && lseek(fd, 0, SEEK_SET) < 0)
		r = -errno;
	if (r == 0)
		r = kept = keep(fd, fd_min);
	if (r < 0)
		return fault_set(fault, r, "cannot hand it over to nbdkit: %s", strerror(-r));
	if (kept == fd)
		(void)steal_fd(&fd);
	return kept;
}

/*
 * A network member that does not answer when nbdkit starts again: the superblocks decide whether
 * the array can do without it. At the first start the user is told, and decides.
 */
static int adopt(struct nbd_array *array, bool again, struct fault *fault)
{
	struct nbd_member *last = &array->members[array->member_count - 1];
	int r = member_adopt(last->member, fault);

	if (r == 0 || !again || !array->redundant)
		return r;
	syslog(LOG_DAEMON | LOG_WARNING, "strake: array started again without a member: %s",
		fault->text);
	member_close(last->member);
	free(last->path);
	array->member_count--;
	fault->error = 0;
	return 0;
}

static int get_member(int fd, struct nbd_array *array, bool again, struct fault *fault)
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
	return adopt(array, again, fault);
}

static int get_assembly(int fd, bool has_super, struct nbd_array *array)
{
	struct md_super *super = NULL;
	int r;

	array->assembly = malloc(sizeof(*array->assembly));
	if (array->assembly == NULL)
		return -ENOMEM;
	r = get(fd, array->assembly, sizeof(*array->assembly));
	if (r == 0 && has_super) {
		super = array->super = malloc(sizeof(*super));
		r = super == NULL ? -ENOMEM : get(fd, super, sizeof(*super));
	}
	array->assembly->super = super;
	/* Pointers of another process. Who needs them (redundancy) reads the superblocks. */
	for (unsigned i = 0; r == 0 && i < array->assembly->device_count; i++)
		array->assembly->devices[i].super = NULL;
	return r;
}

static int get_array(int fd, struct nbd_array *array, struct fault *fault)
{
	struct handover_head head;
	uint32_t i;
	int r = get(fd, &head, sizeof(head));

	if (r == 0 && (strncmp(head.version, STRAKE_VERSION, sizeof(head.version)) != 0 ||
			      head.member_struct_bytes != sizeof(struct member) ||
			      head.super_bytes != sizeof(struct md_super) ||
			      head.assembly_bytes != sizeof(*array->assembly)))
		return -EBADMSG;
	if (r == 0 && head.has_assembly)
		r = get_assembly(fd, head.has_super, array);
	if (r < 0)
		return r;
	array->assemble = head.assemble;
	array->supervised = true;
	array->control_fd = head.control_fd;
	array->io_fd = head.io_fd;
	array->changes_fd = head.changes_fd;
	array->redundant = head.redundant;
	(void)fcntl(array->control_fd, F_SETFD, FD_CLOEXEC); /* nothing is executed from here on */
	(void)fcntl(array->io_fd, F_SETFD, FD_CLOEXEC);
	if (array->changes_fd >= 0)
		(void)fcntl(array->changes_fd, F_SETFD, FD_CLOEXEC);
	array->persistent = head.persistent;
	array->readonly = head.readonly;
	array->sync_io = head.sync_io;
	array->ring_io = head.ring_io;
	array->was_broken = head.broken;
	for (i = 0; r == 0 && i < head.member_count; i++)
		r = get_member(fd, array, head.again, fault);
	return r;
}

int handover_read(int fd, struct nbd_array *array, struct fault *fault)
{
	int r;

	fault->error = 0;
	r = get_array(fd, array, fault);

	close(fd);
	if (r == -EBADMSG)
		return fault_set(fault, r,
			"the nbdkit plugin is not of the same version as strake "
			"(%s); install both from one build",
			STRAKE_VERSION);
	if (r < 0 && fault->error == 0)
		return fault_set(
			fault, r, "cannot take the array over from strake: %s", strerror(-r));
	return r;
}
