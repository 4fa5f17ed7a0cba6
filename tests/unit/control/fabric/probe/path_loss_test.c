// SPDX-License-Identifier: BSD-3-Clause
// Unanswered probes of a path: loss of some sizes, or silence.
#include "control/fabric/probe/path_scene.h"

// Loss: of the eight sizes in turn, those from `lost_from` on are lost.
struct loss {
	const char *what;
	uint32_t lost_from; // index of the size
	uint32_t permille;  // share of these that is lost
	enum observation_kind kind;
	uint32_t place;
};

static const struct loss losses[] = {
	{"nothing is lost", PATH_SIZES, 1000, OBSERVATION_GOOD, PATH_SIZES},
	{"only the largest", 3, 1000, OBSERVATION_LOSSY, 3},
	{"what is larger than the MTU", 2, 1000, OBSERVATION_LOSSY, 2},
	{"all but the smallest", 1, 1000, OBSERVATION_LOSSY, 1},
	{"half of the largest", 3, 500, OBSERVATION_LOSSY, 3},
	{"all", 0, 1000, OBSERVATION_SILENT, 0},
};

static void loss_is_told_by_size(void **state) {
	static const uint32_t order[] = {0, 1, 0, 3, 0, 2, 0, 3};

	for (size_t n = 0; n < sizeof(losses) / sizeof(losses[0]); n++) {
		const struct loss *loss = &losses[n];

		if (n > 0) {
			scene_drop(state);
			scene_make(state);
		}
		scene_good_for(60, 10 * US);
		for (uint32_t s = 0; s < 40; s++) {
			uint32_t size = order[s % 8];
			bool goes = size >= loss->lost_from &&
				    (s / 4 % 2 == 0 || loss->permille == 1000);

			if (goes)
				scene_lost(size);
			else
				scene_good(size, 10 * US);
			assert_int_not_equal(scene.kind, OBSERVATION_DEGRADED);
		}
		if (scene.kind != loss->kind || scene_summary().lost_size_index != loss->place)
			fail_msg(
				"%s: %s from place %u on", loss->what,
				observation_kind_name(scene.kind), scene_summary().lost_size_index
			);
	}
}

// Regression: reads in flight when a lost large read broke the pair made the path silent. Three
// such paths made a node with an MTU hole fabric-down, again and again.
static void what_is_lost_with_the_pair_that_a_known_loss_broke_is_no_silence(void **state) {
	(void)state;
	scene_good_for(30, 10 * US);
	for (uint32_t n = 0; n < 4; n++) {
		scene_good(0, 10 * US);
		scene_lost(2);
	}
	assert_int_equal(scene.kind, OBSERVATION_LOSSY);
	for (uint32_t n = 0; n < 20; n++) {
		scene_good(0, 10 * US);
		scene_lost(2);
		scene.now_ns -= 9 * SEC / 10; // begun before the pair breaks
		scene_lost(0);
		path_memory_cut_off(scene.path);
		assert_int_equal(path_memory_judge(scene.path, scene.now_ns, 0), OBSERVATION_LOSSY);
		assert_int_equal(scene_summary().lost_size_index, 2);
	}
	// A cut is reported as before, since later reads have a new pair.
	scene.now_ns += 2 * SEC;
	scene_lost(0);
	scene_lost(0);
	assert_int_equal(scene.kind, OBSERVATION_SILENT);
}

static void single_loss_is_no_pattern(void **state) {
	(void)state;
	scene_good_for(60, 10 * US);
	scene_lost(3);
	assert_int_equal(scene.kind, OBSERVATION_GOOD);
	scene_good_for(10, 10 * US);
	assert_int_equal(scene.kind, OBSERVATION_GOOD);
}

