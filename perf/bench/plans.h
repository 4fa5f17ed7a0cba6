// SPDX-License-Identifier: BSD-3-Clause
// Plans of a control thread, executed by a real worker with a real prober: measures how late they
// are, and whether any is lost.
#pragma once

#include <lib/clock.h>

#include <stdint.h>

#define PLANS_LOST_NS \
	UINT64_C(5000000000) // a plan that is not executed after this time counts as lost

struct histogram;

struct plans_result {
	uint64_t planned, carried_out;
	uint64_t lost;	   // the worker slept past them and had to be woken
	uint64_t late_1ms; // executed more than 1 ms late
	uint64_t late_10ms;
	uint64_t late_60ms;
	uint64_t most_late_ns;
	uint64_t blocks; // number of sleeps of the worker
};

// Plan `count` probes that are due within 150 us, one to four at a time. Most are planned when the
// worker is about to sleep. Record the lateness in *late_ns unless it is NULL. Returns 0, or the
// -errno of creating the worker.
int plans_run(
	uint64_t count,
	const struct clock *clock,
	struct histogram *late_ns,
	struct plans_result *ret_result
);
