// SPDX-License-Identifier: BSD-3-Clause
// Shows the answer of PAIRS: the RDMA pairs of a node, those that are not ready first.
#include "show/answers.h"
#include "show/congestion.h"
#include "show/gpu.h"

#include <inttypes.h>

const char no_device_words[] =
	"This agent measures with no RDMA device: `tocsin devices --explain` says why.\n";

#define END_BYTES 48
#define BOTH_BYTES 160

static void show_end(const json_t *pair, char text[static END_BYTES]) {
	const json_t *failure = json_object_get(pair, "failure");
	char out[SHOW_BYTES], in[SHOW_BYTES];

	if (!fact_is(pair, "state", "ready")) {
		snprintf(
			text, END_BYTES, "%s",
			json_is_object(failure) ? fact_name(failure, "reason") : "-"
		);
		return;
	}
	fact_bytes(pair, "bytes_out_per_s", out);
	fact_bytes(pair, "bytes_in_per_s", in);
	snprintf(text, END_BYTES, "%.20s, %.20s", out, in);
}

// Says whether it has a mark.
static bool say_pair(struct page *page, const json_t *pair) {
	const json_t *times = json_object_get(pair, "times");
	char node[SHOW_BYTES], devices[SHOW_BYTES], age[SHOW_BYTES], p50[SHOW_BYTES];
	char p99[SHOW_BYTES], end[END_BYTES], both[BOTH_BYTES], state[SHOW_BYTES];
	bool ready = fact_is(pair, "state", "ready");
	const char *mark = ready ? congestion_mark(pair) : "";

	snprintf(
		both, sizeof(both), "%.70s>%.70s", fact_name(pair, "device"),
		fact_word(pair, "peer_device")
	);
	snprintf(state, sizeof(state), "%.32s%s", fact_name(pair, "state"), mark);
	fact_seconds(pair, "for_s", age);
	fact_duration(times, "p50_ns", p50);
	fact_duration(times, "p99_ns", p99);
	show_end(pair, end);
	page_print(
		page, "%-12s %-14s %-8s %-11s %-7s %-7s %7" PRIu64 " %6" PRIu64 " %s\n",
		page_cell(page, fact_name(pair, "node"), 12, node),
		page_cell(page, both, 14, devices), state, age, p50, p99, fact_number(pair, "ops"),
		fact_number(pair, "unsuccessful"), end
	);
	return *mark != '\0';
}

void show_pairs(struct page *page, const json_t *answer) {
	const json_t *pairs = json_object_get(answer, "pairs"), *pair;
	bool without = fact_known(answer, "devices") && fact_number(answer, "devices") == 0;
	bool marked = false;
	size_t ready = 0, n;

	json_array_foreach(pairs, n, pair) ready += fact_is(pair, "state", "ready");
	page_print(page, "%zu pairs, %zu ready\n", json_array_size(pairs), ready);
	if (without)
		page_print(page, "%s", no_device_words);
	if (!without || json_array_size(pairs) > 0)
		page_print(
			page, "\n%-12s %-14s %-8s %-11s %-7s %-7s %7s %6s %s\n", "NODE", "DEVICES",
			"STATE", "FOR", "P50", "P99", "OPS", "FAILED", "OUT, IN /S"
		);
	json_array_foreach(pairs, n, pair) {
		if (say_pair(page, pair))
			marked = true;
	}
	if (marked)
		page_print(page, "%s", congestion_legend);
	gpus_print_devices(page, json_object_get(answer, "gpus"));
}
