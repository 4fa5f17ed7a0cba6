// SPDX-License-Identifier: BSD-3-Clause
// Workers on threads of their own, with things to poll that the test plays.
#include "worker/worker_impl.h"

#include <lib/rcu.h>
#include <lib/rcu_thread.h>
#include <support/cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static struct clock monotonic;

static struct worker_config config_of(enum idle_policy policy) {
	return (struct worker_config){
		.name = "worker-1",
		.cpu = WORKER_CPU_ANY,
		.clock = &monotonic,
		.idle = {.policy = policy, .block_ns = 20000, .window_ns = 1000},
	};
}

static struct worker *started(const struct worker_config *config, struct worker_facts *ret_facts) {
	struct worker *worker;

	assert_int_equal(worker_create(config, &worker), 0);
	assert_int_equal(worker_start(worker, ret_facts), 0);
	return worker;
}

// Waits for an event, not for a time.
static struct worker_record next_event(struct worker *worker) {
	struct pollfd fd = {.fd = worker_event_fd(worker), .events = POLLIN};
	struct worker_record record;

	while (worker_take(worker, &record, 1) == 0)
		assert_true(poll(&fd, 1, 60000) > 0);
	return record;
}

static void echo(void *ctx, struct worker *worker, const struct worker_record *record) {
	(void)ctx;
	worker_event(worker, record);
}

static void wait_until_blocked(struct worker *worker) {
	while (atomic_load(&worker->bell.armed) == 0)
		sched_yield();
}

static void request_comes_back_as_an_event_under_every_policy(void **state) {
	(void)state;
	for (int policy = 0; policy < IDLE_POLICY_COUNT; policy++) {
		struct worker_config config = config_of((enum idle_policy)policy);
		struct worker_record record = {.kind = 7};
		struct worker_counters counters;
		struct worker_facts facts;
		struct worker *worker;

		config.request = echo;
		worker = started(&config, &facts);
		for (uint32_t n = 0; n < 200; n++) {
			record.slot = n;
			record.words[6] = ~(uint64_t)n;
			assert_int_equal(worker_post(worker, &record), 0);
			record = next_event(worker);
			assert_int_equal(record.kind, 7);
			assert_int_equal(record.slot, n);
			assert_int_equal(record.words[6], ~(uint64_t)n);
		}
		worker_stop(worker);
		worker_counters(worker, &counters);
		assert_int_equal(counters.requests, 200);
		assert_int_equal(counters.events, 200);
		assert_int_equal(counters.events_lost, 0);
		worker_destroy(worker);
	}
}

// They share it by the kernel's slices: slow, and neither stops.
static void two_that_spin_on_one_processor_both_serve(void **state) {
	struct worker_config config = config_of(IDLE_SPIN);
	struct worker_record record = {.kind = 7};
	struct worker *workers[2];
	struct worker_facts facts;
	struct cpu_set allowed;

	(void)state;
	assert_int_equal(cpu_set_get_allowed(&allowed), 0);
	config.cpu = cpu_set_next(&allowed, 0);
	config.request = echo;
	for (int n = 0; n < 2; n++)
		workers[n] = started(&config, &facts);
	for (uint32_t n = 0; n < 40; n++) {
		record.slot = n;
		assert_int_equal(worker_post(workers[n % 2], &record), 0);
		assert_int_equal(next_event(workers[n % 2]).slot, n);
	}
	for (int n = 0; n < 2; n++)
		worker_destroy(workers[n]);
}

static void worker_stops_while_it_is_blocked(void **state) {
	struct worker_config config = config_of(IDLE_ADAPTIVE);

	(void)state;
	for (int n = 0; n < 100; n++) {
		struct worker_facts facts;
		struct worker *worker = started(&config, &facts);

		wait_until_blocked(worker);
		worker_stop(worker);
		worker_stop(worker);
		worker_destroy(worker);
	}
}

