// SPDX-License-Identifier: BSD-3-Clause
// The section of WHY about this agent's RDMA pairs with a node: the state of each pair, and why a
// pair is missing. Arrays are empty if there is no fabric.
#include "verdict/answers/why_pairs.h"

#include "client/names.h"
#include "client/server.h"
#include "fabric/answers/gpus.h"

#include <records/why.h>

#include <string.h>

// Return the flow labels that are worse than the others of their path. The statistics of the whole
// path hide them.
static json_t *bad_flows_json(struct session *session, const struct ras_peer *peer) {
	const struct client_server *server = session->server;
	json_t *array = json_array();
	struct fabric_path_view view;
	uint32_t cursor = 0;

	while (server->fabric != NULL &&
	       server->fabric_calls->path_next(server->fabric, &cursor, &view)) {
		for (uint32_t n = 0; view.peer == peer->record->id && n < view.flow_count; n++) {
			const struct fabric_flow *flow = &view.flows[n];
			char theirs[DEVICE_NAME_MAX + 1];
			const struct bad_flow_row row = {
				.device = view.device,
				.peer_device = theirs,
				.labels = view.flow_count,
				.label = flow->label,
				.lost = flow->lost,
				.late = flow->late,
				.probes = flow->probes,
			};

			if (!flow->bad)
				continue;
			names_sanitize_text(
				view.peer_device, strlen(view.peer_device), theirs, sizeof(theirs)
			);
			json_array_append_new(array, record_to_json(&bad_flow_record, &row));
		}
	}
	return array;
}

void why_put_pairs(struct session *session, const struct ras_peer *peer, json_t *object) {
	const struct client_server *server = session->server;
	json_t *array = json_array();
	struct fabric_pair_view view;
	uint32_t cursor = 0;

	while (server->fabric != NULL &&
	       server->fabric_calls->pair_next(server->fabric, &cursor, &view)) {
		const struct pairing_failure *failure = &view.pairing.failure;
		char theirs[DEVICE_NAME_MAX + 1], text[PAIRING_TEXT_MAX + 1];
		bool missing = view.pairing.state != PAIRING_READY &&
			       failure->reason != PAIRING_REASON_NONE;
		const struct peer_pair_row row = {
			.device = view.device,
			.peer_device = theirs,
			.state = pairing_state_name(view.pairing.state),
			.reason = missing ? pairing_reason_name(failure->reason) : NULL,
			.text = missing ? text : NULL,
		};

		if (view.pairing.key.peer != peer->record->id)
			continue;
		names_sanitize_text(
			view.pairing.key.peer_device, strlen(view.pairing.key.peer_device), theirs,
			sizeof(theirs)
		);
		names_sanitize_text(failure->text, strlen(failure->text), text, sizeof(text));
		json_array_append_new(array, record_to_json(&peer_pair_record, &row));
	}
	json_object_set_new(object, "pairs", array);
	json_object_set_new(object, "bad_flows", bad_flows_json(session, peer));
	gpus_add_paths(session, peer->record->id, object);
}
