// SPDX-License-Identifier: BSD-3-Clause
// Shows the answer of PATH: one path as seen from both ends, the verdicts, and the blame.
#include "show/answers.h"
#include "show/congestion.h"
#include "show/gpu.h"

#include <inttypes.h>

// Limits on untrusted answers; no real agent exceeds them.
#define PATHS_SHOWN_MAX 34
#define FLOWS_MAX 4
#define SIZES_MAX 8

// Format a time. 0 also means unknown here, because every path takes some time.
static void
format_time_or_dash(const json_t *object, const char *key, char text[static SHOW_BYTES]) {
	snprintf(text, SHOW_BYTES, "-");
	if (fact_number(object, key) > 0)
		fact_duration(object, key, text);
}

static void print_latency_and_loss(struct page *page, const json_t *path) {
	uint64_t now_ns = fact_number(path, "median_ns");
	uint64_t usual_ns = fact_number(path, "baseline_ns");
	uint64_t permille = fact_number(path, "lost_permille");
	uint64_t lost = fact_number(path, "lost"), sent = lost + fact_number(path, "answered");
	char median[SHOW_BYTES], usual[SHOW_BYTES], spread[SHOW_BYTES];
	char min[SHOW_BYTES], p99[SHOW_BYTES];

	format_time_or_dash(path, "median_ns", median);
	format_time_or_dash(path, "baseline_ns", usual);
	format_time_or_dash(path, "baseline_mad_ns", spread);
	format_time_or_dash(path, "min_ns", min);
	format_time_or_dash(path, "p99_ns", p99);
	page_print(page, "  latency   median %s, least %s, p99 %s", median, min, p99);
	if (now_ns > 0 && usual_ns > 0)
		page_print(
			page, "; usually %s +- %s: drift x%.2f", usual, spread,
			(double)now_ns / (double)usual_ns
		);
	else if (fact_holds(path, "steady"))
		page_print(page, "; no baseline yet");
	else
		page_print(page, "; no baseline, because it is read in turn");
	page_print(page, "\n");
	page_print(page, "  loss      %" PRIu64 " of %" PRIu64 " probes", lost, sent);
	if (permille > 0)
		page_print(
			page, "; lately %" PRIu64 ".%" PRIu64 " %% of large probes", permille / 10,
			permille % 10
		);
	page_print(page, "\n");
}

// Format an age: "400 ms ago", or "never".
static void format_age(const json_t *path, const char *key, char text[static SHOW_BYTES]) {
	char age[SHOW_BYTES];

	snprintf(text, SHOW_BYTES, "never");
	if (fact_duration(path, key, age))
		snprintf(text, SHOW_BYTES, "%.50s ago", age);
}

static void print_pair(struct page *page, const json_t *path) {
	bool steady = fact_holds(path, "steady");
	char answer[SHOW_BYTES], probe[SHOW_BYTES];

	format_age(path, "last_answer_ns", answer);
	format_age(path, "last_probe_ns", probe);
	page_print(
		page, "  probes    %s; the last %s, the last answer %s\n",
		steady ? "steadily" : "in turn", probe, answer
	);
	if (!fact_holds(path, "pair_known")) {
		page_print(page, "  pair      %s\n", steady ? "none yet" : "on demand");
		return;
	}
	page_print(
		page,
		"  pair      %s; MTU %" PRIu64 ", flow label %#" PRIx64 ", answered by %.32s%s\n",
		fact_holds(path, "pair_up") ? "up" : "down",
		fact_number(path, fact_known(path, "mtu") ? "mtu" : "mtu_bytes"),
		fact_number(path, "flow_label"), fact_name(path, "responder"),
		fact_holds(path, "shares_overlay") ? ", on the overlay's interface" : ""
	);
}

// Print each route chosen by a flow label; nothing if there is only one.
static void print_flows(struct page *page, const json_t *flows) {
	char lost[SHOW_BYTES], late[SHOW_BYTES], probes[SHOW_BYTES], median[SHOW_BYTES];
	const json_t *flow;
	size_t n;

	if (json_array_size(flows) < 2)
		return;
	json_array_foreach(flows, n, flow) {
		if (n == FLOWS_MAX)
			break;
		fact_count(flow, "lost", lost);
		fact_count(flow, "late", late);
		fact_count(flow, "probes", probes);
		format_time_or_dash(flow, "median_ns", median);
		page_print(
			page, "  flow      %#07" PRIx64 ": %s lost, %s late of %s, median %s%s%s\n",
			fact_number(flow, "label") & 0xfffff, lost, late, probes, median,
			fact_holds(flow, "current") ? "; now" : "",
			fact_holds(flow, "bad") ? "; the bad one" : ""
		);
	}
}

static bool sizes_have_probes(const json_t *sizes) {
	const json_t *size;
	size_t n;

	json_array_foreach(sizes, n, size) {
		if (fact_number(size, "sent") > 0)
			return true;
	}
	return false;
}

static void print_sizes(struct page *page, const json_t *sizes, const char *what) {
	const json_t *size;
	char sent[SHOW_BYTES], lost[SHOW_BYTES], bytes[SHOW_BYTES];
	char min[SHOW_BYTES], median[SHOW_BYTES], p99[SHOW_BYTES];
	size_t n;

	page_print(
		page, "  %-10s %8s %8s   %-9s %-9s %-9s of the last\n", what, "SENT", "LOST",
		"MEDIAN", "LEAST", "P99"
	);
	json_array_foreach(sizes, n, size) {
		if (n == SIZES_MAX)
			break;
		snprintf(bytes, sizeof(bytes), "%" PRIu64, fact_number(size, "bytes"));
		if (fact_number(size, "bytes") == 0)
			snprintf(bytes, sizeof(bytes), "MTU");
		fact_count(size, "sent", sent);
		fact_count(size, "lost", lost);
		format_time_or_dash(size, "median_ns", median);
		format_time_or_dash(size, "min_ns", min);
		format_time_or_dash(size, "p99_ns", p99);
		page_print(
			page, "  %-10.10s %8s %8s   %-9s %-9s %-9s %" PRIu64 "\n", bytes, sent,
			lost, median, min, p99, fact_number(size, "recent") % 1000
		);
	}
}

