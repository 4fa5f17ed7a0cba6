// SPDX-License-Identifier: BSD-3-Clause
// Tests of what a worker polls and what ends its wait: deadlines, descriptors, a clock that jumps.
#include "dataplane/worker/worker_bed.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>

// A poll function that is due again and again, and sends an event each time.
struct alarm {
	struct worker *worker;
	uint64_t due_ns, early, late;
};

static bool alarm_poll(void *ctx, struct idle_step_findings *found) {
	struct alarm *alarm = ctx;
	struct worker_record record = {.kind = 2};

	if (found->now_ns < alarm->due_ns) {
		found->due_ns = alarm->due_ns;
		return false;
	}
	alarm->due_ns = found->now_ns + 1000000;
	found->due_ns = alarm->due_ns;
	worker_event(alarm->worker, &record);
	return true;
}

static void deadline_ends_a_wait_without_a_bell(void **state) {
	struct worker_config config = config_of(IDLE_ADAPTIVE);
	struct alarm alarm = {.due_ns = clock_monotonic_ns() + 1000000};
	struct worker_counters counters;
	struct worker_facts facts;
	struct worker *worker;

	(void)state;
	config.polls[0] = (struct worker_poll){.poll = alarm_poll, .ctx = &alarm};
	config.poll_count = 1;
	assert_int_equal(worker_create(&config, &worker), 0);
	alarm.worker = worker;
	assert_int_equal(worker_start(worker, &facts), 0);
	for (int n = 0; n < 20; n++)
		assert_int_equal(next_event(worker).kind, 2);
	worker_stop(worker);
	worker_counters(worker, &counters);
	assert_true(counters.wakes_timed > 0);
	assert_int_equal(counters.blocks, counters.wakes_timed + counters.wakes_rung);
	assert_true(counters.blocked_ns > 0);
	worker_destroy(worker);
}

// Set a due time between the two polls before a wait, so that only the second poll sees it.
static void alarm_is_set(void *ctx) {
	struct alarm *alarm = ctx;

	if (alarm->due_ns == IDLE_NEVER)
		alarm->due_ns = clock_monotonic_ns() + 1000000;
}

static bool alarm_rings_once(void *ctx, struct idle_step_findings *found) {
	struct alarm *alarm = ctx;
	struct worker_record record = {.kind = 2};

	if (found->now_ns < alarm->due_ns) {
		if (alarm->due_ns < found->due_ns)
			found->due_ns = alarm->due_ns;
		return false;
	}
	alarm->due_ns = IDLE_NEVER;
	worker_event(alarm->worker, &record);
	return true;
}

static void deadline_that_only_the_second_look_sees_ends_the_wait(void **state) {
	const enum idle_policy policies[] = {IDLE_ADAPTIVE, IDLE_EVENT};

	(void)state;
	for (size_t policy = 0; policy < 2; policy++) {
		struct worker_config config = config_of(policies[policy]);
		struct alarm alarm = {.due_ns = IDLE_NEVER};
		struct worker_facts facts;
		struct worker *worker;

		config.polls[0] = (struct worker_poll
		){.poll = alarm_rings_once, .ctx = &alarm, .arm = alarm_is_set};
		config.poll_count = 1;
		assert_int_equal(worker_create(&config, &worker), 0);
		alarm.worker = worker;
		assert_int_equal(worker_start(worker, &facts), 0);
		for (int n = 0; n < 20; n++)
			assert_int_equal(next_event(worker).kind, 2);
		worker_destroy(worker);
	}
}

// Runs on the worker's thread, as if the counter had stood still for ten seconds.
static void clock_jumps(void *ctx, struct worker *worker, const struct worker_record *record) {
	struct clock *clock = ctx;

	(void)worker;
	(void)record;
	clock->kept.ns -= UINT64_C(10000000000);
}

