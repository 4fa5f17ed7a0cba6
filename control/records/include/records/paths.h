// SPDX-License-Identifier: BSD-3-Clause
// PATHS: how one device of a node reads one device of a peer.
#pragma once

#include <lib/record.h>

struct path_reading_row {
	const char *node, *peer;
	const char *device, *peer_device;
	const char *seen;
	uint64_t for_ns;
	bool steady;
	uint64_t answered, lost;
	uint64_t min_ns, median_ns, mad_ns, p99_ns;
	uint64_t baseline_ns;
	uint32_t lost_permille;
	const char *port_congestion; // NULL if the port is of another node
};

extern const struct record path_record;
