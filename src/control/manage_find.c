/* SPDX-License-Identifier: MIT */
/* Which of the array's devices is meant, and what they are called. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "control/manage_internal.h"

struct taking {
	const struct manage *manage;
	struct manage_facts *facts;
};

static void take(void *argument)
{
	const struct taking *taking = argument;
	struct manage_facts *facts = taking->facts;
	struct engine_status *status = &facts->status;

	(void)engine_status(taking->manage->engine, status); /* asked for arrays that have one */
	if (status->mismatch_count > 0)
		memcpy(facts->mismatches, status->mismatches,
			status->mismatch_count * sizeof(facts->mismatches[0]));
	status->mismatches = facts->mismatches;
	for (unsigned i = 0; i < facts->device_max; i++)
		engine_device_status(taking->manage->engine, i, &facts->devices[i]);
}

int manage_facts_take(const struct manage *manage, struct manage_facts **ret, struct fault *fault)
{
	struct manage_facts *facts = calloc(1, sizeof(*facts));
	struct taking taking = {manage, facts};

	*ret = facts;
	if (facts != NULL) {
		facts->device_max = engine_device_max(manage->engine);
		facts->devices = calloc(facts->device_max + 1, sizeof(*facts->devices));
	}
	if (facts == NULL || facts->devices == NULL)
		return fault_set(fault, -ENOMEM, "array %s: out of memory", manage->name);
	manage->on_engine(manage->owner, take, &taking);
	return 0;
}

void manage_facts_free(struct manage_facts **facts)
{
	if (*facts != NULL)
		free((*facts)->devices);
	free(*facts);
}

const struct member *manage_member(
	const struct manage *manage, const struct manage_facts *facts, unsigned device)
{
	return reactor_members(manage->reactor)[facts->devices[device].member];
}

/* Whoever asks stands in another directory than whoever named the member. */
char *manage_path(const struct member *member, char ret[PATH_MAX])
{
	static const char deleted[] = " (deleted)"; /* what the kernel writes behind the path */
	size_t tail = sizeof(deleted) - 1;
	char link[32];
	ssize_t n;

	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", member->fd);
	n = member->path[0] == '/' || member->network != NULL ? 0
							      : readlink(link, ret, PATH_MAX - 1);
	if (n <= 0) {
		(void)snprintf(ret, PATH_MAX, "%s", member->path);
		return ret;
	}
	ret[n] = '\0';
	if ((size_t)n > tail && manage_is_detached(member) && strcmp(ret + n - tail, deleted) == 0)
		ret[(size_t)n - tail] = '\0';
	return ret;
}

bool manage_is_detached(const struct member *member)
{
	struct stat status;
	char path[64];

	if (fstat(member->fd, &status) == 0 && status.st_nlink == 0)
		return true;
	(void)snprintf(path, sizeof(path), "/sys/dev/block/%u:%u", member->major, member->minor);
	return member->is_block && stat(path, &status) < 0;
}

static bool is_same(const struct stat *status, const struct member *member)
{
	if (member->network != NULL)
		return false;
	if (member->is_block)
		return S_ISBLK(status->st_mode) && status->st_rdev == member->device;
	return S_ISREG(status->st_mode) && status->st_dev == member->device &&
	       status->st_ino == member->inode;
}

static bool is_number(const char *word, const struct member *member)
{
	char number[32];

	(void)snprintf(number, sizeof(number), "%u:%u", member->major, member->minor);
	return member->is_block && strcmp(word, number) == 0;
}

/* An existing path decides by what it leads to; else the name that the member had. */
static bool is_meant(const char *word, const struct member *member)
{
	struct stat status;
	char path[PATH_MAX];

	if (is_number(word, member) || member_is_named(member, word))
		return true;
	if (stat(word, &status) == 0)
		return is_same(&status, member);
	return strcmp(word, manage_path(member, path)) == 0;
}

unsigned manage_find(
	const struct manage *manage, const struct manage_facts *facts, const char *word)
{
	for (unsigned i = 0; i < facts->device_max; i++)
		if (facts->devices[i].state != ENGINE_DEVICE_FREE &&
			is_meant(word, manage_member(manage, facts, i)))
			return i;
	return ENGINE_NONE;
}

int manage_find_named(const struct manage *manage, const struct manage_facts *facts,
	const char *word, unsigned *ret, struct fault *fault)
{
	*ret = word != NULL ? manage_find(manage, facts, word) : ENGINE_NONE;
	if (*ret != ENGINE_NONE)
		return 0;
	return fault_set(fault, -ENODEV,
		"%s is no member of the array; 'strake detail %s' lists its members",
		word != NULL ? word : "what was named", manage->name);
}
