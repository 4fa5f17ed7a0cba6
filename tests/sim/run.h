// SPDX-License-Identifier: BSD-3-Clause
// One run from options to result: form the ring, play the scenario, wait for one view.
#pragma once

#include "result.h"
#include "scenario.h"
#include "world.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define RUN_FAULTS_MAX 256

struct run_options {
	const struct scenario *scenario;
	const struct ras_profile *profile;
	uint32_t nodes;
	uint32_t hosts; // 0: chosen by the scenario
	uint64_t seed;
	uint64_t length_ns; // 0: chosen by the scenario
	struct fault faults[RUN_FAULTS_MAX];
	uint32_t fault_count;
	bool check;    // check the invariants
	bool remember; // see struct world_options
	bool young;    // all nodes join through the seeds, and faults begin once there is one view
	bool verdicts; // with listed faults: verdict engines on every node
	bool explain;  // print a broken invariant and its history on stderr
	bool progress; // on stderr
	FILE *trace;
};

struct run {
	const struct run_options *options;
	struct world *world;
	struct result *result;
	uint64_t length_ns;
	double wall_begin_s, cpu_begin_s;
	double wall_shown_s;
	bool shown;
};

// Play a run. Returns 0, also if an invariant broke (see the result), or -errno.
int run_play(const struct run_options *options, struct result *ret_result);
// Play a run in its own process, so that a crash of the core does not end the caller.
int run_play_apart(const struct run_options *options, struct result *ret_result);
// The same in two steps, so that several runs can be in progress. The result is consumed once.
struct run_apart {
	int pid;  // of the child
	int from; // read end of the pipe with the result
};
int run_apart_start(const struct run_options *options, struct run_apart *ret_apart);
int run_apart_wait(const struct run_apart *apart, struct result *ret_result);

// For scenarios: advance the time until then, unless an invariant breaks.
void run_until(struct run *run, uint64_t until_ns);
// Advance until all nodes have one view. Returns the time needed, or NaN after the limit.
double run_await_one_view(struct run *run, uint64_t limit_ns);

// Write the arguments that repeat this run, without the program's name.
#define RUN_COMMAND_BYTES 16384
void run_command(const struct run_options *options, char text[static RUN_COMMAND_BYTES]);
