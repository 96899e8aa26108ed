/* SPDX-License-Identifier: MIT */
#include "export/fuse/links.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "control/runtime.h"
#include "util/cleanup.h"

#define LINKS_MAX 512u

struct link {
	char *path, *target;
};

struct links {
	char record[PATH_MAX];
	unsigned count;
	struct link list[LINKS_MAX];
};

static void drop(struct link *link)
{
	free(link->path);
	free(link->target);
	*link = (struct link){0};
}

int links_new(const char *name, struct links **ret, struct fault *fault)
{
	struct links *links = calloc(1, sizeof(*links));
	int r;

	if (links == NULL)
		return fault_set(fault, -ENOMEM, "array %s: out of memory", name);
	r = runtime_links(name, links->record, fault);
	if (r < 0)
		free(links);
	else
		*ret = links;
	return r;
}

void links_free(struct links *links)
{
	for (unsigned i = 0; links != NULL && i < links->count; i++)
		drop(&links->list[i]);
	free(links);
}

/* One line per link, "TARGET PATH": targets of ours have no spaces, names may. */
static int write_record(const struct links *links)
{
	_cleanup_fclose_ FILE *file = NULL;

	if (links->count == 0)
		return unlink(links->record) < 0 && errno != ENOENT ? -errno : 0;
	file = fopen(links->record, "we");
	if (file == NULL)
		return -errno;
	for (unsigned i = 0; i < links->count; i++)
		if (fprintf(file, "%s %s\n", links->list[i].target, links->list[i].path) < 0)
			return -EIO;
	return fflush(file) != 0 ? -errno : 0;
}

static bool leads_to(const char *path, const char *target)
{
	char found[PATH_MAX];
	ssize_t n = readlink(path, found, sizeof(found));

	return n >= 0 && (size_t)n == strlen(target) && memcmp(found, target, (size_t)n) == 0;
}

/* Relative, so that the link is right wherever /dev is looked at: "loop3", "../loop3". */
static char *relative_target(const char *path, const char *node)
{
	bool below = strncmp(path, "/dev/md/", 8) == 0;
	char *target;

	return asprintf(&target, "%s%s", below ? "../" : "", node + strlen("/dev/")) < 0 ? NULL
											 : target;
}

static int make_link(const char *path, const char *target)
{
	if (leads_to(path, target))
		return 0;
	if (strncmp(path, "/dev/md/", 8) == 0 && mkdir("/dev/md", 0755) < 0 && errno != EEXIST)
		return -errno;
	return symlink(target, path) < 0 ? -errno : 0;
}

static bool is_recorded(const struct links *links, const char *path, const char *target)
{
	for (unsigned i = 0; i < links->count; i++)
		if (strcmp(links->list[i].path, path) == 0)
			return strcmp(links->list[i].target, target) == 0;
	return false;
}

int links_make(struct links *links, const char *path, const char *node, struct fault *fault)
{
	struct link link = {.path = strdup(path), .target = relative_target(path, node)};
	int r;

	if (link.path == NULL || link.target == NULL || links->count == LINKS_MAX) {
		drop(&link);
		return fault_set(fault, -ENOMEM, "link %s: out of memory", path);
	}
	if (is_recorded(links, path, link.target) && leads_to(path, link.target)) {
		drop(&link);
		return 0;
	}
	links->list[links->count++] = link;
	r = write_record(links);
	if (r == 0)
		r = make_link(link.path, link.target);
	if (r == 0)
		return 0;
	drop(&links->list[--links->count]);
	(void)write_record(
		links); /* the longer record names a link that leads elsewhere: harmless */
	return fault_set(fault, r, "link %s: cannot make it: %s", path,
		r == -EEXIST ? "something else has this name; remove it or choose another name"
			     : strerror(-r));
}

void links_remove(
	struct links *links, int (*keep)(const void *owner, const char *path), const void *owner)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < links->count; i++) {
		struct link *link = &links->list[i];

		if (keep != NULL && keep(owner, link->path)) {
			links->list[kept++] = *link;
			continue;
		}
		if (leads_to(link->path, link->target))
			(void)unlink(
				link->path); /* if it stays, the record of it is gone with us */
		drop(link);
	}
	if (kept == links->count && kept > 0)
		return;
	links->count = kept;
	(void)write_record(links); /* a stale line names a link that does not exist */
}

int links_clean(const char *name, struct fault *fault)
{
	_cleanup_fclose_ FILE *file = NULL;
	char record[PATH_MAX], line[2 * PATH_MAX];
	int r = runtime_links(name, record, fault);

	if (r < 0)
		return r;
	file = fopen(record, "re");
	while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
		char *path = strchr(line, ' ');

		line[strcspn(line, "\n")] = '\0';
		if (path == NULL)
			continue;
		*path++ = '\0';
		if (leads_to(path, line) && unlink(path) < 0)
			return fault_set(fault, -errno, "array %s: stale link %s: %s", name, path,
				strerror(errno));
	}
	if (unlink(record) < 0 && errno != ENOENT)
		return fault_set(fault, -errno, "array %s: stale record %s: %s", name, record,
			strerror(errno));
	return 0;
}
