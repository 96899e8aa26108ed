/* SPDX-License-Identifier: MIT */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "probe/probe.h"
#include "util/cleanup.h"

#define MIB (1024 * 1024)
#define IMAGE_BYTES (8 * MIB)

static char folder[] = "/tmp/probe-test-XXXXXX";

static int make_folder(void **state)
{
	return mkdtemp(folder) == NULL ? -1 : 0;
}

static int remove_folder(void **state)
{
	char command[sizeof(folder) + 16];

	snprintf(command, sizeof(command), "rm -rf %s", folder);
	return system(command);
}

static char *image(const char *name, off_t size)
{
	char *path;
	int fd;

	assert_true(asprintf(&path, "%s/%s", folder, name) > 0);
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, size), 0);
	close(fd);
	return path;
}

static void put(const char *path, off_t offset, const void *bytes, size_t length)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, bytes, length, offset), length);
	close(fd);
}

static struct member *member(const char *path, unsigned flags)
{
	struct fault fault = {0};
	struct member *m = NULL;

	if (member_open(path, flags, &m, &fault) < 0)
		fail_msg("%s", fault.text);
	return m;
}

/* Run a program on @path; skip the test where it is not installed. */
static void run(const char *format, const char *path)
{
	char command[512];
	int r;

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	snprintf(command, sizeof(command), format, path);
#pragma GCC diagnostic pop
	r = system(command);
	if (r == 127 * 256)
		skip();
	assert_int_equal(r, 0);
}

static struct probe_finding *find(const char *path, unsigned *count)
{
	struct member *m = member(path, MEMBER_READONLY);
	struct probe_finding *findings = NULL;
	struct fault fault = {0};

	if (probe_findings(m, &findings, count, &fault) < 0)
		fail_msg("%s", fault.text);
	member_close(m);
	return findings;
}

static void assert_finding(const char *path, const char *type, uint64_t offset, const char *what)
{
	unsigned count;
	struct probe_finding *findings = find(path, &count);

	for (unsigned i = 0; i < count; i++)
		if (strcmp(findings[i].type, type) == 0 && findings[i].offset_bytes == offset) {
			assert_string_equal(findings[i].what, what);
			probe_findings_free(findings, count);
			return;
		}
	for (unsigned i = 0; i < count; i++)
		print_message("%s at %llu: %s\n", findings[i].type,
			(unsigned long long)findings[i].offset_bytes, findings[i].what);
	fail_msg("no %s at %llu", type, (unsigned long long)offset);
}

static void an_empty_device_has_no_findings(void **state)
{
	_cleanup_free_ char *path = image("empty", IMAGE_BYTES);
	_cleanup_free_ char *tiny = image("tiny", 512);
	unsigned count;
	struct probe_finding *findings = find(path, &count);

	assert_int_equal(count, 0);
	probe_findings_free(findings, count);
	findings = find(tiny, &count);
	assert_int_equal(count, 0);
	probe_findings_free(findings, count);
}

static void signatures_are_found(void **state)
{
	_cleanup_free_ char *swap = image("swap", IMAGE_BYTES);
	_cleanup_free_ char *luks = image("luks", IMAGE_BYTES);
	_cleanup_free_ char *lvm = image("lvm", IMAGE_BYTES);

	put(swap, 1024, "\1\0\0\0\377\1\0\0", 8);
	put(swap, 4086, "SWAPSPACE2", 10);
	assert_finding(swap, "swap", 4086, "swap area");

	put(luks, 0, "LUKS\xba\xbe\0\1", 8);
	assert_finding(luks, "crypto_LUKS", 0, "LUKS encrypted volume");

	/* Label, its sector, checksum left wrong, offset of the header, type. */
	put(lvm, 512, "LABELONE\1\0\0\0\0\0\0\0\0\0\0\0 \0\0\0LVM2 001", 32);
	assert_finding(lvm, "LVM2_member", 536, "LVM physical volume (checksum wrong)");
}

