// SPDX-License-Identifier: BSD-3-Clause
// Offers the counters of workers and lanes on DPDK's telemetry socket:
//
//	dpdk-telemetry.py -f tocsin-NAME
//	--> /tocsin/worker			the names
//	--> /tocsin/worker,worker-1		the counters
//	--> /tocsin/lane,worker-1:mlx5_0
//
// DPDK's own thread answers. The control thread makes the calls below. One name may be a prefix of
// another.
#pragma once

#include <dataplane/lane.h>
#include <dataplane/worker.h>

#define TELEMETRY_NAME_MAX 63
#define TELEMETRY_NAMES_MAX 256

// Register the commands, once, while EAL runs. Returns -errno of DPDK.
int telemetry_start(void);

// Add an object and its name; both must live until telemetry_remove(). Returns -EINVAL (the name)
// or -ENOSPC.
int telemetry_add_worker(const char *name, const struct worker *worker);
int telemetry_add_lane(const char *name, const struct lane *lane);
// Remove an object. After the return no thread reads it. An unknown object is fine.
void telemetry_remove(const void *object);
