// SPDX-License-Identifier: BSD-3-Clause
// Which agent answers at a member's address: queries, reports, and the meaning of a different
// agent there.
#include "control/ras/ras_lone.h"

#include <support/cmocka.h>

#include <errno.h>

#define SEC RAS_NS_PER_SEC
#define MS RAS_NS_PER_MS

// Let peer 4 answer with this refusal wherever the instance looks for peer 2.
static void pass_meeting_another(struct lone *lone, uint64_t ns, enum ras_cause refusal) {
	struct message_init_ack ack = lone_ack(lone, 4);

	ack.refusal = (uint8_t)refusal;
	for (uint64_t left = ns; left > 0; left -= 50 * MS) {
		uint32_t conn = lone_opening(lone, 2);

		if (conn != 0)
			lone_send_ack(lone, conn, &ack);
		lone_pass(lone, 50 * MS);
	}
}

static void another_one_at_a_member_s_address_is_no_evidence_against_it(void **state) {
	static const enum ras_cause refusals[] = {
		RAS_CAUSE_NONE, RAS_CAUSE_DUPLICATE, RAS_CAUSE_BUSY};

	(void)state;
	for (size_t n = 0; n < sizeof(refusals) / sizeof(refusals[0]); n++) {
		struct lone *lone = lone_of(6, 1);

		lone_end(lone, lone_link(lone, 2), RAS_CAUSE_RESET);
		pass_meeting_another(lone, SEC, refusals[n]);
		assert_false(lone_find_link(lone, 2)->gone);
		assert_int_equal(lone_find_link(lone, 2)->refused_ns, RAS_NEVER);
		assert_int_equal(lone_peer(lone, 2).state, RAS_ALIVE);
		lone_destroy(lone);
	}
}

static void another_one_at_a_member_s_address_is_told_once_with_both_and_the_address(void **state) {
	struct lone *lone = lone_of(6, 1);
	struct sock_addr address = lone_address(2);
	struct ras_stranger stranger;
	const struct ras_event *event;

	(void)state;
	lone_end(lone, lone_link(lone, 2), RAS_CAUSE_RESET);
	assert_int_equal(ras_stranger_at(lone->ras, 0, &stranger), -ENOENT);
	pass_meeting_another(lone, 3 * SEC, RAS_CAUSE_DUPLICATE);
	assert_int_equal(lone_events(lone, RAS_EVENT_ADDRESS_OTHER), 1);
	event = lone_event(lone, RAS_EVENT_ADDRESS_OTHER);
	assert_int_equal(event->peer, lone_id(lone, 2));
	assert_int_equal(event->value, lone_id(lone, 4));
	assert_true(sock_addr_equal(&event->other, &address));
	assert_int_equal(ras_stranger_at(lone->ras, 0, &stranger), 0);
	assert_int_equal(stranger.found, lone_id(lone, 4));
	lone_destroy(lone);
}

static void finding_ends_when_the_member_answers_there_itself(void **state) {
	struct lone *lone = lone_of(6, 1);
	struct ras_stranger stranger;

	(void)state;
	lone_end(lone, lone_link(lone, 2), RAS_CAUSE_RESET);
	pass_meeting_another(lone, SEC, RAS_CAUSE_DUPLICATE);
	while (lone_opening(lone, 2) == 0)
		lone_pass(lone, 50 * MS);
	lone_answer(lone, 2);
	assert_int_equal(ras_stranger_at(lone->ras, 0, &stranger), -ENOENT);
	lone_destroy(lone);
}

static void finding_of_an_address_that_is_told_no_more_does_not_hold(void **state) {
	struct lone *lone = lone_of(6, 1);
	struct ras_stranger stranger;
	struct ras_peer_info info = lone_info(lone, 2, 2);
	struct peer_news news = {.id = lone_id(lone, 2), .incarnation = ras_incarnation(2, 0)};
	uint32_t conn;

	(void)state;
	lone_end(lone, lone_link(lone, 2), RAS_CAUSE_RESET);
	pass_meeting_another(lone, SEC, RAS_CAUSE_DUPLICATE);
	conn = lone_link(lone, 0);
	info.addresses[0] = lone_address(14);
	news.state = RAS_ALIVE;
	assert_int_equal(ras_record_from_info(lone->interner, &info, &news.record), 0);
	lone_news(lone, conn, &news);
	assert_int_equal(ras_stranger_at(lone->ras, 0, &stranger), -ESTALE);
	ras_record_put(lone->interner, news.record);
	lone_destroy(lone);
}

