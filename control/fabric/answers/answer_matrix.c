// SPDX-License-Identifier: BSD-3-Clause
// MATRIX: the worst path of each ordered pair of nodes, from PATHS *, in a compact form for
// plotting. Nodes with several rails also have one sign for each rail. A row has eight columns,
// because clients reject rows with more.
#include "client/answers.h"
#include "client/collect.h"
#include "client/listing.h"
#include "client/names.h"
#include "client/peer_list.h"
#include "client/server.h"
#include "fabric/answers/paths.h"

#include <lib/show.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NO_NODE UINT32_MAX

struct matrix {
	struct listing listing; // over the rows of the answer
	struct collect collect;
	uint64_t *ids;	  // by slot; 0: no node, or it has left
	uint32_t *places; // by slot: index in the node list of the answer
	uint32_t slot_count;
	uint32_t node_count;
};

static void matrix_drop(void *work) {
	struct matrix *matrix = work;

	collect_fini(&matrix->collect);
	free(matrix->ids);
	free(matrix->places);
	free(matrix);
}

// Number the nodes, except those that left: they are not probed.
static bool matrix_number_nodes(struct session *session, struct matrix *matrix) {
	const struct ras *ras = session_ras(session);
	struct ras_peer peer;
	struct ras_view view;

	ras_view(ras, &view);
	matrix->ids = calloc((size_t)view.slots_max + 1, sizeof(matrix->ids[0]));
	matrix->places = calloc((size_t)view.slots_max + 1, sizeof(matrix->places[0]));
	if (matrix->ids == NULL || matrix->places == NULL)
		return false;
	matrix->slot_count = view.slots_max;
	for (uint32_t slot = 0; slot < view.slots_max; slot++) {
		if (ras_peer_at(ras, slot, &peer) != 0 || peer.state == RAS_LEFT)
			continue;
		matrix->ids[slot] = peer.record->id;
		matrix->places[slot] = matrix->node_count++;
	}
	return true;
}

static uint32_t node_index(struct session *session, const struct matrix *matrix, uint64_t id) {
	struct ras_peer peer;

	if (ras_peer_find(session_ras(session), id, &peer) != 0 ||
	    peer.slot >= matrix->slot_count || matrix->ids[peer.slot] != id)
		return NO_NODE;
	return matrix->places[peer.slot];
}

static json_t *matrix_facts(struct session *session, void *work) {
	const struct matrix *matrix = work;
	const struct overlay_answer *answer = matrix->collect.answer;
	const struct ras *ras = session_ras(session);
	json_t *seen = json_array(), *nodes = json_array();
	char time[SHOW_BYTES];

	for (uint32_t kind = 0; kind < OBSERVATION_KIND_COUNT; kind++)
		json_array_append_new(
			seen, json_string(observation_kind_name((enum observation_kind)kind))
		);
	for (uint32_t slot = 0; slot < matrix->slot_count; slot++) {
		enum ras_state state = RAS_UNKNOWN;
		char name[NAMES_TEXT_BYTES];
		struct ras_peer peer;

		if (matrix->ids[slot] == 0)
			continue;
		names_format_id(ras, matrix->ids[slot], name);
		if (ras_peer_find(ras, matrix->ids[slot], &peer) == 0)
			state = peer.state;
		json_array_append_new(
			nodes, json_pack(
				       "{s:o,s:s}", "node", safe_string_json(name), "state",
				       ras_state_name(state)
			       )
		);
	}
	show_time(overlay_realtime_ns(session->server->overlay, answer->at_ns), time);
	return json_pack(
		"{s:s,s:s,s:i,s:i,s:i,s:o,s:o,s:[s,s,s,s,s,s,s,s]}", "cluster",
		session->server->cluster, "at", time, "members", (int)answer->result.member_count,
		"answered", (int)answer->result.answered, "left_out",
		(int)(answer->result.truncated + answer->bad_parts), "seen", seen, "nodes", nodes,
		"columns", "node", "reads", "seen", "median_ns", "baseline_ns", "lost_permille",
		"answered", "lost"
	);
}

static bool is_same_node_pair(const struct ras_merged_path *a, const struct ras_merged_path *b) {
	return a->node == b->node && a->row.peer == b->row.peer;
}

// Return the worst path of a pair whose rows begin at n; NULL if no pair begins there.
static const struct ras_merged_path *pair_worst_path(const struct matrix *matrix, uint32_t n) {
	const struct ras_paths *paths = matrix->collect.answer->paths;
	const struct ras_merged_path *worst = ras_paths_at(paths, n);

	if (n > 0 && is_same_node_pair(ras_paths_at(paths, n - 1), worst))
		return NULL;
	for (n++; n < ras_paths_count(paths) && is_same_node_pair(ras_paths_at(paths, n), worst);
	     n++) {
		if (paths_is_worse(ras_paths_at(paths, n), worst))
			worst = ras_paths_at(paths, n);
	}
	return worst;
}

