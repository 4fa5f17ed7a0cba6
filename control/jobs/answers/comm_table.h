// SPDX-License-Identifier: BSD-3-Clause
// Summaries of communicators, grouped by similarity: a short table for thousands of communicators.
#pragma once

#include <ras/payload.h>

#include <stdbool.h>
#include <stdint.h>

struct collect;

// State of a communicator: the highest state among its ranks.
enum comm_state {
	COMM_NOCOMM,
	COMM_INIT,
	COMM_RUNNING,
	COMM_FINALIZE,
	COMM_ABORT,
	COMM_STATE_COUNT,
};

enum comm_error {
	COMM_MISMATCH = 1,
	COMM_ERROR = 2,
	COMM_INCOMPLETE = 4,
};

struct comm_summary {
	uint32_t place; // index in the merged answer
	uint32_t size, nodes, per_node_min, per_node_max;
	uint32_t rank_count, incomplete, nocomm;
	uint32_t absent; // the part of `incomplete` whose process is unknown
	enum comm_state state;
	bool states_differ;
	uint32_t ops_differ; // one bit per operation
	uint32_t errors;
	uint32_t group, index;
};

struct comm_table {
	struct comm_summary *rows;
	uint32_t count;
	uint32_t summed; // rows summarized so far
	bool built;	 // rows are sorted, and groups are numbered
	uint32_t group_count;
};

void comm_table_fini(struct comm_table *table);
// Build the table of the collected communicators step by step. Returns false if more work remains.
// Without memory, it ends with the rows it has.
bool comm_table_build(struct comm_table *table, const struct collect *collect);
// Return the number of distinct (process, device) pairs in the rows of one group; 0 without memory.
uint32_t comm_group_count_ranks(
	const struct comm_table *table,
	const struct ras_comms *comms,
	uint32_t first,
	uint32_t count
);

enum comm_state comm_rank_state(const struct ras_comm_rank *rank);
const char *comm_state_name(enum comm_state state);
const char *comm_error_name(uint32_t errors, char text[static 32]);
// true for an error: `result` is not success and not in progress
bool comm_has_failed(uint8_t result);