// Regression: a node was renamed, its old name was forgotten, and it was renamed back. For ten
// minutes all members that had met the other name there reported its configuration as wrong.
static void finding_of_an_earlier_start_does_not_hold(void **state) {
	struct lone *lone = lone_of(6, 1);
	struct ras_peer_info info = lone_info(lone, 2, 3);
	struct peer_news news = lone_told(lone, 2, RAS_ALIVE, ras_incarnation(3, 0));
	struct ras_stranger stranger;

	(void)state;
	lone_end(lone, lone_link(lone, 2), RAS_CAUSE_RESET);
	pass_meeting_another(lone, SEC, RAS_CAUSE_DUPLICATE);
	assert_int_equal(ras_stranger_at(lone->ras, 0, &stranger), 0);
	assert_int_equal(ras_record_from_info(lone->interner, &info, &news.record), 0);
	lone_news(lone, lone_link(lone, 0), &news);
	assert_int_equal(ras_stranger_at(lone->ras, 0, &stranger), -ESTALE);
	ras_record_put(lone->interner, news.record);
	lone_destroy(lone);
}

// Regression: a killed node was started under another name. From its declared death on, the old
// name was agent-frozen, since its host still accepted connections.
static void another_one_at_a_dead_one_s_address_is_known_too(void **state) {
	struct lone *lone = lone_of(6, 1);
	struct peer_news news = lone_told(lone, 2, RAS_DEAD, ras_incarnation(1, 0));
	struct ras_stranger stranger;

	(void)state;
	lone_end(lone, lone_link(lone, 2), RAS_CAUSE_RESET);
	assert_int_equal(ras_peer_stranger_age_ns(lone->ras, lone_id(lone, 2)), RAS_NEVER);
	pass_meeting_another(lone, SEC, RAS_CAUSE_DUPLICATE);
	assert_in_range(ras_peer_stranger_age_ns(lone->ras, lone_id(lone, 2)), 0, SEC);
	lone_news(lone, lone_link(lone, 0), &news);
	assert_int_equal(lone_peer(lone, 2).state, RAS_DEAD);
	assert_int_equal(ras_stranger_at(lone->ras, 0, &stranger), -ESTALE);
	assert_in_range(ras_peer_stranger_age_ns(lone->ras, lone_id(lone, 2)), 0, SEC);
	assert_int_equal(ras_peer_stranger_age_ns(lone->ras, lone_id(lone, 4)), RAS_NEVER);
	lone_destroy(lone);
}

// Regression: an agent at another member's address was killed. It stayed dead to all for days.
static void dead_one_whose_address_another_one_has_is_forgotten_by_all(void **state) {
	struct lone *lone = lone_of(6, 1);
	struct peer_news news = lone_told(lone, 2, RAS_DEAD, ras_incarnation(1, 0));

	(void)state;
	lone_news(lone, lone_link(lone, 0), &news);
	pass_meeting_another(lone, 3 * SEC, RAS_CAUSE_DUPLICATE);
	lone_pass(lone, 60 * SEC);
	assert_int_equal(lone_peer(lone, 2).state, RAS_DEAD);
	// It died ten minutes earlier.
	ras_entry(lone->ras, peers_find(&lone->ras->peers, lone_id(lone, 2)))->since_ns -=
		540 * SEC;
	lone_pass(lone, 60 * SEC);
	assert_int_equal(lone_events(lone, RAS_EVENT_FORGOTTEN), 1);
	assert_int_equal(lone_event(lone, RAS_EVENT_FORGOTTEN)->peer, lone_id(lone, 2));
	lone_destroy(lone);
}

static void question_is_answered_by_who_is_there_and_leaves_no_link(void **state) {
	static const struct {
		uint32_t answers;
		enum ras_cause cause;
	} cases[] = {{3, RAS_CAUSE_NONE}, {4, RAS_CAUSE_CONFLICT}};

	(void)state;
	for (size_t n = 0; n < sizeof(cases) / sizeof(cases[0]); n++) {
		struct lone *lone = lone_of(8, 0);
		struct message_init_ack ack = lone_ack(lone, cases[n].answers);
		uint32_t conn;

		ack.refusal = RAS_CAUSE_IDLE;
		assert_int_equal(ras_who(lone->ras, lone->now_ns, lone_id(lone, 3), &conn), 0);
		lone_send_ack(lone, conn, &ack);
		assert_true(lone_is_closed(lone, conn));
		assert_int_equal(lone->who_count, 1);
		assert_int_equal(lone->who_conn, conn);
		assert_int_equal(lone->who_cause, cases[n].cause);
		assert_int_equal(lone->who_found, lone_id(lone, cases[n].answers));
		assert_true(
			lone_find_link(lone, 3) == NULL || !link_is_ready(lone_find_link(lone, 3))
		);
		lone_destroy(lone);
	}
}

