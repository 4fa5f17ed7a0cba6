// SPDX-License-Identifier: BSD-3-Clause
// HISTORY: a node and the paths to it, in periods of equal length.
#pragma once

#include <lib/record.h>

struct history_period_row {
	const char *time;
	bool kept;
	const char *state, *verdict; // NULL if unknown
};

struct history_path_row {
	const char *node, *peer, *device, *peer_device;
	json_t *points;
};

struct history_point_row {
	const char *time;
	uint64_t sent, lost;
	uint64_t min_ns, median_ns, p99_ns, max_ns;
};

extern const struct record history_period_record, history_path_record, history_point_record;
