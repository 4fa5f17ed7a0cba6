// SPDX-License-Identifier: BSD-3-Clause
// Histograms as JSON.
#include "histogram_inside.h"

#include <lib/histogram_json.h>

#include <jansson.h>

#include <errno.h>
#include <math.h>

static const uint32_t percentiles[] = {500000, 900000, 990000, 999000, 999900, 999990};
static const char *const percentile_names[] = {"50", "90", "99", "99.9", "99.99", "99.999"};

#define PERCENTILE_COUNT (sizeof(percentiles) / sizeof(percentiles[0]))

static json_t *json_from_u64(uint64_t value) {
	return json_integer(value <= INT64_MAX ? (json_int_t)value : INT64_MAX);
}

// Convert a number. JSON has no NaN and no infinity, so both become null.
static json_t *json_from_double(double value) {
	return isfinite(value) ? json_real(value) : json_null();
}

// Add the buckets. Returns 0 or -1 like jansson; the only failure is lack of memory.
static int buckets_put(json_t *object, const struct histogram *histogram) {
	json_t *buckets = json_array();
	int failed = 0;

	for (uint32_t n = 0; n < histogram->bucket_count && failed == 0; n++) {
		struct bucket bucket = histogram_bucket(histogram, n);
		uint64_t count = counter_load(histogram, n);
		json_t *row;

		if (count == 0)
			continue;
		row = json_array();
		failed |= json_array_append_new(row, json_from_u64(bucket.lowest));
		failed |= json_array_append_new(row, json_from_u64(bucket.highest));
		failed |= json_array_append_new(row, json_from_u64(count));
		failed |= json_array_append_new(buckets, row);
	}
	return failed | json_object_set_new(object, "buckets", buckets);
}

int histogram_to_json(const struct histogram *histogram, struct json_t **ret_json) {
	const struct histogram_shape *shape = &histogram->shape;
	double error = 1.0 / (1U << shape->precision_bits);
	json_t *object = json_object(), *inner = json_object();
	struct histogram_summary summary;
	uint64_t values[PERCENTILE_COUNT];
	int failed = 0;

	histogram_summarize(histogram, &summary);
	failed |= json_object_set_new(object, "count", json_from_u64(summary.count));
	failed |= json_object_set_new(object, "lost", json_from_u64(summary.lost));
	failed |= json_object_set_new(object, "under", json_from_u64(summary.under));
	failed |= json_object_set_new(object, "over", json_from_u64(summary.over));
	failed |= json_object_set_new(object, "min", json_from_u64(summary.min));
	failed |= json_object_set_new(object, "max", json_from_u64(summary.max));
	failed |= json_object_set_new(object, "mean", json_from_double(summary.mean));
	failed |= json_object_set_new(object, "stdev", json_from_double(summary.stdev));

	histogram_percentiles(histogram, percentiles, PERCENTILE_COUNT, values);
	for (size_t n = 0; n < PERCENTILE_COUNT; n++)
		failed |= json_object_set_new(inner, percentile_names[n], json_from_u64(values[n]));
	failed |= json_object_set_new(object, "percentiles", inner);

	// Octaves without subdivision have a smaller error than the general rule, see histogram.h.
	if (shape->precision_bits == 1)
		error = 1.0 / 3;
	failed |= json_object_set_new(object, "relative_error_max", json_real(error));
	failed |= json_object_set_new(object, "value_min", json_from_u64(shape->value_min));
	failed |= json_object_set_new(object, "value_max", json_from_u64(shape->value_max));
	failed |= buckets_put(object, histogram);
	if (failed != 0) {
		json_decref(object);
		return -ENOMEM;
	}
	*ret_json = object;
	return 0;
}
