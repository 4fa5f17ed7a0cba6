// SPDX-License-Identifier: BSD-3-Clause
// Merges the communicators of all nodes.
//
// Three tables are sorted by (id, size): communicators, ranks, and missing ranks. Settling removes
// duplicates from each table. It also drops each missing rank that another node has reported, so
// only ranks that no node has stay missing. Signatures stay unsorted; each rank has the index of
// the first signature of its row.
#include "collect/payload_rows.h"

#include <lib/must.h>
#include <lib/sort.h>
#include <lib/wire.h>
#include <ras/payload.h>

struct comm_row {
	struct ras_comm_id id;
	uint32_t size;
	bool collision; // a communicator of another size has the same id
	bool jobs_differ;
	char job[RAS_COMM_JOB_BYTES];
	uint32_t rank_from, rank_count;
	uint32_t missing_from, missing_count;
};

struct ras_comms {
	struct payload_rows comms;	// struct comm_row
	struct payload_rows ranks;	// struct ras_merged_rank
	struct payload_rows missing;	// struct ras_merged_missing
	struct payload_rows signatures; // struct ras_comm_signature
	uint32_t bad_rows;
};

static int compare_comm(
	const struct ras_comm_id *a_id,
	uint32_t a_size,
	const struct ras_comm_id *b_id,
	uint32_t b_size
) {
	int order = ras_comm_id_compare(a_id, b_id);

	return order != 0 ? order : payload_compare_u64(a_size, b_size);
}

static int comm_key_compare(const void *a, const void *b) {
	const struct comm_row *left = a;
	const struct comm_row *right = b;

	return compare_comm(&left->id, left->size, &right->id, right->size);
}

// Order communicators. Rows of one communicator are in descending order of the job name, so that ""
// is last.
static int comm_compare(const void *a, const void *b) {
	const struct comm_row *left = a;
	const struct comm_row *right = b;
	int order = comm_key_compare(a, b);

	if (order == 0)
		order = memcmp(right->job, left->job, sizeof(left->job));
	return order != 0 ? order : right->jobs_differ - left->jobs_differ;
}

static int rank_key_compare(const void *a, const void *b) {
	const struct ras_merged_rank *left = a;
	const struct ras_merged_rank *right = b;
	int order = compare_comm(&left->comm, left->comm_size, &right->comm, right->comm_size);

	return order != 0 ? order : payload_compare_u64(left->rank.rank, right->rank.rank);
}

static bool rank_is_over(const struct ras_comm_rank *rank) {
	return (rank->flags & RAS_RANK_EXITED) != 0 || rank->left != 0;
}

// Order ranks. If two nodes report one rank, a living process comes before one that exited or left,
// because agents report those for a while. Of two living ones the last registration comes first, of
// two others the last end, then the lower node id. The remaining fields make the order total.
static int rank_compare(const void *a, const void *b) {
	const struct ras_merged_rank *left = a;
	const struct ras_merged_rank *right = b;
	const struct ras_comm_rank *l = &left->rank;
	const struct ras_comm_rank *r = &right->rank;
	int order = rank_key_compare(a, b);

	if (order == 0)
		order = rank_is_over(l) - rank_is_over(r);
	if (order == 0 && !rank_is_over(l))
		order = payload_compare_u64(l->since_ms, r->since_ms);
	if (order == 0)
		order = payload_compare_u64(l->exited_ms, r->exited_ms);
	if (order == 0)
		order = payload_compare_u64(left->node, right->node);
	if (order == 0)
		order = payload_compare_u64(l->pid, r->pid);
	if (order == 0)
		order = payload_compare_u64(r->launched, l->launched);
	if (order == 0)
		order = payload_compare_u64(r->started, l->started);
	if (order == 0)
		order = payload_compare_u64(r->completed, l->completed);
	if (order == 0)
		order = payload_compare_u64(l->idle_ms, r->idle_ms);
	for (uint32_t n = 0; order == 0 && n < RAS_COMM_OPS; n++)
		order = payload_compare_u64(l->ops[n], r->ops[n]);
	if (order == 0)
		order = (l->init_state - r->init_state);
	if (order == 0)
		order = (l->async_error - r->async_error);
	if (order == 0)
		order = (l->flags - r->flags);
	if (order == 0)
		order = (l->cuda_device - r->cuda_device);
	return order != 0 ? order : l->nvml_device - r->nvml_device;
}

