/* SPDX-License-Identifier: MIT */

/* Which devices to look at: paths, directories, globs and /proc/partitions. */

#include <dirent.h>
#include <errno.h>
#include <glob.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "probe/probe.h"
#include "probe/superblocks.h"

struct found {
	char *path;
	bool is_block;
	dev_t device; /* the block device, or the file system of a file */
	ino_t inode;  /* 0 for block devices */
};

struct scan {
	struct found *list;
	unsigned count;
};

static void scan_fini(struct scan *scan)
{
	for (unsigned i = 0; i < scan->count; i++)
		free(scan->list[i].path);
	free(scan->list);
}

static void closedirp(DIR **dir)
{
	if (*dir != NULL)
		closedir(*dir);
}

void probe_scan_free(char **paths, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		free(paths[i]);
	free(paths);
}

/* One device is one entry, however many names lead to it: the first name in order stays. */
static int add(struct scan *scan, const char *path, const struct stat *st)
{
	bool is_block = S_ISBLK(st->st_mode);
	struct found *list;
	char *copy;

	copy = strdup(path);
	if (copy == NULL)
		return -ENOMEM;
	list = reallocarray(scan->list, scan->count + 1, sizeof(*list));
	if (list == NULL) {
		free(copy);
		return -ENOMEM;
	}
	scan->list = list;
	list[scan->count++] = (struct found){.path = copy,
		.is_block = is_block,
		.device = is_block ? st->st_rdev : st->st_dev,
		.inode = is_block ? 0 : st->st_ino};
	return 0;
}

static int add_directory(struct scan *scan, const char *directory, struct fault *fault)
{
	_cleanup_(closedirp) DIR *dir = opendir(directory);
	struct dirent *entry;
	struct stat st;
	int r;

	if (dir == NULL)
		return fault_set(fault, -errno, "%s: cannot list this directory: %s", directory,
			strerror(errno));
	while ((entry = readdir(dir)) != NULL) {
		_cleanup_free_ char *path = NULL;

		if (asprintf(&path, "%s%s%s", directory,
			    directory[strlen(directory) - 1] == '/' ? "" : "/", entry->d_name) < 0)
			return fault_set(fault, -ENOMEM, "%s: out of memory", directory);
		if (stat(path, &st) != 0 || !(S_ISBLK(st.st_mode) || S_ISREG(st.st_mode)))
			continue;
		r = add(scan, path, &st);
		if (r < 0)
			return fault_set(fault, r, "%s: out of memory", path);
	}
	return 0;
}

static int add_path(struct scan *scan, const char *path, const struct stat *st, struct fault *fault)
{
	int r;

	if (S_ISDIR(st->st_mode))
		return add_directory(scan, path, fault);
	r = add(scan, path, st);
	return r < 0 ? fault_set(fault, r, "%s: out of memory", path) : 0;
}

static int add_glob(struct scan *scan, const char *pattern, struct fault *fault)
{
	glob_t matches = {0};
	struct stat st;
	int r = 0;

	switch (glob(pattern, GLOB_NOSORT, NULL, &matches)) {
	case 0:
		break;
	case GLOB_NOSPACE:
		return fault_set(fault, -ENOMEM, "%s: out of memory", pattern);
	default:
		return fault_set(fault, -ENOENT, "%s: no such file, device or directory", pattern);
	}
	for (size_t i = 0; r == 0 && i < matches.gl_pathc; i++)
		if (stat(matches.gl_pathv[i], &st) == 0)
			r = add_path(scan, matches.gl_pathv[i], &st, fault);
	globfree(&matches);
	return r;
}

/* No number tells one URI from another; whoever takes the member sees whether it is another's. */
static int add_network(struct scan *scan, const char *uri, struct fault *fault)
{
	const struct stat none = {.st_ino = scan->count + 1};
	int r = add(scan, uri, &none);

	return r < 0 ? fault_set(fault, r, "%s: out of memory", uri) : 0;
}

static int add_word(struct scan *scan, const char *word, struct fault *fault)
{
	struct stat st;

	if (stat(word, &st) == 0)
		return add_path(scan, word, &st, fault);
	if (errno == ENOENT && member_is_network_word(word))
		return add_network(scan, word, fault);
	if (errno == ENOENT)
		return add_glob(scan, word, fault);
	return fault_set(fault, -errno, "%.200s: cannot look at it: %s", word, strerror(errno));
}

