// SPDX-License-Identifier: BSD-3-Clause
// The command net: the floors of this machine, each with the statistics of a latency. Other
// commands show the minima of some floors beside their results; these are called yardsticks.
#pragma once

#include "environment.h"
#include "floor.h"

struct json_t;

#define NET_JSON_SCHEMA "tocsin-perf-net/1"

// Run the command; argv[1] is its name. Returns the exit status.
int net_main(int argc, char **argv);

// Recompute all figures of a net file. Returns the errors of verify_load().
int net_verify(struct json_t *root, struct lab_why *why);

// Measure each yardstick for some milliseconds and add its minimum to the environment, for example
// as "floor_udp_ns". A floor that this machine lacks is left out.
void net_add_yardsticks(struct lab_environment *environment);
#define NET_YARDSTICKS_BYTES 88 // length of a line without its label
// Format the yardsticks: "clock 17 ns, system call 66 ns ..."; "" if none is known.
void net_format_yardsticks(
	const struct lab_environment *environment, char text[static NET_YARDSTICKS_BYTES]
);
