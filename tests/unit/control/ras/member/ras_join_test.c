// SPDX-License-Identifier: BSD-3-Clause
#include "control/ras/ras_lone.h"
#include "control/ras/ras_world.h"

#include <support/cmocka.h>

#define SEC RAS_NS_PER_SEC
#define MS RAS_NS_PER_MS

static void agent_without_seeds_is_a_ring_of_one_at_once(void **state) {
	struct world *world = world_create(&(struct world_setup){.count = 1});

	(void)state;
	assert_true(world_view(world, 0).joined);
	assert_int_equal(world_view(world, 0).alive, 1);
	world_destroy(world);
}

static void all_seeds_at_once_make_one_ring_founded_by_the_lowest(void **state) {
	struct world *world = world_create(&(struct world_setup){.count = 3, .seeds = 3});

	(void)state;
	world_pass(world, 10 * SEC);
	assert_true(world_agrees(world));
	for (uint32_t n = 0; n < 3; n++)
		assert_int_equal(world_events(world, n, RAS_EVENT_JOIN_DONE), 1);
	assert_true(
		world_event(world, 0, RAS_EVENT_JOIN_DONE)->at_ns <
		world_event(world, 1, RAS_EVENT_JOIN_DONE)->at_ns
	);
	world_destroy(world);
}

static void next_seed_founds_where_the_lowest_does_not_run(void **state) {
	struct world *world =
		world_create(&(struct world_setup){.count = 4, .seeds = 3, .idle = true});

	(void)state;
	for (uint32_t n = 1; n < 4; n++)
		world_start(world, n, 0, n);
	world_pass(world, 10 * SEC);
	assert_true(world_agrees(world));
	world_start(world, 0, 0, 0); // joins when the seed starts
	world_pass(world, 10 * SEC);
	assert_true(world_agrees(world));
	world_destroy(world);
}

// Rows 9 and 30.
static void crowd_through_one_seed_is_one_ring_with_few_connections(void **state) {
	struct world *world = world_create(&(struct world_setup){.count = 40, .seeds = 1});
	uint64_t served = 0;

	(void)state;
	world_pass(world, 30 * SEC);
	assert_true(world_agrees(world));
	for (uint32_t n = 0; n < 40; n++) {
		served += ras_counters(world->nodes[n].ras)->joins_served;
		assert_in_range(world_open_conns(world, n), 2, links_degree_max(40));
	}
	assert_in_range(served, 39, 60);
	assert_int_equal(world_events_all(world, RAS_EVENT_SUSPECT), 0);
	world_destroy(world);
}

static void alone_without_an_answer_says_so_and_keeps_trying(void **state) {
	struct world *world =
		world_create(&(struct world_setup){.count = 3, .seeds = 2, .idle = true});

	(void)state;
	world_start(world, 2, 0, 2);
	world_pass(world, 30 * SEC);
	assert_false(world_view(world, 2).joined);
	assert_int_equal(world_event(world, 2, RAS_EVENT_JOIN_WAITING)->value, 2);
	world_start(world, 0, 0, 0);
	world_pass(world, 10 * SEC);
	assert_true(world_agrees(world));
	world_destroy(world);
}

