// SPDX-License-Identifier: BSD-3-Clause
// Packets that are lost: which links stand out, and what follows when several agents say so.
#include "control/verdict/verdict_bed.h"

#include <verdict/loss.h>

#include <errno.h>
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

// Of each link so many segments are sent, and so many of them again.
static void
look_of(struct scene *scene, uint32_t links, uint32_t sent, const uint32_t again[PEERS]) {
	loss_begin(&scene->book);
	for (uint32_t n = 0; n < links; n++) {
		scene->count[n].sent += sent;
		scene->count[n].again += again[n];
		loss_add(&scene->book, n + 1, &scene->count[n]);
	}
	loss_end(&scene->book, on_changed, scene);
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
		{4, {2, 0, 0, 0}, 1, false}, // a twentieth
		{4, {1, 1, 1, 1}, 0, false}, // a fortieth
		{5, {12, 12, 0, 0, 0}, 2, false},
		{4, {12, 12, 0, 0}, 0, true}, // half of them: it is we
		{4, {30, 20, 25, 12}, 0, true},
		{1, {30}, 0, true},	// nothing to compare with
		{2, {30, 0}, 1, false}, // the other end accuses us, or loses on both
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
	look(&scene, 4, bad); // where the counts begin is not known
	assert_int_equal(losing(&scene), 0);
	look(&scene, 4, bad);
	assert_int_equal(losing(&scene), 1);
	assert_int_equal(scene.permille, 300);
	assert_int_equal(loss_of(&scene.book, 1), 300);
	assert_int_equal(loss_of(&scene.book, 2), 0);
	assert_int_equal(loss_of(&scene.book, PEERS + 1), 0);
	for (uint32_t looks = 0; looks < LOSS_LOOKS; looks++)
		look(&scene, 4, good);
	assert_int_equal(losing(&scene), 0);
	assert_int_equal(loss_of(&scene.book, 1), 0);
	assert_int_equal(scene.changes, 2);
}

// A heavy loss that is over has shown so at once, a light one takes longer to be sure of.
static void loss_is_over_when_enough_has_passed_that_would_have_shown_it(void **state) {
	static const uint32_t heavy[PEERS] = {30}, light[PEERS] = {3}, none[PEERS] = {0};
	struct scene scene = {.changes = 0};

	(void)state;
	look(&scene, 4, heavy);
	look(&scene, 4, heavy);
	assert_int_equal(losing(&scene), 1);
	look(&scene, 4, none);
	assert_int_equal(losing(&scene), 0);
	look(&scene, 4, none); // and what was before it is forgotten
	assert_int_equal(losing(&scene), 0);
	memset(&scene, 0, sizeof(scene));
	for (uint32_t looks = 0; looks < 6; looks++)
		look(&scene, 4, light);
	assert_int_equal(losing(&scene), 1);
	look(&scene, 4, none);
	assert_int_equal(losing(&scene), 1);
}

// Two segments of forty are enough where nothing is sent again on links that carry several times as
// many, and chance where something is.
static void two_that_are_sent_again_stand_out_where_nothing_else_is(void **state) {
	static const uint32_t none[PEERS] = {0}, one[PEERS] = {1}, other[PEERS] = {0, 1};
	static const struct {
		bool other_loses;
		uint32_t links, lose;
	} rows[] = {{false, 8, 1}, {true, 8, 0}, {false, 4, 0}};

	(void)state;
	for (size_t n = 0; n < sizeof(rows) / sizeof(rows[0]); n++) {
		struct scene scene = {.changes = 0};

		for (uint32_t looks = 0; looks < LOSS_LOOKS; looks++) {
			const uint32_t *again = looks == 10 || looks == 30 ? one : none;

			if (looks == 20 && rows[n].other_loses)
				again = other;
			look_of(&scene, rows[n].links, 1, again);
		}
		assert_int_equal(losing(&scene), rows[n].lose);
	}
}

// What passed before the loss began makes it no lighter: on a link of three segments a look the
// 22nd that passes tells the end of one that lost a third.
static void what_passed_before_a_loss_says_nothing_of_it(void **state) {
	static const uint32_t none[PEERS] = {0}, third[PEERS] = {1};
	struct scene scene = {.changes = 0};

	(void)state;
	for (uint32_t looks = 0; looks < LOSS_LOOKS; looks++)
		look_of(&scene, 4, 3, looks < LOSS_LOOKS - 15 ? none : third);
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
	loss_between(&scene->book, 1, &scene->count[0], on_changed, scene);
}

