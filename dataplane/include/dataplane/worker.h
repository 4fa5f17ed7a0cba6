// SPDX-License-Identifier: BSD-3-Clause
// A worker: one thread, on a processor of its own if it is given one, that polls a list of things
// and sleeps by the policy of <dataplane/idle.h> when there is nothing to do.
//
// Control brings requests and takes events, fixed-size records through rings of one producer and
// one consumer; each side has a doorbell. The worker reads what RCU publishes: it says that it is
// quiescent in every turn and goes offline before it sleeps. It never allocates, locks or logs.
//
// Its time is that of the clock it is given, on which all deadlines of polls are. A clock that it
// is to keep (<lib/clock.h>) is its own from its start on: it compares it with CLOCK_MONOTONIC each
// CLOCK_KEEP_NS of its time, before a turn, so that times of workers and of control differ by
// CLOCK_KEPT_NS and what is said there. One whose TSC jumped is told by an event.
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

#define WORKER_NAME_MAX 15 // what the kernel keeps of a thread's name
#define WORKER_CPU_ANY UINT32_MAX
#define WORKER_POLLS_MAX 32
#define WORKER_RING_RECORDS 1024
#define WORKER_OVERSLEEP_NS UINT64_C(1000000000) // a timer may be so late on a busy machine

struct worker;

struct worker_record {
	uint32_t kind; // by whoever gave the worker its polls; UINT32_MAX is the worker's own
	uint32_t slot;
	uint64_t words[7];
};

// A pointer in a word, and back.
static inline uint64_t worker_word(const void *pointer) {
	return (uintptr_t)pointer;
}

static inline void *worker_pointer(uint64_t word) {
	void *pointer;

	static_assert(sizeof(word) == sizeof(pointer), "a word holds a pointer");
	memcpy(&pointer, &word, sizeof(pointer));
	return pointer;
}

// One thing to poll. `poll` is hot, as all that it calls: it returns whether there was progress,
// and adds to *found what is outstanding and when it wants to be called next.
//
// What may call the system is made outside of the step, and left NULL where there is none: before
// it blocks the worker arms all, polls all once more, and waits on their descriptors too. One that
// is in error is told so once, by `woken`, and not waited for any more.
struct worker_poll {
	bool (*poll)(void *ctx, struct idle_found *found);
	void *ctx;
	int fd;			   // used if there is `woken`
	void (*arm)(void *ctx);	   // from here on something new makes the descriptor readable
	void (*woken)(void *ctx);  // it was: take what it is readable with
	void (*notify)(void *ctx); // after each step with progress: wake who waits for it
};

struct worker_config {
	const char *name;			    // up to WORKER_NAME_MAX bytes
	uint32_t cpu;				    // WORKER_CPU_ANY: where the scheduler likes
	const struct clock *clock;		    // outlives the worker
	struct clock *kept_clock;		    // NULL, or the same one: the worker keeps it
	struct idle_config idle;		    // block_ns 0: measured when it starts
	struct worker_poll polls[WORKER_POLLS_MAX]; // to begin with
	uint32_t poll_count;
	// A request, on the worker's thread; hot.
	void (*request)(void *ctx, struct worker *worker, const struct worker_record *record);
	void *request_ctx;
};

// Events of the worker itself, with slot and words of 0.
enum worker_own_event {
	WORKER_EVENT_CLOCK = 0x40, // its clock is CLOCK_MONOTONIC from now on: the TSC jumped
};

// What came of the configuration, read back.
struct worker_facts {
	pid_t tid;
	struct cpu_set affinity;
	uint64_t block_ns; // C
	bool eal;	   // registered with EAL, which ran
	int memory_node;   // NUMA node where its memory lies; -1: the kernel does not say
};

// Control. -EINVAL (name, polls), -ENOMEM, -errno of its descriptors.
int worker_create(const struct worker_config *config, struct worker **ret_worker);
// Stops it if it runs. NULL is fine.
struct worker *worker_destroy(struct worker *worker);

