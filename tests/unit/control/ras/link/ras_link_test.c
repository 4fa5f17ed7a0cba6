// SPDX-License-Identifier: BSD-3-Clause
#include "control/ras/ras_lone.h"
#include "control/ras/ras_world.h"

#include <support/cmocka.h>

#include <errno.h>

#define SEC RAS_NS_PER_SEC
#define MS RAS_NS_PER_MS

static void queue_something(struct lone *lone, uint32_t peer, uint8_t mark, size_t size) {
	static uint8_t frame[RAS_FRAME_MAX];

	frame[0] = 200;
	frame[1] = mark;
	link_send(lone->ras, lone_find_link(lone, peer), frame, size);
}

// Rows 1 and 2: queued frames are sent completely and in order on the next connection; a beat is
// not kept.
static void reconnect_keeps_the_queue_and_neither_beats_nor_handshakes(void **state) {
	struct lone *lone = lone_of(4, 1);
	uint32_t conn = lone_link(lone, 2);

	(void)state;
	lone->full = true;
	for (uint8_t n = 0; n < 3; n++)
		queue_something(lone, 2, n, 100);
	lone_pass(lone, 3 * SEC); // beats are due
	lone_end(lone, conn, RAS_CAUSE_RESET);
	assert_int_equal(lone_find_link(lone, 2)->queue_bytes, 300);
	lone->full = false;
	lone_mark(lone);
	conn = lone_answer(lone, 2);
	assert_int_equal(lone_find_link(lone, 2)->queue_bytes, 0);
	assert_int_equal(lone_sent(lone, conn, MESSAGE_INIT), 1);
	assert_int_equal(lone_sent(lone, conn, MESSAGE_BEAT), 0);
	for (uint32_t n = 0, mark = 0; n < lone->frame_count; n++) {
		if (lone->frames[n].bytes[0] == 200) {
			assert_int_equal(lone->frames[n].bytes[1], mark++);
			assert_int_equal(lone->frames[n].size, 100);
		}
	}
	lone_destroy(lone);
}

// Row 1: a cut at any frame boundary neither loses nor duplicates frames in the link itself.
static void connection_lost_at_any_frame_loses_only_what_was_taken(void **state) {
	(void)state;
	for (uint32_t cut = 0; cut <= 5; cut++) {
		struct lone *lone = lone_of(4, 1);
		uint32_t conn = lone_link(lone, 2);
		uint32_t taken = 0;

		for (uint8_t n = 0; n < 5; n++) {
			lone->full = n >= cut;
			queue_something(lone, 2, n, 50);
		}
		for (uint32_t n = 0; n < lone->frame_count; n++)
			taken += lone->frames[n].bytes[0] == 200;
		assert_int_equal(taken, cut);
		lone_end(lone, conn, RAS_CAUSE_TIMEOUT);
		lone->full = false;
		lone_pass(lone, 2 * SEC);
		lone_mark(lone);
		conn = lone_link(lone, 2);
		assert_int_equal(lone_sent(lone, conn, 200), 5 - cut);
		lone_destroy(lone);
	}
}

static void queue_is_bounded_and_counts_what_it_drops(void **state) {
	struct lone *lone = lone_of(4, 1);
	uint32_t fits = LINK_QUEUE_BYTES_MAX / RAS_FRAME_MAX;

	(void)state;
	lone_link(lone, 2);
	lone->full = true;
	for (uint32_t n = 0; n < fits + 3; n++)
		queue_something(lone, 2, 0, RAS_FRAME_MAX);
	assert_int_equal(lone_find_link(lone, 2)->queue_bytes, fits * RAS_FRAME_MAX);
	assert_int_equal(ras_counters(lone->ras)->queue_dropped, 3);
	lone_destroy(lone);
}

