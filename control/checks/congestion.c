// SPDX-License-Identifier: BSD-3-Clause
// Names of congestion counters, rates between two reads, and pause storms. Pure; names and values
// come from drivers. docs/hardware.md documents the origin of each name.
#include "checks/congestion.h"

#include <lib/must.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define NS_PER_S UINT64_C(1000000000)
#define STORM_PERMILLE 500 // share of the time that makes a storm
#define STORM_HOLD_NS (60 * NS_PER_S)
#define RATE_MAX (UINT64_C(1) << 53) // thousandths a second; no port counts faster

static const char *const names[CONGESTION_KIND_COUNT] = {
	[CONGESTION_ECN_MARKED] = "ecn_marked",
	[CONGESTION_CNP_SENT] = "cnp_sent",
	[CONGESTION_CNP_HANDLED] = "cnp_handled",
	[CONGESTION_CNP_IGNORED] = "cnp_ignored",
	[CONGESTION_PAUSE_SENT] = "pause_sent",
	[CONGESTION_PAUSE_RECEIVED] = "pause_received",
	[CONGESTION_PAUSE_STORMS] = "pause_storms",
	[CONGESTION_RX_DISCARDS] = "rx_discards",
	[CONGESTION_OUT_OF_SEQUENCE] = "out_of_sequence",
	[CONGESTION_RETRANSMITS] = "retransmits",
	[CONGESTION_ADAPTIVE_RETRANSMITS] = "adaptive_retransmits",
};

const char *congestion_name(enum congestion_kind kind) {
	return names[kind];
}

// Return whether `device` names the port: "mlx5_0" is its first port, "mlx5_0:2" its second.
bool congestion_port_is_of_device(const struct congestion_port *port, const char *device) {
	size_t length = strcspn(device, ":");

	if (strncmp(port->device, device, length) != 0 || port->device[length] != '\0')
		return false;
	return device[length] == '\0'
		       ? port->number == 1
		       : device[length + 1] == '0' + port->number && device[length + 2] == '\0';
}

struct name {
	const char *text; // '#' matches one digit, the priority
	enum congestion_kind kind;
};

static const struct name hw_names[] = {
	// mlx5; the first four also the vendor's bnxt_re
	{"np_ecn_marked_roce_packets", CONGESTION_ECN_MARKED},
	{"np_cnp_sent", CONGESTION_CNP_SENT},
	{"rp_cnp_handled", CONGESTION_CNP_HANDLED},
	{"rp_cnp_ignored", CONGESTION_CNP_IGNORED},
	{"out_of_sequence", CONGESTION_OUT_OF_SEQUENCE},
	{"packet_seq_err", CONGESTION_RETRANSMITS},
	{"implied_nak_seq_err", CONGESTION_RETRANSMITS},
	{"local_ack_timeout_err", CONGESTION_RETRANSMITS},
	{"roce_adp_retrans", CONGESTION_ADAPTIVE_RETRANSMITS},
	{"roce_adp_retrans_to", CONGESTION_ADAPTIVE_RETRANSMITS},
	// bnxt_re
	{"rx_ecn_marked_pkts", CONGESTION_ECN_MARKED},
	{"tx_cnp_pkts", CONGESTION_CNP_SENT},
	{"rx_cnp_pkts", CONGESTION_CNP_HANDLED},
	{"rx_roce_discards", CONGESTION_RX_DISCARDS},
	{"oos_drop_count", CONGESTION_OUT_OF_SEQUENCE},
	{"to_retransmits", CONGESTION_RETRANSMITS},
	{"seq_err_naks_rcvd", CONGESTION_RETRANSMITS},
	{"missing_resp", CONGESTION_RETRANSMITS},
	// irdma
	{"RxECNMrkd", CONGESTION_ECN_MARKED},
	{"cnpSent", CONGESTION_CNP_SENT},
	{"cnpHandled", CONGESTION_CNP_HANDLED},
	{"cnpIgnored", CONGESTION_CNP_IGNORED},
	{"ip4InDiscards", CONGESTION_RX_DISCARDS},
	{"ip6InDiscards", CONGESTION_RX_DISCARDS},
	{"Rcvd Out of order packets", CONGESTION_OUT_OF_SEQUENCE},
	{"Nak Sequence Error", CONGESTION_RETRANSMITS},
	{"Nak Sequence Error Implied", CONGESTION_RETRANSMITS},
	{"RTO", CONGESTION_RETRANSMITS},
	// rxe
	{"out_of_seq_request", CONGESTION_OUT_OF_SEQUENCE},
	{"rcvd_seq_err", CONGESTION_RETRANSMITS},
	{"completer_retry_err", CONGESTION_RETRANSMITS},
};
#define HW_NAMES (sizeof(hw_names) / sizeof(hw_names[0]))

