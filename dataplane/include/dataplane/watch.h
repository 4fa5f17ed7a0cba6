// SPDX-License-Identifier: BSD-3-Clause
// Standing probes: reads of peers' pulses and of their pages in GPU memory, and writes into what
// peers give up to them, that control plans ahead and a prober carries out, so that control is not
// woken for each. The worker times
// them, looks at the pulse that they bring, and keeps what came of them until control asks, about
// once a second.
//
// Agenda and outcomes are rings of one producer and one consumer each, control and the worker.
// Control is woken only by a probe that was not answered, and by one that found the counter as it
// was WATCH_STANDS_NS before.
//
// Short reads go into memory of each watch's own. Longer ones share what they read into, so of
// those there is one at a time of each prober, and another is left out.
//
// A watch is one path: made by control, the worker's from PROBER_REQUEST_WATCH to
// PROBER_EVENT_UNWATCHED. It names the generation of its pair; its path is looked up for each
// probe, so nothing is sent into a pair that is gone.
#pragma once

#include <dataplane/op.h>
#include <dataplane/pulse.h>
#include <dataplane/worker.h>

#include <stdbool.h>
#include <stdint.h>

#define WATCHES_MAX 384		  // of all workers together: places are control's to give
#define WATCH_AGENDA 4096	  // probes planned ahead of one worker
#define WATCH_OUTCOMES 4096	  // that control has not asked for yet
#define WATCH_OWN_BYTES 1024	  // of local memory of each watch
#define WATCH_LANDING_BYTES 65536 // of what a peer gives up to writes: the largest probe
#define WATCH_STANDS_NS UINT64_C(500000000)
// One that could not be begun so long after its time is left out: the worker was held up.
#define WATCH_LATE_NS UINT64_C(100000000)

struct prober;

struct watch {
	// Control's, before it is handed over.
	uint32_t place;		// below WATCHES_MAX
	uint32_t path;		// slot in the path table
	uint64_t peer;		// who is expected there
	uint32_t generation;	// of the pair that is
	uint64_t timeout_ns;	// of each probe
	uint64_t write_address; // of WATCH_LANDING_BYTES at the peer
	uint32_t write_key;
	bool writes;	      // there are such
	uint64_t gpu_address; // of a page in a GPU's memory there, WATCH_OWN_BYTES or more
	uint64_t gpu_word;    // that it holds all over
	uint32_t gpu_key;
	bool gpu;		 // there is such a page
	struct memory_view own;	 // WATCH_OWN_BYTES that nobody else reads into
	struct memory_view sink; // for longer reads, of this prober's watches on this device; both
				 // hold references while the watch is the worker's

	// The worker's.
	struct op op;
	struct prober *prober;
	uint64_t at_ns;
	uint32_t bytes, tag;
	bool of_gpu;
	uint64_t beats, beats_at_ns; // the counter, and when it was first read so
	struct pulse_workers workers;
	bool under_way, written, leaving;
};

struct watch_due {
	uint64_t at_ns;	     // on the worker's clock; in ascending order
	uint32_t place;	     // of the watch
	uint32_t generation; // likewise
	uint32_t bytes;	     // of the read: 8 is of the counter alone, more from the page's begin
	uint32_t tag;	     // comes back
	bool write;	     // so many bytes of no meaning, from the write sink's begin
	bool gpu;	     // a read of the page in GPU memory, multiples of 8 bytes
};

enum watch_result {
	WATCH_ANSWERED,
	WATCH_LOST,    // nothing came back
	WATCH_VOID,    // ended for another reason: says nothing of the path
	WATCH_NO_PATH, // there was none (any more)
	WATCH_SKIPPED, // the one before was still under way, or its time was long past
};

struct watch_outcome {
	uint64_t at_ns; // when it was begun
	uint64_t latency_ns;
	uint64_t incarnation; // of the peer, if the head of its pulse was read and is sound
	uint64_t beats;	      // likewise, or the counter alone; 0: neither
	uint32_t place, generation;
	uint32_t tag;
	// If a sound head was read: a bit for each worker of the peer that hangs, of so many.
	uint32_t hung, workers;
	enum watch_result result;
	bool written; // it was a write
	bool refused; // VOID, since the peer's device does not allow it
	bool gpu;     // it was of the page in GPU memory
	bool wrong;   // which was answered with something else than its word
};

// Control: how many of them were taken; the rest find no room.
uint32_t prober_plan(struct prober *prober, const struct watch_due *dues, uint32_t count);
// Control: up to `count` outcomes, in the order in which they ended.
uint32_t prober_outcomes(struct prober *prober, struct watch_outcome *outcomes, uint32_t count);
// Outcomes that control did not ask for in time.
uint64_t prober_outcomes_lost(const struct prober *prober);
