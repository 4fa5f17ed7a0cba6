// SPDX-License-Identifier: BSD-3-Clause
// Who may declare a death by silence when much is silent at once.
#include "ras_lone.h"
#include "ras_world.h"

#include <support/cmocka.h>

#include <errno.h>
#include <stdio.h>

#define SEC RAS_NS_PER_SEC
#define MS RAS_NS_PER_MS

static void cut_off(struct world *world, uint32_t node, enum world_way way) {
	for (uint32_t n = 0; n < world->count; n++) {
		world_way(world, node, n, way);
		world_way(world, n, node, way);
	}
}

static uint32_t deaths_by(const struct world *world, uint32_t node) {
	return (uint32_t)ras_counters(world->nodes[node].ras)->deaths_declared;
}

// Found: whoever was cut off from so few that all were its neighbours held itself for the only
// one left to look, and declared them all dead.
static void node_cut_off_from_all_others_declares_nobody_dead(void **state) {
	static const uint32_t counts[] = {3, 4, 6, 9};

	(void)state;
	for (size_t n = 0; n < sizeof(counts) / sizeof(counts[0]); n++) {
		uint32_t count = counts[n];
		struct world *world = world_of(count);

		cut_off(world, 0, WORLD_STALLED);
		world_pass(world, 100 * SEC); // the brake's time and more
		assert_int_equal(deaths_by(world, 0), 0);
		assert_int_equal(world_view(world, 0).unreachable, count - 1);
		// With two others each of them has the other to confirm.
		for (uint32_t m = 1; m < count; m++)
			assert_int_equal(world_state(world, m, 0), RAS_DEAD);
		cut_off(world, 0, WORLD_OPEN);
		world_pass(world, 10 * SEC);
		assert_true(world_agrees(world));
		assert_int_equal(world_view(world, 0).unreachable, 0);
		world_destroy(world);
	}
}

// Nobody is left to confirm: it is shown, and never decided.
static void last_of_three_holds_both_others_as_unreachable(void **state) {
	struct world *world = world_of(3);

	(void)state;
	world_off(world, 1);
	world_off(world, 2);
	world_pass(world, 12 * SEC);
	assert_int_equal(world_view(world, 0).unreachable, 2);
	world_pass(world, 100 * SEC);
	assert_int_equal(world_view(world, 0).unreachable, 2);
	assert_int_equal(world_events_all(world, RAS_EVENT_DEAD), 0);
	world_destroy(world);
}

// It cannot tell them from those behind a firewall of its own.
static void last_one_holds_those_that_refuse_it_as_unreachable(void **state) {
	static const uint32_t counts[] = {3, 4, 9};

	(void)state;
	for (size_t n = 0; n < sizeof(counts) / sizeof(counts[0]); n++) {
		struct world *world = world_of(counts[n]);

		for (uint32_t m = 1; m < counts[n]; m++)
			world_kill(world, m);
		world_pass(world, 200 * SEC);
		assert_true(world_view(world, 0).unreachable > 0);
		assert_int_equal(world_view(world, 0).dead, 0);
		assert_int_equal(deaths_by(world, 0), 0);
		world_destroy(world);
	}
}

// Of two it is declared, and shown to be by one alone.
static void one_of_two_that_refuses_is_declared_by_the_other_alone(void **state) {
	struct world *world = world_of(2);
	struct ras_peer peer;

	(void)state;
	world_kill(world, 1);
	world_pass(world, 2 * SEC);
	assert_int_equal(ras_peer_find(world->nodes[0].ras, world_id(world, 1), &peer), 0);
	assert_int_equal(peer.state, RAS_DEAD);
	assert_int_equal(peer.cause, RAS_CAUSE_GONE);
	assert_true(peer.sole);
	world_destroy(world);
}

