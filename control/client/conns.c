// SPDX-License-Identifier: BSD-3-Clause
// CONNS: the connections of all agents (TCP links and RDMA pairs) by transport, and the slowest
// ones.
#include "client/answers.h"
#include "client/names.h"
#include "client/peer_list.h"
#include "client/server.h"
#include "nccl/status.h"

#include <lib/container.h>
#include <lib/show.h>

#include <stdlib.h>

static void conns_drop(void *work) {
	struct status *status = work;

	if (status->asked)
		overlay_cancel_question(&status->question);
	if (status->answer != NULL)
		overlay_answer_put(status->answer);
	free(status);
}

// Clamp a number for JSON, whose integers are signed. Sums of other agents' values saturate at the
// unsigned maximum.
static json_int_t json_whole(uint64_t number) {
	return number < INT64_MAX ? (json_int_t)number : INT64_MAX;
}

static json_t *sums_json(const char *name, const struct ras_conn_sums *sums) {
	bool timed = sums->samples > 0, known = sums->retransmits_unknown < sums->rows;

	return json_pack(
		"{s:s,s:I,s:I,s:o,s:o,s:o,s:I,s:I,s:I,s:o,s:I}", "transport", name, "rows",
		json_whole(sums->rows), "samples", json_whole(sums->samples), "min_ns",
		timed ? json_integer(json_whole(sums->min_ns)) : json_null(), "mean_ns",
		timed ? json_integer(json_whole(sums->mean_ns)) : json_null(), "max_ns",
		timed ? json_integer(json_whole(sums->max_ns)) : json_null(), "sent_bytes",
		json_whole(sums->sent_bytes), "received_bytes", json_whole(sums->received_bytes),
		"errors", json_whole(sums->errors), "retransmits",
		known ? json_integer(json_whole(sums->retransmits)) : json_null(),
		"retransmits_unknown", json_whole(sums->retransmits_unknown)
	);
}

static json_t *worst_json(struct session *session, const struct ras_conn_worst *worst) {
	const struct ras_conn_row *row = &worst->row;
	char node[NAMES_TEXT_BYTES], peer[NAMES_TEXT_BYTES];
	bool known = row->retransmits != RAS_RETRANSMITS_UNKNOWN;

	names_format_id(session_ras(session), worst->node, node);
	names_format_id(session_ras(session), row->peer, peer);
	return json_pack(
		"{s:o,s:o,s:s,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:o}", "node", safe_string_json(node),
		"peer", safe_string_json(peer), "transport", ras_transport_name(row->transport),
		"samples", json_whole(row->samples), "min_ns", json_whole(row->min_ns), "mean_ns",
		json_whole(row->mean_ns), "max_ns", json_whole(row->max_ns), "sent_bytes",
		json_whole(row->sent_bytes), "received_bytes", json_whole(row->received_bytes),
		"errors", json_whole(row->errors), "retransmits",
		known ? json_integer(json_whole(row->retransmits)) : json_null()
	);
}

static void conns_print_json(struct session *session, const struct status *status) {
	const struct overlay_answer *answer = status->answer;
	const struct ras_conns *conns = answer->conns;
	json_t *transports = json_array(), *worst = json_array();

	for (uint32_t n = 0; n < RAS_TRANSPORT_COUNT; n++)
		if (conns->transports[n].rows > 0)
			json_array_append_new(
				transports, sums_json(
						    ras_transport_name((enum ras_transport)n),
						    &conns->transports[n]
					    )
			);
	for (uint32_t n = 0; n < conns->worst_count; n++)
		json_array_append_new(worst, worst_json(session, &conns->worst[n]));
	session_json(
		session,
		json_pack(
			"{s:i,s:i,s:i,s:i,s:f,s:I,s:o,s:o}", "members",
			(int)answer->result.member_count, "answered", (int)answer->result.answered,
			"timeouts", (int)status_timeouts(status), "unreadable",
			(int)answer->bad_parts, "seconds", status_seconds(status), "rows",
			json_whole(conns->all.rows), "transports", transports, "worst", worst
		)
	);
}

static bool conns_step(struct session *session) {
	const struct status *status = session->work;

	if (status->answer == NULL)
		session_fail(
			session, "no connections could be collected: %s", status_error_text(status)
		);
	else
		conns_print_json(session, status);
	return true;
}

static void on_answer(struct overlay_question *question, struct overlay_answer *answer) {
	struct status *status = container_of(question, struct status, question);

	status->asked = false;
	status->err = answer->err;
	if (answer->err < 0)
		overlay_answer_put(answer);
	else
		status->answer = answer;
	session_continue(status->session, conns_step);
}

void answer_conns(struct session *session, const char *rest) {
	struct status *status;

	(void)rest;
	if (!session_charge_question(session))
		return;
	status = calloc(1, sizeof(*status));
	if (!session_begin(session, NULL, conns_drop, status))
		return;
	status->session = session;
	status->question.answered = on_answer;
	status->err = overlay_ask_all(
		session->server->overlay, RAS_COLLECT_CONNS, session_timeout_ns(session, 0),
		&status->question
	);
	status->asked = status->err == 0;
	if (!status->asked)
		session->step = conns_step;
}
