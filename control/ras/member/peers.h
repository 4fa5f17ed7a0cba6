// SPDX-License-Identifier: BSD-3-Clause
// The peer table: who is known, in which incarnation and state, and in which ring order.
//
// A slot is a peer's place for life. The merge of two tables is a join in a lattice, so it does
// not matter in which order, how often or on which way news arrive: all tables that have seen the
// same news are equal. News of one peer are ordered by
//
//	incarnation, alive < dead < left, and of two deaths the weight: how many witnesses saw it,
//	how many of how many their part reached, cause, who they were (a process that its own
//	machine says has exited weighs as two witnesses);
//
// beside that, of one start, by the digest of the record, and by the number of the maintenance
// switch. Each of the three is a total order and is merged by itself.
//
// The digest covers alive peers only, and of an incarnation only the start: (id, start, record
// digest, maintenance). Dead and left ones are kept for different times by different agents,
// and refutations stay in the neighbourhood; a peer that is dead here and alive there still
// makes the digests differ, which is what a comparison is for.
#pragma once

#include "base/memory.h"

#include <ras/record.h>
#include <ras/types.h>

#include <assert.h>

#define PEERS_RANGES 64 // of the digest, by the top bits of the id

// What one agent tells another about a third.
struct peer_news {
	uint64_t id;
	uint64_t incarnation;
	struct ras_record *record; // NULL if the receiver has it; else borrowed
	uint32_t maint;		   // version of the maintenance switch, odd is on
	uint8_t state;		   // alive, dead or left
	uint8_t cause;
	uint8_t hops;
	// Of a death: how many saw it and declared it together, and who.
	uint8_t observer_count;
	uint64_t observers[RAS_OBSERVERS_MAX];
	uint32_t reached, of; // members that their part reached, of so many; 0 if nobody counted
};

struct peer_entry {
	struct ras_record *record; // NULL: the slot is free
	uint64_t incarnation;
	uint64_t since_ns;		       // in this state
	uint64_t observers[RAS_OBSERVERS_MAX]; // of a death, as in struct peer_news
	uint32_t reached, of;
	uint32_t maint;
	uint8_t state; // enum ras_state
	uint8_t cause;
	uint8_t flags; // PEER_*
	uint8_t hops;
	uint32_t pending; // its item among the news to be told, + 1; 0 for none
	// It was no member in this start before, with so many refutations (16 bits), + 1; 0 for
	// never. It may have refuted that before it heard of it, and nobody else would tell it.
	uint32_t revived : 24;
	uint32_t weight : 8; // observers of a death
};

// Most of the memory of an instance, and one line of the cache.
static_assert(sizeof(struct peer_entry) == 64, "an entry grew");

// So much a process that exited weighs: as two that saw it gone.
#define PEERS_WEIGHT_EXITED 2

static inline uint8_t peers_weight_of(uint8_t cause, uint8_t observer_count) {
	return cause == RAS_CAUSE_EXITED && observer_count > 0 ? PEERS_WEIGHT_EXITED
							       : observer_count;
}

#define PEER_SEEN 0x01		// spoke to us at least once in this start
#define PEER_LISTED 0x02	// by the peer with whom tables are being compared
#define PEER_TAKEN_BACK 0x04	// it was held for dead: it has no vote yet
#define PEER_DECLARED 0x08	// dead by what we saw, too: others may be named with its death
#define PEER_LATE 0x10		// joined beside a gap: no vote if reached and not all met, else one
#define PEER_OPPOSES 0x20	// has no vote yet, but is an opponent if it is missed
#define PEER_HOLDS_US_LATE 0x40 // told us so, and nothing else since
#define PEER_VOTELESS (PEER_TAKEN_BACK | PEER_LATE)

struct ring_place {
	uint64_t order; // copied from the record: most comparisons end here, without a miss
	uint32_t slot;
};

// The upper half of the id stands beside the slot: a look-up that meets a stranger on its way
// does not have to go to that one's record.
struct index_place {
	uint32_t tag;
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
	struct ring_place *ring; // members in ring order; alive, suspect and unreachable ones
	uint32_t ring_count, ring_capacity;
	struct ring_place *fresh; // members not yet sorted in: one sort serves a whole table
	uint32_t fresh_count, fresh_capacity;
	uint64_t view_number;
	uint64_t ring_number; // grows whenever a position may have changed
	uint32_t state_counts[RAS_LEFT + 1];
	uint64_t ranges[PEERS_RANGES]; // sums of contributions
};