// Found: each half was held for gone by the other within a second.
static void halves_that_refuse_each_other_declare_nobody(void **state) {
	static const uint32_t counts[] = {4, 8, 24};

	(void)state;
	for (size_t n = 0; n < sizeof(counts) / sizeof(counts[0]); n++) {
		struct world *world = world_of(counts[n]);

		world_split(world, counts[n] / 2, WORLD_REFUSED);
		for (uint32_t a = 0; a < counts[n] / 2; a++) {
			for (uint32_t b = counts[n] / 2; b < counts[n]; b++)
				world_reset(world, a, b);
		}
		world_pass(world, 100 * SEC);
		assert_int_equal(world_events_all(world, RAS_EVENT_DEAD), 0);
		assert_true(world_events_all(world, RAS_EVENT_BRAKE_ON) > 0);
		world_split(world, counts[n] / 2, WORLD_OPEN);
		world_pass(world, 20 * SEC);
		assert_true(world_agrees(world));
		world_destroy(world);
	}
}

// Found: two of its host, behind one firewall, were refused and declared it, though it had a link.
static void one_that_refuses_two_and_is_heard_by_a_third_lives(void **state) {
	struct world *world = world_of(12);

	(void)state;
	for (uint32_t n = 1; n < 12; n++) {
		if (world_link(world, 0, n) == NULL)
			continue;
		world_way(world, n, 0, WORLD_REFUSED);
		world_way(world, 0, n, n == 1 ? WORLD_OPEN : WORLD_REFUSED);
		if (n > 1)
			world_reset(world, 0, n);
	}
	assert_true(world_is_linked(world, 0, 1));
	world_pass(world, 20 * SEC);
	assert_int_equal(world_events_all(world, RAS_EVENT_DEAD), 0);
	world_destroy(world);
}

// A firewall of its own that is loaded anew, and the same for good where others are so many that
// they cannot all be gone.
static void one_that_all_refuse_for_a_while_or_in_a_large_view_declares_nobody(void **state) {
	static const struct {
		uint32_t count;
		uint64_t refused_ns;
	} rows[] = {{3, 15 * SEC}, {9, 15 * SEC}, {10, 200 * SEC}, {24, 200 * SEC}};

	(void)state;
	for (size_t n = 0; n < sizeof(rows) / sizeof(rows[0]); n++) {
		struct world *world = world_of(rows[n].count);

		cut_off(world, 0, WORLD_REFUSED);
		for (uint32_t m = 1; m < rows[n].count; m++)
			world_reset(world, 0, m);
		world_pass(world, rows[n].refused_ns);
		assert_int_equal(world_links(world, 0), 0);
		assert_int_equal(deaths_by(world, 0), 0);
		cut_off(world, 0, WORLD_OPEN);
		world_pass(world, 20 * SEC);
		assert_true(world_agrees(world));
		assert_int_equal(deaths_by(world, 0), 0);
		world_destroy(world);
	}
}

// A host that refuses and then falls silent may be one that starts anew.
static void one_that_refused_and_fell_silent_is_held_as_any_silent_one(void **state) {
	struct world *world = world_of(3);

	(void)state;
	world_kill(world, 1);
	world_kill(world, 2);
	world_pass(world, 5 * SEC);
	cut_off(world, 0, WORLD_STALLED);
	world_pass(world, 100 * SEC);
	assert_int_equal(world_view(world, 0).unreachable, 2);
	assert_int_equal(deaths_by(world, 0), 0);
	world_destroy(world);
}

static void third_of_three_that_fails_after_the_second_is_declared_by_one_alone(void **state) {
	struct world *world = world_of(3);
	struct ras_peer peer;

	(void)state;
	world_off(world, 2);
	world_pass(world, 15 * SEC);
	assert_int_equal(world_state(world, 0, 2), RAS_DEAD);
	world_off(world, 1);
	world_pass(world, 30 * SEC);
	assert_int_equal(ras_peer_find(world->nodes[0].ras, world_id(world, 1), &peer), 0);
	assert_int_equal(peer.state, RAS_DEAD);
	assert_true(peer.sole);
	world_destroy(world);
}

