// SPDX-License-Identifier: BSD-3-Clause
// History of partitions between hosts: which hosts were apart, and since when.
//
// One side of a partition is a range of hosts in ring order.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct gap_side {
	uint32_t first, count; // 0: there is no partition
};

struct gap_sides {
	uint64_t at_ns; // start time of this partition
	struct gap_side island, fence;
};

struct gaps {
	struct gap_sides *list; // every change, in order of time
	uint32_t count, capacity;
	uint32_t hosts;
};

void gaps_fini(struct gaps *gaps);
// Record the sides from sides->at_ns on; at_ns must not decrease. `hosts` is the number of all
// hosts.
void gaps_change(struct gaps *gaps, const struct gap_sides *sides, uint32_t hosts);
// Return whether the host is on this side.
bool gap_side_has(const struct gap_side *side, uint32_t host, uint32_t hosts);
// Return the current sides.
struct gap_sides gaps_now(const struct gaps *gaps);
// Return since when the two hosts have been partitioned, or `now_ns` if they are not. A reunion
// that is too short for a new connection and a beat does not count.
uint64_t gaps_apart_since(const struct gaps *gaps, uint32_t host, uint32_t other, uint64_t now_ns);
// Return whether the sides changed less than `before_ns` before their latest change.
bool gaps_changed_before(const struct gaps *gaps, uint64_t before_ns);
// Return whether there was no partition for `length_ns`, at some time between `from_ns` and the
// latest change.
bool gaps_whole_since(const struct gaps *gaps, uint64_t from_ns, uint64_t length_ns);
