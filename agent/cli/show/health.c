// SPDX-License-Identifier: BSD-3-Clause
// Shows the answer of HEALTH: what is wrong with the whole, then a row for each node with its
// evidence, those that are missing last.
#include "show/answers.h"

#include <records/findings.h>

#include <inttypes.h>
#include <string.h>

#define MISSING_COLUMNS 64 // of their names
#define MISSING_ROWS 16
#define LINE_BYTES 2048

static bool is_missing(const json_t *row) {
	return fact_is(row, "state", "missing");
}

// Print the grade, and the state of the single node or the counts of all. The number of members is
// that of `tocsin status`, which includes missing nodes.
static void print_headline(struct page *page, const json_t *answer) {
	uint64_t alive = fact_number(answer, "alive"), suspect = fact_number(answer, "suspect");
	uint64_t unreachable = fact_number(answer, "unreachable");
	uint64_t dead = fact_number(answer, "dead");
	uint64_t silent = suspect + unreachable;
	const json_t *row = json_array_get(json_object_get(answer, "findings"), 0);

	if (fact_known(answer, "of")) {
		page_print(
			page, "%s: %s %s %s%s\n", fact_name(answer, "grade"),
			fact_name(answer, "of"), fact_is(row, "state", "left") ? "has" : "is",
			fact_name(row, "state"), fact_holds(row, "maint") ? ", in maintenance" : ""
		);
		return;
	}
	page_print(
		page,
		"%s: %" PRIu64 " of %" PRIu64 " agents answer, %" PRIu64 " suspect, %" PRIu64
		" unreachable, %" PRIu64 " dead, %" PRIu64 " left, %" PRIu64 " in maintenance\n",
		fact_name(answer, "grade"), alive - (silent < alive ? silent : alive),
		alive + dead + fact_number(answer, "missing"), suspect, unreachable, dead,
		fact_number(answer, "left"), fact_number(answer, "maint")
	);
}

static void print_brake(struct page *page, const json_t *answer) {
	const json_t *waiting = json_object_get(answer, "waiting");
	uint64_t reached = fact_number(waiting, "reached"), of = fact_number(waiting, "of");
	uint64_t silent = fact_number(answer, "suspect") + fact_number(answer, "unreachable");

	if (json_is_object(waiting))
		page_print(
			page,
			"This side reaches %" PRIu64 " of %" PRIu64
			" agents, %s: it declares none of the other %" PRIu64
			" dead.\n  If they are gone for good: tocsin forget --unreachable\n",
			reached, of, reached > of / 2 ? "too few with a vote" : "no more than half",
			fact_number(waiting, "misses")
		);
	else if (fact_holds(answer, "brake") && silent > 0)
		page_print(
			page,
			"Too many agents fell silent at once, so none of them is declared dead.\n"
		);
}

static void print_head(struct page *page, const json_t *answer) {
	const json_t *strangers = json_object_get(answer, "strangers"), *mistakes, *mistake;
	const char *names = fact_word(answer, "missing_nodes");
	bool fits = page->whole || strlen(names) <= MISSING_COLUMNS;
	char age[SHOW_BYTES];
	size_t n;

	print_headline(page, answer);
	if (json_is_false(json_object_get(answer, "joined")))
		page_print(page, "This node is not a member of a ring yet.\n");
	if (fact_holds(answer, "alone"))
		page_print(page, "This node sees none of the nodes that it should see.\n");
	if (fact_known(answer, "join_problem"))
		page_print(page, "  %s\n", fact_word(answer, "join_problem"));
	if (json_is_object(strangers)) {
		fact_duration(strangers, "ago_ns", age);
		page_print(
			page,
			"Rejected: %" PRIu64
			" connections without the right key, the last from %s, %s ago\n",
			fact_number(strangers, "count"), fact_name(strangers, "last"), age
		);
	}
	print_brake(page, answer);
	if (fact_number(answer, "missing") > 0 && !fact_known(answer, "of"))
		page_print(
			page, "%" PRIu64 " of %" PRIu64 " expected nodes are missing: %.*s%s\n",
			fact_number(answer, "missing"), fact_number(answer, "expected"),
			fits ? (int)strlen(names) : MISSING_COLUMNS, names, fits ? "" : "..."
		);
	if (fact_known(answer, "address_problem"))
		page_print(
			page, "Problem of the address that this node advertises:\n  %s\n",
			fact_word(answer, "address_problem")
		);
	mistakes = json_object_get(answer, "mistakes");
	if (json_array_size(mistakes) > 0)
		page_print(page, "Mistakes in the configuration:\n");
	json_array_foreach(mistakes, n, mistake) {
		if (json_is_string(mistake))
			page_words(page, json_string_value(mistake));
	}
}

// Prints the evidence below a row. Missing nodes of a whole cluster share the evidence in the head.
static void print_evidence(struct page *page, const json_t *row) {
	const char *evidence = fact_word(row, "evidence"), *withheld = fact_word(row, "withheld");
	bool maint = fact_holds(row, "maint");
	char line[LINE_BYTES];

	if (fact_is(row, "grade", "ok") && !maint)
		return;
	snprintf(
		line, sizeof(line), "%s%s%s", maint ? "in maintenance, no alarm" : "",
		maint && evidence[0] != '\0' ? ": " : "", evidence
	);
	page_words(page, line);
	if (withheld[0] == '\0')
		return;
	snprintf(
		line, sizeof(line), "no %s is advised: %s",
		fact_is(row, "would", "restart") ? "restart" : "drain", withheld
	);
	page_words(page, line);
}

static void print_evidence_unless_missing(struct page *page, const json_t *row) {
	if (!is_missing(row))
		print_evidence(page, row);
}

void show_health(struct page *page, const json_t *answer) {
	const json_t *findings = json_object_get(answer, "findings");
	bool only = fact_known(answer, "of");
	json_t *rows = json_array(), *row;
	uint64_t missing = 0;
	size_t n;

	print_head(page, answer);
	json_array_foreach(findings, n, row) {
		if (!is_missing(row) || missing++ < MISSING_ROWS)
			json_array_append(rows, row);
	}
	if (json_array_size(rows) > 0) {
		page_print(page, "\n");
		page_table(
			page, &finding_record, rows,
			only ? print_evidence : print_evidence_unless_missing
		);
	}
	json_decref(rows);
	if (missing > MISSING_ROWS)
		page_print(
			page, "and %" PRIu64 " more are missing: tocsin peers missing\n",
			missing - MISSING_ROWS
		);
}
