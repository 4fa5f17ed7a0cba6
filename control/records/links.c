// SPDX-License-Identifier: BSD-3-Clause
// The fields of LINKS.
#include <lib/fact.h>
#include <records/links.h>

static const char *show_use(const json_t *row, char text[static SHOW_BYTES]) {
	(void)text;
	return fact_name(row, fact_is(row, "mine", "-") ? "theirs" : "mine");
}

static const char *show_direction(const json_t *row, char text[static SHOW_BYTES]) {
	(void)text;
	return fact_holds(row, "outgoing") ? "out" : "in";
}

#define MEMBER(...) RECORD_MEMBER(struct link_row, __VA_ARGS__)
#define COLUMN(...) RECORD_COLUMN(struct link_row, __VA_ARGS__)

// clang-format off
static const struct record_field fields[] = {
	COLUMN(node, UNIT_NONE, "the peer", "NODE", 18, 0, NULL),
	RECORD_MADE(UNIT_NONE, "USE", 17, 0, show_use),
	COLUMN(state, UNIT_NONE, "up, down or delayed (silent for too long)", "STATE", 7, 0, NULL),
	MEMBER(protocol, UNIT_NONE, "version of the protocol; 0 while the link is down"),
	MEMBER(mine, UNIT_NONE, "what this node needs the link for: next, prev, fallback-next, "
		"fallback-prev, check, long0 and so on; \"-\" for nothing"),
	MEMBER(theirs, UNIT_NONE, "what the peer needs the link for"),
	COLUMN(outgoing, UNIT_NONE, "whether this node opened the connection",
		"DIR", 3, 5, show_direction),
	COLUMN(rtt_min_ns, UNIT_NANOSECONDS,
		"shortest round trip of a beat; null if none came back",
		"RTT MIN", 9, 4, NULL),
	COLUMN(rtt_mean_ns, UNIT_NANOSECONDS, "mean round trip", "RTT MEAN", 9, 0, NULL),
	MEMBER(rtt_max_ns, UNIT_NANOSECONDS, "longest round trip"),
	COLUMN(silent_ns, UNIT_NANOSECONDS, "time since the last frame of the peer",
		"SILENT", 10, 0, NULL),
	MEMBER(sent_bytes, UNIT_BYTES, "bytes sent over the life of the link"),
	MEMBER(sent_frames, UNIT_COUNT, "frames sent"),
	MEMBER(received_bytes, UNIT_BYTES, "bytes received"),
	MEMBER(received_frames, UNIT_COUNT, "frames received"),
	COLUMN(sent_bytes_per_s, UNIT_BYTES,
		"mean rate over the life of the link; 0 in its first second",
		"SENT/S", 8, 3, NULL),
	COLUMN(received_bytes_per_s, UNIT_BYTES, "mean rate of bytes received",
		"RECVD/S", 8, 2, NULL),
	COLUMN(reconnects, UNIT_COUNT, "times that the connection was lost and opened again",
		"LOST", 6, 1, NULL),
	MEMBER(queued_bytes, UNIT_BYTES, "bytes that wait to be sent"),
};
// clang-format on

const struct record link_record = RECORD("links", fields);