static void
print_path(struct page *page, const char *node, const char *peer, const json_t *path, bool first) {
	const json_t *writes = json_object_get(path, "writes");
	const json_t *gpu = json_object_get(path, "gpu");
	const json_t *port = json_array_get(json_object_get(path, "congestion"), 0);
	char age[SHOW_BYTES], words[GPU_WORDS_BYTES];
	char congestion[CONGESTION_WORDS_BYTES], line[CONGESTION_WORDS_BYTES + 16];

	fact_duration(path, "for_ns", age);
	page_print(
		page, "%s%s reads %s, %.31s > %.31s: %.20s, for %s\n", first ? "" : "\n", node,
		peer, fact_name(path, "device"), fact_name(path, "peer_device"),
		fact_name(path, "seen"), age
	);
	print_latency_and_loss(page, path);
	print_pair(page, path);
	print_flows(page, json_object_get(path, "flows"));
	if (json_is_object(gpu)) {
		gpu_words(gpu, words);
		page_print(page, "  GPU       %s\n", words);
		gpu_time_words(gpu, words);
		page_print(page, "            %s\n", words);
	}
	if (port != NULL) {
		congestion_words(port, congestion);
		snprintf(line, sizeof(line), "congested %s", congestion);
		page_wrap(page, 2, 12, line);
	}
	print_sizes(
		page, json_object_get(path, "sizes"), sizes_have_probes(writes) ? "READ" : "BYTES"
	);
	if (sizes_have_probes(writes))
		print_sizes(page, writes, "WRITTEN");
}

static void print_end(struct page *page, const json_t *end, const char *peer) {
	const json_t *paths = json_object_get(end, "paths"), *path;
	const char *node = fact_name(end, "node"), *reason;
	size_t n;

	if (!fact_holds(end, "answered")) {
		page_print(page, "%s %s\n", node, fact_name(end, "error"));
		return;
	}
	if (!fact_known(end, "devices"))
		reason = ""; // an older agent does not report the reason
	else if (fact_number(end, "devices") == 0)
		reason = ": it has no RDMA device";
	else if (!fact_holds(end, "probing"))
		reason = ": [probe] enabled is no on that node";
	else
		reason = ": it is not a neighbour, and its turn to be read has not come yet";
	if (json_array_size(paths) == 0)
		page_print(page, "%s reads nothing of %s%s\n", node, peer, reason);
	json_array_foreach(paths, n, path) {
		if (n == PATHS_SHOWN_MAX) {
			page_print(page, "\nand %zu more\n", json_array_size(paths) - n);
			break;
		}
		print_path(page, node, peer, path, n == 0);
	}
}

static void print_blame(struct page *page, const json_t *blame) {
	const char *node = fact_word(blame, "node"), *what = fact_word(blame, "what");
	char ago[SHOW_BYTES], age[SHOW_BYTES], against[192], line[512];

	if (fact_duration(blame, "ago_ns", ago))
		snprintf(age, sizeof(age), "%.50s ago", ago);
	else
		snprintf(age, sizeof(age), "at %.50s", fact_word(blame, "at"));
	if (fact_is(blame, "blamed", "path"))
		snprintf(against, sizeof(against), "the path alone, not on a node");
	else if (fact_is(blame, "blamed", "port"))
		snprintf(
			against, sizeof(against), "port %.64s of %.64s", what,
			node[0] != '\0' ? node : "a node"
		);
	else
		snprintf(
			against, sizeof(against), "%.20s %.64s", fact_name(blame, "blamed"),
			node[0] != '\0' ? node : what
		);
	snprintf(
		line, sizeof(line), "%.64s saw it %.20s %s, which is blamed on %s",
		fact_name(blame, "observer"), fact_name(blame, "seen"), age, against
	);
	page_wrap(page, 2, 4, line);
}

void show_path(struct page *page, const json_t *answer) {
	const json_t *ends = json_object_get(answer, "ends"), *row;
	size_t count = json_array_size(ends), n;
	char age[SHOW_BYTES], since[SHOW_BYTES];

	json_array_foreach(ends, n, row) {
		if (n > 0)
			page_print(page, "\n");
		print_end(page, row, fact_name(json_array_get(ends, count - 1 - n), "node"));
	}
	page_print(page, "\nVerdicts, as this agent holds them\n");
	json_array_foreach(json_object_get(answer, "verdicts"), n, row) {
		if (!json_is_object(row))
			continue;
		if (fact_duration(row, "for_ns", age) || !fact_known(row, "since"))
			snprintf(since, sizeof(since), "for %.50s", age);
		else // an older agent reports only the time of day
			snprintf(since, sizeof(since), "since %.50s", fact_word(row, "since"));
		page_print(
			page, "  %s is %s, %s (%s), %s%s\n", fact_name(row, "node"),
			fact_name(row, "state"), fact_name(row, "verdict"),
			fact_name(row, "reason"), since,
			fact_holds(row, "maint") ? ", in maintenance" : ""
		);
		page_words(page, fact_word(row, "evidence"));
	}
	json_array_foreach(json_object_get(answer, "blame"), n, row) print_blame(page, row);
}
