// SPDX-License-Identifier: BSD-3-Clause
#include "control/ras/ras_lone.h"
#include "control/ras/ras_world.h"

#include <support/cmocka.h>

#include <errno.h>

#define SEC RAS_NS_PER_SEC
#define MS RAS_NS_PER_MS

static uint64_t
event_age(const struct world *world, uint32_t node, enum ras_event_kind kind, uint64_t since_ns) {
	return world_event(world, node, kind)->at_ns - since_ns;
}

// A silent host is suspected after 3 s. It is dead 8.7 s after its last frame, by two observers.
static void silent_host_is_suspected_and_then_dead_by_the_profiles_times(void **state) {
	struct world *world = world_of(8);
	uint64_t since_ns = world->now_ns;
	const struct ras_event *dead;

	(void)state;
	world_off(world, 3);
	world_pass(world, 6 * SEC);
	assert_int_equal(world_state(world, 2, 3), RAS_SUSPECT);
	assert_int_equal(world_events_all(world, RAS_EVENT_DEAD), 0);
	assert_in_range(event_age(world, 2, RAS_EVENT_SUSPECT, since_ns), 2 * SEC, 3100 * MS);
	world_pass(world, 6 * SEC);
	dead = world_event(world, 2, RAS_EVENT_DEAD);
	assert_int_equal(dead->cause, RAS_CAUSE_SILENT);
	assert_int_equal(dead->observer_count, 2);
	assert_true(dead->observers[0] != dead->observers[1]);
	assert_in_range(dead->at_ns - since_ns, 7700 * MS, 9200 * MS);
	assert_true(world_agrees(world));
	world_destroy(world);
}

// Rows 14 and 19: all nodes see the same cause, order and view.
static void dead_process_is_declared_by_two_refused_looks_within_a_second(void **state) {
	struct world *world = world_of(8);
	uint64_t since_ns = world->now_ns;
	uint64_t digest;

	(void)state;
	world_kill(world, 3);
	world_pass(world, 2 * SEC);
	digest = world_view(world, 0).digest;
	for (uint32_t n = 0; n < 8; n++) {
		const struct ras_event *dead;

		if (n == 3)
			continue;
		dead = world_event(world, n, RAS_EVENT_DEAD);
		assert_int_equal(dead->cause, RAS_CAUSE_GONE);
		assert_in_range(dead->at_ns - since_ns, 300 * MS, SEC);
		assert_int_equal(world_view(world, n).dead, 1);
		assert_int_equal(world_view(world, n).digest, digest);
		assert_false(world_is_linked(world, n, 3));
	}
	world_destroy(world);
}

// Row 12: one observer is never enough, since a sick node's own firewall looks the same.
static void peer_refused_to_one_agent_alone_lives(void **state) {
	struct world *world = world_of(6);

	(void)state;
	world_way(world, 2, 3, WORLD_REFUSED);
	world_reset(world, 2, 3);
	world_pass(world, 30 * SEC);
	assert_int_equal(world_events_all(world, RAS_EVENT_DEAD), 0);
	assert_int_not_equal(world_state(world, 0, 3), RAS_DEAD);
	world_way(world, 2, 3, WORLD_OPEN);
	world_pass(world, 20 * SEC);
	assert_true(world_agrees(world));
	world_destroy(world);
}

// Row 12: the node's firewall REJECTs connections of all peers.
static void peer_that_refuses_every_connect_but_speaks_itself_lives(void **state) {
	struct world *world = world_of(6);

	(void)state;
	for (uint32_t n = 0; n < 6; n++)
		world_way(world, n, 3, WORLD_REFUSED);
	for (uint32_t n = 0; n < 6; n++)
		world_reset(world, n, 3);
	world_pass(world, 30 * SEC);
	assert_int_equal(world_events_all(world, RAS_EVENT_DEAD), 0);
	assert_true(world_agrees(world));
	world_destroy(world);
}

