// SPDX-License-Identifier: BSD-3-Clause
// A worker: one thread, optionally pinned to one processor, that polls a list of objects. With
// nothing to do it sleeps by the policy of <dataplane/idle.h>.
//
// Control sends requests and takes events: fixed-size records in rings with one producer and one
// consumer. Each side has a doorbell. The worker is an RCU reader: it is quiescent in every turn
// and goes offline before it sleeps. It never allocates, locks or logs.
//
// All deadlines of polls use the worker's clock. A resynchronized clock (<lib/clock.h>) belongs to
// the worker from its start. Every CLOCK_RESYNC_INTERVAL_NS of its time the worker compares it with
// CLOCK_MONOTONIC, before a turn. Times of workers and control therefore differ by at most
// CLOCK_RESYNC_BOUND_NS and the drift that <lib/clock.h> states. An event reports a clock whose TSC
// jumped.
#pragma once

#include <dataplane/idle.h>
#include <dataplane/near.h>
#include <lib/clock.h>
#include <lib/cpu_set.h>

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>

#define WORKER_NAME_MAX 15 // limit of the kernel for thread names
#define WORKER_CPU_ANY UINT32_MAX
#define WORKER_POLLS_MAX 32
#define WORKER_RING_RECORDS 1024
#define WORKER_OVERSLEEP_MAX_NS UINT64_C(1000000000) // possible delay of a timer on a busy machine

struct worker;

struct worker_record {
	// Defined by the provider of the polls; UINT32_MAX is reserved for the worker
	uint32_t kind;
	uint32_t slot;
	uint64_t words[7];
};

// Convert a pointer to a word, and back.
static inline uint64_t worker_pointer_to_word(const void *pointer) {
	return (uintptr_t)pointer;
}

static inline void *worker_word_to_pointer(uint64_t word) {
	void *pointer;

	static_assert(sizeof(word) == sizeof(pointer), "a word holds a pointer");
	memcpy(&pointer, &word, sizeof(pointer));
	return pointer;
}

// One object to poll. `poll` and everything it calls is hot. It returns whether there was progress,
// and adds to *found what is outstanding and the time of its next call.
//
// The other callbacks may make system calls and therefore run outside of the step; NULL: not
// needed. Before it blocks, the worker arms all polls, polls all once more, and waits on their
// descriptors too. If a descriptor is in error, `woken` is called once and the worker no longer
// waits on it.
struct worker_poll {
	bool (*poll)(void *ctx, struct idle_step_findings *found);
	void *ctx;
	int fd;			  // used only with `woken`
	void (*arm)(void *ctx);	  // make the descriptor readable on anything new from now on
	void (*woken)(void *ctx); // the descriptor was readable: read it
	// Called after each step with progress: wake threads that wait for this object
	void (*notify)(void *ctx);
};

struct worker_config {
	const char *name;	   // up to WORKER_NAME_MAX bytes
	uint32_t cpu;		   // WORKER_CPU_ANY: not pinned
	const struct clock *clock; // outlives the worker
	struct clock *kept_clock;  // NULL, or the same clock, which the worker resynchronizes
	struct idle_config idle;   // block_ns 0: measured when it starts
	struct worker_poll polls[WORKER_POLLS_MAX]; // initial polls
	uint32_t poll_count;
	// Handle one request, on the worker's thread; hot.
	void (*request)(void *ctx, struct worker *worker, const struct worker_record *record);
	void *request_ctx;
};

// Events of the worker itself; slot and words are 0.
enum worker_internal_event {
	// Its clock is CLOCK_MONOTONIC from now on, because the TSC jumped
	WORKER_EVENT_CLOCK = 0x40,
};

// Actual values after the start.
struct worker_facts {
	pid_t tid;
	struct cpu_set affinity;
	uint64_t block_ns; // C
	bool eal;	   // registered with EAL, which was running
	int memory_node;   // NUMA node of its memory; -1: unknown
};

// Create a worker. Control thread. Returns -EINVAL (name, polls), -ENOMEM, or -errno of its
// descriptors.
int worker_create(const struct worker_config *config, struct worker **ret_worker);
// Destroy a worker; stops it first if it runs. NULL is fine.
struct worker *worker_destroy(struct worker *worker);

