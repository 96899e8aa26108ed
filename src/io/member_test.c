/* SPDX-License-Identifier: MIT */
/* Members: what is refused and in which words, who may share, and reads and writes of any shape. */
#include "io/test_rig.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/blkpg.h>
#include <linux/loop.h>
#include <sched.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "util/cleanup.h"

#define FILE_BYTES (64 * K)

struct place {
	char folder[256];
	struct fault fault;
};

static int set_up(void **state)
{
	struct place *place = calloc(1, sizeof(*place));

	make_folder(NULL, place->folder, sizeof(place->folder));
	assert_int_equal(chdir(place->folder), 0);
	*state = place;
	return 0;
}

static int tear_down(void **state)
{
	struct place *place = *state;
	char command[320];

	assert_int_equal(chdir("/"), 0);
	(void)snprintf(command, sizeof(command), "rm -rf '%s'", place->folder);
	assert_int_equal(system(command), 0);
	free(place);
	return 0;
}

static void make_file(const char *path, size_t bytes)
{
	int fd = open(path, O_CREAT | O_RDWR | O_TRUNC | O_CLOEXEC, 0600);
	_cleanup_free_ char *content = malloc(bytes + 1);

	assert_true(fd >= 0);
	fill(content, bytes, 3);
	assert_int_equal(write(fd, content, bytes), bytes);
	close(fd);
}

/* Refused with @error, and the words hold @path (unless NULL), @words and a hint what to do. */
static void refused(
	struct place *place, const char *path, unsigned flags, int error, const char *words)
{
	struct member *member = NULL;

	place->fault.text[0] = '\0';
	assert_int_equal(member_open(path, flags, &member, &place->fault), error);
	assert_null(member);
	assert_int_equal(place->fault.error, error);
	if (strlen(path) < 300) /* longer ones are cut */
		assert_non_null(strstr(place->fault.text, path));
	if (strstr(place->fault.text, words) == NULL)
		fail_msg("\"%s\" not in \"%s\"", words, place->fault.text);
	assert_non_null(strchr(place->fault.text, ';')); /* "; do this" */
	assert_null(strchr(place->fault.text, '\n'));
}

static struct member *opened(struct place *place, const char *path, unsigned flags)
{
	struct member *member = NULL;

	place->fault.text[0] = '\0';
	if (member_open(path, flags, &member, &place->fault) < 0)
		fail_msg("%s", place->fault.text);
	assert_string_equal(member->path, path);
	return member;
}

static void refuses_what_is_no_member(void **state)
{
	struct place *place = *state;
	char name[6000];

	refused(place, "nothing", 0, -ENOENT, "no such file");
	assert_int_equal(mkdir("folder", 0700), 0);
	refused(place, "folder", 0, -EISDIR, "is a directory");
	assert_int_equal(mkfifo("fifo", 0600), 0); /* and does not wait for its other end */
	refused(place, "fifo", MEMBER_READONLY, -ENOTBLK, "neither");
	refused(place, "/dev/null", 0, -ENOTBLK, "neither");
	make_file("file", 10);
	refused(place, "file/below", 0, -ENOTDIR, "Not a directory");
	refused(place, "", 0, -ENOENT, "no such file");
	assert_int_equal(symlink("loop", "loop"), 0);
	refused(place, "loop", 0, -ELOOP, "symbolic links");
	memset(name, 'n', sizeof(name));
	name[300] = '\0'; /* longer than a name */
	refused(place, name, 0, -ENAMETOOLONG, "too long (300 bytes)");
	name[300] = 'n';
	for (unsigned i = 100; i < 5000; i += 100)
		name[i] = '/';
	name[5000] = '\0'; /* longer than a path */
	refused(place, name, 0, -ENAMETOOLONG, "too long (5000 bytes)");
}

static void takes_odd_names(void **state)
{
	static const char *const names[] = {"-leading", "--dash=x", "two words", "tab\there",
		"größe.img", "日本", "per%scent", "quote'\"$", "new\nline"};
	struct place *place = *state;
	char path[4200];
	size_t length = 0;

	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct member *member;

		make_file(names[i], FILE_BYTES);
		member = opened(place, names[i], MEMBER_EXCLUSIVE);
		assert_int_equal(member->size_bytes, FILE_BYTES);
		member_close(member);
	}
	while (length < 4000 - 200) { /* 4,000 characters, which open(2) just takes */
		memset(path + length, 'd', 199);
		path[length + 199] = '/';
		path[length + 200] = '\0';
		length += 200;
		assert_int_equal(mkdir(path, 0700), 0);
	}
	memset(path + length, 'f', 4000 - length);
	path[4000] = '\0';
	make_file(path, FILE_BYTES);
	member_close(opened(place, path, MEMBER_EXCLUSIVE));
}

