// SPDX-License-Identifier: BSD-3-Clause
// Private to this directory: standing probes of paths, what is remembered of them, and what is
// told.
//
// A probed path is a path that is probed now: a pair of a device with itself, of a neighbour, or of
// a visit. Its watch is the worker's from PROBER_REQUEST_WATCH to PROBER_EVENT_UNWATCHED, and
// follows the pair: another generation is another watch. Of those that are visited briefs stay.
#pragma once

#include "fabric/flows.h"
#include "fabric/gpu_path.h"
#include "fabric/inside.h"

#include <control/path_book.h>
#include <dataplane/watch.h>
#include <ras/memory.h>
#include <verdict/path_memory.h>
#include <verdict/probe_schedule.h>

#define PATH_BASELINES_SAVE_NS (300 * RAS_NS_PER_SEC)

enum probed_path_stage {
	PROBED_PATH_FREE,
	PROBED_PATH_BARE,    // no watch: there is no pair, or it is being asked for
	PROBED_PATH_WATCHED, //
	PROBED_PATH_LEAVING, // the worker was asked to give its watch back
};

struct probed_path {
	struct probing *probing;
	enum probed_path_stage stage;
	bool visit, self;
	bool seen;	// still wanted, in the look that goes on
	bool going;	// free as soon as the worker has given its watch back
	bool scheduled; // it has a place in the schedule
	bool lost_last; // so the next one is urgent
	bool refused;	// its device did not take a write, so there are none to this start
	uint32_t place; // of the probed path, its watch and its path in the schedule
	struct pairing_key key;
	// Of the last pair that was watched.
	uint32_t generation;
	uint64_t start; // of the peer's agent
	uint32_t mtu, flow_label, speed_mbps;
	enum device_responder responder;
	struct flows *flows;  // NULL: of a visit, or without memory
	struct gpu_path *gpu; // NULL: the peer shows no memory of a GPU, or as above
	uint64_t late_ns;     // answers from then on were sent again; 0: none is
	bool known;	      // there was a pair, the above is of it
	bool shares;	      // it uses the interface of the overlay, at either end
	struct watch watch;
	struct path_memory *memory;  // NULL: of a visit
	struct compact_stats *stats; // NULL: not of a visit
	uint64_t retried_ns;	     // what it lost was tried again
	bool begun;		     // with what was learnt before, if there was anything
	// Visits.
	struct pairing_waiter waiter;
	struct pairing_answer answer;
	bool waits, answered;
	bool probed; // it was, whatever came of it
	uint32_t tries, outcomes;
	uint64_t until_ns;
	// Since when it is known. What was seen before says nothing of the peer as it is now.
	uint64_t incarnation, incarnation_ns;
	uint32_t hung; // workers of the peer, a bit each, as its page was read last
	// What was told last.
	struct observation told;
	uint64_t told_ns;
};

// A visited path, kept between visits.
struct stats_entry {
	uint64_t peer; // 0: none
	uint32_t device;
	char peer_device[DEVICE_NAME_MAX + 1];
	struct compact_stats *stats;
	// How it was seen at the end of the last visit: in the middle of one nobody can tell.
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
	uint32_t probed_paths_used; // all that are used are in places below
	struct compact_table compact_table;
	struct path_book
		path_baselines; // what was learnt of paths, those of now as of the last save
	uint64_t path_baselines_save_ns;
	struct loop_timer tick, visit;
	struct loop_timer confirm; // a counter that may stand is to be read once more
	struct loop_job look;
	uint64_t tick_due_ns;
	// Of the view that the targets were taken from.
	uint64_t view_number, targets_ns;
	struct fabric_probe_counters counters;
	struct path_summary summaries[PROBE_PATHS_MAX]; // for the judgement
};

extern const struct ras_memory probing_memory;

