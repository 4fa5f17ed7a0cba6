// SPDX-License-Identifier: BSD-3-Clause
// An agent without memory of its earlier runs, whose start counter repeats one of theirs.
#include "control/ras/ras_lone.h"
#include "control/ras/ras_world.h"
#include "relay/relay_state.h"

#include <support/cases.h>
#include <support/cmocka.h>

#define MS RAS_NS_PER_MS
#define SEC RAS_NS_PER_SEC

// Node 1 dies, restarts without its state, and founds its own ring while it is unreachable. Then
// the two rings meet.
static void rings_meet_after_a_start_without_memory(uint32_t pid_offset) {
	struct world *world =
		world_create(&(struct world_setup){.count = 3, .seeds = 2, .idle = true});

	for (uint32_t n = 0; n < 3; n++)
		world_start(world, n, 0, n);
	world_pass(world, 15 * SEC);
	assert_true(world_agrees(world));
	assert_int_equal(ras_self_incarnation(world->nodes[1].ras), ras_incarnation(1, 0));
	for (uint32_t n = 0; n < 3; n += 2) {
		world_way(world, n, 1, WORLD_REFUSED);
		world_way(world, 1, n, WORLD_REFUSED);
	}
	world_kill(world, 1);
	world_pass(world, 15 * SEC);
	world->pid_offset = pid_offset;
	world_start(world, 1, 0, 1);
	world_pass(world, 3 * SEC);
	assert_true(world_view(world, 1).joined);
	assert_int_equal(world_view(world, 1).alive, 1);
	assert_int_equal(world_state(world, 0, 1), RAS_DEAD);
	for (uint32_t n = 0; n < 3; n += 2) {
		world_way(world, n, 1, WORLD_OPEN);
		world_way(world, 1, n, WORLD_OPEN);
	}
	world_pass(world, 30 * SEC);
	assert_true(world_agrees(world));
	assert_int_equal(ras_self_incarnation(world->nodes[1].ras), ras_incarnation(2, 0));
	assert_true(world_events(world, 1, RAS_EVENT_DECLARED_DEAD) > 0);
	world_destroy(world);
}

// Regression: two runs with the same start counter and different facts refused each other for
// ever.
static void run_that_counts_like_one_before_it_takes_the_next_start(void **state) {
	(void)state;
	rings_meet_after_a_start_without_memory(1000);
}

// Regression: in a container each run is process 1, so the facts were equal, too. Messages that
// the relay had delivered to the previous run were acknowledged in the name of this run.
static void run_that_is_held_for_dead_in_a_start_it_guessed_takes_the_next(void **state) {
	(void)state;
	rings_meet_after_a_start_without_memory(0);
}

// Regression: the ring that admits the node does not know the previous run; a member that does
// joins later. Messages that the relay had delivered to that run were acknowledged in the name of
// this run.
static void run_that_is_held_for_dead_in_its_start_by_one_it_never_met_takes_the_next(void **state
) {
	static const bool met[] = {false, true};

	(void)state;
	for (size_t n = 0; n < COUNT_OF(met); n++) {
		struct lone *lone = lone_of(6, 1);
		struct message_init init = lone_init(lone, 4, RAS_USE_LEVEL(1));

		lone->ras->start_from_seed = true;
		if (!met[n])
			ras_entry(lone->ras, peers_find(&lone->ras->peers, lone_id(lone, 4)))
				->flags &= (uint8_t)~PEER_SEEN;
		init.your_state = RAS_DEAD;
		init.your_incarnation = ras_self_incarnation(lone->ras);
		lone_send_init(lone, lone_accept(lone), &init);
		assert_int_equal(
			ras_self_incarnation(lone->ras),
			met[n] ? ras_incarnation(1, 1) : ras_incarnation(2, 0)
		);
		lone_destroy(lone);
	}
}

