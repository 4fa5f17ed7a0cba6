// SPDX-License-Identifier: BSD-3-Clause
#include "engine/engine_rule.h"

#include <support/cases.h>
#include <support/cmocka.h>

#define US UINT64_C(1000)

struct step {
	uint64_t after_ns; // time since the last step
	uint64_t poll_ns;  // age of the last poll of a caller; NEVER: no caller polled
	bool found, called;
};

#define NEVER UINT64_MAX

// Repeat one step `count` times.
static void
play(struct engine_rule *rule, uint64_t *now_ns, const struct step *step, uint32_t count) {
	struct engine_observation look = {.found = step->found, .called = step->called};

	for (uint32_t n = 0; n < count; n++) {
		*now_ns += step->after_ns;
		look.now_ns = *now_ns;
		if (step->poll_ns != NEVER)
			look.caller_turn_ns = *now_ns - step->poll_ns;
		engine_rule_update(rule, &look);
	}
}

static void engine_stands_back_only_where_callers_take_the_frames(void **state) {
	static const struct {
		const char *what;
		struct step step;
		bool back;
	} cases[] = {
		{"a caller spins, and is always first", {3 * US, 200, false, false}, true},
		{"it spins, and the engine preempts it", {10 * US, 2 * US, true, false}, true},
		{"it spins, and its clock is ahead", {10 * US, -UINT64_C(30), true, false}, true},
		{"two spin on one processor, and the other one runs",
		 {4000 * US, 3000 * US, true, false},
		 false},
		{"nobody polls", {3 * US, NEVER, true, false}, false},
		{"nobody polls, and the frame was none", {3 * US, NEVER, false, false}, false},
		{"nobody has polled for long, and the frame was none",
		 {30 * US, 40 * US, false, false},
		 false},
		{"one looks now and then", {1000 * US, 300 * US, true, false}, false},
		{"one spins on memory, after a poll for its own completion",
		 {40 * US, 18 * US, true, false},
		 false},
		{"callers arm and sleep", {20 * US, 2 * US, false, true}, false},
		{"timers fall due while one spins", {100 * US, 200, false, true}, false},
	};

	(void)state;
	for (size_t n = 0; n < COUNT_OF(cases); n++) {
		struct engine_rule rule = {.looked_ns = 995 * US};
		uint64_t now_ns = 1000 * US;

		play(&rule, &now_ns, &cases[n].step, 10 * ENGINE_VAIN_WAKES_MAX);
		if (rule.back != cases[n].back)
			fail_msg("%s: back %d", cases[n].what, rule.back);
	}
}

static void wakes_in_vain_count_in_a_row(void **state) {
	const struct step vain = {3 * US, 200, false, false};
	const struct step useful = {30 * US, 20 * US, true, false};
	struct engine_rule rule = {0};
	uint64_t now_ns = 1000 * US;

	(void)state;
	for (uint32_t n = 0; n < 5; n++) {
		play(&rule, &now_ns, &vain, ENGINE_VAIN_WAKES_MAX - 1);
		play(&rule, &now_ns, &useful, 1);
		assert_false(rule.back);
	}
	play(&rule, &now_ns, &vain, ENGINE_VAIN_WAKES_MAX - 1);
	assert_false(rule.back);
	play(&rule, &now_ns, &vain, 1);
	assert_true(rule.back);
}

// ib_write_lat does this: it waits for each answer in memory, and polls for each completion. If the
// engine did not return at the next tick, each answer would take one tick.
static void one_that_polls_between_its_waits_on_memory_keeps_the_engine(void **state) {
	const struct step completion = {20 * US, 200, false, false};
	const struct step answer = {20 * US, 19 * US, true, false};
	const struct step stalled = {1000 * US, 980 * US, false, false};
	struct engine_rule rule = {0};
	uint64_t now_ns = 1000 * US;

	(void)state;
	for (uint32_t n = 0; n < 10 * ENGINE_VAIN_WAKES_MAX; n++) {
		play(&rule, &now_ns, &completion, 1);
		play(&rule, &now_ns, &answer, 1);
		assert_false(rule.back);
	}
	rule.back = true;
	play(&rule, &now_ns, &stalled, 1);
	assert_false(rule.back);
}

static void ticks_end_it_when_callers_are_gone_or_call(void **state) {
	static const struct {
		const char *what;
		struct step step;
		bool back;
	} cases[] = {
		{"they spin", {1000 * US, 200, false, false}, true},
		{"they are busy with a large batch", {1000 * US, 50 * US, false, false}, true},
		{"they poll now and then", {1000 * US, 300 * US, false, false}, false},
		{"they are gone", {1000 * US, NEVER, false, false}, false},
		{"one arms, others spin", {10 * US, 200, false, true}, false},
	};

	(void)state;
	for (size_t n = 0; n < COUNT_OF(cases); n++) {
		struct engine_rule rule = {.back = true};
		uint64_t now_ns = 1000 * US;

		play(&rule, &now_ns, &cases[n].step, 1);
		if (rule.back != cases[n].back)
			fail_msg("%s: back %d", cases[n].what, rule.back);
		assert_int_equal(rule.vain, 0);
	}
}

// The second look of each pair follows at once, before the caller can poll.
static void a_wire_that_has_it_turn_twice_for_one_wake_makes_no_difference(void **state) {
	const struct step vain = {10 * US, 200, false, false};
	const struct step again = {1 * US, 1200, false, false};
	struct engine_rule rule = {0};
	uint64_t now_ns = 1000 * US;

	(void)state;
	for (uint32_t n = 0; n < ENGINE_VAIN_WAKES_MAX; n++) {
		assert_false(rule.back);
		play(&rule, &now_ns, &vain, 1);
		if (!rule.back)
			play(&rule, &now_ns, &again, 1);
	}
	assert_true(rule.back);
}

static void change_is_told_once(void **state) {
	struct engine_rule rule = {.vain = ENGINE_VAIN_WAKES_MAX - 1};
	struct engine_observation spins = {1003 * US, 1002 * US, false, false};
	struct engine_observation still = {1006 * US, 1005 * US, false, false};
	struct engine_observation gone = {2006 * US, 1005 * US, false, false};
	struct engine_observation again = {2009 * US, 2008 * US, false, false};

	(void)state;
	assert_true(engine_rule_update(&rule, &spins));
	assert_false(engine_rule_update(&rule, &still));
	assert_true(engine_rule_update(&rule, &gone));
	assert_false(engine_rule_update(&rule, &again));
}

UNIT_GROUP(soft_engine_rule) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(engine_stands_back_only_where_callers_take_the_frames),
		cmocka_unit_test(wakes_in_vain_count_in_a_row),
		cmocka_unit_test(one_that_polls_between_its_waits_on_memory_keeps_the_engine),
		cmocka_unit_test(ticks_end_it_when_callers_are_gone_or_call),
		cmocka_unit_test(a_wire_that_has_it_turn_twice_for_one_wake_makes_no_difference),
		cmocka_unit_test(change_is_told_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
