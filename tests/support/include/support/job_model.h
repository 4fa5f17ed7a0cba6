// SPDX-License-Identifier: BSD-3-Clause
// Jobs as they run and fail, in virtual time: ranks that compute, launch, start and complete
// operations in several communicators, and what an agent would know of them.
//
// Each rank runs the same steps for ever: an operation in the communicator of its node, one in that
// of the ranks with its place on all nodes, and one in that of all. An operation completes when all
// ranks have started it. Faults are set beforehand and begin at their time.
#pragma once

#include <jobs/judge.h>
#include <jobs/report.h>
#include <stdbool.h>
#include <stdint.h>

#define MODEL_MS UINT64_C(1000000)
#define MODEL_SEC (1000 * MODEL_MS)
#define MODEL_TICK_NS (50 * MODEL_MS)

enum model_fault {
	MODEL_HEALTHY,
	MODEL_KILLED,	 // the process is gone
	MODEL_HANGS,	 // it never comes, and sleeps
	MODEL_FREEZES,	 // it is stopped while it computes
	MODEL_STOPPED,	 // it is stopped inside an operation
	MODEL_DEVICE,	 // its device does not start what was launched
	MODEL_PATH,	 // a path between two nodes is cut, and known to be
	MODEL_LOST,	 // some ranks complete, others do not
	MODEL_MISMATCH,	 // it runs another operation
	MODEL_ORDER,	 // two ranks run two operations in different orders
	MODEL_SYMMETRIC, // none completes
	MODEL_STRAGGLES, // it computes twice as long as all others
	MODEL_COMPUTES,	 // a pause: it computes for `pause_ns`
	MODEL_DEBUGGED,	 // a pause: a debugger holds it for `pause_ns`
	MODEL_SERVES,	 // rank 0 broadcasts when there is a request, and sleeps for `pause_ns`
	MODEL_IDLES,	 // all have completed, and nothing is launched for `pause_ns`
	MODEL_FAULTS,
};

struct job_model_config {
	uint32_t nodes, per_node;
	uint64_t seed;
	uint64_t compute_ns; // mean of a step
	enum model_fault fault;
	uint32_t rank;	    // that the fault is of
	uint64_t at_ns;	    // when it begins
	uint64_t pause_ns;  // and ends, if it is a pause; it comes again each `period_ns`
	uint64_t period_ns; // 0: once
	bool spins;	    // who waits uses the processor
	bool bursts;	    // some steps take up to a minute
	bool whole;	    // of its communicators only that of all ranks is told
	uint8_t knows;	    // JOBS_KNOWS_* bits that are told
};

struct job_model;

struct job_model *job_model_create(const struct job_model_config *config);
struct job_model *job_model_destroy(struct job_model *model);
void job_model_run(struct job_model *model, uint64_t until_ns);
uint32_t job_model_comms(const struct job_model *model);
// Reports of the ranks of one node, of all their communicators; at most `room`, ordered as rows.
uint32_t job_model_reports(
	const struct job_model *model,
	uint32_t node,
	struct jobs_rank_report *reports,
	uint32_t room
);
// Operations of all ranks that have completed so far.
uint64_t job_model_completed(const struct job_model *model);
// The bad path that is known, if there is one: of nodes `first_node + n`.
bool job_model_pair(const struct job_model *model, uint64_t first_node, struct jobs_pair *ret_pair);

// All steps at once. -ENOMEM.
static inline int jobs_judge(const struct jobs_snapshot *look, struct jobs_finding *ret_findings) {
	struct jobs_judging *judging;
	int err = jobs_judging_create(look, ret_findings, &judging);

	if (err != 0)
		return err;
	while (!jobs_judging_step(judging, JOBS_STEP_RANKS)) {
	}
	jobs_judging_destroy(judging);
	return 0;
}
