// SPDX-License-Identifier: BSD-3-Clause
// control/overlay/reach.c and reach_try.c with fake calls, table and sockets.
#include "overlay/inside.h"

#include <lib/clock.h>
#include <lib/log.h>
#include <support/cases.h>
#include <support/cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define PEERS_MAX 4
#define SEC RAS_NS_PER_SEC

static struct {
	struct overlay overlay;
	struct ras_record records[PEERS_MAX];
	struct ras_peer peers[PEERS_MAX];
	uint32_t peer_count;
	// Requests sent to other agents.
	struct overlay_call *call;
	uint32_t calls;
	int call_err;
	uint64_t asked[16];
	// Answers sent to other agents.
	char answer[256];
	uint32_t answers;
	// Events recorded.
	struct ras_event note;
	uint32_t notes;
	char words[STATE_TEXT_BYTES];
	// Address queries passed to the core.
	uint64_t sought;
	uint32_t questions;
	int who_err;
} stage;

static struct clock fake_clock;

uint64_t ras_self_id(const struct ras *ras) {
	(void)ras;
	return stage.records[0].id;
}

void ras_view(const struct ras *ras, struct ras_view *ret_view) {
	(void)ras;
	*ret_view = (struct ras_view){.slots_max = stage.peer_count, .joined = true};
}

int ras_peer_at(const struct ras *ras, uint32_t slot, struct ras_peer *ret_peer) {
	(void)ras;
	if (slot >= stage.peer_count)
		return -ENOENT;
	*ret_peer = stage.peers[slot];
	return 0;
}

int ras_peer_find(const struct ras *ras, uint64_t id, struct ras_peer *ret_peer) {
	for (uint32_t n = 0; n < stage.peer_count; n++) {
		if (stage.records[n].id == id)
			return ras_peer_at(ras, n, ret_peer);
	}
	return -ENOENT;
}

int overlay_note(struct overlay *overlay, const struct ras_event *note, const char *text) {
	(void)overlay;
	stage.note = *note;
	stage.notes++;
	snprintf(stage.words, sizeof(stage.words), "%s", text);
	return 0;
}

int overlay_call_start(
	struct overlay *overlay,
	uint64_t node,
	const char *line,
	uint64_t timeout_ns,
	struct overlay_call *call
) {
	(void)timeout_ns;
	assert_string_equal(line, OVERLAY_REACH_LINE);
	if (stage.call_err != 0)
		return stage.call_err;
	assert_null(stage.call);
	assert_true(stage.calls < COUNT_OF(stage.asked));
	stage.asked[stage.calls++] = node;
	call->overlay = overlay;
	call->node = node;
	stage.call = call;
	return 0;
}

void overlay_call_cancel(struct overlay_call *call) {
	assert_ptr_equal(call, stage.call);
	stage.call = NULL;
}

int overlay_served_write(struct overlay_served *served, const void *data, size_t size) {
	(void)served;
	snprintf(stage.answer, sizeof(stage.answer), "%.*s", (int)size, (const char *)data);
	return 0;
}

void overlay_served_end(struct overlay_served *served, int err) {
	(void)served;
	assert_int_equal(err, 0);
	stage.answers++;
}

struct sock_addr transport_address(const struct transport *transport) {
	(void)transport;
	return stage.records[0].address;
}

void transport_local_address(
	const struct transport *transport, uint32_t conn, struct sock_addr *ret_address
) {
	(void)transport;
	(void)conn;
	(void)ret_address;
}

uint64_t overlay_now_ns(const struct overlay *overlay) {
	(void)overlay;
	return clock_now_ns(&fake_clock);
}

int ras_who(struct ras *ras, uint64_t now_ns, uint64_t peer, uint32_t *ret_conn) {
	(void)ras;
	(void)now_ns;
	stage.sought = peer;
	stage.questions++;
	if (stage.who_err == 0)
		*ret_conn = 100 + stage.questions;
	return stage.who_err;
}

