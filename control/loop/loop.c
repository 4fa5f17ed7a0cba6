// SPDX-License-Identifier: BSD-3-Clause
// Event loop of the control thread. The control thread owns the loop. Sources, timers and jobs
// belong to their owners.
//
// Sources of the overlay are in one epoll. The epoll of client sources is nested in it, so that one
// wait serves both. The number of clients per turn is limited by the number of events fetched. The
// kernel rotates ready sources, so no client starves.
//
// An event carries slot and generation of its source instead of an address. Removing a source
// changes the generation of its slot. Events fetched earlier are then ignored, even if another
// source reuses the slot.
#include <control/loop.h>
#include <lib/error.h>
#include <lib/must.h>

#include <limits.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define NS_PER_SEC UINT64_C(1000000000)
#define NO_SLOT UINT32_MAX

// No slot has these values, since there are never so many.
#define DATA_TIMER UINT64_MAX
#define DATA_CLIENTS (UINT64_MAX - 1)
#define SOURCES_MAX (UINT32_MAX / 2)

struct slot {
	struct loop_source *source; // NULL: free
	uint32_t generation;	    // incremented with each removal
	uint32_t next_free;
};

struct job_list {
	struct loop_job *first;
	struct loop_job *last;
};

struct longest {
	uint64_t turn_ns, late_ns;
};

struct loop {
	const struct clock *clock;
	int epolls[LOOP_RANK_COUNT]; // the clients' epoll is an event source of the overlay's
	int timer_fd;
	uint64_t armed_ns; // expiry of timer_fd; UINT64_MAX: none
	uint64_t now_ns;
	uint64_t all_served_ns; // see loop_all_served_ns()
	bool is_swept;		// the last epoll_wait() returned all sources that were ready
	bool stopped;

	struct slot *slots;
	uint32_t slot_count;
	uint32_t first_free;
	// Room for all sources of the overlay, so that one wait returns every ready source.
	struct epoll_event *events;
	uint32_t event_capacity;
	uint32_t overlay_count;

	struct loop_timer **heap; // from index 1; the earliest on top
	uint32_t timer_count;
	uint32_t heap_capacity;

	struct job_list jobs;
	struct job_list running;
	struct loop_counters counters;
	uint64_t window_ns; // start of the window that `longest` covers
	struct longest longest;
};

// Reserve room for one more overlay source, the clients' epoll, the timer, and a turn's clients.
static int events_grow(struct loop *loop) {
	uint32_t wanted = loop->overlay_count + 3;
	struct epoll_event *events;

	if (wanted < LOOP_CLIENTS_PER_TURN)
		wanted = LOOP_CLIENTS_PER_TURN;
	if (wanted <= loop->event_capacity)
		return 0;
	events = reallocarray(loop->events, 2 * (size_t)wanted, sizeof(*events));
	if (events == NULL)
		return -ENOMEM;
	loop->events = events;
	loop->event_capacity = 2 * wanted;
	return 0;
}

static int epoll_add_own(struct loop *loop, int fd, uint64_t data, uint32_t events) {
	struct epoll_event event = {.events = events, .data.u64 = data};

	if (fd < 0)
		return neg_errno();
	if (epoll_ctl(loop->epolls[LOOP_OVERLAY], EPOLL_CTL_ADD, fd, &event) != 0)
		return neg_errno();
	return 0;
}

int loop_create(const struct clock *clock, struct loop **ret_loop) {
	struct loop *loop = calloc(1, sizeof(*loop));
	int err;

	if (loop == NULL)
		return -ENOMEM;
	loop->clock = clock;
	loop->now_ns = clock_now_ns(clock);
	loop->window_ns = loop->all_served_ns = loop->now_ns;
	loop->armed_ns = UINT64_MAX;
	loop->first_free = NO_SLOT;
	loop->timer_fd = -1;
	for (unsigned rank = 0; rank < LOOP_RANK_COUNT; rank++)
		loop->epolls[rank] = epoll_create1(EPOLL_CLOEXEC);
	err = loop->epolls[LOOP_OVERLAY] < 0 ? neg_errno() : events_grow(loop);
	if (err == 0)
		err = epoll_add_own(loop, loop->epolls[LOOP_CLIENTS], DATA_CLIENTS, EPOLLIN);
	if (err != 0)
		goto fail;
	loop->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	// Edge-triggered: the descriptor is never read; setting the timer again resets it.
	err = epoll_add_own(loop, loop->timer_fd, DATA_TIMER, EPOLLIN | EPOLLET);
	if (err != 0)
		goto fail;
	*ret_loop = loop;
	return 0;
fail:
	loop_destroy(loop);
	return err;
}

