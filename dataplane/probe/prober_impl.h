// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <dataplane/path_table.h>
#include <dataplane/peer_table.h>
#include <dataplane/prober.h>
#include <dataplane/watch.h>

#include <assert.h>
#include <stdalign.h>
#include <stdatomic.h>

static_assert((WATCH_AGENDA & (WATCH_AGENDA - 1)) == 0, "numbers wrap into places");
static_assert((WATCH_OUTCOMES & (WATCH_OUTCOMES - 1)) == 0, "numbers wrap into places");

// Both rings: numbers that only grow; the producer publishes an item with the release of `put`,
// which the consumer acquires; the consumer gives its place back with the release of `taken`,
// which the producer acquires.
struct watch_agenda {
	alignas(64) _Atomic uint32_t put;   // control: wo, worker: ro
	alignas(64) _Atomic uint32_t taken; // worker: wo, control: ro
	struct watch_due *items;	    // WATCH_AGENDA of them
};

struct watch_outcomes {
	alignas(64) _Atomic uint32_t put;   // worker: wo, control: ro
	_Atomic uint64_t lost;		    // worker: rw, control: ro; relaxed, a number for people
	alignas(64) _Atomic uint32_t taken; // control: wo, worker: ro
	struct watch_outcome *items;	    // WATCH_OUTCOMES of them
};

struct prober {
	const struct path_table *paths;
	const struct peer_table *peers; // NULL: there is no overlay
	const struct clock *clock;
	struct near near; // where all of it is wanted
	// The worker's.
	struct worker *worker;			 // who gave us the last request
	struct probe_run *runs[PROBER_RUNS_MAX]; // the first run_count
	uint32_t run_count;
	struct watch *watches[WATCHES_MAX]; // by place
	uint32_t leaving;		    // of them: to be given back
	bool untold;			    // control should look at outcomes
	bool sink_taken;		    // a long read is under way
	struct watch_agenda agenda;
	struct watch_outcomes outcomes;
};

// A clock whose counter jumped ahead is set back when that is seen.
static inline uint64_t time_taken(uint64_t begun_ns, uint64_t ended_ns) {
	return ended_ns > begun_ns ? ended_ns - begun_ns : 0;
}

// Whether the overlay knows that the start of the peer that the path leads to is over. What it does
// not know (yet) is no reason: pairing may be ahead of the table, which is published at intervals.
// Of a peer that is dead by silence reads go on: they tell a host that is down from one that is cut
// off from the overlay.
static inline bool path_peer_is_over(const struct peer_table *peers, const struct path_row *path) {
	const struct peer_row *peer;

	if (peers == NULL)
		return false;
	peer = peer_snapshot_row(peer_table_snapshot(peers), path->peer_slot);
	return peer != NULL && peer->id == path->peer &&
	       (peer->ended || peer->first_incarnation > path->incarnation);
}

// watch_fast.c
bool watches_step(struct prober *prober, struct idle_found *found);
void watches_request(struct prober *prober, const struct worker_record *record);

bool prober_step(void *ctx, struct idle_found *found);