static void add_peer(const char *name, uint64_t host) {
	struct ras_record *record = &stage.records[stage.peer_count];

	*record = (struct ras_record){
		.id = 100 + stage.peer_count,
		.host_id = host,
		.name = name,
		.name_length = (uint8_t)strlen(name),
		.address =
			{.address = {10, 0, 0, (uint8_t)(stage.peer_count + 1)},
			 .port = 28030,
			 .family = SOCK_ADDR_V4},
	};
	stage.peers[stage.peer_count] =
		(struct ras_peer){.record = record, .slot = stage.peer_count, .state = RAS_ALIVE};
	stage.peer_count++;
}

static int set_up(void **state) {
	(void)state;
	memset(&stage, 0, sizeof(stage));
	clock_init_fake(&fake_clock, SEC);
	log_set_level(LOG_LEVEL_ERROR);
	add_peer("n1", 1);
	return loop_create(&fake_clock, &stage.overlay.loop);
}

static int tear_down(void **state) {
	(void)state;
	overlay_reach_stop(&stage.overlay);
	overlay_reach_stop_serving(&stage.overlay);
	loop_destroy(stage.overlay.loop);
	return 0;
}

static void pass(uint64_t ns) {
	clock_advance(&fake_clock, ns);
	assert_true(loop_turn(stage.overlay.loop, 0) >= 0);
	assert_true(loop_turn(stage.overlay.loop, 0) >= 0);
}

static void tell(enum ras_event_kind kind) {
	const struct ras_event event = {.kind = kind};

	overlay_reach_event(&stage.overlay, &event);
}

static void answer(const char *text, int err) {
	struct overlay_call *call = stage.call;

	assert_non_null(call);
	stage.call = NULL;
	if (err == 0)
		assert_int_equal(call->piece(call, text, strlen(text)), 0);
	call->ended(call, err);
}

static void join(void) {
	tell(RAS_EVENT_JOIN_DONE);
	pass(3 * SEC);
}

// Requests to others

static void a_member_of_another_host_is_asked_where_there_is_one(void **state) {
	(void)state;
	add_peer("n2", 1);
	add_peer("n3", 1);
	add_peer("n4", 2);
	for (uint32_t round = 0; round < 8; round++) {
		join();
		assert_int_equal(stage.asked[round], 103);
		answer("reached 10.0.0.4 10.0.0.1:28030", 0);
	}
	assert_int_equal(overlay_reach(&stage.overlay)->state, OVERLAY_REACH_PROVEN);
	assert_int_equal(stage.notes, 0);
}

static void nobody_is_asked_who_is_not_alive(void **state) {
	(void)state;
	add_peer("n2", 2);
	add_peer("n3", 1);
	stage.peers[1].state = RAS_DEAD;
	join();
	assert_int_equal(stage.calls, 1);
	assert_int_equal(stage.asked[0], 102);
}

static void two_who_do_not_reach_us_are_an_event_with_both_sides(void **state) {
	(void)state;
	add_peer("n2", 2);
	add_peer("n3", 1);
	join();
	answer("refused 10.0.0.2 10.0.0.1:28030", 0);
	assert_int_equal(stage.notes, 0);
	answer("timeout 10.0.0.3 10.0.0.1:28030", 0);
	assert_int_equal(stage.notes, 1);
	assert_int_equal(stage.note.kind, RAS_EVENT_ADDRESS_UNPROVEN);
	assert_int_equal(stage.note.peer, 100);
	assert_int_equal(stage.note.cause, RAS_CAUSE_REFUSED);
	assert_int_equal(stage.note.observer_count, 2);
	assert_string_equal(
		stage.words, "10.0.0.1:28030 is unreachable: n2 from 10.0.0.2 was refused; n3 "
			     "from 10.0.0.3 got no answer"
	);
	assert_string_equal(overlay_reach(&stage.overlay)->words, stage.words);
}

