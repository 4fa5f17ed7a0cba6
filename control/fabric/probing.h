// SPDX-License-Identifier: BSD-3-Clause
// Private to this directory: standing probes of paths, what is remembered of them, and what is
// told.
//
// A trail is a path that is probed now: a pair of a device with itself, of a neighbour, or of a
// visit. Its watch is the worker's from PROBER_REQUEST_WATCH to PROBER_EVENT_UNWATCHED, and follows
// the pair: another generation is another watch. Of those that are visited briefs stay.
#pragma once

#include "fabric/flows.h"
#include "fabric/gpu_path.h"
#include "fabric/inside.h"

#include <control/path_book.h>
#include <dataplane/watch.h>
#include <ras/memory.h>
#include <verdict/path_memory.h>
#include <verdict/probe_schedule.h>

#define PASTS_SAVE_NS (300 * RAS_NS_PER_SEC)

enum trail_stage {
	TRAIL_FREE,
	TRAIL_BARE,    // no watch: there is no pair, or it is being asked for
	TRAIL_WATCHED, //
	TRAIL_LEAVING, // the worker was asked to give its watch back
};

struct trail {
	struct probing *probing;
	enum trail_stage stage;
	bool visit, self;
	bool seen;	// still wanted, in the look that goes on
	bool going;	// free as soon as the worker has given its watch back
	bool scheduled; // it has a place in the schedule
	bool lost_last; // so the next one is urgent
	bool refused;	// its device did not take a write, so there are none to this start
	uint32_t place; // of the trail, its watch and its path in the schedule
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
	struct path_memory *memory; // NULL: of a visit
	struct path_brief *brief;   // NULL: not of a visit
	uint64_t retried_ns;	    // what it lost was tried again
	bool begun;		    // with what was learnt before, if there was anything
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
	struct sight told;
	uint64_t told_ns;
};

// A visited path, kept between visits.
struct brief_entry {
	uint64_t peer; // 0: none
	uint32_t device;
	char peer_device[DEVICE_NAME_MAX + 1];
	struct path_brief *brief;
	// How it was seen at the end of the last visit: in the middle of one nobody can tell.
	bool visited;
	enum sight_kind kind;
	uint64_t since_ns;
};

struct briefs {
	struct brief_entry *entries; // open addressing
	uint32_t count, max;	     // max is 0 or a power of two
};

struct probing {
	struct fabric *fabric;
	struct probe_schedule *schedule;
	struct trail trails[PROBE_PATHS_MAX];
	uint32_t trails_used; // all that are used are in places below
	struct briefs briefs;
	struct path_book pasts; // what was learnt of paths, those of now as of the last save
	uint64_t pasts_save_ns;
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
void probing_bond_gone(struct fabric *fabric, const struct bond *bond);
bool probing_holds(const struct fabric *fabric, const struct nic *nic);
bool probing_worker_event(struct fabric *fabric, const struct worker_record *record);

// trail.c
struct trail *trail_make(struct probing *probing, const struct pairing_key *key);
struct trail *trail_find(struct probing *probing, const struct pairing_key *key);
// Follows the pair of this generation, if it is in its lane.
void trail_follow(struct trail *trail, uint32_t generation);
void trail_unwatch(struct trail *trail);
// One more probe at once.
void trail_confirm(struct trail *trail);
// What it lost is tried again, each second, until it is lost no more.
void trail_retry(struct trail *trail, uint64_t now_ns);
// Unwatched, and out of the schedule.
void trail_rest(struct trail *trail);
// Unwatched and freed, at once or when the worker lets go.
void trail_drop(struct trail *trail);
void trail_given_back(struct trail *trail);
// Whether the peer's GPU memory is read now; each second, and after its outcomes.
void trail_look_at_gpu(struct trail *trail);
void trail_outcome(struct trail *trail, const struct watch_outcome *outcome);

// visit.c: rotation.
void visits_start(struct probing *probing);
void visits_stop(struct probing *probing);
// Nobody is to be visited any more.
void visits_off(struct probing *probing);
// Whom to rotate over, when the view or the neighbours have changed.
void visits_targets(struct probing *probing, uint64_t now_ns);
// In a look, and each second.
void visits_look(struct probing *probing, uint64_t now_ns);

// brief.c
// Made if there is none; NULL without memory.
struct path_brief *briefs_take(struct briefs *briefs, const struct pairing_key *key);
// A visit of it has ended.
void briefs_visited(
	struct briefs *briefs, const struct pairing_key *key, enum sight_kind kind, uint64_t now_ns
);
// Those of whom `keep` says no.
void briefs_sweep(struct briefs *briefs, bool (*keep)(void *ctx, uint64_t peer), void *ctx);
void briefs_free(struct briefs *briefs);

// pasts.c: what was learnt of paths, over restarts and changes of neighbours.
// The file of an earlier run, if there is one.
void pasts_read(struct probing *probing);
// A trail that knows its pair begins with what was learnt on one like it; once.
void pasts_take(struct trail *trail);
// Of a trail that goes.
void pasts_note(struct trail *trail);
// All of them, handed to the state directory.
void pasts_save(struct probing *probing, uint64_t now_ns);
// Each second.
void pasts_look(struct probing *probing, uint64_t now_ns);
void pasts_forget(struct probing *probing, uint64_t now_ns);

// sights.c
enum sight_responder sights_responder(enum device_responder responder);
void sights_judge(struct probing *probing, uint64_t now_ns);
void sights_visited(struct trail *trail, uint64_t now_ns);
// When a read that was not answered will be silence, if there is no pair by then; or RAS_NEVER.
uint64_t sights_cut_at(const struct trail *trail);

// paths.c: an overlay_contribute_fn.
bool probing_contribute(
	void *ctx, const struct ras_contribution *wanted, struct wire_writer *writer
);
void probing_numbers(const struct fabric *fabric, struct fabric_probe_counters *ret_counters);
