// SPDX-License-Identifier: BSD-3-Clause
// Memory use of this process, as far as the agent can measure it: the heap, and the tables that
// grow and shrink. Device memory, stacks and code are visible to the kernel only.
#pragma once

#include <stdint.h>

struct counter_sources;

struct memory_use {
	uint64_t heap_used_bytes; // allocated with malloc(), touched or not
	uint64_t heap_free_bytes; // held by malloc() and not allocated
	// Parts of heap_used_bytes.
	uint64_t core_bytes; // the protocol core, without its peer records
	// the part of core_bytes for events: a ring of at most 4,096, touched as it fills
	uint64_t history_bytes;
	uint64_t buffer_bytes;	// buffers of the open overlay connections
	uint64_t verdict_bytes; // evidence and verdicts; grows with nodes and neighbours
	uint64_t earlier_bytes; // events of earlier runs; constant
};

// Measure the memory use. Called by the control thread once a second. The call walks the free
// blocks of malloc(), which takes 40 to 75 us in a small ring.
void memory_use_read(const struct counter_sources *sources, struct memory_use *ret_use);
