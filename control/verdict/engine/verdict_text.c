// SPDX-License-Identifier: BSD-3-Clause
// Reasons, and evidence in one sentence with figures.
#include "verdict_text.h"

#include "inside.h"

#include <lib/show.h>

#include <stdio.h>
#include <string.h>

// The names are stable, since schedulers and alerts match them.
const struct verdict_text_reason verdict_text_reasons[] = {
	{"None", "healthy", "No evidence speaks against the node."},
	{"PulseSlow", "path-degraded",
	 "Two or more observers read its pulse more slowly than before and than other paths; "
	 "no observer reads it as fast as before."},
	{"LargeLost", "path-lossy",
	 "Large reads or writes are lost on every path to the node; small ones arrive."},
	{"ReadsLost", "path-lossy",
	 "Some reads or writes of every size are lost on every path to the node."},
	{"PacketsLost", "path-lossy",
	 "Two or more agents, whose other connections are sound, retransmit much to the node: "
	 "packets to it or from it are lost."},
	{"OwnLoss", "unknown",
	 "The agent that answers retransmits much on most of its connections: the silence that "
	 "it notices may be its own loss."},
	{"Flapping", "unstable",
	 "The verdict changed more than three times within a minute, and has not been stable "
	 "for a minute since."},
	{"NotMember", "unknown", "The agent that answers is not a member of the cluster."},
	{"NeverSeen", "unknown", "The roster expects the node, but it has never joined."},
	{"Suspected", "unknown",
	 "The overlay does not hear the node at the moment and has not decided yet."},
	{"SilentBothWays", "unknown",
	 "Neither the pulse nor the agent of the node is heard, and the overlay has not "
	 "decided yet."},
	{"Unreachable", "unknown",
	 "So many other nodes are silent at the same time that the overlay's brake holds back "
	 "the node's death."},
	{"Brake", "unknown",
	 "Too many nodes went bad at once: a fault of the network between them is more likely "
	 "than a fault of each."},
	{"SoleObserver", "unknown",
	 "A single agent declared the node dead, by silence on both planes."},
	{"HostOrAgent", "unknown",
	 "The agent was declared dead for its silence, and nothing shows whether its host is "
	 "alive."},
	{ADDRESS_CONFLICT, "unknown",
	 "Another agent answers at the node's address, so nothing there shows whether the node "
	 "is alive."},
	{"EvidenceStale", "unknown",
	 "The evidence against the node was neither repeated nor withdrawn."},
	{"OwnPause", "unknown", "The agent that answers was itself paused a moment ago."},
	{"PulseContradicts", "unknown",
	 "The counter of the node's pulse does not advance, yet its agent answers."},
	{"Settling", "unknown",
	 "The evidence against the node has ended; the node is called healthy if this lasts "
	 "for some seconds."},
	{"PulseAlone", "mgmt-net-down",
	 "The overlay does not reach the node, but its pulse is read and advances."},
	{"AgentGone", "agent-down",
	 "The node's host refuses connections to the agent: the process of the agent has "
	 "ended."},
	{"PulseStands", "agent-frozen",
	 "The node's pulse is read, but its counter does not advance: the host is alive, the "
	 "agent does not run."},
	{"AgentMute", "agent-frozen",
	 "The node's host accepts connections, but the agent sends nothing on them."},
	{"PulseUnread", "fabric-down",
	 "The node's agent answers, but its pulse cannot be read on any of its ports."},
	{"PortUnread", "fabric-down",
	 "The node's pulse cannot be read through one of its ports, but through another one."},
	{"PeersUnread", "fabric-down",
	 "The node reads none of its peers, which others read, and no observer reads the node."},
	{"NodeSilent", "node-down",
	 "The overlay does not reach the node, and its pulse cannot be read."},
	{"OverlaySilent", "node-down",
	 "The node's host does not answer the overlay, and there is no RDMA path to it."},
	{"PortDown", "fabric-down", "The node itself reports that one of its ports is down."},
	{PROCESSOR_SHORT, "node-busy",
	 "The node itself reports that its agent waits for a processor, so that its measurements "
	 "are late."},
	{"PauseStorm", "check-warning",
	 "The node itself reports that one of its ports sends pauses nearly all the time and "
	 "holds back the fabric."},
	{"AddressShared", "check-warning",
	 "The node itself reports that its machine has an IP address that another member "
	 "announces as its own."},
	{"DeviceStuck", "device-stuck",
	 "The node itself reports that a call into the driver of a device does not return."},
};

