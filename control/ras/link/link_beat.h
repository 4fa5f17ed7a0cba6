// SPDX-License-Identifier: BSD-3-Clause
// Beats: keep-alives that prove life and carry digest, uses and wall clock. Ring links beat in
// every tick, long links in turns. Each beat promises when the next one comes.
#pragma once

#define LONG_BEATS_PER_TICK 6 // number of long links that beat in one tick

struct ras;

// Send the beats that are due, and request a wake-up for the next ones.
void beats_tick(struct ras *ras);
