/* SPDX-License-Identifier: MIT */
/*
 * Leader and followers over one engine. See shared_engine.h for the idea; here are its rules.
 *
 * - Everything in struct shared_engine and engine and reactor themselves are touched only under the
 *   mutex. The one exception is reactor_wait(), which the leader calls without it.
 * - While a leader is inside reactor_wait() nobody else may run the reactor: a thread that took the
 *   leader's completion away would leave it waiting for one that never comes. While nobody is, the
 *   thread that submits also looks for completions: members in memory answer at once.
 * - A sleeping thread is woken exactly once per sleep, either because its request is done or
 *   because it shall lead. Wake-ups happen without the mutex, or the woken thread would
 *   run into it.
 * - io_uring binds a request to the thread that submitted it and cancels it when that thread ends.
 *   Whoever runs the reactor submits for others too (queued requests, second steps of a request).
 *   Therefore a thread that ends first waits until all requests that are in flight at that time are
 *   done; a thread key's destructor sees to it.
 */

#include "export/nbd/shared_engine.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <time.h>

#include "export/nbd/owned_engine.h"

/* A thread's request, on that thread's stack. */
struct waiter {
	struct shared_engine *shared;
	struct waiter *next, **back; /* in the list of sleepers, while asleep */
	struct waiter *next_woken;
	uint64_t number; /* requests are numbered in the order of their submission */
	sem_t wake;
	int result;
	bool done;
	bool asleep; /* in the list of sleepers */
	bool leads;  /* why it was woken: to lead, not because it is done */
};

/* A thread that ends, on its stack: see wait_for_older(). */
struct ender {
	struct ender *next;
	uint64_t number;    /* of the youngest request when the thread began to end */
	uint64_t remaining; /* requests with numbers up to that one that are not done yet */
};

struct shared_engine {
	struct owned_engine *owned; /* if not NULL nothing else here is used */
	pthread_mutex_t mutex;
	struct engine *engine;
	struct reactor *reactor;
	bool has_leader; /* a thread leads, or is being woken to lead */
	bool is_waiting; /* the leader is inside reactor_wait() */
	struct waiter *sleepers;
	struct waiter *woken; /* to be woken when the mutex is released */

	uint64_t submitted; /* number of the youngest request */
	uint64_t inflight;

	pthread_key_t key; /* its destructor runs when a thread that used this ends */
	struct ender *enders;
	pthread_cond_t ender_may_go;
};

static void sleepers_add(struct shared_engine *shared, struct waiter *waiter)
{
	waiter->next = shared->sleepers;
	waiter->back = &shared->sleepers;
	if (waiter->next != NULL)
		waiter->next->back = &waiter->next;
	shared->sleepers = waiter;
	waiter->asleep = true;
}

static void sleepers_remove(struct waiter *waiter)
{
	*waiter->back = waiter->next;
	if (waiter->next != NULL)
		waiter->next->back = waiter->back;
	waiter->asleep = false;
}

/* Take @waiter out of the sleepers; unlock_and_wake() wakes it. */
static void wake_later(struct shared_engine *shared, struct waiter *waiter, bool leads)
{
	sleepers_remove(waiter);
	waiter->leads = leads;
	waiter->next_woken = shared->woken;
	shared->woken = waiter;
}

static void unlock_and_wake(struct shared_engine *shared)
{
	struct waiter *waiter = shared->woken, *next;

	shared->woken = NULL;
	pthread_mutex_unlock(&shared->mutex);
	for (; waiter != NULL; waiter = next) {
		next = waiter->next_woken; /* the waiter's stack may be gone after the post */
		sem_post(&waiter->wake);
	}
}

static void enders_count(struct shared_engine *shared, uint64_t number)
{
	struct ender *ender;

	for (ender = shared->enders; ender != NULL; ender = ender->next) {
		if (number <= ender->number && --ender->remaining == 0)
			pthread_cond_broadcast(&shared->ender_may_go);
	}
}

static void request_done(struct engine_request *request, int result)
{
	struct waiter *waiter = request->owner;
	struct shared_engine *shared = waiter->shared;

	assert(!waiter->done);
	waiter->result = result;
	waiter->done = true;
	shared->inflight--;
	if (waiter->asleep)
		wake_later(shared, waiter, false);
	if (shared->enders != NULL)
		enders_count(shared, waiter->number);
}

/*
 * A thread key's destructor: the calling thread has submitted I/O for nobody but requests that are
 * in flight now; when they are done it may end. The threads that wait for them keep the reactor
 * running.
 */
