// SPDX-License-Identifier: BSD-3-Clause
// Starts and stops a worker, and lets it sleep. Control owns the struct; worker_impl.h lists the
// fields that the thread owns.
#include "worker/worker_impl.h"

#include <dataplane/block_cost.h>
#include <dataplane/eal.h>
#include <lib/error.h>
#include <lib/rcu_thread.h>
#include <lib/thread.h>
#include <lib/tracepoint.h>

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define STACK_BYTES 65536 // stack bytes touched before the first turn
// Turns between clock comparisons. A counter that was set back would otherwise show an early time
// for long.
#define COMPARE_TURNS 65536
#define SLEEP_TURNS 4096	// turns that one sleep counts as
#define COMPARE_AGAIN_NS 100000 // interval after each try was disturbed

static struct near_ring *ring_create(struct near near, const char *name) {
	return near_ring_create(near, name, WORKER_RING_RECORDS, sizeof(struct worker_record));
}

static void ring_destroy(struct near near, struct near_ring *ring) {
	near_ring_destroy(near, ring, sizeof(struct worker_record));
}

static void ignore_request(void *ctx, struct worker *worker, const struct worker_record *record) {
	(void)ctx;
	(void)worker;
	(void)record;
}

int worker_create(const struct worker_config *config, struct worker **ret_worker) {
	size_t length = strlen(config->name);
	struct worker *worker;
	struct near near;
	int err = -ENOMEM;

	if (length == 0 || length > WORKER_NAME_MAX || config->clock == NULL ||
	    (config->kept_clock != NULL && config->kept_clock != config->clock) ||
	    config->poll_count > WORKER_POLLS_MAX || config->idle.policy >= IDLE_POLICY_COUNT ||
	    (config->cpu != WORKER_CPU_ANY && config->cpu >= CPU_SET_CPUS_MAX))
		return -EINVAL;
	near = near_of_cpu(config->cpu);
	worker = near_alloc(near, sizeof(*worker));
	if (worker == NULL)
		return -ENOMEM;
	memset(worker, 0, sizeof(*worker));
	worker->near = near;
	worker->facts.memory_node = near_node(worker);
	worker->config = *config;
	memcpy(worker->polls, config->polls, sizeof(worker->polls));
	worker->poll_count = config->poll_count;
	if (worker->config.request == NULL)
		worker->config.request = ignore_request;
	snprintf(worker->name, sizeof(worker->name), "%s", config->name);
	worker->bell.fd = worker->control_bell.fd = worker->timer_fd = -1;
	sem_init(&worker->started, 0, 0);
	worker->requests = ring_create(near, "requests");
	worker->events = ring_create(near, "events");
	if (worker->requests == NULL || worker->events == NULL)
		goto fail;
	err = doorbell_init(&worker->bell);
	if (err == 0)
		err = doorbell_init(&worker->control_bell);
	if (err != 0)
		goto fail;
	doorbell_arm(&worker->control_bell); // the first event must ring
	worker->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (worker->timer_fd < 0) {
		err = neg_errno();
		goto fail;
	}
	*ret_worker = worker;
	return 0;
fail:
	worker_destroy(worker);
	return err;
}

struct worker *worker_destroy(struct worker *worker) {
	if (worker == NULL)
		return NULL;
	worker_stop(worker);
	if (worker->timer_fd >= 0)
		close(worker->timer_fd);
	doorbell_close(&worker->bell);
	doorbell_close(&worker->control_bell);
	sem_destroy(&worker->started);
	ring_destroy(worker->near, worker->requests);
	ring_destroy(worker->near, worker->events);
	near_free(worker->near, worker, sizeof(*worker));
	return NULL;
}

// Acquire pairs with the release in worker_stop(): the thread sees everything that control wrote
// before.
static bool worker_must_stop(const struct worker *worker) {
	return atomic_load_explicit(&worker->stop, memory_order_acquire);
}

void worker_sync_clocks(struct worker *worker) {
	const struct worker_record event = {.kind = WORKER_EVENT_CLOCK};
	struct clock *clock = worker->config.kept_clock;
	enum clock_resync kept = clock != NULL ? clock_resync(clock) : CLOCK_RESYNC_DONE;
	uint64_t now_ns;

	if (kept == CLOCK_RESYNC_JUMPED) {
		worker_counter_add(worker, WORKER_CLOCK_JUMPS, 1);
		worker_event(worker, &event);
	}
	// Relaxed: only for statistics.
	if (clock != NULL)
		atomic_store_explicit(
			&worker->counts[WORKER_CLOCK_OFF_NS], clock_resync_deviation_ns(clock),
			memory_order_relaxed
		);
	now_ns = clock_now_ns(worker->config.clock);
	worker->to_monotonic_ns = clock_monotonic_ns() - now_ns;
	worker->compare_ns = now_ns + (kept == CLOCK_RESYNC_INTERRUPTED ? COMPARE_AGAIN_NS
									: CLOCK_RESYNC_INTERVAL_NS);
	worker->turns_left = COMPARE_TURNS;
}

