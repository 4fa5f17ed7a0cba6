// SPDX-License-Identifier: BSD-3-Clause
// Two sets of runs against each other, from their files.
//
// The unit is a run: each file gives one value for each quantile of each size. What the test of
// <compare.h> says is adjusted by Holm's method over all claims that are made. A file is verified
// before it is used.
#pragma once

#include "history.h"
#include "result.h"
#include "why.h"

#include <stdbool.h>
#include <stdint.h>

#define VERSUS_FILES_MAX 60 // of each side
#define VERSUS_QUANTILES 4  // p50 to p99.9
#define VERSUS_ROWS_MAX (PLAN_SIZES_MAX * VERSUS_QUANTILES)
#define VERSUS_LEVEL 0.95
#define VERSUS_OP_BYTES 20

#define VERSUS_SAME_RUNS "A and B are the same runs, so this says nothing about other runs."

struct versus {
	const char *paths[2][VERSUS_FILES_MAX]; // of A and of B
	uint32_t counts[2];
	bool ops_may_differ; // whoever compares means it
	uint32_t margin_ppm; // a change that does not matter, of A's value
};

enum versus_word {
	VERSUS_SLOWER, // B is
	VERSUS_FASTER,
	VERSUS_SAME, // within the margin
	VERSUS_UNDECIDED,
	VERSUS_TOO_FEW_RUNS, // the test could not reject, whatever the values
	VERSUS_NO_VALUE,     // a run has too few samples for this quantile
};

struct versus_row {
	uint64_t size;
	uint32_t per_million;
	enum versus_word word;
	double median_ns[2];
	double shift_ns, low_ns, high_ns; // Hodges and Lehmann's, of B against A
	double p;			  // adjusted
};

struct versus_result {
	char op[VERSUS_OP_BYTES];
	char plans[2][HISTORY_KEY_BYTES]; // what the runs of each side have in common, as words
	bool same_runs;
	uint32_t row_count, claims;
	uint32_t runs_least; // of each side, for these claims
	struct versus_row rows[VERSUS_ROWS_MAX];
};

// By size and quantile, of each side's runs; NAN: the run does not say.
struct versus_values {
	uint32_t size_count;
	uint64_t sizes[PLAN_SIZES_MAX];
	char op[VERSUS_OP_BYTES];
	char plans[2][HISTORY_KEY_BYTES];      // as in struct versus_result
	uint64_t digests[2][VERSUS_FILES_MAX]; // of each run
	bool same_runs;			       // both sides are of the same
	double ns[PLAN_SIZES_MAX][VERSUS_QUANTILES][2][VERSUS_FILES_MAX];
};

// -EINVAL: the files are not of the same operation and sizes, incomplete or saturated, or a run is
// there more than once, but for one set of runs on both sides; else as verify_load(). All with the
// reason.
int versus_load(const struct versus *versus, struct lab_why *why, struct versus_values *ret_values);
// What they tell. 0 or -ENOMEM.
int versus_judge(
	const struct versus *versus,
	const struct versus_values *values,
	struct versus_result *ret_result
);

void versus_print(const struct versus *versus, const struct versus_result *result);
const char *versus_word_name(enum versus_word word);
