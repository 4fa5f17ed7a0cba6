// SPDX-License-Identifier: BSD-3-Clause
// tocsin-lane-bench [--json]: what a lane adds to the verbs it calls.
#include "micro.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

// clang-format off
static const struct micro_row rows[] = {
	{"poll step, nothing to do, less ibv_poll_cq", micro_lane_idle, "ibv_poll_cq", micro_lane_poll_cq, "ns", MICRO_TARGET_VALUE, 25},
	{"post to callback, less raw verbs: alone", micro_lane_one, "the same in raw verbs", micro_lane_raw_one, "ns", MICRO_TARGET_VALUE, 60},
	{"post to callback, with a deadline", micro_lane_one_deadline, "the same in raw verbs", micro_lane_raw_one, "ns", MICRO_TARGET_VALUE, 60},
	{"post to callback, 16 at once", micro_lane_batch, "the same in raw verbs", micro_lane_raw_batch, "ns", MICRO_TARGET_VALUE, 60},
};
// clang-format on

int main(int argc, char **argv) {
	return micro_run("dataplane", rows, COUNT_OF(rows), argc, argv);
}
