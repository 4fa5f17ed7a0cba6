// SPDX-License-Identifier: BSD-3-Clause
// Charts as JSON, drawn by page.js.
#include "page_impl.h"

#include <lib/must.h>

#include <jansson.h>

#include <math.h>
#include <stdlib.h>

// Steps of a heat map cell, relative to the largest count of its column; one letter each, from "?"
// to "~".
#define CELL_STEPS 63
#define MARKS_LAST 64 // number of previous texts that a mark is compared with

// JSON cannot represent NaN or infinity; null stands for them.
static json_t *json_finite(double value) {
	return isfinite(value) ? json_real(value) : json_null();
}

static json_t *json_numbers(const double *values, uint32_t count) {
	json_t *array = json_array();
	int failed = 0;

	for (uint32_t n = 0; n < count; n++)
		failed |= json_array_append_new(array, json_finite(values[n]));
	if (failed == 0)
		return array;
	json_decref(array);
	return NULL;
}

// Convert a text; invalid UTF-8 becomes "?", because names come from other machines.
static json_t *json_text(const char *value) {
	json_t *string = json_string(value);

	return string != NULL ? string : json_string("?");
}

// Convert texts; NULL becomes null.
static json_t *json_texts(const char *const *values, uint32_t count) {
	json_t *array = json_array();
	int failed = 0;

	for (uint32_t n = 0; n < count; n++)
		failed |= json_array_append_new(
			array, values[n] != NULL ? json_text(values[n]) : json_null()
		);
	if (failed == 0)
		return array;
	json_decref(array);
	return NULL;
}

static const char *scale_name(enum page_scale scale) {
	static const char *const names[] = {
		[PAGE_LINEAR] = "linear", [PAGE_LOG] = "log", [PAGE_TAIL] = "tail"};

	return names[scale];
}

static json_t *axis_json(const struct page_axis *axis) {
	return json_pack(
		"{s:o s:s s:o}", "label", json_text(axis->label), "scale", scale_name(axis->scale),
		"ticks",
		axis->ticks != NULL ? json_texts(axis->ticks, axis->tick_count) : json_null()
	);
}

static json_t *series_json(const struct page_series *series) {
	uint32_t count = series->count;

	return json_pack(
		"{s:o s:o s:o s:o s:o s:o s:b}", "name", json_text(series->name), "x",
		series->x != NULL ? json_numbers(series->x, count) : json_null(), "y",
		json_numbers(series->y, count), "low",
		series->low != NULL ? json_numbers(series->low, count) : json_null(), "high",
		series->high != NULL ? json_numbers(series->high, count) : json_null(), "labels",
		series->labels != NULL ? json_texts(series->labels, count) : json_null(), "points",
		series->points
	);
}

static json_t *all_series_json(const struct page_series *series, uint32_t count) {
	json_t *array = json_array();
	int failed = 0;

	for (uint32_t n = 0; n < count; n++)
		failed |= json_array_append_new(array, series_json(&series[n]));
	if (failed == 0)
		return array;
	json_decref(array);
	return NULL;
}

void page_curves(struct page *page, const struct page_curves *curves) {
	page_put_chart(
		page, curves->caption,
		json_pack(
			"{s:s s:o s:o s:o s:o}", "kind", "curves", "x", axis_json(&curves->x), "y",
			axis_json(&curves->y), "series",
			all_series_json(curves->series, curves->series_count), "level",
			curves->level != NULL ? json_finite(*curves->level) : json_null()
		)
	);
}

// Encode each count, relative to the largest one of its column, as one letter. This is compact and
// precise enough for a shade.
static char *course_to_letters(const struct page_course *course) {
	size_t count = (size_t)course->columns * course->rows;
	char *letters = calloc(count + 1, 1);

	for (uint32_t column = 0; column < course->columns && letters != NULL; column++) {
		const uint64_t *counts = course->counts + (size_t)column * course->rows;
		uint64_t largest = 1;

		for (uint32_t row = 0; row < course->rows; row++)
			largest = counts[row] > largest ? counts[row] : largest;
		for (uint32_t row = 0; row < course->rows; row++) {
			// The square root makes rare samples visible, which are the purpose of a
			// heat map.
			double share = sqrt((double)counts[row] / (double)largest);

			letters[(size_t)column * course->rows + row] =
				(char)('?' + (int)ceil(CELL_STEPS * share));
		}
	}
	return letters;
}

void page_course(struct page *page, const struct page_course *course) {
	char *letters = course_to_letters(course);

	if (letters == NULL) {
		page->failed = true;
		return;
	}
	// JSON escapes the backslash among the letters.
	page_put_chart(
		page, course->caption,
		json_pack(
			"{s:s s:s s:s s:o s:I s:I s:f s:f s:s s:o s:o}", "kind", "course",
			"x_label", course->x_label, "y_label", course->y_label, "edges",
			json_numbers(course->edges, course->columns + 1), "columns",
			(json_int_t)course->columns, "rows", (json_int_t)course->rows, "low",
			course->low, "high", course->high, "cells", letters, "lines",
			all_series_json(course->lines, course->line_count), "cuts",
			json_numbers(course->cuts, course->cut_count)
		)
	);
	free(letters);
}

// Convert marks to positions with text indexes. Few cells are marked, often for the same reason, so
// each text is stored once.
static json_t *marks_json(const char *const *marks, uint32_t count) {
	json_t *texts = json_array(), *places = json_array();
	const char *last[MARKS_LAST] = {NULL};
	size_t texts_count = 0;
	int failed = 0;

	for (uint32_t n = 0; marks != NULL && n < count; n++) {
		size_t text = texts_count,
		       oldest = texts_count < MARKS_LAST ? 0 : texts_count - MARKS_LAST;

		if (marks[n] == NULL)
			continue;
		while (text > oldest && last[(text - 1) % MARKS_LAST] != marks[n])
			text--;
		if (text-- == oldest) {
			text = texts_count++;
			last[text % MARKS_LAST] = marks[n];
			failed |= json_array_append_new(texts, json_text(marks[n]));
		}
		failed |= json_array_append_new(places, json_integer(n));
		failed |= json_array_append_new(places, json_integer((json_int_t)text));
	}
	if (failed == 0)
		return json_pack("{s:o s:o}", "texts", texts, "places", places);
	json_decref(texts);
	json_decref(places);
	return NULL;
}

void page_matrix(struct page *page, const struct page_matrix *matrix) {
	uint32_t pairs = matrix->count * matrix->count;

	must(matrix->count <= PAGE_MATRIX_MAX);
	page_put_chart(
		page, matrix->caption,
		json_pack(
			"{s:s s:o s:o s:o s:o}", "kind", "matrix", "unit", json_text(matrix->unit),
			"names", json_texts(matrix->names, matrix->count), "values",
			json_numbers(matrix->values, pairs), "marks",
			marks_json(matrix->marks, pairs)
		)
	);
}
