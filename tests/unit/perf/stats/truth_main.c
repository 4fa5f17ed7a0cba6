// SPDX-License-Identifier: BSD-3-Clause
// tocsin-truth-bench [--json]: how often the laboratory's results are true, over many generated
// runs. The exit status is 1 if a share is outside its promised range.
#include "perf/stats/truth.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define COVERAGE_REPETITIONS 1000
#define REPETITIONS 400
#define COMPARE_SAMPLES 20000

struct report {
	bool json, failed;
	int count;
};

// Print one share with its allowed range.
static void
row(struct report *report, const char *of, const char *what, double value, double least, double most
) {
	bool good = value >= least && value <= most;

	report->failed |= !good;
	if (report->json)
		printf("%s\n  {\"what\": \"%s: %s\", \"value\": %.4f, \"unit\": \"\", "
		       "\"yardstick\": null, \"ratio\": null, \"target\": [%g, %g], \"ok\": %s}",
		       report->count > 0 ? "," : "", of, what, value, least, most,
		       good ? "true" : "false");
	else
		printf("%-30s %-34s %6.3f  %5.2f .. %-5.2f %s\n", of, what, value, least, most,
		       good ? "" : "MISSED");
	report->count++;
	fflush(stdout);
}

static void coverage_rows(struct report *report) {
	for (int n = 0; n < TRUTH_PROCESSES; n++) {
		const struct truth_process *process = &truth_processes[n];
		struct truth_coverage told;

		truth_coverage(process, COVERAGE_REPETITIONS, (uint64_t)n + 1, &told);
		row(report, process->name, "p50: intervals that hold it", told.held[0],
		    process->least[0], process->most);
		row(report, process->name, "p99: intervals that hold it", told.held[1],
		    process->least[1], process->most);
		row(report, process->name, "p50: width by that of known tau", told.width[0], 0,
		    1.5);
		row(report, process->name, "p99: width by that of known tau", told.width[1], 0,
		    1.5);
		row(report, process->name, "runs without an interval", told.absent, 0, 1);
		row(report, process->name, "runs that are cut", told.changed, 0, 0.05);
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
	printf(report.json ? "{\"bench\": \"lab\", \"rows\": ["
			   : "of                             what                                "
			     "share  asked\n");
	coverage_rows(&report);
	other_rows(&report);
	if (report.json)
		printf("\n]}\n");
	return report.failed ? 1 : 0;
}
