// SPDX-License-Identifier: BSD-3-Clause
// Deaths reported by others: their weight here, and deaths whose subject is still heard.
#include "control/ras/ras_lone.h"
#include "control/ras/ras_world.h"

#include <support/cmocka.h>

#define SEC RAS_NS_PER_SEC
#define MS RAS_NS_PER_MS

static struct peer_news death_by_one(const struct lone *lone, uint32_t peer) {
	struct peer_news news = lone_told(lone, peer, RAS_DEAD, ras_incarnation(1, 0));

	news.observer_count = 1;
	news.observers[0] = lone_id(lone, 2);
	return news;
}

// Regression: the table of a ring of two carried the death into a larger ring. Its sole mark was
// lost on the way.
static void death_that_one_alone_saw_is_a_suspicion_in_a_ring_of_more(void **state) {
	struct lone *lone = lone_of(6, 1);
	struct peer_news news = death_by_one(lone, 4);
	uint32_t conn = lone_link(lone, 2);
	uint32_t other = lone_link(lone, 0);

	(void)state;
	lone_pass(lone, 500 * MS);
	lone_mark(lone);
	lone_news(lone, conn, &news);
	lone_pass(lone, 200 * MS);
	assert_int_equal(lone_peer(lone, 4).state, RAS_SUSPECT);
	assert_int_equal(lone_sent(lone, other, MESSAGE_UPDATE), 0);
	lone_destroy(lone);
}

// Regression: the news was dropped, and a node that had no other source never learned of the
// newer start.
static void death_that_one_alone_saw_of_a_newer_start_is_a_suspicion_of_that_start(void **state) {
	struct lone *lone = lone_of(6, 1);
	struct ras_peer_info info = lone_info(lone, 4, 2);
	struct peer_news news = death_by_one(lone, 4);
	uint32_t conn = lone_link(lone, 2);

	(void)state;
	news.incarnation = ras_incarnation(2, 0);
	lone_mark(lone);
	lone_news(lone, conn, &news);
	lone_pass(lone, 200 * MS);
	assert_int_equal(lone_sent(lone, conn, MESSAGE_PULL), 1);
	assert_int_equal(lone_peer(lone, 4).state, RAS_ALIVE);
	assert_int_equal(ras_incarnation_start(lone_peer(lone, 4).incarnation), 1);

	assert_int_equal(ras_record_from_info(lone->interner, &info, &news.record), 0);
	lone_news(lone, conn, &news);
	ras_record_put(lone->interner, news.record);
	lone_pass(lone, 200 * MS);
	assert_int_equal(lone_peer(lone, 4).state, RAS_SUSPECT);
	assert_int_equal(ras_incarnation_start(lone_peer(lone, 4).incarnation), 2);
	assert_int_equal(lone_events(lone, RAS_EVENT_DEAD), 0);
	lone_destroy(lone);
}

// Regression: on a side that waits, one node had a view of two and declared the third dead. The
// other node held it.
static void part_that_waits_takes_over_what_the_last_of_two_declared_and_no_more(void **state) {
	static const struct {
		uint32_t of, refutations;
		enum ras_state state;
	} rows[] = {{2, 0, RAS_DEAD}, {2, 3, RAS_DEAD}, {3, 0, RAS_UNREACHABLE}};

	(void)state;
	for (size_t n = 0; n < sizeof(rows) / sizeof(rows[0]); n++) {
		struct lone *lone = lone_of(3, 1);
		struct peer_news news = death_by_one(lone, 0);
		uint32_t conn = lone_link(lone, 2);

		news.reached = 1;
		news.of = rows[n].of;
		news.incarnation = ras_incarnation(1, rows[n].refutations);
		lone_news(lone, conn, &news);
		lone_pass_beating(lone, 40 * SEC, conn);
		assert_int_equal(lone_peer(lone, 0).state, rows[n].state);
		lone_destroy(lone);
	}
}

