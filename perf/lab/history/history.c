// SPDX-License-Identifier: BSD-3-Clause
// Find changes in histories and print them.
#include "history/history.h"

#include <lib/parse.h>

#include <compare.h>
#include <errno.h>
#include <math.h>
#include <ranks.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STEP_HALVINGS 12 // the detectable step is known within 1 / 2^12
// A time of 0 is shorter than a nanosecond. Shares of zero would be infinite or not a number.
#define LEAST_NS 0.5
#define ALPHA ((1 - HISTORY_LEVEL) / HISTORY_QUANTILES)

static double values_median(const double *values, uint32_t count) {
	double *sorted = calloc(count, sizeof(*sorted)), middle;

	if (sorted == NULL)
		return NAN;
	memcpy(sorted, values, count * sizeof(*values));
	qsort(sorted, count, sizeof(*sorted), doubles_compare);
	middle = (sorted[(count - 1) / 2] + sorted[count / 2]) / 2;
	free(sorted);
	return middle;
}

static int describe_change(
	const double *values,
	const struct change_part *before,
	const struct change_part *after,
	struct history_change *ret_change
) {
	struct history_change change = {
		.first = after->first,
		.before_ns = values_median(values + before->first, before->count),
		.after_ns = values_median(values + after->first, after->count),
		.p = after->p,
	};
	struct compare_result result;
	int err = compare_runs(
		values + before->first, before->count, values + after->first, after->count,
		HISTORY_LEVEL, &result
	);

	if (err == -ENOMEM)
		return err;
	change.share = err == 0 ? result.share : change.after_ns / change.before_ns - 1;
	change.low = err == 0 ? result.share_low : NAN;
	change.high = err == 0 ? result.share_high : NAN;
	*ret_change = change;
	return 0;
}

// Return true if a step of the newer half of the values is found.
static bool step_is_found(const double *values, uint32_t count, double step, double *scratch) {
	struct change_part parts[HISTORY_PARTS_MAX];

	for (uint32_t n = 0; n < count; n++)
		scratch[n] = values[n] * (n < count / 2 ? 1 : 1 + step);
	return changes_find(scratch, count, ALPHA, parts, HISTORY_PARTS_MAX) > 1;
}

// Return the smallest step that is found in values without a change; NAN if 1 is too small.
static double find_detectable_step(const double *values, uint32_t count) {
	double *scratch = calloc(count, sizeof(*scratch)), low = 0, high = 1;

	if (scratch == NULL)
		return NAN;
	if (!step_is_found(values, count, high, scratch))
		high = NAN;
	for (int n = 0; n < STEP_HALVINGS && !isnan(high); n++) {
		double middle = (low + high) / 2;

		if (step_is_found(values, count, middle, scratch))
			high = middle;
		else
			low = middle;
	}
	free(scratch);
	return high;
}

static int judge_values(
	const struct history *history, const double *values, struct history_quantile *quantile
) {
	int found = changes_find(
		values, quantile->run_count, ALPHA, quantile->parts, HISTORY_PARTS_MAX
	);
	int err = 0;

	quantile->too_few = found == -ERANGE;
	if (found == -ENOMEM)
		return found;
	quantile->part_count = found > 0 ? (uint32_t)found : 0;
	quantile->detectable = found == 1 ? find_detectable_step(values, quantile->run_count) : NAN;
	if (quantile->part_count > 0)
		quantile->first_ns = values_median(values, quantile->parts[0].count);
	for (uint32_t n = 0; n + 1 < quantile->part_count && err == 0; n++)
		err = describe_change(
			values, &quantile->parts[n], &quantile->parts[n + 1], &quantile->changes[n]
		);
	if (quantile->part_count > 1) {
		const struct history_change *last = &quantile->changes[quantile->part_count - 2];

		quantile->matters = fabs(last->share) > history->margin_ppm / 1e6;
	}
	return err;
}

static int
quantile_judge(const struct history *history, struct history_series *series, uint32_t place) {
	struct history_quantile *quantile = &series->quantiles[place];
	double *values = calloc(series->run_count, sizeof(*values));
	uint32_t *places = calloc(series->run_count, sizeof(*places));
	int err = values != NULL && places != NULL ? 0 : -ENOMEM;

	for (uint32_t n = 0; n < series->run_count && err == 0; n++) {
		if (isnan(series->runs[n].value_ns[place]))
			continue;
		places[quantile->run_count] = n;
		values[quantile->run_count++] = fmax(series->runs[n].value_ns[place], LEAST_NS);
	}
	if (err == 0)
		err = judge_values(history, values, quantile);
	// Translate indexes among the runs with a value to indexes among all runs.
	for (uint32_t n = 0; n < quantile->part_count && err == 0; n++)
		quantile->parts[n].first = places[quantile->parts[n].first];
	for (uint32_t n = 0; n + 1 < quantile->part_count && err == 0; n++)
		quantile->changes[n].first = quantile->parts[n + 1].first;
	free(values);
	free(places);
	return err;
}

