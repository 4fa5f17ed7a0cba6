// SPDX-License-Identifier: BSD-3-Clause
// Tests of the idle policy with a clock that the test advances. The trace sets the duration of an
// operation. Each poll and each yield takes STEP_NS, and a wake takes C.
#include <dataplane/idle.h>
#include <support/cmocka.h>

#include <errno.h>

#define C_NS UINT64_C(20000)
#define STEP_NS UINT64_C(50)
#define TRACE_WAITS 4000

struct world {
	struct idle idle;
	uint64_t now_ns;
	bool events;
	// Actual results, counted by the test and not by the policy.
	uint64_t paid_ns, optimum_ns, late_ns, blocks;
};

static struct world world_of(enum idle_policy policy, bool foresees) {
	struct idle_config config = {
		.policy = policy, .block_ns = C_NS, .window_ns = 3 * C_NS, .foresees = foresees};
	struct world world = {.now_ns = 1000000, .events = true};

	idle_init(&world.idle, &config, world.now_ns);
	return world;
}

static struct idle_decision say_counted(
	struct world *world, bool outstanding, uint64_t due_ns, uint32_t begun, uint32_t ended
) {
	struct idle_step_findings found = {
		.now_ns = world->now_ns,
		.due_ns = due_ns,
		.progress = begun + ended > 0,
		.outstanding = outstanding,
		.events = world->events,
		.begun = begun,
		.ended = ended,
	};

	return idle_decide(&world->idle, &found);
}

// Run one step with at most one operation in flight.
static struct idle_decision
say(struct world *world, bool progress, bool outstanding, uint64_t due_ns) {
	return say_counted(
		world, outstanding, due_ns, progress && outstanding, progress && !outstanding
	);
}

// Follow the decision of the policy. An operation that ends at end_ns ends an armed wait.
static void obey(struct world *world, const struct idle_decision *decision, uint64_t end_ns) {
	uint64_t wake_ns = decision->until_ns;

	if (decision->action == IDLE_POLL || decision->action == IDLE_YIELD) {
		world->now_ns += STEP_NS;
		world->paid_ns += STEP_NS;
		return;
	}
	if (decision->action == IDLE_WAIT && world->events && end_ns < wake_ns)
		wake_ns = end_ns;
	if (wake_ns > world->now_ns)
		world->now_ns = wake_ns;
	world->now_ns += C_NS;
	world->paid_ns += C_NS;
	world->blocks++;
}

// Run one operation from its post until its completion is seen.
static void operate(struct world *world, uint64_t length_ns) {
	struct idle_decision decision = say(world, true, true, IDLE_NEVER);
	uint64_t end_ns = world->now_ns + length_ns;

	obey(world, &decision, end_ns);
	while (world->now_ns < end_ns) {
		decision = say(world, false, true, IDLE_NEVER);
		obey(world, &decision, end_ns);
	}
	world->late_ns += world->now_ns - end_ns;
	world->optimum_ns += length_ns < C_NS ? length_ns : C_NS;
	say(world, true, false, IDLE_NEVER);
}

// An adversary returns the duration of the next operation and knows the whole state of the policy.
typedef uint64_t adversary(const struct world *world, uint32_t n);

static uint64_t just_past_the_budget(const struct world *world, uint32_t n) {
	(void)n;
	return idle_budget_ns(&world->idle) + C_NS / 32 + 2 * STEP_NS;
}

static uint64_t just_past_the_spinning(const struct world *world, uint32_t n) {
	(void)n;
	return idle_budget_ns(&world->idle) + 2 * STEP_NS;
}

// Let the policy save time and predict, then use the worst duration while it does.
static uint64_t trains_long_then_strikes(const struct world *world, uint32_t n) {
	return n % 64 < 48 ? 30 * C_NS : just_past_the_spinning(world, n);
}

static uint64_t trains_short_then_strikes(const struct world *world, uint32_t n) {
	return n % 80 < 40 ? C_NS / 8 : n % 80 < 60 ? 5 * C_NS : just_past_the_budget(world, n);
}

static uint64_t alternates(const struct world *world, uint32_t n) {
	(void)world;
	return n % 2 == 0 ? C_NS / 4 : C_NS + 5 * STEP_NS;
}

static uint64_t is_always_short(const struct world *world, uint32_t n) {
	(void)world;
	(void)n;
	return C_NS / 2;
}

static uint64_t is_always_long(const struct world *world, uint32_t n) {
	(void)world;
	(void)n;
	return 100 * C_NS;
}