struct loop *loop_destroy(struct loop *loop) {
	if (loop == NULL)
		return NULL;
	for (unsigned rank = 0; rank < LOOP_RANK_COUNT; rank++) {
		if (loop->epolls[rank] >= 0)
			close(loop->epolls[rank]);
	}
	if (loop->timer_fd >= 0)
		close(loop->timer_fd);
	free(loop->slots);
	free(loop->events);
	free(loop->heap);
	free(loop);
	return NULL;
}

static uint64_t slot_event_data(const struct loop *loop, uint32_t slot) {
	return (uint64_t)loop->slots[slot].generation << 32 | slot;
}

int loop_add(struct loop *loop, struct loop_source *source) {
	struct epoll_event event = {.events = source->events};
	uint32_t slot;
	int err;

	must(source->loop == NULL && source->rank < LOOP_RANK_COUNT);
	if (loop->first_free == NO_SLOT) {
		uint32_t count = loop->slot_count > 0 ? 2 * loop->slot_count : 16;
		struct slot *slots;

		if (count > SOURCES_MAX)
			return -ENOMEM;
		slots = reallocarray(loop->slots, count, sizeof(*slots));
		if (slots == NULL)
			return -ENOMEM;
		for (uint32_t n = loop->slot_count; n < count; n++)
			slots[n] = (struct slot){.next_free = n + 1 < count ? n + 1 : NO_SLOT};
		loop->first_free = loop->slot_count;
		loop->slots = slots;
		loop->slot_count = count;
	}
	err = events_grow(loop);
	if (err != 0)
		return err;
	slot = loop->first_free;
	event.data.u64 = slot_event_data(loop, slot);
	if (epoll_ctl(loop->epolls[source->rank], EPOLL_CTL_ADD, source->fd, &event) != 0)
		return neg_errno();
	loop->first_free = loop->slots[slot].next_free;
	loop->slots[slot].source = source;
	loop->overlay_count += source->rank == LOOP_OVERLAY;
	source->slot = slot;
	source->loop = loop;
	return 0;
}

void loop_set_events(struct loop_source *source, uint32_t events) {
	struct loop *loop = source->loop;
	struct epoll_event event = {.events = events};
	int result;

	must(loop != NULL);
	if (events == source->events)
		return;
	source->events = events;
	event.data.u64 = slot_event_data(loop, source->slot);
	result = epoll_ctl(loop->epolls[source->rank], EPOLL_CTL_MOD, source->fd, &event);
	must(result == 0);
}

void loop_remove(struct loop_source *source) {
	struct loop *loop = source->loop;
	struct slot *slot;
	int result;

	if (loop == NULL)
		return;
	result = epoll_ctl(loop->epolls[source->rank], EPOLL_CTL_DEL, source->fd, NULL);
	must(result == 0); // else its descriptor was closed before, and events may still arrive
	slot = &loop->slots[source->slot];
	slot->source = NULL;
	slot->generation++;
	slot->next_free = loop->first_free;
	loop->first_free = source->slot;
	loop->overlay_count -= source->rank == LOOP_OVERLAY;
	source->loop = NULL;
}

static void timer_heap_set(struct loop *loop, uint32_t place, struct loop_timer *timer) {
	loop->heap[place] = timer;
	timer->place = place;
}

// Move a timer from this index towards the top.
static void timer_heap_sift_up(struct loop *loop, uint32_t place, struct loop_timer *timer) {
	while (place > 1 && loop->heap[place / 2]->at_ns > timer->at_ns) {
		timer_heap_set(loop, place, loop->heap[place / 2]);
		place /= 2;
	}
	timer_heap_set(loop, place, timer);
}

// Move a timer from this index away from the top.
static void timer_heap_sift_down(struct loop *loop, uint32_t place, struct loop_timer *timer) {
	uint32_t child;

	for (; 2 * place <= loop->timer_count; place = child) {
		child = 2 * place;
		if (child < loop->timer_count &&
		    loop->heap[child + 1]->at_ns < loop->heap[child]->at_ns)
			child++;
		if (loop->heap[child]->at_ns >= timer->at_ns)
			break;
		timer_heap_set(loop, place, loop->heap[child]);
	}
	timer_heap_set(loop, place, timer);
}