static void question_that_nobody_answers_ends_with_the_cause(void **state) {
	struct lone *lone = lone_of(8, 0);
	uint32_t conn;

	(void)state;
	assert_int_equal(ras_who(lone->ras, lone->now_ns, lone_id(lone, 3), &conn), 0);
	lone_end(lone, conn, RAS_CAUSE_REFUSED);
	assert_int_equal(lone->who_cause, RAS_CAUSE_REFUSED);
	assert_int_equal(ras_who(lone->ras, lone->now_ns, lone_id(lone, 3), &conn), 0);
	lone_pass(lone, 60 * SEC);
	assert_int_equal(lone->who_count, 2);
	assert_int_equal(lone->who_cause, RAS_CAUSE_TIMEOUT);
	assert_int_equal(ras_who(lone->ras, lone->now_ns, 12345, &conn), -ENOENT);
	lone_destroy(lone);
}

static void who_asks_is_told_who_we_are_and_nothing_else(void **state) {
	struct lone *lone = lone_of(4, 1);
	struct message_init init = lone_init(lone, 3, 0);
	uint32_t conn = lone_accept(lone);

	(void)state;
	init.flags |= MESSAGE_INIT_IDENTIFY;
	lone_send_init(lone, conn, &init);
	assert_int_equal(lone_refusal(lone, conn), RAS_CAUSE_IDLE);
	assert_true(lone_is_closed(lone, conn));
	assert_int_equal(lone_sent(lone, conn, MESSAGE_UPDATE), 0);
	assert_true(lone_find_link(lone, 3) == NULL || !link_is_ready(lone_find_link(lone, 3)));
	lone_destroy(lone);
}

// Regression: a node looked for a member that claims our address and so ended its link with us,
// twice a second. Each call seemed to come from a node that had lost the link.
static void call_for_another_one_at_our_address_ends_no_link(void **state) {
	static const struct {
		bool us;
		enum ras_cause refusal;
	} rows[] = {{false, RAS_CAUSE_IDLE}, {true, RAS_CAUSE_NONE}};

	(void)state;
	for (size_t n = 0; n < sizeof(rows) / sizeof(rows[0]); n++) {
		struct lone *lone = lone_of(6, 1);
		uint32_t conn = lone_link(lone, 2);
		struct message_init init = lone_init(lone, 2, RAS_USE_CHECK);
		uint32_t call;

		lone_pass_beating(lone, 3 * SEC, conn);
		call = lone_accept(lone);
		init.sought = rows[n].us ? lone->ras->self_id : lone_id(lone, 4);
		lone_send_init(lone, call, &init);
		assert_int_equal(lone_refusal(lone, call), rows[n].refusal);
		assert_int_equal(lone_is_closed(lone, conn), rows[n].us);
		assert_true(link_is_ready(lone_find_link(lone, 2)));
		lone_destroy(lone);
	}
}

UNIT_GROUP(ras_who) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(call_for_another_one_at_our_address_ends_no_link),
		cmocka_unit_test(another_one_at_a_member_s_address_is_no_evidence_against_it),
		cmocka_unit_test(
			another_one_at_a_member_s_address_is_told_once_with_both_and_the_address
		),
		cmocka_unit_test(finding_ends_when_the_member_answers_there_itself),
		cmocka_unit_test(finding_of_an_address_that_is_told_no_more_does_not_hold),
		cmocka_unit_test(finding_of_an_earlier_start_does_not_hold),
		cmocka_unit_test(another_one_at_a_dead_one_s_address_is_known_too),
		cmocka_unit_test(dead_one_whose_address_another_one_has_is_forgotten_by_all),
		cmocka_unit_test(question_is_answered_by_who_is_there_and_leaves_no_link),
		cmocka_unit_test(question_that_nobody_answers_ends_with_the_cause),
		cmocka_unit_test(who_asks_is_told_who_we_are_and_nothing_else),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
