// SPDX-License-Identifier: BSD-3-Clause
// Page of the cost of each idle policy under each load: its rows, and the plan of the first run.
#include "history/page_policies.h"

#include "report/page_parts.h"

#include <lib/parse.h>

#include <jansson.h>

#include <errno.h>
#include <page.h>
#include <stdio.h>

#define TITLE_BYTES 160
#define HEADLINE_BYTES 192

static json_t *first_run(const json_t *root) {
	const json_t *runs = json_object_get(root, "runs");

	for (size_t n = 0; n < json_array_size(runs); n++) {
		if (json_is_object(json_array_get(runs, n)))
			return json_array_get(runs, n);
	}
	return NULL;
}

int page_policies(const json_t *root, const char *path, struct lab_why *why) {
	const json_t *run = first_run(root), *plan = json_object_get(run, "plan");
	const json_t *size = json_array_get(json_object_get(plan, "sizes_bytes"), 0);
	char title[TITLE_BYTES], headline[HEADLINE_BYTES], bytes[PARSE_TEXT_BYTES];
	struct page page = {.title = title, .headline = headline, .kind = "policies"};
	json_t *copy = json_copy((json_t *)root), *own = json_object();
	int failed = json_object_set_new(copy, "page", own);

	format_size_bytes((uint64_t)json_integer_value(size), bytes);
	snprintf(
		title, sizeof(title), "Latency against processor time: %.20s%s%s",
		page_member_text(plan, "op"), run != NULL ? ", " : "no run",
		run != NULL ? bytes : ""
	);
	snprintf(
		headline, sizeof(headline), "Started %.60s by %.60s; each row is a run of its own.",
		page_member_text(root, "started"), page_member_text(root, "program")
	);
	failed |= json_object_set_new(own, "headline", page_text(headline));
	if (json_object_get(run, "environment") != NULL)
		failed |= json_object_set(own, "environment", json_object_get(run, "environment"));
	(void)json_object_del(copy, "runs");
	(void)json_object_del(copy, "digests");
	if (failed == 0)
		return page_save(&page, copy, path, why);
	json_decref(copy);
	return lab_fail(why, -ENOMEM, "no memory for the page");
}
