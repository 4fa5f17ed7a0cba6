// SPDX-License-Identifier: BSD-3-Clause
// PATHS [node|*] [--worst]: the paths of this node; with a node, all data of the paths to it; with
// *, the paths of all nodes. --worst limits the answer to the worst paths.
#include "client/answers.h"
#include "client/collect.h"
#include "client/listing.h"
#include "client/names.h"
#include "client/peer_list.h"
#include "client/server.h"
#include "fabric/answers/congestion.h"
#include "fabric/answers/gpus.h"
#include "fabric/answers/paths.h"

#include <lib/must.h>
#include <records/paths.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORST_MAX 40
#define WORST "--worst" // no node name begins with "--"
#define OWN_MAX 20000

struct paths {
	struct listing listing;
	struct collect collect; // used with `all`
	bool all;
	struct ras_merged_path *own; // this node's own rows; unused with `all`
	uint32_t count;
	uint32_t counts[OBSERVATION_KIND_COUNT];
	bool worst_only;
	uint32_t worst[WORST_MAX]; // row indexes, worst first
};

// Rows.

enum observation_kind path_row_kind(const struct ras_path_row *row) {
	return row->seen < OBSERVATION_KIND_COUNT ? (enum observation_kind)row->seen
						  : OBSERVATION_NO_PAIR;
}

// Return the weight of an observation; higher is worse. Unknown is between good and bad.
static uint32_t paths_weight(enum observation_kind kind) {
	static const uint32_t weights[OBSERVATION_KIND_COUNT] = {
		[OBSERVATION_GOOD] = 0,	 [OBSERVATION_NO_PAIR] = 1,  [OBSERVATION_DEGRADED] = 2,
		[OBSERVATION_LOSSY] = 3, [OBSERVATION_STANDING] = 4, [OBSERVATION_SILENT] = 5,
	};

	return weights[kind];
}

static uint64_t path_badness(const struct ras_path_row *row) {
	if (row->seen == OBSERVATION_LOSSY)
		return row->lost_permille;
	if (row->seen == OBSERVATION_DEGRADED && row->baseline_ns > 0)
		return row->median_ns / (row->baseline_ns / 100 + 1);
	return row->median_ns;
}

bool paths_is_worse(const struct ras_merged_path *a, const struct ras_merged_path *b) {
	uint32_t weight_a = paths_weight(path_row_kind(&a->row));
	uint32_t weight_b = paths_weight(path_row_kind(&b->row));

	if (weight_a != weight_b)
		return weight_a > weight_b;
	return path_badness(&a->row) > path_badness(&b->row);
}

static const struct ras_merged_path *path_row_at(const struct paths *paths, uint32_t n) {
	return paths->all ? ras_paths_at(paths->collect.answer->paths, n) : &paths->own[n];
}

static void count_rows(struct paths *paths) {
	for (uint32_t n = 0; n < paths->count; n++) {
		const struct ras_merged_path *path = path_row_at(paths, n);
		uint32_t held = paths->listing.count, at = held;

		paths->counts[path_row_kind(&path->row)]++;
		if (!paths->worst_only)
			continue;

		// Insert the row into the sorted worst list, after equally bad rows.
		while (at > 0 && paths_is_worse(path, path_row_at(paths, paths->worst[at - 1])))
			at--;
		if (at == WORST_MAX)
			continue;
		if (held == WORST_MAX)
			held--;
		memmove(&paths->worst[at + 1], &paths->worst[at],
			(held - at) * sizeof(paths->worst[0]));
		paths->worst[at] = n;
		paths->listing.count = held + 1;
	}
	if (!paths->worst_only)
		paths->listing.count = paths->count;
}

// Other agents may send any value; none of them is RECORD_UNKNOWN.
static uint64_t number_at_most_int64(uint64_t number) {
	return number < INT64_MAX ? number : INT64_MAX;
}

static uint64_t whole_seconds_ns(uint64_t seconds) {
	return seconds < INT64_MAX / RAS_NS_PER_SEC ? seconds * RAS_NS_PER_SEC : INT64_MAX;
}

// A time of 0 is unknown.
static uint64_t time_or_unknown(uint64_t ns) {
	return ns != 0 ? number_at_most_int64(ns) : RECORD_UNKNOWN;
}

json_t *paths_row_json(
	struct session *session, const struct ras_merged_path *path, const char *port_congestion
) {
	const struct ras_path_row *row = &path->row;
	char node[NAMES_TEXT_BYTES], peer[NAMES_TEXT_BYTES];
	struct path_reading_row shown = {
		.node = node,
		.peer = peer,
		.device = row->device,
		.peer_device = row->peer_device,
		.seen = observation_kind_name(path_row_kind(row)),
		.for_ns = whole_seconds_ns(row->for_s),
		.steady = row->steady,
		.answered = number_at_most_int64(row->count),
		.lost = number_at_most_int64(row->lost),
		.min_ns = time_or_unknown(row->min_ns),
		.median_ns = time_or_unknown(row->median_ns),
		.mad_ns = row->median_ns != 0 ? number_at_most_int64(row->mad_ns) : RECORD_UNKNOWN,
		.p99_ns = time_or_unknown(row->p99_ns),
		.baseline_ns = time_or_unknown(row->baseline_ns),
		.lost_permille = row->lost_permille,
		.port_congestion = port_congestion,
	};

	names_format_id(session_ras(session), path->node, node);
	names_format_id(session_ras(session), row->peer, peer);
	return record_to_json(&path_record, &shown);
}

