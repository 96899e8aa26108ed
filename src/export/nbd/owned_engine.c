/* SPDX-License-Identifier: MIT */
#include "export/nbd/owned_engine.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

/* What a thread wants, on its stack. */
struct errand {
	struct errand *next;
	struct engine_request *request; /* or: */
	void (*function)(void *argument);
	void *argument;
	int result;
	sem_t done;
};

struct owned_engine {
	struct engine *engine;
	struct reactor *reactor;
	pthread_t thread;
	struct reactor_watch wake; /* eventfd: there are errands */
	bool leave;                /* the thread's own */
	pthread_mutex_t lock;
	struct errand *first, **last; /* under the lock */
};

static void wait_for(struct errand *errand)
{
	while (sem_wait(&errand->done) < 0)
		assert(errno == EINTR);
	(void)sem_destroy(&errand->done);
}

/* Only the first wakes the thread: it takes all that have come until then. */
static void hand_over(struct owned_engine *owned, struct errand *errand)
{
	const uint64_t one = 1;
	bool was_empty;

	(void)sem_init(&errand->done, 0, 0); /* valid arguments */
	(void)pthread_mutex_lock(&owned->lock);
	was_empty = owned->first == NULL;
	errand->next = NULL;
	*owned->last = errand;
	owned->last = &errand->next;
	(void)pthread_mutex_unlock(&owned->lock);
	if (was_empty && write(owned->wake.fd, &one, sizeof(one)) != sizeof(one))
		abort(); /* only an overflow of 2⁶⁴ wake-ups could refuse it */
	wait_for(errand);
}

static void request_done(struct engine_request *request, int result)
{
	struct errand *errand = request->owner;

	errand->result = result;
	(void)sem_post(&errand->done); /* from here on the errand may be gone */
}

static void take_errands(struct reactor_watch *watch, short revents)
{
	struct owned_engine *owned = watch->owner;
	struct errand *errand, *next;
	uint64_t count;

	if (read(watch->fd, &count, sizeof(count)) < 0)
		return; /* EAGAIN */
	(void)pthread_mutex_lock(&owned->lock);
	errand = owned->first;
	owned->first = NULL;
	owned->last = &owned->first;
	(void)pthread_mutex_unlock(&owned->lock);
	for (; errand != NULL; errand = next) {
		next = errand->next;
		if (errand->request != NULL) {
			engine_submit(owned->engine, errand->request);
		} else {
			errand->function(errand->argument);
			(void)sem_post(&errand->done);
		}
	}
	engine_kick(owned->engine);
}

/*
 * An error of the reactor other than a signal is nothing that a request could be failed with; a
 * short rest keeps the loop from burning the processor until it passes.
 */
static void *own(void *argument)
{
	static const struct timespec rest = {.tv_nsec = 1000000};
	struct owned_engine *owned = argument;

	while (!owned->leave) {
		int r = reactor_run(owned->reactor, true, UINT64_MAX);

		if (r < 0 && r != -EINTR)
			nanosleep(&rest, NULL);
	}
	return NULL;
}

/* Signals are for the threads that know what to do with them. */
static int start_thread(struct owned_engine *owned)
{
	sigset_t all, old;
	int r;

	sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &old); /* valid arguments */
	r = -pthread_create(&owned->thread, NULL, own, owned);
	(void)pthread_sigmask(SIG_SETMASK, &old, NULL);
	return r;
}

int owned_engine_new(struct engine *engine, struct reactor *reactor, struct owned_engine **ret)
{
	struct owned_engine *owned = calloc(1, sizeof(*owned));
	int r;

	if (owned == NULL)
		return -ENOMEM;
	owned->engine = engine;
	owned->reactor = reactor;
	owned->last = &owned->first;
	owned->wake = (struct reactor_watch){.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
		.events = POLLIN,
		.ready = take_errands,
		.owner = owned};
	if (owned->wake.fd < 0) {
		r = -errno;
		free(owned);
		return r;
	}
	(void)pthread_mutex_init(&owned->lock, NULL); /* cannot fail with these attributes */
	r = reactor_watch_add(reactor, &owned->wake);
	if (r == 0) {
		r = start_thread(owned);
		if (r < 0)
			reactor_watch_remove(reactor, &owned->wake);
	}
	if (r == 0) {
		*ret = owned;
		return 0;
	}
	close(owned->wake.fd);
	free(owned);
	return r;
}

static void leave(void *argument)
{
	struct owned_engine *owned = argument;

	owned->leave = true;
}

void owned_engine_free(struct owned_engine *owned)
{
	if (owned == NULL)
		return;
	owned_engine_call(owned, leave, owned);
	(void)pthread_join(owned->thread, NULL); /* our own thread */
	assert(engine_inflight(owned->engine) == 0);
	reactor_watch_remove(owned->reactor, &owned->wake);
	close(owned->wake.fd);
	(void)pthread_mutex_destroy(&owned->lock);
	free(owned);
}

int owned_engine_do(struct owned_engine *owned, struct engine_request *request)
{
	struct errand errand = {.request = request};

	request->done = request_done;
	request->owner = &errand;
	hand_over(owned, &errand);
	return errand.result;
}

void owned_engine_call(struct owned_engine *owned, void (*function)(void *argument), void *argument)
{
	struct errand errand = {.function = function, .argument = argument};

	hand_over(owned, &errand);
}
