/* SPDX-License-Identifier: MIT */
/* The background action by itself: check, requests, pauses, speed, and all of it in any order. */
#include "engine/sync_rig_test.h"

#include "sim/sim.h"

static void test_check(void **state)
{
	struct engine_status status;
	struct rig rig;

	rig_init(&rig, 5, 3, 0);
	rig.mismatch_every = 10;
	rig_start(&rig);
	assert_int_equal(sync_request(rig.engine, ENGINE_ACTION_CHECK), 0);
	run_windows(&rig, 1);
	assert_int_equal(status_of(&rig).action, ENGINE_ACTION_CHECK);
	assert_int_equal(status_of(&rig).total_bytes, COMPONENT);
	assert_int_equal(sync_request(rig.engine, ENGINE_ACTION_REPAIR), -EBUSY);
	run_out(&rig);
	status = status_of(&rig);
	assert_issued(&rig, 0, WINDOWS);
	/* Two ranges in a page: eight sectors in md's counting, once. */
	assert_int_equal(status.mismatch_sectors, 4 * 8);
	assert_int_equal(status.mismatch_count, 8);
	for (unsigned i = 0; i < 8; i++) {
		assert_int_equal(status.mismatches[i].sync_offset_bytes,
			(uint64_t)(i / 2 * 10) * WINDOW + (i % 2 ? 2048 : 512));
		assert_int_equal(status.mismatches[i].length_bytes, 512);
		assert_int_equal(status.mismatches[i].slot, 1);
	}
	assert_true(has_event(&rig, "check found 32 sectors"));
	assert_int_equal(rig.changes, 0);
	/* The next one starts to count anew. */
	rig.mismatch_every = 0;
	assert_int_equal(sync_request(rig.engine, ENGINE_ACTION_CHECK), 0);
	run_out(&rig);
	assert_int_equal(status_of(&rig).mismatch_sectors, 0);
	assert_int_equal(status_of(&rig).mismatch_count, 0);
	assert_true(has_event(&rig, "check done: no mismatches"));
	rig_fini(&rig);
}

/* Whatever the order in which they are found: sorted, merged if they touch, of one slot each. */
static void test_mismatches_merge(void **state)
{
	enum { PIECES = 100 };
	struct engine_status status;
	struct rig rig;

	for (unsigned seed = 0; seed < 50; seed++) {
		bool found[PIECES] = {false};
		unsigned ranges = 0, first = 0;

		rig_init(&rig, 5, 3, 0);
		rig.hold = true;
		rig_start(&rig);
		assert_int_equal(sync_request(rig.engine, ENGINE_ACTION_CHECK), 0);
		run_windows(&rig, 1);
		for (unsigned i = 0; i < seed; i++)
			(void)sim_draw(rig.sim, 2);
		for (unsigned i = 0; i < PIECES; i++) {
			unsigned piece = (unsigned)sim_draw(rig.sim, PIECES);

			if (found[piece])
				continue;
			found[piece] = true;
			sync_mismatch(rig.engine, piece * 512, 512, piece / 50);
		}
		status = status_of(&rig);
		for (unsigned piece = 0; piece <= PIECES; piece++) {
			bool in = piece < PIECES && found[piece];

			if (first < piece && (!in || piece == 50)) {
				assert_true(ranges < status.mismatch_count);
				assert_int_equal(
					status.mismatches[ranges].sync_offset_bytes, first * 512);
				assert_int_equal(status.mismatches[ranges].length_bytes,
					(piece - first) * 512);
				assert_int_equal(status.mismatches[ranges].slot, first / 50);
				ranges++;
			}
			if (!in)
				first = piece + 1;
			else if (piece == 50)
				first = piece;
		}
		assert_int_equal(ranges, status.mismatch_count);
		while (rig.held_count > 0)
			release(&rig, 0);
		rig.hold = false;
		run_out(&rig);
		rig_fini(&rig);
	}
}

