// SPDX-License-Identifier: BSD-3-Clause
// The network of ras_world.h: connections and their items in flight.
#pragma once

#include "control/ras/ras_world.h"

// A connection has two ends: 0 opened it, 1 accepted it.
struct world_conn {
	uint32_t nodes[2];
	uint32_t handles[2];
	bool live[2]; // the core at that end knows the handle
	bool wanting[2];
	uint32_t items; // number of items in flight
};

extern const struct ras_ops world_ops; // of a node; ctx is struct world_node

// Notify one end, after the delay, that its connection has ended.
void world_conn_end(
	struct world *world, uint32_t conn, uint32_t end, enum ras_cause cause, uint64_t delay_ns
);
// Notify the end that it may send again.
void world_conn_writable(struct world *world, uint32_t conn, uint32_t end);
void world_items_free(struct world *world);
