// SPDX-License-Identifier: BSD-3-Clause
// The fields of PAIRS.
#include <lib/fact.h>
#include <records/pairs.h>
#include <records/shared.h>

static const char *show_devices(const json_t *row, char text[static SHOW_BYTES]) {
	snprintf(
		text, SHOW_BYTES, "%.31s>%.31s", fact_name(row, "device"),
		fact_word(row, "peer_device")
	);
	return text;
}

static const char *show_state(const json_t *row, char text[static SHOW_BYTES]) {
	const char *mark = fact_is(row, "state", "ready") ? congestion_mark(row) : "";

	snprintf(text, SHOW_BYTES, "%.32s%s", fact_name(row, "state"), mark);
	return text;
}

// Write the bytes per second of both directions, or return why there is no pair.
static const char *show_traffic(const json_t *row, char text[static SHOW_BYTES]) {
	const json_t *failure = json_object_get(row, "failure");
	char out[SHOW_BYTES], in[SHOW_BYTES];
	bool older;

	if (!fact_is(row, "state", "ready"))
		return json_is_object(failure) ? fact_name(failure, "reason") : "-";
	// An agent of schema 1 has other keys.
	older = fact_known(row, "bytes_out_per_s");
	fact_bytes(row, older ? "bytes_out_per_s" : "sent_bytes_per_s", out);
	fact_bytes(row, older ? "bytes_in_per_s" : "received_bytes_per_s", in);
	snprintf(text, SHOW_BYTES, "%.20s, %.20s", out, in);
	return text;
}

#define MEMBER(...) RECORD_MEMBER(struct pair_row, __VA_ARGS__)
#define COLUMN(...) RECORD_COLUMN(struct pair_row, __VA_ARGS__)

// clang-format off
static const struct record_field fields[] = {
	COLUMN(node, UNIT_NONE, "the peer", "NODE", 12, 0, NULL),
	RECORD_MADE(UNIT_NONE, "DEVICES", 14, 0, show_devices),
	MEMBER(device, UNIT_NONE,
		"device of this node; \"-\" if no rail of the peer is in its fabric"),
	MEMBER(peer_device, UNIT_NONE, "device of the peer"),
	COLUMN(state, UNIT_NONE, "ready, failed, absent, or the setup step in progress",
		"STATE", 8, 0, show_state),
	MEMBER(since, UNIT_NONE, "when the state began, UTC"),
	COLUMN(for_ns, UNIT_NANOSECONDS, "time in this state", "FOR", 11, 1, NULL),
	MEMBER(wanted, UNIT_NONE, "whether this node keeps the pair up"),
	MEMBER(guest, UNIT_NONE, "whether the peer keeps the pair up"),
	MEMBER(stuck, UNIT_NONE, "whether a call into the driver or a drain does not return"),
	MEMBER(generation, UNIT_COUNT,
		"number of this queue pair among all that the agent made; not its QP number"),
	MEMBER(tries, UNIT_COUNT, "tries since it was ready last"),
	MEMBER(failure, UNIT_NONE, "reason, by_peer and text of the last failure, or null"),
	RECORD_INNER("times", "p50_ns", UNIT_NANOSECONDS, "P50", 7, 0),
	RECORD_INNER("times", "p99_ns", UNIT_NANOSECONDS, "P99", 7, 3),
	COLUMN(ops, UNIT_COUNT, "operations that succeeded", "OPS", 7, 2, NULL),
	COLUMN(unsuccessful, UNIT_COUNT, "operations that failed, timed out or were flushed",
		"FAILED", 6, 0, NULL),
	MEMBER(sent_bytes, UNIT_BYTES, "bytes of writes and sends"),
	MEMBER(received_bytes, UNIT_BYTES, "bytes of reads and receives"),
	MEMBER(sent_bytes_per_s, UNIT_BYTES, "mean rate since the pair was ready"),
	MEMBER(received_bytes_per_s, UNIT_BYTES, "mean rate since the pair was ready"),
	RECORD_MADE(UNIT_NONE, "OUT, IN /S", 18, 0, show_traffic),
	MEMBER(errors, UNIT_COUNT, "failures of the pair"),
	MEMBER(retransmits, UNIT_COUNT, "null: the device retransmits on its own"),
	MEMBER(times, UNIT_NONE,
		"count, min_ns, p50_ns, p99_ns and max_ns of its operations, or null"),
	MEMBER(port_congestion, UNIT_NONE, "congestion of the device's port: quiet, congested, "
		"pause-storm or not-counted"),
};
// clang-format on

const struct record pair_record = RECORD("pairs", fields);