static void test_more_mismatches_than_room(void **state)
{
	struct rig rig;

	rig_init(&rig, 10, 4, 0);
	rig.hold = true;
	rig_start(&rig);
	assert_int_equal(sync_request(rig.engine, ENGINE_ACTION_REPAIR), 0);
	run_windows(&rig, SYNC_WINDOWS_MAX);
	for (unsigned i = 0; i < 2 * ENGINE_MISMATCHES_MAX; i++)
		sync_mismatch(rig.engine, i * 1024, 512, ENGINE_NONE);
	assert_int_equal(status_of(&rig).mismatch_count, ENGINE_MISMATCHES_MAX);
	/* A mirror compares 64 KiB at once: 8 windows of 128 sectors. */
	assert_int_equal(status_of(&rig).mismatch_sectors, 8 * 128);
	rig.hold = false;
	while (rig.held_count > 0)
		release(&rig, 0);
	run_out(&rig);
	assert_true(has_event(&rig, "256 or more ranges"));
	rig_fini(&rig);
}

static void test_requests(void **state)
{
	struct rig rig;

	rig_init(&rig, 5, 3, 0);
	rig_start(&rig);
	assert_int_equal(sync_request(rig.engine, ENGINE_ACTION_RECOVERY), -EINVAL);
	assert_int_equal(sync_request(rig.engine, ENGINE_ACTION_RESYNC), 0);
	run_out(&rig);
	assert_issued(&rig, 0, 0);
	/* IDLE interrupts; the next one can be asked for at once. */
	assert_int_equal(sync_request(rig.engine, ENGINE_ACTION_CHECK), 0);
	run_windows(&rig, 20);
	assert_int_equal(sync_request(rig.engine, ENGINE_ACTION_IDLE), 0);
	(void)sim_step(rig.sim);
	assert_int_equal(sync_request(rig.engine, ENGINE_ACTION_REPAIR), 0);
	run_out(&rig);
	assert_int_equal(rig.latest_action, ENGINE_ACTION_REPAIR);
	assert_int_equal(rig.issued[0], 2);
	assert_int_equal(rig.issued[WINDOWS - 1], 1);
	assert_true(has_event(&rig, "check is interrupted at byte"));
	/* Frozen: nothing starts; a check thaws. */
	forget_windows(&rig);
	assert_int_equal(sync_request(rig.engine, ENGINE_ACTION_FROZEN), 0);
	(void)sim_run(rig.sim, 1000);
	assert_int_equal(status_of(&rig).action, ENGINE_ACTION_FROZEN);
	assert_int_equal(sync_request(rig.engine, ENGINE_ACTION_CHECK), 0);
	run_out(&rig);
	assert_issued(&rig, 0, WINDOWS);
	/* Degraded RAID 5 has nothing to compare. */
	assert_int_equal(fail_device(&rig, 0), 0);
	assert_int_equal(sync_request(rig.engine, ENGINE_ACTION_CHECK), -EINVAL);
	rig_fini(&rig);
}

static void test_frozen_recovery(void **state)
{
	uint64_t recovered;
	struct rig rig;

	rig_init(&rig, 5, 3, 1);
	rig_start(&rig);
	assert_int_equal(fail_device(&rig, 0), 0);
	run_windows(&rig, 25);
	assert_int_equal(sync_request(rig.engine, ENGINE_ACTION_FROZEN), 0);
	assert_true(sim_run(rig.sim, 10000) < 10000);
	assert_int_equal(status_of(&rig).action, ENGINE_ACTION_FROZEN);
	recovered = rig.engine->devices[3].recovered_bytes;
	assert_true(recovered >= 25 * WINDOW && recovered < COMPONENT);
	/* The check would have to wait for the recovery. */
	assert_int_equal(sync_request(rig.engine, ENGINE_ACTION_CHECK), -EINVAL);
	assert_int_equal(sync_request(rig.engine, ENGINE_ACTION_IDLE), 0);
	run_out(&rig);
	assert_issued(&rig, 0, WINDOWS);
	assert_int_equal(state_of(&rig, 3), ENGINE_DEVICE_IN_SYNC);
	rig_fini(&rig);
}

