// SPDX-License-Identifier: BSD-3-Clause
// Broadcasts, and how a node knows what it has seen.
//
// Every broadcast and collective is named by (origin, id). An origin's ids grow, over restarts
// too: the start counter is their upper half. Floods by different ways overtake each other, so
// "seen" is not "below the highest" but a window of the last 64 ids per origin, as a receiver
// of sequenced packets keeps it; anything older than the window is a replay.
#pragma once

#include <ras/types.h>

struct link;
struct memory;
struct census_result;
struct ras;

#define FLOOD_WINDOW 64
#define FLOOD_ORIGINS_MAX 1024 // then the one unheard of for longest makes room

enum flood_notice_kind {
	FLOOD_NOTICE_FORGET = 1,	 // u64 id, u64 incarnation: remove its tombstone
	FLOOD_NOTICE_CENSUS,		 // u32 reached, u32 members of the view: liveness_brake.c
	FLOOD_NOTICE_FORGET_UNREACHABLE, // nothing: FORGETs follow, of whom each holds so
};

struct flood_origin {
	uint64_t origin;
	uint64_t highest;
	uint64_t window; // bit n: highest - n was seen
	uint64_t used;	 // by the clock of `flood`
};

struct flood {
	struct flood_origin *origins; // sorted by origin
	uint32_t count, capacity;
	uint64_t clock;	    // counts look-ups
	uint64_t last_id;   // of our own
	uint64_t delivered; // that ops.notice was told last
};

void flood_fini(struct flood *flood, struct memory *memory);

// A new id of our own, marked as seen by its being ours.
uint64_t flood_next_id(struct ras *ras);
// True the first time. Without memory a broadcast counts as seen: it stops here rather than
// going round for ever.
bool flood_first(struct ras *ras, uint64_t origin, uint64_t id);
// False if the id claims a start of the origin that nobody can know of yet.
bool flood_plausible(const struct ras *ras, uint64_t origin, uint64_t id);

// A NOTICE frame, the type byte included. 0 or the decoder's error, as in collective.h.
int flood_notice(struct ras *ras, struct link *link, const void *frame, size_t size);
// Tells everybody to remove the tombstone; ours is the caller's to remove.
void flood_forget(struct ras *ras, uint64_t id, uint64_t incarnation);
// Tells everybody to forget whom they hold unreachable, and to tell that unless others did.
void flood_forget_unreachable(struct ras *ras);
// Tells everybody else what a census found.
void flood_census(struct ras *ras, const struct census_result *result);