// Found: both halves declared each other dead after a minute.
static void half_of_the_view_is_never_declared_by_the_other_half(void **state) {
	static const uint32_t counts[] = {4, 6, 24};

	(void)state;
	for (size_t n = 0; n < sizeof(counts) / sizeof(counts[0]); n++) {
		struct world *world = world_of(counts[n]);

		world_split(world, counts[n] / 2, WORLD_STALLED);
		world_pass(world, 150 * SEC);
		assert_int_equal(world_events_all(world, RAS_EVENT_DEAD), 0);
		assert_true(world_view(world, 0).brake);
		world_split(world, counts[n] / 2, WORLD_OPEN);
		world_pass(world, 30 * SEC);
		assert_true(world_agrees(world));
		world_destroy(world);
	}
}

static void larger_part_declares_the_smaller_after_the_brakes_time_and_not_vice_versa(void **state
) {
	struct world *world = world_of(40);

	(void)state;
	world_split(world, 12, WORLD_STALLED);
	world_pass(world, 60 * SEC);
	assert_int_equal(world_events_all(world, RAS_EVENT_DEAD), 0);
	world_pass(world, 60 * SEC);
	for (uint32_t n = 12; n < 40; n++)
		assert_int_equal(world_view(world, n).dead, 12);
	for (uint32_t n = 0; n < 12; n++)
		assert_int_equal(world_view(world, n).dead, 0);
	world_split(world, 12, WORLD_OPEN);
	world_pass(world, 30 * SEC);
	assert_true(world_agrees(world));
	world_destroy(world);
}

// Found: nobody could tell the last of three that the others, gone at once, were really gone.
static void last_of_three_forgets_the_others_when_it_is_told_to(void **state) {
	struct world *world = world_of(3);

	(void)state;
	assert_int_equal(
		ras_forget(world->nodes[0].ras, world->now_ns, world_id(world, 1)), -EBUSY
	);
	world_split(world, 1, WORLD_STALLED);
	world_pass(world, 30 * SEC);
	assert_int_equal(world_view(world, 0).unreachable, 2);
	for (uint32_t n = 1; n < 3; n++) {
		assert_int_equal(
			ras_forget(world->nodes[0].ras, world->now_ns, world_id(world, n)), 0
		);
		assert_int_equal(world_state(world, 0, n), RAS_UNKNOWN);
	}
	assert_int_equal(world_events(world, 0, RAS_EVENT_FORGOTTEN), 2);
	assert_int_equal(world_events(world, 0, RAS_EVENT_LEFT), 0);
	assert_int_equal(world_view(world, 0).alive, 1);
	world_pass(world, 100 * SEC);
	assert_int_equal(world_view(world, 0).alive, 1);
	world_destroy(world);
}

static void one_that_was_forgotten_as_unreachable_and_lives_comes_back(void **state) {
	struct world *world = world_of(8);

	(void)state;
	world_split(world, 4, WORLD_STALLED);
	world_pass(world, 30 * SEC);
	assert_int_equal(world_state(world, 0, 6), RAS_UNREACHABLE);
	assert_int_equal(ras_forget(world->nodes[0].ras, world->now_ns, world_id(world, 6)), 0);
	world_pass(world, 3 * SEC);
	for (uint32_t n = 0; n < 8; n++)
		assert_int_equal(world_state(world, n, 6), n < 4 ? RAS_UNKNOWN : RAS_ALIVE);
	assert_int_equal(world_view(world, 0).digest, world_view(world, 3).digest);
	world_split(world, 4, WORLD_OPEN);
	world_pass(world, 30 * SEC);
	assert_true(world_agrees(world));
	assert_int_equal(world_events_all(world, RAS_EVENT_DEAD), 0);
	world_destroy(world);
}

