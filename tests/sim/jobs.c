// SPDX-License-Identifier: BSD-3-Clause
// The agents' share of COMMS and the work of the asking agent, with the code of control/.
#include "jobs.h"

#include <lib/clock.h>
#include <lib/must.h>
#include <lib/wire.h>
#include <ras/payload.h>

#include <inttypes.h>
#include <jobs/share.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REPORTS_MAX 256 // reports of one node

struct jobs {
	struct job_model *model;
	struct jobs_rank_report reports[REPORTS_MAX];
	struct jobs_row row;
	struct jobs_wait_history *book;
	size_t used_bytes, used_bytes_max;
	struct jobs_outcome outcome;
};

static void *allocate(void *ctx, size_t size) {
	struct jobs *jobs = ctx;

	jobs->used_bytes += size;
	if (jobs->used_bytes > jobs->used_bytes_max)
		jobs->used_bytes_max = jobs->used_bytes;
	return calloc(1, size);
}

static void release(void *ctx, void *memory, size_t size) {
	struct jobs *jobs = ctx;

	if (memory != NULL)
		jobs->used_bytes -= size;
	free(memory);
}

static struct ras_memory memory_of(struct jobs *jobs) {
	return (struct ras_memory){.allocate = allocate, .release = release, .ctx = jobs};
}

struct jobs *jobs_begin(const struct job_model_config *config) {
	struct jobs *jobs = calloc(1, sizeof(*jobs));
	struct ras_memory memory;

	must(jobs != NULL);
	memory = memory_of(jobs);
	jobs->model = job_model_create(config);
	must(jobs_wait_history_create(&memory, &jobs->book) == 0);
	return jobs;
}

struct jobs *jobs_end(struct jobs *jobs) {
	if (jobs == NULL)
		return NULL;
	jobs_wait_history_destroy(jobs->book);
	must(jobs->used_bytes == 0);
	job_model_destroy(jobs->model);
	free(jobs);
	return NULL;
}

struct job_model *jobs_model(struct jobs *jobs) {
	return jobs->model;
}

bool jobs_contribute(
	struct jobs *jobs,
	uint32_t node,
	const struct ras_contribution *wanted,
	struct wire_writer *writer
) {
	const struct jobs_rank_report *order[REPORTS_MAX];
	uint32_t count = job_model_reports(jobs->model, node, jobs->reports, REPORTS_MAX);

	must(wanted->part == 0);
	for (uint32_t n = 0; n < count; n++)
		order[n] = &jobs->reports[n];
	for (uint32_t n = 0, length; n < count; n += length) {
		length = jobs_row_length(order + n, count - n);
		jobs_row_make(order + n, length, &jobs->row);
		must(ras_comm_put(writer, &jobs->row.comm) == 0);
	}
	return false;
}

static void node_name(void *ctx, uint64_t node, char *text, uint32_t size) {
	(void)ctx;
	snprintf(text, size, "#%08" PRIx32, (uint32_t)node);
}

// Return the worst finding, the first one of several: a communicator that waits for another one
// is only a victim.
static void find_outcome(
	struct jobs *jobs, const struct jobs_snapshot *look, const struct jobs_finding *findings
) {
	const struct jobs_name_resolver words = {.node_name = node_name};
	struct jobs_outcome *outcome = &jobs->outcome;

	for (uint32_t n = 0; n < look->comm_count; n++) {
		if (look->comms[n].rank_count > outcome->ranks)
			outcome->ranks = look->comms[n].rank_count;
		if (findings[n].cause == JOBS_CAUSE_NONE || findings[n].via != JOBS_NOBODY ||
		    (outcome->cause != JOBS_CAUSE_NONE && findings[n].grade <= outcome->grade))
			continue;
		outcome->cause = findings[n].cause;
		outcome->grade = findings[n].grade;
		jobs_describe_finding(look, n, &findings[n], &words, outcome->words);
	}
}

static void judge(struct jobs *jobs, struct ras_comms *comms, const struct ras_memory *memory) {
	uint32_t count = ras_comms_settle(comms);
	struct ras_merged_comm *merged = allocate(jobs, (count + 1) * sizeof(*merged));
	struct jobs_finding *findings = allocate(jobs, (count + 1) * sizeof(*findings));
	struct jobs_pair pair;
	struct jobs_snapshot look = {
		.comms = merged,
		.comm_count = count,
		.pairs = &pair,
		.book = jobs->book,
		.memory = memory,
	};

	for (uint32_t n = 0; n < count; n++) {
		ras_comms_at(comms, n, &merged[n]);
		jobs_wait_history_add(jobs->book, &merged[n]);
	}
	if (count > 0 && job_model_pair(jobs->model, 0, &pair)) {
		// Set the overlay identifiers of the two nodes: the nodes of the first and of the
		// last rank.
		pair.node = merged[count - 1].ranks[0].node;
		pair.peer = merged[count - 1].ranks[merged[count - 1].rank_count - 1].node;
		look.pair_count = 1;
	}
	must(jobs_judge(&look, findings) == 0);
	find_outcome(jobs, &look, findings);
	release(jobs, findings, (count + 1) * sizeof(*findings));
	release(jobs, merged, (count + 1) * sizeof(*merged));
}

void jobs_collected(
	struct jobs *jobs, const struct ras_collective_result *result, uint64_t took_ns
) {
	struct ras_memory memory = memory_of(jobs);
	struct ras_collected_cursor cursor = {0};
	struct ras_collected_part part;
	struct ras_comms *comms;
	struct clock clock;
	uint64_t begin_ns;

	clock_init_monotonic(&clock);
	begin_ns = clock_now_ns(&clock);
	jobs->outcome = (struct jobs_outcome){.done = true, .took_ns = took_ns};
	must(ras_comms_create(&memory, &comms) == 0);
	while (ras_collected_next(result->collected, &cursor, &part)) {
		jobs->outcome.payload_bytes += part.size;
		must(ras_comms_add(comms, &part) == 0);
	}
	judge(jobs, comms, &memory);
	ras_comms_destroy(comms);
	jobs->outcome.used_bytes_max = jobs->used_bytes_max;
	jobs->outcome.judge_s = (double)(clock_now_ns(&clock) - begin_ns) / 1e9;
}

const struct jobs_outcome *jobs_outcome(const struct jobs *jobs) {
	return &jobs->outcome;
}