static int missing_key_compare(const void *a, const void *b) {
	const struct ras_merged_missing *left = a;
	const struct ras_merged_missing *right = b;
	int order = compare_comm(&left->comm, left->comm_size, &right->comm, right->comm_size);

	return order != 0 ? order : payload_compare_u64(left->missing.rank, right->missing.rank);
}

// Order missing ranks. Of one rank the entry with more facts comes first: agent, address, process.
static int missing_compare(const void *a, const void *b) {
	const struct ras_comm_missing *left = &((const struct ras_merged_missing *)a)->missing;
	const struct ras_comm_missing *right = &((const struct ras_merged_missing *)b)->missing;
	int order = missing_key_compare(a, b);

	if (order == 0)
		order = payload_compare_u64(right->node, left->node);
	if (order == 0)
		order = right->family - left->family;
	if (order == 0)
		order = memcmp(left->address, right->address, sizeof(left->address));
	if (order == 0)
		order = payload_compare_u64(right->pid, left->pid);
	if (order == 0)
		order = right->cuda_device - left->cuda_device;
	return order != 0 ? order : right->nvml_device - left->nvml_device;
}

int ras_comms_create(const struct ras_memory *memory, struct ras_comms **ret_comms) {
	struct ras_comms *comms = memory->allocate(memory->ctx, sizeof(*comms));

	if (comms == NULL)
		return -ENOMEM;
	payload_rows_init(&comms->comms, memory, sizeof(struct comm_row));
	payload_rows_init(&comms->ranks, memory, sizeof(struct ras_merged_rank));
	payload_rows_init(&comms->missing, memory, sizeof(struct ras_merged_missing));
	payload_rows_init(&comms->signatures, memory, sizeof(struct ras_comm_signature));
	*ret_comms = comms;
	return 0;
}

struct ras_comms *ras_comms_destroy(struct ras_comms *comms) {
	struct ras_memory memory;

	if (comms == NULL)
		return NULL;
	memory = comms->comms.memory;
	payload_rows_fini(&comms->comms);
	payload_rows_fini(&comms->ranks);
	payload_rows_fini(&comms->missing);
	payload_rows_fini(&comms->signatures);
	memory.release(memory.ctx, comms, sizeof(*comms));
	return NULL;
}

static int add_ranks(
	struct ras_comms *comms,
	uint64_t node,
	const struct ras_comm *head,
	struct wire_reader *reader
) {
	struct ras_merged_rank row = {
		.comm = head->id,
		.comm_size = head->size,
		.config = head->config,
		.node = node,
		.signatures = comms->signatures.count,
	};
	struct ras_comm_rank before = {0};
	int err = 0;

	for (uint32_t n = 0; err == 0 && n < head->signature_count; n++)
		err = payload_rows_add(&comms->signatures, &head->signatures[n]);
	for (uint32_t n = 0; err == 0 && n < head->rank_count; n++) {
		err = ras_comm_get_rank(reader, head, &before, &row.rank);
		before = row.rank;
		if (row.rank.recent.count == 0)
			row.rank.recent = head->recent;
		if (err == 0)
			err = payload_rows_add(&comms->ranks, &row);
	}
	return err;
}

