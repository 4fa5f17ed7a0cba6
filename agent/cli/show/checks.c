// SPDX-License-Identifier: BSD-3-Clause
// Shows the answer of CHECKS: a row for each local check of a node, its reason and evidence below.
#include "show/answers.h"

#include <records/checks.h>

#include <inttypes.h>

// Prints the reason and the evidence below the row of a check.
static void print_evidence(struct page *page, const json_t *check) {
	const char *evidence = fact_word(json_object_get(check, "last"), "evidence");
	const char *reason = fact_word(check, "reason");
	char line[1024];

	snprintf(
		line, sizeof(line), "%s%s%s", reason,
		reason[0] != '\0' && evidence[0] != '\0' ? ": " : "", evidence
	);
	if (line[0] == '\0')
		return;
	if (page->whole)
		page_print(page, "  %s\n", line);
	else
		page_wrap(page, 2, 4, line);
}

void show_checks(struct page *page, const json_t *answer) {
	const json_t *checks = json_object_get(answer, "checks");
	size_t count = json_array_size(checks);

	page_print(
		page,
		"%zu check%s: %" PRIu64 " warning, %" PRIu64 " failed, %" PRIu64
		" could not tell, %" PRIu64 " of these hang\n",
		count, count == 1 ? "" : "s", fact_number(answer, "warning"),
		fact_number(answer, "critical"), fact_number(answer, "unknown"),
		fact_number(answer, "stuck")
	);
	if (count == 0)
		return;
	page_print(page, "\n");
	page_table(page, &check_record, checks, print_evidence);
}
