// SPDX-License-Identifier: BSD-3-Clause
// A job on all nodes that fails in each way, at each level of information; checks the named
// causes.
#include "jobs.h"
#include "random.h"
#include "run.h"
#include "scenario_parts.h"

#include <math.h>
#include <stdio.h>

#define PER_NODE 8
#define FAULT_NS (10 * MODEL_SEC)
#define LOOKS 3 // for each fault, from different nodes
// After the fault; a straggler shows only after several operations.
#define SHOWN_NS (35 * MODEL_SEC)
// Beyond this size, only the communicator of all ranks is reported and only these faults are
// played. Such a run measures time.
#define NODES_WHOLE 2000
#define PLAY_WHOLE_FIRST 8
#define PLAY_WHOLE_END 11
#define EXTRA_BYTES 34 // overhead of an answer part besides its payload: item and answer headers

#define KNOWS_COUNTS (JOBS_KNOWS_STARTED | JOBS_KNOWS_COMPLETED)
#define KNOWS_ALL (KNOWS_COUNTS | JOBS_KNOWS_SIGNATURES | JOBS_KNOWS_PROCESS)

static const struct {
	enum model_fault fault;
	uint8_t knows;
	enum jobs_cause cause, other; // accepted causes
} plays[] = {
	{MODEL_KILLED, 0, JOBS_CAUSE_DEAD_MEMBER, JOBS_CAUSE_DEAD_MEMBER},
	{MODEL_HANGS, 0, JOBS_CAUSE_MISSING_ENTER, JOBS_CAUSE_MISSING_ENTER},
	{MODEL_DEVICE, 0, JOBS_CAUSE_NONE, JOBS_CAUSE_MISSING_ENTER},
	{MODEL_KILLED, KNOWS_COUNTS, JOBS_CAUSE_DEAD_MEMBER, JOBS_CAUSE_DEAD_MEMBER},
	{MODEL_DEVICE, KNOWS_COUNTS, JOBS_CAUSE_DEVICE_BEHIND, JOBS_CAUSE_DEVICE_BEHIND},
	{MODEL_PATH, KNOWS_COUNTS, JOBS_CAUSE_TRANSPORT, JOBS_CAUSE_TRANSPORT},
	{MODEL_MISMATCH, KNOWS_COUNTS, JOBS_CAUSE_SYMMETRIC, JOBS_CAUSE_SYMMETRIC},
	{MODEL_HEALTHY, KNOWS_ALL, JOBS_CAUSE_NONE, JOBS_CAUSE_NONE},
	{MODEL_KILLED, KNOWS_ALL, JOBS_CAUSE_DEAD_MEMBER, JOBS_CAUSE_DEAD_MEMBER},
	{MODEL_HANGS, KNOWS_ALL, JOBS_CAUSE_MISSING_ENTER, JOBS_CAUSE_MISSING_ENTER},
	{MODEL_FREEZES, KNOWS_ALL, JOBS_CAUSE_MISSING_ENTER, JOBS_CAUSE_MISSING_ENTER},
	{MODEL_STOPPED, KNOWS_ALL, JOBS_CAUSE_STOPPED_MEMBER, JOBS_CAUSE_STOPPED_MEMBER},
	{MODEL_DEVICE, KNOWS_ALL, JOBS_CAUSE_DEVICE_BEHIND, JOBS_CAUSE_DEVICE_BEHIND},
	{MODEL_PATH, KNOWS_ALL, JOBS_CAUSE_TRANSPORT, JOBS_CAUSE_TRANSPORT},
	{MODEL_LOST, KNOWS_ALL, JOBS_CAUSE_TRANSPORT, JOBS_CAUSE_TRANSPORT},
	{MODEL_MISMATCH, KNOWS_ALL, JOBS_CAUSE_MISMATCH, JOBS_CAUSE_MISMATCH},
	{MODEL_ORDER, KNOWS_ALL, JOBS_CAUSE_ORDERING, JOBS_CAUSE_ORDERING},
	{MODEL_SYMMETRIC, KNOWS_ALL, JOBS_CAUSE_SYMMETRIC, JOBS_CAUSE_SYMMETRIC},
	{MODEL_STRAGGLES, KNOWS_ALL, JOBS_CAUSE_STRAGGLER, JOBS_CAUSE_STRAGGLER},
};
#define PLAYS (sizeof(plays) / sizeof(plays[0]))

