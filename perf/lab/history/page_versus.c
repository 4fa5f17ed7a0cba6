// SPDX-License-Identifier: BSD-3-Clause
// Page of a comparison: claims, intervals and the value of every run.
#include "history/page_versus.h"

#include "report/page_parts.h"

#include <lib/parse.h>

#include <math.h>
#include <page.h>
#include <stdio.h>
#include <string.h>

#define CELL_BYTES 96
#define TITLE_BYTES 160
#define CELLS 8

struct scene {
	struct page *page;
	const struct versus *versus;
	const struct versus_values *values;
	const struct versus_result *result;
};

static double shift_percent(const struct versus_row *row, double shift_ns) {
	return 100 * shift_ns / row->median_ns[0];
}

static bool row_has_interval(const struct versus_row *row) {
	return row->word != VERSUS_NO_VALUE && row->word != VERSUS_TOO_FEW_RUNS;
}

static void put_claim(const struct scene *scene, const struct versus_row *row) {
	static const enum page_tone tones[] = {
		[VERSUS_SLOWER] = PAGE_BAD,	    [VERSUS_FASTER] = PAGE_GOOD,
		[VERSUS_SAME] = PAGE_GOOD,	    [VERSUS_UNDECIDED] = PAGE_PLAIN,
		[VERSUS_TOO_FEW_RUNS] = PAGE_PLAIN, [VERSUS_NO_VALUE] = PAGE_PLAIN,
	};
	char name[RESULT_QUANTILE_BYTES], behind[CELL_BYTES] = "";

	result_quantile_name(row->per_million, name);
	if (row->word == VERSUS_NO_VALUE)
		snprintf(behind, sizeof(behind), ": a run has too few samples for it");
	else if (row->word == VERSUS_TOO_FEW_RUNS)
		snprintf(
			behind, sizeof(behind), ": it needs %u runs of each",
			scene->result->runs_least
		);
	else if (row->word == VERSUS_SAME)
		snprintf(behind, sizeof(behind), " within %g %%", scene->versus->margin_ppm / 1e4);
	else if (row->word == VERSUS_UNDECIDED)
		snprintf(
			behind, sizeof(behind), ": B - A is %+.2f %%, between %+.2f and %+.2f %%",
			shift_percent(row, row->shift_ns), shift_percent(row, row->low_ns),
			shift_percent(row, row->high_ns)
		);
	else
		snprintf(
			behind, sizeof(behind), " by %.2f %%, between %.2f and %.2f %%",
			fabs(shift_percent(row, row->shift_ns)),
			fmin(fabs(shift_percent(row, row->low_ns)),
			     fabs(shift_percent(row, row->high_ns))),
			fmax(fabs(shift_percent(row, row->low_ns)),
			     fabs(shift_percent(row, row->high_ns)))
		);
	page_paragraph(
		scene->page, tones[row->word], "%s: %s%s%s.", name,
		row->word == VERSUS_SLOWER || row->word == VERSUS_FASTER ? "B is " : "",
		versus_outcome_name(row->word), behind
	);
}

// Put the number of claims per result, for several sizes.
static void put_claim_counts(const struct scene *scene) {
	uint32_t counts[VERSUS_NO_VALUE + 1] = {0};

	for (uint32_t n = 0; n < scene->result->row_count; n++)
		counts[scene->result->rows[n].word]++;
	page_paragraph(
		scene->page, counts[VERSUS_SLOWER] > 0 ? PAGE_BAD : PAGE_GOOD,
		"Of %u claims B is slower in %u, faster in %u, not changed in %u; %u are undecided.",
		scene->result->claims, counts[VERSUS_SLOWER], counts[VERSUS_FASTER],
		counts[VERSUS_SAME], counts[VERSUS_UNDECIDED] + counts[VERSUS_TOO_FEW_RUNS]
	);
}

// Shifts of one quantile, one value per size.
struct shifts {
	double x[PLAN_SIZES_MAX];
	double shift[PLAN_SIZES_MAX], low[PLAN_SIZES_MAX], high[PLAN_SIZES_MAX];
};