// Rows 3 and 4.
static void silence_counts_on_over_connects_that_fail(void **state) {
	struct lone *lone = lone_of(4, 1);
	uint32_t conn = lone_link(lone, 2);
	uint64_t heard_ns = lone_find_link(lone, 2)->heard_ns;

	(void)state;
	lone_end(lone, conn, RAS_CAUSE_TIMEOUT);
	for (uint32_t n = 0; n < 6; n++) {
		uint32_t opening = lone_opening(lone, 2);

		lone_pass(lone, SEC / 2);
		if (opening != 0)
			lone_end(lone, opening, RAS_CAUSE_UNREACHABLE);
		assert_int_equal(lone_find_link(lone, 2)->heard_ns, heard_ns);
	}
	lone_pass(lone, SEC);
	assert_int_equal(lone_peer(lone, 2).state, RAS_SUSPECT);
	assert_int_equal(lone_events(lone, RAS_EVENT_LINK_RECOVERED), 0);
	lone_answer(lone, 2);
	assert_int_equal(lone_peer(lone, 2).state, RAS_ALIVE);
	assert_int_equal(lone_events(lone, RAS_EVENT_LINK_UP), 2);
	assert_in_range(lone_event(lone, RAS_EVENT_LINK_UP)->value, 3 * SEC, 5 * SEC);
	lone_destroy(lone);
}

static void word_of_an_old_connection_is_nobodys(void **state) {
	struct lone *lone = lone_of(4, 1);
	uint32_t old = lone_link(lone, 2);
	uint64_t received;

	(void)state;
	lone_end(lone, old, RAS_CAUSE_RESET);
	lone_answer(lone, 2);
	received = ras_counters(lone->ras)->frames_received;
	ras_conn_frame(lone->ras, lone->now_ns, old, (uint8_t[]){MESSAGE_BEAT}, 1);
	ras_conn_ended(lone->ras, lone->now_ns, old, RAS_CAUSE_RESET);
	ras_conn_writable(lone->ras, lone->now_ns, old);
	ras_conn_opened(lone->ras, lone->now_ns, old);
	assert_int_equal(ras_counters(lone->ras)->frames_received, received);
	assert_true(link_is_ready(lone_find_link(lone, 2)));
	lone_destroy(lone);
}

// Row 10.
static void queue_that_does_not_move_ends_its_connection_and_stays(void **state) {
	struct lone *lone = lone_of(4, 1);
	uint32_t conn = lone_link(lone, 2);

	(void)state;
	lone->full = true;
	queue_something(lone, 2, 7, 60);
	lone_pass_beating(lone, 19 * SEC, conn);
	assert_int_equal(lone_events(lone, RAS_EVENT_LINK_STUCK), 0);
	lone_pass_beating(lone, 2 * SEC, conn);
	assert_true(lone_is_closed(lone, conn));
	assert_in_range(lone_event(lone, RAS_EVENT_LINK_STUCK)->value, 20 * SEC, 21 * SEC);
	assert_int_equal(lone_find_link(lone, 2)->queue_head->size, 60);
	lone_pass(lone, 2 * SEC);
	lone_mark(lone);
	conn = lone_answer(lone, 2); // accepts no data yet: its time begins now
	lone_pass_beating(lone, 2 * SEC, conn);
	assert_int_equal(lone_events(lone, RAS_EVENT_LINK_STUCK), 0);
	lone->full = false;
	ras_conn_writable(lone->ras, lone->now_ns, conn);
	assert_int_equal(lone_sent(lone, conn, 200), 1);
	lone_destroy(lone);
}

// Two connects that cross: both ends keep the one opened by the lower node in ring order.
static void crossing_connects_leave_the_same_one_at_both_ends(void **state) {
	struct lone *lower = lone_of(2, 0);
	struct lone *higher = lone_of(2, 1);
	struct message_init init = lone_init(lower, 1, RAS_USE_NEXT);
	uint32_t conn;
	uint32_t own;

	(void)state;
	lone_pass(lower, 100 * MS);
	own = lone_opening(lower, 1);
	assert_int_not_equal(own, 0);
	conn = lone_accept(lower);
	lone_send_init(lower, conn, &init);
	assert_int_equal(lone_refusal(lower, conn), RAS_CAUSE_DUPLICATE);
	assert_false(lone_is_closed(lower, own));

	lone_pass(higher, 100 * MS);
	own = lone_opening(higher, 0);
	assert_int_not_equal(own, 0);
	conn = lone_connect(higher, 0, RAS_USE_NEXT);
	assert_true(lone_is_closed(higher, own));
	assert_false(lone_is_closed(higher, conn));
	lone_destroy(lower);
	lone_destroy(higher);
}

