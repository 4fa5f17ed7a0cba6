// SPDX-License-Identifier: BSD-3-Clause
// Collected answers at the root of a collective, and the members that did not answer.
//
// Each member of the view is tracked by its slot at the start. Answers of other nodes are surplus,
// also of a node that took over a slot later. The parts of a node arrive over one path in order. So
// a part with an unexpected number was sent twice.
#pragma once

#include "collect/collect_message.h"

#include <ras/collective.h>

struct ras;

struct collected_answer {
	uint64_t id; // 0: no peer to wait for in this slot
	uint64_t incarnation;
	uint16_t parts; // parts received so far
	bool member;	// was a member at the start
	bool complete;
	bool lost;   // a leg to this node was given up
	uint8_t why; // enum collect_lost_reason of that leg
};

struct collected_chunk {
	struct collected_chunk *next;
	size_t used, capacity;
	uint8_t bytes[];
};

struct ras_collected {
	struct collected_answer *answers; // by slot
	struct ras_missing_peer *missing; // slot_count places
	uint32_t slot_count;
	struct collected_chunk *first, *last;
	size_t kept_bytes;
	struct ras_collective_result result;
};

// Create a collection for the members of the current view. Returns NULL without memory.
struct ras_collected *collected_create(struct ras *ras, uint32_t kind, uint64_t id);
void collected_destroy(struct ras *ras, struct ras_collected *collected);

void collected_add_answer(
	struct ras *ras, struct ras_collected *collected, const struct collect_answer *answer
);
void collected_add_lost(
	struct ras *ras,
	struct ras_collected *collected,
	uint64_t peer,
	enum collect_lost_reason why
);
// List the missing members. The caller fills by_deadline and elapsed_ns of the result.
struct ras_collective_result *collected_finish(struct ras *ras, struct ras_collected *collected);
