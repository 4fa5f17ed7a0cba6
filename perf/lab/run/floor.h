// SPDX-License-Identifier: BSD-3-Clause
// Floors of this machine: lower bounds of any operation, measured without a device. Reports show
// them beside the results.
//
// A sample is the time of one batch, so that the cost of reading the clock is small.
#pragma once

#include "run/why.h"

#include <lib/clock.h>

#include <record.h>
#include <stdbool.h>
#include <stdint.h>

enum floor_kind {
	FLOOR_CLOCK,	   // one reading of the worker's clock
	FLOOR_SYSTEM_CALL, // a system call without work
	// One transfer between two processors: a store that the other processor waits for.
	FLOOR_CACHE_LINE,
	FLOOR_WAKE_UP, // wake-up of a sleeping thread by a thread on another processor
	FLOOR_UDP,     // one round trip over loopback between two spinning threads
	FLOOR_MEMIF,   // the same over two memif ports of DPDK; starts DPDK
	FLOOR_KIND_COUNT,
};

// Return the key in results, for example "cache_line", or the description for people.
const char *floor_key(enum floor_kind kind);
const char *floor_description(enum floor_kind kind);
// Return the number of events in one sample.
uint32_t floor_batch(enum floor_kind kind);
#define FLOOR_TIME_BYTES 24
// Format the time of one event: "9.5 ns", "7.45 us".
void floor_format_time(double time_ns, char text[static FLOOR_TIME_BYTES]);

struct floor_config {
	uint32_t samples;  // maximum number of samples
	uint64_t limit_ns; // approximate maximum duration of the measurement
};

// Measure one floor. Creates its own threads and pins them to two processors of this process.
// Returns 0, -EOPNOTSUPP if this machine cannot do it, or another -errno, with the reason in `why`.
int floor_measure(
	enum floor_kind kind,
	const struct floor_config *config,
	struct run_record *record,
	struct lab_why *why
);
