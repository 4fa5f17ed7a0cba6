// SPDX-License-Identifier: BSD-3-Clause
// A gather: one running collective at one node, with its legs and its unsent answers.
//
// collective.c decides, gather.c has the steps. Sending on a link may fail and call collective.c
// again. So only gathers_finish_done() frees a gather, and never while `holds` is above 0.
#pragma once

#include "collect/collect_message.h"
#include "collect/collected.h"
#include "collect/collective.h"

struct link;
struct ras;

struct gather_leg {
	uint64_t peer;
	uint32_t slot;
	bool open; // asked, and not yet answered, lost or expired
};

struct gather {
	struct gather *next;
	uint64_t origin;
	uint64_t id;
	uint32_t kind;
	uint32_t count;	 // census: members reached, including ourselves
	uint32_t voters; // census: members with a vote among them
	uint8_t heard;	 // census: mask of the subjects that a reached member hears
	uint8_t subject_count;
	uint64_t subjects[COLLECT_SUBJECTS_MAX];
	uint32_t hops;		      // from the origin to here
	uint64_t started_ns;	      // caller's time
	uint64_t started_observed_ns; // the same in observed time
	uint64_t budget_ns;
	uint64_t deadline_ns;		 // caller's time
	struct ras_collected *collected; // at the root, else NULL
	uint64_t parent;		 // id of the node that asked, 0 at the root
	uint32_t parent_slot;
	uint32_t holds; // above 0: must be neither finished nor freed
	bool abandoned; // the parent does not wait any more: free without an answer
	bool by_deadline;
	uint8_t *pending; // COLLECTED frame under construction, including its header
	uint32_t pending_used, pending_capacity;
	uint32_t leg_count, leg_max, open_count;
	struct gather_leg legs[];
};

struct collective {
	struct gather *running;
	struct ras_collect_counters counters;
};

// Create a gather, put it in the list of running ones, and hold it once. At the root `from` is NULL
// and request->hops is 0. Returns NULL without memory.
struct gather *
gather_create(struct ras *ras, const struct collect_request *request, struct link *from);
// Free a gather that was removed from the list of running ones.
void gather_destroy(struct ras *ras, struct gather *gather);
struct gather *gather_find(const struct ras *ras, uint64_t origin, uint64_t id);

// Add our own share, then send the request over every good link except the parent's.
void gather_serve(struct ras *ras, struct gather *gather, const struct collect_request *request);

// Add one answer of our own, or all items of a child's frame. The items were checked before.
void gather_add_answer(struct ras *ras, struct gather *gather, const struct collect_answer *answer);
void gather_add_items(struct ras *ras, struct gather *gather, struct wire_reader *items);

// Send the pending frame to the parent; `flags` as in collect_message.h.
void gather_flush(struct ras *ras, struct gather *gather, uint8_t flags);

// A census is answered with sums, which are added on the way up. No member is named.
static inline bool gather_is_census(const struct gather *gather) {
	return gather->kind == COLLECT_KIND_CENSUS;
}

// Return the leg to this peer, or NULL if the peer was never asked.
struct gather_leg *gather_leg_find(struct gather *gather, uint64_t peer);
// Close an open leg and report the reason to the parent.
void gather_leg_give_up(
	struct ras *ras, struct gather *gather, struct gather_leg *leg, enum collect_lost_reason why
);
// Close all open legs and send a cancel message over each.
void gather_cancel_legs(struct ras *ras, struct gather *gather);

// Return the link of `slot` if it is ready and still belongs to `peer`, else NULL.
struct link *gather_ready_link(const struct ras *ras, uint32_t slot, uint64_t peer);

// Communicators whose missing ranks an ancestor in the tree has listed (contribute.c).
struct gather_skip {
	struct ras_comm_id *ids; // sorted
	uint32_t count, capacity;
};

int gather_skip_init(
	struct ras *ras, struct gather_skip *skip, const struct collect_request *request
); // -ENOMEM
void gather_skip_fini(struct ras *ras, struct gather_skip *skip);
// Add our own share. Communicators whose missing ranks it lists are added to *skip.
void gather_add_own_share(struct ras *ras, struct gather *gather, struct gather_skip *skip);
