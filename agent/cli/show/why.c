// SPDX-License-Identifier: BSD-3-Clause
// Shows the answer of WHY: everything known of one node, or the ranks of a job.
#include "show/answers.h"
#include "show/congestion.h"
#include "show/event_line.h"
#include "show/gpu.h"
#include "show/why_evidence.h"
#include "show/why_words.h"

#include <inttypes.h>
#include <string.h>

#define PAIRS_SHOWN_MAX 16
#define LINE_BYTES 1024

// Print the state of the node with its cause, and the facts of its record.
static void print_state(struct page *page, const json_t *why) {
	const json_t *observers = json_object_get(why, "observers"), *observer;
	bool left = fact_is(why, "state", "left"), alive = fact_is(why, "state", "alive");
	const char *cause = "", *comma = "";
	char title[LINE_BYTES], age[SHOW_BYTES];
	size_t n;

	if (fact_holds(why, "self")) {
		cause = "; it is the node that answers";
	} else if (!alive && !left) {
		comma = ": ";
		cause = fact_name(why, "because");
	}
	snprintf(
		title, sizeof(title), "%s %s %s%s%s%s.", fact_name(why, "node"),
		left ? "has" : "is", fact_name(why, "state"), comma, cause,
		fact_holds(why, "maint") ? "; it is in maintenance, no alarm is raised" : ""
	);
	page_wrap(page, 0, 2, title);
	page_print(page, "\n");
	fact_duration(why, "for_ns", age);
	if (fact_known(why, "since"))
		page_print(page, "  since        %s, %s ago\n", fact_name(why, "since"), age);
	json_array_foreach(observers, n, observer) page_print(
		page, "%s%s", n == 0 ? "  seen by      " : " and ",
		json_is_string(observer) ? json_string_value(observer) : "?"
	);
	if (n > 0)
		page_print(page, "\n");
	page_print(page, "  incarnation  start %" PRIu64, fact_number(why, "start"));
	if (fact_known(why, "refutations"))
		page_print(page, ", suspicions refuted %" PRIu64, fact_number(why, "refutations"));
	page_print(page, "\n");
	page_print(
		page, "  agent        %s, pid %" PRIu64 ", version %s\n", fact_name(why, "address"),
		fact_number(why, "pid"), fact_word(why, "version")
	);
	page_print(page, "  host         %s\n", fact_word(why, "host"));
}

// Links.

static void format_loss_count(uint64_t count, char text[static SHOW_BYTES]) {
	if (count == 0)
		snprintf(text, SHOW_BYTES, "never lost");
	else if (count == 1)
		snprintf(text, SHOW_BYTES, "lost once");
	else
		snprintf(text, SHOW_BYTES, "lost %" PRIu64 " times", count);
}

// Print the links that are up. A link that is down is a connection attempt without a history.
static void print_links(struct page *page, const json_t *why) {
	const json_t *event = json_object_get(why, "link_event"), *link;
	const char *cause = fact_word(event, "cause");
	uint64_t all_lost = fact_number(why, "links_lost");
	char silent[SHOW_BYTES], rtt[SHOW_BYTES], lost_text[SHOW_BYTES], age[SHOW_BYTES];
	size_t ready = 0, n;

	if (fact_holds(why, "self"))
		return;
	page_print(page, "\nLinks from here to it\n");
	json_array_foreach(json_object_get(why, "links"), n, link) {
		uint64_t lost = fact_number(link, "reconnects");

		if (!fact_holds(link, "ready"))
			continue;
		format_loss_count(lost > all_lost ? lost : all_lost, lost_text);
		fact_duration(link, "silent_ns", silent);
		fact_duration(link, "rtt_mean_ns", rtt);
		page_print(
			page, "  %s, %s, silent for %s, %s",
			fact_holds(link, "outgoing") ? "out" : "in",
			fact_holds(link, "delayed") ? "delayed" : "up", silent, lost_text
		);
		if (fact_known(link, "rtt_mean_ns"))
			page_print(page, ", round trip %s", rtt);
		page_print(page, "\n");
		ready++;
	}
	if (ready > 0)
		return;

	if (!fact_known(why, "links_lost")) { // an older agent does not report it
		page_print(page, "  none now\n");
		return;
	}
	if (!json_is_object(event)) {
		page_print(
			page, "  none, and there was none: all that is known came from other "
			      "agents\n"
		);
		return;
	}
	if (strcmp(cause, "none") == 0)
		cause = "";
	fact_duration(event, "ago_ns", age);
	format_loss_count(all_lost, lost_text);
	page_print(
		page, "  none now: the last event was %s%s%s, %s ago; %s\n",
		fact_name(event, "event"), *cause != '\0' ? ", " : "", cause, age, lost_text
	);
}

// RDMA.

