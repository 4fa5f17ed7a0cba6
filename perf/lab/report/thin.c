// SPDX-License-Identifier: BSD-3-Clause
// Thin the stored samples of a result until they fit in its share of a file of bounded size.
//
// Figures are computed afterwards, so that a reader of the file gets the same figures. The data
// that figures need least is dropped first. Blocks are shortened: 64 consecutive samples show most
// of the dependence between samples. Windows are dropped that the search for changes does not need.
// A run with several sizes and series may have to drop more: first data that no figure needs, then
// data from which figures are computed.
#include "report/json.h"

#include <lib/histogram_json.h>

#include <jansson.h>

#include <errno.h>
#include <segments.h>

// Sizes in bytes of the parts of a file besides the stored samples.
#define HEAD_BYTES ((size_t)16 << 10) // plan and environments
#define RESULT_BYTES ((size_t)4 << 10)
#define FIGURES_BYTES ((size_t)3 << 10)
#define SEGMENTS_BYTES ((size_t)5 << 10)
#define OUTLIER_BYTES ((size_t)400)
// Sizes after the strongest thinning: 64 blocks of 4 samples. The histogram has 32 buckets per
// power of two between the shortest and the longest time.
#define RESULT_BYTES_MIN ((size_t)16 << 10)
#define SERIES_BYTES_MIN ((size_t)26 << 10)
#define DUE_SHARE 0.25 // share of a result that its schedule may take

#define SERIES_MAX 4

struct series {
	struct run_record *records[SERIES_MAX];
	uint32_t count;
};

static const struct thin_limits {
	uint32_t samples; // per block
	uint32_t windows;
	uint8_t bits;	 // precision of the histogram of all samples
	bool no_warm_up; // drop the warm-up samples, and reduce lags to 3 % precision
	bool no_outliers;
} thin_limits[] = {
	{128, SEGMENTS_WINDOWS_MIN, RECORD_PRECISION_BITS, false, false},
	{64, SEGMENTS_WINDOWS_MIN, RECORD_PRECISION_BITS - 2, false, false},
	{64, SEGMENTS_WINDOWS_MIN, RECORD_PRECISION_BITS - 2, true, false},
	{32, 0, RECORD_PRECISION_BITS_MIN, true, false},
	{16, 0, RECORD_PRECISION_BITS_MIN, true, false},
	{4, 0, RECORD_PRECISION_BITS_MIN, true, true},
};
#define THIN_LIMIT_COUNT (sizeof(thin_limits) / sizeof(thin_limits[0]))

size_t result_bytes_min(const struct plan *plan) {
	size_t series = 1;

	series += plan->arrivals != PLAN_CLOSED;
	series += plan->stamps != PLAN_STAMPS_NONE ? 2 : 0;
	return HEAD_BYTES + plan->size_count * (RESULT_BYTES_MIN + series * SERIES_BYTES_MIN);
}

// Each of these functions thins all series in the same way. So the parts of each stored sample
// still add up to its time.
static bool thin_blocks(const struct series *series, const struct thin_limits *floor) {
	bool any = false;

	for (uint32_t n = 0; n < series->count; n++)
		any |= run_record_thin_blocks(series->records[n], floor->samples);
	return any;
}

static bool thin_windows(const struct series *series, const struct thin_limits *floor) {
	bool any = false;

	for (uint32_t n = 0; n < series->count; n++)
		any |= run_record_thin_windows(series->records[n], floor->windows);
	return any;
}

static bool thin_all(const struct series *series, const struct thin_limits *floor) {
	bool any = false;

	for (uint32_t n = 0; n < series->count; n++)
		any |= run_record_coarsen_histogram(series->records[n], floor->bits);
	return any;
}

struct part {
	size_t bytes;
	bool (*thin)(const struct series *series, const struct thin_limits *floor);
};

static void parts_swap(struct part *one, struct part *other) {
	struct part kept = *one;

	if (one->bytes >= other->bytes)
		return;
	*one = *other;
	*other = kept;
}

// Thin the largest part that can be thinned. Returns false if none can.
static bool thin_largest_part(
	const struct series *series,
	const struct series_bytes *bytes,
	const struct thin_limits *floor
) {
	struct part parts[] = {
		{bytes->blocks, thin_blocks},
		{bytes->windows, thin_windows},
		{bytes->all, thin_all},
	};

	parts_swap(&parts[0], &parts[1]);
	parts_swap(&parts[1], &parts[2]);
	parts_swap(&parts[0], &parts[1]);
	for (int n = 0; n < 3; n++) {
		if (parts[n].thin(series, floor))
			return true;
	}
	return false;
}

