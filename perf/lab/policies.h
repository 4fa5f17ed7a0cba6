// SPDX-License-Identifier: BSD-3-Clause
// The command policy: latency against processor time, for every policy of waiting and every load.
//
// Each row is a run of `lat` with processes of its own at both ends; what it tells follows from the
// run's own file, which is kept whole in the file of all.
#pragma once

#include "why.h"

#include <stdbool.h>
#include <stdint.h>

struct json_t;

#define POLICIES_JSON_SCHEMA "tocsin-perf-policy/1"
#define POLICIES_LOADS_MAX 8
#define POLICIES_ROWS_MAX 32 // four policies under each load

struct policies_row {
	char policy[16];
	uint32_t rate; // operations a second, arrivals by Poisson; 0: the next when one has ended
	bool measured; // else why not
	char why[96];
	// In response times of an open loop, else in round trips. NAN: too few samples.
	double p50_ns, p99_ns, max_ns;
	double cpu[2];		// share of a processor that the worker of client and server took
	double sleeps_per_s[2]; // of the worker by its policy
	bool saturated;
};

struct policies {
	uint32_t count;
	struct policies_row rows[POLICIES_ROWS_MAX];
};

// Of a run's JSON, which was verified or written by us.
void policies_row_read(const struct json_t *root, struct policies_row *row);

// NULL: no memory.
struct json_t *policies_row_to_json(const struct policies_row *row);
// Standard output.
void policies_print(const struct policies *policies);

// The whole command; argv[1] is its name. Returns the exit status. signal_fd as lab_session.
int policies_main(int argc, char **argv, int signal_fd);

// Computes all rows of a file of this schema once more; as verify_load().
int policies_verify(struct json_t *root, struct lab_why *why);