static int add_row(struct ras_comms *comms, uint64_t node, struct wire_reader *reader) {
	struct ras_merged_missing missing;
	struct comm_row row = {0};
	struct ras_comm head;
	int err;

	err = ras_comm_get(reader, &head);
	if (err != 0)
		return err;
	row.id = head.id;
	row.size = head.size;
	memcpy(row.job, head.job, strlen(head.job)); // zero-padded for memcmp()
	err = payload_rows_add(&comms->comms, &row);
	if (err == 0)
		err = add_ranks(comms, node, &head, reader);
	missing = (struct ras_merged_missing){.comm = head.id, .comm_size = head.size};
	for (uint32_t n = 0; err == 0 && n < head.missing_count; n++) {
		err = ras_comm_get_missing(reader, head.size, &missing.missing);
		if (err == 0)
			err = payload_rows_add(&comms->missing, &missing);
	}
	return err;
}

// Row counts of all tables. A merge that fails truncates the tables to these counts.
struct merge_mark {
	uint32_t comms, ranks, missing, signatures;
};

static struct merge_mark mark_tables(const struct ras_comms *comms) {
	return (struct merge_mark
	){comms->comms.count, comms->ranks.count, comms->missing.count, comms->signatures.count};
}

static void return_to_mark(struct ras_comms *comms, const struct merge_mark *mark) {
	comms->comms.count = mark->comms;
	comms->ranks.count = mark->ranks;
	comms->missing.count = mark->missing;
	comms->signatures.count = mark->signatures;
}

int ras_comms_add(struct ras_comms *comms, const struct ras_collected_part *part) {
	const struct merge_mark before = mark_tables(comms);
	uint32_t bad_rows = 0;
	struct wire_reader reader, row;
	int err;

	wire_reader_init(&reader, part->payload, part->size);
	while ((err = ras_comm_row_next(&reader, &row)) == 0) {
		const struct merge_mark mark = mark_tables(comms);

		err = add_row(comms, part->node, &row);
		if (err == -ENOMEM || err == -ENOSPC)
			break;
		if (err != 0) {
			return_to_mark(comms, &mark);
			bad_rows++;
		}
	}
	if (err != -ENODATA) {
		return_to_mark(comms, &before);
		return err;
	}
	comms->bad_rows += bad_rows;
	return 0;
}

uint32_t ras_comms_bad_rows(const struct ras_comms *comms) {
	return comms->bad_rows;
}

static struct comm_row *comm_at(const struct ras_comms *comms, uint32_t n) {
	return payload_rows_at(&comms->comms, n);
}

// Drop missing ranks that a node has reported. Both tables are in the same order.
static void drop_reported_missing(struct ras_comms *comms) {
	uint32_t rank = 0;
	uint32_t kept = 0;

	for (uint32_t n = 0; n < comms->missing.count; n++) {
		const struct ras_merged_missing *missing = payload_rows_at(&comms->missing, n);
		struct ras_merged_rank wanted = {
			.comm = missing->comm,
			.comm_size = missing->comm_size,
			.rank = {.rank = missing->missing.rank},
		};

		while (rank < comms->ranks.count &&
		       rank_key_compare(payload_rows_at(&comms->ranks, rank), &wanted) < 0)
			rank++;
		if (rank < comms->ranks.count &&
		    rank_key_compare(payload_rows_at(&comms->ranks, rank), &wanted) == 0)
			continue;
		if (kept != n)
			memcpy(payload_rows_at(&comms->missing, kept), missing, sizeof(*missing));
		kept++;
	}
	comms->missing.count = kept;
}

// Return the number of rows, starting with row `from`, that belong to the communicator.
static uint32_t row_run_length(
	const struct payload_rows *rows,
	uint32_t from,
	const struct comm_row *comm,
	int (*belongs)(const void *row, const struct comm_row *comm)
) {
	uint32_t n = from;

	while (n < rows->count && belongs(payload_rows_at(rows, n), comm) == 0)
		n++;
	return n - from;
}

static int compare_rank_to_comm(const void *row, const struct comm_row *comm) {
	const struct ras_merged_rank *rank = row;

	return compare_comm(&rank->comm, rank->comm_size, &comm->id, comm->size);
}

static int compare_missing_to_comm(const void *row, const struct comm_row *comm) {
	const struct ras_merged_missing *missing = row;

	return compare_comm(&missing->comm, missing->comm_size, &comm->id, comm->size);
}

