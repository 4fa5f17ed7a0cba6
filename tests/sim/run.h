// SPDX-License-Identifier: BSD-3-Clause
// One run from options to result: the ring is formed, a scenario plays, all agree again.
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
	uint32_t hosts; // 0: as the scenario says
	uint64_t seed;
	uint64_t length_ns; // 0: as the scenario says
	struct fault faults[RUN_FAULTS_MAX];
	uint32_t fault_count;
	bool check;    // invariants
	bool remember; // see struct world_options
	bool young;    // all join through the seeds, and faults begin once there is one view
	bool explain;  // a broken one, with what led to it, on stderr
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

// 0, also if an invariant broke (the result says so), or -errno.
int run_play(const struct run_options *options, struct result *ret_result);
// The same in a process of its own, so that not even a crash of the core ends this one.
int run_play_apart(const struct run_options *options, struct result *ret_result);

// For scenarios: time passes until then, unless an invariant breaks.
void run_until(struct run *run, uint64_t until_ns);
// And until there is one view; the time it took, NaN if it did not come.
double run_await_one_view(struct run *run, uint64_t limit_ns);

// The arguments that play this again, without the program's name.
#define RUN_COMMAND_BYTES 16384
void run_command(const struct run_options *options, char text[static RUN_COMMAND_BYTES]);