// It does not wait for the next look, and begins anew with each segment that is sent again.
static void loss_is_over_between_two_looks(void **state) {
	static const uint32_t heavy[PEERS] = {LOOK_SENT / 4};
	struct scene scene = {.changes = 0};
	uint32_t cursor = 0, passed = 0;
	uint64_t peer;

	(void)state;
	look(&scene, 4, heavy);
	assert_false(loss_next(&scene.book, &cursor, &peer));
	look(&scene, 4, heavy);
	cursor = 0;
	assert_true(loss_next(&scene.book, &cursor, &peer));
	assert_int_equal(peer, 1);
	assert_false(loss_next(&scene.book, &cursor, &peer));
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
	look(&scene, 4, (const uint32_t[PEERS]){0}); // what was before it is forgotten
	assert_int_equal(losing(&scene), 0);
}

// One segment that is sent again on an idle link may be chance: the answers asked for tell.
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
		asked = loss_next(&scene.book, &cursor, &peer);
		assert_true(!asked || (peer == 1 && !loss_next(&scene.book, &cursor, &peer)));
		look_of(&scene, 8, 2, none);
	} while (asked && looks++ < LOSS_LOOKS);
	assert_int_equal(looks, LOSS_DOUBT_LOOKS);
	assert_int_equal(scene.changes, 0);
}

// Of the first two that were sent again nothing is certain, and one that carries much since it is
// asked for answers is compared with the others no more.
static void answers_that_are_asked_for_do_not_acquit_at_once(void **state) {
	static const uint32_t none[PEERS] = {0}, one[PEERS] = {1};
	struct scene scene = {.changes = 0};
	uint32_t looks = 0;

	(void)state;
	for (uint32_t n = 0; n < 9; n++)
		look_of(&scene, 8, 2, n == 6 || n == 8 ? one : none);
	assert_int_equal(losing(&scene), 1);
	for (; losing(&scene) > 0 && looks < LOSS_LOOKS; looks++) {
		scene.count[0].sent += 8;
		look_of(&scene, 8, 2, none);
	}
	assert_in_range(looks, 4, LOSS_LOOKS / 2);
}

// To a dead host all is sent again: a link is called lossy once something has come back. Where most
// are unanswered it is we who lose.
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
	assert_true(loss_next(&scene.book, &cursor, &peer) && peer == 1);
	loss_between(&scene.book, 1, &scene.count[0], on_changed, &scene);
	assert_int_equal(losing(&scene), 0);
	scene.count[0].unanswered = false; // the look is made up for
	loss_between(&scene.book, 1, &scene.count[0], on_changed, &scene);
	assert_int_equal(losing(&scene), 1);
	assert_int_equal(loss_of(&scene.book, 1), 300);
	scene.count[0].unanswered = true;
	for (uint32_t looks = 0; looks < LOSS_LOOKS; looks++)
		look(&scene, 4, none);
	loss_between(&scene.book, 1, &scene.count[0], on_changed, &scene);
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

// With one link alone its silence may be of either end: nobody is said to lose.
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

// It may be broken by what it loses; its next connection counts from its own begin.
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
	for (uint32_t looks = 0; looks <= LOSS_UNSEEN; looks++)
		look(&scene, 3, bad);
	assert_int_equal(losing(&scene), 0);
}

