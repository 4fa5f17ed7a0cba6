// SPDX-License-Identifier: BSD-3-Clause
// Formats an answer that the bench received as the program tocsin prints it.
#include "control/client/client_bench.h"
#include "show/answers.h"
#include "show/event_line.h"

#include <stdio.h>
#include <string.h>

static void show_events(struct page *page, const json_t *answer) {
	const json_t *event;
	size_t n;

	json_array_foreach(json_object_get(answer, "events"), n, event)
		event_line_print(event, page->whole, false, page->text);
}

static const struct {
	const char *question;
	show_fn *show;
} pages[] = {
	{"CHECKS", show_checks}, {"COMMS", show_comms},	  {"CONNS", show_conns},
	{"EVENTS", show_events}, {"HEALTH", show_health}, {"LINKS", show_links},
	{"PAIRS", show_pairs},	 {"PATH", show_path},	  {"PATHS", show_paths},
	{"PEERS", show_peers},	 {"PING", show_ping},	  {"PROBE", show_rdma_ping},
	{"WHY", show_why},
};

static char shown[1 << 20];

static show_fn *show_of(const char *question) {
	size_t length = strcspn(question, " \n");

	for (size_t n = 0; n < COUNT_OF(pages); n++) {
		if (strlen(pages[n].question) == length &&
		    strncmp(pages[n].question, question, length) == 0)
			return pages[n].show;
	}
	return NULL;
}

static void print_page(show_fn *show, json_t *answer) {
	FILE *out = fmemopen(shown, sizeof(shown), "w");
	struct page page;

	if (show != show_path) // rows of another node's agent are passed on as they are
		bench_assert_units(answer);
	assert_non_null(out);
	assert_int_equal(page_begin(&page, bench.whole, answer), 0);
	show(&page, answer);
	page_end(&page, false, out);
	fclose(out);
}

const char *bench_shown(int fd) {
	const char *heard = bench_hear(fd);
	json_t *answer = json_loads(heard, 0, NULL);
	const char *error = json_string_value(json_object_get(answer, "error"));
	show_fn *show = show_of(bench.question);

	shown[0] = '\0';
	if (error != NULL)
		snprintf(shown, sizeof(shown), "ERROR: %s\n", error);
	else if (json_is_true(json_object_get(answer, "ok")))
		snprintf(shown, sizeof(shown), "OK\n");
	else if (answer != NULL && show != NULL)
		print_page(show, answer);
	else
		snprintf(shown, sizeof(shown), "%s", heard);
	json_decref(answer);
	return shown;
}
