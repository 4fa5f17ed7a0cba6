// SPDX-License-Identifier: BSD-3-Clause
// Generate runs, let the laboratory judge them, and count its correct results.
#include "perf/stats/truth.h"

#include "history/versus.h"
#include "perf/stats/generator.h"
#include "perf/stats/storms.h"
#include "quantile.h"
#include "ranks.h"
#include "summary.h"

#include <lib/must.h>

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define STORMS (-1.0)
#define RUNS 10
#define BETWEEN_RUNS 0.01
#define CHANGE_SAMPLES 100000u

const struct truth_process truth_processes[TRUTH_PROCESSES] = {
	{"AR(1), correlation 0", 0, 20000, {0.92, 0.92}, 0.98},
	{"AR(1), correlation 0.5", 0.5, 20000, {0.92, 0.92}, 0.98},
	{"AR(1), correlation 0.9", 0.9, 20000, {0.92, 0.92}, 0.98},
	{"AR(1), correlation 0.99", 0.99, 60000, {0.92, 0.88}, 0.98},
	{"calm and storms, heavy tail", STORMS, 60000, {0.92, 0.92}, 0.98},
};

static const uint32_t quantiles[TRUTH_QUANTILES] = {500000, 990000};

static bool is_storms(const struct truth_process *process) {
	return process->memory < 0;
}

static double true_quantile(const struct truth_process *process, double p) {
	return is_storms(process) ? storms_quantile(p) : 1e6 * exp(0.3 * normal_quantile(p));
}

static double true_tau(const struct truth_process *process, double p) {
	return is_storms(process) ? storms_tau(p) : autoregressive_tau(process->memory, p);
}

static void draw(const struct truth_process *process, uint64_t seed, double *ret_samples) {
	struct generator generator = generator_seeded(seed);
	struct storms storms = storms_seeded(seed);

	generator_start(&generator, process->memory);
	for (uint32_t n = 0; n < process->samples; n++)
		ret_samples[n] = (double
		)(is_storms(process) ? storms_next(&storms)
				     : latency_of_level(generator_next(&generator)));
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

// Return the width of the interval computed from sorted samples and the true autocorrelation time.
static double
width_of_knowing(const struct truth_process *process, const double *sorted, uint32_t per_million) {
	double effective = process->samples / true_tau(process, per_million / 1e6);
	struct quantile_ranks ranks;

	must(quantile_interval(process->samples, effective, per_million, SUMMARY_LEVEL, &ranks) == 0
	);
	return sorted[ranks.high - 1] - sorted[ranks.low - 1];
}

static double middle_of(double *values, uint32_t count) {
	qsort(values, count, sizeof(*values), doubles_compare);
	return (values[(count - 1) / 2] + values[count / 2]) / 2;
}

struct coverage_run {
	const struct truth_process *process;
	double *samples;
	// Per repetition: width of our interval, and of the one with the true tau.
	double *widths[TRUTH_QUANTILES][2];
	struct truth_coverage sums;
};

static void cover_one(struct coverage_run *run, uint32_t repetition, uint64_t seed) {
	struct run_summary summary;
	bool absent = false;

	draw(run->process, seed, run->samples);
	tell(run->samples, run->process->samples, &summary);
	qsort(run->samples, run->process->samples, sizeof(double), doubles_compare);
	for (uint32_t q = 0; q < TRUTH_QUANTILES; q++) {
		const struct quantile_summary *told = find_quantile(&summary, quantiles[q]);
		double truth = true_quantile(run->process, quantiles[q] / 1e6);

		run->sums.held[q] += (double)told->low <= truth && truth <= (double)told->high;
		absent |= told->note == QUANTILE_TOO_FEW;
		run->widths[q][0][repetition] = (double)(told->high - told->low);
		run->widths[q][1][repetition] =
			width_of_knowing(run->process, run->samples, quantiles[q]);
	}
	run->sums.absent += absent;
	run->sums.changed += summary.judgement == RUN_CHANGED;
}

void truth_coverage(
	const struct truth_process *process,
	uint32_t repetitions,
	uint64_t seed,
	struct truth_coverage *ret_coverage
) {
	double *memory = calloc(process->samples + 4 * (size_t)repetitions, sizeof(*memory));
	struct coverage_run run = {.process = process, .samples = memory};

	must(memory != NULL);
	for (uint32_t n = 0; n < 2 * TRUTH_QUANTILES; n++)
		run.widths[n / 2][n % 2] = memory + process->samples + n * (size_t)repetitions;
	for (uint32_t n = 0; n < repetitions; n++)
		cover_one(&run, n, seed * 1000003 + n);
	*ret_coverage = run.sums;
	for (uint32_t q = 0; q < TRUTH_QUANTILES; q++) {
		ret_coverage->held[q] /= repetitions;
		ret_coverage->width[q] = middle_of(run.widths[q][0], repetitions) /
					 middle_of(run.widths[q][1], repetitions);
	}
	ret_coverage->absent /= repetitions;
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
