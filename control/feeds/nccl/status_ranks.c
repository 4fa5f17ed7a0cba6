// SPDX-License-Identifier: BSD-3-Clause
// Writes the ranks of a communicator that are missing, failed, or differ from the others.
#include "feeds/nccl/status_ranks.h"

#include "client/names.h"
#include "feeds/nccl/status.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const op_names[RAS_COMM_OPS] = {
	"Broadcast", "Reduce", "AllGather", "ReduceScatter", "AllReduce",
};

static void print_block_title(
	struct session *session,
	const struct comm_summary *row,
	const struct ras_merged_comm *comm,
	const char *what
) {
	text_print(
		&session->out, "#%u-%u (%016" PRIx64 ") %s\n", row->group, row->index,
		comm->id.hash, what
	);
}

static void show_device(int16_t device, char text[static 16]) {
	if (device < 0)
		snprintf(text, 16, "unknown");
	else
		snprintf(text, 16, "%d", device);
}

static void print_missing_rank(struct session *session, const struct ras_comm_missing *missing) {
	char node[NAMES_TEXT_BYTES], device[16];

	if (missing->pid == 0 || missing->node == 0) {
		text_print(
			&session->out, "  Rank %u -- [process information not found]\n",
			missing->rank
		);
		return;
	}
	names_format_id(session_ras(session), missing->node, node);
	show_device(missing->cuda_device, device);
	text_print(
		&session->out, "  Rank %u -- GPU %s managed by process %u on node %s\n",
		missing->rank, device, missing->pid, node
	);
}

// Ranks grouped by a value, the most frequent value first.

typedef bool rank_value_fn(const struct ras_comm_rank *rank, uint32_t op, uint64_t *ret_value);
typedef void value_text_fn(uint64_t value, uint32_t count, char text[static 96]);

struct rank_value {
	uint64_t value;
	uint32_t count; // number of ranks with this value
	uint32_t place; // index of the rank
};

static int compare_values(const void *left, const void *right) {
	const struct rank_value *a = left;
	const struct rank_value *b = right;

	if (a->value != b->value)
		return a->value < b->value ? -1 : 1;
	return a->place < b->place ? -1 : a->place > b->place;
}

static int compare_counts(const void *left, const void *right) {
	const struct rank_value *a = left;
	const struct rank_value *b = right;

	if (a->count != b->count)
		return a->count > b->count ? -1 : 1;
	return compare_values(left, right);
}

static uint32_t sort_values(
	const struct ras_merged_comm *comm,
	rank_value_fn *value_of,
	uint32_t op,
	struct rank_value *values
) {
	uint32_t count = 0, from = 0;

	for (uint32_t n = 0; n < comm->rank_count; n++) {
		uint64_t value;

		if (value_of(&comm->ranks[n].rank, op, &value))
			values[count++] = (struct rank_value){.value = value, .place = n};
	}
	qsort(values, count, sizeof(*values), compare_values);
	for (uint32_t n = 1; n <= count; n++) {
		if (n < count && values[n].value == values[from].value)
			continue;
		for (uint32_t same = from; same < n; same++)
			values[same].count = n - from;
		from = n;
	}
	qsort(values, count, sizeof(*values), compare_counts);
	return count;
}

struct ranking {
	rank_value_fn *value_of;
	value_text_fn *words; // text for one rank, and for several
	uint32_t op;
};

static void print_ranking(
	struct session *session,
	const struct status *status,
	const struct ras_merged_comm *comm,
	const struct ranking *ranking
) {
	struct rank_value *values = calloc((size_t)comm->rank_count + 1, sizeof(*values));
	char words[96], node[NAMES_TEXT_BYTES], device[16];
	uint32_t count;

	if (values == NULL) {
		session->out.failed = true;
		return;
	}
	count = sort_values(comm, ranking->value_of, ranking->op, values);
	for (uint32_t n = 0; n < count; n += values[n].count) {
		const struct rank_value *run = &values[n];

		ranking->words(run->value, run->count, words);
		if (run->count > 1)
			text_print(&session->out, "  %u ranks %s\n", run->count, words);
		if (run->count > 1 && !status_is_outlier(status, run->count, comm->size))
			continue;
		for (uint32_t member = 0; member < run->count; member++) {
			const struct ras_merged_rank *rank = &comm->ranks[run[member].place];

			text_print(&session->out, "  Rank %u", rank->rank.rank);
			if (run->count == 1)
				text_print(&session->out, " %s", words);
			names_format_id(session_ras(session), rank->node, node);
			show_device(rank->rank.cuda_device, device);
			text_print(
				&session->out, " -- GPU %s managed by process %u on node %s\n",
				device, rank->rank.pid, node
			);
		}
	}
	free(values);
}

// Errors

static bool init_error(const struct ras_comm_rank *rank, uint32_t op, uint64_t *ret_value) {
	(void)op;
	*ret_value = rank->init_state;
	return comm_has_failed(rank->init_state);
}

static bool async_error(const struct ras_comm_rank *rank, uint32_t op, uint64_t *ret_value) {
	(void)op;
	*ret_value = rank->async_error;
	return comm_has_failed(rank->async_error);
}

