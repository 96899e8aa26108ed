/* SPDX-License-Identifier: MIT */
#include "export/fuse/partitions.h"

#include <blkid.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/blkpg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "util/cleanup.h"
#include "util/rounding.h"

#define SECTOR 512u
#define EXTENDED_BYTES 1024u /* what the kernel shows of an extended partition: enough for LILO */

void partition_node(const struct loop *loop, unsigned number, char ret[64])
{
	(void)snprintf(ret, 64, "%sp%u", loop->node, number);
}

static int compare_numbers(const void *a, const void *b)
{
	const struct partition *left = a, *right = b;

	return (left->number > right->number) - (left->number < right->number);
}

static void sort(struct partitions *partitions)
{
	qsort(partitions->list, partitions->count, sizeof(partitions->list[0]), compare_numbers);
}

/* Entries that point beyond the device are left out, as the kernel's own parsers do. */
static void add_entry(blkid_partition entry, uint64_t device_bytes, struct partitions *ret)
{
	int number = blkid_partition_get_partno(entry);
	uint64_t start, length;

	if (number < 1 || ret->count >= PARTITIONS_MAX ||
		mul_overflows((uint64_t)blkid_partition_get_start(entry), SECTOR, &start) ||
		mul_overflows((uint64_t)blkid_partition_get_size(entry), SECTOR, &length))
		return;
	if (start >= device_bytes || length == 0)
		return;
	length = min_u64(length, device_bytes - start);
	if (blkid_partition_is_extended(entry))
		length = min_u64(length, EXTENDED_BYTES);
	ret->list[ret->count++] = (struct partition){
		.number = (unsigned)number,
		.start_bytes = start,
		.length_bytes = length,
	};
}

static int read_table(blkid_probe probe, int fd, struct partitions *ret)
{
	blkid_partlist table;

	if (blkid_probe_set_device(probe, fd, 0, 0) < 0)
		return -EIO;
	(void)blkid_probe_enable_superblocks(probe, 0); /* switches of a fresh probe: cannot fail */
	(void)blkid_probe_enable_partitions(probe, 1);
	errno = 0;
	table = blkid_probe_get_partitions(probe);
	if (table == NULL)
		return errno == EIO ? -EIO : 0; /* no table */
	for (int i = 0; i < blkid_partlist_numof_partitions(table); i++)
		add_entry(blkid_partlist_get_partition(table, i),
			(uint64_t)blkid_probe_get_size(probe), ret);
	sort(ret);
	return 0;
}

int partitions_probe(const char *path, struct partitions *ret)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	blkid_probe probe;
	int r;

	ret->count = 0;
	if (fd < 0)
		return -errno;
	probe = blkid_new_probe();
	if (probe == NULL)
		return -ENOMEM;
	r = read_table(probe, fd, ret);
	blkid_free_probe(probe);
	return r;
}

static int read_number(const char *dir, const char *file, uint64_t *ret)
{
	_cleanup_fclose_ FILE *stream = NULL;
	char path[PATH_MAX];

	(void)snprintf(path, sizeof(path), "%s/%s", dir, file);
	stream = fopen(path, "re");
	if (stream == NULL)
		return -errno;
	return fscanf(stream, "%" SCNu64, ret) == 1 ? 0 : -EIO;
}

int partitions_current(const struct loop *loop, struct partitions *ret)
{
	char device[64], dir[PATH_MAX];
	struct dirent *entry;
	uint64_t number, start, sectors;
	DIR *stream;

	ret->count = 0;
	(void)snprintf(device, sizeof(device), "/sys/block/loop%d", loop->number);
	stream = opendir(device);
	if (stream == NULL)
		return -errno;
	while ((entry = readdir(stream)) != NULL && ret->count < PARTITIONS_MAX) {
		(void)snprintf(dir, sizeof(dir), "%s/%s", device, entry->d_name);
		if (strncmp(entry->d_name, "loop", 4) != 0 ||
			read_number(dir, "partition", &number) < 0 ||
			read_number(dir, "start", &start) < 0 ||
			read_number(dir, "size", &sectors) < 0)
			continue;
		ret->list[ret->count++] = (struct partition){
			.number = (unsigned)number,
			.start_bytes = start * SECTOR,
			.length_bytes = sectors * SECTOR,
		};
	}
	closedir(stream);
	sort(ret);
	return 0;
}

