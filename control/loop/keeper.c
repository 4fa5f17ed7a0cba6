// SPDX-License-Identifier: BSD-3-Clause
// Keeper: a thread for calls that may hang. The control thread owns the keeper. Shared state is in
// `struct shared`, behind its mutex; the last user frees it.
//
// A job belongs to one thread at a time: to the keeper's thread from enqueueing until it is done,
// else to the loop. Only the loop uses `asked_next`, `keeper` and `request`.
#include <control/keeper.h>
#include <lib/container.h>
#include <lib/error.h>
#include <lib/must.h>
#include <lib/thread.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct keeper_job {
	struct keeper_job *next; // link in a list of `struct shared`
	struct keeper_call call;
	int result;
	// Owned by the loop.
	struct keeper_job *asked_next;
	struct keeper *keeper;
	struct keeper_request *request; // NULL: cancelled
};

struct job_list {
	struct keeper_job *first, *last;
};

struct shared {
	pthread_mutex_t mutex;
	pthread_cond_t wanted;
	struct job_list queue, done;
	bool busy, stop;
	uint32_t references;
	int event_fd;
};

struct keeper {
	struct loop *loop;
	struct loop_source source;
	struct loop_timer look;
	struct keeper_ops ops;
	struct shared *shared;
	pthread_t thread;
	struct keeper_job *asked; // all unfinished jobs, in order of request
	uint32_t pending;
	uint64_t since_ns; // when the first job of `asked` became the first
	bool stuck;
	struct keeper_counters counters;
	struct keeper_counters *totals, unshared; // `unshared` is used without shared totals
	char name[KEEPER_NAME_BYTES];
};

static void job_list_append(struct job_list *list, struct keeper_job *job) {
	job->next = NULL;
	if (list->first == NULL)
		list->first = job;
	else
		list->last->next = job;
	list->last = job;
}

static struct keeper_job *job_list_pop(struct job_list *list) {
	struct keeper_job *job = list->first;

	if (job != NULL)
		list->first = job->next;
	return job;
}

static bool job_list_remove(struct job_list *list, const struct keeper_job *job) {
	struct keeper_job *before = NULL;

	for (struct keeper_job *at = list->first; at != NULL; before = at, at = at->next) {
		if (at != job)
			continue;
		if (before == NULL)
			list->first = at->next;
		else
			before->next = at->next;
		if (list->last == at)
			list->last = before;
		return true;
	}
	return false;
}

static void job_drop(struct keeper_job *job) {
	if (job->call.drop != NULL)
		job->call.drop(job->call.arg);
	free(job);
}

static void job_list_drop(struct job_list *list) {
	struct keeper_job *job;

	while ((job = job_list_pop(list)) != NULL)
		job_drop(job);
}

static void shared_unref(struct shared *shared) {
	bool last;

	pthread_mutex_lock(&shared->mutex);
	last = --shared->references == 0;
	pthread_mutex_unlock(&shared->mutex);
	if (!last)
		return;
	job_list_drop(&shared->queue);
	job_list_drop(&shared->done);
	if (shared->event_fd >= 0)
		close(shared->event_fd);
	pthread_cond_destroy(&shared->wanted);
	pthread_mutex_destroy(&shared->mutex);
	free(shared);
}

// Keeper's thread.

static void *keeper_main(void *argument) {
	struct shared *shared = argument;
	uint64_t one = 1;

	pthread_mutex_lock(&shared->mutex);
	while (!shared->stop) {
		struct keeper_job *job = job_list_pop(&shared->queue);

		if (job == NULL) {
			pthread_cond_wait(&shared->wanted, &shared->mutex);
			continue;
		}
		shared->busy = true;
		pthread_mutex_unlock(&shared->mutex);
		job->result = job->call.call(job->call.arg);
		pthread_mutex_lock(&shared->mutex);
		shared->busy = false;
		job_list_append(&shared->done, job);
		if (write(shared->event_fd, &one, sizeof(one)) < 0)
			must(errno == EAGAIN); // the event descriptor is readable already
	}
	pthread_mutex_unlock(&shared->mutex);
	shared_unref(shared);
	return NULL;
}

// Control thread.

// Restart the timer for the first unfinished job, which is the running one, since jobs run in
// order. The time starts when the loop learns this. So a pause of the agent is not taken for a
// hang: answers are handled before timers.
static void hang_timer_restart(struct keeper *keeper) {
	const struct keeper_job *first = keeper->asked;
	uint64_t limit_ns =
		first != NULL && first->call.limit_ns != 0 ? first->call.limit_ns : KEEPER_STUCK_NS;

	keeper->stuck = false;
	keeper->since_ns = loop_clock_ns(keeper->loop);
	if (first == NULL ||
	    loop_timer_set(keeper->loop, &keeper->look, keeper->since_ns + limit_ns) != 0)
		loop_timer_cancel(keeper->loop, &keeper->look);
}

static void keeper_expired(struct loop_timer *timer, uint64_t now_ns) {
	struct keeper *keeper = container_of(timer, struct keeper, look);

	(void)now_ns;
	keeper->stuck = true;
	keeper->counters.stuck++;
	keeper->totals->stuck++;
	if (keeper->ops.stuck != NULL)
		keeper->ops.stuck(keeper->ops.ctx, keeper);
}

static void job_unlink(struct keeper *keeper, const struct keeper_job *job) {
	struct keeper_job **at = &keeper->asked;
	bool first = keeper->asked == job;

	while (*at != job)
		at = &(*at)->asked_next;
	*at = job->asked_next;
	keeper->pending--;
	if (first)
		hang_timer_restart(keeper);
}

