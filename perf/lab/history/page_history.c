// SPDX-License-Identifier: BSD-3-Clause
// Page of a history: runs in order, with the median between changes.
#include "history/page_history.h"

#include "report/page_parts.h"

#include <lib/parse.h>

#include <errno.h>
#include <math.h>
#include <page.h>
#include <stdio.h>
#include <stdlib.h>

#define CELL_BYTES 96
#define HEADING_BYTES (HISTORY_KEY_BYTES + CELL_BYTES)
// Limit of the points of all charts, which keeps a page below 500 KiB. The newest runs are drawn.
#define POINTS_MAX 12000u
#define DRAWN_MIN 20u
#define DRAWN_MAX 400u

static uint32_t runs_drawn_per_series(const struct history *history) {
	uint32_t each = POINTS_MAX / HISTORY_QUANTILES / history->series_count;

	return each < DRAWN_MIN ? DRAWN_MIN : each > DRAWN_MAX ? DRAWN_MAX : each;
}

static void put_change(
	struct page *page,
	const struct history *history,
	const struct history_series *series,
	uint32_t place
) {
	const struct history_quantile *quantile = &series->quantiles[place];
	const struct history_change *change;
	char name[RESULT_QUANTILE_BYTES];
	double share;

	result_quantile_name(result_per_million[place], name);
	if (quantile->too_few) {
		page_paragraph(page, PAGE_PLAIN, "%s: too few runs to find a change.", name);
		return;
	}
	if (quantile->part_count < 2) {
		page_paragraph(
			page, quantile->part_count == 1 ? PAGE_GOOD : PAGE_BAD, "%s: %s.", name,
			quantile->part_count == 1 ? "no change found" : "changes all the time"
		);
		return;
	}
	change = &quantile->changes[quantile->part_count - 2];
	share = change->shift_ns / change->before_ns;
	page_paragraph(
		page,
		!quantile->matters ? PAGE_PLAIN
		: share > 0	   ? PAGE_BAD
				   : PAGE_GOOD,
		"%s: %s by %.2f %% since %s (%s)%s; %u changes in all.", name,
		share > 0 ? "slower" : "faster", 100 * fabs(share),
		series->runs[change->first].started, series->runs[change->first].path,
		fabs(share) * 1e6 > history->margin_ppm ? "" : ", within the margin",
		quantile->part_count - 1
	);
}

struct drawing {
	double *x, *y, *low, *high;	// one value per run
	double *level_x, *level_y;	// two points per part
	uint32_t first, count, corners; // of the drawn runs; `corners`: points of the levels
};

// Draw the level of each part as a line from its first run to its last one.
static void
draw_levels(const struct history_quantile *quantile, uint32_t end, struct drawing *drawing) {
	for (uint32_t n = 0; n < quantile->part_count; n++) {
		uint32_t first = quantile->parts[n].first;
		uint32_t next = n + 1 < quantile->part_count ? quantile->parts[n + 1].first : end;

		if (next <= drawing->first)
			continue;
		first = first > drawing->first ? first : drawing->first;
		for (int side = 0; side < 2; side++) {
			drawing->level_x[drawing->corners] = side == 0 ? first + 1 : next;
			drawing->level_y[drawing->corners++] =
				(n > 0 ? quantile->changes[n - 1].after_ns : quantile->first_ns) /
				1e3;
		}
	}
}

static void put_chart(
	struct page *page,
	const struct history_series *series,
	uint32_t place,
	struct drawing *drawing
) {
	char caption[CELL_BYTES], name[RESULT_QUANTILE_BYTES];

	drawing->corners = 0;
	draw_levels(&series->quantiles[place], series->run_count, drawing);
	for (uint32_t n = 0; n < drawing->count; n++) {
		const struct history_run *run = &series->runs[drawing->first + n];

		drawing->x[n] = drawing->first + n + 1;
		drawing->y[n] = run->value_ns[place] / 1e3;
		drawing->low[n] = run->low_ns[place] / 1e3;
		drawing->high[n] = run->high_ns[place] / 1e3;
	}
	result_quantile_name(result_per_million[place], name);
	snprintf(caption, sizeof(caption), "%s, run after run", name);
	page_curves(
		page,
		&(struct page_curves){
			.caption = caption,
			.x = {.label = "run"},
			.y = {.label = "us", .scale = PAGE_LOG},
			.series_count = 2,
			.series =
				(const struct page_series[]){
					{.name = "runs",
					 .count = drawing->count,
					 .x = drawing->x,
					 .y = drawing->y,
					 .low = drawing->low,
					 .high = drawing->high,
					 .points = true},
					{.name = "median between changes",
					 .count = drawing->corners,
					 .x = drawing->level_x,
					 .y = drawing->level_y},
				},
		}
	);
}

static int put_series(
	struct page *page,
	const struct history *history,
	const struct history_series *series,
	uint32_t drawn
) {
	uint32_t count = series->run_count < drawn ? series->run_count : drawn;
	uint32_t corners = 2 * HISTORY_PARTS_MAX;
	double *memory = calloc(4 * (size_t)count + 2 * (size_t)corners, sizeof(*memory));
	struct drawing drawing = {.first = series->run_count - count, .count = count};
	char heading[HEADING_BYTES], size[PARSE_TEXT_BYTES];

	if (memory == NULL)
		return -ENOMEM;
	drawing.x = memory;
	drawing.y = drawing.x + count;
	drawing.low = drawing.y + count;
	drawing.high = drawing.low + count;
	drawing.level_x = drawing.high + count;
	drawing.level_y = drawing.level_x + corners;
	format_size_bytes(series->size, size);
	snprintf(heading, sizeof(heading), "%s: %s", size, series->key);
	page_heading(page, heading);
	page_paragraph(
		page, PAGE_PLAIN, "%u run%s from %s to %s.%s", series->run_count,
		PLURAL(series->run_count), series->runs[0].started,
		series->runs[series->run_count - 1].started,
		count < series->run_count ? " The charts show the newest." : ""
	);
	for (uint32_t place = 0; place < HISTORY_QUANTILES; place++)
		put_change(page, history, series, place);
	for (uint32_t place = 0; place < HISTORY_QUANTILES; place++)
		put_chart(page, series, place, &drawing);
	free(memory);
	return 0;
}

static void put_explanation(struct page *page, const struct history *history) {
	for (uint32_t n = 0; n < history->left_out_count; n++)
		page_paragraph(
			page, PAGE_PLAIN, "Left out %s: %s", history->left_out[n].path,
			history->left_out[n].why
		);
	page_fold_begin(page, "How to read this");
	page_paragraph(
		page, PAGE_PLAIN,
		"Each run gives one value of each quantile; its interval is that of the run alone. "
		"A change is where the ranks of the runs before and after differ by more than "
		"chance would, at 5 %% for all quantiles of a history together. A single odd run "
		"is no change."
	);
	page_fold_end(page);
}

int page_history(const struct history *history, const char *path, struct lab_why *why) {
	struct page *page;
	int err = page_create("Since when is it slower?", &page);

	if (err != 0)
		return lab_fail(why, err, "no memory for the page");
	for (uint32_t n = 0; n < history->series_count && err == 0; n++)
		err = put_series(
			page, history, &history->series[n], runs_drawn_per_series(history)
		);
	put_explanation(page, history);
	err = err != 0 ? lab_fail(why, err, "no memory for the page") : page_save(page, path, why);
	page_destroy(page);
	return err;
}