// The redirect comes from a seed that already serves its maximum of joins.
static void busy_seed_points_to_other_members(void **state) {
	struct lone *lone = lone_of(6, 1);
	struct message_init init = lone_init(lone, 2, 0);
	struct message_init_ack ack;
	struct wire_reader reader;
	const struct lone_frame *frame;
	uint32_t conn = 0;

	(void)state;
	init.flags = MESSAGE_INIT_JOIN;
	lone->full = true; // no frame is sent, so no table is ever complete
	for (uint32_t n = 0; n < lone->profile.joins_max; n++)
		lone_send_init(lone, lone_accept(lone), &init);
	lone->full = false;
	conn = lone_accept(lone);
	lone_send_init(lone, conn, &init);
	frame = lone_latest(lone, conn, MESSAGE_INIT_ACK);
	wire_reader_init(&reader, frame->bytes + 1, frame->size - 1);
	assert_int_equal(message_init_ack_decode(&reader, &ack), 0);
	assert_int_equal(ack.refusal, RAS_CAUSE_BUSY);
	assert_in_range(ack.redirect_count, 1, MESSAGE_REDIRECTS_MAX);
	for (uint32_t n = 0; n < ack.redirect_count; n++) {
		struct sock_addr own = lone_address(1);

		assert_false(sock_addr_equal(&ack.redirects[n], &own));
	}
	assert_int_equal(ras_counters(lone->ras)->joins_redirected, 1);
	assert_true(lone_is_closed(lone, conn));
	lone_destroy(lone);
}

static void redirected_joiner_asks_whom_it_was_sent_to(void **state) {
	struct lone *lone =
		lone_create(&(struct lone_setup){.count = 3, .self = 1, .joining = true});
	struct message_init_ack ack = lone_ack(lone, 0);

	(void)state;
	lone_pass(lone, 10 * MS);
	ack.refusal = RAS_CAUSE_BUSY;
	ack.redirect_count = 1;
	ack.redirects[0] = lone_address(8);
	lone_send_ack(lone, lone_opening(lone, 0), &ack);
	lone_pass(lone, 10 * MS);
	assert_int_not_equal(lone_opening(lone, 8), 0);
	lone_destroy(lone);
}

static void start_number_is_one_past_the_largest_known(void **state) {
	struct world *world =
		world_create(&(struct world_setup){.count = 3, .seeds = 1, .idle = true});

	(void)state;
	world_start(world, 0, 7, 0);
	world_start(world, 1, 0, 1);
	world_pass(world, 10 * SEC);
	assert_int_equal(ras_self_incarnation(world->nodes[0].ras), ras_incarnation(7, 0));
	assert_int_equal(ras_self_incarnation(world->nodes[1].ras), ras_incarnation(1, 0));
	for (uint64_t start = 2; start < 5; start++) {
		world_kill(world, 1);
		world_pass(world, start == 3 ? 100 * MS : 15 * SEC); // dead by then, or not yet
		world_start(world, 1, 0, 1);
		world_pass(world, 15 * SEC);
		assert_true(world_agrees(world));
		assert_int_equal(
			ras_self_incarnation(world->nodes[1].ras), ras_incarnation(start, 0)
		);
	}
	world_destroy(world);
}

static void start_number_kept_by_the_joiner_is_used_if_it_is_newer(void **state) {
	struct world *world =
		world_create(&(struct world_setup){.count = 3, .seeds = 1, .idle = true});

	(void)state;
	world_start(world, 0, 0, 0);
	world_start(world, 1, 40, 1);
	world_pass(world, 10 * SEC);
	assert_int_equal(ras_self_incarnation(world->nodes[1].ras), ras_incarnation(40, 0));
	world_kill(world, 1);
	world_pass(world, 15 * SEC);
	world_start(world, 1, 12, 1); // its state directory was restored from a backup
	world_pass(world, 15 * SEC);
	assert_true(world_agrees(world));
	assert_int_equal(ras_self_incarnation(world->nodes[1].ras), ras_incarnation(41, 0));
	world_destroy(world);
}

// Create a world in which node 3 claims the name of node `holder` at its own address.
static struct world *
world_with_claim(const struct ras_profile *profile, uint32_t holder, bool frozen) {
	struct world_setup setup = {.count = 4, .seeds = 1, .idle = true, .profile = profile};
	struct world *world = world_create(&setup);

	for (uint32_t n = 0; n < 3; n++)
		world_start(world, n, 0, n);
	world_pass(world, 15 * SEC);
	world_mark(world);
	if (frozen)
		world_freeze(world, holder);
	world_start(world, 3, 0, holder);
	world_pass(world, 6 * SEC);
	return world;
}

