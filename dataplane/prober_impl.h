// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <dataplane/prober.h>

struct prober {
	const struct path_table *paths;
	const struct clock *clock;
	// The worker's.
	struct worker *worker;			 // who gave us the last request
	struct probe_run *runs[PROBER_RUNS_MAX]; // the first run_count
	uint32_t run_count;
};

bool prober_step(void *ctx, struct idle_found *found);