static void worker_whose_counter_jumps_goes_on_by_the_kernels_clock(void **state) {
	struct clock kept;

	(void)state;
	clock_init_resynced(&kept);
	if (clock_source(&kept) != CLOCK_SOURCE_TSC) {
		print_message("no kept clock here: %s\n", clock_reason(&kept));
		skip();
	}
	for (int policy = 0; policy < IDLE_POLICY_COUNT; policy++) {
		struct worker_config config = config_of((enum idle_policy)policy);
		struct alarm alarm = {.due_ns = clock_monotonic_ns() + 1000000};
		struct worker_record record = {.kind = 1};
		struct clock clock = kept;
		struct worker_counters counters;
		struct worker_facts facts;
		struct worker *worker;

		config.clock = config.kept_clock = &clock;
		config.request = clock_jumps;
		config.request_ctx = &clock;
		config.polls[0] = (struct worker_poll){.poll = alarm_poll, .ctx = &alarm};
		config.poll_count = 1;
		assert_int_equal(worker_create(&config, &worker), 0);
		assert_ptr_equal(worker_clock(worker), &clock);
		alarm.worker = worker;
		assert_int_equal(worker_start(worker, &facts), 0);
		assert_int_equal(next_event(worker).kind, 2);
		assert_int_equal(worker_post_request(worker, &record), 0);
		while (next_event(worker).kind != WORKER_EVENT_CLOCK)
			;
		for (int n = 0; n < 5; n++)
			assert_int_equal(next_event(worker).kind, 2);
		worker_stop(worker);
		worker_counters(worker, &counters);
		assert_int_equal(counters.clock_jumps, 1);
		assert_int_equal(clock_source(&clock), CLOCK_SOURCE_MONOTONIC);
		worker_destroy(worker);
	}
}

// A source with its own descriptor, like a completion channel. Its data is found by polling. The
// descriptor only signals that data came, and only after arming.
struct source {
	struct worker *worker;
	int fd; // an eventfd
	_Atomic uint32_t came, armed, woken, notified;
	uint32_t seen;
};

static bool source_poll(void *ctx, struct idle_step_findings *found) {
	struct source *source = ctx;
	struct worker_record record = {.kind = 3};

	(void)found;
	if (atomic_load(&source->came) == source->seen)
		return false;
	record.slot = ++source->seen;
	worker_event(source->worker, &record);
	return true;
}

static void source_arm(void *ctx) {
	struct source *source = ctx;

	atomic_store(&source->armed, 1);
}

static void source_woken(void *ctx) {
	struct source *source = ctx;
	uint64_t count;

	assert_int_equal(read(source->fd, &count, sizeof(count)), sizeof(count));
	atomic_fetch_add(&source->woken, 1);
}

static void source_notify(void *ctx) {
	struct source *source = ctx;

	atomic_fetch_add(&source->notified, 1);
}

static void source_comes(struct source *source) {
	const uint64_t one = 1;

	atomic_fetch_add(&source->came, 1);
	if (atomic_exchange(&source->armed, 0) != 0)
		assert_int_equal(write(source->fd, &one, sizeof(one)), sizeof(one));
}

static struct worker_poll source_to_poll(struct source *source) {
	source->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	assert_true(source->fd >= 0);
	return (struct worker_poll){
		.poll = source_poll,
		.ctx = source,
		.fd = source->fd,
		.arm = source_arm,
		.woken = source_woken,
		.notify = source_notify,
	};
}

static void descriptor_of_a_poll_ends_a_wait(void **state) {
	struct worker_config config = config_of(IDLE_EVENT);
	struct source source = {.fd = -1};
	struct worker_counters counters;
	struct worker_facts facts;
	struct worker *worker;

	(void)state;
	config.polls[0] = source_to_poll(&source);
	config.poll_count = 1;
	assert_int_equal(worker_create(&config, &worker), 0);
	source.worker = worker;
	assert_int_equal(worker_start(worker, &facts), 0);
	for (uint32_t n = 1; n <= 100; n++) {
		wait_until_blocked(worker);
		source_comes(&source);
		assert_int_equal(next_event(worker).slot, n);
	}
	worker_stop(worker);
	worker_counters(worker, &counters);
	assert_true(counters.wakes_polled > 0);
	assert_true(atomic_load(&source.notified) >= 100);
	assert_int_equal(
		counters.blocks, counters.wakes_timed + counters.wakes_rung + counters.wakes_polled
	);
	worker_destroy(worker);
	close(source.fd);
}

static bool nothing_comes(void *ctx, struct idle_step_findings *found) {
	(void)ctx;
	(void)found;
	return false;
}

static void count_woken(void *ctx) {
	atomic_fetch_add((_Atomic uint32_t *)ctx, 1);
}

