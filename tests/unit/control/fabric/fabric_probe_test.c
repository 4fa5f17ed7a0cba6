// SPDX-License-Identifier: BSD-3-Clause
// Standing probes between whole fabrics, to neighbours and to visited peers, and while settings
// change.
#include "control/fabric/probe_bed.h"
#include "fabric/probing.h"

#include <ras/payload.h>

#include <errno.h>
#include <string.h>

static void neighbour_is_read_steadily_and_told_as_good(void **state) {
	struct fabric_path_view view;
	const struct observation *observation = &told[0].last[1];

	(void)state;
	bed_until(bed_seen(0, 1) == OBSERVATION_GOOD && bed_seen(1, 0) == OBSERVATION_GOOD);
	bed_until(observation->own_good);
	assert_int_equal(observation->observer, bed_id(0));
	assert_int_equal(observation->subject, bed_id(1));
	assert_int_equal(observation->incarnation, played.agents[1].incarnation);
	assert_int_equal(observation->responder, OBSERVATION_RESPONDER_KERNEL);
	assert_int_equal(observation->reach, VERDICT_REACH_UNKNOWN);
	assert_string_equal(observation->device, "rdma0");
	assert_string_equal(observation->peer_device, "rdma2");
	told[0].count[1] = 0;
	bed_pass(20 * SEC);
	assert_in_range(told[0].count[1], 19, 21); // one at each look
	assert_true(bed_find_path(0, 1, &view));
	assert_true(view.neighbour && view.watched && view.known);
	assert_in_range(view.summary.count, 15, 30);
	assert_int_equal(view.summary.lost, 0);
	assert_true(view.summary.median_ns >= 20 * US);
	assert_true(bed_find_path(0, 0, &view)); // the path to itself
	assert_int_equal(bed_probes(0).neighbours, 2);
	assert_true(bed_probes(0).sent[0] > bed_probes(0).sent[3] && bed_probes(0).sent[3] > 0);
	assert_int_equal(told[0].count[0], 0); // no observation of the agent itself
}

static uint64_t sum(const uint64_t *sizes) {
	uint64_t all = 0;

	for (uint32_t n = 0; n < PATH_SIZES; n++)
		all += sizes[n];
	return all;
}

static struct probed_path *probed_path_of(uint32_t agent, uint32_t peer) {
	struct probing *probing = bed.agents[agent].fabric->probing;

	for (uint32_t n = 0; n < probing->probed_paths_used; n++) {
		if (probing->probed_paths[n].stage == PROBED_PATH_WATCHED &&
		    probing->probed_paths[n].key.peer == bed_id(peer))
			return &probing->probed_paths[n];
	}
	return NULL;
}

static void neighbour_is_written_in_every_size_beside_the_reads(void **state) {
	struct fabric_path_view view;

	(void)state;
	bed_until(bed_seen(0, 1) == OBSERVATION_GOOD);
	bed_pass(200 * SEC);
	assert_true(bed_find_path(0, 1, &view));
	for (uint32_t n = 0; n < PATH_SIZES; n++) {
		assert_true(view.summary.write_sent[n] > 0);
		assert_int_equal(view.summary.write_lost[n], 0);
	}
	assert_in_range(sum(view.summary.size_sent), 190, 215); // as often as without
	assert_in_range(sum(view.summary.write_sent), 45, 55);
	assert_int_equal(sum(bed_probes(0).writes_lost), 0);
	assert_true(sum(bed_probes(0).written) >= sum(view.summary.write_sent));
	assert_int_equal(bed_seen(0, 1), OBSERVATION_GOOD);
	assert_int_equal(bed_probes(0).writes_refused, 0);
}

