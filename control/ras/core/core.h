// SPDX-License-Identifier: BSD-3-Clause
// One instance: its parts, and what the parts may ask of each other.
//
// Each part has a file. A part changes another one only through that part's functions; the
// order in which a death is applied (route round, purge, drop, change, publish, tell) is in
// core.c and nowhere else.
#pragma once

#include "base/history.h"
#include "base/memory.h"
#include "collect/collective.h"
#include "collect/flood.h"
#include "core/message.h"
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
#include "member/foreign.h"
#include "member/join.h"
#include "member/news.h"
#include "member/peers.h"
#include "member/remembered.h"
#include "member/search.h"
#include "member/sync.h"
#include "member/who.h"
#include "relay/relay.h"
#include "relay/transfer.h"

#include <ras/ras.h>

// The latest order to forget all who are unreachable.
struct forget_order {
	uint64_t at_ns;	    // observed time
	uint64_t waited_ns; // the latest that came while our part was maybe the smaller one
	uint64_t due_ns;    // if it is pending
	bool pending;	    // we have not told yet whom we hold so
};

struct ras {
	// Time. `now` is the caller's; `observed` leaves out the time in which we ourselves were
	// stopped, so that nobody is judged by it.
	uint64_t now_ns;
	uint64_t observed_ns;
	uint64_t resumed_ns;	// observed time at the end of the latest pause of ours,
	uint64_t awake_ns;	// and of the latest one as long as a silence that is suspected
	uint64_t wake_ns;	// needed, by the caller's time
	uint64_t wake_asked_ns; // asked for

	// What every input looks at comes first: thousands of instances fit in no cache.
	uint32_t self_slot;
	bool started, preloaded, joined, leaving, left;
	bool step_put_off;  // and that was told
	bool uncounted;	    // we were held for dead, and count for no majority yet
	bool late;	    // nor, as long as we have not met all, since we joined beside a gap
	bool start_guessed; // nobody told us our start, and nothing kept it: it may be of before
	bool start_told;    // others told us: they may not know of every run before
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
	uint64_t deaths_told; // our own, in every incarnation below this one
	uint64_t joined_ns;
	uint64_t other_version_ns; // no OTHER_VERSION before
	uint64_t next_step_ns;	   // past an earlier run of ours, not before
	uint64_t expire_ns;	   // next look for tombstones that are old enough

	struct ras_counters counters;
	struct peers peers;
	struct ring ring;
	struct liveness liveness;
	struct contests contests;
	struct turns turns;
	struct forget_order order;
	struct strangers strangers;
	struct news news;
	struct foreign foreign;
	struct sync sync;
	struct join join;
	struct remembered remembered;
	struct search search;
	struct flood flood;
	struct transfers *transfers;
	struct history history;

	// A frame is built here; nothing keeps a pointer into it while it sends or calls out.
	uint8_t *scratch; // RAS_FRAME_MAX bytes
};

static inline struct peer_entry *ras_entry(const struct ras *ras, uint32_t slot) {
	return peers_entry(&ras->peers, slot);
}

static inline struct peer_entry *ras_self(const struct ras *ras) {
	return ras_entry(ras, ras->self_slot);
}

// splitmix64 of the instance's seed: jitter only.
uint64_t ras_random(struct ras *ras);
// `base` less up to a quarter of it.
uint64_t ras_jitter(struct ras *ras, uint64_t base_ns);

// Every input opens with this: it takes the time over and notices a pause of our own.
void ras_enter(struct ras *ras, uint64_t now_ns);
// And closes with this: asks for the next wake-up if it changed.
void ras_exit(struct ras *ras);
// A part needs the clock no later than this, in observed time.
void ras_wake_at(struct ras *ras, uint64_t at_ns);

void ras_emit(
	struct ras *ras,
	enum ras_event_kind kind,
	uint32_t slot,
	enum ras_cause cause,
	uint64_t value
);
// Another holder of the peer's name, at an address that may be unknown: NULL.
void ras_conflict(struct ras *ras, uint32_t slot, uint64_t value, const struct sock_addr *other);
// As ras_emit(), of whoever lives at that address.
void ras_emit_at(
	struct ras *ras,
	enum ras_event_kind kind,
	const struct sock_addr *address,
	enum ras_cause cause,
	uint64_t value
);
// Another one answers where a peer should.
void ras_address_of_another(struct ras *ras, const struct ras_stranger *stranger);
// Ours is another one now.
void ras_own_address(struct ras *ras);
// As ras_emit(), of one who may have no slot; NULL if it did not say who it is.
void ras_emit_of(
	struct ras *ras,
	enum ras_event_kind kind,
	const struct ras_record *record,
	enum ras_cause cause,
	uint64_t value
);

// Merges news and does all that follows from them: links, legs, events, forwarding. `from` is
// the link they came by, NULL if they are our own. False: the record is missing.
bool membership_apply(struct ras *ras, const struct peer_news *news, struct link *from);

// The same of what others tell: a death may weigh too little here, or be contested.
bool membership_apply_told(struct ras *ras, const struct peer_news *news, struct link *from);

// An earlier run of ours, that we know nothing of, had this start or one below it: takes the next
// one and tells. False if there is nothing to do, for ours is higher already, or if the last such
// step is less than 10 s ago: who speaks of it comes again.
bool ras_earlier_run(struct ras *ras, uint64_t start);

// We are a member from now on, in this start if it is higher than ours.
void ras_become_member(struct ras *ras, uint64_t start);

// Our record with this address, as a new start. -ENOMEM, -EINVAL (no address), -ENOSPC (no start
// is left), and it stays.
int ras_self_renew(struct ras *ras, const struct sock_addr *address);

// Removes tombstones that have been kept long enough.
void expire_tick(struct ras *ras);

// We are suspected, or held for dead, in this incarnation or an older one: takes a higher one
// and tells. Nothing to do if ours is higher already.
void ras_refute(struct ras *ras, uint64_t incarnation);
// The same for those who hold us for dead or gone. It is an event, once for each incarnation of
// this start, also if we refuted it before we heard of it: a suspect is told, too.
void ras_declared_dead(struct ras *ras, uint64_t incarnation, enum ras_cause cause);

// Removes the tombstone if it is not of a newer incarnation; true if there was one.
bool ras_forget_apply(struct ras *ras, uint64_t id, uint64_t incarnation);
// Another one's order to forget whom we hold unreachable: done and told within the next seconds, at
// a random time, but for those whom others told by then. Else each of thousands of members would
// tell at once of the same ones.
void ras_forget_ordered(struct ras *ras);
void forget_tick(struct ras *ras);
