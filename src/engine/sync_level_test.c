/* SPDX-License-Identifier: MIT */
/*
 * The background action over real levels, with superblocks and bitmaps on simulated disks: arrays
 * that are resynced and rebuilt while clients write, members fail and the power goes, at any time.
 * Afterwards every byte is right, and a check over all members finds no mismatch.
 */
#include "engine/record_rig.h"

#include "engine/sync.h"

#define CLIENTS 3u
#define WRITE_MAX (96u << 10)
#define FULL_SPEED (UINT64_C(1) << 40)

struct client {
	struct test *test;
	struct rig_call call;
	uint64_t first, end; /* its own range of the array */
	uint64_t offset, length;
	uint8_t data[WRITE_MAX];
	uint64_t started_ns, longest_ns;
	bool busy, writes;
};

struct test {
	struct rig rig;
	uint64_t bytes;
	uint8_t *shadow;
	struct client clients[CLIENTS];
	bool stop;
	unsigned done;
};

static uint64_t draw(struct test *test, uint64_t below)
{
	return sim_draw(test->rig.sim, below);
}

static struct engine_status status_of(struct test *test)
{
	struct engine_status status;

	assert_true(engine_status(test->rig.engine, &status));
	return status;
}

static void fill(struct test *test, uint8_t *data, uint64_t length)
{
	uint64_t seed = draw(test, UINT64_MAX);

	for (uint64_t i = 0; i < length; i += 8) {
		memcpy(data + i, &seed, 8);
		seed = seed * 6364136223846793005u + 1442695040888963407u;
	}
}

static void client_next(struct client *client);

static void client_done(struct engine_request *request, int result)
{
	struct client *client = request->owner;
	struct test *test = client->test;
	uint64_t passed = sim_now_ns(test->rig.sim) - client->started_ns;

	assert_int_equal(result, 0);
	client->busy = false;
	client->longest_ns = max_u64(client->longest_ns, passed);
	test->done++;
	if (client->writes)
		memcpy(test->shadow + client->offset, client->data, client->length);
	else
		assert_memory_equal(test->shadow + client->offset, client->data, client->length);
	if (!test->stop)
		client_next(client);
}

static void client_next(struct client *client)
{
	struct test *test = client->test;
	uint64_t sectors = (client->end - client->first) / 512;
	uint64_t length = 1 + draw(test, draw(test, 4) == 0 ? WRITE_MAX / 512 : 16);

	client->offset = client->first + draw(test, sectors - length) * 512;
	client->length = length * 512;
	client->writes = draw(test, 3) > 0;
	client->busy = true;
	client->started_ns = sim_now_ns(test->rig.sim);
	if (client->writes)
		fill(test, client->data, client->length);
	memset(&client->call, 0, sizeof(client->call));
	client->call.iov = (struct iovec){client->data, client->length};
	client->call.request = (struct engine_request){
		.op = client->writes ? ENGINE_WRITE : ENGINE_READ,
		.flags = client->writes ? ENGINE_FUA : 0,
		.offset_bytes = client->offset,
		.length_bytes = client->length,
		.iov = &client->call.iov,
		.iov_count = 1,
		.done = client_done,
		.owner = client};
	engine_submit(test->rig.engine, &client->call.request);
	engine_kick(test->rig.engine);
}

static void start_clients(struct test *test)
{
	test->stop = false;
	for (unsigned i = 0; i < CLIENTS; i++) {
		struct client *client = &test->clients[i];

		client->test = test;
		client->first = round_down(test->bytes / CLIENTS * i, 512);
		client->end = round_down(test->bytes / CLIENTS * (i + 1), 512);
		if (!client->busy)
			client_next(client);
	}
}

static void stop_clients(struct test *test)
{
	test->stop = true;
	for (unsigned i = 0; i < CLIENTS; i++)
		while (test->clients[i].busy)
			assert_true(sim_step(test->rig.sim));
}

static void step(struct test *test, uint64_t steps)
{
	for (uint64_t i = 0; i < steps; i++)
		if (!sim_step(test->rig.sim))
			return;
}