static void pair_that_is_made_anew_on_another_way_costs_no_evidence(void **state) {
	struct fabric_path_view view;
	uint32_t generation, label;

	(void)state;
	bed_until(bed_seen(0, 1) == OBSERVATION_GOOD);
	generation = bed_fabric_pair(0, 1)->generation;
	assert_true(bed_find_path(0, 1, &view));
	label = view.flow_label;
	for (uint32_t n = 0; n < 700; n++) {
		bed_pass(SEC);
		bed_until(bed_is_ready(0, 1) && bed_is_ready(1, 0)); // keepers run in real time
		assert_int_equal(bed_seen(0, 1), OBSERVATION_GOOD);
		assert_int_equal(bed_seen(1, 0), OBSERVATION_GOOD);
	}
	assert_int_not_equal(bed_fabric_pair(0, 1)->generation, generation);
	assert_true(bed_find_path(0, 1, &view));
	assert_int_not_equal(view.flow_label, label);
	assert_int_equal(view.summary.lost, 0);
	assert_in_range(sum(view.summary.size_sent), 690, 730);
	// Statistics of each label are kept apart.
	assert_int_equal(view.flow_count, 2);
	assert_true(view.flows[1].current && !view.flows[0].current);
	assert_int_equal(view.flows[1].label, view.flow_label);
	assert_int_equal(view.flows[0].label, label);
	assert_in_range(view.flows[0].probes, 500, 900);
	assert_in_range(view.flows[1].probes, 20, 250);
	assert_true(view.flows[0].median_ns > 0 && !view.flows[0].bad && !view.flows[1].bad);
}

// The peer offered memory that its device does not allow writes to.
static void peer_that_refuses_a_write_is_only_read_from_then_on(void **state) {
	struct fabric_path_view view;
	uint64_t written;

	(void)state;
	bed_until(bed_seen(0, 1) == OBSERVATION_GOOD && probed_path_of(0, 1) != NULL);
	probed_path_of(0, 1)->watch.write_key = bed_fabric_pair(0, 1)->theirs.pulse.key;
	bed_until(bed_probes(0).writes_refused == 1);
	bed_until(probed_path_of(0, 1) != NULL && bed_is_ready(0, 1));
	assert_true(bed_find_path(0, 1, &view));
	written = sum(view.summary.write_sent);
	bed_pass(60 * SEC);
	assert_int_equal(bed_seen(0, 1), OBSERVATION_GOOD);
	assert_true(bed_find_path(0, 1, &view));
	assert_int_equal(sum(view.summary.write_sent), written);
	assert_int_equal(bed_probes(0).writes_refused, 1);
}

static bool end_is_known(uint32_t agent, uint32_t peer) {
	struct fabric_pair_view view;

	return bed_find_pair(agent, peer, &view) && bed_fabric_pair(agent, peer) != NULL &&
	       bed_fabric_pair(agent, peer)->theirs.start != 0;
}

// Agents of an older version do not offer memory.
static void peer_that_gives_no_memory_up_is_only_read(void **state) {
	struct fabric_path_view view;
	struct probed_path *probed_path;

	(void)state;
	bed_until(end_is_known(0, 1));
	memset(&bed_fabric_pair(0, 1)->theirs.write_sink, 0, sizeof(struct pairing_write_sink));
	bed_until(bed_seen(0, 1) == OBSERVATION_GOOD);
	probed_path = probed_path_of(0, 1);
	assert_non_null(probed_path);
	assert_false(probed_path->watch.writes);
	bed_pass(30 * SEC);
	assert_true(bed_find_path(0, 1, &view));
	assert_int_equal(sum(view.summary.write_sent), 0);
	assert_in_range(view.summary.count, 25, 40);
}

static void switched_off_nobody_is_probed(void **state) {
	(void)state;
	memset(told, 0, sizeof(told));
	bed_start(0);
	bed_start(1);
	fabric_observations(bed.agents[0].fabric, bed_note_observation, NULL, &told[0]);
	bed_until(bed_is_ready(0, 1));
	bed_pass(5 * SEC);
	assert_int_equal(bed_probes(0).answered, 0);
	assert_int_equal(told[0].count[1], 0);
}

static void peer_that_died_is_probed_no_more_and_again_when_it_is_back(void **state) {
	struct fabric_path_view view;
	uint64_t sent;

	(void)state;
	bed_until(bed_seen(0, 1) == OBSERVATION_GOOD);
	bed_say(0, 1, RAS_DEAD);
	bed_settle();
	bed_pass(2 * SEC);
	assert_true(bed_find_path(0, 1, &view)); // its statistics are kept
	assert_false(view.watched);
	sent = view.summary.count;
	assert_int_equal(bed_probes(0).neighbours, 1); // itself
	bed_pass(5 * SEC);
	assert_true(bed_find_path(0, 1, &view));
	assert_int_equal(view.summary.count, sent);
	bed_say(0, 1, RAS_ALIVE);
	bed_until(bed_find_path(0, 1, &view) && view.watched && view.summary.count > sent + 3);
	assert_int_equal(view.summary.kind, OBSERVATION_GOOD);
	// A living peer that is no neighbour any more is forgotten.
	bed_link(0, 1, false);
	bed_until(!bed_find_path(0, 1, &view));
}

