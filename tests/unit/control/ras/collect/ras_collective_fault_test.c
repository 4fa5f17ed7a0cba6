// SPDX-License-Identifier: BSD-3-Clause
// Collectives with failing links, nodes or allocations. Forged messages:
// ras_collective_hostile_test.c.
#include <support/collective_frames.h>

struct topology {
	void (*connect)(struct net *net);
	uint32_t count;
};

static const struct topology topologies[] = {
	{net_ring, 3}, {net_ring, 6}, {net_chords, 6}, {net_tree, 7}, {net_chain, 5},
};

enum fault {
	FAULT_CUT,
	FAULT_DELAY_LOW, // the lower node considers the other one delayed
	FAULT_DELAY_HIGH,
	FAULT_COUNT,
};

// Inject the fault at this step. Returns false if the collective had ended before.
static bool
fault_at(const struct topology *topology, uint32_t link, enum fault fault, uint32_t step) {
	struct net *net = net_create(topology->count);
	uint32_t a = link / topology->count;
	uint32_t b = link % topology->count;
	bool reached = true;

	topology->connect(net);
	collect(net, 0);
	for (uint32_t n = 0; reached && n < step; n++)
		reached = net_step(net);
	if (fault == FAULT_CUT)
		net_cut(net, a, b);
	else if (fault == FAULT_DELAY_LOW)
		net_delay(net, a, b);
	else
		net_delay(net, b, a);
	net_run_out(net);
	assert_ended_well(net, 0);
	net_destroy(net);
	return reached;
}

static void a_link_cut_or_delayed_at_any_message_never_keeps_a_collective(void **state) {
	(void)state;
	for (size_t t = 0; t < COUNT_OF(topologies); t++) {
		const struct topology *topology = &topologies[t];
		struct net *net = net_create(topology->count);

		topology->connect(net);
		for (uint32_t link = 0; link < topology->count * topology->count; link++) {
			uint32_t a = link / topology->count;
			uint32_t b = link % topology->count;

			if (a >= b || net_link(net, a, b) == NULL)
				continue;
			for (uint32_t fault = 0; fault < FAULT_COUNT; fault++) {
				uint32_t step = 0;

				while (fault_at(topology, link, (enum fault)fault, step))
					step++;
				assert_true(step > 2);
			}
		}
		net_destroy(net);
	}
}

static void many_cuts_and_silent_nodes_in_random_order_never_keep_it_either(void **state) {
	(void)state;
	for (uint64_t seed = 1; seed <= 400; seed++) {
		struct net *net = net_create(12);
		uint64_t dice = seed * UINT64_C(0x9e3779b97f4a7c15);

		net->random = seed;
		net_chords(net);
		collect(net, 0);
		for (uint32_t n = 0; n < 12; n++) {
			uint32_t a = (uint32_t)(dice >> 7) % 12;
			uint32_t b = (uint32_t)(dice >> 20) % 12;

			dice = dice * UINT64_C(6364136223846793005) + 1442695040888963407;
			for (uint32_t step = 0; step < dice >> 60; step++)
				net_step(net);
			if (a != b && net_link(net, a, b) != NULL)
				net_cut(net, a, b);
			if (a > 0 && (dice >> 40) % 8 == 0)
				net->nodes[a].deaf = true;
		}
		net_run_out(net);
		assert_ended_well(net, 0);
		net_destroy(net);
	}
}

static void in_a_ring_one_lost_link_costs_nobody(void **state) {
	struct net *net = net_create(8);

	(void)state;
	net_ring(net);
	net_cut(net, 3, 4);
	collect(net, 0);
	net_run_out(net);
	assert_ended_well(net, 0);
	assert_int_equal(result_of(net, 0)->result.answered, 8);
	net_destroy(net);
}

static void an_inner_node_gives_up_before_the_root_and_names_the_silent_one(void **state) {
	struct net *net = net_create(4);
	const struct net_result *kept;

	(void)state;
	net_chain(net);
	net->nodes[2].deaf = true;
	collect(net, 0);
	net_run_out(net);
	assert_ended_well(net, 0);
	kept = result_of(net, 0);
	assert_true(kept->result.elapsed_ns < LEG_NS);
	assert_false(kept->result.by_deadline);
	assert_int_equal(kept->result.legs_timed_out, 1);
	assert_int_equal(reason_of(kept, 2), RAS_MISSING_TIMED_OUT);
	assert_int_equal(reason_of(kept, 3), RAS_MISSING_BEHIND);
	assert_int_equal(net->nodes[1].weak[2], 1);
	assert_int_equal(net->nodes[0].weak[1], 0);
	net_destroy(net);
}

