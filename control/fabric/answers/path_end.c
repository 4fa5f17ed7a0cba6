// SPDX-License-Identifier: BSD-3-Clause
// Writes all data of one end of a path as JSON.
#include "client/names.h"
#include "client/peer_list.h"
#include "client/server.h"
#include "fabric/answers/congestion.h"
#include "fabric/answers/gpus.h"
#include "fabric/answers/paths.h"

#include <lib/histogram.h>
#include <records/path.h>

// Conversion of the path memory to JSON.

static const uint32_t asked_percentiles[] = {500000, 900000, 990000, 999000};
static const char *const percentile_names[] = {"p50_ns", "p90_ns", "p99_ns", "p999_ns"};
#define PERCENTILES (sizeof(asked_percentiles) / sizeof(asked_percentiles[0]))

static json_t *latency_json(const struct histogram *latency) {
	struct histogram_summary summary;
	uint64_t values[PERCENTILES];
	json_t *object;

	if (latency == NULL)
		return json_null();
	histogram_summarize(latency, &summary);
	if (summary.count == 0)
		return json_null();
	histogram_percentiles(latency, asked_percentiles, PERCENTILES, values);
	object = json_pack(
		"{s:I,s:I,s:I}", "count", (json_int_t)summary.count, "min_ns",
		(json_int_t)summary.min, "max_ns", (json_int_t)summary.max
	);
	for (size_t n = 0; n < PERCENTILES; n++)
		json_object_set_new(
			object, percentile_names[n], json_integer((json_int_t)values[n])
		);
	return object;
}

// Return the statistics by size, of reads or of writes. A path probed in rotation has both
// together.
static json_t *sizes_json(const struct fabric_path_view *view, bool writes) {
	const struct path_summary *summary = &view->summary;
	const uint64_t *sent = writes ? summary->write_sent : summary->size_sent;
	const uint64_t *lost = writes ? summary->write_lost : summary->size_lost;
	struct path_size_times times[PATH_SIZES] = {{0}};
	json_t *sizes = json_array();

	if (view->memory != NULL)
		path_memory_times(view->memory, writes, times);
	for (uint32_t n = 0; n < PATH_SIZES; n++) {
		bool timed = times[n].answers > 0;
		const struct path_size_row row = {
			.bytes = probe_bytes[n] != 0 ? probe_bytes[n] : view->mtu,
			.sent = sent[n],
			.lost = lost[n],
			.recent = times[n].answers,
			.min_ns = timed ? times[n].min_ns : RECORD_UNKNOWN,
			.median_ns = timed ? times[n].median_ns : RECORD_UNKNOWN,
			.p99_ns = timed ? times[n].p99_ns : RECORD_UNKNOWN,
		};

		json_array_append_new(sizes, record_to_json(&path_size_record, &row));
	}
	return sizes;
}

static json_t *flows_json(const struct fabric_path_view *view) {
	json_t *flows = json_array();

	for (uint32_t n = 0; n < view->flow_count; n++) {
		const struct fabric_flow *flow = &view->flows[n];
		const struct path_flow_row row = {
			.label = flow->label,
			.current = flow->current,
			.bad = flow->bad,
			.probes = flow->probes,
			.lost = flow->lost,
			.late = flow->late,
			.median_ns = flow->median_ns,
			.p99_ns = flow->p99_ns,
		};

		json_array_append_new(flows, record_to_json(&path_flow_record, &row));
	}
	return flows;
}

static uint64_t age_or_unknown(struct session *session, uint64_t at_ns) {
	return at_ns != RAS_NEVER ? time_age_ns(session, at_ns) : RECORD_UNKNOWN;
}

static json_t *path_json(struct session *session, const struct fabric_path_view *view) {
	const struct client_server *server = session->server;
	struct ras_merged_path path = {.node = ras_self_id(session_ras(session))};
	const struct path_detail_row detail = {
		.pair_up = view->watched,
		.pair_known = view->known,
		.mtu_bytes = view->mtu,
		.flow_label = view->flow_label,
		.responder = view->known ? device_responder_name(view->responder) : "unknown",
		.shares_overlay = view->shares,
		.baseline_mad_ns = view->summary.baseline_mad_ns,
		.last_answer_ns = age_or_unknown(session, view->summary.last_answer_ns),
		.last_probe_ns = age_or_unknown(session, view->summary.last_probe_ns),
		.sizes = sizes_json(view, false),
		.writes = sizes_json(view, true),
		.latency = latency_json(view->latency),
		.flows = flows_json(view),
		.gpu = gpu_path_json(session, &view->gpu),
		.congestion = congestion_json(session, view->device),
	};
	json_t *object;

	server->fabric_calls->path_row(server->fabric, view, &path.row);
	object = paths_row_json(session, &path, rail_congestion_name(session, view->device));
	json_object_update_new(object, record_to_json(&path_detail_record, &detail));
	return object;
}

json_t *paths_end_json(struct session *session, const struct ras_peer *peer) {
	const struct client_server *server = session->server;
	char self[NAMES_TEXT_BYTES], name[NAMES_TEXT_BYTES];
	struct fabric_numbers numbers = {0};
	json_t *paths = json_array();
	struct fabric_path_view view;
	uint32_t cursor = 0, devices = 0;

	names_format_id(session_ras(session), ras_self_id(session_ras(session)), self);
	names_format_record(peer->record, name);
	if (server->fabric != NULL) {
		server->fabric_calls->numbers(server->fabric, &numbers);
		devices = server->fabric_calls->device_count(server->fabric);
	}
	while (server->fabric != NULL &&
	       server->fabric_calls->path_next(server->fabric, &cursor, &view)) {
		if (view.peer == peer->record->id)
			json_array_append_new(paths, path_json(session, &view));
	}
	return json_pack(
		"{s:o,s:o,s:i,s:b,s:o}", "node", safe_string_json(self), "peer",
		safe_string_json(name), "devices", (int)devices, "probing",
		numbers.probes.interval_ns != 0, "paths", paths
	);
}