static void another_one_at_our_address_is_an_event_that_names_it(void **state) {
	(void)state;
	add_peer("n2", 2);
	join();
	answer("other 10.0.0.2 10.0.0.1:28030 n7", 0);
	assert_int_equal(stage.note.kind, RAS_EVENT_ADDRESS_UNPROVEN);
	assert_int_equal(stage.note.cause, RAS_CAUSE_CONFLICT);
	assert_string_equal(
		stage.words, "10.0.0.1:28030 is unreachable: n2 from 10.0.0.2 found n7"
	);
}

static void name_that_is_no_text_is_another_agent(void **state) {
	static const char *const names[] = {"", "\xff\xfe", "n\xc3"};
	char text[128];

	(void)state;
	add_peer("n2", 2);
	for (size_t n = 0; n < COUNT_OF(names); n++) {
		snprintf(text, sizeof(text), "other 10.0.0.2 10.0.0.1:28030 %s", names[n]);
		stage.overlay.reach.state = OVERLAY_REACH_UNKNOWN;
		join();
		answer(text, 0);
		assert_string_equal(
			stage.words,
			"10.0.0.1:28030 is unreachable: n2 from 10.0.0.2 found another agent"
		);
	}
}

static void the_second_one_s_yes_is_proof_enough(void **state) {
	(void)state;
	add_peer("n2", 2);
	add_peer("n3", 1);
	join();
	answer("unreachable 10.0.0.2 10.0.0.1:28030", 0);
	answer("reached 10.0.0.3 10.0.0.1:28030", 0);
	assert_int_equal(stage.notes, 0);
	assert_int_equal(overlay_reach(&stage.overlay)->state, OVERLAY_REACH_PROVEN);
	pass(1000 * SEC);
	assert_int_equal(stage.calls, 2);
}

static void answers_that_tell_nothing_raise_no_alarm(void **state) {
	static const struct {
		const char *text;
		int err;
	} answers[] = {
		{"", 0},
		{"busy - -", 0},
		{"refused", 0},
		{"refused 10.0.0.2", 0},
		{"refused 10.0.0.2 ", 0},
		{"refused nowhere 10.0.0.1:28030", 0},
		// About another start of this node, at another address.
		{"refused 10.0.0.2 10.0.0.9:28030", 0},
		{"refused 10.0.0.2 10.0.0.1:28031", 0},
		{"refusedx 10.0.0.2 10.0.0.1:28030", 0},
		{"ERROR: Unknown command REACH\n", 0}, // from an older agent
		{"", -ETIMEDOUT},
		{"", -EBADMSG},
		{"", -ECANCELED}, // the peer leaves, or its answer was too long
	};

	(void)state;
	add_peer("n2", 2);
	for (size_t n = 0; n < COUNT_OF(answers); n++) {
		join();
		answer(answers[n].text, answers[n].err);
		assert_int_equal(stage.notes, 0);
		assert_int_equal(overlay_reach(&stage.overlay)->state, OVERLAY_REACH_UNKNOWN);
		assert_int_equal(overlay_reach(&stage.overlay)->counters.unanswered, n + 1);
	}
}

static void one_who_breaks_off_is_not_the_last_who_is_asked(void **state) {
	(void)state;
	add_peer("n2", 2);
	add_peer("n3", 1);
	join();
	answer("", -ECANCELED);
	answer("", -ECANCELED);
	assert_int_equal(stage.calls, 2);
	pass(6 * SEC);
	assert_int_equal(stage.calls, 3);
}

static void an_answer_without_end_is_cut_off(void **state) {
	char much[512];

	(void)state;
	add_peer("n2", 2);
	join();
	memset(much, 'x', sizeof(much));
	assert_int_equal(stage.call->piece(stage.call, much, sizeof(much)), -EMSGSIZE);
}

