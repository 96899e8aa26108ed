/* SPDX-License-Identifier: MIT */
/* Assembly of RAID 1, 4, 5, 6 and 10: who takes part, and whether the array may be started. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "md/assembly_rig.h"

/*
 * The independent rule: by hand for each level. RAID 10 near 2: of each chunk's two copies one is
 * there; chunk k of a row lies on slots 2k and 2k + 1 modulo the slots. Far 2 and offset 2: slots
 * d and d + 1 modulo the slots.
 */
struct level {
	const char *name;
	int level;
	uint32_t layout;
	unsigned slots, may_miss; /* may_miss 0: pairs decide */
	unsigned pair_step;
};

static const struct level levels[] = {
	{"raid1 of 2", 1, 0, 2, 1, 0},
	{"raid1 of 3", 1, 0, 3, 2, 0},
	{"raid1 of 5", 1, 0, 5, 4, 0},
	{"raid4", 4, 0, 4, 1, 0},
	{"raid5 of 2", 5, 2, 2, 1, 0},
	{"raid5", 5, 2, 5, 1, 0},
	{"raid5 first parity", 5, 4, 4, 1, 0},
	{"raid6", 6, 2, 6, 2, 0},
	{"raid6 ddf", 6, 8, 4, 2, 0},
	{"raid10 near 2 of 4", 10, 0x102, 4, 0, 2},
	{"raid10 near 2 of 5", 10, 0x102, 5, 0, 1}, /* 0 1, 2 3, 4 0, 1 2, 3 4: every neighbour */
	{"raid10 far 2 of 4", 10, 0x201, 4, 0, 1},
	{"raid10 offset 2 of 5", 10, 0x10201, 5, 0, 1},
};

static bool rule(const struct level *level, unsigned present)
{
	if (level->may_miss > 0)
		return (unsigned)__builtin_popcount(present) >= level->slots - level->may_miss;
	for (unsigned d = 0; d < level->slots; d += level->pair_step)
		if ((present >> d & 1) == 0 && (present >> (d + 1) % level->slots & 1) == 0)
			return false;
	return true;
}

enum subset { PLAIN, RUN, FORCE, DIRTY, DIRTY_RUN, DIRTY_FORCE, KNOWN, SUBSETS };

static bool is_parity(const struct level *level)
{
	return level->level >= 4 && level->level <= 6;
}

/* What has to come out: 0 or the error. @lacks: members are missing. */
static int expect(const struct level *level, enum subset how, unsigned present, bool lacks)
{
	if (present == 0)
		return -EINVAL;
	if (!rule(level, present))
		return -ENODEV;
	if (lacks && is_parity(level) && (how == DIRTY || how == DIRTY_RUN))
		return -EUCLEAN;
	return lacks && (how == PLAIN || how == DIRTY) ? -ENODEV : 0;
}

static void check_subset(struct set *set, const struct level *level, enum md_version version,
	enum subset how, unsigned present)
{
	const unsigned all = (1u << level->slots) - 1;
	const bool dirty = how == DIRTY || how == DIRTY_RUN || how == DIRTY_FORCE;
	int expected = expect(level, how, present, present != all), result;

	set_up(set, version, level->level, level->layout, level->slots, 0);
	set->options.run = how == RUN || how == DIRTY_RUN;
	set->options.force = how == FORCE || how == DIRTY_FORCE;
	if (dirty)
		all_dirty(set);
	for (unsigned i = 0; how == KNOWN && i < level->slots; i++)
		for (unsigned j = 0; j < level->slots; j++)
			if ((present >> j & 1) == 0)
				set_role(&set->supers[i], j, MD_ROLE_SPARE);
	keep(set, present, (present & 2) != 0);
	result = assemble(set);
	if (result != expected)
		print_message("%s, %s, way %d, members %#x: %d instead of %d: %s\n", level->name,
			md_format(version)->name, (int)how, present, result, expected,
			set->fault.text);
	assert_int_equal(result, expected);
	if (result != 0) {
		assert_int_equal(set->fault.error, result);
		return;
	}
	assert_int_equal(set->array.in_sync_count, __builtin_popcount(present));
	assert_int_equal(set->array.degraded, present != all);
	assert_int_equal(set->array.clean,
		!dirty || (how == DIRTY_FORCE && present != all && is_parity(level)));
	for (unsigned i = 0; i < level->slots; i++)
		assert_int_equal(set->array.slots[i].candidate >= 0, present >> i & 1);
}

