// SPDX-License-Identifier: BSD-3-Clause
// What the wall clocks of peers show beside ours: a finding for people, never a time.
//
// The caller tells us the wall clock now and then; in between it goes on with the time that
// every input brings. Some beats carry it. What arrives is compared after half a round trip,
// and the median of the last few is a link's offset, so that a stalled stream moves nothing. Only
// what echoes our latest beat, and soon, is compared: the rest may be as old as the stream is long.
#pragma once

#include <ras/types.h>

struct link;
struct ras;

#define WALL_SAMPLES 5

struct wall_clock {
	uint64_t told_ns; // by the caller's monotonic time
	uint64_t wall_ns; // what it was then; 0: never told
};

// Of one link: the peer's clock less ours.
struct wall_offset {
	int64_t samples[WALL_SAMPLES]; // a ring
	uint32_t count;		       // ever
	bool apart;		       // told as an event
};

// What the next beat carries, 0 for nothing: the first few, then one in eight.
uint64_t wall_stamp(const struct ras *ras, uint32_t sequence);
// A beat carried this, which came back to our latest one in `travel_ns`; RAS_NEVER: it answers an
// older one, as all do that waited while we stood still.
void wall_heard(struct ras *ras, struct link *link, uint64_t wall_ns, uint64_t travel_ns);
// The median, or RAS_OFFSET_UNKNOWN.
int64_t wall_median(const struct wall_offset *offset);
