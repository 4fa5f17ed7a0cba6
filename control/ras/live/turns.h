// SPDX-License-Identifier: BSD-3-Clause
// Turns: peers that were held for dead and came back in the same start. One such return is a turn.
//
// An observer that declared or witnessed such a death was wrong recently. For again_ns it takes
// part in no further death of that start and cause, and others may look. The end of a process and a
// silence are separate causes. A peer with more than three turns in ten minutes flaps: one state,
// reported once a minute. The events of a flapping peer are quiet: callers that keep tables receive
// them, but they are not shown.
#pragma once

#include <ras/types.h>

#include <stdbool.h>
#include <stdint.h>

struct peer_entry;
struct ras;
struct ras_event;

#define TURNS_PEERS_MAX 64 // the peer whose latest turn is oldest makes room, see `crowded`
#define TURNS_MAX 3	   // within TURNS_SPAN_NS; more are the state FLAPPING
#define TURNS_KEPT 16	   // times kept for one peer

struct turn_death {
	uint64_t refuted_ns; // 0: there was no death
	uint8_t observer_count;
	uint64_t observers[RAS_OBSERVERS_MAX];
	bool ours; // declared by this agent, even if others are named
};

struct turn {
	uint64_t id;
	uint64_t at_ns[TURNS_KEPT]; // latest turns, ascending
	uint32_t count;
	bool flaps;
	uint64_t told_ns;		// when FLAPPING was emitted last
	struct turn_death silent, gone; // latest death by silence, and by the end of the process
};

// Limits after more peers came back than are kept, for example when a large partition ends. The
// observers of a discarded death are unknown. Until these times this agent takes no part in the
// death of any peer that ever came back.
struct turns_crowded {
	uint64_t silent_until_ns, gone_until_ns; // 0: no limit
};

struct turns {
	struct turn *list;
	uint32_t count, capacity;
	struct turns_crowded crowded;
};

void turns_fini(struct ras *ras);
void turns_tick(struct ras *ras);

// Note that a peer held for dead is back in the same start. `dead` is its former entry, except for
// the record. Without memory nothing is kept, and the next death is treated as the first.
void turns_note_return(struct ras *ras, uint32_t slot, const struct peer_entry *dead);
// Forget a peer that is another start, or gone from the table.
void turns_forget_peer(struct ras *ras, uint32_t slot);
// Return the time until which an observer takes no part in a death of the peer by this cause; 0 if
// it may.
uint64_t
turns_barred_until(const struct ras *ras, uint32_t slot, enum ras_cause cause, uint64_t observer);
// Return true if the event is part of the turns of a flapping peer.
bool turns_event_is_quiet(const struct ras *ras, const struct ras_event *event);
