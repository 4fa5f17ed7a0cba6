// SPDX-License-Identifier: BSD-3-Clause
// All timers and limits of the protocol, one table per profile.
#pragma once

#include <ras/types.h>

struct ras_profile {
	const char *name;

	// Liveness. Silence is counted from the last authenticated message.
	uint64_t beat_ns;	   // keep-alive interval of ring links without other traffic
	uint64_t suspect_ns;	   // silence that starts a suspicion
	uint64_t confirm_ns;	   // time that asked observers have to look
	uint64_t dead_ns;	   // silence that leads to death, confirmed by a last round
	uint64_t sole_factor;	   // multiple of dead_ns when there is no second observer
	uint64_t gone_recheck_ns;  // between the two refused connects that mean *gone*
	uint64_t suspicion_max_ns; // an unconfirmed suspicion is dropped after this
	uint64_t again_ns;	   // after a refutation: no new death by the same observer
	uint32_t observers;	   // observers needed for *dead*; fewer only if fewer can look
	bool evidence;		   // act on refused connects and on what other observers see

	// Connections.
	uint64_t connect_ns;	  // TCP connect and key proof
	uint64_t init_ns;	  // from INIT to INIT_ACK, either side
	uint64_t stuck_ns;	  // maximum age of the head of a send queue
	uint64_t close_ns;	  // maximum time to read to the end after a half-close
	uint64_t idle_ns;	  // time until an unused link is retired
	uint64_t retry_ns;	  // between connects of a link in use
	uint64_t retry_max_ns;	  // maximum backoff for a peer that refuses
	uint64_t higher_wait_ns;  // wait of the side higher in ring order before it connects itself
	uint64_t delayed_ns;	  // silence after which floods bypass a link
	uint64_t silent_close_ns; // silence after which the connection is replaced

	// Topology.
	bool long_rings;
	uint64_t relink_ns; // between replacements of long links

	// Spreading.
	uint64_t news_ns;	 // table changes are batched for this time
	uint64_t sync_ns;	 // digests must differ for this time before tables are compared
	uint64_t sync_gap_ns;	 // minimum between two comparisons with one peer
	uint64_t leg_ns;	 // default deadline of a collective
	uint64_t leg_grace_ns;	 // time that the root waits longer than its legs
	uint64_t relay_retry_ns; // first end-to-end retry, doubling
	uint32_t relay_tries;

	// Membership.
	uint64_t left_keep_ns;
	uint64_t dead_keep_ns;
	uint64_t search_ns; // minimum between two attempts to reach lost peers
	uint32_t joins_max; // joins served at once; further joiners are redirected

	// The brake.
	uint64_t brake_window_ns;
	uint64_t brake_hold_ns;
	uint32_t brake_peers;	// silent peers tolerated; a minority side has no such limit
	uint32_t brake_percent; // the same, in percent of the view; the larger limit counts
};

extern const struct ras_profile ras_profile_fast;
extern const struct ras_profile ras_profile_nccl;

// Return the profile, or NULL if there is none of this name.
const struct ras_profile *ras_profile_find(const char *name);
