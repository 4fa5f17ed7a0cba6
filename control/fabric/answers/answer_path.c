// SPDX-License-Identifier: BSD-3-Clause
// PATH a b: all data about the path between two nodes, from both ends, and this node's verdict on
// it. Each end is asked for its own data; an end that does not answer is reported.
#include "client/answers.h"
#include "client/event_text.h"
#include "client/names.h"
#include "client/peer_list.h"
#include "client/remote.h"
#include "client/server.h"
#include "fabric/answers/paths.h"

#include <control/finding.h>
#include <control/health.h>
#include <lib/container.h>
#include <lib/escape.h>
#include <records/path.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATH_TIMEOUT_NS (5 * RAS_NS_PER_SEC)
#define PATH_AHEAD_NS (500 * RAS_NS_PER_MS) // reserve for the answer's way back to the client
#define ANSWER_BYTES_MAX (256u << 10)
#define ENDS 2
#define WHY_BYTES 160

struct path_end {
	struct path_report *report;
	struct overlay_call call;
	uint64_t id;
	char name[NAMES_TEXT_BYTES];
	bool asked; // its answer is pending
	struct text came;
	json_t *answer;	     // NULL: none
	char why[WHY_BYTES]; // the reason, if there is no answer
};

struct path_report {
	struct session *session;
	struct path_end ends[ENDS];
	uint32_t count; // one if both nodes are the same
};

static void path_drop(void *work) {
	struct path_report *report = work;

	for (uint32_t n = 0; n < report->count; n++) {
		struct path_end *end = &report->ends[n];

		if (end->asked)
			overlay_call_cancel(&end->call);
		text_fini(&end->came);
		json_decref(end->answer);
	}
	free(report);
}

// The verdict of this node.

static json_t *end_json(const struct path_end *end) {
	json_t *paths = json_object_get(end->answer, "paths");

	json_t *object = json_pack(
		"{s:o,s:b,s:o,s:O?}", "node", safe_string_json(end->name), "answered",
		end->answer != NULL, "error",
		end->answer != NULL ? json_null() : json_string(end->why), "paths", paths
	);

	if (end->answer != NULL)
		json_object_update_new(
			object,
			json_pack(
				"{s:I,s:b}", "devices",
				json_integer_value(json_object_get(end->answer, "devices")),
				"probing", json_is_true(json_object_get(end->answer, "probing"))
			)
		);
	return object;
}

static json_t *verdict_json(const struct path_report *report, uint32_t n) {
	struct session *session = report->session;
	struct path_verdict_row row;
	struct finding finding;
	struct ras_peer peer;
	char since[SHOW_BYTES];
	uint64_t since_ns;

	if (ras_peer_find(session_ras(session), report->ends[n].id, &peer) != 0)
		return json_null();
	finding_for_peer(session->server->config.health, &peer, &finding);
	since_ns = finding.has_view && finding.view.since_ns != 0 ? finding.view.since_ns
								  : peer.since_ns;
	row = (struct path_verdict_row){
		.node = report->ends[n].name,
		.state = ras_state_name(peer.state),
		.grade = finding_grade_name(finding.grade),
		.verdict = finding.verdict,
		.reason = finding.reason,
		.evidence = finding.evidence,
		.maint = peer.maint,
		.since = since_ns != 0 ? time_text(session, since_ns, since) : NULL,
		.for_ns = time_for_ns(session, since_ns),
	};
	return record_to_json(&path_verdict_record, &row);
}

static json_t *blame_json(const struct path_report *report) {
	static const char *const names[] = {
		[PATH_BLAME_PATH] = "path", [PATH_BLAME_NODE] = "node", [PATH_BLAME_PORT] = "port",
		[PATH_BLAME_HOST] = "host", [PATH_BLAME_LEAF] = "leaf",
	};
	const struct verdict_engine *engine = session_verdict_engine(report->session);
	uint64_t a = report->ends[0].id, b = report->ends[report->count - 1].id;
	const struct ras *ras = session_ras(report->session);
	char observer[NAMES_TEXT_BYTES], node[NAMES_TEXT_BYTES], at[SHOW_BYTES];
	struct verdict_path_view view;
	struct path_blame_row row;
	json_t *rows = json_array();
	uint32_t cursor = 0;

	while (engine != NULL && verdict_bad_path_next(engine, &cursor, &view)) {
		uint64_t from = view.observation.observer, to = view.observation.subject;

		if ((from != a || to != b) && (from != b || to != a))
			continue;
		row = (struct path_blame_row){
			.observer = observer,
			.seen = observation_kind_name(view.observation.kind),
			.at = time_text(report->session, view.seen_ns, at),
			.ago_ns = time_for_ns(report->session, view.seen_ns),
			.blamed = names[view.blame],
			.node = view.node != 0 ? node : NULL,
			.what = view.what,
		};
		names_format_id(ras, view.observation.observer, observer);
		names_format_id(ras, view.node, node);
		json_array_append_new(rows, record_to_json(&path_blame_record, &row));
	}
	return rows;
}

// Return why this end has no path, as a phrase after its name.
static const char *end_missing_reason(const struct path_end *end) {
	if (end->answer == NULL)
		return end->why;
	if (json_integer_value(json_object_get(end->answer, "devices")) == 0)
		return "has no RDMA device";
	if (!json_is_true(json_object_get(end->answer, "probing")))
		return "does not probe, because [probe] enabled is no";
	return "has not probed it yet";
}

