// SPDX-License-Identifier: BSD-3-Clause
// Looks at a peer on behalf of another member, proofs of life, reports of a death, and earlier
// steps.
#include "control/ras/ras_lone.h"
#include "control/ras/ras_world.h"

#include <support/cmocka.h>

#define SEC RAS_NS_PER_SEC
#define MS RAS_NS_PER_MS

// Message kinds of RELAY_PORT_CONFIRM.
#define ASK 1
#define TELL 3

static void say_of(struct lone *lone, uint32_t from, uint8_t kind, uint32_t subject, uint64_t run) {
	uint8_t bytes[64];
	struct wire_writer writer;
	struct wire_reader reader;

	wire_writer_init(&writer, bytes, sizeof(bytes));
	wire_put_u8(&writer, kind);
	wire_put_u64(&writer, lone_id(lone, subject));
	wire_put_u64(&writer, ras_incarnation(1, 0));
	wire_put_u64(&writer, run);
	wire_put_u32(&writer, 7);
	wire_reader_init(&reader, bytes, wire_writer_used(&writer));
	ras_enter(lone->ras, lone->now_ns);
	liveness_message(lone->ras, lone_id(lone, from), &reader);
	ras_exit(lone->ras);
	assert_true(wire_reader_ok(&reader));
}

static void say(struct lone *lone, uint32_t from, uint8_t kind, uint32_t subject) {
	say_of(lone, from, kind, subject, lone->records[subject]->run);
}

// `from` requests a look at `subject`.
static void ask(struct lone *lone, uint32_t from, uint32_t subject) {
	say(lone, from, ASK, subject);
}

// Make a link, lose its connection, and refuse two reconnects.
static void refuse_twice(struct lone *lone, uint32_t peer) {
	lone_end(lone, lone_link(lone, peer), RAS_CAUSE_RESET);
	lone_pass_refusing(lone, 500 * MS, peer);
	assert_true(lone_find_link(lone, peer)->gone);
}

// Return the observation in the latest answer on the connection. The observation and 4 bytes of
// time end the message.
static enum observation answered(const struct lone *lone, uint32_t conn) {
	const struct lone_frame *frame = lone_latest(lone, conn, MESSAGE_RELAY);

	return (enum observation)frame->bytes[frame->size - 5];
}

// Regression: a frozen host's firewall refused new connections. An observer that never had a
// connection with it testified to its end.
static void refusal_of_a_newcomer_is_told_as_a_silence(void **state) {
	static const struct {
		bool had_connection;
		enum observation observation;
	} rows[] = {{true, OBSERVATION_GONE}, {false, OBSERVATION_SILENT}};

	(void)state;
	for (size_t n = 0; n < sizeof(rows) / sizeof(rows[0]); n++) {
		struct lone *lone = lone_of(6, 1);
		uint32_t conn = lone_link(lone, 4);

		if (rows[n].had_connection)
			lone_end(lone, lone_link(lone, 2), RAS_CAUSE_RESET);
		lone_mark(lone);
		ask(lone, 4, 2);
		lone_pass_refusing(lone, 500 * MS, 2);
		assert_int_equal(lone->ras->liveness.look_count, 0);
		assert_int_equal(answered(lone, conn), rows[n].observation);
		lone_destroy(lone);
	}
}

// Regression: a question about the run that others knew was answered for another run of that
// name. The two runs were one peer, alive and silent, for ever.
static void look_at_another_run_of_that_number_is_not_answered_by_the_one_heard(void **state) {
	struct lone *lone = lone_of(6, 1);
	uint32_t conn = lone_link(lone, 2);

	(void)state;
	lone_beat(lone, conn, 1, RAS_USE_NEXT);
	say_of(lone, 4, ASK, 2, lone->records[2]->run + 1);
	assert_int_equal(lone->ras->liveness.look_count, 0);
	ask(lone, 4, 2);
	assert_int_equal(lone->ras->liveness.look_count, 1);
	lone_destroy(lone);
}

static void refusal_of_just_now_is_an_answer(void **state) {
	struct lone *lone = lone_of(6, 1);

	(void)state;
	refuse_twice(lone, 2);
	ask(lone, 4, 2);
	assert_int_equal(lone->ras->liveness.look_count, 0);
	assert_true(lone_find_link(lone, 2)->gone);
	lone_destroy(lone);
}

