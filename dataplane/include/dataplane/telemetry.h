// SPDX-License-Identifier: BSD-3-Clause
// The counters of workers and lanes on DPDK's telemetry socket, for its tools:
//
//	dpdk-telemetry.py -f tocsin-NAME
//	--> /tocsin/worker			the names
//	--> /tocsin/worker,worker-1		the counters
//	--> /tocsin/lane,worker-1:mlx5_0
//
// Answered on DPDK's own thread. Control's calls; a name that is a prefix of another is no matter.
#pragma once

#include <dataplane/lane.h>
#include <dataplane/worker.h>

#define TELEMETRY_NAME_MAX 63
#define TELEMETRY_NAMES_MAX 256

// Once, when EAL runs. -errno of DPDK.
int telemetry_start(void);

// Both live until telemetry_remove(). -EINVAL (the name), -ENOSPC.
int telemetry_add_worker(const char *name, const struct worker *worker);
int telemetry_add_lane(const char *name, const struct lane *lane);
// When it returns nobody reads it any more. Unknown is fine.
void telemetry_remove(const void *object);