static void second_holder_is_refused(const struct ras_profile *profile) {
	struct world *world = world_with_claim(profile, 1, false);
	struct sock_addr refused_by;
	struct ras_peer holder;

	assert_false(world_view(world, 3).joined);
	assert_int_equal(world_event(world, 3, RAS_EVENT_JOIN_REFUSED)->cause, RAS_CAUSE_CONFLICT);
	assert_int_equal(
		ras_peer_find(world->nodes[1].ras, ras_self_id(world->nodes[1].ras), &holder), 0
	);
	refused_by = world_view(world, 3).refused_by;
	assert_true(sock_addr_equal(&refused_by, &holder.record->address));
	// The source port of its connection is not a listening port.
	assert_int_equal(world_event(world, 0, RAS_EVENT_CONFLICT)->other.port, 0);
	assert_int_equal(world_state(world, 0, 1), RAS_ALIVE);
	assert_int_equal(world_state(world, 2, 1), RAS_ALIVE);
	world_destroy(world);
}

// Regression: with the profile that asks no other observer, the look ended at once, and the name
// was given away.
static void second_live_holder_of_a_name_is_refused(void **state) {
	(void)state;
	second_holder_is_refused(&ras_profile_fast);
	second_holder_is_refused(&ras_profile_nccl);
}

// Regression: the seed searched for a link to itself, and its process stopped.
static void newcomer_with_the_seeds_own_name_is_refused(void **state) {
	struct world *world = world_with_claim(NULL, 0, false);

	(void)state;
	assert_false(world_view(world, 3).joined);
	assert_int_equal(world_event(world, 3, RAS_EVENT_JOIN_REFUSED)->cause, RAS_CAUSE_CONFLICT);
	world_destroy(world);
}

static void newcomer_takes_the_name_of_a_holder_that_does_not_answer(void **state) {
	struct world *world = world_with_claim(NULL, 1, true);
	struct ras_peer peer;

	(void)state;
	assert_false(world_view(world, 3).joined); // the holder may only be slow
	world_pass(world, 10 * SEC);
	assert_true(world_view(world, 3).joined);
	assert_int_equal(ras_peer_find(world->nodes[0].ras, world_id(world, 1), &peer), 0);
	assert_int_equal(peer.record->address.address[3], 4);
	assert_int_equal(peer.incarnation, ras_incarnation(2, 0));
	world_destroy(world);
}

// Regression, seen on a busy machine: a living agent that did not answer for 1.5 s lost its name.
static void holder_that_is_slow_to_answer_keeps_its_name(void **state) {
	struct world *world = world_with_claim(NULL, 1, true);
	struct ras_peer holder;

	(void)state;
	world_resume(world, 1);
	world_pass(world, 10 * SEC);
	assert_false(world_view(world, 3).joined);
	assert_int_equal(world_event(world, 3, RAS_EVENT_JOIN_REFUSED)->cause, RAS_CAUSE_CONFLICT);
	assert_int_equal(world_events(world, 1, RAS_EVENT_JOIN_REFUSED), 0);
	assert_int_equal(ras_peer_find(world->nodes[0].ras, world_id(world, 1), &holder), 0);
	assert_int_equal(holder.state, RAS_ALIVE);
	assert_int_equal(holder.record->address.address[3], 2);
	world_destroy(world);
}

// No node will ever declare it dead.
static void newcomer_takes_the_name_of_an_unreachable_holder(void **state) {
	struct world_setup setup = {.count = 4, .seeds = 1, .idle = true};
	struct world *world = world_create(&setup);

	(void)state;
	for (uint32_t n = 0; n < 3; n++)
		world_start(world, n, 0, n);
	world_pass(world, 15 * SEC);
	world_freeze(world, 1);
	world_off(world, 2);
	world_pass(world, 60 * SEC);
	assert_int_equal(world_state(world, 0, 1), RAS_UNREACHABLE);
	world_start(world, 3, 0, 1);
	world_pass(world, 15 * SEC);
	assert_true(world_view(world, 3).joined);
	assert_int_equal(world_state(world, 0, 1), RAS_ALIVE);
	world_destroy(world);
}

