// SPDX-License-Identifier: BSD-3-Clause
// Samples that were taken while the observer or the responder waited for a processor.
#include "control/fabric/probe/path_scene.h"

#define USUAL (100 * US)

static uint32_t excluded;

// Read once a second, while both ends wait `wait_ns` in all.
static void read_waiting(uint64_t latency_ns, uint64_t wait_ns) {
	struct path_probe probe = scene_answered(0, latency_ns);

	probe.wait_ns = wait_ns;
	excluded += path_memory_add(scene.path, &probe);
	scene.kind = path_memory_judge(scene.path, scene.now_ns, scene.like_ns);
	scene.now_ns += SEC;
}

static void begin_with_a_baseline(void) {
	excluded = 0;
	scene_good_for(60, USUAL);
	assert_true(scene_summary().baseline_ns >= USUAL);
}

static void slow_reads_that_waiting_explains_make_no_path_slow(void **state) {
	(void)state;
	begin_with_a_baseline();
	for (uint32_t n = 0; n < 60; n++) {
		read_waiting(3000 * US, 4000 * US);
		assert_int_equal(scene.kind, OBSERVATION_GOOD);
	}
	assert_int_equal(excluded, 60);
	assert_true(scene_summary().unjudged);
	assert_int_equal(scene_summary().excluded_ns, 3000 * US);
	assert_true(scene_summary().baseline_ns < 2 * USUAL);
}

static void slow_reads_beyond_the_wait_stay_slow(void **state) {
	(void)state;
	begin_with_a_baseline();
	for (uint32_t n = 0; n < 12; n++)
		read_waiting(200000 * US, 20000 * US);
	assert_int_equal(scene.kind, OBSERVATION_DEGRADED);
	assert_int_equal(excluded, 0);
	assert_false(scene_summary().unjudged);
}

static void quick_reads_count_however_long_threads_wait(void **state) {
	(void)state;
	begin_with_a_baseline();
	for (uint32_t n = 0; n < 60; n++)
		read_waiting(n % 3 == 0 ? 5000 * US : USUAL, 9000 * US);
	assert_int_equal(excluded, 20);
	assert_false(scene_summary().unjudged); // a third of the reads is no more than half
	assert_int_equal(scene.kind, OBSERVATION_GOOD);
}

static void a_slow_path_is_not_judged_while_its_observer_is_starved(void **state) {
	(void)state;
	begin_with_a_baseline();
	for (uint32_t n = 0; n < 12; n++)
		read_waiting(300 * US, 0);
	assert_int_equal(scene.kind, OBSERVATION_DEGRADED);
	for (uint32_t n = 0; n < 16; n++)
		read_waiting(300 * US, 5000 * US);
	assert_true(scene_summary().unjudged);
	assert_int_equal(scene.kind, OBSERVATION_GOOD);
	for (uint32_t n = 0; n < 20; n++)
		read_waiting(300 * US, 0);
	assert_false(scene_summary().unjudged);
	assert_int_equal(scene.kind, OBSERVATION_DEGRADED);
}

static void what_is_usual_is_learnt_from_quick_reads_alone(void **state) {
	(void)state;
	excluded = 0;
	for (uint32_t n = 0; n < 120; n++)
		read_waiting(n % 5 < 2 ? 8000 * US : USUAL, 9000 * US);
	assert_int_equal(scene_summary().baseline_ns, USUAL);
	assert_in_range(excluded, 46, 48); // the first reads have nothing to compare with
}

// The responder did not run for the whole timeout now and then.
static void a_loss_that_waiting_may_cause_makes_no_path_lossy_and_counts_for_silence(void **state) {
	struct path_probe lost;

	(void)state;
	begin_with_a_baseline();
	for (uint32_t n = 0; n < 20; n++) {
		lost = scene_unanswered(2);
		lost.latency_ns = 700000 * US;
		lost.wait_ns = 100000 * US;
		scene_tell(&lost);
		assert_int_equal(scene.kind, OBSERVATION_GOOD);
		scene_good(0, USUAL);
	}
	for (uint32_t n = 0; n < 2; n++)
		scene_tell(&lost);
	assert_int_equal(scene.kind, OBSERVATION_SILENT);
	scene_good(0, USUAL);
	lost.wait_ns = 50000 * US; // too short for the timeout
	for (uint32_t n = 0; n < 4; n++) {
		lost.at_ns = scene.now_ns;
		scene_tell(&lost);
		scene_good(0, USUAL);
	}
	assert_int_equal(scene.kind, OBSERVATION_LOSSY);
}

UNIT_GROUP(path_wait) {
	const struct CMUnitTest tests[] = {
		SCENE(slow_reads_that_waiting_explains_make_no_path_slow),
		SCENE(slow_reads_beyond_the_wait_stay_slow),
		SCENE(quick_reads_count_however_long_threads_wait),
		SCENE(a_slow_path_is_not_judged_while_its_observer_is_starved),
		SCENE(what_is_usual_is_learnt_from_quick_reads_alone),
		SCENE(a_loss_that_waiting_may_cause_makes_no_path_lossy_and_counts_for_silence),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