// Regression: a restarted peer was called gone because of an earlier refusal.
static void refusal_of_a_while_ago_is_looked_at_anew(void **state) {
	struct lone *lone = lone_of(6, 1);

	(void)state;
	refuse_twice(lone, 2);
	lone_pass(lone, 2 * SEC); // connects of this node get no answer
	lone_mark(lone);
	ask(lone, 4, 2);
	assert_int_equal(lone->ras->liveness.look_count, 1);
	assert_false(lone_find_link(lone, 2)->gone);
	lone_answer(lone, 2);
	assert_int_equal(lone->ras->liveness.look_count, 0);
	assert_int_equal(lone_peer(lone, 2).state, RAS_ALIVE);
	lone_destroy(lone);
}

static void second_look_that_is_refused_twice_as_well_says_gone(void **state) {
	struct lone *lone = lone_of(6, 1);

	(void)state;
	refuse_twice(lone, 2);
	lone_pass(lone, 2 * SEC);
	ask(lone, 4, 2);
	lone_pass_refusing(lone, 500 * MS, 2);
	assert_int_equal(lone->ras->liveness.look_count, 0);
	assert_true(lone_find_link(lone, 2)->gone);
	lone_destroy(lone);
}

// A proof of life ends the own suspicion and the promised look, in either order, with a single
// event.
static void proof_ends_a_suspicion_and_a_promised_look_at_once(void **state) {
	struct lone *lone = lone_of(6, 1);
	uint32_t conn = lone_link(lone, 2);

	(void)state;
	lone_pass(lone, 4 * SEC);
	assert_int_equal(lone_peer(lone, 2).state, RAS_SUSPECT);
	ask(lone, 4, 2);
	assert_int_equal(lone->ras->liveness.look_count, 1);
	lone_mark(lone);
	lone_beat(lone, conn, 2, RAS_USE_NEXT);
	assert_int_equal(lone->ras->liveness.look_count, 0);
	for (uint32_t n = 0; n < lone->ras->liveness.suspicion_count; n++)
		assert_int_not_equal(
			lone->ras->liveness.suspicions[n].slot, lone_find_link(lone, 2)->slot
		);
	assert_int_equal(lone_events(lone, RAS_EVENT_REFUTED), 1);
	lone_destroy(lone);
}

// Regression: a death by two observers, one of them unknown here, was shown as sole.
static void death_by_an_observer_we_do_not_know_is_not_sole(void **state) {
	struct lone *lone = lone_of(6, 1);
	struct peer_news news = lone_told(lone, 4, RAS_DEAD, ras_incarnation(1, 0));
	struct ras_peer peer;

	(void)state;
	news.observers[0] = lone_id(lone, 3);
	lone_news(lone, lone_link(lone, 2), &news);
	peer = lone_peer(lone, 4);
	assert_int_equal(peer.state, RAS_DEAD);
	assert_int_equal(peer.observer_count, 1);
	assert_false(peer.sole);
	assert_int_equal(lone_event(lone, RAS_EVENT_DEAD)->observer_count, 1);
	lone_destroy(lone);
}

// Regression: a deadline in the caller's time may request a wake-up in the past. Each input of
// the same moment then looked like another pause.
static void one_pause_is_told_once_however_many_words_follow(void **state) {
	struct lone *lone = lone_of(6, 1);
	uint32_t conn = lone_link(lone, 2);
	uint64_t id;

	(void)state;
	assert_int_equal(ras_collect(lone->ras, lone->now_ns, RAS_COLLECT_COMMS, 2 * SEC, &id), 0);
	lone_pass_beating(lone, SEC, conn);
	lone->now_ns += 600 * SEC;
	for (uint32_t n = 0; n < 5; n++) {
		lone_beat(lone, conn, 10 + n, RAS_USE_NEXT);
		lone->now_ns += n % 2 * MS;
	}
	lone_pass(lone, 0);
	assert_int_equal(lone_events(lone, RAS_EVENT_PAUSED), 1);
	assert_int_equal(ras_counters(lone->ras)->own_pauses, 1);
	lone_destroy(lone);
}

