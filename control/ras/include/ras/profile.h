// SPDX-License-Identifier: BSD-3-Clause
// Every timer and bound of the protocol in one table per profile.
#pragma once

#include <ras/types.h>

struct ras_profile {
	const char *name;

	// Liveness. Silence is counted from the last authenticated message.
	uint64_t beat_ns;	   // keep-alive on ring links, when nothing else was sent
	uint64_t suspect_ns;	   // silence that starts a suspicion
	uint64_t confirm_ns;	   // how long asked observers may look
	uint64_t dead_ns;	   // silence that kills, confirmed in a last round before it
	uint64_t sole_factor;	   // times dead_ns when there is no second observer
	uint64_t gone_recheck_ns;  // between the two refused connects that make a peer *gone*
	uint64_t suspicion_max_ns; // an unconfirmed suspicion is dropped and starts over
	uint64_t again_ns;	   // whose death was refuted is not declared by the same before
	uint32_t observers;	   // for *dead*; fewer only if fewer can look
	bool evidence;		   // act on refused connects and on what others see

	// Connections.
	uint64_t connect_ns;	  // TCP and key proof
	uint64_t init_ns;	  // INIT to INIT_ACK, either side
	uint64_t stuck_ns;	  // age of the head of a send queue
	uint64_t close_ns;	  // reading to the end after a half-close
	uint64_t idle_ns;	  // a link nobody needs is retired
	uint64_t retry_ns;	  // between connects of a link in use
	uint64_t retry_max_ns;	  // ceiling of the back-off for a peer that refuses
	uint64_t higher_wait_ns;  // the side higher in ring order waits, then connects itself
	uint64_t delayed_ns;	  // silence after which floods go round a link
	uint64_t silent_close_ns; // and after which its connection may be half-open: a new one

	// Topology.
	bool long_rings;
	uint64_t relink_ns; // between replacements of long links

	// Spreading.
	uint64_t news_ns;	 // table changes are batched this long
	uint64_t sync_ns;	 // digests must differ this long before tables are compared
	uint64_t sync_gap_ns;	 // between two comparisons with one peer
	uint64_t leg_ns;	 // a collective's default deadline
	uint64_t leg_grace_ns;	 // the root waits this much longer than its legs
	uint64_t relay_retry_ns; // first end-to-end retry, doubling
	uint32_t relay_tries;

	// Membership.
	uint64_t left_keep_ns;
	uint64_t dead_keep_ns;
	uint64_t search_ns; // at least, between two tries of addresses where somebody was lost
	uint32_t joins_max; // served at once; more are redirected

	// The brake.
	uint64_t brake_window_ns;
	uint64_t brake_hold_ns;
	uint32_t brake_peers;	// never on for fewer silent peers than this
	uint32_t brake_percent; // of the view
};

extern const struct ras_profile ras_profile_fast;
extern const struct ras_profile ras_profile_nccl;

// NULL if there is no such profile.
const struct ras_profile *ras_profile_find(const char *name);
