// SPDX-License-Identifier: BSD-3-Clause
#include "lib/histogram_values.h"

#include <lib/histogram.h>
#include <lib/histogram_json.h>
#include <lib/wire.h>
#include <support/cases.h>
#include <support/cmocka.h>

#include <jansson.h>

#define BYTES_MAX (1U << 20)

static uint8_t buffer[1 << 18];

static struct histogram *created(const struct histogram_shape *shape) {
	struct histogram *histogram = NULL;

	assert_int_equal(histogram_create(shape, &histogram), 0);
	return histogram;
}

static size_t encoded(const struct histogram *histogram) {
	struct wire_writer writer;
	size_t used = 0;

	wire_writer_init(&writer, buffer, sizeof(buffer));
	histogram_encode(histogram, &writer);
	assert_int_equal(wire_writer_finish(&writer, &used), 0);
	return used;
}

static int decoded(const void *data, size_t size, size_t bytes_max, struct histogram **ret) {
	struct wire_reader reader;
	int err;

	wire_reader_init(&reader, data, size);
	err = histogram_decode(&reader, bytes_max, ret);
	assert_int_equal(wire_reader_error(&reader), err);
	if (err == 0 && wire_reader_left(&reader) > 0) {
		histogram_destroy(*ret);
		return -EBADMSG;
	}
	return err;
}

static void what_was_encoded_comes_back_and_encodes_the_same(void **state) {
	static const struct histogram_shape rows[] = {
		{1, 3600000000000, 7, 32},	 {1, 3600000000000, 7, 64}, {500, 2000000, 5, 64},
		{0, HISTOGRAM_VALUE_MAX, 1, 32}, {1, 1000, 10, 32},
	};
	static uint8_t first[sizeof(buffer)];

	(void)state;
	for (size_t n = 0; n < COUNT_OF(rows) * (DISTRIBUTION_COUNT + 1); n++) {
		struct histogram *histogram = created(&rows[n % COUNT_OF(rows)]), *copy = NULL;
		size_t d = n / COUNT_OF(rows);
		struct histogram_summary before, after;
		uint64_t random_state = n;
		size_t size;

		// In the last round the histogram is empty.
		for (size_t i = 0; d < DISTRIBUTION_COUNT && i < 3000; i++)
			histogram_record(histogram, distributions[d].draw(&random_state));
		size = encoded(histogram);
		memcpy(first, buffer, size);
		assert_int_equal(decoded(first, size, BYTES_MAX, &copy), 0);
		assert_int_equal(encoded(copy), size);
		assert_memory_equal(buffer, first, size);
		histogram_summarize(histogram, &before);
		histogram_summarize(copy, &after);
		assert_memory_equal(&before, &after, sizeof(before));
		histogram_record(copy, 7);
		histogram_record(histogram, 7);
		assert_int_equal(encoded(copy), encoded(histogram));
		histogram_destroy(histogram);
		histogram_destroy(copy);
	}
}

static void a_full_counter_encodes_and_comes_back(void **state) {
	struct histogram *live = created(&histogram_shape_latency);
	struct histogram *copy = NULL;
	size_t size;

	(void)state;
	histogram_record(live, 900);
	for (int n = 0; n < 33; n++)
		assert_int_equal(histogram_merge(live, live), 0);
	histogram_record(live, 900);
	size = encoded(live);
	assert_int_equal(decoded(buffer, size, BYTES_MAX, &copy), 0);
	assert_int_equal(histogram_percentile(copy, 500000), 900);
	histogram_destroy(copy);
	histogram_destroy(live);
}

static void the_form_of_one_record_is_small(void **state) {
	struct histogram *histogram = created(&histogram_shape_latency);

	(void)state;
	histogram_record(histogram, 1500);
	assert_in_range(encoded(histogram), 1, 40);
	histogram_destroy(histogram);
}

static void every_truncation_and_any_trailing_byte_is_refused(void **state) {
	struct histogram *histogram = created(&histogram_shape_latency);
	struct histogram *untouched = histogram;
	size_t size;

	(void)state;
	histogram_record(histogram, 1500);
	histogram_record(histogram, 77777);
	size = encoded(histogram);
	for (size_t n = 0; n < size; n++) {
		int err = decoded(buffer, n, BYTES_MAX, &untouched);

		assert_true(err == -EBADMSG || err == -EPROTO);
		assert_ptr_equal(untouched, histogram);
	}
	buffer[size] = 0;
	assert_int_equal(decoded(buffer, size + 1, BYTES_MAX, &untouched), -EBADMSG);
	histogram_destroy(histogram);
}