// Row 12.
static void refusal_of_a_peer_never_seen_alive_is_no_evidence(void **state) {
	struct lone *lone =
		lone_create(&(struct lone_setup){.count = 3, .self = 1, .joining = true});
	struct peer_news news = lone_told(lone, 2, RAS_ALIVE, ras_incarnation(1, 0));
	uint32_t conn;

	(void)state;
	lone_pass(lone, 100 * MS);
	conn = lone_answer(lone, 0);
	news.record = lone->records[2];
	lone_news(lone, conn, &news);
	lone_beat(lone, conn, 0, 0);
	lone_pass_refusing(lone, 2 * SEC, 2);
	assert_int_equal(lone_find_link(lone, 2)->refused_ns, RAS_NEVER);
	assert_int_equal(lone_peer(lone, 2).state, RAS_ALIVE);
	lone_destroy(lone);
}

static void one_way_loss_kills_nobody_while_another_hears_the_peer(void **state) {
	struct world *world = world_of(8);

	(void)state;
	world_way(world, 3, 2, WORLD_STALLED); // node 2 receives nothing from node 3
	world_pass(world, 60 * SEC);
	assert_int_equal(world_events_all(world, RAS_EVENT_DEAD), 0);
	world_way(world, 3, 2, WORLD_OPEN);
	world_pass(world, 20 * SEC);
	assert_true(world_agrees(world));
	world_destroy(world);
}

static void short_pause_is_suspected_refuted_and_forgotten(void **state) {
	struct world *world = world_of(6);

	(void)state;
	world_freeze(world, 3);
	world_pass(world, 5 * SEC);
	assert_int_equal(world_state(world, 2, 3), RAS_SUSPECT);
	world_resume(world, 3);
	world_pass(world, 2 * SEC);
	assert_true(world_agrees(world));
	assert_true(world_events(world, 2, RAS_EVENT_REFUTED) > 0);
	assert_int_equal(world_events(world, 3, RAS_EVENT_PAUSED), 1);
	// Node 3 does not judge by it.
	assert_int_equal(world_events(world, 3, RAS_EVENT_SUSPECT), 0);
	assert_int_equal(world_events_all(world, RAS_EVENT_DEAD), 0);
	world_destroy(world);
}

static void node_that_was_declared_dead_rejoins_and_declares_nobody_dead(void **state) {
	struct world *world = world_of(8);

	(void)state;
	world_freeze(world, 3);
	world_pass(world, 30 * SEC);
	for (uint32_t n = 0; n < 8; n++)
		assert_int_equal(n == 3 ? RAS_DEAD : world_state(world, n, 3), RAS_DEAD);
	world_mark(world);
	world_resume(world, 3);
	world_pass(world, 3 * SEC);
	assert_true(world_agrees(world));
	assert_int_equal(world_events_all(world, RAS_EVENT_DEAD), 0);
	assert_true(world_events(world, 3, RAS_EVENT_DECLARED_DEAD) > 0);
	assert_true(world_events(world, 2, RAS_EVENT_REJOINED) > 0);
	assert_int_equal(ras_counters(world->nodes[3].ras)->deaths_declared, 0);
	world_destroy(world);
}

// Row 13: no third node can look.
static void second_of_two_is_declared_dead_after_twice_the_time_and_marked_sole(void **state) {
	struct world *world = world_of(2);
	uint64_t since_ns = world->now_ns;
	struct ras_peer peer;

	(void)state;
	world_off(world, 1);
	world_pass(world, 14 * SEC);
	assert_int_equal(world_state(world, 0, 1), RAS_SUSPECT);
	world_pass(world, 8 * SEC);
	assert_in_range(event_age(world, 0, RAS_EVENT_DEAD, since_ns), 16 * SEC, 19 * SEC);
	assert_int_equal(ras_peer_find(world->nodes[0].ras, world_id(world, 1), &peer), 0);
	assert_int_equal(peer.state, RAS_DEAD);
	assert_true(peer.sole);
	assert_int_equal(peer.observer_count, 1);
	assert_int_equal(peer.observers[0], world_id(world, 0));
	world_destroy(world);
}

static void third_of_three_needs_both_others(void **state) {
	struct world *world = world_of(3);
	struct ras_peer peer;

	(void)state;
	world_kill(world, 2);
	world_pass(world, 3 * SEC);
	assert_int_equal(ras_peer_find(world->nodes[0].ras, world_id(world, 2), &peer), 0);
	assert_int_equal(peer.state, RAS_DEAD);
	assert_int_equal(peer.observer_count, 2);
	assert_false(peer.sole);
	world_destroy(world);
}