// Row 8: from the delay warning on, long before a death, a running collective does not wait for
// the leg.
static void leg_of_a_running_collective_is_purged_at_the_warning(void **state) {
	struct lone *lone = lone_of(6, 1);
	uint32_t silent = lone_link(lone, 2);
	const struct ras_collect_counters *counters = ras_collect_counters(lone->ras);
	uint64_t id;

	(void)state;
	lone_mark(lone);
	assert_int_equal(
		ras_collect(lone->ras, lone->now_ns, RAS_COLLECT_COMMS, 600 * SEC, &id), 0
	);
	assert_int_equal(lone_sent(lone, silent, MESSAGE_COLLECT), 1);
	lone_pass(lone, 2 * SEC);
	assert_int_equal(counters->running, 1);
	for (uint32_t n = 0; n < 12 && !lone_find_link(lone, 2)->delayed; n++)
		lone_pass(lone, SEC);
	assert_true(lone_find_link(lone, 2)->delayed);
	assert_int_equal(lone_peer(lone, 2).state, RAS_SUSPECT);
	assert_false(lone_is_closed(lone, silent)); // the link is up and only silent
	lone_pass(lone, 0);
	assert_int_equal(counters->running, 0);
	assert_int_equal(counters->finished, 1);
	assert_int_equal(counters->legs_lost, 1);
	assert_int_equal(counters->legs_timed_out, 0);
	lone_destroy(lone);
}

// Row 8: later collectives and floods also skip the link until the peer is heard again.
static void delayed_link_is_left_out_of_floods_until_it_speaks(void **state) {
	struct lone *lone = lone_of(6, 1);
	uint32_t silent = lone_link(lone, 2);
	const struct ras_collect_counters *counters = ras_collect_counters(lone->ras);
	uint64_t id;

	(void)state;
	for (uint32_t n = 0; n < 12 && !lone_find_link(lone, 2)->delayed; n++)
		lone_pass(lone, SEC);
	lone_mark(lone);
	assert_int_equal(
		ras_collect(lone->ras, lone->now_ns, RAS_COLLECT_COMMS, 600 * SEC, &id), 0
	);
	assert_int_equal(ras_notice(lone->ras, lone->now_ns, RAS_NOTICE_OWN_MIN, "x", 1), 0);
	lone_pass(lone, 0);
	assert_int_equal(lone_sent(lone, silent, MESSAGE_COLLECT), 0);
	assert_int_equal(lone_sent(lone, silent, MESSAGE_NOTICE), 0);
	assert_int_equal(counters->running, 0);
	lone_beat(lone, silent, 2, RAS_USE_NEXT);
	assert_int_equal(ras_notice(lone->ras, lone->now_ns, RAS_NOTICE_OWN_MIN, "x", 1), 0);
	assert_int_equal(lone_sent(lone, silent, MESSAGE_NOTICE), 1);
	lone_destroy(lone);
}

// Regression: a resumed node first heard of the suspicion and refuted it. It was never told that
// it had been declared dead.
static void death_that_was_refuted_before_it_was_heard_of_is_told_once(void **state) {
	struct lone *lone = lone_of(6, 1);
	uint32_t conn = lone_link(lone, 2);
	struct peer_news death = lone_told(lone, 1, RAS_DEAD, ras_incarnation(1, 0));

	(void)state;
	say(lone, 4, TELL, 1);
	assert_int_equal(ras_self_incarnation(lone->ras), ras_incarnation(1, 1));
	assert_int_equal(lone_events(lone, RAS_EVENT_DECLARED_DEAD), 0); // only suspected
	lone_mark(lone);
	for (uint32_t n = 0; n < 3; n++)
		lone_news(lone, conn, &death);
	assert_int_equal(lone_events(lone, RAS_EVENT_DECLARED_DEAD), 1);
	assert_int_equal(lone_event(lone, RAS_EVENT_DECLARED_DEAD)->value, ras_incarnation(1, 1));
	assert_int_equal(ras_self_incarnation(lone->ras), ras_incarnation(1, 1));
	death.incarnation = ras_incarnation(1, 1); // the next incarnation
	lone_news(lone, conn, &death);
	assert_int_equal(lone_events(lone, RAS_EVENT_DECLARED_DEAD), 2);
	lone_destroy(lone);
}

