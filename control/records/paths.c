// SPDX-License-Identifier: BSD-3-Clause
// The fields of PATHS.
#include <lib/fact.h>
#include <records/paths.h>
#include <records/shared.h>

// A device of the peer may be unknown to the node that reads.
static const char *show_devices(const json_t *row, char text[static SHOW_BYTES]) {
	snprintf(
		text, SHOW_BYTES, "%.31s>%.31s", fact_name(row, "device"),
		fact_name(row, "peer_device")
	);
	return text;
}

static const char *show_seen(const json_t *row, char text[static SHOW_BYTES]) {
	snprintf(text, SHOW_BYTES, "%.20s%s", fact_name(row, "seen"), congestion_mark(row));
	return text;
}

// Write the lost probes, of all probes.
static const char *show_lost(const json_t *row, char text[static SHOW_BYTES]) {
	char lost[SHOW_BYTES], sent[SHOW_BYTES];

	fact_count(row, "lost", lost);
	count_show(fact_number(row, "answered") + fact_number(row, "lost"), sent);
	snprintf(text, SHOW_BYTES, "%.20s/%.20s", lost, sent);
	return text;
}

#define MEMBER(...) RECORD_MEMBER(struct path_reading_row, __VA_ARGS__)
#define COLUMN(...) RECORD_COLUMN(struct path_reading_row, __VA_ARGS__)

// clang-format off
static const struct record_field fields[] = {
	COLUMN(node, UNIT_NONE, "the node that reads", "NODE", 12, 0, NULL),
	COLUMN(peer, UNIT_NONE, "the node that is read", "READS", 12, 0, NULL),
	RECORD_MADE(UNIT_NONE, "DEVICES", 13, 3, show_devices),
	MEMBER(device, UNIT_NONE, "device of the node that reads"),
	MEMBER(peer_device, UNIT_NONE, "device of the node that is read"),
	COLUMN(seen, UNIT_NONE, "good, degraded, lossy, standing, silent or no-pair",
		"SEEN", 9, 0, show_seen),
	COLUMN(for_ns, UNIT_NANOSECONDS, "time for which it has been seen so, to the second",
		"FOR", 11, 2, NULL),
	MEMBER(steady, UNIT_NONE, "whether it is probed steadily; else it is visited in turn"),
	MEMBER(answered, UNIT_COUNT, "probes that were answered, of the last ones"),
	MEMBER(lost, UNIT_COUNT, "probes that were lost, of the last ones"),
	MEMBER(min_ns, UNIT_NANOSECONDS, "least latency; null if unknown, as all that follow"),
	COLUMN(median_ns, UNIT_NANOSECONDS, "median latency", "MEDIAN", 7, 0, NULL),
	MEMBER(mad_ns, UNIT_NANOSECONDS, "median absolute deviation of the latency"),
	COLUMN(baseline_ns, UNIT_NANOSECONDS, "usual median latency", "USUAL", 7, 0, NULL),
	COLUMN(p99_ns, UNIT_NANOSECONDS, "99th percentile of the latency", "P99", 7, 1, NULL),
	RECORD_MADE(UNIT_NONE, "LOST", 13, 0, show_lost),
	MEMBER(lost_permille, UNIT_COUNT, "probes lost of a thousand"),
	MEMBER(port_congestion, UNIT_NONE, "congestion of the device's port: quiet, congested, "
		"pause-storm or not-counted; null if the node is not the one that answers"),
};
// clang-format on

const struct record path_record = RECORD("paths", fields);
