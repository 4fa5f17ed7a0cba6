// SPDX-License-Identifier: BSD-3-Clause
// Who is waited for in one communicator waits itself in another: to the one that began it, or round
// in a cycle.
#pragma once

#include "survey.h"

// What a process does in all communicators of the look.
struct graph_member {
	uint64_t node;
	uint32_t pid;
	uint32_t comm, place;
};

struct graph {
	const struct jobs_look *look;
	const struct survey *surveys;
	uint64_t confirm_ms;
	struct graph_member *members; // by node and process
	uint32_t member_count, member_capacity;
	uint32_t *next; // of each communicator the one where a rank it waits for waits, or NOBODY
	uint32_t *rank; // and the place of that rank
};

// -ENOMEM.
int graph_init(
	struct graph *graph,
	const struct jobs_look *look,
	const struct survey *surveys,
	uint64_t confirm_ms
);
void graph_fini(struct graph *graph);
// One of its processes moved in another communicator in the time that confirms a wait.
bool graph_moves_elsewhere(
	const struct graph *graph, uint32_t comm, const struct ras_merged_rank *rank
);
// The cycle that a communicator is part of, in its order; 0 if it is in none. Cycles of more than
// JOBS_CHAIN_MAX are told by their beginning.
uint32_t
graph_cycle(const struct graph *graph, uint32_t comm, struct jobs_wait_for chain[JOBS_CHAIN_MAX]);
