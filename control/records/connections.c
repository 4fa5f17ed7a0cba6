// SPDX-License-Identifier: BSD-3-Clause
// The fields of CONNS.
#include <lib/fact.h>
#include <records/connections.h>

#include <inttypes.h>

// Retransmits of RDMA pairs are counted by the device alone, so many are unknown.
static const char *show_retransmits(const json_t *row, char text[static SHOW_BYTES]) {
	uint64_t count = fact_number(row, "retransmits");
	uint64_t unknown = fact_number(row, "retransmits_unknown");

	if (!fact_known(row, "retransmits"))
		return "unknown";
	if (unknown == 0)
		snprintf(text, SHOW_BYTES, "%" PRIu64, count);
	else
		snprintf(text, SHOW_BYTES, "%" PRIu64 ", %" PRIu64 " unknown", count, unknown);
	return text;
}

#define SUM(...) RECORD_MEMBER(struct transport_row, __VA_ARGS__)
#define SUM_COLUMN(...) RECORD_COLUMN(struct transport_row, __VA_ARGS__)

// clang-format off
static const struct record_field sums[] = {
	SUM_COLUMN(transport, UNIT_NONE, "tcp or rdma", "TRANSPORT", 9, 0, NULL),
	SUM_COLUMN(rows, UNIT_COUNT, "connections, each counted at either end",
		"CONNS", 6, 0, NULL),
	SUM(samples, UNIT_COUNT, "number of latencies behind min, mean and max"),
	SUM_COLUMN(min_ns, UNIT_NANOSECONDS, "least latency; null without a sample",
		"MIN", 7, 3, NULL),
	SUM_COLUMN(mean_ns, UNIT_NANOSECONDS, "mean latency", "MEAN", 7, 0, NULL),
	SUM_COLUMN(max_ns, UNIT_NANOSECONDS, "largest latency", "MAX", 7, 2, NULL),
	SUM_COLUMN(sent_bytes, UNIT_BYTES, "bytes sent", "SENT", 8, 5, NULL),
	SUM_COLUMN(received_bytes, UNIT_BYTES, "bytes received", "RECEIVED", 8, 4, NULL),
	SUM_COLUMN(errors, UNIT_COUNT, "reconnects of TCP links and failures of pairs",
		"ERRORS", 6, 0, NULL),
	SUM_COLUMN(retransmits, UNIT_COUNT, "retransmits; null if all are unknown",
		"RETRANSMITS", 18, 0, show_retransmits),
	SUM(retransmits_unknown, UNIT_COUNT, "connections whose retransmits are unknown"),
};
// clang-format on

const struct record transport_record = RECORD("transports", sums);

#define MEMBER(...) RECORD_MEMBER(struct connection_row, __VA_ARGS__)
#define COLUMN(...) RECORD_COLUMN(struct connection_row, __VA_ARGS__)

// clang-format off
static const struct record_field fields[] = {
	COLUMN(node, UNIT_NONE, "the node that reports the connection", "NODE", 16, 0, NULL),
	COLUMN(peer, UNIT_NONE, "the other end", "PEER", 16, 0, NULL),
	COLUMN(transport, UNIT_NONE, "tcp or rdma", "TRANSPORT", 9, 2, NULL),
	MEMBER(samples, UNIT_COUNT, "number of latencies behind min, mean and max"),
	COLUMN(mean_ns, UNIT_NANOSECONDS, "mean latency", "MEAN", 7, 0, NULL),
	COLUMN(min_ns, UNIT_NANOSECONDS, "least latency", "MIN", 7, 1, NULL),
	COLUMN(max_ns, UNIT_NANOSECONDS, "largest latency", "MAX", 7, 0, NULL),
	MEMBER(sent_bytes, UNIT_BYTES, "bytes sent"),
	MEMBER(received_bytes, UNIT_BYTES, "bytes received"),
	COLUMN(errors, UNIT_COUNT, "reconnects of a TCP link or failures of a pair",
		"ERRORS", 6, 0, NULL),
	MEMBER(retransmits, UNIT_COUNT, "retransmits, or null"),
};
// clang-format on

const struct record connection_record = RECORD("worst", fields);
