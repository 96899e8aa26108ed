/* SPDX-License-Identifier: MIT */
/*
 * The members that the real md wrote (tests/golden/supers.txt), array by array: the result is what
 * md made of them. Argument: that file.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "md/assembly.h"
#include "md/golden.h"

#define MEMBERS_MAX 4u

struct set {
	char array[64];
	unsigned count;
	struct md_super supers[MEMBERS_MAX];
	char paths[MEMBERS_MAX][64];
	struct md_candidate candidates[MEMBERS_MAX];
	struct md_assembly assembly;
	struct fault fault;
};

/* Those that are not simply whole: what comes out, as what, and how many are in sync. */
static const struct {
	const char *array;
	int result;
	unsigned in_sync, slots, devices, rejected;
} others[] = {
	{"raid1-missing-0.90", 0, 1, 2, 1, 0},
	{"raid1-missing-1.0", 0, 1, 2, 1, 0},
	{"raid1-missing-1.1", 0, 1, 2, 1, 0},
	{"raid1-missing-1.2", 0, 1, 2, 1, 0},
	{"raid1-faulty", 0, 1, 2, 1, 1},
	{"raid1-faulty-0.90", 0, 1, 2, 1, 1},
	{"raid1-rebuilding", 0, 1, 2, 2, 0},
	{"raid5-journal", -EOPNOTSUPP, 0, 0, 0, 0},
	{"raid5-ppl", -EOPNOTSUPP, 0, 0, 0, 0},
};
#define OTHERS (sizeof(others) / sizeof(others[0]))

static size_t find_other(const char *array)
{
	size_t i = 0;

	while (i < OTHERS && strcmp(others[i].array, array) != 0)
		i++;
	return i;
}

static void check_set(struct set *set)
{
	const struct md_assembly_options options = {.force = false};
	const size_t other = find_other(set->array);
	const struct md_assembly *assembly = &set->assembly;
	int result = md_assemble(
		set->candidates, set->count, &options, &set->assembly, &set->fault);

	print_message("%s: %d, %u of %u in sync, %u devices, %u ignored, %s %s\n", set->array,
		result, assembly->in_sync_count, assembly->slot_count, assembly->device_count,
		assembly->rejected_count, assembly->clean ? "clean" : "dirty",
		result < 0 ? set->fault.text : "");
	assert_int_equal(result, other < OTHERS ? others[other].result : 0);
	if (result < 0)
		return;
	assert_int_equal(assembly->slot_count, set->supers[0].raid_disks);
	assert_int_equal(assembly->clean, set->supers[0].resync_offset == MD_CLEAN);
	if (other < OTHERS) {
		assert_int_equal(assembly->in_sync_count, others[other].in_sync);
		assert_int_equal(assembly->slot_count, others[other].slots);
		assert_int_equal(assembly->device_count, others[other].devices);
		assert_int_equal(assembly->rejected_count, others[other].rejected);
		return;
	}
	assert_int_equal(assembly->in_sync_count, assembly->slot_count);
	assert_int_equal(assembly->device_count, set->count);
	assert_int_equal(assembly->rejected_count, 0);
}

static void add(struct set *set, const struct golden *golden, unsigned version)
{
	struct md_super *super = &set->supers[set->count];

	assert_in_range(set->count, 0, MEMBERS_MAX - 1);
	assert_int_equal(
		md_format((enum md_version)version)
			->decode(golden->block, golden->at, golden->sectors, super, &set->fault),
		0);
	memcpy(set->paths[set->count], golden->name, sizeof(golden->name));
	set->candidates[set->count] = (struct md_candidate){
		set->paths[set->count], golden->sectors, super};
	set->count++;
}

static unsigned find_version(const struct golden *golden)
{
	struct md_super *super = test_malloc(sizeof(*super));
	struct fault fault;
	unsigned version = 0;

	while (version < MD_VERSIONS &&
		md_format((enum md_version)version)
				->decode(golden->block, golden->at, golden->sectors, super,
					&fault) != 0)
		version++;
	test_free(super);
	return version;
}

static void test_golden(void **state)
{
	struct set *set = test_calloc(1, sizeof(*set));
	struct golden *golden = test_calloc(1, sizeof(*golden));
	FILE *file = fopen(*state, "re");
	unsigned arrays = 0;

	assert_non_null(file);
	while (golden_next(file, golden)) {
		char array[64];
		char *dash;

		memcpy(array, golden->name, sizeof(array));
		dash = strrchr(array, '-');
		if (dash != NULL)
			*dash = '\0';
		if (strcmp(array, set->array) != 0) {
			if (set->count > 0)
				check_set(set);
			set->count = 0;
			memcpy(set->array, array, sizeof(array));
			arrays++;
		}
		add(set, golden, find_version(golden));
	}
	check_set(set);
	print_message("%u arrays\n", arrays);
	assert_true(arrays > 50);
	(void)fclose(file);
	test_free(golden);
	test_free(set);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_prestate(test_golden, argc > 1 ? argv[1] : NULL),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