// Count a sleep towards the next clock comparison, in case the counter was set back meanwhile.
static void count_sleep_as_turns(struct worker *worker) {
	worker->turns_left -= worker->turns_left > SLEEP_TURNS ? SLEEP_TURNS : 0;
}

// Notify other threads, outside of the step, because this may make system calls.
static void notify_waiting_threads(struct worker *worker) {
	if (worker->progressed) {
		worker->progressed = false;
		for (uint32_t n = 0; n < worker->poll_count; n++) {
			if (worker->polls[n].notify != NULL)
				worker->polls[n].notify(worker->polls[n].ctx);
		}
	}
	if (worker->event_pushed) {
		worker->event_pushed = false;
		doorbell_ring(&worker->control_bell);
	}
}

static void timespec_of(uint64_t ns, struct timespec *ret_time) {
	ret_time->tv_sec = (time_t)(ns / 1000000000);
	ret_time->tv_nsec = (long)(ns % 1000000000);
}

// Collect the doorbell, the timer and the descriptors of the polls.
static nfds_t descriptors_gather(struct worker *worker, uint64_t until_ns, struct pollfd *fds) {
	struct itimerspec timer = {.it_value = {0}};
	nfds_t count = 0;

	fds[count++] = (struct pollfd){.fd = worker->bell.fd, .events = POLLIN};
	// The timer is absolute, so a delay here does not extend the wait. tv_nsec is at least 1,
	// because 0 would disarm the timer.
	if (until_ns != IDLE_NEVER) {
		timespec_of(until_ns + worker->to_monotonic_ns, &timer.it_value);
		timer.it_value.tv_nsec |= 1;
		timerfd_settime(worker->timer_fd, TFD_TIMER_ABSTIME, &timer, NULL);
	}
	fds[count++] = (struct pollfd){
		.fd = until_ns != IDLE_NEVER ? worker->timer_fd : -1,
		.events = POLLIN,
	};
	for (uint32_t n = 0; n < worker->poll_count; n++) {
		if (worker->polls[n].woken != NULL)
			fds[count++] = (struct pollfd){
				.fd = worker->polls[n].fd,
				.events = POLLIN,
			};
	}
	return count;
}

static void set_asleep_until(struct worker *worker, uint64_t until_ns) {
	if (until_ns != IDLE_NEVER)
		until_ns += worker->to_monotonic_ns;
	atomic_store_explicit(&worker->asleep_until_ns, until_ns, memory_order_relaxed);
}

static void set_awake(struct worker *worker) {
	atomic_store_explicit(&worker->asleep_until_ns, 0, memory_order_relaxed);
}

// Block, RCU-offline, until the doorbell, a descriptor or a time on the worker's clock.
static void worker_block_until(struct worker *worker, uint64_t until_ns) {
	struct pollfd fds[2 + WORKER_POLLS_MAX];
	nfds_t count = descriptors_gather(worker, until_ns, fds);
	enum worker_count ended_by = WORKER_WAKES_TIMED;
	const struct pollfd *at = fds + 2; // descriptors of polls, as descriptors_gather() put them

	TRACEPOINT(worker_sleep, worker->last_ns, until_ns);
	set_asleep_until(worker, until_ns);
	rcu_thread_offline();
	(void)poll(fds, count, -1); // signals are masked; all causes are checked below
	rcu_thread_online(clock_monotonic_ns());
	set_awake(worker);
	if (fds[0].revents != 0)
		ended_by = WORKER_WAKES_RUNG;
	for (uint32_t n = 0; n < worker->poll_count; n++) {
		struct worker_poll *owner = &worker->polls[n];

		if (owner->woken == NULL)
			continue;
		if (at->revents != 0) {
			owner->woken(owner->ctx);
			ended_by = WORKER_WAKES_POLLED;
		}
		// A descriptor in error stays in error (removed devices) and would end every
		// further wait at once. So the worker stops waiting on it and uses only the timer.
		if ((at->revents & (POLLERR | POLLHUP | POLLNVAL)) != 0)
			owner->fd = -1; // poll() ignores negative descriptors
		at++;
	}
	TRACEPOINT(worker_wake, ended_by);
	count_sleep_as_turns(worker);
	worker_counter_add(worker, WORKER_BLOCKS, 1);
	worker_counter_add(worker, ended_by, 1);
}