static void a_root_waits_its_grace_and_then_answers_with_what_it_has(void **state) {
	struct net *net = net_create(3);
	const struct net_result *kept;

	(void)state;
	net_connect(net, 0, 1);
	net_connect(net, 0, 2);
	net->nodes[2].deaf = true;
	collect(net, 0);
	net_run(net);
	net_turn(net, LEG_NS + GRACE_NS - 1);
	assert_int_equal(net->nodes[0].result_count, 0);
	net_turn(net, 1);
	kept = result_of(net, 0);
	assert_true(kept->result.by_deadline);
	assert_int_equal(kept->result.answered, 2);
	assert_int_equal(kept->result.elapsed_ns, LEG_NS + GRACE_NS);
	assert_int_equal(reason_of(kept, 2), RAS_MISSING_TIMED_OUT);
	assert_int_equal(counters_of(net, 0)->by_deadline, 1);
	net_destroy(net);
}

static void a_leg_that_expired_while_we_were_stopped_is_no_evidence(void **state) {
	struct net *net = net_create(2);

	(void)state;
	net_ring(net);
	net->nodes[1].deaf = true;
	collect(net, 0);
	// The clock of observed time lags behind by the pause.
	net->nodes[0].ras->observed_ns -= GRACE_NS + 1;
	net_turn(net, LEG_NS + GRACE_NS);
	assert_int_equal(result_of(net, 0)->result.legs_timed_out, 1);
	assert_int_equal(net->nodes[0].weak[1], 0);
	net_destroy(net);
}

static void a_purged_leg_counts_once_and_its_late_answer_not_at_all(void **state) {
	struct net *net = net_create(3);
	const struct net_result *kept;
	struct bytes late;
	struct bytes last;
	uint64_t id;

	(void)state;
	net_connect(net, 0, 1);
	net_connect(net, 0, 2);
	net->nodes[1].deaf = net->nodes[2].deaf = true;
	id = collect(net, 0);
	net_run(net);
	net_delay(net, 0, 1);
	net_delay(net, 0, 1);
	late = answer_bytes(0, id, 1, 1, COLLECTED_FINAL);
	assert_int_equal(inject(net, 1, 0, &late), 0);
	net_cut(net, 0, 1);
	collective_peer_gone(net->nodes[0].ras, 1);
	assert_int_equal(net->nodes[0].result_count, 0);
	last = answer_bytes(0, id, 2, 1, COLLECTED_FINAL);
	assert_int_equal(inject(net, 2, 0, &last), 0);
	kept = result_of(net, 0);
	assert_int_equal(kept->result.legs_lost, 1);
	assert_int_equal(kept->result.answered, 2);
	assert_int_equal(reason_of(kept, 1), RAS_MISSING_LEG_LOST);
	assert_int_equal(counters_of(net, 0)->answers_late, 1);
	assert_int_equal(inject(net, 2, 0, &last), 0); // the collective has ended by now
	assert_int_equal(counters_of(net, 0)->answers_late, 2);
	net_destroy(net);
}

static void whoever_is_missing_is_named_with_the_reason_that_applies_first(void **state) {
	struct net *net = net_create(9);
	struct peer_entry *entries = net->nodes[0].ras->peers.entries;
	const struct net_result *kept;
	struct bytes answer;
	uint64_t id;

	(void)state;
	net_connect(net, 0, 1);
	net_connect(net, 0, 8);
	net->nodes[1].deaf = net->nodes[8].deaf = true;
	entries[2].state = RAS_DEAD;
	entries[3].state = RAS_SUSPECT;
	entries[4].state = RAS_UNREACHABLE;
	entries[5].state = RAS_LEFT;
	id = collect(net, 0);
	entries[6].state = RAS_LEFT;
	// The link ends after the first of two parts.
	answer = answer_bytes(0, id, 7, 1, 0);
	// Not the last part.
	answer.data[COLLECTED_HEADER_BYTES + COLLECT_ITEM_HEADER_BYTES + 28] = 0;
	assert_int_equal(inject(net, 8, 0, &answer), 0);
	net_run_out(net);
	kept = result_of(net, 0);
	// Without the dead member and the one that had left.
	assert_int_equal(kept->result.member_count, 7);
	assert_int_equal(kept->result.answered, 1);
	assert_int_equal(kept->result.missing_count, 7);
	assert_int_equal(reason_of(kept, 1), RAS_MISSING_TIMED_OUT);
	assert_int_equal(reason_of(kept, 2), RAS_MISSING_DEAD);
	assert_int_equal(reason_of(kept, 3), RAS_MISSING_SUSPECT);
	assert_int_equal(reason_of(kept, 4), RAS_MISSING_UNREACHABLE);
	assert_int_equal(reason_of(kept, 6), RAS_MISSING_LEFT);
	assert_int_equal(reason_of(kept, 7), RAS_MISSING_CUT_SHORT);
	assert_int_equal(reason_of(kept, 8), RAS_MISSING_TIMED_OUT);
	net_destroy(net);
}

static void who_no_link_leads_to_was_not_asked(void **state) {
	struct net *net = net_create(3);

	(void)state;
	net_connect(net, 0, 1);
	collect(net, 0);
	net_run_out(net);
	assert_int_equal(reason_of(result_of(net, 0), 2), RAS_MISSING_NOT_ASKED);
	net_destroy(net);
}

