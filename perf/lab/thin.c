// SPDX-License-Identifier: BSD-3-Clause
// Thins out what a result keeps, until it fits into a file of bounded size.
#include "json.h"

// The rest of a result: warm-up, outliers, noise, figures; and what is of the run.
#define REST_BYTES ((size_t)256 << 10)
#define DUE_BYTES 12 // of a time in the schedule, as text

#define SERIES_MAX 4

struct series {
	struct run_record *records[SERIES_MAX];
	uint32_t count;
};

static struct series series_of(struct lab_result *result) {
	struct series series = {.records = {result->times}, .count = 1};

	if (result->open)
		series.records[series.count++] = result->load.service;
	if (result->device.stamps != PLAN_STAMPS_NONE) {
		series.records[series.count++] = result->device.device;
		series.records[series.count++] = result->device.host;
	}
	return series;
}

static int bytes_of(const struct series *series, struct series_bytes *ret_bytes) {
	int err = 0;

	*ret_bytes = (struct series_bytes){0};
	for (uint32_t n = 0; n < series->count && err == 0; n++)
		err = series_bytes(series->records[n], ret_bytes);
	return err;
}

// All of them alike: sample by sample, the parts of a time still add up to it.
static bool thin_all(const struct series *series, bool (*thin)(struct run_record *record)) {
	bool any = false;

	for (uint32_t n = 0; n < series->count; n++)
		any |= thin(series->records[n]);
	return any;
}

// The larger part first.
static bool thin_once(const struct series *series, const struct series_bytes *bytes) {
	if (bytes->windows > bytes->blocks)
		return thin_all(series, run_record_thin_windows) ||
		       thin_all(series, run_record_thin_blocks);
	return thin_all(series, run_record_thin_blocks) ||
	       thin_all(series, run_record_thin_windows);
}

static size_t share_of(uint32_t size_count) {
	size_t share = RESULT_FILE_BYTES / size_count;

	return share > RESULT_SIZE_BYTES ? share : RESULT_SIZE_BYTES;
}

int result_thin(struct lab_result *result, uint32_t size_count) {
	struct series series = series_of(result);
	size_t bytes_max = share_of(size_count), rest = REST_BYTES;
	struct series_bytes bytes;

	if (run_record_count(result->times) == 0)
		return 0;
	if (result->load.due_count <= RESULT_DUE_MAX)
		rest += DUE_BYTES * result->load.due_count;
	for (;;) {
		int err = bytes_of(&series, &bytes);

		if (err != 0 || bytes.all + bytes.blocks + bytes.windows + rest <= bytes_max ||
		    !thin_once(&series, &bytes))
			return err;
	}
}