static void an_unproven_address_is_asked_for_again_with_growing_pauses(void **state) {
	uint64_t last_ns = 0, pause_ns = 0;

	(void)state;
	add_peer("n2", 2);
	join();
	for (uint32_t round = 0; round < 12; round++) {
		uint64_t before_ns = pause_ns;

		answer("refused 10.0.0.2 10.0.0.1:28030", 0);
		last_ns = clock_now_ns(&fake_clock);
		while (stage.call == NULL && clock_now_ns(&fake_clock) < last_ns + 400 * SEC)
			pass(SEC);
		assert_non_null(stage.call);
		pause_ns = clock_now_ns(&fake_clock) - last_ns;
		assert_true(pause_ns >= before_ns && pause_ns <= 301 * SEC);
	}
	assert_true(pause_ns >= 299 * SEC);
	assert_int_equal(stage.notes, 1); // reported once
	answer("reached 10.0.0.2 10.0.0.1:28030", 0);
	assert_int_equal(stage.notes, 2);
	assert_int_equal(stage.note.kind, RAS_EVENT_ADDRESS_PROVEN);
	assert_string_equal(overlay_reach(&stage.overlay)->words, "");
}

static void one_alone_asks_when_somebody_joins(void **state) {
	(void)state;
	join();
	pass(1000 * SEC);
	assert_int_equal(stage.calls, 0);
	add_peer("n2", 2);
	tell(RAS_EVENT_JOINED);
	pass(3 * SEC);
	assert_int_equal(stage.calls, 1);
}

static void one_alone_asks_when_a_member_is_back(void **state) {
	static const enum ras_event_kind kinds[] = {
		RAS_EVENT_REJOINED, RAS_EVENT_REFUTED, RAS_EVENT_ALIVE};

	(void)state;
	add_peer("n2", 2);
	for (size_t n = 0; n < COUNT_OF(kinds); n++) {
		stage.peers[1].state = RAS_SUSPECT;
		join();
		assert_int_equal(stage.calls, n);
		stage.peers[1].state = RAS_ALIVE;
		tell(kinds[n]);
		pass(3 * SEC);
		assert_int_equal(stage.calls, n + 1);
		answer("busy - -", 0);
	}
}

static void a_question_that_cannot_be_put_is_tried_again_later(void **state) {
	(void)state;
	add_peer("n2", 2);
	stage.call_err = -EAGAIN;
	join();
	assert_int_equal(stage.calls, 0);
	stage.call_err = 0;
	pass(6 * SEC);
	assert_int_equal(stage.calls, 1);
}

static void an_address_that_the_machine_lost_is_a_problem_until_it_is_proven_anew(void **state) {
	(void)state;
	add_peer("n2", 2);
	join();
	answer("reached 10.0.0.2 10.0.0.1:28030", 0);
	overlay_report_address_lost(&stage.overlay, "10.0.0.1:28030 is gone");
	assert_int_equal(stage.notes, 1);
	assert_int_equal(stage.note.kind, RAS_EVENT_ADDRESS_UNPROVEN);
	assert_int_equal(stage.note.cause, RAS_CAUSE_OWN_FAULT);
	assert_int_equal(overlay_reach(&stage.overlay)->state, OVERLAY_REACH_UNPROVEN);
	assert_string_equal(overlay_reach(&stage.overlay)->words, "10.0.0.1:28030 is gone");
	tell(RAS_EVENT_JOINED);
	pass(1000 * SEC);
	assert_int_equal(stage.calls, 1); // no other agent has to be asked
	overlay_reach_ask_again(&stage.overlay);
	pass(3 * SEC);
	answer("reached 10.0.0.2 10.0.0.1:28030", 0);
	assert_int_equal(stage.note.kind, RAS_EVENT_ADDRESS_PROVEN);
	assert_int_equal(overlay_reach(&stage.overlay)->state, OVERLAY_REACH_PROVEN);
}

