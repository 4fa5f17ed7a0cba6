// SPDX-License-Identifier: BSD-3-Clause
// Internals of the probe schedule.
#pragma once

#include <verdict/probe_schedule.h>

#define PROBE_LARGE_SHARE_PERMILLE 200
#define PROBE_NEIGHBOURS_SHARE_PERMILLE 700
#define PROBE_ROTATION_LEAST_PERMILLE 100
#define PROBE_WRITE_PATTERN 4
#define PROBE_GPU_SIZES 2 // the smallest sizes

struct probe_cost {
	uint64_t packets, bytes;
};

struct probe_budget_entry {
	uint64_t at_ns;
	struct probe_cost cost;
};

// Ring of the costs within the last second.
struct probe_budget_ring {
	struct probe_budget_entry *spent;
	uint32_t max, oldest, held;
	struct probe_cost budget, last;
};

// Extra probe before the next read.
enum probe_extra {
	PROBE_EXTRA_NONE,
	PROBE_EXTRA_WRITE,
	PROBE_EXTRA_GPU,
};

struct probe_path {
	bool used, visit;
	bool loses;
	uint32_t mtu;
	uint32_t count;	      // planned reads, or probes of a visit
	uint32_t large_count; // value of `count` at the last large probe
	uint64_t large_ns;
	uint64_t next_ns;
	bool writes, gpu;
	enum probe_extra between;
	bool large_write; // the next large probe is a write
	uint32_t write_count;
	uint32_t gpu_count;
	uint64_t read_ns; // time of the next read, while an extra probe precedes it
};

// Target of visits, at its hashed position in this schedule's order.
struct probe_target_position {
	uint64_t order;
	struct probe_target target;
};

struct probe_schedule {
	struct ras_memory memory;
	uint64_t random, order_seed;
	uint64_t asked_ns;
	struct probe_path paths[PROBE_PATHS_MAX];
	uint32_t neighbour_count, visit_count;
	struct probe_budget_ring planned, urgent;
	uint64_t planned_ns;  // earliest time of the next planned probe
	uint64_t large_at_ns; // earliest time of the next large probe
	uint32_t large_count; // large probes so far
	// Visits: all targets in turn.
	struct probe_target_position *places;
	uint32_t place_count, place_max;
	bool begun;	     // `last_order` is valid
	uint64_t last_order; // `order` of the last visited target
	uint64_t visit_at_ns, round_begin_ns;
	// Derived from paths and targets.
	uint64_t interval_ns, visit_ns, round_ns;
	struct probe_schedule_counters counters;
};

uint32_t probe_size_bytes(uint32_t size, uint32_t mtu);
struct probe_cost probe_cost(uint32_t bytes, uint32_t mtu);
// Return how long a share of the budget needs for this cost, in packets or bytes, whichever is
// longer.
uint64_t probe_share_ns(
	const struct probe_schedule *schedule, struct probe_cost cost, uint32_t share_permille
);
// Recompute the intervals after a change of paths or targets.
void probe_intervals_update(struct probe_schedule *schedule);
void probe_targets_fini(struct probe_schedule *schedule);