static const struct name ethtool_names[] = {
	// mlx5e
	{"tx_prio#_pause", CONGESTION_PAUSE_SENT},
	{"rx_prio#_pause", CONGESTION_PAUSE_RECEIVED},
	{"tx_global_pause", CONGESTION_PAUSE_SENT},
	{"rx_global_pause", CONGESTION_PAUSE_RECEIVED},
	{"tx_pause_storm_warning_events", CONGESTION_PAUSE_STORMS},
	{"tx_pause_storm_error_events", CONGESTION_PAUSE_STORMS},
	{"rx_discards_phy", CONGESTION_RX_DISCARDS},
	// bnxt_en
	{"tx_pfc_ena_frames_pri#", CONGESTION_PAUSE_SENT},
	{"rx_pfc_ena_frames_pri#", CONGESTION_PAUSE_RECEIVED},
	// ice, i40e
	{"tx_priority_#_xoff.nic", CONGESTION_PAUSE_SENT},
	{"rx_priority_#_xoff.nic", CONGESTION_PAUSE_RECEIVED},
	{"port.tx_priority_#_xoff_tx", CONGESTION_PAUSE_SENT},
	{"port.rx_priority_#_xoff_rx", CONGESTION_PAUSE_RECEIVED},
	{"port.tx_priority_#_xoff", CONGESTION_PAUSE_SENT},
	{"port.rx_priority_#_xoff", CONGESTION_PAUSE_RECEIVED},
};
#define ETHTOOL_NAMES (sizeof(ethtool_names) / sizeof(ethtool_names[0]))

static const struct {
	const char *text;
	bool sent;
} pause_names[] = {
	{"tx_prio#_pause_duration", true},  {"rx_prio#_pause_duration", false},
	{"tx_global_pause_duration", true}, {"rx_global_pause_duration", false},
	{"pfc_pri#_tx_duration_us", true},  {"pfc_pri#_rx_duration_us", false},
};
#define PAUSE_NAMES (sizeof(pause_names) / sizeof(pause_names[0]))

const char *congestion_hw_name(uint32_t n) {
	return n < HW_NAMES ? hw_names[n].text : NULL;
}

// Return the lane: the digit in place of '#', or the last lane without one; -1: no match. Trailing
// blanks are ignored, since mlx5e has such a name.
static int pattern_match(const char *pattern, const char *name) {
	int lane = CONGESTION_LANES - 1;

	for (; *pattern != '\0'; pattern++, name++) {
		if (*pattern != '#' && *pattern != *name)
			return -1;
		if (*pattern != '#')
			continue;
		if (*name < '0' || *name >= '0' + CONGESTION_LANES - 1)
			return -1;
		lane = *name - '0';
	}
	return name[strspn(name, " ")] == '\0' ? lane : -1;
}

void congestion_read_init(struct congestion_read *read, const char *device, uint8_t number) {
	*read = (struct congestion_read){.number = number};
	snprintf(read->device, sizeof(read->device), "%s", device);
	memset(read->sent_us, 0xff, sizeof(read->sent_us));
	memset(read->received_us, 0xff, sizeof(read->received_us));
}

static void
congestion_kind_add(struct congestion_read *read, enum congestion_kind kind, uint64_t value) {
	uint64_t room = CONGESTION_UNKNOWN - 1 - read->values[kind];

	read->values[kind] += value < room ? value : room;
	read->parts[kind]++;
}

