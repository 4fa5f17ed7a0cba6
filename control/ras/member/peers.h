// SPDX-License-Identifier: BSD-3-Clause
// The peer table: all known peers with their incarnation, their state and their ring order.
//
// A peer keeps its slot until it is removed. An update is one piece of news about one peer. The
// merge of two tables is a join in a lattice: the order of the updates, their number and their way
// do not matter. All tables that received the same updates are equal. An update has three parts,
// each with a total order and each merged by itself:
//
//	1. The life of the peer: incarnation, then alive < dead < left. Two deaths of one
//	   incarnation are ordered by weight: number of witnesses, members that their
//	   partition side reached, size of their view, cause, ids of the witnesses. A process
//	   exit that the host of the process saw counts as two witnesses.
//	2. The record of one start, by its digest.
//	3. The maintenance switch, by its version number.
//
// A member is a peer that is alive, suspect or unreachable. A tombstone is the entry of a dead or
// left peer. The digest of the table covers members only, as (id, start, record digest,
// maintenance). Tombstones are left out, because agents keep them for different times. Refutations
// are left out, because only the neighbours of a peer learn of them. A peer that is dead in one
// table and alive in another still makes the two digests differ.
#pragma once

#include "base/memory.h"

#include <ras/record.h>
#include <ras/types.h>

#include <assert.h>

#define PEERS_RANGES 64 // partial sums of the digest, selected by the top bits of the id

// An update: what one agent reports to another agent about a third one.
struct peer_news {
	uint64_t id;
	uint64_t incarnation;
	struct ras_record *record; // borrowed; NULL if the receiver has the record
	uint32_t maint;		   // version of the maintenance switch, odd is on
	uint8_t state;		   // alive, dead or left
	uint8_t cause;		   // enum ras_cause of a death
	uint8_t hops;		   // links that the update has crossed, at most 255
	bool at_own_address;	   // the agent at the peer's known address sent this record
	// The observers that declared a death together.
	uint8_t observer_count;
	uint64_t observers[RAS_OBSERVERS_MAX];
	uint32_t reached, of; // census of the observers: reached members, all members; 0 for none
	const uint8_t *signature; // of a departure (departure.h); borrowed, NULL: none
};

struct peer_entry {
	struct ras_record *record; // NULL: the slot is free
	uint64_t incarnation;
	uint64_t since_ns; // observed time at which the peer entered its state
	union {
		uint64_t observers[RAS_OBSERVERS_MAX]; // of a death, with the next two fields
		uint8_t *signature;		       // of a departure; owned, NULL: none
	};
	uint32_t reached, of;
	uint32_t maint;
	uint8_t state; // enum ras_state
	uint8_t cause;
	uint8_t flags; // PEER_*
	uint8_t hops;
	uint32_t pending; // index of the queued item in struct news, + 1; 0 for none
	// Refutation number (16 bits) of the latest death or leaving since the peer's agent
	// started, + 1; 0 if there was none. The peer may have refuted its death by
	// chance, without having heard of it. Its links report this number to the peer, since no
	// other agent would.
	uint32_t revived : 24;
	uint32_t weight : 8; // observers of a death
};

// Entries take most of the memory of an instance. Each fills one cache line.
static_assert(sizeof(struct peer_entry) == 64, "an entry grew");

// Weight of a process exit that was seen on the host itself: as much as two witnesses.
#define PEERS_WEIGHT_EXITED 2

// Return true if both agents run on one host in the same known boot. Machines that share a name
// differ in the boot.
static inline bool
ras_records_share_machine(const struct ras_record *one, const struct ras_record *other) {
	return one->host_id == other->host_id && one->host_id != one->host_name_id;
}

static inline uint8_t peers_death_weight(uint8_t cause, uint8_t observer_count) {
	return cause == RAS_CAUSE_EXITED && observer_count > 0 ? PEERS_WEIGHT_EXITED
							       : observer_count;
}

// The vote flags are explained in docs/internals/membership.md, section "Votes".
#define PEER_SEEN 0x01		  // the peer spoke to us since its agent started
#define PEER_LISTED 0x02	  // listed by the agent with which tables are being compared
#define PEER_READMITTED 0x04	  // was declared dead and came back: has no vote yet
#define PEER_DEATH_SEEN 0x08	  // we saw this death, too, even if others are named with it
#define PEER_LATE_JOINER 0x10	  // may have joined beside a partition: has no vote yet
#define PEER_IS_OPPONENT 0x20	  // has no vote, but counts as an opponent if a census misses it
#define PEER_REPORTS_US_LATE 0x40 // the latest census of this peer named us as a late joiner
#define PEER_NEVER_MEMBER 0x80	  // a report of its end came first: this start was no member here
#define PEER_NO_VOTE (PEER_READMITTED | PEER_LATE_JOINER)

struct ring_place {
	uint64_t order; // copy of record->order, so that most comparisons need no cache miss
	uint32_t slot;
};

// One place of the hash index. The tag lets a look-up skip other peers without reading their
// records.
struct index_place {
	uint32_t tag;  // upper half of the id
	uint32_t slot; // + 1, 0 for empty
};

struct peers {
	uint64_t digest; // the sum of `ranges`
	struct memory *memory;
	struct ras_interner *interner;
	struct peer_entry *entries;
	uint32_t entry_count, entry_capacity;
	uint32_t free_slot;	   // head of the free list, linked through `maint`
	struct index_place *index; // open addressing by id
	uint32_t index_capacity;
	struct ring_place *ring; // members in ring order
	uint32_t ring_count, ring_capacity;
	struct ring_place *fresh; // members not yet sorted in: one sort serves a whole table
	uint32_t fresh_count, fresh_capacity;
	uint64_t view_number;		     // grows with each change of the table
	uint64_t ring_number;		     // grows whenever a ring position may have changed
	uint32_t state_counts[RAS_LEFT + 1]; // peers by enum ras_state
	uint64_t ranges[PEERS_RANGES];	     // partial sums of the digest
};

