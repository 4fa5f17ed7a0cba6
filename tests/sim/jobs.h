// SPDX-License-Identifier: BSD-3-Clause
// A job on all nodes: each agent reports its ranks, and the asking agent judges them.
#pragma once

#include <ras/collective.h>
#include <support/job_model.h>

#include <jobs/judge.h>

struct jobs;

struct jobs *jobs_begin(const struct job_model_config *config);
struct jobs *jobs_end(struct jobs *jobs);
struct job_model *jobs_model(struct jobs *jobs);

bool jobs_contribute(
	struct jobs *jobs,
	uint32_t node,
	const struct ras_contribution *wanted,
	struct wire_writer *writer
);
void jobs_collected(
	struct jobs *jobs, const struct ras_collective_result *result, uint64_t took_ns
);

// Result of the last query.
struct jobs_outcome {
	bool done;
	enum jobs_cause cause; // of the communicators that do not wait for another one
	enum jobs_grade grade;
	uint32_t ranks; // of the largest communicator
	uint64_t took_ns, payload_bytes, used_bytes_max;
	double judge_s;
	char words[JOBS_SENTENCE_BYTES];
};

const struct jobs_outcome *jobs_outcome(const struct jobs *jobs);
