/* SPDX-License-Identifier: MIT */
/*
 * Power cuts at any moment, again and again on the same disks: writes, failures, removals, spares,
 * rebuilds, re-adds, write errors, idle times; and whatever is found on the disks afterwards must
 * assemble and must mean what was acknowledged.
 *
 * - A member that counts as in sync holds, sector by sector, what was acknowledged last or what was
 *   being written when the power went.
 * - If the array is clean, its members are equal; if it is dirty and has a bitmap, they differ only
 *   where a bit is set.
 * - A member being rebuilt is equal to the others below its checkpoint, with the same exceptions.
 * - A member that left, and that the bitmap would let back in for a copy of the changes only,
 *   differs from the array only where a bit is set.
 * - A member whose failure was acknowledged does not come back by itself.
 */
#include "engine/record_rig.h"

#define SPOTS 16u        /* places that are written to, */
#define SPOT_SECTORS 16u /* so long, spread over the array */
#define SECTORS (SPOTS * SPOT_SECTORS)
#define VALUES_MAX 4u
#define CALLS 8u
#define LIVES 6u
#define RUNS 400u

struct write_call {
	struct rig_call call;
	bool busy;
	unsigned first, count;
	uint64_t data[8 * MD_SECTOR / sizeof(uint64_t)];
};

struct test {
	struct rig rig;
	uint64_t seed, random, next_value;
	/* By sector: what it may hold. The first one is what was acknowledged last. */
	uint64_t values[SECTORS][VALUES_MAX];
	unsigned value_count[SECTORS];
	unsigned busy[SECTORS];
	/*
	 * The client was told that a write failed: the copy that could not be written was the last
	 * one that is in sync, but one that is being rebuilt may have the write.
	 */
	bool undefined[SECTORS];
	bool gone[DISKS_MAX]; /* failed or removed, acknowledged */
	struct write_call writes[CALLS];
	struct rig_call command;
	unsigned command_disk;
	bool commanding;
	struct md_super add_super;
	struct engine_device add;
	unsigned cuts, dirty, bits, rebuilding, returning, torn; /* what was met */
};

static uint64_t draw(struct test *t, uint64_t below)
{
	t->random = t->random * UINT64_C(6364136223846793005) + 1442695040888963407u;
	return (t->random >> 33) % below;
}

static uint64_t offset_of(unsigned sector)
{
	uint64_t stride = (uint64_t)SIZE_SECTORS / SPOTS;

	return (sector / SPOT_SECTORS * stride + sector % SPOT_SECTORS) * MD_SECTOR;
}

static uint64_t content(struct test *t, unsigned disk, unsigned sector)
{
	uint64_t words[MD_SECTOR / sizeof(uint64_t)];

	sim_disk_peek(t->rig.sim, disk, rig_data_sector(&t->rig) * MD_SECTOR + offset_of(sector),
		words, sizeof(words));
	for (unsigned i = 1; i < MD_SECTOR / sizeof(uint64_t); i++)
		assert_true(words[i] == words[0]);
	return words[0];
}

static bool may_hold(const struct test *t, unsigned sector, uint64_t value)
{
	for (unsigned i = 0; i < t->value_count[sector]; i++)
		if (t->values[sector][i] == value)
			return true;
	return false;
}

static void trace(struct test *t, const char *what, unsigned number, unsigned more)
{
	char text[80];

	(void)snprintf(text, sizeof(text), "%s %u %u", what, number, more);
	rig_event(&t->rig, text);
}

/* --- What the disks say after a cut --- */

static bool has_bit(const struct test *t, unsigned sector)
{
	return md_bitmap_get(&t->rig.bitmap, t->rig.area + MD_BITMAP_HEADER_BYTES,
		offset_of(sector) / t->rig.bitmap.chunk_bytes);
}

static unsigned first_in_sync(const struct test *t)
{
	const struct md_assembly *a = &t->rig.assembly;

	for (unsigned i = 0; i < a->device_count; i++)
		if (a->devices[i].in_sync && a->devices[i].slot <= MD_ROLE_SLOT_MAX)
			return t->rig.disk_of[a->devices[i].candidate];
	fail_msg("seed %llu: no member in sync", (unsigned long long)t->seed);
	return 0;
}

/* @bitmap: the bitmap counts, a set bit excuses. */
static void check_equal(
	struct test *t, unsigned disk, unsigned sector, bool bitmap, const char *what)
{
	unsigned first = first_in_sync(t);

	if (content(t, disk, sector) == content(t, first, sector) || t->undefined[sector])
		return;
	t->bits++;
	if (bitmap ? has_bit(t, sector) : !t->rig.assembly.clean)
		return;
	fail_msg("seed %llu cut %u: disk %u and %u differ in sector %u (%s)",
		(unsigned long long)t->seed, t->cuts, disk, first, sector, what);
}

