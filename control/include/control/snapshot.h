// SPDX-License-Identifier: BSD-3-Clause
// What other threads (HTTP) may know of this agent besides its peers: the view and every counter
// of one moment, published by RCU.
//
// A reader is registered and online (<lib/rcu_thread.h>) while it reads, and takes the peers
// from <dataplane/peer_table.h> in the same breath; both are valid until its next quiescent state.
// The age of a snapshot tells whether the control thread still turns.
#pragma once

#include <control/congestion.h>
#include <control/counters.h>
#include <control/fabric.h>
#include <control/finding.h>
#include <control/jobhost.h>
#include <ras/payload.h>
#include <ras/ras.h>
#include <verdict/engine.h>

#include <stdint.h>

struct health;
struct overlay;

// Retired ones that readers may hold up before publishing is refused.
#define SNAPSHOTS_WAITING_MAX 64
#define SNAPSHOT_MISSING_MAX 64
#define SNAPSHOT_VERDICTS_MAX 256 // so many series at most: a scrape stays small
#define SNAPSHOT_PATHS_MAX 320	  // likewise; 16 rails, 2 log2 500 neighbours and itself

// A node with whom something is wrong, or that is in maintenance.
struct snapshot_verdict {
	char node[RAS_NAME_MAX + 1];
	enum verdict verdict;
	enum verdict_advice advice;
	enum finding_grade grade;
	bool maint;
	uint64_t since_ns;
	char reason[VERDICT_REASON_MAX + 1];
};

// A path that this node reads steadily.
struct snapshot_path {
	char peer[RAS_NAME_MAX + 1];
	struct ras_path_row row;
	struct fabric_gpu_path gpu;
};

struct snapshot {
	uint64_t at_ns;	   // 0: nothing was published yet
	uint64_t log_lost; // lines that could not be written
	char node[RAS_NAME_MAX + 1];
	struct ras_view view;
	bool alone; // though it remembers or expects others
	struct finding_sum finding;
	uint64_t ras_bytes; // memory of the core
	uint32_t links, links_ready;
	uint32_t expected, missing;				    // of the roster
	char missing_names[SNAPSHOT_MISSING_MAX][RAS_NAME_MAX + 1]; // the first of them
	bool judged;						    // there is a store of verdicts:
	struct verdict_counts verdicts;
	uint32_t grants;       // drains that are granted
	uint32_t withheld;     // nodes whose drain is not
	uint32_t verdict_rows; // at most SNAPSHOT_VERDICTS_MAX of them
	struct snapshot_verdict rows[SNAPSHOT_VERDICTS_MAX];
	uint32_t path_count; // at most SNAPSHOT_PATHS_MAX of them,
	uint32_t paths_left; // and how many more there are
	struct snapshot_path paths[SNAPSHOT_PATHS_MAX];
	uint32_t port_count;
	struct congestion_port ports[CONGESTION_PORTS_MAX];
	uint32_t job_count;
	uint32_t jobs_left; // processes of jobs beyond
	struct jobhost_job jobs[JOBHOST_JOBS_MAX];
	uint64_t values[COUNTERS_MAX];
};

struct snapshots;

// The control thread. All zero is published. -ENOMEM.
int snapshots_create(struct snapshots **ret_snapshots);
// The control thread, offline, when no reader is left. NULL is fine.
struct snapshots *snapshots_destroy(struct snapshots *snapshots);

// The control thread: the numbers of this moment.
void snapshot_take(
	const struct overlay *overlay,
	const struct health *health, // NULL: there is none
	const struct counter_sources *sources,
	uint64_t now_ns,
	struct snapshot *ret_snapshot
);

// The control thread, registered and online; takes a copy. -EAGAIN (a reader holds up what was
// before), -ENOMEM; then readers go on with the one that they have.
int snapshots_publish(struct snapshots *snapshots, const struct snapshot *snapshot);

// Readers.
const struct snapshot *snapshots_current(const struct snapshots *snapshots);
