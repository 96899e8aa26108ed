/* SPDX-License-Identifier: MIT */
/* The loop of both reactors: timers, watches, and a wait on another thread. */
#include "io/test_rig.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#if __has_include(<valgrind/valgrind.h>)
#include <valgrind/valgrind.h>
#else
#define RUNNING_ON_VALGRIND 0
#endif
#include "util/rounding.h"

#define MS 1000000ull
#define LONG_WAIT_NS (100000 * MS) /* longer than the test's time limit: a lost wake-up fails */

struct rig {
	struct member *members[1];
	struct member full; /* /dev/full: answers at once */
	struct reactor *reactor;
	struct world *world;
	char log[64]; /* one letter for each event, in order */
	int pipe[2], other_pipe[2];
};

static int set_up(void **state)
{
	const bool *sync = *state;
	struct rig *rig = calloc(1, sizeof(*rig));
	struct reactor_options options = {
		.members = rig->members, .member_count = 1, .io_max = 4, .sync = *sync};
	struct fault fault = {0};

	rig->full = (struct member){.fd = open("/dev/full", O_RDWR | O_CLOEXEC), .memory_align = 1};
	rig->members[0] = &rig->full;
	assert_int_equal(pipe2(rig->pipe, O_CLOEXEC | O_NONBLOCK), 0);
	assert_int_equal(pipe2(rig->other_pipe, O_CLOEXEC | O_NONBLOCK), 0);
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
	for (unsigned i = 0; i < 2; i++) {
		if (rig->pipe[i] >= 0)
			close(rig->pipe[i]);
		close(rig->other_pipe[i]);
	}
	close(rig->full.fd);
	free(rig);
	return 0;
}

static void note(struct rig *rig, char letter)
{
	size_t length = strlen(rig->log);

	assert_true(length + 1 < sizeof(rig->log));
	rig->log[length] = letter;
}

/* Run until the log has @length letters. */
static void run_until(struct rig *rig, size_t length)
{
	while (strlen(rig->log) < length)
		assert_true(reactor_run(rig->reactor, true, LONG_WAIT_NS) >= 0);
}

/* Timers. */

struct alarm {
	struct world_timer timer;
	struct rig *rig;
	char letter;
	unsigned again; /* arm for now so many times more */
	struct alarm *cancels;
};

static void expired(struct world_timer *timer)
{
	struct alarm *alarm = timer->owner;
	struct world *world = alarm->rig->world;

	assert_true(world_now_ns(world) >= timer->due_ns);
	assert_int_equal(timer->armed, 0);
	note(alarm->rig, alarm->letter);
	if (alarm->cancels != NULL)
		world->ops->timer_cancel(world, &alarm->cancels->timer);
	if (alarm->again > 0) {
		alarm->again--;
		world->ops->timer_arm(world, timer, world_now_ns(world));
	}
}

static void arm(struct rig *rig, struct alarm *alarm, char letter, uint64_t due_ns)
{
	alarm->timer.expired = expired;
	alarm->timer.owner = alarm;
	alarm->rig = rig;
	alarm->letter = letter;
	rig->world->ops->timer_arm(rig->world, &alarm->timer, due_ns);
}

static void timers_expire_in_order(void **state)
{
	struct rig *rig = *state;
	struct alarm alarms[5] = {0};
	uint64_t now = world_now_ns(rig->world);

	arm(rig, &alarms[0], 'c', now + 3 * MS);
	arm(rig, &alarms[1], 'a', now + 1 * MS);
	arm(rig, &alarms[2], 'x', now + 2 * MS); /* cancelled by 'a' */
	arm(rig, &alarms[3], 'd', now + 1 * MS); /* re-armed for later */
	arm(rig, &alarms[3], 'd', now + 4 * MS);
	arm(rig, &alarms[4], 'b', now + 1 * MS); /* as due as 'a', but armed later */
	alarms[1].cancels = &alarms[2];
	run_until(rig, 4);
	assert_string_equal(rig->log, "abcd");
	assert_true(world_now_ns(rig->world) >= now + 4 * MS);
	rig->world->ops->timer_cancel(rig->world, &alarms[0].timer); /* not armed: nothing */
	assert_int_equal(reactor_run(rig->reactor, false, 0), 0);
}

