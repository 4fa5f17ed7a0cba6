// SPDX-License-Identifier: BSD-3-Clause
// Takes quantiles from files and holds one set of them against the other.
#include "versus.h"

#include "json.h"

#include <lib/parse.h>

#include <jansson.h>

#include <compare.h>
#include <errno.h>
#include <math.h>
#include <ranks.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// By size and quantile, of each side's runs; NAN: the run does not say.
struct values {
	uint32_t size_count;
	uint64_t sizes[PLAN_SIZES_MAX];
	char op[16];
	double ns[PLAN_SIZES_MAX][VERSUS_QUANTILES][2][VERSUS_FILES_MAX];
};

const char *versus_word_name(enum versus_word word) {
	static const char *const names[] = {
		[VERSUS_SLOWER] = "slower",	     [VERSUS_FASTER] = "faster",
		[VERSUS_SAME] = "no change",	     [VERSUS_UNDECIDED] = "undecided",
		[VERSUS_TOO_FEW_RUNS] = "undecided", [VERSUS_NO_VALUE] = "n/a",
	};

	return names[word];
}

static double quantile_of(const json_t *result, uint32_t place) {
	const json_t *figures = json_object_get(json_object_get(result, "times"), "figures");
	const json_t *quantile = json_array_get(json_object_get(figures, "quantiles"), place);
	const json_t *value = json_object_get(quantile, "value_ns");

	return json_is_integer(value) ? (double)json_integer_value(value) : NAN;
}

static bool is_valid(const json_t *result) {
	return json_is_true(json_object_get(result, "complete")) &&
	       !json_is_true(json_object_get(json_object_get(result, "load"), "saturated"));
}

static uint64_t size_of(const json_t *result) {
	return (uint64_t)json_integer_value(json_object_get(result, "size_bytes"));
}

static const char *op_of(const json_t *root) {
	const char *op = json_string_value(json_object_get(json_object_get(root, "plan"), "op"));

	return op != NULL ? op : "";
}

// The first file says which operation and sizes all are to be of.
static void begin(const json_t *root, struct values *values) {
	const json_t *results = json_object_get(root, "results");

	snprintf(values->op, sizeof(values->op), "%s", op_of(root));
	values->size_count = (uint32_t)json_array_size(results);
	for (uint32_t n = 0; n < values->size_count; n++)
		values->sizes[n] = size_of(json_array_get(results, n));
}

static int take_results(
	const json_t *root, int side, uint32_t place, struct values *values, struct lab_why *why
) {
	const json_t *results = json_object_get(root, "results");

	if (strcmp(values->op, op_of(root)) != 0 || json_array_size(results) != values->size_count)
		return lab_fail(why, -EINVAL, "is not of the operation and sizes of the first one");
	for (uint32_t size = 0; size < values->size_count; size++) {
		const json_t *result = json_array_get(results, size);

		if (size_of(result) != values->sizes[size])
			return lab_fail(
				why, -EINVAL, "is not of the operation and sizes of the first one"
			);
		if (!is_valid(result))
			return lab_fail(why, -EINVAL, "is incomplete or saturated");
		for (uint32_t n = 0; n < VERSUS_QUANTILES; n++)
			values->ns[size][n][side][place] = quantile_of(result, n);
	}
	return 0;
}

static int take_file(
	const struct versus *versus,
	int side,
	uint32_t place,
	struct values *values,
	struct lab_why *why
) {
	const char *path = versus->paths[side][place];
	struct lab_why inner = {.text = ""};
	json_t *root;
	int err = verify_load(path, why, &root);

	if (err != 0)
		return err;
	if (side == 0 && place == 0)
		begin(root, values);
	err = take_results(root, side, place, values, &inner);
	json_decref(root);
	return err == 0 ? 0 : lab_fail(why, err, "%s %s", path, inner.text);
}

static double median(const double *values, uint32_t count) {
	double sorted[VERSUS_FILES_MAX];

	memcpy(sorted, values, count * sizeof(*values));
	qsort(sorted, count, sizeof(sorted[0]), doubles_compare);
	return (sorted[(count - 1) / 2] + sorted[count / 2]) / 2;
}

static bool all_known(const double values[2][VERSUS_FILES_MAX], const uint32_t counts[2]) {
	for (int side = 0; side < 2; side++) {
		for (uint32_t n = 0; n < counts[side]; n++) {
			if (isnan(values[side][n]))
				return false;
		}
	}
	return true;
}