static void test_pause_and_resume(void **state)
{
	static const enum engine_action actions[] = {
		ENGINE_ACTION_RESYNC, ENGINE_ACTION_CHECK, ENGINE_ACTION_RECOVERY};

	for (unsigned i = 0; i < 3; i++) {
		struct engine_command readonly = {.verb = ENGINE_READONLY};
		struct engine_command readwrite = {.verb = ENGINE_READWRITE};
		struct rig rig;

		rig_init(&rig, 6, 4, 0);
		rig.redundancy.resync_bytes = actions[i] == ENGINE_ACTION_RESYNC ? 0 : UINT64_MAX;
		rig.devices[0].in_sync = actions[i] != ENGINE_ACTION_RECOVERY;
		rig_start(&rig);
		if (actions[i] == ENGINE_ACTION_CHECK)
			assert_int_equal(sync_request(rig.engine, ENGINE_ACTION_CHECK), 0);
		run_windows(&rig, 20);
		assert_int_equal(status_of(&rig).action, actions[i]);
		assert_int_equal(command(&rig, &readonly), 0);
		assert_int_equal(rig.in_flight, 0);
		assert_true(sim_run(rig.sim, 10000) < 10000);
		assert_int_equal(status_of(&rig).action, ENGINE_ACTION_IDLE);
		if (actions[i] == ENGINE_ACTION_RESYNC)
			assert_in_range(sync_resync_bytes(rig.engine), 20 * WINDOW, COMPONENT - 1);
		assert_int_equal(command(&rig, &readwrite), 0);
		run_out(&rig);
		assert_issued(&rig, 0, WINDOWS);
		assert_true(sync_resync_bytes(rig.engine) == UINT64_MAX);
		assert_int_equal(devices_in_sync(rig.engine), 4);
		rig_fini(&rig);
	}
}

struct client {
	struct rig *rig;
	struct engine_request request;
	struct iovec iov;
	uint8_t buffer[4096];
	uint64_t started_ns, think_ns, longest_ns;
	unsigned count;
	bool stop;
	struct world_timer timer;
};

static void client_done(struct engine_request *request, int result);

static void client_next(struct world_timer *timer)
{
	struct client *client = timer->owner;

	client->iov = (struct iovec){client->buffer, sizeof(client->buffer)};
	client->request = (struct engine_request){.op = ENGINE_READ,
		.offset_bytes = sim_draw(client->rig->sim, COMPONENT / 4096) * 4096,
		.length_bytes = 4096,
		.iov = &client->iov,
		.iov_count = 1,
		.done = client_done,
		.owner = client};
	client->started_ns = sim_now_ns(client->rig->sim);
	engine_submit(client->rig->engine, &client->request);
	engine_kick(client->rig->engine);
}

static void client_done(struct engine_request *request, int result)
{
	struct client *client = request->owner;
	struct world *world = sim_world(client->rig->sim);

	assert_int_equal(result, 0);
	client->count++;
	if (!client->stop)
		world->ops->timer_arm(
			world, &client->timer, world_now_ns(world) + client->think_ns);
}

static void client_start(struct client *client, struct rig *rig, uint64_t think_ns)
{
	memset(client, 0, sizeof(*client));
	client->rig = rig;
	client->think_ns = think_ns;
	client->timer.expired = client_next;
	client->timer.owner = client;
	client_next(&client->timer);
}

static uint64_t run_resync_ns(struct rig *rig)
{
	uint64_t from = sim_now_ns(rig->sim);

	while (sync_resync_bytes(rig->engine) != UINT64_MAX)
		assert_true(sim_step(rig->sim));
	return sim_now_ns(rig->sim) - from;
}