static void pulse_of_one_that_died_by_silence_is_read_while_it_can_be(void **state) {
	struct fabric_path_view view;
	uint64_t sent;

	(void)state;
	bed_until(bed_seen(0, 1) == OBSERVATION_GOOD);
	played.cause = RAS_CAUSE_SILENT;
	bed_link(0, 1, false); // the overlay drops links to dead members
	bed_say(0, 1, RAS_DEAD);
	bed_settle();
	bed_pass(2 * SEC);
	assert_true(bed_is_ready(0, 1));
	assert_true(bed_find_path(0, 1, &view));
	sent = view.summary.count;
	bed_pass(60 * SEC);
	assert_true(bed_find_path(0, 1, &view) && view.watched);
	assert_true(view.summary.count >= sent + 50);
	assert_int_equal(bed_seen(0, 1), OBSERVATION_GOOD);
	fake_qp_break(bed_qp(0, 1));
	bed_until(bed_find_path(0, 1, &view) && !view.watched);
	bed_pass(5 * SEC);
	assert_false(bed_is_ready(0, 1)); // no new pair is made
	assert_int_equal(bed_probes(0).neighbours, 1);
	bed_link(0, 1, true);
	bed_say(0, 1, RAS_ALIVE);
	bed_until(bed_is_ready(0, 1) && bed_seen(0, 1) == OBSERVATION_GOOD);
}

// Nothing else would notice that the peer has ended.
static void pair_of_one_that_died_by_silence_goes_when_it_is_read_or_known_no_more(void **state) {
	const struct fabric_probe_config off = {.on = false, BED_PROBES},
					 on = {.on = true, BED_PROBES};

	(void)state;
	played.cause = RAS_CAUSE_SILENT;
	for (uint32_t n = 0; n < 2; n++) {
		bed_until(bed_is_ready(0, 1) && bed_seen(0, 1) == OBSERVATION_GOOD);
		bed_say(0, 1, RAS_DEAD);
		bed_pass(20 * SEC);
		assert_true(bed_is_ready(0, 1));
		if (n == 0)
			assert_int_equal(fabric_configure_probes(bed.agents[0].fabric, &off), 0);
		else
			bed_say(0, 1, RAS_UNKNOWN);
		bed_until(!bed_is_ready(0, 1));
		bed_pass(20 * SEC);
		assert_false(bed_is_ready(0, 1));
		if (n == 0)
			assert_int_equal(fabric_configure_probes(bed.agents[0].fabric, &on), 0);
		bed_say(0, 1, RAS_ALIVE);
	}
	bed_until(bed_is_ready(0, 1) && bed_seen(0, 1) == OBSERVATION_GOOD);
}

static void pair_that_breaks_takes_its_probes_along_and_the_next_one_is_followed(void **state) {
	struct fabric_path_view view;

	(void)state;
	for (uint32_t n = 0; n < 5; n++) {
		bed_until(bed_find_path(0, 1, &view) && view.watched);
		bed_pass(700 * RAS_NS_PER_MS);
		fake_qp_break(bed_qp(0, 1));
		bed_pass(SEC);
		bed_until(bed_is_ready(0, 1));
	}
	bed_until(bed_find_path(0, 1, &view) && view.summary.kind == OBSERVATION_GOOD);
}

static void stops_with_probes_under_way(void **state) {
	(void)state;
	bed_until(bed_seen(0, 1) == OBSERVATION_GOOD);
	fake_qp_hold(bed_qp(0, 1));
	bed_pass(3 * SEC);
	bed_stop(0);
	bed_until(bed.agents[0].stopped);
}

// Regression: the statistics of the path's flows leaked, which an address sanitizer reports.
static void an_end_that_is_cut_short_frees_all_that_is_known_of_a_path(void **state) {
	(void)state;
	bed_until(bed_seen(0, 1) == OBSERVATION_GOOD);
	bed_stop(0);
	bed_destroy(0);
	bed_wait_left_behind();
}

