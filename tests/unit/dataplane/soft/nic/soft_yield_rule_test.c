// SPDX-License-Identifier: BSD-3-Clause
// Tests of when an empty poll yields the processor.
#include "nic/yield_rule.h"

#include <support/cmocka.h>

#define START UINT64_C(1000000)

static void a_poll_in_vain_yields_after_a_while_and_not_before(void **state) {
	struct yield_rule rule = {0};

	(void)state;
	assert_false(yield_rule_should_yield(&rule, START));
	assert_false(yield_rule_should_yield(&rule, START + YIELD_AFTER_NS - 1));
	yield_rule_note_found(&rule, START + YIELD_AFTER_NS);
	assert_false(yield_rule_should_yield(&rule, START + YIELD_AFTER_NS));
	assert_true(yield_rule_should_yield(&rule, START + 2 * YIELD_AFTER_NS));
}

// Return the time between two yields after `count` yields that took `took_ns` each. `last_finds`:
// the last yield was followed by a find.
static uint64_t distance_after(uint32_t count, uint64_t took_ns, bool last_finds) {
	struct yield_rule rule = {0};
	uint64_t now_ns = START, from_ns;

	for (uint32_t n = 0; n < count; n++) {
		while (!yield_rule_should_yield(&rule, now_ns))
			now_ns += 100;
		yield_rule_note_yield(
			&rule, now_ns, now_ns + took_ns, last_finds && n + 1 == count
		);
		now_ns += took_ns;
	}
	from_ns = now_ns;
	while (!yield_rule_should_yield(&rule, now_ns))
		now_ns += 100;
	return now_ns - from_ns;
}

static void yields_that_nobody_took_stay_as_frequent(void **state) {
	(void)state;
	assert_int_equal(distance_after(1, YIELD_NO_OTHER_NS, false), YIELD_AFTER_NS);
	assert_int_equal(distance_after(20, YIELD_NO_OTHER_NS, false), YIELD_AFTER_NS);
}

static void yields_to_others_than_the_peer_become_rare(void **state) {
	(void)state;
	assert_int_equal(distance_after(1, 4000000, false), 2 * YIELD_AFTER_NS);
	assert_int_equal(distance_after(5, 4000000, false), YIELD_AFTER_NS << 5);
	assert_int_equal(
		distance_after(YIELD_DOUBLINGS_MAX + 5, 4000000, false),
		YIELD_AFTER_NS << YIELD_DOUBLINGS_MAX
	);
}

static void one_that_brings_something_makes_them_frequent_again(void **state) {
	(void)state;
	assert_int_equal(distance_after(5, 4000000, true), YIELD_AFTER_NS);
}

// Regression: the answer needed two frames, so the poll right after the yield found nothing.
static void an_answer_soon_after_a_yield_is_what_it_brought(void **state) {
	static const struct {
		uint64_t after_ns;
		uint32_t vain;
	} rows[] = {{1000, 0}, {YIELD_ANSWER_NS - 1, 0}, {YIELD_ANSWER_NS, 1}};

	(void)state;
	for (size_t n = 0; n < sizeof(rows) / sizeof(rows[0]); n++) {
		struct yield_rule rule = {0};
		uint64_t back_ns = START + 4000000;

		yield_rule_note_yield(&rule, START, back_ns, false);
		assert_int_equal(rule.vain, 1);
		assert_false(yield_rule_should_yield(&rule, back_ns + rows[n].after_ns - 500));
		yield_rule_note_found(&rule, back_ns + rows[n].after_ns);
		assert_int_equal(rule.vain, rows[n].vain);
	}
}

// Regression: a program yielded in vain while its peer started, and then never yielded again. Each
// round trip took a time slice.
static void who_found_something_after_others_ran_yields_again(void **state) {
	struct yield_rule rule = {.vain = YIELD_DOUBLINGS_MAX};
	uint64_t now_ns = START;

	(void)state;
	for (uint32_t rounds = 0; rounds < 4; rounds++) {
		assert_false(yield_rule_should_yield(&rule, now_ns));
		// Found without a yield, which proves nothing.
		yield_rule_note_found(&rule, now_ns + 1000);
		assert_int_equal(rule.vain, YIELD_DOUBLINGS_MAX >> rounds);
		assert_false(yield_rule_should_yield(&rule, now_ns + 2000));
		now_ns += 4000000;
		yield_rule_note_found(&rule, now_ns);
	}
	assert_int_equal(rule.vain, 0);
	assert_false(yield_rule_should_yield(&rule, now_ns));
	assert_true(yield_rule_should_yield(&rule, now_ns + YIELD_AFTER_NS));
}

UNIT_GROUP(soft_yield_rule) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_poll_in_vain_yields_after_a_while_and_not_before),
		cmocka_unit_test(yields_that_nobody_took_stay_as_frequent),
		cmocka_unit_test(yields_to_others_than_the_peer_become_rare),
		cmocka_unit_test(one_that_brings_something_makes_them_frequent_again),
		cmocka_unit_test(an_answer_soon_after_a_yield_is_what_it_brought),
		cmocka_unit_test(who_found_something_after_others_ran_yields_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