// Print flow labels whose route is bad, since the summary of a path hides one bad route.
static void print_bad_flows(struct page *page, const json_t *flows) {
	const json_t *flow;
	char line[LINE_BYTES];
	size_t n;

	if (json_array_size(flows) > 0)
		page_print(page, "\nOne of several routes to it is bad\n");
	json_array_foreach(flows, n, flow) {
		snprintf(
			line, sizeof(line),
			"%.40s>%.40s: of %" PRIu64 " flow labels %#07" PRIx64
			" is the bad one: %" PRIu64 " lost and %" PRIu64 " late of %" PRIu64,
			fact_name(flow, "device"), fact_name(flow, "peer_device"),
			fact_number(flow, "labels"), fact_number(flow, "label"),
			fact_number(flow, "lost"), fact_number(flow, "late"),
			fact_number(flow, "probes")
		);
		page_wrap(page, 2, 4, line);
	}
}

static void print_pairs(struct page *page, const json_t *pairs) {
	char line[LINE_BYTES];
	const json_t *pair;
	size_t ready = 0, shown = 0, n;

	if (json_array_size(pairs) == 0)
		return;
	json_array_foreach(pairs, n, pair) ready += fact_is(pair, "state", "ready");
	page_print(
		page, "\nRDMA pairs from here to it\n  %zu of %zu ready\n", ready,
		json_array_size(pairs)
	);
	json_array_foreach(pairs, n, pair) {
		if (!fact_known(pair, "reason") || shown++ >= PAIRS_SHOWN_MAX)
			continue;
		snprintf(
			line, sizeof(line), "%.40s>%.40s %s, %s: %s", fact_name(pair, "device"),
			fact_word(pair, "peer_device"), fact_name(pair, "state"),
			fact_name(pair, "reason"), fact_word(pair, "text")
		);
		page_wrap(page, 2, 4, line);
	}
}

static void print_congestion(struct page *page, const json_t *ports) {
	char words[CONGESTION_WORDS_BYTES], line[LINE_BYTES];
	const json_t *port;
	size_t n;

	if (json_array_size(ports) > 0)
		page_print(page, "\nCongestion at the ports of the node that answers\n");
	json_array_foreach(ports, n, port) {
		congestion_words(port, words);
		snprintf(
			line, sizeof(line), "%.64s port %" PRIu64 ": %s", fact_name(port, "device"),
			fact_number(port, "port"), words
		);
		page_wrap(page, 2, 4, line);
	}
}

// Page.

static void print_events(struct page *page, const json_t *why) {
	const json_t *events = json_object_get(why, "events"), *event;
	size_t n;

	page_print(
		page, "\nLast events of it seen here%s\n",
		json_array_size(events) == 0 ? ": none is recorded" : ""
	);
	json_array_foreach(events, n, event)
		event_line_print(event, page->whole, false, page->text);
}

static void print_node(struct page *page, const json_t *why) {
	const char *join = fact_word(why, "join_problem");
	const char *address = fact_word(why, "address_problem");
	const json_t *report = json_object_get(why, "report");
	const char *words = fact_word(report, "text");

	print_state(page, why);
	why_print_meaning(page, why);
	if (join[0] != '\0')
		page_print(page, "\nIt has not joined the other nodes yet\n  %s\n", join);
	if (address[0] != '\0')
		page_print(
			page,
			"\nProblem of its address\n  %s\n  Other nodes cannot connect to it: check listen "
			"and advertise in [overlay], and firewalls.\n",
			address
		);
	why_print_future(page, why);
	if (json_is_object(report)) {
		page_print(
			page, "  Reported %s by uid %" PRIu64 "%s\n", fact_name(report, "time"),
			fact_number(report, "uid"), words[0] != '\0' ? ":" : ""
		);
		page_words(page, words);
		page_print(
			page,
			"  Then its neighbours were asked to check it. Only their observations "
			"count.\n"
		);
	}
	why_print_evidence(page, why);
	print_links(page, why);
	print_bad_flows(page, json_object_get(why, "bad_flows"));
	gpus_print_bad(
		page, json_object_get(why, "gpus"),
		"\nMemory of its GPU, as it is read from here\n", false
	);
	print_pairs(page, json_object_get(why, "pairs"));
	print_congestion(page, json_object_get(why, "congestion"));
	print_events(page, why);
}

void show_why(struct page *page, const json_t *answer) {
	if (json_is_array(json_object_get(answer, "communicators"))) {
		show_why_comms(page, answer);
	} else if (fact_is(answer, "state", "missing")) {
		page_print(
			page, "%s is missing: expected, but not in the peer table.\n",
			fact_name(answer, "node")
		);
		why_print_meaning(page, answer);
		why_print_future(page, answer);
		page_print(
			page, "\nVerdict\n  %s (%s); advice to schedulers: %s\n",
			fact_name(answer, "verdict"), fact_name(answer, "reason"),
			fact_name(answer, "advice")
		);
		print_events(page, answer);
	} else {
		print_node(page, answer);
	}
}