static void one_who_is_no_neighbour_is_visited_in_turn(void **state) {
	struct fabric_path_view view;
	struct fabric_pair_view pair;

	(void)state;
	for (uint32_t n = 0; n < 3; n++) {
		bed.agents[n].config.probe.rotation = n == 0;
		bed_start_probing(n);
	}
	bed_until(bed_seen(0, 2) == OBSERVATION_GOOD);
	assert_true(bed_find_path(0, 2, &view));
	assert_false(view.neighbour);
	assert_int_equal(view.summary.lost, 0);
	assert_in_range(view.summary.count, 1, PROBE_VISIT_PROBES + 1);
	assert_true(bed_find_pair(0, 2, &pair));
	assert_false(pair.pairing.wanted);
	bed_until(bed_probes(0).targets == 1); // the neighbour is no target of visits any more
	assert_true(bed_probes(0).visits > 0);
	assert_false(bed_find_path(1, 2, &view)); // this agent does not rotate
	// Further visits use the same pair.
	bed_until(bed_probes(0).visits > 3 && bed_probes(0).rounds > 1);
	assert_true(bed_find_path(0, 2, &view));
	assert_true(view.summary.count > PROBE_VISIT_PROBES + 1);
	fake_device_cut(bed.agents[2].fakes[0], true);
	bed_until(bed_seen(0, 2) == OBSERVATION_SILENT);
	assert_true(told[0].last[2].own_good);
	fake_device_cut(bed.agents[2].fakes[0], false);
	bed_until(bed_seen(0, 2) == OBSERVATION_GOOD);
}

static void path_in_the_middle_of_a_visit_is_seen_as_at_the_end_of_the_last(void **state) {
	struct fabric_path_view view;
	uint64_t visits, since_ns;

	(void)state;
	for (uint32_t n = 0; n < 3; n++) {
		bed.agents[n].config.probe.rotation = n == 0;
		bed_start_probing(n);
	}
	bed_until(bed_find_path(0, 2, &view));
	assert_int_equal(view.summary.kind, OBSERVATION_GOOD); // not shown before a visit has ended
	since_ns = view.summary.since_ns;
	visits = bed_probes(0).visits;
	while (bed_probes(0).visits < visits + 4) {
		bed_pass(10 * RAS_NS_PER_MS);
		assert_true(bed_find_path(0, 2, &view));
		assert_int_equal(view.summary.kind, OBSERVATION_GOOD);
		assert_int_equal(view.summary.since_ns, since_ns);
	}
}

static void settings_are_changed_while_it_runs(void **state) {
	struct fabric_probe_config config = {.on = true, .rotation = true, BED_PROBES};
	struct fabric_path_view view;
	uint64_t answered;

	(void)state;
	for (uint32_t n = 0; n < 3; n++)
		bed_start_probing(n);
	bed_until(bed_seen(0, 1) == OBSERVATION_GOOD);
	assert_false(bed_find_path(0, 2, &view));
	config.interval_ns = SEC / 5;
	assert_int_equal(fabric_configure_probes(bed.agents[0].fabric, &config), 0);
	assert_int_equal(bed_probes(0).interval_ns, SEC / 5);
	bed_until(bed_find_path(0, 2, &view) && bed_seen(0, 2) == OBSERVATION_GOOD);
	answered = bed_probes(0).answered;
	bed_pass(5 * SEC);
	assert_true(bed_probes(0).answered > answered + 20);
	config.rotation = false;
	assert_int_equal(fabric_configure_probes(bed.agents[0].fabric, &config), 0);
	assert_false(bed_find_path(0, 2, &view));
	assert_int_equal(bed_probes(0).targets, 0);
	config.on = false;
	assert_int_equal(fabric_configure_probes(bed.agents[0].fabric, &config), 0);
	bed_pass(2 * SEC);
	answered = bed_probes(0).answered;
	bed_pass(5 * SEC);
	assert_int_equal(bed_probes(0).answered, answered);
	assert_int_equal(bed_probes(0).neighbours, 0);
	assert_int_equal(bed_probes(0).interval_ns, 0);
	assert_false(bed_find_path(0, 1, &view));
	config.on = true;
	assert_int_equal(fabric_configure_probes(bed.agents[0].fabric, &config), 0);
	bed_until(bed_probes(0).answered > answered + 3);
	assert_true(bed_find_path(0, 1, &view));
}

