// SPDX-License-Identifier: BSD-3-Clause
// Shows the answer of CHECKS: a row for each local check of a node, its reason and evidence below.
#include "show/answers.h"

#include <inttypes.h>

#define EVIDENCE_WIDTH 97 // on a line of its own, with its reason

static void next_text(const json_t *check, char text[static SHOW_BYTES]) {
	if (json_is_object(json_object_get(check, "stuck")))
		snprintf(text, SHOW_BYTES, "hangs");
	else if (fact_holds(check, "running"))
		snprintf(text, SHOW_BYTES, "running");
	else
		fact_seconds(check, "next_s", text);
}

static void say_evidence(struct page *page, const json_t *check, const json_t *last) {
	const char *reason = fact_word(check, "reason"), *evidence = fact_word(last, "evidence");
	char line[1024];

	snprintf(
		line, sizeof(line), "%s%s%s", reason,
		reason[0] != '\0' && evidence[0] != '\0' ? ": " : "", evidence
	);
	if (line[0] != '\0')
		page_print(
			page, "  %.*s\n", page->whole ? (int)sizeof(line) : EVIDENCE_WIDTH, line
		);
}

static void say_check(struct page *page, const json_t *check) {
	const json_t *last = json_object_get(check, "last");
	const json_t *counts = json_object_get(check, "counts");
	char name[SHOW_BYTES], ago[SHOW_BYTES], took[SHOW_BYTES], next[SHOW_BYTES];

	fact_seconds(last, "ago_s", ago);
	fact_seconds(last, "took_s", took);
	next_text(check, next);
	page_print(
		page,
		"%-24s %-8s %9s %9s %9s %7" PRIu64 " %7" PRIu64 " %7" PRIu64 " %7" PRIu64 "\n",
		page_cell(page, fact_name(check, "name"), 24, name),
		json_is_object(last) ? fact_name(last, "result") : "-", ago, took, next,
		fact_number(counts, "ok"), fact_number(counts, "warning"),
		fact_number(counts, "critical"), fact_number(counts, "unknown")
	);
	say_evidence(page, check, last);
}

void show_checks(struct page *page, const json_t *answer) {
	const json_t *checks = json_object_get(answer, "checks"), *check;
	size_t count = json_array_size(checks), n;

	page_print(
		page,
		"%zu check%s: %" PRIu64 " warning, %" PRIu64 " failed, %" PRIu64
		" could not tell, %" PRIu64 " of these hang\n",
		count, count == 1 ? "" : "s", fact_number(answer, "warning"),
		fact_number(answer, "critical"), fact_number(answer, "unknown"),
		fact_number(answer, "stuck")
	);
	if (count > 0)
		page_print(
			page, "\n%-24s %-8s %9s %9s %9s %7s %7s %7s %7s\n", "CHECK", "LAST", "AGO",
			"TOOK", "NEXT", "OK", "WARNED", "FAILED", "UNKNOWN"
		);
	json_array_foreach(checks, n, check) say_check(page, check);
}
