// SPDX-License-Identifier: BSD-3-Clause
// CONNS: the connections of all agents (TCP links and RDMA pairs) by transport, and the slowest
// ones.
#include "client/answers.h"
#include "client/collect.h"
#include "client/names.h"
#include "client/peer_list.h"
#include "client/server.h"

#include <records/connections.h>

#include <stdlib.h>

static void conns_drop(void *work) {
	struct collect *collect = work;

	collect_fini(collect);
	free(collect);
}

// Limit a sum of the agents' numbers to INT64_MAX, the largest integer in the JSON output.
static uint64_t sum_or_largest(uint64_t sum) {
	return sum < INT64_MAX ? sum : INT64_MAX;
}

static json_t *sums_json(const char *name, const struct ras_conn_sums *sums) {
	bool timed = sums->samples > 0, known = sums->retransmits_unknown < sums->rows;
	const struct transport_row row = {
		.transport = name,
		.rows = sum_or_largest(sums->rows),
		.samples = sum_or_largest(sums->samples),
		.min_ns = timed ? sum_or_largest(sums->min_ns) : RECORD_UNKNOWN,
		.mean_ns = timed ? sum_or_largest(sums->mean_ns) : RECORD_UNKNOWN,
		.max_ns = timed ? sum_or_largest(sums->max_ns) : RECORD_UNKNOWN,
		.sent_bytes = sum_or_largest(sums->sent_bytes),
		.received_bytes = sum_or_largest(sums->received_bytes),
		.errors = sum_or_largest(sums->errors),
		.retransmits = known ? sum_or_largest(sums->retransmits) : RECORD_UNKNOWN,
		.retransmits_unknown = sum_or_largest(sums->retransmits_unknown),
	};

	return record_to_json(&transport_record, &row);
}

static json_t *worst_json(struct session *session, const struct ras_conn_worst *worst) {
	const struct ras_conn_row *conn = &worst->row;
	char node[NAMES_TEXT_BYTES], peer[NAMES_TEXT_BYTES];
	bool known = conn->retransmits != RAS_RETRANSMITS_UNKNOWN;
	const struct connection_row row = {
		.node = node,
		.peer = peer,
		.transport = ras_transport_name(conn->transport),
		.samples = sum_or_largest(conn->samples),
		.min_ns = sum_or_largest(conn->min_ns),
		.mean_ns = sum_or_largest(conn->mean_ns),
		.max_ns = sum_or_largest(conn->max_ns),
		.sent_bytes = sum_or_largest(conn->sent_bytes),
		.received_bytes = sum_or_largest(conn->received_bytes),
		.errors = sum_or_largest(conn->errors),
		.retransmits = known ? sum_or_largest(conn->retransmits) : RECORD_UNKNOWN,
	};

	names_format_id(session_ras(session), worst->node, node);
	names_format_id(session_ras(session), conn->peer, peer);
	return record_to_json(&connection_record, &row);
}

static bool conns_step(struct session *session) {
	const struct collect *collect = session->work;
	const struct overlay_answer *answer = collect->answer;
	json_t *transports, *worst;
	const struct ras_conns *conns;

	if (answer == NULL) {
		session_fail(
			session, "no connections could be collected: %s",
			collect_error_text(collect)
		);
		return true;
	}
	conns = answer->conns;
	transports = json_array();
	worst = json_array();
	for (uint32_t n = 0; n < RAS_TRANSPORT_COUNT; n++) {
		const char *name = ras_transport_name((enum ras_transport)n);

		if (conns->transports[n].rows > 0)
			json_array_append_new(transports, sums_json(name, &conns->transports[n]));
	}
	for (uint32_t n = 0; n < conns->worst_count; n++)
		json_array_append_new(worst, worst_json(session, &conns->worst[n]));
	session_json(
		session,
		json_pack(
			"{s:i,s:i,s:i,s:i,s:I,s:I,s:o,s:o}", "members",
			(int)answer->result.member_count, "answered", (int)answer->result.answered,
			"timeouts", (int)collect_timeouts(collect), "unreadable",
			(int)answer->bad_parts, "took_ns", (json_int_t)answer->result.elapsed_ns,
			"rows", (json_int_t)sum_or_largest(conns->all.rows), "transports",
			transports, "worst", worst
		)
	);
	return true;
}

void answer_conns(struct session *session, const char *rest) {
	struct collect *collect;

	(void)rest;
	if (!session_charge_question(session))
		return;
	collect = calloc(1, sizeof(*collect));
	if (!session_begin(session, NULL, conns_drop, collect))
		return;
	collect_ask(collect, session, RAS_COLLECT_CONNS, conns_step);
}