static void conflict_is_answered_with_the_holders_address(void **state) {
	struct lone *lone = lone_of(4, 1);
	struct message_init init = lone_init(lone, 2, 0);
	struct ras_peer_info info = lone_info(lone, 2, 0);
	struct message_init_ack ack;
	struct ras_record *claimer;
	const struct lone_frame *frame;
	struct wire_reader reader;
	struct sock_addr held = lone_address(2);
	uint32_t link = lone_link(lone, 2);
	uint32_t conn;

	(void)state;
	info.addresses[0] = lone_address(9);
	assert_int_equal(ras_record_from_info(lone->interner, &info, &claimer), 0);
	init.flags = MESSAGE_INIT_JOIN;
	init.record = claimer->encoding;
	init.record_size = claimer->size;
	init.incarnation = 0;
	conn = lone_accept(lone);
	lone_send_init(lone, conn, &init);
	// The holder is looked at first.
	assert_int_equal(lone_sent(lone, conn, MESSAGE_INIT_ACK), 0);
	lone_beat(lone, link, 2, RAS_USE_NEXT);
	frame = lone_latest(lone, conn, MESSAGE_INIT_ACK);
	wire_reader_init(&reader, frame->bytes + 1, frame->size - 1);
	assert_int_equal(message_init_ack_decode(&reader, &ack), 0);
	assert_int_equal(ack.refusal, RAS_CAUSE_CONFLICT);
	assert_int_equal(ack.redirect_count, 1);
	assert_true(sock_addr_equal(&ack.redirects[0], &held));
	ras_record_put(lone->interner, claimer);
	lone_destroy(lone);
}

// Set the path between nodes of different parity, in both directions.
static void parity_way(struct world *world, enum world_way way) {
	for (uint32_t a = 0; a < world->count; a++) {
		for (uint32_t b = a + 1; b < world->count; b += 2) {
			world_way(world, a, b, way);
			world_way(world, b, a, way);
		}
	}
}

// Create two rings that cannot reach each other: 0, 2, 4 and 1, 3, 5. Node 5 has the name of node
// 4.
static void two_rings_with_one_name(uint64_t start_of_4, uint64_t start_of_5, uint32_t stays) {
	struct world *world =
		world_create(&(struct world_setup){.count = 6, .seeds = 2, .idle = true});
	uint32_t goes = stays == 4 ? 5 : 4;

	parity_way(world, WORLD_REFUSED);
	for (uint32_t n = 0; n < 4; n++)
		world_start(world, n, 0, n);
	world_start(world, 4, start_of_4, 4);
	world_start(world, 5, start_of_5, 4);
	world_pass(world, 15 * SEC);
	assert_int_equal(world_view(world, 4).alive, 3);
	assert_int_equal(world_view(world, 5).alive, 3);
	parity_way(world, WORLD_OPEN);
	world_pass(world, 30 * SEC);
	if (start_of_4 == start_of_5 && world_events(world, 4, RAS_EVENT_JOIN_REFUSED) > 0) {
		stays = 5;
		goes = 4;
	}
	assert_int_equal(world_events(world, stays, RAS_EVENT_JOIN_REFUSED), 0);
	assert_int_equal(world_events(world, goes, RAS_EVENT_JOIN_REFUSED), 1);
	assert_int_equal(
		world_event(world, goes, RAS_EVENT_JOIN_REFUSED)->cause, RAS_CAUSE_CONFLICT
	);
	ras_leave(world->nodes[goes].ras, world->now_ns); // as its agent would do
	world_pass(world, SEC);
	world_kill(world, goes);
	world_pass(world, 20 * SEC);
	for (uint32_t n = 0; n < 4; n++) {
		assert_int_equal(world_view(world, n).alive, 5);
		assert_int_equal(world_view(world, n).digest, world_view(world, stays).digest);
		assert_int_equal(world_events(world, n, RAS_EVENT_DEAD), 0);
		assert_int_equal(world_events(world, n, RAS_EVENT_LEFT), 0);
	}
	world_destroy(world);
}