static void wait_ends_at_its_limit(void **state)
{
	struct rig *rig = *state;
	uint64_t before = world_now_ns(rig->world);
	struct alarm alarm = {0};

	arm(rig, &alarm, 'x', before + LONG_WAIT_NS);
	assert_int_equal(reactor_run(rig->reactor, true, 5 * MS), 0);
	assert_true(world_now_ns(rig->world) >= before + 5 * MS);
	before = world_now_ns(rig->world);
	assert_int_equal(reactor_wait(rig->reactor, 5 * MS), 0);
	assert_true(world_now_ns(rig->world) >= before + 5 * MS);
	assert_int_equal(reactor_run(rig->reactor, false, 0), 0);
	assert_string_equal(rig->log, "");
	rig->world->ops->timer_cancel(rig->world, &alarm.timer);
}

static void io_done(struct world_io *io, int result)
{
	assert_int_equal(result, -ENOSPC);
	note(io->owner, 'i');
}

static void write_to(struct rig *rig, struct world_io *io, bool kick)
{
	static const struct iovec iov = {(void *)"x", 1};

	*io = (struct world_io){.op = WORLD_WRITE,
		.iov = &iov,
		.iov_count = 1,
		.length_bytes = 1,
		.done = io_done,
		.owner = rig};
	world_submit(rig->world, io);
	if (kick)
		world_kick(rig->world);
}

static void count_expiry(struct world_timer *timer)
{
	struct alarm *alarm = timer->owner;

	alarm->again++;
	alarm->rig->world->ops->timer_arm(alarm->rig->world, timer, 0);
}

/* A timer that is always due: a run ends all the same, and I/O gets its turn without a kick. */
static void endless_timer_starves_nobody(void **state)
{
	struct rig *rig = *state;
	struct alarm alarm = {.rig = rig, .timer = {.expired = count_expiry, .owner = &alarm}};
	struct world_io io;

	rig->world->ops->timer_arm(rig->world, &alarm.timer, 0);
	assert_true(reactor_run(rig->reactor, false, 0) > 0);
	assert_true(alarm.again > 0);
	write_to(rig, &io, false);
	run_until(rig, 1);
	assert_string_equal(rig->log, "i");
	rig->world->ops->timer_cancel(rig->world, &alarm.timer);
}

/* Watches. */

struct look {
	struct reactor_watch watch;
	struct rig *rig;
	char letter;
	bool leaves;             /* take the watch away when it is ready */
	struct look *takes_away; /* and another one */
	struct look *adds;
	short revents;
};

static void ready(struct reactor_watch *watch, short revents)
{
	struct look *look = watch->owner;
	char byte;

	look->revents = revents;
	if (revents & POLLIN)
		note(look->rig, read(watch->fd, &byte, 1) == 1 ? byte : '!');
	else
		note(look->rig, look->letter);
	if (look->takes_away != NULL)
		reactor_watch_remove(look->rig->reactor, &look->takes_away->watch);
	look->takes_away = NULL;
	if (look->leaves)
		reactor_watch_remove(look->rig->reactor, watch);
	if (look->adds != NULL)
		assert_int_equal(reactor_watch_add(look->rig->reactor, &look->adds->watch), 0);
	look->adds = NULL;
}

static void prepare(struct rig *rig, struct look *look, int fd, char letter)
{
	look->watch = (struct reactor_watch){
		.fd = fd, .events = POLLIN, .ready = ready, .owner = look};
	look->rig = rig;
	look->letter = letter;
}

static void put(int fd, const char *bytes)
{
	assert_int_equal(write(fd, bytes, strlen(bytes)), strlen(bytes));
}

/* Nothing but what run() finds without waiting, asked a few times as the ring needs a round. */
static void run_what_is_there(struct rig *rig)
{
	for (unsigned i = 0; i < 8; i++)
		assert_true(reactor_run(rig->reactor, true, MS) >= 0);
}

static void watch_tells_as_long_as_it_is_so(void **state)
{
	struct rig *rig = *state;
	struct look look = {0};

	prepare(rig, &look, rig->pipe[0], 'h');
	put(rig->pipe[1], "ab"); /* before it is watched; one byte is taken at a time */
	assert_int_equal(reactor_watch_add(rig->reactor, &look.watch), 0);
	run_until(rig, 2);
	run_what_is_there(rig);
	assert_string_equal(rig->log, "ab");
	put(rig->pipe[1], "c");
	look.leaves = true;
	run_until(rig, 3);
	put(rig->pipe[1], "d"); /* nobody looks any more */
	run_what_is_there(rig);
	assert_string_equal(rig->log, "abc");
	look.leaves = false;
	assert_int_equal(reactor_watch_add(rig->reactor, &look.watch), 0);
	run_until(rig, 4);
	assert_string_equal(rig->log, "abcd");
	reactor_watch_remove(rig->reactor, &look.watch);
}