// Regression: the round used the report of a member that had been forgotten meanwhile.
static void word_of_one_who_left_during_the_round_is_dropped(void **state) {
	struct lone *lone = lone_of(8, 1);
	struct suspicion *suspicion;
	uint32_t conn = lone_link(lone, 2);
	uint32_t asked;
	struct peer_news news = {0};

	(void)state;
	liveness_absence_reported(lone->ras, peers_find(&lone->ras->peers, lone_id(lone, 5)), 0);
	lone_pass_beating(lone, 100 * MS, conn);
	assert_int_equal(lone->ras->liveness.suspicion_count, 1);
	suspicion = &lone->ras->liveness.suspicions[0];
	asked = suspicion->asked[0];
	assert_int_equal(suspicion->asked_count, LIVENESS_ASKED_MAX);
	suspicion->observations[0] = OBSERVATION_SILENT;
	for (uint32_t peer = 0; peer < lone->count; peer++) {
		if (lone_id(lone, peer) == ras_entry(lone->ras, asked)->record->id)
			news = lone_told(lone, peer, RAS_LEFT, ras_incarnation(1, 0));
	}
	lone_news(lone, conn, &news);
	assert_int_equal(ras_forget(lone->ras, lone->now_ns, news.id), 0);
	suspicion = &lone->ras->liveness.suspicions[0];
	for (uint32_t n = 0; n < suspicion->asked_count; n++)
		assert_int_not_equal(suspicion->asked[n], asked);
	assert_int_equal(suspicion->asked_count, LIVENESS_ASKED_MAX - 1);
	lone_destroy(lone);
}

// Row 18: the reporter is never an observer; other members that hear the peer clear the
// suspicion.
static void report_raises_a_suspicion_that_the_peer_is_told_of_and_refutes(void **state) {
	struct world *world = world_of(6);
	struct ras_evidence evidence = {
		.source = RAS_SOURCE_REPORT,
		.observer = world_id(world, 0),
		.subject = world_id(world, 3),
	};

	(void)state;
	for (uint32_t n = 0; n < 10; n++) {
		assert_int_equal(ras_evidence(world->nodes[0].ras, world->now_ns, &evidence), 0);
		world_pass(world, SEC);
	}
	assert_true(world_events(world, 0, RAS_EVENT_SUSPECT) > 0);
	assert_int_equal(world_event(world, 0, RAS_EVENT_SUSPECT)->cause, RAS_CAUSE_REPORT);
	assert_in_range(
		ras_self_incarnation(world->nodes[3].ras), ras_incarnation(1, 1),
		ras_incarnation(1, UINT16_MAX)
	);
	assert_int_equal(world_events_all(world, RAS_EVENT_DEAD), 0);
	world_pass(world, 3 * SEC);
	assert_true(world_agrees(world));
	world_destroy(world);
}

static void evidence_of_strangers_ourselves_and_the_past_is_refused(void **state) {
	struct lone *lone = lone_of(4, 1);
	struct ras_evidence evidence = {.subject = 12345};

	(void)state;
	assert_int_equal(ras_evidence(lone->ras, lone->now_ns, &evidence), -ENOENT);
	evidence.subject = lone_id(lone, 1);
	assert_int_equal(ras_evidence(lone->ras, lone->now_ns, &evidence), -ENOENT);
	lone_link(lone, 2);
	lone_pass(lone, SEC);
	evidence.subject = lone_id(lone, 2);
	evidence.age_ns = 5 * SEC; // the peer has been heard since
	assert_int_equal(ras_evidence(lone->ras, lone->now_ns, &evidence), -ESTALE);
	assert_int_equal(lone_peer(lone, 2).state, RAS_ALIVE);
	lone_destroy(lone);
}

// Row 18.
static void proof_of_life_from_the_data_plane_clears_a_suspicion(void **state) {
	struct lone *lone = lone_of(4, 1);
	struct ras_evidence evidence = {
		.source = RAS_SOURCE_DATA_PLANE,
		.observer = lone_id(lone, 1),
		.subject = lone_id(lone, 2),
		.alive = true,
	};

	(void)state;
	lone_link(lone, 2);
	lone_pass(lone, 5 * SEC);
	assert_int_equal(lone_peer(lone, 2).state, RAS_SUSPECT);
	assert_int_equal(ras_evidence(lone->ras, lone->now_ns, &evidence), 0);
	assert_int_equal(lone_peer(lone, 2).state, RAS_ALIVE);
	lone_pass(lone, 3 * SEC); // excused for some time
	assert_int_equal(lone_peer(lone, 2).state, RAS_ALIVE);
	lone_destroy(lone);
}

