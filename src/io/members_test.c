/* SPDX-License-Identifier: MIT */
/* Members that come and go while the reactor runs. */
#include "io/test_rig.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>

#define MEMBERS 3u
#define BYTES (64u * K)

struct rig {
	char folder[256], path[MEMBERS][300];
	struct member *members[MEMBERS];
	struct reactor *reactor;
	struct world *world;
};

static int set_up(void **state)
{
	const bool *sync = *state;
	struct rig *rig = calloc(1, sizeof(*rig));
	struct reactor_options options = {.members = rig->members,
		.member_count = 1,
		.member_max = 2,
		.io_max = 4,
		.sync = *sync,
		.ring = !*sync};
	struct fault fault = {0};

	make_folder(NULL, rig->folder, sizeof(rig->folder));
	for (unsigned i = 0; i < MEMBERS; i++) {
		int fd;

		(void)snprintf(rig->path[i], sizeof(rig->path[i]), "%s/d%u", rig->folder, i);
		fd = open(rig->path[i], O_CREAT | O_RDWR | O_CLOEXEC, 0600);
		assert_int_equal(ftruncate(fd, BYTES), 0);
		close(fd);
		assert_int_equal(
			member_open(rig->path[i], MEMBER_EXCLUSIVE, &rig->members[i], &fault), 0);
	}
	assert_int_equal(reactor_new(&options, &rig->reactor, &fault), 0);
	assert_string_equal(reactor_kind(rig->reactor), *sync ? "sync" : "uring");
	rig->world = reactor_world(rig->reactor);
	*state = rig;
	return 0;
}

static int tear_down(void **state)
{
	struct rig *rig = *state;

	reactor_free(rig->reactor);
	for (unsigned i = 0; i < MEMBERS; i++) {
		member_close(rig->members[i]);
		(void)unlink(rig->path[i]);
	}
	(void)rmdir(rig->folder);
	free(rig);
	return 0;
}

static void done(struct world_io *io, int result)
{
	int *ret = io->owner;

	*ret = result;
}

/* One sector at the start of member @index, filled by or compared with @seed. */
static void transfer(struct rig *rig, enum world_op op, unsigned index, uint64_t seed)
{
	static uint8_t buffer[4096] __attribute__((aligned(4096)));
	uint8_t wanted[sizeof(buffer)];
	struct iovec iov = {buffer, sizeof(buffer)};
	int result = 1;
	struct world_io io = {.op = op,
		.member = index,
		.iov = &iov,
		.iov_count = 1,
		.length_bytes = sizeof(buffer),
		.done = done,
		.owner = &result};

	fill(wanted, sizeof(wanted), seed);
	if (op == WORLD_WRITE)
		memcpy(buffer, wanted, sizeof(buffer));
	else
		memset(buffer, 0, sizeof(buffer));
	world_submit(rig->world, &io);
	world_kick(rig->world);
	while (result == 1)
		assert_true(reactor_run(rig->reactor, true, UINT64_MAX) >= 0);
	assert_int_equal(result, 0);
	assert_memory_equal(buffer, wanted, sizeof(buffer));
}

static bool can_be_taken(const char *path)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);
	bool taken = flock(fd, LOCK_EX | LOCK_NB) == 0;

	close(fd);
	return taken;
}

static void members_come_and_go(void **state)
{
	struct rig *rig = *state;
	struct fault fault = {0};
	unsigned index = 77;

	assert_int_equal(reactor_member_max(rig->reactor), 2);
	assert_int_equal(reactor_member_add(rig->reactor, rig->members[1], &index), 0);
	assert_int_equal(index, 1);
	assert_ptr_equal(reactor_members(rig->reactor)[1], rig->members[1]);
	transfer(rig, WORLD_WRITE, 0, 10);
	transfer(rig, WORLD_WRITE, 1, 11);
	assert_int_equal(reactor_member_add(rig->reactor, rig->members[2], &index), -ENOSPC);

	/* Another one gets its number, and reads are of its own bytes. */
	reactor_member_remove(rig->reactor, 0);
	assert_null(reactor_members(rig->reactor)[0]);
	assert_int_equal(reactor_member_add(rig->reactor, rig->members[2], &index), 0);
	assert_int_equal(index, 0);
	transfer(rig, WORLD_READ, 1, 11);
	transfer(rig, WORLD_WRITE, 0, 12);
	transfer(rig, WORLD_READ, 0, 12);

	/* The one that has gone is nobody's once it is closed, and kept what it had. */
	member_close(rig->members[0]);
	assert_true(can_be_taken(rig->path[0]));
	assert_false(can_be_taken(rig->path[2]));
	assert_int_equal(member_open(rig->path[0], MEMBER_EXCLUSIVE, &rig->members[0], &fault), 0);
	reactor_member_remove(rig->reactor, 1);
	assert_int_equal(reactor_member_add(rig->reactor, rig->members[0], &index), 0);
	assert_int_equal(index, 1);
	transfer(rig, WORLD_READ, 1, 10);
}

static void again_and_again(void **state)
{
	struct rig *rig = *state;
	unsigned index;

	for (unsigned i = 0; i < 200; i++) {
		unsigned which = 1 + i % 2;

		assert_int_equal(reactor_member_add(rig->reactor, rig->members[which], &index), 0);
		assert_int_equal(index, 1);
		transfer(rig, WORLD_WRITE, 1, i);
		reactor_member_remove(rig->reactor, 1);
	}
}

static bool uring_flavour = false, sync_flavour = true;

#define BOTH(test)                                                    \
	{#test " uring", test, set_up, tear_down, &uring_flavour},    \
	{                                                             \
#test " sync", test, set_up, tear_down, &sync_flavour \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(members_come_and_go),
		BOTH(again_and_again),
	};

	return cmocka_run_group_tests_name("members", tests, NULL, NULL);
}