static uint64_t time_earlier(uint64_t left_ns, uint64_t right_ns) {
	return left_ns < right_ns ? left_ns : right_ns;
}

// Arm, poll once more, then block. Work planned between the two polls may be due earlier than the
// decision assumed.
static void worker_wait_until(struct worker *worker, uint64_t until_ns) {
	struct idle_step_findings found = {.due_ns = IDLE_NEVER, .events = true};

	doorbell_arm(&worker->bell);
	for (uint32_t n = 0; n < worker->poll_count; n++) {
		if (worker->polls[n].arm != NULL)
			worker->polls[n].arm(worker->polls[n].ctx);
	}
	found.now_ns = clock_now_ns(worker->config.clock);
	found.progress = worker_poll_once(worker, &found);
	if (found.progress)
		idle_decide(&worker->idle, &found);
	// Arming a device failed, so its completion event will not come: decide again.
	else if (worker->awaits_events && !found.events)
		worker->awaits_events = false;
	else if (!worker_must_stop(worker) && time_earlier(until_ns, found.due_ns) > found.now_ns)
		worker_block_until(worker, time_earlier(until_ns, found.due_ns));
	doorbell_disarm(&worker->bell);
	notify_waiting_threads(worker);
}

static void worker_sleep_until(struct worker *worker, uint64_t until_ns) {
	const enum worker_count ended_by = WORKER_WAKES_TIMED;
	struct timespec until;

	timespec_of(until_ns + worker->to_monotonic_ns, &until);
	TRACEPOINT(worker_sleep, worker->last_ns, until_ns);
	set_asleep_until(worker, until_ns);
	rcu_thread_offline();
	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
	rcu_thread_online(clock_monotonic_ns());
	set_awake(worker);
	TRACEPOINT(worker_wake, ended_by);
	count_sleep_as_turns(worker);
	worker_counter_add(worker, WORKER_SLEEPS, 1);
}

// Compare clocks before the turn, so that no poll sees a time to which the clock jumped.
struct idle_decision worker_step(struct worker *worker) {
	uint64_t now_ns = clock_now_ns(worker->config.clock);

	if (now_ns >= worker->compare_ns || --worker->turns_left == 0) {
		worker_sync_clocks(worker);
		now_ns = clock_now_ns(worker->config.clock);
	}
	return worker_turn(worker, now_ns);
}

// Touch the stack, so that the first turn causes no page faults.
static __attribute__((noinline)) void touch_stack(void) {
	char stack[STACK_BYTES];

	explicit_bzero(stack, sizeof(stack));
}

// Set up the thread; on failure everything is undone.
static int worker_thread_init(struct worker *worker) {
	struct worker_facts *facts = &worker->facts;
	struct idle_config *idle = &worker->config.idle;
	struct cpu_set wanted = {{0}};
	bool pinned = worker->config.cpu != WORKER_CPU_ANY;
	int err = 0;

	// Without this the kernel adds up to 50 us to each sleep.
	prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
	touch_stack();
	facts->tid = gettid();
	if (pinned) {
		cpu_set_add(&wanted, worker->config.cpu);
		err = cpu_set_bind_thread(&wanted);
	}
	if (err == 0)
		err = cpu_set_get_allowed(&facts->affinity);
	if (err == 0 && pinned && memcmp(&facts->affinity, &wanted, sizeof(wanted)) != 0)
		err = -EINVAL;
	if (err == 0 && idle->block_ns == 0)
		err = block_cost_measure(&idle->block_ns);
	if (err != 0)
		return err;
	facts->block_ns = idle->block_ns;
	facts->eal = eal_is_running();
	if (facts->eal)
		err = eal_thread_register();
	if (err != 0)
		return err;
	err = rcu_thread_register(worker->name, clock_monotonic_ns());
	if (err != 0 && facts->eal)
		eal_thread_unregister();
	if (err != 0)
		return err;
	worker_sync_clocks(worker);
	worker->last_ns = clock_now_ns(worker->config.clock);
	worker->charged = WORKER_SPIN_NS;
	idle_init(&worker->idle, idle, worker->last_ns);
	return 0;
}

static void *worker_run(void *argument) {
	struct worker *worker = argument;
	struct idle_decision decision;
	bool eal;

	worker->start_err = worker_thread_init(worker);
	eal = worker->facts.eal;
	if (worker->start_err != 0) {
		sem_post(&worker->started);
		return NULL;
	}
	sem_post(&worker->started);
	while (!worker_must_stop(worker)) {
		decision = worker_step(worker);
		notify_waiting_threads(worker);
		if (decision.action == IDLE_YIELD) {
			sched_yield();
			worker_counter_add(worker, WORKER_YIELDS, 1);
		} else if (decision.action == IDLE_SLEEP) {
			worker_sleep_until(worker, decision.until_ns);
		} else if (decision.action == IDLE_WAIT) {
			worker_wait_until(worker, decision.until_ns);
		}
	}
	rcu_thread_unregister();
	if (eal)
		eal_thread_unregister();
	return NULL;
}