static void put_shifts_of_sizes(const struct scene *scene) {
	static struct shifts shifts[VERSUS_QUANTILES];
	char names[VERSUS_QUANTILES][RESULT_QUANTILE_BYTES];
	struct page_series series[VERSUS_QUANTILES];
	const double zero = 0;

	for (uint32_t n = 0; n < scene->result->row_count; n++) {
		const struct versus_row *row = &scene->result->rows[n];
		struct shifts *of = &shifts[n % VERSUS_QUANTILES];
		uint32_t at = n / VERSUS_QUANTILES;
		bool known = row_has_interval(row);

		of->x[at] = (double)row->size;
		of->shift[at] = known ? shift_percent(row, row->shift_ns) : NAN;
		of->low[at] = known ? shift_percent(row, row->low_ns) : NAN;
		of->high[at] = known ? shift_percent(row, row->high_ns) : NAN;
	}
	for (uint32_t n = 0; n < VERSUS_QUANTILES; n++) {
		result_quantile_name(result_per_million[n], names[n]);
		series[n] = (struct page_series){
			.name = names[n],
			.count = scene->values->size_count,
			.x = shifts[n].x,
			.y = shifts[n].shift,
			.low = shifts[n].low,
			.high = shifts[n].high,
		};
	}
	page_curves(
		scene->page,
		&(struct page_curves){
			.caption = "By how much B is slower, with 95 % intervals over runs",
			.x = {.label = "bytes", .scale = PAGE_LOG},
			.y = {.label = "%"},
			.series_count = VERSUS_QUANTILES,
			.series = series,
			.level = &zero,
		}
	);
}

static void put_shifts(const struct scene *scene) {
	char names[VERSUS_QUANTILES][RESULT_QUANTILE_BYTES];
	const char *ticks[VERSUS_QUANTILES];
	double x[VERSUS_QUANTILES], shift[VERSUS_QUANTILES], low[VERSUS_QUANTILES];
	double high[VERSUS_QUANTILES];
	const double zero = 0;
	bool any = false;

	for (uint32_t n = 0; n < VERSUS_QUANTILES; n++) {
		const struct versus_row *row = &scene->result->rows[n];
		bool known = row_has_interval(row);

		any |= known;
		result_quantile_name(row->per_million, names[n]);
		ticks[n] = names[n];
		x[n] = n;
		shift[n] = known ? shift_percent(row, row->shift_ns) : NAN;
		low[n] = known ? shift_percent(row, row->low_ns) : NAN;
		high[n] = known ? shift_percent(row, row->high_ns) : NAN;
	}
	if (!any)
		return;
	page_curves(
		scene->page,
		&(struct page_curves){
			.caption = "By how much B is slower, with 95 % intervals over runs",
			.x = {.label = "quantile", .ticks = ticks, .tick_count = VERSUS_QUANTILES},
			.y = {.label = "%"},
			.series_count = 1,
			.series =
				&(struct page_series){
					.name = "B against A",
					.count = VERSUS_QUANTILES,
					.x = x,
					.y = shift,
					.low = low,
					.high = high,
					.points = true,
				},
			.level = &zero,
		}
	);
}

// Put a chart with one quantile of each run; runs of one side are next to each other.
static void put_runs(const struct scene *scene, uint32_t place) {
	static const char *const sides[2] = {"A", "B"};
	static double x[2][VERSUS_FILES_MAX], y[2][VERSUS_FILES_MAX];
	char name[RESULT_QUANTILE_BYTES], caption[CELL_BYTES];
	struct page_series series[2];

	result_quantile_name(result_per_million[place], name);
	snprintf(caption, sizeof(caption), "%s of each run", name);
	for (int side = 0; side < 2; side++) {
		uint32_t count = scene->versus->counts[side];

		for (uint32_t n = 0; n < count; n++) {
			x[side][n] = side + 0.6 * ((n + 0.5) / count - 0.5);
			y[side][n] = scene->values->ns[0][place][side][n] / 1e3;
		}
		series[side] = (struct page_series){
			.name = sides[side],
			.count = count,
			.x = x[side],
			.y = y[side],
			.points = true,
		};
	}
	page_curves(
		scene->page,
		&(struct page_curves){
			.caption = caption,
			.x = {.label = "runs, in the order given", .ticks = sides, .tick_count = 2},
			.y = {.label = "us", .scale = PAGE_LOG},
			.series_count = 2,
			.series = series,
		}
	);
}