int history_read(const char *directory, struct lab_why *why, struct history *history) {
	int err;

	history->series = calloc(HISTORY_SERIES_MAX, sizeof(*history->series));
	if (history->series == NULL)
		return lab_fail(why, -ENOMEM, "no memory");
	err = history_load(directory, why, history);
	if (err != 0)
		return err;
	if (history->series_count == 0)
		return lab_fail(
			why, -ENODATA, "%s: no result of tocsin-perf among its %u *.json file%s",
			directory, history->left_out_count, PLURAL(history->left_out_count)
		);
	for (uint32_t n = 0; n < history->series_count; n++) {
		for (uint32_t place = 0; place < HISTORY_QUANTILES && err == 0; place++)
			err = quantile_judge(history, &history->series[n], place);
	}
	return err == 0 ? 0 : lab_fail(why, err, "no memory");
}

void history_release(struct history *history) {
	for (uint32_t n = 0; n < history->series_count; n++) {
		for (uint32_t run = 0; run < history->series[n].run_count; run++)
			free(history->series[n].runs[run].path);
		free(history->series[n].runs);
	}
	for (uint32_t n = 0; n < history->left_out_count; n++) {
		free(history->left_out[n].path);
		free(history->left_out[n].why);
	}
	free(history->series);
	free(history->left_out);
}

static bool
any_quantile_is(const struct history *history, bool (*is)(const struct history_quantile *of)) {
	for (uint32_t n = 0; n < history->series_count; n++) {
		for (uint32_t place = 0; place < HISTORY_QUANTILES; place++) {
			if (is(&history->series[n].quantiles[place]))
				return true;
		}
	}
	return false;
}

static bool quantile_is_slower(const struct history_quantile *quantile) {
	return quantile->matters && quantile->changes[quantile->part_count - 2].share > 0;
}

static bool quantile_is_judged(const struct history_quantile *quantile) {
	return !quantile->too_few;
}

bool history_is_slower(const struct history *history) {
	return any_quantile_is(history, quantile_is_slower);
}

bool history_is_undecided(const struct history *history) {
	return !any_quantile_is(history, quantile_is_judged);
}

static void
print_quantile(const struct history *history, const struct history_series *series, uint32_t place) {
	const struct history_quantile *quantile = &series->quantiles[place];
	char name[RESULT_QUANTILE_BYTES];

	result_quantile_name(result_per_million[place], name);
	if (quantile->too_few) {
		printf("  %-7s n/a: %u run%s enough samples, finding a change needs %u runs\n",
		       name, quantile->run_count, quantile->run_count == 1 ? " has" : "s have",
		       changes_values_min(ALPHA));
		return;
	}
	if (quantile->part_count == 0) {
		printf("  %-7s changes all the time: more than %d parts\n", name,
		       HISTORY_PARTS_MAX);
		return;
	}
	printf("  %-7s %10.3f", name, quantile->first_ns / 1e3);
	if (quantile->part_count == 1)
		printf("  no change found");
	if (!isnan(quantile->detectable))
		printf("; a step of %.2g %% halfway would be", 100 * quantile->detectable);
	printf("\n");
	for (uint32_t n = 0; n + 1 < quantile->part_count; n++) {
		const struct history_change *change = &quantile->changes[n];
		const struct history_run *run = &series->runs[change->first];
		double share = change->share;

		printf("  %7s %10.3f %+8.2f %%", "", change->after_ns / 1e3, 100 * share);
		if (isnan(change->low))
			printf(" %20s", "");
		else
			printf(" %+8.2f .. %+8.2f", 100 * change->low, 100 * change->high);
		printf("  %s%s\n", share > 0 ? "slower" : "faster",
		       fabs(share) * 1e6 > history->margin_ppm ? "" : ", within the margin");
		printf("  %18s since %.24s, %.48s\n", "", run->started, run->path);
	}
}

void history_print(const struct history *history) {
	for (uint32_t n = 0; n < history->left_out_count; n++)
		fprintf(stderr, "tocsin-perf: skipped %s: %s\n", history->left_out[n].path,
			history->left_out[n].why);
	for (uint32_t n = 0; n < history->series_count; n++) {
		const struct history_series *series = &history->series[n];
		char size[PARSE_TEXT_BYTES];

		format_size_bytes(series->size, size);
		printf("\n%.90s\n", series->key);
		printf("%s: %u run%s from %.24s to %.24s\n", size, series->run_count,
		       PLURAL(series->run_count), series->runs[0].started,
		       series->runs[series->run_count - 1].started);
		printf("  %7s %10s %10s %20s\n", "", "median us", "change", "95 % interval, %");
		for (uint32_t place = 0; place < HISTORY_QUANTILES; place++)
			print_quantile(history, series, place);
	}
}
