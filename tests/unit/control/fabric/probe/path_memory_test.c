// SPDX-License-Identifier: BSD-3-Clause
// Tests of the facts that answered probes yield about a path: latency, the peer's pulse, and its
// history, also across a restart.
#include "control/fabric/probe/path_scene.h"

#include <errno.h>

static void unknown_until_its_pulse_was_seen_to_advance(void **state) {
	(void)state;
	assert_int_equal(path_memory_judge(scene.path, scene.now_ns, 0), OBSERVATION_NO_PAIR);
	scene_good(1, 10 * US);
	assert_int_equal(scene.kind, OBSERVATION_NO_PAIR);
	scene_good(0, 10 * US);
	assert_int_equal(scene.kind, OBSERVATION_GOOD);
}

static void healthy_path_stays_good_and_learns_its_baseline(void **state) {
	(void)state;
	scene_good_for(300, 10 * US);
	assert_int_equal(scene.kind, OBSERVATION_GOOD);
	assert_in_range(scene_summary().baseline_ns, 10 * US, 10500);
	assert_in_range(scene_summary().median_ns, 10 * US, 10500);
	assert_in_range(scene_summary().p99_ns, scene_summary().median_ns, 10500);
	assert_int_equal(scene_summary().count, 300);
}

// Behaviour of a path from some second on, and what must be detected.
struct change {
	const char *what;
	uint64_t before_ns, after_ns;
	uint32_t outliers_permille, outlier_times; // of both latencies
	// Latency of similar paths, relative to `before`; 0: no similar path.
	uint64_t like_times_permille;
	uint32_t within_s; // maximum time to detection; 0: never, in half an hour
};

static const struct change changes[] = {
	{"x3 step, alone", 10 * US, 30 * US, 0, 0, 0, 20},
	{"x3 step, others as before", 10 * US, 30 * US, 0, 0, 1000, 20},
	{"x3 step under noise", 10 * US, 30 * US, 50, 10, 1000, 20},
	{"x10 step of a slow path", 50 * US, 500 * US, 0, 0, 1000, 20},
	{"heavy tail, 5 % of samples x10", 10 * US, 10 * US, 50, 10, 1000, 0},
	{"heavy tail, 5 % of samples x100, alone", 10 * US, 10 * US, 50, 100, 0, 0},
	{"x1.5 step is within its habits", 10 * US, 15 * US, 0, 0, 1000, 0},
	{"x2 step", 10 * US, 20 * US, 0, 0, 1000, 20},
	{"x3 step of the whole machine", 10 * US, 30 * US, 0, 0, 3000, 0},
	{"x3 step of the machine with noise", 10 * US, 30 * US, 50, 10, 3000, 0},
	{"a path that got quicker", 30 * US, 10 * US, 0, 0, 1000, 0},
};

static uint64_t draw_latency(const struct change *change, uint64_t latency_ns) {
	latency_ns += scene_draw(latency_ns / 20);
	if (scene_draw(1000) < change->outliers_permille)
		latency_ns *= change->outlier_times;
	return latency_ns;
}

static uint32_t seconds_until_degraded(const struct change *change, uint32_t most_s) {
	for (uint32_t n = 1; n <= most_s; n++) {
		scene_good(0, draw_latency(change, change->after_ns));
		if (scene.kind == OBSERVATION_DEGRADED)
			return n;
	}
	return 0;
}

static void steps_are_seen_in_time_and_noise_is_not(void **state) {
	for (size_t n = 0; n < sizeof(changes) / sizeof(changes[0]); n++) {
		const struct change *change = &changes[n];
		uint32_t seen_s;

		if (n > 0) {
			scene_drop(state);
			scene_make(state);
		}
		for (uint32_t s = 0; s < 600; s++) {
			scene_good(0, draw_latency(change, change->before_ns));
			assert_int_not_equal(scene.kind, OBSERVATION_DEGRADED);
		}
		scene.like_ns = change->before_ns * change->like_times_permille / 1000;
		seen_s = seconds_until_degraded(change, change->within_s > 0 ? 60 : 1800);
		if (change->within_s > 0 ? seen_s == 0 || seen_s > change->within_s : seen_s > 0)
			fail_msg("%s: seen after %u s", change->what, seen_s);
	}
}