static uint64_t is_any(const struct world *world, uint32_t n) {
	uint64_t draw = n * UINT64_C(0x9e3779b97f4a7c15) ^ world->now_ns;

	draw ^= draw >> 29;
	draw *= UINT64_C(0xbf58476d1ce4e5b9);
	return (draw >> 40) % (4 * C_NS) + 1;
}

static uint64_t ends_at_once_when_it_would_block(const struct world *world, uint32_t n) {
	if (n % 100 < 60)
		return 3 * C_NS;
	return idle_budget_ns(&world->idle) < C_NS / 2 ? 3 * STEP_NS : C_NS + C_NS / 8;
}

static void adaptive_stays_within_the_ratio_on_every_trace(void **state) {
	static adversary *const adversaries[] = {
		just_past_the_budget,
		just_past_the_spinning,
		trains_long_then_strikes,
		trains_short_then_strikes,
		alternates,
		is_always_short,
		is_always_long,
		is_any,
		ends_at_once_when_it_would_block,
	};

	(void)state;
	for (size_t k = 0; k < sizeof(adversaries) / sizeof(adversaries[0]); k++) {
		struct world world = world_of(IDLE_ADAPTIVE, false);
		double ratio;

		for (uint32_t n = 0; n < TRACE_WAITS; n++)
			operate(&world, adversaries[k](&world, n));
		ratio = (double)world.paid_ns / (double)world.optimum_ns;
		print_message("# adversary %zu: ratio %.3f\n", k, ratio);
		assert_true(ratio <= 2.1);
	}
}

static void its_own_books_agree_with_what_was_paid(void **state) {
	struct world world = world_of(IDLE_ADAPTIVE, false);
	const struct idle_account *books = idle_account(&world.idle);

	(void)state;
	for (uint32_t n = 0; n < TRACE_WAITS; n++)
		operate(&world, is_any(&world, n) + 2 * STEP_NS); // a shorter time is not a wait
	assert_int_equal(books->waits, TRACE_WAITS);
	assert_int_equal(books->blocks, world.blocks);
	assert_int_equal(books->paid_ns, world.paid_ns);
	// A completion is seen at most one step late.
	assert_in_range(
		books->optimum_ns, world.optimum_ns, world.optimum_ns + TRACE_WAITS * STEP_NS
	);
}

static void time_that_others_had_the_processor_is_not_paid_for(void **state) {
	struct world world = world_of(IDLE_ADAPTIVE, false);
	const struct idle_account *books = idle_account(&world.idle);

	(void)state;
	// The thread is preempted during a poll, then during a yield.
	for (uint64_t polled_ns = 0; polled_ns <= C_NS; polled_ns += C_NS) {
		uint64_t paid_ns = books->paid_ns;

		say(&world, true, true, IDLE_NEVER);
		world.now_ns += polled_ns;
		assert_true(say(&world, false, true, IDLE_NEVER).action <= IDLE_YIELD);
		world.now_ns += 100 * C_NS;
		say(&world, true, false, IDLE_NEVER);
		assert_in_range(books->paid_ns - paid_ns, C_NS, C_NS + C_NS / 32);
	}
}

static void budget_begins_at_the_price_of_a_block(void **state) {
	struct world world = world_of(IDLE_ADAPTIVE, false);

	(void)state;
	assert_int_equal(idle_budget_ns(&world.idle), C_NS);
}

static void budget_shrinks_for_long_operations_only_by_what_short_ones_saved(void **state) {
	struct world world = world_of(IDLE_ADAPTIVE, false);

	(void)state;
	// Long operations cost twice the optimum, so nothing is saved and nothing may be risked.
	for (uint32_t n = 0; n < 100; n++)
		operate(&world, 50 * C_NS);
	assert_int_equal(idle_budget_ns(&world.idle), C_NS);
	for (uint32_t n = 0; n < 100; n++)
		operate(&world, C_NS / 2);
	for (uint32_t n = 0; n < 20; n++)
		operate(&world, 50 * C_NS);
	assert_int_equal(idle_budget_ns(&world.idle), 0);
	// The budget grows again when spinning pays off.
	for (uint32_t n = 0; n < 40; n++)
		operate(&world, C_NS / 2);
	assert_in_range(idle_budget_ns(&world.idle), C_NS / 2, C_NS);
}

