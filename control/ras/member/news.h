// SPDX-License-Identifier: BSD-3-Clause
// Spreading what changed: each change goes once over every good link but those it came by.
//
// A change is forwarded because it changed our table, so the table itself is the memory of what
// was seen: by (subject, incarnation, state) nothing is forwarded twice.
#pragma once

#include <ras/types.h>

struct link;
struct peer_news;
struct ras;
struct wire_reader;

struct news_item {
	uint32_t slot;
	bool record;   // the receivers may not have it
	uint64_t told; // links whose peer knows: it told us, by their bits
};

struct news {
	struct news_item *items;
	uint32_t count, capacity;
	uint64_t flush_ns;   // RAS_NEVER if nothing waits; observed time
	uint64_t flushed_ns; // last time
};

void news_fini(struct ras *ras);
void news_add(struct ras *ras, uint32_t slot, const struct link *from, bool record);
void news_tick(struct ras *ras);
// Something waits to be told: at once after a quiet time, else with what is gathered.
void news_due(struct ras *ras);
// Tells every ready link about ourselves, now and past the batch.
void news_of_self(struct ras *ras);
void news_of_self_to(struct ras *ras, struct link *link);

// Takes an UPDATE. `link` is NULL while we take the table of a seed. Negative if it is malformed;
// what came before the fault has been applied.
int news_take(struct ras *ras, struct link *link, struct wire_reader *reader);
