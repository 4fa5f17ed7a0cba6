// SPDX-License-Identifier: BSD-3-Clause
#include "record.h"

#include <support/cmocka.h>

#include <errno.h>

// The value of each sample encodes its index.
static void fill(struct run_record *record, uint64_t count) {
	uint64_t from = run_record_count(record);

	for (uint64_t n = from; n < from + count; n++)
		run_record_add(record, 1000 + n);
}

static uint64_t window_total(struct run_record *record, struct run_windows windows) {
	uint64_t total = 0, last = 0;

	for (uint32_t n = 0; n < windows.count; n++) {
		struct histogram_summary summary;

		histogram_summarize(run_record_window(record, n), &summary);
		assert_int_equal(summary.count, windows.samples);
		assert_int_equal(
			summary.min, 1000 + total
		); // the window holds exactly its own part of the run
		assert_true(summary.min > last);
		last = summary.max;
		total += summary.count;
	}
	return total;
}

static void windows_are_pieces_that_follow_each_other(void **state) {
	// Counts around each doubling: the first window, the last, half of the pairs merged, and
	// far beyond.
	static const uint64_t counts[] = {
		1,
		63,
		64,
		65,
		1024 * 64 - 1,
		1024 * 64,
		1024 * 64 + 1,
		1300 * 64,
		1536 * 64,
		2048 * 64,
		2048 * 64 + 129,
		10000 * 64 + 7,
	};

	(void)state;
	for (size_t n = 0; n < sizeof(counts) / sizeof(counts[0]); n++) {
		struct run_record *record;
		struct run_windows windows;
		uint64_t total;

		assert_int_equal(run_record_create(&record), 0);
		fill(record, counts[n]);
		windows = run_record_windows(record);
		total = window_total(record, windows);
		assert_true(total <= counts[n] && counts[n] - total < windows.samples);
		assert_true(windows.count <= RECORD_WINDOWS_MAX);
		assert_true(counts[n] < 1024 * 64 || windows.count >= RECORD_WINDOWS_MAX / 2);
		run_record_destroy(record);
	}
}

static void reading_in_between_changes_nothing(void **state) {
	struct run_record *record;

	(void)state;
	assert_int_equal(run_record_create(&record), 0);
	for (int n = 0; n < 400; n++) {
		struct run_windows windows;

		fill(record, 977);
		windows = run_record_windows(record);
		assert_true(
			run_record_count(record) - window_total(record, windows) < windows.samples
		);
	}
	run_record_destroy(record);
}

// While a run is kept whole, its windows are built from the raw samples on each read. From half of
// that size on, each new sample updates them.
static void reading_anywhere_shows_all_samples_before(void **state) {
	static const uint64_t places[] = {
		100,
		RECORD_RAW_MAX / 4 + 1,
		RECORD_RAW_MAX / 2,
		RECORD_RAW_MAX / 2 + 3,
		RECORD_RAW_MAX - 255,
		RECORD_RAW_MAX,
		RECORD_RAW_MAX + 1,
		2 * RECORD_RAW_MAX + 700,
	};
	struct histogram_summary summary;

	(void)state;
	for (size_t first = 0; first < sizeof(places) / sizeof(places[0]); first++) {
		struct run_record *record;

		assert_int_equal(run_record_create(&record), 0);
		for (size_t n = first; n < sizeof(places) / sizeof(places[0]); n++) {
			struct run_windows windows;

			fill(record, places[n] - run_record_count(record));
			histogram_summarize(run_record_all(record), &summary);
			assert_int_equal(summary.count, places[n]);
			windows = run_record_windows(record);
			assert_true(places[n] - window_total(record, windows) < windows.samples);
		}
		run_record_destroy(record);
	}
}

static void short_run_is_kept_whole(void **state) {
	struct indicator_block blocks[RECORD_BLOCKS_MAX];
	struct run_record *record;

	(void)state;
	assert_int_equal(run_record_create(&record), 0);
	assert_int_equal(run_record_blocks(record, blocks), 0);
	fill(record, RECORD_RAW_MAX);
	assert_int_equal(run_record_blocks(record, blocks), 1);
	assert_int_equal(blocks[0].count, RECORD_RAW_MAX);
	for (uint64_t n = 0; n < RECORD_RAW_MAX; n++)
		assert_int_equal(blocks[0].samples[n], 1000 + n);
	run_record_destroy(record);
}