static void a_node_with_another_view_answers_but_does_not_agree(void **state) {
	struct net *net = net_create(3);

	(void)state;
	net_ring(net);
	net->nodes[2].ras->peers.digest++;
	collect(net, 0);
	net_run_out(net);
	assert_int_equal(result_of(net, 0)->result.answered, 3);
	assert_int_equal(result_of(net, 0)->result.agreeing, 2);
	assert_int_equal(
		result_of(net, 0)->result.view_number, net->nodes[0].ras->peers.view_number
	);
	net_destroy(net);
}

static void a_cancel_at_any_moment_frees_everything_and_brings_no_result(void **state) {
	bool reached = true;
	uint32_t step;

	(void)state;
	for (step = 0; reached; step++) {
		struct net *net = net_create(9);
		uint64_t id;

		net_chords(net);
		id = collect(net, 0);
		for (uint32_t n = 0; reached && n < step; n++)
			reached = net_step(net);
		if (net->nodes[0].result_count == 0) {
			assert_int_equal(ras_collect_cancel(net->nodes[0].ras, net->now_ns, id), 0);
			assert_int_equal(counters_of(net, 0)->cancelled, 1);
		}
		assert_int_equal(ras_collect_cancel(net->nodes[0].ras, net->now_ns, id), -ENOENT);
		net_run(net);
		assert_true(net_idle(net)); // at once, not at a deadline
		assert_int_equal(net->nodes[0].result_count + counters_of(net, 0)->cancelled, 1);
		net_destroy(net);
	}
	assert_true(step > 20);
}

static void whoever_was_asked_by_a_lost_link_forgets_it_with_all_below(void **state) {
	struct net *net = net_create(4);

	(void)state;
	net_chain(net);
	net->nodes[3].deaf = true;
	collect(net, 0);
	net_run(net);
	assert_int_equal(counters_of(net, 2)->running, 1);
	net_cut(net, 0, 1);
	net_run(net);
	assert_int_equal(counters_of(net, 1)->abandoned, 1);
	assert_int_equal(counters_of(net, 2)->abandoned, 1);
	assert_true(net_idle(net));
	assert_int_equal(result_of(net, 0)->result.legs_lost, 1);
	net_destroy(net);
}

static void without_memory_at_any_moment_it_ends_and_nothing_leaks(void **state) {
	(void)state;
	for (uint64_t fails_at = 1; fails_at < 60; fails_at++) {
		struct net *net = net_create(6);
		uint64_t id = 0;

		net_chords(net);
		for (uint32_t n = 0; n < net->count; n++)
			net->nodes[n].part_bytes = 2000;
		net->allocation_fails_at = net->allocations + fails_at;
		if (ras_collect(net->nodes[0].ras, net->now_ns, RAS_COLLECT_COMMS, 0, &id) == 0) {
			net_run_out(net);
			assert_int_equal(net->nodes[0].result_count, 1);
			assert_int_equal(
				result_of(net, 0)->result.answered +
					result_of(net, 0)->result.missing_count,
				6
			);
		}
		assert_true(net_idle(net));
		net_destroy(net);
	}
}

static void a_census_ends_in_time_without_those_behind_a_silent_one(void **state) {
	struct net *net = net_create(6);
	struct ras *root = net->nodes[0].ras;

	(void)state;
	net_chain(net);
	net->nodes[3].deaf = true;
	ras_enter(root, net->now_ns);
	collective_census_start(root, RAS_NS_PER_SEC, NULL, 0);
	ras_exit(root);
	net_run_out(net);
	assert_int_equal(root->liveness.census.word.reached, 3);
	assert_true(net_idle(net));
	net_destroy(net);
}

UNIT_GROUP(ras_collective_fault) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_link_cut_or_delayed_at_any_message_never_keeps_a_collective),
		cmocka_unit_test(many_cuts_and_silent_nodes_in_random_order_never_keep_it_either),
		cmocka_unit_test(in_a_ring_one_lost_link_costs_nobody),
		cmocka_unit_test(an_inner_node_gives_up_before_the_root_and_names_the_silent_one),
		cmocka_unit_test(a_root_waits_its_grace_and_then_answers_with_what_it_has),
		cmocka_unit_test(a_leg_that_expired_while_we_were_stopped_is_no_evidence),
		cmocka_unit_test(a_purged_leg_counts_once_and_its_late_answer_not_at_all),
		cmocka_unit_test(whoever_is_missing_is_named_with_the_reason_that_applies_first),
		cmocka_unit_test(who_no_link_leads_to_was_not_asked),
		cmocka_unit_test(a_node_with_another_view_answers_but_does_not_agree),
		cmocka_unit_test(a_cancel_at_any_moment_frees_everything_and_brings_no_result),
		cmocka_unit_test(whoever_was_asked_by_a_lost_link_forgets_it_with_all_below),
		cmocka_unit_test(without_memory_at_any_moment_it_ends_and_nothing_leaks),
		cmocka_unit_test(a_census_ends_in_time_without_those_behind_a_silent_one),
	};

	return cmocka_run_group_tests_name("ras_collective_fault", tests, NULL, NULL);
}
