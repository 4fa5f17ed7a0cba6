// SPDX-License-Identifier: BSD-3-Clause
// PEERS [state]: the table of peers, written in steps. A peer that is forgotten meanwhile is left
// out.
#include "client/absent.h"
#include "client/answers.h"
#include "client/listing.h"
#include "client/names.h"
#include "client/peer_list.h"
#include "client/server.h"

#include <lib/escape.h>
#include <lib/show.h>
#include <lib/suggestion.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define QUOTED_BYTES 96

struct peers {
	struct listing listing;
	struct peer_list_row *rows;
	uint32_t row_count;
	struct absent missing; // listed after the rows
};

static const enum ras_state states[] = {
	RAS_ALIVE, RAS_SUSPECT, RAS_UNREACHABLE, RAS_DEAD, RAS_LEFT, RAS_UNKNOWN,
};
#define STATE_COUNT (sizeof(states) / sizeof(states[0]))

static void peers_drop(void *work) {
	struct peers *peers = work;

	absent_fini(&peers->missing);
	free(peers->rows);
	free(peers);
}

static json_t *peers_view_json(struct session *session, void *work) {
	const struct peers *peers = work;
	struct ras_view view;
	char digest[32];

	ras_view(session_ras(session), &view);
	snprintf(digest, sizeof(digest), "0x%016" PRIx64, view.digest);
	return json_pack(
		"{s:I,s:s,s:b,s:b,s:i,s:i,s:i,s:i,s:i,s:i}", "view", (json_int_t)view.number,
		"digest", digest, "joined", view.joined, "brake", view.brake, "alive",
		(int)view.alive, "suspect", (int)view.suspect, "unreachable", (int)view.unreachable,
		"dead", (int)view.dead, "left", (int)view.left, "missing", (int)peers->missing.count
	);
}

static json_t *row_json(struct session *session, void *work, uint32_t n) {
	struct peers *peers = work;
	struct ras_peer peer;

	if (n >= peers->row_count)
		return json_pack(
			"{s:o,s:s}", "node",
			safe_string_json(peers->missing.names[n - peers->row_count]), "state",
			ABSENT_STATE
		);
	if (!peer_list_find_peer(session_ras(session), &peers->rows[n], &peer))
		return json_null();
	return peer_list_json(session, &peer);
}

static const struct listing_ops ops = {
	.key = "peers", .facts = peers_view_json, .row_json = row_json};

static bool is_in_state(const struct ras_peer *peer, const void *ctx) {
	return peer->state == *(const enum ras_state *)ctx;
}

void answer_peers(struct session *session, const char *rest) {
	const enum ras_state *state = NULL;
	struct peer_list_filter wish;
	struct suggestion suggestion;
	char quoted[QUOTED_BYTES];
	struct peers *peers;

	suggestion_init(&suggestion, rest);
	for (size_t n = 0; *rest != '\0' && state == NULL && n < STATE_COUNT; n++) {
		// UNKNOWN stands for an absent node, which only the roster names.
		const char *name =
			states[n] == RAS_UNKNOWN ? ABSENT_STATE : ras_state_name(states[n]);

		if (strcasecmp(rest, name) == 0)
			state = &states[n];
		suggestion_add(&suggestion, name, strlen(name));
	}
	if (*rest != '\0' && state == NULL) {
		escape_quote(rest, strlen(rest), quoted, sizeof(quoted));
		session_fail(
			session, "%s is not a state, %s", quoted, suggestion_text(&suggestion)
		);
		return;
	}
	peers = calloc(1, sizeof(*peers));
	if (!session_begin(session, listing_step, peers_drop, peers))
		return;
	peers->listing.ops = &ops;
	wish = (struct peer_list_filter){.keep = state != NULL ? is_in_state : NULL, .ctx = state};
	if (peer_list_make(session_ras(session), &wish, &peers->rows, &peers->row_count) < 0 ||
	    ((state == NULL || *state == RAS_UNKNOWN) &&
	     absent_collect_all(session->server->overlay, &peers->missing) < 0)) {
		session_end(session);
		session_fail(session, "out of memory");
		return;
	}
	peers->listing.count = peers->row_count + peers->missing.count;
}