// probing.c
int probing_create(struct fabric *fabric);
// No more probes; watches come back.
void probing_stop(struct fabric *fabric);
// Workers do not run any more.
void probing_destroy(struct fabric *fabric);
// Changes of pairs are looked at before the turn ends.
void probing_look(struct fabric *fabric);
// The pair's path is being taken away.
void probing_fabric_pair_gone(struct fabric *fabric, const struct fabric_pair *fabric_pair);
bool probing_holds(const struct fabric *fabric, const struct nic *nic);
bool probing_worker_event(struct fabric *fabric, const struct worker_record *record);

// probed_path.c
struct probed_path *probed_path_make(struct probing *probing, const struct pairing_key *key);
struct probed_path *probed_path_find(struct probing *probing, const struct pairing_key *key);
// Follows the pair of this generation, if it is in its lane.
void probed_path_follow(struct probed_path *probed_path, uint32_t generation);
void probed_path_unwatch(struct probed_path *probed_path);
// One more probe at once.
void probed_path_confirm(struct probed_path *probed_path);
// What it lost is tried again, each second, until it is lost no more.
void probed_path_retry(struct probed_path *probed_path, uint64_t now_ns);
// Unwatched, and out of the schedule.
void probed_path_rest(struct probed_path *probed_path);
// Unwatched and freed, at once or when the worker lets go.
void probed_path_drop(struct probed_path *probed_path);
void probed_path_given_back(struct probed_path *probed_path);
// What is known of it is forgotten: of an end that was cut short, whose watches never come back.
void probed_path_release(struct probed_path *probed_path);
// Whether the peer's GPU memory is read now; each second, and after its outcomes.
void probed_path_look_at_gpu(struct probed_path *probed_path);
void probed_path_outcome(struct probed_path *probed_path, const struct watch_outcome *outcome);

// visit.c: rotation.
void visits_start(struct probing *probing);
void visits_stop(struct probing *probing);
// Nobody is to be visited any more.
void visits_off(struct probing *probing);
// Whom to rotate over, when the view or the neighbours have changed.
void visits_targets(struct probing *probing, uint64_t now_ns);
// In a look, and each second.
void visits_look(struct probing *probing, uint64_t now_ns);

// compact_table.c
// Made if there is none; NULL without memory.
struct compact_stats *
compact_table_take(struct compact_table *compact_table, const struct pairing_key *key);
// A visit of it has ended.
void compact_table_visited(
	struct compact_table *compact_table,
	const struct pairing_key *key,
	enum observation_kind kind,
	uint64_t now_ns
);
// Those of whom `keep` says no.
void compact_table_sweep(
	struct compact_table *compact_table, bool (*keep)(void *ctx, uint64_t peer), void *ctx
);
void compact_table_free(struct compact_table *compact_table);

// path_baselines.c: what was learnt of paths, over restarts and changes of neighbours.
// The file of an earlier run, if there is one.
void path_baselines_read(struct probing *probing);
// A probed path that knows its pair begins with what was learnt on one like it; once.
void path_baselines_take(struct probed_path *probed_path);
// Of a probed path that goes.
void path_baselines_note(struct probed_path *probed_path);
// All of them, handed to the state directory.
void path_baselines_save(struct probing *probing, uint64_t now_ns);
// Each second.
void path_baselines_look(struct probing *probing, uint64_t now_ns);
void path_baselines_forget(struct probing *probing, uint64_t now_ns);

// observations.c
enum observation_responder observations_responder(enum device_responder responder);
void observations_judge(struct probing *probing, uint64_t now_ns);
void observations_visited(struct probed_path *probed_path, uint64_t now_ns);
// When a read that was not answered will be silence, if there is no pair by then; or RAS_NEVER.
uint64_t observations_cut_at(const struct probed_path *probed_path);

// paths.c: an overlay_contribute_fn.
bool probing_contribute(
	void *ctx, const struct ras_contribution *wanted, struct wire_writer *writer
);
void probing_numbers(const struct fabric *fabric, struct fabric_probe_counters *ret_counters);
