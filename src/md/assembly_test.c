/* SPDX-License-Identifier: MIT */
#include "md/assembly.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "util/cleanup.h"

#define MEMBERS_MAX 4
#define SECTORS 131072u /* of a device; RAID 0 and linear, data from sector 2048 */
#define ELEMENTS(array) (sizeof(array) / sizeof((array)[0]))

/* An array as its members tell it, and what is then done to spoil it. */
struct set {
	struct md_super supers[MEMBERS_MAX];
	struct md_candidate candidates[MEMBERS_MAX];
	unsigned count;
	struct md_assembly_options options;
};

static const char *const paths[MEMBERS_MAX] = {"/dev/a", "/dev/b", "/dev/c", "/dev/d"};

static void place(struct md_super *super, uint64_t sectors)
{
	switch (super->version) {
	case MD_VERSION_0_90:
		super->super_offset = sectors / 128 * 128 - 128;
		super->data_sectors = super->super_offset;
		super->role_count = 27;
		break;
	case MD_VERSION_1_0:
		super->super_offset = (sectors - 16) / 8 * 8;
		super->data_sectors = super->super_offset - 8;
		break;
	default:
		super->super_offset = super->version == MD_VERSION_1_2 ? 8 : 0;
		super->data_offset = 2048;
		super->data_sectors = sectors - 2048;
	}
}

/* @count equal members of a clean array, slot by slot. */
static void set_up(struct set *set, enum md_version version, int level, unsigned count)
{
	memset(set, 0, sizeof(*set));
	set->count = count;
	for (unsigned i = 0; i < count; i++) {
		struct md_super *super = &set->supers[i];

		super->version = version;
		memset(super->set_uuid, 0x11, 16);
		(void)snprintf(super->name, sizeof(super->name), "%s",
			version == MD_VERSION_0_90 ? "" : "host:data");
		super->ctime = super->utime = 1796081516;
		super->level = level;
		super->layout = level == 0 && version != MD_VERSION_0_90 ? 1 : 0;
		super->chunk_sectors = level == 0 ? 128 : 0;
		super->raid_disks = count;
		super->resync_offset = MD_CLEAN;
		super->dev_number = i;
		memset(super->device_uuid, 0x20 + (int)i, 16);
		super->role_count = 128;
		for (unsigned role = 0; role < MD_ROLES_MAX; role++)
			super->roles[role] = role < count ? (uint16_t)role : MD_ROLE_SPARE;
		place(super, SECTORS);
		set->candidates[i] = (struct md_candidate){paths[i], SECTORS, super};
	}
}

/* Make one member's device larger by @more sectors. */
static void enlarge(struct set *set, unsigned index, uint64_t more)
{
	set->candidates[index].device_sectors += more;
	place(&set->supers[index], SECTORS + more);
}

static void record_layout(struct set *set, uint32_t layout)
{
	for (unsigned i = 0; i < set->count; i++) {
		set->supers[i].feature_map |= MD_FEATURE_RAID0_LAYOUT;
		set->supers[i].layout = layout;
	}
}

static int assemble(struct set *set, struct md_assembly *array, struct fault *fault)
{
	*fault = (struct fault){0};
	return md_assemble(set->candidates, set->count, &set->options, array, fault);
}

/* Levels × versions × members × order in which the devices are named: all fit together. */
static void check_good(enum md_version version, int level, unsigned count, unsigned turn)
{
	struct set set;
	_cleanup_free_ struct md_assembly *array = malloc(sizeof(*array));
	struct md_candidate turned[MEMBERS_MAX];
	struct fault fault;

	assert_non_null(array);
	set_up(&set, version, level, count);
	for (unsigned i = 0; i < count; i++)
		turned[i] = set.candidates[(i + turn) % count];
	memcpy(set.candidates, turned, sizeof(turned));
	assert_int_equal(assemble(&set, array, &fault), 0);
	assert_int_equal(fault.error, 0);
	assert_int_equal(array->slot_count, count);
	assert_int_equal(array->missing_count, 0);
	assert_int_equal(array->level, level);
	assert_int_equal(array->layout, GEOMETRY_RAID0_UNKNOWN);
	assert_int_equal(array->chunk_bytes, level == 0 ? 65536 : 0);
	for (unsigned slot = 0; slot < count; slot++) {
		const struct md_super *super = &set.supers[slot];

		assert_ptr_equal(set.candidates[array->slots[slot].candidate].super, super);
		assert_int_equal(array->slots[slot].data_bytes, super->data_sectors * 512);
		assert_int_equal(array->slots[slot].data_offset_bytes, super->data_offset * 512);
	}
	assert_int_equal(array->slots[count].candidate, -1);
	assert_int_equal(array->device_count, count);
	assert_int_equal(array->in_sync_count, count);
	assert_true(array->clean && !array->degraded);
}

