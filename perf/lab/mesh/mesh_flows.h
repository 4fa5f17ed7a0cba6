// SPDX-License-Identifier: BSD-3-Clause
// Several flows of a mesh of bw at once, measured after its matrix.
//
// Congestion: the pairs of one round transfer alone, one after the other, and then all at once.
// Incast: all other processes transfer to one process at once, and each process is the target once.
#pragma once

#include "mesh/mesh.h"

struct json_t;

// Rates from one process to its partner in the chosen round.
struct mesh_flow {
	uint32_t to;
	uint64_t alone_ns, together_ns; // time of MESH_UNIT_BYTES; 0: not measured
};

// Rates of all flows to one process.
struct mesh_incast {
	uint32_t flows;	     // measured ones
	double gbits;	     // sum of their rates
	uint64_t slowest_ns; // time of MESH_UNIT_BYTES in the slowest one
};

enum mesh_flow_kind { MESH_FLOW_ALONE, MESH_FLOW_TOGETHER, MESH_FLOW_INCAST };

// Allocate the results of the wanted measurements. Returns 0 or -ENOMEM.
int mesh_flows_create(struct mesh *mesh, bool congestion, bool incast);
// Fill in the pairs of the round with the most pairs between racks, where congestion is likely.
// Returns their number.
uint32_t mesh_flows_choose_round(const struct mesh *mesh, struct mesh_pair *ret_pairs);
// Store the rate of one flow, as the median time in which the flow transfers MESH_UNIT_BYTES.
void mesh_flows_store(
	struct mesh *mesh, enum mesh_flow_kind kind, uint32_t from, uint32_t to, uint64_t value_ns
);
// Print the tables of congestion and incast, at most 80 columns wide.
void mesh_flows_print(const struct mesh *mesh);
// Add "congestion" and "incast" to the JSON of a mesh. Returns 0 or -ENOMEM.
int mesh_flows_put(struct json_t *root, const struct mesh *mesh);