/* All subsets of members, of all levels and versions, clean and dirty, asked in each way. */
static void test_subsets(void **state)
{
	struct set *set = test_malloc(sizeof(*set));

	for (size_t l = 0; l < ELEMENTS(levels); l++)
		for (unsigned version = 0; version < MD_VERSIONS; version++)
			for (unsigned how = 0; how < SUBSETS; how++)
				for (unsigned present = 0; present < 1u << levels[l].slots;
					present++)
					check_subset(set, &levels[l], (enum md_version)version,
						(enum subset)how, present);
	test_free(set);
}

static void test_facts(void **state)
{
	struct set *set = test_malloc(sizeof(*set));

	set_up(set, MD_VERSION_1_2, 10, 0x102, 4, 1);
	for (unsigned i = 0; i < 5; i++)
		set->supers[i].resync_offset = 4096;
	set->supers[1].devflags = MD_DEVFLAG_WRITE_MOSTLY;
	set->supers[2].devflags = MD_DEVFLAG_FAILFAST;
	set->supers[3].feature_map = MD_FEATURE_BAD_BLOCKS;
	set->supers[4].events = 3;
	check(set, "facts", 0, NULL);
	assert_int_equal(set->array.component_bytes, SIZE * 512);
	assert_int_equal(set->array.resync_offset_bytes, 4096 * 512);
	assert_false(set->array.clean);
	assert_int_equal(set->array.layout, 0x102);
	assert_int_equal(set->array.chunk_bytes, 65536);
	assert_int_equal(set->array.events, EVENTS);
	assert_int_equal(set->array.device_count, 5);
	assert_int_equal(set->array.slots[3].data_offset_bytes, 2048 * 512);
	assert_true(set->array.slots[3].data_bytes == (SECTORS - 2048) * UINT64_C(512));
	assert_true(find_device(set, 1)->write_mostly && !find_device(set, 0)->write_mostly);
	assert_true(find_device(set, 2)->failfast && find_device(set, 3)->has_bad_blocks);
	assert_int_equal(find_device(set, 4)->slot, MD_ROLE_SPARE);
	assert_false(find_device(set, 4)->in_sync);
	test_free(set);
}

/* Events 20: the other is that much behind and is known to be a member, or failed, by the first. */
static void test_skew(void **state)
{
	static const struct {
		unsigned behind, role;
		bool accepted;
		enum md_rejection reason;
	} rows[] = {
		{0, 1, true, 0},
		{1, 1, true, 0},
		{2, 1, false, MD_REJECTED_STALE},
		{20, 1, false, MD_REJECTED_STALE},
		{1, MD_ROLE_FAULTY, false, MD_REJECTED_FAILED},
		{1, MD_ROLE_SPARE, false, MD_REJECTED_FAILED},
		{2, MD_ROLE_FAULTY, false, MD_REJECTED_STALE},
	};
	struct set *set = test_malloc(sizeof(*set));

	for (size_t i = 0; i < ELEMENTS(rows); i++)
		for (unsigned version = 0; version < MD_VERSIONS; version++)
			for (unsigned force = 0; force < 2; force++) {
				set_up(set, (enum md_version)version, 1, 0, 2, 0);
				set->supers[1].events -= rows[i].behind;
				set_role(&set->supers[0], 1, rows[i].role);
				set->options.run = true;
				set->options.force = force != 0;
				check(set, "skew", 0, NULL);
				assert_int_equal(
					set->array.in_sync_count, rows[i].accepted ? 2 : 1);
				assert_int_equal(set->array.change_count, 0);
				if (!rows[i].accepted)
					assert_true(was_rejected(set, 1, rows[i].reason));
			}
	test_free(set);
}