static void good_path_proves_the_sizes_that_passed_lately(void **state) {
	(void)state;
	scene_good(1, 10 * US);
	scene_good(0, 10 * US);
	assert_int_equal(scene.kind, OBSERVATION_GOOD);
	assert_int_equal(scene_summary().unproven_size_index, 2);
	scene_good(3, 10 * US);
	assert_int_equal(scene_summary().unproven_size_index, 2);
	scene_good(2, 10 * US);
	assert_int_equal(scene_summary().unproven_size_index, PATH_SIZES);
	// One loss is neither a pattern nor a proof.
	scene_lost(3);
	assert_int_equal(scene.kind, OBSERVATION_GOOD);
	assert_int_equal(scene_summary().unproven_size_index, 3);
	scene_good_for(12, 10 * US);
	assert_int_equal(scene_summary().unproven_size_index, 3);
	scene_good(3, 10 * US);
	assert_int_equal(scene_summary().unproven_size_index, PATH_SIZES);
	// A new pair may use another route.
	path_memory_reopened(scene.path, scene.now_ns);
	scene_good(1, 10 * US);
	scene_good(0, 10 * US);
	assert_int_equal(scene.kind, OBSERVATION_GOOD);
	assert_int_equal(scene_summary().unproven_size_index, 2);
}

static void loss_that_is_over_is_forgotten(void **state) {
	(void)state;
	scene_good_for(30, 10 * US);
	for (uint32_t n = 0; n < 4; n++) {
		scene_good(0, 10 * US);
		scene_lost(3);
	}
	assert_int_equal(scene.kind, OBSERVATION_LOSSY);
	assert_int_equal(scene_summary().lost_permille, 1000);
	// The last results of that size remain its state, however old they are.
	scene_good_for(60, 10 * US);
	assert_int_equal(scene.kind, OBSERVATION_LOSSY);
	for (uint32_t n = 0; n < 3; n++)
		scene_good(3, 10 * US);
	assert_int_equal(scene.kind, OBSERVATION_GOOD);
	assert_int_equal(scene_summary().size_lost[3], 4);
}

static void one_more_loss_does_not_bring_back_what_is_over(void **state) {
	(void)state;
	scene_good_for(30, 10 * US);
	for (uint32_t n = 0; n < 2; n++) {
		scene_good(0, 10 * US);
		scene_lost(3);
	}
	for (uint32_t n = 0; n < 4; n++)
		scene_good(3, 10 * US);
	assert_int_equal(scene.kind, OBSERVATION_GOOD);
	scene_lost(3);
	scene_good(0, 10 * US);
	assert_int_equal(scene.kind, OBSERVATION_GOOD);
	scene_lost(3);
	scene_good(0, 10 * US);
	assert_int_equal(scene.kind, OBSERVATION_LOSSY);
}

static void two_reads_without_an_answer_are_silence_until_the_next_answer(void **state) {
	(void)state;
	scene_good_for(30, 10 * US);
	scene_lost(0);
	assert_int_equal(scene.kind, OBSERVATION_GOOD);
	scene_lost(0);
	assert_int_equal(scene.kind, OBSERVATION_SILENT);
	scene.now_ns += 100 * SEC; // no read was possible meanwhile
	assert_int_equal(path_memory_judge(scene.path, scene.now_ns, 0), OBSERVATION_SILENT);
	assert_int_equal(scene_summary().since_ns, 1031 * SEC);
	scene_good(0, 10 * US);
	assert_int_not_equal(scene.kind, OBSERVATION_SILENT);
}

static void path_that_was_silent_is_good_again_at_the_next_answer(void **state) {
	(void)state;
	scene_good_for(30, 10 * US);
	for (uint32_t size = 0; size < PATH_SIZES; size++)
		scene_lost(size);
	assert_int_equal(scene.kind, OBSERVATION_SILENT);
	scene_good(0, 10 * US);
	assert_int_equal(scene.kind, OBSERVATION_GOOD);
	assert_int_equal(scene_summary().lost, PATH_SIZES);
	scene_good_for(30, 10 * US);
	assert_int_equal(scene.kind, OBSERVATION_GOOD);
}

static void path_that_loses_every_third_read_is_lossy_whenever_it_is_not_silent(void **state) {
	uint32_t good_looks = 0;

	(void)state;
	scene_good_for(30, 10 * US);
	for (uint32_t n = 0; n < 300; n++) {
		if (scene_draw(3) == 0)
			scene_lost(0);
		else
			scene_good(0, 10 * US);
		good_looks += n > 30 && scene.kind == OBSERVATION_GOOD;
	}
	assert_in_range(good_looks, 0, 27); // a tenth: everything lost recently was silence
}

