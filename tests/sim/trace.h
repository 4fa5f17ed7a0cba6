// SPDX-License-Identifier: BSD-3-Clause
// Trace of a run: a digest of all entries, and the last entries in a ring.
//
// Two equal runs have equal digests. The ring shows the history of a broken invariant. On request
// all entries are written to a file as text.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define TRACE_NAME_BYTES 16

// Kinds below TRACE_OWN are events of the network and the scheduler.
enum trace_kind {
	TRACE_OWN = 64,
	TRACE_TICK = TRACE_OWN,
	TRACE_SEND,
	TRACE_OPEN,
	TRACE_CLOSE,
	TRACE_LOST,	 // no process received it
	TRACE_RAS_EVENT, // value: kind and cause
	TRACE_FAULT,	 // value: kind
	TRACE_KIND_COUNT,
};

struct trace_entry {
	uint64_t at_ns;
	uint32_t node;
	uint32_t other; // node, or NET_NOBODY
	uint32_t value; // meaning depends on the kind; size of a frame
	uint8_t kind;
	uint8_t type; // first byte of a frame
	uint16_t detail;
};

struct trace {
	uint64_t digest;
	uint64_t count;
	struct trace_entry *ring;
	uint32_t ring_mask;
	bool verbose; // write every entry to the file
	FILE *file;
};

// `file` may be NULL and stays with the caller. Returns 0 or -ENOMEM.
int trace_init(struct trace *trace, FILE *file);
void trace_fini(struct trace *trace);
void trace_write(FILE *to, const struct trace_entry *entry);

// Write the node's name: n00001, …
void trace_node_name(uint32_t node, char name[TRACE_NAME_BYTES]);

// Print the last `lines_max` entries about any of the nodes, oldest first.
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