static void file_systems_are_found_with_their_label(void **state)
{
	_cleanup_free_ char *path = image("ext4", IMAGE_BYTES);

	run("mkfs.ext4 -q -L 'my data' %s", path);
	assert_finding(path, "ext4", 1080, "ext4 file system, label \"my data\"");
}

static void partition_tables_are_found(void **state)
{
	_cleanup_free_ char *gpt = image("gpt", IMAGE_BYTES);
	_cleanup_free_ char *dos = image("dos", IMAGE_BYTES);
	static const char zeros[34 * 512];

	run("echo 'label: gpt' | sfdisk -q %s", gpt);
	assert_finding(gpt, "gpt", 512, "GPT partition table");
	assert_finding(gpt, "gpt", IMAGE_BYTES - 512, "GPT partition table (backup)");
	put(gpt, 0, zeros, sizeof(zeros));
	assert_finding(gpt, "gpt", IMAGE_BYTES - 512, "GPT partition table (backup)");

	run("printf 'label: dos\\n,\\n' | sfdisk -q %s", dos);
	assert_finding(dos, "dos", 510, "dos partition table");
}

static void fill_super(struct md_super *super, enum md_version version, uint64_t sectors)
{
	memset(super, 0, sizeof(*super));
	super->version = version;
	for (unsigned i = 0; i < 16; i++)
		super->set_uuid[i] = i;
	if (version != MD_VERSION_0_90)
		strcpy(super->name, "host:data");
	super->ctime = super->utime = 1000 + version;
	super->raid_disks = 2;
	super->chunk_sectors = 128;
	super->resync_offset = MD_CLEAN;
	super->role_count = 128;
	for (unsigned i = 0; i < super->role_count; i++)
		super->roles[i] = i < 2 ? i : MD_ROLE_SPARE;
	assert_int_equal(md_format(version)->location(sectors, &super->super_offset), 0);
	if (version == MD_VERSION_1_1 || version == MD_VERSION_1_2)
		super->data_offset = 2048;
	super->data_sectors = version == MD_VERSION_1_0 || version == MD_VERSION_0_90
				      ? super->super_offset
				      : sectors - 2048;
	super->v090.minor_version = 90;
	super->v090.state = 1;
	super->v090.nr_disks = super->v090.active_disks = super->v090.working_disks = 2;
	for (unsigned i = 0; i < 2; i++)
		super->v090.disks[i] = (struct md_super_090_disk){
			.number = i, .raid_disk = i, .state = 6};
	super->v090.this_disk = super->v090.disks[0];
}

static void superblocks_are_written_found_and_zeroed(void **state)
{
	_cleanup_free_ char *path = image("md", IMAGE_BYTES);
	_cleanup_free_ struct md_super *super = malloc(sizeof(*super));
	_cleanup_free_ struct md_super *back = malloc(sizeof(*back));
	struct fault fault = {0};
	struct member *m = member(path, 0);
	struct probe_finding *findings;
	unsigned count;

	assert_int_equal(probe_read_super(m, back, &fault), -ENODATA);
	assert_non_null(strstr(fault.text, path));
	for (unsigned v = 0; v < MD_VERSIONS; v++) {
		fill_super(super, v, IMAGE_BYTES / 512);
		assert_int_equal(probe_write_super(m, super, &fault), 0);
		assert_int_equal(probe_read_super(m, back, &fault), 0);
		assert_int_equal(back->version, v); /* the newest of those there are */
		assert_memory_equal(back->set_uuid, super->set_uuid, 16);
	}
	assert_finding(path, "md-1.2", 4096,
		"md 1.2 superblock, member of a raid0 array of 2 devices, name \"host:data\"");
	findings = find(path, &count);
	assert_int_equal(count, 4); /* libblkid's words for the same places are not repeated */
	probe_findings_free(findings, count);

	assert_int_equal(probe_zero_supers(m, &fault), 4);
	assert_int_equal(probe_zero_supers(m, &fault), 0);
	member_close(m);
	findings = find(path, &count);
	assert_int_equal(count, 0);
	probe_findings_free(findings, count);
}

