// SPDX-License-Identifier: BSD-3-Clause
// CHECKS: the local checks of this node with their last result and the time of their next run.
#include "client/answers.h"
#include "client/listing.h"
#include "client/peer_list.h"
#include "client/server.h"

#include <control/checks.h>
#include <lib/show.h>
#include <records/checks.h>

#include <stdio.h>
#include <stdlib.h>

// A copy of a check, because a reload may come between two steps.
struct row {
	struct check_view view;
	char name[CHECKS_NAME_MAX + 1];
	char command[CHECKS_COMMAND_MAX + 1];
	char reason[VERDICT_REASON_MAX + 1];
	char evidence[VERDICT_EVIDENCE_MAX + 1];
};

struct checks_answer {
	struct listing listing;
	struct checks_counters counters;
	struct row rows[];
};

static json_t *checks_facts(struct session *session, void *work) {
	const struct checks_counters *counters = &((const struct checks_answer *)work)->counters;

	(void)session;
	return json_pack(
		"{s:i,s:i,s:i,s:i}", "warning", (int)counters->warning, "critical",
		(int)counters->critical, "unknown", (int)counters->unknown, "stuck",
		(int)counters->stuck_now
	);
}

static json_t *row_json(struct session *session, void *work, uint32_t n) {
	const struct row *row = &((const struct checks_answer *)work)->rows[n];
	const struct check_view *view = &row->view;
	uint64_t now_ns = overlay_now_ns(session->server->overlay);
	char state[2] = {view->what.state, '\0'}, at[SHOW_BYTES];
	struct check_row check = {
		.name = row->name,
		.command = row->command[0] != '\0' ? row->command : NULL,
		.interval_ns = view->interval_ns,
		.timeout_ns = view->timeout_ns,
		.said = check_level_name(view->told),
		.reason = row->reason,
		.last = json_null(),
		.running = view->running,
		.next_ns = RECORD_UNKNOWN, // no next run
		.stuck = json_null(),
	};

	if (view->ran)
		check.last = json_pack(
			"{s:s,s:o,s:s,s:I,s:I}", "result", check_level_name(view->level),
			"evidence", safe_string_json(row->evidence), "at",
			time_text(session, view->at_ns, at), "ago_ns",
			(json_int_t)time_age_ns(session, view->at_ns), "took_ns",
			(json_int_t)view->took_ns
		);
	if (view->next_ns != UINT64_MAX)
		check.next_ns = view->next_ns > now_ns ? view->next_ns - now_ns : 0;
	if (view->stuck)
		check.stuck = json_pack(
			"{s:i,s:o,s:s,s:o}", "pid", (int)view->what.pid, "comm",
			safe_string_json(view->what.comm), "state", state, "wchan",
			safe_string_json(view->what.wchan)
		);
	check.counts = json_pack(
		"{s:I,s:I,s:I,s:I}", "ok", (json_int_t)view->counts[CHECK_OK], "warning",
		(json_int_t)view->counts[CHECK_WARNING], "critical",
		(json_int_t)view->counts[CHECK_CRITICAL], "unknown",
		(json_int_t)view->counts[CHECK_UNKNOWN]
	);
	return record_to_json(&check_record, &check);
}

static const struct listing_ops ops = {
	.key = "checks", .facts = checks_facts, .row_json = row_json};

void answer_checks(struct session *session, const char *rest) {
	const struct checks *checks = session->server->checks;
	uint32_t count = checks != NULL ? checks_count(checks) : 0;
	struct checks_answer *answer = calloc(1, sizeof(*answer) + count * sizeof(answer->rows[0]));

	(void)rest;
	if (!session_begin(session, listing_step, free, answer))
		return;
	answer->listing.ops = &ops;
	answer->listing.count = count;
	if (checks != NULL)
		checks_counters(checks, &answer->counters);
	for (uint32_t n = 0; n < count; n++) {
		struct row *row = &answer->rows[n];
		struct check_view *view = &row->view;

		checks_at(checks, n, view);
		snprintf(row->name, sizeof(row->name), "%s", view->name);
		snprintf(row->command, sizeof(row->command), "%s", view->command);
		snprintf(row->reason, sizeof(row->reason), "%s", view->reason);
		snprintf(
			row->evidence, sizeof(row->evidence), "%s", view->ran ? view->evidence : ""
		);
	}
}
