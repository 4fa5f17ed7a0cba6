// SPDX-License-Identifier: BSD-3-Clause
// Percentile curves and heat maps from the stored samples of a run.
#include "report/page_series.h"

#include "report/page_parts.h"

#include <lib/histogram.h>
#include <lib/must.h>
#include <lib/scoped.h>

#include <jansson.h>

#include <errno.h>
#include <math.h>
#include <quantile.h>
#include <stdlib.h>

// Points of the curve per factor of ten of the tail.
#define STEPS 16
#define TAIL_MAX 6
#define POINTS_MAX (STEPS * TAIL_MAX + 1)
#define ROWS 40
#define LINES 3
#define SECONDS 1e9
// Steps of a heat map cell, relative to the largest count of its column; one letter each, from "?"
// to "~".
#define CELL_STEPS 63

static double share_to_tail(double share) {
	return -log10(1 - share);
}

// Interpolate tau linearly between two measured quantiles, on the scale of tails.
static double tau_at(const struct run_summary *summary, double share) {
	const struct quantile_summary *before = &summary->quantiles[0], *after = before;
	double from, to, part;

	for (uint32_t n = 0; n < summary->quantile_count; n++) {
		after = &summary->quantiles[n];
		if (after->per_million / 1e6 >= share)
			break;
		before = after;
	}
	from = share_to_tail(before->per_million / 1e6);
	to = share_to_tail(after->per_million / 1e6);
	part = to > from ? (share_to_tail(share) - from) / (to - from) : 0;
	return before->tau + (after->tau - before->tau) * fmin(fmax(part, 0), 1);
}

struct percentile_curve {
	uint32_t count;
	double value[POINTS_MAX], low[POINTS_MAX], high[POINTS_MAX]; // ns; NAN: unknown
};

// Add one point to the curve. Returns 0 or -ENOMEM.
static int
add_point(const struct page_source *source, double share, struct percentile_curve *curve) {
	uint64_t count = run_record_count(source->record);
	uint64_t rank = (uint64_t)ceil(share * (double)count);
	uint32_t per_million = (uint32_t)lround(share * QUANTILE_ONE), n = curve->count++;
	uint64_t value, low, high;
	int err = run_value_at_rank(source->record, rank > 0 ? rank : 1, &value);

	if (err < 0)
		return err;
	err = -ERANGE;
	if (per_million > 0 && per_million < QUANTILE_ONE)
		err = run_interval(
			source->record, per_million, tau_at(source->summary, share), &low, &high
		);
	curve->value[n] = (double)value;
	curve->low[n] = err == 0 ? (double)low : NAN;
	curve->high[n] = err == 0 ? (double)high : NAN;
	return err == -ERANGE ? 0 : err;
}

static int fill_curve(const struct page_source *source, struct percentile_curve *curve) {
	// The tail at which the rank is that of the largest sample.
	double last = log10(2.0 * (double)run_record_count(source->record));
	int err = 0;

	curve->count = 0;
	for (int step = 0; step <= STEPS * TAIL_MAX && err == 0; step++) {
		double tail = (double)step / STEPS;

		if (tail > last && step > 0)
			break;
		err = add_point(source, 1 - pow(10, -tail), curve);
	}
	return err;
}

int page_put_percentiles(json_t *object, const struct page_source *sources, uint32_t count) {
	scoped_mem struct percentile_curve *curve = calloc(1, sizeof(*curve));
	json_t *array = json_array();
	int err = curve != NULL ? 0 : -ENOMEM, failed = 0;

	for (uint32_t n = 0; n < count && err == 0; n++) {
		err = fill_curve(&sources[n], curve);
		failed |= json_array_append_new(
			array, json_pack(
				       "{s:s s:i s:o s:o s:o}", "name", sources[n].name, "steps",
				       STEPS, "value_ns", page_numbers(curve->value, curve->count),
				       "low_ns", page_numbers(curve->low, curve->count), "high_ns",
				       page_numbers(curve->high, curve->count)
			       )
		);
	}
	failed |= json_object_set_new(object, "percentiles", array);
	return err == 0 && failed != 0 ? -ENOMEM : err;
}

// Columns of a heat map; each joins `join` windows.
struct course {
	uint32_t columns, join;
	double low_ns, high_ns; // range of the rows
	double *edges, *lines[LINES];
	uint64_t *counts;
};

static uint32_t value_row(const struct course *course, double value_ns) {
	double part = log(value_ns / course->low_ns) / log(course->high_ns / course->low_ns);

	return (uint32_t)fmin(fmax(part * ROWS, 0), ROWS - 1);
}

static void fill_column(struct course *course, uint32_t column, const struct histogram *histogram) {
	struct histogram_summary summary;
	struct histogram_span span = {.before = 0};

	histogram_summarize(histogram, &summary);
	course->lines[0][column] = (double)histogram_percentile(histogram, 500000);
	course->lines[1][column] = (double)histogram_percentile(histogram, 990000);
	course->lines[2][column] = (double)summary.max;
	while (histogram_at_rank(histogram, span.before + span.count + 1, &span) == 0) {
		double middle = ((double)span.lowest + (double)span.highest) / 2;

		course->counts[(size_t)column * ROWS + value_row(course, middle)] += span.count;
	}
	// Store the sum of the samples for now; compute_edges() converts it to a time.
	course->edges[column + 1] = summary.mean * (double)summary.count;
}

