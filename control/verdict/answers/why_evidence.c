// SPDX-License-Identifier: BSD-3-Clause
// The verdict section of WHY: the current verdict, the observations, the node's own statements, and
// earlier verdicts.
#include "verdict/answers/why_evidence.h"

#include "client/event_text.h"
#include "client/names.h"
#include "client/peer_list.h"
#include "client/server.h"

#include <control/finding.h>
#include <control/health.h>
#include <records/why.h>

#include <string.h>

static json_t *observations_json(struct session *session, uint64_t id) {
	json_t *array = json_array();
	char name[NAMES_TEXT_BYTES];
	struct observation observation;
	uint32_t cursor = 0;
	uint64_t seen_ns;

	while (verdict_observation_next(
		session_verdict_engine(session), id, &cursor, &observation, &seen_ns
	)) {
		const struct observation_row row = {
			.observer = name,
			.kind = observation_kind_name(observation.kind),
			.responder = observation_responder_name(observation.responder),
			.device = observation.device,
			.peer_device = observation.peer_device,
			.own_good = observation.own_good,
			.shares_interface = observation.shares,
			.reach = verdict_reach_name(observation.reach),
			.median_ns = observation.median_ns,
			.baseline_ns = observation.baseline_ns,
			.lost_permille = observation.lost_permille,
			.lost_bytes =
				observation.kind == OBSERVATION_LOSSY ? observation.lost_bytes : 0,
			.age_ns = time_age_ns(session, seen_ns),
		};

		names_format_id(session_ras(session), observation.observer, name);
		json_array_append_new(array, record_to_json(&observation_record, &row));
	}
	return array;
}

static json_t *statements_json(struct session *session, uint64_t id) {
	json_t *array = json_array();
	char evidence[STATE_TEXT_BYTES];
	struct statement statement;
	uint32_t cursor = 0;
	uint64_t said_ns;

	while (verdict_statement_next(
		session_verdict_engine(session), id, &cursor, &statement, &said_ns
	)) {
		const struct statement_row row = {
			.verdict = verdict_name(statement.verdict),
			.reason = statement.reason,
			.evidence = evidence,
			.age_ns = time_age_ns(session, said_ns),
		};

		names_sanitize_text(
			statement.evidence, strlen(statement.evidence), evidence, sizeof(evidence)
		);
		json_array_append_new(array, record_to_json(&statement_record, &row));
	}
	return array;
}

static json_t *past_json(struct session *session, uint64_t id) {
	json_t *array = json_array();
	char since[SHOW_BYTES], until[SHOW_BYTES];
	struct verdict_past past;
	uint32_t cursor = 0;

	while (verdict_past_next(session_verdict_engine(session), id, &cursor, &past)) {
		const struct past_verdict_row row = {
			.verdict = verdict_name(past.verdict),
			.reason = past.reason,
			.since = time_text(session, past.since_ns, since),
			.until = time_text(session, past.until_ns, until),
			.for_ns = past.until_ns - past.since_ns,
		};

		if (past.since_ns != 0)
			json_array_append_new(array, record_to_json(&past_verdict_record, &row));
	}
	return array;
}

void why_put_evidence(struct session *session, const struct ras_peer *peer, json_t *object) {
	struct finding finding;
	uint64_t since_ns;

	finding_for_peer(session->server->config.health, peer, &finding);
	if (!finding.has_view)
		return;
	since_ns = finding.view.since_ns != 0 ? finding.view.since_ns : peer->since_ns;
	json_object_set_new(
		object, "verdict_for_ns",
		since_ns != 0 ? json_integer((json_int_t)time_age_ns(session, since_ns))
			      : json_null()
	);
	json_object_set_new(
		object, "confidence",
		json_string(finding.view.confidence == VERDICT_SURE ? "sure" : "likely")
	);
	json_object_set_new(object, "both_planes", json_boolean(finding.view.both_planes));
	json_object_set_new(object, "reason", json_string(finding.reason));
	json_object_set_new(object, "evidence", safe_string_json(finding.evidence));
	json_object_set_new(object, "advice", json_string(verdict_advice_name(finding.advice)));
	json_object_set_new(
		object, "withheld",
		finding.withheld != NULL ? json_string(finding.withheld) : json_null()
	);
	json_object_set_new(object, "observations", observations_json(session, peer->record->id));
	json_object_set_new(object, "statements", statements_json(session, peer->record->id));
	json_object_set_new(object, "verdicts_before", past_json(session, peer->record->id));
}