static void writes_without_an_answer_are_loss_and_no_silence(void **state) {
	struct path_probe probe = scene_unanswered(0);

	(void)state;
	scene_good_for(30, 10 * US);
	probe.is_read = false;
	for (uint32_t n = 0; n < 3; n++) {
		probe.at_ns = scene.now_ns;
		scene_tell(&probe);
	}
	assert_int_equal(scene.kind, OBSERVATION_LOSSY);
}

static void writes_have_counts_of_their_own_and_teach_no_latency(void **state) {
	struct path_probe write = scene_answered(0, 900 * US), lost_one = scene_unanswered(3);
	struct path_summary before;

	(void)state;
	scene_good_for(60, 10 * US);
	before = scene_summary();
	write.is_read = lost_one.is_read = false;
	for (uint32_t n = 0; n < 40; n++) {
		write.at_ns = scene.now_ns;
		write.beats = 1; // the counter of a write's result is ignored
		scene_tell(&write);
		scene_good(0, 10 * US);
	}
	assert_int_equal(scene.kind, OBSERVATION_GOOD);
	assert_in_range(scene_summary().median_ns, 9 * US, 12 * US);
	assert_in_range(scene_summary().baseline_ns, 9 * US, 12 * US);
	assert_int_equal(scene_summary().write_sent[0], 40);
	assert_int_equal(scene_summary().size_sent[0], before.size_sent[0] + 40);
	assert_int_equal(scene_summary().count, before.count + 80);
	for (uint32_t n = 0; n < 4; n++) {
		lost_one.at_ns = scene.now_ns;
		scene_tell(&lost_one);
		scene_good(0, 10 * US);
		scene_good(3, 10 * US); // reads of this size pass
	}
	assert_int_equal(scene.kind, OBSERVATION_LOSSY);
	assert_int_equal(scene_summary().write_lost[3], 4);
	assert_int_equal(scene_summary().size_lost[3], 0);
	assert_int_equal(scene_summary().lost_size_index, 3);
}

static void way_that_broke_with_a_write_is_silent_as_with_a_read(void **state) {
	struct path_probe write = scene_unanswered(1);
	uint64_t begun_ns;

	(void)state;
	scene_good_for(30, 10 * US);
	path_memory_cut_off(scene.path); // nothing was lost
	assert_int_equal(path_memory_judge(scene.path, scene.now_ns, 0), OBSERVATION_GOOD);
	write.is_read = false;
	begun_ns = write.at_ns = scene.now_ns;
	scene_tell(&write);
	assert_int_not_equal(scene.kind, OBSERVATION_SILENT);
	path_memory_cut_off(scene.path);
	assert_int_equal(path_memory_judge(scene.path, scene.now_ns, 0), OBSERVATION_SILENT);
	assert_int_equal(scene_summary().turned_ns, begun_ns);
	scene_good(0, 10 * US);
	assert_int_not_equal(scene.kind, OBSERVATION_SILENT);
	path_memory_cut_off(scene.path);
	assert_int_not_equal(path_memory_judge(scene.path, scene.now_ns, 0), OBSERVATION_SILENT);
}

static void answer_to_a_write_ends_no_silence(void **state) {
	struct path_probe write = scene_answered(0, 10 * US);

	(void)state;
	scene_good_for(30, 10 * US);
	scene_lost(0);
	scene_lost(0);
	assert_int_equal(scene.kind, OBSERVATION_SILENT);
	write.is_read = false;
	write.at_ns = scene.now_ns;
	scene_tell(&write);
	assert_int_equal(scene.kind, OBSERVATION_SILENT);
	scene_good(0, 10 * US);
	assert_int_not_equal(scene.kind, OBSERVATION_SILENT);
}

// Regression: an MTU hole was reported as silence whenever two large reads followed each other,
// 28 changes in 100 s.
static void sizes_that_are_known_to_be_lost_make_no_silence(void **state) {
	(void)state;
	scene_good_for(30, 10 * US);
	for (uint32_t n = 0; n < 2; n++) {
		scene_lost(2);
		scene_good(0, 10 * US);
	}
	assert_int_equal(scene.kind, OBSERVATION_LOSSY);
	for (uint32_t n = 0; n < 5; n++) {
		scene_lost(2);
		scene_lost(3);
		assert_int_equal(scene.kind, OBSERVATION_LOSSY);
		scene_good(0, 10 * US);
	}
	// Small reads are not answered, either.
	scene_lost(0);
	scene_lost(1);
	assert_int_equal(scene.kind, OBSERVATION_SILENT);
}