// Two of three reads wait for a processor, at either end.
static void path_that_is_slow_now_and_then_is_not_degraded(void **state) {
	(void)state;
	scene_good_for(60, 60 * US);
	assert_in_range(scene_summary().baseline_ns, 60 * US, 63 * US);
	for (uint32_t n = 0; n < 300; n++) {
		scene_good(0, n % 3 == 0 ? 60 * US : 4000 * US);
		assert_int_equal(scene.kind, OBSERVATION_GOOD);
	}
	assert_true(scene_summary().median_ns > 1000 * US);
	// The baseline is unchanged as well.
	assert_in_range(scene_summary().baseline_ns, 60 * US, 63 * US);
}

static void slow_ramp_is_not_learnt(void **state) {
	static const uint32_t minutes[] = {1, 10, 60};

	for (size_t n = 0; n < sizeof(minutes) / sizeof(minutes[0]); n++) {
		uint32_t seconds = minutes[n] * 60;
		bool seen = false;

		if (n > 0) {
			scene_drop(state);
			scene_make(state);
		}
		scene_good_for(300, 10 * US);
		for (uint32_t s = 0; s < seconds; s++) {
			scene_good(0, 10 * US + 20 * US * s / seconds);
			seen = seen || scene.kind == OBSERVATION_DEGRADED;
		}
		scene_good_for(60, 30 * US);
		assert_int_equal(scene.kind, OBSERVATION_DEGRADED);
		assert_true(seen);
		assert_in_range(scene_summary().baseline_ns, 9 * US, 12 * US);
	}
}

static void degraded_path_teaches_nothing_and_recovers(void **state) {
	(void)state;
	scene_good_for(300, 10 * US);
	scene_good_for(3600, 30 * US);
	assert_int_equal(scene.kind, OBSERVATION_DEGRADED);
	assert_in_range(scene_summary().baseline_ns, 9 * US, 11 * US);
	scene_good_for(15, 10 * US);
	assert_int_equal(scene.kind, OBSERVATION_GOOD);
}

static void path_that_is_quick_for_good_is_known_as_such(void **state) {
	(void)state;
	scene_good_for(600, 30 * US);
	scene_good_for(600, 10 * US);
	assert_in_range(scene_summary().baseline_ns, 9 * US, 11 * US);
	assert_true(seconds_until_degraded(&changes[0], 20) > 0);
}

// Across a restart.

static struct path_learnt learnt(void) {
	struct path_learnt found;

	assert_true(path_memory_get_learnt(scene.path, scene.now_ns, &found));
	return found;
}

// Start again with these learnt values, `later_ns` later.
static void restart(const struct path_learnt *with, uint64_t later_ns) {
	scene_drop(NULL);
	scene_make(NULL);
	scene.now_ns += later_ns;
	assert_true(path_memory_restore(scene.path, scene.now_ns, with));
}

static void path_that_is_slow_when_its_observer_comes_back_is_degraded(void **state) {
	struct path_learnt before;

	(void)state;
	scene_good_for(300, 10 * US);
	scene_good_for(60, 30 * US);
	before = learnt();
	assert_in_range(before.age_ns, 55 * SEC, 75 * SEC);
	restart(&before, 0);
	assert_in_range(scene_summary().baseline_ns, 10 * US, 10500);
	scene_good_for(7, 30 * US); // not before there is evidence
	assert_int_equal(scene.kind, OBSERVATION_GOOD);
	scene_good_for(13, 30 * US);
	assert_int_equal(scene.kind, OBSERVATION_DEGRADED);
	assert_in_range(learnt().age_ns, before.age_ns + 19 * SEC, before.age_ns + 21 * SEC);
	scene_good_for(15, 10 * US);
	assert_int_equal(scene.kind, OBSERVATION_GOOD);
}