static void timer_heap_sift(struct loop *loop, uint32_t place, struct loop_timer *timer) {
	if (place > 1 && loop->heap[place / 2]->at_ns > timer->at_ns)
		timer_heap_sift_up(loop, place, timer);
	else
		timer_heap_sift_down(loop, place, timer);
}

int loop_timer_set(struct loop *loop, struct loop_timer *timer, uint64_t at_ns) {
	if (timer->place != 0) {
		timer->at_ns = at_ns;
		timer_heap_sift(loop, timer->place, timer);
		return 0;
	}
	if (loop->timer_count + 1 >= loop->heap_capacity) {
		uint32_t capacity = loop->heap_capacity > 0 ? 2 * loop->heap_capacity : 16;
		struct loop_timer **heap;

		if (capacity > SOURCES_MAX)
			return -ENOMEM;
		heap = reallocarray(loop->heap, capacity, sizeof(struct loop_timer *));
		if (heap == NULL)
			return -ENOMEM;
		loop->heap = heap;
		loop->heap_capacity = capacity;
	}
	timer->at_ns = at_ns;
	timer_heap_sift_up(loop, ++loop->timer_count, timer);
	return 0;
}

void loop_timer_cancel(struct loop *loop, struct loop_timer *timer) {
	uint32_t place = timer->place;
	struct loop_timer *last;

	if (place == 0)
		return;
	must(place <= loop->timer_count && loop->heap[place] == timer);
	timer->place = 0;
	last = loop->heap[loop->timer_count--];
	if (last != timer)
		timer_heap_sift(loop, place, last);
}

void loop_defer(struct loop *loop, struct loop_job *job) {
	if (job->queued)
		return;
	job->queued = true;
	job->next = NULL;
	if (loop->jobs.first == NULL)
		loop->jobs.first = job;
	else
		loop->jobs.last->next = job;
	loop->jobs.last = job;
}

static bool job_unlink(struct job_list *jobs, struct loop_job *job) {
	struct loop_job *before = NULL;

	for (struct loop_job *at = jobs->first; at != job; at = at->next) {
		if (at == NULL)
			return false;
		before = at;
	}
	if (before == NULL)
		jobs->first = job->next;
	else
		before->next = job->next;
	if (jobs->last == job)
		jobs->last = before;
	return true;
}

void loop_undefer(struct loop *loop, struct loop_job *job) {
	if (!job->queued)
		return;
	if (!job_unlink(&loop->running, job))
		job_unlink(&loop->jobs, job);
	job->queued = false;
}

uint64_t loop_all_served_ns(const struct loop *loop) {
	return loop->all_served_ns;
}

uint64_t loop_now_ns(const struct loop *loop) {
	return loop->now_ns;
}

uint64_t loop_clock_ns(const struct loop *loop) {
	return clock_now_ns(loop->clock);
}

static uint64_t next_timer_ns(const struct loop *loop) {
	return loop->timer_count > 0 ? loop->heap[1]->at_ns : UINT64_MAX;
}

static int
epoll_wait_rank(struct loop *loop, enum loop_rank rank, uint32_t count_max, int timeout_ms) {
	int n = epoll_wait(loop->epolls[rank], loop->events, (int)count_max, timeout_ms);

	// After a stop and SIGCONT the call fails although sources may be ready.
	loop->is_swept = n >= 0 && (uint32_t)n < count_max;
	if (n < 0)
		return errno == EINTR ? 0 : neg_errno();
	return n;
}

static void event_serve(struct loop *loop, const struct epoll_event *event) {
	uint32_t slot = (uint32_t)event->data.u64;
	struct loop_source *source = loop->slots[slot].source;
	uint32_t events;

	if (source == NULL || loop->slots[slot].generation != event->data.u64 >> 32)
		return;
	// An earlier handler in this turn may have changed the awaited events.
	events = event->events & (source->events | EPOLLERR | EPOLLHUP);
	if (events == 0)
		return;
	loop->counters.events++;
	source->ready(source, events);
}