static void part_that_waits_says_how_many_it_misses_and_forgets_them_by_one_order(void **state) {
	static const uint32_t parts[][2] = {{6, 3}, {6, 2}, {24, 12}};

	(void)state;
	for (size_t n = 0; n < sizeof(parts) / sizeof(parts[0]); n++) {
		uint32_t count = parts[n][0], part = parts[n][1];
		struct world *world = world_of(count);

		assert_int_equal(ras_forget_unreachable(world->nodes[0].ras, world->now_ns), 0);
		world_split(world, part, WORLD_STALLED);
		world_pass(world, 30 * SEC);
		for (uint32_t m = 0; m < part; m++) {
			assert_true(world_view(world, m).waits);
			assert_int_equal(world_view(world, m).reached, part);
			assert_int_equal(world_view(world, m).reached_of, count);
		}
		if (part < count - part)
			assert_false(world_view(world, count - 1).waits);
		assert_true(ras_forget_unreachable(world->nodes[0].ras, world->now_ns) > 0);
		world_pass(world, 60 * SEC);
		for (uint32_t m = 0; m < part; m++) {
			assert_int_equal(world_view(world, m).alive, part);
			assert_false(world_view(world, m).brake);
			assert_int_equal(world_events(world, m, RAS_EVENT_DEAD), 0);
		}
		world_split(world, part, WORLD_OPEN);
		world_pass(world, 60 * SEC);
		assert_true(world_agrees(world));
		world_destroy(world);
	}
}

#define ORDERED 40

// Peer 2 tells it, as if it came from the peer `origin`.
static void
notice_of(struct lone *lone, uint32_t conn, uint32_t origin, uint32_t kind, uint64_t forgotten) {
	uint8_t payload[16], frame[64];
	struct wire_writer writer;
	struct collect_notice notice = {
		.origin = lone_id(lone, origin),
		.id = (UINT64_C(1) << 32) + kind,
		.kind = kind,
		.hops = 1,
		.payload = payload,
		.size = kind == FLOOD_NOTICE_FORGET ? sizeof(payload) : 0,
	};

	wire_writer_init(&writer, payload, sizeof(payload));
	wire_put_u64(&writer, forgotten);
	wire_put_u64(&writer, ras_incarnation(1, 0));
	wire_writer_init(&writer, frame, sizeof(frame));
	collect_notice_encode(&notice, &writer);
	lone_frame(lone, conn, frame, wire_writer_used(&writer));
}

// FORGET of our own on the connection since the last mark.
static uint32_t forgets_told(const struct lone *lone, uint32_t conn) {
	uint32_t count = 0;

	for (uint32_t n = 0; n < lone->frame_count; n++) {
		const struct lone_frame *frame = &lone->frames[n];
		struct collect_notice notice;
		struct wire_reader reader;

		if (frame->conn != conn || frame->bytes[0] != MESSAGE_NOTICE)
			continue;
		wire_reader_init(&reader, frame->bytes + 1, frame->size - 1);
		assert_int_equal(collect_notice_decode(&reader, &notice), 0);
		count += notice.kind == FLOOD_NOTICE_FORGET &&
			 notice.origin == lone_id(lone, lone->self);
	}
	return count;
}

// Held unreachable from now on; `ret_ids` are theirs.
static void strangers_add(struct lone *lone, uint32_t conn, uint64_t ret_ids[static ORDERED]) {
	struct ras_peer_info info = lone_info(lone, 3, 1);
	struct peer_news news = {.state = RAS_ALIVE, .incarnation = ras_incarnation(1, 0)};

	for (uint32_t n = 0; n < ORDERED; n++) {
		snprintf(info.name, sizeof(info.name), "s%02u", n);
		assert_int_equal(ras_record_from_info(lone->interner, &info, &news.record), 0);
		news.id = news.record->id;
		lone_news(lone, conn, &news);
		ras_record_put(lone->interner, news.record);
		ret_ids[n] = news.id;
		peers_set_local(
			&lone->ras->peers, peers_find(&lone->ras->peers, news.id), RAS_UNREACHABLE,
			RAS_CAUSE_SILENT, lone->ras->observed_ns
		);
	}
}

