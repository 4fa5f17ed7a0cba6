// SPDX-License-Identifier: BSD-3-Clause
// Fuzzes histogram decoding. An accepted histogram must encode to the same bytes. Its results lie
// between minimum and maximum, and it can be merged with itself.
#include <lib/histogram.h>
#include <lib/histogram_json.h>
#include <lib/must.h>
#include <lib/wire.h>
#include <support/fuzz.h>

#include <jansson.h>

#include <math.h>
#include <stdlib.h>

#define SIZE_BYTES_MAX (256U << 10)

static void encodes_to(const struct histogram *histogram, const uint8_t *data, size_t size) {
	uint8_t *buffer = malloc(size);
	struct wire_writer writer;
	size_t used = 0;

	must(buffer != NULL);
	wire_writer_init(&writer, buffer, size);
	histogram_encode(histogram, &writer);
	must(wire_writer_finish(&writer, &used) == 0);
	must(used == size && memcmp(buffer, data, size) == 0);
	free(buffer);
}

static void answers_stay_in_bounds(const struct histogram *histogram) {
	static const uint32_t asked[] = {0, 1, 500000, 990000, 999990, 1000000};
	uint64_t values[sizeof(asked) / sizeof(asked[0])];
	struct histogram_summary summary;
	struct json_t *json;

	histogram_summarize(histogram, &summary);
	must(summary.min <= summary.max && summary.lost <= summary.count);
	must(summary.mean >= 0 && (isnan(summary.stdev) || summary.stdev >= 0));
	histogram_percentiles(histogram, asked, sizeof(asked) / sizeof(asked[0]), values);
	must(values[0] == summary.min && values[5] == summary.max);
	for (int n = 2; n < 5; n++)
		must(values[n] >= values[n - 1]);
	must(histogram_to_json(histogram, &json) == 0);
	json_decref(json);
}

static void arithmetic_agrees(struct histogram *histogram) {
	struct histogram *copy = NULL;
	struct histogram_summary before, after;

	must(histogram_create(histogram_shape(histogram), &copy) == 0);
	must(histogram_snapshot(histogram, copy) == 0);
	histogram_summarize(histogram, &before);
	if (histogram_merge(copy, histogram) == 0) {
		histogram_summarize(copy, &after);
		must(after.count == 2 * before.count && after.lost >= 2 * before.lost);
		must(after.min == before.min && after.max == before.max);
	}
	histogram_record(copy, before.max);
	histogram_destroy(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	struct histogram *histogram = NULL;
	struct wire_reader reader;
	int err;

	wire_reader_init(&reader, data, size);
	err = histogram_decode(&reader, SIZE_BYTES_MAX, &histogram);
	must((err == 0) == (histogram != NULL) && err == wire_reader_error(&reader));
	if (err != 0)
		return 0;
	encodes_to(histogram, data, size - wire_reader_left(&reader));
	answers_stay_in_bounds(histogram);
	arithmetic_agrees(histogram);
	histogram_destroy(histogram);
	return 0;
}