static void death_of_this_start_in_an_answer_to_our_init_is_an_event(void **state) {
	static const struct {
		uint32_t start, refutations;
		enum ras_state state;
		enum ras_cause refusal;
		uint32_t events;
	} rows[] = {
		{2, 0, RAS_DEAD, RAS_CAUSE_NONE, 1},	  {2, 0, RAS_LEFT, RAS_CAUSE_NONE, 1},
		{2, 0, RAS_ALIVE, RAS_CAUSE_NONE, 0},	  {2, 0, RAS_SUSPECT, RAS_CAUSE_NONE, 0},
		{1, 7, RAS_DEAD, RAS_CAUSE_NONE, 0}, // an earlier start that did die
		{2, 0, RAS_DEAD, RAS_CAUSE_DUPLICATE, 1}, {2, 0, RAS_ALIVE, RAS_CAUSE_DUPLICATE, 0},
	};

	(void)state;
	for (size_t n = 0; n < sizeof(rows) / sizeof(rows[0]); n++) {
		struct lone *lone = lone_of(6, 1);
		struct message_init_ack ack;

		lone_pass(lone, 10 * MS);
		ras_supersede_earlier_run(lone->ras, 1); // start 2
		ras_refute_suspicion(lone->ras, ras_incarnation(2, 0));
		lone_mark(lone);
		ack = lone_ack(lone, 2);
		ack.your_state = (uint8_t)rows[n].state;
		ack.refusal = (uint8_t)rows[n].refusal;
		ack.your_incarnation = ras_incarnation(rows[n].start, rows[n].refutations);
		lone_send_ack(lone, lone_opening(lone, 2), &ack);
		assert_int_equal(lone_events(lone, RAS_EVENT_DECLARED_DEAD), rows[n].events);
		assert_int_equal(ras_self_incarnation(lone->ras), ras_incarnation(2, 1));
		lone_destroy(lone);
	}
}

// Regression: a node that refused it because of crossing connects considered it alive from then
// on, and notified nobody.
static void one_that_comes_back_refuted_is_told_that_it_was_dead(void **state) {
	static const enum ras_cause refusals[] = {RAS_CAUSE_NONE, RAS_CAUSE_DUPLICATE};

	(void)state;
	for (size_t n = 0; n < sizeof(refusals) / sizeof(refusals[0]); n++) {
		struct lone *lone = lone_of(6, 1);
		struct peer_news death = lone_told(lone, 4, RAS_DEAD, ras_incarnation(1, 0));
		struct message_init init = lone_init(lone, 4, RAS_USE_NEXT);
		uint32_t conn = lone_link(lone, 2);
		const struct lone_frame *frame;
		struct message_init_ack ack;
		struct wire_reader reader;

		lone_news(lone, conn, &death);
		assert_int_equal(lone_peer(lone, 4).state, RAS_DEAD);
		if (refusals[n] == RAS_CAUSE_DUPLICATE) { // this node is just connecting to it
			uint32_t slot = peers_find(&lone->ras->peers, death.id);

			assert_non_null(link_want(lone->ras, slot, RAS_USE_CHECK));
			lone_pass(lone, 10 * MS);
			assert_int_not_equal(lone_opening(lone, 4), 0);
		}
		init.incarnation = ras_incarnation(1, 1);
		conn = lone_accept(lone);
		lone_send_init(lone, conn, &init);
		frame = lone_latest(lone, conn, MESSAGE_INIT_ACK);
		wire_reader_init(&reader, frame->bytes + 1, frame->size - 1);
		assert_int_equal(message_init_ack_decode(&reader, &ack), 0);
		assert_int_equal(ack.refusal, refusals[n]);
		assert_int_equal(ack.your_state, RAS_DEAD);
		assert_int_equal(ack.your_incarnation, ras_incarnation(1, 0));
		assert_int_equal(lone_peer(lone, 4).state, RAS_ALIVE);
		lone_destroy(lone);
	}
}

static struct message_init init_of(const struct lone *lone, uint32_t conn) {
	const struct lone_frame *frame = lone_latest(lone, conn, MESSAGE_INIT);
	struct wire_reader reader;
	struct message_init init;

	wire_reader_init(&reader, frame->bytes + 1, frame->size - 1);
	assert_int_equal(message_init_decode(&reader, &init), 0);
	return init;
}

// Regression: its refutation reached all members through others before it met any of them. All
// considered it alive by then, and none told it.
static void one_of_whose_return_we_heard_by_others_is_told_that_it_was_dead(void **state) {
	struct lone *lone = lone_of(6, 1);
	struct peer_news death = lone_told(lone, 4, RAS_DEAD, ras_incarnation(1, 3));
	struct peer_news back = lone_told(lone, 4, RAS_ALIVE, ras_incarnation(1, 4));
	uint32_t conn = lone_link(lone, 2);
	struct message_init init;

	(void)state;
	lone_news(lone, conn, &death);
	lone_news(lone, conn, &back);
	assert_int_equal(lone_peer(lone, 4).state, RAS_ALIVE);
	back.incarnation = ras_incarnation(1, 5); // refutation of a suspicion, without a death
	lone_news(lone, conn, &back);
	assert_non_null(link_want(lone->ras, peers_find(&lone->ras->peers, death.id), RAS_USE_CHECK)
	);
	lone_pass(lone, 10 * MS);
	init = init_of(lone, lone_answer(lone, 4));
	assert_int_equal(init.your_state, RAS_DEAD);
	assert_int_equal(init.your_incarnation, ras_incarnation(1, 3));
	lone_destroy(lone);
}