const uint32_t verdict_text_reason_count =
	sizeof(verdict_text_reasons) / sizeof(verdict_text_reasons[0]);

struct sentence {
	char text[VERDICT_EVIDENCE_MAX + 1];
};

#define RAIL_BYTES 40

// Name the rail of the worst observation; "" if it belongs to none.
static const char *rail_text(const struct finding *finding, char ret_words[static RAIL_BYTES]) {
	const struct observation *example = finding->example;
	bool known = example != NULL && example->peer_device[0] != '\0';

	snprintf(
		ret_words, RAIL_BYTES, "%s%.15s", known ? ", through its rail " : "",
		known ? example->peer_device : ""
	);
	return ret_words;
}

static void write_pulse_unread(const struct finding *finding, struct sentence *ret_sentence) {
	snprintf(
		ret_sentence->text, sizeof(ret_sentence->text), "%u of %u observers %s",
		finding->bad,
		finding->reader_count > finding->bad ? finding->reader_count : finding->bad,
		"cannot read its pulse"
	);
}

static void write_fabric_unread(const struct finding *finding, struct sentence *ret_sentence) {
	struct sentence pulse;

	write_pulse_unread(finding, &pulse);
	snprintf(
		ret_sentence->text, sizeof(ret_sentence->text),
		"%.80s; its agent answers; own ports of the observers are good", pulse.text
	);
}

static void write_port_unread(const struct finding *finding, struct sentence *ret_sentence) {
	struct sentence pulse;

	write_pulse_unread(finding, &pulse);
	snprintf(
		ret_sentence->text, sizeof(ret_sentence->text),
		"%.80s through its port %.15s; another port of it is read", pulse.text,
		finding->example->peer_device
	);
}

static void write_peers_unread(const struct finding *finding, struct sentence *ret_sentence) {
	snprintf(
		ret_sentence->text, sizeof(ret_sentence->text),
		"it does not read %u peers that others read, through %.15s; nobody reads it",
		finding->bad, finding->example->device
	);
}

// Describe the silence on the overlay. A suspected node has no list of overlay observers yet.
static const char *overlay_silence_text(const struct finding *finding, char ret_words[static 48]) {
	if (finding->state == RAS_DEAD)
		snprintf(ret_words, 48, "silent on the overlay (%u observers)", finding->overlay);
	else
		snprintf(ret_words, 48, "not heard on the overlay at the moment");
	return ret_words;
}

static void write_node_silent(const struct finding *finding, struct sentence *ret_sentence) {
	struct sentence pulse;
	char words[48];

	write_pulse_unread(finding, &pulse);
	snprintf(
		ret_sentence->text, sizeof(ret_sentence->text), "%s; %.80s",
		overlay_silence_text(finding, words), pulse.text
	);
}

static void write_overlay_silent(const struct finding *finding, struct sentence *ret_sentence) {
	char words[48];

	snprintf(
		ret_sentence->text, sizeof(ret_sentence->text),
		"%s; its host does not answer; there is no RDMA path to it",
		overlay_silence_text(finding, words)
	);
}

static void write_pulse_stands(const struct finding *finding, struct sentence *ret_sentence) {
	snprintf(
		ret_sentence->text, sizeof(ret_sentence->text),
		"%u of %u observers read its pulse, but its counter does not advance; its agent "
		"does not answer",
		finding->bad,
		finding->reader_count > finding->bad ? finding->reader_count : finding->bad
	);
}

static void write_pulse_alone(const struct finding *finding, struct sentence *ret_sentence) {
	char words[48];

	snprintf(
		ret_sentence->text, sizeof(ret_sentence->text),
		"%s; %u of %u observers read its pulse, which advances",
		overlay_silence_text(finding, words), finding->good, finding->reader_count
	);
}

static void write_agent_gone(const struct finding *finding, struct sentence *ret_sentence) {
	snprintf(
		ret_sentence->text, sizeof(ret_sentence->text),
		"connections to it ended and are refused (%u %s); its host answers",
		finding->overlay, finding->overlay == 1 ? "observer" : "observers"
	);
}