// Found: each member told at once of all whom it held so, though others told of the same.
static void who_hears_an_order_tells_later_a_few_a_second_and_only_what_others_did_not(void **state
) {
	struct lone *lone = lone_of(8, 1);
	uint32_t conn = lone_link(lone, 2);
	struct peers *peers = &lone->ras->peers;
	uint32_t told = 0, most = 0;
	uint64_t ids[ORDERED];

	(void)state;
	strangers_add(lone, conn, ids);
	lone_mark(lone);
	notice_of(lone, conn, 4, FLOOD_NOTICE_FORGET_UNREACHABLE, 0);
	assert_int_equal(forgets_told(lone, conn), 0);
	notice_of(lone, conn, 5, FLOOD_NOTICE_FORGET, ids[7]);
	assert_int_equal(peers_find(peers, ids[7]), RAS_NO_SLOT);
	for (uint32_t n = 0; n < 60; n++) {
		uint32_t now;

		lone_mark(lone);
		lone_pass_beating(lone, 100 * MS, conn);
		now = forgets_told(lone, conn);
		told += now;
		most = now > most ? now : most;
	}
	assert_int_equal(told, ORDERED - 1);
	assert_int_equal(most, 16);
	for (uint32_t n = 0; n < ORDERED; n++)
		assert_int_equal(peers_find(peers, ids[n]), RAS_NO_SLOT);
	lone_destroy(lone);
}

// Found: a sample told a third of the view from a fifth by luck, and more than half of the view
// being with us let the brake go, so that an island died.
static void island_above_the_limit_is_held_by_both_sides_and_heals(void **state) {
	static const uint32_t islands[][2] = {{40, 9}, {40, 12}, {40, 20}, {16, 8}, {24, 12}};

	(void)state;
	for (size_t n = 0; n < sizeof(islands) / sizeof(islands[0]); n++) {
		struct world *world = world_of(islands[n][0]);

		world_split(world, islands[n][1], WORLD_STALLED);
		world_pass(world, 50 * SEC);
		assert_int_equal(world_events_all(world, RAS_EVENT_DEAD), 0);
		assert_true(world_events_all(world, RAS_EVENT_UNREACHABLE) > 0);
		world_split(world, islands[n][1], WORLD_OPEN);
		world_pass(world, 20 * SEC);
		assert_true(world_agrees(world));
		for (uint32_t m = 0; m < islands[n][0]; m++)
			assert_false(world_view(world, m).brake);
		world_destroy(world);
	}
}

// Eight are what a host may take with it.
static void eight_of_many_that_fall_at_once_are_declared_in_time(void **state) {
	struct world *world = world_of(24);

	(void)state;
	for (uint32_t n = 0; n < 8; n++)
		world_off(world, 3 * n);
	world_pass(world, 13 * SEC);
	assert_true(world_agrees(world));
	assert_int_equal(world_view(world, 20).dead, 8);
	assert_int_equal(world_events_all(world, RAS_EVENT_BRAKE_ON), 0);
	world_destroy(world);
}

// Found: a brake let go because all were back would not go on again for a minute.
static void second_partition_soon_after_the_first_is_held_as_well(void **state) {
	struct world *world = world_of(24);

	(void)state;
	world_split(world, 12, WORLD_STALLED);
	world_pass(world, 20 * SEC);
	world_split(world, 12, WORLD_OPEN);
	world_pass(world, 20 * SEC);
	assert_true(world_events_all(world, RAS_EVENT_BRAKE_OFF) > 0);
	world_split(world, 12, WORLD_STALLED);
	world_pass(world, 30 * SEC);
	assert_int_equal(world_events_all(world, RAS_EVENT_DEAD), 0);
	world_destroy(world);
}