// One character for each rail of the reading node, in order of their names: that of the rail's
// worst path.
#define RAILS_MAX 16

// Write the rail signs of the pair whose rows begin at n; "" for a single rail.
static void
pair_rail_signs(const struct matrix *matrix, uint32_t n, char ret_signs[static RAILS_MAX + 1]) {
	static const char signs[OBSERVATION_KIND_COUNT] = {
		[OBSERVATION_GOOD] = '.',     [OBSERVATION_STANDING] = 'S',
		[OBSERVATION_DEGRADED] = 'D', [OBSERVATION_LOSSY] = 'L',
		[OBSERVATION_SILENT] = 'X',   [OBSERVATION_NO_PAIR] = '?',
	};
	const struct ras_paths *paths = matrix->collect.answer->paths;
	const struct ras_merged_path *first = ras_paths_at(paths, n), *worst = NULL;
	uint32_t count = 0;

	for (; n < ras_paths_count(paths) && is_same_node_pair(ras_paths_at(paths, n), first);
	     n++) {
		const struct ras_merged_path *path = ras_paths_at(paths, n);
		bool again = worst != NULL && strcmp(worst->row.device, path->row.device) == 0;

		if (!again && count == RAILS_MAX)
			break;
		count += !again;
		if (!again || paths_is_worse(path, worst))
			worst = path;
		ret_signs[count - 1] = signs[path_row_kind(&worst->row)];
	}
	ret_signs[count > 1 ? count : 0] = '\0';
}

static json_int_t json_whole(uint64_t number) {
	return number < INT64_MAX ? (json_int_t)number : INT64_MAX;
}

// Return the list indexes of both nodes; false if one of them is unknown.
static bool find_node_indexes(
	struct session *session,
	const struct matrix *matrix,
	const struct ras_merged_path *path,
	uint32_t *ret_node,
	uint32_t *ret_peer
) {
	*ret_node = node_index(session, matrix, path->node);
	*ret_peer = node_index(session, matrix, path->row.peer);
	return *ret_node != NO_NODE && *ret_peer != NO_NODE;
}

static json_t *row_json(struct session *session, void *work, uint32_t n) {
	const struct matrix *matrix = work;
	const struct ras_merged_path *worst = pair_worst_path(matrix, n);
	uint32_t node, peer;

	if (worst == NULL || !find_node_indexes(session, matrix, worst, &node, &peer))
		return json_null();
	return json_pack(
		"[i,i,i,I,I,i,I,I]", (int)node, (int)peer, (int)path_row_kind(&worst->row),
		json_whole(worst->row.median_ns), json_whole(worst->row.baseline_ns),
		(int)worst->row.lost_permille, json_whole(worst->row.count),
		json_whole(worst->row.lost)
	);
}

static json_t *rails_json(struct session *session, void *work, uint32_t n) {
	const struct matrix *matrix = work;
	const struct ras_merged_path *worst = pair_worst_path(matrix, n);
	char rails[RAILS_MAX + 1];
	uint32_t node, peer;

	if (worst == NULL || !find_node_indexes(session, matrix, worst, &node, &peer))
		return json_null();
	pair_rail_signs(matrix, n, rails);
	if (rails[0] == '\0')
		return json_null();
	return json_pack("[i,i,s]", (int)node, (int)peer, rails);
}

static const struct listing_ops ops = {
	.key = "cells",
	.facts = matrix_facts,
	.row_json = row_json,
	.more_key = "rails",
	.more_json = rails_json,
};

static bool matrix_step(struct session *session) {
	struct matrix *matrix = session->work;

	if (matrix->collect.answer == NULL) {
		session_fail(
			session, "no paths could be collected: %s",
			collect_error_text(&matrix->collect)
		);
		return true;
	}
	if (!matrix_number_nodes(session, matrix)) {
		session_fail(session, "out of memory");
		return true;
	}
	matrix->listing.count = ras_paths_count(matrix->collect.answer->paths);
	session->step = listing_step;
	return false;
}

void answer_matrix(struct session *session, const char *rest) {
	struct matrix *matrix;

	(void)rest;
	if (!session_charge_question(session))
		return;
	matrix = calloc(1, sizeof(*matrix));
	if (!session_begin(session, NULL, matrix_drop, matrix))
		return;
	matrix->listing.ops = &ops;
	collect_ask(&matrix->collect, session, RAS_COLLECT_PATHS, matrix_step);
}