// Control; returns when the thread runs, or could not: -EINVAL (the processor is not allowed),
// -ENOSPC (RCU's readers), -ENOMEM (EAL's threads), -errno of making it. Once.
int worker_start(struct worker *worker, struct worker_facts *ret_facts);
// Control, also while it is blocked. What is in the rings stays there. Again is harmless.
void worker_stop(struct worker *worker);

// Who sets up what it polls: the clock that this is to use, on the worker's thread alone.
const struct clock *worker_clock(const struct worker *worker);
// Any thread: where what it uses is wanted. Anywhere if it has no processor of its own.
struct near worker_near(const struct worker *worker);
// As configured.
uint32_t worker_cpu(const struct worker *worker);

// Control: -EAGAIN if the ring is full.
int worker_post(struct worker *worker, const struct worker_record *record);
// Any thread that put work where a poll finds it: ends the worker's sleep, if it sleeps.
void worker_wake(struct worker *worker);
// Control: changes the policy of a worker that runs; block_ns is not looked at: C stays. -EINVAL,
// or -EAGAIN as worker_post().
int worker_set_idle(struct worker *worker, const struct idle_config *idle);
// Control: takes up to `count` events, returns how many. When it returns less, worker_event_fd()
// turns readable with the next one.
uint32_t worker_take(struct worker *worker, struct worker_record *records, uint32_t count);
// To be watched for reading.
int worker_event_fd(const struct worker *worker);

// The worker's thread, from a poll or request; hot. -ENOBUFS if control does not keep up: the
// event is lost and counted.
int worker_event(struct worker *worker, const struct worker_record *record);

// How many more events there is room for, at least. The worker's thread; hot.
uint32_t worker_event_room(const struct worker *worker);

// Its list, while it runs: the worker's thread, from a request; hot. -ENOSPC; -ENOENT.
int worker_poll_add(struct worker *worker, const struct worker_poll *poll);
int worker_poll_remove(struct worker *worker, const void *ctx);

// Written by the worker, read by anybody: of slightly different moments.
struct worker_counters {
	uint64_t turns, requests, events, events_lost;
	uint64_t busy_ns, spin_ns, yield_ns, blocked_ns; // parts of all its time
	uint64_t yields, blocks, sleeps;
	uint64_t wakes_rung, wakes_timed;    // how blocks ended
	uint64_t wakes_polled;		     // by a descriptor of a poll
	uint64_t waits, paid_ns, optimum_ns; // of <dataplane/idle.h>: the ratio really achieved
	uint64_t clock_jumps;		     // TSC clocks given up
	uint64_t clock_off_ns;		     // the most that a clock was found off CLOCK_MONOTONIC
};
void worker_counters(const struct worker *worker, struct worker_counters *ret_counters);

// Whether it lives: a number that moves with each turn, also of one that spins and finds nothing.
struct worker_sign {
	uint64_t turns;
	uint64_t asleep_until_ns; // by CLOCK_MONOTONIC; 0: awake, IDLE_NEVER: until it is woken
};
// Any thread.
void worker_sign(const struct worker *worker, struct worker_sign *ret_sign);

// What one who looks at it remembers.
struct worker_life {
	uint64_t turns;
	uint32_t silent; // looks in a row
};

// A look, at intervals of the caller's: how many in a row, with this one, saw a worker that is not
// asleep, or should not be, and has made no turn. By looks, not by time: a process that was stopped
// has not looked meanwhile.
static inline uint32_t
worker_life_look(struct worker_life *life, const struct worker_sign *sign, uint64_t now_ns) {
	bool asleep = sign->asleep_until_ns >= now_ns ||
		      now_ns - sign->asleep_until_ns < WORKER_OVERSLEEP_NS;

	life->silent = asleep || sign->turns != life->turns ? 0 : life->silent + 1;
	life->turns = sign->turns;
	return life->silent;
}

// The whole process: nothing of it is ever paged out, and all of it is resident from now on.
// -EPERM or -ENOMEM (RLIMIT_MEMLOCK).
int worker_lock_memory(void);
