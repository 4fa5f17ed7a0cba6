// SPDX-License-Identifier: BSD-3-Clause
// The fields of PATH. A row of `paths` has those of PATHS as well.
#include <records/path.h>

#define DETAIL(...) RECORD_MEMBER(struct path_detail_row, __VA_ARGS__)
#define SIZE(...) RECORD_MEMBER(struct path_size_row, __VA_ARGS__)
#define FLOW(...) RECORD_MEMBER(struct path_flow_row, __VA_ARGS__)
#define VERDICT(...) RECORD_MEMBER(struct path_verdict_row, __VA_ARGS__)
#define BLAME(...) RECORD_MEMBER(struct path_blame_row, __VA_ARGS__)
#define PORT(...) RECORD_MEMBER(struct port_congestion_row, __VA_ARGS__)

static const struct record_field details[] = {
	DETAIL(pair_up, UNIT_NONE, "whether a pair is up and probed"),
	DETAIL(pair_known, UNIT_NONE, "whether there was a pair; else the next four say nothing"),
	DETAIL(mtu_bytes, UNIT_BYTES, "MTU of the pair"),
	DETAIL(flow_label, UNIT_NONE, "flow label of the pair"),
	DETAIL(responder, UNIT_NONE, "what answers reads: hardware, kernel, in-process or unknown"),
	DETAIL(shares_overlay, UNIT_NONE, "whether the path uses the overlay's interface"),
	DETAIL(baseline_mad_ns, UNIT_NANOSECONDS, "spread of the usual latency"),
	DETAIL(last_answer_ns, UNIT_NANOSECONDS, "time since the last answer, or null"),
	DETAIL(last_probe_ns, UNIT_NANOSECONDS, "time since the last probe, or null"),
	DETAIL(sizes, UNIT_NONE, "a row for each size of reads"),
	DETAIL(writes, UNIT_NONE, "a row for each size of writes"),
	DETAIL(latency, UNIT_NONE, "count, least, largest and percentiles of small reads, or null"),
	DETAIL(flows, UNIT_NONE, "a row for each flow label"),
	DETAIL(gpu, UNIT_NONE, "reads of the peer's GPU memory: the members of gpus, or null"),
	DETAIL(congestion, UNIT_NONE, "congestion counters of the device's port"),
};

static const struct record_field sizes[] = {
	SIZE(bytes, UNIT_BYTES, "size of the probe; 0 for the MTU before there was a pair"),
	SIZE(sent, UNIT_COUNT, "probes sent"),
	SIZE(lost, UNIT_COUNT, "probes lost"),
	SIZE(recent, UNIT_COUNT, "answers behind the latencies"),
	SIZE(min_ns, UNIT_NANOSECONDS, "least latency; null if unknown, as those that follow"),
	SIZE(median_ns, UNIT_NANOSECONDS, "median latency"),
	SIZE(p99_ns, UNIT_NANOSECONDS, "99th percentile of the latency"),
};

static const struct record_field flows[] = {
	FLOW(label, UNIT_NONE, "the flow label"),
	FLOW(current, UNIT_NONE, "whether the pair uses it now"),
	FLOW(bad, UNIT_NONE, "whether it is worse than the others"),
	FLOW(probes, UNIT_COUNT, "probes with it"),
	FLOW(lost, UNIT_COUNT, "probes that were lost"),
	FLOW(late, UNIT_COUNT, "probes that the device sent again"),
	FLOW(median_ns, UNIT_NANOSECONDS, "median latency; 0 if unknown"),
	FLOW(p99_ns, UNIT_NANOSECONDS, "99th percentile of the latency; 0 if unknown"),
};

static const struct record_field verdicts[] = {
	VERDICT(node, UNIT_NONE, "the node"),
	VERDICT(state, UNIT_NONE, "state of its agent, as in PEERS"),
	VERDICT(grade, UNIT_NONE, "ok, warning, critical or unknown"),
	VERDICT(verdict, UNIT_NONE, "verdict on the node"),
	VERDICT(reason, UNIT_NONE, "reason as one word"),
	VERDICT(evidence, UNIT_NONE, "evidence, as a sentence"),
	VERDICT(maint, UNIT_NONE, "whether the node is in maintenance"),
	VERDICT(since, UNIT_NONE, "when the verdict began, UTC; null if unknown"),
	VERDICT(for_ns, UNIT_NANOSECONDS, "time since then; null if unknown"),
};

static const struct record_field blames[] = {
	BLAME(observer, UNIT_NONE, "the end that saw the path so"),
	BLAME(seen, UNIT_NONE, "what it saw, as in PATHS"),
	BLAME(at, UNIT_NONE, "when it was seen last, UTC"),
	BLAME(ago_ns, UNIT_NANOSECONDS, "time since then"),
	BLAME(blamed, UNIT_NONE, "what is blamed: path, node, port, host or leaf"),
	BLAME(node, UNIT_NONE, "the node that is blamed, or null"),
	BLAME(what, UNIT_NONE, "name of the port, host or leaf, or \"\""),
};

static const struct record_field ports[] = {
	PORT(device, UNIT_NONE, "device of the node that answers"),
	PORT(port, UNIT_NONE, "number of its port"),
	PORT(counts, UNIT_NONE, "for each counter: total, and per_s, which may be null"),
	PORT(paused_sent_permille, UNIT_COUNT, "time in which it paused its switch, or null"),
	PORT(paused_received_permille, UNIT_COUNT, "time in which its switch paused it, or null"),
};

const struct record path_detail_record = RECORD("paths", details);
const struct record path_size_record = RECORD("sizes and writes", sizes);
const struct record path_flow_record = RECORD("flows", flows);
const struct record path_verdict_record = RECORD("verdicts", verdicts);
const struct record path_blame_record = RECORD("blame", blames);
const struct record port_congestion_record = RECORD("congestion", ports);