static void past_that_was_carried_over_is_the_one_that_there_was(void **state) {
	static const uint32_t seconds[] = {25, 60, 600};

	for (size_t n = 0; n < sizeof(seconds) / sizeof(seconds[0]); n++) {
		struct path_learnt before, after;

		if (n > 0) {
			scene_drop(state);
			scene_make(state);
		}
		scene_good_for(seconds[n], 10 * US);
		before = learnt();
		restart(&before, 0);
		after = learnt();
		assert_int_equal(before.baseline_ns, after.baseline_ns);
		assert_int_equal(before.baseline_mad_ns, after.baseline_mad_ns);
		assert_int_equal(before.windows, after.windows);
		assert_int_equal(before.age_ns, after.age_ns);
		scene_good_for(60, 10 * US);
		assert_in_range(learnt().baseline_ns, 10 * US, 10500);
		assert_true(learnt().windows > before.windows || before.windows == 64);
		assert_in_range(learnt().age_ns, 0, 6 * SEC);
		assert_in_range(learnt().baseline_mad_ns, 1, US);
	}
}

static void past_that_was_carried_over_moves_as_any_other(void **state) {
	struct path_learnt before;

	(void)state;
	scene_good_for(600, 10 * US);
	before = learnt();
	restart(&before, 0);
	scene_good_for(600, 5 * US); // faster for good: the baseline follows
	assert_in_range(scene_summary().baseline_ns, 5 * US, 5300);
	restart(&before, 0);
	// Slower within the usual range: the baseline moves by a tenth per hour.
	scene_good_for(3600, 15 * US);
	assert_int_equal(scene.kind, OBSERVATION_GOOD);
	assert_in_range(scene_summary().baseline_ns, 10800, 11500);
}

// Eight probes per hour.
static void degraded_for_days(uint32_t days) {
	for (uint32_t n = 0; n < days * 24; n++) {
		scene_good_for(8, 30 * US);
		assert_int_equal(scene.kind, OBSERVATION_DEGRADED);
		scene.now_ns += 3592 * SEC;
	}
}

static void path_that_is_slow_for_good_is_not_degraded_for_ever(void **state) {
	struct path_learnt before;

	(void)state;
	scene_good_for(300, 10 * US);
	scene_good_for(20, 30 * US);
	degraded_for_days(2);
	before = learnt();
	restart(&before, 0);
	scene_good_for(20, 30 * US);
	degraded_for_days(4); // a restart does not reset the time
	before = learnt();
	assert_in_range(before.age_ns, 6 * 86400 * SEC, 6 * 86400 * SEC + 3600 * SEC);
	restart(&before, 0);
	scene_good_for(20, 30 * US);
	degraded_for_days(1);
	scene_good_for(60, 30 * US);
	assert_int_equal(scene.kind, OBSERVATION_GOOD);
	assert_in_range(scene_summary().baseline_ns, 30 * US, 31500);
	scene_good_for(20, 90 * US); // judged by its current latency
	assert_int_equal(scene.kind, OBSERVATION_DEGRADED);
}

static void past_that_is_too_old_or_cannot_be_is_not_taken(void **state) {
	static const struct path_learnt bad[] = {
		{10 * US, US, 64, PATH_LEARNT_MAX_NS + 1},
		{10 * US, US, 64, RAS_NEVER},
		{0, US, 64, 0},
		{PATH_LATENCY_MAX_NS, US, 64, 0},
		{10 * US, PATH_LATENCY_MAX_NS, 64, 0},
		{10 * US, US, PATH_LEARN_WINDOWS - 1, 0},
		{10 * US, US, PATH_PAST_WINDOWS + 1, 0},
	};
	static const struct path_learnt sound = {10 * US, 20 * US, 64, PATH_LEARNT_MAX_NS};
	struct path_learnt none;

	(void)state;
	assert_false(path_memory_get_learnt(scene.path, scene.now_ns, &none));
	for (size_t n = 0; n < sizeof(bad) / sizeof(bad[0]); n++)
		assert_false(path_memory_restore(scene.path, scene.now_ns, &bad[n]));
	assert_int_equal(scene_summary().baseline_ns, 0);
	assert_true(path_memory_restore(scene.path, scene.now_ns, &sound));
	// It already has a baseline.
	assert_false(path_memory_restore(scene.path, scene.now_ns, &sound));
	scene_good_for(60, 10 * US);
	assert_int_equal(scene.kind, OBSERVATION_GOOD);
}

