// SPDX-License-Identifier: BSD-3-Clause
// WHY: links and pairs of this node with a peer, and what is known of the verdict on the peer.
#pragma once

#include <lib/record.h>

struct observation_row {
	const char *observer, *kind, *responder;
	const char *device, *peer_device; // "": the observer reports its overlay link
	bool own_good, shares_interface;
	const char *reach;
	uint64_t median_ns, baseline_ns;
	uint32_t lost_permille, lost_bytes;
	uint64_t age_ns;
};

struct statement_row {
	const char *verdict, *reason, *evidence;
	uint64_t age_ns;
};

struct past_verdict_row {
	const char *verdict, *reason, *since, *until;
	uint64_t for_ns;
};

struct peer_link_row {
	bool ready, delayed, outgoing;
	uint64_t silent_ns, rtt_mean_ns;
	uint32_t reconnects;
};

struct peer_pair_row {
	const char *device, *peer_device, *state;
	const char *reason, *text; // NULL if nothing failed
};

struct bad_flow_row {
	const char *device, *peer_device;
	uint32_t labels, label;
	uint64_t lost, late, probes;
};

extern const struct record observation_record, statement_record, past_verdict_record;
extern const struct record peer_link_record, peer_pair_record, bad_flow_record;