static void pair_that_connects_at_once_ends_with_one_connection(void **state) {
	struct world *world = world_of(2);

	(void)state;
	for (uint32_t n = 0; n < 20; n++) {
		world_reset(world, 0, 1); // both sides reconnect at the same time
		world_pass(world, SEC);
		assert_int_equal(world_open_conns(world, 0), 1);
		assert_int_equal(world_open_conns(world, 1), 1);
		assert_true(world_is_linked(world, 0, 1));
	}
	assert_int_equal(world_events_all(world, RAS_EVENT_SUSPECT), 0);
	world_destroy(world);
}

// Return how long a member that is not new waits before it connects to a new neighbour.
static uint64_t wait_for_connect(uint32_t self, uint32_t neighbour) {
	struct lone *lone =
		lone_create(&(struct lone_setup){.count = 4, .self = self, .joining = true});
	struct peer_news news = lone_told(lone, neighbour, RAS_ALIVE, ras_incarnation(1, 0));
	uint64_t waited = 0;
	uint32_t conn;

	lone_pass(lone, 600 * MS);
	conn = lone_answer(lone, 3);
	lone_beat(lone, conn, 0, 0); // the table is complete, and this node is its only member
	lone_pass(lone, 2 * SEC);
	conn = lone_connect(lone, 3, RAS_USE_NEXT);
	// The neighbour was also tried as a seed; that attempt times out.
	if (lone_opening(lone, neighbour) != 0)
		lone_end(lone, lone_opening(lone, neighbour), RAS_CAUSE_TIMEOUT);
	news.record = lone->records[neighbour];
	lone_news(lone, conn, &news);
	while (waited < 10 * SEC && lone_opening(lone, neighbour) == 0) {
		lone_pass_beating(lone, 100 * MS, conn);
		waited += 100 * MS;
	}
	lone_destroy(lone);
	return waited;
}

// Row 7: connections may be possible in one direction only.
static void lower_side_connects_at_once_and_higher_side_after_its_wait(void **state) {
	uint64_t wait_ns = ras_profile_fast.higher_wait_ns;

	(void)state;
	assert_in_range(wait_for_connect(0, 1), 0, 200 * MS);
	assert_in_range(wait_for_connect(1, 0), wait_ns, wait_ns + 300 * MS);
}

// Row 9.
static void link_that_nobody_needs_is_retired_and_not_dialled_again(void **state) {
	struct lone *lone = lone_of(9, 1);
	uint32_t conn = lone_connect(lone, 6, RAS_USE_CHECK);

	(void)state;
	lone_pass_beating(lone, SEC, conn);
	lone_beat(lone, conn, 9, 0); // the peer does not need the link any more
	lone_pass(lone, lone->profile.idle_ns - SEC);
	if (lone_find_link(lone, 6)->mine == 0) {
		assert_false(lone_is_closed(lone, conn));
		lone_pass(lone, 2 * SEC);
		assert_true(lone_is_closed(lone, conn));
		assert_int_equal(ras_counters(lone->ras)->links_retired, 1);
		assert_null(lone_find_link(lone, 6));
		lone_pass(lone, SEC);
		assert_int_equal(lone_opening(lone, 6), 0);
	}
	lone_destroy(lone);
}

// Regression: a node that had looked and then needed a long link was suspected. It had promised a
// beat for the next second. The beat came at the long link's period, up to six seconds later.
static void promise_of_a_beat_holds_when_a_look_becomes_a_long_link(void **state) {
	(void)state;
	for (uint64_t seed = 1; seed <= 16; seed++) {
		struct lone *lone = lone_create(&(struct lone_setup
		){.count = 9, .self = 1, .random_seed = seed});
		uint32_t conn = lone_connect(lone, 6, RAS_USE_CHECK);

		lone_beat(lone, conn, 1, RAS_USE_LEVEL(2));
		lone_mark(lone);
		lone_pass(lone, lone->profile.beat_ns + 100 * MS);
		assert_in_range(lone_sent(lone, conn, MESSAGE_BEAT), 1, 2);
		lone_destroy(lone);
	}
}

