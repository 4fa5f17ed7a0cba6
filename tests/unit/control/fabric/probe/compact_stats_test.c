// SPDX-License-Identifier: BSD-3-Clause
#include <support/cmocka.h>
#include <verdict/path_memory.h>

#include <stdlib.h>

#define SEC RAS_NS_PER_SEC
#define US UINT64_C(1000)

#define GAP_NS (50 * RAS_NS_PER_MS)

static uint64_t now_ns, beats;

static int stats_make(void **state) {
	struct compact_stats *stats = malloc(compact_stats_bytes());

	assert_non_null(stats);
	compact_stats_init(stats);
	now_ns = SEC;
	beats = 5;
	*state = stats;
	return 0;
}

static int stats_drop(void **state) {
	free(*state);
	return 0;
}

static struct path_summary summary(const struct compact_stats *stats) {
	struct path_summary now;

	compact_stats_summary(stats, &now);
	return now;
}

// Add one read. The peer's counter advances between two reads, unless a test reverts that.
static void add(struct compact_stats *stats, uint32_t size, bool answered, uint64_t latency_ns) {
	const struct path_probe probe = {
		.at_ns = now_ns += GAP_NS,
		.size = size,
		.answered = answered,
		.is_read = true,
		.latency_ns = latency_ns,
		.incarnation = size > 0 ? 1 << 16 : 0,
		.beats = ++beats,
	};

	compact_stats_add(stats, &probe);
}

static void costs_at_most_256_bytes(void **state) {
	(void)state;
	assert_in_range(compact_stats_bytes(), 1, 256);
}

static void knows_nothing_to_begin_with(void **state) {
	struct path_summary now = summary(*state);

	assert_int_equal(now.kind, OBSERVATION_NO_PAIR);
	assert_int_equal(now.count, 0);
	assert_int_equal(now.median_ns | now.p99_ns | now.min_ns, 0);
	assert_int_equal(now.last_answer_ns, RAS_NEVER);
	assert_int_equal(now.lost_size_index, PATH_SIZES);
}

static void remembers_times_of_the_small_size(void **state) {
	struct path_summary now;

	add(*state, 1, true, 900 * US);
	for (uint64_t n = 0; n < 100; n++)
		add(*state, 0, true, 10 * US + n);
	add(*state, 3, true, 900 * US);
	now = summary(*state);
	assert_int_equal(now.kind, OBSERVATION_GOOD);
	assert_int_equal(now.count, 102);
	assert_int_equal(now.min_ns, 10 * US);
	assert_in_range(now.median_ns, 10 * US + 84, 10 * US + 99); // median of the last reads
	assert_in_range(now.p99_ns, now.median_ns, 16384);
	assert_in_range(now.mad_ns, 1, 8);
}

static void loss_is_kept_by_size(void **state) {
	struct path_summary now;

	for (uint32_t n = 0; n < 10; n++) {
		add(*state, 0, true, 10 * US);
		add(*state, 2, true, 12 * US);
		add(*state, 3, false, 0);
	}
	now = summary(*state);
	assert_int_equal(now.kind, OBSERVATION_GOOD);
	assert_int_equal(now.lost_size_index, 3);
	assert_int_equal(now.lost_permille, 1000);
	assert_int_equal(now.size_lost[3], 10);
	assert_int_equal(now.size_sent[2], 10);
}

static void visit_proves_the_sizes_that_passed_in_it(void **state) {
	add(*state, 1, true, 10 * US);
	add(*state, 0, true, 10 * US);
	assert_int_equal(summary(*state).unproven_size_index, 2);
	add(*state, 2, true, 10 * US);
	add(*state, 3, true, 10 * US);
	assert_int_equal(summary(*state).unproven_size_index, PATH_SIZES);
	add(*state, 3, false, 0);
	assert_int_equal(summary(*state).kind, OBSERVATION_GOOD);
	assert_int_equal(summary(*state).unproven_size_index, 3);
	// Time between two visits is no evidence about the next one.
	now_ns += 60 * SEC;
	add(*state, 1, true, 10 * US);
	add(*state, 0, true, 10 * US);
	add(*state, 2, false, 0);
	assert_int_equal(summary(*state).kind, OBSERVATION_GOOD);
	assert_int_equal(summary(*state).unproven_size_index, 2);
}

static void two_reads_without_an_answer_are_silence_until_the_next_answer(void **state) {
	add(*state, 1, true, 10 * US);
	add(*state, 0, true, 10 * US);
	add(*state, 0, false, 0);
	assert_int_equal(summary(*state).kind, OBSERVATION_GOOD);
	add(*state, 0, false, 0);
	assert_int_equal(summary(*state).kind, OBSERVATION_SILENT);
	beats -= 3; // answered, but the counter did not advance
	add(*state, 0, true, 10 * US);
	assert_int_equal(summary(*state).kind, OBSERVATION_NO_PAIR);
	add(*state, 1, true, 10 * US);
	assert_int_equal(summary(*state).kind, OBSERVATION_GOOD);
}