static json_t *paths_facts(struct session *session, void *work) {
	const struct client_server *server = session->server;
	const struct paths *paths = work;
	const struct overlay_answer *answer = paths->collect.answer;
	struct fabric_numbers numbers = {0};
	json_t *counts = json_object(), *object;
	char self[NAMES_TEXT_BYTES];
	uint32_t devices = 0;

	for (uint32_t kind = 0; kind < OBSERVATION_KIND_COUNT; kind++)
		json_object_set_new(
			counts, observation_kind_name((enum observation_kind)kind),
			json_integer(paths->counts[kind])
		);
	if (paths->all) {
		object = json_pack(
			"{s:i,s:i,s:i,s:i,s:I}", "members", (int)answer->result.member_count,
			"answered", (int)answer->result.answered, "timeouts",
			(int)collect_timeouts(&paths->collect), "left_out",
			(int)(answer->result.truncated + answer->bad_parts), "took_ns",
			(json_int_t)answer->result.elapsed_ns
		);
		json_object_set_new(object, "counts", counts);
		return object;
	}
	names_format_id(session_ras(session), ras_self_id(session_ras(session)), self);
	if (server->fabric != NULL) {
		server->fabric_calls->numbers(server->fabric, &numbers);
		devices = server->fabric_calls->device_count(server->fabric);
	}
	object = json_pack(
		"{s:o,s:i,s:b,s:I,s:I,s:I,s:I}", "node", safe_string_json(self), "devices",
		(int)devices, "probing", numbers.probes.interval_ns != 0, "neighbours",
		(json_int_t)numbers.probes.neighbours, "others", (json_int_t)numbers.probes.targets,
		"interval_ns", (json_int_t)numbers.probes.interval_ns, "coverage_ns",
		(json_int_t)numbers.probes.coverage_ns
	);
	json_object_set_new(object, "counts", counts);
	gpus_add_paths(session, 0, object);
	return object;
}

static json_t *row_json(struct session *session, void *work, uint32_t n) {
	const struct paths *paths = work;
	const struct ras_merged_path *path =
		path_row_at(paths, paths->worst_only ? paths->worst[n] : n);
	bool own = path->node == ras_self_id(session_ras(session));

	return paths_row_json(
		session, path, own ? rail_congestion_name(session, path->row.device) : NULL
	);
}

static const struct listing_ops ops = {
	.key = "paths",
	.facts = paths_facts,
	.row_json = row_json,
};

// Paths of all nodes.

static void paths_drop(void *work) {
	struct paths *paths = work;

	collect_fini(&paths->collect);
	free(paths->own);
	free(paths);
}

static bool all_step(struct session *session) {
	struct paths *paths = session->work;

	if (paths->collect.answer == NULL) {
		session_fail(
			session, "no paths could be collected: %s",
			collect_error_text(&paths->collect)
		);
		return true;
	}
	paths->count = ras_paths_count(paths->collect.answer->paths);
	count_rows(paths);
	session->step = listing_step;
	return false;
}

static void answer_all(struct session *session, bool worst_only) {
	struct paths *paths;

	if (!session_charge_question(session))
		return;
	paths = calloc(1, sizeof(*paths));
	if (!session_begin(session, NULL, paths_drop, paths))
		return;
	paths->listing.ops = &ops;
	paths->all = true;
	paths->worst_only = worst_only;
	collect_ask(&paths->collect, session, RAS_COLLECT_PATHS, all_step);
}

// Paths of this node.

static void answer_own(struct session *session, bool worst_only) {
	const struct client_server *server = session->server;
	uint32_t count = 0, cursor = 0;
	struct paths *paths = calloc(1, sizeof(*paths));
	struct fabric_path_view view;

	while (server->fabric != NULL && count < OWN_MAX &&
	       server->fabric_calls->path_next(server->fabric, &cursor, &view))
		count++;
	if (!session_begin(session, listing_step, paths_drop, paths))
		return;
	paths->listing.ops = &ops;
	paths->worst_only = worst_only;
	paths->own = calloc((size_t)count + 1, sizeof(paths->own[0]));
	if (paths->own == NULL) {
		session_end(session);
		session_fail(session, "out of memory");
		return;
	}
	cursor = 0;
	while (paths->count < count &&
	       server->fabric_calls->path_next(server->fabric, &cursor, &view)) {
		struct ras_merged_path *path = &paths->own[paths->count++];

		path->node = ras_self_id(session_ras(session));
		server->fabric_calls->path_row(server->fabric, &view, &path->row);
	}
	count_rows(paths);
}

void answer_paths(struct session *session, const char *rest) {
	size_t length = strlen(rest);
	bool worst_only =
		length >= strlen(WORST) && strcmp(rest + length - strlen(WORST), WORST) == 0;
	struct ras_peer peer;

	if (*rest == '\0' || strcmp(rest, WORST) == 0)
		answer_own(session, worst_only);
	else if (strcmp(rest, "*") == 0 || strcmp(rest, "* " WORST) == 0)
		answer_all(session, worst_only);
	else if (names_parse_single(session, rest, &peer))
		session_json(session, paths_end_json(session, &peer));
}