static void measures(void **state)
{
	struct place *place = *state;
	struct member *member;

	make_file("empty", 0);
	member = opened(place, "empty", MEMBER_EXCLUSIVE);
	assert_int_equal(member->size_bytes, 0);
	assert_false(member->direct);
	member_close(member);
	make_file("odd", FILE_BYTES + 100);
	member = opened(place, "odd", 0);
	assert_int_equal(member->size_bytes, FILE_BYTES + 100);
	assert_false(member->direct);
	member_close(member);
	make_file("even", FILE_BYTES);
	member = opened(place, "even", MEMBER_BUFFERED);
	assert_false(member->direct);
	assert_int_equal(fcntl(member->fd, F_GETFL) & O_DIRECT, 0);
	assert_int_equal(member->memory_align, 1);
	assert_int_equal(member->logical_block_bytes, 512);
	assert_false(member->is_block);
	member_close(member);
	member = opened(place, "even", 0);
	assert_int_equal(!!(fcntl(member->fd, F_GETFL) & O_DIRECT), member->direct);
	print_message("%s: %s\n", place->folder, member->direct ? "O_DIRECT" : "no O_DIRECT");
	member_close(member);
}

static void readonly_cannot_write(void **state)
{
	struct place *place = *state;
	struct member *member;
	char byte = 'x';

	make_file("file", FILE_BYTES);
	assert_int_equal(chmod("file", 0400), 0);
	member = opened(place, "file", MEMBER_READONLY | MEMBER_EXCLUSIVE);
	assert_true(member->readonly);
	assert_int_equal(fcntl(member->fd, F_GETFL) & O_ACCMODE, O_RDONLY);
	assert_int_equal(member_write(member, 0, &byte, 1), -EROFS);
	assert_int_equal(pwrite(member->fd, &byte, 1, 0), -1);
	member_close(member);
}

