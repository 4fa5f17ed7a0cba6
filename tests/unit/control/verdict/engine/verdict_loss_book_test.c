// SPDX-License-Identifier: BSD-3-Clause
// Retransmitted packets: which links of an agent stand out, and until when.
#include <support/cmocka.h>
#include <verdict/loss.h>

#include <string.h>

#define PEERS 8
#define LOOK_SENT 40 // segments on a link between two looks

struct scene {
	struct loss_book book;
	struct loss_count count[PEERS];
	bool loses[PEERS];
	uint32_t changes, permille;
};

static void on_changed(void *ctx, uint64_t peer, bool loses, uint32_t permille) {
	struct scene *scene = ctx;

	assert_in_range(peer, 1, PEERS);
	scene->changes += scene->loses[peer - 1] != loses;
	scene->loses[peer - 1] = loses;
	scene->permille = permille;
}

// Send `sent` segments on each link, `again[n]` of which are retransmitted, and look.
static void
look_of(struct scene *scene, uint32_t links, uint32_t sent, const uint32_t again[PEERS]) {
	loss_round_begin(&scene->book);
	for (uint32_t n = 0; n < links; n++) {
		scene->count[n].sent += sent;
		scene->count[n].again += again[n];
		loss_round_add(&scene->book, n + 1, &scene->count[n]);
	}
	loss_round_end(&scene->book, on_changed, scene);
}

static void look(struct scene *scene, uint32_t links, const uint32_t again[PEERS]) {
	look_of(scene, links, LOOK_SENT, again);
}

static uint32_t losing(const struct scene *scene) {
	uint32_t count = 0;

	for (uint32_t n = 0; n < PEERS; n++)
		count += scene->loses[n];
	return count;
}

static void link_that_sends_much_again_stands_out_and_no_other(void **state) {
	static const struct {
		uint32_t links;
		uint32_t again[PEERS];
		uint32_t lose;
		bool ourselves;
	} rows[] = {
		{4, {0}, 0, false},
		{4, {12, 0, 0, 0}, 1, false},
		{4, {2, 0, 0, 0}, 1, false}, // one of twenty
		{4, {1, 1, 1, 1}, 0, false}, // one of forty
		{5, {12, 12, 0, 0, 0}, 2, false},
		{4, {12, 12, 0, 0}, 0, true}, // half of the links: this node loses
		{4, {30, 20, 25, 12}, 0, true},
		{1, {30}, 0, true}, // no other link to compare with
		// The other end reports this node as well, or loses on both of its two links.
		{2, {30, 0}, 1, false},
		{2, {30, 20}, 0, true},
	};

	(void)state;
	for (size_t n = 0; n < sizeof(rows) / sizeof(rows[0]); n++) {
		struct scene scene = {.changes = 0};

		for (uint32_t looks = 0; looks < 4; looks++)
			look(&scene, rows[n].links, rows[n].again);
		assert_int_equal(losing(&scene), rows[n].lose);
		assert_int_equal(scene.book.ourselves, rows[n].ourselves);
	}
}

static void it_is_told_after_two_looks_and_no_longer_when_it_is_over(void **state) {
	static const uint32_t bad[PEERS] = {12}, good[PEERS] = {0};
	struct scene scene = {.changes = 0};

	(void)state;
	look(&scene, 4, bad); // the start of the counters is unknown
	assert_int_equal(losing(&scene), 0);
	look(&scene, 4, bad);
	assert_int_equal(losing(&scene), 1);
	assert_int_equal(scene.permille, 300);
	assert_int_equal(loss_link_permille(&scene.book, 1), 300);
	assert_int_equal(loss_link_permille(&scene.book, 2), 0);
	assert_int_equal(loss_link_permille(&scene.book, PEERS + 1), 0);
	for (uint32_t looks = 0; looks < LOSS_ROUNDS_KEPT; looks++)
		look(&scene, 4, good);
	assert_int_equal(losing(&scene), 0);
	assert_int_equal(loss_link_permille(&scene.book, 1), 0);
	assert_int_equal(scene.changes, 2);
}

