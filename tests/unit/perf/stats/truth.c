// SPDX-License-Identifier: BSD-3-Clause
// Generate runs, let the laboratory judge them, and count its correct results.
#include "perf/stats/truth.h"

#include "history/versus.h"
#include "perf/stats/generator.h"
#include "perf/stats/storms.h"
#include "quantile.h"
#include "ranks.h"
#include "report/threshold.h"
#include "summary.h"

#include <lib/must.h>

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define RUNS 10
#define BETWEEN_RUNS 0.01
#define CHANGE_SAMPLES 100000u
#define OFF_SHARE 0.1 // distance from the truth at which a threshold should be decided

static const struct storms_shape bursts = {.calm = 900, .storm = 100, .factor = 3};
static const struct storms_shape regimes = {.calm = 300, .storm = 100, .factor = 2};
static const struct storms_shape heavy = {.calm = 200, .storm = 20};

const struct truth_row truth_rows[TRUTH_ROWS] = {
	{"AR 0", 0, NULL, 200, {.92}, {.99}, .width_most = 1.3},
	{"AR 0", 0, NULL, 1000, {.92, .92}, {.99, .95}, .width_most = 1.3},
	{"AR 0", 0, NULL, 20000, {.92, .92, .92}, {.99, .95, .95}, .width_most = 1.3},
	{"AR .5", .5, NULL, 200, {.92}, {.99}, .width_most = 1.8},
	{"AR .5", .5, NULL, 1000, {.92, .92}, {.99, .95}, .width_most = 1.8},
	{"AR .5", .5, NULL, 20000, {.92, .92, .92}, {.99, .95, .95}, .width_most = 1.8},
	{"AR .9", .9, NULL, 200, {.88}, {0}, .width_most = 1.8},
	{"AR .9", .9, NULL, 1000, {.92, .92}, {.95}, .width_most = 1.8},
	{"AR .9", .9, NULL, 20000, {.92, .92, .92}, {.95}, .width_most = 1.8},
	{"AR .99", .99, NULL, 200, {.88}, {0}, .width_most = 1.8},
	{"AR .99", .99, NULL, 1000, {.88, .88}, {0}, .width_most = 1.8},
	{"AR .99", .99, NULL, 20000, {.92, .90, .88}, {.90, .70}, .width_most = 1.8},
	{"bursts of 100", 0, &bursts, 200, {.88}, {0}, .width_most = 1.8},
	{"bursts of 100", 0, &bursts, 1000, {.88, .88}, {0}, .width_most = 1.8},
	{"bursts of 100", 0, &bursts, 20000, {.92, .90, .88}, {.90, .70}, .width_most = 1.8},
	{"regimes 300/100", 0, &regimes, 200, {0}, {0}, .width_most = INFINITY},
	{"regimes 300/100", 0, &regimes, 1000, {.95}, {0}, 1.8, .switched = true},
	{"regimes 300/100", 0, &regimes, 20000, {.92, .90, .88}, {.90, .70}, .width_most = 1.8},
	{"heavy storms", 0, &heavy, 60000, {.92, .92}, {.90, .90}, .width_most = 1.8},
};

static const uint32_t quantiles[TRUTH_QUANTILES] = {500000, 990000, 999000};

static double true_quantile(const struct truth_row *row, double p) {
	return row->storms != NULL ? storms_quantile(row->storms, p)
				   : 1e6 * exp(0.3 * normal_quantile(p));
}

// Draw a run. Returns false if it has two states and was in one of them all the time.
static bool run_draw(const struct truth_row *row, uint64_t seed, double *ret_samples) {
	struct generator generator = generator_seeded(seed);
	struct storms storms = {.switches = 1};

	if (row->storms != NULL)
		storms = storms_seeded(row->storms, seed);
	generator_start(&generator, row->memory);
	for (uint32_t n = 0; n < row->samples; n++)
		ret_samples[n] = (double
		)(row->storms != NULL ? storms_next(&storms)
				      : latency_of_level(generator_next(&generator)));
	return storms.switches > 0;
}

static void tell(const double *samples, uint32_t count, struct run_summary *ret_summary) {
	static const uint32_t all[] = {500000, 900000, 990000, 999000};
	struct run_record *record;

	must(run_record_create(&record) == 0);
	for (uint32_t n = 0; n < count; n++)
		run_record_add(record, (uint64_t)samples[n]);
	must(run_summarize(record, all, 4, ret_summary) == 0);
	run_record_destroy(record);
}

