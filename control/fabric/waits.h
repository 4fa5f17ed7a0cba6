// SPDX-License-Identifier: BSD-3-Clause
// Private to this directory: how long threads of this agent wait for a processor. Pure.
//
// The kernel counts how long a thread was runnable without a processor, and how often it got a
// processor. The quotient is the delay of one wake-up. A probe needs a few wake-ups: of the
// responder's engine, of the own engine and of the worker.
#pragma once

#include <control/fabric.h>

#define WAITS_UPDATE_NS (900 * RAS_NS_PER_MS) // shortest interval between two updates

struct waits {
	struct schedstat before[FABRIC_THREADS_MAX];
	uint64_t before_ns; // time of the last update; 0: none
	// Mean wait of one wake-up of the slowest thread that takes part in probes, in the last two
	// intervals; 0: none that matters.
	uint64_t turn_ns, turn_before_ns;
	uint32_t permille; // share of the last interval in which one thread waited
	uint8_t seconds;   // a bit per interval, newest is bit 0: a thread waited long
	bool is_short;
	uint64_t since_ns; // start of the shortage
};

// Take the present totals of the threads. Returns false, and does nothing, if the last update is
// too recent.
bool waits_update(
	struct waits *waits,
	uint64_t now_ns,
	const struct schedstat stats[static FABRIC_THREADS_MAX]
);
// Return the longer of the mean waits of the last two intervals.
uint64_t waits_turn_ns(const struct waits *waits);
// Return the mean wait that a responder published, or 0 if it was read more than 10 s ago: an old
// wait must not excuse a path for ever.
uint64_t waits_responder_ns(uint64_t published_ns, uint64_t read_at_ns, uint64_t now_ns);
// Return the part of a sample's latency that waiting may explain. `late_ns`: how late the probe
// began. `responder_ns`: mean wait of the responder's threads; 0 if it is hardware.
uint64_t waits_sample_ns(const struct waits *waits, uint64_t late_ns, uint64_t responder_ns);