static bool retry(uint32_t *ret_size, bool *ret_is_write) {
	struct path_retry retry = {0};
	bool found = path_memory_next_retry(scene.path, scene.now_ns, &retry);

	*ret_size = retry.size;
	*ret_is_write = retry.is_write;
	return found;
}

static void what_a_lossy_path_lost_is_tried_again_until_it_is_lost_no_more(void **state) {
	uint32_t size, tries = 0;
	bool is_write;

	(void)state;
	scene_good_for(30, 10 * US);
	assert_false(retry(&size, &is_write));
	scene_lost(2);
	scene_good(0, 10 * US);
	scene_lost(3);
	scene_good(0, 10 * US);
	assert_int_equal(scene.kind, OBSERVATION_LOSSY);
	for (; scene.kind == OBSERVATION_LOSSY && tries < 100; tries++) {
		assert_true(retry(&size, &is_write));
		assert_false(is_write);
		assert_in_range(size, 2, 3);
		scene_good(size, 10 * US);
	}
	assert_in_range(tries, 1, 8);
	assert_false(retry(&size, &is_write));
}

// A retry lets every reader of the node find the loss, and not only when the size is due again.
static void large_probe_that_was_lost_just_now_is_tried_again_once(void **state) {
	uint32_t size;
	bool is_write;

	(void)state;
	scene_good_for(30, 10 * US);
	scene_lost(2);
	scene_good(0, 10 * US);
	assert_int_equal(scene.kind, OBSERVATION_GOOD);
	assert_true(retry(&size, &is_write));
	assert_int_equal(size, 2);
	assert_false(is_write);
	scene_good(2, 10 * US);
	assert_false(retry(&size, &is_write));
	// If no size is answered, the path is silent.
	scene_lost(2);
	scene_lost(0);
	assert_int_equal(scene.kind, OBSERVATION_SILENT);
	assert_false(retry(&size, &is_write));
}

static void write_that_was_lost_is_tried_again_as_a_write(void **state) {
	struct path_probe write;
	uint32_t size;
	bool is_write;

	(void)state;
	scene_good_for(30, 10 * US);
	for (uint32_t n = 0; n < 2; n++) {
		write = scene_unanswered(2);
		write.is_read = false;
		scene_tell(&write);
		scene_good(0, 10 * US);
	}
	assert_int_equal(scene.kind, OBSERVATION_LOSSY);
	assert_true(retry(&size, &is_write));
	assert_true(is_write);
	assert_int_equal(size, 2);
	// No retry so soon after the last one.
	write = scene_unanswered(2);
	write.is_read = false;
	write.at_ns = scene.now_ns;
	path_memory_add(scene.path, &write);
	assert_false(retry(&size, &is_write));
}

UNIT_GROUP(path_loss) {
	const struct CMUnitTest tests[] = {
		SCENE(loss_is_told_by_size),
		SCENE(single_loss_is_no_pattern),
		SCENE(what_is_lost_with_the_pair_that_a_known_loss_broke_is_no_silence),
		SCENE(good_path_proves_the_sizes_that_passed_lately),
		SCENE(loss_that_is_over_is_forgotten),
		SCENE(one_more_loss_does_not_bring_back_what_is_over),
		SCENE(two_reads_without_an_answer_are_silence_until_the_next_answer),
		SCENE(path_that_was_silent_is_good_again_at_the_next_answer),
		SCENE(path_that_loses_every_third_read_is_lossy_whenever_it_is_not_silent),
		SCENE(writes_without_an_answer_are_loss_and_no_silence),
		SCENE(writes_have_counts_of_their_own_and_teach_no_latency),
		SCENE(way_that_broke_with_a_write_is_silent_as_with_a_read),
		SCENE(answer_to_a_write_ends_no_silence),
		SCENE(sizes_that_are_known_to_be_lost_make_no_silence),
		SCENE(what_a_lossy_path_lost_is_tried_again_until_it_is_lost_no_more),
		SCENE(large_probe_that_was_lost_just_now_is_tried_again_once),
		SCENE(write_that_was_lost_is_tried_again_as_a_write),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