static void long_run_keeps_blocks_spread_over_it(void **state) {
	static const uint64_t counts[] = {
		RECORD_RAW_MAX + 1,
		RECORD_RAW_MAX + 2049,
		3 * RECORD_RAW_MAX,
		7654321,
	};

	(void)state;
	for (size_t n = 0; n < sizeof(counts) / sizeof(counts[0]); n++) {
		struct indicator_block blocks[RECORD_BLOCKS_MAX];
		struct run_record *record;
		uint32_t count;
		uint64_t stride;

		assert_int_equal(run_record_create(&record), 0);
		fill(record, counts[n]);
		count = run_record_blocks(record, blocks);
		assert_in_range(count, RECORD_BLOCKS_MAX / 2, RECORD_BLOCKS_MAX);
		stride = run_record_block_start(record, 1);
		for (uint32_t b = 0; b < count; b++) {
			uint64_t start = run_record_block_start(record, b);

			assert_int_equal(start, b * stride);
			assert_true(b == count - 1 || blocks[b].count == RECORD_BLOCK_SAMPLES);
			for (uint32_t s = 0; s < blocks[b].count; s++)
				assert_int_equal(blocks[b].samples[s], 1000 + start + s);
		}
		assert_true(counts[n] - run_record_block_start(record, count - 1) <= stride);
		run_record_destroy(record);
	}
}

static void all_samples_are_in_the_whole(void **state) {
	struct histogram_summary summary;
	struct run_record *record;

	(void)state;
	assert_int_equal(run_record_create(&record), 0);
	fill(record, 1000000);
	histogram_summarize(run_record_all(record), &summary);
	assert_int_equal(summary.count, 1000000);
	assert_int_equal(summary.min, 1000);
	assert_int_equal(summary.max, 1000999);
	assert_in_range(histogram_percentile(run_record_all(record), 500000), 500500, 501500);
	run_record_destroy(record);
}

static int copy(void *ctx, int32_t place, uint64_t count, struct histogram *histogram) {
	struct run_record *from = ctx;
	struct histogram_summary summary;

	assert_int_equal(
		histogram_merge(
			histogram,
			place < 0 ? run_record_all(from) : run_record_window(from, (uint32_t)place)
		),
		0
	);
	histogram_summarize(histogram, &summary);
	return summary.count == count ? 0 : -EBADMSG;
}

static struct run_kept kept_of(struct run_record *record) {
	struct run_kept kept = {
		.count = run_record_count(record),
		.precision_bits = run_record_precision_bits(record),
		.fill = copy,
		.ctx = record,
	};
	struct indicator_block blocks[RECORD_BLOCKS_MAX];
	struct run_windows windows = run_record_windows(record);

	kept.window_count = windows.count;
	kept.window_samples = windows.samples;
	kept.block_count = run_record_blocks(record, blocks);
	for (uint32_t n = 0; n < kept.block_count; n++)
		kept.blocks[n] = (struct run_kept_block
		){run_record_block_start(record, n), blocks[n].samples, blocks[n].count};
	return kept;
}

static void what_was_kept_makes_a_record_that_reads_alike(void **state) {
	struct indicator_block blocks[RECORD_BLOCKS_MAX], same[RECORD_BLOCKS_MAX];
	struct run_record *record, *restored;
	struct run_kept kept;

	(void)state;
	assert_int_equal(run_record_create(&record), 0);
	fill(record, 700001);
	kept = kept_of(record);
	assert_int_equal(run_record_restore(&kept, &restored), 0);
	assert_int_equal(run_record_count(restored), 700001);
	assert_int_equal(run_record_windows(restored).count, kept.window_count);
	assert_int_equal(run_record_windows(restored).samples, kept.window_samples);
	assert_int_equal(window_total(restored, run_record_windows(restored)) > 0, 1);
	assert_int_equal(run_record_blocks(restored, same), run_record_blocks(record, blocks));
	for (uint32_t n = 0; n < kept.block_count; n++) {
		assert_int_equal(same[n].count, blocks[n].count);
		assert_int_equal(
			run_record_block_start(restored, n), run_record_block_start(record, n)
		);
		assert_memory_equal(
			same[n].samples, blocks[n].samples, same[n].count * sizeof(uint64_t)
		);
	}
	run_record_destroy(restored);
	run_record_destroy(record);
}

static void parts_that_do_not_fit_make_no_record(void **state) {
	struct run_record *record, *restored;
	struct run_kept kept, wrong;

	(void)state;
	assert_int_equal(run_record_create(&record), 0);
	fill(record, 700001);
	kept = wrong = kept_of(record);
	wrong.block_count = 1;
	assert_int_equal(run_record_restore(&wrong, &restored), -EINVAL);
	wrong = kept;
	wrong.blocks[1].start = 1;
	assert_int_equal(run_record_restore(&wrong, &restored), -EINVAL);
	wrong = kept;
	wrong.blocks[1].count++;
	assert_int_equal(run_record_restore(&wrong, &restored), -EINVAL);
	wrong = kept;
	wrong.blocks[kept.block_count - 1].start = UINT64_MAX;
	assert_int_equal(run_record_restore(&wrong, &restored), -EINVAL);
	wrong = kept;
	wrong.window_count = RECORD_WINDOWS_MAX + 1;
	assert_int_equal(run_record_restore(&wrong, &restored), -EINVAL);
	wrong = kept;
	wrong.window_samples = kept.count;
	assert_int_equal(run_record_restore(&wrong, &restored), -EINVAL);
	wrong = kept;
	wrong.count--;
	wrong.blocks[kept.block_count - 1].count--;
	assert_int_equal(run_record_restore(&wrong, &restored), -EBADMSG);
	run_record_destroy(record);
}

