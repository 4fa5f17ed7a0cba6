// SPDX-License-Identifier: BSD-3-Clause
// control/overlay/ask.c with a fake core and the real loop.
#include "overlay/inside.h"

#include <support/cmocka.h>

#include <errno.h>

static struct {
	struct clock clock;
	struct overlay overlay;
	uint64_t asked;	    // number of the last question; 0: none
	uint64_t cancelled; // number of the cancelled question; 0: none
	uint32_t answers;
	int err; // of the last answer
} stage;

int ras_collect(
	struct ras *ras, uint64_t now_ns, uint32_t kind, uint64_t timeout_ns, uint64_t *ret_id
) {
	(void)ras;
	(void)now_ns;
	(void)kind;
	(void)timeout_ns;
	*ret_id = ++stage.asked;
	return 0;
}

int ras_collect_cancel(struct ras *ras, uint64_t now_ns, uint64_t id) {
	(void)ras;
	(void)now_ns;
	assert_int_equal(id, stage.asked);
	assert_int_not_equal(id, stage.cancelled);
	stage.cancelled = id;
	return 0;
}

bool ras_collected_next(
	const struct ras_collected *collected,
	struct ras_collected_cursor *cursor,
	struct ras_collected_part *ret_part
) {
	(void)collected;
	(void)cursor;
	(void)ret_part;
	return false;
}

uint64_t overlay_now_ns(const struct overlay *overlay) {
	return loop_now_ns(overlay->loop);
}

static void on_answer(struct overlay_question *question, struct overlay_answer *answer) {
	(void)question;
	stage.answers++;
	stage.err = answer->err;
	overlay_answer_put(answer);
}

static int stage_begin(void **state) {
	(void)state;
	memset(&stage, 0, sizeof(stage));
	clock_init_fake(&stage.clock, 1000 * RAS_NS_PER_SEC);
	assert_int_equal(loop_create(&stage.clock, &stage.overlay.loop), 0);
	overlay_ask_init(&stage.overlay);
	return 0;
}

static int stage_end(void **state) {
	(void)state;
	overlay_ask_fini(&stage.overlay);
	loop_destroy(stage.overlay.loop);
	return 0;
}

static void turn(void) {
	assert_int_equal(loop_turn(stage.overlay.loop, 0), 0);
}

static void ask(struct overlay_question *question) {
	*question = (struct overlay_question){.answered = on_answer};
	assert_int_equal(overlay_ask_all(&stage.overlay, RAS_COLLECT_CONNS, 0, question), 0);
}

// Deliver the core's answer to the last question.
static void collected(void) {
	struct ras_collective_result result = {.id = stage.asked, .kind = RAS_COLLECT_CONNS};

	overlay_collected(&stage.overlay, &result);
	turn();
}

static void a_question_that_all_forgot_is_cancelled(void **state) {
	struct overlay_question first, second;

	(void)state;
	ask(&first);
	ask(&second);
	assert_int_equal(stage.asked, 1); // both wait for the same answer
	overlay_cancel_question(&first);
	turn();
	assert_int_equal(stage.cancelled, 0);
	overlay_cancel_question(&second);
	// Not yet, since this may run inside a call of the core.
	assert_int_equal(stage.cancelled, 0);
	turn();
	assert_int_equal(stage.cancelled, 1);
	collected(); // already in progress
	assert_int_equal(stage.answers, 0);
}

static void who_asks_in_the_same_turn_takes_over_what_another_forgot(void **state) {
	struct overlay_question first, second;

	(void)state;
	ask(&first);
	overlay_cancel_question(&first);
	ask(&second);
	turn();
	assert_int_equal(stage.asked, 1);
	assert_int_equal(stage.cancelled, 0);
	collected();
	assert_int_equal(stage.answers, 1);
	assert_int_equal(stage.err, 0);
}

static void after_a_cancel_the_next_asks_anew(void **state) {
	struct overlay_question question;

	(void)state;
	ask(&question);
	overlay_cancel_question(&question);
	overlay_cancel_question(&question); // repeating it is allowed
	turn();
	ask(&question);
	assert_int_equal(stage.asked, 2);
	collected();
	assert_int_equal(stage.answers, 1);
	overlay_cancel_question(&question); // it was answered, so nothing is in progress
	turn();
	assert_int_equal(stage.cancelled, 1);
}

static void who_waits_at_the_end_is_told_that_nothing_came(void **state) {
	struct overlay_question question;

	(void)state;
	ask(&question);
	overlay_ask_fini(&stage.overlay);
	assert_int_equal(stage.answers, 1);
	assert_int_equal(stage.err, -ECANCELED);
}

static struct overlay_question other;

static void forget_other(struct overlay_question *question, struct overlay_answer *answer) {
	on_answer(question, answer);
	overlay_cancel_question(&other);
}

static void at_the_end_who_is_told_may_forget_another_question(void **state) {
	struct overlay_question question;

	(void)state;
	ask(&other);
	ask(&question); // the last question is answered first
	question.answered = forget_other;
	overlay_ask_fini(&stage.overlay);
	assert_int_equal(stage.answers, 1);
	assert_false(stage.overlay.share.queued); // the overlay ends in this turn
}

UNIT_GROUP(overlay_ask) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			a_question_that_all_forgot_is_cancelled, stage_begin, stage_end
		),
		cmocka_unit_test_setup_teardown(
			who_asks_in_the_same_turn_takes_over_what_another_forgot, stage_begin,
			stage_end
		),
		cmocka_unit_test_setup_teardown(
			after_a_cancel_the_next_asks_anew, stage_begin, stage_end
		),
		cmocka_unit_test_setup_teardown(
			who_waits_at_the_end_is_told_that_nothing_came, stage_begin, stage_end
		),
		cmocka_unit_test_setup_teardown(
			at_the_end_who_is_told_may_forget_another_question, stage_begin, stage_end
		),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
