// SPDX-License-Identifier: BSD-3-Clause
// What the cold and the hot half of a worker share.
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
	struct worker_config config; // from here on read only once it runs
	char name[WORKER_NAME_MAX + 1];
	struct near near;	    // NUMA node of the worker's own memory
	struct near_ring *requests; // control to worker
	struct near_ring *events;   // worker to control
	int timer_fd;
	pthread_t thread;
	bool runs; // control only
	sem_t started;
	int start_err;
	struct worker_facts facts;
	struct doorbell control_bell; // armed when control has seen all events
	struct doorbell bell;	      // armed while the worker sleeps
	// The worker's own.
	alignas(64) struct idle idle;
	enum worker_count charged; // what the time since last_ns goes to
	uint64_t last_ns;
	uint64_t to_monotonic_ns; // from its clock to CLOCK_MONOTONIC, which sleeping is on
	uint64_t compare_ns;	  // when to look at both again
	uint32_t turns_left;	  // the same, for a clock that stands still
	bool event_pushed;	  // control is to be rung after the step
	bool progressed;	  // who has `notify` is to be called after it
	bool awaits_events;	  // the last decision took for granted that they come
	struct worker_poll polls[WORKER_POLLS_MAX];
	uint32_t poll_count;
	alignas(64) _Atomic uint64_t counts[WORKER_COUNTS]; // worker: rw, others: ro
	// Relaxed, a hint for who looks whether it lives. Worker: wo, control: ro.
	_Atomic uint64_t asleep_until_ns;
	alignas(64) atomic_bool stop; // control: wo, worker: ro
};

// One writer: a load and a store, no locked instruction. What it is then.
static inline uint64_t worker_count(struct worker *worker, enum worker_count which, uint64_t by) {
	_Atomic uint64_t *count = &worker->counts[which];
	// Relaxed: numbers for people.
	uint64_t sum = atomic_load_explicit(count, memory_order_relaxed) + by;

	atomic_store_explicit(count, sum, memory_order_relaxed);
	return sum;
}

// Called by the ring's producer. Returns 0, or -ENOBUFS if the ring is full.
static inline int worker_enqueue(struct near_ring *ring, const struct worker_record *record) {
	return near_ring_enqueue(ring, record, sizeof(*record));
}

// Hot: everything on the list and the requests, once. True if there was progress.
bool worker_poll_all(struct worker *worker, struct idle_found *found);

// Hot: one turn at this time of its clock, without what may sleep.
struct idle_decision worker_turn(struct worker *worker, uint64_t now_ns);

// The same as worker_loop() does it: with the clock read, and looked after when that is due.
struct idle_decision worker_step(struct worker *worker);
// Compares its clock with CLOCK_MONOTONIC now, and keeps it if it is to be kept.
void worker_compare_clocks(struct worker *worker);
