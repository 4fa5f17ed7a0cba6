// SPDX-License-Identifier: BSD-3-Clause
// Private to this directory: standing probes of paths, their statistics, and the observations made
// from them.
//
// A probed path is a path that is being probed: of a device with itself, to a neighbour, or to a
// visited peer. The worker owns its watch from PROBER_REQUEST_WATCH to PROBER_EVENT_UNWATCHED. The
// watch follows the pair: another generation gets another watch. Visited paths keep compact
// statistics only.
#pragma once

#include "fabric/flows.h"
#include "fabric/gpu_path.h"
#include "fabric/inside.h"
#include "fabric/waits.h"

#include <control/path_book.h>
#include <dataplane/watch.h>
#include <ras/memory.h>
#include <verdict/path_memory.h>
#include <verdict/probe_schedule.h>

#define PATH_BASELINES_SAVE_NS (300 * RAS_NS_PER_SEC)

enum probed_path_stage {
	PROBED_PATH_FREE,
	PROBED_PATH_BARE,    // no watch: there is no pair, or one was requested
	PROBED_PATH_WATCHED, //
	PROBED_PATH_LEAVING, // the worker was asked to return the watch
};

struct probed_path {
	struct probing *probing;
	enum probed_path_stage stage;
	bool visit, self;
	bool seen;	// still wanted, in the current pass
	bool going;	// to be freed as soon as the worker returns the watch
	bool scheduled; // it is in the probe schedule
	bool lost_last; // the last probe was lost, so the next one is urgent
	bool refused;	// the peer refused a write: no writes until its agent restarts
	uint32_t place; // index of the probed path, its watch and its schedule entry
	struct pairing_key key;
	// Facts of the last watched pair.
	uint32_t generation;
	uint64_t start; // start counter of the peer's agent
	uint32_t mtu, flow_label, speed_mbps;
	enum device_responder responder;
	struct flows *flows;  // NULL: visited path, or no memory
	struct gpu_path *gpu; // NULL: the peer exposes no GPU page, or as for flows
	uint64_t late_ns;     // latency from which on an answer counts as resent; 0: none does
	bool known;	      // there was a pair, so the facts above are valid
	bool shares;	      // either end uses the interface of the overlay
	struct watch watch;
	struct path_memory *memory;  // NULL: visited path
	struct compact_stats *stats; // NULL: not a visited path
	uint64_t retried_ns;	     // time of the last retry of a lost size
	bool begun;		     // a stored baseline was looked up
	// Visits.
	struct pairing_waiter waiter;
	struct pairing_answer answer;
	bool waits, answered;
	bool probed; // at least one probe was answered or lost
	uint32_t tries, outcomes;
	uint64_t until_ns;
	// Incarnation of the peer, and since when it is known. Older statistics say nothing about
	// the present agent.
	uint64_t incarnation, incarnation_ns;
	// Wait of the peer's threads for a processor, as its page shows, and when it was read.
	uint64_t responder_wait_ns, responder_wait_at_ns;
	uint32_t hung; // bit mask of the peer's hung workers, as of the last read of its page
	// Last reported observation.
	struct observation told;
	uint64_t told_ns;
};

// Statistics of a visited path, kept between visits.
struct stats_entry {
	uint64_t peer; // 0: empty entry
	uint32_t device;
	char peer_device[DEVICE_NAME_MAX + 1];
	struct compact_stats *stats;
	// State at the end of the last visit. A visit under way gives no state yet.
	bool visited;
	enum observation_kind kind;
	uint64_t since_ns;
};

struct compact_table {
	struct stats_entry *entries; // open addressing
	uint32_t count, max;	     // max is 0 or a power of two
};

struct probing {
	struct fabric *fabric;
	struct probe_schedule *schedule;
	struct probed_path probed_paths[PROBE_PATHS_MAX];
	uint32_t probed_paths_used; // all used paths have a lower index
	struct compact_table compact_table;
	struct path_book
		path_baselines; // learnt baselines; those of current paths as of the last save
	uint64_t path_baselines_save_ns;
	struct loop_timer tick, visit;
	struct loop_timer confirm; // reads counters again that may be stalled
	struct loop_job look;
	uint64_t tick_due_ns;
	// View that the visit targets were taken from, and when to take them again.
	uint64_t view_number, targets_ns;
	struct fabric_probe_counters counters;
	struct waits waits;				// of this agent's threads for a processor
	struct path_summary summaries[PROBE_PATHS_MAX]; // scratch space for the judgement
};

extern const struct ras_memory probing_memory;