/* The first line of a file, without the newline; false if it cannot be had. */
static bool read_line(const char *path, char *line, size_t size)
{
	_cleanup_fclose_ FILE *file = fopen(path, "re");

	if (file == NULL || fgets(line, (int)size, file) == NULL)
		return false;
	line[strcspn(line, "\n")] = '\0';
	return true;
}

/*
 * A running array of ours is a loop device (or a partition of one) over DIR/NAME, beside which
 * stands its control socket DIR/NAME.sock. Looking into it would ask the array about itself.
 */
static bool is_own_array(const char *name)
{
	char path[PATH_MAX], backing[PATH_MAX], sock[PATH_MAX + 8];
	struct stat st;

	snprintf(path, sizeof(path), "/sys/class/block/%s/loop/backing_file", name);
	if (!read_line(path, backing, sizeof(backing))) {
		snprintf(path, sizeof(path), "/sys/class/block/%s/../loop/backing_file", name);
		if (!read_line(path, backing, sizeof(backing)))
			return false;
	}
	snprintf(sock, sizeof(sock), "%s.sock", backing);
	return lstat(sock, &st) == 0 && S_ISSOCK(st.st_mode);
}

static int add_partition(struct scan *scan, const char *name, struct fault *fault)
{
	char path[PATH_MAX];
	struct stat st;
	int r;

	if (is_own_array(name))
		return 0;
	snprintf(path, sizeof(path), "/dev/%s", name);
	for (char *c = path; (c = strchr(c, '!')) != NULL;)
		*c = '/'; /* the kernel's spelling of cciss/c0d0 */
	if (stat(path, &st) != 0 || !S_ISBLK(st.st_mode))
		return 0; /* no node for it: nobody can open it */
	r = add(scan, path, &st);
	return r < 0 ? fault_set(fault, r, "%s: out of memory", path) : 0;
}

static int add_partitions(struct scan *scan, struct fault *fault)
{
	_cleanup_fclose_ FILE *file = fopen("/proc/partitions", "re");
	char line[256], name[128];
	unsigned long long blocks;
	int r;

	if (file == NULL)
		return fault_set(fault, -errno,
			"/proc/partitions: cannot read the list of devices: %s", strerror(errno));
	while (fgets(line, sizeof(line), file) != NULL) {
		if (sscanf(line, " %*u %*u %llu %127s", &blocks, name) != 2 || blocks == 0)
			continue;
		r = add_partition(scan, name, fault);
		if (r < 0)
			return r;
	}
	return 0;
}

static int compare_paths(const void *a, const void *b)
{
	return strcmp(((const struct found *)a)->path, ((const struct found *)b)->path);
}

static bool is_known(const struct scan *scan, unsigned until, const struct found *found)
{
	for (unsigned i = 0; i < until; i++)
		if (scan->list[i].is_block == found->is_block &&
			scan->list[i].device == found->device &&
			scan->list[i].inode == found->inode)
			return true;
	return false;
}

static int take_paths(struct scan *scan, char ***ret, unsigned *ret_count)
{
	char **paths = calloc(scan->count + 1, sizeof(*paths));
	unsigned count = 0;

	if (paths == NULL)
		return -ENOMEM;
	for (unsigned i = 0; i < scan->count; i++)
		if (!is_known(scan, i, &scan->list[i]))
			paths[count++] = strdup(scan->list[i].path);
	for (unsigned i = 0; i < count; i++)
		if (paths[i] == NULL) {
			probe_scan_free(paths, count);
			return -ENOMEM;
		}
	*ret = paths;
	*ret_count = count;
	return 0;
}

int probe_scan(char *const *words, unsigned word_count, char ***ret, unsigned *ret_count,
	struct fault *fault)
{
	_cleanup_(scan_fini) struct scan scan = {0};
	int r = 0;

	if (word_count == 0)
		r = add_partitions(&scan, fault);
	for (unsigned i = 0; r == 0 && i < word_count; i++)
		r = strcmp(words[i], "partitions") == 0 ? add_partitions(&scan, fault)
							: add_word(&scan, words[i], fault);
	if (r < 0)
		return r;
	if (scan.count > 0)
		qsort(scan.list, scan.count, sizeof(*scan.list), compare_paths);
	r = take_paths(&scan, ret, ret_count);
	return r < 0 ? fault_set(fault, r, "scan for devices: out of memory") : 0;
}
