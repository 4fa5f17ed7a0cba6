// SPDX-License-Identifier: BSD-3-Clause
// tocsin-lane-bench [--json]: overhead of a lane over the verbs that it calls.
#include "micro.h"

#include <lib/clock.h>
#include <lib/rcu_thread.h>

#include <stdio.h>

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

// clang-format off
static const struct micro_row rows[] = {
	{"whole step as shipped, less ibv_poll_cq", micro_step_shipped, "the same by CLOCK_MONOTONIC", micro_step_monotonic, "ns", MICRO_TARGET_VALUE, 25},
	{"poll step, nothing to do, less ibv_poll_cq", micro_lane_idle, "ibv_poll_cq", micro_lane_poll_cq, "ns", MICRO_TARGET_VALUE, 25},
	{"post to callback, less raw verbs: alone", micro_lane_one, "the same in raw verbs", micro_lane_raw_one, "ns", MICRO_TARGET_VALUE, 60},
	{"post to callback, with a deadline", micro_lane_one_deadline, "the same in raw verbs", micro_lane_raw_one, "ns", MICRO_TARGET_VALUE, 60},
	{"post to callback, 16 at once", micro_lane_batch, "the same in raw verbs", micro_lane_raw_batch, "ns", MICRO_TARGET_VALUE, 60},
};
// clang-format on

int main(int argc, char **argv) {
	int status;

	if (rcu_thread_register("bench", clock_monotonic_ns()) != 0) {
		fprintf(stderr, "%s: RCU cannot start\n", argv[0]);
		return 1;
	}
	status = micro_run("dataplane", rows, COUNT_OF(rows), argc, argv);
	rcu_thread_unregister();
	return status;
}
