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

// Both rings use free-running counters. The producer publishes an item by storing `put` with
// release; the consumer loads `put` with acquire. The consumer frees a slot by storing `taken` with
// release; the producer loads `taken` with acquire.
struct watch_agenda {
	alignas(64) _Atomic uint32_t put;   // control: write, worker: read
	alignas(64) _Atomic uint32_t taken; // worker: write, control: read
	struct watch_due *items;	    // WATCH_AGENDA entries
};

struct watch_outcomes {
	alignas(64) _Atomic uint32_t put; // worker: write, control: read
	// worker: read and write, control: read; relaxed, for statistics
	_Atomic uint64_t lost;
	alignas(64) _Atomic uint32_t taken; // control: write, worker: read
	struct watch_outcome *items;	    // WATCH_OUTCOMES entries
};

struct prober {
	const struct path_table *paths;
	const struct peer_table *peers; // NULL: no overlay
	const struct clock *clock;
	struct near near; // preferred location of its memory
	// Private to the worker.
	struct worker *worker;			 // sender of the latest request
	struct probe_run *runs[PROBER_RUNS_MAX]; // the first run_count are valid
	uint32_t run_count;
	struct watch *watches[WATCHES_MAX]; // by slot
	uint32_t leaving;		    // number of watches to return
	bool untold;			    // control must be notified of outcomes
	bool sink_taken;		    // a long read is in flight
	struct watch_agenda agenda;
	struct watch_outcomes outcomes;
};

// Return the duration; 0 if the clock was set back, after its counter had jumped ahead.
static inline uint64_t elapsed_or_zero_ns(uint64_t begun_ns, uint64_t ended_ns) {
	return ended_ns > begun_ns ? ended_ns - begun_ns : 0;
}

// Return true if the overlay knows that the peer's process at this path has ended. Lack of
// knowledge is no reason: pairing may be ahead of the table, which is published at intervals. Reads
// of a peer that was declared dead by silence go on. They distinguish a host that is down from one
// that only lost the overlay.
static inline bool
path_peer_has_ended(const struct peer_table *peers, const struct path_row *path) {
	const struct peer_row *peer;

	if (peers == NULL)
		return false;
	peer = peer_snapshot_row(peer_table_snapshot(peers), path->peer_slot);
	return peer != NULL && peer->id == path->peer &&
	       (peer->ended || peer->first_incarnation > path->incarnation);
}

// watch_fast.c
bool watches_run_step(struct prober *prober, struct idle_step_findings *found);
void watches_handle_request(struct prober *prober, const struct worker_record *record);

bool prober_run_step(void *ctx, struct idle_step_findings *found);