// Whether the interval of twice the error lies within the margin: two tests of one side each.
static bool
is_same(const struct versus *versus, const double values[2][VERSUS_FILES_MAX], double median_ns) {
	struct compare_result result;
	double level = 1 - 2 * (1 - VERSUS_LEVEL);

	return compare_runs(
		       values[0], versus->counts[0], values[1], versus->counts[1], level, &result
	       ) == 0 &&
	       compare_is_within(&result, median_ns * versus->margin_ppm / 1e6);
}

static int compute_row(
	const struct versus *versus,
	const double values[2][VERSUS_FILES_MAX],
	struct versus_row *row
) {
	struct compare_result result;
	int err;

	row->p = NAN;
	row->word = VERSUS_NO_VALUE;
	if (!all_known(values, versus->counts))
		return 0;
	for (int side = 0; side < 2; side++)
		row->median_ns[side] = median(values[side], versus->counts[side]);
	err = compare_runs(
		values[0], versus->counts[0], values[1], versus->counts[1], VERSUS_LEVEL, &result
	);
	row->word = VERSUS_TOO_FEW_RUNS;
	if (err == -ERANGE)
		return 0;
	if (err != 0)
		return err;
	row->word = is_same(versus, values, row->median_ns[0]) ? VERSUS_SAME : VERSUS_UNDECIDED;
	row->shift_ns = result.shift;
	row->low_ns = result.low;
	row->high_ns = result.high;
	row->p = result.p;
	return 0;
}

// A change within the margin does not matter, however sure it is.
static void adjust(struct versus_result *result) {
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

static void note_claims(const struct versus *versus, struct versus_result *result) {
	uint32_t runs =
		versus->counts[0] < versus->counts[1] ? versus->counts[0] : versus->counts[1];

	for (uint32_t n = 0; n < result->row_count; n++)
		result->claims += result->rows[n].word != VERSUS_NO_VALUE;
	if (result->claims == 0)
		return;
	result->runs_least = compare_runs_least(VERSUS_LEVEL, result->claims);
	for (uint32_t n = 0; n < result->row_count; n++) {
		if (result->rows[n].word == VERSUS_UNDECIDED && runs < result->runs_least)
			result->rows[n].word = VERSUS_TOO_FEW_RUNS;
	}
}

static int
compute(const struct versus *versus, const struct values *values, struct versus_result *result) {
	int err = 0;

	memcpy(result->op, values->op, sizeof(result->op));
	for (uint32_t size = 0; size < values->size_count; size++) {
		for (uint32_t n = 0; n < VERSUS_QUANTILES && err == 0; n++) {
			struct versus_row *row = &result->rows[result->row_count++];

			row->size = values->sizes[size];
			row->per_million = result_per_million[n];
			err = compute_row(versus, values->ns[size][n], row);
		}
	}
	adjust(result);
	note_claims(versus, result);
	return err;
}

int versus_compute(
	const struct versus *versus, struct lab_why *why, struct versus_result *ret_result
) {
	struct values *values = calloc(1, sizeof(*values));
	int err = 0;

	if (values == NULL)
		return lab_fail(why, -ENOMEM, "no memory");
	memset(ret_result, 0, sizeof(*ret_result));
	for (int side = 0; side < 2; side++) {
		for (uint32_t n = 0; n < versus->counts[side] && err == 0; n++)
			err = take_file(versus, side, n, values, why);
	}
	if (err == 0)
		err = compute(versus, values, ret_result);
	free(values);
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
	       100 * row->shift_ns / row->median_ns[0], row->p, versus_word_name(row->word));
	if (row->word == VERSUS_SAME)
		printf(" within %g %%", versus->margin_ppm / 1e4);
	printf("\n");
}

void versus_print(const struct versus *versus, const struct versus_result *result) {
	printf("%s, A of %u runs, B of %u; p by Holm over %u claims\n\n", result->op,
	       versus->counts[0], versus->counts[1], result->claims);
	printf("%8s %-5s %9s %9s %22s %8s %6s\n", "size", "", "A us", "B us",
	       "95 % interval of B - A", "shift", "p");
	for (uint32_t n = 0; n < result->row_count; n++)
		print_row(versus, result, &result->rows[n]);
}
