// SPDX-License-Identifier: BSD-3-Clause
// Shows the answer of PATHS: how nodes read each other over RDMA, the worst paths first.
#include "show/answers.h"
#include "show/congestion.h"
#include "show/gpu.h"

#include <inttypes.h>
#include <string.h>

#define SHOWN_MAX 40 // the rest is counted
#define NODE_WIDTH 12
#define DEVICES_WIDTH 13
#define TIME_WIDTH 7
#define BOTH_BYTES 128

// The worst first; what is not known lies between the good and the bad. NULL: any other.
static const char *const kinds[] = {"silent",  "standing", "lossy", "degraded",
				    "no-pair", "good",	   NULL};
#define KIND_COUNT (sizeof(kinds) / sizeof(kinds[0]))

struct paths_page {
	struct page *page;
	uint64_t shown[KIND_COUNT];
	uint64_t shown_count;
	bool marked; // a row has the mark of congestion
};

static size_t kind_of(const char *seen) {
	size_t n = 0;

	while (kinds[n] != NULL && strcmp(kinds[n], seen) != 0)
		n++;
	return n;
}

// "3 silent, 1 good"; less what was shown, if that is given.
static void say_counts(struct page *page, const json_t *counts, const uint64_t *shown) {
	const char *between = "";

	for (size_t n = 0; kinds[n] != NULL; n++) {
		uint64_t count = fact_number(counts, kinds[n]);

		if (shown != NULL)
			count -= shown[n] < count ? shown[n] : count;
		if (count == 0)
			continue;
		page_print(page, "%s%" PRIu64 " %s", between, count, kinds[n]);
		between = ", ";
	}
}

static uint64_t count_all(const json_t *answer) {
	const json_t *counts = json_object_get(answer, "counts");
	uint64_t count = 0;

	for (size_t n = 0; kinds[n] != NULL; n++)
		count += fact_number(counts, kinds[n]);
	return count;
}

static void say_schedule(struct page *page, const json_t *answer) {
	uint64_t others = fact_number(answer, "others");
	char interval[SHOW_BYTES], coverage[SHOW_BYTES];

	if (fact_known(answer, "devices") && fact_number(answer, "devices") == 0) {
		page_print(page, "%s", no_device_words);
		return;
	}
	if (!fact_holds(answer, "probing")) {
		page_print(page, "Nothing is probed: [probe] enabled is no.\n");
		return;
	}
	fact_duration(answer, "interval_ns", interval);
	fact_duration(answer, "coverage_ns", coverage);
	page_print(
		page, "%" PRIu64 " to neighbours and itself, each probed every %s",
		fact_number(answer, "neighbours"), interval
	);
	if (others > 0)
		page_print(
			page, "; %" PRIu64 " others in turn, all of them in %s", others, coverage
		);
	page_print(page, "\n");
}

static void say_reach(struct page *page, const json_t *answer) {
	uint64_t left_out = fact_number(answer, "left_out");

	page_print(
		page,
		"%" PRIu64 " paths, each as one end reads it, of %" PRIu64 " of %" PRIu64
		" agents in %.3f s",
		count_all(answer), fact_number(answer, "answered"), fact_number(answer, "members"),
		json_number_value(json_object_get(answer, "seconds"))
	);
	if (left_out > 0)
		page_print(page, "; %" PRIu64 " parts of answers were left out", left_out);
}

static void say_head(struct page *page, const json_t *answer) {
	bool all = fact_known(answer, "members");

	if (all)
		say_reach(page, answer);
	else
		page_print(
			page, "%" PRIu64 " paths that %s reads", count_all(answer),
			fact_name(answer, "node")
		);
	page_print(page, count_all(answer) > 0 ? ": " : "");
	say_counts(page, json_object_get(answer, "counts"), NULL);
	page_print(page, "\n");
	if (!all) {
		say_schedule(page, answer);
		gpus_print_bad(
			page, json_object_get(answer, "gpus"),
			"Memory of GPUs that is not read as it should be:\n", true
		);
	}
	if (count_all(answer) > 0)
		page_print(
			page, "\n%-12s %-12s %-13s %-9s %-11s %-7s %-7s %-7s %s\n", "NODE", "READS",
			"DEVICES", "SEEN", "FOR", "MEDIAN", "USUAL", "P99", "LOST"
		);
}

static void cell_duration(const json_t *path, const char *key, char text[static SHOW_BYTES]) {
	char whole[SHOW_BYTES];

	fact_duration(path, key, whole);
	show_cell(whole, TIME_WIDTH, text);
}

static void say_path(struct paths_page *paths, const json_t *path) {
	char node[SHOW_BYTES], peer[SHOW_BYTES], devices[SHOW_BYTES], seen[SHOW_BYTES];
	char age[SHOW_BYTES], median[SHOW_BYTES], usual[SHOW_BYTES], p99[SHOW_BYTES];
	char lost[SHOW_BYTES], sent[SHOW_BYTES], both[BOTH_BYTES];
	const char *mark = congestion_mark(path);
	struct page *page = paths->page;

	paths->marked = paths->marked || *mark != '\0';
	snprintf(seen, sizeof(seen), "%.20s%s", fact_name(path, "seen"), mark);
	snprintf(
		both, sizeof(both), "%.60s>%.60s", fact_name(path, "device"),
		fact_name(path, "peer_device")
	);
	fact_seconds(path, "for_s", age);
	cell_duration(path, "median_ns", median);
	cell_duration(path, "baseline_ns", usual);
	cell_duration(path, "p99_ns", p99);
	fact_count(path, "lost", lost);
	count_show(fact_number(path, "answered") + fact_number(path, "lost"), sent);
	page_print(
		page, "%-12s %-12s %-13s %-9s %-11s %-7s %-7s %-7s %s/%s\n",
		page_cell(page, fact_name(path, "node"), NODE_WIDTH, node),
		page_cell(page, fact_name(path, "peer"), NODE_WIDTH, peer),
		page_cell(page, both, DEVICES_WIDTH, devices), seen, age, median, usual, p99, lost,
		sent
	);
}

// An agent of before gives them in no order.
static void say_kind(struct paths_page *paths, const json_t *rows, size_t kind) {
	const json_t *path;
	size_t n;

	json_array_foreach(rows, n, path) {
		if (kind_of(fact_word(path, "seen")) != kind || paths->shown_count == SHOWN_MAX)
			continue;
		say_path(paths, path);
		paths->shown[kind]++;
		paths->shown_count++;
	}
}

void show_paths(struct page *page, const json_t *answer) {
	struct paths_page paths = {.page = page};
	uint64_t count = count_all(answer);

	say_head(page, answer);
	for (size_t kind = 0; kind < KIND_COUNT; kind++)
		say_kind(&paths, json_object_get(answer, "paths"), kind);
	if (paths.marked)
		page_print(page, "%s", congestion_legend);
	if (count <= paths.shown_count)
		return;
	page_print(page, "and %" PRIu64 " more: ", count - paths.shown_count);
	say_counts(page, json_object_get(answer, "counts"), paths.shown);
	page_print(page, "\n");
}
