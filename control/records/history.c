// SPDX-License-Identifier: BSD-3-Clause
// The fields of HISTORY. `tocsin history` draws them, so there are no columns.
#include <records/history.h>

#define PERIOD(...) RECORD_MEMBER(struct history_period_row, __VA_ARGS__)
#define PATH(...) RECORD_MEMBER(struct history_path_row, __VA_ARGS__)
#define POINT(...) RECORD_MEMBER(struct history_point_row, __VA_ARGS__)

static const struct record_field periods[] = {
	PERIOD(time, UNIT_NONE, "when the period began, UTC; it lasts for step_ns"),
	PERIOD(kept, UNIT_NONE, "whether the agent kept records in it"),
	PERIOD(state, UNIT_NONE, "state of the node, alive if nothing else was recorded, or null"),
	PERIOD(verdict, UNIT_NONE, "worst verdict in it, healthy if none was recorded, or null"),
};

static const struct record_field paths[] = {
	PATH(node, UNIT_NONE, "the node that reads"),
	PATH(peer, UNIT_NONE, "the node that is read"),
	PATH(device, UNIT_NONE, "device of the node that reads"),
	PATH(peer_device, UNIT_NONE, "device of the peer"),
	PATH(points, UNIT_NONE, "a row for each period in which the path was probed"),
};

static const struct record_field points[] = {
	POINT(time, UNIT_NONE, "when the period began, UTC"),
	POINT(sent, UNIT_COUNT, "probes of all sizes"),
	POINT(lost, UNIT_COUNT, "probes that were lost"),
	POINT(min_ns, UNIT_NANOSECONDS, "least latency of small reads; null if unknown"),
	POINT(median_ns, UNIT_NANOSECONDS, "median latency, within 12.5 %; null if unknown"),
	POINT(p99_ns, UNIT_NANOSECONDS, "99th percentile, within 12.5 %; null if unknown"),
	POINT(max_ns, UNIT_NANOSECONDS, "largest latency; null if unknown"),
};

const struct record history_period_record = RECORD("periods", periods);
const struct record history_path_record = RECORD("paths", paths);
const struct record history_point_record = RECORD("points", points);
