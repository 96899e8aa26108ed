/* SPDX-License-Identifier: MIT */
/* Assembly of RAID 1, 4, 5, 6 and 10 in the middle of a rebuild, of a replacement, and by force. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "md/assembly_rig.h"

static void test_rebuilding(void **state)
{
	struct set *set = test_malloc(sizeof(*set));

	/* RAID 5, slot 2 being rebuilt on device 4, which was the spare. */
	set_up(set, MD_VERSION_1_2, 5, 2, 4, 1);
	for (unsigned i = 0; i < 5; i++) {
		set_role(&set->supers[i], 2, MD_ROLE_FAULTY);
		set_role(&set->supers[i], 4, 2);
	}
	set->supers[2].events = 10;
	set_role(&set->supers[2], 2, 2);
	set_role(&set->supers[2], 4, MD_ROLE_SPARE);
	set->supers[4].feature_map = MD_FEATURE_RECOVERY_OFFSET | MD_FEATURE_RECOVERY_BITMAP;
	set->supers[4].recovery_offset = 1024;
	check(set, "rebuilding", 0, NULL);
	assert_true(set->array.degraded);
	assert_int_equal(set->array.in_sync_count, 3);
	assert_int_equal(set->array.missing_count, 0);
	assert_int_equal(set->array.slots[2].candidate, 4);
	assert_false(find_device(set, 4)->in_sync);
	assert_int_equal(find_device(set, 4)->recovery_offset_bytes, 1024 * 512);
	assert_true(was_rejected(set, 2, MD_REJECTED_STALE));

	set->supers[4].recovery_offset = SIZE + 1; /* nonsense: begin again */
	check(set, "checkpoint beyond the end", 0, NULL);
	assert_int_equal(find_device(set, 4)->recovery_offset_bytes, 0);

	all_dirty(set);
	check(set, "dirty while rebuilding", -EUCLEAN, "slot 2 (being rebuilt)");

	set->supers[0].events = 12; /* one more has left: the stale one must not come in for it */
	set->options.force = true;
	check(set, "forced while rebuilding", 0, NULL);
	assert_true(was_rejected(set, 2, MD_REJECTED_STALE));
	assert_int_equal(set->array.in_sync_count, 3);
	assert_true(find_device(set, 0)->in_sync);

	keep(set, 0x1e, false); /* not even if the array cannot start otherwise */
	check(set, "forced, and too few", -ENODEV, "missing slots 0, 2 (being rebuilt);");
	assert_true(was_rejected(set, 2, MD_REJECTED_STALE));
	test_free(set);
}

/* The last update gave the spare a slot, and did not reach the spare's own superblock. */
static void test_spare_in_slot(void **state)
{
	struct set *set = test_malloc(sizeof(*set));

	for (unsigned behind = 0; behind < 3; behind++) {
		set_up(set, MD_VERSION_1_2, 1, 0, 2, 1);
		for (unsigned i = 0; i < 2; i++)
			set_role(&set->supers[i], 2, 1),
				set_role(&set->supers[i], 1, MD_ROLE_FAULTY);
		set->supers[2].events -= behind;
		keep(set, 5, false);
		set->options.run = true;
		check(set, "spare", 0, NULL);
		assert_int_equal(find_device(set, 2)->slot, behind == 1 ? 1 : MD_ROLE_SPARE);
		assert_false(find_device(set, 2)->in_sync);
		assert_int_equal(find_device(set, 2)->recovery_offset_bytes, 0);
		assert_int_equal(set->array.in_sync_count, 1);
	}
	test_free(set);
}

/* The update that gave the former spare its slot did not reach all: who missed it is a member. */
static void test_cut_short(void **state)
{
	struct set *set = test_malloc(sizeof(*set));

	for (unsigned reverse = 0; reverse < 2; reverse++) {
		set_up(set, MD_VERSION_1_2, 5, 2, 3, 1);
		for (unsigned i = 0; i < 4; i++) {
			set_role(&set->supers[i], 2, MD_ROLE_SPARE);
			if (i != 1)
				set_role(&set->supers[i], 3, 2);
		}
		set->supers[1].events -= 1;
		set->supers[3].feature_map = MD_FEATURE_RECOVERY_OFFSET;
		keep(set, 0xb, reverse != 0);
		check(set, "cut short", 0, NULL);
		assert_int_equal(set->array.in_sync_count, 2);
		assert_int_equal(find_device(set, 3)->slot, 2);
		assert_int_equal(set->array.rejected_count, 0);
	}
	test_free(set);
}

