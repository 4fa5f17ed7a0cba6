// SPDX-License-Identifier: BSD-3-Clause
// WHY: the story of one node, as far as this one knows it, and what to do about it.
#include "control/client/client_trouble.h"

#include <string.h>
#include <unistd.h>

static void why_tells_the_story_of_a_killed_node(void **state) {
	int fd = bench_connect();
	const char *answer;

	(void)state;
	bench_make_trouble();
	bench.earlier_count = 1;
	bench.earlier[0] = (struct state_event){
		.realtime_ns = INT64_C(1790000000000000000),
		.event =
			{
				.sequence = 9,
				.kind = RAS_EVENT_LEFT,
				.peer = bench_peer("n3")->record->id,
				.name = "n3",
			},
	};
	bench_say(fd, "WHY n3\n");
	answer = bench_shown(fd);
	assert_non_null(
		bench_find(answer, "n3 is dead: its host answers, its agent's process is gone.\n")
	);
	assert_non_null(bench_find(answer, "  seen by      n1 and n2\n"));
	assert_non_null(bench_find(answer, "1 min 5 s ago\n"));
	assert_non_null(bench_find(answer, "Start tocsind on it again"));
	assert_non_null(bench_find(answer, "If it is gone for good: `tocsin forget n3`.\n"));
	assert_non_null(bench_find(answer, "SUSPECT"));
	// From the journal of an earlier run.
	assert_non_null(bench_find(answer, "LEFT"));
	close(fd);
}

// Found: three saw how the hosts of two that were killed refuse, and each was told that it may be
// cut off itself.
static void why_of_one_unreachable_tells_refusals_from_silence_and_what_ends_it(void **state) {
	static const struct {
		enum ras_cause cause;
		const char *said;
	} rows[] = {
		{RAS_CAUSE_GONE, "Too many hosts refuse connections at the same time"},
		{RAS_CAUSE_SILENT, "Too many fell silent at the same time"},
	};
	int fd = bench_connect();

	(void)state;
	bench_make_trouble();
	bench.earlier_count = 1; // its number is of that run
	bench.earlier[0] = (struct state_event){
		.event =
			{.kind = RAS_EVENT_LEFT,
			 .peer = bench_peer("n3")->record->id,
			 .name = "n3"},
	};
	for (size_t n = 0; n < sizeof(rows) / sizeof(rows[0]); n++) {
		const char *answer;

		bench_peer("n3")->state = RAS_UNREACHABLE;
		bench_peer("n3")->cause = rows[n].cause;
		bench_say(fd, "WHY n3\n");
		answer = bench_shown(fd);
		bench_assert_narrow(answer, 80);
		assert_non_null(bench_find(answer, rows[n].said));
		assert_non_null(bench_find(answer, "`tocsin forget --unreachable`."));
		assert_non_null(bench_find(answer, "\n      - "));
	}
	close(fd);
}

static void why_tells_who_reported_it_and_what_follows(void **state) {
	int fd = bench_connect();
	const char *answer;

	(void)state;
	bench_add_event(RAS_EVENT_REPORTED, "n3", RAS_CAUSE_REPORT, 1000);
	bench.overlay.text = "its link flaps";
	bench_say(fd, "WHY n3\n");
	answer = bench_shown(fd);
	bench_assert_narrow(answer, 80);
	answer = strstr(answer, "What follows\n");
	assert_non_null(answer);
	assert_non_null(bench_find(answer, "by uid 1000:\n        its link flaps\n"));
	assert_true(strstr(answer, "neighbours were asked") < strstr(answer, "Links from here"));
	close(fd);
}

static void why_of_one_that_the_roster_misses_tells_what_was_seen_of_it(void **state) {
	int fd = bench_connect();
	const char *answer;
	json_t *object;

	(void)state;
	bench.overlay.missing[0] = "n4";
	bench_add_event(RAS_EVENT_DEAD, "n4", RAS_CAUSE_GONE, 0);
	bench_add_event(RAS_EVENT_FORGOTTEN, "n4", RAS_CAUSE_NONE, 0);
	bench_say(fd, "WHY n4\n");
	answer = bench_shown(fd);
	bench_assert_narrow(answer, 80);
	assert_memory_equal(answer, "n4 is missing: expected, but not in the peer table.\n", 52);
	assert_non_null(bench_find(answer, " FORGOTTEN "));
	assert_non_null(
		bench_find(answer, "Start tocsind on it, or remove it from [overlay] expect.")
	);
	bench_say(fd, "SET FORMAT json\n");
	bench_shown(fd);
	object = bench_ask_json(fd, "WHY n4\n");
	assert_string_equal(json_string_value(json_object_get(object, "state")), "missing");
	assert_int_equal(json_array_size(json_object_get(object, "events")), 2);
	json_decref(object);
	close(fd);
}

struct past_link {
	enum ras_event_kind kinds[4];
	bool tried, ready; // a link is there; it is up
	const char *words;
};

// Facts about a lost link outlive the link and the next attempt.
static const struct past_link past_links[] = {
	{{0},
	 false,
	 false,
	 "\n  none, and there was none: all that is known came from other agents\n"},
	{{RAS_EVENT_LINK_UP, RAS_EVENT_LINK_DOWN},
	 true,
	 false,
	 "\n  none now: the last event was LINK_DOWN, reset, 0 ns ago; lost once\n"},
	{{RAS_EVENT_LINK_UP, RAS_EVENT_LINK_DELAYED},
	 false,
	 false,
	 "\n  none now: the last event was LINK_DELAYED, reset, 0 ns ago; never lost\n"},
	{{RAS_EVENT_LINK_DOWN, RAS_EVENT_LINK_UP, RAS_EVENT_LINK_DOWN, RAS_EVENT_LINK_UP},
	 true,
	 true,
	 "\n  in, up, silent for 118 us, lost 2 times\n"},
	{{RAS_EVENT_LINK_DOWN, RAS_EVENT_LINK_UP},
	 true,
	 true,
	 "\n  in, up, silent for 118 us, lost once\n"},
	{{RAS_EVENT_LINK_UP}, true, true, "\n  in, up, silent for 118 us, never lost\n"},
};