static void write_pulse_slow(const struct finding *finding, struct sentence *ret_sentence) {
	char median[SHOW_BYTES], baseline[SHOW_BYTES], rail[RAIL_BYTES];

	show_duration(finding->example->median_ns, median);
	show_duration(finding->example->baseline_ns, baseline);
	if (finding->observer_count == 1 && finding->bad > 1) {
		snprintf(
			ret_sentence->text, sizeof(ret_sentence->text),
			"%u of its own paths are slow, whose ends other observers read quickly: a "
			"median of %.20s, it was %.20s",
			finding->bad, median, baseline
		);
		return;
	}
	snprintf(
		ret_sentence->text, sizeof(ret_sentence->text),
		"%u of %u paths to it are slow: a median of %.20s, it was %.20s%s", finding->bad,
		finding->reader_count > finding->bad ? finding->reader_count : finding->bad, median,
		baseline, rail_text(finding, rail)
	);
}

static void write_sizes_lost(const struct finding *finding, struct sentence *ret_sentence) {
	char size[SHOW_BYTES], which[80] = "probes of any size", rail[RAIL_BYTES];

	if (finding->example->lost_bytes > 0) {
		show_bytes(finding->example->lost_bytes, size);
		snprintf(
			which, sizeof(which), "probes of %.20s and more; smaller ones arrive", size
		);
	}
	snprintf(
		ret_sentence->text, sizeof(ret_sentence->text),
		"%u of %u paths to it lose %u.%u %% of %s%s", finding->bad,
		finding->reader_count > finding->bad ? finding->reader_count : finding->bad,
		finding->example->lost_permille / 10, finding->example->lost_permille % 10, which,
		rail_text(finding, rail)
	);
}

static void write_packets_lost(const struct finding *finding, struct sentence *ret_sentence) {
	snprintf(
		ret_sentence->text, sizeof(ret_sentence->text),
		"%u observers retransmit up to %u.%u %% of the packets that they send to it",
		finding->bad, finding->example->lost_permille / 10,
		finding->example->lost_permille % 10
	);
}

// Reasons whose sentence has figures; the others use their meaning as the sentence.
static const struct story_figures {
	const char *reason;
	void (*tell)(const struct finding *finding, struct sentence *ret_sentence);
	bool example; // needs finding->example
} figures[] = {
	{"PulseUnread", write_fabric_unread, false},	{"PortUnread", write_port_unread, true},
	{"PeersUnread", write_peers_unread, true},	{"NodeSilent", write_node_silent, false},
	{"OverlaySilent", write_overlay_silent, false}, {"PulseStands", write_pulse_stands, false},
	{"PulseAlone", write_pulse_alone, false},	{"AgentGone", write_agent_gone, false},
	{"PulseSlow", write_pulse_slow, true},		{"LargeLost", write_sizes_lost, true},
	{"ReadsLost", write_sizes_lost, true},		{"PacketsLost", write_packets_lost, true},
	{"SilentBothWays", write_pulse_unread, false},
};

const char *verdict_text_meaning(const char *reason) {
	for (uint32_t n = 0; n < verdict_text_reason_count; n++) {
		if (strcmp(verdict_text_reasons[n].name, reason) == 0)
			return verdict_text_reasons[n].meaning;
	}
	return "";
}

void held_write_evidence(const struct finding *finding, struct held *held) {
	struct sentence sentence = {.text = ""};
	char text[VERDICT_EVIDENCE_MAX + 1];

	snprintf(held->reason, sizeof(held->reason), "%s", finding->reason);
	if (finding->statement != NULL) {
		memcpy(held->evidence, finding->statement->evidence, sizeof(held->evidence));
		return;
	}
	if (finding->verdict > VERDICT_HEALTHY)
		snprintf(
			sentence.text, sizeof(sentence.text), "%s",
			verdict_text_meaning(finding->reason)
		);
	for (uint32_t n = 0; n < sizeof(figures) / sizeof(figures[0]); n++) {
		if (strcmp(figures[n].reason, finding->reason) == 0 &&
		    (!figures[n].example || finding->example != NULL))
			figures[n].tell(finding, &sentence);
	}
	// Added to the same line, since readers would ask why nothing is done about the node.
	if (finding->sole && finding->verdict != VERDICT_UNKNOWN && sentence.text[0] != '\0') {
		memcpy(text, sentence.text, sizeof(text));
		snprintf(
			sentence.text, sizeof(sentence.text), "reported by one agent only: %.130s",
			text
		);
	}
	memcpy(held->evidence, sentence.text, sizeof(held->evidence));
}
