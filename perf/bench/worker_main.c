// SPDX-License-Identifier: BSD-3-Clause
// tocsin-worker-bench [--json]: a worker with little or no work.
#include "micro.h"

#include <lib/clock.h>
#include <lib/rcu_thread.h>

#include <stdio.h>

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

// clang-format off
static const struct micro_row rows[] = {
	{"poll step, nothing to do", micro_worker_turn, "clock read", micro_clock_tsc, "ns", MICRO_TARGET_VALUE, 25},
	{"idle worker, adaptive", micro_worker_idle, "the same, window of 100 us", micro_worker_idle_window, "%", MICRO_TARGET_VALUE, 1},
	{"80 deadlines a second, adaptive", micro_worker_deadlines, "as many empty timeouts", micro_worker_empty_wakes, "%", MICRO_TARGET_VALUE, 1},
};
// clang-format on

int main(int argc, char **argv) {
	int status;

	if (rcu_thread_register("bench", clock_monotonic_ns()) != 0) {
		fprintf(stderr, "%s: RCU cannot start\n", argv[0]);
		return 1;
	}
	status = micro_run("worker", rows, COUNT_OF(rows), argc, argv);
	rcu_thread_unregister();
	return status;
}