static void of_two_holders_whose_rings_meet_the_higher_start_stays(void **state) {
	(void)state;
	two_rings_with_one_name(7, 3, 4);
	two_rings_with_one_name(3, 7, 5);
}

static void of_two_holders_with_equal_starts_exactly_one_stays(void **state) {
	(void)state;
	two_rings_with_one_name(0, 0, 4);
}

// News of a higher record at an address that does not answer.
static void hearsay_of_another_holder_makes_nobody_give_way(void **state) {
	struct lone *lone = lone_of(4, 1);
	struct ras_peer_info info = lone_info(lone, 1, 9);
	struct peer_news news = lone_told(lone, 1, RAS_ALIVE, ras_incarnation(9, 0));
	uint32_t conn;

	(void)state;
	info.addresses[0] = lone_address(9);
	assert_int_equal(ras_record_from_info(lone->interner, &info, &news.record), 0);
	lone_pass(lone, 10 * MS);
	conn = lone_link(lone, 2);
	lone_news(lone, conn, &news);
	assert_int_equal(lone_event(lone, RAS_EVENT_CONFLICT)->cause, RAS_CAUSE_CONFLICT);
	assert_int_not_equal(lone_opening(lone, 9), 0);
	lone_end(lone, lone_opening(lone, 9), RAS_CAUSE_REFUSED);
	// An answer of this node itself, reached over another address, does not count, either.
	lone_pass(lone, 2 * SEC);
	lone_news(lone, conn, &news);
	if (lone_opening(lone, 9) != 0) {
		struct message_init_ack ack = lone_ack(lone, 1);

		ack.refusal = RAS_CAUSE_CONFLICT;
		lone_send_ack(lone, lone_opening(lone, 9), &ack);
	}
	lone_pass(lone, 2 * SEC);
	assert_int_equal(lone_events(lone, RAS_EVENT_JOIN_REFUSED), 0);
	ras_record_put(lone->interner, news.record);
	lone_destroy(lone);
}

// Return an INIT in which a node at another address claims the name of peer 2.
static struct message_init claim_of(struct lone *lone, struct ras_record **ret_claimer) {
	struct message_init init = lone_init(lone, 2, 0);
	struct ras_peer_info info = lone_info(lone, 2, 0);

	info.addresses[0] = lone_address(9);
	assert_int_equal(ras_record_from_info(lone->interner, &info, ret_claimer), 0);
	init.flags = MESSAGE_INIT_JOIN;
	init.record = (*ret_claimer)->encoding;
	init.record_size = (*ret_claimer)->size;
	init.incarnation = 0;
	return init;
}

// Regression: a seed without room for another look gave the name of a living holder away.
static void name_is_not_given_away_where_nobody_could_look(void **state) {
	struct lone *lone = lone_of(4, 1);
	struct ras_record *claimer;
	struct message_init init = claim_of(lone, &claimer);
	uint32_t conn = lone_accept(lone);

	(void)state;
	lone->memory_spent = true;
	lone_send_init(lone, conn, &init);
	lone->memory_spent = false;
	assert_int_equal(lone_refusal(lone, conn), RAS_CAUSE_BUSY);
	assert_true(lone_is_closed(lone, conn));
	assert_int_equal(ras_counters(lone->ras)->joins_served, 0);
	assert_int_equal(lone_peer(lone, 2).state, RAS_ALIVE);
	ras_record_put(lone->interner, claimer);
	lone_destroy(lone);
}

