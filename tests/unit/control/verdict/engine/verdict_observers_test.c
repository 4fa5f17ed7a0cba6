// SPDX-License-Identifier: BSD-3-Clause
// The index of each observer's reports: the cost of one judgement, and correctness however
// observations and members come and go.
#include "control/verdict/engine/verdict_bed.h"

#include <lib/splitmix.h>

#include <errno.h>

#define SUSPECT 1	       // cannot read its peers
#define PEERS 6		       // peers that it reads
#define FIRST_OTHER 20	       // first of the other nodes, each reported bad by two of them
#define OBSERVATIONS_MOST 2000 // limit of observations while the subjects grow

static uint64_t walked(const struct bed *bed) {
	struct verdict_counts counts;

	verdict_counts(bed->engine, &counts);
	return counts.walked;
}

// Let one agent fail to read all peers that others read. It is done twice, so that the agent is
// judged by its own reports.
static void accuse_all(struct bed *bed) {
	for (uint32_t turn = 0; turn < 2; turn++) {
		for (uint32_t peer = 2; peer < 2 + PEERS; peer++) {
			bed_see(bed, 10, peer, OBSERVATION_GOOD);
			bed_see(bed, SUSPECT, peer, OBSERVATION_SILENT);
		}
		bed_pass(bed, SEC);
	}
}

// Add many other nodes with evidence, like half of a cluster that fails.
static uint64_t walked_beside(uint32_t others) {
	struct bed *bed = bed_create(FIRST_OTHER + others);
	uint64_t before;

	for (uint32_t n = FIRST_OTHER; n < FIRST_OTHER + others; n++) {
		bed_see(bed, 12, n, OBSERVATION_STANDING);
		bed_see(bed, 13, n, OBSERVATION_GOOD);
	}
	before = walked(bed);
	accuse_all(bed);
	bed_expect(bed, SUSPECT, VERDICT_FABRIC_DOWN, "PeersUnread");
	before = walked(bed) - before;
	bed_destroy(bed);
	return before;
}

static void a_judgement_costs_what_its_node_told_however_many_others_there_are(void **state) {
	uint64_t few = walked_beside(10);

	(void)state;
	assert_true(few > 0 && few < OBSERVATIONS_MOST);
	assert_int_equal(walked_beside(100), few);
	assert_int_equal(walked_beside(1000), few);
}

// Each of many nodes reports some neighbours bad that others read. The cost of all judgements
// must grow linearly with the observations.
static uint64_t walked_in_a_fall_of(uint32_t count) {
	struct bed *bed = bed_create(count);
	uint64_t all;

	for (uint32_t observer = 1; observer < count; observer++) {
		for (uint32_t n = 1; n <= PEERS; n++)
			bed_see(bed, observer, (observer + n) % count,
				n % 2 == 0 ? OBSERVATION_GOOD : OBSERVATION_SILENT);
	}
	all = walked(bed);
	bed_destroy(bed);
	return all;
}

static void a_mass_that_falls_is_judged_in_proportion_to_what_is_told(void **state) {
	uint64_t few = walked_in_a_fall_of(64);
	uint64_t many = walked_in_a_fall_of(640);

	(void)state;
	assert_true(few > 0);
	assert_in_range(many, 1, 11 * few);
}

// It reads none of its peers, except perhaps one that it reported before it was known.
static void what_a_node_told_before_it_was_a_member_counts_once_it_is(void **state) {
	(void)state;
	for (uint32_t reads = 0; reads < 2; reads++) {
		struct bed *bed = bed_create(16);
		uint32_t stranger = 30;

		bed_see(bed, stranger, 8, reads == 0 ? OBSERVATION_SILENT : OBSERVATION_GOOD);
		bed_see(bed, 31, 8, OBSERVATION_GOOD); // never a member
		bed_state(bed, stranger, RAS_ALIVE, RAS_CAUSE_NONE);
		for (uint32_t turn = 0; turn < 3; turn++) {
			for (uint32_t peer = 2; peer < 5; peer++) {
				bed_see(bed, 10, peer, OBSERVATION_GOOD);
				bed_see(bed, stranger, peer, OBSERVATION_SILENT);
			}
			bed_pass(bed, SEC);
		}
		bed_expect(bed, stranger, reads == 0 ? VERDICT_FABRIC_DOWN : VERDICT_HEALTHY, NULL);
		bed_pass(bed, 400 * SEC);
		bed_expect(bed, stranger, VERDICT_HEALTHY, "None");
		bed_destroy(bed);
	}
}