static void death_that_one_alone_saw_is_one_and_marked_where_nobody_else_is_left(void **state) {
	struct lone *lone = lone_of(3, 1);
	struct peer_news left = lone_told(lone, 0, RAS_LEFT, ras_incarnation(1, 0));
	struct peer_news news = death_by_one(lone, 0);
	uint32_t conn = lone_link(lone, 2);

	(void)state;
	left = lone_told(lone, 0, RAS_ALIVE, ras_incarnation(1, 0));
	lone_news(lone, conn, &left);
	// This node and the reporter can both look, so two observers are needed.
	lone_news(lone, conn, &news);
	assert_int_not_equal(lone_peer(lone, 0).state, RAS_DEAD);
	news.observer_count = 2;
	news.observers[1] = lone->ras->self_id;
	lone_news(lone, conn, &news);
	assert_int_equal(lone_peer(lone, 0).state, RAS_DEAD);
	assert_false(lone_peer(lone, 0).sole);
	lone_destroy(lone);
}

static void death_becomes_heavier_and_never_lighter(void **state) {
	struct lone *lone = lone_of(6, 1);
	struct peer_news news = lone_told(lone, 4, RAS_DEAD, ras_incarnation(1, 0));
	struct peer_news light = death_by_one(lone, 4);
	uint32_t conn = lone_link(lone, 2);

	(void)state;
	lone_news(lone, conn, &news);
	lone_news(lone, conn, &light);
	assert_int_equal(lone_peer(lone, 4).state, RAS_DEAD);
	assert_false(lone_peer(lone, 4).sole);
	assert_int_equal(lone_events(lone, RAS_EVENT_DEAD), 1);
	lone_destroy(lone);
}

// Two nodes behind one firewall are one witness, unless no other host is left.
static void death_that_two_of_one_host_saw_is_a_suspicion_unless_all_are_of_it(void **state) {
	static const struct {
		uint32_t per_host, observer;
		enum ras_state state;
	} rows[] = {{2, 3, RAS_SUSPECT}, {2, 0, RAS_DEAD}, {8, 3, RAS_DEAD}};

	(void)state;
	for (size_t n = 0; n < sizeof(rows) / sizeof(rows[0]); n++) {
		struct lone_setup setup = {.count = 6, .self = 1, .per_host = rows[n].per_host};
		struct lone *lone = lone_create(&setup);
		struct peer_news news = lone_told(lone, 4, RAS_DEAD, ras_incarnation(1, 0));
		uint32_t conn = lone_link(lone, 2);

		news.observers[0] = lone_id(lone, 2);
		news.observers[1] = lone_id(lone, rows[n].observer);
		lone_news(lone, conn, &news);
		lone_pass(lone, 200 * MS);
		assert_int_equal(lone_peer(lone, 4).state, rows[n].state);
		lone_destroy(lone);
	}
}

// Create an instance with a good link to 4, which 2 reports as dead.
static struct lone *lone_told_of_a_linked_death(uint32_t *ret_teller, uint32_t *ret_subject) {
	struct lone *lone = lone_of(6, 1);
	struct peer_news news = lone_told(lone, 4, RAS_DEAD, ras_incarnation(1, 0));

	*ret_teller = lone_link(lone, 2);
	*ret_subject = lone_connect(lone, 4, RAS_USE_LEVEL(1));
	lone_pass(lone, 500 * MS);
	lone_mark(lone);
	lone_news(lone, *ret_teller, &news);
	lone_pass(lone, 100 * MS);
	return lone;
}

static void death_of_one_who_is_heard_is_put_to_it_and_not_taken_over(void **state) {
	uint32_t exit_reporter, subject;
	struct lone *lone = lone_told_of_a_linked_death(&exit_reporter, &subject);

	(void)state;
	assert_int_equal(lone_peer(lone, 4).state, RAS_ALIVE);
	assert_false(lone_is_closed(lone, subject));
	assert_int_equal(lone_sent(lone, subject, MESSAGE_UPDATE), 1);
	assert_int_equal(lone_events(lone, RAS_EVENT_DEAD), 0);
	lone_destroy(lone);
}

