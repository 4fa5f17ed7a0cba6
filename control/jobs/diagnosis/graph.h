// SPDX-License-Identifier: BSD-3-Clause
// Wait graph: a rank that others wait for in one communicator may itself wait in another one. Waits
// are followed to the communicator where they began, or round in a cycle.
#pragma once

#include "survey.h"

// Membership of a process in one communicator of the snapshot. The memberships of a process ascend.
struct graph_member {
	// indices of communicator, rank and next membership; JOBS_NOBODY: no next
	uint32_t comm, place, next;
};

struct graph_process {
	uint64_t node;
	uint32_t pid;
	uint32_t first; // index of its first membership
	uint32_t next;	// next process in the same hash bucket
};

struct graph_walk {
	uint32_t *way; // path of communicator indices, from the first to the current one
	uint8_t *colours;
	uint8_t *tried; // number of edges tried, per communicator
	uint32_t depth, comm;
	bool under_way;
};

struct graph {
	const struct jobs_snapshot *look;
	const struct survey *surveys;
	uint64_t confirm_ms;
	struct graph_member *members;
	struct graph_process *processes;
	uint32_t *buckets;
	uint32_t member_count, process_count, capacity, bucket_count;
	// communicators whose members are not collected yet; collected from the last on
	uint32_t left;
	// per communicator: the one in which a late rank of it waits, or JOBS_NOBODY
	uint32_t *next;
	uint32_t *rank; // per communicator: index of that rank
	struct graph_walk walk;
};

// Returns 0 or -ENOMEM.
int graph_init(
	struct graph *graph,
	const struct jobs_snapshot *look,
	const struct survey *surveys,
	uint64_t confirm_ms
);
// Do one step. Each step costs one unit per rank in ret_ranks. Returns false after the last step.
bool graph_collect_step(struct graph *graph, uint32_t *ret_ranks);
bool graph_walk_step(struct graph *graph, uint32_t *ret_ranks);
void graph_fini(struct graph *graph);
// Return whether the process of `rank` moved in another communicator within confirm_ms.
bool graph_rank_moves_elsewhere(
	const struct graph *graph, uint32_t comm, const struct ras_merged_rank *rank
);
// Return another stalled communicator in which the process's device has started an operation that
// does not complete, or JOBS_NOBODY.
uint32_t graph_find_device_wait(
	const struct graph *graph, uint32_t comm, const struct ras_merged_rank *rank
);
// Return the number of operations that the process has not completed: in other communicators, and
// between two ranks in any.
uint64_t
graph_count_open(const struct graph *graph, uint32_t comm, const struct ras_merged_rank *rank);
// Store the cycle of waits that contains the communicator, in order. Of a longer cycle, the first
// JOBS_CHAIN_MAX are stored. Returns their number, or 0 if the communicator is in no cycle.
uint32_t graph_find_cycle(
	const struct graph *graph, uint32_t comm, struct jobs_wait_for chain[JOBS_CHAIN_MAX]
);
