// SPDX-License-Identifier: BSD-3-Clause
// One instance of the protocol core, and the functions that its parts offer each other.
//
// Each part has a file, and a row in the table of parts.c. A part changes another part only through
// that part's functions; links notify higher parts through the table (parts.h). A death is
// applied in a fixed order: route round, purge, drop, change, publish, report. Only
// member/membership.c implements this order.
#pragma once

#include "base/history.h"
#include "base/memory.h"
#include "collect/collective.h"
#include "collect/flood.h"
#include "core/message.h"
#include "core/parts.h"
#include "link/conn.h"
#include "link/link.h"
#include "link/ring.h"
#include "live/census_list.h"
#include "live/contest.h"
#include "live/liveness.h"
#include "live/liveness_brake.h"
#include "live/liveness_look.h"
#include "live/liveness_votes.h"
#include "live/turns.h"
#include "member/departure.h"
#include "member/foreign.h"
#include "member/hearsay.h"
#include "member/join.h"
#include "member/key.h"
#include "member/news.h"
#include "member/peers.h"
#include "member/remembered.h"
#include "member/search.h"
#include "member/sync.h"
#include "member/who.h"
#include "relay/relay.h"
#include "relay/transfer.h"

#include <ras/ras.h>

// Latest order to forget all unreachable peers.
struct forget_order {
	uint64_t at_ns;	    // observed time of its arrival
	uint64_t waited_ns; // arrival of the latest order while this side might be the minority
	uint64_t due_ns;    // next announcement, if pending
	bool pending;	    // own unreachable peers are not announced yet
};

#define OWN_PAUSES_MAX 8

// A time in which this agent was stopped.
struct own_pause {
	uint64_t observed_ns; // observed time of the pause, which does not advance during it
	uint64_t length_ns;
};

struct ras {
	// Time. `now` is the time of the caller. `observed` leaves out the time in which this agent
	// was stopped: it judges no peer by its own pause.
	uint64_t now_ns;
	uint64_t observed_ns;
	struct own_pause pauses[OWN_PAUSES_MAX]; // the oldest first
	uint32_t pause_count;
	uint64_t resumed_ns;	    // observed time at the end of this agent's latest pause
	uint64_t long_pause_end_ns; // the same for the latest pause of at least suspect_ns
	uint64_t wake_ns;	    // next wake-up needed, caller's time
	uint64_t wake_requested_ns; // wake-up requested from the caller

	// Fields that every input reads come first: thousands of instances exceed every cache.
	uint32_t self_slot;
	bool started, preloaded, joined, leaving, left;
	bool restart_deferred; // a restart was deferred, and the conflict reported
	bool uncounted;	       // this agent was held for dead and has no vote yet
	bool late;	       // joined in a possible partition: no vote until it met all members
	bool start_guessed;    // the start number is a guess: an earlier run may have used it
	bool start_from_seed;  // a seed gave the start number; it may not know all earlier runs
	struct relay *relay;
	struct collective *collective;
	struct conns conns;
	struct links links;

	const struct ras_profile *profile;
	struct ras_ops ops;
	void *ops_ctx;
	struct memory memory;
	struct ras_interner *interner;
	uint64_t random;
	uint64_t cluster;
	struct ras_versions versions;
	uint32_t conns_max;

	struct wall_clock wall;

	uint64_t self_id;
	uint64_t deaths_reported; // DECLARED_DEAD was emitted for own incarnations below this one
	uint64_t joined_ns;
	uint64_t other_version_ns; // no event OTHER_VERSION before this
	uint64_t next_restart_ns;  // no further new start number before this
	uint64_t expire_ns;	   // next search for expired tombstones

	struct ras_counters counters;
	struct peers peers;
	struct ring ring;
	struct liveness liveness;
	struct contests contests;
	struct turns turns;
	struct forget_order order;
	struct strangers strangers;
	struct key_checks key_checks;
	struct news news;
	struct foreign foreign;
	struct hearsay hearsay;
	struct sync sync;
	struct join join;
	struct remembered remembered;
	struct search search;
	struct flood flood;
	struct transfers *transfers;
	struct history history;

	// Buffer to build one frame. No pointer into it may be kept across a send or a call of an
	// operation.
	uint8_t *scratch; // RAS_FRAME_MAX bytes
};