static void operations_shorter_than_a_block_are_never_late(void **state) {
	struct world world = world_of(IDLE_ADAPTIVE, false);

	(void)state;
	for (uint32_t n = 0; n < 1000; n++)
		operate(&world, C_NS / 2 + n % 7 * STEP_NS);
	assert_int_equal(world.blocks, 0);
	assert_true(world.late_ns <= 1000 * STEP_NS);
}

static void progress_begins_a_new_wait_with_the_whole_budget(void **state) {
	struct world world = world_of(IDLE_ADAPTIVE, false);

	(void)state;
	say(&world, true, true, IDLE_NEVER);
	world.now_ns += C_NS - STEP_NS;
	assert_int_equal(say(&world, false, true, IDLE_NEVER).action, IDLE_POLL);
	assert_int_equal(say(&world, true, true, IDLE_NEVER).action, IDLE_POLL);
	world.now_ns += idle_budget_ns(&world.idle) - STEP_NS;
	assert_int_equal(say(&world, false, true, IDLE_NEVER).action, IDLE_POLL);
	world.now_ns += STEP_NS;
	assert_int_equal(say(&world, false, true, IDLE_NEVER).action, IDLE_YIELD);
}

static void nothing_outstanding_blocks_at_once_until_the_next_deadline(void **state) {
	static const enum idle_policy policies[] = {IDLE_ADAPTIVE, IDLE_EVENT, IDLE_WINDOW};

	(void)state;
	for (size_t n = 0; n < sizeof(policies) / sizeof(policies[0]); n++) {
		struct world world = world_of(policies[n], true);
		struct idle_decision decision;

		say(&world, true, false, IDLE_NEVER);
		decision = say(&world, false, false, 7777777);
		assert_int_equal(decision.action, IDLE_WAIT);
		assert_int_equal(decision.until_ns, 7777777);
		decision = say(&world, false, false, IDLE_NEVER);
		assert_int_equal(decision.action, IDLE_WAIT);
		assert_int_equal(decision.until_ns, IDLE_NEVER);
		assert_int_equal(idle_account(&world.idle)->waits, 0);
	}
}

static void yields_are_bounded_in_number_and_in_time(void **state) {
	(void)state;
	for (uint64_t step_ns = 1; step_ns < C_NS; step_ns *= 10) {
		struct world world = world_of(IDLE_ADAPTIVE, false);
		uint64_t start_ns;
		uint32_t yields = 0;

		say(&world, true, true, IDLE_NEVER);
		world.now_ns += C_NS;
		start_ns = world.now_ns;
		while (say(&world, false, true, IDLE_NEVER).action == IDLE_YIELD) {
			world.now_ns += step_ns;
			yields++;
		}
		assert_in_range(yields, 1, IDLE_YIELDS_MAX);
		assert_true(world.now_ns - start_ns <= C_NS / 32 + step_ns);
	}
}

static void look_less_and_less_often(enum idle_policy policy) {
	struct world world = world_of(policy, false);
	struct idle_decision decision;
	uint64_t expected_ns = C_NS;

	world.events = false;
	say(&world, true, true, IDLE_NEVER);
	world.now_ns += 2 * C_NS;
	while ((decision = say(&world, false, true, IDLE_NEVER)).action == IDLE_YIELD)
		world.now_ns += STEP_NS;
	for (int n = 0; n < 20; n++) {
		assert_int_equal(decision.action, IDLE_WAIT);
		assert_int_equal(decision.until_ns - world.now_ns, expected_ns);
		world.now_ns = decision.until_ns;
		expected_ns *= 2;
		if (expected_ns > IDLE_SLEEP_MAX_NS)
			expected_ns = IDLE_SLEEP_MAX_NS;
		decision = say(&world, false, true, IDLE_NEVER);
	}
	// A sleep never exceeds the deadline.
	decision = say(&world, false, true, world.now_ns + 5);
	assert_int_equal(decision.until_ns, world.now_ns + 5);
}

static void device_without_events_is_looked_at_less_and_less_often(void **state) {
	(void)state;
	look_less_and_less_often(IDLE_ADAPTIVE);
	look_less_and_less_often(IDLE_EVENT);
}

