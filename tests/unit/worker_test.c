// SPDX-License-Identifier: BSD-3-Clause
// Workers on threads of their own, with things to poll that the test plays.
#include "worker_impl.h"

#include <lib/rcu.h>
#include <lib/rcu_thread.h>
#include <support/cmocka.h>

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
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
	config.polls[0] = (struct worker_poll){alarm_poll, &alarm};
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

static void configuration_that_makes_no_sense_is_refused(void **state) {
	struct worker_config configs[5];
	struct worker *worker = NULL;

	(void)state;
	for (size_t n = 0; n < 5; n++)
		configs[n] = config_of(IDLE_ADAPTIVE);
	configs[0].name = "";
	configs[1].name = "a-name-longer-than-15";
	configs[2].poll_count = WORKER_POLLS_MAX + 1;
	configs[3].cpu = CPU_SET_CPUS_MAX;
	configs[4].idle.policy = IDLE_POLICY_COUNT;
	for (size_t n = 0; n < 5; n++)
		assert_int_equal(worker_create(&configs[n], &worker), -EINVAL);
	assert_null(worker);
	assert_null(worker_destroy(NULL));
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(request_comes_back_as_an_event_under_every_policy),
		cmocka_unit_test(worker_stops_while_it_is_blocked),
		cmocka_unit_test(bell_is_written_to_only_for_one_who_sleeps),
		cmocka_unit_test(ring_that_comes_late_wakes_for_nothing_once),
		cmocka_unit_test(many_requests_at_once_lose_nothing_and_keep_their_order),
		cmocka_unit_test(full_rings_say_so),
		cmocka_unit_test(deadline_ends_a_wait_without_a_bell),
		cmocka_unit_test(blocked_worker_holds_up_no_grace_period),
		cmocka_unit_test(spinning_worker_passes_quiescent_states),
		cmocka_unit_test(worker_is_pinned_where_it_was_told_and_says_so),
		cmocka_unit_test(processor_that_is_not_allowed_is_refused),
		cmocka_unit_test(configuration_that_makes_no_sense_is_refused),
	};

	clock_init_monotonic(&monotonic);
	return cmocka_run_group_tests_name("worker", tests, NULL, NULL);
}
