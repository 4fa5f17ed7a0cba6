// SPDX-License-Identifier: BSD-3-Clause
// Shows the answer of WHY about a time in the past.
#include "show/answers.h"
#include "show/history.h"

#include <string.h>

#define LINE_BYTES 1024

// Print a sentence such as "verdict  node-down since TIME".
static void
print_known(struct page *page, const json_t *answer, const char *key, const char *since_key) {
	page_print(
		page, "  %-9s %s", key, fact_known(answer, key) ? fact_name(answer, key) : "unknown"
	);
	if (fact_known(answer, since_key))
		page_print(page, ", since %s", fact_name(answer, since_key));
	else if (fact_known(answer, key))
		page_print(page, ", from the record of that period; its event is not stored");
	page_print(page, "\n");
}

void show_why_at(struct page *page, const json_t *answer) {
	const json_t *paths = json_object_get(answer, "paths");
	char line[LINE_BYTES];

	page_print(page, "%s at %s\n", fact_name(answer, "node"), fact_name(answer, "at"));
	print_known(page, answer, "state", "since");
	print_known(page, answer, "verdict", "verdict_since");
	if (fact_word(answer, "evidence")[0] != '\0') {
		snprintf(line, sizeof(line), "  evidence  %s", fact_word(answer, "evidence"));
		page_wrap(page, 0, 12, line);
	}
	if (!fact_known(answer, "state") && !fact_known(answer, "verdict"))
		page_print(
			page, "  no record of that time; %s%s\n",
			fact_known(answer, "oldest") ? "the oldest record is from "
						     : "there is no record yet",
			fact_known(answer, "oldest") ? fact_name(answer, "oldest") : ""
		);
	if (json_array_size(paths) > 0)
		page_print(page, "\nPaths to it in the half hour before (height: median)\n");
	history_print_paths(page, paths, NULL);
	history_print_events(page, json_object_get(answer, "events"));
}