// Regression: the mark of a look remained on a link that was up. Count connections that the
// instance has opened to this peer.
static uint32_t dials(const struct lone *lone, uint32_t peer) {
	struct sock_addr address = lone_address(peer);
	uint32_t count = 0;

	for (uint32_t n = 0; n < lone->conn_count; n++)
		count += lone->conns[n].outgoing && sock_addr_equal(&lone->conns[n].to, &address);
	return count;
}

// Regression: the refused link was dialled again without a use, and accepted.
static void refused_long_link_is_not_dialled_again_for_nothing(void **state) {
	struct lone *lone = lone_of(9, 1);
	struct message_init_ack ack = lone_ack(lone, 3);

	(void)state;
	lone_pass(lone, 10 * MS);
	assert_int_equal(lone_find_link(lone, 3)->mine, RAS_USE_LEVEL(1));
	ack.refusal = RAS_CAUSE_DEGREE;
	lone_send_ack(lone, lone_opening(lone, 3), &ack);
	assert_int_equal(lone_find_link(lone, 3)->mine, 0);
	// Before a fallback is needed, which this link could serve as.
	lone_pass(lone, lone->profile.delayed_ns - 100 * MS);
	assert_int_equal(dials(lone, 3), 1);
	lone_destroy(lone);
}

// Regression: its link remained and was dialled in addition to the search, until its tombstone
// expired.
static void one_who_left_and_called_again_is_only_looked_for_when_it_hangs_up(void **state) {
	struct lone *lone = lone_of(9, 1);
	struct peer_news left = lone_told(lone, 6, RAS_LEFT, ras_incarnation(1, 0));
	uint32_t conn;

	(void)state;
	lone_pass(lone, 10 * MS);
	conn = lone_link(lone, 2);
	lone_news(lone, conn, &left);
	assert_int_equal(lone_peer(lone, 6).state, RAS_LEFT);
	lone_end(lone, lone_connect(lone, 6, RAS_USE_LEVEL(2)), RAS_CAUSE_RESET);
	lone_pass(lone, 60 * SEC);
	assert_in_range(dials(lone, 6), 8, 24); // twice a second, by all eight
	if (lone_opening(lone, 6) != 0)
		lone_end(lone, lone_opening(lone, 6), RAS_CAUSE_REFUSED);
	assert_null(lone_find_link(lone, 6));
	lone_destroy(lone);
}

static void look_at_a_linked_peer_does_not_keep_its_link(void **state) {
	struct lone *lone = lone_of(9, 1);

	(void)state;
	lone_connect(lone, 6, RAS_USE_LEVEL(2));
	link_want(lone->ras, lone_find_link(lone, 6)->slot, RAS_USE_CHECK);
	assert_int_equal(lone_find_link(lone, 6)->mine & RAS_USE_CHECK, 0);
	lone_destroy(lone);
}

// Regression: the closed connection was made ready, and the next frame had no link.
static void newer_start_in_an_acknowledgement_ends_the_old_link(void **state) {
	struct lone *lone = lone_of(4, 1);
	struct ras_peer_info info = lone_info(lone, 2, 2);
	struct message_init_ack ack = lone_ack(lone, 2);
	struct ras_record *newer;
	uint32_t conn;

	(void)state;
	lone_pass(lone, 100 * MS);
	conn = lone_opening(lone, 2);
	assert_int_equal(ras_record_from_info(lone->interner, &info, &newer), 0);
	ack.record = newer->encoding;
	ack.record_size = newer->size;
	ack.incarnation = ras_incarnation(2, 0);
	lone_send_ack(lone, conn, &ack);
	assert_true(lone_is_closed(lone, conn));
	assert_int_equal(lone_peer(lone, 2).incarnation, ras_incarnation(2, 0));
	lone_pass(lone, 100 * MS);
	assert_int_not_equal(lone_opening(lone, 2), 0); // the ring needs a link to the new start
	ras_record_put(lone->interner, newer);
	lone_destroy(lone);
}

