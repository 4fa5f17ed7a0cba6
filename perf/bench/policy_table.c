// SPDX-License-Identifier: BSD-3-Clause
// Targets of a cell, and the output. A target is missed only if the whole interval misses it.
//
// C, the cost of one block-and-wake, depends on the length of the sleep. The policy knows C of
// short sleeps, measured at start. The actual C of a cell is the time added by the policy that
// always blocks.
#include "policy.h"

#include <jansson.h>

#include <math.h>
#include <string.h>

#define OF_SPIN_MAX 1.05
#define CPU_SHARE_MAX 1
#define CPU_SHARE_RATE 100 // maximum operations per second for which the limit applies
#define OF_BLOCK_MAX 1.3
#define RATIO_MAX 2.1

struct metric {
	const char *what;
	const char *unit;
	const char *yardstick;
	enum policy_metric judged; // metric that the target applies to
};

// The remaining two metrics only serve to judge some of these.
static const struct metric metrics[POLICY_OF_SPIN] = {
	[POLICY_TOOK_P50] = {"p50 from posted to seen", "us", "spin", POLICY_OF_SPIN},
	[POLICY_ADDED_P50] = {"p50 added", "us", "event", POLICY_OF_BLOCK},
	[POLICY_ADDED_P90] = {"p90 added", "us", "spin", POLICY_ADDED_P90},
	[POLICY_ADDED_P99] = {"p99 added", "us", "spin", POLICY_ADDED_P99},
	[POLICY_ADDED_P999] = {"p99.9 added", "us", "spin", POLICY_ADDED_P999},
	[POLICY_LATE_P50] = {"p50 posted late", "us", "spin", POLICY_LATE_P50},
	[POLICY_CPU_PER_OP] = {"processor per operation", "us", "spin", POLICY_CPU_PER_OP},
	[POLICY_CPU_SHARE] = {"processor", "%", "spin", POLICY_CPU_SHARE},
	[POLICY_WAKES] = {"wakes per operation", "", "spin", POLICY_WAKES},
	[POLICY_RATIO] = {"competitive ratio", "", "optimum", POLICY_RATIO},
};

// Return true for long operations whose times differ by more than C.
static bool cell_is_unpredictable(const struct policy_result *result) {
	return result->cell.mean_ns > result->block_ns &&
	       policy_law_iqr_ns(&result->cell) >= result->block_ns;
}

// Return the upper bound of a metric; 0: none.
static double target_of(
	const struct policy_result *result,
	enum policy_contender contender,
	enum policy_metric metric
) {
	bool unpredictable = cell_is_unpredictable(result);

	if (contender == POLICY_BLIND)
		return metric == POLICY_RATIO ? RATIO_MAX : 0;
	if (contender != POLICY_ADAPTIVE)
		return 0;
	if (metric == POLICY_ADDED_P50)
		return unpredictable ? OF_BLOCK_MAX : 0;
	if (metric == POLICY_TOOK_P50)
		return unpredictable ? 0 : OF_SPIN_MAX;
	if (metric == POLICY_CPU_SHARE && !unpredictable)
		return result->cell.rate <= CPU_SHARE_RATE ? CPU_SHARE_MAX : 0;
	return 0;
}

static void format_cell(const struct policy_cell *cell, char *text, size_t size) {
	bool whole_ms = cell->mean_ns >= 1000000;

	snprintf(
		text, size, "%.4g %s %s, %s, %u/s", (double)cell->mean_ns / (whole_ms ? 1e6 : 1e3),
		whole_ms ? "ms" : "us", policy_law_name(cell->law),
		policy_arrival_name(cell->arrival), cell->rate
	);
}

static void print_value(double value, int width, int decimals) {
	if (isnan(value))
		printf(" %*s", width, "-");
	else
		printf(" %*.*f", width, decimals, value);
}

void policy_table_head(uint64_t block_ns) {
	printf("C, one block-and-wake: %.1f us after short sleeps, in a cell what event adds. Medians "
	       "of %d\nslices; times in us; added: after it was complete; late: posted after it was "
	       "asked for;\nwindow: 100 us; blind: adaptive that foresees nothing.\n\n",
	       (double)block_ns / 1e3, POLICY_SLICES);
	printf("%-9s %8s %7s | added %7s %8s %8s %8s | %7s %7s %6s %5s %5s\n", "", "p50", "of spin",
	       "p50", "p90", "p99", "p99.9", "late", "cpu/op", "cpu %", "wakes", "ratio");
}