static void narrow_times_are_slept_through_and_met_spinning(void **state) {
	static const struct {
		bool foresees;
		uint64_t spread_ns;
		bool met;
	} cases[] = {
		{true, 0, true},
		{true, C_NS / 2, true},
		{true, 20 * C_NS, false},
		{false, 0, false}};

	(void)state;
	for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
		struct world world = world_of(IDLE_ADAPTIVE, cases[k].foresees);
		uint64_t learnt_late_ns;

		for (uint32_t n = 0; n < 64; n++)
			operate(&world, 25 * C_NS + n % 5 * cases[k].spread_ns / 4);
		learnt_late_ns = world.late_ns;
		world.paid_ns = 0;
		for (uint32_t n = 0; n < 100; n++)
			operate(&world, 25 * C_NS + n % 5 * cases[k].spread_ns / 4);
		// While spinning, a completion is seen within one step; a wake sees it C later.
		// From time to time the policy tries to sleep longer.
		if (cases[k].met)
			assert_true(world.late_ns - learnt_late_ns <= 100 / 8 * C_NS);
		else
			assert_true(world.late_ns - learnt_late_ns > 50 * C_NS);
		assert_true(world.paid_ns <= 100 * 4 * C_NS);
	}
}

static void foreseen_operation_that_never_ends_is_waited_for_blocked(void **state) {
	struct world world = world_of(IDLE_ADAPTIVE, true);
	struct idle_decision decision;
	uint64_t paid_ns;

	(void)state;
	for (uint32_t n = 0; n < 64; n++)
		operate(&world, 25 * C_NS);
	paid_ns = world.paid_ns;
	say(&world, true, true, IDLE_NEVER);
	do {
		decision = say(&world, false, true, IDLE_NEVER);
		if (decision.until_ns == IDLE_NEVER)
			break;
		obey(&world, &decision, IDLE_NEVER);
	} while (true);
	assert_int_equal(decision.action, IDLE_WAIT);
	assert_true(world.paid_ns - paid_ns <= 5 * C_NS);
}

// Return a world that has learnt from 40 operations of 25 C each.
static struct world world_that_foresees(void) {
	struct world world = world_of(IDLE_ADAPTIVE, true);

	for (uint32_t n = 0; n < 40; n++)
		operate(&world, 25 * C_NS);
	return world;
}

static void burst_is_met_at_the_usual_end_of_its_oldest(void **state) {
	struct world world = world_that_foresees();
	struct idle_decision decision;
	uint64_t usual_ns = world.now_ns + 25 * C_NS;

	(void)state;
	decision = say_counted(&world, true, IDLE_NEVER, 4, 0);
	// A doorbell in between must not change the prediction.
	for (int n = 0; n < 2; n++) {
		world.now_ns += 5 * C_NS;
		say_counted(&world, true, IDLE_NEVER, 1, 0);
		decision = say(&world, false, true, IDLE_NEVER);
		assert_int_equal(decision.action, IDLE_WAIT);
		assert_in_range(decision.until_ns, usual_ns - 4 * C_NS, usual_ns - C_NS / 2);
	}
	world.now_ns = decision.until_ns;
	for (uint32_t n = 0; n < 4; n++) {
		assert_int_equal(say(&world, false, true, IDLE_NEVER).action, IDLE_POLL);
		world.now_ns = usual_ns + n * STEP_NS;
		say_counted(&world, true, IDLE_NEVER, 0, 1);
	}
	// The operations begun at the doorbells are next.
	decision = say(&world, false, true, IDLE_NEVER);
	assert_int_equal(decision.action, IDLE_WAIT);
	assert_in_range(decision.until_ns, usual_ns + C_NS, usual_ns + 5 * C_NS);
}

static void sleeps_less_ahead_until_completions_are_met(void **state) {
	static const uint64_t wake_ns[] = {C_NS, 2 * C_NS, 5 * C_NS / 2};

	(void)state;
	for (size_t k = 0; k < sizeof(wake_ns) / sizeof(wake_ns[0]); k++) {
		struct world world = world_that_foresees();
		uint32_t met = 0;

		// A wake takes longer than the measured C.
		for (uint32_t n = 0; n < 200; n++) {
			uint64_t end_ns = world.now_ns + 25 * C_NS;
			struct idle_decision decision = {.action = IDLE_POLL};

			say(&world, true, true, IDLE_NEVER);
			while (world.now_ns < end_ns) {
				decision = say(&world, false, true, IDLE_NEVER);
				if (decision.action == IDLE_WAIT && decision.until_ns < end_ns)
					world.now_ns = decision.until_ns + wake_ns[k];
				else
					world.now_ns += STEP_NS;
			}
			met += decision.action == IDLE_POLL;
			say(&world, true, false, IDLE_NEVER);
			world.now_ns += 100 * C_NS;
		}
		assert_in_range(met, 160, 200);
	}
}

