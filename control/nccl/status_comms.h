// SPDX-License-Identifier: BSD-3-Clause
// Communicators summed up and grouped by what is alike: a table of a few lines for thousands.
#pragma once

#include <ras/payload.h>

#include <stdbool.h>
#include <stdint.h>

struct status;

// The highest that is present is shown.
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
	uint32_t place; // in the merge
	uint32_t size, nodes, per_node_min, per_node_max;
	uint32_t rank_count, incomplete, nocomm;
	uint32_t absent; // of the incomplete: nobody knows whose they are
	enum comm_state state;
	bool states_differ;
	uint32_t ops_differ; // a bit per operation
	uint32_t errors;
	uint32_t group, index;
};

struct comm_table {
	struct comm_summary *rows;
	uint32_t count;
	uint32_t summed; // of these, so far
	bool built;	 // sorted, and groups are numbered
	uint32_t group_count;
};

void comm_table_fini(struct comm_table *table);
// A session's step: false if there is more to do. -ENOMEM ends it with what is there.
bool comm_table_build(struct status *status);
// Distinct (process, device) pairs in the rows of one group; 0 without memory.
uint32_t comm_group_ranks(const struct status *status, uint32_t first, uint32_t count);

enum comm_state comm_rank_state(const struct ras_comm_rank *rank);
const char *comm_state_name(enum comm_state state);
const char *comm_error_name(uint32_t errors, char text[static 32]);
bool comm_has_failed(uint8_t result); // neither done nor in progress