static void test_good(void **state)
{
	for (unsigned version = 0; version < MD_VERSIONS; version++)
		for (int level = -1; level <= 0; level++)
			for (unsigned count = 1; count <= MEMBERS_MAX; count++)
				for (unsigned turn = 0; turn < count; turn++)
					check_good((enum md_version)version, level, count, turn);
}

/* Ways to spoil an array of three members. */
static void other_uuid(struct set *s)
{
	memset(s->supers[2].set_uuid, 0x99, 16);
	memcpy(s->supers[2].name, "host:home", 10);
}

static void other_level(struct set *s)
{
	s->supers[1].level = s->supers[1].level == 0 ? -1 : 0;
}

static void other_chunk(struct set *s)
{
	s->supers[1].chunk_sectors = 256;
}

static void other_count(struct set *s)
{
	s->supers[1].raid_disks = 4;
	s->supers[1].chunk_sectors = 1024;
}

static void other_version(struct set *s)
{
	s->supers[2].version = s->supers[2].version == MD_VERSION_1_1 ? MD_VERSION_1_2
								      : MD_VERSION_1_1;
}

static void half_layout(struct set *s)
{
	s->supers[1].feature_map = MD_FEATURE_RAID0_LAYOUT;
	s->supers[1].layout = 2;
}

static void events_2(struct set *s)
{
	s->supers[1].events += 2;
	s->supers[1].utime += 60;
	s->supers[1].resync_offset = 0;
}

static void events_1(struct set *s)
{
	s->supers[1].events += 1;
}

static void events_2_forced(struct set *s)
{
	events_2(s);
	s->options.force = true;
}

static void uuid_forced(struct set *s)
{
	other_uuid(s);
	s->options.force = true;
}

static void missing_1(struct set *s)
{
	s->candidates[1] = s->candidates[2];
	s->count = 2;
}

static void missing_0_2(struct set *s)
{
	s->candidates[0] = s->candidates[1];
	s->count = 1;
}

static void only_spare(struct set *s)
{
	s->supers[2].dev_number = 7;
}

static void faulty(struct set *s)
{
	s->supers[0].roles[0] = MD_ROLE_FAULTY;
}

static void same_slot(struct set *s)
{
	s->supers[2].dev_number = 0;
}

static void same_device(struct set *s)
{
	s->candidates[2].super = s->candidates[0].super;
}

static void slot_too_high(struct set *s)
{
	s->supers[2].roles[2] = 3;
}

static void too_long(struct set *s)
{
	s->candidates[1].device_sectors -= 1000;
}

static void huge(struct set *s)
{
	s->supers[1].data_sectors = UINT64_MAX - 100;
}

static void huge_offset(struct set *s)
{
	s->supers[1].data_offset = UINT64_MAX - 100;
}

static void tiny(struct set *s)
{
	s->supers[1].data_sectors = s->supers[1].level == 0 ? 127 : 0;
}

static void no_chunk(struct set *s)
{
	for (unsigned i = 0; i < 3; i++)
		s->supers[i].chunk_sectors = 0;
}

static void giant_chunk(struct set *s)
{
	for (unsigned i = 0; i < 3; i++)
		s->supers[i].chunk_sectors = 1 << 23;
}

static void giant_count(struct set *s)
{
	for (unsigned i = 0; i < 3; i++)
		s->supers[i].raid_disks = UINT32_MAX;
}

static void no_count(struct set *s)
{
	for (unsigned i = 0; i < 3; i++)
		s->supers[i].raid_disks = 0;
}