// Tests made for others

static struct overlay_served served_of(uint64_t source, const char *line) {
	struct overlay_served served = {.source = source};

	snprintf(served.line, sizeof(served.line), "%s", line);
	return served;
}

static void other_questions_are_not_ours(void **state) {
	static const char *const lines[] = {
		"", "REACH ", "REACH 10.0.0.9:22", "text - PEERS", "reach"};

	(void)state;
	add_peer("n2", 2);
	for (size_t n = 0; n < COUNT_OF(lines); n++) {
		struct overlay_served served = served_of(101, lines[n]);

		assert_false(overlay_reach_serve(&stage.overlay, &served));
	}
	assert_int_equal(stage.questions, 0);
}

static void ended(uint32_t question, enum ras_cause cause, uint64_t found) {
	overlay_reach_identified(&stage.overlay, 100 + question, cause, found);
	assert_int_equal(stage.answers, question - 1); // not from inside the core
	pass(0);
	assert_int_equal(stage.answers, question);
}

static void the_asker_itself_at_its_address_is_the_proof(void **state) {
	struct overlay_served served;

	(void)state;
	add_peer("n2", 2);
	served = served_of(101, OVERLAY_REACH_LINE);
	assert_true(overlay_reach_serve(&stage.overlay, &served));
	assert_int_equal(stage.sought, 101);
	ended(1, RAS_CAUSE_NONE, 101);
	assert_string_equal(stage.answer, "reached 10.0.0.1 10.0.0.2:28030");
}

// Regression: an open connection counted as proof, although it was another agent's listener, or
// the agent's own.
static void another_one_at_the_asker_s_address_is_named(void **state) {
	struct overlay_served served;

	(void)state;
	add_peer("n2", 2);
	add_peer("n3", 3);
	served = served_of(101, OVERLAY_REACH_LINE);
	assert_true(overlay_reach_serve(&stage.overlay, &served));
	ended(1, RAS_CAUSE_CONFLICT, 102);
	assert_string_equal(stage.answer, "other 10.0.0.1 10.0.0.2:28030 n3");
	assert_int_equal(overlay_reach(&stage.overlay)->counters.tries_failed, 1);
}

static void what_came_of_a_try_is_told_in_a_word(void **state) {
	static const struct {
		enum ras_cause cause;
		const char *word;
	} cases[] = {
		{RAS_CAUSE_REFUSED, "refused "}, {RAS_CAUSE_TIMEOUT, "timeout "},
		{RAS_CAUSE_SILENT, "timeout "},	 {RAS_CAUSE_UNREACHABLE, "unreachable "},
		{RAS_CAUSE_PROOF, "stranger "},	 {RAS_CAUSE_OWN_FAULT, "busy "},
	};

	(void)state;
	add_peer("n2", 2);
	for (uint32_t n = 0; n < COUNT_OF(cases); n++) {
		struct overlay_served served = served_of(101, OVERLAY_REACH_LINE);

		pass(2 * SEC);
		assert_true(overlay_reach_serve(&stage.overlay, &served));
		ended(n + 1, cases[n].cause, 0);
		assert_memory_equal(stage.answer, cases[n].word, strlen(cases[n].word));
	}
}

static void a_try_that_does_not_end_is_a_timeout(void **state) {
	struct overlay_served served = served_of(101, OVERLAY_REACH_LINE);

	(void)state;
	add_peer("n2", 2);
	assert_true(overlay_reach_serve(&stage.overlay, &served));
	pass(4 * SEC);
	assert_string_equal(stage.answer, "timeout 10.0.0.1 10.0.0.2:28030");
	overlay_reach_identified(&stage.overlay, 101, RAS_CAUSE_NONE, 101); // too late
	pass(0);
	assert_int_equal(stage.answers, 1);
}