static void the_callers_cap_on_memory_is_emsgsize(void **state) {
	struct histogram *histogram = created(&histogram_shape_latency), *copy = NULL;
	size_t need = histogram_size_bytes(&histogram_shape_latency);
	size_t size = encoded(histogram);

	(void)state;
	assert_int_equal(decoded(buffer, size, need - 1, &copy), -EMSGSIZE);
	assert_null(copy);
	assert_int_equal(decoded(buffer, size, need, &copy), 0);
	histogram_destroy(histogram);
	histogram_destroy(copy);
}

// The fields of a small message, in order. `right` is valid; each test changes one field.
struct fields {
	uint8_t version, precision_bits, counter_bits;
	uint64_t value_min, value_max;
	uint64_t count, lost, under, over, min, max;
	uint64_t sum[2], squares[2];
	uint64_t runs[8]; // number of runs, then their gaps, lengths and counters
	size_t run_fields;
};

// Three records, 10, 10 and 20, in a range of 8..100 where each value has its own bucket.
static const struct fields right = {
	1, 7, 32, 8, 100, 3, 0, 0, 0, 10, 20, {40, 0}, {600, 0}, {2, 2, 1, 2, 9, 1, 1}, 7,
};

static int decode_fields(const struct fields *fields) {
	struct histogram *histogram = NULL;
	const uint64_t numbers[] = {
		fields->value_min, fields->value_max, fields->count,	  fields->lost,
		fields->under,	   fields->over,      fields->min,	  fields->max,
		fields->sum[0],	   fields->sum[1],    fields->squares[0], fields->squares[1],
	};
	struct wire_writer writer;
	size_t used = 0;
	int err;

	wire_writer_init(&writer, buffer, sizeof(buffer));
	wire_put_u8(&writer, fields->version);
	wire_put_u8(&writer, fields->precision_bits);
	wire_put_u8(&writer, fields->counter_bits);
	for (size_t n = 0; n < COUNT_OF(numbers); n++)
		wire_put_varint(&writer, numbers[n]);
	for (size_t n = 0; n < fields->run_fields; n++)
		wire_put_varint(&writer, fields->runs[n]);
	assert_int_equal(wire_writer_finish(&writer, &used), 0);
	err = decoded(buffer, used, BYTES_MAX, &histogram);
	if (err == 0)
		histogram_destroy(histogram);
	return err;
}

static void a_message_that_contradicts_itself_is_refused(void **state) {
	struct fields bad;

	(void)state;
	assert_int_equal(decode_fields(&right), 0);
#define REFUSED(change, error)                                  \
	do {                                                    \
		bad = right;                                    \
		bad.change;                                     \
		assert_int_equal(decode_fields(&bad), (error)); \
	} while (0)
	REFUSED(version = 2, -EPROTO);
	REFUSED(precision_bits = 0, -EBADMSG);
	REFUSED(precision_bits = 15, -EBADMSG);
	REFUSED(counter_bits = 33, -EBADMSG);
	REFUSED(value_min = 100, -EBADMSG);
	REFUSED(value_max = HISTOGRAM_VALUE_MAX + 1, -EBADMSG);
	REFUSED(count = 4, -EBADMSG);
	REFUSED(count = 0, -EBADMSG);
	REFUSED(lost = 1, -EBADMSG);
	REFUSED(under = 1, -EBADMSG); // but no record was below 8
	REFUSED(under = UINT64_MAX, -EBADMSG);
	REFUSED(over = 1, -EBADMSG);
	REFUSED(over = UINT64_MAX, -EBADMSG);
	REFUSED(min = 11, -EBADMSG);
	REFUSED(min = 5, -EBADMSG); // below 8, but not counted as below
	REFUSED(min = 21, -EBADMSG);
	REFUSED(max = 19, -EBADMSG);
	REFUSED(max = 101, -EBADMSG);
	REFUSED(sum[0] = 39, -EBADMSG);
	REFUSED(sum[0] = 41, -EBADMSG);
	REFUSED(sum[1] = 1, -EBADMSG);
	REFUSED(squares[0] = 599, -EBADMSG);
	REFUSED(squares[0] = 601, -EBADMSG);
	REFUSED(squares[1] = 1, -EBADMSG);
	// The sum saturated after only two records.
	REFUSED(squares[1] = bad.squares[0] = UINT64_MAX, -EBADMSG);
	REFUSED(runs[0] = 1, -EBADMSG);
	REFUSED(runs[0] = UINT64_MAX, -EBADMSG);
	REFUSED(runs[1] = UINT64_MAX, -EBADMSG); // gap
	REFUSED(runs[1] = 93, -EBADMSG);
	REFUSED(runs[2] = 0, -EBADMSG); // length
	REFUSED(runs[2] = 92, -EBADMSG);
	REFUSED(runs[2] = UINT64_MAX, -EBADMSG);
	REFUSED(runs[3] = 0, -EBADMSG); // counter
	REFUSED(runs[3] = 1ULL << 32, -EBADMSG);
	REFUSED(runs[4] = 0, -EBADMSG); // two adjacent runs
	REFUSED(runs[4] = 8, -EBADMSG); // value 19, which contradicts the sum
#undef REFUSED
}