// Row 17: an expired leg of a collective causes a look, but no suspicion. The peer's memory was
// read shortly after its last frame, and before the suspicion.
static void life_of_before_the_doubt_clears_no_suspicion(void **state) {
	struct world *world = world_of(8);
	struct ras_evidence evidence = {.source = RAS_SOURCE_DATA_PLANE, .alive = true};
	struct ras *ras = world->nodes[2].ras;

	(void)state;
	evidence.subject = ras_self_id(world->nodes[3].ras);
	evidence.observer = ras_self_id(ras);
	world_off(world, 3);
	while (world_state(world, 2, 3) != RAS_SUSPECT)
		world_pass(world, 100 * MS);
	evidence.age_ns = 2500 * MS;
	assert_int_equal(ras_evidence(ras, world->now_ns, &evidence), -ESTALE);
	assert_int_equal(world_state(world, 2, 3), RAS_SUSPECT);
	world_pass(world, SEC);
	evidence.age_ns = 10 * MS;
	assert_int_equal(ras_evidence(ras, world->now_ns, &evidence), 0);
	assert_int_equal(world_state(world, 2, 3), RAS_ALIVE);
	world_destroy(world);
}

static void weak_evidence_is_looked_into_and_suspects_nobody(void **state) {
	struct lone *lone = lone_of(4, 1);
	uint32_t conn = lone_link(lone, 2);
	const struct lone_frame *frame;

	(void)state;
	lone_mark(lone);
	liveness_weak_evidence(lone->ras, lone_find_link(lone, 2)->slot);
	frame = lone_latest(lone, conn, MESSAGE_BEAT);
	assert_int_equal(frame->bytes[frame->size - 1], MESSAGE_BEAT_PING);
	assert_int_equal(lone_peer(lone, 2).state, RAS_ALIVE);
	assert_int_equal(lone_events(lone, RAS_EVENT_SUSPECT), 0);
	lone_destroy(lone);
}

// Regression: the pauses were missing from the times that the states had lasted.
static void states_last_since_before_pauses_of_our_own(void **state) {
	struct lone *lone = lone_of(4, 1);
	uint32_t conn = lone_link(lone, 2);
	uint64_t since_ns = lone_peer(lone, 2).since_ns, own_ns = lone_peer(lone, 1).since_ns;

	(void)state;
	for (uint32_t n = 0; n < 20; n++) {
		lone_pass_beating(lone, 2 * SEC, conn);
		lone->now_ns += 10 * SEC;
		lone_pass(lone, 0);
		lone_beat(lone, conn, 2, RAS_USE_NEXT);
	}
	assert_int_equal(ras_counters(lone->ras)->own_pauses, 20);
	assert_int_equal(lone_peer(lone, 2).since_ns, since_ns);
	assert_int_equal(lone_peer(lone, 1).since_ns, own_ns);
	lone_destroy(lone);
}

static void time_in_which_we_were_stopped_is_nobodys_silence(void **state) {
	struct lone *lone = lone_of(4, 1);
	uint32_t conn = lone_link(lone, 2);

	(void)state;
	lone_pass_beating(lone, 2 * SEC, conn);
	lone->now_ns += 600 * SEC; // SIGSTOP, or a paused virtual machine
	lone_pass(lone, 0);
	assert_in_range(lone_event(lone, RAS_EVENT_PAUSED)->value, 598 * SEC, 600 * SEC);
	assert_int_equal(lone_events(lone, RAS_EVENT_SUSPECT), 0);
	assert_int_equal(ras_counters(lone->ras)->own_pauses, 1);
	lone_beat(lone, conn, 2, RAS_USE_NEXT);
	lone_pass_beating(lone, 2 * SEC, conn);
	assert_int_equal(lone_peer(lone, 2).state, RAS_ALIVE);
	lone_destroy(lone);
}

