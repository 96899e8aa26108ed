/* SPDX-License-Identifier: MIT */
#include "export/fuse/block.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "control/runtime.h"
#include "export/fuse/holders.h"
#include "export/fuse/links.h"
#include "export/fuse/partitions.h"
#include "util/cleanup.h"

#define USE_TEXT 512u
/* Programs that look at a new device (udev's, blkid) let go within this time. */
#define OPENERS_WAIT_MS 1000u
#define POLL_MS 50u
#define STALE_MAX 16u

struct block {
	char name[NAME_MAX];
	char file[PATH_MAX];
	char node[PATH_MAX];
	struct loop loop;
	struct links *links;
	struct partitions wanted, current;
};

const char *block_node(const struct block *block)
{
	return block->node;
}

const struct loop *block_loop(const struct block *block)
{
	return &block->loop;
}

bool block_is_ours(const struct block *block)
{
	return loop_is_ours(&block->loop, block->file);
}

static void partition_link(const struct block *block, unsigned number, char ret[PATH_MAX])
{
	(void)snprintf(ret, PATH_MAX, "%.*sp%u", PATH_MAX - 16, block->node, number);
}

/* links_remove(): the array's own link stays, and those of partitions that exist. */
static int link_is_current(const void *owner, const char *path)
{
	const struct block *block = owner;
	char link[PATH_MAX];

	if (strcmp(path, block->node) == 0)
		return 1;
	for (unsigned i = 0; i < block->current.count; i++) {
		partition_link(block, block->current.list[i].number, link);
		if (strcmp(path, link) == 0)
			return 1;
	}
	return 0;
}

static int link_partitions(struct block *block, struct fault *fault)
{
	char link[PATH_MAX], node[64];
	int r = partitions_current(&block->loop, &block->current);

	if (r < 0)
		return fault_set(fault, r, "array %s: partitions of %s: %s", block->name,
			block->loop.node, strerror(-r));
	links_remove(block->links, link_is_current, block);
	for (unsigned i = 0; i < block->current.count && r == 0; i++) {
		partition_link(block, block->current.list[i].number, link);
		partition_node(&block->loop, block->current.list[i].number, node);
		r = links_make(block->links, link, node, fault);
	}
	return r;
}

int block_reread(struct block *block, struct fault *fault)
{
	struct fault busy = {0};
	int r, busy_r;

	if (!block_is_ours(block))
		return fault_set(fault, -ENODEV,
			"array %s: its loop device %s was detached by somebody else and may be "
			"another's now; strake stop %s, then assemble it again",
			block->name, block->loop.node, block->name);
	r = partitions_probe(block->file, &block->wanted);
	if (r < 0)
		return fault_set(fault, r, "array %s: cannot read its partition table: %s",
			block->name, strerror(-r));
	busy_r = partitions_apply(&block->loop, &block->wanted, &busy);
	r = link_partitions(block, fault);
	if (r == 0 && busy_r < 0)
		r = fault_set(fault, busy_r, "array %s: %s", block->name, busy.text);
	return r;
}

unsigned block_partitions(const struct block *block, struct detail_partition *ret, unsigned max)
{
	struct partitions *now = calloc(1, sizeof(*now));
	unsigned count = 0;
	char link[PATH_MAX];

	if (now == NULL || !block_is_ours(block) || partitions_current(&block->loop, now) < 0) {
		free(now);
		return 0;
	}
	for (; count < now->count && count < max; count++) {
		const struct partition *p = &now->list[count];

		partition_link(block, p->number, link);
		ret[count] = (struct detail_partition){
			p->number, p->start_bytes, p->length_bytes, ""};
		(void)snprintf(ret[count].node, sizeof(ret[count].node), "%.*s",
			(int)sizeof(ret[count].node) - 1, link);
	}
	free(now);
	return count;
}

static void pause_ms(unsigned ms)
{
	const struct timespec time = {.tv_nsec = (long)ms * 1000000};

	(void)nanosleep(&time, NULL); /* woken early, we look early */
}

static bool is_used(const struct block *block, char use[USE_TEXT], char node[64])
{
	(void)snprintf(node, 64, "%s", block->loop.node);
	if (holders_of_device(node, use, USE_TEXT))
		return true;
	for (unsigned i = 0; i < block->current.count; i++) {
		partition_node(&block->loop, block->current.list[i].number, node);
		if (holders_of_device(node, use, USE_TEXT))
			return true;
	}
	return false;
}

/* Users name their devices by our links. */
static int refuse(const struct block *block, const char *node, const char *use, struct fault *fault)
{
	char link[PATH_MAX];

	(void)snprintf(link, sizeof(link), "%s%s", block->node,
		node + strlen(block->loop.node)); /* "" or "pN" */
	return fault_set(fault, -EBUSY, "array %s: cannot stop: %s (%s) is %s; end that first",
		block->name, link, node, use);
}

