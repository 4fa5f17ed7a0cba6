// SPDX-License-Identifier: BSD-3-Clause
// What the cold and the hot half of a port share.
#pragma once

#include <dataplane/doorbell.h>
#include <dataplane/dpdk.h>
#include <dataplane/lane_port.h>

#include <stdalign.h>

struct port_op {
	struct op op;
	struct lane_port *port;
	struct port_op *next_free;
};

// A batch on its way: linked by op->next, which is nobody else's yet.
struct port_batch {
	struct op *first;
	uint64_t count;
};

struct lane_port {
	struct lane *lane;
	struct worker *worker;
	struct near near; // the worker's
	struct worker_poll poll;
	struct rte_ring *in;  // caller to worker: struct port_batch
	struct rte_ring *out; // worker to caller: struct op *
	// The caller's.
	alignas(64) struct port_op *pool;
	struct port_op *free;
	uint32_t taken, op_max;
	struct doorbell bell; // armed when the caller has seen all ends
	// The worker's.
	alignas(64) uint32_t under_way;
	bool ended; // the caller is to be rung after the step
};

// Hot.
bool lane_port_step(void *ctx, struct idle_found *found);