static void multipath(struct set *s)
{
	for (unsigned i = 0; i < 3; i++)
		s->supers[i].level = -4;
	s->supers[1].events = 40; /* ordinary there */
}

static void reshape(struct set *s)
{
	s->supers[0].feature_map = s->supers[1].feature_map = MD_FEATURE_RESHAPE;
}

static void unequal(struct set *s)
{
	enlarge(s, 1, 4096);
}

static void unequal_unknown(struct set *s)
{
	unequal(s);
	record_layout(s, 7);
}

static void unequal_zero(struct set *s)
{
	unequal(s);
	record_layout(s, 0);
}

static void unequal_other(struct set *s)
{
	unequal(s);
	record_layout(s, 1);
	s->options.raid0_layout = 2;
}

static void nobody(struct set *s)
{
	s->count = 0;
}

enum { LINEAR = 1, RAID0 = 2, BOTH = 3 };
#define V(version) (1u << (version))
#define V1 (V(MD_VERSION_1_0) | V(MD_VERSION_1_1) | V(MD_VERSION_1_2))
#define ALL (V1 | V(MD_VERSION_0_90))

static const struct {
	const char *name;
	void (*spoil)(struct set *set);
	unsigned levels, versions;
	int error;
	const char *words[6];
} rows[] = {
	{"two arrays", other_uuid, BOTH, V1, -EUCLEAN,
		{"two different arrays", "/dev/a", "/dev/c", "host:home",
			"99999999:99999999:99999999:99999999", "--uuid"}},
	{"two arrays 0.90", other_uuid, BOTH, V(MD_VERSION_0_90), -EUCLEAN,
		{"two different arrays", "/dev/a", "/dev/c", "11111111:11111111"}},
	{"two arrays, forced", uuid_forced, BOTH, ALL, -EUCLEAN, {"two different arrays"}},
	{"level", other_level, BOTH, ALL, -EUCLEAN,
		{"/dev/a and /dev/b contradict", "level ", "linear", "raid0", "--examine"}},
	{"chunk", other_chunk, BOTH, ALL, -EUCLEAN,
		{"/dev/a and /dev/b contradict", "chunk sectors", "and 256"}},
	{"count", other_count, BOTH, ALL, -EUCLEAN,
		{"/dev/a and /dev/b contradict", "raid devices 3 and 4", "and 1024, raid"}},
	{"version", other_version, BOTH, ALL, -EUCLEAN,
		{"/dev/a and /dev/c contradict", ": version "}},
	{"layout", half_layout, RAID0, V1, -EUCLEAN,
		{"/dev/a and /dev/b contradict", "layout 0 and 2"}},
	{"events", events_2, BOTH, ALL, -EUCLEAN,
		{"event counts conflict: /dev/b has events 2, /dev/a has events 0",
			"update time 1796081576 and 1796081516", "state active and clean",
			"--examine", "--force"}},
	{"events, forced", events_2_forced, BOTH, ALL, 0, {NULL}},
	{"events off by one", events_1, BOTH, ALL, 0, {NULL}},
	{"one missing", missing_1, BOTH, V1, -ENODEV,
		{"array host:data", "2 of 3", "need all 3 to start it", "missing slot 1;",
			"11111111:11111111:11111111:11111111", "name it too"}},
	{"one missing 0.90", missing_1, BOTH, V(MD_VERSION_0_90), -ENODEV,
		{"array 11111111:11111111:11111111:11111111", "need all 3 to start it"}},
	{"two missing", missing_0_2, BOTH, ALL, -ENODEV,
		{"1 of 3", "need all 3", "missing slots 0, 2;"}},
	{"spare", only_spare, BOTH, ALL, -ENODEV,
		{"missing slot 2;", "/dev/c is a spare device and fills no slot"}},
	{"faulty", faulty, BOTH, ALL, -ENODEV,
		{"missing slot 0;", "/dev/a is a faulty device and fills no slot"}},
	{"one slot twice", same_slot, BOTH, ALL, -EUCLEAN,
		{"/dev/a and /dev/c both claim slot 0", "name only one"}},
	{"the same device twice", same_device, BOTH, V1, -EUCLEAN,
		{"/dev/a and /dev/c both claim slot 0", "same device UUID"}},
	{"slot too high", slot_too_high, BOTH, ALL, -EUCLEAN,
		{"/dev/c", "slot 3 of an array of 3", "--examine"}},
	{"device cut short", too_long, BOTH, ALL, -EUCLEAN,
		{"/dev/b", "claims more space than the device has", "cut short"}},
	{"huge size", huge, BOTH, ALL, -EUCLEAN, {"/dev/b", "claims more space"}},
	{"huge offset", huge_offset, BOTH, ALL, -EUCLEAN, {"/dev/b", "claims more space"}},
	{"no data", tiny, BOTH, ALL, -EUCLEAN, {"/dev/b", "less than one chunk"}},
	{"chunk 0", no_chunk, RAID0, ALL, -EUCLEAN, {"/dev/a", "chunk of 0 sectors"}},
	{"no rounding", no_chunk, LINEAR, ALL, 0, {NULL}},
	{"giant chunk", giant_chunk, BOTH, ALL, -EUCLEAN, {"/dev/a", "chunk of 8388608 sectors"}},
	{"giant count", giant_count, BOTH, ALL, -EUCLEAN, {"/dev/a", "4294967295 raid devices"}},
	{"no members", no_count, BOTH, ALL, -EUCLEAN, {"/dev/a", "0 raid devices"}},
	{"multipath", multipath, BOTH, ALL, -EOPNOTSUPP,
		{"not yet supported: level multipath", "/dev/b"}},
	{"reshape", reshape, BOTH, ALL, -EOPNOTSUPP, {"not yet supported: a reshape", "/dev/a"}},
	{"unequal linear", unequal, LINEAR, ALL, 0, {NULL}},
	{"unequal", unequal, RAID0, ALL, -EUCLEAN,
		{"unequal size", "\"original\"", "\"alternate\"", "--layout=original",
			"--layout=alternate", "--update=layout-original"}},
	{"unequal, layout 7", unequal_unknown, RAID0, V1, -EUCLEAN, {"/dev/a", "layout 7"}},
	{"unequal, layout 0", unequal_zero, RAID0, V1, -EUCLEAN, {"--layout=original"}},
	{"unequal, other layout", unequal_other, RAID0, V1, -EUCLEAN,
		{"/dev/a", "records RAID 0 layout original", "alternate was asked"}},
	{"nobody", nobody, BOTH, ALL, -EINVAL, {"no device with a superblock", "--scan"}},
};