// Regression: it took the start after the one it had guessed, and was considered dead for ever.
static void run_on_another_host_takes_the_start_after_that_of_the_dead(void **state) {
	struct world *world =
		world_create(&(struct world_setup){.count = 4, .seeds = 1, .idle = true});
	static const uint32_t members[] = {0, 2};

	(void)state;
	world_start(world, 0, 0, 0);
	world_start(world, 2, 0, 2);
	world_start(world, 1, 7, 1);
	world_pass(world, 15 * SEC);
	world_kill(world, 1);
	world_pass(world, 15 * SEC);
	assert_int_equal(world_state(world, 0, 1), RAS_DEAD);
	// Its seed is not up yet, and the node is a seed itself.
	for (size_t n = 0; n < COUNT_OF(members); n++) {
		world_way(world, members[n], 3, WORLD_REFUSED);
		world_way(world, 3, members[n], WORLD_REFUSED);
	}
	world->seeds = 4;
	world_start(world, 3, 0, 1);
	world_pass(world, 10 * SEC);
	assert_true(world_view(world, 3).joined);
	assert_int_equal(world_view(world, 3).alive, 1);
	for (size_t n = 0; n < COUNT_OF(members); n++) {
		world_way(world, members[n], 3, WORLD_OPEN);
		world_way(world, 3, members[n], WORLD_OPEN);
	}
	world_pass(world, 60 * SEC);
	assert_int_equal(ras_self_incarnation(world->nodes[3].ras), ras_incarnation(8, 0));
	assert_int_equal(world_state(world, 0, 1), RAS_ALIVE);
	world_destroy(world);
}

static void guessed_start_gives_way_to_the_one_that_is_held_for_dead(void **state) {
	static const struct {
		uint64_t start, refutations; // start that is considered dead
		uint64_t next;
	} rows[] = {
		{1, 0, 2},
		{1, 5, 2},
		{7, 0, 8},
		{7, RAS_REFUTATIONS_MAX, 8},
		{RAS_START_MAX, 0, 1}, // there is no higher start
	};

	(void)state;
	for (size_t n = 0; n < COUNT_OF(rows); n++) {
		struct lone *lone = lone_of(4, 1);
		struct peer_news news = lone_told(
			lone, 1, RAS_DEAD, ras_incarnation(rows[n].start, rows[n].refutations)
		);
		uint32_t conn = lone_link(lone, 2);

		lone->ras->start_guessed = true;
		lone_news(lone, conn, &news);
		assert_int_equal(ras_self_incarnation(lone->ras), ras_incarnation(rows[n].next, 0));
		lone_destroy(lone);
	}
}

static struct message_init_ack conflict_from(const struct lone *lone, uint32_t holder_at) {
	struct message_init_ack ack = lone_ack(lone, 2);

	ack.refusal = RAS_CAUSE_CONFLICT;
	ack.redirect_count = 1;
	ack.redirects[0] = lone_address(holder_at);
	return ack;
}

static void refusal_moves_the_start_only_if_the_holder_has_our_own_address(void **state) {
	static const struct {
		uint32_t holder_at;
		uint64_t your_start;
		uint64_t start;
	} rows[] = {
		{1, 8, 8},	    {1, 0, 1}, // an older agent does not report it
		{1, 1, 1},		       // not higher than our own
		{9, 8, 1},		       // another holder of the name, which must act itself
		{1, UINT64_MAX, 1}, {1, RAS_START_MAX + 1, 1},
	};

	(void)state;
	for (size_t n = 0; n < sizeof(rows) / sizeof(rows[0]); n++) {
		struct lone *lone = lone_of(4, 1);
		struct message_init_ack ack = conflict_from(lone, rows[n].holder_at);
		uint64_t wanted = ras_incarnation(rows[n].start, 0);

		ack.your_start = rows[n].your_start;
		lone_pass(lone, 10 * MS);
		lone_send_ack(lone, lone_opening(lone, 2), &ack);
		assert_int_equal(ras_self_incarnation(lone->ras), wanted);
		assert_int_equal(
			lone_events(lone, RAS_EVENT_DECLARED_DEAD), rows[n].start == 1 ? 0 : 1
		);
		lone_destroy(lone);
	}
}