static const struct partition *find(const struct partitions *in, unsigned number)
{
	for (unsigned i = 0; i < in->count; i++)
		if (in->list[i].number == number)
			return &in->list[i];
	return NULL;
}

static int blkpg(int fd, int op, const struct partition *partition)
{
	struct blkpg_partition data = {
		.start = (long long)partition->start_bytes,
		.length = (long long)partition->length_bytes,
		.pno = (int)partition->number,
	};
	struct blkpg_ioctl_arg arg = {.op = op, .datalen = sizeof(data), .data = &data};

	return ioctl(fd, BLKPG, &arg) < 0 ? -errno : 0;
}

/* Where /dev is no devtmpfs (containers), the kernel makes no nodes: we do. */
static void make_node(const struct loop *loop, unsigned number)
{
	char node[64], sys[128];
	unsigned major, minor;
	struct stat st;
	FILE *file;

	partition_node(loop, number, node);
	if (lstat(node, &st) == 0)
		return;
	(void)snprintf(sys, sizeof(sys), "/sys/block/loop%d/loop%dp%u/dev", loop->number,
		loop->number, number);
	file = fopen(sys, "re");
	if (file == NULL)
		return;
	if (fscanf(file, "%u:%u", &major, &minor) == 2)
		(void)mknod(node, S_IFBLK | 0600, makedev(major, minor)); /* links then dangle */
	fclose(file);
}

static void remove_node(const struct loop *loop, unsigned number)
{
	char node[64];
	struct stat st;

	partition_node(loop, number, node);
	if (lstat(node, &st) == 0 && S_ISBLK(st.st_mode))
		(void)unlink(node); /* the partition is gone: the node is nobody's */
}

static int complain(
	const struct loop *loop, unsigned number, int error, const char *what, struct fault *fault)
{
	char node[64];

	partition_node(loop, number, node);
	if (fault == NULL || fault->error == 0)
		return fault_set(fault, error, "partition %s: cannot be %s: %s", node, what,
			error == -EBUSY ? "it is in use" : strerror(-error));
	return fault_append(fault, "; %s: cannot be %s: %s", node, what,
		error == -EBUSY ? "it is in use" : strerror(-error));
}

/* Take away or resize what changed. */
static int remove_changed(int fd, const struct loop *loop, const struct partitions *current,
	const struct partitions *wanted, struct fault *fault)
{
	int result = 0;

	for (unsigned i = 0; i < current->count; i++) {
		const struct partition *old = &current->list[i];
		const struct partition *new = find(wanted, old->number);
		int r = -EINVAL;

		if (new != NULL &&new->start_bytes == old->start_bytes) {
			if (new->length_bytes == old->length_bytes)
				continue;
			r = blkpg(fd, BLKPG_RESIZE_PARTITION, new);
		}
		if (r < 0) {
			r = blkpg(fd, BLKPG_DEL_PARTITION, old);
			if (r == 0)
				remove_node(loop, old->number);
		}
		if (r < 0)
			result = complain(
				loop, old->number, r, new == NULL ? "removed" : "changed", fault);
	}
	return result;
}

int partitions_apply(const struct loop *loop, const struct partitions *wanted, struct fault *fault)
{
	_cleanup_close_ int fd = open(loop->node, O_RDONLY | O_CLOEXEC);
	_cleanup_free_ struct partitions *current = calloc(1, sizeof(*current));
	int r, result;

	if (fd < 0 || current == NULL)
		return fault_set(fault, fd < 0 ? -errno : -ENOMEM, "%s: %s", loop->node,
			strerror(fd < 0 ? errno : ENOMEM));
	r = partitions_current(loop, current);
	if (r < 0)
		return fault_set(
			fault, r, "%s: its partitions in sysfs: %s", loop->node, strerror(-r));
	result = remove_changed(fd, loop, current, wanted, fault);
	r = partitions_current(loop, current);
	for (unsigned i = 0; r == 0 && i < wanted->count; i++) {
		unsigned number = wanted->list[i].number;

		if (find(current, number) == NULL)
			r = blkpg(fd, BLKPG_ADD_PARTITION, &wanted->list[i]);
		if (r == 0)
			make_node(loop, number);
		else
			result = complain(loop, number, r, "added", fault);
		r = 0;
	}
	return result;
}