static void check_row(size_t row, enum md_version version, int level)
{
	struct set set;
	_cleanup_free_ struct md_assembly *array = malloc(sizeof(*array));
	struct fault fault;
	int result;

	assert_non_null(array);
	set_up(&set, version, level, 3);
	rows[row].spoil(&set);
	result = assemble(&set, array, &fault);
	print_message("%s, %s, level %d: %d %s\n", rows[row].name, md_format(version)->name, level,
		result, fault.text);
	assert_int_equal(result, rows[row].error);
	assert_int_equal(fault.error, rows[row].error);
	for (size_t w = 0; w < ELEMENTS(rows[row].words) && rows[row].words[w] != NULL; w++)
		assert_non_null(strstr(fault.text, rows[row].words[w]));
}

static void test_rows(void **state)
{
	for (size_t row = 0; row < ELEMENTS(rows); row++)
		for (unsigned version = 0; version < MD_VERSIONS; version++) {
			if ((rows[row].versions & V(version)) == 0)
				continue;
			if ((rows[row].levels & LINEAR) != 0)
				check_row(row, (enum md_version)version, -1);
			if ((rows[row].levels & RAID0) != 0)
				check_row(row, (enum md_version)version, 0);
		}
}

/* What is recorded and what is asked, with one zone and with several (specification 7.3). */
static void test_layouts(void **state)
{
	static const struct {
		bool zones, recorded, force;
		uint32_t on_disk, asked;
		int result;
		uint32_t layout;
	} grid[] = {
		{false, false, false, 1, 0, 0, 0},
		{false, false, false, 1, 2, 0, 0},
		{false, true, false, 1, 0, 0, 1},
		{false, true, false, 2, 1, 0, 2},
		{true, false, false, 1, 0, -EUCLEAN, 0}, /* the field without the bit is ignored */
		{true, false, false, 1, 1, 0, 1},
		{true, false, false, 1, 2, 0, 2},
		{true, true, false, 1, 0, 0, 1},
		{true, true, false, 2, 0, 0, 2},
		{true, true, false, 2, 2, 0, 2},
		{true, true, false, 2, 1, -EUCLEAN, 2},
		{true, true, true, 2, 1, 0, 1},
		{true, true, false, 0, 2, 0, 2},
		{true, true, false, 3, 2, -EUCLEAN, 3},
	};
	struct md_assembly *array = test_malloc(sizeof(*array));
	struct fault fault;
	struct set set;

	for (size_t i = 0; i < ELEMENTS(grid); i++) {
		print_message("layout row %zu\n", i);
		set_up(&set, MD_VERSION_1_2, 0, 3);
		enlarge(&set, 2, grid[i].zones ? 128 : 127); /* a chunk, or just not */
		if (grid[i].recorded)
			record_layout(&set, grid[i].on_disk);
		set.options.raid0_layout = grid[i].asked;
		set.options.force = grid[i].force;
		assert_int_equal(assemble(&set, array, &fault), grid[i].result);
		assert_int_equal(array->layout, grid[i].layout);
	}
	set_up(&set, MD_VERSION_0_90, 0, 3);
	enlarge(&set, 2, 128);
	set.options.raid0_layout = GEOMETRY_RAID0_ALTERNATE;
	assert_int_equal(assemble(&set, array, &fault), 0);
	assert_int_equal(array->layout, GEOMETRY_RAID0_ALTERNATE);
	test_free(array);
}