static void somebody_else_at_the_address_is_no_refusal(void **state) {
	struct lone *lone = lone_of(4, 1);
	struct message_init_ack ack = lone_ack(lone, 3);
	uint32_t conn;

	(void)state;
	lone_pass(lone, 100 * MS);
	conn = lone_opening(lone, 2);
	lone_send_ack(lone, conn, &ack);
	assert_true(lone_is_closed(lone, conn));
	assert_int_equal(lone_find_link(lone, 2)->refused_ns, RAS_NEVER);
	lone_destroy(lone);
}

// Regression: any refusal counted as a message of the searched member, and kept a dead member
// alive.
static void refusal_by_somebody_else_at_the_address_is_no_proof_of_life(void **state) {
	static const enum ras_cause refusals[] = {
		RAS_CAUSE_DEGREE, RAS_CAUSE_DUPLICATE, RAS_CAUSE_BUSY};

	(void)state;
	for (uint32_t n = 0; n < sizeof(refusals) / sizeof(refusals[0]); n++) {
		struct lone *lone = lone_of(4, 1);
		struct message_init_ack ack = lone_ack(lone, 3);

		lone_pass(lone, 100 * MS);
		ack.refusal = (uint8_t)refusals[n];
		lone_send_ack(lone, lone_opening(lone, 2), &ack);
		assert_true(lone_find_link(lone, 2)->watched);
		assert_int_equal(lone_find_link(lone, 2)->refused_ns, RAS_NEVER);
		lone_destroy(lone);
	}
}

// Regression: the link remained as long as the peer lived, and its queue was never sent.
static void link_that_nobody_needs_is_retired_with_what_waits_on_it(void **state) {
	struct lone *lone = lone_of(9, 1);
	uint32_t conn = lone_connect(lone, 6, RAS_USE_LEVEL(2));

	(void)state;
	assert_int_equal(lone_find_link(lone, 6)->mine, 0);
	lone->full = true;
	queue_something(lone, 6, 1, 100);
	lone->full = false;
	lone_end(lone, conn, RAS_CAUSE_PROTOCOL);
	assert_non_null(lone_find_link(lone, 6)->queue_head);
	lone_pass(lone, lone->profile.idle_ns - SEC);
	assert_non_null(lone_find_link(lone, 6));
	lone_pass(lone, 2 * SEC);
	assert_null(lone_find_link(lone, 6));
	lone_destroy(lone);
}

// Row 12: the cause that follows from an errno.
static void errno_says_what_it_is_evidence_of(void **state) {
	static const struct {
		int error;
		enum ras_cause cause;
	} rows[] = {
		{0, RAS_CAUSE_RESET},
		{ECONNREFUSED, RAS_CAUSE_REFUSED},
		{ECONNRESET, RAS_CAUSE_RESET},
		{EPIPE, RAS_CAUSE_RESET},
		{ETIMEDOUT, RAS_CAUSE_TIMEOUT},
		{EHOSTUNREACH, RAS_CAUSE_UNREACHABLE},
		{ENETUNREACH, RAS_CAUSE_UNREACHABLE},
		{EKEYREJECTED, RAS_CAUSE_PROOF},
		{EMFILE, RAS_CAUSE_OWN_FAULT},
		{ENFILE, RAS_CAUSE_OWN_FAULT},
		{ENOMEM, RAS_CAUSE_OWN_FAULT},
		{EADDRNOTAVAIL, RAS_CAUSE_OWN_FAULT},
		{ENETDOWN, RAS_CAUSE_OWN_FAULT},
		{EILSEQ, RAS_CAUSE_OWN_FAULT}, // no meaning is known
	};

	(void)state;
	for (size_t n = 0; n < sizeof(rows) / sizeof(rows[0]); n++) {
		assert_int_equal(ras_cause_of_errno(rows[n].error), rows[n].cause);
		assert_int_equal(ras_cause_of_errno(-rows[n].error), rows[n].cause);
	}
}

