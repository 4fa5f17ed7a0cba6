// SPDX-License-Identifier: BSD-3-Clause
// Statistics of each flow label of one path. On Ethernet a label selects one of the equal-cost
// routes through the fabric (ECMP). One route may be bad while the others are good. Pure.
#pragma once

#include <control/fabric.h>
#include <lib/histogram.h>

struct flows {
	struct {
		uint32_t label; // 20 bits
		bool used;
		uint64_t probes, lost, late;
		struct histogram_log2 small; // latencies of the smallest size
	} all[PAIRING_FLOWS];
	uint32_t current;
};

// Make `label` the current label. A new label takes the entry with the fewest probes.
void flows_set_label(struct flows *flows, uint32_t label);
// Record one probe. small: its latency is recorded. late: it was lost, and the device sent it
// again.
void flows_record(struct flows *flows, bool answered, bool late, bool small, uint64_t latency_ns);
// List the used labels and compare them with each other. Returns their number.
uint32_t flows_list(const struct flows *flows, struct fabric_flow ret_flows[static PAIRING_FLOWS]);
