// SPDX-License-Identifier: BSD-3-Clause
// Prints the evidence of a verdict: who observed what, and what the node states about itself.
#include "show/why_evidence.h"

#include "show/why_words.h"

#include <inttypes.h>
#include <string.h>

#define LINE_BYTES 512

// Return the result of a TCP connection attempt in words. An older agent sends words, which are
// returned unchanged.
static const char *reach_words(const char *reach) {
	static const struct {
		const char *reach, *words;
	} rows[] = {
		{"unknown", "was not tried"},
		{"answers", "answers"},
		{"accepts", "its kernel accepts connections, its agent is silent"},
		{"refuses", "its host refuses: no agent listens"},
		{"none", "nothing comes back"},
		{"loses", "answers, but much of what is sent to it is retransmitted"},
		{"other", "another agent answers at its address"},
	};

	for (size_t n = 0; n < sizeof(rows) / sizeof(rows[0]); n++) {
		if (strcmp(rows[n].reach, reach) == 0)
			return rows[n].words;
	}
	return reach;
}

// Describe an observation in half a sentence.
static void format_observation(const json_t *observation, char text[static LINE_BYTES]) {
	uint64_t permille = fact_number(observation, "lost_permille");
	uint64_t bytes = fact_number(observation, "lost_bytes");
	bool timed = fact_number(observation, "median_ns") > 0;
	char median[SHOW_BYTES], baseline[SHOW_BYTES], sizes[SHOW_BYTES] = "any size";

	fact_duration(observation, "median_ns", median);
	fact_duration(observation, "baseline_ns", baseline);
	if (bytes > 0)
		snprintf(sizes, sizeof(sizes), "%" PRIu64 " bytes and more", bytes);
	if (fact_word(observation, "device")[0] == '\0')
		snprintf(text, LINE_BYTES, "%.200s", reach_words(fact_word(observation, "reach")));
	else if (fact_is(observation, "kind", "degraded"))
		snprintf(text, LINE_BYTES, "slow: %s, usually %s", median, baseline);
	else if (fact_is(observation, "kind", "lossy"))
		snprintf(
			text, LINE_BYTES, "loses %" PRIu64 ".%" PRIu64 " %% of probes of %s",
			permille / 10, permille % 10, sizes
		);
	else if (fact_is(observation, "kind", "silent"))
		snprintf(
			text, LINE_BYTES, "its pulse cannot be read; own port %s",
			fact_holds(observation, "own_good") ? "good" : "not known to be good"
		);
	else if (fact_is(observation, "kind", "standing"))
		snprintf(
			text, LINE_BYTES, "its pulse is read but stalled; answered by %.64s",
			fact_name(observation, "responder")
		);
	else
		snprintf(
			text, LINE_BYTES, "%.64s%s%s", fact_name(observation, "kind"),
			timed ? ", " : "", timed ? median : ""
		);
}

static void print_observation(struct page *page, const json_t *observation) {
	char path[SHOW_BYTES] = "overlay", age[SHOW_BYTES], cell[SHOW_BYTES], words[LINE_BYTES];
	const char *device = fact_word(observation, "device");

	if (device[0] != '\0')
		snprintf(
			path, sizeof(path), "%.15s -> %.15s", device,
			fact_name(observation, "peer_device")
		);
	format_observation(observation, words);
	fact_duration(observation, "age_ns", age);
	page_print(
		page, "  %-16s %-20s %-8s %s\n",
		page_cell(page, fact_name(observation, "observer"), 16, cell), path, age, words
	);
}

static void print_statement(struct page *page, const json_t *statement) {
	char age[SHOW_BYTES];

	fact_duration(statement, "age_ns", age);
	page_print(
		page, "  %s, %s, %s ago\n", fact_name(statement, "verdict"),
		fact_name(statement, "reason"), age
	);
	page_words(page, fact_word(statement, "evidence"));
}

static void print_past_verdict(struct page *page, const json_t *past) {
	char lasted[SHOW_BYTES];

	fact_duration(past, "for_ns", lasted);
	page_print(
		page, "  %-24s %-14s %-8s %s\n", fact_name(past, "since"),
		fact_name(past, "verdict"), lasted, fact_name(past, "reason")
	);
}

static void print_rows(
	struct page *page,
	const json_t *rows,
	const char *head,
	void (*say)(struct page *page, const json_t *row)
) {
	const json_t *row;
	size_t n;

	if (json_array_size(rows) > 0)
		page_print(page, "\n%s\n", head);
	json_array_foreach(rows, n, row) say(page, row);
}

void why_print_evidence(struct page *page, const json_t *why) {
	const char *withheld = fact_word(why, "withheld");
	char age[SHOW_BYTES], line[LINE_BYTES];

	if (!why_has_verdict(why))
		return;
	if (!fact_duration(why, "verdict_for_ns", age)) // an older agent does not report it
		fact_duration(why, "for_ns", age);
	snprintf(
		line, sizeof(line), "%s (%s), for %s%s%s%s; advice to schedulers: %s%s%s",
		fact_name(why, "verdict"), fact_name(why, "reason"), age,
		fact_known(why, "confidence") ? ", " : "", fact_word(why, "confidence"),
		fact_holds(why, "both_planes") ? ", seen on both planes" : "",
		fact_name(why, "advice"), withheld[0] != '\0' ? ", no drain: " : "", withheld
	);
	page_print(page, "\nVerdict\n");
	page_wrap(page, 2, 4, line);
	page_words(page, fact_word(why, "evidence"));
	print_rows(page, why_observations(why), "Observations", print_observation);
	print_rows(page, json_object_get(why, "statements"), "Its own statements", print_statement);
	print_rows(
		page, json_object_get(why, "verdicts_before"), "Earlier verdicts",
		print_past_verdict
	);
}
