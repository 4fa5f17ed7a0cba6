// SPDX-License-Identifier: BSD-3-Clause
// tocsin-truth-bench [--json]: how often the laboratory's results are true, over many generated
// runs. The exit status is 1 if a share is outside its promised range.
#include "perf/stats/truth.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define COVERAGE_REPETITIONS 1000
#define REPETITIONS 400
#define COMPARE_SAMPLES 20000
#define HARDLY_ANY 0.05 // share of runs
#define WRONG_MOST 0.05
#define DECIDED_LEAST 0.95

struct report {
	bool json, failed;
	int count;
};

static bool is_within(double value, double least, double most) {
	return isnan(value) || (value >= least && value <= most);
}

// Print one share with its allowed range.
static void
row(struct report *report, const char *of, const char *what, double value, double least, double most
) {
	bool good = is_within(value, least, most);

	report->failed |= !good;
	if (report->json && !isnan(value))
		printf("%s\n  {\"what\": \"%s: %s\", \"value\": %.4f, \"unit\": \"\", "
		       "\"yardstick\": null, \"ratio\": null, \"target\": [%g, %g], \"ok\": %s}",
		       report->count++ > 0 ? "," : "", of, what, value, least, most,
		       good ? "true" : "false");
	else if (!report->json)
		printf("%-32s %-30s %6.3f  %5.2f .. %-5.2f %s\n", of, what, value, least, most,
		       good ? "reached" : "MISSED");
	fflush(stdout);
}

// Print all shares of one quantile in one line.
static void coverage_row(
	struct report *report, const struct truth_row *asked, int q, struct truth_coverage *told
) {
	static const char *const names[TRUTH_QUANTILES] = {"p50", "p99", "p99.9"};
	bool spare = !(asked->printed_least[q] > 0) && told->printed[q] <= HARDLY_ANY;
	double held_least = spare ? 0 : asked->held_least[q];
	double width_most = spare ? INFINITY : asked->width_most;
	double wrong_most = asked->held_least[q] > 0 ? WRONG_MOST : 1;
	// A threshold near the truth is decided only by the independent samples of long runs.
	bool decides = asked->storms == NULL && !(asked->memory > 0) && asked->samples >= 20000;
	double decided_least = decides && q < 2 ? DECIDED_LEAST : 0;
	char of[48];
	bool good = is_within(told->held[q], held_least, 1) &&
		    is_within(told->width[q], 0, width_most) &&
		    told->printed[q] >= asked->printed_least[q] && told->failed[q] <= wrong_most &&
		    told->passed[q] <= wrong_most && told->decided[q] >= decided_least;

	snprintf(of, sizeof(of), "%s n=%u %s", asked->name, asked->samples, names[q]);
	if (report->json) {
		row(report, of, "printed", told->printed[q], asked->printed_least[q], 1);
		row(report, of, "intervals that hold it", told->held[q], held_least, 1);
		row(report, of, "width by the true one", told->width[q], 0, fmin(width_most, 1e9));
		row(report, of, "wrong FAILED at the truth", told->failed[q], 0, wrong_most);
		row(report, of, "wrong ok at the truth", told->passed[q], 0, wrong_most);
		row(report, of, "decided at 10 % off", told->decided[q], decided_least, 1);
		return;
	}
	report->failed |= !good;
	printf("%-28s %5.1f %5.1f %6.2f %6.1f %5.1f %8.1f   ", of, 100 * told->printed[q],
	       100 * told->held[q], told->width[q], 100 * told->failed[q], 100 * told->passed[q],
	       100 * told->decided[q]);
	if (!(asked->held_least[q] > 0))
		printf("no target\n");
	else if (asked->printed_least[q] > 0)
		printf(">= %.0f of >= %.0f  %s\n", 100 * asked->held_least[q],
		       100 * asked->printed_least[q], good ? "reached" : "MISSED");
	else
		printf(">= %.0f or none    %s\n", 100 * asked->held_least[q],
		       good ? "reached" : "MISSED");
	fflush(stdout);
}

static void coverage_rows(struct report *report) {
	if (!report->json)
		printf("shares in percent of runs         in- of them     wrong --fail-if  decided\n"
		       "                           tervals  hold  width  FAILED    ok  10 %% off   "
		       "asked for\n");
	for (int n = 0; n < TRUTH_ROWS; n++) {
		const struct truth_row *asked = &truth_rows[n];
		struct truth_coverage told;

		truth_coverage(asked, COVERAGE_REPETITIONS, (uint64_t)n + 1, &told);
		for (int q = 0; q < TRUTH_QUANTILES; q++) {
			if (told.printed[q] > 0 || asked->held_least[q] > 0)
				coverage_row(report, asked, q, &told);
		}
		if (asked->storms == NULL)
			row(report, asked->name, "runs that are cut", told.changed, 0, 0.05);
	}
}

static void other_rows(struct report *report) {
	struct truth_changes changes;
	struct truth_comparison told;

	truth_changes(REPETITIONS, 11, &changes);
	row(report, "second half 10 % slower", "told as two, cut within 3 %", changes.shifted, 0.9,
	    1);
	row(report, "second half's tail twice as long", "told as two, cut within 3 %", changes.tail,
	    0.9, 1);
	truth_comparison(REPETITIONS, COMPARE_SAMPLES, 12, &told);
	row(report, "compare 10 runs and 10", "2 % slower: found", told.found, 0.9, 1);
	row(report, "compare 10 runs and 10", "alike: any claim of a change", told.claimed, 0,
	    0.05);
	row(report, "compare 10 runs and 10", "alike: no change within 2 %", told.same, 0, 1);
}

int main(int argc, char **argv) {
	struct report report = {.json = argc > 1 && strcmp(argv[1], "--json") == 0};

	if (argc > 2 || (argc == 2 && !report.json)) {
		printf("tocsin-truth-bench [--json]: coverage of printed intervals over %d drawn "
		       "runs of each\nprocess; changes and comparisons over %d\n",
		       COVERAGE_REPETITIONS, REPETITIONS);
		return argc == 2 && strcmp(argv[1], "--help") == 0 ? 0 : 2;
	}
	if (report.json)
		printf("{\"bench\": \"lab\", \"rows\": [");
	coverage_rows(&report);
	other_rows(&report);
	if (report.json)
		printf("\n]}\n");
	return report.failed ? 1 : 0;
}
