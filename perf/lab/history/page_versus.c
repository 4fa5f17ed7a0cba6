// SPDX-License-Identifier: BSD-3-Clause
// Page of a comparison: claims, intervals and the value of every run.
#include "history/page_versus.h"

#include "report/page_parts.h"

#include <lib/parse.h>

#include <jansson.h>

#include <math.h>
#include <page.h>
#include <stdio.h>

#define TITLE_BYTES 160
#define HEADLINE_BYTES 160

static json_t *row_json(const struct versus_row *row) {
	static const char *const keys[] = {
		[VERSUS_SLOWER] = "slower",
		[VERSUS_FASTER] = "faster",
		[VERSUS_SAME] = "same",
		[VERSUS_UNDECIDED] = "undecided",
		[VERSUS_TOO_FEW_RUNS] = "too_few_runs",
		[VERSUS_NO_VALUE] = "no_value",
	};
	bool has_value = row->word != VERSUS_NO_VALUE;
	bool has_interval = has_value && row->word != VERSUS_TOO_FEW_RUNS;
	char name[RESULT_QUANTILE_BYTES], size[PARSE_TEXT_BYTES];

	result_quantile_name(row->per_million, name);
	format_size_bytes(row->size, size);
	return json_pack(
		"{s:s s:I s:s s:s s:s s:o s:o s:o s:o s:o s:o}", "size", size, "size_bytes",
		(json_int_t)row->size, "name", name, "outcome", keys[row->word], "says",
		versus_outcome_name(row->word), "a_ns",
		page_number(has_value ? row->median_ns[0] : NAN), "b_ns",
		page_number(has_value ? row->median_ns[1] : NAN), "shift",
		page_number(has_interval ? 100 * row->share : NAN), "low",
		page_number(has_interval ? 100 * row->share_low : NAN), "high",
		page_number(has_interval ? 100 * row->share_high : NAN), "p",
		page_number(has_interval ? row->p : NAN)
	);
}

static json_t *rows_json(const struct versus_result *result) {
	json_t *array = json_array();
	int failed = 0;

	for (uint32_t n = 0; n < result->row_count; n++)
		failed |= json_array_append_new(array, row_json(&result->rows[n]));
	if (failed == 0)
		return array;
	json_decref(array);
	return NULL;
}

// Convert one side: its plan, its files, and p50 and p99 of each run of the first size.
static json_t *side_json(
	const struct versus *versus, const struct versus_values *values, const char *plan, int n
) {
	const double(*ns)[2][VERSUS_FILES_MAX] = values->ns[0];
	uint32_t count = versus->counts[n];
	json_t *paths = json_array();
	int failed = 0;

	for (uint32_t run = 0; run < count; run++)
		failed |= json_array_append_new(paths, page_text(versus->paths[n][run]));
	return json_pack(
		"{s:o s:o s:o s:o}", "plan", page_text(plan), "paths", failed == 0 ? paths : NULL,
		"p50_ns", page_numbers(ns[0][n], count), "p99_ns", page_numbers(ns[2][n], count)
	);
}

int page_versus(
	const struct versus *versus,
	const struct versus_values *values,
	const struct versus_result *result,
	const char *path,
	struct lab_why *why
) {
	char title[TITLE_BYTES], headline[HEADLINE_BYTES];
	struct page page = {.title = title, .headline = headline, .kind = "versus"};

	snprintf(title, sizeof(title), "Is B slower than A? %.16s", result->op);
	snprintf(
		headline, sizeof(headline),
		"A: %u run%s; B: %u; p adjusted by Holm's method over %u claim%s.",
		versus->counts[0], PLURAL(versus->counts[0]), versus->counts[1], result->claims,
		PLURAL(result->claims)
	);
	return page_save(
		&page,
		json_pack(
			"{s:{s:s s:b s:s s:I s:I s:I s:I s:o s:o s:o}}", "page", "headline",
			headline, "same_runs", result->same_runs, "same_runs_says",
			VERSUS_SAME_RUNS, "sizes", (json_int_t)values->size_count, "claims",
			(json_int_t)result->claims, "runs_least", (json_int_t)result->runs_least,
			"margin_ppm", (json_int_t)versus->margin_ppm, "a",
			side_json(versus, values, result->plans[0], 0), "b",
			side_json(versus, values, result->plans[1], 1), "rows", rows_json(result)
		),
		path, why
	);
}
