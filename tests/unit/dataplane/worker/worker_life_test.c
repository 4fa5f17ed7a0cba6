// SPDX-License-Identifier: BSD-3-Clause
// Tests of the worker's sign of life, and how it reveals a hang.
#include "dataplane/worker/worker_bed.h"

static void life_is_a_turn_or_a_sleep_that_is_not_over(void **state) {
	static const struct {
		struct worker_progress sign;
		uint32_t silent;
	} looks[] = {
		{{1, 0}, 0},
		{{1, 0}, 1},
		{{1, 0}, 2},
		{{2, 0}, 0},
		{{2, IDLE_NEVER}, 0},
		{{2, IDLE_NEVER}, 0},
		{{2, 5 * WORKER_OVERSLEEP_MAX_NS}, 0},
		{{2, 4 * WORKER_OVERSLEEP_MAX_NS}, 0},	   // its deadline is now
		{{2, 3 * WORKER_OVERSLEEP_MAX_NS + 1}, 0}, // slightly late
		{{2, 3 * WORKER_OVERSLEEP_MAX_NS}, 1},	   // it should be awake by now
		{{2, 3 * WORKER_OVERSLEEP_MAX_NS}, 2},
		{{3, 3 * WORKER_OVERSLEEP_MAX_NS}, 0},
	};
	struct worker_life life = {0};

	(void)state;
	for (size_t n = 0; n < sizeof(looks) / sizeof(looks[0]); n++)
		assert_int_equal(
			worker_life_observe(&life, &looks[n].sign, 4 * WORKER_OVERSLEEP_MAX_NS),
			looks[n].silent
		);
}

static atomic_bool hangs, hung;

static bool poll_hangs(void *ctx, struct idle_step_findings *found) {
	(void)ctx;
	(void)found;
	while (atomic_load(&hangs)) {
		atomic_store(&hung, true);
		sched_yield();
	}
	return false;
}

static uint32_t look_at(const struct worker *worker, struct worker_life *life) {
	struct worker_progress sign;

	worker_progress(worker, &sign);
	return worker_life_observe(life, &sign, clock_monotonic_ns());
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
		// An idle worker sleeps or spins. Each round waits until it has completed a turn.
		for (int n = 0; n < 100; n++) {
			while (look_at(worker, &life) > 0)
				sched_yield();
		}
		atomic_store(&hangs, true);
		worker_wake(worker);
		while (!atomic_load(&hung))
			sched_yield();
		// The turn that hangs may be counted before or after the last observation.
		silent = look_at(worker, &life);
		for (uint32_t n = 1; n < 10; n++)
			assert_int_equal(look_at(worker, &life), silent + n);
		atomic_store(&hangs, false);
		while (look_at(worker, &life) > 0)
			sched_yield();
		worker_destroy(worker);
	}
}

UNIT_GROUP(worker_life) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(life_is_a_turn_or_a_sleep_that_is_not_over),
		cmocka_unit_test(worker_that_hangs_in_a_step_shows_no_life_and_every_other_does),
	};

	clock_init_monotonic(&monotonic);
	return cmocka_run_group_tests_name("worker_life", tests, NULL, NULL);
}
