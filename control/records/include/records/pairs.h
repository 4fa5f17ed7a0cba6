// SPDX-License-Identifier: BSD-3-Clause
// PAIRS: an RDMA pair of this node with a peer.
#pragma once

#include <lib/record.h>

struct pair_row {
	const char *node;
	const char *device, *peer_device;
	const char *state;
	const char *since;
	uint64_t for_ns;
	bool wanted, guest, stuck;
	uint64_t generation;
	uint32_t tries;
	json_t *failure;
	uint64_t ops, unsuccessful;
	uint64_t sent_bytes, received_bytes;
	uint64_t sent_bytes_per_s, received_bytes_per_s;
	uint32_t errors;
	uint64_t retransmits;
	json_t *times;
	const char *port_congestion;
};

extern const struct record pair_record;