static bool path_step(struct session *session) {
	const struct path_report *report = session->work;
	const struct path_end *first = &report->ends[0], *last = &report->ends[report->count - 1];
	json_t *ends, *verdicts;
	bool any = false;

	for (uint32_t n = 0; n < report->count; n++)
		any = any || json_array_size(json_object_get(report->ends[n].answer, "paths")) > 0;
	if (!any && report->count == 1) {
		session_fail(
			session, "no path from %s to itself is known: %s %s", first->name,
			first->name, end_missing_reason(first)
		);
		return true;
	}
	if (!any) {
		session_fail(
			session, "no path between %s and %s is known: %s %s, %s %s", first->name,
			last->name, first->name, end_missing_reason(first), last->name,
			end_missing_reason(last)
		);
		return true;
	}
	ends = json_array();
	verdicts = json_array();
	for (uint32_t n = 0; n < report->count; n++) {
		json_array_append_new(ends, end_json(&report->ends[n]));
		json_array_append_new(verdicts, verdict_json(report, n));
	}
	session_json(
		session, json_pack(
				 "{s:o,s:o,s:o}", "ends", ends, "verdicts", verdicts, "blame",
				 blame_json(report)
			 )
	);
	return true;
}

// The questions to the ends.

static void path_end_fail(struct path_end *end, const char *words) {
	snprintf(end->why, sizeof(end->why), "%s", words);
}

static bool path_report_has_all_answers(const struct path_report *report) {
	for (uint32_t n = 0; n < report->count; n++) {
		if (report->ends[n].asked)
			return false;
	}
	return true;
}

static int on_piece(struct overlay_call *call, const void *data, size_t size) {
	struct path_end *end = container_of(call, struct path_end, call);

	if (text_size(&end->came) + size > ANSWER_BYTES_MAX)
		return -EMSGSIZE;
	text_add(&end->came, data, size);
	return end->came.failed ? -ENOMEM : 0;
}

static void on_end(struct overlay_call *call, int err) {
	struct path_end *end = container_of(call, struct path_end, call);
	char words[WHY_BYTES / 2] = "";
	json_t *answer = NULL;
	const char *error;

	end->asked = false;
	if (err == 0)
		answer = json_loadb(
			text_size(&end->came) > 0 ? text_front(&end->came) : "",
			text_size(&end->came), JSON_DISABLE_EOF_CHECK, NULL
		);
	error = json_string_value(json_object_get(answer, "error"));
	if (err != 0) {
		path_end_fail(end, node_call_error_text(err));
	} else if (error == NULL && json_is_array(json_object_get(answer, "paths"))) {
		end->answer = json_incref(answer);
	} else if (error != NULL) {
		names_sanitize_text(error, strlen(error), words, sizeof(words));
		snprintf(end->why, sizeof(end->why), "reports an error: %s", words);
	} else {
		path_end_fail(end, "sent an invalid answer");
	}
	json_decref(answer);
	if (path_report_has_all_answers(end->report))
		session_continue(end->report->session, path_step);
}

static void path_end_ask(struct path_end *end, const struct ras_record *other) {
	struct session *session = end->report->session;
	// The timeout is at least one second, so the subtraction cannot wrap.
	uint64_t timeout_ns = session_timeout_ns(session, PATH_TIMEOUT_NS) - PATH_AHEAD_NS;
	char command[NAMES_TEXT_BYTES + 8];
	struct text line = {0};
	int err;

	snprintf(command, sizeof(command), "PATHS %.*s", (int)other->name_length, other->name);
	remote_line_format(session, command, &line);
	end->call.piece = on_piece;
	end->call.ended = on_end;
	err = line.failed ? -ENOMEM
			  : overlay_call_start(
				    session->server->overlay, end->id, text_front(&line),
				    timeout_ns, &end->call
			    );
	text_fini(&line);
	end->asked = err == 0;
	if (err != 0)
		path_end_fail(end, node_call_error_text(err));
}

void answer_path(struct session *session, const char *rest) {
	uint64_t self = ras_self_id(session_ras(session));
	struct path_report *report;
	struct ras_peer peers[ENDS];
	char quoted[96];

	if (!names_parse_next(session, &rest, &peers[0]) ||
	    !names_parse_next(session, &rest, &peers[1]))
		return;
	if (*rest != '\0') {
		escape_quote(rest, strlen(rest), quoted, sizeof(quoted));
		session_fail(session, "PATH takes two nodes, but %s follows", quoted);
		return;
	}
	if (!session_charge_question(session))
		return;
	report = calloc(1, sizeof(*report));
	if (!session_begin(session, NULL, path_drop, report))
		return;
	report->session = session;
	report->count = peers[0].record->id == peers[1].record->id ? 1 : ENDS;
	for (uint32_t n = 0; n < report->count; n++) {
		report->ends[n] = (struct path_end){.report = report, .id = peers[n].record->id};
		names_format_record(peers[n].record, report->ends[n].name);
	}
	for (uint32_t n = 0; n < report->count; n++) {
		const struct ras_peer *other = &peers[ENDS - 1 - n];

		if (report->ends[n].id == self)
			report->ends[n].answer = paths_end_json(session, other);
		else
			path_end_ask(&report->ends[n], other->record);
	}
	if (path_report_has_all_answers(report))
		session->step = path_step;
}