// Regression: two nodes came back with each other's address, and one had lost its state. Members
// that knew its previous run sent that run to its former address, where the other node lives, for
// ever.
static void refusal_moves_the_start_if_somebody_else_lives_where_the_holder_is_said_to(void **state
) {
	static const struct {
		uint32_t answers; // peer that answers at address 3 of the holder
		enum ras_cause refusal;
		uint64_t start;
	} rows[] = {
		{3, RAS_CAUSE_NONE, 8},
		{3, RAS_CAUSE_BUSY, 8},
		{1, RAS_CAUSE_BUSY, 1}, // the holder does live there
	};

	(void)state;
	for (size_t n = 0; n < COUNT_OF(rows); n++) {
		struct lone *lone = lone_of(4, 1);
		struct message_init_ack ack = conflict_from(lone, 3);
		struct message_init_ack there = lone_ack(lone, rows[n].answers);

		lone_answer(lone, 2);
		lone_pass(lone, 10 * SEC); // its connection to 3 serves no link
		ack.your_start = 8;
		ras_enter(lone->ras, lone->now_ns);
		rival_call(lone->ras, &ack.redirects[0], ack.your_start);
		ras_exit(lone->ras);
		there.refusal = (uint8_t)rows[n].refusal;
		lone_send_ack(lone, lone_opening(lone, 3), &there);
		assert_int_equal(
			ras_self_incarnation(lone->ras), ras_incarnation(rows[n].start, 0)
		);
		lone_destroy(lone);
	}
}

// Reject this node's start, by a peer that knows another run at this address with a higher start.
static void meet_higher(struct lone *lone, uint64_t start) {
	struct message_init_ack ack = conflict_from(lone, 1);
	uint32_t conn;

	ack.your_start = start + 1;
	while ((conn = lone_opening(lone, 2)) == 0)
		lone_pass(lone, 10 * MS);
	lone_send_ack(lone, conn, &ack);
}

// Regression: two clones with one name and address overtook each other's start as fast as they
// met. Each step was news for the whole cluster.
static void two_of_one_name_and_address_take_a_start_in_ten_seconds_each(void **state) {
	struct lone *lone = lone_of(4, 1);
	uint64_t begun_ns = lone->now_ns;
	uint64_t start = 1;
	uint32_t steps = 0;

	(void)state;
	while (lone->now_ns - begun_ns < 60 * SEC) {
		uint64_t own = ras_incarnation_start(ras_self_incarnation(lone->ras));

		steps += own != start;
		start = own;
		meet_higher(lone, own + 1); // the other one did not wait
	}
	assert_in_range(steps, 5, 7);
	assert_int_equal(lone_events(lone, RAS_EVENT_DECLARED_DEAD), steps);
	assert_in_range(lone_events(lone, RAS_EVENT_CONFLICT), 5, 7);
	lone_destroy(lone);
}

static void refusal_of_an_old_start_says_which_one_is_next(void **state) {
	struct lone *lone = lone_of(4, 1);
	struct ras_peer_info info = lone_info(lone, 2, 1);
	struct message_init init = lone_init(lone, 2, RAS_USE_NEXT);
	const struct lone_frame *frame;
	struct message_init_ack ack;
	struct ras_record *record;
	struct wire_reader reader;
	uint32_t conn = lone_accept(lone);

	(void)state;
	info.pid += 7;
	assert_int_equal(ras_record_from_info(lone->interner, &info, &record), 0);
	init.record = record->encoding;
	init.record_size = record->size;
	init.incarnation = ras_incarnation(1, 0);
	lone_send_init(lone, conn, &init);
	frame = lone_latest(lone, conn, MESSAGE_INIT_ACK);
	wire_reader_init(&reader, frame->bytes + 1, frame->size - 1);
	assert_int_equal(message_init_ack_decode(&reader, &ack), 0);
	assert_int_equal(ack.refusal, RAS_CAUSE_CONFLICT);
	assert_int_equal(ack.your_start, 2);
	assert_true(sock_addr_equal(&ack.redirects[0], &info.addresses[0]));
	ras_record_put(lone->interner, record);
	lone_destroy(lone);
}