// The end of a heavy loss is certain at once; that of a light loss takes longer.
static void loss_is_over_when_enough_has_passed_that_would_have_shown_it(void **state) {
	static const uint32_t heavy[PEERS] = {30}, light[PEERS] = {3}, none[PEERS] = {0};
	struct scene scene = {.changes = 0};

	(void)state;
	look(&scene, 4, heavy);
	look(&scene, 4, heavy);
	assert_int_equal(losing(&scene), 1);
	look(&scene, 4, none);
	assert_int_equal(losing(&scene), 0);
	look(&scene, 4, none); // earlier segments are forgotten
	assert_int_equal(losing(&scene), 0);
	memset(&scene, 0, sizeof(scene));
	for (uint32_t looks = 0; looks < 6; looks++)
		look(&scene, 4, light);
	assert_int_equal(losing(&scene), 1);
	look(&scene, 4, none);
	assert_int_equal(losing(&scene), 1);
}

// Two retransmissions of forty segments are enough if links with several times as many have none.
// They may be chance if other links have some.
static void two_that_are_sent_again_stand_out_where_nothing_else_is(void **state) {
	static const uint32_t none[PEERS] = {0}, one[PEERS] = {1}, other[PEERS] = {0, 1};
	static const struct {
		bool other_loses;
		uint32_t links, lose;
	} rows[] = {{false, 8, 1}, {true, 8, 0}, {false, 4, 0}};

	(void)state;
	for (size_t n = 0; n < sizeof(rows) / sizeof(rows[0]); n++) {
		struct scene scene = {.changes = 0};

		for (uint32_t looks = 0; looks < LOSS_ROUNDS_KEPT; looks++) {
			const uint32_t *again = looks == 10 || looks == 30 ? one : none;

			if (looks == 20 && rows[n].other_loses)
				again = other;
			look_of(&scene, rows[n].links, 1, again);
		}
		assert_int_equal(losing(&scene), rows[n].lose);
	}
}

// Segments from before a loss do not dilute it. With three segments a look and a third of them
// lost, the 22nd good segment proves the end.
static void what_passed_before_a_loss_says_nothing_of_it(void **state) {
	static const uint32_t none[PEERS] = {0}, third[PEERS] = {1};
	struct scene scene = {.changes = 0};

	(void)state;
	for (uint32_t looks = 0; looks < LOSS_ROUNDS_KEPT; looks++)
		look_of(&scene, 4, 3, looks < LOSS_ROUNDS_KEPT - 15 ? none : third);
	assert_int_equal(losing(&scene), 1);
	for (uint32_t looks = 0; looks < 7; looks++)
		look_of(&scene, 4, 3, none);
	assert_int_equal(losing(&scene), 1);
	look_of(&scene, 4, 3, none);
	assert_int_equal(losing(&scene), 0);
}

static void send_one(struct scene *scene, uint32_t again) {
	scene->count[0].sent++;
	scene->count[0].again += again;
	loss_recheck_link(&scene->book, 1, &scene->count[0], on_changed, scene);
}

// The end is found without waiting for the next look. Each retransmission restarts the count.
static void loss_is_over_between_two_looks(void **state) {
	static const uint32_t heavy[PEERS] = {LOOK_SENT / 4};
	struct scene scene = {.changes = 0};
	uint32_t cursor = 0, passed = 0;
	uint64_t peer;

	(void)state;
	look(&scene, 4, heavy);
	assert_false(loss_next_to_probe(&scene.book, &cursor, &peer));
	look(&scene, 4, heavy);
	cursor = 0;
	assert_true(loss_next_to_probe(&scene.book, &cursor, &peer));
	assert_int_equal(peer, 1);
	assert_false(loss_next_to_probe(&scene.book, &cursor, &peer));
	for (uint32_t n = 0; n < 20; n++)
		send_one(&scene, 0);
	assert_int_equal(losing(&scene), 1);
	send_one(&scene, 1);
	while (losing(&scene) > 0 && passed < LOOK_SENT) {
		passed++;
		send_one(&scene, 0);
	}
	assert_in_range(passed, 21, LOOK_SENT - 1);
	assert_int_equal(scene.changes, 2);
	look(&scene, 4, (const uint32_t[PEERS]){0}); // earlier segments are forgotten
	assert_int_equal(losing(&scene), 0);
}

