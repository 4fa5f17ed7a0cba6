// SPDX-License-Identifier: BSD-3-Clause
// Mesh: the latencies between all ordered pairs of several processes as a matrix, and the outliers
// in this matrix. With the plan of bw its values are rates.
//
// A rate is kept as the time that MESH_UNIT_BYTES take. So a slow direction has high values in both
// kinds of mesh, and outliers and causes are found in the same way.
//
// Each pair meets once, and measures one direction after the other. Each round contains a process
// at most once, so that nobody takes part in two measurements at a time. The rounds are a
// 1-factorization of the complete graph; of an odd number of processes one pauses in each round.
//
// The matrix is the basis of pictures and files: cells[from * count + to], measured by `from`. This
// module contains data only, no threads and no sockets.
#pragma once

#include "run/plan.h"
#include "run/why.h"

#include <dataplane/device.h>
#include <lib/histogram.h>

#include <stdbool.h>
#include <stdint.h>

#define MESH_NODES_MAX 256u
#define MESH_QUANTILES 3 // p50, p90, p99
#define MESH_HOST_BYTES 64
#define MESH_NAME_BYTES (MESH_HOST_BYTES + 16)
#define MESH_WHY_BYTES 160
#define MESH_CAUSES_MAX 64
#define MESH_UNIT_BYTES (1u << 20)

extern const uint32_t mesh_per_million[MESH_QUANTILES];

// One process of the mesh.
struct mesh_node {
	bool joined, lost;
	// Name of the host; name of the node in a mesh through agents.
	char host[MESH_HOST_BYTES];
	// Identity from its agent; "": the host name identifies the machine.
	char machine[MESH_HOST_BYTES];
	char rack[MESH_HOST_BYTES]; // "": unknown
	char device[DEVICE_NAME_MAX + 1];
	uint32_t processors; // processors that the process may use
};

struct mesh_quantile {
	bool known; // false: too few samples for an interval
	uint64_t value_ns, low_ns, high_ns;
};

struct mesh_cell {
	bool measured;
	char why[MESH_WHY_BYTES]; // reason if not measured; "": nobody tried
	// Stored data.
	uint64_t count;
	struct histogram *kept; // from mesh_histogram_create()
	double taus[MESH_QUANTILES];
	// Figures computed from the stored data.
	uint64_t min_ns, max_ns;
	struct mesh_quantile quantiles[MESH_QUANTILES];
};

struct mesh_flow;
struct mesh_incast;

struct mesh {
	struct plan plan;
	uint32_t count; // of nodes
	struct mesh_node *nodes;
	struct mesh_cell *cells; // count * count; the diagonal is empty
	// One entry for each process, from mesh_flows_create(); NULL: not to be measured.
	struct mesh_flow *flows;
	struct mesh_incast *incasts;
	uint32_t at_once;	 // largest number of pairs measured at the same time
	uint32_t measured_again; // runs after the first one of their direction
	int64_t started_ns;	 // wall-clock time
	uint64_t took_ns;
	char partial[LAB_WHY_BYTES]; // reason of an early end; "": complete
};

// Create a mesh of 2 to MESH_NODES_MAX nodes. Returns 0 or -ENOMEM.
int mesh_create(const struct plan *plan, uint32_t count, struct mesh *ret_mesh);
void mesh_release(struct mesh *mesh);
static inline struct mesh_cell *mesh_cell(const struct mesh *mesh, uint32_t from, uint32_t to) {
	return &mesh->cells[(size_t)from * mesh->count + to];
}
static inline bool mesh_is_bandwidth(const struct mesh *mesh) {
	return mesh->plan.command == PLAN_BW;
}
// Return the rate in Gbit/s of a time that is not 0, for a mesh of bw.
static inline double mesh_gbits(uint64_t value_ns) {
	return MESH_UNIT_BYTES * 8.0 / (double)value_ns;
}
// Return true if two processes share a machine, so that figures include the competition for it.
bool mesh_is_shared_host(const struct mesh *mesh);

