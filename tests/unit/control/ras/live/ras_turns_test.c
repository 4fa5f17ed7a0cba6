// SPDX-License-Identifier: BSD-3-Clause
// Peers that are declared dead, come back, and are declared dead again.
#include "control/ras/ras_lone.h"
#include "control/ras/ras_world.h"

#include <support/cmocka.h>

#define SEC RAS_NS_PER_SEC
#define MS RAS_NS_PER_MS

// Freeze the node until all others consider it dead, then let it return.
static void turn(struct world *world, uint32_t node) {
	world_freeze(world, node);
	for (uint32_t n = 0; n < 120 && world_view(world, (node + 1) % world->count).dead == 0; n++)
		world_pass(world, SEC);
	world_pass(world, SEC);
	assert_int_equal(world_state(world, (node + 1) % world->count, node), RAS_DEAD);
	world_resume(world, node);
	world_pass(world, 3 * SEC);
	assert_true(world_agrees(world));
}

static void death_that_was_refuted_is_not_declared_by_the_same_two_within_30_s(void **state) {
	struct world *world = world_of(3);

	(void)state;
	turn(world, 2);
	world_mark(world);
	world_freeze(world, 2);
	world_pass(world, 24 * SEC);
	for (uint32_t n = 0; n < 2; n++)
		assert_int_equal(world_state(world, n, 2), RAS_UNREACHABLE);
	assert_int_equal(world_events_all(world, RAS_EVENT_DEAD), 0);
	world_pass(world, 10 * SEC);
	for (uint32_t n = 0; n < 2; n++)
		assert_int_equal(world_state(world, n, 2), RAS_DEAD);
	world_destroy(world);
}

static void process_that_ends_soon_after_its_silence_was_refuted_is_declared_in_time(void **state) {
	static const uint32_t counts[] = {3, 9};

	(void)state;
	for (size_t n = 0; n < sizeof(counts) / sizeof(counts[0]); n++) {
		struct world *world = world_of(counts[n]);

		turn(world, 2);
		world_kill(world, 2);
		world_pass(world, 2 * SEC);
		assert_int_equal(world_state(world, 0, 2), RAS_DEAD);
		world_destroy(world);
	}
}

static void newer_start_of_one_whose_death_was_refuted_is_declared_as_any(void **state) {
	struct world *world = world_of(3);

	(void)state;
	turn(world, 2);
	world_kill(world, 2);
	world_pass(world, SEC);
	world_start(world, 2, 2, 2);
	world_pass(world, 3 * SEC);
	assert_true(world_agrees(world));
	world_kill(world, 2);
	world_pass(world, 2 * SEC);
	assert_int_equal(world_state(world, 0, 2), RAS_DEAD);
	world_destroy(world);
}

static void more_than_three_deaths_in_ten_minutes_are_reported_once_a_minute(void **state) {
	struct world *world = world_of(3);
	const struct ras_event *told;
	uint64_t oldest;
	struct ras_event history[32];
	uint32_t count;

	(void)state;
	for (uint32_t n = 0; n < 3; n++)
		turn(world, 2);
	assert_int_equal(world_events(world, 0, RAS_EVENT_FLAPPING), 0);
	turn(world, 2);
	told = world_event(world, 0, RAS_EVENT_FLAPPING);
	assert_int_equal(told->value, 4);
	assert_int_equal(told->cause, RAS_CAUSE_REFUTED);
	count = ras_history(world->nodes[0].ras, 0, history, 32, &oldest);
	assert_int_equal(history[count - 1].kind, RAS_EVENT_FLAPPING);
	world_mark(world);
	for (uint32_t n = 0; n < 3; n++)
		turn(world, 2);
	// The tables are updated, but the events report only one state.
	assert_int_equal(world_events(world, 0, RAS_EVENT_DEAD), 3);
	assert_true(world_event(world, 0, RAS_EVENT_DEAD)->quiet);
	assert_in_range(world_events(world, 0, RAS_EVENT_FLAPPING), 1, 4);
	count = ras_history(world->nodes[0].ras, 0, history, 32, &oldest);
	for (uint32_t n = 0; n < count; n++) {
		if (history[n].at_ns > told->at_ns && history[n].peer == told->peer)
			assert_int_equal(history[n].kind, RAS_EVENT_FLAPPING);
	}
	world_pass(world, 660 * SEC);
	told = world_event(world, 0, RAS_EVENT_FLAPPING);
	assert_in_range(told->value, 0, 3);
	world_mark(world);
	world_pass(world, 120 * SEC);
	assert_int_equal(world_events(world, 0, RAS_EVENT_FLAPPING), 0);
	world_destroy(world);
}