void congestion_add_hw_counter(struct congestion_read *read, const char *name, uint64_t value) {
	for (size_t n = 0; n < HW_NAMES; n++) {
		if (strcmp(hw_names[n].text, name) == 0)
			congestion_kind_add(read, hw_names[n].kind, value);
	}
}

void congestion_add_ethtool_counter(
	struct congestion_read *read, const char *name, uint64_t value
) {
	for (size_t n = 0; n < ETHTOOL_NAMES; n++) {
		if (pattern_match(ethtool_names[n].text, name) >= 0)
			congestion_kind_add(read, ethtool_names[n].kind, value);
	}
	for (size_t n = 0; n < PAUSE_NAMES; n++) {
		int lane = pattern_match(pause_names[n].text, name);
		uint64_t *times = pause_names[n].sent ? read->sent_us : read->received_us;

		if (lane >= 0)
			times[lane] = value < CONGESTION_UNKNOWN ? value : CONGESTION_UNKNOWN - 1;
	}
}

// Comparison of two reads.

// A counter below its previous value was reset or wrapped. Queue counters of mlx5 wrap at 32 bits.
static uint64_t counter_rate(
	const struct congestion_read *before,
	const struct congestion_read *read,
	enum congestion_kind kind,
	uint64_t gone_ns
) {
	double rate;

	if (read->parts[kind] == 0 || read->parts[kind] != before->parts[kind] ||
	    read->values[kind] < before->values[kind] || gone_ns == 0)
		return CONGESTION_UNKNOWN;
	rate = (double)(read->values[kind] - before->values[kind]) * 1e12 / (double)gone_ns;
	return rate < (double)RATE_MAX ? (uint64_t)rate : RATE_MAX;
}

static uint32_t pause_share_permille(
	const uint64_t before[static CONGESTION_LANES],
	const uint64_t now[static CONGESTION_LANES],
	uint64_t gone_ns
) {
	uint32_t most = UINT32_MAX;

	for (uint32_t n = 0; n < CONGESTION_LANES && gone_ns >= 1000; n++) {
		uint64_t gone_us = gone_ns / 1000, permille;

		if (before[n] == CONGESTION_UNKNOWN || now[n] == CONGESTION_UNKNOWN ||
		    now[n] < before[n])
			continue;
		permille = now[n] - before[n] >= gone_us ? 1000
							 : (now[n] - before[n]) * 1000 / gone_us;
		if (most == UINT32_MAX || permille > most)
			most = (uint32_t)permille;
	}
	return most;
}

static bool port_has_counters(const struct congestion_read *read) {
	for (uint32_t n = 0; n < CONGESTION_KIND_COUNT; n++) {
		if (read->parts[n] > 0)
			return true;
	}
	for (uint32_t n = 0; n < CONGESTION_LANES; n++) {
		if (read->sent_us[n] != CONGESTION_UNKNOWN ||
		    read->received_us[n] != CONGESTION_UNKNOWN)
			return true;
	}
	return false;
}

static void congestion_port_fill(
	const struct congestion_read *before,
	const struct congestion_read *read,
	uint64_t gone_ns,
	struct congestion_port *port
) {
	*port = (struct congestion_port
	){.number = read->number, .sent_permille = UINT32_MAX, .received_permille = UINT32_MAX};
	snprintf(port->device, sizeof(port->device), "%s", read->device);
	for (uint32_t n = 0; n < CONGESTION_KIND_COUNT; n++) {
		enum congestion_kind kind = (enum congestion_kind)n;

		port->totals[n] = read->parts[n] > 0 ? read->values[n] : CONGESTION_UNKNOWN;
		port->milli_per_s[n] = before != NULL ? counter_rate(before, read, kind, gone_ns)
						      : CONGESTION_UNKNOWN;
	}
	if (before == NULL)
		return;
	port->sent_permille = pause_share_permille(before->sent_us, read->sent_us, gone_ns);
	port->received_permille =
		pause_share_permille(before->received_us, read->received_us, gone_ns);
}

static bool port_reported_storm(const struct congestion_port *port) {
	uint64_t rate = port->milli_per_s[CONGESTION_PAUSE_STORMS];

	return rate != CONGESTION_UNKNOWN && rate > 0;
}