static void counter_that_stands_is_seen_and_one_that_goes_on_again_too(void **state) {
	(void)state;
	scene_good_for(30, 10 * US);
	scene.beats_at_ns = scene.now_ns;
	scene_good(0, 10 * US);
	scene_good(0, 10 * US);
	assert_int_equal(scene.kind, OBSERVATION_GOOD);
	scene_good(0, 10 * US);
	assert_int_equal(scene.kind, OBSERVATION_STANDING);
	scene.beats_at_ns = 0;
	scene_good(0, 10 * US);
	assert_int_equal(scene.kind, OBSERVATION_GOOD);
}

static void summary_says_when_the_counter_last_advanced(void **state) {
	struct path_summary summary;
	uint64_t stood_ns;

	(void)state;
	path_memory_summary(scene.path, &summary);
	assert_int_equal(summary.advanced_ns, RAS_NEVER);
	scene_good_for(30, 10 * US);
	stood_ns = scene.beats_at_ns = scene.now_ns;
	scene_good(0, 10 * US);
	scene_good(0, 10 * US);
	path_memory_summary(scene.path, &summary);
	assert_int_equal(summary.kind, OBSERVATION_GOOD);
	assert_int_equal(summary.advanced_ns, stood_ns);
	assert_true(summary.last_answer_ns > stood_ns);
}

// A consumer that receives both takes the younger one. A path that is lossy by one loss has not
// advanced since it was good.
static void what_turned_bad_is_younger_than_the_good_look_before_it(void **state) {
	struct path_summary before, now;
	uint64_t good_ns;

	(void)state;
	scene_good_for(30, 10 * US);
	scene_lost(3);
	scene_good(0, 10 * US);
	before = scene_summary();
	assert_int_equal(before.kind, OBSERVATION_GOOD);
	good_ns = path_summary_seen_ns(&before, scene.now_ns);
	assert_int_equal(good_ns, before.advanced_ns);
	scene_lost(3);
	now = scene_summary();
	assert_int_equal(now.kind, OBSERVATION_LOSSY);
	assert_int_equal(now.advanced_ns, before.advanced_ns);
	assert_int_equal(path_summary_seen_ns(&now, scene.now_ns), now.since_ns);
	assert_true(now.since_ns > good_ns);
	// A later advance of the counter counts.
	scene_good(0, 10 * US);
	now = scene_summary();
	assert_int_equal(now.kind, OBSERVATION_LOSSY);
	assert_int_equal(path_summary_seen_ns(&now, scene.now_ns), now.advanced_ns);
}

static void counter_that_may_stand_is_to_be_read_again_when_that_can_tell(void **state) {
	uint64_t stood_ns;

	(void)state;
	scene_good_for(30, 10 * US);
	assert_int_equal(path_memory_confirm_ns(scene.path), RAS_NEVER);
	stood_ns = scene.beats_at_ns = scene.now_ns;
	scene_good(0, 10 * US);
	assert_int_equal(path_memory_confirm_ns(scene.path), RAS_NEVER);
	scene_good(0, 10 * US);
	assert_int_equal(path_memory_confirm_ns(scene.path), stood_ns + 3 * SEC / 2);
	scene.now_ns = stood_ns + 3 * SEC / 2;
	scene_good(0, 10 * US);
	assert_int_equal(scene.kind, OBSERVATION_STANDING);
	assert_int_equal(path_memory_confirm_ns(scene.path), RAS_NEVER);
}

// Page contents that no agent writes, from some second on.
struct lie {
	const char *what;
	uint64_t incarnation, beats, beats_step;
};

static const struct lie lies[] = {
	{"no page of ours", 0, 0, 0},
	{"a counter without a head", 0, 5, 0},
	{"a counter that goes back", INCARNATION, 1, 0},
	{"a counter that goes back and on from there", INCARNATION, 1, 1},
	{"the incarnation of another, and a counter of ours", INCARNATION + 1, 0, 0},
};