// Regression: joins whose name had to be checked exceeded the limit of simultaneous joins.
static void name_that_is_free_waits_for_its_turn_among_the_joins(void **state) {
	struct lone *lone = lone_of(6, 1);
	struct ras_record *claimer;
	struct message_init claim = claim_of(lone, &claimer);
	struct message_init other = lone_init(lone, 4, 0);
	uint32_t conn;

	(void)state;
	lone_pass(lone, 10 * MS);
	lone_end(lone, lone_link(lone, 2), RAS_CAUSE_RESET);
	conn = lone_accept(lone);
	lone_send_init(lone, conn, &claim);
	other.flags = MESSAGE_INIT_JOIN;
	lone->full = true; // no frame is sent, so no table is ever complete
	for (uint32_t n = 0; n < lone->profile.joins_max; n++)
		lone_send_init(lone, lone_accept(lone), &other);
	lone->full = false;
	assert_int_equal(lone_sent(lone, conn, MESSAGE_INIT_ACK), 0);
	while (!lone_is_closed(lone, conn))
		lone_pass_refusing(lone, 10 * MS, 2);
	assert_int_equal(lone_refusal(lone, conn), RAS_CAUSE_BUSY);
	assert_int_equal(ras_counters(lone->ras)->joins_served, lone->profile.joins_max);
	ras_record_put(lone->interner, claimer);
	lone_destroy(lone);
}

#define ROUNDS 8

// Record when the joiner starts each round through the seeds. The only seed is no member either.
static void round_times(uint64_t random_seed, uint64_t times[ROUNDS]) {
	struct lone *lone = lone_create(&(struct lone_setup
	){.count = 2, .self = 1, .joining = true, .random_seed = random_seed});
	struct message_init_ack ack;
	uint32_t conn;

	for (uint32_t n = 0; n < ROUNDS; n++) {
		while ((conn = lone_opening(lone, 0)) == 0)
			lone_pass(lone, 5 * MS);
		times[n] = lone->now_ns;
		ack = lone_ack(lone, 0);
		ack.refusal = RAS_CAUSE_BUSY;
		lone_send_ack(lone, conn, &ack);
	}
	lone_destroy(lone);
}

// Rows 12 and 30.
static void rounds_through_the_seeds_are_bounded_and_not_in_step(void **state) {
	uint64_t times[2][ROUNDS];
	uint32_t together = 0;

	(void)state;
	round_times(11, times[0]);
	round_times(12, times[1]);
	for (uint32_t n = 1; n < ROUNDS; n++) {
		for (uint32_t m = 0; m < 2; m++)
			assert_in_range(times[m][n] - times[m][n - 1], 700 * MS, 1500 * MS);
		together += times[0][n] == times[1][n];
	}
	assert_in_range(together, 0, 1);
}

// Row 20.
static void wrong_cluster_and_version_are_refused_with_the_reason_on_both_sides(void **state) {
	struct world *world =
		world_create(&(struct world_setup){.count = 4, .seeds = 1, .idle = true});
	struct ras_versions theirs;

	(void)state;
	world_start(world, 0, 0, 0);
	world_pass(world, 5 * SEC);
	world_start_as(world, 1, "another", 0);
	world_start_as(world, 2, "world", 77);
	world_start_as(world, 3, "world", 0);
	world_pass(world, 10 * SEC);
	assert_int_equal(world_event(world, 1, RAS_EVENT_JOIN_REFUSED)->cause, RAS_CAUSE_CLUSTER);
	assert_int_equal(world_event(world, 2, RAS_EVENT_JOIN_REFUSED)->cause, RAS_CAUSE_VERSION);
	theirs = ras_versions_unpack(world_event(world, 2, RAS_EVENT_JOIN_REFUSED)->value);
	assert_int_equal(theirs.min, ras_versions_built.min);
	assert_int_equal(theirs.max, ras_versions_built.max);
	theirs = ras_versions_unpack(world_event(world, 0, RAS_EVENT_OTHER_VERSION)->value);
	assert_int_equal(theirs.min, 77);
	assert_int_equal(theirs.max, 77);
	assert_false(world_view(world, 1).joined);
	assert_false(world_view(world, 2).joined);
	assert_int_equal(world_view(world, 2).versions.max, 77);
	assert_int_equal(world_view(world, 0).alive, 2);
	assert_true(ras_counters(world->nodes[0].ras)->inits_refused >= 2);
	world_destroy(world);
}