static void a_try_that_cannot_begin_tells_nothing(void **state) {
	struct overlay_served served = served_of(101, OVERLAY_REACH_LINE);

	(void)state;
	add_peer("n2", 2);
	stage.who_err = -EMFILE;
	assert_true(overlay_reach_serve(&stage.overlay, &served));
	assert_memory_equal(stage.answer, "busy ", 5);
}

static void an_asker_that_comes_too_often_is_turned_off(void **state) {
	struct overlay_served served;

	(void)state;
	add_peer("n2", 2);
	stage.who_err = -EMFILE;
	served = served_of(101, OVERLAY_REACH_LINE);
	for (uint32_t n = 0; n < 5; n++)
		assert_true(overlay_reach_serve(&stage.overlay, &served));
	assert_int_equal(stage.questions, 1);
	assert_string_equal(stage.answer, "busy - -");
	assert_int_equal(overlay_reach(&stage.overlay)->counters.tries_turned_off, 4);
	pass(2 * SEC);
	assert_true(overlay_reach_serve(&stage.overlay, &served));
	assert_int_equal(stage.questions, 2);
}

static void a_stranger_is_tried_for_nowhere(void **state) {
	struct overlay_served served = served_of(4711, OVERLAY_REACH_LINE);

	(void)state;
	assert_true(overlay_reach_serve(&stage.overlay, &served));
	assert_int_equal(stage.questions, 0);
	assert_string_equal(stage.answer, "busy - -");
}

static void no_more_than_a_few_are_tried_at_once(void **state) {
	static struct overlay_served served[OVERLAY_REACH_TRIES + 1];

	(void)state;
	add_peer("n2", 2);
	for (uint32_t n = 0; n <= OVERLAY_REACH_TRIES; n++) {
		served[n] = served_of(101, OVERLAY_REACH_LINE);
		stage.records[1].id = 101;
		stage.overlay.reach_askers[0] = (struct overlay_reach_asker){0};
		memset(stage.overlay.reach_askers, 0, sizeof(stage.overlay.reach_askers));
		assert_true(overlay_reach_serve(&stage.overlay, &served[n]));
	}
	assert_int_equal(stage.questions, OVERLAY_REACH_TRIES);
	assert_string_equal(stage.answer, "busy - -");
	overlay_reach_stop_serving(&stage.overlay);
	assert_int_equal(stage.answers, 1); // other askers are answered when the overlay ends
}

UNIT_GROUP(reach) {
#define CASE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		CASE(a_member_of_another_host_is_asked_where_there_is_one),
		CASE(nobody_is_asked_who_is_not_alive),
		CASE(two_who_do_not_reach_us_are_an_event_with_both_sides),
		CASE(another_one_at_our_address_is_an_event_that_names_it),
		CASE(name_that_is_no_text_is_another_agent),
		CASE(the_second_one_s_yes_is_proof_enough),
		CASE(answers_that_tell_nothing_raise_no_alarm),
		CASE(one_who_breaks_off_is_not_the_last_who_is_asked),
		CASE(an_answer_without_end_is_cut_off),
		CASE(an_unproven_address_is_asked_for_again_with_growing_pauses),
		CASE(one_alone_asks_when_somebody_joins),
		CASE(one_alone_asks_when_a_member_is_back),
		CASE(a_question_that_cannot_be_put_is_tried_again_later),
		CASE(an_address_that_the_machine_lost_is_a_problem_until_it_is_proven_anew),
		CASE(other_questions_are_not_ours),
		CASE(the_asker_itself_at_its_address_is_the_proof),
		CASE(another_one_at_the_asker_s_address_is_named),
		CASE(a_try_that_does_not_end_is_a_timeout),
		CASE(a_try_that_cannot_begin_tells_nothing),
		CASE(what_came_of_a_try_is_told_in_a_word),
		CASE(an_asker_that_comes_too_often_is_turned_off),
		CASE(a_stranger_is_tried_for_nowhere),
		CASE(no_more_than_a_few_are_tried_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
