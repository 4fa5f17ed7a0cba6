// SPDX-License-Identifier: BSD-3-Clause
// The part of WHY that comes from this agent's RDMA pairs with the node: which there are not, and
// why. Nothing where there is no fabric or no pair.
#include "client/why_pairs.h"

#include "client/event_text.h"
#include "client/gpus.h"
#include "client/names.h"
#include "client/server.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define SHOWN_MAX 16

static bool next_pair(
	const struct session *session,
	uint64_t peer,
	uint32_t *cursor,
	struct fabric_pair_view *ret_view
) {
	const struct client_server *server = session->server;

	while (server->fabric != NULL &&
	       server->fabric_calls->pair_next(server->fabric, cursor, ret_view)) {
		if (ret_view->pairing.key.peer == peer)
			return true;
	}
	return false;
}

static bool is_missing(const struct fabric_pair_view *view) {
	return view->pairing.state != PAIRING_READY &&
	       view->pairing.failure.reason != PAIRING_REASON_NONE;
}

static void say_pair(struct session *session, const struct fabric_pair_view *view) {
	const struct pairing_failure *failure = &view->pairing.failure;
	char theirs[DEVICE_NAME_MAX + 1], text[PAIRING_TEXT_MAX + 1];
	char words[2 * DEVICE_NAME_MAX + PAIRING_TEXT_MAX + 64];

	names_text(
		view->pairing.key.peer_device, strlen(view->pairing.key.peer_device), theirs,
		sizeof(theirs)
	);
	names_text(failure->text, strlen(failure->text), text, sizeof(text));
	snprintf(
		words, sizeof(words), "%s>%s %s, %s: %s", view->device, theirs,
		pairing_state_name(view->pairing.state), pairing_reason_name(failure->reason), text
	);
	event_text_wrap(session, 2, 4, words);
}

// Of the ways that flow labels choose, the bad one, which the rest of the path says little of.
static void say_bad_flows(struct session *session, const struct ras_peer *peer) {
	const struct client_server *server = session->server;
	struct fabric_path_view view;
	char words[2 * DEVICE_NAME_MAX + 160], theirs[DEVICE_NAME_MAX + 1];
	uint32_t cursor = 0, said = 0;

	while (server->fabric != NULL &&
	       server->fabric_calls->path_next(server->fabric, &cursor, &view)) {
		for (uint32_t n = 0; view.peer == peer->record->id && n < view.flow_count; n++) {
			const struct fabric_flow *flow = &view.flows[n];

			if (!flow->bad)
				continue;
			if (said++ == 0)
				text_print(&session->out, "\nOne way to it of several\n");
			names_text(
				view.peer_device, strlen(view.peer_device), theirs, sizeof(theirs)
			);
			snprintf(
				words, sizeof(words),
				"%s>%s: of %u flow labels %#07x is the bad one: %" PRIu64
				" lost and %" PRIu64 " late of %" PRIu64,
				view.device, theirs, view.flow_count, flow->label, flow->lost,
				flow->late, flow->probes
			);
			event_text_wrap(session, 2, 4, words);
		}
	}
}

void why_say_pairs(struct session *session, const struct ras_peer *peer) {
	uint32_t cursor = 0, count = 0, ready = 0, shown = 0;
	struct fabric_pair_view view;

	say_bad_flows(session, peer);
	gpus_say_bad(session, peer->record->id, "\nMemory of its GPU, as it is read from here\n");
	while (next_pair(session, peer->record->id, &cursor, &view)) {
		count++;
		ready += view.pairing.state == PAIRING_READY;
	}
	if (count == 0)
		return;
	text_print(&session->out, "\nRDMA pairs from here to it\n  %u of %u ready\n", ready, count);
	cursor = 0;
	while (next_pair(session, peer->record->id, &cursor, &view) && shown < SHOWN_MAX) {
		if (!is_missing(&view))
			continue;
		say_pair(session, &view);
		shown++;
	}
}

void why_put_pairs(struct session *session, const struct ras_peer *peer, json_t *object) {
	json_t *array = json_array();
	struct fabric_pair_view view;
	uint32_t cursor = 0;

	while (next_pair(session, peer->record->id, &cursor, &view)) {
		const struct pairing_failure *failure = &view.pairing.failure;
		char theirs[DEVICE_NAME_MAX + 1], text[PAIRING_TEXT_MAX + 1];
		bool missing = is_missing(&view);

		names_text(
			view.pairing.key.peer_device, strlen(view.pairing.key.peer_device), theirs,
			sizeof(theirs)
		);
		names_text(failure->text, strlen(failure->text), text, sizeof(text));
		json_array_append_new(
			array,
			json_pack(
				"{s:s,s:s,s:s,s:o,s:o}", "device", view.device, "peer_device",
				theirs, "state", pairing_state_name(view.pairing.state), "reason",
				missing ? json_string(pairing_reason_name(failure->reason))
					: json_null(),
				"text", missing ? json_string(text) : json_null()
			)
		);
	}
	json_object_set_new(object, "pairs", array);
	gpus_put(session, peer->record->id, object);
}
