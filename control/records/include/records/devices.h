// SPDX-License-Identifier: BSD-3-Clause
// DEVICES: an RDMA device that an agent probes with. `tocsin devices`: a device of this machine.
#pragma once

#include <lib/record.h>

struct agent_device_row {
	const char *name, *state, *since, *reason;
	uint32_t worker, opened, driver_events;
	bool open;
	json_t *gpu;
	// Only an open device has the members below.
	const char *responder;
	uint32_t port, mtu_bytes, pair_max, depth;
	int32_t gid_index;
	uint64_t speed_mbps, pairs, submitted, unsuccessful;
	bool completion_events;
};

struct machine_device_row {
	const char *name, *kind, *transport; // a text or a number that is unknown is null
	uint64_t port, speed_mbps, mtu_bytes, lid;
	const char *state, *link;
	json_t *gid;
	const char *netdev, *pci;
	uint64_t numa_node;
	const char *responder, *reason;
	bool usable, chosen;
	// Only --explain prints the members below.
	const char *verdict, *class, *why;
	uint64_t pci_mbps, bandwidth_mbps;
	bool pci_assumed;
};

// agent_port_record and machine_choice_record extend the other record of the same row.
extern const struct record agent_device_record, agent_port_record;
extern const struct record machine_device_record, machine_choice_record;