static struct sock_addr holder_told_to_a_newcomer(struct lone *lone) {
	struct ras_peer_info info = lone_info(lone, 2, 1);
	struct message_init init = lone_init(lone, 2, RAS_USE_NEXT);
	struct message_init_ack ack;
	struct ras_record *record;
	struct wire_reader reader;
	const struct lone_frame *frame;
	uint32_t conn = lone_accept(lone);

	info.pid += 7;
	info.addresses[0] = lone_address(9);
	assert_int_equal(ras_record_from_info(lone->interner, &info, &record), 0);
	init.record = record->encoding;
	init.record_size = record->size;
	init.incarnation = ras_incarnation(1, 0);
	lone_send_init(lone, conn, &init);
	ras_record_put(lone->interner, record);
	frame = lone_latest(lone, conn, MESSAGE_INIT_ACK);
	wire_reader_init(&reader, frame->bytes + 1, frame->size - 1);
	assert_int_equal(message_init_ack_decode(&reader, &ack), 0);
	assert_int_equal(ack.refusal, RAS_CAUSE_CONFLICT);
	assert_int_equal(ack.your_start, 2);
	return ack.redirects[0];
}

static void name_of_one_who_is_lost_is_left_to_the_newcomer(void **state) {
	struct lone *lone = lone_of(6, 1);
	struct peer_news news = lone_told(lone, 2, RAS_DEAD, ras_incarnation(1, 0));
	struct sock_addr holder, own = lone_address(9), old = lone_address(2);

	(void)state;
	holder = holder_told_to_a_newcomer(lone);
	assert_true(sock_addr_equal(&holder, &old));
	lone_news(lone, lone_link(lone, 3), &news);
	assert_int_equal(lone_peer(lone, 2).state, RAS_DEAD);
	holder = holder_told_to_a_newcomer(lone);
	assert_true(sock_addr_equal(&holder, &own));
	lone_destroy(lone);
}

static void news_of_an_earlier_run_at_our_address_move_the_start(void **state) {
	struct lone *lone = lone_of(4, 1);
	struct ras_peer_info info = lone_info(lone, 1, 1);
	struct peer_news news = lone_told(lone, 1, RAS_ALIVE, ras_incarnation(1, 0));
	uint32_t conn = lone_link(lone, 2);

	(void)state;
	lone_news(lone, conn, &news); // facts of this node
	assert_int_equal(ras_self_incarnation(lone->ras), ras_incarnation(1, 0));
	info.pid += 7;
	assert_int_equal(ras_record_from_info(lone->interner, &info, &news.record), 0);
	lone_news(lone, conn, &news);
	assert_int_equal(ras_self_incarnation(lone->ras), ras_incarnation(2, 0));
	lone_news(lone, conn, &news); // outdated by now
	assert_int_equal(ras_self_incarnation(lone->ras), ras_incarnation(2, 0));
	ras_record_put(lone->interner, news.record);
	lone_destroy(lone);
}

