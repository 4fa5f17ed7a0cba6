// SPDX-License-Identifier: BSD-3-Clause
// Restore a series from the samples stored in a file. The file is untrusted: each number has
// bounds. Loops are bounded by the size of the file. The loop of binomial_cdf() grows with the
// square root of the number of samples, which COUNT_MAX bounds.
#include "report/json.h"

#include <lib/histogram.h>

#include <jansson.h>

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

// Samples of one hour at 360 ns each.
#define COUNT_MAX UINT64_C(10000000000)

struct restore {
	struct lab_why *why;
	const json_t *all, *windows; // `windows`: the array of windows
};

static bool member_get(const json_t *object, const char *key, uint64_t max, uint64_t *ret_value) {
	return json_get_unsigned(json_object_get(object, key), max, ret_value);
}

int histogram_fill(const json_t *json, uint64_t count, struct histogram *histogram) {
	const json_t *buckets = json_object_get(json, "buckets");
	size_t rows = json_array_size(buckets);
	uint64_t min, max, filled = 0;

	if (!member_get(json, "min", HISTOGRAM_VALUE_MAX, &min) ||
	    !member_get(json, "max", HISTOGRAM_VALUE_MAX, &max) || min > max || rows == 0)
		return -EBADMSG;
	for (size_t n = 0; n < rows; n++) {
		const json_t *row = json_array_get(buckets, n);
		uint64_t lowest, highest, times;

		if (!json_get_unsigned(json_array_get(row, 0), HISTOGRAM_VALUE_MAX, &lowest) ||
		    !json_get_unsigned(json_array_get(row, 1), HISTOGRAM_VALUE_MAX, &highest) ||
		    !json_get_unsigned(json_array_get(row, 2), COUNT_MAX, &times) ||
		    lowest > highest || times == 0 || times > count - filled)
			return -EBADMSG;
		filled += times;
		if (lowest < min)
			lowest = min;
		if (lowest > max)
			lowest = max;
		if (n + 1 == rows) {
			histogram_record(histogram, max);
			times--;
		}
		if (n == 0 && times > 0) {
			histogram_record(histogram, min);
			times--;
		}
		histogram_record_times(histogram, lowest, times);
	}
	return filled == count ? 0 : -EBADMSG;
}

static int
histogram_fill_place(void *ctx, int32_t place, uint64_t count, struct histogram *histogram) {
	const struct restore *restore = ctx;
	int err;

	if (place < 0) {
		err = histogram_fill(restore->all, count, histogram);
		return err == 0
			       ? 0
			       : lab_fail(
					 restore->why, err,
					 "kept.all is not a histogram of %" PRIu64 " samples", count
				 );
	}
	err = histogram_fill(json_array_get(restore->windows, (size_t)place), count, histogram);
	return err == 0 ? 0
			: lab_fail(
				  restore->why, err,
				  "kept.windows.each[%d] is not a histogram of %" PRIu64 " samples",
				  place, count
			  );
}

// Read the blocks. The caller frees each of ret_memory, also after a failure.
static int read_blocks(
	const json_t *array,
	struct run_kept *kept,
	struct lab_why *why,
	uint64_t *ret_memory[RECORD_BLOCKS_MAX]
) {
	size_t count = json_array_size(array);

	if (count == 0 || count > RECORD_BLOCKS_MAX)
		return lab_fail(
			why, -EBADMSG, "kept.blocks does not have 1 to %u blocks", RECORD_BLOCKS_MAX
		);
	for (uint32_t n = 0; n < count; n++) {
		const json_t *json = json_array_get(array, n);
		const json_t *samples = json_object_get(json, "samples_ns");
		size_t length = json_array_size(samples);
		struct run_kept_block *block = &kept->blocks[n];
		uint64_t *values;

		kept->block_count = n + 1;
		if (length == 0 || length > RECORD_RAW_MAX ||
		    !member_get(json, "start", COUNT_MAX, &block->start))
			return lab_fail(why, -EBADMSG, "kept.blocks[%u] is not a valid block", n);
		values = calloc(length, sizeof(*values));
		if (values == NULL)
			return -ENOMEM;
		block->samples = ret_memory[n] = values;
		block->count = (uint32_t)length;
		for (size_t at = 0; at < length; at++) {
			const json_t *sample = json_array_get(samples, at);

			if (!json_get_unsigned(sample, HISTOGRAM_VALUE_MAX, &values[at]))
				return lab_fail(
					why, -EBADMSG,
					"kept.blocks[%u].samples_ns[%zu] is not a valid time", n, at
				);
		}
	}
	return 0;
}

