// SPDX-License-Identifier: BSD-3-Clause
// Which hosts were apart from which, and since when: gaps come and go, and their sides differ.
//
// The first hosts in ring order are one side of a gap.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct gap_sides {
	uint64_t at_ns;		// since then,
	uint32_t island, fence; // so many hosts are the one side; 0: there is no such gap
};

struct gaps {
	struct gap_sides *list; // as they changed
	uint32_t count, capacity;
};

void gaps_fini(struct gaps *gaps);
// From now on the sides are these; `at_ns` does not fall.
void gaps_change(struct gaps *gaps, uint64_t at_ns, uint32_t island, uint32_t fence);
// What parts hosts now.
struct gap_sides gaps_now(const struct gaps *gaps);
// Since when the two have been apart, or `now_ns` if they are not. A time together that is too
// short for a connection and a beat to get through is none.
uint64_t gaps_apart_since(const struct gaps *gaps, uint32_t host, uint32_t other, uint64_t now_ns);
// Whether there was another gap so shortly before the present one.
bool gaps_changed_before(const struct gaps *gaps, uint64_t before_ns);
// Whether for so long nothing was apart, at some time between `from_ns` and the latest change.
bool gaps_whole_since(const struct gaps *gaps, uint64_t from_ns, uint64_t length_ns);