// Row 12: only a refusal or a reset is evidence about the process.
static void only_a_refused_connect_is_a_first_word_of_gone(void **state) {
	static const enum ras_cause causes[] = {
		RAS_CAUSE_UNREACHABLE, RAS_CAUSE_TIMEOUT, RAS_CAUSE_OWN_FAULT,
		RAS_CAUSE_PROOF,       RAS_CAUSE_RESET,	  RAS_CAUSE_VERSION,
	};

	(void)state;
	for (size_t n = 0; n < sizeof(causes) / sizeof(causes[0]); n++) {
		struct lone *lone = lone_of(4, 1);

		lone_pass(lone, 100 * MS);
		lone_end(lone, lone_opening(lone, 2), causes[n]);
		assert_int_equal(lone_find_link(lone, 2)->refused_ns, RAS_NEVER);
		assert_int_not_equal(lone_find_link(lone, 2)->retry_ns, RAS_NEVER);
		lone_destroy(lone);
	}
}

// Row 15: a round trip is measured with one clock, however long the frame waited at the peer.
static void travel_time_is_a_round_trip_on_one_clock(void **state) {
	struct lone *lone = lone_of(4, 1);
	uint32_t conn = lone_link(lone, 2);
	struct message_beat beat = {.sequence = 2, .period = 1, .echo_delay_us = 30000};
	uint8_t bytes[64];
	struct wire_writer writer;

	(void)state;
	lone_pass_beating(lone, SEC + 500 * MS, conn);
	ras_tick(lone->ras, lone->now_ns);
	link_beat(lone->ras, lone_find_link(lone, 2), false);
	lone_pass(lone, 40 * MS);
	beat.echo = lone_find_link(lone, 2)->sent_sequence;
	wire_writer_init(&writer, bytes, sizeof(bytes));
	message_beat_encode(&beat, &writer);
	lone_frame(lone, conn, bytes, wire_writer_used(&writer));
	assert_int_equal(lone_find_link(lone, 2)->rtt.count, 1);
	assert_int_equal(lone_find_link(lone, 2)->rtt.min_ns, 10 * MS);
	lone_destroy(lone);
}

#define TRIES 9

// Record the times at which the instance dials a peer that does not answer.
static void dial_times(uint64_t random_seed, uint32_t peer, uint64_t times[TRIES]) {
	// No member becomes suspect meanwhile.
	struct ras_profile profile = ras_profile_fast;
	struct lone *lone;
	uint32_t conn;

	profile.suspect_ns = 3600 * SEC;
	profile.delayed_ns = 3600 * SEC;
	profile.dead_ns = 3600 * SEC;
	lone = lone_create(&(struct lone_setup
	){.count = 9, .self = 1, .profile = &profile, .random_seed = random_seed});
	for (uint32_t n = 0; n < TRIES; n++) {
		while ((conn = lone_opening(lone, peer)) == 0)
			lone_pass(lone, 5 * MS);
		times[n] = lone->now_ns;
		lone_end(lone, conn, RAS_CAUSE_UNREACHABLE);
	}
	lone_destroy(lone);
}

// Row 12: 3 is a long link, retried with a backoff; 2 is a ring neighbour, retried at a constant
// interval.
static void retries_back_off_within_their_bound_and_not_in_step(void **state) {
	static const struct {
		uint32_t peer;
		uint64_t most_ns;
	} rows[] = {{2, SEC}, {3, 30 * SEC}};

	(void)state;
	for (size_t row = 0; row < sizeof(rows) / sizeof(rows[0]); row++) {
		uint64_t times[2][TRIES];
		uint32_t together = 0;

		dial_times(11, rows[row].peer, times[0]);
		dial_times(12, rows[row].peer, times[1]);
		for (uint32_t n = 1; n < TRIES; n++) {
			uint64_t wait = SEC << (n - 1) < rows[row].most_ns ? SEC << (n - 1)
									   : rows[row].most_ns;

			for (uint32_t m = 0; m < 2; m++)
				assert_in_range(
					times[m][n] - times[m][n - 1], wait - wait / 4,
					wait + 10 * MS
				);
			together += times[0][n] == times[1][n];
		}
		assert_in_range(together, 0, 1);
	}
}

// Row 11: each stage has a deadline, and its timeout has a cause.
static void handshake_that_stalls_ends_by_its_deadline(void **state) {
	struct lone *lone = lone_of(4, 1);
	uint32_t incoming = lone_accept(lone);
	uint32_t outgoing;

	(void)state;
	lone_pass(lone, 100 * MS);
	outgoing = lone_opening(lone, 2);
	lone_pass(lone, lone->profile.connect_ns - 200 * MS);
	assert_false(lone_is_closed(lone, outgoing));
	lone_pass(lone, 200 * MS);
	assert_true(lone_is_closed(lone, outgoing));
	assert_true(lone_is_closed(lone, incoming));
	lone_destroy(lone);
}

