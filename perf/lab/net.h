// SPDX-License-Identifier: BSD-3-Clause
// The command net: this machine's floors, each with the statistics of a latency. And yardsticks:
// the least of a few, beside results of other commands.
#pragma once

#include "environment.h"
#include "floor.h"

struct json_t;

#define NET_JSON_SCHEMA "tocsin-perf-net/1"

// The whole command; argv[1] is its name. Returns the exit status.
int net_main(int argc, char **argv);

// Computes all figures of a file of this schema once more; as verify_load().
int net_verify(struct json_t *root, struct lab_why *why);

// Measures each floor for some milliseconds and adds the least to the environment, as
// "floor_udp_ns"; what this machine has none of is left out.
void net_add_yardsticks(struct lab_environment *environment);
#define NET_YARDSTICKS_BYTES 88 // a line of 100 with its word
// "clock 17 ns, system call 66 ns ..."; "" if none is known.
void net_say_yardsticks(
	const struct lab_environment *environment, char text[static NET_YARDSTICKS_BYTES]
);