/* Wait for passers-by, then take the device so that nobody can. Returns the descriptor. */
static int take_exclusively(struct block *block, struct fault *fault)
{
	char use[USE_TEXT], node[64];
	int fd;

	(void)partitions_current(&block->loop, &block->current); /* else those known last */
	for (unsigned waited = 0; is_used(block, use, node); waited += POLL_MS) {
		if (waited >= OPENERS_WAIT_MS || strncmp(use, "open in", 7) != 0)
			return refuse(block, node, use, fault);
		pause_ms(POLL_MS);
	}
	fd = open(block->loop.node, O_RDONLY | O_EXCL | O_CLOEXEC);
	if (fd < 0 && errno == EBUSY)
		return refuse(block, block->loop.node,
			"held by the kernel or by a mount that is "
			"not visible here (another namespace)",
			fault);
	if (fd < 0)
		return fault_set(fault, -errno, "array %s: %s: %s", block->name, block->loop.node,
			strerror(errno));
	return fd;
}

static void free_memory(struct block *block)
{
	links_free(block->links);
	free(block);
}

/* Write back what the device's cache holds, then remove partitions, device and links. */
static int dismantle(struct block *block, int exclusive_fd, struct fault *fault)
{
	const struct partitions none = {0};
	struct fault busy = {0};
	int r = fsync(exclusive_fd) < 0 ? -errno : 0;

	if (r < 0) {
		close(exclusive_fd);
		return fault_set(fault, r,
			"array %s: cannot stop: writing back %s: %s; what was written last is lost "
			"if it "
			"cannot be repeated (detail and the system's log tell which member "
			"failed); "
			"another stop goes on without it",
			block->name, block->loop.node, strerror(-r));
	}
	r = partitions_apply(&block->loop, &none, &busy);
	if (r < 0) {
		close(exclusive_fd);
		(void)block_reread(block, NULL); /* as it was, as far as possible */
		return fault_set(fault, r, "array %s: cannot stop: %s", block->name, busy.text);
	}
	r = loop_detach(&block->loop, exclusive_fd);
	if (r < 0)
		return fault_set(fault, r, "array %s: cannot stop: %s cannot be detached: %s",
			block->name, block->loop.node, strerror(-r));
	links_remove(block->links, NULL, NULL);
	return 0;
}

int block_free(struct block *block, struct fault *fault)
{
	int fd, r;

	if (!block_is_ours(block)) {
		links_remove(block->links, NULL, NULL);
		free_memory(block);
		return 0;
	}
	fd = take_exclusively(block, fault);
	if (fd < 0)
		return fd;
	r = dismantle(block, fd, fault);
	if (r == 0)
		free_memory(block);
	return r;
}

static int populate(struct block *block, struct fault *fault)
{
	struct fault busy = {0};
	int r = links_make(block->links, block->node, block->loop.node, fault);

	if (r < 0)
		return r;
	r = block_reread(block, &busy);
	/* An unreadable table, or partitions that nobody of ours made: the device works without. */
	return r == -EEXIST || r == -ENOMEM ? fault_set(fault, r, "%s", busy.text) : 0;
}

int block_new(const char *name, const char *file, bool readonly, uint64_t readahead_bytes,
	struct block **ret, struct fault *fault)
{
	struct block *block = calloc(1, sizeof(*block));
	int r, fd;

	if (block == NULL)
		return fault_set(fault, -ENOMEM, "array %s: out of memory", name);
	(void)snprintf(block->name, sizeof(block->name), "%s", name);
	(void)snprintf(block->file, sizeof(block->file), "%s", file);
	runtime_link(name, block->node);
	r = links_new(name, &block->links, fault);
	if (r == 0)
		r = loop_attach(file, readonly, readahead_bytes, &block->loop, fault);
	if (r < 0) {
		free_memory(block);
		return r;
	}
	r = populate(block, fault);
	if (r == 0) {
		*ret = block;
		return 0;
	}
	fd = open(block->loop.node, O_RDONLY | O_CLOEXEC);
	if (fd >= 0)
		(void)dismantle(block, fd, NULL); /* the first failure is the one to tell */
	links_remove(block->links, NULL, NULL);
	free_memory(block);
	return r;
}

void block_clean(const char *file)
{
	struct partitions none = {0};
	int numbers[STALE_MAX];
	unsigned count = loop_find(file, numbers, STALE_MAX);

	for (unsigned i = 0; i < count; i++) {
		struct loop loop;

		loop_name(numbers[i], &loop);
		(void)partitions_apply(&loop, &none, NULL); /* what is mounted stays for now */
		loop_abandon(&loop);
	}
}