static void a_lost_record_lets_no_other_lie_beyond_the_extremes(void **state) {
	static const struct fields lost = {
		1, 7, 32, 8, 100, 4, 1, 0, 0, 10, 50, {90, 0}, {3100, 0}, {2, 2, 1, 2, 9, 1, 1}, 7,
	};
	struct fields bad = lost;

	(void)state;
	assert_int_equal(decode_fields(&lost), 0);
	bad.min = 15;
	assert_int_equal(decode_fields(&bad), -EBADMSG);
	bad = lost;
	bad.max = 19;
	assert_int_equal(decode_fields(&bad), -EBADMSG);
}

static void an_empty_message_with_moments_is_refused(void **state) {
	struct fields empty = {1, 7, 32, 8, 100, .run_fields = 1};

	(void)state;
	assert_int_equal(decode_fields(&empty), 0);
	empty.min = 1;
	assert_int_equal(decode_fields(&empty), -EBADMSG);
	empty.min = 0;
	empty.squares[0] = empty.squares[1] = UINT64_MAX;
	assert_int_equal(decode_fields(&empty), -EBADMSG);
}

static void json_holds_summary_percentiles_and_buckets(void **state) {
	static const struct histogram_shape shape = {8, 100, 7, 32};
	struct histogram *histogram = created(&shape);
	json_t *json = NULL, *expected;

	(void)state;
	histogram_record(histogram, 10);
	histogram_record(histogram, 10);
	histogram_record(histogram, 40);
	histogram_record(histogram, UINT64_MAX);
	assert_int_equal(histogram_to_json(histogram, &json), 0);
	expected = json_pack(
		"{s:i s:i s:i s:i s:i s:I s:f s:O s:{s:i s:i s:i s:i s:i s:i} s:f s:i s:i "
		"s:[[iii][iii][iii]]}",
		"count", 4, "lost", 0, "under", 0, "over", 1, "min", 10, "max",
		(json_int_t)INT64_MAX, "mean", 40.0, "stdev", json_object_get(json, "stdev"),
		"percentiles", "50", 10, "90", 100, "99", 100, "99.9", 100, "99.99", 100, "99.999",
		100, "relative_error_max", 1.0 / 128, "value_min", 8, "value_max", 100, "buckets",
		10, 10, 2, 40, 40, 1, 100, 100, 1
	);
	assert_true(json_equal(json, expected));
	assert_true(fabs(json_real_value(json_object_get(json, "stdev")) - 36.742346) < 1e-6);
	json_decref(json);
	json_decref(expected);
	histogram_destroy(histogram);
}

static void json_of_an_unknown_deviation_is_null(void **state) {
	static const struct histogram_shape wide = {1, HISTOGRAM_VALUE_MAX, 1, 64};
	struct histogram *histogram = created(&wide);
	json_t *json = NULL;

	(void)state;
	histogram_record(histogram, HISTOGRAM_VALUE_MAX);
	for (int n = 0; n < 33; n++)
		assert_int_equal(histogram_merge(histogram, histogram), 0);
	assert_int_equal(histogram_to_json(histogram, &json), 0);
	assert_true(json_is_null(json_object_get(json, "stdev")));
	json_decref(json);
	histogram_destroy(histogram);
}

UNIT_GROUP(histogram_code) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_encoded_comes_back_and_encodes_the_same),
		cmocka_unit_test(a_full_counter_encodes_and_comes_back),
		cmocka_unit_test(the_form_of_one_record_is_small),
		cmocka_unit_test(every_truncation_and_any_trailing_byte_is_refused),
		cmocka_unit_test(the_callers_cap_on_memory_is_emsgsize),
		cmocka_unit_test(a_message_that_contradicts_itself_is_refused),
		cmocka_unit_test(a_lost_record_lets_no_other_lie_beyond_the_extremes),
		cmocka_unit_test(an_empty_message_with_moments_is_refused),
		cmocka_unit_test(json_holds_summary_percentiles_and_buckets),
		cmocka_unit_test(json_of_an_unknown_deviation_is_null),
	};

	return cmocka_run_group_tests_name("histogram_code", tests, NULL, NULL);
}
