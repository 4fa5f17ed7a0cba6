// SPDX-License-Identifier: BSD-3-Clause
// Every allocation fails once: nothing leaks and no change is half applied. Evidence repeated
// afterwards is judged as without the failure.
#include "control/verdict/engine/verdict_bed.h"

#include <errno.h>
#include <stdio.h>

#define AGENTS 12

static bool fine(int err) {
	return err == 0 || err == -ENOMEM || err == -ENOENT || err == -ESTALE;
}

// Run everything that makes the engine allocate memory.
static void live(struct bed *bed) {
	char host[16];

	// Time since the last run's changes, which would be too many otherwise.
	bed_pass(bed, 60 * SEC);
	for (uint32_t n = 0; n < AGENTS; n++)
		assert_true(fine(bed_state(bed, n, RAS_ALIVE, RAS_CAUSE_NONE)));
	for (uint32_t n = 0; n < AGENTS; n++) {
		snprintf(host, sizeof(host), "shared%u", n / 2);
		assert_true(fine(bed_place(bed, n, host, n < 6 ? "leaf1" : "leaf2")));
	}
	for (uint32_t subject = 4; subject < 8; subject++) {
		for (uint32_t observer = 0; observer < 4; observer++)
			assert_true(fine(bed_see(bed, observer, subject, OBSERVATION_SILENT)));
	}
	assert_true(fine(bed_say(bed, 9, VERDICT_DEVICE_STUCK, "DeviceStuck")));
	assert_true(fine(bed_say(bed, 9, VERDICT_CHECK_WARNING, "Warm")));
	assert_true(fine(bed_state(bed, 10, RAS_DEAD, RAS_CAUSE_GONE)));
	bed_pass(bed, SEC);
	for (uint32_t subject = 4; subject < 8; subject++)
		assert_true(fine(bed_see(bed, 1, subject, OBSERVATION_GOOD)));
	verdict_peer_forget(bed->engine, bed->now_ns, bed_id(11));
	bed_pass(bed, 10 * SEC);
}

static void expect_all(struct bed *bed) {
	for (uint32_t subject = 4; subject < 8; subject++) {
		bed_see(bed, 1, subject, OBSERVATION_SILENT);
		bed_see(bed, 3, subject, OBSERVATION_SILENT);
	}
	bed_pass(bed, 10 * SEC);
	bed_expect(bed, 4, VERDICT_FABRIC_DOWN, "PulseUnread");
	bed_expect(bed, 9, VERDICT_DEVICE_STUCK, "DeviceStuck");
	bed_expect(bed, 10, VERDICT_AGENT_DOWN, "AgentGone");
}

static void any_one_allocation_may_fail(void **state) {
	struct verdict_config config = {.self = bed_id(0)};
	uint64_t failed_at = 0;
	bool failed = true;

	(void)state;
	while (failed) {
		struct bed *bed = bed_create_bare(&config);

		bed->heap.fails_at = bed->heap.asked + ++failed_at;
		live(bed);
		failed = bed->heap.asked >= bed->heap.fails_at;
		bed->heap.fails_at = 0;
		live(bed);
		expect_all(bed);
		bed_destroy(bed);
	}
	assert_true(failed_at > 40); // otherwise the engine did nothing
}

static void every_so_many_may_fail(void **state) {
	struct verdict_config config = {.self = bed_id(0)};

	(void)state;
	for (uint64_t every = 1; every < 20; every++) {
		struct bed *bed = bed_create_bare(&config);

		bed->heap.fails_every = every;
		live(bed);
		bed->heap.fails_every = 0;
		live(bed);
		expect_all(bed);
		bed_destroy(bed);
	}
}

static void a_peer_that_found_no_memory_is_no_peer(void **state) {
	struct verdict_config config = {.self = bed_id(0)};
	struct bed *bed = bed_create_bare(&config);
	struct verdict_view view;

	(void)state;
	for (uint64_t n = 1; n < 5; n++) {
		bed->heap.fails_at = bed->heap.asked + n;
		if (bed_state(bed, 3, RAS_DEAD, RAS_CAUSE_GONE) == 0)
			break;
		assert_int_equal(verdict_view_get(bed->engine, bed_id(3), &view), -ENOENT);
	}
	bed->heap.fails_at = 0;
	assert_int_equal(bed_state(bed, 3, RAS_DEAD, RAS_CAUSE_GONE), 0);
	bed_expect(bed, 3, VERDICT_AGENT_DOWN, "AgentGone");
	bed_destroy(bed);
}

static void healthy_peers_cost_a_row_each(void **state) {
	struct bed *bed = bed_create_bare(&(struct verdict_config){.self = 1});
	struct verdict_peer_update peer = {
		.state = RAS_ALIVE, .incarnation = 1u << 16, .host = "", .leaf = ""};

	(void)state;
	for (uint64_t id = 1; id <= 2048; id++) {
		peer.id = id * UINT64_C(0x9e3779b97f4a7c15);
		assert_int_equal(verdict_peer_update(bed->engine, bed->now_ns, &peer), 0);
	}
	assert_true(bed->heap.used_bytes < 2048 * 64);
	bed_destroy(bed);
}

static void evidence_that_is_over_gives_its_memory_back(void **state) {
	struct bed *bed = bed_create(AGENTS);
	size_t before;

	(void)state;
	bed_see(bed, 1, 5, OBSERVATION_SILENT); // the list of subjects has grown
	bed_see(bed, 1, 5, OBSERVATION_GOOD);
	bed_pass(bed, 60 * SEC);
	before = bed->heap.used_bytes;
	for (uint32_t n = 0; n < 100; n++) {
		bed_see(bed, n % 4, 5, OBSERVATION_GOOD);
		bed_pass(bed, SEC);
	}
	assert_true(bed->heap.used_bytes > before);
	bed_pass(bed, 60 * SEC);
	assert_int_equal(bed->heap.used_bytes, before);
	bed_see(bed, 1, 6, OBSERVATION_SILENT); // the list of observers grows as well
	assert_true(bed->heap.used_bytes > before);
	bed_see(bed, 1, 6, OBSERVATION_GOOD);
	bed_pass(bed, 60 * SEC);
	assert_int_equal(bed->heap.used_bytes, before);
	bed_destroy(bed);
}

UNIT_GROUP(verdict_memory) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_one_allocation_may_fail),
		cmocka_unit_test(every_so_many_may_fail),
		cmocka_unit_test(a_peer_that_found_no_memory_is_no_peer),
		cmocka_unit_test(healthy_peers_cost_a_row_each),
		cmocka_unit_test(evidence_that_is_over_gives_its_memory_back),
	};

	return cmocka_run_group_tests_name("verdict_memory", tests, NULL, NULL);
}
