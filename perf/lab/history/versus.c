// SPDX-License-Identifier: BSD-3-Clause
// Compare the quantiles of two sets of runs.
#include "history/versus.h"

#include <lib/parse.h>

#include <compare.h>
#include <math.h>
#include <ranks.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *versus_outcome_name(enum versus_outcome word) {
	static const char *const names[] = {
		[VERSUS_SLOWER] = "slower",	     [VERSUS_FASTER] = "faster",
		[VERSUS_SAME] = "no change",	     [VERSUS_UNDECIDED] = "undecided",
		[VERSUS_TOO_FEW_RUNS] = "undecided", [VERSUS_NO_VALUE] = "n/a",
	};

	return names[word];
}

static bool all_values_known(const double values[2][VERSUS_FILES_MAX], const uint32_t counts[2]) {
	for (int side = 0; side < 2; side++) {
		for (uint32_t n = 0; n < counts[side]; n++) {
			if (!(values[side][n] > 0)) // NAN, or 0, which has no ratio
				return false;
		}
	}
	return true;
}

// Return true if the interval lies within the margin. The test uses two one-sided tests, so the
// interval has twice the error.
static bool runs_are_same(const struct versus *versus, const double values[2][VERSUS_FILES_MAX]) {
	struct compare_result result;
	double level = 1 - 2 * (1 - VERSUS_LEVEL);

	return compare_runs(
		       values[0], versus->counts[0], values[1], versus->counts[1], level, &result
	       ) == 0 &&
	       compare_is_within(&result, versus->margin_ppm / 1e6);
}

static int compute_row(
	const struct versus *versus,
	const double values[2][VERSUS_FILES_MAX],
	bool same_runs,
	struct versus_row *row
) {
	struct compare_result result;
	int err;

	row->p = NAN;
	row->word = VERSUS_NO_VALUE;
	if (!all_values_known(values, versus->counts))
		return 0;
	for (int side = 0; side < 2; side++) {
		uint32_t count = versus->counts[side];
		double sorted[VERSUS_FILES_MAX];

		memcpy(sorted, values[side], count * sizeof(sorted[0]));
		qsort(sorted, count, sizeof(sorted[0]), doubles_compare);
		row->median_ns[side] = (sorted[(count - 1) / 2] + sorted[count / 2]) / 2;
	}
	if (same_runs) {
		row->word = VERSUS_SAME;
		row->p = 1;
		return 0;
	}
	err = compare_runs(
		values[0], versus->counts[0], values[1], versus->counts[1], VERSUS_LEVEL, &result
	);
	row->word = VERSUS_TOO_FEW_RUNS;
	if (err == -ERANGE)
		return 0;
	if (err != 0)
		return err;
	row->word = runs_are_same(versus, values) ? VERSUS_SAME : VERSUS_UNDECIDED;
	row->shift_ns = result.shift;
	row->low_ns = result.low;
	row->high_ns = result.high;
	row->share = result.share;
	row->share_low = result.share_low;
	row->share_high = result.share_high;
	row->p = result.p;
	return 0;
}

// Adjust the p-values and name the differences. A change within the margin is ignored, however
// certain it is.
static void p_values_adjust(struct versus_result *result) {
	double ps[VERSUS_ROWS_MAX];
	uint32_t places[VERSUS_ROWS_MAX], count = 0;

	for (uint32_t n = 0; n < result->row_count; n++) {
		if (!isnan(result->rows[n].p)) {
			ps[count] = result->rows[n].p;
			places[count++] = n;
		}
	}
	compare_adjust(ps, count);
	for (uint32_t n = 0; n < count; n++) {
		struct versus_row *row = &result->rows[places[n]];

		row->p = ps[n];
		if (row->p < 1 - VERSUS_LEVEL && row->word != VERSUS_SAME)
			row->word = row->shift_ns > 0 ? VERSUS_SLOWER : VERSUS_FASTER;
	}
}

int versus_judge(
	const struct versus *versus,
	const struct versus_values *values,
	struct versus_result *ret_result
) {
	double least = compare_p_min(versus->counts[0], versus->counts[1]);
	int err = 0;

	memset(ret_result, 0, sizeof(*ret_result));
	memcpy(ret_result->op, values->op, sizeof(ret_result->op));
	memcpy(ret_result->plans, values->plans, sizeof(ret_result->plans));
	ret_result->same_runs = values->same_runs;
	for (uint32_t size = 0; size < values->size_count; size++) {
		for (uint32_t n = 0; n < VERSUS_QUANTILES && err == 0; n++) {
			struct versus_row *row = &ret_result->rows[ret_result->row_count++];

			row->size = values->sizes[size];
			row->per_million = result_per_million[n];
			err = compute_row(versus, values->ns[size][n], values->same_runs, row);
		}
	}
	p_values_adjust(ret_result);

	// The test cannot reject if its smallest possible p-value is too large for this number of
	// claims.
	for (uint32_t n = 0; n < ret_result->row_count; n++)
		ret_result->claims += ret_result->rows[n].word != VERSUS_NO_VALUE;
	if (ret_result->claims == 0)
		return err;
	ret_result->runs_least = compare_runs_min(VERSUS_LEVEL, ret_result->claims);
	for (uint32_t n = 0; n < ret_result->row_count; n++) {
		if (ret_result->rows[n].word == VERSUS_UNDECIDED &&
		    least * ret_result->claims > 1 - VERSUS_LEVEL)
			ret_result->rows[n].word = VERSUS_TOO_FEW_RUNS;
	}
	return err;
}

static void print_row(
	const struct versus *versus,
	const struct versus_result *result,
	const struct versus_row *row
) {
	char size[PARSE_TEXT_BYTES], name[RESULT_QUANTILE_BYTES];

	format_size_bytes(row->size, size);
	result_quantile_name(row->per_million, name);
	printf("%8s %-5s", size, name);
	if (row->word == VERSUS_NO_VALUE) {
		printf(" n/a: too few samples in a run\n");
		return;
	}
	printf(" %9.3f %9.3f", row->median_ns[0] / 1e3, row->median_ns[1] / 1e3);
	if (row->word == VERSUS_TOO_FEW_RUNS) {
		printf("  undecided, needs %u runs of each\n", result->runs_least);
		return;
	}
	printf(" %+9.3f .. %+9.3f %+6.1f %% %6.4f %s", row->low_ns / 1e3, row->high_ns / 1e3,
	       100 * row->share, row->p, versus_outcome_name(row->word));
	if (row->word == VERSUS_SAME)
		printf(" within %g %%", versus->margin_ppm / 1e4);
	printf("\n");
}

void versus_print(const struct versus *versus, const struct versus_result *result) {
	printf("%s: A has %u run%s, B has %u; p adjusted by Holm's method over %u claim%s\n",
	       result->op, versus->counts[0], PLURAL(versus->counts[0]), versus->counts[1],
	       result->claims, PLURAL(result->claims));
	if (strcmp(result->plans[0], result->plans[1]) == 0)
		printf("both: %.94s\n\n", result->plans[0]);
	else
		printf("A: %.96s\nB: %.96s\n\n", result->plans[0], result->plans[1]);
	printf("%8s %-5s %9s %9s %22s %8s %6s\n", "size", "", "A us", "B us",
	       "95 % interval of B - A", "shift", "p");
	for (uint32_t n = 0; n < result->row_count; n++)
		print_row(versus, result, &result->rows[n]);
	if (result->same_runs)
		printf("\n%s\n", VERSUS_SAME_RUNS);
}