static void bell_is_written_to_only_for_one_who_sleeps(void **state) {
	struct doorbell bell;
	struct pollfd fd = {.events = POLLIN};

	(void)state;
	assert_int_equal(doorbell_init(&bell), 0);
	fd.fd = bell.fd;
	assert_false(doorbell_ring(&bell));
	assert_int_equal(poll(&fd, 1, 0), 0);
	doorbell_arm(&bell);
	assert_true(doorbell_ring(&bell));
	assert_false(doorbell_ring(&bell)); // it was woken already
	assert_int_equal(poll(&fd, 1, 0), 1);
	doorbell_disarm(&bell);
	assert_int_equal(poll(&fd, 1, 0), 0);
	doorbell_arm(&bell);
	doorbell_disarm(&bell);
	assert_false(doorbell_ring(&bell));
	doorbell_fini(&bell);
	doorbell_fini(&bell);
}

static void ring_that_comes_late_wakes_for_nothing_once(void **state) {
	const uint64_t one = 1;
	struct doorbell bell;
	struct pollfd fd = {.events = POLLIN};

	(void)state;
	assert_int_equal(doorbell_init(&bell), 0);
	fd.fd = bell.fd;
	doorbell_arm(&bell);
	atomic_store(&bell.armed, 0); // a bringer, held up before its write
	doorbell_disarm(&bell);
	assert_int_equal(write(bell.fd, &one, sizeof(one)), sizeof(one));
	doorbell_arm(&bell);
	assert_int_equal(poll(&fd, 1, 0), 1);
	doorbell_disarm(&bell);
	doorbell_arm(&bell);
	assert_int_equal(poll(&fd, 1, 0), 0);
	doorbell_fini(&bell);
}

static void many_requests_at_once_lose_nothing_and_keep_their_order(void **state) {
	struct worker_config config = config_of(IDLE_ADAPTIVE);
	struct worker_record record = {.kind = 1};
	struct worker_facts facts;
	struct worker *worker;
	uint32_t sent = 0, seen = 0;

	(void)state;
	config.request = echo;
	worker = started(&config, &facts);
	while (seen < 20000) {
		record.slot = sent;
		// Never more on their way than one ring holds.
		if (sent < 20000 && sent - seen < 500 && worker_post(worker, &record) == 0) {
			sent++;
			continue;
		}
		assert_int_equal(next_event(worker).slot, seen);
		seen++;
	}
	worker_destroy(worker);
}

static void full_rings_say_so(void **state) {
	struct worker_config config = config_of(IDLE_ADAPTIVE);
	struct worker_record record = {.kind = 1};
	struct worker_counters counters;
	struct worker *worker;
	uint32_t posted = 0, pushed = 0;

	(void)state;
	assert_int_equal(worker_create(&config, &worker), 0); // nobody takes anything
	while (worker_post(worker, &record) == 0)
		posted++;
	assert_int_equal(worker_post(worker, &record), -EAGAIN);
	while (worker_event(worker, &record) == 0)
		pushed++;
	assert_in_range(posted, WORKER_RING_RECORDS - 1, WORKER_RING_RECORDS);
	assert_int_equal(pushed, posted);
	worker_counters(worker, &counters);
	assert_int_equal(counters.events_lost, 1);
	worker_destroy(worker);
}

// Wants to be called at a time, again and again, and tells control each time.
struct alarm {
	struct worker *worker;
	uint64_t due_ns, early, late;
};