// The brake: if half of the view falls silent at once, the network has failed.
static void partition_is_held_as_unreachable_and_heals(void **state) {
	struct world *world = world_of(24);
	uint32_t unreachable = 0;

	(void)state;
	world_split(world, 12, WORLD_STALLED);
	world_pass(world, 30 * SEC);
	assert_int_equal(world_events_all(world, RAS_EVENT_DEAD), 0);
	assert_true(world_events_all(world, RAS_EVENT_BRAKE_ON) > 0);
	for (uint32_t n = 0; n < 24; n++)
		unreachable += world_view(world, n).unreachable;
	assert_true(unreachable > 0);
	world_split(world, 12, WORLD_OPEN);
	world_pass(world, 30 * SEC);
	assert_true(world_agrees(world));
	assert_true(world_events_all(world, RAS_EVENT_BRAKE_OFF) > 0);
	assert_true(world_events_all(world, RAS_EVENT_ALIVE) > 0);
	for (uint32_t n = 0; n < 24; n++)
		assert_false(world_view(world, n).brake);
	world_destroy(world);
}

// The larger side sees few silent members and declares them dead. The smaller side holds its
// verdict.
static void smaller_part_of_a_partition_is_declared_and_comes_back_when_it_heals(void **state) {
	struct world *world = world_of(24);

	(void)state;
	world_split(world, 6, WORLD_STALLED);
	world_pass(world, 40 * SEC);
	for (uint32_t n = 0; n < 24; n++)
		assert_int_equal(world_view(world, n).dead, n < 6 ? 0 : 6);
	world_split(world, 6, WORLD_OPEN);
	world_pass(world, 30 * SEC);
	assert_true(world_agrees(world));
	for (uint32_t n = 0; n < 6; n++)
		assert_int_equal(ras_counters(world->nodes[n].ras)->deaths_declared, 0);
	world_destroy(world);
}

static void tenth_of_the_view_lost_at_once_is_declared(void **state) {
	struct world *world = world_of(40);

	(void)state;
	for (uint32_t n = 0; n < 4; n++)
		world_off(world, 5 + 9 * n);
	world_pass(world, 20 * SEC);
	assert_true(world_agrees(world));
	assert_int_equal(world_view(world, 0).dead, 4);
	assert_int_equal(world_events_all(world, RAS_EVENT_BRAKE_ON), 0);
	world_destroy(world);
}

static void processes_that_are_gone_are_declared_as_long_as_a_host_may_hold_them(void **state) {
	struct world *world = world_of(24);

	(void)state;
	for (uint32_t n = 0; n < 8; n++)
		world_kill(world, 3 * n + 1);
	world_pass(world, 4 * SEC);
	assert_true(world_agrees(world));
	assert_int_equal(world_view(world, 0).dead, 8);
	world_destroy(world);
}

// Each half sees the same as with a firewall between the halves.
static void half_of_all_processes_gone_at_once_is_held_until_somebody_is_back(void **state) {
	struct world *world = world_of(24);

	(void)state;
	for (uint32_t n = 0; n < 12; n++)
		world_kill(world, 2 * n + 1);
	world_pass(world, 100 * SEC);
	assert_int_equal(world_events_all(world, RAS_EVENT_DEAD), 0);
	for (uint32_t n = 0; n < 12; n++)
		world_start(world, 2 * n + 1, 2, 2 * n + 1);
	world_pass(world, 30 * SEC);
	assert_true(world_agrees(world));
	world_destroy(world);
}

static void nccl_profile_waits_a_minute_and_asks_nobody(void **state) {
	struct world *world =
		world_create(&(struct world_setup){.count = 6, .profile = &ras_profile_nccl});
	uint64_t since_ns;

	(void)state;
	world_pass(world, 5 * SEC);
	since_ns = world->now_ns;
	world_off(world, 3);
	world_pass(world, 70 * SEC);
	assert_in_range(event_age(world, 2, RAS_EVENT_DEAD, since_ns), 58 * SEC, 62 * SEC);
	assert_int_equal(world_event(world, 2, RAS_EVENT_DEAD)->observer_count, 1);
	assert_true(world_agrees(world));
	world_destroy(world);
}

