// SPDX-License-Identifier: BSD-3-Clause
// Time of one operation beside a yardstick of the same run, as a table or as JSON.
//
// The slices of both alternate, so that a short disturbance of the machine affects both. The ratio
// is the median over neighbouring slices. Printed are medians over the slices; minimum and
// interquartile range show how reliable they are.
#include "micro.h"

#include <jansson.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SLICES 15
#define SLICE_NS_MIN 4000000ULL
#define ROUNDS_MAX (1ULL << 40)

struct spread {
	double median, min, iqr;
};

struct result {
	const struct micro_row *row;
	struct spread value, yardstick;
	double ratio;
	bool ok;
};

static int compare_doubles(const void *left, const void *right) {
	double a = *(const double *)left, b = *(const double *)right;

	return (a > b) - (a < b);
}

static struct spread samples_spread(double *samples) {
	qsort(samples, SLICES, sizeof(samples[0]), compare_doubles);
	return (struct spread){
		.median = samples[SLICES / 2],
		.min = samples[0],
		.iqr = samples[SLICES * 3 / 4] - samples[SLICES / 4],
	};
}

// Find the number of operations that makes a slice long enough to hide the cost of the clock. The
// runs are also the warm-up.
static uint64_t rounds_find(micro_slice *slice) {
	uint64_t rounds = 1;

	while (slice(rounds) < SLICE_NS_MIN && rounds < ROUNDS_MAX)
		rounds *= 2;
	return rounds;
}

static struct result row_measure(const struct micro_row *row) {
	bool share = strcmp(row->unit, "%") == 0;
	double per_unit = share ? MICRO_SHARE_NS / 100.0 : strcmp(row->unit, "ms") == 0 ? 1e6 : 1;
	uint64_t rounds = share ? 1 : rounds_find(row->slice);
	uint64_t yardstick_rounds = share ? 1 : rounds_find(row->yardstick);
	double values[SLICES], yardsticks[SLICES], ratios[SLICES];
	struct result result = {.row = row};

	for (int n = 0; n < SLICES; n++) {
		values[n] = (double)row->slice(rounds) / (double)rounds / per_unit;
		yardsticks[n] = (double)row->yardstick(yardstick_rounds) /
				(double)yardstick_rounds / per_unit;
		ratios[n] = yardsticks[n] > 0 ? values[n] / yardsticks[n] : 0;
	}
	result.value = samples_spread(values);
	result.yardstick = samples_spread(yardsticks);
	result.ratio = samples_spread(ratios).median;
	result.ok = row->target_of == MICRO_TARGET_RATIO ? result.ratio <= row->target
							 : result.value.median <= row->target;
	return result;
}

static void print_head(void) {
	printf("%-41s %10s %10s %10s    %-29s %10s %6s  %s\n", "per operation", "median", "min",
	       "iqr", "yardstick", "median", "ratio", "target");
}

static void print_row(const struct result *result) {
	const struct micro_row *row = result->row;

	printf("%-41s %10.2f %10.2f %10.2f %s %-29s %10.2f %6.2f  ", row->what,
	       result->value.median, result->value.min, result->value.iqr, row->unit,
	       row->yardstick_what, result->yardstick.median, result->ratio);
	if (row->target_of == MICRO_TARGET_NONE)
		printf("none\n");
	else if (row->target_of == MICRO_TARGET_RATIO)
		printf("%.1fx %s\n", row->target, result->ok ? "ok" : "MISSED");
	else
		printf("%.0f %s %s\n", row->target, row->unit, result->ok ? "ok" : "MISSED");
	fflush(stdout);
}

static json_t *row_to_json(const struct result *result) {
	const struct micro_row *row = result->row;
	bool aimed = row->target_of != MICRO_TARGET_NONE;

	return json_pack(
		"{s:s s:f s:f s:f s:s s:s s:f s:f s:o s:s? s:o}", "what", row->what, "value",
		result->value.median, "min", result->value.min, "iqr", result->value.iqr, "unit",
		row->unit, "yardstick", row->yardstick_what, "yardstick_value",
		result->yardstick.median, "ratio", result->ratio, "target",
		aimed ? json_real(row->target) : json_null(), "target_of",
		row->target_of == MICRO_TARGET_RATIO ? "ratio"
		: aimed				     ? "value"
						     : NULL,
		"ok", aimed ? json_boolean(result->ok) : json_null()
	);
}

static int print_json(const char *bench, json_t *array) {
	json_t *object = json_pack("{s:s s:o}", "bench", bench, "rows", array);
	int err;

	err = object == NULL ? -1 : json_dumpf(object, stdout, JSON_REAL_PRECISION(6));
	json_decref(object);
	putchar('\n');
	return err == 0 ? 0 : 1;
}

int micro_run(
	const char *bench, const struct micro_row *rows, size_t count, int argc, char **argv
) {
	bool json = argc == 2 && strcmp(argv[1], "--json") == 0;
	json_t *array;

	if (argc > 2 || (argc == 2 && !json)) {
		fprintf(stderr, "usage: %s [--json]\n", argv[0]);
		return 2;
	}
	array = json_array();
	if (!json)
		print_head();
	for (size_t n = 0; n < count; n++) {
		struct result result = row_measure(&rows[n]);

		if (!json)
			print_row(&result);
		else if (json_array_append_new(array, row_to_json(&result)) != 0)
			return 1;
	}
	if (json)
		return print_json(bench, array);
	json_decref(array);
	return 0;
}