/* Every action ends, in time that has a bound. */
static void wait_for_idle(struct test *test)
{
	uint64_t end = sim_now_ns(test->rig.sim) + 60 * UINT64_C(1000000000);

	do {
		assert_true(sim_now_ns(test->rig.sim) < end);
		if (!sim_step(test->rig.sim))
			break;
		/* A recovery may follow on a resync, from the next event on. */
	} while (status_of(test).action != ENGINE_ACTION_IDLE ||
		 status_of(test).resync_bytes != UINT64_MAX ||
		 (status_of(test).in_sync < status_of(test).slots &&
			 status_of(test).devices > status_of(test).slots));
	step(test, 50);
}

static void set_speed(struct test *test, uint64_t min, uint64_t max)
{
	sync_set_speed(test->rig.engine, min, max);
}

static void test_init(struct test *test, const struct rig_options *options)
{
	memset(test, 0, sizeof(*test));
	rig_init(&test->rig, options);
	rig_start(&test->rig, false);
	test->bytes = engine_array_bytes(test->rig.engine);
	test->shadow = calloc(1, test->bytes);
	assert_non_null(test->shadow);
}

static void test_fini(struct test *test)
{
	rig_fini(&test->rig);
	free(test->shadow);
}

static void check_content(struct test *test)
{
	uint8_t *content = malloc(test->bytes);
	struct rig_call call;

	rig_submit(&test->rig, &call, ENGINE_READ, 0, test->bytes, content, 0);
	assert_int_equal(rig_wait(&test->rig, &call), 0);
	assert_memory_equal(content, test->shadow, test->bytes);
	free(content);
}

static int sync_command(struct test *test, enum engine_action action)
{
	struct rig_call call = {.command = {.verb = ENGINE_SYNC,
					.action = action,
					.fault = &test->rig.fault,
					.done = rig_command_done}};

	call.command.owner = &call;
	engine_command(test->rig.engine, &call.command);
	return rig_wait(&test->rig, &call);
}

/* All slots are in sync, all copies and all parity agree, and it is what was written. */
static void check_all(struct test *test)
{
	struct engine_status status;

	stop_clients(test);
	wait_for_idle(test);
	assert_int_equal(status_of(test).in_sync, test->rig.options.slots);
	check_content(test);
	set_speed(test, 0, FULL_SPEED);
	assert_int_equal(sync_command(test, ENGINE_ACTION_CHECK), 0);
	wait_for_idle(test);
	status = status_of(test);
	if (status.mismatch_count > 0)
		fail_msg("%u mismatches, the first at %llu", status.mismatch_count,
			(unsigned long long)status.mismatches[0].sync_offset_bytes);
}

/* What was in flight when the power went is old or new, sector by sector; it stays what it is. */
static void settle_client(struct test *test, struct client *client)
{
	static uint8_t content[WRITE_MAX];
	struct rig_call call;

	if (!client->busy)
		return;
	client->busy = false;
	if (!client->writes)
		return;
	rig_submit(&test->rig, &call, ENGINE_READ, client->offset, client->length, content, 0);
	assert_int_equal(rig_wait(&test->rig, &call), 0);
	for (uint64_t at = 0; at < client->length; at += 512) {
		uint8_t *old = test->shadow + client->offset + at;

		if (memcmp(content + at, old, 512) != 0)
			assert_memory_equal(content + at, client->data + at, 512);
		memcpy(old, content + at, 512);
	}
}

static void cut_power(struct test *test)
{
	sim_power_cut(test->rig.sim);
	engine_free(test->rig.engine);
	test->rig.engine = NULL;
	if (rig_assemble(&test->rig, false) < 0 && rig_assemble(&test->rig, true) < 0)
		fail_msg("%s", test->rig.fault.text);
	rig_start(&test->rig, false);
	for (unsigned i = 0; i < CLIENTS; i++)
		settle_client(test, &test->clients[i]);
}

static const struct rig_options arrays[] = {
	{MD_VERSION_1_2, 1, 2, 1, 3, 0, 512, 1, false},
	{MD_VERSION_1_2, 1, 3, 1, 4, 64 * K, 512, 2, false},
	{MD_VERSION_1_2, 5, 4, 1, 5, 0, 512, 3, false},
	{MD_VERSION_1_2, 5, 3, 1, 4, 64 * K, 512, 4, false},
	{MD_VERSION_1_2, 6, 4, 2, 6, 0, 512, 5, false},
	{MD_VERSION_1_2, 6, 4, 2, 6, 64 * K, 512, 6, false},
	{MD_VERSION_1_2, 10, 4, 1, 5, 0, 512, 7, false},
	{MD_VERSION_1_2, 10, 3, 1, 4, 64 * K, 512, 8, false},
};
#define ARRAYS (sizeof(arrays) / sizeof(arrays[0]))