static const struct quantile_summary *
find_quantile(const struct run_summary *summary, uint32_t per_million) {
	uint32_t place = 0;

	while (summary->quantiles[place].per_million != per_million) {
		place++;
		must(place < summary->quantile_count);
	}
	return &summary->quantiles[place];
}

static double middle_of(double *values, uint32_t count) {
	qsort(values, count, sizeof(*values), doubles_compare);
	return (values[(count - 1) / 2] + values[count / 2]) / 2;
}

// Judge `--fail-if` with a threshold at this value.
static enum threshold_answer
threshold_answer(const struct run_summary *summary, uint32_t per_million, double bound_ns) {
	struct lab_result result = {.summarized = true, .summary = *summary};
	const struct threshold threshold = {
		.figure = THRESHOLD_QUANTILE,
		.per_million = per_million,
		.bound = (uint64_t)bound_ns,
	};
	struct lab_why why;

	return threshold_judge(&threshold, &result, &why);
}

struct coverage_run {
	const struct truth_row *row;
	double *samples;
	// Per repetition: all estimates, and the widths of the printed intervals.
	double *estimates[TRUTH_QUANTILES], *widths[TRUTH_QUANTILES];
	uint32_t printed[TRUTH_QUANTILES];
};

static void
cover_one(struct coverage_run *run, uint32_t repetition, struct truth_coverage *coverage) {
	struct run_summary summary;

	tell(run->samples, run->row->samples, &summary);
	for (uint32_t q = 0; q < TRUTH_QUANTILES; q++) {
		const struct quantile_summary *told = find_quantile(&summary, quantiles[q]);
		double truth = true_quantile(run->row, quantiles[q] / 1e6);
		enum threshold_answer at, lower, upper;

		run->estimates[q][repetition] = (double)told->value;
		if (quantile_has_interval(told)) {
			run->widths[q][run->printed[q]++] = (double)(told->high - told->low);
			coverage->held[q] +=
				(double)told->low <= truth && truth <= (double)told->high;
		}
		at = threshold_answer(&summary, quantiles[q], truth);
		lower = threshold_answer(&summary, quantiles[q], truth * (1 - OFF_SHARE));
		upper = threshold_answer(&summary, quantiles[q], truth * (1 + OFF_SHARE));
		coverage->failed[q] += at == THRESHOLD_FAILS;
		coverage->passed[q] += at == THRESHOLD_HOLDS;
		coverage->decided[q] += lower == THRESHOLD_FAILS && upper == THRESHOLD_HOLDS;
	}
	coverage->changed += summary.judgement == RUN_CHANGED;
}

void truth_coverage(
	const struct truth_row *row,
	uint32_t repetitions,
	uint64_t seed,
	struct truth_coverage *ret_coverage
) {
	size_t columns = 2 * TRUTH_QUANTILES;
	double *memory = calloc(row->samples + columns * repetitions, sizeof(*memory));
	struct coverage_run run = {.row = row, .samples = memory};
	struct truth_coverage sums = {.changed = 0};

	must(memory != NULL);
	for (uint32_t q = 0; q < TRUTH_QUANTILES; q++) {
		run.estimates[q] = memory + row->samples + (size_t)2 * q * repetitions;
		run.widths[q] = run.estimates[q] + repetitions;
	}
	for (uint32_t n = 0, drawn = 0; n < repetitions; drawn++) {
		if (run_draw(row, seed * 1000003 + drawn, run.samples) || !row->switched)
			cover_one(&run, n++, &sums);
	}
	*ret_coverage = sums;
	for (uint32_t q = 0; q < TRUTH_QUANTILES; q++) {
		uint32_t printed = run.printed[q], tail = repetitions / 40;
		double *estimates = run.estimates[q];

		qsort(estimates, repetitions, sizeof(*estimates), doubles_compare);
		ret_coverage->printed[q] = (double)printed / repetitions;
		ret_coverage->held[q] = printed > 0 ? sums.held[q] / printed : NAN;
		ret_coverage->width[q] =
			printed > 0 ? middle_of(run.widths[q], printed) /
					      (estimates[repetitions - 1 - tail] - estimates[tail])
				    : NAN;
		ret_coverage->failed[q] /= repetitions;
		ret_coverage->passed[q] /= repetitions;
		ret_coverage->decided[q] /= repetitions;
	}
	ret_coverage->changed /= repetitions;
	free(memory);
}

