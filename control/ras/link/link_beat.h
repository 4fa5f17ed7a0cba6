// SPDX-License-Identifier: BSD-3-Clause
// Beats: what tells a peer that we live, and what it learns with them. Links of the ring beat in
// every tick, long ones in turns; each beat says by when the next one comes.
#pragma once

#define LONG_BEATS_PER_TICK 6 // long links take turns: this many beat in one tick

struct ras;

// Sends the beats that are due, and wakes when the next ones are.
void beats_tick(struct ras *ras);