// The pattern of a visit whose large reads are dropped: each of them breaks the pair.
static void large_reads_that_take_small_ones_with_their_pair_are_no_silence(void **state) {
	add(*state, 1, true, 10 * US);
	for (int pair = 0; pair < 4; pair++) {
		compact_stats_opened(*state);
		add(*state, 0, true, 10 * US);
		add(*state, 0, true, 10 * US);
		add(*state, 1, false, 0);
		add(*state, 0, false, 0);
		add(*state, 2, false, 0);
		add(*state, 0, false, 0);
		assert_int_equal(summary(*state).kind, OBSERVATION_GOOD);
	}
}

static void small_read_lost_first_over_the_next_pair_is_silence(void **state) {
	add(*state, 1, true, 10 * US);
	add(*state, 0, true, 10 * US);
	add(*state, 1, false, 0);
	add(*state, 0, false, 0);
	assert_int_equal(summary(*state).kind, OBSERVATION_GOOD);
	compact_stats_opened(*state);
	add(*state, 0, false, 0);
	assert_int_equal(summary(*state).kind, OBSERVATION_SILENT);
}

static void small_read_and_what_follows_it_are_silence_over_one_pair(void **state) {
	compact_stats_opened(*state);
	add(*state, 0, false, 0);
	add(*state, 1, false, 0);
	assert_int_equal(summary(*state).kind, OBSERVATION_SILENT);
}

static void head_is_not_good_before_its_counter_was_seen_to_advance(void **state) {
	struct path_summary now;

	add(*state, 1, true, 10 * US);
	assert_int_equal(summary(*state).kind, OBSERVATION_NO_PAIR);
	add(*state, 0, true, 10 * US);
	now = summary(*state);
	assert_int_equal(now.kind, OBSERVATION_GOOD);
	assert_int_equal(now.advanced_ns, now_ns);
}

static void counter_that_stands_throughout_a_visit_is_nothing_good(void **state) {
	for (uint32_t n = 0; n < 5; n++)
		add(*state, n == 0, true, 10 * US);
	assert_int_equal(summary(*state).kind, OBSERVATION_GOOD);
	// The agent ran on after the previous visit, and stopped before this one.
	now_ns += 30 * SEC;
	beats += 200;
	for (uint32_t n = 0; n < 5; n++) {
		add(*state, n == 0, true, 10 * US);
		assert_int_equal(summary(*state).kind, OBSERVATION_NO_PAIR);
		beats--;
	}
	assert_int_equal(summary(*state).last_answer_ns, now_ns);
	assert_true(summary(*state).advanced_ns < now_ns - 30 * SEC);
}

static void new_start_of_the_peer_begins_anew(void **state) {
	struct path_probe probe = {
		.at_ns = SEC, .size = 1, .answered = true, .is_read = true, .beats = 900};

	probe.incarnation = ras_incarnation(1, 0);
	compact_stats_add(*state, &probe);
	probe.incarnation = ras_incarnation(2, 0);
	probe.beats = 901;
	compact_stats_add(*state, &probe);
	assert_int_equal(summary(*state).kind, OBSERVATION_NO_PAIR);
	probe.beats = 902;
	compact_stats_add(*state, &probe);
	assert_int_equal(summary(*state).kind, OBSERVATION_GOOD);
}

static void counts_that_fill_up_keep_their_shape(void **state) {
	struct path_summary now;

	for (uint32_t n = 0; n < 300000; n++)
		add(*state, 0, true, n % 10 == 0 ? 1000 * US : 10 * US);
	now = summary(*state);
	assert_int_equal(now.count, 300000);
	assert_int_equal(now.median_ns, 10 * US);
	assert_in_range(now.p99_ns, 500 * US, 1500 * US);
}

static void times_beyond_all_bounds_are_taken_for_the_longest(void **state) {
	add(*state, 0, true, UINT64_MAX);
	add(*state, 0, true, 0);
	assert_int_equal(summary(*state).min_ns, 0);
	assert_true(summary(*state).p99_ns >= summary(*state).median_ns);
}

#define STATS(name) cmocka_unit_test_setup_teardown(name, stats_make, stats_drop)

UNIT_GROUP(compact_stats) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(costs_at_most_256_bytes),
		STATS(knows_nothing_to_begin_with),
		STATS(remembers_times_of_the_small_size),
		STATS(loss_is_kept_by_size),
		STATS(visit_proves_the_sizes_that_passed_in_it),
		STATS(two_reads_without_an_answer_are_silence_until_the_next_answer),
		STATS(large_reads_that_take_small_ones_with_their_pair_are_no_silence),
		STATS(small_read_lost_first_over_the_next_pair_is_silence),
		STATS(small_read_and_what_follows_it_are_silence_over_one_pair),
		STATS(head_is_not_good_before_its_counter_was_seen_to_advance),
		STATS(counter_that_stands_throughout_a_visit_is_nothing_good),
		STATS(new_start_of_the_peer_begins_anew),
		STATS(counts_that_fill_up_keep_their_shape),
		STATS(times_beyond_all_bounds_are_taken_for_the_longest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