// Return whether a run is reported as two segments if these factors apply to its second half.
static bool is_told_as_two(double middle, double tail, uint64_t seed, double *samples) {
	struct generator generator = generator_seeded(seed);
	struct run_summary summary;
	double at;

	for (uint32_t n = 0; n < CHANGE_SAMPLES; n++) {
		bool later = n >= CHANGE_SAMPLES / 2;
		bool rare = generator_uniform(&generator) < 0.03;

		samples[n] = (double)latency_of_level(generator_normal(&generator)) *
			     (later ? middle : 1) * (rare ? later ? 4 * tail : 4 : 1);
	}
	tell(samples, CHANGE_SAMPLES, &summary);
	if (summary.judgement != RUN_CHANGED || summary.segment_count != 2)
		return false;
	at = (double)summary.segments[1].first * (double)summary.window_samples;
	return fabs(at - CHANGE_SAMPLES / 2.0) <= 0.03 * CHANGE_SAMPLES;
}

void truth_changes(uint32_t repetitions, uint64_t seed, struct truth_changes *ret_changes) {
	double *samples = calloc(CHANGE_SAMPLES, sizeof(*samples));
	struct truth_changes sums = {0};

	must(samples != NULL);
	for (uint32_t n = 0; n < repetitions; n++) {
		uint64_t of_run = seed * 1000003 + n;

		sums.shifted += is_told_as_two(1.1, 1, of_run, samples);
		sums.tail += is_told_as_two(1, 2, of_run + 500000, samples);
	}
	ret_changes->shifted = sums.shifted / repetitions;
	ret_changes->tail = sums.tail / repetitions;
	free(samples);
}

static void draw_side(
	struct generator *generator,
	uint32_t samples,
	double factor,
	int side,
	struct versus_values *values
) {
	double *drawn = calloc(samples, sizeof(*drawn));

	must(drawn != NULL);
	for (uint32_t run = 0; run < RUNS; run++) {
		double of_run = factor * exp(BETWEEN_RUNS * generator_normal(generator));

		for (uint32_t n = 0; n < samples; n++)
			drawn[n] = of_run * (double)latency_of_level(generator_normal(generator));
		qsort(drawn, samples, sizeof(*drawn), doubles_compare);
		for (uint32_t q = 0; q < VERSUS_QUANTILES; q++) {
			double rank = ceil(samples * (result_per_million[q] / 1e6));

			values->ns[0][q][side][run] = drawn[(uint32_t)rank - 1];
		}
	}
	free(drawn);
}

// Return the number of quantiles with this result.
static uint32_t count_words(const struct versus_result *result, enum versus_outcome word) {
	uint32_t count = 0;

	for (uint32_t n = 0; n < result->row_count; n++)
		count += result->rows[n].word == word;
	return count;
}

static void
compare_one(double factor, uint32_t samples, uint64_t seed, struct versus_result *ret_result) {
	struct versus_values *values = calloc(1, sizeof(*values));
	struct versus versus = {.counts = {RUNS, RUNS}, .margin_ppm = 20000};
	struct generator generator = generator_seeded(seed);

	must(values != NULL);
	values->size_count = 1;
	draw_side(&generator, samples, 1, 0, values);
	draw_side(&generator, samples, factor, 1, values);
	must(versus_judge(&versus, values, ret_result) == 0);
	free(values);
}

void truth_comparison(
	uint32_t repetitions, uint32_t samples, uint64_t seed, struct truth_comparison *ret_told
) {
	struct truth_comparison sums = {0};

	for (uint32_t n = 0; n < repetitions; n++) {
		static struct versus_result result;
		uint64_t of_run = seed * 1000003 + n;

		compare_one(1.02, samples, of_run, &result);
		sums.found += count_words(&result, VERSUS_SLOWER) > 0;
		compare_one(1, samples, of_run + 500000, &result);
		sums.claimed +=
			count_words(&result, VERSUS_SLOWER) + count_words(&result, VERSUS_FASTER) >
			0;
		sums.same += count_words(&result, VERSUS_SAME) == VERSUS_QUANTILES;
	}
	ret_told->found = sums.found / repetitions;
	ret_told->claimed = sums.claimed / repetitions;
	ret_told->same = sums.same / repetitions;
}
