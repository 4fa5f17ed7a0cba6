// SPDX-License-Identifier: BSD-3-Clause
// A fabric that is destroyed during a keeper's call, as when a second signal ends the agent at
// once. The call returns later, on a thread that is left behind. That thread must free what it
// created, or what it failed to destroy must stay known. No freed object may be used.
#include "control/fabric/fabric_bed.h"

#include <support/leaks.h>

#include <errno.h>

#define CALLS_MAX 1000
#define TURNS 40

static void open_again(void) {
	bed_close();
	bed_open(2, 1);
	bed_link(0, 1, true);
	bed_start(1);
	bed_until(bed_is_ready(1, 1));
}

// End as with a second signal: a call hangs, and returns only afterwards.
static void end_at_once(void) {
	bed_destroy(0);
	bed_let_go();
	bed_wait_left_behind();
}

// Return true if a call hung; later calls of a life are then never made.
static bool live_until_a_call_hangs(void) {
	bed_start(0);
	bed_until(bed_hangs() || (bed_is_ready(0, 0) && bed_is_ready(0, 1)));
	if (bed_hangs())
		return true;
	bed_stop(0);
	bed_until(bed_hangs() || bed.agents[0].stopped);
	return bed_hangs();
}

static void every_call_of_a_keeper_may_be_the_last_and_nothing_is_lost(void **state) {
	uint32_t nth = 0;

	(void)state;
	do {
		open_again();
		bed_hang_nth(++nth);
		if (!live_until_a_call_hangs())
			break;
		end_at_once();
		if (leaks_are_there())
			fail_msg("call %u", nth);
	} while (nth < CALLS_MAX);
	// A life has at least 30 calls, and the last one ended without a hang.
	assert_in_range(nth, 30, CALLS_MAX - 1);
}

static void pairs_that_wait_to_be_destroyed_behind_a_call_that_hangs_stay_known(void **state) {
	(void)state;
	bed_start_both();
	bed_hang(FAKE_DESTROY_QP);
	bed_stop(0);
	bed_until(bed_hangs());
	bed_pass(100 * RAS_NS_PER_MS); // the other pair waits for the same keeper
	end_at_once();
	assert_false(leaks_are_there());
}

static void fabric_may_be_destroyed_at_any_moment_of_its_end_and_nothing_is_lost(void **state) {
	(void)state;
	for (uint32_t turns = 0; turns < TURNS; turns++) {
		open_again();
		bed_start(0);
		bed_until(bed_is_ready(0, 0) && bed_is_ready(0, 1));
		bed_stop(0);
		for (uint32_t n = 0; n < turns; n++)
			bed_turn();
		end_at_once();
		if (leaks_are_there())
			fail_msg("%u turns", turns);
	}
}

static void pair_that_is_made_behind_the_end_is_destroyed_by_its_keeper(void **state) {
	(void)state;
	bed_hang(FAKE_CREATE_QP);
	bed_start(0);
	bed_until(bed_hangs());
	end_at_once();
	assert_int_equal(fake_verbs_alive().qps, 0);
	assert_false(leaks_are_there());
}

static void device_that_is_opened_behind_the_end_is_closed_by_its_keeper(void **state) {
	(void)state;
	bed_hang(FAKE_CREATE_CQ);
	bed_start(0);
	bed_until(bed_hangs());
	end_at_once();
	assert_int_equal(fake_verbs_alive().contexts, 0);
	assert_false(leaks_are_there());
}

static void what_a_driver_does_not_take_back_behind_the_end_stays_known(void **state) {
	static const struct {
		enum fake_call made, destroyed;
	} cases[] = {
		{FAKE_CREATE_QP, FAKE_DESTROY_QP},
		{FAKE_MODIFY_QP, FAKE_DESTROY_QP},
		{FAKE_CREATE_CQ, FAKE_DESTROY_CQ},
		{FAKE_REG_MR, FAKE_DEREG_MR},
	};

	(void)state;
	for (size_t n = 0; n < sizeof(cases) / sizeof(cases[0]); n++) {
		open_again();
		bed_hang(cases[n].made);
		bed_start(0);
		bed_until(bed_hangs());
		fake_verbs_fail(cases[n].destroyed, 1, UINT32_MAX, -EBUSY);
		end_at_once();
		fake_verbs_fail_no_more();
		if (leaks_are_there())
			fail_msg("case %zu", n);
	}
}

UNIT_GROUP(fabric_left) {
	const struct CMUnitTest tests[] = {
		BED_TEST(every_call_of_a_keeper_may_be_the_last_and_nothing_is_lost),
		BED_TEST(pairs_that_wait_to_be_destroyed_behind_a_call_that_hangs_stay_known),
		BED_TEST(fabric_may_be_destroyed_at_any_moment_of_its_end_and_nothing_is_lost),
		BED_TEST(pair_that_is_made_behind_the_end_is_destroyed_by_its_keeper),
		BED_TEST(device_that_is_opened_behind_the_end_is_closed_by_its_keeper),
		BED_TEST(what_a_driver_does_not_take_back_behind_the_end_stays_known),
	};

	return cmocka_run_group_tests(tests, rcu_group_begin, rcu_group_end);
}
