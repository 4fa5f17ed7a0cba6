// SPDX-License-Identifier: BSD-3-Clause
// Page of a history: runs in order, with the median between changes.
#include "history/page_history.h"

#include "report/page_parts.h"

#include <lib/parse.h>

#include <jansson.h>

#include <errno.h>
#include <math.h>
#include <page.h>

// Limit of the points of all charts, which keeps a page below 500 KiB. The newest runs are drawn.
#define POINTS_MAX 12000u
#define DRAWN_MIN 20u
#define DRAWN_MAX 400u

static uint32_t runs_drawn_per_series(const struct history *history) {
	uint32_t each = POINTS_MAX / HISTORY_QUANTILES / history->series_count;

	return each < DRAWN_MIN ? DRAWN_MIN : each > DRAWN_MAX ? DRAWN_MAX : each;
}

// Convert the newest change; null if there is none.
static json_t *change_json(
	const struct history *history,
	const struct history_series *series,
	const struct history_quantile *quantile
) {
	const struct history_change *change;
	double share;

	if (quantile->part_count < 2)
		return json_null();
	change = &quantile->changes[quantile->part_count - 2];
	share = change->share;
	return json_pack(
		"{s:o s:b s:b s:o s:o}", "share", page_number(share), "matters", quantile->matters,
		"within_margin", !(fabs(share) * 1e6 > history->margin_ppm), "started",
		page_text(series->runs[change->first].started), "path",
		page_text(series->runs[change->first].path)
	);
}

// Convert the level of each part to [first run, last run, ns], for parts with a run that is drawn.
static json_t *
levels_json(const struct history_quantile *quantile, uint32_t first_drawn, uint32_t end) {
	json_t *array = json_array();
	int failed = 0;

	for (uint32_t n = 0; n < quantile->part_count; n++) {
		uint32_t first = quantile->parts[n].first;
		uint32_t next = n + 1 < quantile->part_count ? quantile->parts[n + 1].first : end;

		if (next <= first_drawn)
			continue;
		first = first > first_drawn ? first : first_drawn;
		failed |= json_array_append_new(
			array, json_pack(
				       "[I,I,o]", (json_int_t)first + 1, (json_int_t)next,
				       page_number(
					       n > 0 ? quantile->changes[n - 1].after_ns
						     : quantile->first_ns
				       )
			       )
		);
	}
	if (failed == 0)
		return array;
	json_decref(array);
	return NULL;
}

static json_t *quantile_json(
	const struct history *history,
	const struct history_series *series,
	uint32_t place,
	uint32_t first_drawn
) {
	const struct history_quantile *quantile = &series->quantiles[place];
	json_t *value = json_array(), *low = json_array(), *high = json_array();
	char name[RESULT_QUANTILE_BYTES];
	int failed = 0;

	result_quantile_name(result_per_million[place], name);
	for (uint32_t n = first_drawn; n < series->run_count; n++) {
		const struct history_run *run = &series->runs[n];

		failed |= json_array_append_new(value, page_number(run->value_ns[place]));
		failed |= json_array_append_new(low, page_number(run->low_ns[place]));
		failed |= json_array_append_new(high, page_number(run->high_ns[place]));
	}
	return json_pack(
		"{s:s s:b s:I s:o s:o s:o s:o s:o s:o}", "name", name, "too_few", quantile->too_few,
		"parts", (json_int_t)quantile->part_count, "detectable",
		page_number(quantile->detectable), "change", change_json(history, series, quantile),
		"levels", levels_json(quantile, first_drawn, series->run_count), "value_ns",
		failed == 0 ? value : NULL, "low_ns", low, "high_ns", high
	);
}

static json_t *
series_json(const struct history *history, const struct history_series *series, uint32_t drawn) {
	uint32_t first_drawn = series->run_count > drawn ? series->run_count - drawn : 0;
	json_t *quantiles = json_array();
	char size[PARSE_TEXT_BYTES];
	int failed = 0;

	format_size_bytes(series->size, size);
	for (uint32_t place = 0; place < HISTORY_QUANTILES; place++)
		failed |= json_array_append_new(
			quantiles, quantile_json(history, series, place, first_drawn)
		);
	return json_pack(
		"{s:s s:o s:I s:I s:o s:o s:o}", "size", size, "key", page_text(series->key),
		"runs", (json_int_t)series->run_count, "first_drawn", (json_int_t)first_drawn,
		"started", page_text(series->runs[0].started), "ended",
		page_text(series->runs[series->run_count - 1].started), "quantiles",
		failed == 0 ? quantiles : NULL
	);
}

static json_t *history_json(const struct history *history) {
	json_t *all = json_array(), *left_out = json_array();
	int failed = 0;

	for (uint32_t n = 0; n < history->series_count; n++)
		failed |= json_array_append_new(
			all,
			series_json(history, &history->series[n], runs_drawn_per_series(history))
		);
	for (uint32_t n = 0; n < history->left_out_count; n++)
		failed |= json_array_append_new(
			left_out, json_pack(
					  "{s:o s:o}", "path", page_text(history->left_out[n].path),
					  "why", page_text(history->left_out[n].why)
				  )
		);
	return json_pack(
		"{s:{s:o s:o}}", "page", "histories", failed == 0 ? all : NULL, "left_out", left_out
	);
}

int page_history(const struct history *history, const char *path, struct lab_why *why) {
	struct page page = {
		.title = "Since when is it slower?",
		.headline = history_is_slower(history)
				    ? "The newest runs are slower."
				    : "The newest runs are not found to be slower.",
		.kind = "history",
	};

	return page_save(&page, history_json(history), path, why);
}
