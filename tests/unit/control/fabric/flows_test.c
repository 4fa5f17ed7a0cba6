// SPDX-License-Identifier: BSD-3-Clause
// Flow labels of a path: statistics of each label, and detection of the bad one.
#include "fabric/flows.h"

#include <support/cmocka.h>

#include <string.h>

#define US UINT64_C(1000)

static struct flows flows;
static struct fabric_flow seen[PAIRING_FLOWS];

static int begin(void **state) {
	(void)state;
	memset(&flows, 0, sizeof(flows));
	return 0;
}

static void
probe(uint32_t label, uint32_t count, uint32_t lost, uint32_t late, uint64_t latency_ns) {
	flows_set_label(&flows, label);
	for (uint32_t n = 0; n < count; n++)
		flows_record(&flows, n >= lost, n >= lost && n < lost + late, true, latency_ns);
}

// Return the bad label; 0: none; UINT32_MAX: several.
static uint32_t bad(void) {
	uint32_t count = flows_list(&flows, seen), found = 0;

	for (uint32_t n = 0; n < count; n++) {
		if (seen[n].bad)
			found = found == 0 ? seen[n].label : UINT32_MAX;
	}
	return found;
}

static void the_one_that_loses_is_named(void **state) {
	(void)state;
	probe(1, 300, 0, 0, 10 * US);
	probe(2, 300, 30, 0, 10 * US);
	probe(3, 300, 1, 0, 10 * US);
	probe(4, 300, 0, 1, 10 * US);
	assert_int_equal(bad(), 2);
	assert_int_equal(seen[1].lost, 30);
	assert_true(seen[3].current);
	begin(state);
	probe(1, 300, 0, 0, 10 * US);
	probe(2, 300, 0, 30, 10 * US); // its device retransmits what it loses
	assert_int_equal(bad(), 2);
}

static void the_one_that_is_slow_is_named(void **state) {
	(void)state;
	probe(1, 300, 0, 0, 10 * US);
	probe(2, 300, 0, 0, 11 * US);
	probe(3, 300, 0, 0, 30 * US);
	assert_int_equal(bad(), 3);
}

static void where_all_lose_or_little_was_seen_none_is(void **state) {
	(void)state;
	probe(1, 300, 30, 0, 10 * US);
	assert_int_equal(bad(), 0); // no other flow to compare with
	probe(2, 300, 25, 0, 10 * US);
	probe(3, 300, 35, 0, 10 * US);
	assert_int_equal(bad(), 0);
	begin(state);
	probe(1, 300, 0, 0, 10 * US);
	probe(2, 29, 20, 0, 90 * US);
	assert_int_equal(bad(), 0);
	begin(state);
	probe(1, 300, 0, 0, 10 * US);
	probe(2, 300, 2, 0, 10 * US);
	assert_int_equal(bad(), 0);
}

static void a_label_that_comes_again_goes_on_and_a_fifth_takes_the_least_probed_place(void **state
) {
	(void)state;
	for (uint32_t turn = 0; turn < 3; turn++) {
		for (uint32_t label = 1; label <= PAIRING_FLOWS; label++)
			probe(label, label == 3 ? 5 : 10, 0, 0, 10 * US);
	}
	assert_int_equal(flows_list(&flows, seen), PAIRING_FLOWS);
	assert_int_equal(seen[0].probes, 30);
	assert_int_equal(seen[2].probes, 15);
	probe(99, 1, 0, 0, 10 * US);
	assert_int_equal(flows_list(&flows, seen), PAIRING_FLOWS);
	assert_int_equal(seen[2].label, 99);
	assert_int_equal(seen[2].probes, 1);
}

static void before_a_label_is_used_nothing_is_noted(void **state) {
	(void)state;
	flows_record(&flows, true, false, true, 10 * US);
	assert_int_equal(flows_list(&flows, seen), 0);
}

UNIT_GROUP(flows) {
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup(name, begin)
		TEST(the_one_that_loses_is_named),
		TEST(the_one_that_is_slow_is_named),
		TEST(where_all_lose_or_little_was_seen_none_is),
		TEST(a_label_that_comes_again_goes_on_and_a_fifth_takes_the_least_probed_place),
		TEST(before_a_label_is_used_nothing_is_noted),
	};

	return cmocka_run_group_tests_name("flows", tests, NULL, NULL);
}