/* Case 69: writes before and behind the position of a rebuild, in all orders. */
static void test_rebuild_under_load(void **state)
{
	for (unsigned i = 0; i < ARRAYS; i++)
		for (unsigned seed = 0; seed < 2; seed++) {
			struct rig_options options = arrays[i];
			struct test test;

			options.seed = 100 * i + seed;
			test_init(&test, &options);
			start_clients(&test);
			step(&test, 2000);
			if (seed % 2 == 0)
				set_speed(&test, FULL_SPEED, FULL_SPEED);
			assert_int_equal(rig_command(&test.rig, ENGINE_FAIL, seed % 3), 0);
			while (status_of(&test).in_sync < options.slots)
				assert_true(sim_step(test.rig.sim));
			check_all(&test);
			test_fini(&test);
		}
}

/* Another member fails when @percent of the rebuild are done. */
static void fail_at(const struct rig_options *options, unsigned percent)
{
	unsigned first = 0, second = options->level == 10 ? 2 : 1;
	struct engine_status status;
	struct test test;

	test_init(&test, options);
	start_clients(&test);
	step(&test, 1000);
	assert_int_equal(rig_command(&test.rig, ENGINE_FAIL, first), 0);
	do {
		assert_true(sim_step(test.rig.sim));
		status = status_of(&test);
	} while (status.action != ENGINE_ACTION_RECOVERY ||
		 status.position_bytes * 100 < status.total_bytes * percent);
	assert_int_equal(rig_command(&test.rig, ENGINE_FAIL, second), 0);
	step(&test, 5000);
	stop_clients(&test);
	wait_for_idle(&test);
	status = status_of(&test);
	assert_false(status.failed);
	/* As many slots are in sync again as there are spares for. */
	assert_int_equal(
		status.in_sync, min_u64(options->slots, options->slots - 2 + options->spares));
	check_content(&test);
	if (status.in_sync == options->slots)
		check_all(&test);
	test_fini(&test);
}

static void test_second_failure(void **state)
{
	static const unsigned percents[] = {0, 1, 50, 99};

	for (unsigned i = 0; i < ARRAYS; i++)
		for (unsigned k = 0; k < 4; k++)
			if ((arrays[i].level != 1 || arrays[i].slots > 2) &&
				(arrays[i].level != 10 || arrays[i].slots == 4) &&
				arrays[i].level != 5)
				fail_at(&arrays[i], percents[k]);
}

/* The spare itself fails: the next one starts from the beginning. */
static void test_spare_fails(void **state)
{
	for (unsigned spare = 4; spare <= 5; spare++) {
		struct test test;

		test_init(&test, &arrays[5]);
		start_clients(&test);
		assert_int_equal(rig_command(&test.rig, ENGINE_FAIL, 1), 0);
		while (status_of(&test).position_bytes < status_of(&test).total_bytes / 2 ||
			status_of(&test).action != ENGINE_ACTION_RECOVERY)
			assert_true(sim_step(test.rig.sim));
		assert_int_equal(rig_command(&test.rig, ENGINE_FAIL, spare), 0);
		while (status_of(&test).in_sync < 4)
			assert_true(sim_step(test.rig.sim));
		check_all(&test);
		test_fini(&test);
	}
}

/*
 * The power goes at any time of a rebuild, again and again: it continues, from a checkpoint that is
 * never too far. Parity arrays have nothing in flight then: a write hole is another matter.
 */
static void test_power_cuts_in_rebuild(void **state)
{
	for (unsigned i = 0; i < ARRAYS; i++)
		for (unsigned seed = 0; seed < 3; seed++) {
			struct rig_options options = arrays[i];
			bool mirror = options.level == 1 || options.level == 10;
			struct test test;

			options.seed = 1000 + 100 * i + seed;
			test_init(&test, &options);
			start_clients(&test);
			step(&test, 1000);
			assert_int_equal(rig_command(&test.rig, ENGINE_FAIL, 1), 0);
			for (unsigned cut = 0; cut < 5; cut++) {
				step(&test, draw(&test, 3000));
				if (!mirror)
					stop_clients(&test);
				step(&test, draw(&test, 30));
				cut_power(&test);
				start_clients(&test);
			}
			check_all(&test);
			test_fini(&test);
		}
}

