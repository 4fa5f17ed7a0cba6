// SPDX-License-Identifier: BSD-3-Clause
// Declarations shared by the cold and the hot part of a worker.
#pragma once

#include "memory/near_ring.h"

#include <dataplane/doorbell.h>
#include <dataplane/worker.h>

#include <pthread.h>
#include <semaphore.h>
#include <stdalign.h>
#include <stdatomic.h>

// Requests of the worker itself.
#define WORKER_REQUEST_IDLE UINT32_MAX // words: policy, window_ns, foresees

enum worker_count {
	WORKER_TURNS,
	WORKER_REQUESTS,
	WORKER_EVENTS,
	WORKER_EVENTS_LOST,
	WORKER_BUSY_NS,
	WORKER_SPIN_NS,
	WORKER_YIELD_NS,
	WORKER_BLOCKED_NS,
	WORKER_YIELDS,
	WORKER_BLOCKS,
	WORKER_SLEEPS,
	WORKER_WAKES_RUNG,
	WORKER_WAKES_TIMED,
	WORKER_WAKES_POLLED,
	WORKER_WAITS,
	WORKER_PAID_NS,
	WORKER_OPTIMUM_NS,
	WORKER_CLOCK_JUMPS,
	WORKER_CLOCK_OFF_NS,
	WORKER_COUNTS,
};

struct worker {
	struct worker_config config; // read-only once the thread runs
	char name[WORKER_NAME_MAX + 1];
	struct near near;	    // NUMA node of the worker's own memory
	struct near_ring *requests; // control to worker
	struct near_ring *events;   // worker to control
	int timer_fd;
	pthread_t thread;
	bool runs; // only control
	sem_t started;
	int start_err;
	struct worker_facts facts;
	struct doorbell control_bell; // armed when control has taken all events
	struct doorbell bell;	      // armed while the worker sleeps
	// Private to the worker.
	alignas(64) struct idle idle;
	enum worker_count charged; // counter for the time since last_ns
	uint64_t last_ns;
	// Offset from the worker's clock to CLOCK_MONOTONIC, which sleeping uses
	uint64_t to_monotonic_ns;
	uint64_t compare_ns; // time of the next clock comparison
	uint32_t turns_left; // the same in turns, in case the clock does not advance
	bool event_pushed;   // ring control after the step
	bool progressed;     // call `notify` of the polls after the step
	bool awaits_events;  // the latest decision assumed that completion events work
	struct worker_poll polls[WORKER_POLLS_MAX];
	uint32_t poll_count;
	alignas(64) _Atomic uint64_t counts[WORKER_COUNTS]; // worker: read and write, others: read
	// Relaxed: a hint for hang detection. Worker: write, control: read.
	_Atomic uint64_t asleep_until_ns;
	alignas(64) atomic_bool stop; // control: write, worker: read
};

// Add to a counter and return the sum. There is one writer, so no locked instruction is needed.
static inline uint64_t
worker_counter_add(struct worker *worker, enum worker_count which, uint64_t by) {
	_Atomic uint64_t *count = &worker->counts[which];
	// Relaxed: only for statistics.
	uint64_t sum = atomic_load_explicit(count, memory_order_relaxed) + by;

	atomic_store_explicit(count, sum, memory_order_relaxed);
	return sum;
}

// Called by the ring's producer. Returns 0, or -ENOBUFS if the ring is full.
static inline int worker_enqueue(struct near_ring *ring, const struct worker_record *record) {
	return near_ring_enqueue(ring, record, sizeof(*record));
}

// Hot: serve requests and poll all objects once. Returns true if there was progress.
bool worker_poll_once(struct worker *worker, struct idle_step_findings *found);

// Hot: run one turn at this time of the worker's clock, without anything that may sleep.
struct idle_decision worker_turn(struct worker *worker, uint64_t now_ns);

// Run one turn as worker_loop() does: read the clock, and compare it when that is due.
struct idle_decision worker_step(struct worker *worker);
// Compare the worker's clock with CLOCK_MONOTONIC, and correct it if it is resynchronized.
void worker_sync_clocks(struct worker *worker);