// Serve the events of the overlay, then those of clients. Handlers may add sources and thereby move
// the array, so each event is copied. Returns 0 or -errno.
static int serve_events(struct loop *loop, int count) {
	bool clients = false;
	struct epoll_event event;

	for (int n = 0; n < count; n++) {
		event = loop->events[n];
		if (event.data.u64 == DATA_CLIENTS)
			clients = true;
		else if (event.data.u64 == DATA_TIMER)
			loop->armed_ns = 0;
		else
			event_serve(loop, &event);
	}
	if (!clients) {
		if (loop->is_swept)
			loop->all_served_ns = loop->now_ns;
		return 0;
	}
	count = epoll_wait_rank(loop, LOOP_CLIENTS, LOOP_CLIENTS_PER_TURN, 0);
	loop->counters.clients_full += count == LOOP_CLIENTS_PER_TURN;
	for (int n = 0; n < count; n++) {
		event = loop->events[n];
		event_serve(loop, &event);
	}
	if (loop->is_swept)
		loop->all_served_ns = loop->now_ns;
	return count < 0 ? count : 0;
}

static void update_maximum(uint64_t *longest_ns, uint64_t ns) {
	if (ns > *longest_ns)
		*longest_ns = ns;
}

// Run at most as many timers as were set at the start. A timer that always sets itself to now would
// otherwise never end.
static void run_timers(struct loop *loop) {
	struct loop_timer *timer;

	for (uint32_t n = loop->timer_count; n > 0; n--) {
		if (next_timer_ns(loop) > loop->now_ns || next_timer_ns(loop) == UINT64_MAX)
			return;
		timer = loop->heap[1];
		loop_timer_cancel(loop, timer);
		update_maximum(&loop->longest.late_ns, loop_clock_ns(loop) - timer->at_ns);
		loop->counters.timers++;
		timer->expired(timer, loop->now_ns);
	}
}

// The result of a finished window is shown until the next one ends.
static void count_turn(struct loop *loop) {
	uint64_t took_ns = loop_clock_ns(loop) - loop->now_ns;

	loop->counters.turns++;
	loop->counters.busy_ns += took_ns;
	update_maximum(&loop->longest.turn_ns, took_ns);
	if (loop->now_ns - loop->window_ns >= LOOP_LONGEST_NS) {
		loop->counters.turn_longest_ns = loop->longest.turn_ns;
		loop->counters.timer_late_longest_ns = loop->longest.late_ns;
		loop->longest = (struct longest){0};
		loop->window_ns = loop->now_ns;
		return;
	}
	update_maximum(&loop->counters.turn_longest_ns, loop->longest.turn_ns);
	update_maximum(&loop->counters.timer_late_longest_ns, loop->longest.late_ns);
}

int loop_turn(struct loop *loop, int timeout_ms) {
	uint64_t next_ns = next_timer_ns(loop);
	struct loop_job *job;
	int count, err;

	// A timer that has expired needs no timerfd, and a fake clock does not drive it.
	if (loop->jobs.first != NULL || next_ns <= loop_clock_ns(loop)) {
		timeout_ms = 0;
	} else if (next_ns != loop->armed_ns && clock_source(loop->clock) != CLOCK_SOURCE_FAKE) {
		struct itimerspec spec = {0};

		if (next_ns != UINT64_MAX) {
			spec.it_value.tv_sec = (time_t)(next_ns / NS_PER_SEC);
			spec.it_value.tv_nsec = (long)(next_ns % NS_PER_SEC);
		}
		if (timerfd_settime(loop->timer_fd, TFD_TIMER_ABSTIME, &spec, NULL) != 0)
			return neg_errno();
		loop->armed_ns = next_ns;
	}
	count = epoll_wait_rank(loop, LOOP_OVERLAY, loop->overlay_count + 2, timeout_ms);
	if (count < 0)
		return count;
	loop->now_ns = loop_clock_ns(loop);
	err = serve_events(loop, count);
	loop->running = loop->jobs;
	loop->jobs = (struct job_list){0};
	while ((job = loop->running.first) != NULL) {
		loop->running.first = job->next;
		job->queued = false;
		job->run(job);
	}
	run_timers(loop);
	count_turn(loop);
	return err;
}

int loop_run(struct loop *loop) {
	int err = 0;

	while (err == 0 && !loop->stopped)
		err = loop_turn(loop, -1);
	loop->stopped = false;
	return err;
}

void loop_stop(struct loop *loop) {
	loop->stopped = true;
}

const struct loop_counters *loop_counters(const struct loop *loop) {
	return &loop->counters;
}
