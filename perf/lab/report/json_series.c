// SPDX-License-Identifier: BSD-3-Clause
// Convert one series of samples to JSON: its figures and its stored samples.
#include "report/json.h"

#include <lib/histogram.h>
#include <lib/histogram_json.h>

#include <jansson.h>

#include <errno.h>
#include <math.h>

#define BLOCK_BYTES 48 // for the keys and the start of a block

json_t *json_unsigned(uint64_t value) {
	return json_integer(value <= INT64_MAX ? (json_int_t)value : INT64_MAX);
}

json_t *json_finite_or_null(double value) {
	return isfinite(value) ? json_real(value) : json_null();
}

bool json_get_unsigned(const json_t *json, uint64_t max, uint64_t *ret_value) {
	json_int_t value = json_integer_value(json);

	if (!json_is_integer(json) || value < 0 || (uint64_t)value > max)
		return false;
	*ret_value = (uint64_t)value;
	return true;
}

const json_t *json_quantile_find(const json_t *figures, size_t place) {
	const json_t *quantile = json_array_get(json_object_get(figures, "quantiles"), place);
	const char *too_few = quantile_note_text(QUANTILE_TOO_FEW);

	return strcmp(json_member_text(quantile, "note"), too_few) != 0 ? quantile : NULL;
}

const char *json_member_text(const json_t *object, const char *key) {
	const char *text = json_string_value(json_object_get(object, key));

	return text != NULL ? text : "";
}

// Each of the following functions returns the result of jansson: 0, or -1 without memory.
static int put_quantile(json_t *array, const struct quantile_summary *quantile) {
	bool known = quantile_has_interval(quantile);
	json_t *object = json_object();
	char name[RESULT_QUANTILE_BYTES];
	int failed = 0;

	result_quantile_name(quantile->per_million, name);
	failed |= json_object_set_new(object, "name", json_string(name));
	failed |= json_object_set_new(object, "per_million", json_unsigned(quantile->per_million));
	failed |= json_object_set_new(object, "value_ns", json_unsigned(quantile->value));
	failed |= json_object_set_new(
		object, "bucket_ns",
		json_pack("[I,I]", quantile->bucket.lowest, quantile->bucket.highest)
	);
	failed |= json_object_set_new(
		object, "low_ns", known ? json_unsigned(quantile->low) : json_null()
	);
	failed |= json_object_set_new(
		object, "high_ns", known ? json_unsigned(quantile->high) : json_null()
	);
	failed |= json_object_set_new(object, "tau", json_finite_or_null(quantile->tau));
	failed |= json_object_set_new(object, "worth", json_finite_or_null(quantile->effective));
	failed |= json_object_set_new(
		object, "note", json_string(quantile_note_text(quantile->note))
	);
	return failed | json_array_append_new(array, object);
}

static int
put_figures(json_t *object, struct run_record *record, const struct run_summary *summary) {
	json_t *figures = json_object(), *quantiles = json_array(), *segments = json_array();
	const struct histogram_summary *all = &summary->all;
	int failed = 0;

	failed |= json_object_set_new(figures, "count", json_unsigned(all->count));
	failed |= json_object_set_new(figures, "min_ns", json_unsigned(all->min));
	failed |= json_object_set_new(figures, "max_ns", json_unsigned(all->max));
	failed |= json_object_set_new(figures, "mean_ns", json_finite_or_null(all->mean));
	failed |= json_object_set_new(figures, "deviation_ns", json_finite_or_null(all->stdev));
	for (uint32_t n = 0; n < summary->quantile_count; n++)
		failed |= put_quantile(quantiles, &summary->quantiles[n]);
	failed |= json_object_set_new(figures, "quantiles", quantiles);
	failed |= json_object_set_new(
		figures, "course", json_string(run_judgement_text(summary->judgement))
	);
	failed |= json_object_set_new(
		figures, "judged_quantiles", json_unsigned(summary->judged_count)
	);
	failed |= json_object_set_new(
		figures, "window_samples", json_unsigned(summary->window_samples)
	);
	for (uint32_t n = 0; n < summary->segment_count; n++) {
		struct result_segment segment;

		if (result_segment(record, summary, n, &segment) != 0) {
			failed = -1;
			continue;
		}
		failed |= json_array_append_new(
			segments,
			json_pack(
				"{s:I s:I s:I s:I s:I s:f}", "first_sample", segment.first_sample,
				"samples", segment.samples, "p50_ns", segment.p50_ns, "p90_ns",
				segment.p90_ns, "p99_ns", segment.p99_ns, "p", segment.p
			)
		);
	}
	failed |= json_object_set_new(figures, "segments", segments);
	return failed | json_object_set_new(object, "figures", figures);
}