static void wait_for_older(void *argument)
{
	struct shared_engine *shared = argument;
	struct ender ender, **link;

	pthread_mutex_lock(&shared->mutex);
	ender.number = shared->submitted;
	ender.remaining = shared->inflight;
	ender.next = shared->enders;
	shared->enders = &ender;
	while (ender.remaining > 0)
		pthread_cond_wait(&shared->ender_may_go, &shared->mutex);
	for (link = &shared->enders; *link != &ender; link = &(*link)->next)
		;
	*link = ender.next;
	pthread_mutex_unlock(&shared->mutex);
}

static void submit(struct waiter *waiter, struct engine_request *request)
{
	struct shared_engine *shared = waiter->shared;

	request->done = request_done;
	request->owner = waiter;
	waiter->number = ++shared->submitted;
	shared->inflight++;
	engine_submit(shared->engine, request);
	engine_kick(shared->engine);
}

/*
 * Deliver what is there. An error of the reactor other than a signal is nothing that a request
 * could be failed with, since its buffers are still the kernel's; a short rest keeps the loop from
 * burning the processor until it passes.
 */
static void deliver(struct shared_engine *shared)
{
	static const struct timespec rest = {.tv_nsec = 1000000};
	int r = reactor_run(shared->reactor, false, 0);

	if (r < 0 && r != -EINTR)
		nanosleep(&rest, NULL);
}

/* Until the own request is done: wait for members, deliver to all. Called and left locked. */
static void lead(struct waiter *waiter)
{
	struct shared_engine *shared = waiter->shared;

	while (!waiter->done) {
		shared->is_waiting = true;
		unlock_and_wake(shared);
		(void)reactor_wait(shared->reactor, UINT64_MAX); /* deliver() meets its errors */
		pthread_mutex_lock(&shared->mutex);
		shared->is_waiting = false;
		deliver(shared);
	}
	if (shared->sleepers != NULL)
		wake_later(shared, shared->sleepers, true);
	else
		shared->has_leader = false;
}

/* Sleep until woken. Called locked, left unlocked. */
static void follow(struct waiter *waiter)
{
	sleepers_add(waiter->shared, waiter);
	unlock_and_wake(waiter->shared);
	while (sem_wait(&waiter->wake) < 0)
		assert(errno == EINTR);
}

/* Called locked with the request submitted, left unlocked with the request done. */
static void wait_until_done(struct waiter *waiter)
{
	struct shared_engine *shared = waiter->shared;

	if (!shared->is_waiting)
		deliver(shared);
	if (!waiter->done && shared->has_leader) {
		follow(waiter);
		if (!waiter->leads)
			return;
		pthread_mutex_lock(&shared->mutex);
		lead(waiter);
	} else if (!waiter->done) {
		shared->has_leader = true;
		lead(waiter);
	}
	unlock_and_wake(shared);
}

int shared_engine_do(struct shared_engine *shared, struct engine_request *request)
{
	struct waiter waiter = {.shared = shared};

	if (shared->owned != NULL)
		return owned_engine_do(shared->owned, request);
	sem_init(&waiter.wake, 0, 0);
	if (pthread_getspecific(shared->key) == NULL)
		(void)pthread_setspecific(shared->key, shared);
	pthread_mutex_lock(&shared->mutex);
	submit(&waiter, request);
	wait_until_done(&waiter);
	sem_destroy(&waiter.wake);
	return waiter.result;
}

int shared_engine_new(struct engine *engine, struct reactor *reactor, struct shared_engine **ret)
{
	struct shared_engine *shared = calloc(1, sizeof(*shared));
	int r;

	if (shared == NULL)
		return -ENOMEM;
	r = engine_device_max(engine) > 0 ? owned_engine_new(engine, reactor, &shared->owned)
					  : -pthread_key_create(&shared->key, wait_for_older);
	if (r < 0) {
		free(shared);
		return r;
	}
	pthread_mutex_init(&shared->mutex, NULL);
	pthread_cond_init(&shared->ender_may_go, NULL);
	shared->engine = engine;
	shared->reactor = reactor;
	*ret = shared;
	return 0;
}

void shared_engine_free(struct shared_engine *shared)
{
	if (shared == NULL)
		return;
	assert(shared->inflight == 0);
	if (shared->owned != NULL)
		owned_engine_free(shared->owned);
	else
		pthread_key_delete(shared->key);
	pthread_cond_destroy(&shared->ender_may_go);
	pthread_mutex_destroy(&shared->mutex);
	free(shared);
}

void shared_engine_call(
	struct shared_engine *shared, void (*function)(void *argument), void *argument)
{
	if (shared->owned != NULL) {
		owned_engine_call(shared->owned, function, argument);
		return;
	}
	pthread_mutex_lock(&shared->mutex);
	function(argument);
	unlock_and_wake(shared);
}
