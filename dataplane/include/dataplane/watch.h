// SPDX-License-Identifier: BSD-3-Clause
// Standing probes: reads of peers' pulses and of their GPU pages, and writes into memory that peers
// offer. Control plans them ahead and a prober executes them, so that control is not woken for each
// probe. The worker times each probe and parses the pulse it read. It keeps the outcomes until
// control fetches them, about once a second.
//
// Agenda and outcomes are rings with one producer and one consumer: control and the worker. Only
// two kinds of outcome wake control: an unanswered probe, and a counter unchanged for
// WATCH_STALLED_NS.
//
// Short reads have memory of their own in each watch. Longer reads share one sink, so a prober has
// at most one in flight and skips further ones.
//
// A watch covers one path. Control creates it; the worker owns it from PROBER_REQUEST_WATCH to
// PROBER_EVENT_UNWATCHED. It names the generation of its pair, and its path is looked up for each
// probe. Nothing is therefore sent to a destroyed pair.
#pragma once

#include <dataplane/op.h>
#include <dataplane/pulse.h>
#include <dataplane/worker.h>

#include <stdbool.h>
#include <stdint.h>

#define WATCHES_MAX 384		     // over all workers; control assigns the slots
#define WATCH_AGENDA 4096	     // probes planned ahead per worker
#define WATCH_OUTCOMES 4096	     // outcomes that control has not yet fetched
#define WATCH_SHORT_READ_BYTES 1024  // local memory of each watch
#define WATCH_WRITE_SINK_BYTES 65536 // memory that a peer offers for writes: the largest probe
#define WATCH_STALLED_NS UINT64_C(500000000)
// A probe that starts later than this is skipped: the worker was delayed.
#define WATCH_LATE_NS UINT64_C(100000000)

struct prober;

struct watch {
	// Set by control before the request.
	uint32_t place;		// slot, below WATCHES_MAX
	uint32_t path;		// slot in the path table
	uint64_t peer;		// expected peer
	uint32_t generation;	// expected generation of the pair
	uint64_t timeout_ns;	// per probe
	uint64_t write_address; // of WATCH_WRITE_SINK_BYTES at the peer
	uint32_t write_key;
	bool writes;	      // write_address is valid
	uint64_t gpu_address; // page in the peer's GPU memory, at least WATCH_SHORT_READ_BYTES
	uint64_t gpu_word;    // word that fills the page
	uint32_t gpu_key;
	bool gpu;		// gpu_address is valid
	struct memory_view own; // WATCH_SHORT_READ_BYTES for the short reads of this watch only
	// Memory for longer reads, shared by this prober's watches on the device; both views hold
	// references while the worker owns the watch
	struct memory_view sink;

	// Private to the worker.
	struct op op;
	struct prober *prober;
	uint64_t at_ns, late_ns;
	uint32_t bytes, tag;
	bool of_gpu;
	uint64_t beats, beats_at_ns; // counter, and the time when this value was first read
	struct pulse_workers workers;
	bool under_way, written, leaving;
};

struct watch_due {
	uint64_t at_ns;	     // on the worker's clock; ascending within the agenda
	uint32_t place;	     // slot of the watch
	uint32_t generation; // generation of the watch
	// Bytes to read: 8 read only the counter, more read from the page's start
	uint32_t bytes;
	uint32_t tag; // copied to the outcome
	bool write;   // write that many arbitrary bytes at the start of the peer's write sink
	bool gpu;     // read the page in GPU memory; bytes is a multiple of 8
};

enum watch_result {
	WATCH_ANSWERED,
	WATCH_LOST,    // timed out
	WATCH_VOID,    // ended for another reason, so it says nothing about the path
	WATCH_NO_PATH, // the path was removed
	WATCH_SKIPPED, // the previous probe was in flight, or the start was too late
};

struct watch_outcome {
	uint64_t at_ns; // start of the probe
	uint64_t latency_ns;
	uint64_t incarnation; // incarnation of the peer, if a valid pulse head was read
	uint64_t beats;	      // beat counter, if the head or the counter was read; else 0
	uint64_t late_ns;     // delay of the start: the worker's turn came late
	bool has_wait;	      // a valid head was read, so wait_ns is known
	uint64_t wait_ns;     // wait of the peer's threads (pulse_set_wait())
	uint32_t place, generation;
	uint32_t tag;
	// If a valid head was read: a bit for each hung worker of the peer, and the number of its
	// workers.
	uint32_t hung, workers;
	enum watch_result result;
	bool written; // it was a write
	bool refused; // for VOID: the peer's device denied access
	bool gpu;     // it read the page in GPU memory
	bool wrong;   // the GPU page did not hold its word
};

// Add probes to the agenda. Returns how many fitted. Control thread.
uint32_t prober_plan_probes(struct prober *prober, const struct watch_due *dues, uint32_t count);
// Fetch up to `count` outcomes, in the order of their ends. Control thread.
uint32_t
prober_take_outcomes(struct prober *prober, struct watch_outcome *outcomes, uint32_t count);
// Return the number of outcomes lost because control fetched too late.
uint64_t prober_lost_outcomes(const struct prober *prober);