// Found: for a minute after it let go by time nothing was held.
static void partition_soon_after_the_brake_let_go_by_time_is_held_as_well(void **state) {
	struct world *world = world_of(40);

	(void)state;
	world_split(world, 12, WORLD_STALLED);
	world_pass(world, 90 * SEC);
	assert_int_equal(world_view(world, 20).dead, 12);
	world_split(world, 12, WORLD_OPEN);
	world_pass(world, 20 * SEC);
	assert_true(world_agrees(world));
	world_mark(world);
	world_split(world, 12, WORLD_STALLED);
	world_pass(world, 30 * SEC);
	assert_int_equal(world_events_all(world, RAS_EVENT_DEAD), 0);
	world_destroy(world);
}

// abc|de, then bc|ade: a takes d and e back and makes three of five with them, while b and c are
// two of the three that declared them. Found: each part declared the other.
static void who_was_taken_back_makes_no_majority_for_a_minute(void **state) {
	struct world *world = world_of(5);

	(void)state;
	world_split(world, 3, WORLD_STALLED);
	world_pass(world, 30 * SEC);
	assert_int_equal(world_view(world, 0).dead, 2);
	world_split(world, 3, WORLD_OPEN);
	for (uint32_t n = 1; n < 3; n++) {
		for (uint32_t m = 0; m < 5; m++) {
			if (m == 1 || m == 2)
				continue;
			world_way(world, n, m, WORLD_STALLED);
			world_way(world, m, n, WORLD_STALLED);
		}
	}
	world_pass(world, 200 * SEC);
	assert_int_equal(world_state(world, 1, 0), RAS_DEAD);
	for (uint32_t m = 0; m < 5; m++) {
		if (m != 1 && m != 2)
			assert_int_not_equal(world_state(world, m, 1), RAS_DEAD);
	}
	for (uint32_t n = 0; n < 5; n++) {
		for (uint32_t m = 0; m < 5; m++)
			world_way(world, n, m, WORLD_OPEN);
	}
	world_pass(world, 40 * SEC);
	assert_true(world_agrees(world));
	world_destroy(world);
}

static void told(struct lone *lone, uint32_t origin, uint32_t reached, uint32_t members) {
	brake_counted(
		lone->ras, lone_id(lone, origin),
		&(struct census_result
		){.reached = reached, .members = members, .voters = reached, .electorate = members}
	);
}

static void count_of_one_other_is_believed_when_a_second_one_comes_to_the_same(void **state) {
	struct lone *lone = lone_of(8, 1);
	struct ras *ras = lone->ras;
	uint64_t since_ns;

	(void)state;
	lone_pass(lone, SEC);
	ras_enter(ras, lone->now_ns);
	since_ns = ras->observed_ns;
	brake_census_seen(ras, lone_id(lone, 2));
	brake_census_seen(ras, lone_id(lone, 3));
	told(lone, 4, 3, 8); // it did not begin
	told(lone, 2, 3, 8);
	told(lone, 2, 3, 8);
	assert_int_equal(brake_word(ras, since_ns), BRAKE_UNKNOWN);
	told(lone, 3, 7, 8); // less than all, and by far more
	assert_int_equal(brake_word(ras, since_ns), BRAKE_UNKNOWN);
	told(lone, 2, 8, 8);
	assert_int_equal(brake_word(ras, since_ns), BRAKE_FREE);
	assert_int_equal(lone_events(lone, RAS_EVENT_BRAKE_ON), 0);
	lone_destroy(lone);
}

// It takes part as all do, and tells of a count that it made up as often as it can.
static void lie_about_a_count(struct world *world, uint32_t liar, uint64_t ns, uint32_t reached) {
	struct ras *ras = world->nodes[liar].ras;
	struct census_result lie = {
		.reached = reached,
		.members = world->count,
		.voters = reached,
		.electorate = world->count,
	};

	for (uint64_t end_ns = world->now_ns + ns; world->now_ns < end_ns;) {
		ras_enter(ras, world->now_ns);
		collective_census(ras, SEC, NULL, 0);
		ras_exit(ras);
		world_pass(world, 10 * MS);
		for (uint32_t n = 0; n < 9; n++) {
			ras_enter(ras, world->now_ns);
			flood_census(ras, &lie);
			ras_exit(ras);
			world_pass(world, 50 * MS);
		}
	}
}