static void test_speed(void **state)
{
	uint64_t passed;
	struct client client;
	struct rig rig;

	/* Not above the maximum, nor much below it while nobody else is there. */
	rig_init(&rig, 5, 3, 0);
	rig.redundancy.resync_bytes = 0;
	rig.redundancy.sync_speed_max = 2 * WINDOW;
	rig.redundancy.sync_speed_min = WINDOW;
	rig_start(&rig);
	while (sim_now_ns(rig.sim) < 10 * SECOND_NS)
		assert_true(sim_step(rig.sim));
	assert_in_range(status_of(&rig).speed_bytes_s, WINDOW * 18 / 10, WINDOW * 22 / 10);
	passed = 10 * SECOND_NS + run_resync_ns(&rig);
	assert_in_range(passed, 19 * SECOND_NS, 20 * SECOND_NS);
	rig_fini(&rig);

	/* Changed on the way. */
	rig_init(&rig, 5, 3, 0);
	rig.redundancy.resync_bytes = 0;
	rig.redundancy.sync_speed_min = rig.redundancy.sync_speed_max = 512;
	rig_start(&rig);
	while (sim_now_ns(rig.sim) < 60 * SECOND_NS)
		assert_true(sim_step(rig.sim));
	sync_set_speed(rig.engine, 0, 0);
	assert_int_equal(status_of(&rig).sync_speed_min, 1000 * K);
	assert_int_equal(status_of(&rig).sync_speed_max, 200000 * K);
	passed = run_resync_ns(&rig);
	assert_true(passed < SECOND_NS);
	/* What was not used is not saved up: a burst of 20 ms at most. */
	assert_true(rig.most_in_flight == SYNC_WINDOWS_MAX);
	rig_fini(&rig);

	/* Clients without a break: not below the minimum, and one window at a time above it. */
	rig_init(&rig, 5, 3, 0);
	rig.redundancy.resync_bytes = 0;
	rig.redundancy.sync_speed_min = 4 * WINDOW;
	rig.redundancy.sync_speed_max = UINT64_C(1) << 40;
	rig_start(&rig);
	client_start(&client, &rig, 0);
	passed = run_resync_ns(&rig);
	assert_true(passed <= 10 * SECOND_NS);
	/* A window takes 0.1 ms and leaves 0.3: much more than the minimum. */
	assert_in_range(passed, WINDOWS * 300000, WINDOWS * 500000);
	assert_true(rig.most_in_flight <= 2);
	client.stop = true;
	run_out(&rig);
	rig_fini(&rig);
}

/* The members are so slow that the share left by clients is below the minimum. */
static void test_minimum_wins(void **state)
{
	uint64_t passed;
	struct client client;
	struct rig rig;

	rig_init(&rig, 5, 3, 0);
	rig.redundancy.resync_bytes = 0;
	rig.redundancy.sync_speed_min = 50000 * WINDOW;
	rig.redundancy.sync_speed_max = 100000 * WINDOW;
	rig_start(&rig);
	client_start(&client, &rig, 0);
	passed = run_resync_ns(&rig);
	assert_true(passed <= 4 * (WINDOWS * 20000 + 16 * 200000));
	client.stop = true;
	run_out(&rig);
	rig_fini(&rig);
}

/* When the clients rest, the action has all of the members within a tenth of a second. */
static void test_idle_again(void **state)
{
	struct client client;
	struct rig rig;

	rig_init(&rig, 5, 3, 0);
	rig_start(&rig);
	client_start(&client, &rig, 0);
	for (int i = 0; i < 100; i++)
		assert_true(sim_step(rig.sim));
	rig.hold = true;
	assert_int_equal(sync_request(rig.engine, ENGINE_ACTION_CHECK), 0);
	run_windows(&rig, 1);
	client.stop = true;
	while (rig.held_count < SYNC_WINDOWS_MAX)
		assert_true(sim_step(rig.sim));
	assert_true(sim_now_ns(rig.sim) < SECOND_NS / 10);
	rig.hold = false;
	while (rig.held_count > 0)
		release(&rig, 0);
	run_out(&rig);
	rig_fini(&rig);
}