// Result of one merge.
enum peers_change {
	PEERS_SAME,	     // the update is known, or older than the entry
	PEERS_RECORD_NEEDED, // the update is newer, but its record is missing: pull the record
	PEERS_CONFLICT,	     // another name with the same id
	PEERS_JOINED,	     // new peer, or newer start of a known peer
	PEERS_REJOINED,	     // a dead or left peer is alive in the same start
	PEERS_REFUTED,	     // a member is alive with a higher incarnation
	PEERS_DEAD,
	PEERS_MORE_WITNESSES, // a dead peer is still dead, with more witnesses
	PEERS_LEFT,
	PEERS_MAINT,
	PEERS_MAINT_VERSION, // newer version of the switch, in the same position
	PEERS_RECORD,	     // same incarnation with another record
};

void peers_init(struct peers *peers, struct memory *memory, struct ras_interner *interner);
void peers_fini(struct peers *peers);

// Copy a table of members, all sorted in. Returns 0, or -ENOMEM with `to` empty.
int peers_copy(struct peers *to, const struct peers *from, struct memory *memory);

// Reserve memory for `count` peers in all. Returns 0 or -ENOMEM.
int peers_reserve(struct peers *peers, uint32_t count);

// Return the slot of the peer, or RAS_NO_SLOT if the id is unknown.
uint32_t peers_find(const struct peers *peers, uint64_t id);

// Merge one update. *ret_slot is the slot of the peer, or RAS_NO_SLOT if the table still does not
// know the peer. Returns 0, -ENOMEM, -ENOSPC (RAS_PEERS_MAX) or -EBADMSG (record of another peer
// or of another start).
int peers_merge(
	struct peers *peers,
	const struct peer_news *news,
	uint64_t now_ns,
	enum peers_change *ret_change,
	uint32_t *ret_slot
);

// Return -EBADMSG if the update carries the record of another peer or of another start, else 0.
int peers_news_check(const struct peer_news *news);
// Return true if the slot holds a peer of another name with the same id.
bool peers_has_name_conflict(
	const struct peers *peers, uint32_t slot, const struct peer_news *news
);

// Mark a member as left in this table only. The caller removes the entry next.
void peers_set_left(struct peers *peers, uint32_t slot, uint64_t now_ns);

// Set the own opinion of this agent about a member: alive, suspect or unreachable.
void peers_set_local(
	struct peers *peers,
	uint32_t slot,
	enum ras_state state,
	enum ras_cause cause,
	uint64_t now_ns
);
// Remove a tombstone. Its slot may be reused.
void peers_remove(struct peers *peers, uint32_t slot);

// Return the ids of those observers of a death that the table knows, and their number.
uint8_t peers_known_observers(
	const struct peers *peers, uint32_t slot, uint64_t ret_ids[static RAS_OBSERVERS_MAX]
);

// Fill an update about this peer for another agent.
void peers_news_fill(const struct peers *peers, uint32_t slot, struct peer_news *ret_news);

static inline uint64_t peers_digest(const struct peers *peers) {
	return peers->digest;
}

static inline uint32_t peers_member_count(const struct peers *peers) {
	return peers->state_counts[RAS_ALIVE] + peers->state_counts[RAS_SUSPECT] +
	       peers->state_counts[RAS_UNREACHABLE];
}

static inline uint32_t peers_tombstone_count(const struct peers *peers) {
	return peers->state_counts[RAS_DEAD] + peers->state_counts[RAS_LEFT];
}

static inline uint32_t peers_digest_range(uint64_t id) {
	return (uint32_t)(id >> 58);
}

static inline bool peer_is_member(const struct peer_entry *entry) {
	return entry->state >= RAS_ALIVE && entry->state <= RAS_UNREACHABLE;
}

// Return the state to report to the peer itself in a handshake, and the incarnation of that state.
// A member that died or left since its agent started, and came back, is reported as dead: see
// `revived`.
static inline enum ras_state
peer_state_to_report(const struct peer_entry *entry, uint64_t *ret_incarnation) {
	if (!peer_is_member(entry) || entry->revived == 0) {
		*ret_incarnation = entry->incarnation;
		return (enum ras_state)entry->state;
	}
	*ret_incarnation =
		ras_incarnation(ras_incarnation_start(entry->incarnation), entry->revived - 1);
	return RAS_DEAD;
}

static inline struct peer_entry *peers_entry(const struct peers *peers, uint32_t slot) {
	must_debug(slot < peers->entry_count);
	return &peers->entries[slot];
}

// The ring. Members have the positions 0 to count-1 in ring order.
//
// Sort the fresh members in and return the number of members. Positions are valid until the next
// merge.
uint32_t peers_ring_count(struct peers *peers);
// Return the ring position of a member, or the position that the peer would have as a member.
uint32_t peers_ring_position(struct peers *peers, const struct ras_record *record);
static inline uint32_t peers_ring_at(const struct peers *peers, uint32_t position) {
	return peers->ring[position].slot;
}
// Return the number of steps between two ring positions, the shorter way round.
static inline uint32_t ring_distance(uint32_t from, uint32_t to, uint32_t count) {
	uint32_t ahead = to >= from ? to - from : to + count - from;

	return ahead <= count - ahead ? ahead : count - ahead;
}
