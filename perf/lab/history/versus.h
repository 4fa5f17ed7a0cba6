// SPDX-License-Identifier: BSD-3-Clause
// Comparison of two sets of runs, A and B, from their files.
//
// The unit is a run: each file gives one value per quantile of each size. The p-values of
// <compare.h> are adjusted by Holm's method over all claims. Each file is verified before use.
#pragma once

#include "history/history.h"
#include "run/result.h"
#include "run/why.h"

#include <stdbool.h>
#include <stdint.h>

#define VERSUS_FILES_MAX 60 // per side
#define VERSUS_QUANTILES 4  // p50, p90, p99 and p99.9
#define VERSUS_ROWS_MAX (PLAN_SIZES_MAX * VERSUS_QUANTILES)
#define VERSUS_LEVEL 0.95
#define VERSUS_OP_BYTES 20

#define VERSUS_SAME_RUNS "A and B are the same runs, so this says nothing about other runs."

struct versus {
	const char *paths[2][VERSUS_FILES_MAX]; // [0]: A, [1]: B
	uint32_t counts[2];
	bool ops_may_differ; // the caller compares different operations on purpose
	uint32_t margin_ppm; // largest irrelevant change, relative to A's value
};

enum versus_outcome {
	VERSUS_SLOWER, // B is slower
	VERSUS_FASTER,
	VERSUS_SAME, // the difference is within the margin
	VERSUS_UNDECIDED,
	VERSUS_TOO_FEW_RUNS, // the test cannot reject with so few runs
	VERSUS_NO_VALUE,     // a run has too few samples for this quantile
};

struct versus_row {
	uint64_t size;
	uint32_t per_million;
	enum versus_outcome word;
	double median_ns[2];
	double shift_ns, low_ns, high_ns;    // Hodges-Lehmann estimate and interval of B - A
	double share, share_low, share_high; // the same of B / A - 1
	double p;			     // adjusted by Holm's method
};

struct versus_result {
	char op[VERSUS_OP_BYTES];
	char plans[2][HISTORY_KEY_BYTES]; // common properties of the runs of each side, as text
	bool same_runs;
	uint32_t row_count, claims;
	uint32_t runs_least; // runs needed per side for this number of claims
	struct versus_row rows[VERSUS_ROWS_MAX];
};

// Values by size, quantile, side and run. NAN: missing in the run.
struct versus_values {
	uint32_t size_count;
	uint64_t sizes[PLAN_SIZES_MAX];
	char op[VERSUS_OP_BYTES];
	char plans[2][HISTORY_KEY_BYTES];      // as in struct versus_result
	uint64_t digests[2][VERSUS_FILES_MAX]; // one per run
	bool same_runs;			       // both sides consist of the same runs
	double ns[PLAN_SIZES_MAX][VERSUS_QUANTILES][2][VERSUS_FILES_MAX];
};

struct json_t;

// Return a quantile of the result of one size, or its maximum with place -1; NAN if the value is
// missing. Windows of two runs have different numbers of messages, so the value of bw is per
// message.
double versus_figure_ns(const struct json_t *result, int place);

// Load and check the files. Returns 0, or -EINVAL if operation or sizes differ, or if a run is
// incomplete or saturated. A run that occurs twice is also -EINVAL, except if both sides are the
// same set. Other errors are those of verify_load(). All have the reason in `why`.
int versus_load(const struct versus *versus, struct lab_why *why, struct versus_values *ret_values);
// Judge the loaded values. Returns 0 or -ENOMEM.
int versus_judge(
	const struct versus *versus,
	const struct versus_values *values,
	struct versus_result *ret_result
);

void versus_print(const struct versus *versus, const struct versus_result *result);
const char *versus_outcome_name(enum versus_outcome word);
