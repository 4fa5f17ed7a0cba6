// SPDX-License-Identifier: BSD-3-Clause
// One running collective at one node: its legs, and what it has not sent up yet.
//
// collective.c decides; here are the steps. A step that sends may be entered again by what the
// link does in turn, so nothing is freed but by gathers_settle(), and never while it is held.
#pragma once

#include "collect/collect_message.h"
#include "collect/collected.h"
#include "collect/collective.h"

struct link;
struct ras;

struct gather_leg {
	uint64_t peer;
	uint32_t slot;
	bool open; // asked and not yet answered, lost or expired
};

struct gather {
	struct gather *next;
	uint64_t origin;
	uint64_t id;
	uint32_t kind;
	uint32_t count;	 // CENSUS: members reached, we included
	uint32_t voters; // CENSUS: those of them that count for a majority
	uint8_t heard;	 // CENSUS: those asked about whom somebody hears, a bit each
	uint8_t subject_count;
	uint64_t subjects[COLLECT_SUBJECTS_MAX];
	uint32_t hops; // from the origin to here
	uint64_t started_ns;
	uint64_t started_observed_ns;
	uint64_t budget_ns;
	uint64_t deadline_ns;
	struct ras_collected *collected; // at the root, else NULL
	uint64_t parent;		 // id of who asked, unless we are the root
	uint32_t parent_slot;
	uint32_t holds; // not to be freed or finished now
	bool abandoned; // nobody waits for it: to be freed without an answer
	bool by_deadline;
	uint8_t *pending; // a COLLECTED frame in the making, header included
	uint32_t pending_used, pending_capacity;
	uint32_t leg_count, leg_max, open_count;
	struct gather_leg legs[];
};

struct collective {
	struct gather *running;
	struct ras_collect_counters counters;
};

// For a request of our own: `from` and `request->hops` are none. NULL without memory. The new
// one is in the list of running ones and held once.
struct gather *
gather_create(struct ras *ras, const struct collect_request *request, struct link *from);
void gather_destroy(struct ras *ras, struct gather *gather); // not in the list any more
struct gather *gather_find(const struct ras *ras, uint64_t origin, uint64_t id);

// Our own share, then the request to every good link but the one it came by.
void gather_serve(struct ras *ras, struct gather *gather, const struct collect_request *request);

// What goes up: one item of our own, or all items of a child's frame, which were checked.
void gather_answer(struct ras *ras, struct gather *gather, const struct collect_answer *answer);
void gather_items(struct ras *ras, struct gather *gather, struct wire_reader *items);

// Sends what is pending to whom asked; `flags` as in collect_message.h.
void gather_flush(struct ras *ras, struct gather *gather, uint8_t flags);

// The answer of a census is a sum, made on the way up; nobody is named.
static inline bool gather_is_census(const struct gather *gather) {
	return gather->kind == COLLECT_KIND_CENSUS;
}

// NULL if the peer was never asked.
struct gather_leg *gather_leg_of(struct gather *gather, uint64_t peer);
// Closes an open leg for the reason and says so upwards.
void gather_leg_lost(
	struct ras *ras, struct gather *gather, struct gather_leg *leg, enum collect_why why
);
// Tells the open legs that nobody waits any more, and closes them.
void gather_cancel_legs(struct ras *ras, struct gather *gather);

// The link to `slot`, if it is still the one to `peer` and carries messages; else NULL.
struct link *gather_link(const struct ras *ras, uint32_t slot, uint64_t peer);

// contribute.c: the communicators whose missing ranks somebody above has listed.
struct gather_skip {
	struct ras_comm_id *ids; // sorted
	uint32_t count, capacity;
};

int gather_skip_init(
	struct ras *ras, struct gather_skip *skip, const struct collect_request *request
); // -ENOMEM
void gather_skip_fini(struct ras *ras, struct gather_skip *skip);
// Adds our share, and to *skip what it has listed.
void gather_contribute(struct ras *ras, struct gather *gather, struct gather_skip *skip);
