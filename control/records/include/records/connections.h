// SPDX-License-Identifier: BSD-3-Clause
// CONNS: sums of the connections of all agents by transport, and the slowest connections.
#pragma once

#include <lib/record.h>

struct transport_row {
	const char *transport;
	uint64_t rows;
	uint64_t samples;
	uint64_t min_ns, mean_ns, max_ns;
	uint64_t sent_bytes, received_bytes;
	uint64_t errors;
	uint64_t retransmits, retransmits_unknown;
};

struct connection_row {
	const char *node, *peer;
	const char *transport;
	uint64_t samples;
	uint64_t min_ns, mean_ns, max_ns;
	uint64_t sent_bytes, received_bytes;
	uint64_t errors;
	uint64_t retransmits;
};

extern const struct record transport_record, connection_record;