static int fill_columns(struct run_record *record, struct course *course) {
	struct histogram *joined;
	int err = histogram_create(histogram_shape(run_record_window(record, 0)), &joined);

	if (err < 0)
		return err;
	for (uint32_t column = 0; column < course->columns; column++) {
		histogram_clear(joined);
		for (uint32_t n = 0; n < course->join; n++) {
			err = histogram_merge(
				joined, run_record_window(record, column * course->join + n)
			);
			must(err == 0); // all windows have the same shape
		}
		fill_column(course, column, joined);
	}
	histogram_destroy(joined);
	return 0;
}

static void compute_edges(struct course *course, double took_ns, bool open) {
	double samples_ns = 0, rest_ns = took_ns;

	for (uint32_t n = 1; n <= course->columns && !open; n++)
		samples_ns += course->edges[n];
	open = open || samples_ns > rest_ns;
	rest_ns -= open ? 0 : samples_ns;
	for (uint32_t n = 1; n <= course->columns; n++) {
		double own_ns = (open ? 0 : course->edges[n]) + rest_ns / course->columns;

		course->edges[n] = course->edges[n - 1] + own_ns / SECONDS;
	}
}

// Return the start of each segment in seconds; null: unknown.
static json_t *segment_begins(
	const struct page_source *source, const struct course *course, uint64_t column_samples
) {
	const struct run_summary *summary = source->summary;
	double begins[SUMMARY_SEGMENTS_MAX] = {0};

	for (uint32_t n = 1; n < summary->segment_count; n++) {
		uint64_t sample = summary->segments[n].first * summary->window_samples;
		uint64_t column = sample / column_samples;

		begins[n] = column < course->columns ? course->edges[column] : NAN;
	}
	return page_numbers(begins, summary->segment_count);
}

// Encode each count, relative to the largest one of its column, as one letter. This is compact and
// precise enough for a shade.
static json_t *course_letters(const struct course *course) {
	scoped_mem char *letters = malloc((size_t)course->columns * ROWS);

	for (uint32_t column = 0; column < course->columns && letters != NULL; column++) {
		const uint64_t *counts = course->counts + (size_t)column * ROWS;
		uint64_t largest = 1;

		for (uint32_t row = 0; row < ROWS; row++)
			largest = counts[row] > largest ? counts[row] : largest;
		for (uint32_t row = 0; row < ROWS; row++) {
			// The square root makes rare samples visible, which are the purpose of a
			// heat map.
			double share = sqrt((double)counts[row] / (double)largest);

			letters[(size_t)column * ROWS + row] =
				(char)('?' + (int)ceil(CELL_STEPS * share));
		}
	}
	return letters == NULL ? NULL : json_stringn(letters, (size_t)course->columns * ROWS);
}

static json_t *course_json(const struct course *course, json_t *begins) {
	uint32_t columns = course->columns;

	return json_pack(
		"{s:i s:i s:o s:f s:f s:o s:o s:o s:o s:o}", "columns", (int)columns, "rows", ROWS,
		"edges_s", page_numbers(course->edges, columns + 1), "low_ns", course->low_ns,
		"high_ns", course->high_ns, "cells", course_letters(course), "p50_ns",
		page_numbers(course->lines[0], columns), "p99_ns",
		page_numbers(course->lines[1], columns), "max_ns",
		page_numbers(course->lines[2], columns), "begins_s", begins
	);
}

int page_put_course(
	json_t *object, const struct page_source *source, const struct page_span *span
) {
	struct run_windows windows = run_record_windows(source->record);
	const struct histogram_summary *all = &source->summary->all;
	struct course course = {.join = (windows.count + span->columns - 1) / span->columns};
	scoped_mem double *memory = NULL;
	scoped_mem uint64_t *counts = NULL;
	double share;
	int err;

	if (windows.count < 2)
		return 0;
	course.columns = windows.count / course.join;
	memory = calloc((LINES + 1) * (course.columns + (size_t)1), sizeof(*memory));
	counts = calloc((size_t)course.columns * ROWS, sizeof(*counts));
	if (memory == NULL || counts == NULL)
		return -ENOMEM;
	course.counts = counts;
	course.edges = memory;
	for (uint32_t n = 0; n < LINES; n++)
		course.lines[n] = memory + (n + 1) * (course.columns + (size_t)1);
	course.low_ns = fmax(1, (double)all->min) * 0.95;
	course.high_ns = fmax(1, (double)all->max) * 1.05;
	err = fill_columns(source->record, &course);
	if (err < 0)
		return err;
	share = (double)(windows.samples * course.columns * course.join) / (double)all->count;
	compute_edges(&course, (double)span->took_ns * share, span->open);
	return json_object_set_new(
		       object, "course",
		       course_json(
			       &course,
			       segment_begins(source, &course, windows.samples * course.join)
		       )
	       ) == 0
		       ? 0
		       : -ENOMEM;
}
