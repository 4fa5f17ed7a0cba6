// SPDX-License-Identifier: BSD-3-Clause
// Snapshot of this agent for other threads (HTTP): the view and all counters at one moment,
// published by RCU.
//
// A reader is registered and online (<lib/rcu_thread.h>) while it reads. It reads the peers from
// <dataplane/peer_table.h> in the same critical section. Snapshot and peers are valid until the
// reader's next quiescent state. An old snapshot means that the control thread hangs.
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

// Retired snapshots still held by readers; at this number publishing fails.
#define SNAPSHOTS_WAITING_MAX 64
#define SNAPSHOT_MISSING_MAX 64
#define SNAPSHOT_VERDICTS_MAX 256 // limits the number of series, so that a scrape stays small
// limits the number of series, too: 16 rails, each to 2 log2 500 neighbours and to itself
#define SNAPSHOT_PATHS_MAX 320

// A node with a problem, or in maintenance.
struct snapshot_verdict {
	char node[RAS_NAME_MAX + 1];
	enum verdict verdict;
	enum verdict_advice advice;
	enum finding_grade grade;
	bool maint;
	uint64_t since_ns;
	char reason[VERDICT_REASON_MAX + 1];
};

// The finding about this node itself.
struct snapshot_self {
	enum finding_grade grade;
	enum verdict_advice advice, would;
	bool maint;
	char verdict[VERDICT_REASON_MAX + 1];
	char reason[VERDICT_REASON_MAX + 1];
	char evidence[VERDICT_EVIDENCE_MAX + 1];
};

// A path that this node probes steadily.
struct snapshot_path {
	char peer[RAS_NAME_MAX + 1];
	struct ras_path_row row;
	struct fabric_gpu_path gpu;
};

struct snapshot {
	uint64_t at_ns;	   // 0: no snapshot published yet
	uint64_t log_lost; // log lines that could not be written
	char node[RAS_NAME_MAX + 1];
	struct ras_view view;
	bool alone; // a ring of one, although it remembers or expects other members
	struct cluster_finding finding;
	uint64_t ras_bytes; // memory of the protocol core
	uint32_t links, links_ready;
	uint32_t expected, missing;				    // numbers of roster nodes
	char missing_names[SNAPSHOT_MISSING_MAX][RAS_NAME_MAX + 1]; // the first missing ones
	bool judged; // the agent has a verdict store; the fields below up to `rows` are valid
	struct verdict_counts verdicts;
	uint32_t grants;    // granted drains
	uint32_t withheld;  // nodes whose drain is withheld
	bool observes_only; // [health] act = no
	struct snapshot_self own;
	uint64_t maint_age_max_ns; // age of the oldest known order of maintenance; 0: none
	uint32_t verdict_rows;	   // entries of `rows`
	struct snapshot_verdict rows[SNAPSHOT_VERDICTS_MAX];
	uint32_t path_count; // entries of `paths`
	uint32_t paths_left; // paths that did not fit
	struct snapshot_path paths[SNAPSHOT_PATHS_MAX];
	uint32_t port_count;
	struct congestion_port ports[CONGESTION_PORTS_MAX];
	uint32_t job_count;
	uint32_t jobs_left; // job processes beyond the jobs below
	struct jobhost_job jobs[JOBHOST_JOBS_MAX];
	uint64_t values[COUNTERS_MAX];
};

struct snapshots;

// Create the store; its first snapshot is all zero. Returns 0 or -ENOMEM. Control thread only.
int snapshots_create(struct snapshots **ret_snapshots);
// Destroy the store, which may be NULL. Control thread only, offline, after the last reader ended.
struct snapshots *snapshots_destroy(struct snapshots *snapshots);

// Fill a snapshot with the current state. Control thread only.
void snapshot_take(
	const struct overlay *overlay,
	const struct health *health, // NULL: no verdict store
	const struct counter_sources *sources,
	uint64_t now_ns,
	struct snapshot *ret_snapshot
);

// Publish a copy of the snapshot. Returns 0, -EAGAIN (a reader still holds old snapshots) or
// -ENOMEM; on error readers keep the previous snapshot. Control thread only, registered and online.
int snapshots_publish(struct snapshots *snapshots, const struct snapshot *snapshot);

// Return the current snapshot, for an online reader.
const struct snapshot *snapshots_current(const struct snapshots *snapshots);