// Regression: a refusal had reported a start and an address. Repeated news kept the node from
// asking that address.
static void news_of_an_earlier_run_elsewhere_move_the_start_once_another_answers(void **state) {
	struct lone *lone = lone_of(4, 1);
	struct ras_peer_info info = lone_info(lone, 1, 1);
	struct peer_news news = lone_told(lone, 1, RAS_ALIVE, ras_incarnation(6, 0));
	struct message_init_ack there;

	(void)state;
	info.start = 6;
	info.addresses[0] = lone_address(3);
	assert_int_equal(ras_record_from_info(lone->interner, &info, &news.record), 0);
	lone_news(lone, lone_link(lone, 2), &news);
	there = lone_ack(lone, 3);
	lone_send_ack(lone, lone_opening(lone, 3), &there);
	assert_int_equal(ras_self_incarnation(lone->ras), ras_incarnation(7, 0));
	ras_record_put(lone->interner, news.record);
	lone_destroy(lone);
}

// Regression: messages in progress were given up for a start that was not taken.
static void start_for_which_there_is_no_memory_ends_no_message(void **state) {
	struct lone *lone = lone_of(8, 1);
	uint32_t conn = lone_link(lone, 2);
	struct ras_peer_info info = lone_info(lone, 3, 1);
	struct peer_news news = {.state = RAS_ALIVE, .incarnation = ras_incarnation(1, 0)};
	struct peers *peers = &lone->ras->peers;
	struct ras_peer_info own;
	struct ras_record *next;
	struct ras_relay_message message = {
		.destination = lone_id(lone, 2), .flags = RAS_RELAY_REPORT, .port = 20};
	uint64_t id;

	(void)state;
	assert_int_equal(ras_relay_send(lone->ras, lone->now_ns, &message, &id), 0);
	lone_pass_beating(lone, 10 * MS, conn);
	assert_int_equal(lone->ras->relay->pending->tries, 1);
	// The record exists, and the table has no room for it.
	ras_record_info(ras_self(lone->ras)->record, &own);
	own.start = 2;
	assert_int_equal(ras_record_from_info(lone->interner, &own, &next), 0);
	while (peers_ring_count(peers) < peers->ring_capacity) {
		info.name[0]++;
		assert_int_equal(ras_record_from_info(lone->interner, &info, &news.record), 0);
		news.id = news.record->id;
		lone_news(lone, conn, &news);
		ras_record_put(lone->interner, news.record);
	}
	lone->memory_spent = true;
	assert_false(ras_supersede_earlier_run(lone->ras, 1));
	lone->memory_spent = false;
	assert_int_equal(ras_self_incarnation(lone->ras), ras_incarnation(1, 0));
	assert_false(lone->ras->relay->pending->over);
	assert_true(ras_supersede_earlier_run(lone->ras, 1));
	assert_true(lone->ras->relay->pending->over);
	ras_record_put(lone->interner, next);
	lone_destroy(lone);
}

UNIT_GROUP(ras_start) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(run_that_counts_like_one_before_it_takes_the_next_start),
		cmocka_unit_test(run_that_is_held_for_dead_in_a_start_it_guessed_takes_the_next),
		cmocka_unit_test(
			run_that_is_held_for_dead_in_its_start_by_one_it_never_met_takes_the_next
		),
		cmocka_unit_test(run_on_another_host_takes_the_start_after_that_of_the_dead),
		cmocka_unit_test(guessed_start_gives_way_to_the_one_that_is_held_for_dead),
		cmocka_unit_test(two_of_one_name_and_address_take_a_start_in_ten_seconds_each),
		cmocka_unit_test(refusal_moves_the_start_only_if_the_holder_has_our_own_address),
		cmocka_unit_test(refusal_of_an_old_start_says_which_one_is_next),
		cmocka_unit_test(
			refusal_moves_the_start_if_somebody_else_lives_where_the_holder_is_said_to
		),
		cmocka_unit_test(name_of_one_who_is_lost_is_left_to_the_newcomer),
		cmocka_unit_test(news_of_an_earlier_run_at_our_address_move_the_start),
		cmocka_unit_test(
			news_of_an_earlier_run_elsewhere_move_the_start_once_another_answers
		),
		cmocka_unit_test(start_for_which_there_is_no_memory_ends_no_message),
	};

	return cmocka_run_group_tests_name("ras_start", tests, NULL, NULL);
}