static void settings_change_back_and_forth_within_a_turn(void **state) {
	struct fabric_probe_config config = {BED_PROBES};
	struct fabric_path_view view;

	(void)state;
	bed_until(bed_seen(0, 1) == OBSERVATION_GOOD);
	for (uint32_t n = 0; n < 20; n++) {
		config.on = n % 2 == 1;
		assert_int_equal(fabric_configure_probes(bed.agents[0].fabric, &config), 0);
		if (n % 5 == 0)
			bed_pass(300 * RAS_NS_PER_MS);
	}
	bed_until(
		bed_find_path(0, 1, &view) && view.watched && view.summary.kind == OBSERVATION_GOOD
	);
	config.on = false;
	assert_int_equal(fabric_configure_probes(bed.agents[0].fabric, &config), 0);
	bed_stop(0);
	bed_until(bed.agents[0].stopped);
}

// The NIC answers over the pair of an earlier visit, which does not prove that the agent is
// alive.
static void visit_of_one_whose_pulse_stands_vouches_for_nobody(void **state) {
	uint64_t visits;

	(void)state;
	for (uint32_t n = 0; n < 3; n++) {
		bed.agents[n].config.probe.rotation = n == 0;
		bed_start_probing(n);
	}
	bed_until(bed_seen(0, 2) == OBSERVATION_GOOD);
	loop_timer_cancel(bed.loop, &bed.agents[2].fabric->beat);
	bed_pass(SEC);
	bed.agents[0].overlay->states[2] = RAS_SUSPECT;
	played.agents[0].proofs[2] = 0;
	visits = bed_probes(0).visits;
	bed_until(bed_probes(0).visits > visits + 3);
	assert_int_equal(bed_seen(0, 2), OBSERVATION_NO_PAIR);
	assert_int_equal(played.agents[0].proofs[2], 0);
	loop_timer_set(bed.loop, &bed.agents[2].fabric->beat, loop_now_ns(bed.loop));
	bed_until(bed_seen(0, 2) == OBSERVATION_GOOD);
}

static void visit_without_a_pair_says_nothing_of_the_path(void **state) {
	(void)state;
	bed.agents[0].config.probe.rotation = true;
	bed_start_probing(0);
	bed_start_probing(1);
	played.agents[2].deaf = true; // nothing answers the handshake
	bed_until(bed_probes(0).visits_unpaired > 1);
	assert_int_equal(told[0].count[2], 0);
}

static void visited_one_that_becomes_a_neighbour_is_probed_as_such(void **state) {
	struct fabric_path_view view;

	(void)state;
	for (uint32_t n = 0; n < 3; n++) {
		bed.agents[n].config.probe.rotation = true;
		bed_start_probing(n);
	}
	bed_until(bed_seen(0, 2) == OBSERVATION_GOOD);
	bed_link(0, 2, true);
	bed_until(
		bed_find_path(0, 2, &view) && view.neighbour &&
		view.summary.kind == OBSERVATION_GOOD
	);
	bed_link(0, 2, false);
	bed_until(bed_find_path(0, 2, &view) && !view.neighbour);
}

static void rows_of_the_collective_are_sound(void **state) {
	uint8_t bytes[RAS_COLLECT_PART_BYTES_MAX];
	struct ras_contribution wanted = {.kind = RAS_COLLECT_PATHS};
	const struct overlay *overlay = bed.agents[0].overlay;
	struct ras_path_row row;
	struct wire_writer writer;
	struct wire_reader reader;
	size_t size = 0;

	(void)state;
	bed_until(bed_seen(0, 1) == OBSERVATION_GOOD);
	bed_pass(20 * SEC);
	wire_writer_init(&writer, bytes, sizeof(bytes));
	assert_false(overlay->contribute_paths(overlay->contribute_paths_ctx, &wanted, &writer));
	assert_int_equal(wire_writer_finish(&writer, &size), 0);
	wire_reader_init(&reader, bytes, size);
	assert_int_equal(ras_path_get(&reader, &row), 0);
	assert_int_equal(row.peer, bed_id(1));
	assert_string_equal(row.device, "rdma0");
	assert_in_range(row.count, 15, 30);
	assert_true(row.median_ns > 0);
	assert_string_equal(row.peer_device, "rdma2");
	assert_int_equal(row.seen, OBSERVATION_GOOD);
	assert_true(row.steady);
	assert_in_range(row.for_s, 15, 30);
	assert_int_equal(ras_path_get(&reader, &row), -ENODATA); // no row for the agent itself
	wanted.part = 1;
	wire_writer_init(&writer, bytes, sizeof(bytes));
	assert_false(overlay->contribute_paths(overlay->contribute_paths_ctx, &wanted, &writer));
	assert_int_equal(wire_writer_finish(&writer, &size), 0);
	assert_int_equal(size, 0);
}