static void put_row(const struct scene *scene, const struct versus_row *row) {
	char texts[CELLS][CELL_BYTES];
	const char *cells[CELLS];

	for (int n = 0; n < CELLS; n++) {
		texts[n][0] = '\0';
		cells[n] = texts[n];
	}
	format_size_bytes(row->size, texts[0]);
	result_quantile_name(row->per_million, texts[1]);
	if (row->word != VERSUS_NO_VALUE) {
		snprintf(texts[2], CELL_BYTES, "%.3f", row->median_ns[0] / 1e3);
		snprintf(texts[3], CELL_BYTES, "%.3f", row->median_ns[1] / 1e3);
	}
	if (row_has_interval(row)) {
		snprintf(texts[4], CELL_BYTES, "%+.2f %%", shift_percent(row, row->shift_ns));
		snprintf(
			texts[5], CELL_BYTES, "%+.2f to %+.2f %%", shift_percent(row, row->low_ns),
			shift_percent(row, row->high_ns)
		);
		snprintf(texts[6], CELL_BYTES, "%.4f", row->p);
	}
	cells[7] = versus_outcome_name(row->word);
	page_table_row(scene->page, cells, CELLS);
}

static void put_table(const struct scene *scene) {
	static const char *const columns[CELLS] = {
		"size", "", "A, us", "B, us", "shift", "95 % interval", "p", "result",
	};

	page_table_begin_noted(scene->page, columns, CELLS);
	for (uint32_t n = 0; n < scene->result->row_count; n++)
		put_row(scene, &scene->result->rows[n]);
	page_table_end(scene->page);
}

static void put_files(const struct scene *scene) {
	static const char *const columns[2] = {"side", "file"};

	page_fold_begin(scene->page, "Files");
	page_table_begin(scene->page, columns, 2);
	for (int side = 0; side < 2; side++) {
		for (uint32_t n = 0; n < scene->versus->counts[side]; n++) {
			const char *cells[2] = {
				side == 0 ? "A" : "B", scene->versus->paths[side][n]};

			page_table_row(scene->page, cells, 2);
		}
	}
	page_table_end(scene->page);
	page_fold_end(scene->page);
	page_fold_begin(scene->page, "How to read this");
	page_paragraph(
		scene->page, PAGE_PLAIN,
		"The unit is a run: each file gives one value of each quantile. The shift is the "
		"Hodges-Lehmann estimate; p is from the exact Mann-Whitney test, adjusted by Holm's "
		"method over all claims. \"no change\" is a claim of its own: the 90 %% interval lies "
		"within the margin."
	);
	page_fold_end(scene->page);
}

static void put_plans(const struct scene *scene) {
	const char *a = scene->result->plans[0], *b = scene->result->plans[1];

	if (strcmp(a, b) == 0) {
		page_paragraph(scene->page, PAGE_PLAIN, "Both: %.460s.", a);
		return;
	}
	page_paragraph(scene->page, PAGE_PLAIN, "A: %.460s.", a);
	page_paragraph(scene->page, PAGE_PLAIN, "B: %.460s.", b);
}

static void put_page(const struct scene *scene) {
	bool one_size = scene->values->size_count == 1;

	page_paragraph(
		scene->page, PAGE_PLAIN,
		"A: %u run%s; B: %u; p adjusted by Holm's method over %u claim%s.",
		scene->versus->counts[0], PLURAL(scene->versus->counts[0]),
		scene->versus->counts[1], scene->result->claims, PLURAL(scene->result->claims)
	);
	put_plans(scene);
	if (scene->result->same_runs)
		page_paragraph(scene->page, PAGE_PLAIN, VERSUS_SAME_RUNS);
	for (uint32_t n = 0; n < scene->result->row_count && one_size; n++)
		put_claim(scene, &scene->result->rows[n]);
	if (one_size) {
		put_shifts(scene);
		put_runs(scene, 0);
		put_runs(scene, 2);
	} else {
		put_claim_counts(scene);
		put_shifts_of_sizes(scene);
	}
	put_table(scene);
	put_files(scene);
}

int page_versus(
	const struct versus *versus,
	const struct versus_values *values,
	const struct versus_result *result,
	const char *path,
	struct lab_why *why
) {
	struct scene scene = {.versus = versus, .values = values, .result = result};
	char title[TITLE_BYTES];
	int err;

	snprintf(title, sizeof(title), "Is B slower than A? %.16s", result->op);
	err = page_create(title, &scene.page);
	if (err != 0)
		return lab_fail(why, err, "no memory for the page");
	put_page(&scene);
	err = page_save(scene.page, path, why);
	page_destroy(scene.page);
	return err;
}