// Regression: a seed kept memory for each connection of a join storm for ever.
static void connections_that_ended_hold_no_memory_and_their_handles_stay_theirs(void **state) {
	struct lone *lone = lone_create(&(struct lone_setup){.count = 2, .self = 0});
	struct sock_addr from = lone_address(9);
	uint32_t handles[64];
	size_t before;

	(void)state;
	lone_pass(lone, 10 * MS);
	before = ras_memory_used(lone->ras);
	for (uint32_t round = 0; round < 2; round++) {
		for (uint32_t n = 0; n < 32; n++) {
			uint32_t *handle = &handles[32 * round + n];

			assert_int_equal(
				ras_conn_accepted(lone->ras, lone->now_ns, &from, handle), 0
			);
		}
		for (uint32_t n = 0; n < 32; n++)
			ras_conn_ended(
				lone->ras, lone->now_ns, handles[32 * round + n], RAS_CAUSE_RESET
			);
	}
	// The table of slots remains: one pointer each.
	assert_in_range(ras_memory_used(lone->ras), before, before + 64 * sizeof(void *));
	for (uint32_t a = 0; a < 64; a++) {
		assert_null(conn_find(lone->ras, handles[a]));
		for (uint32_t b = 0; b < a; b++)
			assert_int_not_equal(handles[a], handles[b]);
	}
	lone_destroy(lone);
}

static void more_connections_than_allowed_are_refused(void **state) {
	struct lone *lone =
		lone_create(&(struct lone_setup){.count = 2, .self = 0, .conns_max = 4});
	struct sock_addr from = lone_address(9);
	uint32_t conn = 77;
	uint32_t taken = 0;

	(void)state;
	while (ras_conn_accepted(lone->ras, lone->now_ns, &from, &conn) == 0)
		taken++;
	assert_in_range(taken, 2, 4);
	assert_int_equal(ras_counters(lone->ras)->conns_refused, 1);
	lone_destroy(lone);
}

// Regression: after a machine's pause the peer's kernel retransmitted only seconds later. The
// resumed node took that for silence.
static void another_connection_is_tried_if_the_one_of_before_a_long_pause_stays_silent(void **state
) {
	static const struct {
		uint64_t pause_ns;
		bool tried;
	} rows[] = {{0, false}, {2 * SEC, false}, {14 * SEC, true}};

	(void)state;
	for (size_t n = 0; n < sizeof(rows) / sizeof(rows[0]); n++) {
		struct lone *lone = lone_of(6, 1);
		uint32_t conn = lone_link(lone, 2);

		lone_beat(lone, conn, 1, RAS_USE_NEXT);
		lone_pass(lone, 100 * MS);
		lone->now_ns += rows[n].pause_ns;
		ras_tick(lone->ras, lone->now_ns);
		lone_pass(lone, 4 * SEC);
		assert_false(lone_is_closed(lone, conn));
		assert_int_equal(lone_opening(lone, 2) != 0, rows[n].tried);
		// A firewall that passes only the first connection is no evidence.
		if (rows[n].tried)
			lone_end(lone, lone_opening(lone, 2), RAS_CAUSE_REFUSED);
		lone_pass(lone, 100 * MS);
		assert_false(lone_find_link(lone, 2)->gone);
		assert_int_equal(lone_find_link(lone, 2)->refused_ns, RAS_NEVER);
		lone_destroy(lone);
	}
}

// Regression: a timer in the past waited for the ended connection, in an endless loop.
static void connection_that_ends_while_another_one_is_tried_is_not_tried_again_at_once(void **state
) {
	struct lone *lone = lone_of(6, 1);
	uint32_t conn = lone_link(lone, 2);

	(void)state;
	lone_beat(lone, conn, 1, RAS_USE_NEXT);
	lone_pass(lone, 100 * MS);
	lone->now_ns += 14 * SEC;
	ras_tick(lone->ras, lone->now_ns);
	lone_pass(lone, 4 * SEC);
	assert_int_not_equal(lone_opening(lone, 2), 0);
	lone_end(lone, conn, RAS_CAUSE_PROTOCOL);
	lone_pass(lone, 20 * SEC);
	assert_int_equal(lone_find_link(lone, 2)->used, true);
	lone_destroy(lone);
}