// One retransmission on an idle link may be chance, which the requested answers decide.
static void link_that_lost_something_lately_is_asked_for_answers(void **state) {
	static const uint32_t none[PEERS] = {0}, one[PEERS] = {1};
	struct scene scene = {.changes = 0};
	uint32_t cursor, looks = 0;
	uint64_t peer = 0;
	bool asked;

	(void)state;
	look_of(&scene, 8, 2, none);
	look_of(&scene, 8, 2, one);
	assert_int_equal(losing(&scene), 0);
	do {
		cursor = 0;
		asked = loss_next_to_probe(&scene.book, &cursor, &peer);
		assert_true(
			!asked || (peer == 1 && !loss_next_to_probe(&scene.book, &cursor, &peer))
		);
		look_of(&scene, 8, 2, none);
	} while (asked && looks++ < LOSS_ROUNDS_KEPT);
	assert_int_equal(looks, LOSS_DOUBT_ROUNDS);
	assert_int_equal(scene.changes, 0);
}

// The first two retransmissions prove nothing yet. A link with many requested answers is not
// compared with the others any more.
static void answers_that_are_asked_for_do_not_acquit_at_once(void **state) {
	static const uint32_t none[PEERS] = {0}, one[PEERS] = {1};
	struct scene scene = {.changes = 0};
	uint32_t looks = 0;

	(void)state;
	for (uint32_t n = 0; n < 9; n++)
		look_of(&scene, 8, 2, n == 6 || n == 8 ? one : none);
	assert_int_equal(losing(&scene), 1);
	for (; losing(&scene) > 0 && looks < LOSS_ROUNDS_KEPT; looks++) {
		scene.count[0].sent += 8;
		look_of(&scene, 8, 2, none);
	}
	assert_in_range(looks, 4, LOSS_ROUNDS_KEPT / 2);
}

// A dead host causes retransmission of everything, so a link is lossy only once something was
// acknowledged. If most links are unanswered, this node loses.
static void link_is_as_it_was_while_nothing_comes_back(void **state) {
	static const uint32_t bad[PEERS] = {12}, none[PEERS] = {0};
	struct scene scene = {.changes = 0};
	uint32_t cursor = 0;
	uint64_t peer = 0;

	(void)state;
	look(&scene, 4, none);
	scene.count[0].unanswered = true;
	look(&scene, 4, bad);
	look(&scene, 4, bad);
	assert_true(loss_next_to_probe(&scene.book, &cursor, &peer) && peer == 1);
	loss_recheck_link(&scene.book, 1, &scene.count[0], on_changed, &scene);
	assert_int_equal(losing(&scene), 0);
	scene.count[0].unanswered = false; // makes up for the skipped look
	loss_recheck_link(&scene.book, 1, &scene.count[0], on_changed, &scene);
	assert_int_equal(losing(&scene), 1);
	assert_int_equal(loss_link_permille(&scene.book, 1), 300);
	scene.count[0].unanswered = true;
	for (uint32_t looks = 0; looks < LOSS_ROUNDS_KEPT; looks++)
		look(&scene, 4, none);
	loss_recheck_link(&scene.book, 1, &scene.count[0], on_changed, &scene);
	assert_int_equal(losing(&scene), 1);
	assert_false(scene.book.ourselves);
	scene.count[1].unanswered = true;
	look(&scene, 4, none);
	assert_true(scene.book.ourselves);
	scene.count[0].unanswered = scene.count[1].unanswered = false;
	for (uint32_t looks = 0; looks < 2; looks++)
		look(&scene, 4, none);
	assert_false(scene.book.ourselves);
	assert_int_equal(losing(&scene), 0);
}

// The silence of the only link may be caused by either end, so neither is called lossy.
static void one_link_that_is_unanswered_says_nothing(void **state) {
	static const uint32_t bad[PEERS] = {12};
	struct scene scene = {.changes = 0};

	(void)state;
	look(&scene, 1, bad);
	scene.count[0].unanswered = true;
	look(&scene, 1, bad);
	assert_false(scene.book.ourselves);
	assert_int_equal(losing(&scene), 0);
}

// Loss may break a link; its next connection counts from zero.
static void link_that_ends_loses_for_a_while(void **state) {
	static const uint32_t bad[PEERS] = {0, 0, 0, 30};
	struct scene scene = {.changes = 0};

	(void)state;
	look(&scene, 4, bad);
	look(&scene, 4, bad);
	assert_int_equal(losing(&scene), 1);
	look(&scene, 3, bad);
	assert_int_equal(losing(&scene), 1);
	scene.count[3] = (struct loss_count){0};
	look(&scene, 4, bad);
	assert_int_equal(losing(&scene), 1);
	for (uint32_t looks = 0; looks <= LOSS_UNSEEN_ROUNDS_MAX; looks++)
		look(&scene, 3, bad);
	assert_int_equal(losing(&scene), 0);
}

