// SPDX-License-Identifier: BSD-3-Clause
// Model of jobs that run and fail, in virtual time. Ranks compute, launch, start and complete
// operations in several communicators. The model reports what an agent would know.
//
// Each rank repeats three operations. The first is in the communicator of its node. The second is
// in that of the ranks with the same local rank on all nodes. The third is in that of all ranks. An
// operation completes when all its ranks have started it. Faults are configured in advance and
// start at their time.
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
	MODEL_KILLED,	 // the process was killed
	MODEL_HANGS,	 // the rank never starts the operation, and sleeps
	MODEL_FREEZES,	 // the process is stopped while it computes
	MODEL_STOPPED,	 // the process is stopped inside an operation
	MODEL_DEVICE,	 // the device does not start a launched operation
	MODEL_PATH,	 // a path between two nodes is cut, and this is known
	MODEL_LOST,	 // some ranks complete, others do not
	MODEL_MISMATCH,	 // the rank runs another operation
	MODEL_ORDER,	 // two ranks run two operations in different orders
	MODEL_SYMMETRIC, // no rank completes
	MODEL_STRAGGLES, // the rank computes twice as long as all others
	MODEL_COMPUTES,	 // a pause: the rank computes for `pause_ns`
	MODEL_DEBUGGED,	 // a pause: a debugger stops the rank for `pause_ns`
	MODEL_SERVES,	 // rank 0 broadcasts each request, and sleeps for `pause_ns` in between
	MODEL_READS,	 // a pause: the rank waits for input for `pause_ns`, and sleeps
	MODEL_IDLES,	 // all have completed, and nothing is launched for `pause_ns`
	MODEL_FAULTS,
};

struct job_model_config {
	uint32_t nodes, per_node;
	uint64_t seed;
	uint64_t compute_ns; // mean time of a step, ns
	enum model_fault fault;
	uint32_t rank;	    // rank with the fault
	uint64_t at_ns;	    // start of the fault, ns
	uint64_t pause_ns;  // length of a pause, ns; it repeats every `period_ns`
	uint64_t period_ns; // 0: once
	bool spins;	    // waiting ranks use the processor
	bool bursts;	    // some steps take up to a minute
	bool whole;	    // only the communicator of all ranks is reported
	uint8_t knows;	    // JOBS_KNOWS_* bits that are reported
};

struct job_model;

struct job_model *job_model_create(const struct job_model_config *config);
struct job_model *job_model_destroy(struct job_model *model);
void job_model_run(struct job_model *model, uint64_t until_ns);
uint32_t job_model_comms(const struct job_model *model);
// Report the ranks of one node, for all their communicators: at most `room` reports, ordered like
// rows. Returns their number.
uint32_t job_model_reports(
	const struct job_model *model,
	uint32_t node,
	struct jobs_rank_report *reports,
	uint32_t room
);
// Return the number of completed operations of all ranks.
uint64_t job_model_completed(const struct job_model *model);
// Return the known bad path, if there is one, with nodes numbered `first_node + n`.
bool job_model_pair(const struct job_model *model, uint64_t first_node, struct jobs_pair *ret_pair);

// Run all steps of jobs_judging at once. Returns 0 or -ENOMEM.
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