// Like the completion channel of a removed device: poll() reports POLLERR permanently.
static void descriptor_in_error_ends_one_wait_and_no_more(void **state) {
	struct worker_config config = config_of(IDLE_EVENT);
	struct worker_record record = {.kind = 7};
	struct worker_counters counters;
	_Atomic uint32_t woken = 0;
	struct worker_facts facts;
	struct worker *worker;
	int ends[2];

	(void)state;
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	close(ends[0]);
	config.request = echo;
	config.polls[0] = (struct worker_poll){
		.poll = nothing_comes,
		.ctx = &woken,
		.fd = ends[1],
		.woken = count_woken,
	};
	config.poll_count = 1;
	worker = started(&config, &facts);
	while (atomic_load(&woken) == 0)
		sched_yield();
	for (uint32_t n = 0; n < 100; n++) {
		wait_until_blocked(worker);
		assert_int_equal(worker_post_request(worker, &record), 0);
		next_event(worker);
	}
	worker_stop(worker);
	worker_counters(worker, &counters);
	assert_int_equal(atomic_load(&woken), 1);
	assert_int_equal(counters.wakes_polled, 1);
	worker_destroy(worker);
	close(ends[1]);
}

// Add or remove the poll at words[0], and report the result.
static void change_polls(void *ctx, struct worker *worker, const struct worker_record *record) {
	// The test's own pointer, as it posted it.
	const struct worker_poll *poll = (const void *)(uintptr_t)record->words[0]; // NOLINT
	struct worker_record event = *record;
	int err = record->kind == 1 ? worker_poll_add(worker, poll)
				    : worker_poll_remove(worker, poll->ctx);

	(void)ctx;
	event.words[1] = (uint64_t)(int64_t)err;
	worker_event(worker, &event);
}

static int ask_for_change(struct worker *worker, uint32_t kind, const struct worker_poll *poll) {
	struct worker_record record = {.kind = kind, .words = {(uintptr_t)poll}};

	assert_int_equal(worker_post_request(worker, &record), 0);
	do
		record = next_event(worker);
	while (record.kind != kind);
	return (int)(int64_t)record.words[1];
}

static void polls_come_and_go_while_it_runs(void **state) {
	struct worker_config config = config_of(IDLE_ADAPTIVE);
	struct source sources[WORKER_POLLS_MAX + 1] = {{0}};
	struct worker_poll polls[WORKER_POLLS_MAX + 1];
	struct worker_facts facts;
	struct worker *worker;

	(void)state;
	config.request = change_polls;
	worker = started(&config, &facts);
	for (uint32_t n = 0; n <= WORKER_POLLS_MAX; n++) {
		polls[n] = source_to_poll(&sources[n]);
		sources[n].worker = worker;
		assert_int_equal(
			ask_for_change(worker, 1, &polls[n]), n < WORKER_POLLS_MAX ? 0 : -ENOSPC
		);
	}
	assert_int_equal(ask_for_change(worker, 2, &polls[WORKER_POLLS_MAX]), -ENOENT);
	for (uint32_t n = 0; n < WORKER_POLLS_MAX; n += 2)
		assert_int_equal(ask_for_change(worker, 2, &polls[n]), 0);
	for (uint32_t n = 1; n < WORKER_POLLS_MAX; n += 2) {
		wait_until_blocked(worker);
		source_comes(&sources[n]);
		assert_int_equal(next_event(worker).slot, 1);
		assert_int_equal(ask_for_change(worker, 2, &polls[n]), 0);
		assert_int_equal(ask_for_change(worker, 2, &polls[n]), -ENOENT);
	}
	worker_destroy(worker);
	for (uint32_t n = 0; n <= WORKER_POLLS_MAX; n++)
		close(sources[n].fd);
}

UNIT_GROUP(worker_polls) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(deadline_ends_a_wait_without_a_bell),
		cmocka_unit_test(deadline_that_only_the_second_look_sees_ends_the_wait),
		cmocka_unit_test(worker_whose_counter_jumps_goes_on_by_the_kernels_clock),
		cmocka_unit_test(descriptor_of_a_poll_ends_a_wait),
		cmocka_unit_test(descriptor_in_error_ends_one_wait_and_no_more),
		cmocka_unit_test(polls_come_and_go_while_it_runs),
	};

	clock_init_monotonic(&monotonic);
	return cmocka_run_group_tests_name("worker_polls", tests, NULL, NULL);
}