// Connections that lost a tenth long ago and nothing since. The sums of this look are below the
// previous ones.
static void old_losses_are_not_of_now_when_another_connection_ends(void **state) {
	static const uint32_t none[PEERS] = {0};
	static const struct {
		struct loss_count before, after;
		bool loses;
	} rows[] = {
		// The smaller one of two connections ended.
		{{2, 1400, 103, false}, {1, 1020, 100, false}, false},
		{{2, 1400, 103, false}, {2, 1030, 100, false}, false}, // and was replaced
		{{1, 1400, 103, false}, {2, 1030, 100, false}, false},
		{{1, 1400, 3, false}, {1, 40, 20, false}, true}, // the only connection was replaced
		{{1, 1400, 300, false}, {1, 1500, 200, false}, true},
		{{1, UINT32_MAX - 10, 100, false},
		 {1, 30, 100, false},
		 false}, // the kernel's counter restarted
	};

	(void)state;
	for (size_t n = 0; n < sizeof(rows) / sizeof(rows[0]); n++) {
		struct scene scene = {.changes = 0};

		scene.count[0] = rows[n].before;
		look(&scene, 4, none);
		look(&scene, 4, none);
		assert_int_equal(losing(&scene), 0);
		scene.count[0] = rows[n].after;
		look(&scene, 4, none);
		assert_int_equal(losing(&scene), rows[n].loses);
	}
}

// A node that begins to lose on all of its links notices one link first.
static void link_is_not_accused_while_others_lose_half_as_much(void **state) {
	static const uint32_t again[PEERS] = {12, 7, 6, 0};
	static const uint32_t alone[PEERS] = {30, 1, 1, 1};
	struct scene scene = {.changes = 0};

	(void)state;
	for (uint32_t looks = 0; looks < 2; looks++)
		look(&scene, 4, again);
	assert_int_equal(losing(&scene), 0);
	memset(&scene, 0, sizeof(scene));
	for (uint32_t looks = 0; looks < 4; looks++)
		look(&scene, 4, alone);
	assert_int_equal(losing(&scene), 1);
}

// Impossible counters are used as far as they are plausible.
static void counts_that_cannot_be_break_nothing(void **state) {
	struct loss_book book = {.count = 0};
	struct scene scene = {.changes = 0};

	(void)state;
	for (uint32_t looks = 0; looks < 4; looks++) {
		loss_round_begin(&book);
		for (uint64_t peer = 1; peer <= LOSS_LINKS_MAX + 9; peer++) {
			struct loss_count count = {
				.connections = (uint32_t)peer % 3,
				.sent = UINT64_MAX - looks * peer,
				.again = looks * UINT64_C(1) << 40,
			};

			loss_round_add(&book, peer, &count);
		}
		assert_int_equal(book.count, LOSS_LINKS_MAX);
		loss_round_end(&book, on_changed, &scene);
	}
	assert_int_equal(scene.changes, 0);
}

UNIT_GROUP(verdict_loss_book) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(link_that_sends_much_again_stands_out_and_no_other),
		cmocka_unit_test(it_is_told_after_two_looks_and_no_longer_when_it_is_over),
		cmocka_unit_test(loss_is_over_when_enough_has_passed_that_would_have_shown_it),
		cmocka_unit_test(two_that_are_sent_again_stand_out_where_nothing_else_is),
		cmocka_unit_test(what_passed_before_a_loss_says_nothing_of_it),
		cmocka_unit_test(loss_is_over_between_two_looks),
		cmocka_unit_test(link_that_lost_something_lately_is_asked_for_answers),
		cmocka_unit_test(link_is_as_it_was_while_nothing_comes_back),
		cmocka_unit_test(one_link_that_is_unanswered_says_nothing),
		cmocka_unit_test(answers_that_are_asked_for_do_not_acquit_at_once),
		cmocka_unit_test(link_that_ends_loses_for_a_while),
		cmocka_unit_test(old_losses_are_not_of_now_when_another_connection_ends),
		cmocka_unit_test(link_is_not_accused_while_others_lose_half_as_much),
		cmocka_unit_test(counts_that_cannot_be_break_nothing),
	};

	return cmocka_run_group_tests_name("verdict_loss_book", tests, NULL, NULL);
}
