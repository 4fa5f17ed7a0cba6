// SPDX-License-Identifier: BSD-3-Clause
// The fields of the rows in the answer of WHY for a node. Events and GPUs have records of their
// own.
#include <records/why.h>

#define OBSERVATION(...) RECORD_MEMBER(struct observation_row, __VA_ARGS__)
#define STATEMENT(...) RECORD_MEMBER(struct statement_row, __VA_ARGS__)
#define PAST(...) RECORD_MEMBER(struct past_verdict_row, __VA_ARGS__)
#define LINK(...) RECORD_MEMBER(struct peer_link_row, __VA_ARGS__)
#define PAIR(...) RECORD_MEMBER(struct peer_pair_row, __VA_ARGS__)
#define FLOW(...) RECORD_MEMBER(struct bad_flow_row, __VA_ARGS__)

static const struct record_field observations[] = {
	OBSERVATION(observer, UNIT_NONE, "the node that observed it"),
	OBSERVATION(kind, UNIT_NONE, "good, degraded, lossy, standing, silent or no-pair"),
	OBSERVATION(responder, UNIT_NONE, "what answers reads on it, such as hardware"),
	OBSERVATION(device, UNIT_NONE, "device of the observer; \"\": its overlay link alone"),
	OBSERVATION(peer_device, UNIT_NONE, "device that is read"),
	OBSERVATION(own_good, UNIT_NONE, "whether the observer's own device is good"),
	OBSERVATION(shares_interface, UNIT_NONE, "whether the path uses the overlay's interface"),
	OBSERVATION(reach, UNIT_NONE, "result of a TCP connection to it, such as refuses"),
	OBSERVATION(median_ns, UNIT_NANOSECONDS, "median latency; 0 if unknown"),
	OBSERVATION(baseline_ns, UNIT_NANOSECONDS, "usual median latency; 0 if unknown"),
	OBSERVATION(lost_permille, UNIT_COUNT, "probes lost of a thousand"),
	OBSERVATION(lost_bytes, UNIT_BYTES, "lossy: least size that is lost; 0 for all sizes"),
	OBSERVATION(age_ns, UNIT_NANOSECONDS, "time since it was observed"),
};

static const struct record_field statements[] = {
	STATEMENT(verdict, UNIT_NONE, "verdict that the node gives on itself"),
	STATEMENT(reason, UNIT_NONE, "reason as one word"),
	STATEMENT(evidence, UNIT_NONE, "evidence, as a sentence"),
	STATEMENT(age_ns, UNIT_NANOSECONDS, "time since the node stated it"),
};

static const struct record_field past_verdicts[] = {
	PAST(verdict, UNIT_NONE, "verdict on the node"),
	PAST(reason, UNIT_NONE, "reason as one word"),
	PAST(since, UNIT_NONE, "when it began, UTC"),
	PAST(until, UNIT_NONE, "when it ended, UTC"),
	PAST(for_ns, UNIT_NANOSECONDS, "time between them"),
};

static const struct record_field links[] = {
	LINK(ready, UNIT_NONE, "whether the link is up"),
	LINK(delayed, UNIT_NONE, "whether the peer is silent on it for too long"),
	LINK(outgoing, UNIT_NONE, "whether this node opened the connection"),
	LINK(silent_ns, UNIT_NANOSECONDS, "time since the last frame of the peer"),
	LINK(rtt_mean_ns, UNIT_NANOSECONDS, "mean round trip, or null"),
	LINK(reconnects, UNIT_COUNT, "times that the connection was lost and opened again"),
};

static const struct record_field pairs[] = {
	PAIR(device, UNIT_NONE, "device of this node"),
	PAIR(peer_device, UNIT_NONE, "device of the peer"),
	PAIR(state, UNIT_NONE, "ready, failed, absent or a step on the way"),
	PAIR(reason, UNIT_NONE, "why there is no pair, as one word, or null"),
	PAIR(text, UNIT_NONE, "the same as a sentence, or null"),
};

static const struct record_field bad_flows[] = {
	FLOW(device, UNIT_NONE, "device of this node"),
	FLOW(peer_device, UNIT_NONE, "device of the peer"),
	FLOW(labels, UNIT_COUNT, "flow labels of the path"),
	FLOW(label, UNIT_NONE, "flow label that is worse than the others"),
	FLOW(lost, UNIT_COUNT, "probes with it that were lost"),
	FLOW(late, UNIT_COUNT, "probes that the device sent again"),
	FLOW(probes, UNIT_COUNT, "probes with this label"),
};

const struct record observation_record = RECORD("observations", observations);
const struct record statement_record = RECORD("statements", statements);
const struct record past_verdict_record = RECORD("verdicts_before", past_verdicts);
const struct record peer_link_record = RECORD("links", links);
const struct record peer_pair_record = RECORD("pairs", pairs);
const struct record bad_flow_record = RECORD("bad_flows", bad_flows);