// Thinning ends at 64 blocks and 16 windows. Each holds the run's own samples of its position.
static void a_record_is_thinned_to_blocks_and_windows_spread_over_the_run(void **state) {
	static const uint64_t counts[] = {
		64 * 256, 100003, RECORD_RAW_MAX, RECORD_RAW_MAX + 5, 5 * RECORD_RAW_MAX + 2300,
	};

	(void)state;
	for (size_t n = 0; n < sizeof(counts) / sizeof(counts[0]); n++) {
		struct indicator_block blocks[RECORD_BLOCKS_MAX];
		struct histogram_summary summary;
		struct run_record *record;
		struct run_windows windows;
		uint32_t count, steps = 0;

		assert_int_equal(run_record_create(&record), 0);
		fill(record, counts[n]);
		while (run_record_thin_blocks(record, 128) || run_record_thin_windows(record, 16))
			assert_in_range(++steps, 1, 20);
		assert_true(steps > 0);
		count = run_record_blocks(record, blocks);
		assert_in_range(count, RECORD_BLOCKS_MAX / 2, RECORD_BLOCKS_MAX);
		for (uint32_t b = 0; b < count; b++) {
			uint64_t start = run_record_block_start(record, b);

			assert_true(b == count - 1 || blocks[b].count == blocks[0].count);
			assert_in_range(blocks[b].count, 1, 255);
			assert_true(start + blocks[b].count <= counts[n]);
			for (uint32_t s = 0; s < blocks[b].count; s++)
				assert_int_equal(blocks[b].samples[s], 1000 + start + s);
		}
		assert_true(run_record_block_start(record, count - 1) > counts[n] * 9 / 10);
		windows = run_record_windows(record);
		assert_in_range(windows.count, 16, 31);
		assert_true(counts[n] - window_total(record, windows) < 2 * windows.samples);
		histogram_summarize(run_record_all(record), &summary);
		assert_int_equal(summary.count, counts[n]);
		run_record_destroy(record);
	}
}

static void a_run_too_short_to_be_cut_stays_whole(void **state) {
	struct run_record *record;

	(void)state;
	assert_int_equal(run_record_create(&record), 0);
	fill(record, 64 * 255);
	assert_false(run_record_thin_blocks(record, 128));
	assert_false(run_record_thin_windows(record, 0));
	assert_true(run_record_is_whole(record));
	run_record_destroy(record);
}

static void a_thinned_record_is_restored_as_it_was(void **state) {
	struct histogram_summary before, after;
	struct run_record *record, *restored;
	struct run_kept kept;

	(void)state;
	assert_int_equal(run_record_create(&record), 0);
	fill(record, 300000);
	histogram_summarize(run_record_all(record), &before);
	assert_false(run_record_coarsen_histogram(record, RECORD_PRECISION_BITS));
	while (run_record_thin_blocks(record, 32) || run_record_thin_windows(record, 0) ||
	       run_record_coarsen_histogram(record, 7))
		;
	histogram_summarize(run_record_all(record), &after);
	assert_memory_equal(&after, &before, sizeof(after)); // the moments do not depend on buckets
	kept = kept_of(record);
	assert_int_equal(kept.window_count, 0);
	assert_int_equal(kept.block_count, 64);
	assert_int_equal(kept.blocks[0].count, 32);
	assert_int_equal(kept.precision_bits, 7);
	assert_int_equal(run_record_restore(&kept, &restored), 0);
	assert_int_equal(run_record_precision_bits(restored), 7);
	assert_int_equal(run_record_windows(restored).count, 0);
	run_record_destroy(restored);
	kept.precision_bits = RECORD_PRECISION_BITS_MIN - 1;
	assert_int_equal(run_record_restore(&kept, &restored), -EINVAL);
	run_record_destroy(record);
}

UNIT_GROUP(stats_record) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(windows_are_pieces_that_follow_each_other),
		cmocka_unit_test(reading_in_between_changes_nothing),
		cmocka_unit_test(reading_anywhere_shows_all_samples_before),
		cmocka_unit_test(short_run_is_kept_whole),
		cmocka_unit_test(long_run_keeps_blocks_spread_over_it),
		cmocka_unit_test(all_samples_are_in_the_whole),
		cmocka_unit_test(what_was_kept_makes_a_record_that_reads_alike),
		cmocka_unit_test(parts_that_do_not_fit_make_no_record),
		cmocka_unit_test(a_record_is_thinned_to_blocks_and_windows_spread_over_the_run),
		cmocka_unit_test(a_run_too_short_to_be_cut_stays_whole),
		cmocka_unit_test(a_thinned_record_is_restored_as_it_was),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
