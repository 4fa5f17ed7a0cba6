// SPDX-License-Identifier: BSD-3-Clause
// Summarizes the communicators of an answer and groups the similar ones.
#include "jobs/answers/comm_table.h"

#include "client/collect.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RESULT_IN_PROGRESS 7
#define RANKS_PER_STEP 16384

void comm_table_fini(struct comm_table *table) {
	free(table->rows);
	*table = (struct comm_table){0};
}

bool comm_has_failed(uint8_t result) {
	return result != 0 && result != RESULT_IN_PROGRESS;
}

enum comm_state comm_rank_state(const struct ras_comm_rank *rank) {
	if ((rank->flags & RAS_RANK_ABORT) != 0)
		return COMM_ABORT;
	if ((rank->flags & (RAS_RANK_FINALIZE | RAS_RANK_DESTROY)) != 0 || rank->left != 0)
		return COMM_FINALIZE;
	return rank->init_state != 0 ? COMM_INIT : COMM_RUNNING;
}

const char *comm_state_name(enum comm_state state) {
	static const char *const names[COMM_STATE_COUNT] = {
		[COMM_NOCOMM] = "NOCOMM",     [COMM_INIT] = "INIT",   [COMM_RUNNING] = "RUNNING",
		[COMM_FINALIZE] = "FINALIZE", [COMM_ABORT] = "ABORT",
	};

	return names[state];
}

const char *comm_error_name(uint32_t errors, char text[static 32]) {
	bool incomplete = (errors & COMM_INCOMPLETE) != 0;
	bool error = (errors & COMM_ERROR) != 0;
	bool mismatch = (errors & COMM_MISMATCH) != 0;

	snprintf(
		text, 32, "%s%s%s%s%s", incomplete ? "INCOMPLETE" : "",
		incomplete && (error || mismatch) ? "," : "", error ? "ERROR" : "",
		error && mismatch ? "," : "", mismatch ? "MISMATCH" : ""
	);
	return errors != 0 ? text : "OK";
}

static int compare_ids(const void *left, const void *right) {
	uint64_t a = *(const uint64_t *)left;
	uint64_t b = *(const uint64_t *)right;

	return a < b ? -1 : a > b;
}

// Count the nodes of a communicator. Without memory the columns stay 0.
static void count_nodes(struct comm_summary *row, const struct ras_merged_comm *comm) {
	uint64_t *ids = calloc((size_t)comm->rank_count + 1, sizeof(*ids));
	uint32_t from = 0, run;

	if (ids == NULL)
		return;
	for (uint32_t n = 0; n < comm->rank_count; n++)
		ids[n] = comm->ranks[n].node;
	qsort(ids, comm->rank_count, sizeof(*ids), compare_ids);
	for (uint32_t n = 1; n <= comm->rank_count; n++) {
		if (n < comm->rank_count && ids[n] == ids[from])
			continue;
		run = n - from;
		row->nodes++;
		if (row->per_node_min == 0 || run < row->per_node_min)
			row->per_node_min = run;
		if (run > row->per_node_max)
			row->per_node_max = run;
		from = n;
	}
	free(ids);
}

static void
summarize_comm(const struct collect *collect, uint32_t place, struct comm_summary *row) {
	struct ras_merged_comm comm;

	ras_comms_at(collect->answer->comms, place, &comm);
	*row = (struct comm_summary
	){.place = place, .size = comm.size, .rank_count = comm.rank_count};
	for (uint32_t n = 0; n < comm.rank_count; n++) {
		const struct ras_comm_rank *rank = &comm.ranks[n].rank,
					   *first = &comm.ranks[0].rank;
		enum comm_state state = comm_rank_state(rank);

		if (state > row->state)
			row->state = state;
		if (state != comm_rank_state(first))
			row->states_differ = true;
		if (comm_has_failed(rank->init_state) || comm_has_failed(rank->async_error))
			row->errors |= COMM_ERROR;
		for (uint32_t op = 0; op < RAS_COMM_OPS; op++) {
			if (rank->ops[op] != first->ops[op])
				row->ops_differ |= 1u << op;
		}
	}
	count_nodes(row, &comm);
	for (uint32_t n = 0; n < comm.missing_count; n++) {
		if (collect_has_node(collect, comm.missing[n].missing.node))
			row->nocomm++;
		else
			row->incomplete++;
	}
	row->absent = comm.size - comm.rank_count - comm.missing_count;
	row->incomplete += row->absent;
	if (row->incomplete > 0)
		row->errors |= COMM_INCOMPLETE;
	if (row->nocomm > 0)
		row->states_differ = true;
	if (row->states_differ || row->ops_differ != 0)
		row->errors |= COMM_MISMATCH;
}