/*
 * Field case 38: A, B and C of a mirror leave one after the other, C last. Of every subset in every
 * order: with C present it speaks; without, who knows of newer members refuses.
 */
static void test_last_writer(void **state)
{
	struct set *set = test_malloc(sizeof(*set));

	for (unsigned present = 1; present < 8; present++)
		for (unsigned reverse = 0; reverse < 2; reverse++)
			for (unsigned removed = 0; removed < 2; removed++) {
				const unsigned how = removed ? MD_ROLE_SPARE : MD_ROLE_FAULTY;
				const bool c = (present & 4) != 0;

				set_up(set, MD_VERSION_1_2, 1, 0, 3, 0);
				leave(set, 0, 22, how);
				leave(set, 1, 24, how);
				assert_int_equal(set->supers[0].events, 20);
				assert_int_equal(set->supers[1].events, 22);
				keep(set, present, reverse != 0);
				check(set, "one after the other", c ? 0 : -ENODEV,
					c ? NULL : "need all");
				if (!c && present == 1)
					assert_non_null(strstr(set->fault.text,
						"/dev/a knows of 2 more active members"));
				if (c)
					assert_int_equal(set->array.slots[2].candidate,
						reverse ? 0 : set->count - 1);
				if (c)
					assert_int_equal(set->array.in_sync_count, 1);
				set->options.run = true; /* the newest that is there */
				check(set, "insisted", 0, NULL);
				assert_int_equal(set->array.in_sync_count, 1);
				assert_int_equal(set->array.events, c ? 24 : present & 2 ? 22 : 20);
			}
	test_free(set);
}

/* Both halves ran alone. The one with more events speaks, whatever is asked; a tie is refused. */
static void test_split_brain(void **state)
{
	struct set *set = test_malloc(sizeof(*set));

	for (unsigned ahead = 0; ahead < 4; ahead++)
		for (unsigned reverse = 0; reverse < 2; reverse++)
			for (unsigned force = 0; force < 2; force++) {
				set_up(set, MD_VERSION_1_2, 1, 0, 2, 0);
				set_role(&set->supers[0], 1, MD_ROLE_FAULTY);
				set_role(&set->supers[1], 0, MD_ROLE_FAULTY);
				set->supers[1].events += ahead;
				set->options.force = force != 0;
				keep(set, 3, reverse != 0);
				if (ahead == 0) {
					check(set, "tie", -EUCLEAN, "without the other");
					set_role(&set->supers[1], 0, 0); /* only one says so */
					check(set, "tie", -EUCLEAN,
						"/dev/a reports /dev/b as failed");
					continue;
				}
				check(set, "split", 0, NULL);
				assert_true(was_rejected(set, 0, MD_REJECTED_SPLIT_BRAIN));
				assert_ptr_equal(set->array.super, &set->supers[1]);
				assert_int_equal(set->array.in_sync_count, 1);
				assert_int_equal(set->array.change_count, 0);
			}
	test_free(set);
}

/* Ways to spoil a RAID 5 of three with a spare; events 20. */
static void journal(struct set *s)
{
	for (unsigned i = 0; i < s->count; i++)
		s->supers[i].feature_map = MD_FEATURE_JOURNAL;
}

static void ppl(struct set *s)
{
	for (unsigned i = 0; i < s->count; i++)
		s->supers[i].feature_map = MD_FEATURE_PPL;
}

static void ppl_read(struct set *s)
{
	ppl(s);
	s->options.readonly = true;
}

static void ppl_dirty_degraded(struct set *s)
{
	ppl_read(s);
	all_dirty(s);
	s->options.run = true;
	s->count = 2;
}