static void impossible_pages_are_evidence_of_nothing(void **state) {
	for (size_t n = 0; n < sizeof(lies) / sizeof(lies[0]); n++) {
		if (n > 0) {
			scene_drop(state);
			scene_make(state);
		}
		scene_good_for(30, 10 * US);
		for (uint32_t s = 0; s < 60; s++) {
			struct path_probe probe = scene_answered(s % 2, 10 * US);

			probe.incarnation = lies[n].incarnation;
			probe.beats = lies[n].beats + s * lies[n].beats_step;
			scene_tell(&probe);
			if (scene.kind != OBSERVATION_GOOD && scene.kind != OBSERVATION_NO_PAIR)
				fail_msg("%s: %s", lies[n].what, observation_kind_name(scene.kind));
		}
		if (scene.kind != OBSERVATION_NO_PAIR)
			fail_msg("%s: good to the end", lies[n].what);
		scene_good(1, 10 * US);
		scene_good(1, 10 * US);
		assert_int_equal(scene.kind, OBSERVATION_GOOD);
	}
}

static void counter_without_a_head_says_nothing_from_the_beginning(void **state) {
	(void)state;
	for (uint32_t n = 0; n < 30; n++) {
		struct path_probe probe = scene_answered(0, 10 * US);

		probe.incarnation = 0;
		scene_tell(&probe);
		assert_int_equal(scene.kind, OBSERVATION_NO_PAIR);
	}
}

static void new_start_of_the_peer_is_no_counter_that_goes_back(void **state) {
	(void)state;
	scene_good_for(30, 10 * US);
	for (uint32_t n = 0; n < 5; n++) {
		struct path_probe probe = scene_answered(n % 2, 10 * US);

		probe.incarnation = INCARNATION + (UINT64_C(1) << 16);
		probe.beats = 1 + n * 10;
		scene_tell(&probe);
	}
	assert_int_equal(scene.kind, OBSERVATION_GOOD);
}

static void own_pause_is_nobody_elses_silence(void **state) {
	(void)state;
	scene_good_for(30, 10 * US);
	scene_lost(0);
	path_memory_paused(scene.path, scene.now_ns + SEC);
	scene_lost(0); // begun before the pause, reported afterwards
	assert_int_equal(scene.kind, OBSERVATION_GOOD);
	scene_lost(0);
	assert_int_equal(scene.kind, OBSERVATION_GOOD);
	scene_lost(0);
	assert_int_equal(scene.kind, OBSERVATION_SILENT);
}

static void own_pause_makes_no_counter_stand_and_no_path_slow(void **state) {
	(void)state;
	scene_good_for(100, 10 * US);
	scene.beats_at_ns = scene.now_ns;
	scene_good(0, 10 * US);
	for (uint32_t n = 0; n < 3; n++)
		scene_good(0, 900 * 1000 * US); // ended after the pause
	path_memory_paused(scene.path, scene.now_ns);
	scene_good(0, 10 * US);
	assert_int_equal(scene.kind, OBSERVATION_GOOD);
	scene.beats_at_ns = 0;
	scene_good_for(30, 10 * US);
	assert_int_equal(scene.kind, OBSERVATION_GOOD);
}

static void path_that_is_not_probed_any_more_is_unknown_again(void **state) {
	(void)state;
	scene_good_for(30, 10 * US);
	scene.now_ns += PATH_STALE_NS - SEC;
	assert_int_equal(path_memory_judge(scene.path, scene.now_ns, 0), OBSERVATION_GOOD);
	path_memory_paused(scene.path, scene.now_ns); // a pause of our own does not age the path
	scene.now_ns += PATH_STALE_NS;
	assert_int_equal(path_memory_judge(scene.path, scene.now_ns, 0), OBSERVATION_GOOD);
	scene.now_ns += SEC;
	assert_int_equal(path_memory_judge(scene.path, scene.now_ns, 0), OBSERVATION_NO_PAIR);
}

static void reopened_path_keeps_its_past_and_forgets_its_losses(void **state) {
	(void)state;
	scene_good_for(100, 10 * US);
	scene_lost(0);
	scene_lost(0);
	assert_int_equal(scene.kind, OBSERVATION_SILENT);
	path_memory_reopened(scene.path, scene.now_ns);
	assert_int_equal(path_memory_judge(scene.path, scene.now_ns, 0), OBSERVATION_NO_PAIR);
	scene_good(1, 10 * US);
	scene_good(1, 10 * US);
	assert_int_equal(scene.kind, OBSERVATION_GOOD);
	assert_in_range(scene_summary().baseline_ns, 9 * US, 11 * US);
	assert_int_equal(scene_summary().lost, 2);
}