// Drop the communicators that all known ranks have left in order: nobody waits for them any more.
static void drop_left_comms(struct ras_comms *comms) {
	uint32_t rank = 0, kept = 0, kept_ranks = 0;

	for (uint32_t n = 0; n < comms->comms.count; n++) {
		const struct comm_row *row = comm_at(comms, n);
		uint32_t count = row_run_length(&comms->ranks, rank, row, compare_rank_to_comm);
		uint32_t left = 0;

		for (uint32_t at = rank; at < rank + count; at++) {
			const struct ras_merged_rank *one = payload_rows_at(&comms->ranks, at);

			left += one->rank.left != 0;
		}
		if (count == 0 || left < count) {
			memmove(payload_rows_at(&comms->comms, kept), row, sizeof(*row));
			for (uint32_t at = rank; at < rank + count; at++)
				memmove(payload_rows_at(&comms->ranks, kept_ranks++),
					payload_rows_at(&comms->ranks, at),
					sizeof(struct ras_merged_rank));
			kept++;
		}
		rank += count;
	}
	comms->comms.count = kept;
	comms->ranks.count = kept_ranks;
}

uint32_t ras_comms_settle(struct ras_comms *comms) {
	uint32_t rank = 0;
	uint32_t missing = 0;
	struct comm_row *first = NULL;

	// Set jobs_differ on the first row of each communicator whose rows name different jobs.
	sort_rows(comms->comms.rows, comms->comms.count, sizeof(struct comm_row), comm_compare);
	for (uint32_t n = 0; n < comms->comms.count; n++) {
		struct comm_row *row = comm_at(comms, n);

		if (first == NULL || comm_key_compare(first, row) != 0)
			first = row;
		first->jobs_differ |= row->jobs_differ ||
				      (row->job[0] != '\0' && strcmp(first->job, row->job) != 0);
	}
	payload_rows_settle(&comms->comms, comm_compare, comm_key_compare);
	payload_rows_settle(&comms->ranks, rank_compare, rank_key_compare);
	payload_rows_settle(&comms->missing, missing_compare, missing_key_compare);
	drop_reported_missing(comms);
	if (comms->missing.count == 0)
		drop_left_comms(comms);
	for (uint32_t n = 0; n < comms->comms.count; n++) {
		struct comm_row *row = comm_at(comms, n);

		row->rank_from = rank;
		row->rank_count = row_run_length(&comms->ranks, rank, row, compare_rank_to_comm);
		rank += row->rank_count;
		row->missing_from = missing;
		row->missing_count =
			row_run_length(&comms->missing, missing, row, compare_missing_to_comm);
		missing += row->missing_count;
		row->collision = false;
		if (n > 0 && ras_comm_id_compare(&comm_at(comms, n - 1)->id, &row->id) == 0) {
			comm_at(comms, n - 1)->collision = true;
			row->collision = true;
		}
	}
	return comms->comms.count;
}

uint32_t ras_comms_count(const struct ras_comms *comms) {
	return comms->comms.count;
}

void ras_comms_at(const struct ras_comms *comms, uint32_t n, struct ras_merged_comm *ret_comm) {
	const struct comm_row *row;

	must(n < comms->comms.count);
	row = comm_at(comms, n);
	ret_comm->id = row->id;
	ret_comm->size = row->size;
	ret_comm->collision = row->collision;
	ret_comm->jobs_differ = row->jobs_differ;
	ret_comm->job = row->job;
	ret_comm->rank_count = row->rank_count;
	ret_comm->missing_count = row->missing_count;
	ret_comm->ranks =
		row->rank_count > 0 ? payload_rows_at(&comms->ranks, row->rank_from) : NULL;
	ret_comm->missing =
		row->missing_count > 0 ? payload_rows_at(&comms->missing, row->missing_from) : NULL;
	ret_comm->signatures =
		comms->signatures.count > 0 ? payload_rows_at(&comms->signatures, 0) : NULL;
}
