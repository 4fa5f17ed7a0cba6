// SPDX-License-Identifier: BSD-3-Clause
#include "control/ras/ras_lone.h"
#include "control/ras/ras_world.h"

#include <support/cmocka.h>

#include <errno.h>

#define SEC RAS_NS_PER_SEC
#define HOUR (3600 * SEC)

static void leave(struct world *world, uint32_t node) {
	ras_leave(world->nodes[node].ras, world->now_ns);
	assert_true(ras_is_shut_down(world->nodes[node].ras));
	world_pass(world, SEC / 10);
	world_kill(world, node);
}

// Row 2: the LEAVE message precedes the end of the connection, which is then no evidence.
static void one_who_leaves_is_left_at_all_and_never_suspected(void **state) {
	struct world *world = world_of(8);

	(void)state;
	leave(world, 3);
	world_pass(world, 20 * SEC);
	assert_true(world_agrees(world));
	for (uint32_t n = 0; n < 8; n++) {
		if (n == 3)
			continue;
		assert_int_equal(world_state(world, n, 3), RAS_LEFT);
		assert_int_equal(world_view(world, n).left, 1);
		assert_int_equal(world_event(world, n, RAS_EVENT_LEFT)->cause, RAS_CAUSE_LEAVE);
	}
	assert_int_equal(world_events_all(world, RAS_EVENT_SUSPECT), 0);
	assert_int_equal(world_events_all(world, RAS_EVENT_DEAD), 0);
	world_destroy(world);
}

// Set the path from one node to all of its neighbours.
static void ways_of(struct world *world, uint32_t node, enum world_way way) {
	for (uint32_t to = 0; to < world->count; to++) {
		if (to != node)
			world_way(world, node, to, way);
	}
}

// Regression: frames that a link did not accept at once were dropped with its queue, and the
// LEAVE message with them.
static void farewell_waits_for_links_that_take_nothing_now(void **state) {
	struct world *world = world_of(8);

	(void)state;
	ways_of(world, 3, WORLD_FULL);
	world_pass(world, 2 * SEC); // beats find that the links accept nothing
	ras_leave(world->nodes[3].ras, world->now_ns);
	assert_false(ras_is_shut_down(world->nodes[3].ras));
	world_pass(world, SEC / 2);
	assert_int_equal(world_events_all(world, RAS_EVENT_LEFT), 0);
	ways_of(world, 3, WORLD_OPEN);
	world_pass(world, SEC / 2);
	assert_true(ras_is_shut_down(world->nodes[3].ras));
	world_kill(world, 3);
	world_pass(world, 20 * SEC);
	assert_true(world_agrees(world));
	assert_int_equal(world_events_all(world, RAS_EVENT_LEFT), 7);
	assert_int_equal(world_events_all(world, RAS_EVENT_DEAD), 0);
	assert_int_equal(world_events_all(world, RAS_EVENT_SUSPECT), 0);
	world_destroy(world);
}

static void farewell_is_told_by_others_where_a_link_never_takes_it(void **state) {
	struct world *world = world_of(8);
	struct ras *leaver = world->nodes[3].ras;
	struct link *full = world_link(world, 3, 4);
	static uint8_t bytes[RAS_FRAME_MAX];

	(void)state;
	world_way(world, 3, 4, WORLD_FULL);
	while (ras_counters(leaver)->queue_dropped == 0)
		link_send(leaver, full, bytes, sizeof(bytes));
	ras_leave(leaver, world->now_ns);
	assert_false(ras_is_shut_down(leaver));
	world_pass(world, SEC);
	assert_int_equal(world_state(world, 4, 3), RAS_LEFT);
	world_pass(world, world->profile.close_ns);
	assert_true(ras_is_shut_down(leaver)); // within the documented time
	world_kill(world, 3);
	world_pass(world, 20 * SEC);
	assert_true(world_agrees(world));
	assert_int_equal(world_events_all(world, RAS_EVENT_DEAD), 0);
	assert_int_equal(world_events_all(world, RAS_EVENT_SUSPECT), 0);
	world_destroy(world);
}

static void one_who_leaves_is_gone_in_time_though_nobody_takes_its_farewell(void **state) {
	struct world *world = world_of(4);
	struct ras *leaver = world->nodes[3].ras;

	(void)state;
	ways_of(world, 3, WORLD_FULL);
	world_pass(world, 2 * SEC);
	ras_leave(leaver, world->now_ns);
	world_pass(world, world->profile.close_ns + SEC / 10);
	assert_true(ras_is_shut_down(leaver));
	world_destroy(world);
}

