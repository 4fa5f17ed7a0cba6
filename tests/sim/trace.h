// SPDX-License-Identifier: BSD-3-Clause
// What happened, folded into one number and kept for a while.
//
// Two runs that did the same have the same digest. The last entries stay in a ring, so that a
// broken invariant is shown with what led to it; on request all go to a file as text.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define TRACE_NAME_BYTES 16

// Kinds below TRACE_OWN are the network's and the scheduler's events.
enum trace_kind {
	TRACE_OWN = 64,
	TRACE_TICK = TRACE_OWN,
	TRACE_SEND,
	TRACE_OPEN,
	TRACE_CLOSE,
	TRACE_LOST,	 // nobody took it
	TRACE_RAS_EVENT, // value: its kind, and its cause
	TRACE_FAULT,	 // value: its kind
	TRACE_KIND_COUNT,
};

struct trace_entry {
	uint64_t at_ns;
	uint32_t node;
	uint32_t other; // node, or the network's nobody
	uint32_t value; // by kind; of a frame its size
	uint8_t kind;
	uint8_t type; // first byte of a frame
	uint16_t detail;
};

struct trace {
	uint64_t digest;
	uint64_t count;
	struct trace_entry *ring;
	uint32_t ring_mask;
	bool verbose; // the file wants every entry
	FILE *file;
};

// `file` may be NULL; it stays the caller's. -ENOMEM.
int trace_init(struct trace *trace, FILE *file);
void trace_fini(struct trace *trace);
void trace_write(FILE *to, const struct trace_entry *entry);

// n00001 …
void trace_node_name(uint32_t node, char name[TRACE_NAME_BYTES]);

// The last `lines_max` entries about any of the nodes, oldest first.
void trace_excerpt(
	const struct trace *trace,
	const uint32_t *nodes,
	uint32_t node_count,
	uint32_t lines_max,
	FILE *to
);

static inline void trace_add(struct trace *trace, const struct trace_entry *entry) {
	uint64_t word = (uint64_t)entry->node << 32 ^ (uint64_t)entry->kind << 24 ^ entry->value;

	trace->digest = (trace->digest ^ entry->at_ns) * UINT64_C(0x9e3779b97f4a7c15);
	trace->digest = (trace->digest << 23 | trace->digest >> 41) ^
			(word + ((uint64_t)entry->type << 56 | (uint64_t)entry->other << 16)) *
				UINT64_C(0xc2b2ae3d27d4eb4f);
	trace->ring[trace->count++ & trace->ring_mask] = *entry;
	if (trace->verbose)
		trace_write(trace->file, entry);
}