static void watch_tells_the_end(void **state)
{
	struct rig *rig = *state;
	struct look look = {.leaves = true};

	prepare(rig, &look, rig->pipe[0], 'h');
	assert_int_equal(reactor_watch_add(rig->reactor, &look.watch), 0);
	run_what_is_there(rig);
	assert_string_equal(rig->log, "");
	close(rig->pipe[1]);
	rig->pipe[1] = -1;
	run_until(rig, 1);
	assert_true(look.revents & POLLHUP);
	assert_string_equal(rig->log, "h");
}

static void watch_of_no_descriptor_tells(void **state)
{
	struct rig *rig = *state;
	struct look look = {.leaves = true};

	prepare(rig, &look, 1 << 20, 'n');
	assert_int_equal(reactor_watch_add(rig->reactor, &look.watch), 0);
	run_until(rig, 1);
	assert_true(look.revents & POLLNVAL);
	run_what_is_there(rig);
	assert_string_equal(rig->log, "n");
}

/* Both are ready; whichever comes first takes the other away, and is obeyed at once. */
static void watch_taken_away_is_silent(void **state)
{
	struct rig *rig = *state;
	struct look looks[2] = {{.leaves = true}, {.leaves = true}}, third = {0};

	prepare(rig, &looks[0], rig->pipe[0], 'h');
	prepare(rig, &looks[1], rig->other_pipe[0], 'h');
	looks[0].takes_away = &looks[1];
	looks[1].takes_away = &looks[0];
	prepare(rig, &third, rig->other_pipe[1], 'w');
	third.watch.events = POLLOUT;
	third.leaves = true;
	looks[0].adds = looks[1].adds = &third; /* perhaps into the place that became free */
	put(rig->pipe[1], "a");
	put(rig->other_pipe[1], "a");
	assert_int_equal(reactor_watch_add(rig->reactor, &looks[0].watch), 0);
	assert_int_equal(reactor_watch_add(rig->reactor, &looks[1].watch), 0);
	run_until(rig, 2);
	run_what_is_there(rig);
	assert_string_equal(rig->log, "aw");
}

static void watches_have_a_limit(void **state)
{
	struct rig *rig = *state;
	struct look *looks = calloc(1000, sizeof(*looks));
	unsigned count = 0;

	for (unsigned round = 0; round < 3; round++) { /* places are used again */
		unsigned before = count;

		for (count = 0; count < 1000; count++) {
			prepare(rig, &looks[count], rig->pipe[0], 'h');
			if (reactor_watch_add(rig->reactor, &looks[count].watch) < 0)
				break;
		}
		assert_in_range(count, 16, 999);
		assert_true(round == 0 || count == before);
		run_what_is_there(rig);
		assert_int_equal(reactor_watch_add(rig->reactor, &looks[count].watch), -ENOSPC);
		for (unsigned i = 0; i < count; i++)
			reactor_watch_remove(rig->reactor, &looks[i].watch);
		run_what_is_there(rig);
	}
	free(looks);
}

/* A thread that waits while the test's own thread submits, as the NBD export does. */

struct waiter {
	struct rig *rig;
	pthread_t thread;
	pid_t id;
	int result;
};

static void *wait_there(void *argument)
{
	struct waiter *waiter = argument;

	__atomic_store_n(&waiter->id, (pid_t)syscall(SYS_gettid), __ATOMIC_SEQ_CST);
	waiter->result = reactor_wait(waiter->rig->reactor, LONG_WAIT_NS);
	return NULL;
}

/*
 * Is the thread asleep in the kernel (man 5 proc: the letter behind the name in parentheses), or at
 * its end already? A wake-up that came too late for one wait may end the next one early.
 */
static bool is_asleep(const struct waiter *waiter)
{
	pid_t id = __atomic_load_n(&waiter->id, __ATOMIC_SEQ_CST);
	char path[64], line[256] = "";
	FILE *file;

	if (id == 0)
		return false;
	(void)snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)id);
	file = fopen(path, "re");
	if (file == NULL)
		return true;
	(void)!fgets(line, sizeof(line), file);
	fclose(file);
	return strstr(line, ") S ") != NULL;
}