static void print_contender(const struct policy_spread *spreads, enum policy_contender contender) {
	printf("%-9s", policy_contender_name(contender));
	print_value(spreads[POLICY_TOOK_P50].median, 8, 2);
	print_value(spreads[POLICY_OF_SPIN].median, 7, 3);
	print_value(spreads[POLICY_ADDED_P50].median, 15, 2);
	print_value(spreads[POLICY_ADDED_P90].median, 8, 2);
	print_value(spreads[POLICY_ADDED_P99].median, 8, 2);
	print_value(spreads[POLICY_ADDED_P999].median, 8, 2);
	print_value(spreads[POLICY_LATE_P50].median, 9, 2);
	print_value(spreads[POLICY_CPU_PER_OP].median, 7, 1);
	print_value(spreads[POLICY_CPU_SHARE].median, 6, 2);
	print_value(spreads[POLICY_WAKES].median, 5, 2);
	print_value(spreads[POLICY_RATIO].median, 5, 2);
	printf("\n");
}

static bool print_target(
	const struct policy_result *result,
	enum policy_contender contender,
	enum policy_metric metric
) {
	double target = target_of(result, contender, metric);
	const struct policy_spread *judged = &result->spreads[contender][metrics[metric].judged];
	bool of_yardstick = metrics[metric].judged != metric;
	bool ok = !(judged->low > target);

	if (target == 0)
		return true;
	printf("  %s %s: %.3f%s%s [%.3f, %.3f], at most %.4g: %s", policy_contender_name(contender),
	       metrics[metric].what, judged->median, of_yardstick ? " of " : "",
	       of_yardstick ? metrics[metric].yardstick : "", judged->low, judged->high, target,
	       ok ? "ok" : "MISSED");
	if (metric == POLICY_ADDED_P50)
		printf(" (%.2f C)",
		       1e3 * result->spreads[contender][metric].median / (double)result->block_ns);
	printf("\n");
	return ok;
}

uint32_t policy_table_print(const struct policy_result *result) {
	uint32_t missed = 0;
	char cell[64];

	format_cell(&result->cell, cell, sizeof(cell));
	printf("\n%s\n", cell);
	for (enum policy_contender n = 0; n < POLICY_CONTENDERS; n++)
		print_contender(result->spreads[n], n);
	for (enum policy_contender n = 0; n < POLICY_CONTENDERS; n++)
		for (enum policy_metric metric = 0; metric < POLICY_OF_SPIN; metric++)
			missed += print_target(result, n, metric) ? 0 : 1;
	fflush(stdout);
	return missed;
}

// Return the ratio of a value to its yardstick. It is the ratio of medians, unless the rounds were
// compared one by one.
static double yardstick_ratio(
	const struct policy_result *result,
	enum policy_contender contender,
	enum policy_metric metric
) {
	const struct policy_spread *spreads = result->spreads[contender];
	double yardstick = result->spreads[POLICY_SPIN][metric].median;

	if (metric == POLICY_RATIO || metrics[metric].judged != metric)
		return spreads[metrics[metric].judged].median;
	return yardstick > 0 ? spreads[metric].median / yardstick : NAN;
}

static json_t *json_number_or_null(double value) {
	return isfinite(value) ? json_real(value) : json_null();
}

static json_t *json_row(
	const struct policy_result *result,
	enum policy_contender contender,
	enum policy_metric metric
) {
	const struct metric *named = &metrics[metric];
	const struct policy_spread *spread = &result->spreads[contender][metric];
	const struct policy_spread *judged = &result->spreads[contender][named->judged];
	double target = target_of(result, contender, metric);
	char cell[64], what[160];

	format_cell(&result->cell, cell, sizeof(cell));
	snprintf(
		what, sizeof(what), "%s: %s, %s", cell, policy_contender_name(contender),
		named->what
	);
	return json_pack(
		"{s:s s:f s:f s:f s:s s:s s:o s:o s:s? s:o}", "what", what, "value", spread->median,
		"low", spread->low, "high", spread->high, "unit", named->unit, "yardstick",
		named->yardstick, "ratio",
		json_number_or_null(yardstick_ratio(result, contender, metric)), "target",
		target > 0 ? json_real(target) : json_null(), "target_of",
		target == 0		  ? NULL
		: named->judged == metric ? "value"
					  : "ratio",
		"ok", target > 0 ? json_boolean(!(judged->low > target)) : json_null()
	);
}

int policy_table_json(const struct policy_result *result, void *rows) {
	for (enum policy_contender n = 0; n < POLICY_CONTENDERS; n++) {
		for (enum policy_metric metric = 0; metric < POLICY_OF_SPIN; metric++) {
			if (isnan(result->spreads[n][metric].median))
				continue;
			if (json_array_append_new(rows, json_row(result, n, metric)) != 0)
				return -1;
		}
	}
	return 0;
}
