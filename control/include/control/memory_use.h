// SPDX-License-Identifier: BSD-3-Clause
// What this process's memory consists of, as far as the agent itself knows: malloc()'s, and of it
// the tables that grow and shrink. Device memory, stacks and code are the kernel's to tell.
#pragma once

#include <stdint.h>

struct counter_sources;

struct memory_use {
	uint64_t heap_used_bytes; // handed out by malloc(), touched or not
	uint64_t heap_free_bytes; // malloc()'s, but not handed out
	// Parts of what is used.
	uint64_t core_bytes;	// the protocol core, records of peers apart
	uint64_t history_bytes; // of these, events; the ring is touched as it fills, 4,096 at most
	uint64_t buffer_bytes;	// of connections of the overlay, as many as are open
	uint64_t verdict_bytes; // evidence and verdicts, by nodes and their neighbours
	uint64_t earlier_bytes; // events of earlier runs; constant
};

// The control thread, once a second. It walks what malloc() has free: 40 to 75 us in a small ring.
void memory_use_read(const struct counter_sources *sources, struct memory_use *ret_use);