// Found: one member's NOTICE was everybody's count.
static void member_that_makes_counts_up_engages_nobodys_brake(void **state) {
	struct world *world = world_of(16);

	(void)state;
	world_off(world, 5);
	lie_about_a_count(world, 15, 15 * SEC, 7);
	for (uint32_t n = 0; n < 15; n++) {
		assert_int_equal(world_events(world, n, RAS_EVENT_BRAKE_ON), 0);
		assert_int_equal(n == 5 ? RAS_DEAD : world_state(world, n, 5), RAS_DEAD);
	}
	world_destroy(world);
}

static void member_that_makes_counts_up_lets_nobodys_brake_go(void **state) {
	struct world *world = world_of(16);

	(void)state;
	world_split(world, 8, WORLD_STALLED);
	lie_about_a_count(world, 15, 40 * SEC, 16);
	for (uint32_t n = 0; n < 15; n++) {
		assert_int_equal(world_events(world, n, RAS_EVENT_BRAKE_OFF), 0);
		assert_int_equal(world_view(world, n).dead, 0);
	}
	world_destroy(world);
}

// What a count may say, and how long others' counts that never end are waited for.
static void counts_that_cannot_be_or_never_end_are_not_waited_for(void **state) {
	struct lone *lone = lone_of(8, 1);
	struct ras *ras = lone->ras;
	uint64_t since_ns;

	(void)state;
	ras_enter(ras, lone->now_ns);
	lone_link(lone, 2);
	// More than there are, and fewer than we have beside us.
	for (uint32_t n = 2; n < 4; n++) {
		brake_census_seen(ras, lone_id(lone, n));
		told(lone, n, 9, 8);
		told(lone, n, 1, 8);
	}
	since_ns = ras->observed_ns;
	assert_int_equal(brake_word(ras, since_ns), BRAKE_UNKNOWN);
	for (uint32_t n = 0; n < 20 && ras->liveness.census.word.at_ns == 0; n++) {
		brake_census_seen(ras, lone_id(lone, 2)); // others begin
		brake_census_seen(ras, lone_id(lone, 3));
		brake_count(ras, since_ns);
		lone_pass(lone, 500 * MS);
	}
	assert_int_equal(ras->liveness.census.word.reached, 1); // nobody answers here
	assert_int_equal(brake_word(ras, since_ns), BRAKE_HELD);
	lone_destroy(lone);
}

// Found: observed time leaves the pause out, and a count of before it seemed to be fresh.
static void count_of_before_a_pause_of_our_own_is_none(void **state) {
	struct lone *lone = lone_of(8, 1);
	struct ras *ras = lone->ras;
	uint64_t since_ns;

	(void)state;
	lone_pass(lone, SEC);
	ras_enter(ras, lone->now_ns);
	since_ns = ras->observed_ns;
	for (uint32_t n = 2; n < 4; n++) {
		brake_census_seen(ras, lone_id(lone, n));
		told(lone, n, 8, 8);
	}
	assert_int_equal(brake_word(ras, since_ns), BRAKE_FREE);
	lone->now_ns += 20 * SEC; // stopped
	ras_tick(ras, lone->now_ns);
	assert_true(lone_events(lone, RAS_EVENT_PAUSED) > 0);
	assert_int_equal(brake_word(ras, since_ns), BRAKE_UNKNOWN);
	lone_destroy(lone);
}

