// SPDX-License-Identifier: BSD-3-Clause
// Percentile curves and heat maps from the stored samples of a run.
#include "report/page_series.h"

#include <lib/histogram.h>
#include <lib/must.h>
#include <lib/scoped.h>

#include <errno.h>
#include <math.h>
#include <page.h>
#include <quantile.h>
#include <stdlib.h>

// Points of the curve per factor of ten of the tail.
#define STEPS 16
#define TAIL_MAX 6
#define POINTS_MAX (STEPS * TAIL_MAX + 1)
#define ROWS 40
#define LINES 3
#define SECONDS 1e9

static double ns_to_us(double value_ns) {
	return value_ns / 1e3;
}

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
	double share[POINTS_MAX], value[POINTS_MAX], low[POINTS_MAX], high[POINTS_MAX];
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
	curve->share[n] = share;
	curve->value[n] = ns_to_us((double)value);
	curve->low[n] = err == 0 ? ns_to_us((double)low) : NAN;
	curve->high[n] = err == 0 ? ns_to_us((double)high) : NAN;
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

int page_percentiles(struct page *page, const struct page_source *sources, uint32_t count) {
	struct percentile_curve *curves = calloc(count, sizeof(*curves));
	struct page_series *series = calloc(count, sizeof(*series));
	int err = curves != NULL && series != NULL ? 0 : -ENOMEM;

	for (uint32_t n = 0; n < count && err == 0; n++) {
		err = fill_curve(&sources[n], &curves[n]);
		series[n] = (struct page_series){
			.name = sources[n].name,
			.count = curves[n].count,
			.x = curves[n].share,
			.y = curves[n].value,
			.low = curves[n].low,
			.high = curves[n].high,
		};
	}
	if (err == 0)
		page_curves(
			page,
			&(struct page_curves){
				.caption = "Percentiles, with their 95 % intervals as a band",
				.x = {.label = "percentile", .scale = PAGE_TAIL},
				.y = {.label = "us", .scale = PAGE_LOG},
				.series_count = count,
				.series = series,
			}
		);
	free(series);
	free(curves);
	return err;
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
	course->lines[0][column] = ns_to_us((double)histogram_percentile(histogram, 500000));
	course->lines[1][column] = ns_to_us((double)histogram_percentile(histogram, 990000));
	course->lines[2][column] = ns_to_us((double)summary.max);
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

// Find the start of each segment except the first one.
static void find_segment_begins(
	const struct page_source *source,
	const struct course *course,
	uint64_t column_samples,
	struct page_span *span
) {
	const struct run_summary *summary = source->summary;

	span->begins[0] = 0;
	for (uint32_t n = 1; n < summary->segment_count; n++) {
		uint64_t sample = summary->segments[n].first * summary->window_samples;
		uint64_t column = sample / column_samples;

		span->begins[n] = column < course->columns ? course->edges[column] : NAN;
	}
}

static void course_draw(
	struct page *page,
	const struct page_source *source,
	const struct course *course,
	const struct page_span *span
) {
	static const char *const names[LINES] = {"p50", "p99", "max"};
	uint32_t segments = source->summary->segment_count;
	struct page_series lines[LINES];

	for (int n = 0; n < LINES; n++)
		lines[n] = (struct page_series
		){.name = names[n], .count = course->columns, .y = course->lines[n]};
	page_course(
		page,
		&(struct page_course){
			.caption = "Over the run: the darker a cell, the more samples it has",
			.x_label = "seconds",
			.y_label = "us",
			.columns = course->columns,
			.rows = ROWS,
			.edges = course->edges,
			.low = ns_to_us(course->low_ns),
			.high = ns_to_us(course->high_ns),
			.counts = course->counts,
			.line_count = LINES,
			.lines = lines,
			.cut_count = segments > 0 ? segments - 1 : 0,
			.cuts = span->begins + 1,
		}
	);
}

int page_put_course(struct page *page, const struct page_source *source, struct page_span *span) {
	struct run_windows windows = run_record_windows(source->record);
	const struct histogram_summary *all = &source->summary->all;
	struct course course = {.join = (windows.count + span->columns - 1) / span->columns};
	scoped_mem double *memory = NULL;
	scoped_mem uint64_t *counts = NULL;
	double share;
	int err;

	for (uint32_t n = 0; n < SUMMARY_SEGMENTS_MAX; n++)
		span->begins[n] = NAN;
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
	find_segment_begins(source, &course, windows.samples * course.join, span);
	course_draw(page, source, &course, span);
	return 0;
}