// Make the names shown for the processes. A process that is alone on its host has the host's name.
// Otherwise the name is the number of the process, with the host in front if there are several
// hosts.
void mesh_name_processes(const struct mesh *mesh, char (*ret_names)[MESH_NAME_BYTES]);

// Create the histogram of a cell; its buckets are 0.8 % wide. Returns 0 or -ENOMEM.
int mesh_histogram_create(struct histogram **ret_kept);
struct run_record;
// Copy all samples of a completely stored run, multiplied by `scale`, to a histogram. Returns 0 or
// -ENOMEM.
int mesh_samples_to_histogram(struct run_record *times, double scale, struct histogram **ret_kept);
// Compute the figures of a cell from its histogram.
void mesh_cell_compute(struct mesh_cell *cell);
// Add a run to a cell, and take ownership of its histogram. The run with the lowest median is kept,
// so a cell stands out only if it stands out in each of its runs.
void mesh_cell_add_run(struct mesh_cell *cell, struct histogram *kept, const double *taus);
// Return the number of directions that have been measured so far.
uint32_t mesh_count_measured(const struct mesh *mesh);

// Return the number of rounds after which each of `count` processes has met every other one.
uint32_t mesh_rounds(uint32_t count);
struct mesh_pair {
	uint32_t one, other;
};
// Fill in the disjoint pairs of a round. Returns their number, at most count / 2.
uint32_t mesh_round(uint32_t count, uint32_t round, struct mesh_pair *ret_pairs);

// Kinds of causes of outliers, by the cells that a cause covers.
enum mesh_cause_kind {
	MESH_NODE,	    // row and column of one process
	MESH_SOURCE,	    // row of one process: directions that begin there
	MESH_TARGET,	    // column of one process: directions that end there
	MESH_BETWEEN_RACKS, // block between two racks
	MESH_WITHIN_RACK,   // block inside one rack
	MESH_RAIL,	    // all directions that begin or end at devices of one name
	MESH_PAIR,	    // one single cell
	MESH_CAUSE_KIND_COUNT,
};

struct mesh_cause {
	enum mesh_cause_kind kind;
	// Processes, or one process of each rack; for MESH_RAIL one process with the device.
	uint32_t one, other;
	uint32_t cells, of; // outliers, and all cells that this cause would cover
	double ratio;	    // median of the covered outliers divided by the baseline
};

struct mesh_summary {
	uint32_t wanted, measured;
	uint64_t median_ns;	 // baseline: median of the cells that no cause of several explains
	uint64_t min_ns, max_ns; // of the medians of all cells
	uint32_t outliers;
	uint32_t undecided; // cells without an interval, or slow with one down to the baseline
	struct mesh_cause causes[MESH_CAUSES_MAX];
	uint32_t cause_count, unexplained; // unexplained: outliers beyond MESH_CAUSES_MAX causes
};

// Find the outliers and their causes. Returns 0 or -ENOMEM.
int mesh_summarize(const struct mesh *mesh, struct mesh_summary *ret_summary);
bool mesh_cell_is_outlier(const struct mesh_summary *summary, const struct mesh_cell *cell);
// Return the cause of an outlier, or NULL if it is among the unexplained ones.
const struct mesh_cause *mesh_cause_find(
	const struct mesh *mesh, const struct mesh_summary *summary, uint32_t from, uint32_t to
);
const char *mesh_cause_name(enum mesh_cause_kind kind);
// Format the subject of a cause ("process 3 (node4), from it and to it"). mesh_cause_format() adds
// the number of cells and the ratio.
void mesh_cause_format_subject(
	const struct mesh *mesh, const struct mesh_cause *cause, char *text, size_t size
);
void mesh_cause_format(
	const struct mesh *mesh, const struct mesh_cause *cause, char *text, size_t size
);
