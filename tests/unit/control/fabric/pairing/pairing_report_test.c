// SPDX-License-Identifier: BSD-3-Clause
// Which state changes of pairs are reported for the log.
#include "control/fabric/pairing/pairing_net.h"

#include <support/cases.h>
#include <support/cmocka.h>

#include <string.h>

#define A 0
#define B 1

static struct pairing_key key; // from A to B
static const uint32_t *told;   // reports by A

static int two_nodes(void **state) {
	(void)state;
	net_create(2, 1, 1);
	key = net_key(0, B, 0);
	told = net.nodes[A].told;
	return 0;
}

static int fini(void **state) {
	(void)state;
	net_destroy();
	return 0;
}

// Reported at 0, 2, 6, 14, 30 s and so on, then every ten minutes.
static void a_pair_that_never_comes_up_is_told_after_pauses_that_grow(void **state) {
	uint64_t failures;

	(void)state;
	net.nodes[A].fail[NET_CONNECT] = -EIO;
	net_want(A, 0, B, 0);
	net_pass(60 * SECOND);
	assert_in_range(net_counters(A)->failed[PAIRING_DRIVER], 55, 61);
	assert_in_range(told[PAIRING_FAILED], 4, 5);
	net_pass(3540 * SECOND);
	assert_in_range(told[PAIRING_FAILED], 10, 14);
	// A report contains the number of failures since the last one.
	failures = net_counters(A)->failed[PAIRING_DRIVER];
	net_pass(601 * SECOND);
	failures = net_counters(A)->failed[PAIRING_DRIVER] - failures;
	assert_in_range(net.nodes[A].untold, failures - 20, failures);
	assert_int_equal(told[PAIRING_ABSENT], 0);
}

static void a_reason_that_was_not_told_is_told_at_once(void **state) {
	uint32_t before;

	(void)state;
	net.nodes[A].fail[NET_CONNECT] = -EIO;
	net_want(A, 0, B, 0);
	net_pass(3600 * SECOND);
	before = told[PAIRING_FAILED];
	net.cut[A][B] = true;
	net.cut[B][A] = true;
	net_pass(10 * SECOND);
	assert_int_equal(net_view(A, key).failure.reason, PAIRING_TIMED_OUT);
	assert_in_range(told[PAIRING_FAILED], before + 1, before + 2);
}

static void that_it_is_ready_is_told_after_a_failure_however_many_were_left_out(void **state) {
	(void)state;
	net.nodes[A].fail[NET_CONNECT] = -EIO;
	net_want(A, 0, B, 0);
	net_pass(60 * SECOND);
	assert_int_equal(told[PAIRING_READY], 0);
	net.nodes[A].fail[NET_CONNECT] = 0;
	net_settle();
	assert_int_equal(told[PAIRING_READY], 1);
	assert_true(net.nodes[A].untold > 0);
	assert_int_equal(net_view(A, key).untold, 0);
}

// As on nodes where the overlay works and RDMA does not.
static void a_pair_that_breaks_whenever_it_is_used_is_told_after_pauses_too(void **state) {
	(void)state;
	net_want(A, 0, B, 0);
	for (uint32_t n = 0; n < 60; n++) {
		net_settle();
		net_break(A, key);
	}
	net_settle();
	assert_true(net_counters(A)->failed[PAIRING_BROKEN] >= 60);
	assert_in_range(told[PAIRING_FAILED], 4, 6);
	assert_in_range(told[PAIRING_READY], 4, 7);
}

static void after_a_long_calm_failures_are_told_as_if_they_were_the_first(void **state) {
	uint32_t before;

	(void)state;
	net_want(A, 0, B, 0);
	for (uint32_t n = 0; n < 60; n++) {
		net_settle();
		net_break(A, key);
	}
	net_settle();
	net_pass(1300 * SECOND);
	before = told[PAIRING_FAILED];
	for (uint32_t n = 0; n < 4; n++) {
		net_break(A, key);
		net_settle();
		net_pass(SECOND);
	}
	assert_in_range(told[PAIRING_FAILED], before + 2, before + 4);
}

UNIT_GROUP(pairing_report) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, two_nodes, fini)
	const struct CMUnitTest tests[] = {
		TEST(a_pair_that_never_comes_up_is_told_after_pauses_that_grow),
		TEST(a_reason_that_was_not_told_is_told_at_once),
		TEST(that_it_is_ready_is_told_after_a_failure_however_many_were_left_out),
		TEST(a_pair_that_breaks_whenever_it_is_used_is_told_after_pauses_too),
		TEST(after_a_long_calm_failures_are_told_as_if_they_were_the_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
