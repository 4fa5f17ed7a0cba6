// SPDX-License-Identifier: BSD-3-Clause
// Idle workers, and one worker with the deadlines of 8 peers that are probed 10 times per second.
// The first slice starts a worker, which runs until the program exits.
#include "micro.h"
#include "worker/worker_impl.h"

#include <lib/clock.h>
#include <lib/must.h>
#include <lib/rcu_thread.h>

#include <pthread.h>
#include <sys/prctl.h>
#include <time.h>

#define DEADLINE_NS (UINT64_C(1000000000) / 80)

static struct clock *tsc_clock(void) {
	static struct clock clock;
	static bool calibrated;

	if (!calibrated)
		clock_init_tsc(&clock);
	calibrated = true;
	return &clock;
}

static struct worker_config make_config(enum idle_policy policy) {
	return (struct worker_config){
		.name = idle_policy_name(policy),
		.cpu = WORKER_CPU_ANY,
		.clock = tsc_clock(),
		.idle = {.policy = policy, .window_ns = 100000},
	};
}

// Measure the turns of a worker in this thread, without starting the worker's thread.
uint64_t micro_worker_turn(uint64_t rounds) {
	struct worker_config config = make_config(IDLE_SPIN);
	struct worker *worker;
	uint64_t start_ns;

	config.idle.block_ns = 20000;
	must(worker_create(&config, &worker) == 0);
	worker->last_ns = clock_now_ns(config.clock);
	idle_init(&worker->idle, &config.idle, worker->last_ns);
	start_ns = clock_monotonic_ns();
	for (uint64_t n = 0; n < rounds; n++)
		micro_keep(worker_turn(worker, clock_now_ns(config.clock)).action);
	start_ns = clock_monotonic_ns() - start_ns;
	worker_destroy(worker);
	return start_ns;
}

static uint64_t clockid_now_ns(clockid_t clock) {
	struct timespec time;

	must(clock_gettime(clock, &time) == 0);
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static void sleep_offline(uint64_t ns) {
	const struct timespec time = {.tv_nsec = (long)ns};

	rcu_thread_offline();
	clock_nanosleep(CLOCK_MONOTONIC, 0, &time, NULL);
	rcu_thread_online(clock_monotonic_ns());
}

// Return the processor time of the worker's thread while this thread sleeps.
static uint64_t measure_cpu_time(struct worker **worker, const struct worker_config *config) {
	struct worker_facts facts;
	uint64_t start_ns;
	clockid_t clock;

	if (*worker == NULL) {
		must(worker_create(config, worker) == 0);
		must(worker_start(*worker, &facts) == 0);
	}
	must(pthread_getcpuclockid((*worker)->thread, &clock) == 0);
	start_ns = clockid_now_ns(clock);
	sleep_offline(MICRO_SHARE_NS);
	return clockid_now_ns(clock) - start_ns;
}

uint64_t micro_worker_idle(uint64_t rounds) {
	static struct worker *worker;
	struct worker_config config = make_config(IDLE_ADAPTIVE);

	(void)rounds;
	return measure_cpu_time(&worker, &config);
}

uint64_t micro_worker_idle_window(uint64_t rounds) {
	static struct worker *worker;
	struct worker_config config = make_config(IDLE_WINDOW);

	(void)rounds;
	return measure_cpu_time(&worker, &config);
}

static bool poll_deadlines(void *ctx, struct idle_step_findings *found) {
	uint64_t *due_ns = ctx;

	if (found->now_ns < *due_ns) {
		found->due_ns = *due_ns;
		return false;
	}
	*due_ns = found->now_ns + DEADLINE_NS;
	found->due_ns = *due_ns;
	return true;
}

uint64_t micro_worker_deadlines(uint64_t rounds) {
	static struct worker *worker;
	static uint64_t due_ns;
	struct worker_config config = make_config(IDLE_ADAPTIVE);

	(void)rounds;
	config.polls[0] = (struct worker_poll){.poll = poll_deadlines, .ctx = &due_ns};
	config.poll_count = 1;
	return measure_cpu_time(&worker, &config);
}

// Lower bound: a thread that only wakes up as often.
static void *empty_wakes_run(void *argument) {
	struct timespec until;
	uint64_t until_ns = clock_monotonic_ns();

	prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
	for (;;) {
		until_ns += DEADLINE_NS;
		until.tv_sec = (time_t)(until_ns / 1000000000);
		until.tv_nsec = (long)(until_ns % 1000000000);
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
	}
	return argument;
}

uint64_t micro_worker_empty_wakes(uint64_t rounds) {
	static pthread_t thread;
	static bool runs;
	clockid_t clock;
	uint64_t start_ns;

	(void)rounds;
	if (!runs)
		must(pthread_create(&thread, NULL, empty_wakes_run, NULL) == 0);
	runs = true;
	must(pthread_getcpuclockid(thread, &clock) == 0);
	start_ns = clockid_now_ns(clock);
	sleep_offline(MICRO_SHARE_NS);
	return clockid_now_ns(clock) - start_ns;
}
