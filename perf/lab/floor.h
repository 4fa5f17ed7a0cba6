// SPDX-License-Identifier: BSD-3-Clause
// Floors of this machine: what no operation over any wire can be faster than, measured without any
// device. Yardsticks beside results.
//
// A sample is the time of a batch, so that reading the clock, which bounds it, weighs little.
#pragma once

#include "why.h"

#include <lib/clock.h>

#include <record.h>
#include <stdbool.h>
#include <stdint.h>

enum floor_kind {
	FLOOR_CLOCK,	   // one reading of the worker's clock
	FLOOR_SYSTEM_CALL, // one that does nothing
	FLOOR_CACHE_LINE,  // from one processor to another, by a store that the other waits for
	FLOOR_WAKE_UP,	   // of a thread that sleeps, by a thread on another processor
	FLOOR_UDP,	   // a round trip between two spinning threads over loopback
	FLOOR_MEMIF,	   // likewise over two memif ports of DPDK, which is started for it
	FLOOR_KIND_COUNT,
};

// "cache_line"; "a cache line from one processor to another".
const char *floor_key(enum floor_kind kind);
const char *floor_words(enum floor_kind kind);
// How often it happens in a sample.
uint32_t floor_batch(enum floor_kind kind);

struct floor_config {
	uint32_t samples;  // at most
	uint64_t limit_ns; // and as long as that, about
};

// -EOPNOTSUPP with the reason: not on this machine; or what the system said. Threads of its own are
// pinned to two processors that this process may use.
int floor_measure(
	enum floor_kind kind,
	const struct floor_config *config,
	struct run_record *record,
	struct lab_why *why
);
