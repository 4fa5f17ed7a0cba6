// SPDX-License-Identifier: BSD-3-Clause
// Flooding of updates: each change goes once over every good link, except the links it came by.
//
// An update is forwarded only if it changed our table. So the table itself prevents duplicates:
// the same (peer, incarnation, state) is never forwarded twice.
#pragma once

#include <ras/types.h>

struct link;
struct peer_news;
struct ras;
struct wire_reader;
struct wire_writer;

struct news_item {
	uint32_t slot;
	bool record;   // send the record, too: the receivers may not have it
	uint64_t told; // mask of link bits: links whose peer sent us this update
};

struct news {
	struct news_item *items;
	uint32_t count, capacity;
	uint64_t flush_ns;   // observed time of the next flush, RAS_NEVER if nothing is queued
	uint64_t flushed_ns; // observed time of the last flush
};

void news_fini(struct ras *ras);
// Queue an update about the peer in this slot for all good links except `from`.
void news_add(struct ras *ras, uint32_t slot, const struct link *from, bool record);
void news_tick(struct ras *ras);
// Schedule a flush: at once if the last one was long enough ago, else as one batch later.
void news_schedule_flush(struct ras *ras);
// Send an update about ourselves on every ready link at once, ahead of the batch.
void news_send_self(struct ras *ras);
void news_send_self_to(struct ras *ras, struct link *link);

// Begin an UPDATE in the scratch buffer.
void news_frame_begin(struct ras *ras, struct wire_writer *writer);
// Process a received UPDATE. `link` is NULL for the table of a seed. `source` is that of the
// connection (hearsay.h), or 0 if new names need no proof. Returns 0, or a negative error if the
// message is malformed; the items before the fault have been applied.
int news_update_received(
	struct ras *ras, struct link *link, uint64_t source, struct wire_reader *reader
);