static void read_few(struct set *s)
{
	s->options.readonly = true;
	s->count = 2;
}

static void bitmap(struct set *s)
{
	for (unsigned i = 0; i < s->count; i++)
		s->supers[i].feature_map = MD_FEATURE_BITMAP;
}

static void clustered(struct set *s)
{
	for (unsigned i = 0; i < s->count; i++)
		s->supers[i].feature_map = MD_FEATURE_CLUSTERED;
}

static void reshape(struct set *s)
{
	s->supers[0].feature_map = MD_FEATURE_RESHAPE;
}

static void foreign(struct set *s)
{
	memset(s->supers[1].set_uuid, 0x99, 16);
	s->options.force = true;
}

static void other_layout(struct set *s)
{
	s->supers[1].layout = 0;
}

static void other_layout_stale(struct set *s)
{
	other_layout(s);
	s->supers[1].events = 3;
	s->supers[1].raid_disks = 2;
	s->options.run = true;
}

static void twice(struct set *s)
{
	s->candidates[3] = s->candidates[1];
}

static void older_copy(struct set *s)
{
	s->supers[3] = s->supers[1];
	s->supers[3].events = 19;
}

static void older_first(struct set *s)
{
	s->supers[3] = s->supers[1];
	s->supers[1].events = 19;
}

static void slot_too_high(struct set *s)
{
	for (unsigned i = 0; i < s->count; i++)
		set_role(&s->supers[i], 1, 7);
}

static void no_size(struct set *s)
{
	for (unsigned i = 0; i < s->count; i++)
		s->supers[i].size_sectors = 0;
}

static void odd_layout(struct set *s)
{
	for (unsigned i = 0; i < s->count; i++)
		s->supers[i].layout = 77;
}

static void cut_short(struct set *s)
{
	s->candidates[2].device_sectors = SECTORS - 10000;
}

static void cut_short_run(struct set *s)
{
	cut_short(s);
	s->options.run = true;
}

static void small(struct set *s)
{
	s->supers[2].data_sectors = SIZE - 1;
	s->supers[3].data_sectors = 0;
}

static void stray_spare(struct set *s)
{
	s->supers[3].events += 2;
}

static void spare_ahead(struct set *s)
{
	s->supers[3].events += 1;
}

static void only_spares(struct set *s)
{
	s->candidates[0] = s->candidates[3];
	s->count = 1;
	s->options.force = true;
}

static void faulty(struct set *s)
{
	set_role(&s->supers[2], 2, MD_ROLE_FAULTY);
	s->options.run = true;
}

static void stray_journal(struct set *s)
{
	set_role(&s->supers[3], 3, MD_ROLE_JOURNAL);
}

static void one_dirty(struct set *s)
{
	s->supers[2].resync_offset = 0;
}