static bool alarm_poll(void *ctx, struct idle_found *found) {
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

// Plans something between the two looks of a wait, of which the first one knew nothing.
static void alarm_is_set(void *ctx) {
	struct alarm *alarm = ctx;

	if (alarm->due_ns == IDLE_NEVER)
		alarm->due_ns = clock_monotonic_ns() + 1000000;
}

static bool alarm_rings_once(void *ctx, struct idle_found *found) {
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

// On the worker's thread: as if the counter had stood for ten seconds.
static void clock_jumps(void *ctx, struct worker *worker, const struct worker_record *record) {
	struct clock *clock = ctx;

	(void)worker;
	(void)record;
	clock->kept.ns -= UINT64_C(10000000000);
}

static void worker_whose_counter_jumps_goes_on_by_the_kernels_clock(void **state) {
	struct clock kept;

	(void)state;
	clock_init_kept(&kept);
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
		assert_int_equal(worker_post(worker, &record), 0);
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

static void life_is_a_turn_or_a_sleep_that_is_not_over(void **state) {
	static const struct {
		struct worker_sign sign;
		uint32_t silent;
	} looks[] = {
		{{1, 0}, 0},
		{{1, 0}, 1},
		{{1, 0}, 2},
		{{2, 0}, 0},
		{{2, IDLE_NEVER}, 0},
		{{2, IDLE_NEVER}, 0},
		{{2, 5 * WORKER_OVERSLEEP_NS}, 0},
		{{2, 4 * WORKER_OVERSLEEP_NS}, 0},     // due now
		{{2, 3 * WORKER_OVERSLEEP_NS + 1}, 0}, // somewhat late
		{{2, 3 * WORKER_OVERSLEEP_NS}, 1},     // it should be awake
		{{2, 3 * WORKER_OVERSLEEP_NS}, 2},
		{{3, 3 * WORKER_OVERSLEEP_NS}, 0},
	};
	struct worker_life life = {0};

	(void)state;
	for (size_t n = 0; n < sizeof(looks) / sizeof(looks[0]); n++)
		assert_int_equal(
			worker_life_look(&life, &looks[n].sign, 4 * WORKER_OVERSLEEP_NS),
			looks[n].silent
		);
}

static atomic_bool hangs, hung;

static bool poll_hangs(void *ctx, struct idle_found *found) {
	(void)ctx;
	(void)found;
	while (atomic_load(&hangs)) {
		atomic_store(&hung, true);
		sched_yield();
	}
	return false;
}

static uint32_t look_at(const struct worker *worker, struct worker_life *life) {
	struct worker_sign sign;

	worker_sign(worker, &sign);
	return worker_life_look(life, &sign, clock_monotonic_ns());
}

static void worker_that_hangs_in_a_step_shows_no_life_and_every_other_does(void **state) {
	(void)state;
	for (int policy = 0; policy < IDLE_POLICY_COUNT; policy++) {
		struct worker_config config = config_of((enum idle_policy)policy);
		struct worker_life life = {0};
		struct worker_facts facts;
		struct worker *worker;
		uint32_t silent;

		config.polls[0] = (struct worker_poll){.poll = poll_hangs};
		config.poll_count = 1;
		atomic_store(&hangs, false);
		atomic_store(&hung, false);
		worker = started(&config, &facts);
		// With nothing to do it sleeps, or spins: time enough for a turn is given.
		for (int n = 0; n < 100; n++) {
			while (look_at(worker, &life) > 0)
				sched_yield();
		}
		atomic_store(&hangs, true);
		worker_wake(worker);
		while (!atomic_load(&hung))
			sched_yield();
		// The turn that hangs may have been counted before the last look, or after it.
		silent = look_at(worker, &life);
		for (uint32_t n = 1; n < 10; n++)
			assert_int_equal(look_at(worker, &life), silent + n);
		atomic_store(&hangs, false);
		while (look_at(worker, &life) > 0)
			sched_yield();
		worker_destroy(worker);
	}
}

// Something with a descriptor of its own, as a completion channel is: what came is seen by polling,
// the descriptor only says that there is something, and only if it was armed.
struct source {
	struct worker *worker;
	int fd; // of an eventfd
	_Atomic uint32_t came, armed, woken, notified;
	uint32_t seen;
};

static bool source_poll(void *ctx, struct idle_found *found) {
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

static bool nothing_comes(void *ctx, struct idle_found *found) {
	(void)ctx;
	(void)found;
	return false;
}

static void count_woken(void *ctx) {
	atomic_fetch_add((_Atomic uint32_t *)ctx, 1);
}

// As the completion channel of a device that was removed: poll() says POLLERR for good.
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
		assert_int_equal(worker_post(worker, &record), 0);
		next_event(worker);
	}
	worker_stop(worker);
	worker_counters(worker, &counters);
	assert_int_equal(atomic_load(&woken), 1);
	assert_int_equal(counters.wakes_polled, 1);
	worker_destroy(worker);
	close(ends[1]);
}

// Adds or removes what words[0] points to, and says how that went.
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

	assert_int_equal(worker_post(worker, &record), 0);
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

static void policy_changes_while_it_runs(void **state) {
	const enum idle_policy policies[] = {IDLE_SPIN, IDLE_EVENT, IDLE_WINDOW, IDLE_ADAPTIVE};
	struct worker_config config = config_of(IDLE_ADAPTIVE);
	struct worker_record record = {.kind = 7};
	struct worker_facts facts;
	struct worker *worker;

	(void)state;
	config.request = echo;
	worker = started(&config, &facts);
	config.idle.policy = IDLE_POLICY_COUNT;
	assert_int_equal(worker_set_idle(worker, &config.idle), -EINVAL);
	for (uint32_t n = 0; n < 40; n++) {
		config.idle.policy = policies[n % 4];
		assert_int_equal(worker_set_idle(worker, &config.idle), 0);
		assert_int_equal(worker_post(worker, &record), 0);
		assert_int_equal(next_event(worker).kind, 7);
		assert_int_equal(worker->idle.config.policy, policies[n % 4]);
		assert_int_equal(worker->idle.config.block_ns, 20000);
	}
	worker_destroy(worker);
}

static void blocked_worker_holds_up_no_grace_period(void **state) {
	struct worker_config config = config_of(IDLE_EVENT);
	struct rcu_thread_stall stall;
	struct worker_facts facts;
	struct worker *worker = started(&config, &facts);

	(void)state;
	wait_until_blocked(worker);
	urcu_qsbr_synchronize_rcu(); // would never return
	worker_stop(worker);
	assert_false(rcu_thread_find_stalled(1, UINT64_MAX, &stall));
	worker_destroy(worker);
}

static void spinning_worker_passes_quiescent_states(void **state) {
	struct worker_config config = config_of(IDLE_SPIN);
	struct worker_facts facts;
	struct worker *worker = started(&config, &facts);

	(void)state;
	for (int n = 0; n < 10; n++)
		urcu_qsbr_synchronize_rcu();
	worker_destroy(worker);
}

static void worker_is_pinned_where_it_was_told_and_says_so(void **state) {
	struct worker_config config = config_of(IDLE_ADAPTIVE);
	struct cpu_set allowed, expected = {{0}}, after;
	struct worker_facts facts = {.tid = 0};
	struct worker *worker;
	char path[64], name[32];
	FILE *file;

	(void)state;
	assert_int_equal(cpu_set_get_allowed(&allowed), 0);
	config.cpu = cpu_set_next(&allowed, 0);
	config.idle.block_ns = 0;
	cpu_set_add(&expected, config.cpu);
	worker = started(&config, &facts);
	assert_memory_equal(&facts.affinity, &expected, sizeof(expected));
	assert_true(facts.block_ns > 0);
	assert_false(facts.eal);
	assert_true(facts.tid > 0);
	snprintf(path, sizeof(path), "/proc/self/task/%d/comm", facts.tid);
	file = fopen(path, "r");
	assert_non_null(file);
	assert_non_null(fgets(name, sizeof(name), file));
	fclose(file);
	assert_string_equal(name, "worker-1\n");
	assert_int_equal(cpu_set_get_allowed(&after), 0);
	assert_memory_equal(&after, &allowed, sizeof(allowed));
	worker_destroy(worker);
}

static void processor_that_is_not_allowed_is_refused(void **state) {
	struct worker_config config = config_of(IDLE_ADAPTIVE);
	struct worker_facts facts = {.tid = 77};
	struct worker *worker;

	(void)state;
	config.cpu = CPU_SET_CPUS_MAX - 1;
	assert_int_equal(worker_create(&config, &worker), 0);
	assert_int_equal(worker_start(worker, &facts), -EINVAL);
	assert_int_equal(facts.tid, 77);
	worker_destroy(worker);
}

// Sanitizers lock nothing and say that they did.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
static uint64_t locked_kib(void) {
	FILE *file = fopen("/proc/self/status", "r");
	unsigned long long kib = UINT64_MAX;
	char line[256];

	assert_non_null(file);
	while (fgets(line, sizeof(line), file) != NULL) {
		if (strncmp(line, "VmLck:", 6) == 0)
			kib = strtoull(line + 6, NULL, 10);
	}
	fclose(file);
	return kib;
}

// Of a process that may lock so many bytes and has no rights beyond that.
static int lock_error_at(uint64_t limit) {
	const struct rlimit limits = {limit, limit};
	pid_t child = fork();
	int status = 0;

	if (child == 0) {
		bool ready = setrlimit(RLIMIT_MEMLOCK, &limits) == 0 &&
			     (geteuid() != 0 || setuid(65534) == 0);

		_exit(ready ? -worker_lock_memory() : 255);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	return -WEXITSTATUS(status);
}

static void memory_is_locked_whole_and_also_what_comes_later(void **state) {
	const size_t size = 1 << 20;
	uint64_t before = locked_kib();
	void *later;

	(void)state;
	assert_int_equal(before, 0);
	if (worker_lock_memory() != 0)
		skip(); // who runs this may not
	before = locked_kib();
	assert_true(before > 0);
	later = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(later, MAP_FAILED);
	assert_true(locked_kib() >= before + size / 1024);
	assert_int_equal(munlockall(), 0);
	munmap(later, size);
}

static void memory_that_may_not_be_locked_is_told(void **state) {
	(void)state;
	assert_int_equal(lock_error_at(0), -EPERM);
	assert_int_equal(lock_error_at(65536), -ENOMEM);
}
#endif

static void configuration_that_makes_no_sense_is_refused(void **state) {
	struct worker_config configs[6];
	struct clock other;
	struct worker *worker = NULL;

	(void)state;
	for (size_t n = 0; n < 6; n++)
		configs[n] = config_of(IDLE_ADAPTIVE);
	configs[0].name = "";
	configs[1].name = "a-name-longer-than-15";
	configs[2].poll_count = WORKER_POLLS_MAX + 1;
	configs[3].cpu = CPU_SET_CPUS_MAX;
	configs[4].idle.policy = IDLE_POLICY_COUNT;
	configs[5].kept_clock = &other;
	for (size_t n = 0; n < 6; n++)
		assert_int_equal(worker_create(&configs[n], &worker), -EINVAL);
	assert_null(worker);
	assert_null(worker_destroy(NULL));
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(request_comes_back_as_an_event_under_every_policy),
		cmocka_unit_test(two_that_spin_on_one_processor_both_serve),
		cmocka_unit_test(worker_stops_while_it_is_blocked),
		cmocka_unit_test(bell_is_written_to_only_for_one_who_sleeps),
		cmocka_unit_test(ring_that_comes_late_wakes_for_nothing_once),
		cmocka_unit_test(many_requests_at_once_lose_nothing_and_keep_their_order),
		cmocka_unit_test(full_rings_say_so),
		cmocka_unit_test(deadline_ends_a_wait_without_a_bell),
		cmocka_unit_test(deadline_that_only_the_second_look_sees_ends_the_wait),
		cmocka_unit_test(worker_whose_counter_jumps_goes_on_by_the_kernels_clock),
		cmocka_unit_test(life_is_a_turn_or_a_sleep_that_is_not_over),
		cmocka_unit_test(worker_that_hangs_in_a_step_shows_no_life_and_every_other_does),
		cmocka_unit_test(descriptor_of_a_poll_ends_a_wait),
		cmocka_unit_test(descriptor_in_error_ends_one_wait_and_no_more),
		cmocka_unit_test(polls_come_and_go_while_it_runs),
		cmocka_unit_test(policy_changes_while_it_runs),
		cmocka_unit_test(blocked_worker_holds_up_no_grace_period),
		cmocka_unit_test(spinning_worker_passes_quiescent_states),
		cmocka_unit_test(worker_is_pinned_where_it_was_told_and_says_so),
		cmocka_unit_test(processor_that_is_not_allowed_is_refused),
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
		cmocka_unit_test(memory_is_locked_whole_and_also_what_comes_later),
		cmocka_unit_test(memory_that_may_not_be_locked_is_told),
#endif
		cmocka_unit_test(configuration_that_makes_no_sense_is_refused),
	};

	clock_init_monotonic(&monotonic);
	return cmocka_run_group_tests_name("worker", tests, NULL, NULL);
}