// Connections of long ago, which lost a tenth then and nothing since; what the look finds is less
// than the one before.
static void old_losses_are_not_of_now_when_another_connection_ends(void **state) {
	static const uint32_t none[PEERS] = {0};
	static const struct {
		struct loss_count before, after;
		bool loses;
	} rows[] = {
		{{2, 1400, 103, false}, {1, 1020, 100, false}, false}, // the smaller of two ended
		{{2, 1400, 103, false}, {2, 1030, 100, false}, false}, // and another was made
		{{1, 1400, 103, false}, {2, 1030, 100, false}, false},
		{{1, 1400, 3, false}, {1, 40, 20, false}, true}, // the only one was made anew
		{{1, 1400, 300, false}, {1, 1500, 200, false}, true},
		{{1, UINT32_MAX - 10, 100, false},
		 {1, 30, 100, false},
		 false}, // the kernel's count began anew
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

// Who begins to lose on all of its links notices one first.
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

// What counts say that cannot be is believed as far as it can be.
static void counts_that_cannot_be_break_nothing(void **state) {
	struct loss_book book = {.count = 0};
	struct scene scene = {.changes = 0};

	(void)state;
	for (uint32_t looks = 0; looks < 4; looks++) {
		loss_begin(&book);
		for (uint64_t peer = 1; peer <= LOSS_LINKS_MAX + 9; peer++) {
			struct loss_count count = {
				.connections = (uint32_t)peer % 3,
				.sent = UINT64_MAX - looks * peer,
				.again = looks * UINT64_C(1) << 40,
			};

			loss_add(&book, peer, &count);
		}
		assert_int_equal(book.count, LOSS_LINKS_MAX);
		loss_end(&book, on_changed, &scene);
	}
	assert_int_equal(scene.changes, 0);
}

static int say_loses(struct bed *bed, uint32_t observer, uint32_t subject, uint32_t permille) {
	struct observation observation = bed_observation(observer, subject, OBSERVATION_NO_PAIR);

	observation.device[0] = observation.peer_device[0] = '\0';
	observation.reach = permille > 0 ? VERDICT_REACH_LOSES : VERDICT_REACH_ANSWERS;
	observation.lost_permille = permille;
	return verdict_observation(bed->engine, bed->now_ns, &observation);
}

static void node_to_which_two_send_much_again_is_lossy_and_drains_nobody(void **state) {
	struct bed *bed = bed_create(6);

	(void)state;
	verdict_self(bed->engine, bed->now_ns, &(struct verdict_self){.joined = true});
	assert_int_equal(say_loses(bed, 1, 4, 300), 0);
	bed_expect(bed, 4, VERDICT_HEALTHY, "None");
	assert_int_equal(say_loses(bed, 2, 4, 412), 0);
	bed_expect(bed, 4, VERDICT_PATH_LOSSY, "PacketsLost");
	assert_int_equal(bed_view(bed, 4).advice, VERDICT_ADVICE_WARN);
	assert_string_equal(
		bed_view(bed, 4).evidence,
		"2 observers have to send again what they send to it, up to 41.2 % of the packets"
	);
	say_loses(bed, 1, 4, 0);
	say_loses(bed, 2, 4, 0);
	bed_pass(bed, 8 * SEC);
	bed_expect(bed, 4, VERDICT_HEALTHY, "None");
	bed_destroy(bed);
}

static void two_of_one_host_are_one_who_sends_again(void **state) {
	struct bed *bed = bed_create(6);

	(void)state;
	bed_place(bed, 1, "rack", "");
	bed_place(bed, 2, "rack", "");
	say_loses(bed, 1, 4, 300);
	say_loses(bed, 2, 4, 300);
	bed_expect(bed, 4, VERDICT_HEALTHY, "None");
	say_loses(bed, 3, 4, 300);
	bed_expect(bed, 4, VERDICT_PATH_LOSSY, "PacketsLost");
	bed_destroy(bed);
}

static void what_is_sent_again_is_answered_in_the_end(void **state) {
	struct bed *bed = bed_create(6);

	(void)state;
	bed_see_reach(bed, 1, 4, OBSERVATION_SILENT, VERDICT_REACH_LOSES);
	bed_see_reach(bed, 2, 4, OBSERVATION_SILENT, VERDICT_REACH_LOSES);
	bed_pass(bed, 20 * SEC);
	bed_expect(bed, 4, VERDICT_FABRIC_DOWN, "PulseUnread");
	bed_destroy(bed);
}

static void who_loses_itself_calls_nobody_silent(void **state) {
	const struct verdict_self loses = {.joined = true, .loses = true};
	struct bed *bed = bed_create(6);

	(void)state;
	verdict_self(bed->engine, bed->now_ns, &loses);
	bed_see_two(bed, 4, OBSERVATION_SILENT);
	bed_pass(bed, 8 * SEC);
	bed_expect(bed, 4, VERDICT_UNKNOWN, "OwnLoss");
	// What a node says of itself is no silence.
	assert_int_equal(bed_say(bed, 5, VERDICT_CHECK_FAILED, "DiskFull"), 0);
	bed_expect(bed, 5, VERDICT_CHECK_FAILED, "DiskFull");
	bed_destroy(bed);
}

// Heavy loss makes it fall silent to some for a moment: no network of it is down, its agent runs.
static void suspect_that_loses_packets_stays_lossy(void **state) {
	struct bed *bed = bed_create(8);

	(void)state;
	say_loses(bed, 1, 4, 700);
	say_loses(bed, 2, 4, 700);
	bed_expect(bed, 4, VERDICT_PATH_LOSSY, "PacketsLost");
	assert_int_equal(bed_state(bed, 4, RAS_SUSPECT, RAS_CAUSE_SILENT), 0);
	bed_see_reach(bed, 3, 4, OBSERVATION_GOOD, VERDICT_REACH_NONE);
	bed_see_reach(bed, 5, 4, OBSERVATION_GOOD, VERDICT_REACH_NONE);
	bed_pass(bed, 4 * SEC);
	bed_expect(bed, 4, VERDICT_PATH_LOSSY, "PacketsLost");
	bed_destroy(bed);
}

// The overlay lost so many of its beats that it holds it for dead; some read it all the same. One
// whose overlay alone is silent, and that lost nothing before, has no management network.
static void one_dead_by_its_losses_is_lossy_while_it_is_read(void **state) {
	for (uint32_t loses = 0; loses < 2; loses++) {
		struct bed *bed = bed_create(8);

		if (loses > 0) {
			say_loses(bed, 1, 4, 700);
			say_loses(bed, 2, 4, 700);
		}
		assert_int_equal(bed_state(bed, 4, RAS_SUSPECT, RAS_CAUSE_SILENT), 0);
		bed_pass(bed, 3 * SEC);
		assert_int_equal(bed_state(bed, 4, RAS_DEAD, RAS_CAUSE_SILENT), 0);
		bed_see_reach(bed, 3, 4, OBSERVATION_GOOD, VERDICT_REACH_NONE);
		bed_see_reach(bed, 5, 4, OBSERVATION_GOOD, VERDICT_REACH_NONE);
		bed_pass(bed, 6 * SEC);
		if (loses > 0)
			bed_expect(bed, 4, VERDICT_PATH_LOSSY, "PacketsLost");
		else
			bed_expect(bed, 4, VERDICT_MGMT_NET_DOWN, "PulseAlone");
		bed_destroy(bed);
	}
	(void)state;
}

static void tell_connections(struct bed *bed, uint32_t subject, enum verdict_reach reach) {
	for (uint32_t observer = 1; observer <= 2; observer++) {
		struct observation observation =
			bed_observation(observer, subject, OBSERVATION_NO_PAIR);

		observation.device[0] = observation.peer_device[0] = '\0';
		observation.reach = reach;
		assert_int_equal(verdict_observation(bed->engine, bed->now_ns, &observation), 0);
	}
}

// Who finds it silent cannot tell that it loses, and a connection comes through on which nothing is
// said. What is silent for good is so nevertheless.
static void silence_of_a_node_that_loses_packets_is_of_its_losses(void **state) {
	struct bed *bed = bed_create(8);

	(void)state;
	bed_see(bed, 3, 4, OBSERVATION_GOOD);
	say_loses(bed, 1, 4, 600);
	say_loses(bed, 2, 4, 600);
	bed_expect(bed, 4, VERDICT_PATH_LOSSY, "PacketsLost");
	assert_int_equal(bed_state(bed, 4, RAS_SUSPECT, RAS_CAUSE_SILENT), 0);
	tell_connections(bed, 4, VERDICT_REACH_ACCEPTS);
	bed_pass(bed, 3 * SEC);
	bed_expect(bed, 4, VERDICT_PATH_LOSSY, "PacketsLost");
	assert_int_equal(bed_state(bed, 4, RAS_ALIVE, RAS_CAUSE_NONE), 0);
	tell_connections(bed, 4, VERDICT_REACH_ANSWERS);
	for (uint32_t observer = 1; observer < 8; observer++) {
		if (observer != 4)
			bed_see_reach(bed, observer, 4, OBSERVATION_SILENT, VERDICT_REACH_ANSWERS);
	}
	bed_pass(bed, 2 * SEC);
	bed_expect(bed, 4, VERDICT_PATH_LOSSY, "PacketsLost");
	bed_pass(bed, 15 * SEC);
	bed_expect(bed, 4, VERDICT_FABRIC_DOWN, "PulseUnread");
	bed_destroy(bed);
}

// The last looks of those who read it are older than that, and still say that it loses.
static void what_a_few_do_not_read_leaves_it_lossy(void **state) {
	struct bed *bed = bed_create(8);

	(void)state;
	for (uint32_t observer = 1; observer <= 3; observer++)
		bed_see(bed, observer, 4, OBSERVATION_LOSSY);
	bed_pass(bed, SEC);
	bed_expect(bed, 4, VERDICT_PATH_LOSSY, "LargeLost");
	bed_pass(bed, 3 * SEC);
	bed_see_reach(bed, 5, 4, OBSERVATION_SILENT, VERDICT_REACH_ANSWERS);
	bed_see_reach(bed, 6, 4, OBSERVATION_SILENT, VERDICT_REACH_ANSWERS);
	bed_pass(bed, 6 * SEC);
	bed_expect(bed, 4, VERDICT_PATH_LOSSY, "LargeLost");
	bed_destroy(bed);
}

static void losses_of_all_sizes_are_not_called_losses_of_large_ones(void **state) {
	struct bed *bed = bed_create(8);

	(void)state;
	for (uint32_t observer = 1; observer <= 3; observer++) {
		struct observation observation = bed_observation(observer, 4, OBSERVATION_LOSSY);

		observation.lost_bytes = observer == 1 ? 65536 : 0;
		observation.reach = VERDICT_REACH_ANSWERS;
		assert_int_equal(verdict_observation(bed->engine, bed->now_ns, &observation), 0);
	}
	bed_pass(bed, SEC);
	bed_expect(bed, 4, VERDICT_PATH_LOSSY, "ReadsLost");
	bed_destroy(bed);
}

static void who_is_found_to_lose_packets_calls_nobody_frozen(void **state) {
	struct bed *bed = bed_create(8);

	(void)state;
	bed_see(bed, 3, 0, OBSERVATION_GOOD);
	say_loses(bed, 1, 0, 600);
	say_loses(bed, 2, 0, 600);
	bed_expect(bed, 0, VERDICT_PATH_LOSSY, "PacketsLost");
	assert_int_equal(bed_state(bed, 5, RAS_SUSPECT, RAS_CAUSE_SILENT), 0);
	tell_connections(bed, 5, VERDICT_REACH_ACCEPTS);
	bed_pass(bed, 3 * SEC);
	bed_expect(bed, 5, VERDICT_UNKNOWN, "OwnLoss");
	bed_destroy(bed);
}

// That one of several stopped to repeat it takes nothing from what the others say.
static void what_others_still_say_is_not_stale(void **state) {
	struct bed *bed = bed_create(8);

	(void)state;
	for (uint32_t s = 0; s < 60; s += 10) {
		if (s == 0)
			bed_see(bed, 1, 4, OBSERVATION_LOSSY);
		bed_see(bed, 2, 4, OBSERVATION_LOSSY);
		bed_see(bed, 3, 4, OBSERVATION_LOSSY);
		bed_pass(bed, 10 * SEC);
		bed_expect(bed, 4, VERDICT_PATH_LOSSY, "LargeLost");
	}
	bed_destroy(bed);
}

static void what_is_judged_over_windows_is_well_after_three_seconds(void **state) {
	struct bed *bed = bed_create(6);

	(void)state;
	bed_see(bed, 1, 4, OBSERVATION_LOSSY);
	bed_see(bed, 2, 4, OBSERVATION_LOSSY);
	bed_pass(bed, 10 * SEC);
	bed_expect(bed, 4, VERDICT_PATH_LOSSY, "LargeLost");
	bed_see(bed, 1, 4, OBSERVATION_GOOD);
	bed_see(bed, 2, 4, OBSERVATION_GOOD);
	bed_pass(bed, 2 * SEC);
	bed_expect(bed, 4, VERDICT_PATH_LOSSY, "LargeLost");
	bed_pass(bed, 2 * SEC);
	bed_expect(bed, 4, VERDICT_HEALTHY, "None");
	bed_destroy(bed);
}

// Found: told of two paths, taken back as one of these had a good moment, told again a second
// later of five, and by the end of the fault, the fourth change in a minute, unstable.
static void what_few_paths_lose_is_not_taken_back_before_the_others_have_found_it(void **state) {
	static const enum observation_kind kinds[] = {OBSERVATION_LOSSY, OBSERVATION_DEGRADED};

	(void)state;
	for (size_t n = 0; n < sizeof(kinds) / sizeof(kinds[0]); n++) {
		enum verdict word =
			kinds[n] == OBSERVATION_LOSSY ? VERDICT_PATH_LOSSY : VERDICT_PATH_DEGRADED;
		struct bed *bed = bed_create(8);

		bed_see_two(bed, 4, kinds[n]);
		bed_pass(bed, SEC);
		bed_expect(bed, 4, word, NULL);
		bed_see(bed, 2, 4, OBSERVATION_GOOD);
		bed_pass(bed, 5 * SEC);
		for (uint32_t observer = 2; observer < 6; observer++)
			bed_see(bed, observer, 4, kinds[n]);
		bed_pass(bed, 10 * SEC);
		bed_expect(bed, 4, word, NULL);
		assert_int_equal(bed->changes, 1);
		for (uint32_t observer = 1; observer < 6; observer++)
			bed_see(bed, observer, 4, OBSERVATION_GOOD);
		bed_pass(bed, 4 * SEC);
		bed_expect(bed, 4, VERDICT_HEALTHY, "None");
		bed_destroy(bed);
	}
}

static void fault_of_a_moment_is_over_ten_seconds_after_its_end(void **state) {
	struct bed *bed = bed_create(8);

	(void)state;
	bed_see_two(bed, 4, OBSERVATION_LOSSY);
	bed_pass(bed, SEC);
	bed_expect(bed, 4, VERDICT_PATH_LOSSY, "LargeLost");
	bed_see_two(bed, 4, OBSERVATION_GOOD);
	bed_pass(bed, 10 * SEC);
	bed_expect(bed, 4, VERDICT_HEALTHY, "None");
	bed_destroy(bed);
}

// What is worse waits for nothing.
static void lossy_node_that_falls_off_the_fabric_is_so_at_once(void **state) {
	struct bed *bed = bed_create(8);

	(void)state;
	bed_see_two(bed, 4, OBSERVATION_LOSSY);
	bed_pass(bed, SEC);
	bed_expect(bed, 4, VERDICT_PATH_LOSSY, "LargeLost");
	bed_see_two(bed, 4, OBSERVATION_SILENT);
	bed_pass(bed, SEC);
	bed_expect(bed, 4, VERDICT_FABRIC_DOWN, "PulseUnread");
	bed_destroy(bed);
}

// Each of those who lost some has counted by itself that no more is lost.
static void lost_packets_are_over_a_second_after_half_say_so(void **state) {
	struct bed *bed = bed_create(6);

	(void)state;
	say_loses(bed, 1, 4, 300);
	say_loses(bed, 2, 4, 300);
	bed_pass(bed, 10 * SEC);
	bed_expect(bed, 4, VERDICT_PATH_LOSSY, "PacketsLost");
	say_loses(bed, 1, 4, 0);
	bed_pass(bed, SEC / 2);
	bed_expect(bed, 4, VERDICT_PATH_LOSSY, "PacketsLost");
	bed_pass(bed, SEC);
	bed_expect(bed, 4, VERDICT_HEALTHY, "None");
	bed_destroy(bed);
}

// Found: a lossy link held back what its end had told for seconds, and the node that had lost
// packets called itself lossy again, for a minute of `unstable`.
static void what_came_late_does_not_bring_back_a_loss_that_is_over(void **state) {
	struct bed *bed = bed_create(8);

	(void)state;
	for (uint64_t number = 1; number <= 3; number++) {
		for (uint32_t n = 1; n <= 3; n++) {
			struct observation told = bed_observation(n, 0, OBSERVATION_NO_PAIR);

			// The first is told, the third takes it back, the second comes after it.
			told.device[0] = told.peer_device[0] = '\0';
			told.number = number == 2 ? 3 : number == 3 ? 2 : 1;
			told.reach = number == 2 ? VERDICT_REACH_ANSWERS : VERDICT_REACH_LOSES;
			told.lost_permille = number == 2 ? 0 : 300;
			assert_int_equal(
				verdict_observation(bed->engine, bed->now_ns, &told),
				number == 3 ? -ESTALE : 0
			);
		}
		bed_pass(bed, 9 * SEC);
		bed_expect(
			bed, 0, number == 1 ? VERDICT_PATH_LOSSY : VERDICT_HEALTHY,
			number == 1 ? "PacketsLost" : "None"
		);
	}
	bed_destroy(bed);
}

// A light one passes by chance for a moment at half of those who know of it.
static void light_loss_is_over_when_that_has_settled(void **state) {
	struct bed *bed = bed_create(6);

	(void)state;
	for (uint32_t turns = 0; turns < 6; turns++) {
		say_loses(bed, 1, 4, 60);
		say_loses(bed, 2, 4, 120);
		bed_expect(bed, 4, VERDICT_PATH_LOSSY, "PacketsLost");
		bed_pass(bed, 5 * SEC);
		say_loses(bed, 1, 4, 0);
		bed_pass(bed, 3 * SEC);
		bed_expect(bed, 4, VERDICT_PATH_LOSSY, "PacketsLost");
	}
	assert_int_equal(bed->changes, 1);
	bed_pass(bed, 2 * SEC);
	bed_expect(bed, 4, VERDICT_HEALTHY, "None");
	bed_destroy(bed);
}

// One end accuses the other: it is the path, and it is told as one.
static void link_that_loses_is_a_bad_path(void **state) {
	struct bed *bed = bed_create(6);
	struct verdict_path_view view;
	uint32_t cursor = 0;

	(void)state;
	say_loses(bed, 1, 4, 300);
	bed_expect(bed, 4, VERDICT_HEALTHY, "None");
	assert_true(verdict_path_next(bed->engine, &cursor, &view));
	assert_int_equal(view.observation.reach, VERDICT_REACH_LOSES);
	assert_int_equal(view.blame, PATH_BLAME_PATH);
	say_loses(bed, 2, 4, 300);
	cursor = 0;
	assert_true(verdict_path_next(bed->engine, &cursor, &view));
	assert_int_equal(view.blame, PATH_BLAME_NODE);
	assert_int_equal(view.node, bed_id(4));
	bed_destroy(bed);
}

int main(void) {
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
		cmocka_unit_test(node_to_which_two_send_much_again_is_lossy_and_drains_nobody),
		cmocka_unit_test(two_of_one_host_are_one_who_sends_again),
		cmocka_unit_test(what_is_sent_again_is_answered_in_the_end),
		cmocka_unit_test(who_loses_itself_calls_nobody_silent),
		cmocka_unit_test(suspect_that_loses_packets_stays_lossy),
		cmocka_unit_test(one_dead_by_its_losses_is_lossy_while_it_is_read),
		cmocka_unit_test(silence_of_a_node_that_loses_packets_is_of_its_losses),
		cmocka_unit_test(what_a_few_do_not_read_leaves_it_lossy),
		cmocka_unit_test(losses_of_all_sizes_are_not_called_losses_of_large_ones),
		cmocka_unit_test(who_is_found_to_lose_packets_calls_nobody_frozen),
		cmocka_unit_test(what_others_still_say_is_not_stale),
		cmocka_unit_test(what_is_judged_over_windows_is_well_after_three_seconds),
		cmocka_unit_test(
			what_few_paths_lose_is_not_taken_back_before_the_others_have_found_it
		),
		cmocka_unit_test(fault_of_a_moment_is_over_ten_seconds_after_its_end),
		cmocka_unit_test(lossy_node_that_falls_off_the_fabric_is_so_at_once),
		cmocka_unit_test(lost_packets_are_over_a_second_after_half_say_so),
		cmocka_unit_test(what_came_late_does_not_bring_back_a_loss_that_is_over),
		cmocka_unit_test(light_loss_is_over_when_that_has_settled),
		cmocka_unit_test(link_that_loses_is_a_bad_path),
	};

	return cmocka_run_group_tests_name("verdict_loss", tests, NULL, NULL);
}