/* The cases below, where one thread waits in the kernel and another one works. */
static struct rig *two_threads(void **state)
{
	struct rig *rig = *state;

	if (RUNNING_ON_VALGRIND && strcmp(reactor_kind(rig->reactor), "uring") == 0) {
		print_message("valgrind holds all threads while one waits for a ring\n");
		skip();
	}
	return rig;
}

static void start_waiting(struct rig *rig, struct waiter *waiter, bool until_asleep)
{
	*waiter = (struct waiter){.rig = rig};
	assert_int_equal(pthread_create(&waiter->thread, NULL, wait_there, waiter), 0);
	while (until_asleep && !is_asleep(waiter))
		;
}

static void wait_sees_io(void **state)
{
	struct rig *rig = two_threads(state);
	struct waiter waiter;
	struct world_io ios[4];

	for (unsigned round = 0; round < 300; round++) {
		memset(rig->log, 0, sizeof(rig->log));
		start_waiting(rig, &waiter, round % 8 == 0);
		for (unsigned i = 0; i < 4; i++)
			write_to(rig, &ios[i], true);
		assert_int_equal(pthread_join(waiter.thread, NULL), 0);
		assert_int_equal(waiter.result, 0);
		assert_string_equal(rig->log, ""); /* waiting delivers nothing */
		while (strlen(rig->log) < 4)
			assert_true(reactor_run(rig->reactor, false, 0) >= 0);
		assert_string_equal(rig->log, "iiii");
	}
}

static void wait_sees_new_timer(void **state)
{
	struct rig *rig = two_threads(state);
	struct waiter waiter;
	struct alarm alarm = {0}, late = {0};

	for (unsigned round = 0; round < 50; round++) {
		memset(rig->log, 0, sizeof(rig->log));
		arm(rig, &late, 'x', world_now_ns(rig->world) + 2 * LONG_WAIT_NS);
		start_waiting(rig, &waiter, round % 2 == 0);
		arm(rig, &alarm, 't', world_now_ns(rig->world) + MS / 10);
		assert_int_equal(pthread_join(waiter.thread, NULL), 0);
		assert_int_equal(waiter.result, 0);
		run_until(rig, 1);
		assert_string_equal(rig->log, "t");
	}
	rig->world->ops->timer_cancel(rig->world, &late.timer);
}

static void wait_sees_new_watch(void **state)
{
	struct rig *rig = two_threads(state);
	struct waiter waiter;
	struct look look = {.leaves = true};

	put(rig->pipe[1], "p");
	prepare(rig, &look, rig->pipe[0], 'h');
	start_waiting(rig, &waiter, true);
	assert_int_equal(reactor_watch_add(rig->reactor, &look.watch), 0);
	assert_int_equal(pthread_join(waiter.thread, NULL), 0);
	assert_int_equal(waiter.result, 0);
	run_until(rig, 1);
	assert_string_equal(rig->log, "p");
}

struct restless {
	struct rig *rig;
	bool stop;
	unsigned waits;
};

static void *wait_again_and_again(void *argument)
{
	struct restless *restless = argument;

	while (!__atomic_load_n(&restless->stop, __ATOMIC_SEQ_CST)) {
		assert_int_equal(reactor_wait(restless->rig->reactor, LONG_WAIT_NS), 0);
		__atomic_add_fetch(&restless->waits, 1, __ATOMIC_SEQ_CST);
	}
	return NULL;
}

/*
 * A waiting thread looks without the owner's lock: watches come and go meanwhile, and what is gone
 * is somebody else's memory. The sanitizers see a look at it.
 */