/* The power goes while clients write to an array in order, and while that is resynced. */
static void test_power_cuts_in_resync(void **state)
{
	for (unsigned i = 0; i < ARRAYS; i++)
		for (unsigned seed = 0; seed < 3; seed++) {
			struct rig_options options = arrays[i];
			struct test test;

			options.seed = 2000 + 100 * i + seed;
			test_init(&test, &options);
			for (unsigned cut = 0; cut < 5; cut++) {
				start_clients(&test);
				step(&test, draw(&test, 4000));
				cut_power(&test);
				step(&test, draw(&test, 400));
			}
			check_all(&test);
			test_fini(&test);
		}
}

static uint64_t reads_of(struct test *test)
{
	uint64_t reads = 0;

	for (unsigned disk = 0; disk < test->rig.options.disks; disk++)
		reads += sim_disk_counters(test->rig.sim, disk)->reads;
	return reads;
}

/* With a bitmap only what was being written is looked at after a crash. */
static void test_bitmap_resync(void **state)
{
	static uint8_t data[64 * K];
	struct rig_options options = arrays[3];
	struct rig_call call;
	struct test test;
	uint64_t reads;

	test_init(&test, &options);
	memset(data, 0x77, sizeof(data));
	rig_submit(&test.rig, &call, ENGINE_WRITE, 1 << 20, sizeof(data), data, 0);
	while (!status_of(&test).active)
		assert_true(sim_step(test.rig.sim));
	step(&test, 3);
	cut_power(&test);
	reads = reads_of(&test);
	assert_true(status_of(&test).resync_bytes == 0);
	wait_for_idle(&test);
	assert_in_range(reads_of(&test) - reads, 1, 6 * 3);
	assert_true(status_of(&test).resync_bytes == UINT64_MAX);
	test_fini(&test);
}

/* Paused by read-only, stopped, started anew: a resync continues where it was. */
static void test_stop_and_start(void **state)
{
	for (unsigned i = 0; i < ARRAYS; i++) {
		struct rig_options options = arrays[i];
		struct engine_status status;
		struct test test;

		options.dirty = true;
		options.bitmap_chunk = 0;
		options.seed = i;
		test_init(&test, &options);
		set_speed(&test, 0, 50 << 20);
		do {
			assert_true(sim_step(test.rig.sim));
			status = status_of(&test);
		} while (status.position_bytes < status.total_bytes / 2);
		assert_int_equal(rig_command(&test.rig, ENGINE_STOP, 0), 0);
		engine_free(test.rig.engine);
		assert_int_equal(rig_assemble(&test.rig, false), 0);
		assert_false(test.rig.assembly.clean);
		assert_in_range(test.rig.assembly.resync_offset_bytes, status.total_bytes / 2,
			status.total_bytes * 3 / 4);
		rig_start(&test.rig, false);
		step(&test, 1);
		assert_int_equal(status_of(&test).action, ENGINE_ACTION_RESYNC);
		assert_true(status_of(&test).position_bytes >= status.total_bytes / 2);
		check_all(&test);
		test_fini(&test);
	}
}

/* A replacement is copied under load; the old member leaves when it is done. */
static void test_replacement(void **state)
{
	for (unsigned i = 0; i < ARRAYS; i++) {
		struct rig_options options = arrays[i];
		struct engine_device_status old;
		struct test test;

		test_init(&test, &options);
		start_clients(&test);
		step(&test, 500);
		assert_int_equal(rig_command(&test.rig, ENGINE_REPLACE, 1), 0);
		assert_int_equal(status_of(&test).in_sync, options.slots);
		do {
			assert_true(sim_step(test.rig.sim));
			engine_device_status(test.rig.engine, 1, &old);
		} while (old.state != ENGINE_DEVICE_FAULTY);
		assert_int_equal(status_of(&test).in_sync, options.slots);
		check_all(&test);
		test_fini(&test);
	}
}