static void ask_something(struct rig *rig)
{
	static const enum engine_action asked[] = {ENGINE_ACTION_IDLE, ENGINE_ACTION_CHECK,
		ENGINE_ACTION_REPAIR, ENGINE_ACTION_RESYNC, ENGINE_ACTION_FROZEN};

	(void)sync_request(rig->engine, asked[sim_draw(rig->sim, 5)]);
}

static void close_and_open(struct rig *rig)
{
	struct engine_command readonly = {.verb = ENGINE_READONLY};
	struct engine_command readwrite = {.verb = ENGINE_READWRITE};

	assert_int_equal(command(rig, &readonly), 0);
	(void)sim_run(rig->sim, sim_draw(rig->sim, 50));
	assert_int_equal(rig->in_flight, 0);
	assert_int_equal(command(rig, &readwrite), 0);
}

static void remove_and_add(struct rig *rig, unsigned device)
{
	struct engine_command remove = {.verb = ENGINE_REMOVE, .device = device};
	struct engine_command add = {.verb = ENGINE_ADD, .add = &rig->devices[device]};

	if (command(rig, &remove) == 0)
		assert_int_equal(command(rig, &add), 0);
}

static void do_something(struct rig *rig)
{
	unsigned device = (unsigned)sim_draw(rig->sim, DISKS);
	struct engine_command fail = {.verb = ENGINE_FAIL, .device = device};
	struct engine_command replace = {
		.verb = ENGINE_REPLACE, .device = device, .with = ENGINE_NONE};

	rig->lost_at = sim_draw(rig->sim, 20) == 0 ? sim_draw(rig->sim, COMPONENT) : UINT64_MAX;
	switch (sim_draw(rig->sim, 6)) {
	case 0:
		(void)command(rig, &fail);
		break;
	case 1:
		remove_and_add(rig, device);
		break;
	case 2:
		(void)command(rig, &replace);
		break;
	case 3:
		ask_something(rig);
		break;
	case 4:
		close_and_open(rig);
		break;
	default:
		(void)sim_run(rig->sim, sim_draw(rig->sim, 200));
	}
}

/* All members are well again, whoever was faulty is added anew: then everything is made whole. */
static void converge(struct rig *rig)
{
	rig->lost_at = UINT64_MAX;
	(void)sync_request(rig->engine, ENGINE_ACTION_IDLE);
	run_out(rig);
	assert_int_equal(sync_request(rig->engine, ENGINE_ACTION_RESYNC), 0);
	run_out(rig);
	assert_false(rig->engine->redundant->failed);
	for (unsigned i = 0; i < DISKS; i++)
		if (state_of(rig, i) == ENGINE_DEVICE_FAULTY)
			remove_and_add(rig, i);
	run_out(rig);
	assert_false(devices_degraded(rig->engine));
	forget_windows(rig);
	assert_int_equal(sync_request(rig->engine, ENGINE_ACTION_CHECK), 0);
	run_out(rig);
	assert_issued(rig, 0, WINDOWS);
}

/* Commands, failures and pauses in any order: it always comes to rest, with all in order. */
static void test_any_order(void **state)
{
	for (unsigned seed = 1; seed <= 300; seed++) {
		struct rig rig;

		rig_init(&rig, 6, 4, 2);
		rig_start(&rig);
		for (unsigned i = 0; i < seed; i++)
			(void)sim_draw(rig.sim, 2);
		for (unsigned i = 0; i < 30; i++)
			do_something(&rig);
		converge(&rig);
		rig_fini(&rig);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_check),
		cmocka_unit_test(test_mismatches_merge),
		cmocka_unit_test(test_more_mismatches_than_room),
		cmocka_unit_test(test_requests),
		cmocka_unit_test(test_frozen_recovery),
		cmocka_unit_test(test_pause_and_resume),
		cmocka_unit_test(test_speed),
		cmocka_unit_test(test_minimum_wins),
		cmocka_unit_test(test_idle_again),
		cmocka_unit_test(test_any_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
