// SPDX-License-Identifier: BSD-3-Clause
// Shows the answers of LINKS, the agent's own connections, and of CONNS, those of all agents.
#include "show/answers.h"

#include <inttypes.h>

#define NODE_WIDTH 20

// LINKS.

static void say_link(struct page *page, const json_t *link) {
	char node[SHOW_BYTES], use[SHOW_BYTES], min[SHOW_BYTES], mean[SHOW_BYTES];
	char silent[SHOW_BYTES], sent[SHOW_BYTES], received[SHOW_BYTES];
	const char *uses =
		fact_is(link, "mine", "-") ? fact_name(link, "theirs") : fact_name(link, "mine");

	fact_duration(link, "rtt_min_ns", min);
	fact_duration(link, "rtt_mean_ns", mean);
	fact_duration(link, "silent_ns", silent);
	fact_bytes(link, "sent_bytes_per_s", sent);
	fact_bytes(link, "received_bytes_per_s", received);
	page_print(
		page, "%-18s %-17s %-7s %-3s %-8s %-8s %-10s %-8s %-8s %" PRIu64 "\n",
		page_cell(page, fact_name(link, "node"), 18, node), page_cell(page, uses, 17, use),
		fact_name(link, "state"), fact_holds(link, "outgoing") ? "out" : "in", min, mean,
		silent, sent, received, fact_number(link, "reconnects")
	);
}

void show_links(struct page *page, const json_t *answer) {
	const json_t *links = json_object_get(answer, "links"), *link;
	size_t n;

	page_print(
		page, "%zu links\n\n%-18s %-17s %-7s %-3s %-8s %-8s %-10s %-8s %-8s %s\n",
		json_array_size(links), "NODE", "USE", "STATE", "DIR", "RTT MIN", "RTT MEAN",
		"SILENT", "SENT/S", "RECVD/S", "LOST"
	);
	json_array_foreach(links, n, link) say_link(page, link);
}

// CONNS.

// Retransmits of RDMA pairs are the device's own business: many are unknown.
static void show_retransmits(const json_t *sums, char text[static SHOW_BYTES]) {
	uint64_t count = fact_number(sums, "retransmits");
	uint64_t unknown = fact_number(sums, "retransmits_unknown");

	if (!fact_known(sums, "retransmits"))
		snprintf(text, SHOW_BYTES, "unknown");
	else if (unknown == 0)
		snprintf(text, SHOW_BYTES, "%" PRIu64, count);
	else
		snprintf(text, SHOW_BYTES, "%" PRIu64 ", %" PRIu64 " unknown", count, unknown);
}

static void say_transport(struct page *page, const json_t *sums) {
	char min[SHOW_BYTES], mean[SHOW_BYTES], max[SHOW_BYTES];
	char sent[SHOW_BYTES], received[SHOW_BYTES], retransmits[SHOW_BYTES];

	fact_duration(sums, "min_ns", min);
	fact_duration(sums, "mean_ns", mean);
	fact_duration(sums, "max_ns", max);
	fact_bytes(sums, "sent_bytes", sent);
	fact_bytes(sums, "received_bytes", received);
	show_retransmits(sums, retransmits);
	page_print(
		page, "%-10s %6" PRIu64 " %-9s %-9s %-9s %-10s %-10s %8" PRIu64 " %s\n",
		fact_name(sums, "transport"), fact_number(sums, "rows"), min, mean, max, sent,
		received, fact_number(sums, "errors"), retransmits
	);
}

static void say_slowest(struct page *page, const json_t *row) {
	char node[SHOW_BYTES], peer[SHOW_BYTES];
	char min[SHOW_BYTES], mean[SHOW_BYTES], max[SHOW_BYTES];

	fact_duration(row, "min_ns", min);
	fact_duration(row, "mean_ns", mean);
	fact_duration(row, "max_ns", max);
	page_print(
		page, "%-20s %-20s %-10s %-9s %-9s %-9s %8" PRIu64 "\n",
		page_cell(page, fact_name(row, "node"), NODE_WIDTH, node),
		page_cell(page, fact_name(row, "peer"), NODE_WIDTH, peer),
		fact_name(row, "transport"), mean, min, max, fact_number(row, "errors")
	);
}

void show_conns(struct page *page, const json_t *answer) {
	const json_t *transports = json_object_get(answer, "transports"), *row;
	const json_t *slowest = json_object_get(answer, "worst");
	size_t n;

	page_print(
		page,
		"%" PRIu64 " connections, each from either end, of %" PRIu64 " of %" PRIu64
		" agents in %.3f s\n",
		fact_number(answer, "rows"), fact_number(answer, "answered"),
		fact_number(answer, "members"),
		json_number_value(json_object_get(answer, "seconds"))
	);
	if (json_array_size(transports) > 0)
		page_print(
			page, "\n%-10s %6s %-9s %-9s %-9s %-10s %-10s %8s %s\n", "TRANSPORT",
			"CONNS", "MIN", "MEAN", "MAX", "SENT", "RECEIVED", "ERRORS", "RETRANSMITS"
		);
	json_array_foreach(transports, n, row) say_transport(page, row);
	if (json_array_size(slowest) > 0)
		page_print(
			page, "\nThe slowest:\n%-20s %-20s %-10s %-9s %-9s %-9s %8s\n", "NODE",
			"PEER", "TRANSPORT", "MEAN", "MIN", "MAX", "ERRORS"
		);
	json_array_foreach(slowest, n, row) say_slowest(page, row);
}