static int re_add(struct test *test, const struct engine_device *device)
{
	struct rig_call call = {.command = {.verb = ENGINE_RE_ADD,
					.add = device,
					.fault = &test->rig.fault,
					.done = rig_command_done,
					.owner = &call}};

	engine_command(test->rig.engine, &call.command);
	return rig_wait(&test->rig, &call);
}

/* A member that was away comes back: only what was written meanwhile is copied. */
static void test_re_add(void **state)
{
	static const unsigned with_bitmap[] = {1, 3, 5};

	for (unsigned i = 0; i < 3; i++) {
		struct rig_options options = arrays[with_bitmap[i]];
		struct md_super super;
		struct engine_device back;
		struct test test;
		uint64_t reads;

		options.spares = 0;
		test_init(&test, &options);
		assert_int_equal(rig_command(&test.rig, ENGINE_FAIL, 1), 0);
		assert_int_equal(rig_command(&test.rig, ENGINE_REMOVE, 1), 0);
		for (unsigned k = 0; k < 5; k++) {
			uint64_t at = draw(&test, test.bytes / 4096) * 4096;

			fill(&test, test.shadow + at, 4096);
			assert_int_equal(rig_write(&test.rig, at, test.shadow + at, 4096), 0);
		}
		assert_true(rig_read_super(&test.rig, 1, &super));
		back = (struct engine_device){.member = 1,
			.slot = 1,
			.data_offset_bytes = super.data_offset * MD_SECTOR,
			.data_bytes = super.data_sectors * MD_SECTOR,
			.logical_block_bytes = 512,
			.super = &super};
		/* Not one that knows more than the array, nor one that was never whole. */
		super.events += 100;
		assert_int_equal(re_add(&test, &back), -EINVAL);
		super.events -= 100;
		super.feature_map |= MD_FEATURE_RECOVERY_OFFSET;
		assert_int_equal(re_add(&test, &back), -EINVAL);
		super.feature_map &= ~(uint32_t)MD_FEATURE_RECOVERY_OFFSET;
		reads = reads_of(&test);
		if (re_add(&test, &back) < 0)
			fail_msg("%s", test.rig.fault.text);
		while (status_of(&test).in_sync < options.slots)
			assert_true(sim_step(test.rig.sim));
		/* Five bits of 64 KiB, on as many members as are read for one. */
		assert_in_range(reads_of(&test) - reads, 1, 5 * 2 * options.slots);
		check_all(&test);
		test_fini(&test);
	}
}

/* A client waits for its own I/O and at most a few of a window in front, not for the rebuild. */
static void test_clients_are_served(void **state)
{
	for (unsigned i = 0; i < ARRAYS; i++) {
		struct rig_options options = arrays[i];
		uint64_t without = 0, with = 0;
		unsigned done;
		struct test test;

		test_init(&test, &options);
		start_clients(&test);
		while (test.done < 3000)
			assert_true(sim_step(test.rig.sim));
		for (unsigned k = 0; k < CLIENTS; k++) {
			without = max_u64(without, test.clients[k].longest_ns);
			test.clients[k].longest_ns = 0;
		}
		assert_int_equal(rig_command(&test.rig, ENGINE_FAIL, 1), 0);
		while (status_of(&test).in_sync == options.slots)
			assert_true(sim_step(test.rig.sim));
		done = test.done;
		while (status_of(&test).in_sync < options.slots)
			assert_true(sim_step(test.rig.sim));
		for (unsigned k = 0; k < CLIENTS; k++)
			with = max_u64(with, test.clients[k].longest_ns);
		print_message("level %d: longest %llu us, while rebuilding %llu us, %u requests\n",
			options.level, (unsigned long long)without / 1000,
			(unsigned long long)with / 1000, test.done - done);
		assert_true(with <= 5 * without);
		assert_true(test.done - done >= 100);
		check_all(&test);
		test_fini(&test);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rebuild_under_load),
		cmocka_unit_test(test_second_failure),
		cmocka_unit_test(test_spare_fails),
		cmocka_unit_test(test_power_cuts_in_rebuild),
		cmocka_unit_test(test_power_cuts_in_resync),
		cmocka_unit_test(test_bitmap_resync),
		cmocka_unit_test(test_stop_and_start),
		cmocka_unit_test(test_replacement),
		cmocka_unit_test(test_re_add),
		cmocka_unit_test(test_clients_are_served),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