/* Root may open anything; so a child of nobody's asks. */
static void names_missing_rights(void **state)
{
	struct place *place = *state;
	pid_t child;
	int status;

	make_file("file", FILE_BYTES);
	assert_int_equal(chmod("file", 0), 0);
	assert_int_equal(chmod(".", 0755), 0);
	child = fork();
	if (child == 0) {
		struct member *member;
		int r;

		if (getuid() == 0 && setuid(65534) < 0)
			_exit(2);
		r = member_open("file", 0, &member, &place->fault);
		_exit(r == -EACCES &&
					strstr(place->fault.text,
						"file: Permission denied; run as") &&
					strstr(place->fault.text, "--readonly")
				? 0
				: 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static void shares_as_it_should(void **state)
{
	struct place *place = *state;
	unsigned readonly = MEMBER_READONLY | MEMBER_EXCLUSIVE;
	struct member *first, *second;

	make_file("file", FILE_BYTES);
	assert_int_equal(link("file", "other name"), 0);
	first = opened(place, "file", readonly); /* readers share */
	second = opened(place, "other name", readonly);
	assert_true(member_is_same(first, second));
	refused(place, "file", MEMBER_EXCLUSIVE, -EBUSY, "in use");
	member_close(first);
	member_close(second);
	first = opened(place, "file", MEMBER_EXCLUSIVE); /* a writer does not */
	refused(place, "other name", MEMBER_EXCLUSIVE, -EBUSY, "in use by this very command");
	refused(place, "file", readonly, -EBUSY, "in use by this very command");
	second = opened(place, "file", MEMBER_READONLY); /* who does not ask for it, looks */
	member_close(second);
	member_close(first);
	make_file("another", FILE_BYTES);
	first = opened(place, "file", MEMBER_EXCLUSIVE);
	second = opened(place, "another", MEMBER_EXCLUSIVE);
	assert_false(member_is_same(first, second));
	member_close(first);
	member_close(second);
}

enum hold { HOLD_MEMBER, HOLD_RECORD_LOCK, HOLD_READ_RECORD_LOCK };

/* A process of the name @name that holds "file", until it is let go. */
static pid_t start_holder(const char *name, enum hold hold, int *ret_let_go)
{
	struct flock lock = {.l_type = hold == HOLD_RECORD_LOCK ? F_WRLCK : F_RDLCK,
		.l_whence = SEEK_SET,
		.l_start = 100,
		.l_len = 1};
	struct member *member;
	int there[2], go[2];
	char byte = 0;
	pid_t child;

	assert_int_equal(pipe(there), 0);
	assert_int_equal(pipe(go), 0);
	child = fork();
	if (child == 0) {
		struct fault fault;
		int fd = open("file", O_RDWR);

		(void)prctl(PR_SET_NAME, name);
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(go[1]);
		if (hold == HOLD_MEMBER ? member_open("file", MEMBER_EXCLUSIVE, &member, &fault) < 0
					: fcntl(fd, F_OFD_SETLK, &lock) < 0)
			_exit(1);
		(void)!write(there[1], "x", 1);
		(void)!read(go[0], &byte, 1);
		_exit(0);
	}
	close(go[0]);
	close(there[1]);
	assert_int_equal(read(there[0], &byte, 1), 1);
	close(there[0]);
	*ret_let_go = go[1];
	return child;
}

static void end_holder(pid_t child, int let_go)
{
	int status;

	close(let_go);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static void names_the_holder(void **state)
{
	static const struct {
		const char *name;
		enum hold hold;
		const char *words;
	} cases[] = {
		{"strake:home", HOLD_MEMBER, "in use by the running array home (process %d)"},
		{"strake:long-name", HOLD_MEMBER, "the running array long-nam… (process %d)"},
		{"qemu-nbd", HOLD_RECORD_LOCK, "in use by process %d (qemu-nbd)"},
		{"qemu-nbd", HOLD_READ_RECORD_LOCK, "in use by process %d (qemu-nbd)"},
	};
	struct place *place = *state;

	make_file("file", FILE_BYTES);
	for (unsigned i = 0; i < 4; i++) {
		int let_go;
		pid_t child = start_holder(cases[i].name, cases[i].hold, &let_go);
		char words[100];

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
		(void)snprintf(words, sizeof(words), cases[i].words, (int)child);
#pragma GCC diagnostic pop
		refused(place, "file", MEMBER_EXCLUSIVE, -EBUSY, words);
		if (cases[i].hold == HOLD_READ_RECORD_LOCK) /* readers share */
			member_close(opened(place, "file", MEMBER_READONLY | MEMBER_EXCLUSIVE));
		else
			refused(place, "file", MEMBER_READONLY | MEMBER_EXCLUSIVE, -EBUSY, words);
		end_holder(child, let_go);
		member_close(opened(place, "file", MEMBER_EXCLUSIVE)); /* free again */
	}
}

/* Attach @path to a free loop device; its name in @device. Skips the test where there is none. */
static int attach_loop(const char *path, char *device, size_t size)
{
	_cleanup_close_ int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
	struct loop_config config = {
		.info.lo_flags = LO_FLAGS_AUTOCLEAR}; /* goes when a test fails, too */

	for (unsigned attempt = 0; control >= 0 && attempt < 20; attempt++) {
		int number = ioctl(control, LOOP_CTL_GET_FREE), loop;

		if (number < 0)
			break;
		(void)snprintf(device, size, "/dev/loop%d", number);
		loop = open(device, O_RDWR | O_CLOEXEC);
		if (loop < 0)
			break;
		config.fd = (uint32_t)open(path, O_RDWR | O_CLOEXEC);
		if (ioctl(loop, LOOP_CONFIGURE, &config) == 0) {
			close((int)config.fd);
			return loop;
		}
		close((int)config.fd); /* another test was quicker with this one */
		close(loop);
	}
	print_message("no loop device (are we root?)\n");
	skip();
	return -1;
}

static void block_devices(void **state)
{
	struct place *place = *state;
	struct member *member, *same;
	char device[64], words[100], folder[300];
	int loop;

	make_file("with space\nand line", 1024 * K);
	loop = attach_loop("with space\nand line", device, sizeof(device));
	(void)snprintf(words, sizeof(words), "the backing file of %s", device);
	place->fault.text[0] = '\0'; /* its name has a line's end, so not by refused() */
	assert_int_equal(
		member_open("with space\nand line", MEMBER_EXCLUSIVE, &member, &place->fault),
		-EBUSY);
	assert_non_null(strstr(place->fault.text, words));
	member = opened(place, device, MEMBER_EXCLUSIVE);
	assert_true(member->is_block);
	assert_int_equal(member->size_bytes, 1024 * K);
	assert_int_equal(member->logical_block_bytes, 512);
	assert_int_equal(symlink(device, "link"), 0);
	same = opened(place, "link", MEMBER_READONLY);
	assert_true(member_is_same(member, same));
	assert_int_equal(same->major, member->major);
	assert_int_equal(same->minor, member->minor);
	member_close(same);
	refused(place, "link", MEMBER_EXCLUSIVE, -EBUSY, "in use");
	member_close(member);
	member_close(opened(place, device, MEMBER_EXCLUSIVE | MEMBER_READONLY));
	assert_int_equal(mkdir("mount point", 0700), 0);
	(void)snprintf(folder, sizeof(folder), "mkfs.ext2 -q %s 2>/dev/null", device);
	if (system(folder) == 0 && unshare(CLONE_NEWNS) == 0 &&
		mount("none", "/", "none", MS_REC | MS_PRIVATE, NULL) == 0 &&
		mount(device, "mount point", "ext4", MS_RDONLY, NULL) == 0) {
		(void)snprintf(folder, sizeof(folder), "mounted on %s/mount point", place->folder);
		refused(place, device, MEMBER_EXCLUSIVE, -EBUSY, folder);
		refused(place, device, MEMBER_EXCLUSIVE | MEMBER_READONLY, -EBUSY, folder);
		assert_int_equal(umount("mount point"), 0);
	} else {
		print_message("cannot mount here: mounted devices are not tested\n");
	}
	assert_int_equal(ioctl(loop, LOOP_CLR_FD, 0), 0);
	close(loop);
}

/*
 * A loop device over a file whose path is gone, but which has another name; and one over a device,
 * which the kernel does not count as a user of it.
 */
static void finds_hidden_loops(void **state)
{
	struct place *place = *state;
	char device[64], upper[64], words[100];
	int loop, upper_loop;

	make_file("file", 1024 * K);
	loop = attach_loop("file", device, sizeof(device));
	assert_int_equal(link("file", "other name"), 0);
	assert_int_equal(unlink("file"), 0);
	(void)snprintf(words, sizeof(words), "the backing file of %s", device);
	refused(place, "other name", MEMBER_EXCLUSIVE, -EBUSY, words);
	upper_loop = attach_loop(device, upper, sizeof(upper));
	(void)snprintf(words, sizeof(words), "the backing device of %s", upper);
	refused(place, device, MEMBER_EXCLUSIVE, -EBUSY, words);
	assert_int_equal(ioctl(upper_loop, LOOP_CLR_FD, 0), 0);
	close(upper_loop);
	member_close(opened(place, device, MEMBER_EXCLUSIVE));
	assert_int_equal(ioctl(loop, LOOP_CLR_FD, 0), 0);
	close(loop);
	member_close(opened(place, "other name", MEMBER_EXCLUSIVE));
}

/* The partition @number of @loop, added (over the second half MiB) or taken away. */
static int change_partition(int loop, int operation, int number)
{
	struct blkpg_partition partition = {.start = 512 * K, .length = 512 * K, .pno = number};
	struct blkpg_ioctl_arg argument = {
		.op = operation, .datalen = sizeof(partition), .data = &partition};

	return ioctl(loop, BLKPG, &argument);
}

/* Somebody has the partition: nobody else gets the disk, nor the other way round. */
static void tells_of_partitions(void **state)
{
	struct place *place = *state;
	char device[64], part[80], upper[64], words[200];
	struct member *member;
	int loop, upper_loop;

	make_file("file", 1024 * K);
	loop = attach_loop("file", device, sizeof(device));
	(void)snprintf(part, sizeof(part), "%sp1", device);
	if (change_partition(loop, BLKPG_ADD_PARTITION, 1) < 0 || access(part, F_OK) != 0) {
		print_message("%s: no partitions here\n", device);
		(void)ioctl(loop, LOOP_CLR_FD, 0);
		close(loop);
		skip();
	}
	member = opened(place, part, MEMBER_EXCLUSIVE);
	assert_int_equal(member->size_bytes, 512 * K);
	refused(place, device, MEMBER_EXCLUSIVE, -EBUSY, "in use");
	member_close(member);
	upper_loop = attach_loop(part, upper, sizeof(upper));
	(void)snprintf(words, sizeof(words), "in use: its partition %s is the backing device of %s",
		part + 5, upper);
	refused(place, device, MEMBER_EXCLUSIVE, -EBUSY, words);
	assert_int_equal(ioctl(upper_loop, LOOP_CLR_FD, 0), 0);
	close(upper_loop);
	upper_loop = attach_loop(device, upper, sizeof(upper));
	(void)snprintf(
		words, sizeof(words), "in use: the whole disk is the backing device of %s", upper);
	refused(place, part, MEMBER_EXCLUSIVE, -EBUSY, words);
	assert_int_equal(ioctl(upper_loop, LOOP_CLR_FD, 0), 0);
	close(upper_loop);
	assert_int_equal(change_partition(loop, BLKPG_DEL_PARTITION, 1), 0);
	assert_int_equal(ioctl(loop, LOOP_CLR_FD, 0), 0);
	close(loop);
}

/* Any offset and length, against a copy in memory; behind the end is refused whole. */
static void check_access(struct place *place, const char *path, size_t bytes, unsigned flags)
{
	_cleanup_free_ uint8_t *shadow = malloc(bytes), *buffer = malloc(bytes);
	struct member *member;
	uint64_t number = 11;

	make_file(path, bytes);
	fill(shadow, bytes, 3);
	member = opened(place, path, flags);
	for (unsigned i = 0; i < 150; i++) {
		uint64_t offset = next_number(&number) % bytes;
		size_t length = next_number(&number) % (i % 3 == 0 ? 20000 : 700);

		if (i % 5 == 0) { /* whole sectors, up to the end now and then */
			offset = offset / SECTOR * SECTOR;
			length = length / SECTOR * SECTOR;
		}
		if (offset + length > bytes) {
			assert_int_equal(member_read(member, offset, buffer, length), -ERANGE);
			assert_int_equal(member_write(member, offset, buffer, length), -ERANGE);
			length = bytes - offset;
		}
		assert_int_equal(member_read(member, offset, buffer, length), 0);
		assert_memory_equal(buffer, shadow + offset, length);
		fill(buffer, length, i);
		memcpy(shadow + offset, buffer, length);
		assert_int_equal(member_write(member, offset, buffer, length), 0);
	}
	assert_int_equal(member_sync(member), 0);
	assert_int_equal(member_read(member, UINT64_MAX - 5, buffer, 10), -ERANGE);
	assert_int_equal(member_read(member, 0, buffer, bytes), 0);
	assert_memory_equal(buffer, shadow, bytes);
	member_close(member);
	member = opened(place, path, MEMBER_BUFFERED);
	assert_int_equal(member->size_bytes, bytes);
	assert_int_equal(member_read(member, 0, buffer, bytes), 0);
	assert_memory_equal(buffer, shadow, bytes);
	member_close(member);
}

static void reads_and_writes(void **state)
{
	struct place *place = *state;

	check_access(place, "direct", FILE_BYTES, 0);
	check_access(place, "sectors", FILE_BYTES + 3 * SECTOR, 0);
	check_access(place, "odd", FILE_BYTES + 100, 0);
	check_access(place, "buffered", FILE_BYTES + 3 * SECTOR, MEMBER_BUFFERED);
	check_access(place, "tiny", 700, 0);
}

/* Opening, also exclusively, changes nothing of a file, not even its times of change. */
static void opening_writes_nothing(void **state)
{
	struct place *place = *state;
	struct stat before, after;

	make_file("file", FILE_BYTES);
	assert_int_equal(stat("file", &before), 0);
	member_close(opened(place, "file", MEMBER_EXCLUSIVE));
	assert_int_equal(stat("file", &after), 0);
	assert_int_equal(before.st_mtim.tv_nsec, after.st_mtim.tv_nsec);
	assert_int_equal(before.st_ctim.tv_nsec, after.st_ctim.tv_nsec);
	assert_int_equal(before.st_blocks, after.st_blocks);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(refuses_what_is_no_member, set_up, tear_down),
		cmocka_unit_test_setup_teardown(takes_odd_names, set_up, tear_down),
		cmocka_unit_test_setup_teardown(measures, set_up, tear_down),
		cmocka_unit_test_setup_teardown(readonly_cannot_write, set_up, tear_down),
		cmocka_unit_test_setup_teardown(names_missing_rights, set_up, tear_down),
		cmocka_unit_test_setup_teardown(shares_as_it_should, set_up, tear_down),
		cmocka_unit_test_setup_teardown(names_the_holder, set_up, tear_down),
		cmocka_unit_test_setup_teardown(block_devices, set_up, tear_down),
		cmocka_unit_test_setup_teardown(finds_hidden_loops, set_up, tear_down),
		cmocka_unit_test_setup_teardown(tells_of_partitions, set_up, tear_down),
		cmocka_unit_test_setup_teardown(reads_and_writes, set_up, tear_down),
		cmocka_unit_test_setup_teardown(opening_writes_nothing, set_up, tear_down),
	};

	return cmocka_run_group_tests_name("member", tests, NULL, NULL);
}