static void refutation_of_a_contested_death_is_passed_on(void **state) {
	uint32_t exit_reporter, subject;
	struct lone *lone = lone_told_of_a_linked_death(&exit_reporter, &subject);
	struct peer_news back = lone_told(lone, 4, RAS_ALIVE, ras_incarnation(1, 1));

	(void)state;
	lone_mark(lone);
	lone_news(lone, subject, &back);
	lone_pass(lone, 200 * MS);
	assert_int_equal(lone_sent(lone, exit_reporter, MESSAGE_UPDATE), 1);
	lone_pass_beating(lone, 10 * SEC, subject);
	assert_int_equal(lone_peer(lone, 4).state, RAS_ALIVE);
	assert_int_equal(lone_events(lone, RAS_EVENT_DEAD), 0);
	lone_destroy(lone);
}

// The subject's last frame may have been sent before its death.
static void death_that_is_not_refuted_in_time_is_taken_over_though_the_subject_speaks(void **state
) {
	uint32_t exit_reporter, subject;
	struct lone *lone = lone_told_of_a_linked_death(&exit_reporter, &subject);

	(void)state;
	for (uint32_t n = 0; n < 8 && lone_events(lone, RAS_EVENT_DEAD) == 0; n++) {
		lone_beat(lone, subject, n + 1, RAS_USE_LEVEL(1));
		lone_pass(lone, SEC);
	}
	assert_int_equal(lone_peer(lone, 4).state, RAS_DEAD);
	assert_int_equal(lone_events(lone, RAS_EVENT_DEAD), 1);
	lone_destroy(lone);
}

static void contested_death_is_taken_over_when_the_link_is_lost(void **state) {
	uint32_t exit_reporter, subject;
	struct lone *lone = lone_told_of_a_linked_death(&exit_reporter, &subject);

	(void)state;
	lone_end(lone, subject, RAS_CAUSE_RESET);
	lone_pass(lone, SEC);
	assert_int_equal(lone_peer(lone, 4).state, RAS_DEAD);
	lone_destroy(lone);
}

// Regression: every node that received the lie closed its working link.
static void lie_about_a_death_costs_the_subject_no_link(void **state) {
	struct world *world = world_of(8);
	struct peer_news lie = {
		.id = world_id(world, 5),
		.incarnation = ras_self_incarnation(world->nodes[5].ras),
		.state = RAS_DEAD,
		.cause = RAS_CAUSE_GONE,
		.observer_count = 2,
		.observers = {world_id(world, 0), world_id(world, 1)},
	};
	uint32_t links;

	(void)state;
	world_pass(world, 5 * SEC);
	links = world_links(world, 5);
	world_mark(world);
	membership_apply(world->nodes[0].ras, &lie, NULL);
	world_pass(world, 3 * SEC);
	assert_true(world_agrees(world));
	assert_true(world_links(world, 5) >= links - 1); // node 0 believed the lie
	// Only nodes without a link to the subject.
	assert_in_range(world_events_all(world, RAS_EVENT_DEAD), 1, 4);
	assert_int_equal(world_events(world, 5, RAS_EVENT_DECLARED_DEAD), 1);
	world_destroy(world);
}

UNIT_GROUP(ras_contest) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			death_that_one_alone_saw_of_a_newer_start_is_a_suspicion_of_that_start
		),
		cmocka_unit_test(
			part_that_waits_takes_over_what_the_last_of_two_declared_and_no_more
		),
		cmocka_unit_test(death_that_one_alone_saw_is_a_suspicion_in_a_ring_of_more),
		cmocka_unit_test(
			death_that_one_alone_saw_is_one_and_marked_where_nobody_else_is_left
		),
		cmocka_unit_test(death_that_two_of_one_host_saw_is_a_suspicion_unless_all_are_of_it
		),
		cmocka_unit_test(death_becomes_heavier_and_never_lighter),
		cmocka_unit_test(death_of_one_who_is_heard_is_put_to_it_and_not_taken_over),
		cmocka_unit_test(refutation_of_a_contested_death_is_passed_on),
		cmocka_unit_test(
			death_that_is_not_refuted_in_time_is_taken_over_though_the_subject_speaks
		),
		cmocka_unit_test(contested_death_is_taken_over_when_the_link_is_lost),
		cmocka_unit_test(lie_about_a_death_costs_the_subject_no_link),
	};

	return cmocka_run_group_tests_name("ras_contest", tests, NULL, NULL);
}
