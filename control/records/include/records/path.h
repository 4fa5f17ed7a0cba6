// SPDX-License-Identifier: BSD-3-Clause
// PATH: all that one end knows of a path, and the verdicts of the node that answers.
#pragma once

#include <lib/record.h>

struct path_detail_row {
	bool pair_up, pair_known;
	uint32_t mtu_bytes, flow_label;
	const char *responder;
	bool shares_overlay;
	uint64_t baseline_mad_ns;
	uint64_t last_answer_ns, last_probe_ns;
	json_t *sizes, *writes;
	json_t *latency;
	json_t *flows;
	json_t *gpu;
	json_t *congestion;
};

struct path_size_row {
	uint32_t bytes;
	uint64_t sent, lost;
	uint32_t recent;
	uint64_t min_ns, median_ns, p99_ns;
};

struct path_flow_row {
	uint32_t label;
	bool current, bad;
	uint64_t probes, lost, late;
	uint64_t median_ns, p99_ns;
};

struct path_verdict_row {
	const char *node, *state, *grade;
	const char *verdict, *reason, *evidence;
	bool maint;
	const char *since; // NULL if unknown
	uint64_t for_ns;
};

struct path_blame_row {
	const char *observer, *seen, *at;
	uint64_t ago_ns;
	const char *blamed;
	const char *node; // NULL if no node is blamed
	const char *what;
};

struct port_congestion_row {
	const char *device;
	uint32_t port;
	json_t *counts;
	uint64_t paused_sent_permille, paused_received_permille;
};

// path_detail_record extends the row of PATHS.
extern const struct record path_detail_record, path_size_record, path_flow_record;
extern const struct record path_verdict_record, path_blame_record, port_congestion_record;
