// SPDX-License-Identifier: BSD-3-Clause
// Plans of a control thread, carried out by a real worker with a real prober: how late, and
// whether all of them were.
#pragma once

#include <lib/clock.h>

#include <stdint.h>

#define PLANS_LOST_NS \
	UINT64_C(5000000000) // not carried out after so long: nothing wakes the worker

struct histogram;

struct plans_result {
	uint64_t planned, carried_out;
	uint64_t lost;	   // the worker slept past them; it was woken by hand
	uint64_t late_1ms; // carried out more than so much after they were due
	uint64_t late_10ms;
	uint64_t late_60ms;
	uint64_t most_late_ns;
	uint64_t blocks; // how often the worker slept
};

// Plans `count` probes that are due within 150 us, one to four at a time, most of them at the
// moment in which the worker goes to sleep. Lateness is recorded in *late_ns unless that is NULL.
// -errno of making the worker.
int plans_run(
	uint64_t count,
	const struct clock *clock,
	struct histogram *late_ns,
	struct plans_result *ret_result
);