static void half_of_the_ring_may_leave_at_once(void **state) {
	struct world *world = world_of(8);

	(void)state;
	for (uint32_t n = 0; n < 8; n += 2)
		ras_leave(world->nodes[n].ras, world->now_ns);
	world_pass(world, SEC / 10);
	for (uint32_t n = 0; n < 8; n += 2)
		world_kill(world, n);
	world_pass(world, 20 * SEC);
	assert_true(world_agrees(world));
	assert_int_equal(world_view(world, 1).left, 4);
	assert_int_equal(world_events_all(world, RAS_EVENT_DEAD), 0);
	world_destroy(world);
}

static void one_who_left_may_come_back_as_a_new_start(void **state) {
	struct world *world =
		world_create(&(struct world_setup){.count = 4, .seeds = 1, .idle = true});

	(void)state;
	for (uint32_t n = 0; n < 4; n++)
		world_start(world, n, 0, n);
	world_pass(world, 15 * SEC);
	leave(world, 2);
	world_pass(world, 5 * SEC);
	world_start(world, 2, 0, 2);
	world_pass(world, 15 * SEC);
	assert_true(world_agrees(world));
	assert_int_equal(ras_self_incarnation(world->nodes[2].ras), ras_incarnation(2, 0));
	world_destroy(world);
}

static void second_leave_and_what_comes_after_it_change_nothing(void **state) {
	struct lone *lone = lone_of(4, 1);
	struct sock_addr from = lone_address(3);
	uint32_t conn = lone_link(lone, 2);
	uint32_t other;

	(void)state;
	lone_mark(lone);
	ras_leave(lone->ras, lone->now_ns);
	assert_int_equal(lone_sent(lone, conn, MESSAGE_UPDATE), 1);
	assert_true(lone_is_closed(lone, conn));
	ras_leave(lone->ras, lone->now_ns);
	assert_int_equal(lone_sent(lone, conn, MESSAGE_UPDATE), 1);
	assert_int_equal(ras_conn_accepted(lone->ras, lone->now_ns, &from, &other), -EMFILE);
	lone_pass(lone, 60 * SEC);
	for (uint32_t peer = 0; peer < 4; peer++)
		assert_int_equal(lone_opening(lone, peer), 0);
	assert_true(ras_is_shut_down(lone->ras));
	lone_destroy(lone);
}

// Return whether 3 is known after that time, at an agent without links. Each step is shorter than
// what counts as a pause.
static bool known_after(enum ras_state state, uint64_t ns) {
	struct lone *lone = lone_of(4, 1);
	uint32_t conn = lone_link(lone, 2);
	struct peer_news news = lone_told(lone, 3, state, ras_incarnation(1, 0));
	struct ras_peer peer;
	bool known;

	lone_news(lone, conn, &news);
	assert_int_equal(lone_peer(lone, 3).state, state);
	lone->ras->observed_ns += ns; // pretend that this time was observed
	expire_tick(lone->ras);
	known = ras_peer_find(lone->ras, lone_id(lone, 3), &peer) == 0;
	assert_int_equal(lone_events(lone, RAS_EVENT_FORGOTTEN), known ? 0 : 1);
	lone_destroy(lone);
	return known;
}

static void one_who_left_is_kept_an_hour_and_a_dead_one_seven_days(void **state) {
	(void)state;
	assert_true(known_after(RAS_LEFT, HOUR - 2 * SEC));
	assert_false(known_after(RAS_LEFT, HOUR + SEC));
	assert_true(known_after(RAS_DEAD, 168 * HOUR - 2 * SEC));
	assert_false(known_after(RAS_DEAD, 168 * HOUR + SEC));
}

static void dead_one_is_forgotten_by_all_when_one_is_told_to(void **state) {
	struct world *world = world_of(6);
	uint64_t id = world_id(world, 3);

	(void)state;
	assert_int_equal(ras_forget(world->nodes[1].ras, world->now_ns, id), -EBUSY);
	assert_int_equal(ras_forget(world->nodes[1].ras, world->now_ns, 12345), -ENOENT);
	world_kill(world, 3);
	world_pass(world, 5 * SEC);
	assert_int_equal(world_view(world, 0).dead, 1);
	assert_int_equal(ras_forget(world->nodes[1].ras, world->now_ns, id), 0);
	world_pass(world, 2 * SEC);
	for (uint32_t n = 0; n < 6; n++) {
		if (n == 3)
			continue;
		assert_int_equal(world_state(world, n, 3), RAS_UNKNOWN);
		assert_int_equal(world_events(world, n, RAS_EVENT_FORGOTTEN), 1);
		// Observers belong to the death, not to the later event.
		assert_int_equal(world_event(world, n, RAS_EVENT_DEAD)->observer_count, 2);
		assert_int_equal(world_event(world, n, RAS_EVENT_FORGOTTEN)->observer_count, 0);
	}
	assert_true(world_agrees(world));
	world_destroy(world);
}

