// SPDX-License-Identifier: BSD-3-Clause
// Table of the software device's benchmark.
#include "soft_table.h"

#include "soft.h"

#include <stdio.h>

// Indexes of the second and eighth of nine sorted values: the median lies between them with 96 %
// probability.
#define INTERVAL_LOW 1
#define INTERVAL_HIGH 7

static_assert(sizeof(((struct soft_slices *)0)->values) == SOFT_SLICES * sizeof(double), "nine");

static json_t *real_or_null(bool there, double value) {
	return there ? json_real(value) : json_null();
}

static json_t *make_row(const struct soft_head *head) {
	bool aimed = head->target > 0;

	return json_pack(
		"{s:s s:s s:s? s:o s:s? s:s?}", "what", head->what, "unit", head->unit, "yardstick",
		head->yardstick, "target", real_or_null(aimed, head->target), "target_of",
		!aimed				    ? NULL
		: head->judged == SOFT_JUDGED_RATIO ? "ratio"
						    : "value",
		"target_is",
		!aimed		 ? NULL
		: head->at_least ? "minimum"
				 : "maximum"
	);
}

json_t *soft_table_row(const struct soft_head *head, struct soft_slices *slices) {
	double ratios[SOFT_SLICES], *judged, value, yardstick, ratio, low, high;
	bool beside = head->yardstick != NULL;
	json_t *row = make_row(head);

	for (uint32_t n = 0; n < SOFT_SLICES; n++)
		ratios[n] = beside ? slices->values[n] / slices->yardsticks[n] : 0;
	judged = head->judged == SOFT_JUDGED_RATIO ? ratios : slices->values;
	value = soft_median(slices->values, SOFT_SLICES);
	yardstick = soft_median(slices->yardsticks, SOFT_SLICES);
	ratio = soft_median(ratios, SOFT_SLICES);
	low = judged[INTERVAL_LOW];
	high = judged[INTERVAL_HIGH];
	json_object_update_new(
		row, json_pack(
			     "{s:f s:o s:o s:[f,f] s:o}", "value", value, "yardstick_value",
			     real_or_null(beside, yardstick), "ratio", real_or_null(beside, ratio),
			     "interval", low, high, "ok",
			     head->target <= 0 ? json_null()
					       : json_boolean(
							 head->at_least ? high >= head->target
									: low <= head->target
						 )
		     )
	);
	return row;
}

json_t *soft_table_missing(const struct soft_head *head, const char *why) {
	json_t *row = make_row(head);

	json_object_update_new(
		row, json_pack(
			     "{s:n s:n s:n s:n s:n s:s}", "value", "yardstick_value", "ratio",
			     "interval", "ok", "missing", why
		     )
	);
	return row;
}

static const char *row_text(const json_t *row, const char *key) {
	return json_string_value(json_object_get(row, key));
}

static double row_number(const json_t *row, const char *key) {
	return json_number_value(json_object_get(row, key));
}

bool soft_table_ok(const json_t *row) {
	return row_text(row, "missing") == NULL && !json_is_false(json_object_get(row, "ok"));
}

void soft_table_print_head(void) {
	printf("%-38s %7s %-6s %7s %6s %7s %7s  %s\n", "medians of 9 slices", "value", "", "beside",
	       "ratio", "from", "to", "target");
}

// Print four significant digits in seven columns.
static void print_number(double value) {
	double size = value < 0 ? -value : value;

	printf(" %7.*f", size < 10 ? 3 : size < 100 ? 2 : size < 1000 ? 1 : 0, value);
}

static void print_target(const json_t *row) {
	const char *is = row_text(row, "target_is");

	if (is != NULL)
		printf("  %s %.4g %s", is[1] == 'i' ? ">=" : "<=", row_number(row, "target"),
		       soft_table_ok(row) ? "ok" : "MISSED");
	printf("\n");
}

void soft_table_print(const json_t *row) {
	const json_t *interval = json_object_get(row, "interval");
	const char *missing = row_text(row, "missing"), *yardstick = row_text(row, "yardstick");

	printf("%-38s", row_text(row, "what"));
	if (missing != NULL) {
		printf(" missing\n    %s\n", missing);
		fflush(stdout);
		return;
	}
	print_number(row_number(row, "value"));
	printf(" %-6s", row_text(row, "unit"));
	if (yardstick != NULL) {
		print_number(row_number(row, "yardstick_value"));
		printf(" %6.2f", row_number(row, "ratio"));
	} else {
		printf(" %7s %6s", "", "");
	}
	print_number(json_number_value(json_array_get(interval, 0)));
	print_number(json_number_value(json_array_get(interval, 1)));
	print_target(row);
	if (yardstick != NULL)
		printf("    beside: %s\n", yardstick);
	fflush(stdout);
}
