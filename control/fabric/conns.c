// SPDX-License-Identifier: BSD-3-Clause
// Rows of this node's pairs in the collective CONNS. The core adds the rows of TCP links.
#include "fabric/inside.h"

#include <ras/payload.h>

#define ROWS_PER_PART 128

static void pair_row(const struct fabric_pair *fabric_pair, struct ras_conn_row *ret_row) {
	const struct device_facts *facts = &fabric_pair->nic->parts.facts;
	const struct pairing *pairing = fabric_pair->fabric->pairing;
	const struct pairing_key *key = pairing_key_of(pairing, fabric_pair->generation);
	struct pairing_view view;
	struct histogram_summary summary;
	struct histogram_log2 times;
	struct pair_counters counters;
	struct ras_conn_row row = {
		.peer = fabric_pair->peer,
		.transport = RAS_TRANSPORT_ROCE,
		.retransmits = RAS_RETRANSMITS_UNKNOWN, // known to the device only
	};

	if (facts->responder == DEVICE_RESPONDER_IN_PROCESS)
		row.transport = RAS_TRANSPORT_SOFT;
	else if (facts->port.link == DEVICE_LINK_INFINIBAND)
		row.transport = RAS_TRANSPORT_INFINIBAND;

	// Count the failures of all pairs of this key, because a pair and its counters end with its
	// first error.
	if (key != NULL && pairing_find(pairing, key, &view))
		row.errors = view.broken;
	pair_counters(fabric_pair->pair, &counters);
	row.sent_bytes = counters.bytes_out;
	row.received_bytes = counters.bytes_in;
	if (pair_times(fabric_pair->pair, &times) == 0) {
		histogram_log2_summarize(&times, &summary);
		row.samples = summary.count < UINT32_MAX ? (uint32_t)summary.count : UINT32_MAX;
		row.min_ns = summary.min;
		row.max_ns = summary.max;
		row.mean_ns = (uint64_t)summary.mean;
		// The mean is computed from histogram buckets, so it may lie outside of min and
		// max.
		if (row.mean_ns < row.min_ns)
			row.mean_ns = row.min_ns;
		if (row.mean_ns > row.max_ns)
			row.mean_ns = row.max_ns;
	}
	*ret_row = row;
}

// Write the rows of one part. The list does not change between the parts of one answer, so each
// part begins at a fixed row.
bool fabric_contribute(
	void *ctx, const struct ras_contribution *wanted, struct wire_writer *writer
) {
	const struct fabric *fabric = ctx;
	uint32_t first = wanted->part * ROWS_PER_PART, place = 0;

	for (const struct fabric_pair *fabric_pair = fabric->fabric_pairs; fabric_pair != NULL;
	     fabric_pair = fabric_pair->next) {
		struct ras_conn_row row;

		if (fabric_pair->stage != FABRIC_PAIR_IN_LANE)
			continue;
		if (place >= first + ROWS_PER_PART)
			return true;
		if (place++ < first)
			continue;
		pair_row(fabric_pair, &row);
		if (ras_conn_put(writer, &row) != 0)
			return false; // the core counts the rest as cut
	}
	return false;
}