static void check_member(struct test *t, const struct md_assembly_device *device, bool bitmap)
{
	unsigned disk = t->rig.disk_of[device->candidate];
	bool excuses = bitmap && !t->rig.assembly.clean;

	trace(t, device->in_sync ? "in sync: disk, slot" : "not in sync: disk, slot", disk,
		device->slot);
	if (device->slot > MD_ROLE_SLOT_MAX)
		return;
	t->rebuilding += !device->in_sync;
	for (unsigned sector = 0; sector < SECTORS; sector++) {
		if (!device->in_sync && offset_of(sector) >= device->recovery_offset_bytes)
			continue;
		if (device->in_sync && !may_hold(t, sector, content(t, disk, sector)))
			fail_msg("seed %llu cut %u: disk %u, sector %u holds %llu, was acknowledged"
				 " as %llu",
				(unsigned long long)t->seed, t->cuts, disk, sector,
				(unsigned long long)content(t, disk, sector),
				(unsigned long long)t->values[sector][0]);
		check_equal(t, disk, sector, excuses,
			device->in_sync ? "both in sync" : "below the checkpoint");
	}
	if (device->in_sync && t->gone[disk])
		fail_msg("seed %llu cut %u: disk %u had failed and is back",
			(unsigned long long)t->seed, t->cuts, disk);
}

static bool takes_part(const struct test *t, unsigned candidate)
{
	for (unsigned i = 0; i < t->rig.assembly.device_count; i++)
		if (t->rig.assembly.devices[i].candidate == candidate)
			return true;
	return false;
}

/* As check_re_add() in commands.c: would it be let in for a copy of what the bitmap says? */
static void check_outsider(struct test *t, unsigned candidate)
{
	const struct md_super *super = t->rig.candidates[candidate].super;
	unsigned disk = t->rig.disk_of[candidate];

	if (takes_part(t, candidate) || md_super_role(super) > MD_ROLE_SLOT_MAX ||
		(super->feature_map & MD_FEATURE_RECOVERY_OFFSET) != 0 ||
		super->events < t->rig.bitmap.events_cleared)
		return;
	t->returning++;
	for (unsigned sector = 0; sector < SECTORS; sector++)
		check_equal(t, disk, sector, true, "may come back");
}

static void trace_disks(struct test *t, bool bitmap)
{
	trace(t, "clean, bitmap", t->rig.assembly.clean, bitmap);
	for (unsigned i = 0; i < t->rig.candidate_count; i++) {
		const struct md_super *super = t->rig.candidates[i].super;

		trace(t, "disk, events", t->rig.disk_of[i], (unsigned)super->events);
		trace(t, "    role, features", md_super_role(super), super->feature_map);
	}
	if (rig_has_bitmap(&t->rig))
		trace(t, "bitmap: events, cleared", (unsigned)t->rig.bitmap.events,
			(unsigned)t->rig.bitmap.events_cleared);
}

static void check_disks(struct test *t)
{
	bool bitmap = rig_has_bitmap(&t->rig) && rig_read_bitmap(&t->rig) == 0;

	trace_disks(t, bitmap);

	t->dirty += !t->rig.assembly.clean;
	for (unsigned i = 0; i < t->rig.assembly.device_count; i++)
		check_member(t, &t->rig.assembly.devices[i], bitmap);
	for (unsigned i = 0; bitmap && i < t->rig.candidate_count; i++)
		check_outsider(t, i);
}

/* --- What happens before --- */

static void take_note(struct test *t, struct write_call *write)
{
	for (unsigned i = 0; i < write->count; i++) {
		unsigned sector = write->first + i;

		t->busy[sector]--;
		t->undefined[sector] = write->call.result < 0;
		if (t->undefined[sector])
			continue;
		t->values[sector][0] = write->data[i * MD_SECTOR / sizeof(uint64_t)];
		t->value_count[sector] = 1;
	}
	write->busy = false;
	trace(t, write->call.result < 0 ? "failed write" : "written", write->first, write->count);
}

static void collect(struct test *t)
{
	for (unsigned i = 0; i < CALLS; i++)
		if (t->writes[i].busy && t->writes[i].call.done)
			take_note(t, &t->writes[i]);
	if (t->commanding && t->command.done) {
		t->commanding = false;
		trace(t, "command ended", (unsigned)t->command.command.verb,
			(unsigned)-t->command.result);
		if (t->command.result == 0 && t->command.command.verb == ENGINE_FAIL)
			t->gone[t->command_disk] = true;
	}
}