/*
 * Version 0.90 on members of 5 TiB: linear stops at 4 TiB less a KiB (seen with Linux 6.1), RAID 0
 * does not (by the kernel's rule, level >= 1; mdadm makes no such array to try it on).
 */
static void test_limit_090(void **state)
{
	const uint64_t sectors = UINT64_C(10737418240);
	struct md_assembly *array = test_malloc(sizeof(*array));
	struct fault fault;
	struct set set;

	for (int level = -1; level <= 0; level++) {
		set_up(&set, MD_VERSION_0_90, level, 2);
		enlarge(&set, 0, sectors - SECTORS);
		enlarge(&set, 1, sectors - SECTORS);
		assert_int_equal(assemble(&set, array, &fault), 0);
		/* As seen: two such members make a linear array of 17179869180 sectors. */
		assert_true(array->slots[1].data_bytes / 512 ==
			    (level == 0 ? sectors - 128 : UINT64_C(17179869180) / 2));
	}
	test_free(array);
}

/* The freshest member speaks for the array; the largest logical block holds. */
static void test_array_facts(void **state)
{
	struct md_assembly *array = test_malloc(sizeof(*array));
	struct fault fault;
	struct set set;

	set_up(&set, MD_VERSION_1_2, -1, 3);
	set.supers[2].events = 1;
	set.supers[1].logical_block_bytes = 4096;
	for (unsigned i = 0; i < 3; i++)
		set.supers[i].chunk_sectors = 128;
	assert_int_equal(assemble(&set, array, &fault), 0);
	assert_ptr_equal(array->super, &set.supers[2]);
	assert_int_equal(array->logical_block_bytes, 4096);
	assert_int_equal(array->chunk_bytes, 65536);
	/* Before rounding: geometry rounds. */
	assert_int_equal(array->slots[0].data_bytes, (SECTORS - 2048) * 512);
	test_free(array);
}

/* A message of many missing slots stays readable. */
static void test_many_missing(void **state)
{
	struct md_assembly *array = test_malloc(sizeof(*array));
	struct fault fault;
	struct set set;

	set_up(&set, MD_VERSION_1_2, 0, 1);
	set.supers[0].raid_disks = 1920;
	assert_int_equal(assemble(&set, array, &fault), -ENODEV);
	assert_int_equal(array->missing_count, 1919);
	assert_non_null(strstr(fault.text, "missing slots 1, 2, 3,"));
	assert_non_null(strstr(fault.text, "16 and 1903 more;"));
	test_free(array);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_good),
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_layouts),
		cmocka_unit_test(test_limit_090),
		cmocka_unit_test(test_array_facts),
		cmocka_unit_test(test_many_missing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