// probing.c
int probing_create(struct fabric *fabric);
// Stop probing. The workers return the watches.
void probing_stop(struct fabric *fabric);
// Free everything. The workers must have ended.
void probing_destroy(struct fabric *fabric);
// Schedule a pass over the pairs before the loop turn ends.
void probing_pass_soon(struct fabric *fabric);
// Return the watches of a pair whose path is being withdrawn.
void probing_pair_withdrawn(struct fabric *fabric, const struct fabric_pair *fabric_pair);
bool probing_uses_nic(const struct fabric *fabric, const struct nic *nic);
bool probing_worker_event(struct fabric *fabric, const struct worker_record *record);

// probing_waits.c
// Read the processor times of this agent's threads, at most once in WAITS_UPDATE_NS, and publish
// their mean wait. Call it before outcomes are consumed that the waits may explain.
void probing_update_waits(struct probing *probing, uint64_t now_ns);
// Keep the wait of the peer's threads, if the outcome has one. Such a wait delays answers only if
// the peer's process gives them.
void probed_path_take_wait(struct probed_path *probed_path, const struct watch_outcome *outcome);
// Return whether the responder may wait for a processor, and its last figure is old.
bool probed_path_wait_is_old(const struct probed_path *probed_path, uint64_t now_ns);

// probed_path.c
struct probed_path *probed_path_make(struct probing *probing, const struct pairing_key *key);
struct probed_path *probed_path_find(struct probing *probing, const struct pairing_key *key);
// Follow the pair of this generation, if it is in its lane.
void probed_path_follow(struct probed_path *probed_path, uint32_t generation);
void probed_path_unwatch(struct probed_path *probed_path);
// Send one more probe at once.
void probed_path_confirm(struct probed_path *probed_path);
// Try a lost size again, at most once a second.
void probed_path_retry(struct probed_path *probed_path, uint64_t now_ns);
// Stop watching the path and remove it from the schedule.
void probed_path_pause(struct probed_path *probed_path);
// Stop watching the path and free it, at once or when the worker returns the watch.
void probed_path_drop(struct probed_path *probed_path);
void probed_path_watch_ended(struct probed_path *probed_path);
// Free the path's statistics. After a forced end some watches never come back.
void probed_path_release(struct probed_path *probed_path);
// Decide whether the peer's GPU page is read now. Called each second and after each outcome.
void probed_path_plan_gpu_read(struct probed_path *probed_path);
void probed_path_outcome(struct probed_path *probed_path, const struct watch_outcome *outcome);

// visit.c: visits, in turn, of peers that are no neighbours.
void visits_start(struct probing *probing);
void visits_stop(struct probing *probing);
// Remove all visit targets.
void visits_disable(struct probing *probing);
// Update the visit targets when the view or the neighbours have changed.
void visits_update_targets(struct probing *probing, uint64_t now_ns);
// Advance the visits under way. Called in each pass.
void visits_advance(struct probing *probing, uint64_t now_ns);

// compact_table.c
// Return the statistics of a key and create them if needed. Returns NULL without memory.
struct compact_stats *
compact_table_get(struct compact_table *compact_table, const struct pairing_key *key);
// Store the result of an ended visit.
void compact_table_set_visit(
	struct compact_table *compact_table,
	const struct pairing_key *key,
	enum observation_kind kind,
	uint64_t now_ns
);
// Remove the entries of peers that `keep` rejects.
void compact_table_sweep(
	struct compact_table *compact_table, bool (*keep)(void *ctx, uint64_t peer), void *ctx
);
void compact_table_free(struct compact_table *compact_table);

// path_baselines.c: learnt baselines of paths, kept over restarts and changes of neighbours.
// Read the file of an earlier run, if there is one.
void path_baselines_read(struct probing *probing);
// Restore the baseline learnt on a like path. Once per probed path, when its pair is known.
void path_baselines_restore(struct probed_path *probed_path);
// Store the baseline of a probed path that ends.
void path_baselines_store(struct probed_path *probed_path);
// Store all baselines and hand them to the state directory.
void path_baselines_save(struct probing *probing, uint64_t now_ns);
// Save the baselines if that is due. Called each second.
void path_baselines_save_due(struct probing *probing, uint64_t now_ns);
void path_baselines_forget(struct probing *probing, uint64_t now_ns);

// observations.c
enum observation_responder observations_responder(enum device_responder responder);
void observations_judge(struct probing *probing, uint64_t now_ns);
void observations_report_visit(struct probed_path *probed_path, uint64_t now_ns);
// Return when an unanswered read counts as silence, unless there is a new pair by then; or
// RAS_NEVER.
uint64_t observations_cut_deadline_ns(const struct probed_path *probed_path);

// paths.c: implements overlay_contribute_fn.
bool probing_contribute(
	void *ctx, const struct ras_contribution *wanted, struct wire_writer *writer
);
void probing_numbers(const struct fabric *fabric, struct fabric_probe_counters *ret_counters);