struct sums {
	uint32_t looks, right;
};

static double larger(double a, double b) {
	return isnan(a) || b > a ? b : a;
}

static void take_down(struct run *run, const struct jobs_outcome *outcome) {
	struct result *result = run->result;
	// Each rank is a member of three communicators.
	double comms = run->options->nodes > NODES_WHOLE ? 1 : 3;
	double ranks = comms * PER_NODE * run->options->nodes;
	double bytes = (double)outcome->payload_bytes + EXTRA_BYTES * (double)run->options->nodes;

	result->jobs_ranks = larger(result->jobs_ranks, outcome->ranks);
	result->jobs_ms_max = larger(result->jobs_ms_max, (double)outcome->took_ns / 1e6);
	result->jobs_rank_bytes = larger(result->jobs_rank_bytes, bytes / ranks);
	result->jobs_bytes = larger(result->jobs_bytes, (double)outcome->used_bytes_max);
	result->jobs_judge_s = larger(result->jobs_judge_s, outcome->judge_s);
}

// Query the jobs once. Returns false if the run must end.
static bool look(struct run *run, size_t play, struct sums *sums) {
	struct world *world = run->world;
	const struct jobs_outcome *outcome = jobs_outcome(world->jobs);
	bool right;

	if (!load_collect_now(world, world_draw_up(world), RAS_COLLECT_COMMS))
		return true;
	run_until(run, world_now(world) + 3 * WORLD_SEC);
	if (!outcome->done)
		return true;
	take_down(run, outcome);
	right = outcome->cause == plays[play].cause || outcome->cause == plays[play].other;
	sums->looks++;
	sums->right += right;
	if (!right)
		fprintf(stderr, "jobs: fault %d, %s told, %s is named: %s\n", plays[play].fault,
			plays[play].knows == KNOWS_ALL ? "all" : "some",
			jobs_cause_name(outcome->cause), outcome->words);
	return true;
}

static void play_one(struct run *run, size_t play, struct sums *sums) {
	struct world *world = run->world;
	struct job_model_config config = {
		.nodes = run->options->nodes,
		.per_node = PER_NODE,
		.seed = run->options->seed + play,
		.compute_ns = 400 * MODEL_MS,
		.fault = plays[play].fault,
		.rank = random_below(&world->random, run->options->nodes * PER_NODE),
		.at_ns = FAULT_NS,
		.spins = play % 2 == 0,
		.knows = plays[play].knows,
		.whole = run->options->nodes > NODES_WHOLE,
	};

	world->jobs = jobs_begin(&config);
	job_model_run(jobs_model(world->jobs), FAULT_NS + SHOWN_NS);
	for (uint32_t n = 0; n < LOOKS; n++) {
		if (!look(run, play, sums))
			break;
	}
	world->jobs = jobs_end(world->jobs);
}

void play_jobs(struct run *run) {
	bool whole = run->options->nodes > NODES_WHOLE;
	size_t first = whole ? PLAY_WHOLE_FIRST : 0, end = whole ? PLAY_WHOLE_END : PLAYS;
	struct sums sums = {0};

	for (size_t play = first; play < end; play++)
		play_one(run, play, &sums);
	run->result->jobs_looks = sums.looks;
	run->result->jobs_named_pct = 100.0 * sums.right / (sums.looks > 0 ? sums.looks : 1);
	if (sums.looks < LOOKS * (end - first) || sums.right * 100 < sums.looks * 99)
		invariants_break(
			run->world, 0, NET_NOBODY, "jobs: %u of %u looks named what it was",
			sums.right, sums.looks
		);
}
