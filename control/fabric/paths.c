// SPDX-License-Identifier: BSD-3-Clause
// Views of paths: for clients, for this node's rows of the collective PATHS, and for counters.
#include "fabric/probing.h"

#include <ras/payload.h>

#include <stdio.h>

#define ROWS_PER_PART 128

// Drop a good state if the peer is dead or has left. Nobody reads its pulse any more, so the state
// is outdated.
static void view_drop_good(const struct fabric *fabric, struct fabric_path_view *view) {
	struct path_summary *summary = &view->summary;
	struct ras_peer peer;

	if ((summary->kind != OBSERVATION_GOOD && summary->kind != OBSERVATION_DEGRADED) ||
	    ras_peer_find(overlay_ras(fabric->overlay), view->peer, &peer) != 0 ||
	    (peer.state != RAS_DEAD && peer.state != RAS_LEFT))
		return;
	summary->kind = OBSERVATION_NO_PAIR;
	summary->since_ns = peer.since_ns;
}

static bool probed_path_view(
	const struct fabric *fabric,
	const struct probed_path *probed_path,
	struct fabric_path_view *ret_view
) {
	struct fabric_path_view view = {
		.peer = probed_path->key.peer,
		.device = fabric->nics[probed_path->key.device].config.name,
		.peer_device = probed_path->key.peer_device,
		.neighbour = true,
		.watched = probed_path->stage == PROBED_PATH_WATCHED,
		.known = probed_path->known,
		.mtu = probed_path->mtu,
		.flow_label = probed_path->flow_label,
		.responder = probed_path->responder,
		.shares = probed_path->shares,
	};

	if (probed_path->stage == PROBED_PATH_FREE || probed_path->visit)
		return false;
	path_memory_summary(probed_path->memory, &view.summary);
	view.memory = probed_path->memory;
	view.latency = path_memory_histogram(probed_path->memory);
	if (probed_path->flows != NULL)
		view.flow_count = flows_list(probed_path->flows, view.flows);
	if (probed_path->gpu != NULL)
		gpu_path_describe(probed_path->gpu, &view.gpu);
	view_drop_good(fabric, &view);
	*ret_view = view;
	return true;
}

static bool visited_path_view(
	const struct fabric *fabric,
	const struct stats_entry *entry,
	struct fabric_path_view *ret_view
) {
	struct fabric_path_view view = {
		.peer = entry->peer,
		.peer_device = entry->peer_device,
	};

	if (entry->peer == 0 || !entry->visited)
		return false;
	view.device = fabric->nics[entry->device].config.name;
	compact_stats_summary(entry->stats, &view.summary);
	view.summary.kind = entry->kind;
	view.summary.since_ns = entry->since_ns;
	view_drop_good(fabric, &view);
	*ret_view = view;
	return true;
}

bool fabric_path_next(
	const struct fabric *fabric, uint32_t *cursor, struct fabric_path_view *ret_view
) {
	const struct probing *probing = fabric->probing;

	if (probing == NULL || !fabric->config.probe.on)
		return false;
	// Return the probed paths by index, then the visited paths. Probed paths keep their index.
	// Visited paths may move when visit.c begins a visit or sweeps the table. A caller that
	// keeps the cursor meanwhile may miss or repeat a visited path.
	while (*cursor < PROBE_PATHS_MAX) {
		if (probed_path_view(fabric, &probing->probed_paths[(*cursor)++], ret_view))
			return true;
	}
	while (fabric->config.probe.rotation &&
	       *cursor - PROBE_PATHS_MAX < probing->compact_table.max) {
		uint32_t place = (*cursor)++ - PROBE_PATHS_MAX;

		if (visited_path_view(fabric, &probing->compact_table.entries[place], ret_view))
			return true;
	}
	return false;
}

static void copy_name(char ret_name[static RAS_PATH_DEVICE_MAX + 1], const char *name) {
	snprintf(ret_name, RAS_PATH_DEVICE_MAX + 1, "%.*s", RAS_PATH_DEVICE_MAX, name);
}

void fabric_path_row(
	const struct fabric *fabric,
	const struct fabric_path_view *view,
	struct ras_path_row *ret_row
) {
	path_summary_row(&view->summary, loop_clock_ns(fabric->loop), ret_row);
	ret_row->peer = view->peer;
	ret_row->steady = view->neighbour;
	copy_name(ret_row->device, view->device);
	copy_name(ret_row->peer_device, view->peer_device);
}

// Write the rows of one part. Each part begins at a fixed row of the walk: a path that appears or
// goes between two parts can shift a row, which is then repeated or missing in this answer.
bool probing_contribute(
	void *ctx, const struct ras_contribution *wanted, struct wire_writer *writer
) {
	const struct fabric *fabric = ctx;
	uint32_t first = wanted->part * ROWS_PER_PART, place = 0, cursor = 0;
	uint64_t self = ras_self_id(overlay_ras(fabric->overlay));
	struct fabric_path_view view;

	while (fabric_path_next(fabric, &cursor, &view)) {
		struct ras_path_row row;

		if (view.peer == self || (view.summary.count == 0 && !view.neighbour))
			continue;
		if (place >= first + ROWS_PER_PART)
			return true;
		if (place++ < first)
			continue;
		fabric_path_row(fabric, &view, &row);
		if (ras_path_put(writer, &row) != 0)
			return false; // the core counts the rest as cut
	}
	return false;
}

void probing_numbers(const struct fabric *fabric, struct fabric_probe_counters *ret_counters) {
	const struct probing *probing = fabric->probing;
	const struct probe_schedule_counters *planned;
	struct fabric_probe_counters counters;
	struct probe_schedule_facts facts;

	*ret_counters = (struct fabric_probe_counters){0};
	if (probing == NULL)
		return;
	planned = probe_schedule_counters(probing->schedule);
	probe_schedule_facts(probing->schedule, &facts);
	counters = probing->counters;
	counters.delayed = planned->delayed;
	counters.skipped_budget = planned->skipped + planned->urgent_refused;
	counters.urgent = planned->urgent;
	counters.packets = planned->packets;
	counters.bytes = planned->bytes;
	counters.rounds = planned->rounds;
	counters.neighbours = facts.neighbours;
	counters.targets = facts.targets;
	counters.interval_ns = fabric->config.probe.on ? facts.interval_ns : 0;
	counters.coverage_ns = facts.coverage_ns;
	for (uint32_t n = 0; n < fabric->config.worker_count; n++)
		counters.outcomes_lost += prober_lost_outcomes(fabric->config.probers[n]);
	*ret_counters = counters;
}