int worker_start(struct worker *worker, struct worker_facts *ret_facts) {
	int err = thread_start_masked(worker->name, worker_run, worker, &worker->thread);

	if (err != 0)
		return err;
	while (sem_wait(&worker->started) != 0)
		; // interrupted
	if (worker->start_err != 0) {
		pthread_join(worker->thread, NULL);
		return worker->start_err;
	}
	worker->runs = true;
	*ret_facts = worker->facts;
	return 0;
}

void worker_stop(struct worker *worker) {
	if (!worker->runs)
		return;
	atomic_store_explicit(&worker->stop, true, memory_order_release);
	doorbell_ring(&worker->bell);
	pthread_join(worker->thread, NULL);
	worker->runs = false;
}

void worker_progress(const struct worker *worker, struct worker_progress *ret_sign) {
	*ret_sign = (struct worker_progress){
		.turns = atomic_load_explicit(&worker->counts[WORKER_TURNS], memory_order_relaxed),
		.asleep_until_ns =
			atomic_load_explicit(&worker->asleep_until_ns, memory_order_relaxed),
	};
}

const struct clock *worker_clock(const struct worker *worker) {
	return worker->config.clock;
}

struct near worker_near(const struct worker *worker) {
	return worker->near;
}

uint32_t worker_cpu(const struct worker *worker) {
	return worker->config.cpu;
}

int worker_post_request(struct worker *worker, const struct worker_record *record) {
	if (worker_enqueue(worker->requests, record) != 0)
		return -EAGAIN;
	doorbell_ring(&worker->bell);
	return 0;
}

void worker_wake(struct worker *worker) {
	doorbell_ring(&worker->bell);
}

int worker_set_idle(struct worker *worker, const struct idle_config *idle) {
	const struct worker_record record = {
		.kind = WORKER_REQUEST_IDLE,
		.words = {idle->policy, idle->window_ns, idle->foresees},
	};

	return idle->policy < IDLE_POLICY_COUNT ? worker_post_request(worker, &record) : -EINVAL;
}

static uint32_t take_events(struct worker *worker, struct worker_record *records, uint32_t count) {
	return near_ring_dequeue_burst(worker->events, records, sizeof(records[0]), count);
}

uint32_t worker_take_events(struct worker *worker, struct worker_record *records, uint32_t count) {
	uint32_t taken;

	doorbell_disarm(&worker->control_bell);
	taken = take_events(worker, records, count);
	if (taken == count)
		return taken;
	// Arm, then check once more.
	doorbell_arm(&worker->control_bell);
	return taken + take_events(worker, records + taken, count - taken);
}

int worker_event_fd(const struct worker *worker) {
	return worker->control_bell.fd;
}

void worker_counters(const struct worker *worker, struct worker_counters *ret_counters) {
	uint64_t counts[WORKER_COUNTS];

	for (int n = 0; n < WORKER_COUNTS; n++)
		counts[n] = atomic_load_explicit(&worker->counts[n], memory_order_relaxed);
	*ret_counters = (struct worker_counters){
		.turns = counts[WORKER_TURNS],
		.requests = counts[WORKER_REQUESTS],
		.events = counts[WORKER_EVENTS],
		.events_lost = counts[WORKER_EVENTS_LOST],
		.busy_ns = counts[WORKER_BUSY_NS],
		.spin_ns = counts[WORKER_SPIN_NS],
		.yield_ns = counts[WORKER_YIELD_NS],
		.blocked_ns = counts[WORKER_BLOCKED_NS],
		.yields = counts[WORKER_YIELDS],
		.blocks = counts[WORKER_BLOCKS],
		.sleeps = counts[WORKER_SLEEPS],
		.wakes_rung = counts[WORKER_WAKES_RUNG],
		.wakes_timed = counts[WORKER_WAKES_TIMED],
		.wakes_polled = counts[WORKER_WAKES_POLLED],
		.waits = counts[WORKER_WAITS],
		.paid_ns = counts[WORKER_PAID_NS],
		.optimum_ns = counts[WORKER_OPTIMUM_NS],
		.clock_jumps = counts[WORKER_CLOCK_JUMPS],
		.clock_off_ns = counts[WORKER_CLOCK_OFF_NS],
	};
}

int worker_lock_memory(void) {
	return mlockall(MCL_CURRENT | MCL_FUTURE) == 0 ? 0 : neg_errno();
}