static void wait_survives_removed_watches(void **state)
{
	struct rig *rig = two_threads(state);
	struct restless restless = {.rig = rig};
	struct world_io io;
	pthread_t thread;

	put(rig->pipe[1], "x");
	assert_int_equal(pthread_create(&thread, NULL, wait_again_and_again, &restless), 0);
	for (unsigned i = 0; i < 2000 || __atomic_load_n(&restless.waits, __ATOMIC_SEQ_CST) < 200;
		i++) {
		struct look *look = calloc(1, sizeof(*look));

		prepare(rig, look, rig->pipe[0], 'h');
		assert_int_equal(reactor_watch_add(rig->reactor, &look->watch), 0);
		while (i % 100 == 0 && rig->log[0] == '\0') /* a look now and then */
			assert_true(reactor_run(rig->reactor, false, 0) >= 0);
		if (rig->log[0] != '\0')
			put(rig->pipe[1], "x");
		rig->log[0] = '\0';
		reactor_watch_remove(rig->reactor, &look->watch);
		free(look);
		assert_true(reactor_run(rig->reactor, false, 0) >= 0);
	}
	__atomic_store_n(&restless.stop, true, __ATOMIC_SEQ_CST);
	write_to(rig, &io, true);
	assert_int_equal(pthread_join(thread, NULL), 0);
	run_until(rig, 1);
	assert_string_equal(rig->log, "i");
}

/* From now on the kernel says -EAGAIN when requests are handed to a ring, as if short of memory. */
static void refuse_requests(void)
{
	struct sock_filter steps[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_enter, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EAGAIN),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {sizeof(steps) / sizeof(steps[0]), steps};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
		prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0)
		_exit(77);
}

/* That passes, so it is no error of the loop, which would end an array's process. */
static void shortage_is_no_error(void **state)
{
	struct rig *rig = *state;
	struct world_io io;
	pid_t child = fork();
	int status;

	if (child == 0) {
		refuse_requests();
		for (unsigned i = 0; i < 3; i++) {
			write_to(rig, &io, true);
			if (reactor_run(rig->reactor, true, MS) < 0)
				_exit(1);
		}
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
		print_message("no seccomp here\n");
		skip();
	}
	assert_int_equal(status, 0);
}

static void world_tells_time_and_chance(void **state)
{
	struct rig *rig = *state;
	uint8_t random[2][64];
	uint64_t wall = rig->world->ops->wall_seconds(rig->world);

	assert_true(wall >= (uint64_t)time(NULL) - 10 && wall <= (uint64_t)time(NULL));
	rig->world->ops->random(rig->world, random[0], 64);
	rig->world->ops->random(rig->world, random[1], 64);
	assert_memory_not_equal(random[0], random[1], 64);
}

static const char *kind_of(bool first_in_memory, bool second_in_memory, struct reactor_options how)
{
	struct member one = {.fd = open("/dev/full", O_RDWR | O_CLOEXEC), .memory_align = 1};
	struct member two = one;
	struct member *members[] = {&one, &two};
	struct reactor *reactor;
	const char *kind;

	one.in_memory = first_in_memory;
	two.in_memory = second_in_memory;
	how.members = members;
	how.member_count = 2;
	how.io_max = 1;
	assert_int_equal(reactor_new(&how, &reactor, NULL), 0);
	kind = reactor_kind(reactor);
	reactor_free(reactor);
	close(one.fd);
	return kind;
}

static void plain_calls_where_all_is_memory(void **state)
{
	const struct reactor_options any = {0}, sync = {.sync = true}, ring = {.ring = true};

	assert_string_equal(kind_of(true, true, any), "sync");
	assert_string_equal(kind_of(true, true, ring), "uring");
	assert_string_equal(kind_of(true, false, any), "uring");
	assert_string_equal(kind_of(false, true, any), "uring");
	assert_string_equal(kind_of(false, false, any), "uring");
	assert_string_equal(kind_of(false, false, sync), "sync");
}

static const bool kinds[] = {false, true};

#define BOTH(function)                                                             \
	{"uring: " #function, function, set_up, tear_down, (void *)&kinds[0]},     \
	{                                                                          \
		"sync: " #function, function, set_up, tear_down, (void *)&kinds[1] \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(timers_expire_in_order),
		BOTH(wait_ends_at_its_limit),
		BOTH(endless_timer_starves_nobody),
		BOTH(watch_tells_as_long_as_it_is_so),
		BOTH(watch_tells_the_end),
		BOTH(watch_of_no_descriptor_tells),
		BOTH(watch_taken_away_is_silent),
		BOTH(watches_have_a_limit),
		BOTH(wait_sees_io),
		BOTH(wait_sees_new_timer),
		BOTH(wait_sees_new_watch),
		BOTH(wait_survives_removed_watches),
		BOTH(shortage_is_no_error),
		BOTH(world_tells_time_and_chance),
		cmocka_unit_test(plain_calls_where_all_is_memory),
	};

	return cmocka_run_group_tests_name("reactor", tests, NULL, NULL);
}