static void one_count_serves_all_observers_of_a_moment(void **state) {
	struct world *world = world_of(24);
	uint64_t begun = 0;

	(void)state;
	world_off(world, 5);
	world_pass(world, 20 * SEC);
	assert_true(world_agrees(world));
	// Each notice that a node sends by itself is the end of a count.
	for (uint32_t n = 0; n < 24; n++) {
		if (n != 5)
			begun += ras_collect_counters(world->nodes[n].ras)->notices_sent;
	}
	assert_in_range(begun, 1, 4);
	world_destroy(world);
}

// It speaks and hears nothing: what it counts is told to all, and is of itself alone.
static void count_of_one_that_hears_nothing_is_no_brake_for_the_others(void **state) {
	struct world *world = world_of(12);

	(void)state;
	for (uint32_t n = 1; n < 12; n++)
		world_way(world, n, 0, WORLD_STALLED);
	world_off(world, 6);
	world_pass(world, 14 * SEC);
	for (uint32_t n = 1; n < 12; n++) {
		assert_int_equal(world_events(world, n, RAS_EVENT_BRAKE_ON), 0);
		assert_int_equal(n == 6 ? RAS_DEAD : world_state(world, n, 6), RAS_DEAD);
	}
	assert_int_equal(deaths_by(world, 0), 0);
	world_destroy(world);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(node_cut_off_from_all_others_declares_nobody_dead),
		cmocka_unit_test(last_of_three_holds_both_others_as_unreachable),
		cmocka_unit_test(last_one_holds_those_that_refuse_it_as_unreachable),
		cmocka_unit_test(one_of_two_that_refuses_is_declared_by_the_other_alone),
		cmocka_unit_test(halves_that_refuse_each_other_declare_nobody),
		cmocka_unit_test(one_that_refuses_two_and_is_heard_by_a_third_lives),
		cmocka_unit_test(one_that_all_refuse_for_a_while_or_in_a_large_view_declares_nobody
		),
		cmocka_unit_test(one_that_refused_and_fell_silent_is_held_as_any_silent_one),
		cmocka_unit_test(third_of_three_that_fails_after_the_second_is_declared_by_one_alone
		),
		cmocka_unit_test(half_of_the_view_is_never_declared_by_the_other_half),
		cmocka_unit_test(
			larger_part_declares_the_smaller_after_the_brakes_time_and_not_vice_versa
		),
		cmocka_unit_test(last_of_three_forgets_the_others_when_it_is_told_to),
		cmocka_unit_test(one_that_was_forgotten_as_unreachable_and_lives_comes_back),
		cmocka_unit_test(
			who_hears_an_order_tells_later_a_few_a_second_and_only_what_others_did_not
		),
		cmocka_unit_test(
			part_that_waits_says_how_many_it_misses_and_forgets_them_by_one_order
		),
		cmocka_unit_test(island_above_the_limit_is_held_by_both_sides_and_heals),
		cmocka_unit_test(eight_of_many_that_fall_at_once_are_declared_in_time),
		cmocka_unit_test(second_partition_soon_after_the_first_is_held_as_well),
		cmocka_unit_test(partition_soon_after_the_brake_let_go_by_time_is_held_as_well),
		cmocka_unit_test(who_was_taken_back_makes_no_majority_for_a_minute),
		cmocka_unit_test(count_of_one_that_hears_nothing_is_no_brake_for_the_others),
		cmocka_unit_test(count_of_one_other_is_believed_when_a_second_one_comes_to_the_same
		),
		cmocka_unit_test(member_that_makes_counts_up_engages_nobodys_brake),
		cmocka_unit_test(member_that_makes_counts_up_lets_nobodys_brake_go),
		cmocka_unit_test(counts_that_cannot_be_or_never_end_are_not_waited_for),
		cmocka_unit_test(count_of_before_a_pause_of_our_own_is_none),
		cmocka_unit_test(one_count_serves_all_observers_of_a_moment),
	};

	return cmocka_run_group_tests_name("ras_brake", tests, NULL, NULL);
}
