/* SPDX-License-Identifier: MIT */
#include "control/runtime.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/cleanup.h"

/* What fits into a socket address behind "/proc/self/fd/NNNN/" and before ".sock". */
#define NAME_BYTES_MAX 64u

static int choose_dir(char ret[PATH_MAX], struct fault *fault)
{
	const char *base = getenv("STRAKE_RUNTIME_DIR");
	const char *below = "";
	int n;

	if (base == NULL || base[0] == '\0') {
		below = "/strake";
		base = geteuid() == 0 ? "/run" : getenv("XDG_RUNTIME_DIR");
	}
	if (base == NULL || base[0] == '\0')
		return fault_set(fault, -ENXIO,
			"no place for the array's socket: XDG_RUNTIME_DIR is not set; set it, or "
			"set "
			"STRAKE_RUNTIME_DIR to a directory of yours");
	if (base[0] != '/')
		return fault_set(fault, -EINVAL,
			"runtime directory %s: not an absolute path; set STRAKE_RUNTIME_DIR to one",
			base);
	n = snprintf(ret, PATH_MAX, "%s%s", base, below);
	if (n >= PATH_MAX - NAME_MAX)
		return fault_set(
			fault, -ENAMETOOLONG, "runtime directory %.64s…: path too long", base);
	return 0;
}

/* mkdir -p; directories that exist are taken as they are. */
static int make_dirs(const char *path)
{
	char part[PATH_MAX];
	char *slash = part;

	(void)snprintf(part, sizeof(part), "%s", path);
	while ((slash = strchr(slash + 1, '/')) != NULL) {
		*slash = '\0';
		if (mkdir(part, 0755) < 0 && errno != EEXIST)
			return -errno;
		*slash = '/';
	}
	if (mkdir(part, 0755) < 0 && errno != EEXIST)
		return -errno;
	return 0;
}

int runtime_dir(char ret[PATH_MAX], struct fault *fault)
{
	struct stat st;
	int r = choose_dir(ret, fault);

	if (r < 0)
		return r;
	if (stat(ret, &st) == 0 && S_ISDIR(st.st_mode))
		return 0;
	r = make_dirs(ret);
	if (r == 0 && (stat(ret, &st) < 0 || !S_ISDIR(st.st_mode)))
		r = -ENOTDIR;
	if (r < 0)
		return fault_set(fault, r,
			"runtime directory %s: cannot make it: %s; set "
			"STRAKE_RUNTIME_DIR to a directory that you may write to",
			ret, strerror(-r));
	return 0;
}

static bool is_all_digits(const char *text)
{
	return text[0] != '\0' && text[strspn(text, "0123456789")] == '\0';
}

static bool has_suffix(const char *text, const char *suffix)
{
	size_t length = strlen(text), tail = strlen(suffix);

	return length >= tail && strcmp(text + length - tail, suffix) == 0;
}

/*
 * Well-formed UTF-8 (RFC 3629: shortest form, no surrogates, up to U+10FFFF)? Names go through
 * JSON, which has no other text.
 */
static bool is_utf8(const char *text)
{
	for (const unsigned char *p = (const unsigned char *)text; *p != 0;) {
		unsigned more = *p < 0x80 ? 0 : *p < 0xe0 ? 1 : *p < 0xf0 ? 2 : 3;
		uint32_t value = more == 0 ? *p : *p & (0x3fu >> more);
		static const uint32_t least[] = {0, 0x80, 0x800, 0x10000};

		if ((*p >= 0x80 && *p < 0xc2) || *p > 0xf4)
			return false;
		p++;
		for (unsigned i = 0; i < more; i++, p++) {
			if ((*p & 0xc0) != 0x80)
				return false;
			value = value << 6 | (*p & 0x3fu);
		}
		if (value < least[more] || (value >= 0xd800 && value < 0xe000) || value > 0x10ffff)
			return false;
	}
	return true;
}

/* Is @name usable as a file name, in messages and before the suffixes that we give it? */
static const char *why_no_name(const char *name)
{
	if (name[0] == '\0')
		return "it is empty";
	if (strlen(name) > NAME_BYTES_MAX)
		return "it is longer than 64 bytes";
	if (name[0] == '.' || name[0] == '-')
		return "it begins with a dot or a dash";
	if (strchr(name, '/') != NULL)
		return "it contains a slash; arrays are called /dev/mdN, /dev/md/NAME or NAME";
	for (const char *p = name; *p != '\0'; p++)
		if ((unsigned char)*p < ' ' || *p == 0x7f)
			return "it contains control characters";
	if (!is_utf8(name))
		return "it is not UTF-8; name the array yourself";
	if (has_suffix(name, ".sock") || has_suffix(name, ".links") || has_suffix(name, ".lock") ||
		has_suffix(name, ".nbd"))
		return "names ending in .sock, .links, .lock and .nbd belong to strake itself";
	return NULL;
}