static void history_gives_events_without_gaps_from_where_it_is_asked(void **state) {
	struct world *world = world_of(4);
	struct ras_event events[64];
	uint64_t oldest;
	uint32_t count;

	(void)state;
	for (uint32_t round = 0; round < 8; round++) {
		world_freeze(world, 2);
		world_pass(world, 5 * SEC);
		world_resume(world, 2);
		world_pass(world, 5 * SEC);
	}
	count = ras_history(world->nodes[1].ras, 0, events, 64, &oldest);
	assert_int_equal(count, 32); // limit of the configuration
	assert_int_equal(events[0].sequence, oldest);
	assert_int_equal(ras_history_bytes(world->nodes[1].ras), 32 * sizeof(events[0]));
	for (uint32_t n = 1; n < count; n++)
		assert_int_equal(events[n].sequence, events[n - 1].sequence + 1);
	count = ras_history(world->nodes[1].ras, oldest + 30, events, 64, &oldest);
	assert_int_equal(count, 2);
	count = ras_history(world->nodes[1].ras, UINT64_MAX, events, 64, &oldest);
	assert_int_equal(count, 0);
	world_destroy(world);
}

static void note_of_the_caller_is_told_and_kept_in_the_order_of_events(void **state) {
	struct world *world = world_of(3);
	struct ras *ras = world->nodes[0].ras;
	struct ras_event note = {
		.kind = RAS_EVENT_REPORTED,
		.cause = RAS_CAUSE_REPORT,
		.observer_count = 1,
		.observers = {world_id(world, 2)},
		.value = 7,
	};
	struct ras_event events[64];
	uint64_t oldest;
	uint32_t count;

	(void)state;
	note.peer = 4711;
	assert_int_equal(ras_add_event(ras, world->now_ns, &note), -ENOENT);
	assert_int_equal(world_events(world, 0, RAS_EVENT_REPORTED), 0);
	note.peer = world_id(world, 1);
	assert_int_equal(ras_add_event(ras, world->now_ns, &note), 0);
	assert_int_equal(world_events(world, 0, RAS_EVENT_REPORTED), 1);
	count = ras_history(ras, 0, events, 64, &oldest);
	assert_true(count > 0);
	// The rest of the memory stays untouched.
	assert_int_equal(ras_history_bytes(ras), count * sizeof(events[0]));
	assert_int_equal(events[count - 1].kind, RAS_EVENT_REPORTED);
	assert_int_equal(events[count - 1].sequence, count);
	assert_int_equal(events[count - 1].at_ns, world->now_ns);
	assert_int_equal(events[count - 1].value, 7);
	assert_int_equal(events[count - 1].observers[0], world_id(world, 2));
	assert_true(events[count - 1].name[0] != '\0');
	world_destroy(world);
}

UNIT_GROUP(ras_leave) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(second_leave_and_what_comes_after_it_change_nothing),
		cmocka_unit_test(one_who_leaves_is_left_at_all_and_never_suspected),
		cmocka_unit_test(farewell_waits_for_links_that_take_nothing_now),
		cmocka_unit_test(farewell_is_told_by_others_where_a_link_never_takes_it),
		cmocka_unit_test(one_who_leaves_is_gone_in_time_though_nobody_takes_its_farewell),
		cmocka_unit_test(half_of_the_ring_may_leave_at_once),
		cmocka_unit_test(one_who_left_may_come_back_as_a_new_start),
		cmocka_unit_test(one_who_left_is_kept_an_hour_and_a_dead_one_seven_days),
		cmocka_unit_test(dead_one_is_forgotten_by_all_when_one_is_told_to),
		cmocka_unit_test(history_gives_events_without_gaps_from_where_it_is_asked),
		cmocka_unit_test(note_of_the_caller_is_told_and_kept_in_the_order_of_events),
	};

	return cmocka_run_group_tests_name("ras_leave", tests, NULL, NULL);
}