static size_t warm_up_bytes(const struct lab_result *result) {
	size_t bytes = 0;

	for (uint32_t n = 0; n < result->warm_count && !result->warm_left_out; n++)
		bytes += json_number_bytes(result->warm[n]);
	return bytes;
}

// Compute the size of all parts besides the stored samples, and decide whether the schedule is left
// out. Returns 0 or -ENOMEM.
static int other_bytes(
	struct lab_result *result, const struct series *series, size_t share, size_t *ret_bytes
) {
	struct result_load *load = &result->load;
	size_t bytes = RESULT_BYTES + warm_up_bytes(result), due_bytes = 0;
	json_t *lag;

	for (uint32_t n = 0; n < series->count; n++) {
		bytes += FIGURES_BYTES;
		if (run_record_windows(series->records[n]).count > 0)
			bytes += SEGMENTS_BYTES;
	}
	if (!result->outliers_left_out)
		bytes += OUTLIER_BYTES * result->outlier_count;

	// A large schedule is left out: the plan generates it, or the trace file holds it.
	load->due_left_out = load->due_ns == NULL || load->due_count > RESULT_DUE_MAX;
	for (uint64_t n = 0; n < load->due_count && !load->due_left_out; n++)
		due_bytes += json_number_bytes(load->due_ns[n]);
	load->due_left_out |= (double)due_bytes > DUE_SHARE * (double)share;
	if (!load->due_left_out)
		bytes += due_bytes;

	if (result->open) {
		if (histogram_to_json(load->lag, &lag) != 0)
			return -ENOMEM;
		bytes += json_dumpb(lag, NULL, 0, JSON_COMPACT);
		json_decref(lag);
	}
	*ret_bytes = bytes;
	return 0;
}

// Reduce the precision of the lags: each takes the lowest value of a wider bucket. Count, minimum
// and maximum stay.
static int lag_coarsen(struct histogram **lag, uint64_t count, uint8_t bits) {
	struct histogram *wide = NULL, *coarse = NULL;
	json_t *rows = NULL;
	int err = histogram_coarsen(*lag, bits, &wide);

	if (err == 0)
		err = result_lag_create(&coarse);
	if (err == 0)
		rows = histogram_rows_to_json(wide);
	if (err == 0)
		err = rows != NULL ? histogram_fill(rows, count, coarse) : -ENOMEM;
	json_decref(rows);
	histogram_destroy(wide);
	if (err != 0) {
		histogram_destroy(coarse);
		return err;
	}
	histogram_destroy(*lag);
	*lag = coarse;
	return 0;
}

int result_thin(struct lab_result *result, uint32_t size_count, size_t file_bytes) {
	size_t share = (file_bytes - HEAD_BYTES) / size_count, rest;
	struct series series = {.records = {result->times}, .count = 1};
	struct series_bytes bytes;
	uint32_t floor = 0;
	int err = 0;

	if (result->open)
		series.records[series.count++] = result->load.service;
	if (result->device.stamps != PLAN_STAMPS_NONE) {
		series.records[series.count++] = result->device.device;
		series.records[series.count++] = result->device.host;
	}
	if (run_record_count(result->times) == 0) {
		result->warm_left_out = RESULT_BYTES + warm_up_bytes(result) > share;
		return 0;
	}
	while (err == 0) {
		const struct thin_limits *limits;

		bytes = (struct series_bytes){0};
		for (uint32_t n = 0; n < series.count && err == 0; n++)
			err = series_bytes(series.records[n], &bytes);
		if (err == 0)
			err = other_bytes(result, &series, share, &rest);
		if (err != 0 || bytes.all + bytes.blocks + bytes.windows + rest <= share)
			break;
		if (thin_largest_part(&series, &bytes, &thin_limits[floor]))
			continue;
		if (++floor == THIN_LIMIT_COUNT)
			break;
		limits = &thin_limits[floor];
		if (result->open && limits->no_warm_up && !result->warm_left_out)
			err = lag_coarsen(
				&result->load.lag, run_record_count(result->times),
				RECORD_PRECISION_BITS_MIN
			);
		result->outliers_left_out = limits->no_outliers;
		result->warm_left_out = limits->no_warm_up;
	}
	return err;
}