// Counting losses needs segments in both directions, on an existing link and no other.
static void link_is_asked_by_a_beat_that_asks_for_one(void **state) {
	struct lone *lone = lone_of(4, 1);
	uint32_t conn = lone_link(lone, 2);
	const struct lone_frame *frame;

	(void)state;
	lone_mark(lone);
	assert_int_equal(ras_link_ping(lone->ras, lone->now_ns, lone_peer(lone, 2).record->id), 0);
	assert_int_equal(lone_sent(lone, conn, MESSAGE_BEAT), 1);
	frame = lone_latest(lone, conn, MESSAGE_BEAT);
	assert_int_equal(frame->bytes[frame->size - 1], MESSAGE_BEAT_PING);
	lone_end(lone, conn, RAS_CAUSE_RESET);
	assert_int_equal(
		ras_link_ping(lone->ras, lone->now_ns, lone_peer(lone, 2).record->id), -ENOENT
	);
	assert_int_equal(ras_link_ping(lone->ras, lone->now_ns, 99), -ENOENT);
	lone_destroy(lone);
}

UNIT_GROUP(ras_link) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			connection_that_ends_while_another_one_is_tried_is_not_tried_again_at_once
		),
		cmocka_unit_test(
			another_connection_is_tried_if_the_one_of_before_a_long_pause_stays_silent
		),
		cmocka_unit_test(errno_says_what_it_is_evidence_of),
		cmocka_unit_test(only_a_refused_connect_is_a_first_word_of_gone),
		cmocka_unit_test(retries_back_off_within_their_bound_and_not_in_step),
		cmocka_unit_test(handshake_that_stalls_ends_by_its_deadline),
		cmocka_unit_test(connections_that_ended_hold_no_memory_and_their_handles_stay_theirs
		),
		cmocka_unit_test(more_connections_than_allowed_are_refused),
		cmocka_unit_test(queue_is_bounded_and_counts_what_it_drops),
		cmocka_unit_test(word_of_an_old_connection_is_nobodys),
		cmocka_unit_test(newer_start_in_an_acknowledgement_ends_the_old_link),
		cmocka_unit_test(somebody_else_at_the_address_is_no_refusal),
		cmocka_unit_test(refusal_by_somebody_else_at_the_address_is_no_proof_of_life),
		cmocka_unit_test(link_that_nobody_needs_is_retired_with_what_waits_on_it),
		cmocka_unit_test(reconnect_keeps_the_queue_and_neither_beats_nor_handshakes),
		cmocka_unit_test(connection_lost_at_any_frame_loses_only_what_was_taken),
		cmocka_unit_test(silence_counts_on_over_connects_that_fail),
		cmocka_unit_test(queue_that_does_not_move_ends_its_connection_and_stays),
		cmocka_unit_test(crossing_connects_leave_the_same_one_at_both_ends),
		cmocka_unit_test(pair_that_connects_at_once_ends_with_one_connection),
		cmocka_unit_test(lower_side_connects_at_once_and_higher_side_after_its_wait),
		cmocka_unit_test(link_that_nobody_needs_is_retired_and_not_dialled_again),
		cmocka_unit_test(promise_of_a_beat_holds_when_a_look_becomes_a_long_link),
		cmocka_unit_test(refused_long_link_is_not_dialled_again_for_nothing),
		cmocka_unit_test(one_who_left_and_called_again_is_only_looked_for_when_it_hangs_up),
		cmocka_unit_test(look_at_a_linked_peer_does_not_keep_its_link),
		cmocka_unit_test(link_is_asked_by_a_beat_that_asks_for_one),
		cmocka_unit_test(travel_time_is_a_round_trip_on_one_clock),
	};

	return cmocka_run_group_tests_name("ras_link", tests, NULL, NULL);
}