static int restore_from_histograms(
	const json_t *json,
	struct run_kept *kept,
	struct lab_why *why,
	struct run_record **ret_record
) {
	const json_t *windows = json_object_get(json, "windows");
	struct restore restore = {
		.why = why,
		.all = json_object_get(json, "all"),
		.windows = json_object_get(windows, "each"),
	};
	int err;

	if (!member_get(windows, "samples", COUNT_MAX, &kept->window_samples) ||
	    json_array_size(restore.windows) > RECORD_WINDOWS_MAX)
		return lab_fail(why, -EBADMSG, "kept.windows is invalid");
	kept->window_count = (uint32_t)json_array_size(restore.windows);
	kept->fill = histogram_fill_place;
	kept->ctx = &restore;
	err = run_record_restore(kept, ret_record);
	return err == -EINVAL ? lab_fail(
					why, -EBADMSG,
					"kept: its sizes and positions contradict each other"
				)
			      : err;
}

int series_from_json(const json_t *json, struct lab_why *why, struct run_record **ret_record) {
	const json_t *parts = json_object_get(json, "kept");
	const json_t *bits_json = json_object_get(json_object_get(parts, "all"), "precision_bits");
	uint64_t *memory[RECORD_BLOCKS_MAX] = {NULL}, bits = RECORD_PRECISION_BITS;
	struct run_kept kept = {.block_count = 0};
	const struct run_kept_block *block = &kept.blocks[0];
	int err;

	if (!member_get(parts, "count", COUNT_MAX, &kept.count) || kept.count == 0)
		return lab_fail(why, -EBADMSG, "kept.count is not a valid number of samples");
	if (bits_json != NULL && (!json_get_unsigned(bits_json, RECORD_PRECISION_BITS, &bits) ||
				  bits < RECORD_PRECISION_BITS_MIN))
		return lab_fail(why, -EBADMSG, "kept.all.precision_bits is not 5 to 10");
	kept.precision_bits = (uint8_t)bits;
	err = read_blocks(json_object_get(parts, "blocks"), &kept, why, memory);
	if (err == 0 && kept.block_count == 1 && block->count == kept.count) {
		// All samples of the run are stored: record them one by one.
		err = run_record_create(ret_record);
		for (uint32_t n = 0; n < block->count && err == 0; n++)
			run_record_add(*ret_record, block->samples[n]);
		while (err == 0 && run_record_coarsen_histogram(*ret_record, kept.precision_bits))
			;
	} else if (err == 0) {
		err = restore_from_histograms(parts, &kept, why, ret_record);
	}
	for (uint32_t n = 0; n < kept.block_count; n++)
		free(memory[n]);
	return err;
}