/* A partition's superblock may be seen through its disk: zeroing the disk must leave it alone. */
static void a_superblock_of_another_place_is_left_alone(void **state)
{
	_cleanup_free_ char *path = image("disk", IMAGE_BYTES);
	_cleanup_free_ struct md_super *super = malloc(sizeof(*super));
	struct fault fault = {0};
	struct member *m = member(path, 0);
	uint8_t block[MD_SUPER_BYTES], back[MD_SUPER_BYTES];
	uint64_t at;

	fill_super(super, MD_VERSION_1_0, IMAGE_BYTES / 512 - 2048);
	md_format(MD_VERSION_1_0)->encode(super, block);
	assert_int_equal(md_format(MD_VERSION_1_0)->location(IMAGE_BYTES / 512, &at), 0);
	assert_int_equal(member_write(m, at * 512, block, sizeof(block)), 0);

	assert_int_equal(probe_zero_supers(m, &fault), 0);
	assert_int_equal(member_read(m, at * 512, back, sizeof(back)), 0);
	assert_memory_equal(back, block, sizeof(block));
	member_close(m);
}

static void assert_scan(
	char *const *words, unsigned word_count, char *const *expected, unsigned expected_count)
{
	struct fault fault = {0};
	char **paths = NULL;
	unsigned count = 0;

	if (probe_scan(words, word_count, &paths, &count, &fault) < 0)
		fail_msg("%s", fault.text);
	assert_int_equal(count, expected_count);
	for (unsigned i = 0; i < count; i++)
		assert_string_equal(paths[i], expected[i]);
	probe_scan_free(paths, count);
}

static void a_scan_names_each_device_once(void **state)
{
	char dir[128], glob[160], link[160], bracket[160], missing[160];
	_cleanup_free_ char *b = NULL, *a = NULL, *odd = NULL;
	struct fault fault = {0};
	char **paths;
	unsigned count;

	snprintf(dir, sizeof(dir), "%s/scan", folder);
	assert_int_equal(mkdir(dir, 0700), 0);
	b = image("scan/b.img", 512);
	a = image("scan/a.img", 512);
	odd = image("scan/odd[1] name", 512);
	snprintf(glob, sizeof(glob), "%s/*.img", dir);
	snprintf(link, sizeof(link), "%s/link", dir);
	snprintf(bracket, sizeof(bracket), "%s/sub", dir);
	snprintf(missing, sizeof(missing), "%s/none*", dir);
	assert_int_equal(symlink(a, link), 0);
	assert_int_equal(mkdir(bracket, 0700), 0);

	assert_scan((char *[]){glob}, 1, (char *[]){a, b}, 2);
	assert_scan((char *[]){odd}, 1, (char *[]){odd}, 1);
	assert_scan((char *[]){b, a, link, b}, 4, (char *[]){a, b}, 2);
	assert_scan((char *[]){dir}, 1, (char *[]){a, b, odd}, 3);
	assert_int_equal(probe_scan((char *[]){missing}, 1, &paths, &count, &fault), -ENOENT);
	assert_non_null(strstr(fault.text, missing));
}

static void all_partitions_can_be_scanned(void **state)
{
	struct fault fault = {0};
	char **paths;
	unsigned count;
	struct stat st;

	assert_int_equal(probe_scan(NULL, 0, &paths, &count, &fault), 0);
	for (unsigned i = 0; i < count; i++) {
		assert_int_equal(stat(paths[i], &st), 0);
		assert_true(S_ISBLK(st.st_mode));
	}
	probe_scan_free(paths, count);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_empty_device_has_no_findings),
		cmocka_unit_test(signatures_are_found),
		cmocka_unit_test(file_systems_are_found_with_their_label),
		cmocka_unit_test(partition_tables_are_found),
		cmocka_unit_test(superblocks_are_written_found_and_zeroed),
		cmocka_unit_test(a_superblock_of_another_place_is_left_alone),
		cmocka_unit_test(a_scan_names_each_device_once),
		cmocka_unit_test(all_partitions_can_be_scanned),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
