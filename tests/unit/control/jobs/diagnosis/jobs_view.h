// SPDX-License-Identifier: BSD-3-Clause
// From a simulated job to findings, with the real steps: rows, parts, merge, judgement.
#pragma once

#include <support/job_model.h>

struct jobs_view {
	struct ras_comms *merged;
	struct ras_merged_comm *comms;
	struct jobs_finding *findings;
	uint32_t count;
	struct jobs_pair pair;
	struct jobs_snapshot look;
	size_t bytes; // of all parts
};

#define VIEW_FIRST_NODE 100

// Take a look at all nodes of the model; `book` may be NULL.
void jobs_view_take(
	struct jobs_view *view,
	const struct job_model *model,
	uint32_t nodes,
	const struct jobs_limits *limits,
	struct jobs_wait_history *book
);
void jobs_view_drop(struct jobs_view *view);
void jobs_view_say(const struct jobs_view *view, uint32_t n, char text[static JOBS_SENTENCE_BYTES]);
extern const struct ras_memory jobs_view_memory;