// The larger one of two hosts fails: only the nodes of the other host are left to look.
static void those_of_the_last_host_bear_witness_for_each_other(void **state) {
	struct world *world = world_create(&(struct world_setup){.count = 5, .pairs = true});

	(void)state;
	world_pass(world, 5 * SEC);
	world_off(world, 4); // the only node of its host
	world_pass(world, 14 * SEC);
	assert_int_equal(world_state(world, 0, 4), RAS_DEAD);
	world_kill(world, 2);
	world_pass(world, 3 * SEC);
	assert_int_equal(world_state(world, 0, 2), RAS_DEAD);
	world_off(world, 3);
	world_pass(world, 20 * SEC);
	assert_int_equal(world_state(world, 0, 3), RAS_DEAD);
	assert_int_equal(world_event(world, 0, RAS_EVENT_DEAD)->observer_count, 2);
	world_destroy(world);
}

// Regression: a node that had received nothing at all counted that silence against the next
// silent peer.
static void silence_of_all_before_anybody_is_heard_again_is_held_against_nobody(void **state) {
	struct lone *lone = lone_of(6, 1);
	uint32_t first = lone_link(lone, 2), second = lone_link(lone, 0);
	const struct suspicion *suspicion;

	(void)state;
	lone_beat(lone, first, 1, RAS_USE_NEXT);
	lone_beat(lone, second, 1, RAS_USE_PREV);
	lone_pass(lone, 6 * SEC);
	assert_int_equal(lone_peer(lone, 0).state, RAS_SUSPECT);
	lone_beat(lone, first, 2, RAS_USE_NEXT);
	for (uint32_t n = 0; n < lone->ras->liveness.suspicion_count; n++) {
		suspicion = &lone->ras->liveness.suspicions[n];
		assert_int_equal(suspicion->silent_ns, lone->ras->observed_ns);
	}
	assert_true(lone->ras->liveness.suspicion_count > 0);
	lone_destroy(lone);
}

UNIT_GROUP(ras_liveness) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(silence_of_all_before_anybody_is_heard_again_is_held_against_nobody
		),
		cmocka_unit_test(those_of_the_last_host_bear_witness_for_each_other),
		cmocka_unit_test(evidence_of_strangers_ourselves_and_the_past_is_refused),
		cmocka_unit_test(silent_host_is_suspected_and_then_dead_by_the_profiles_times),
		cmocka_unit_test(dead_process_is_declared_by_two_refused_looks_within_a_second),
		cmocka_unit_test(peer_refused_to_one_agent_alone_lives),
		cmocka_unit_test(peer_that_refuses_every_connect_but_speaks_itself_lives),
		cmocka_unit_test(refusal_of_a_peer_never_seen_alive_is_no_evidence),
		cmocka_unit_test(one_way_loss_kills_nobody_while_another_hears_the_peer),
		cmocka_unit_test(short_pause_is_suspected_refuted_and_forgotten),
		cmocka_unit_test(node_that_was_declared_dead_rejoins_and_declares_nobody_dead),
		cmocka_unit_test(second_of_two_is_declared_dead_after_twice_the_time_and_marked_sole
		),
		cmocka_unit_test(third_of_three_needs_both_others),
		cmocka_unit_test(word_of_one_who_left_during_the_round_is_dropped),
		cmocka_unit_test(report_raises_a_suspicion_that_the_peer_is_told_of_and_refutes),
		cmocka_unit_test(proof_of_life_from_the_data_plane_clears_a_suspicion),
		cmocka_unit_test(life_of_before_the_doubt_clears_no_suspicion),
		cmocka_unit_test(weak_evidence_is_looked_into_and_suspects_nobody),
		cmocka_unit_test(states_last_since_before_pauses_of_our_own),
		cmocka_unit_test(time_in_which_we_were_stopped_is_nobodys_silence),
		cmocka_unit_test(partition_is_held_as_unreachable_and_heals),
		cmocka_unit_test(
			smaller_part_of_a_partition_is_declared_and_comes_back_when_it_heals
		),
		cmocka_unit_test(tenth_of_the_view_lost_at_once_is_declared),
		cmocka_unit_test(
			processes_that_are_gone_are_declared_as_long_as_a_host_may_hold_them
		),
		cmocka_unit_test(half_of_all_processes_gone_at_once_is_held_until_somebody_is_back),
		cmocka_unit_test(nccl_profile_waits_a_minute_and_asks_nobody),
	};

	return cmocka_run_group_tests_name("ras_liveness", tests, NULL, NULL);
}
