// SPDX-License-Identifier: BSD-3-Clause
// Runs of timed reads or writes over one path, one at a time, for `tocsin ping --rdma`. A prober is
// one thing that a worker polls.
//
// Control passes a run in a request and gets it back in an event; in between the worker owns it.
// The prober looks up path, pair and remote address for every operation. If the path was removed,
// the run ends, so nothing is sent to a destroyed pair. The prober also looks up the peer's row, so
// it learns the overlay's news without a message. It does not probe a peer that left, ended or
// restarted.
//
// A prober also executes the standing probes of <dataplane/watch.h>.
#pragma once

#include <dataplane/op.h>
#include <dataplane/worker.h>
#include <lib/deadline.h>

#include <stdint.h>

#define PROBER_RUNS_MAX 16 // runs at the same time; the sender of the requests counts them

struct histogram;
struct path_table;
struct peer_table;
struct prober;

enum probe_end {
	PROBE_COMPLETE, // all operations done, or stopped
	PROBE_NO_PATH,	// the slot has no path, or another one
	PROBE_FAILED,	// an operation failed; see the cause
};

struct probe_run {
	// Set by control before the request.
	uint32_t path; // slot in the path table
	uint64_t peer; // expected peer
	// Expected generation of the pair; a different pair may belong to another lane
	uint32_t generation;
	enum op_kind kind;    // OP_READ or OP_WRITE
	uint32_t bytes;	      // per operation; within the local view and the peer's memory
	uint32_t count;	      // 0: until stopped
	uint64_t interval_ns; // between two starts; 0: start the next one at once
	uint64_t timeout_ns;  // per operation
	// Deadline of the first operation, besides `timeout_ns`; on the worker's clock
	struct deadline first;
	struct memory_view view; // holds a reference while the worker owns the run
	struct histogram
		// Nanoseconds from submission to end; the sender of the request clears it
		*latency;
	uint32_t *times_ns; // same times in order, room for `count`; NULL: not kept

	// Results.
	enum probe_end end;
	uint32_t sent, answered;
	enum op_outcome outcome; // outcome of the last operation
	struct op_cause cause;	 // valid if that operation failed
	uint64_t incarnation;	 // incarnation of the peer, from the path
	uint64_t took_ns;	 // from the first submission to the last end

	// Private to the worker.
	struct op op;
	struct prober *prober;
	uint64_t begun_ns, submitted_ns;
	uint64_t next_ns;
	bool under_way, stopping, ended;
};

// Requests. words[0] is the prober, words[1] is the run.
enum prober_request {
	PROBER_REQUEST_RUN = 0x200,
	PROBER_REQUEST_STOP, // stop when the operation in flight ends
	// words[1]: a watch (<dataplane/watch.h>), which the worker owns from now on
	PROBER_REQUEST_WATCH,
	PROBER_REQUEST_UNWATCH, // returned when the probe in flight has ended
	// Probe once, now. words[1]: slot of the watch, words[2]: its generation, words[3]: bytes,
	// words[4]: tag, words[5]: 1 for a write, 2 for a read of GPU memory
	PROBER_REQUEST_PROBE_NOW,
};

// Events. words[0] is the prober.
enum prober_event {
	PROBER_EVENT_ENDED = 0x200, // words[1]: the run, which control owns again
	PROBER_EVENT_UNWATCHED,	    // words[1]: the watch, which control owns again
	PROBER_EVENT_OUTCOME,	    // an outcome of a watch that control should read at once
};

// Create a prober. The tables must outlive it; `peers` is NULL in a program without overlay. `near`
// is near_of_cpu() of the worker's processor. Control thread. Returns 0 or -ENOMEM.
int prober_create(
	const struct path_table *paths,
	const struct peer_table *peers,
	const struct clock *clock,
	struct near near,
	struct prober **ret_prober
);
// Destroy a prober that no worker polls; remaining runs are not touched. NULL is fine.
struct prober *prober_destroy(struct prober *prober);

struct worker_poll prober_poll(struct prober *prober);
// Handle one request. Worker's thread; hot.
void prober_request(
	struct prober *prober, struct worker *worker, const struct worker_record *record
);