static void write_something(struct test *t)
{
	struct write_call *write = &t->writes[draw(t, CALLS)];
	unsigned spot = (unsigned)draw(t, SPOTS) * SPOT_SECTORS;

	if (write->busy)
		return;
	write->count = 1 + (unsigned)draw(t, 8);
	write->first = spot + (unsigned)draw(t, SPOT_SECTORS - write->count + 1);
	for (unsigned i = 0; i < write->count; i++)
		if (t->busy[write->first + i] || t->value_count[write->first + i] == VALUES_MAX)
			return;
	for (unsigned i = 0; i < write->count; i++) {
		unsigned sector = write->first + i;
		uint64_t value = ++t->next_value;

		t->busy[sector]++;
		t->values[sector][t->value_count[sector]++] = value;
		for (unsigned w = 0; w < MD_SECTOR / sizeof(uint64_t); w++)
			write->data[i * MD_SECTOR / sizeof(uint64_t) + w] = value;
	}
	write->busy = true;
	trace(t, "write", write->first, write->count);
	rig_submit(&t->rig, &write->call, ENGINE_WRITE, offset_of(write->first),
		(uint64_t)write->count * MD_SECTOR, write->data, ENGINE_FUA);
}

static void submit_command(struct test *t, enum engine_verb verb, unsigned device)
{
	memset(&t->command, 0, sizeof(t->command));
	t->commanding = true;
	trace(t, "command", (unsigned)verb, t->command_disk);
	t->command.command = (struct engine_command){.verb = verb,
		.device = device,
		.with = ENGINE_NONE,
		.add = &t->add,
		.fault = &t->rig.fault,
		.done = rig_command_done,
		.owner = &t->command};
	engine_command(t->rig.engine, &t->command.command);
}

static bool number_is_free(struct test *t, unsigned number)
{
	static struct md_super super;

	for (unsigned disk = 0; disk < t->rig.options.disks; disk++)
		if (rig_read_super(&t->rig, disk, &super) && super.dev_number == number)
			return false;
	return true;
}

/* A disk that no device of the engine is on; DISKS_MAX: none. */
static unsigned find_outsider(struct test *t)
{
	for (unsigned disk = 0; disk < t->rig.options.disks; disk++) {
		bool used = false;

		for (unsigned i = 0; i < engine_device_max(t->rig.engine); i++) {
			struct engine_device_status status;

			engine_device_status(t->rig.engine, i, &status);
			used |= status.state != ENGINE_DEVICE_FREE && status.member == disk;
		}
		if (!used)
			return disk;
	}
	return DISKS_MAX;
}

static void bring_in(struct test *t)
{
	unsigned disk = find_outsider(t), role = MD_ROLE_SPARE;
	bool known;

	if (disk == DISKS_MAX)
		return;
	known = rig_read_super(&t->rig, disk, &t->add_super);
	if (known)
		role = md_super_role(&t->add_super);
	t->add = (struct engine_device){.member = disk,
		.slot = ENGINE_NONE,
		.data_offset_bytes = rig_data_sector(&t->rig) * MD_SECTOR,
		.data_bytes = (uint64_t)SIZE_SECTORS * MD_SECTOR,
		.logical_block_bytes = t->rig.options.block_bytes,
		.super = &t->add_super};
	t->command_disk = disk;
	if (known && role <= MD_ROLE_SLOT_MAX && draw(t, 4) > 0 &&
		(t->add_super.feature_map & MD_FEATURE_RECOVERY_OFFSET) == 0) {
		t->add.slot = role;
		t->gone[disk] = false;
		submit_command(t, ENGINE_RE_ADD, ENGINE_NONE);
		return;
	}
	rig_make_spare(&t->rig, disk, &t->add_super);
	while (t->rig.options.version != MD_VERSION_0_90 &&
		!number_is_free(t, t->add_super.dev_number))
		t->add_super.dev_number++;
	rig_write_super(&t->rig, disk, &t->add_super);
	t->gone[disk] = false;
	submit_command(t, ENGINE_ADD, ENGINE_NONE);
}

static void command_something(struct test *t)
{
	unsigned device = (unsigned)draw(t, engine_device_max(t->rig.engine));
	struct engine_device_status status;

	engine_device_status(t->rig.engine, device, &status);
	t->command_disk = status.member;
	if (status.state == ENGINE_DEVICE_FAULTY)
		submit_command(t, ENGINE_REMOVE, device);
	else if (status.state == ENGINE_DEVICE_IN_SYNC && draw(t, 3) == 0)
		submit_command(t, draw(t, 3) == 0 ? ENGINE_REPLACE : ENGINE_FAIL, device);
	else if (draw(t, 2) == 0)
		bring_in(t);
}