// Whatever table the seed has sent when it stops half-way, the next seed completes it.
static void seed_that_stops_half_way_is_replaced_by_the_next(void **state) {
	struct lone *lone =
		lone_create(&(struct lone_setup){.count = 4, .self = 3, .joining = true});
	struct peer_news news;
	uint32_t conn;

	(void)state;
	lone_pass(lone, 10 * MS);
	conn = lone_answer(lone, 0);
	news = lone_told(lone, 0, RAS_ALIVE, ras_incarnation(1, 0));
	news.record = lone->records[0];
	lone_news(lone, conn, &news);
	lone_end(lone, conn, RAS_CAUSE_RESET);
	assert_false(lone->ras->joined);
	lone_pass(lone, 600 * MS);
	conn = lone_answer(lone, 1);
	for (uint32_t n = 0; n < 3; n++) {
		news = lone_told(lone, n, RAS_ALIVE, ras_incarnation(1, 0));
		news.record = lone->records[n];
		lone_news(lone, conn, &news);
	}
	lone_beat(lone, conn, 0, 0);
	assert_true(lone->ras->joined);
	assert_int_equal(peers_ring_count(&lone->ras->peers), 4);
	assert_true(lone_is_closed(lone, conn));
	lone_destroy(lone);
}

UNIT_GROUP(ras_join) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wrong_cluster_and_version_are_refused_with_the_reason_on_both_sides
		),
		cmocka_unit_test(second_live_holder_of_a_name_is_refused),
		cmocka_unit_test(newcomer_with_the_seeds_own_name_is_refused),
		cmocka_unit_test(newcomer_takes_the_name_of_a_holder_that_does_not_answer),
		cmocka_unit_test(holder_that_is_slow_to_answer_keeps_its_name),
		cmocka_unit_test(newcomer_takes_the_name_of_an_unreachable_holder),
		cmocka_unit_test(conflict_is_answered_with_the_holders_address),
		cmocka_unit_test(of_two_holders_whose_rings_meet_the_higher_start_stays),
		cmocka_unit_test(of_two_holders_with_equal_starts_exactly_one_stays),
		cmocka_unit_test(hearsay_of_another_holder_makes_nobody_give_way),
		cmocka_unit_test(name_is_not_given_away_where_nobody_could_look),
		cmocka_unit_test(name_that_is_free_waits_for_its_turn_among_the_joins),
		cmocka_unit_test(rounds_through_the_seeds_are_bounded_and_not_in_step),
		cmocka_unit_test(seed_that_stops_half_way_is_replaced_by_the_next),
		cmocka_unit_test(alone_without_an_answer_says_so_and_keeps_trying),
		cmocka_unit_test(agent_without_seeds_is_a_ring_of_one_at_once),
		cmocka_unit_test(all_seeds_at_once_make_one_ring_founded_by_the_lowest),
		cmocka_unit_test(next_seed_founds_where_the_lowest_does_not_run),
		cmocka_unit_test(crowd_through_one_seed_is_one_ring_with_few_connections),
		cmocka_unit_test(busy_seed_points_to_other_members),
		cmocka_unit_test(redirected_joiner_asks_whom_it_was_sent_to),
		cmocka_unit_test(start_number_is_one_past_the_largest_known),
		cmocka_unit_test(start_number_kept_by_the_joiner_is_used_if_it_is_newer),
	};

	return cmocka_run_group_tests_name("ras_join", tests, NULL, NULL);
}