static void lead_that_leaves_nothing_to_sleep_shrinks_until_there_is_something(void **state) {
	struct world world = world_of(IDLE_ADAPTIVE, true);

	(void)state;
	for (uint32_t n = 0; n < 64; n++)
		operate(&world, 7 * C_NS / 2);
	world.idle.lead_ns = 3 * C_NS; // as if wakes had been slow for a while
	world.blocks = 0;
	for (uint32_t n = 0; n < 200; n++)
		operate(&world, 7 * C_NS / 2);
	assert_true(world.blocks > 50);
}

static bool sleeps_ahead(struct world *world) {
	struct idle_decision decision;

	say(world, true, true, IDLE_NEVER);
	decision = say(world, false, true, IDLE_NEVER);
	return decision.action == IDLE_WAIT && decision.until_ns != IDLE_NEVER;
}

static void what_is_foreseen_stays_so_up_to_twice_the_spread(void **state) {
	struct world regular = world_that_foresees();
	struct world fresh = world_of(IDLE_ADAPTIVE, true);

	(void)state;
	for (uint32_t n = 0; n < 64; n++) {
		uint64_t length_ns = 25 * C_NS + n % 2 * 4 * C_NS / 5;

		operate(&regular, length_ns);
		operate(&fresh, length_ns);
	}
	assert_true(sleeps_ahead(&regular));
	assert_false(sleeps_ahead(&fresh));
	for (uint32_t n = 0; n < 64; n++)
		operate(&regular, 25 * C_NS + n % 2 * 2 * C_NS);
	assert_false(sleeps_ahead(&regular));
}

static void short_and_regular_operations_are_polled_for_beyond_the_budget(void **state) {
	struct world world = world_of(IDLE_ADAPTIVE, true);
	uint64_t waits;

	(void)state;
	for (uint32_t n = 0; n < 64; n++)
		operate(&world, 3 * C_NS / 2);
	world.late_ns = world.blocks = 0;
	waits = idle_account(&world.idle)->waits;
	for (uint32_t n = 0; n < 100; n++)
		operate(&world, 3 * C_NS / 2);
	assert_int_equal(idle_account(&world.idle)->waits - waits, 100);
	assert_int_equal(world.blocks, 0);
	assert_true(world.late_ns <= 100 * STEP_NS);
}

static void more_operations_than_it_remembers_are_not_foreseen(void **state) {
	struct world world = world_that_foresees();
	struct idle_decision decision;

	(void)state;
	say_counted(&world, true, IDLE_NEVER, IDLE_STARTS_MAX, 0);
	decision = say(&world, false, true, IDLE_NEVER);
	assert_int_equal(decision.action, IDLE_WAIT);
	assert_int_not_equal(decision.until_ns, IDLE_NEVER);
	say_counted(&world, true, IDLE_NEVER, 1, 0);
	assert_true(say(&world, false, true, IDLE_NEVER).action <= IDLE_YIELD);
	// Prediction resumes when the operations beyond its capacity have ended.
	world.now_ns += 25 * C_NS;
	say_counted(&world, true, IDLE_NEVER, 0, IDLE_STARTS_MAX);
	say_counted(&world, true, IDLE_NEVER, 1, 0);
	assert_true(say(&world, false, true, IDLE_NEVER).action <= IDLE_YIELD);
	say_counted(&world, true, IDLE_NEVER, 0, 2);
	say_counted(&world, true, IDLE_NEVER, 1, 0);
	assert_int_equal(say(&world, false, true, IDLE_NEVER).action, IDLE_WAIT);
}

static void window_begins_with_the_first_empty_poll_after_progress(void **state) {
	struct world world = world_of(IDLE_WINDOW, false);

	(void)state;
	for (int round = 0; round < 3; round++) {
		say(&world, true, true, IDLE_NEVER);
		world.now_ns += 10 * C_NS; // a long step does not count for the window
		assert_int_equal(say(&world, false, true, 0).action, IDLE_YIELD);
		world.now_ns += 3 * C_NS - STEP_NS;
		assert_int_equal(say(&world, false, true, 0).action, IDLE_YIELD);
		world.now_ns += STEP_NS;
		assert_int_equal(say(&world, false, true, 0).action, IDLE_SLEEP);
	}
}