static int read_warm_up(const json_t *json, struct lab_why *why, struct lab_result *result) {
	const json_t *samples = json_object_get(json, "samples_ns");
	size_t count = json_array_size(samples);
	uint64_t dropped;
	int err = 0;

	if (json_is_null(samples)) { // only the outcome of the warm-up is in the file
		result->warm_left_out = true;
		if (!member_get(json, "dropped", WARMUP_SAMPLES_MAX, &dropped))
			return lab_fail(
				why, -EBADMSG, "warm_up.dropped is not a valid number of samples"
			);
		result->warm_count = (uint32_t)dropped;
		result->warm_judged = json_is_true(json_object_get(json, "judged"));
		result->warm_check.warm = json_is_true(json_object_get(json, "warm"));
		result->warm_check.p = json_number_value(json_object_get(json, "p"));
		return 0;
	}
	if (count > WARMUP_SAMPLES_MAX)
		return lab_fail(
			why, -EBADMSG, "warm_up.samples_ns has more than %u samples",
			WARMUP_SAMPLES_MAX
		);
	result->warm = calloc(WARMUP_SAMPLES_MAX, sizeof(*result->warm));
	if (result->warm == NULL)
		return -ENOMEM;
	for (size_t n = 0; n < count; n++) {
		const json_t *sample = json_array_get(samples, n);

		if (!json_get_unsigned(sample, HISTOGRAM_VALUE_MAX, &result->warm[n]))
			return lab_fail(
				why, -EBADMSG, "warm_up.samples_ns[%zu] is not a valid time", n
			);
	}
	result->warm_count = (uint32_t)count;
	result->warm_judged = count >= WARMUP_SAMPLES_MIN;
	// The client judges a warm-up at each power of two, before it takes more samples. Repeat
	// this.
	for (uint32_t judged = WARMUP_SAMPLES_MIN; judged <= count && err == 0; judged *= 2)
		err = warmup_check(result->warm, judged, &result->warm_check);
	return err;
}

static int read_load(const json_t *json, struct lab_why *why, struct lab_result *result) {
	const json_t *load = json_object_get(json, "load"), *lag = json_object_get(load, "lag");
	int err = series_from_json(json_object_get(json, "service"), why, &result->load.service);

	if (err == 0 && run_record_count(result->load.service) != run_record_count(result->times))
		err = lab_fail(
			why, -EBADMSG, "service and times have different numbers of samples"
		);
	if (err == 0 && !member_get(load, "span_ns", INT64_MAX, &result->load.span_ns))
		err = lab_fail(why, -EBADMSG, "load.span_ns is not a valid time");
	if (err == 0)
		err = result_lag_create(&result->load.lag);
	if (err == 0 && histogram_fill(lag, run_record_count(result->times), result->load.lag) != 0)
		err = lab_fail(why, -EBADMSG, "load.lag is not a histogram of all samples");
	return err;
}

int result_from_json(const json_t *json, struct lab_why *why, struct lab_result *ret_result) {
	struct lab_result *result = ret_result;
	int err;

	result->complete = json_is_true(json_object_get(json, "complete"));
	result->open = json_object_get(json, "load") != NULL;
	if (!member_get(json, "size_bytes", PLAN_SIZE_BYTES_MAX, &result->size) ||
	    !member_get(json, "took_ns", INT64_MAX, &result->took_ns))
		return lab_fail(why, -EBADMSG, "size_bytes or took_ns is not a valid number");
	if (json_object_get(json, "window_messages") != NULL &&
	    (!member_get(json, "window_messages", COUNT_MAX, &result->window_messages) ||
	     result->window_messages == 0 ||
	     !member_get(json, "peer_messages", INT64_MAX, &result->peer_messages) ||
	     !member_get(json, "peer_ns", INT64_MAX, &result->peer_ns)))
		return lab_fail(
			why, -EBADMSG,
			"window_messages, peer_messages or peer_ns is not a valid number"
		);
	err = read_warm_up(json_object_get(json, "warm_up"), why, result);
	if (err != 0)
		return err;
	if (json_object_get(json, "times") == NULL) // the run has no sample
		return run_record_create(&result->times);
	err = series_from_json(json_object_get(json, "times"), why, &result->times);
	if (err == 0 && json_object_get(json, "device_time") != NULL)
		err = device_from_json(
			json_object_get(json, "device_time"), run_record_count(result->times), why,
			&result->device
		);
	return err == 0 && result->open ? read_load(json, why, result) : err;
}