static void histogram_holds_what_the_small_size_brought(void **state) {
	struct histogram_summary all;

	(void)state;
	scene_good_for(30, 10 * US);
	scene_good(3, 900 * US);
	histogram_summarize(path_memory_histogram(scene.path), &all);
	assert_int_equal(all.count, 30);
	assert_in_range(all.max, 10 * US, 11 * US);
}

static void times_are_those_of_the_last_answers_of_each_size(void **state) {
	struct path_size_times times[PATH_SIZES];

	(void)state;
	path_memory_times(scene.path, false, times);
	assert_int_equal(times[0].answers, 0);
	assert_int_equal(times[0].median_ns, 0);
	for (uint64_t n = 1; n <= 300; n++)
		scene_good(3, n * US);
	scene_good(1, 7 * US);
	scene_lost(1);
	path_memory_times(scene.path, false, times);
	assert_int_equal(times[0].answers, 0);
	assert_int_equal(times[1].answers, 1); // a lost read has no latency
	assert_int_equal(times[1].min_ns, 7 * US);
	assert_int_equal(times[1].median_ns, 7 * US);
	assert_int_equal(times[1].p99_ns, 7 * US);
	assert_int_equal(times[3].answers, 128);
	assert_int_equal(times[3].min_ns, 173 * US);
	assert_in_range(times[3].median_ns, 236 * US, 237 * US);
	assert_int_equal(times[3].p99_ns, 299 * US);
	path_memory_paused(scene.path, scene.now_ns); // keeps the answered reads
	path_memory_times(scene.path, false, times);
	assert_int_equal(times[3].answers, 128);
	assert_int_equal(times[3].min_ns, 173 * US);
	path_memory_reopened(scene.path, scene.now_ns); // another route: starts again
	path_memory_times(scene.path, false, times);
	assert_int_equal(times[3].answers, 0);
}

static void row_of_a_path_says_how_it_is_seen_and_for_how_long(void **state) {
	struct path_summary now;
	struct ras_path_row row;

	(void)state;
	path_memory_summary(scene.path, &now);
	path_summary_row(&now, scene.now_ns, &row);
	assert_int_equal(row.seen, OBSERVATION_NO_PAIR);
	assert_int_equal(row.count + row.lost + row.median_ns + row.for_s, 0);
	scene_good_for(300, 10 * US);
	scene_lost(0);
	scene_lost(0);
	path_memory_summary(scene.path, &now);
	path_summary_row(&now, scene.now_ns + 60 * SEC, &row);
	assert_int_equal(row.seen, OBSERVATION_SILENT);
	assert_in_range(row.for_s, 60, 62);
	assert_int_equal(row.count, 300);
	assert_int_equal(row.lost, 2);
	assert_in_range(row.baseline_ns, 10 * US, 10500);
	assert_true(row.min_ns <= row.median_ns && row.median_ns <= row.p99_ns);
	path_summary_row(&now, 0, &row); // an earlier clock gives no age
	assert_int_equal(row.for_s, 0);
}

static void like_paths_tell_what_would_be_usual_now(void **state) {
	struct path_summary paths[] = {
		{.baseline_ns = 10 * US, .median_ns = 30 * US},
		{.baseline_ns = 50 * US, .median_ns = 150 * US},
		{.baseline_ns = 20 * US, .median_ns = 60 * US},
		{.median_ns = 5 * US}, // without a baseline
	};

	(void)state;
	assert_int_equal(path_expected_ns(paths, 4, 0), 30 * US);
	assert_int_equal(path_expected_ns(paths, 4, 3), 0);
	assert_int_equal(path_expected_ns(paths, 1, 0), 0);
	paths[1].median_ns = 40 * US;
	paths[2].median_ns = 15 * US;
	assert_int_equal(path_expected_ns(paths, 4, 0), 10 * US);
	// The recent slowdown is in no window yet.
	paths[1].lately_ns = 100 * US;
	paths[2].lately_ns = 40 * US;
	assert_int_equal(path_expected_ns(paths, 4, 0), 20 * US);
}