static void test_replacement(void **state)
{
	struct set *set = test_malloc(sizeof(*set));

	for (unsigned done = 0; done < 2; done++)
		for (unsigned alone = 0; alone < 2; alone++) {
			const bool starts = !alone || done;

			set_up(set, MD_VERSION_1_2, 1, 0, 2, 1);
			for (unsigned i = 0; i < 3; i++)
				set_role(&set->supers[i], 2, 0);
			set->supers[2].feature_map = MD_FEATURE_REPLACEMENT;
			if (!done)
				set->supers[2].feature_map |= MD_FEATURE_RECOVERY_OFFSET;
			keep(set, alone ? 4 : 7, false);
			set->options.run = true;
			check(set, "replacement", starts ? 0 : -ENODEV, NULL);
			assert_int_equal(find_device(set, 2)->replacement, !alone);
			assert_int_equal(find_device(set, 2)->slot, 0);
			assert_int_equal(find_device(set, 2)->in_sync, done);
			assert_int_equal(set->array.slots[0].candidate, 0);
			assert_int_equal(set->array.slots[0].replacement, alone ? -1 : 2);
			assert_int_equal(set->array.in_sync_count, alone ? done : 2);
		}
	test_free(set);
}

/* RAID 5 of 4: C left at 20, then B at 30, while A and D went on to 32. */
static void set_up_lost(struct set *set, enum md_version version)
{
	set_up(set, version, 5, 2, 4, 0);
	leave(set, 2, 30, MD_ROLE_FAULTY);
	leave(set, 1, 32, MD_ROLE_FAULTY);
}

static void check_forced(struct set *set)
{
	static const enum md_change what[] = {
		MD_CHANGE_ROLE, MD_CHANGE_ROLE, MD_CHANGE_EVENTS, MD_CHANGE_CLEAN, MD_CHANGE_CLEAN};
	static const char *const texts[] = {
		"clearing FAULTY flag for device 1 in /dev/a: it has slot 1 there",
		"clearing FAULTY flag for device 1 in /dev/d: it has slot 1 there",
		"forcing event count in /dev/b (slot 1) from 30 up to 32",
		"marking array as 'clean' in /dev/a:",
		"marking array as 'clean' in /dev/d:",
	};

	assert_int_equal(set->array.in_sync_count, 3);
	assert_true(was_rejected(set, 2, MD_REJECTED_STALE));
	assert_true(set->array.clean && set->array.resync_offset_bytes == MD_CLEAN);
	assert_int_equal(set->array.change_count, 5);
	for (unsigned i = 0; i < 5; i++) {
		char text[MD_ASSEMBLY_LINE_MAX];

		assert_int_equal(set->array.changes[i].what, what[i]);
		assert_non_null(strstr(
			md_change_text(set->candidates, &set->array.changes[i], text), texts[i]));
	}
}

/* Of the changes of force the first @done are written; then power fails. */
static void check_cut(struct set *set, enum md_version version, unsigned done)
{
	struct md_assembly_change changes[8];
	unsigned count;

	set_up_lost(set, version);
	set->supers[0].resync_offset = set->supers[3].resync_offset = 0;
	set->options.force = true;
	check(set, "forced", 0, NULL);
	check_forced(set);
	count = set->array.change_count;
	memcpy(changes, set->array.changes, count * sizeof(*changes));
	for (unsigned i = 0; i < done; i++)
		md_change_apply(&changes[i], &set->supers[changes[i].candidate]);
	if (done < count) {
		set->options.force = true;
		check(set, "again", 0, NULL);
		for (unsigned i = 0; i < set->array.change_count; i++)
			md_change_apply(&set->array.changes[i],
				&set->supers[set->array.changes[i].candidate]);
	}
	set->options.force = false;
	check(set, "afterwards, by itself", 0, NULL);
	assert_int_equal(set->array.in_sync_count, 3);
	assert_true(set->array.clean);
	assert_true(was_rejected(set, 2, MD_REJECTED_STALE));
}