static void window_yields_then_sleeps_in_doubling_steps(void **state) {
	static const uint64_t sleeps_ms[] = {1, 2, 4, 8, 10, 10};
	struct world world = world_of(IDLE_WINDOW, false);
	struct idle_decision decision;

	(void)state;
	for (int round = 0; round < 2; round++) {
		say(&world, true, true, IDLE_NEVER);
		assert_int_equal(say(&world, false, true, 0).action, IDLE_YIELD);
		world.now_ns += 3 * C_NS;
		for (size_t n = 0; n < sizeof(sleeps_ms) / sizeof(sleeps_ms[0]); n++) {
			decision = say(&world, false, true, 0);
			assert_int_equal(decision.action, IDLE_SLEEP);
			assert_int_equal(decision.until_ns - world.now_ns, sleeps_ms[n] * 1000000);
			world.now_ns = decision.until_ns;
		}
	}
}

static void window_without_end_only_yields_and_spin_only_polls(void **state) {
	struct world world = world_of(IDLE_SPIN, false);

	(void)state;
	for (int n = 0; n < 100; n++) {
		world.now_ns += 1000000000;
		assert_int_equal(say(&world, false, n % 2 == 0, 0).action, IDLE_POLL);
	}
	world = world_of(IDLE_WINDOW, false);
	world.idle.config.window_ns = IDLE_NEVER;
	for (int n = 0; n < 100; n++) {
		world.now_ns += 1000000000;
		assert_int_equal(say(&world, false, true, 0).action, IDLE_YIELD);
	}
}

static void policies_are_read_by_name(void **state) {
	enum idle_policy policy = IDLE_SPIN;

	(void)state;
	for (int n = 0; n < IDLE_POLICY_COUNT; n++) {
		assert_int_equal(
			idle_policy_parse(idle_policy_name((enum idle_policy)n), &policy), 0
		);
		assert_int_equal(policy, n);
	}
	policy = IDLE_EVENT;
	assert_int_equal(idle_policy_parse("", &policy), -EINVAL);
	assert_int_equal(idle_policy_parse("Spin", &policy), -EINVAL);
	assert_int_equal(policy, IDLE_EVENT);
}

static void what_is_due_soon_shares_the_wake(void **state) {
	(void)state;
	assert_true(idle_is_due_soon(99, 100));
	assert_true(idle_is_due_soon(100 + IDLE_BATCH_WINDOW_NS, 100));
	assert_false(idle_is_due_soon(101 + IDLE_BATCH_WINDOW_NS, 100));
	assert_false(idle_is_due_soon(IDLE_NEVER, 100));
}

UNIT_GROUP(idle) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(adaptive_stays_within_the_ratio_on_every_trace),
		cmocka_unit_test(its_own_books_agree_with_what_was_paid),
		cmocka_unit_test(time_that_others_had_the_processor_is_not_paid_for),
		cmocka_unit_test(budget_begins_at_the_price_of_a_block),
		cmocka_unit_test(budget_shrinks_for_long_operations_only_by_what_short_ones_saved),
		cmocka_unit_test(operations_shorter_than_a_block_are_never_late),
		cmocka_unit_test(progress_begins_a_new_wait_with_the_whole_budget),
		cmocka_unit_test(nothing_outstanding_blocks_at_once_until_the_next_deadline),
		cmocka_unit_test(yields_are_bounded_in_number_and_in_time),
		cmocka_unit_test(device_without_events_is_looked_at_less_and_less_often),
		cmocka_unit_test(narrow_times_are_slept_through_and_met_spinning),
		cmocka_unit_test(foreseen_operation_that_never_ends_is_waited_for_blocked),
		cmocka_unit_test(burst_is_met_at_the_usual_end_of_its_oldest),
		cmocka_unit_test(sleeps_less_ahead_until_completions_are_met),
		cmocka_unit_test(lead_that_leaves_nothing_to_sleep_shrinks_until_there_is_something
		),
		cmocka_unit_test(what_is_foreseen_stays_so_up_to_twice_the_spread),
		cmocka_unit_test(short_and_regular_operations_are_polled_for_beyond_the_budget),
		cmocka_unit_test(more_operations_than_it_remembers_are_not_foreseen),
		cmocka_unit_test(window_begins_with_the_first_empty_poll_after_progress),
		cmocka_unit_test(window_yields_then_sleeps_in_doubling_steps),
		cmocka_unit_test(window_without_end_only_yields_and_spin_only_polls),
		cmocka_unit_test(policies_are_read_by_name),
		cmocka_unit_test(what_is_due_soon_shares_the_wake),
	};

	return cmocka_run_group_tests_name("idle", tests, NULL, NULL);
}
