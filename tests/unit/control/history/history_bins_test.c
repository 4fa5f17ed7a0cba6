// SPDX-License-Identifier: BSD-3-Clause
#include <control/history_bins.h>
#include <support/cmocka.h>

#include <string.h>

static size_t encoded_size(const struct history_bins *bins, struct history_bins *ret_again) {
	uint8_t bytes[1024];
	struct wire_writer writer;
	struct wire_reader reader;
	size_t size = 0;

	wire_writer_init(&writer, bytes, sizeof(bytes));
	history_bins_put(&writer, bins);
	assert_int_equal(wire_writer_finish(&writer, &size), 0);
	memset(ret_again, 0, sizeof(*ret_again));
	wire_reader_init(&reader, bytes, size);
	history_bins_get(&reader, ret_again);
	assert_int_equal(wire_reader_finish(&reader), 0);
	return size;
}

static void a_percentile_is_within_an_eighth_from_256_ns_to_1_s(void **state) {
	(void)state;
	for (uint64_t value_ns = 256; value_ns < UINT64_C(1000000000);
	     value_ns += value_ns / 97 + 1) {
		struct history_bins bins = {0};
		uint64_t median_ns;

		// Two other values keep the least and the largest from deciding.
		history_bins_add(&bins, true, 1);
		history_bins_add(&bins, true, value_ns);
		history_bins_add(&bins, true, UINT64_C(1) << 40);
		median_ns = history_bins_percentile(&bins, 500);
		assert_in_range(median_ns, value_ns - value_ns / 8, value_ns + value_ns / 8);
	}
}

static void bins_without_an_answer_have_no_percentile(void **state) {
	struct history_bins bins = {0};

	(void)state;
	assert_int_equal(history_bins_percentile(&bins, 990), 0);
	history_bins_add(&bins, false, 0);
	history_bins_add(&bins, true, 0); // a large read, whose latency is not counted
	assert_int_equal(history_bins_percentile(&bins, 990), 0);
	assert_int_equal(bins.sent, 2);
	assert_int_equal(bins.lost, 1);
}

static void merged_bins_are_those_of_all_probes(void **state) {
	struct history_bins one = {0}, other = {0}, both = {0};

	(void)state;
	for (uint64_t n = 1; n < 300; n++) {
		history_bins_add(n % 3 == 0 ? &one : &other, n % 7 != 0, n * 997);
		history_bins_add(&both, n % 7 != 0, n * 997);
	}
	history_bins_merge(&one, &other);
	assert_memory_equal(&one, &both, sizeof(both));
}

static void counts_saturate(void **state) {
	struct history_bins bins = {.sent = UINT32_MAX, .lost = UINT32_MAX}, again;

	(void)state;
	history_bins_add(&bins, false, 0);
	history_bins_merge(&bins, &bins);
	assert_int_equal(bins.sent, UINT32_MAX);
	assert_int_equal(bins.lost, UINT32_MAX);
	(void)encoded_size(&bins, &again);
	assert_memory_equal(&bins, &again, sizeof(bins));
}

// A minute of a healthy path has 36 small reads within half an octave, and one straggler.
static void a_typical_minute_takes_at_most_48_bytes(void **state) {
	struct history_bins bins = {0}, again;

	(void)state;
	for (uint64_t n = 0; n < 36; n++)
		history_bins_add(&bins, true, 2000 + n * 30);
	for (uint64_t n = 0; n < 24; n++)
		history_bins_add(&bins, true, 0);
	history_bins_add(&bins, true, 90000);
	assert_in_range(encoded_size(&bins, &again), 1, 24);
	assert_memory_equal(&bins, &again, sizeof(bins));
	// An hour of them, with a tail of one probe in a hundred.
	memset(&bins, 0, sizeof(bins));
	for (uint64_t n = 0; n < 2160; n++)
		history_bins_add(&bins, true, n % 100 != 0 ? 2000 + n / 2 : 4000 + n * 20);
	assert_in_range(encoded_size(&bins, &again), 1, 48);
	assert_memory_equal(&bins, &again, sizeof(bins));
}

static void bins_that_contradict_themselves_are_refused(void **state) {
	static const uint8_t cases[][12] = {
		{1, 2, 0},		     // more lost than sent
		{2, 0, 91},		     // more bins than there are
		{2, 0, 1, 0, 5, 3, 1},	     // a least latency of 0
		{2, 0, 1, 9, 5, 99, 1},	     // a bin past the last one
		{2, 0, 1, 9, 5, 3, 0},	     // an empty bin
		{2, 0, 2, 9, 5, 3, 1, 0, 1}, // a bin twice
	};

	(void)state;
	for (size_t n = 0; n < sizeof(cases) / sizeof(cases[0]); n++) {
		struct history_bins bins = {.sent = 77};
		struct wire_reader reader;

		wire_reader_init(&reader, cases[n], sizeof(cases[n]));
		history_bins_get(&reader, &bins);
		assert_int_equal(wire_reader_error(&reader), -EBADMSG);
		assert_int_equal(bins.sent, 77);
	}
}

UNIT_GROUP(history_bins) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_percentile_is_within_an_eighth_from_256_ns_to_1_s),
		cmocka_unit_test(bins_without_an_answer_have_no_percentile),
		cmocka_unit_test(merged_bins_are_those_of_all_probes),
		cmocka_unit_test(counts_saturate),
		cmocka_unit_test(a_typical_minute_takes_at_most_48_bytes),
		cmocka_unit_test(bins_that_contradict_themselves_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