static void who_becomes_a_member_without_memory_is_one_the_next_time(void **state) {
	(void)state;
	for (uint64_t fails_at = 1; fails_at < 12; fails_at++) {
		struct bed *bed = bed_create(16);
		uint32_t stranger = 30;
		struct verdict_view view;
		int err;

		for (uint32_t peer = 2; peer < 12; peer++)
			bed_see(bed, stranger, peer, OBSERVATION_SILENT);
		bed->heap.fails_at = bed->heap.asked + fails_at;
		err = bed_state(bed, stranger, RAS_ALIVE, RAS_CAUSE_NONE);
		bed->heap.fails_at = 0;
		assert_true(err == 0 || err == -ENOMEM);
		if (err != 0)
			assert_int_equal(
				verdict_view_get(bed->engine, bed_id(stranger), &view), -ENOENT
			);
		assert_int_equal(bed_state(bed, stranger, RAS_ALIVE, RAS_CAUSE_NONE), 0);
		verdict_peer_forget(bed->engine, bed->now_ns, bed_id(stranger));
		bed_pass(bed, 400 * SEC);
		bed_destroy(bed);
	}
}

static uint64_t draw(uint64_t *random, uint64_t below) {
	return splitmix_next(random) % below;
}

static enum observation_kind draw_kind(uint64_t *random) {
	return (enum observation_kind)draw(random, OBSERVATION_KIND_COUNT);
}

// Observations of members and strangers that join, die, restart and are forgotten. Each has many
// paths, so that some are evicted. Assertions in the lists and the sanitizers check them, and
// nothing leaks.
static void whatever_comes_and_goes_the_lists_are_those_of_the_observations(void **state) {
	static const enum ras_state states[] = {
		RAS_ALIVE, RAS_ALIVE, RAS_SUSPECT, RAS_DEAD, RAS_LEFT};
	struct bed *bed = bed_create(24);
	uint64_t random = 5;

	(void)state;
	for (uint32_t step = 0; step < 20000; step++) {
		uint32_t a = (uint32_t)draw(&random, 30);
		uint32_t b = (uint32_t)draw(&random, 30);
		struct observation observation = bed_observation(a, b, draw_kind(&random));

		observation.device[3] = (char)('0' + draw(&random, 6));
		bed->heap.fails_at = draw(&random, 50) == 0 ? bed->heap.asked + 1 : 0;
		if (a != b)
			(void)verdict_observation(bed->engine, bed->now_ns, &observation);
		if (draw(&random, 40) == 0)
			(void)bed_state(bed, a, states[draw(&random, 5)], RAS_CAUSE_SILENT);
		if (a != 0 && draw(&random, 400) == 0)
			verdict_peer_forget(bed->engine, bed->now_ns, bed_id(a));
		if (draw(&random, 20) == 0)
			bed_pass(bed, draw(&random, SEC));
	}
	bed->heap.fails_at = 0;
	for (uint32_t n = 1; n < 30; n++)
		verdict_peer_forget(bed->engine, bed->now_ns, bed_id(n));
	bed_pass(bed, 400 * SEC);
	bed_destroy(bed);
}

UNIT_GROUP(verdict_observers) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_judgement_costs_what_its_node_told_however_many_others_there_are
		),
		cmocka_unit_test(a_mass_that_falls_is_judged_in_proportion_to_what_is_told),
		cmocka_unit_test(what_a_node_told_before_it_was_a_member_counts_once_it_is),
		cmocka_unit_test(who_becomes_a_member_without_memory_is_one_the_next_time),
		cmocka_unit_test(whatever_comes_and_goes_the_lists_are_those_of_the_observations),
	};

	return cmocka_run_group_tests_name("verdict_told", tests, NULL, NULL);
}