static void without_memory_there_is_no_fabric_or_one_that_probes(void **state) {
	(void)state;
	for (uint32_t nth = 1; nth < 12; nth++) {
		struct bed_agent *agent = &bed.agents[0];

		agent->config.probe.on = true;
		bed_fail_allocation(nth);
		if (fabric_create(bed.loop, agent->overlay, &agent->config, &agent->fabric) != 0) {
			assert_true(bed_allocation_failed());
			continue;
		}
		bed_until(bed_is_ready(0, 0));
		bed_fail_allocation(0);
		bed_until(bed_probes(0).answered > 0);
		bed_stop(0);
		bed_until(agent->stopped);
		agent->stopped = false;
		bed_destroy(0);
	}
}

// The control thread runs and reports the hang; the agent may be unable to work.
static void a_worker_of_a_peer_that_hangs_is_told_until_it_goes_on(void **state) {
	(void)state;
	bed_until(bed_seen(0, 1) == OBSERVATION_GOOD && bed_seen(1, 0) == OBSERVATION_GOOD);
	bed_pass(20 * SEC);
	// Without a hang, nothing is reported.
	assert_int_equal(told[0].hung[1] + told[0].cleared[1], 0);
	bed.agents[1].workers[0].hangs = true;
	bed_until(told[0].hung[1] == 1);
	assert_int_equal(told[0].hung[0], 0); // an agent is not notified of its own workers
	bed.agents[1].workers[0].hangs = false;
	bed_until(told[0].hung[1] == 0 && told[0].cleared[1] == 1);
	bed_pass(20 * SEC);
	assert_int_equal(told[0].cleared[1], 1);
	assert_int_equal(told[1].hung[0] + told[1].cleared[0], 0);
}

UNIT_GROUP(fabric_probe) {
	const struct CMUnitTest tests[] = {
		PAIR(neighbour_is_read_steadily_and_told_as_good),
		PAIR(a_worker_of_a_peer_that_hangs_is_told_until_it_goes_on),
		PAIR(neighbour_is_written_in_every_size_beside_the_reads),
		PAIR(pair_that_is_made_anew_on_another_way_costs_no_evidence),
		PAIR(peer_that_refuses_a_write_is_only_read_from_then_on),
		PAIR(peer_that_gives_no_memory_up_is_only_read),
		BED_TEST(switched_off_nobody_is_probed),
		PAIR(peer_that_died_is_probed_no_more_and_again_when_it_is_back),
		PAIR(pulse_of_one_that_died_by_silence_is_read_while_it_can_be),
		PAIR(pair_of_one_that_died_by_silence_goes_when_it_is_read_or_known_no_more),
		PAIR(pair_that_breaks_takes_its_probes_along_and_the_next_one_is_followed),
		PAIR(stops_with_probes_under_way),
		PAIR(an_end_that_is_cut_short_frees_all_that_is_known_of_a_path),
		THREE(one_who_is_no_neighbour_is_visited_in_turn),
		THREE(visit_of_one_whose_pulse_stands_vouches_for_nobody),
		THREE(visit_without_a_pair_says_nothing_of_the_path),
		THREE(visited_one_that_becomes_a_neighbour_is_probed_as_such),
		THREE(path_in_the_middle_of_a_visit_is_seen_as_at_the_end_of_the_last),
		THREE(settings_are_changed_while_it_runs),
		PAIR(settings_change_back_and_forth_within_a_turn),
		PAIR(rows_of_the_collective_are_sound),
		BED_TEST(without_memory_there_is_no_fabric_or_one_that_probes),
	};

	return cmocka_run_group_tests(tests, rcu_group_begin, rcu_group_end);
}
