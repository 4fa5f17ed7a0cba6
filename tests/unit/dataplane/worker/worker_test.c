// SPDX-License-Identifier: BSD-3-Clause
// Tests of workers on their own threads, from start to end: requests and events, rings, policies,
// RCU.
#include "dataplane/worker/worker_bed.h"

#include <lib/rcu.h>
#include <lib/rcu_thread.h>

#include <errno.h>

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
			assert_int_equal(worker_post_request(worker, &record), 0);
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

// The kernel's time slices share the processor: both workers are slow, but neither stops.
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
		assert_int_equal(worker_post_request(workers[n % 2], &record), 0);
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
		// Fewer records are in flight than one ring holds.
		if (sent < 20000 && sent - seen < 500 &&
		    worker_post_request(worker, &record) == 0) {
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
	// Not started, so no record is consumed.
	assert_int_equal(worker_create(&config, &worker), 0);
	while (worker_post_request(worker, &record) == 0)
		posted++;
	assert_int_equal(worker_post_request(worker, &record), -EAGAIN);
	while (worker_event(worker, &record) == 0)
		pushed++;
	assert_in_range(posted, WORKER_RING_RECORDS - 1, WORKER_RING_RECORDS);
	assert_int_equal(pushed, posted);
	worker_counters(worker, &counters);
	assert_int_equal(counters.events_lost, 1);
	worker_destroy(worker);
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
		assert_int_equal(worker_post_request(worker, &record), 0);
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
	urcu_qsbr_synchronize_rcu(); // must return, although the worker is blocked
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

UNIT_GROUP(worker) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(request_comes_back_as_an_event_under_every_policy),
		cmocka_unit_test(two_that_spin_on_one_processor_both_serve),
		cmocka_unit_test(worker_stops_while_it_is_blocked),
		cmocka_unit_test(many_requests_at_once_lose_nothing_and_keep_their_order),
		cmocka_unit_test(full_rings_say_so),
		cmocka_unit_test(policy_changes_while_it_runs),
		cmocka_unit_test(blocked_worker_holds_up_no_grace_period),
		cmocka_unit_test(spinning_worker_passes_quiescent_states),
		cmocka_unit_test(configuration_that_makes_no_sense_is_refused),
	};

	clock_init_monotonic(&monotonic);
	return cmocka_run_group_tests_name("worker", tests, NULL, NULL);
}