// A death is reported only to the start that died.
static void next_start_is_not_told_of_the_death_of_the_one_before(void **state) {
	struct lone *lone = lone_of(6, 1);
	struct peer_news death = lone_told(lone, 4, RAS_DEAD, ras_incarnation(1, 0));
	struct peer_news back = lone_told(lone, 4, RAS_ALIVE, ras_incarnation(1, 1));
	struct peer_news next = lone_told(lone, 4, RAS_ALIVE, ras_incarnation(2, 0));
	struct ras_peer_info info = lone_info(lone, 4, 2);
	uint32_t conn = lone_link(lone, 2);
	uint64_t incarnation;

	(void)state;
	lone_news(lone, conn, &death);
	lone_news(lone, conn, &back);
	assert_int_equal(ras_record_from_info(lone->interner, &info, &next.record), 0);
	lone_news(lone, conn, &next);
	ras_record_put(lone->interner, next.record);
	assert_int_equal(
		peer_state_to_report(
			peers_entry(&lone->ras->peers, peers_find(&lone->ras->peers, next.id)),
			&incarnation
		),
		RAS_ALIVE
	);
	assert_int_equal(incarnation, ras_incarnation(2, 0));
	lone_destroy(lone);
}

static void pair_way(struct world *world, uint32_t one, uint32_t other, enum world_way way) {
	world_way(world, one, other, way);
	world_way(world, other, one, way);
}

// Regression: a node was cut off from one of two others, and later silent to the second one for
// six seconds. It was declared dead because of the first one's silence.
static void silence_that_kills_begins_with_the_last_word_that_a_witness_heard(void **state) {
	static const struct {
		uint64_t silent_ns;
		uint32_t deaths;
	} rows[] = {{6500 * MS, 0}, {11 * SEC, 1}};

	(void)state;
	for (size_t n = 0; n < sizeof(rows) / sizeof(rows[0]); n++) {
		struct world *world = world_of(3);

		world_pass(world, 10 * SEC);
		pair_way(world, 0, 1, WORLD_STALLED);
		world_pass(world, 2200 * MS);
		pair_way(world, 1, 2, WORLD_STALLED);
		world_pass(world, rows[n].silent_ns);
		pair_way(world, 1, 2, WORLD_OPEN);
		world_pass(world, SEC);
		for (uint32_t node = 0; node < 3; node += 2)
			assert_int_equal(world_events(world, node, RAS_EVENT_DEAD), rows[n].deaths);
		world_destroy(world);
	}
}

UNIT_GROUP(ras_look) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(silence_that_kills_begins_with_the_last_word_that_a_witness_heard),
		cmocka_unit_test(look_at_another_run_of_that_number_is_not_answered_by_the_one_heard
		),
		cmocka_unit_test(refusal_of_a_newcomer_is_told_as_a_silence),
		cmocka_unit_test(refusal_of_just_now_is_an_answer),
		cmocka_unit_test(refusal_of_a_while_ago_is_looked_at_anew),
		cmocka_unit_test(second_look_that_is_refused_twice_as_well_says_gone),
		cmocka_unit_test(proof_ends_a_suspicion_and_a_promised_look_at_once),
		cmocka_unit_test(death_by_an_observer_we_do_not_know_is_not_sole),
		cmocka_unit_test(one_pause_is_told_once_however_many_words_follow),
		cmocka_unit_test(leg_of_a_running_collective_is_purged_at_the_warning),
		cmocka_unit_test(delayed_link_is_left_out_of_floods_until_it_speaks),
		cmocka_unit_test(death_that_was_refuted_before_it_was_heard_of_is_told_once),
		cmocka_unit_test(death_of_this_start_in_an_answer_to_our_init_is_an_event),
		cmocka_unit_test(one_that_comes_back_refuted_is_told_that_it_was_dead),
		cmocka_unit_test(one_of_whose_return_we_heard_by_others_is_told_that_it_was_dead),
		cmocka_unit_test(next_start_is_not_told_of_the_death_of_the_one_before),
	};

	return cmocka_run_group_tests_name("ras_look", tests, NULL, NULL);
}