// A doubtful path is read more often, so this takes little time.
static void path_is_slow_at_once_after_eight_slow_reads_in_a_row(void **state) {
	(void)state;
	scene_good_for(300, 10 * US);
	assert_false(path_memory_needs_reads(scene.path));
	scene_good_for(7, 30 * US);
	assert_int_equal(scene.kind, OBSERVATION_GOOD);
	assert_true(path_memory_needs_reads(scene.path));
	scene_good_for(1, 30 * US);
	assert_int_equal(scene.kind, OBSERVATION_DEGRADED);
	assert_false(path_memory_needs_reads(scene.path));
	scene_good_for(3, 10 * US);
	assert_int_equal(scene.kind, OBSERVATION_DEGRADED);
	assert_true(path_memory_needs_reads(scene.path));
	scene_good_for(1, 10 * US);
	assert_int_equal(scene.kind, OBSERVATION_GOOD);
	assert_false(path_memory_needs_reads(scene.path));
}

static void quick_read_ends_a_run_of_slow_ones(void **state) {
	(void)state;
	scene_good_for(300, 10 * US);
	for (uint32_t n = 0; n < 30; n++)
		scene_good(0, n % 3 == 0 ? 10 * US : 30 * US);
	assert_int_equal(scene.kind, OBSERVATION_GOOD);
}

// Slow reads within four seconds mean that the machine was busy.
static void slow_reads_at_the_same_moment_are_no_run(void **state) {
	(void)state;
	scene_good_for(300, 10 * US);
	for (uint32_t n = 0; n < 12; n++) {
		scene_good(0, 30 * US);
		scene.now_ns -= 9 * SEC / 10;
	}
	assert_int_equal(scene.kind, OBSERVATION_GOOD);
}

static void without_memory_there_is_no_path(void **state) {
	const struct path_memory_config config = {0};
	struct path_memory *path = NULL;

	(void)state;
	heap_leave(&scene_heap, 0);
	assert_int_equal(path_memory_create(&config, &scene_memory, &path), -ENOMEM);
	heap_refill(&scene_heap);
	assert_null(path);
}

UNIT_GROUP(path_memory) {
	const struct CMUnitTest tests[] = {
		SCENE(unknown_until_its_pulse_was_seen_to_advance),
		SCENE(healthy_path_stays_good_and_learns_its_baseline),
		SCENE(steps_are_seen_in_time_and_noise_is_not),
		SCENE(path_that_is_slow_now_and_then_is_not_degraded),
		SCENE(slow_ramp_is_not_learnt),
		SCENE(degraded_path_teaches_nothing_and_recovers),
		SCENE(path_that_is_quick_for_good_is_known_as_such),
		SCENE(path_that_is_slow_when_its_observer_comes_back_is_degraded),
		SCENE(past_that_was_carried_over_is_the_one_that_there_was),
		SCENE(past_that_was_carried_over_moves_as_any_other),
		SCENE(path_that_is_slow_for_good_is_not_degraded_for_ever),
		SCENE(past_that_is_too_old_or_cannot_be_is_not_taken),
		SCENE(counter_that_stands_is_seen_and_one_that_goes_on_again_too),
		SCENE(summary_says_when_the_counter_last_advanced),
		SCENE(what_turned_bad_is_younger_than_the_good_look_before_it),
		SCENE(counter_that_may_stand_is_to_be_read_again_when_that_can_tell),
		SCENE(impossible_pages_are_evidence_of_nothing),
		SCENE(counter_without_a_head_says_nothing_from_the_beginning),
		SCENE(new_start_of_the_peer_is_no_counter_that_goes_back),
		SCENE(own_pause_is_nobody_elses_silence),
		SCENE(own_pause_makes_no_counter_stand_and_no_path_slow),
		SCENE(path_that_is_not_probed_any_more_is_unknown_again),
		SCENE(reopened_path_keeps_its_past_and_forgets_its_losses),
		SCENE(histogram_holds_what_the_small_size_brought),
		SCENE(times_are_those_of_the_last_answers_of_each_size),
		SCENE(row_of_a_path_says_how_it_is_seen_and_for_how_long),
		SCENE(like_paths_tell_what_would_be_usual_now),
		SCENE(path_is_slow_at_once_after_eight_slow_reads_in_a_row),
		SCENE(quick_read_ends_a_run_of_slow_ones),
		SCENE(slow_reads_at_the_same_moment_are_no_run),
		cmocka_unit_test(without_memory_there_is_no_path),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
