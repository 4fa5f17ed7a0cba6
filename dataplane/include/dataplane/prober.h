// SPDX-License-Identifier: BSD-3-Clause
// Runs of reads or writes over one path, one at a time, each timed: what `tocsin ping --rdma` asks
// for. A prober is one thing that a worker polls.
//
// Control hands a run over by a request and gets it back with an event; between the two it is the
// worker's. Path, pair and remote address are looked up in the path table for every operation: a
// path that is taken away meanwhile ends the run, and nothing is sent into a pair that is gone.
// So is the peer's row in the peer table: what the overlay learnt reaches this thread without a
// message, and a peer that left, whose process ended or that started anew is not probed.
//
// It also carries out the standing probes of <dataplane/watch.h>.
#pragma once

#include <dataplane/op.h>
#include <dataplane/worker.h>
#include <lib/deadline.h>

#include <stdint.h>

#define PROBER_RUNS_MAX 16 // under way at once; who hands them over counts them

struct histogram;
struct path_table;
struct peer_table;
struct prober;

enum probe_end {
	PROBE_COMPLETE, // as many as were asked for, or stopped
	PROBE_NO_PATH,	// there is none in the slot any more, or another
	PROBE_FAILED,	// an operation failed; the cause says why
};

struct probe_run {
	// Control's, before it is handed over.
	uint32_t path;		 // slot in the path table
	uint64_t peer;		 // who is expected there
	uint32_t generation;	 // of the pair that is: another one may be another lane's
	enum op_kind kind;	 // OP_READ or OP_WRITE
	uint32_t bytes;		 // of each, within the local view and what the peer shows
	uint32_t count;		 // 0: until it is stopped
	uint64_t interval_ns;	 // between two beginnings; 0: as fast as they end
	uint64_t timeout_ns;	 // of each
	struct deadline first;	 // of the first one, beside that; on the worker's clock
	struct memory_view view; // holds a reference while the run is the worker's
	struct histogram
		*latency;   // nanoseconds, submission to end; cleared by whoever hands it over
	uint32_t *times_ns; // the same of each read, in order: room for `count`; NULL: not kept

	// When it comes back.
	enum probe_end end;
	uint32_t sent, answered;
	enum op_outcome outcome; // of the last one
	struct op_cause cause;	 // if that failed
	uint64_t incarnation;	 // of the peer, by the path
	uint64_t took_ns;	 // from the first one's submission to the last one's end

	// The worker's.
	struct op op;
	struct prober *prober;
	uint64_t begun_ns, submitted_ns;
	uint64_t next_ns;
	bool under_way, stopping, ended;
};

// Requests: words[0] is the prober, words[1] the run.
enum prober_request {
	PROBER_REQUEST_RUN = 0x200,
	PROBER_REQUEST_STOP, // ends when the operation that is under way ends
	// words[1]: a watch (<dataplane/watch.h>), the worker's from here on
	PROBER_REQUEST_WATCH,
	PROBER_REQUEST_UNWATCH, // given back when the probe that is under way has ended
	// One probe at once. words[1]: place, words[2]: generation, words[3]: bytes, words[4]: tag,
	// words[5]: 1 for a write, 2 for a read of GPU memory
	PROBER_REQUEST_NOW,
};

// words[0] is the prober.
enum prober_event {
	PROBER_EVENT_ENDED = 0x200, // words[1]: the run, which is control's again
	PROBER_EVENT_UNWATCHED,	    // words[1]: the watch, likewise
	PROBER_EVENT_OUTCOME,	    // one of a watch that control should not wait for
};

// Control. The tables outlive it; `peers` is NULL in a program without an overlay. `near` is
// near_cpu() of its worker's processor. -ENOMEM.
int prober_create(
	const struct path_table *paths,
	const struct peer_table *peers,
	const struct clock *clock,
	struct near near,
	struct prober **ret_prober
);
// The worker does not poll it any more; runs that are left are not touched. NULL is fine.
struct prober *prober_destroy(struct prober *prober);

struct worker_poll prober_poll(struct prober *prober);
// The worker's thread; hot.
void prober_request(
	struct prober *prober, struct worker *worker, const struct worker_record *record
);