// What a merge did.
enum peers_change {
	PEERS_SAME,	// known, or older than what we hold
	PEERS_NEEDED,	// newer, but the record is missing: ask for it
	PEERS_CONFLICT, // another name with this id
	PEERS_JOINED,	// new, or a newer start
	PEERS_REJOINED, // was dead or left, is alive in the same start
	PEERS_REFUTED,	// alive with a higher incarnation
	PEERS_DEAD,
	PEERS_HEAVIER, // dead as before, and more saw it
	PEERS_LEFT,
	PEERS_MAINT,
	PEERS_RECORD, // the same incarnation with other facts
};

void peers_init(struct peers *peers, struct memory *memory, struct ras_interner *interner);
void peers_fini(struct peers *peers);

// Makes `to` a table of its own, equal to one that changes no more. -ENOMEM, and there is none.
int peers_copy(struct peers *to, const struct peers *from, struct memory *memory);

// Makes room for so many in all, at once. -ENOMEM.
int peers_reserve(struct peers *peers, uint32_t count);

// RAS_NO_SLOT if the id is not known.
uint32_t peers_find(const struct peers *peers, uint64_t id);

// Merges one piece of news; *ret_slot is the peer's, RAS_NO_SLOT if it is not known after all.
// -ENOMEM, -ENOSPC (RAS_PEERS_MAX), -EBADMSG (the record is another peer's or start's).
int peers_merge(
	struct peers *peers,
	const struct peer_news *news,
	uint64_t now_ns,
	enum peers_change *ret_change,
	uint32_t *ret_slot
);

// -EBADMSG if the record that the news bring is another peer's or another start's.
int peers_check(const struct peer_news *news);
// True if another peer of the same id is known.
bool peers_conflict(const struct peers *peers, uint32_t slot, const struct peer_news *news);

// A member ends as one who left: here only, before it is removed.
void peers_set_left(struct peers *peers, uint32_t slot, uint64_t now_ns);

// This observer's own view of a live peer: alive, suspect or unreachable.
void peers_set_local(
	struct peers *peers,
	uint32_t slot,
	enum ras_state state,
	enum ras_cause cause,
	uint64_t now_ns
);
// Removes a dead or left one; its slot may be used again.
void peers_remove(struct peers *peers, uint32_t slot);

// Those of its observers whom we know; returns how many.
uint8_t peers_observers(
	const struct peers *peers, uint32_t slot, uint64_t ret_ids[static RAS_OBSERVERS_MAX]
);

// What we would tell another agent of this peer.
void peers_news(const struct peers *peers, uint32_t slot, struct peer_news *ret_news);

static inline uint64_t peers_digest(const struct peers *peers) {
	return peers->digest;
}

static inline uint32_t peers_tombstones(const struct peers *peers) {
	return peers->state_counts[RAS_DEAD] + peers->state_counts[RAS_LEFT];
}

static inline uint32_t peers_range(uint64_t id) {
	return (uint32_t)(id >> 58);
}

static inline bool peer_is_member(const struct peer_entry *entry) {
	return entry->state >= RAS_ALIVE && entry->state <= RAS_UNREACHABLE;
}

// What the peer itself is told of how we hold it, or did last when it was no member.
static inline enum ras_state peer_held(const struct peer_entry *entry, uint64_t *ret_incarnation) {
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

// The ring. Members are numbered 0 … count-1 in ring order. Sorts in what is fresh; the
// positions hold until the next merge.
uint32_t peers_ring_count(struct peers *peers);
// Where the member is, or would be if it is none now.
uint32_t peers_ring_position(struct peers *peers, const struct ras_record *record);
static inline uint32_t peers_ring_at(const struct peers *peers, uint32_t position) {
	return peers->ring[position].slot;
}
// Steps from one position to another, the shorter way round.
static inline uint32_t ring_distance(uint32_t from, uint32_t to, uint32_t count) {
	uint32_t ahead = to >= from ? to - from : to + count - from;

	return ahead <= count - ahead ? ahead : count - ahead;
}