static void error_words(uint64_t value, uint32_t count, char text[static 96]) {
	static const char *const texts[] = {
		[1] = "Unhandled CUDA error", [2] = "System error",  [3] = "Internal error",
		[4] = "Invalid argument",     [5] = "Invalid usage", [6] = "Remote process error",
	};
	bool known = value > 0 && value < sizeof(texts) / sizeof(texts[0]);

	(void)count;
	snprintf(text, 96, "reported %s", known ? texts[value] : "Unexpected error");
}

static void print_failures(
	struct session *session,
	const struct status *status,
	const struct ras_merged_comm *comm,
	rank_value_fn *value_of,
	const char *what
) {
	struct ranking ranking = {value_of, error_words, 0};
	uint32_t count = 0;
	uint64_t value;

	for (uint32_t n = 0; n < comm->rank_count; n++)
		count += value_of(&comm->ranks[n].rank, 0, &value);
	if (count == 0)
		return;
	text_print(
		&session->out, "  %s error%s on %u rank%s\n", what, count == 1 ? "" : "s", count,
		count == 1 ? "" : "s"
	);
	print_ranking(session, status, comm, &ranking);
}

void status_print_errors(
	struct session *session, const struct status *status, const struct comm_summary *row
) {
	char sentence[JOBS_SENTENCE_BYTES], job[RAS_COMM_JOB_BYTES];
	enum jobs_grade grade =
		status->judged ? status->look.findings[row->place].grade : JOBS_QUIET;
	bool lists_missing = status_is_outlier(status, row->incomplete, row->size);
	struct ras_merged_comm comm;

	ras_comms_at(status->collect.answer->comms, row->place, &comm);
	// Tocsin's own block: the job, and the cause.
	if (grade >= JOBS_WAITING) {
		print_block_title(session, row, &comm, grade == JOBS_STUCK ? "STUCK" : "WAITING");
		if (comm.job[0] != '\0') {
			names_sanitize_text(comm.job, strlen(comm.job), job, sizeof(job));
			text_print(&session->out, "  Job %s\n", job);
		}
		comm_look_describe(&status->look, row->place, sentence);
		text_wrap(&session->out, 2, sentence);
		text_print(&session->out, "\n");
	}
	if (row->incomplete > 0) {
		print_block_title(session, row, &comm, "INCOMPLETE");
		text_print(
			&session->out, "  Missing communicator data from %u rank%s\n",
			row->incomplete, row->incomplete == 1 ? "" : "s"
		);
		for (uint32_t n = 0; lists_missing && n < comm.missing_count; n++) {
			const struct ras_comm_missing *missing = &comm.missing[n].missing;

			if (!collect_has_node(&status->collect, missing->node))
				print_missing_rank(session, missing);
		}
		text_print(&session->out, "\n");
	}
	if ((row->errors & COMM_ERROR) == 0)
		return;
	print_block_title(session, row, &comm, "ERROR");
	print_failures(session, status, &comm, init_error, "Initialization");
	print_failures(session, status, &comm, async_error, "Asynchronous");
	text_print(&session->out, "\n");
}

// Mismatches

static bool state_value(const struct ras_comm_rank *rank, uint32_t op, uint64_t *ret_value) {
	(void)op;
	*ret_value = comm_rank_state(rank);
	return true;
}

static void state_words(uint64_t value, uint32_t count, char text[static 96]) {
	snprintf(
		text, 96, "%s status %s", count == 1 ? "has" : "have",
		comm_state_name((enum comm_state)value)
	);
}

static bool op_value(const struct ras_comm_rank *rank, uint32_t op, uint64_t *ret_value) {
	*ret_value = rank->ops[op];
	return true;
}

static void op_words(uint64_t value, uint32_t count, char text[static 96]) {
	const char *have = count == 1 ? "has" : "have";

	if (value == 0)
		snprintf(text, 96, "%s not launched any operations", have);
	else
		snprintf(text, 96, "%s launched up to operation %" PRIu64, have, value);
}

// Write the missing ranks whose nodes answered: the ranks have no communicator.
static void print_nocomm_ranks(
	struct session *session, const struct status *status, const struct ras_merged_comm *comm
) {
	for (uint32_t n = 0; n < comm->missing_count; n++) {
		if (collect_has_node(&status->collect, comm->missing[n].missing.node))
			print_missing_rank(session, &comm->missing[n].missing);
	}
}

void status_print_mismatches(
	struct session *session, const struct status *status, const struct comm_summary *row
) {
	struct ranking states = {state_value, state_words, 0};
	struct ras_merged_comm comm;

	if ((row->errors & COMM_MISMATCH) == 0)
		return;
	ras_comms_at(status->collect.answer->comms, row->place, &comm);
	print_block_title(session, row, &comm, "MISMATCH");
	if (row->states_differ) {
		text_print(&session->out, "  Communicator ranks have different status\n");
		print_ranking(session, status, &comm, &states);
		if (row->nocomm > 1)
			text_print(&session->out, "  %u ranks have status NOCOMM\n", row->nocomm);
		if (row->nocomm > 0 && status_is_outlier(status, row->nocomm, row->size))
			print_nocomm_ranks(session, status, &comm);
	}
	for (uint32_t op = 0; op < RAS_COMM_OPS; op++) {
		struct ranking ranking = {op_value, op_words, op};

		if ((row->ops_differ & 1u << op) == 0)
			continue;
		text_print(
			&session->out, "  Communicator ranks have different %s operation counts\n",
			op_names[op]
		);
		print_ranking(session, status, &comm, &ranking);
		text_print(&session->out, "\n");
	}
}
