// SPDX-License-Identifier: BSD-3-Clause
// The command policy: latency against processor time for every idle policy and every load.
//
// Each row is a run of `lat` with its own processes at both ends. The row is computed from the file
// of the run, which is part of the policy file.
#pragma once

#include "run/why.h"

#include <stdbool.h>
#include <stdint.h>

struct json_t;

#define POLICIES_JSON_SCHEMA "tocsin-perf-policy/1"
#define POLICIES_LOADS_MAX 8
#define POLICIES_ROWS_MAX 32 // four policies per load

struct policies_row {
	char policy[16];
	uint32_t rate; // operations per second with Poisson arrivals; 0: closed loop
	bool measured; // false: `why` has the reason
	char why[96];
	// Response times of an open loop, else round trips. NAN: too few samples.
	double p50_ns, p99_ns, max_ns;
	double cpu[2];		// share of a processor used by the workers of client and server
	double sleeps_per_s[2]; // sleeps of the workers by their idle policy
	bool saturated;
};

struct policies {
	uint32_t count;
	struct policies_row rows[POLICIES_ROWS_MAX];
};

// Compute a row from the JSON of a run, which is verified or new.
void policies_row_read(const struct json_t *root, struct policies_row *row);

// Convert a row to JSON. Return NULL if there is no memory.
struct json_t *policies_row_to_json(const struct policies_row *row);
// Print the rows to standard output.
void policies_print(const struct policies *policies);

// Run the command; argv[1] is its name. signal_fd is as in lab_session. Returns the exit status.
int policies_main(int argc, char **argv, int signal_fd);

// Recompute all rows of a policy file. Returns the errors of verify_load().
int policies_verify(struct json_t *root, struct lab_why *why);