// Start the thread, once, and return when it runs or failed to start. Control thread. Returns
// -EINVAL (processor not allowed), -ENOSPC (no RCU reader left), -ENOMEM (no EAL thread left), or
// -errno of thread creation.
int worker_start(struct worker *worker, struct worker_facts *ret_facts);
// Stop the thread, even while it is blocked. Records in the rings stay there. May be repeated.
// Control thread.
void worker_stop(struct worker *worker);

// Return the clock that objects polled by this worker must use, on the worker's thread only.
const struct clock *worker_clock(const struct worker *worker);
// Return the preferred location of memory that the worker uses; anywhere if it is not pinned. Any
// thread.
struct near worker_near(const struct worker *worker);
// Return the configured processor.
uint32_t worker_cpu(const struct worker *worker);

// Send a request. Control thread. Returns -EAGAIN if the ring is full.
int worker_post_request(struct worker *worker, const struct worker_record *record);
// End the worker's sleep, if it sleeps. Call it after storing work that a poll will find. Any
// thread.
void worker_wake(struct worker *worker);
// Change the idle policy of a running worker; C stays and block_ns is ignored. Control thread.
// Returns -EINVAL, or -EAGAIN as worker_post_request().
int worker_set_idle(struct worker *worker, const struct idle_config *idle);
// Take up to `count` events and return their number. After fewer than `count`, worker_event_fd()
// becomes readable with the next event. Control thread.
uint32_t worker_take_events(struct worker *worker, struct worker_record *records, uint32_t count);
// Return the descriptor to watch for reading.
int worker_event_fd(const struct worker *worker);

// Emit an event, from a poll or request on the worker's thread; hot. Returns -ENOBUFS if the ring
// is full; then the event is lost and counted.
int worker_event(struct worker *worker, const struct worker_record *record);

// Return a lower bound for the free event slots. Worker's thread; hot.
uint32_t worker_free_event_slot_count(const struct worker *worker);

// Change the poll list of a running worker, from a request on the worker's thread; hot. Returns
// -ENOSPC (list full) or -ENOENT (unknown ctx).
int worker_poll_add(struct worker *worker, const struct worker_poll *poll);
int worker_poll_remove(struct worker *worker, const void *ctx);

// Written by the worker and readable by any thread; the values are not from one instant.
struct worker_counters {
	uint64_t turns, requests, events, events_lost;
	uint64_t busy_ns, spin_ns, yield_ns, blocked_ns; // shares of the total time
	uint64_t yields, blocks, sleeps;
	uint64_t wakes_rung, wakes_timed; // blocks that ended by the doorbell, by time
	uint64_t wakes_polled;		  // blocks that ended by a descriptor of a poll
	// See <dataplane/idle.h>; their ratio is the achieved one
	uint64_t waits, paid_ns, optimum_ns;
	uint64_t clock_jumps;  // TSC clocks abandoned
	uint64_t clock_off_ns; // largest deviation found from CLOCK_MONOTONIC
};
void worker_counters(const struct worker *worker, struct worker_counters *ret_counters);

// Progress of a worker: the counter moves with each turn, even if the worker spins and finds
// nothing.
struct worker_progress {
	uint64_t turns;
	uint64_t asleep_until_ns; // on CLOCK_MONOTONIC; 0: awake, IDLE_NEVER: until woken
};
// Read the progress. Any thread.
void worker_progress(const struct worker *worker, struct worker_progress *ret_sign);

// State of an observer that detects a hung worker.
struct worker_life {
	uint64_t turns;
	uint32_t silent; // consecutive observations without progress
};

// Record one observation; the caller chooses the interval. Returns the number of consecutive
// observations, with this one, in which the worker was awake but made no turn. Oversleeping counts
// as awake. Observations are counted instead of time, because a stopped process makes no
// observations.
static inline uint32_t
worker_life_observe(struct worker_life *life, const struct worker_progress *sign, uint64_t now_ns) {
	bool asleep = sign->asleep_until_ns >= now_ns ||
		      now_ns - sign->asleep_until_ns < WORKER_OVERSLEEP_MAX_NS;

	life->silent = asleep || sign->turns != life->turns ? 0 : life->silent + 1;
	life->turns = sign->turns;
	return life->silent;
}

// Lock the memory of the whole process: all of it becomes resident and is never paged out. Returns
// -EPERM or -ENOMEM (RLIMIT_MEMLOCK).
int worker_lock_memory(void);