static void keeper_ready(struct loop_source *source, uint32_t events) {
	struct keeper *keeper = container_of(source, struct keeper, source);
	struct shared *shared = keeper->shared;
	struct keeper_job *job;
	struct job_list done;
	uint64_t count;

	(void)events;
	if (read(source->fd, &count, sizeof(count)) < 0)
		return;
	pthread_mutex_lock(&shared->mutex);
	done = shared->done;
	shared->done = (struct job_list){0};
	pthread_mutex_unlock(&shared->mutex);
	while ((job = job_list_pop(&done)) != NULL) {
		uint64_t took_ns = loop_clock_ns(keeper->loop) - keeper->since_ns;
		struct keeper_request *request = job->request;

		if (took_ns > keeper->counters.longest_ns)
			keeper->counters.longest_ns = took_ns;
		if (took_ns > keeper->totals->longest_ns)
			keeper->totals->longest_ns = took_ns;
		job_unlink(keeper, job);
		if (request != NULL) {
			request->job = NULL;
			request->ended(request, job->call.arg, job->result);
		}
		job_drop(job);
	}
}

int keeper_create(
	struct loop *loop,
	const char *name,
	const struct keeper_ops *ops,
	struct keeper **ret_keeper
) {
	struct keeper *keeper = calloc(1, sizeof(*keeper));
	struct shared *shared;
	int err;

	if (keeper == NULL)
		return -ENOMEM;
	shared = calloc(1, sizeof(*shared));
	if (shared == NULL) {
		free(keeper);
		return -ENOMEM;
	}
	pthread_mutex_init(&shared->mutex, NULL);
	pthread_cond_init(&shared->wanted, NULL);
	shared->references = 1;
	shared->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	keeper->shared = shared;
	keeper->loop = loop;
	keeper->ops = *ops;
	keeper->totals = ops->totals != NULL ? ops->totals : &keeper->unshared;
	keeper->look.expired = keeper_expired;
	snprintf(keeper->name, sizeof(keeper->name), "%s", name);
	keeper->source = (struct loop_source){
		.fd = shared->event_fd,
		.events = EPOLLIN,
		.rank = LOOP_OVERLAY,
		.ready = keeper_ready,
	};
	err = keeper->source.fd < 0 ? -EMFILE : loop_add(loop, &keeper->source);
	if (err != 0)
		goto fail;
	shared->references++; // before the other thread exists
	err = thread_start_masked(keeper->name, keeper_main, shared, &keeper->thread);
	if (err != 0) {
		shared->references--;
		goto fail;
	}
	*ret_keeper = keeper;
	return 0;
fail:
	loop_remove(&keeper->source);
	shared_unref(shared);
	free(keeper);
	return err;
}

struct keeper *keeper_destroy(struct keeper *keeper) {
	bool busy;

	if (keeper == NULL)
		return NULL;
	for (struct keeper_job *job = keeper->asked; job != NULL; job = job->asked_next) {
		if (job->request != NULL)
			job->request->job = NULL;
	}
	loop_timer_cancel(keeper->loop, &keeper->look);
	loop_remove(&keeper->source);
	pthread_mutex_lock(&keeper->shared->mutex);
	keeper->shared->stop = true;
	busy = keeper->shared->busy;
	pthread_cond_signal(&keeper->shared->wanted);
	pthread_mutex_unlock(&keeper->shared->mutex);
	if (busy) // a hanging thread is left behind and frees its state later
		pthread_detach(keeper->thread);
	else
		pthread_join(keeper->thread, NULL);
	shared_unref(keeper->shared);
	free(keeper);
	return NULL;
}

int keeper_run(
	struct keeper *keeper, const struct keeper_call *call, struct keeper_request *request
) {
	struct keeper_job **last = &keeper->asked;
	struct keeper_job *job;

	must(request->ended != NULL && request->job == NULL);
	keeper->counters.calls++;
	keeper->totals->calls++;
	job = keeper->pending < KEEPER_PENDING_MAX ? calloc(1, sizeof(*job)) : NULL;
	if (job == NULL) {
		keeper->counters.refused++;
		keeper->totals->refused++;
		return keeper->pending < KEEPER_PENDING_MAX ? -ENOMEM : -EAGAIN;
	}
	*job = (struct keeper_job){.call = *call, .keeper = keeper, .request = request};
	request->job = job;
	while (*last != NULL)
		last = &(*last)->asked_next;
	*last = job;
	keeper->pending++;
	if (keeper->asked == job)
		hang_timer_restart(keeper);
	pthread_mutex_lock(&keeper->shared->mutex);
	job_list_append(&keeper->shared->queue, job);
	pthread_cond_signal(&keeper->shared->wanted);
	pthread_mutex_unlock(&keeper->shared->mutex);
	return 0;
}

void keeper_cancel(struct keeper_request *request) {
	struct keeper_job *job = request->job;
	struct shared *shared;
	bool waits;

	if (job == NULL)
		return;
	request->job = NULL;
	job->request = NULL;
	shared = job->keeper->shared;
	pthread_mutex_lock(&shared->mutex);
	waits = job_list_remove(&shared->queue, job);
	pthread_mutex_unlock(&shared->mutex);
	if (!waits)
		return;
	job_unlink(job->keeper, job);
	job_drop(job);
}

uint64_t keeper_busy_ns(const struct keeper *keeper) {
	return keeper->asked == NULL ? 0 : loop_clock_ns(keeper->loop) - keeper->since_ns;
}

bool keeper_is_stuck(const struct keeper *keeper) {
	return keeper->stuck;
}

const struct keeper_counters *keeper_counters(const struct keeper *keeper) {
	return &keeper->counters;
}