json_t *histogram_rows_to_json(const struct histogram *histogram) {
	json_t *whole, *object = json_object();
	int failed;

	if (histogram_to_json(histogram, &whole) != 0) {
		json_decref(object);
		return NULL;
	}
	failed = json_object_set(object, "min", json_object_get(whole, "min"));
	failed |= json_object_set(object, "max", json_object_get(whole, "max"));
	failed |= json_object_set(object, "buckets", json_object_get(whole, "buckets"));
	json_decref(whole);
	if (failed == 0)
		return object;
	json_decref(object);
	return NULL;
}

static int put_histogram(json_t *kept, struct run_record *record) {
	json_t *all = histogram_rows_to_json(run_record_all(record));
	uint8_t bits = run_record_precision_bits(record);
	int failed = 0;

	if (bits != RECORD_PRECISION_BITS)
		failed = json_object_set_new(all, "precision_bits", json_integer(bits));
	return failed | json_object_set_new(kept, "all", all);
}

static int put_windows(json_t *kept, struct run_record *record) {
	struct run_windows windows = run_record_windows(record);
	json_t *object = json_object(), *each = json_array();
	int failed = 0;

	for (uint32_t n = 0; n < windows.count && failed == 0; n++)
		failed |= json_array_append_new(
			each, histogram_rows_to_json(run_record_window(record, n))
		);
	failed |= json_object_set_new(object, "samples", json_unsigned(windows.samples));
	failed |= json_object_set_new(object, "each", each);
	return failed | json_object_set_new(kept, "windows", object);
}

static int put_blocks(json_t *kept, struct run_record *record) {
	struct indicator_block blocks[RECORD_BLOCKS_MAX];
	uint32_t count = run_record_blocks(record, blocks);
	json_t *array = json_array();
	int failed = 0;

	for (uint32_t n = 0; n < count && failed == 0; n++) {
		json_t *samples = json_array();
		uint64_t start = count > 1 ? run_record_block_start(record, n) : 0;

		for (uint32_t at = 0; at < blocks[n].count; at++)
			failed |= json_array_append_new(
				samples, json_unsigned(blocks[n].samples[at])
			);
		failed |= json_array_append_new(
			array, json_pack("{s:I s:o}", "start", start, "samples_ns", samples)
		);
	}
	return failed | json_object_set_new(kept, "blocks", array);
}

// Add the size in bytes of the output of put_part().
static int part_bytes(
	struct run_record *record, int (*put_part)(json_t *, struct run_record *), size_t *bytes
) {
	json_t *object = json_object();
	int failed = object == NULL ? -1 : put_part(object, record);

	if (failed == 0)
		*bytes += json_dumpb(object, NULL, 0, JSON_COMPACT);
	json_decref(object);
	return failed == 0 ? 0 : -ENOMEM;
}

size_t json_number_bytes(uint64_t value) {
	size_t bytes = 2; // one digit and one comma

	for (; value >= 10; value /= 10)
		bytes++;
	return bytes;
}

int series_bytes(struct run_record *record, struct series_bytes *bytes) {
	struct indicator_block blocks[RECORD_BLOCKS_MAX];
	uint32_t count = run_record_blocks(record, blocks);
	int err = part_bytes(record, put_histogram, &bytes->all);

	// Building the JSON of put_blocks() would take much memory per number.
	bytes->blocks += BLOCK_BYTES * (size_t)count;
	for (uint32_t n = 0; n < count; n++) {
		for (uint32_t at = 0; at < blocks[n].count; at++)
			bytes->blocks += json_number_bytes(blocks[n].samples[at]);
	}
	if (err == 0 && !run_record_is_whole(record))
		err = part_bytes(record, put_windows, &bytes->windows);
	return err;
}

int series_to_json(
	struct run_record *record, const struct run_summary *summary, json_t **ret_json
) {
	json_t *object = json_object(), *kept = json_object();
	int failed = put_figures(object, record, summary);

	failed |= json_object_set_new(kept, "count", json_unsigned(run_record_count(record)));
	failed |= put_histogram(kept, record);
	// If all samples are stored, the windows follow from the samples.
	if (!run_record_is_whole(record))
		failed |= put_windows(kept, record);
	failed |= put_blocks(kept, record);
	failed |= json_object_set_new(object, "kept", kept);
	if (failed != 0) {
		json_decref(object);
		return -ENOMEM;
	}
	*ret_json = object;
	return 0;
}
