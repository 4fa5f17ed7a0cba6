// SPDX-License-Identifier: BSD-3-Clause
// Who is waited for in one communicator waits itself in another: to the one that began it, or round
// in a cycle.
#pragma once

#include "survey.h"

// What a process does in one communicator of the look; the next of its members is of a later one.
struct graph_member {
	uint32_t comm, place, next; // JOBS_NOBODY: the last one
};

struct graph_process {
	uint64_t node;
	uint32_t pid;
	uint32_t first; // of its members
	uint32_t next;	// process of the same bucket
};

struct graph_walk {
	uint32_t *way; // communicators, from the first to the present one
	uint8_t *colours;
	uint8_t *tried; // edges of each
	uint32_t depth, comm;
	bool under_way;
};

struct graph {
	const struct jobs_look *look;
	const struct survey *surveys;
	uint64_t confirm_ms;
	struct graph_member *members;
	struct graph_process *processes;
	uint32_t *buckets;
	uint32_t member_count, process_count, capacity, bucket_count;
	uint32_t left;	// communicators whose members are not collected yet, from the last on
	uint32_t *next; // of each communicator the one where a rank it waits for waits, or NOBODY
	uint32_t *rank; // and the place of that rank
	struct graph_walk walk;
};

// -ENOMEM.
int graph_init(
	struct graph *graph,
	const struct jobs_look *look,
	const struct survey *surveys,
	uint64_t confirm_ms
);
// Each costs as much as the communicator has ranks, which is given back. false: that was the last.
bool graph_collect(struct graph *graph, uint32_t *ret_ranks);
bool graph_follow(struct graph *graph, uint32_t *ret_ranks);
void graph_fini(struct graph *graph);
// One of its processes moved in another communicator in the time that confirms a wait.
bool graph_moves_elsewhere(
	const struct graph *graph, uint32_t comm, const struct ras_merged_rank *rank
);
// A communicator where its process's device has started what does not complete, or JOBS_NOBODY.
uint32_t
graph_device_waits(const struct graph *graph, uint32_t comm, const struct ras_merged_rank *rank);
// The cycle that a communicator is part of, in its order; 0 if it is in none. Cycles of more than
// JOBS_CHAIN_MAX are told by their beginning.
uint32_t
graph_cycle(const struct graph *graph, uint32_t comm, struct jobs_wait_for chain[JOBS_CHAIN_MAX]);