static const struct {
	const char *name;
	void (*spoil)(struct set *set);
	int error;
	const char *words;
	int rejected; /* index of the super that is rejected with @reason, -1 for none */
	enum md_rejection reason;
} rows[] = {
	{"journal", journal, -EOPNOTSUPP, "not yet supported: a write journal", -1, 0},
	{"PPL", ppl, -EOPNOTSUPP, "not yet supported: writing with a partial parity log", -1, 0},
	{"PPL, read", ppl_read, 0, NULL, -1, 0},
	{"PPL, read, dirty", ppl_dirty_degraded, -EUCLEAN, "dirty degraded", -1, 0},
	{"read from too few", read_few, -ENODEV, "need all 3 to start it (use --run", -1, 0},
	{"bitmap", bitmap, 0, NULL, -1, 0},
	{"clustered", clustered, -EOPNOTSUPP, "clustered", -1, 0},
	{"reshape", reshape, -EOPNOTSUPP, "a reshape in progress", -1, 0},
	{"foreign", foreign, -EUCLEAN, "two different arrays", -1, 0},
	{"layout", other_layout, -EUCLEAN, "/dev/a and /dev/b contradict", -1, 0},
	{"layout, stale", other_layout_stale, 0, NULL, 1, MD_REJECTED_CONTRADICTS},
	{"twice", twice, -EUCLEAN, "both claim slot 1", -1, 0},
	{"older copy", older_copy, 0, NULL, 3, MD_REJECTED_DUPLICATE},
	{"older copy first", older_first, 0, NULL, 1, MD_REJECTED_DUPLICATE},
	{"slot too high", slot_too_high, -EUCLEAN, "claims slot 7 of an array of 3", -1, 0},
	{"no size", no_size, -EUCLEAN, "level raid5 with members of 0 sectors", -1, 0},
	{"layout 77", odd_layout, -EUCLEAN, "/dev/a: the array of level raid5", -1, 0},
	{"cut short", cut_short, -ENODEV, "ignoring /dev/c: it has data of", 2,
		MD_REJECTED_TOO_SMALL},
	{"cut short, run", cut_short_run, 0, NULL, 2, MD_REJECTED_TOO_SMALL},
	{"small", small, -ENODEV, "ignoring /dev/d", 3, MD_REJECTED_TOO_SMALL},
	{"stray spare", stray_spare, 0, NULL, 3, MD_REJECTED_STRAY_SPARE},
	{"spare one ahead", spare_ahead, 0, NULL, -1, 0},
	{"only spares", only_spares, -ENODEV, "missing slots 0, 1, 2;", -1, 0},
	{"faulty", faulty, 0, NULL, 2, MD_REJECTED_ROLE},
	{"stray journal", stray_journal, 0, NULL, 3, MD_REJECTED_ROLE},
	{"one is dirty", one_dirty, 0, NULL, -1, 0},
};

static void test_rows(void **state)
{
	struct set *set = test_malloc(sizeof(*set));

	for (size_t i = 0; i < ELEMENTS(rows); i++) {
		set_up(set, MD_VERSION_1_2, 5, 2, 3, 1);
		rows[i].spoil(set);
		check(set, rows[i].name, rows[i].error, rows[i].words);
		if (rows[i].rejected >= 0)
			assert_true(was_rejected(set, (unsigned)rows[i].rejected, rows[i].reason));
		else
			assert_int_equal(set->array.rejected_count, 0);
	}
	assert_false(set->array.clean); /* the last row */
	assert_int_equal(set->array.resync_offset_bytes, 0);
	test_free(set);
}

static void test_limits(void **state)
{
	struct set *set = test_malloc(sizeof(*set));
	struct md_candidate *many = test_calloc(MD_CANDIDATES_MAX + 1, sizeof(*many));
	struct md_super *supers = test_calloc(2000, sizeof(*supers));

	set_up(set, MD_VERSION_0_90, 1, 0, 2, 0); /* whose spares may have one number */
	for (unsigned i = 0; i <= MD_CANDIDATES_MAX; i++)
		many[i] = set->candidates[0];
	assert_int_equal(
		md_assemble(many, MD_CANDIDATES_MAX + 1, &set->options, &set->array, &set->fault),
		-E2BIG);
	many[1] = set->candidates[1];
	for (unsigned i = 2; i < 2000; i++) {
		supers[i] = set->supers[0];
		supers[i].dev_number = 26;
		many[i].super = &supers[i];
	}
	assert_int_equal(md_assemble(many, 2000, &set->options, &set->array, &set->fault), -E2BIG);
	assert_int_equal(
		md_assemble(many, MD_ASSEMBLY_DEVICES_MAX, &set->options, &set->array, &set->fault),
		0);
	assert_int_equal(set->array.device_count, MD_ASSEMBLY_DEVICES_MAX);
	test_free(supers);
	test_free(many);
	test_free(set);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_subsets),
		cmocka_unit_test(test_facts),
		cmocka_unit_test(test_skew),
		cmocka_unit_test(test_last_writer),
		cmocka_unit_test(test_split_brain),
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_limits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
