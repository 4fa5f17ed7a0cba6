// SPDX-License-Identifier: BSD-3-Clause
// Shows the answer of PATHS: how nodes read each other over RDMA, the worst paths first.
#include "show/answers.h"
#include "show/congestion.h"
#include "show/gpu.h"

#include <records/paths.h>
#include <records/shared.h>

#include <inttypes.h>
#include <string.h>

#define SHOWN_MAX 40 // the rest is counted

// The worst first; what is not known lies between the good and the bad. NULL: any other.
static const char *const kinds[] = {"silent",  "standing", "lossy", "degraded",
				    "no-pair", "good",	   NULL};
#define KIND_COUNT (sizeof(kinds) / sizeof(kinds[0]))

static size_t kind_index(const char *seen) {
	size_t n = 0;

	while (kinds[n] != NULL && strcmp(kinds[n], seen) != 0)
		n++;
	return n;
}

// "3 silent, 1 good"; less what was shown, if that is given.
static void print_counts(struct page *page, const json_t *counts, const uint64_t *shown) {
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

static void print_schedule(struct page *page, const json_t *answer) {
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

static void print_head(struct page *page, const json_t *answer) {
	bool all = fact_known(answer, "members");
	uint64_t count = count_all(answer), left_out = fact_number(answer, "left_out");

	if (all)
		page_print(
			page,
			"%" PRIu64 " paths, each as one end reads it, of %" PRIu64 " of %" PRIu64
			" agents in %.3f s",
			count, fact_number(answer, "answered"), fact_number(answer, "members"),
			page_answer_seconds(answer)
		);
	else
		page_print(
			page, "%" PRIu64 " paths that %s reads", count, fact_name(answer, "node")
		);
	if (all && left_out > 0)
		page_print(page, "; %" PRIu64 " parts of answers were left out", left_out);
	page_print(page, count > 0 ? ": " : "");
	print_counts(page, json_object_get(answer, "counts"), NULL);
	page_print(page, "\n");
	if (!all) {
		print_schedule(page, answer);
		gpus_print_bad(
			page, json_object_get(answer, "gpus"),
			"GPU memory that is not read well:\n", true
		);
	}
	if (count > 0)
		page_print(page, "\n");
}

void show_paths(struct page *page, const json_t *answer) {
	const json_t *counts = json_object_get(answer, "counts");
	uint64_t count = count_all(answer), shown[KIND_COUNT] = {0};
	bool marked = false; // a row has the mark of congestion
	json_t *rows = json_array(), *path;
	size_t n, shown_count;

	print_head(page, answer);
	// Older agents send rows in no order, so the rows are taken by kind.
	for (size_t kind = 0; kind < KIND_COUNT; kind++) {
		json_array_foreach(json_object_get(answer, "paths"), n, path) {
			if (kind_index(fact_word(path, "seen")) != kind ||
			    json_array_size(rows) == SHOWN_MAX)
				continue;
			json_array_append(rows, path);
			shown[kind]++;
			marked |= *congestion_mark(path) != '\0';
		}
	}
	if (count > 0)
		page_table(page, &path_record, rows, NULL);
	shown_count = json_array_size(rows);
	json_decref(rows);
	if (marked)
		page_print(page, "%s", congestion_legend);
	if (count <= shown_count)
		return;
	page_print(page, "and %" PRIu64 " more: ", count - shown_count);
	print_counts(page, counts, shown);
	page_print(page, "\n");
}
