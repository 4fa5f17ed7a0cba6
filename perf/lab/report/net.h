// SPDX-License-Identifier: BSD-3-Clause
// The command net: the floors of this machine, each with the statistics of a latency.
#pragma once

#include "run/environment.h"
#include "run/floor.h"

struct json_t;

#define NET_JSON_SCHEMA "tocsin-perf-net/2"

// Run the command; argv[1] is its name. Returns the exit status.
int net_main(int argc, char **argv);

// Recompute all figures of a net file. Returns the errors of verify_load().
int net_verify(struct json_t *root, struct lab_why *why);