// Regression: four such items, which readmit no member, suppressed the peer's events for ten
// minutes.
static void news_that_are_not_merged_are_no_turns(void **state) {
	struct lone *lone = lone_of(4, 1);
	uint32_t conn = lone_link(lone, 2);
	struct peer_news news = lone_told(lone, 3, RAS_DEAD, ras_incarnation(1, 0));
	struct ras_peer_info info = lone_info(lone, 3, 1);

	(void)state;
	lone_news(lone, conn, &news);
	assert_int_equal(lone_peer(lone, 3).state, RAS_DEAD);
	for (uint16_t n = 1; n <= 4; n++) {
		news = lone_told(lone, 3, RAS_ALIVE, ras_incarnation(1, n));
		news.record = lone->records[0]; // record of another peer
		lone_news(lone, conn, &news);
	}
	for (uint16_t n = 1; n <= 4; n++) {
		info.start = n + 1u; // its own record, of another start
		assert_int_equal(ras_record_from_info(lone->interner, &info, &news.record), 0);
		lone_news(lone, conn, &news);
		ras_record_put(lone->interner, news.record);
	}
	assert_int_equal(lone_peer(lone, 3).state, RAS_DEAD);
	assert_int_equal(lone->ras->turns.count, 0);
	lone_pass_beating(lone, SEC, conn);
	assert_int_equal(lone_events(lone, RAS_EVENT_FLAPPING), 0);
	lone_destroy(lone);
}

// Regression: only a join counted as another start.
static void newer_start_that_is_first_told_as_dead_or_gone_has_none_of_the_turns_before(void **state
) {
	static const enum ras_state ends[] = {RAS_DEAD, RAS_LEFT};

	(void)state;
	for (size_t n = 0; n < sizeof(ends) / sizeof(ends[0]); n++) {
		struct lone *lone = lone_of(4, 1);
		uint32_t conn = lone_link(lone, 2);
		struct ras_peer_info info = lone_info(lone, 3, 2);
		struct peer_news news = lone_told(lone, 3, RAS_DEAD, ras_incarnation(1, 0));

		news.observers[0] = lone_id(lone, 2);
		lone_news(lone, conn, &news);
		news = lone_told(lone, 3, RAS_ALIVE, ras_incarnation(1, 1));
		lone_news(lone, conn, &news);
		assert_true(
			turns_barred_until(
				lone->ras, lone_peer(lone, 3).slot, RAS_CAUSE_SILENT,
				lone_id(lone, 2)
			) > 0
		);
		news = lone_told(lone, 3, ends[n], ras_incarnation(2, 0));
		assert_int_equal(ras_record_from_info(lone->interner, &info, &news.record), 0);
		lone_news(lone, conn, &news);
		ras_record_put(lone->interner, news.record);
		assert_int_equal(lone_peer(lone, 3).state, ends[n]);
		assert_int_equal(
			turns_barred_until(
				lone->ras, lone_peer(lone, 3).slot, RAS_CAUSE_SILENT,
				lone_id(lone, 2)
			),
			0
		);
		lone_destroy(lone);
	}
}

UNIT_GROUP(ras_turns) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(death_that_was_refuted_is_not_declared_by_the_same_two_within_30_s
		),
		cmocka_unit_test(
			process_that_ends_soon_after_its_silence_was_refuted_is_declared_in_time
		),
		cmocka_unit_test(newer_start_of_one_whose_death_was_refuted_is_declared_as_any),
		cmocka_unit_test(more_than_three_deaths_in_ten_minutes_are_reported_once_a_minute),
		cmocka_unit_test(news_that_are_not_merged_are_no_turns),
		cmocka_unit_test(
			newer_start_that_is_first_told_as_dead_or_gone_has_none_of_the_turns_before
		),
	};

	return cmocka_run_group_tests_name("ras_turns", tests, NULL, NULL);
}