/* A path below the runtime directory names the array whose file it is. */
static const char *strip_runtime_dir(const char *word)
{
	char dir[PATH_MAX];
	size_t length;

	if (word[0] != '/' || choose_dir(dir, NULL) < 0)
		return word;
	length = strlen(dir);
	if (strncmp(word, dir, length) == 0 && word[length] == '/')
		return word + length + 1;
	return word;
}

int runtime_name(const char *word, char ret[NAME_MAX], struct fault *fault)
{
	const char *name = strip_runtime_dir(word), *why;

	if (strncmp(name, "/dev/md/", 8) == 0)
		name += 8;
	else if (strncmp(name, "/dev/", 5) == 0)
		name += 5;
	why = why_no_name(name);
	if (why == NULL && name == word + 5 && !is_all_digits(name + 2) &&
		strncmp(word, "/dev/", 5) == 0)
		why = "device nodes of arrays are called /dev/mdN or /dev/md/NAME";
	if (why != NULL)
		return fault_set(
			fault, -EINVAL, "%.200s: cannot be the name of an array: %s", word, why);
	/* "/dev/md/0" and "0" are mdadm's other spellings of md0. */
	(void)snprintf(ret, NAME_MAX, "%s%s", is_all_digits(name) ? "md" : "", name);
	return 0;
}

void runtime_link(const char *name, char ret[PATH_MAX])
{
	bool numbered = strncmp(name, "md", 2) == 0 && is_all_digits(name + 2);

	(void)snprintf(ret, PATH_MAX, "/dev/%s%s", numbered ? "" : "md/", name);
}

static int runtime_path(
	const char *name, const char *suffix, char ret[PATH_MAX], struct fault *fault)
{
	size_t used;
	int r = runtime_dir(ret, fault);

	if (r < 0)
		return r;
	used = strlen(ret);
	(void)snprintf(ret + used, PATH_MAX - used, "/%s%s", name, suffix);
	return 0;
}

int runtime_socket(const char *name, char ret[PATH_MAX], struct fault *fault)
{
	return runtime_path(name, ".sock", ret, fault);
}

int runtime_file(const char *name, char ret[PATH_MAX], struct fault *fault)
{
	return runtime_path(name, "", ret, fault);
}

int runtime_links(const char *name, char ret[PATH_MAX], struct fault *fault)
{
	return runtime_path(name, ".links", ret, fault);
}

int runtime_nbd(const char *name, char ret[PATH_MAX], struct fault *fault)
{
	return runtime_path(name, ".nbd", ret, fault);
}

/* 1: locked, and the file is still the one of that name; 0: try again; or a negative errno. */
static int try_claim(const struct runtime_claim *claim)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	struct stat ours, named;

	if (fcntl(claim->fd, F_SETLK, &lock) < 0)
		return errno == EACCES || errno == EAGAIN ? -EBUSY : -errno;
	if (fstat(claim->fd, &ours) < 0)
		return -errno;
	return stat(claim->path, &named) == 0 && named.st_ino == ours.st_ino &&
	       named.st_dev == ours.st_dev;
}

int runtime_claim(const char *name, struct runtime_claim *ret, struct fault *fault)
{
	int r = runtime_path(name, ".lock", ret->path, fault);

	ret->fd = -1;
	if (r < 0)
		return r;
	for (r = 0; r == 0;) {
		ret->fd = open(ret->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
		r = ret->fd < 0 ? -errno : try_claim(ret);
		if (r <= 0 && ret->fd >= 0)
			close(ret->fd);
	}
	if (r > 0)
		return 0;
	ret->fd = -1;
	if (r == -EBUSY)
		return fault_set(fault, r,
			"an array of the name %s is being started by another command; wait for it, "
			"or choose another name",
			name);
	return fault_set(fault, r, "%s: cannot lock the name: %s", ret->path, strerror(-r));
}

void runtime_release(struct runtime_claim *claim)
{
	if (claim->fd < 0)
		return;
	(void)unlink(claim->path); /* before the lock goes: the next one makes a file of its own */
	close(claim->fd);
	claim->fd = -1;
}