static void test_force(void **state)
{
	struct set *set = test_malloc(sizeof(*set));

	for (unsigned version = 0; version < MD_VERSIONS; version++) {
		set_up_lost(set, (enum md_version)version);
		check(set, "two lost", -ENODEV, "--force takes");
		assert_non_null(strstr(set->fault.text, "2 of 4 members of level raid5"));
		assert_non_null(strstr(set->fault.text, "missing slots 1, 2;"));
		assert_non_null(strstr(set->fault.text, "kicking non-fresh /dev/b (events 30"));
		set->options.run = true;
		check(set, "run is not enough", -ENODEV, NULL);
		for (unsigned done = 0; done <= 5; done++)
			check_cut(set, (enum md_version)version, done);
	}
	test_free(set);
}

/* What force wrote is whole: encoded and decoded again it is the same. */
static void test_change_encodes(void **state)
{
	struct set *set = test_malloc(sizeof(*set));
	struct md_super *again = test_malloc(sizeof(*again));
	uint8_t *block = test_malloc(MD_SUPER_BYTES);

	set_up_lost(set, MD_VERSION_0_90);
	set->options.force = true;
	set->supers[0].resync_offset = set->supers[3].resync_offset = 0;
	check(set, "forced 0.90", 0, NULL);
	for (unsigned i = 0; i < set->array.change_count; i++)
		md_change_apply(
			&set->array.changes[i], &set->supers[set->array.changes[i].candidate]);
	set->supers[0].v090.this_disk = set->supers[0].v090.disks[0];
	md_format(MD_VERSION_0_90)->encode(&set->supers[0], block);
	assert_int_equal(md_format(MD_VERSION_0_90)
				 ->decode(block, SECTORS - 128, SECTORS, again, &set->fault),
		0);
	assert_int_equal(again->roles[1], 1);
	assert_int_equal(again->roles[2], MD_ROLE_FAULTY);
	assert_true(again->resync_offset == MD_CLEAN);
	test_free(block);
	test_free(again);
	test_free(set);
}

/* Three of six leave together: all of the vintage come back, what left before does not. */
static void test_vintage(void **state)
{
	struct set *set = test_malloc(sizeof(*set));

	set_up(set, MD_VERSION_1_2, 6, 2, 6, 0);
	leave(set, 5, 40, MD_ROLE_FAULTY);
	for (unsigned i = 0; i < 2; i++) {
		set->supers[i].events = 44;
		for (unsigned j = 2; j < 5; j++)
			set_role(&set->supers[i], j, MD_ROLE_FAULTY);
	}
	set->options.force = true;
	check(set, "vintage", 0, NULL);
	assert_int_equal(set->array.in_sync_count, 5);
	assert_int_equal(set->array.change_count, 2 * 3 + 3);
	assert_true(was_rejected(set, 5, MD_REJECTED_STALE) ||
		    was_rejected(set, 5, MD_REJECTED_SPLIT_BRAIN));
	test_free(set);
}

/*
 * RAID 5 of 4: B just left; C went on alone for a while and says that A has failed. Force takes B,
 * in whatever order they are named and however far C got; C only if there is no other way.
 */
static void test_force_split(void **state)
{
	struct set *set = test_malloc(sizeof(*set));

	for (unsigned ahead = 0; ahead < 3; ahead++)
		for (unsigned reverse = 0; reverse < 2; reverse++)
			for (unsigned alone = 0; alone < 2; alone++) {
				set_up(set, MD_VERSION_1_2, 5, 2, 4, 0);
				set->supers[0].events = set->supers[3].events = 30;
				set->supers[2].events += ahead;
				set_role(&set->supers[2], 0, MD_ROLE_FAULTY);
				set->options.force = true;
				keep(set, alone ? 0xd : 0xf, reverse != 0);
				check(set, "force and split", 0, NULL);
				assert_int_equal(set->array.in_sync_count, 3);
				assert_true(find_device(set, alone ? 2 : 1)->in_sync);
				if (!alone)
					assert_true(was_rejected(set, 2, MD_REJECTED_SPLIT_BRAIN));
			}
	test_free(set);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rebuilding),
		cmocka_unit_test(test_spare_in_slot),
		cmocka_unit_test(test_cut_short),
		cmocka_unit_test(test_replacement),
		cmocka_unit_test(test_force),
		cmocka_unit_test(test_change_encodes),
		cmocka_unit_test(test_vintage),
		cmocka_unit_test(test_force_split),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
