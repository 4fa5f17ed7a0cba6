// SPDX-License-Identifier: BSD-3-Clause
// A mesh: latencies between all ordered pairs of several processes, as a matrix, and what stands
// out in it.
//
// Each pair meets once: its round is one of a set in which no process is twice, so that nobody is
// measured by two at a time. In a meeting one direction is measured after the other. Rounds are a
// 1-factorization of the complete graph; of an odd number of processes one rests in each.
//
// A matrix is what is drawn and what its file holds: cells[from * count + to], `from` measured.
// Values and nothing else: no thread, no socket.
#pragma once

#include "plan.h"
#include "why.h"

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

extern const uint32_t mesh_per_million[MESH_QUANTILES];

// A process.
struct mesh_node {
	bool joined, lost;
	char host[MESH_HOST_BYTES];    // of a mesh through agents the node's name
	char machine[MESH_HOST_BYTES]; // as its agent knows it; "": by the host's name
	char rack[MESH_HOST_BYTES];    // "": not known
	char device[DEVICE_NAME_MAX + 1];
	uint32_t processors; // that it may use
};

struct mesh_quantile {
	bool known; // else too few samples for an interval
	uint64_t value_ns, low_ns, high_ns;
};

struct mesh_cell {
	bool measured;
	char why[MESH_WHY_BYTES]; // why not; "" if nobody tried
	// What is kept of it.
	uint64_t count;
	struct histogram *kept; // of mesh_histogram_create()
	double taus[MESH_QUANTILES];
	// What it tells.
	uint64_t min_ns, max_ns;
	struct mesh_quantile quantiles[MESH_QUANTILES];
};

struct mesh {
	struct plan plan;
	uint32_t count; // of nodes
	struct mesh_node *nodes;
	struct mesh_cell *cells; // count * count; the diagonal is empty
	uint32_t at_once;	 // pairs that were measured at the same time, at most
	int64_t started_ns;	 // of the real-time clock
	uint64_t took_ns;
	char partial[LAB_WHY_BYTES]; // why it ended before its time, "" if it did not
};

// -ENOMEM; 2 to MESH_NODES_MAX.
int mesh_create(const struct plan *plan, uint32_t count, struct mesh *ret_mesh);
void mesh_release(struct mesh *mesh);
static inline struct mesh_cell *mesh_cell(const struct mesh *mesh, uint32_t from, uint32_t to) {
	return &mesh->cells[(size_t)from * mesh->count + to];
}
// Whether two processes of it have one machine, which serves both: figures are of a shared host.
bool mesh_is_shared_host(const struct mesh *mesh);

// What people call its processes: a host alone names its process; of several processes the number
// does, behind the host where there are more than one.
void mesh_name_processes(const struct mesh *mesh, char (*ret_names)[MESH_NAME_BYTES]);

// Of 0.8 %. -ENOMEM.
int mesh_histogram_create(struct histogram **ret_kept);
struct run_record;
// All samples of a run that is kept whole. -ENOMEM.
int mesh_samples_keep(struct run_record *times, struct histogram **ret_kept);
// Its figures, from what is kept.
void mesh_cell_compute(struct mesh_cell *cell);

// Rounds: `count` processes meet in so many.
uint32_t mesh_rounds(uint32_t count);
struct mesh_pair {
	uint32_t one, other;
};
// The disjoint pairs of a round; returns how many, at most count / 2.
uint32_t mesh_round(uint32_t count, uint32_t round, struct mesh_pair *ret_pairs);

// What stands out.
enum mesh_cause_kind {
	MESH_NODE,   // row and column of a process
	MESH_SOURCE, // its row only: where it begins
	MESH_TARGET, // its column only
	MESH_RACK,   // a block between two racks
	MESH_INSIDE, // a block inside of one
	MESH_RAIL,   // all that begins or ends at devices of one name
	MESH_PAIR,   // one cell alone
	MESH_CAUSE_KIND_COUNT,
};

struct mesh_cause {
	enum mesh_cause_kind kind;
	uint32_t one, other; // processes, or one process of each rack; of MESH_RAIL one that has it
	uint32_t cells, of;  // that stand out, of those that it could explain
	double ratio;	     // their median against that of all
};

struct mesh_summary {
	uint32_t wanted, measured;
	uint64_t median_ns, min_ns, max_ns; // of the medians of cells
	uint32_t outliers;
	struct mesh_cause causes[MESH_CAUSES_MAX];
	uint32_t cause_count, unexplained; // outliers that found no room among the causes
};

// -ENOMEM.
int mesh_summarize(const struct mesh *mesh, struct mesh_summary *ret_summary);
bool mesh_cell_stands_out(const struct mesh_summary *summary, const struct mesh_cell *cell);
// What explains a direction that stands out; NULL: it found no room among the causes.
const struct mesh_cause *mesh_cause_of(
	const struct mesh *mesh, const struct mesh_summary *summary, uint32_t from, uint32_t to
);
const char *mesh_cause_name(enum mesh_cause_kind kind);
// "process 3 (node4), from it and to it"; then with how many cells and by how much.
void mesh_cause_what(
	const struct mesh *mesh, const struct mesh_cause *cause, char *text, size_t size
);
void mesh_cause_say(
	const struct mesh *mesh, const struct mesh_cause *cause, char *text, size_t size
);
