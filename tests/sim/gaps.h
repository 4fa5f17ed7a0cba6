// SPDX-License-Identifier: BSD-3-Clause
// Which hosts were apart from which, and since when: gaps come and go, and their sides differ.
//
// One side of a gap are so many hosts in ring order, from a first one on.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct gap_side {
	uint32_t first, count; // 0: there is no such gap
};

struct gap_sides {
	uint64_t at_ns; // since then
	struct gap_side island, fence;
};

struct gaps {
	struct gap_sides *list; // as they changed
	uint32_t count, capacity;
	uint32_t hosts;
};

void gaps_fini(struct gaps *gaps);
// From now on the sides are these; at_ns does not fall. All hosts are counted.
void gaps_change(struct gaps *gaps, const struct gap_sides *sides, uint32_t hosts);
// Whether the host is on that side.
bool gap_side_has(const struct gap_side *side, uint32_t host, uint32_t hosts);
// What parts hosts now.
struct gap_sides gaps_now(const struct gaps *gaps);
// Since when the two have been apart, or `now_ns` if they are not. A time together that is too
// short for a connection and a beat to get through is none.
uint64_t gaps_apart_since(const struct gaps *gaps, uint32_t host, uint32_t other, uint64_t now_ns);
// Whether there was another gap so shortly before the present one.
bool gaps_changed_before(const struct gaps *gaps, uint64_t before_ns);
// Whether for so long nothing was apart, at some time between `from_ns` and the latest change.
bool gaps_whole_since(const struct gaps *gaps, uint64_t from_ns, uint64_t length_ns);