// Order of the groups, descending.
static int compare_group_keys(const struct comm_summary *a, const struct comm_summary *b) {
	if (a->size != b->size)
		return a->size > b->size ? -1 : 1;
	if (a->nodes != b->nodes)
		return a->nodes > b->nodes ? -1 : 1;
	if (a->state != b->state)
		return a->state > b->state ? -1 : 1;
	if (a->errors != b->errors)
		return a->errors > b->errors ? -1 : 1;
	return 0;
}

static int compare_rows(const void *left, const void *right) {
	const struct comm_summary *a = left;
	const struct comm_summary *b = right;
	int order = compare_group_keys(a, b);

	if (order != 0)
		return order;
	if (a->rank_count != b->rank_count)
		return a->rank_count < b->rank_count ? -1 : 1;
	return a->place < b->place ? -1 : a->place > b->place;
}

bool comm_table_build(struct comm_table *table, const struct collect *collect) {
	uint32_t ranks = 0;

	if (collect->answer == NULL || collect->answer->comms == NULL || table->built)
		return true;
	if (table->rows == NULL) {
		table->count = ras_comms_count(collect->answer->comms);
		table->rows = calloc((size_t)table->count + 1, sizeof(*table->rows));
		if (table->rows == NULL) {
			table->count = 0;
			return true;
		}
	}
	while (table->summed < table->count && ranks < RANKS_PER_STEP) {
		struct comm_summary *row = &table->rows[table->summed];

		summarize_comm(collect, table->summed++, row);
		ranks += row->rank_count + 1;
	}
	if (table->summed < table->count)
		return false;
	qsort(table->rows, table->count, sizeof(*table->rows), compare_rows);
	for (uint32_t n = 0; n < table->count; n++) {
		struct comm_summary *row = &table->rows[n];

		if (n > 0 && compare_group_keys(row, row - 1) == 0) {
			row->group = (row - 1)->group;
			row->index = (row - 1)->index + 1;
		} else {
			row->group = table->group_count++;
		}
	}
	table->built = true;
	return true;
}

struct device_use {
	uint64_t node;
	uint32_t pid;
	int32_t device;
};

static int compare_uses(const void *left, const void *right) {
	const struct device_use *a = left;
	const struct device_use *b = right;

	if (a->node != b->node)
		return a->node < b->node ? -1 : 1;
	if (a->pid != b->pid)
		return a->pid < b->pid ? -1 : 1;
	return a->device < b->device ? -1 : a->device > b->device;
}

uint32_t comm_group_count_ranks(
	const struct comm_table *table,
	const struct ras_comms *comms,
	uint32_t first,
	uint32_t count
) {
	const struct comm_summary *rows = &table->rows[first];
	struct ras_merged_comm comm;
	struct device_use *uses;
	size_t total = 0, used = 0;
	uint32_t distinct = 0;

	for (uint32_t n = 0; n < count; n++)
		total += rows[n].rank_count;
	uses = calloc(total + 1, sizeof(*uses));
	if (uses == NULL)
		return 0;
	for (uint32_t n = 0; n < count; n++) {
		ras_comms_at(comms, rows[n].place, &comm);
		for (uint32_t rank = 0; rank < comm.rank_count; rank++)
			uses[used++] = (struct device_use
			){comm.ranks[rank].node, comm.ranks[rank].rank.pid,
			  comm.ranks[rank].rank.nvml_device};
	}
	qsort(uses, used, sizeof(*uses), compare_uses);
	for (size_t n = 0; n < used; n++)
		distinct += n == 0 || compare_uses(&uses[n], &uses[n - 1]) != 0;
	free(uses);
	return distinct;
}
