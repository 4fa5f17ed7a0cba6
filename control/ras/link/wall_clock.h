// SPDX-License-Identifier: BSD-3-Clause
// Comparison of the peers' wall clocks with our own: a finding for people, no protocol timer
// depends on it.
//
// The caller sets the wall clock now and then; in between it advances with the time of the inputs.
// Some beats carry it. A received value is corrected by half a round trip. The median of the latest
// samples is a link's offset, so one delayed stream changes nothing. Only values that echo our
// latest beat within half a second count. Others may be as old as the stream's backlog.
#pragma once

#include <ras/types.h>

struct link;
struct ras;

#define WALL_SAMPLES 5

struct wall_clock {
	uint64_t told_ns; // caller's monotonic time at which it was set
	uint64_t wall_ns; // wall clock at that time, ns since 1970; 0: never set
};

// Offset of one link: the peer's clock minus our own.
struct wall_offset {
	int64_t samples[WALL_SAMPLES]; // ring buffer, ns
	uint32_t count;		       // number of samples so far
	bool apart;		       // CLOCK_OFFSET was emitted
};

// Return the wall clock for the next beat, or 0 to send none. The first few beats carry it, then
// one in eight.
uint64_t wall_clock_stamp(const struct ras *ras, uint32_t sequence);
// Handle the wall clock in a beat. `travel_ns` is the round trip if the beat echoes our latest one.
// It is RAS_NEVER if the beat answers an older one, as beats do that waited during a pause.
void wall_clock_compare(struct ras *ras, struct link *link, uint64_t wall_ns, uint64_t travel_ns);
// Return the median in ns, or RAS_OFFSET_UNKNOWN.
int64_t wall_offset_median(const struct wall_offset *offset);