enum congestion_level congestion_level(const struct congestion_port *port) {
	bool counted = false, moves = false;

	for (uint32_t kind = 0; kind < CONGESTION_KIND_COUNT; kind++) {
		// Packets are also lost and resent for other reasons than congestion.
		if (kind == CONGESTION_OUT_OF_SEQUENCE || kind == CONGESTION_RETRANSMITS ||
		    port->milli_per_s[kind] == CONGESTION_UNKNOWN)
			continue;
		counted = true;
		moves = moves || port->milli_per_s[kind] > 0;
	}
	if (port_reported_storm(port) ||
	    (port->sent_permille != UINT32_MAX && port->sent_permille >= STORM_PERMILLE))
		return CONGESTION_STORM;
	if (moves)
		return CONGESTION_ACTIVE;
	return counted ? CONGESTION_QUIET : CONGESTION_NOT_COUNTED;
}

const char *congestion_level_name(enum congestion_level level) {
	static const char *const words[CONGESTION_LEVEL_COUNT] = {
		[CONGESTION_NOT_COUNTED] = "not-counted",
		[CONGESTION_QUIET] = "quiet",
		[CONGESTION_ACTIVE] = "congested",
		[CONGESTION_STORM] = "pause-storm",
	};

	must(level < CONGESTION_LEVEL_COUNT);
	return words[level];
}

static void
judge_port_pauses(const struct congestion_port *port, bool stormed, struct link_finding *finding) {
	uint32_t sent = port->sent_permille, received = port->received_permille;

	if (sent != UINT32_MAX && sent >= STORM_PERMILLE)
		link_finding_add(
			finding, CHECK_WARNING, "%.32s port %u sends pauses for %u %% of the time",
			port->device, port->number, sent / 10
		);
	else if (stormed)
		link_finding_add(
			finding, CHECK_WARNING,
			"%.32s port %u reports that its own pauses are too long", port->device,
			port->number
		);
	if (received != UINT32_MAX && received >= STORM_PERMILLE)
		link_finding_add(
			finding, CHECK_OK,
			"%.32s port %u is paused by its switch for %u %% of the time", port->device,
			port->number, received / 10
		);
}

// A port missing from this read has no previous values in the next one.
void congestion_judge(
	struct congestion_book *book,
	const struct congestion_read *reads,
	uint32_t count,
	uint64_t now_ns,
	struct link_finding *ret_finding
) {
	struct link_finding finding = {.level = CHECK_OK};
	uint64_t storms[CONGESTION_PORTS_MAX] = {0};

	book->count = 0;
	for (uint32_t n = 0; n < count && book->count < CONGESTION_PORTS_MAX; n++) {
		struct congestion_port *port = &book->ports[book->count];
		uint64_t *storm_ns = &storms[book->count];
		uint32_t past = 0;
		bool known;

		if (!port_has_counters(&reads[n]))
			continue;
		while (past < book->before_count &&
		       (book->before[past].number != reads[n].number ||
			strcmp(book->before[past].device, reads[n].device) != 0))
			past++;
		known = past < book->before_count && now_ns > book->looked_ns[past];
		congestion_port_fill(
			known ? &book->before[past] : NULL, &reads[n],
			known ? now_ns - book->looked_ns[past] : 0, port
		);
		*storm_ns = port_reported_storm(port) ? now_ns : known ? book->storm_ns[past] : 0;
		judge_port_pauses(
			port, *storm_ns != 0 && now_ns - *storm_ns < STORM_HOLD_NS, &finding
		);
		book->count++;
	}
	book->before_count = 0;
	for (uint32_t n = 0; n < count && book->before_count < book->count; n++) {
		if (!port_has_counters(&reads[n]))
			continue;
		book->before[book->before_count] = reads[n];
		book->looked_ns[book->before_count] = now_ns;
		book->before_count++;
	}
	memcpy(book->storm_ns, storms, sizeof(storms));
	if (finding.evidence[0] == '\0')
		snprintf(
			finding.evidence, sizeof(finding.evidence),
			"%u ports count congestion, none sends pauses for long", book->count
		);
	link_finding_add_more(&finding);
	*ret_finding = finding;
}
