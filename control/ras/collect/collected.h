// SPDX-License-Identifier: BSD-3-Clause
// What a root has gathered: who answered, with what, and who did not.
//
// Each member of the view is counted by its slot at the start; a node that is not in that view
// is a stranger, and so is another one that came to use the slot. The parts of a node come over
// one path in order, so that a part that is not the next one was sent twice.
#pragma once

#include "collect/collect_message.h"

#include <ras/collective.h>

struct ras;

struct collected_answer {
	uint64_t id; // 0: the slot was free
	uint64_t incarnation;
	uint16_t parts; // so far
	bool member;	// at the start
	bool complete;
	bool lost; // a leg to it was given up
	uint8_t why;
};

struct collected_chunk {
	struct collected_chunk *next;
	size_t used, capacity;
	uint8_t bytes[];
};

struct ras_collected {
	struct collected_answer *answers; // by slot
	struct ras_missing_peer *missing; // as many
	uint32_t slot_count;
	struct collected_chunk *first, *last;
	size_t kept_bytes;
	struct ras_collective_result result;
};

// Takes the view of now. NULL without memory.
struct ras_collected *collected_create(struct ras *ras, uint32_t kind, uint64_t id);
void collected_destroy(struct ras *ras, struct ras_collected *collected);

void collected_add(
	struct ras *ras, struct ras_collected *collected, const struct collect_answer *answer
);
void collected_lost(
	struct ras *ras, struct ras_collected *collected, uint64_t peer, enum collect_why why
);
// Names who is missing; the result then is complete but for how it ended.
struct ras_collective_result *collected_finish(struct ras *ras, struct ras_collected *collected);
