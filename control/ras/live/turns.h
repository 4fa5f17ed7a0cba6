// SPDX-License-Identifier: BSD-3-Clause
// Turns: peers that were held for dead and came back in the same start.
//
// Who declared such a death, or bore witness to it, takes no part in another one of that start by
// the same cause for the profile's again_ns: what it sees was wrong a moment ago, and others may
// look. That a process ended is another matter than that it was silent for a while. One that turns
// more than three times in ten minutes flaps: that is one state, and told once a minute; what
// happens to it meanwhile is followed by whoever keeps a table, and shown to nobody.
#pragma once

#include <ras/types.h>

#include <stdbool.h>
#include <stdint.h>

struct peer_entry;
struct ras;
struct ras_event;

#define TURNS_PEERS_MAX 64 // what came back longest ago makes room, see `crowded`
#define TURNS_MAX 3	   // in TURNS_SPAN_NS; more are one state
#define TURNS_KEPT 16	   // of one peer

struct turn_death {
	uint64_t refuted_ns; // 0: there was none
	uint8_t observer_count;
	uint64_t observers[RAS_OBSERVERS_MAX];
	bool ours; // we declared it, and others may be named
};

struct turn {
	uint64_t id;
	uint64_t at_ns[TURNS_KEPT]; // the latest ones, in the order of time
	uint32_t count;
	bool flaps;
	uint64_t told_ns;		// that it flaps
	struct turn_death silent, gone; // the latest of either
};

// More came back than are kept, as when a large gap ends. Of one that made room it is known no more
// who declared it: until these times we take no part in any death of one that ever came back.
struct turns_crowded {
	uint64_t silent_until_ns, gone_until_ns; // 0: never
};

struct turns {
	struct turn *list;
	uint32_t count, capacity;
	struct turns_crowded crowded;
};

void turns_fini(struct ras *ras);
void turns_tick(struct ras *ras);

// One held for dead is back in the same start; `dead` is its entry as it was before, but for the
// record. Without memory nothing is kept, and the next death is as the first.
void turns_back(struct ras *ras, uint32_t slot, const struct peer_entry *dead);
// It is another start, or gone from the table.
void turns_forget(struct ras *ras, uint32_t slot);
// The observer takes no part in a death of the peer by that cause before this time; 0 if it may.
uint64_t
turns_barred_until(const struct ras *ras, uint32_t slot, enum ras_cause cause, uint64_t observer);
// The event is one of too many of its peer.
bool turns_are_quiet(const struct ras *ras, const struct ras_event *event);