static void why_tells_of_the_link_that_was_when_there_is_none(void **state) {
	for (size_t n = 0; n < COUNT_OF(past_links); n++) {
		const struct past_link *past = &past_links[n];
		struct ras_peer *peer;
		const char *answer;
		int fd;

		assert_int_equal(bench_stop(state), 0);
		assert_int_equal(bench_start(state), 0);
		peer = bench_peer("n3");
		peer->state = past->ready ? RAS_ALIVE : RAS_DEAD;
		fd = bench_connect();
		bench.overlay.links[0] = (struct ras_link_info){
			.peer = peer->record->id,
			.ready = past->ready,
			.silent_ns = 118000,
			.rtt_min_ns = RAS_NEVER,
		};
		bench.overlay.link_count = past->tried;
		for (size_t k = 0; k < 4 && past->kinds[k] != 0; k++)
			bench_add_event(past->kinds[k], "n3", RAS_CAUSE_RESET, 0);
		bench_say(fd, "WHY n3\n");
		answer = bench_shown(fd);
		bench_assert_narrow(answer, 80);
		if (strstr(answer, past->words) == NULL)
			fail_msg("%s not in: %s", past->words, answer);
		close(fd);
	}
}

// In maintenance, with what may be said of it at most.
static void title_that_is_long_goes_on_below(void **state) {
	struct ras_peer *peer = bench_peer("n3");
	int fd = bench_connect();
	uint32_t broken = 0;

	(void)state;
	peer->maint = true;
	for (int cause = 0; cause < RAS_CAUSE_COUNT; cause++) {
		const char *answer;

		peer->state = RAS_DEAD;
		peer->cause = (enum ras_cause)cause;
		bench_say(fd, "WHY n3\n");
		answer = bench_shown(fd);
		bench_assert_narrow(answer, 80);
		assert_int_equal(strncmp(answer, "n3 is dead: ", 12), 0);
		assert_non_null(bench_find(answer, ".\n\n  since "));
		broken += strchr(answer, '\n') + 3 < strstr(answer, "\n\n");
	}
	assert_true(broken > 0);
	close(fd);
}

static void why_of_a_frozen_node_names_no_culprit(void **state) {
	struct ras_peer *peer = bench_peer("n3");
	int fd = bench_connect();
	const char *answer;

	(void)state;
	peer->state = RAS_DEAD;
	peer->cause = RAS_CAUSE_SILENT;
	bench_say(fd, "WHY n3\n");
	answer = bench_shown(fd);
	assert_non_null(bench_find(answer, "n3 is dead: its agent fell silent.\n"));
	assert_non_null(bench_find(answer, "cannot be told"));
	close(fd);
}

static void why_of_a_departed_and_of_a_healthy_node_gives_no_alarm(void **state) {
	int fd = bench_connect();
	const char *answer;

	(void)state;
	bench_peer("n3")->state = RAS_LEFT;
	bench_peer("n3")->cause = RAS_CAUSE_LEAVE;
	bench_say(fd, "WHY n3\n");
	answer = bench_shown(fd);
	assert_non_null(bench_find(answer, "n3 has left.\n"));
	assert_non_null(bench_find(answer, "stopped in good order"));
	bench_say(fd, "WHY n2\n");
	assert_non_null(bench_find(bench_shown(fd), "n2 is alive.\n"));
	bench_say(fd, "WHY n1\n");
	assert_non_null(bench_find(bench_shown(fd), "n1 is alive; it is the node that answers.\n"));
	close(fd);
}

static void a_node_that_was_forgotten_is_told_from_one_that_never_was(void **state) {
	int fd = bench_connect();

	(void)state;
	bench_add_event(RAS_EVENT_LEFT, "n7", RAS_CAUSE_LEAVE, 0);
	bench_add_event(RAS_EVENT_FORGOTTEN, "n7", RAS_CAUSE_NONE, 0);
	bench_say(fd, "WHY n7\n");
	assert_string_equal(
		bench_shown(fd), "ERROR: node \"n7\" is no longer known: its last event was "
				 "FORGOTTEN, 2026-11-18T11:06:40.000Z\n"
	);
	bench_say(fd, "HEALTH n8\n");
	assert_non_null(bench_find(bench_shown(fd), "no node \"n8\" is known, "));
	close(fd);
}

UNIT_GROUP(client_why) {
	const struct CMUnitTest tests[] = {
		BENCH_TEST(why_tells_the_story_of_a_killed_node),
		BENCH_TEST(why_of_one_unreachable_tells_refusals_from_silence_and_what_ends_it),
		BENCH_TEST(why_tells_who_reported_it_and_what_follows),
		BENCH_TEST(why_of_one_that_the_roster_misses_tells_what_was_seen_of_it),
		BENCH_TEST(why_tells_of_the_link_that_was_when_there_is_none),
		BENCH_TEST(title_that_is_long_goes_on_below),
		BENCH_TEST(why_of_a_frozen_node_names_no_culprit),
		BENCH_TEST(why_of_a_departed_and_of_a_healthy_node_gives_no_alarm),
		BENCH_TEST(a_node_that_was_forgotten_is_told_from_one_that_never_was),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