/* One write, or a few, to one disk fail: data, superblock or bitmap. */
static void break_something(struct test *t)
{
	struct sim_fault fault = {.disk = (unsigned)draw(t, t->rig.options.disks),
		.ops = 1u << WORLD_WRITE,
		.length_bytes = (uint64_t)DISK_SECTORS * MD_SECTOR,
		.error = draw(t, 2) == 0 ? -EIO : -ENOSPC,
		.times = 1 + (unsigned)draw(t, 2)};

	if (draw(t, 4) == 0)
		fault.ops |= 1u << WORLD_FLUSH;
	sim_faults_clear(t->rig.sim);
	trace(t, "fault of disk", fault.disk, fault.times);
	assert_int_equal(sim_fault_add(t->rig.sim, &fault), 0);
}

static void live(struct test *t)
{
	unsigned steps = 1 + (unsigned)draw(t, draw(t, 3) == 0 ? 4000 : 300);
	unsigned writes = 1 + (unsigned)draw(t, 60);

	for (unsigned i = 0; i < steps; i++) {
		if (draw(t, writes) == 0)
			write_something(t);
		if (!t->commanding && draw(t, 40) == 0)
			command_something(t);
		if (draw(t, 400) == 0)
			break_something(t);
		if (!sim_step(t->rig.sim))
			break;
		collect(t);
	}
}

/*
 * Version 0.90 takes eight sectors: on the last good member it can be torn, and then nothing tells
 * that others are older.
 */
static bool is_torn(struct test *t, const bool *in_sync)
{
	static struct md_super super;
	unsigned whole = 0;

	for (unsigned disk = 0; disk < t->rig.options.disks; disk++)
		whole += in_sync[disk] && rig_read_super(&t->rig, disk, &super);
	return t->rig.options.version == MD_VERSION_0_90 && whole == 0;
}

static void note_in_sync(struct test *t, bool *ret)
{
	for (unsigned i = 0; i < engine_device_max(t->rig.engine); i++) {
		struct engine_device_status status;

		engine_device_status(t->rig.engine, i, &status);
		if (status.state == ENGINE_DEVICE_IN_SYNC)
			ret[status.member] = true;
	}
}

static bool cut(struct test *t)
{
	bool in_sync[DISKS_MAX] = {false};
	int r;

	note_in_sync(t, in_sync);
	sim_power_cut(t->rig.sim);
	sim_faults_clear(t->rig.sim);
	engine_free(t->rig.engine);
	t->rig.engine = NULL;
	t->commanding = false;
	for (unsigned i = 0; i < CALLS; i++)
		t->writes[i].busy = false;
	memset(t->busy, 0, sizeof(t->busy));
	t->cuts++;
	trace(t, "cut", t->cuts, 0);
	if (is_torn(t, in_sync)) {
		t->torn++;
		return false;
	}
	r = rig_assemble(&t->rig, false);
	if (r < 0)
		trace_disks(t, false);
	if (r < 0)
		fail_msg("seed %llu cut %u: %s", (unsigned long long)t->seed, t->cuts,
			t->rig.fault.text);
	return true;
}

static void run(struct test *t, uint64_t seed)
{
	static const uint32_t chunks[] = {0, 512, 4 * K, 64 * K};
	struct rig_options options = {.level = 1, .seed = seed};

	memset(t, 0, sizeof(*t));
	t->seed = t->random = seed;
	options.version = (enum md_version)draw(t, MD_VERSIONS);
	options.slots = 2 + (unsigned)draw(t, 2);
	options.spares = (unsigned)draw(t, 2);
	options.disks = options.slots + 2;
	options.bitmap_chunk = chunks[draw(t, 4)];
	options.block_bytes = draw(t, 2) == 0 ? 512 : 4096;
	rig_init(&t->rig, &options);
	for (unsigned sector = 0; sector < SECTORS; sector++)
		t->value_count[sector] = 1;
	for (unsigned life = 0; life < LIVES; life++) {
		rig_start(&t->rig, false);
		live(t);
		if (!cut(t))
			break;
		check_disks(t);
	}
	rig_fini(&t->rig);
}

static void test_power_cuts(void **state)
{
	const char *wanted = getenv("RECORD_SEED"), *runs = getenv("RECORD_RUNS");
	uint64_t first = wanted != NULL ? strtoull(wanted, NULL, 10) : 1;
	uint64_t count = runs != NULL ? strtoull(runs, NULL, 10) : wanted != NULL ? 1 : RUNS;
	static struct test t;
	unsigned met[6] = {0};

	(void)state;
	for (uint64_t seed = first; seed < first + count; seed++) {
		run(&t, seed);
		met[0] += t.cuts;
		met[1] += t.dirty;
		met[2] += t.bits;
		met[3] += t.rebuilding;
		met[4] += t.returning;
		met[5] += t.torn;
	}
	print_message("%u cuts: %u dirty, %u sectors differed, %u members were being rebuilt, %u "
		      "could return, %u torn\n",
		met[0], met[1], met[2], met[3], met[4], met[5]);
	if (count >= RUNS)
		for (unsigned i = 0; i < 5; i++)
			assert_true(met[i] > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_power_cuts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
