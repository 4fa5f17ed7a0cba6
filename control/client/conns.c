// SPDX-License-Identifier: BSD-3-Clause
// CONNS: the connections of all agents, TCP links and RDMA pairs, by transport; and the slowest.
#include "client/answers.h"
#include "client/names.h"
#include "client/peer_list.h"
#include "client/server.h"
#include "nccl/status.h"

#include <lib/container.h>
#include <lib/show.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define NODE_WIDTH 20

static void conns_drop(void *work) {
	struct status *status = work;

	if (status->asked)
		overlay_forget_question(&status->question);
	if (status->answer != NULL)
		overlay_answer_put(status->answer);
	free(status);
}

// Text.

// Retransmits of RDMA pairs are the device's own business: "?" for rows that do not tell.
static void show_retransmits(const struct ras_conn_sums *sums, char text[static SHOW_BYTES]) {
	if (sums->retransmits_unknown == sums->rows)
		snprintf(text, SHOW_BYTES, "unknown");
	else if (sums->retransmits_unknown == 0)
		snprintf(text, SHOW_BYTES, "%" PRIu64, sums->retransmits);
	else
		snprintf(
			text, SHOW_BYTES, "%" PRIu64 ", %" PRIu64 " unknown", sums->retransmits,
			sums->retransmits_unknown
		);
}

static void say_sums(struct text *out, const char *name, const struct ras_conn_sums *sums) {
	char min[SHOW_BYTES] = "-", mean[SHOW_BYTES] = "-", max[SHOW_BYTES] = "-";
	char sent[SHOW_BYTES], received[SHOW_BYTES], retransmits[SHOW_BYTES];

	if (sums->samples > 0) {
		show_duration(sums->min_ns, min);
		show_duration(sums->mean_ns, mean);
		show_duration(sums->max_ns, max);
	}
	show_bytes(sums->sent_bytes, sent);
	show_bytes(sums->received_bytes, received);
	show_retransmits(sums, retransmits);
	text_print(
		out, "%-10s %6" PRIu64 " %-9s %-9s %-9s %-10s %-10s %8" PRIu64 " %s\n", name,
		sums->rows, min, mean, max, sent, received, sums->errors, retransmits
	);
}

static void say_worst(struct session *session, const struct ras_conn_worst *worst) {
	const struct ras_conn_row *row = &worst->row;
	char node[NAMES_TEXT_BYTES], peer[NAMES_TEXT_BYTES];
	char node_cell[SHOW_BYTES], peer_cell[SHOW_BYTES];
	char min[SHOW_BYTES], mean[SHOW_BYTES], max[SHOW_BYTES];

	names_id(session_ras(session), worst->node, node);
	names_id(session_ras(session), row->peer, peer);
	show_duration(row->min_ns, min);
	show_duration(row->mean_ns, mean);
	show_duration(row->max_ns, max);
	text_print(
		&session->out, "%-20s %-20s %-10s %-9s %-9s %-9s %8" PRIu64 "\n",
		session_cell(session, node, NODE_WIDTH, node_cell),
		session_cell(session, peer, NODE_WIDTH, peer_cell),
		ras_transport_name(row->transport), mean, min, max, row->errors
	);
}

static void say_text(struct session *session, const struct status *status) {
	const struct overlay_answer *answer = status->answer;
	const struct ras_conns *conns = answer->conns;
	struct text *out = &session->out;

	text_print(
		out,
		"%" PRIu64 " connections, each from either end, of %u of %u agents in %.3f s\n",
		conns->all.rows, answer->result.answered, answer->result.member_count,
		status_seconds(status)
	);
	if (conns->all.rows > 0)
		text_print(
			out, "\n%-10s %6s %-9s %-9s %-9s %-10s %-10s %8s %s\n", "TRANSPORT",
			"CONNS", "MIN", "MEAN", "MAX", "SENT", "RECEIVED", "ERRORS", "RETRANSMITS"
		);
	for (uint32_t n = 0; n < RAS_TRANSPORT_COUNT; n++) {
		if (conns->transports[n].rows > 0)
			say_sums(
				out, ras_transport_name((enum ras_transport)n),
				&conns->transports[n]
			);
	}
	if (conns->worst_count > 0)
		text_print(
			out, "\nThe slowest:\n%-20s %-20s %-10s %-9s %-9s %-9s %8s\n", "NODE",
			"PEER", "TRANSPORT", "MEAN", "MIN", "MAX", "ERRORS"
		);
	for (uint32_t n = 0; n < conns->worst_count; n++)
		say_worst(session, &conns->worst[n]);
	session_ok(session);
}

// JSON.

// Sums of what others say stay at their largest number, which JSON's integers do not reach.
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

	names_id(session_ras(session), worst->node, node);
	names_id(session_ras(session), row->peer, peer);
	return json_pack(
		"{s:o,s:o,s:s,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:o}", "node", peer_name_json(node),
		"peer", peer_name_json(peer), "transport", ras_transport_name(row->transport),
		"samples", json_whole(row->samples), "min_ns", json_whole(row->min_ns), "mean_ns",
		json_whole(row->mean_ns), "max_ns", json_whole(row->max_ns), "sent_bytes",
		json_whole(row->sent_bytes), "received_bytes", json_whole(row->received_bytes),
		"errors", json_whole(row->errors), "retransmits",
		known ? json_integer(json_whole(row->retransmits)) : json_null()
	);
}

static void say_json(struct session *session, const struct status *status) {
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
			session, "no connections could be collected: %s", status_trouble(status)
		);
	else if (session->json)
		say_json(session, status);
	else
		say_text(session, status);
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
	if (!session_may_ask(session))
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