static inline struct peer_entry *ras_entry(const struct ras *ras, uint32_t slot) {
	return peers_entry(&ras->peers, slot);
}

static inline struct peer_entry *ras_self(const struct ras *ras) {
	return ras_entry(ras, ras->self_slot);
}

// Return the next number of splitmix64, seeded per instance. For jitter only.
uint64_t ras_random(struct ras *ras);
// Return `base_ns` minus a random part of up to a quarter.
uint64_t ras_jitter(struct ras *ras, uint64_t base_ns);

// Begin an input: set the time and detect a pause of this agent. Every input calls this first.
void ras_enter(struct ras *ras, uint64_t now_ns);
// End an input: request the next wake-up if it changed. Every input calls this last.
void ras_exit(struct ras *ras);
// Request a tick no later than this observed time.
void ras_wake_at(struct ras *ras, uint64_t at_ns);

void ras_emit(
	struct ras *ras,
	enum ras_event_kind kind,
	uint32_t slot,
	enum ras_cause cause,
	uint64_t value
);
// Emit CONFLICT: another agent holds the name of the peer. `other` is its address, NULL if unknown.
void ras_emit_conflict(
	struct ras *ras, uint32_t slot, uint64_t value, const struct sock_addr *other
);
// Do the same as ras_emit() for the agent at an address.
void ras_emit_for_address(
	struct ras *ras,
	enum ras_event_kind kind,
	const struct sock_addr *address,
	enum ras_cause cause,
	uint64_t value
);
// Emit ADDRESS_OTHER: another agent answers at the address of a peer.
void ras_emit_stranger(struct ras *ras, const struct ras_stranger *stranger);
// Emit ADDRESS_CHANGED: this agent advertises another address.
void ras_emit_own_address(struct ras *ras);
// Do the same as ras_emit() for an agent that may have no slot. `record` is NULL if its identity is
// unknown.
void ras_emit_for_record(
	struct ras *ras,
	enum ras_event_kind kind,
	const struct ras_record *record,
	enum ras_cause cause,
	uint64_t value
);

// Merge news and apply all consequences: links, legs, events, forwarding. `from` is the link the
// news arrived on, NULL for own news. Returns false if the record is missing.
bool membership_apply(struct ras *ras, const struct peer_news *news, struct link *from);

// Do the same for news reported by others. A death may have too few witnesses here, or be
// contested; then it is not merged.
bool membership_apply_reported(struct ras *ras, const struct peer_news *news, struct link *from);

// Take a start number above `start`, which an earlier run of this agent used, and announce it.
// Returns false if the own start number is higher already. Also returns false within 10 s of the
// last such step; a peer that knows the earlier run will report it again.
bool ras_supersede_earlier_run(struct ras *ras, uint64_t start);

// Become a member, with this start number if it is higher than the own one.
void ras_become_member(struct ras *ras, uint64_t start);

// Restart with a new start number and this address in the own record. Returns 0, -ENOMEM, -EINVAL
// (no address) or -ENOSPC (no start number left); on failure the record is unchanged.
int ras_restart_at_address(struct ras *ras, const struct sock_addr *address);

// Remove tombstones that have been kept long enough.
#define EXPIRE_GAP_NS (60 * RAS_NS_PER_SEC) // between two searches
void expire_tick(struct ras *ras);

// Refute a suspicion or death of this agent in an incarnation: take a higher one and announce it.
// No effect if the own incarnation is higher already.
void ras_refute_suspicion(struct ras *ras, uint64_t incarnation);
// Handle news that others hold this agent for dead or gone: refute it and emit DECLARED_DEAD. The
// event is emitted once per incarnation of this start. It is also emitted if the refutation
// preceded the news, since a suspect is notified too.
void ras_handle_own_death(struct ras *ras, uint64_t incarnation, enum ras_cause cause);

// Remove a tombstone unless it is of a newer incarnation. Returns true if one was removed.
bool ras_forget_apply(struct ras *ras, uint64_t id, uint64_t incarnation);
// Handle the order of another agent to forget all unreachable peers. This agent does so, and
// announces it, at a random time in the next seconds. It skips peers that others announced by then.
// Without the delay thousands of members would announce the same peers at once.
void ras_forget_order_received(struct ras *ras);
void forget_order_tick(struct ras *ras);
