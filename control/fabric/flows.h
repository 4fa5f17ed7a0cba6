// SPDX-License-Identifier: BSD-3-Clause
// What the flow labels of one path brought, each by itself: on Ethernet a label chooses one of the
// equal ways through the fabric (ECMP), and one of them may be bad while the others are well. Pure.
#pragma once

#include <control/fabric.h>
#include <lib/histogram.h>

struct flows {
	struct {
		uint32_t label; // 20 bits
		bool used;
		uint64_t probes, lost, late;
		struct histogram_log2 small; // times of the smallest size
	} all[PAIRING_FLOWS];
	uint32_t current;
};

// The pair has this label from now on: one of before, or the place of the least probed.
void flows_use(struct flows *flows, uint32_t label);
// small: its time is entered. late: it was lost, and sent again by the device.
void flows_note(struct flows *flows, bool answered, bool late, bool small, uint64_t latency_ns);
// Those that were probed; how many.
uint32_t flows_look(const struct flows *flows, struct fabric_flow ret_flows[static PAIRING_FLOWS]);
